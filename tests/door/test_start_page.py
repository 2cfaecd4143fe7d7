"""`mamamia view` without a path, with a zip and with volumes; the splash screen before all else."""

import subprocess
import time
import zipfile

import numpy as np
import pytest
from program import wait_until

import dicom_phantoms as phantoms
import napari_mamamia as mm
from napari_mamamia.io.data_set.volumes import write_volume

pytestmark = pytest.mark.door


def names(program):
    return {row["name"] for row in program.widgets(**{"class": "QPushButton"})}


def test_the_splash_screen_comes_before_napari_and_a_click_opens_a_recent_folder(
    start, small_data_set, tmp_path
):
    before = time.monotonic()
    program = start("mamamia", "view", small_data_set)
    wait_until(lambda: program.screen.picture().any(), "something on the screen")
    splash_s = time.monotonic() - before
    program.widget("cases_table")
    assert splash_s < (time.monotonic() - before) / 2
    wait_until(lambda: not program.widgets(name="mamamia_splash"), "the end of the splash screen")
    config = program.folder / "config"
    program.end()
    again = start("mamamia", "view", MAMAMIA_CONFIG_DIR=str(config))
    again.click("start_recent_0")
    again.widget("cases_table")
    assert "start_folder" not in names(again)


def test_a_zip_leads_to_its_import_and_volumes_to_their_case(start, tmp_path):
    folder = tmp_path / "exam"
    folder.mkdir()
    phantoms.write_exam(folder)
    with zipfile.ZipFile(tmp_path / "exam.zip", "w") as archive:
        for path in folder.iterdir():
            archive.write(path, f"exam/{path.name}")
    program = start("mamamia", "view", tmp_path / "exam.zip")
    program.click("import_start")
    program.wait_for_text("1 / 1")
    program.end()
    grid = mm.Grid.of_spacing((4, 32, 32), (2.0, 1.0, 1.0))
    paths = [tmp_path / f"{name}.nii.gz" for name in ("pre", "post")]
    for path in paths:
        write_volume(np.arange(4096, dtype=np.int16).reshape(grid.shape), grid, path)
    program = start("mamamia", "view", *paths)
    program.wait_for_text("pre")
    program.wait_for_text("1 / 1")


@pytest.mark.parametrize("content", ["nothing", "folder", None])
def test_what_cannot_be_opened_is_an_error_without_a_window(scripts, tmp_path, content):
    path = tmp_path / "what"
    if content == "folder":
        path.mkdir()
    elif content:
        path.write_text(content)
    ended = subprocess.run(
        [scripts / "mamamia", "view", path],
        env={"QT_QPA_PLATFORM": "offscreen", "HOME": str(tmp_path), "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: ")
    assert str(path) in ended.stderr
    assert "Traceback" not in ended.stderr


def test_in_the_window_a_path_that_is_not_there_is_reported_on_the_start_page(start, tmp_path):
    program = start("mamamia", "view", tmp_path / "none", "--in-window")
    program.wait_for_text(str(tmp_path / "none"))
    assert "start_folder" in names(program)
