"""The core alone: a wheel without the features is built, installed, and does its work."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PIP = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
PROGRAM = [sys.executable, "-c", "from napari_mamamia.cli import main; main()"]
REFINE = """
import sys
import napari_mamamia as mm
case = mm.open_data_set(sys.argv[1])[0]
z, y, x = (int(axis.mean()) for axis in case.reference.array.nonzero())
print(mm.grow(case, click=(z, y, x)).mask.array.sum() > 0)
"""


def strip_features(wheel, target):
    """Write a wheel without the package and the entry points of the features."""
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            text = old.read(name)
            if name.startswith("napari_mamamia/features/"):
                continue
            if name.endswith(".dist-info/entry_points.txt"):
                groups = text.decode().split("[napari_mamamia.features]\n")
                assert len(groups) == 2
                text = (groups[0] + "".join(groups[1].partition("\n[")[1:])).encode()
            if name.endswith(".dist-info/RECORD"):
                lines = text.decode().splitlines(keepends=True)
                left = ("napari_mamamia/features/", "entry_points.txt")
                text = "".join(line for line in lines if not any(n in line for n in left)).encode()
            new.writestr(name, text)


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    """Return the environment of a program that finds an installed wheel of the core alone."""
    folder = tmp_path_factory.mktemp("core")
    options = ["--no-deps", "--no-index"]
    wheels = [*options, "--no-build-isolation", "--wheel-dir", folder / "built"]
    subprocess.run([*PIP, "wheel", *wheels, ROOT], check=True)
    (wheel,) = (folder / "built").iterdir()
    strip_features(wheel, folder / wheel.name)
    target = folder / "site"
    command = [*PIP, "install", *options, "--target", target, folder / wheel.name]
    subprocess.run(command, check=True)
    assert not (target / "napari_mamamia" / "features").exists()
    return os.environ | {"PYTHONPATH": str(target)}


def run(core, *command, cwd):
    answer = subprocess.run(command, env=core, cwd=cwd, capture_output=True, text=True, timeout=240)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


@pytest.mark.door
def test_the_core_alone_does_its_work(core, tmp_path):
    where = "import napari_mamamia; print(napari_mamamia.__file__)"
    assert run(core, sys.executable, "-c", where, cwd=tmp_path).startswith(core["PYTHONPATH"])
    help_text = run(core, *PROGRAM, "--help", cwd=tmp_path)
    assert "predict" in help_text
    assert "perfusion" not in help_text
    run(core, *PROGRAM, "demo", "--out", "demo", cwd=tmp_path)
    data = tmp_path / "demo" / "dataset"
    masks = data / "segmentations" / "expert"
    run(core, *PROGRAM, "predict", data, "--out", "masks", "--case", "PHANTOM_001", cwd=tmp_path)
    assert run(core, sys.executable, "-c", REFINE, data, cwd=tmp_path).strip() == "True"
    reference = tmp_path / "reference"  # of the one predicted case: a missing one is exit code 3
    reference.mkdir()
    shutil.copy(masks / "PHANTOM_001.nii.gz", reference)
    scored = ["--reference", reference, "--prediction", "masks"]
    run(core, *PROGRAM, "score", *scored, "--out", "scores", cwd=tmp_path)
    run(core, *PROGRAM, "export", data, "--masks", masks, "--out", "bundle", cwd=tmp_path)


@pytest.mark.door
def test_a_feature_that_is_not_there_is_named(core, tmp_path):
    command = [*PROGRAM, "score", "--study", ".", "--prediction", ".", "--out", "scores"]
    answer = subprocess.run(command, env=core, cwd=tmp_path, capture_output=True, text=True)
    assert answer.returncode == 1
    assert "feature" in answer.stderr


@pytest.mark.door
def test_the_window_of_the_core_has_its_own_pages(core, tmp_path):
    script = (
        "import napari\n"
        "from napari_mamamia.widgets.dock.place import show_dock\n"
        "from napari_mamamia.widgets.dock.steps import SECTIONS\n"
        "viewer = napari.Viewer(show=True)\n"
        "panel = show_dock(viewer, 'Cases', is_gradual=False)\n"
        "print(panel.page, 'Review' in SECTIONS, list(panel.results.extra))\n"
        "viewer.close()\n"
    )
    told = run(core, sys.executable, "-c", script, cwd=tmp_path)
    assert told.splitlines() == ["Cases False []"]
