"""A bundle that is refused here, made a submission and run in a closed room as MONAI runs it."""

import importlib.util
import re
import sys
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from tests.cli.warm_program import mamamia
from tests.packages import need_package

from napari_mamamia.core.choices import IsolationKind
from napari_mamamia.segmentation.sandbox.isolation import find_isolation

pytest.importorskip("torch")
need_package("monai")
pytestmark = pytest.mark.door

_FOUND = importlib.util.spec_from_file_location(
    "bundle_maker_here", Path(__file__).parents[1] / "segmentation" / "bundle_maker.py"
)
maker = importlib.util.module_from_spec(_FOUND)
sys.modules["bundle_maker_here"] = maker
_FOUND.loader.exec_module(maker)


@pytest.fixture
def refused_bundle(tmp_path):
    """Return a bundle whose preprocessing runs an expression, and its config."""
    inference = maker.config()
    steps = inference["preprocessing"]["transforms"]
    steps.insert(2, {"_target_": "Lambdad", "keys": "image", "func": "$lambda x: x * 2 + 1"})
    return maker.write_bundle(tmp_path / "author's bundle", inference, wrap="model"), inference


def test_a_refused_bundle_runs_in_the_room_as_monai_runs_it(
    refused_bundle, small_data_set, tmp_path
):
    bundle, inference = refused_bundle
    images = [small_data_set / f"images/A_1/A_1_000{k}.nii.gz" for k in (0, 2)]
    refused = mamamia("predict", small_data_set, "--model", bundle, "--out", tmp_path / "p")
    assert refused.returncode == 1
    assert "mamamia models wrap --help" in " ".join(refused.stderr.split())

    wrapped = tmp_path / "wrapped"
    done = mamamia(
        *("models", "wrap", bundle, "--phase", 0, "--phase", 2, "--label", 1, "--out", wrapped)
    )
    assert done.returncode == 0, done.stderr
    (said,) = re.findall(r"run it:  mamamia (.*)", done.stdout)
    words = [str(small_data_set) if word == "DATASET" else word for word in said.split()]
    words[words.index("DIR")] = str(tmp_path / "out")
    words += ["--case", "A_1", "--as-root"]
    if not find_isolation((IsolationKind.BUBBLEWRAP,)).usable:
        words += ["--consent-no-isolation"]
    done = mamamia(*words)
    assert done.returncode == 0, done.stdout + done.stderr

    found = nib.load(tmp_path / "out" / "pred_segmentations" / "A_1.nii.gz")
    opened = [nib.load(path) for path in images]
    np.testing.assert_array_equal(found.affine, opened[0].affine)
    grid = type("G", (), {"affine": opened[0].affine})
    arrays = [np.asarray(image.dataobj).T for image in opened]
    place = tmp_path / "monai"
    place.mkdir()
    expected = maker.by_monai(bundle, inference, arrays, grid, place)[0]
    mask = np.asarray(found.dataobj).T
    assert 0 < mask.sum() < mask.size
    np.testing.assert_array_equal(mask == 1, expected == 1)


def test_what_is_no_bundle_is_not_wrapped(tmp_path):
    (tmp_path / "configs").mkdir()
    done = mamamia("models", "wrap", tmp_path, "--phase", 0, "--label", 1, "--out", tmp_path / "o")
    assert done.returncode == 1
    assert "lacks configs/metadata.json, models, configs/inference.json" in done.stderr
    assert not (tmp_path / "o").exists()


def test_nothing_is_overwritten_by_a_wrapped_bundle(refused_bundle, tmp_path):
    bundle, _ = refused_bundle
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "mine.txt").touch()
    words = ("models", "wrap", bundle, "--phase", 0, "--label", 1, "--out", tmp_path / "o")
    done = mamamia(*words)
    assert done.returncode == 1
    assert "nothing was written" in done.stderr
    assert [path.name for path in (tmp_path / "o").iterdir()] == ["mine.txt"]
