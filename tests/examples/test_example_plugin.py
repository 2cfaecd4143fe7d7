"""The example package, installed next to this software: each of its plug-ins is used."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

import napari_mamamia as mm

EXAMPLE = Path(__file__).parents[2] / "examples" / "mamamia-example-plugin"
HERE = """
import sys
from pathlib import Path
import napari_mamamia.segmentation.model.device as device
from napari_mamamia.core.errors import MissingExtraError, ModelError
def missing():
    raise MissingExtraError("torch", "segment")
device.require_torch = missing
import napari_mamamia.segmentation.run.engines as engines
engines.require_torch = missing
from napari_mamamia.segmentation.run.registry import list_models
from napari_mamamia.services.predict.added_models import new_host, why_not_here
from napari_mamamia.services.predict.model_choice import planned
from napari_mamamia.services.predict.model_choice import RunChoices
(entry,) = list_models(Path(sys.argv[1]))
host = new_host()
print(repr(why_not_here(planned(entry, RunChoices(), host))))
try:
    planned(entry, RunChoices(backend="torch"), host)
except ModelError as error:
    print(error)
"""
PROGRAM = [sys.executable, "-c", "from napari_mamamia.cli import main; main()"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return the environment of a program beside which the example is installed."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(EXAMPLE, folder / "source")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index"]
    options = ["--no-build-isolation", "--target", folder / "target", folder / "source"]
    subprocess.run([*pip, *options], check=True)
    return os.environ | {"PYTHONPATH": str(folder / "target")}


@pytest.fixture(scope="module")
def data_set(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "data"
    mm.make_phantoms(folder, 1, shape=(16, 48, 48), progress=False)
    return folder


def run(installed, *command):
    return subprocess.run(command, env=installed, capture_output=True, text=True, timeout=240)


def test_a_score_has_the_metric_in_terminal_table_report_and_library(installed, data_set, tmp_path):
    masks, out = data_set / "segmentations" / "expert", tmp_path / "scores"
    folders = ["--reference", masks, "--prediction", masks]
    answer = run(installed, *PROGRAM, "score", *folders, "--out", out)
    assert answer.returncode == 0, answer.stderr
    assert "Volume" in answer.stdout
    head, row = (out / "case_scores.csv").read_text().splitlines()[:2]
    assert dict(zip(head.split(","), row.split(","), strict=True))["volume_error"] == "0"
    assert "Volume error" in (out / "report.html").read_text()
    script = (
        "import sys, napari_mamamia as mm; cases = mm.open_data_set(sys.argv[1]); mask = cases[0]"
        ".reference; print(mm.metrics.measure(mask, mask)['volume_error'])"
    )
    answer = run(installed, sys.executable, "-c", script, data_set)
    assert answer.stdout.strip() == "0.0", answer.stderr


def test_an_export_writes_the_format_and_a_bundle_with_it_is_verified(
    installed, data_set, tmp_path
):
    masks, out = data_set / "segmentations" / "expert", tmp_path / "bundle"
    command = ["export", data_set, "--masks", masks, "--format", "centroid", "--out", out]
    answer = run(installed, *PROGRAM, *command)
    assert answer.returncode == 0, answer.stderr
    (file,) = (out / "centroid").iterdir()
    (centre,) = json.loads(file.read_text()).values()
    assert len(centre) == 3
    assert run(installed, *PROGRAM, "verify", out).returncode == 0


def test_the_map_is_computed_from_the_late_phase(installed, data_set):
    script = (
        "import sys, numpy as np, napari_mamamia as mm;"
        "case = mm.open_data_set(sys.argv[1])[0].read();"
        "late = mm.kinetics.maps(case, 'late_pe', phases=(1, 2))['late_pe'];"
        "s = case.signal[:, 8, 24, 10:20].astype('f4');"
        "print(np.allclose(late[8, 24, 10:20], 100 * (s[2] - s[0]) / s[0], equal_nan=True))"
    )
    answer = run(installed, sys.executable, "-c", script, data_set)
    assert answer.stdout.strip() == "True", answer.stderr


def test_the_kind_of_model_is_recognised_shown_and_predicts(installed, data_set, tmp_path):
    model, registry, out = tmp_path / "bright.above", tmp_path / "models", tmp_path / "out"
    model.write_text(json.dumps({"above": 30}))
    own = ("--registry", registry)
    (image,) = sorted((data_set / "images").glob("*/*_0000.nii.gz"))
    for command in (
        ["models", "add", model, *own],
        ["predict", data_set, "--model", "bright", "--recipe", "p0", *own, "--out", out],
    ):
        answer = run(installed, *PROGRAM, *command)
        assert answer.returncode == 0, answer.stderr
    assert "threshold" in run(installed, *PROGRAM, "models", "show", "bright", *own).stdout
    here = run(installed, sys.executable, "-c", HERE, registry).stdout
    assert here.startswith("''\n")  # nothing of torch is asked for
    assert "torch cannot run; choose the backend auto" in here
    (mask,) = out.glob("*.nii.gz")
    mask = np.asarray(nib.load(mask).dataobj)
    assert np.array_equal(mask, np.asarray(nib.load(image).dataobj) > 30)
    assert 0 < mask.mean() < 1


def test_the_profile_gives_an_empty_mask_the_worst_score(installed, data_set, tmp_path):
    masks, empty, out = data_set / "segmentations" / "expert", tmp_path / "none", tmp_path / "out"
    empty.mkdir()
    (reference,) = masks.glob("*.nii.gz")
    image = nib.load(reference)
    nib.save(nib.Nifti1Image(0 * np.asarray(image.dataobj), image.affine), empty / reference.name)
    folders = ["--reference", masks, "--prediction", empty, "--profile", "strict", "--out", out]
    answer = run(installed, *PROGRAM, "score", *folders)
    assert answer.returncode == 3, answer.stderr  # one case has no usable mask
    summary = json.loads((out / "summary.json").read_text())
    assert summary["definitions"]["case"]["unusable"]["rule"] == "worst-score"
    assert summary["definitions"]["cohort"]["min_group_size"] == 2
    assert "strict" in (out / "report.html").read_text()
    assert "|strict]" in run(installed, *PROGRAM, "score", "--help").stdout.replace(" ", "")


def test_a_folder_of_the_layout_opens(installed, data_set, tmp_path):
    case = tmp_path / "data" / "P1"
    case.mkdir(parents=True)
    for phase, image in enumerate(sorted((data_set / "images").glob("*/*.nii.gz"))):
        shutil.copy(image, case / f"t{phase}.nii.gz")
    answer = run(installed, *PROGRAM, "cases", case.parent)
    assert answer.returncode == 0, answer.stderr
    assert "example" in answer.stdout.lower()
    assert "P1" in answer.stdout


@pytest.mark.window
def test_the_windows_lists_have_the_map_the_kind_of_model_and_the_profile(installed):
    script = (
        "from qtpy.QtWidgets import QApplication\n"
        "app = QApplication([])\n"
        "from napari_mamamia.widgets.kinetics.page import KineticsPage\n"
        "from napari_mamamia.widgets.kinetics.colours import ramp_of\n"
        "from napari_mamamia.widgets.predict.model_cards import _join_filters\n"
        "from napari_mamamia.widgets.batch.page import BatchPage\n"
        "from qtpy.QtWidgets import QComboBox\n"
        "page, batch = KineticsPage(), BatchPage()\n"
        "profiles = batch.findChild(QComboBox, 'batch_profile')\n"
        "print(page.maps.itemText(page.maps.count() - 2), ramp_of('late_pe').name)\n"
        "print('threshold (*.above)' in _join_filters())\n"
        "print(profiles.itemText(profiles.count() - 1))\n"
    )
    answer = run(installed, sys.executable, "-c", script)
    lines = answer.stdout.splitlines()
    assert lines == ["late_pe mamamia_heat", "True", "strict"], answer.stderr


@pytest.mark.window
def test_a_started_window_shows_the_page(installed):
    script = (
        "import napari\n"
        "from napari_mamamia.widgets.dock.place import show_dock\n"
        "viewer = napari.Viewer(show=True)\n"
        "panel = show_dock(viewer, 'Volumes', is_gradual=False)\n"
        "page = panel.flow('Volumes').page\n"
        "print(page.isVisible(), page.lines.text())\n"
        "viewer.close()\n"
    )
    answer = run(installed, sys.executable, "-c", script)
    assert answer.stdout.splitlines() == ["True Open a case with a mask."], answer.stderr


def test_without_the_package_there_is_no_such_metric_and_format():
    assert "volume_error" not in mm.metrics.registry.METRIC_REGISTRY


def test_the_challenge_of_the_package_is_run_with_its_measure(installed, tmp_path):
    truth, cup = tmp_path / "truth", tmp_path / "cup"
    truth.mkdir()
    (truth / "volumes.csv").write_text("case,volume_ml\nA,10\nB,20\n")
    challenge = [*PROGRAM, "challenge"]
    options = ["--challenge", "volume-cup", "--reference", truth, "--bootstrap", "0"]
    answer = run(installed, *challenge, "init", cup, *options)
    assert answer.returncode == 0, answer.stderr
    # near: 1/10 and 1/20; far: 8/10 and no row, which is worth 2
    for team, rows in (("near", "A,11\nB,21\n"), ("far", "A,2\n")):
        (cup / "submissions" / team).mkdir(parents=True)
        (cup / "submissions" / team / "volumes.csv").write_text(f"case,value\n{rows}")
    assert run(installed, *challenge, "run", cup).returncode == 3  # far lacks a case
    answer = run(installed, *challenge, "rank", cup, "--out", tmp_path / "board")
    assert answer.returncode == 0, answer.stderr
    (board,) = json.loads((tmp_path / "board" / "leaderboard.json").read_text())["boards"]
    errors = {row["team"]: dict(row["measures"])["relative_error"] for row in board["rows"]}
    assert errors == pytest.approx({"near": 0.075, "far": 1.4})
    assert {row["team"]: row["rank"] for row in board["rows"]} == {"near": 1, "far": 2}
