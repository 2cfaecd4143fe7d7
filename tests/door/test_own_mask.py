"""The reader's own mask in the started window: what a crash left, and going through its history."""

import json

import numpy as np
import pytest
from program import wait_still, wait_until

from napari_mamamia.core.edits import Action, Brush, Jump, Tool
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.io.workspace.journal import read_journal
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.case.open_case import load_case
from napari_mamamia.services.refine.edit_case import open_editing, save_editing

pytestmark = pytest.mark.door

PAINT = Brush(tool=Tool.SPHERE, radius_mm=6.0)
ERASE = Brush(tool=Tool.SPHERE, action=Action.ERASE, radius_mm=2.0)
DOCK = """
from qtpy.QtWidgets import QApplication
docks = [w for w in QApplication.allWidgets() if type(w).__name__ == "MamamiaDock"]
live = docks[0].editing.live if docks else None
"""
VOXELS = DOCK + "result = -1 if live is None else int((live.labels > 0).sum())"
SHOW_REFINE = DOCK + "docks[0].show_page('Refine')"
SCROLL = (
    DOCK
    + """
from qtpy.QtWidgets import QScrollArea
view = area = docks[0].refine_page.history.view
while area is not None and not isinstance(area, QScrollArea):
    area = area.parent()
if area is not None:
    area.ensureWidgetVisible(view)
result = area is not None
"""
)
ROW = (
    DOCK
    + """
view = docks[0].refine_page.history.view
view.scrollTo(view.model().index({0}, 0))
place = view.viewport().mapToGlobal(view.visualRect(view.model().index({0}, 0)).center())
result = [place.x(), place.y()]
"""
)


def stroke(session, place, brush=PAINT):
    session.press(place, brush)
    session.release()
    return int(np.count_nonzero(session.labels))


@pytest.fixture
def opened(small_data_set, tmp_path):
    """Ana's mask of a case, open for editing in the workspace that the window will take."""
    config = tmp_path / "config"
    config.mkdir()
    (config / "preferences.json").write_text(json.dumps({"reader": "Ana"}))
    folder = small_data_set.with_name(f"{small_data_set.name}-workspace")
    case = load_case(find_data_set(small_data_set).case("A_1"))
    return open_editing(case, Workspace(folder), "Ana"), config


def open_more_tools(program):
    """Click the fold, again where the page moved away below the pointer at that moment."""
    program.click("refine_more_fold")
    try:
        program.widget("refine_steps", 20)
    except AssertionError:
        program.click("refine_more_fold")
        program.widget("refine_steps")


def open_in_window(start, data_set, config, n_voxels):
    """Start the program on the case, and wait until Ana's mask has so many voxels."""
    program = start("mamamia", "view", data_set, "--case", "A_1", MAMAMIA_CONFIG_DIR=str(config))
    wait_until(lambda: program.ask("evaluate", code=VOXELS) == n_voxels, "the own mask")
    program.ask("evaluate", code=SHOW_REFINE)
    open_more_tools(program)
    program.ask("evaluate", code=SCROLL)
    return program


@pytest.mark.night
def test_a_click_in_the_history_goes_to_a_step_that_changed_no_voxel(
    start, small_data_set, opened, tmp_path
):
    editing, config = opened
    first = stroke(editing.session, (4.0, 14.0, 14.0))
    for place in ((1.0, 2.0, 2.0), (1.0, 3.0, 3.0)):
        assert stroke(editing.session, place, ERASE) == first
    last = stroke(editing.session, (4.0, 20.0, 22.0))
    journal = editing.journal.path
    editing.close()  # not saved, as after a crash
    program = open_in_window(start, small_data_set, config, last)
    place = wait_still(lambda: program.ask("evaluate", code=ROW.format(2)), "the step's row")
    program.screen.click(*place)
    wait_until(lambda: program.ask("evaluate", code=VOXELS) == first, "the state after step 2", 30)
    program.screen.picture(tmp_path / "history.png")
    acts = [placed.record for placed in read_journal(journal).records]
    assert [act for act in acts if isinstance(act, Jump)] == [Jump(4, 2)]


@pytest.mark.night
def test_a_damaged_journal_leaves_the_newer_saved_mask_in_the_window_and_says_so(
    start, small_data_set, opened, tmp_path
):
    editing, config = opened
    stroke(editing.session, (4.0, 14.0, 14.0))
    saved = stroke(editing.session, (4.0, 20.0, 22.0))
    save_editing(editing)
    editing.close()
    journal = editing.journal.path
    journal.write_bytes(journal.read_bytes().replace(b'"n":2', b'"n":3', 1))
    program = open_in_window(start, small_data_set, config, saved)
    program.wait_for_text("the journal is damaged at record 3")
    program.screen.picture(tmp_path / "damaged.png")
    assert journal.with_name("A_1.set-aside-1.journal").exists()
