"""What a user types to see variants of the ranking score and a baseline."""

import json

import nibabel as nib
import numpy as np
import pytest
from typer.testing import CliRunner

from napari_mamamia.cli.app import app

pytestmark = pytest.mark.usefixtures("quick_figures")


@pytest.fixture
def folders(tmp_path):
    for name, start in (("reference", 2), ("near", 3), ("far", 5)):
        (tmp_path / name).mkdir()
        for case_id in "AB":
            array = np.zeros((12, 8, 8), dtype=np.uint8)
            array[start : start + 4, 2:6, 2:6] = 1
            nib.save(nib.Nifti1Image(array, np.eye(4)), tmp_path / name / f"{case_id}.nii.gz")
    return tmp_path


def run(folders, *arguments):
    common = ["score", "--reference", str(folders / "reference"), "--bootstrap", "0"]
    return CliRunner().invoke(app, [*common, "--out", str(folders / "out"), *arguments])


def test_gate_baseline_and_composite_are_told_with_their_definitions(folders):
    models = [f"--prediction={name}={folders / name}" for name in ("near", "far")]
    found = run(folders, *models, "--baseline", "far", "--gate", "0.7", "--composite", "gated")
    assert found.exit_code == 0
    assert "with fairness 0 unless the performance is above 0.7" in found.output
    assert "against the baseline far" in found.output
    assert "by longest diameter of the reference" in found.output
    written = json.loads((folders / "out" / "comparison.json").read_text())
    assert written["baseline"] == "far"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--composite", "adaptive"), "a gate or a baseline; specify one of them"),
        (("--gate", "7"), "a performance of 0 to 0.999"),
        (("--baseline", "near"), "several models"),
    ],
)
def test_a_variant_that_cannot_be_is_refused_before_any_work(folders, arguments, why):
    found = run(folders, f"--prediction={folders / 'near'}", *arguments)
    assert found.exit_code == 2
    assert why in " ".join(found.output.replace("│", " ").split())
    assert not (folders / "out").exists()
