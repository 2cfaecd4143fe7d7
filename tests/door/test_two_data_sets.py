"""Baseline and follow-up with equal ids, moved to another account: the program as it is started."""

import shutil

import nibabel as nib
import numpy as np
import pytest
from program import wait_still, wait_until

from napari_mamamia.services.case.data_set import open_data_set
from napari_mamamia.services.predict.cases import predict_data_set
from napari_mamamia.services.predict.predict import segmenter_named

pytestmark = pytest.mark.door


@pytest.fixture
def moved(small_data_set, tmp_path):
    """A folder with a data set, its workspace of another name, and a follow-up of equal ids."""
    made = tmp_path / "made here"
    made.mkdir()
    baseline = small_data_set.rename(made / "baseline")
    followup = shutil.copytree(baseline, made / "follow-up")
    for path in (followup / "images").rglob("*.nii.gz"):
        image = nib.load(path)
        moved = np.roll(np.asanyarray(image.dataobj), 3, axis=0)
        nib.save(nib.Nifti1Image(moved, image.affine, image.header), path)
    opened = open_data_set(baseline, made / "masks")
    kinetic = segmenter_named("kinetic")
    predict_data_set(opened, kinetic, made / "masks" / "predictions" / "kinetic", ["A_2"])
    return made.rename(tmp_path / "moved here")


def n_changed(program, before):
    """Return how many pixels of the canvas are another colour than before."""
    return int((np.abs(program.canvas_picture().astype(int) - before).max(axis=2) > 20).sum())


def contents(root):
    return {path: path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_a_moved_workspace_is_listed_by_the_command(start, moved):
    program = start("mamamia", "cases", moved / "baseline", HOME=str(moved))
    assert program.process.wait(120) == 0
    line = next(line for line in program.output.splitlines() if " A_2 " in line)
    assert "kinetic" in line
    assert f"{moved / 'masks'} (next to the data set)" in program.output


@pytest.mark.night
def test_in_the_window_a_moved_workspace_is_shown_and_only_its_own_one_is_written(start, moved):
    program = start("mamamia", "view", moved / "baseline", "--case", "A_2", HOME=str(moved))
    program.wait_for_text("A_2")
    program.widget("header_mask_prediction")
    before = program.canvas_picture()
    program.click("header_mask_prediction")  # hides it
    wait_until(lambda: n_changed(program, before) > 50, "pixels of the mask")
    program.click("header_mask_prediction")
    assert program.ask("drop", name="mamamia_dock", paths=[str(moved / "follow-up")])
    program.wait_for_text("A_2 · baseline")
    before = contents(moved / "masks" / "predictions")
    program.ask("evaluate", code=SHOW_PREDICT)
    program.click("predict_start")
    said = program.wait_for_text("kinetic's prediction of A_2 from 20")["text"]
    assert "not been run yet" in said
    assert contents(moved / "masks" / "predictions") == before
    wait_until(lambda: program.widgets(name="predict_offer_1")[0]["visible_rect"], "the question")
    program.click("predict_offer_1")
    new = moved / "masks" / "predictions" / "kinetic 2" / "A_2.json"
    wait_until(new.exists, "the second prediction")
    after = contents(moved / "masks" / "predictions")
    assert {path: after[path] for path in before} == before
    assert not (moved / "follow-up-workspace").exists()
    close_and_reopen_the_dock(program)


def close_and_reopen_the_dock(program):
    """See that it comes back with the case, the list and its filter."""
    program.ask("evaluate", code=FIND_DOCK + "dock.cases_page.search.setText('A_')")

    def cross():
        places = [row["centre"] for row in program.widgets(name="QTitleBarCloseButton")]
        return next((one for one in places if one[1] < 100 and one[0] > 900), None)

    program.screen.click(*wait_still(cross, "the dock's cross"))
    wait_until(lambda: not program.widgets(name="mamamia_dock"), "the dock to close")
    program.ask("evaluate", code=OPEN_CASES)
    program.wait_for_text("A_2 · baseline")
    search = program.widget("cases_search")
    assert search["text"] == "A_"
    assert program.widget("cases_folder")["text"].endswith("follow-up")


FIND_DOCK = """
from qtpy.QtWidgets import QApplication
dock = next(w for w in QApplication.allWidgets() if w.objectName() == "mamamia_dock")
"""
SHOW_PREDICT = FIND_DOCK + "dock.show_page('Predict')"
OPEN_CASES = """
import napari
napari.current_viewer().window.add_plugin_dock_widget("napari-mamamia", "Cases")
"""
