"""The example package, installed beside this software: its metric, format and page are there."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import napari_mamamia as mm

EXAMPLE = Path(__file__).parents[2] / "examples" / "mamamia-example-plugin"
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
