"""What users do to a mask while it is refined: nothing of it may be lost without a word."""

from pathlib import Path

import numpy as np
import pytest
from qtpy.QtTest import QTest
from tests.widgets.conftest import HeldJobs

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.edits import Brush, Tool
from napari_mamamia.core.errors import SaveConflictError
from napari_mamamia.core.grid import Grid
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.dock.dock import MamamiaDock
from napari_mamamia.widgets.refine.mask_watch import SaveState
from napari_mamamia.widgets.refine.state import PaintTool

SPHERE = Brush(Tool.SPHERE, radius_mm=4.0)


def click(dock, name):
    dock.findChild(object, name).click()


@pytest.fixture
def refining(qtbot, opened):
    """A copy of the reference, open for editing, page Refine on screen."""
    opened.show_page("Refine")
    click(opened, "refine_from_reference")
    qtbot.waitUntil(lambda: opened.editing.live is not None)
    return opened


def stroke(dock, place=(4.0, 4.0, 4.0), brush=SPHERE):
    dock.editing.mask.press(place, brush)
    dock.editing.mask.release()


def layer_of(dock):
    return dock.scene.layer(Role.REFINED)


# ------------------------------------------------------------------ foreign hands


def test_napari_s_own_brush_makes_a_step_that_the_session_can_undo(qtbot, refining):
    layer, live = layer_of(refining), refining.editing.live
    before = live.labels.copy()
    layer.brush_size = 3
    layer.paint((1, 5, 5), 1)
    qtbot.waitUntil(lambda: live.position == 1)
    assert live.steps[0].name == "painted with napari"
    click(refining, "refine_undo")
    np.testing.assert_array_equal(live.labels, before)


def test_napari_s_undo_cannot_bring_back_voxels_from_before_our_stroke(qtbot, refining):
    layer, live = layer_of(refining), refining.editing.live
    layer.paint((1, 5, 5), 1)
    qtbot.waitUntil(lambda: live.position == 1)
    stroke(refining)
    after = live.labels.copy()
    layer.undo()
    np.testing.assert_array_equal(live.labels, after)


def write_random_box(dock, random):
    shape = np.array(dock.editing.live.grid.shape)
    start = random.integers(0, shape - 1)
    stop = random.integers(start + 1, shape + 1)
    box = Box(tuple(map(int, start)), tuple(map(int, stop)))
    dock.editing.mask.apply("write", box, random.random(stop - start) < 0.5)


def paint_with_napari(dock, _random):
    layer_of(dock).paint((1, 5, 5), 1 - layer_of(dock).data[1, 5, 5])
    dock.editing.mask.notice()


def abandon_stroke(dock, _random):
    dock.editing.mask.press((4.0, 4.0, 4.0), SPHERE)
    dock.editing.mask.abandon()


def jump(dock, random):
    dock.editing.mask.go_to(int(random.integers(0, len(dock.editing.live.steps) + 1)))
    QTest.qWait(20)


def undo(dock, _random):
    dock.editing.mask.undo()


def redo(dock, _random):
    dock.editing.mask.redo()


CHANGES = (
    write_random_box,
    lambda dock, random: stroke(dock, tuple(map(float, random.integers(0, (6, 20, 24))))),
    paint_with_napari,
    abandon_stroke,
)
EDITS = (*CHANGES, undo, redo, undo, CHANGES[0], undo, undo, redo, *CHANGES, jump, redo, jump)


@pytest.mark.parametrize("seed", range(3))
def test_the_shown_layer_is_the_mask_after_every_edit(refining, monkeypatch, seed):
    """A copy of the mask that changes only where the window redraws stays equal to the mask."""
    live, redraw = refining.editing.live, refining.scene.redraw_box
    drawn, random = live.labels.copy(), np.random.default_rng(seed)

    def redraw_and_copy(role, box):
        if role is Role.REFINED:
            drawn[box.slices] = live.labels[box.slices]
        redraw(role, box)

    monkeypatch.setattr(refining.scene, "redraw_box", redraw_and_copy)
    for number, edit in enumerate(EDITS):
        edit(refining, random)
        np.testing.assert_array_equal(drawn, live.labels, err_msg=f"edit {number}")


def test_what_napari_painted_just_before_saving_is_in_the_list_of_steps(qtbot, refining, world):
    layer_of(refining).paint((1, 5, 5), 1)
    click(refining, "refine_save")
    qtbot.waitUntil(lambda: refining.editing.state is SaveState.SAVED)
    assert refining.refine_page.history.model.index(0, 0).data() == "1  painted with napari"


def test_a_renamed_layer_is_painted_on_like_before(refining):
    layer_of(refining).name = "my own name"
    before = int(refining.editing.live.labels.sum())
    stroke(refining)
    assert layer_of(refining).data.sum() > before


def test_data_of_the_same_size_are_taken_over_as_a_step(qtbot, refining):
    live = refining.editing.live
    before = live.labels.copy()
    other = np.zeros(layer_of(refining).data.shape, np.int64)
    other[0, 3, 3] = 1
    layer_of(refining).data = other
    qtbot.waitUntil(lambda: live.position == 1)
    assert live.steps[0].name == "data replaced"
    assert live.labels.sum() == 1
    assert np.shares_memory(layer_of(refining).data, live.labels)
    assert "became one step" in refining.header.message.text()
    click(refining, "refine_undo")
    np.testing.assert_array_equal(live.labels, before)


def test_data_of_another_size_are_refused_and_the_mask_is_shown_again(qtbot, refining):
    live = refining.editing.live
    stroke(refining)
    painted = live.labels.copy()
    layer_of(refining).data = np.zeros((3, 4, 5), np.uint8)
    qtbot.waitUntil(lambda: "different size" in refining.header.message.text())
    np.testing.assert_array_equal(live.labels, painted)
    assert np.shares_memory(layer_of(refining).data, live.labels)
    stroke(refining, (1.0, 4.0, 4.0))
    assert live.position == 2


def test_a_deleted_layer_is_saved_before_it_goes(qtbot, refining, viewer, world):
    stroke(refining)
    painted = int(refining.editing.live.labels.sum())
    viewer.layers.remove(layer_of(refining))
    qtbot.waitUntil(lambda: refining.session.mask(Role.REFINED) is None)
    assert world.refined["Ana", "A_1"].sum() == painted
    assert refining.editing.live is None


def test_a_layer_deleted_in_the_middle_of_a_stroke_ends_it_quietly(qtbot, refining, viewer, world):
    refining.editing.mask.press((4.0, 4.0, 4.0), SPHERE)
    viewer.layers.remove(layer_of(refining))
    refining.editing.mask.drag((4.0, 4.0, 6.0))
    refining.editing.mask.release()
    qtbot.waitUntil(lambda: ("Ana", "A_1") in world.refined)


def test_a_deleted_layer_of_marks_comes_back(qtbot, refining, viewer):
    refining.marks.prepare()
    viewer.layers.remove(refining.scene.layer(Role.MARKS))
    refining.painting.set_tool(PaintTool.OUTLINE)
    refining.marks.prepare()
    assert refining.scene.layer(Role.MARKS) is not None


# ------------------------------------------------------------- opening and saving


def test_a_mask_that_another_window_edits_can_be_seen_and_not_painted_on(qtbot, dock, world):
    world.refined["Ana", "A_1"] = np.ones((6, 20, 24), np.uint8)
    world.edit_error = SaveConflictError("A_1 is edited in another window: close it there")
    with_picture = []
    dock.session.case_changed.connect(lambda: with_picture.append(layer_of(dock)))
    dock.open_data_set(Path("data"), "A_1")
    qtbot.waitUntil(lambda: "another window" in dock.header.message.text())
    assert with_picture[0] is None
    qtbot.waitUntil(lambda: layer_of(dock) is not None)  # a turn later, as each new layer
    assert not layer_of(dock).editable
    dock.painting.set_tool(PaintTool.SPHERE)
    assert dock.painting.state.tool is PaintTool.NONE


def test_recovered_strokes_are_offered_and_taken_over(qtbot, dock, world):
    crashed = np.zeros((6, 20, 24), np.uint8)
    crashed[1, 1, 1] = 1
    world.crashed["Ana", "A_1"] = crashed
    dock.show_page("Refine")
    dock.open_data_set(Path("data"), "A_1")
    qtbot.waitUntil(dock.refine_page.offer.isVisible)
    assert "Recovered 12 steps from" in dock.refine_page.offer.text()
    np.testing.assert_array_equal(dock.editing.live.labels, crashed)
    click(dock, "refine_take_over")
    assert not dock.refine_page.offer.isVisible()
    np.testing.assert_array_equal(dock.editing.live.labels, crashed)
    assert dock.editing.state is SaveState.UNSAVED


def test_recovered_strokes_left_aside_come_back_with_undo(qtbot, dock, world):
    crashed = np.zeros((6, 20, 24), np.uint8)
    crashed[1, 1, 1] = 1
    world.crashed["Ana", "A_1"] = crashed
    world.refined["Ana", "A_1"] = np.zeros((6, 20, 24), np.uint8)
    dock.show_page("Refine")
    dock.open_data_set(Path("data"), "A_1")
    qtbot.waitUntil(dock.refine_page.offer.isVisible)
    click(dock, "refine_leave")
    assert dock.editing.live.labels.sum() == 0
    click(dock, "refine_undo")
    np.testing.assert_array_equal(dock.editing.live.labels, crashed)


class FullDisk:
    """A journal that cannot write."""

    problem = "NOT recorded: No space left on device; 1 record would be lost"

    def close(self):
        """Let go of nothing."""


def test_a_journal_on_a_full_disk_is_said_once_and_shown_in_the_header(qtbot, opened, world):
    world.journal = FullDisk()
    opened.show_page("Refine")
    click(opened, "refine_from_nothing")
    qtbot.waitUntil(lambda: opened.editing.live is not None)
    stroke(opened)
    assert "No space left" in opened.header.message.text()
    assert "NOT kept" in opened.header.saved.text()
    opened.header.say("hint", "")
    stroke(opened, (4.0, 9.0, 9.0))
    assert opened.header.message.text() == ""
    assert opened.editing.live.position == 2


def test_accept_saves_and_opens_the_next_case(qtbot, refining, world):
    stroke(refining)
    click(refining, "refine_accept")
    qtbot.waitUntil(lambda: refining.session.case_id == "A_2")
    assert ("Ana", "A_1") in world.refined


def test_accept_keeps_the_case_where_it_cannot_be_saved(qtbot, refining, world, disk_full):
    world.save_error = disk_full
    stroke(refining)
    click(refining, "refine_accept")
    qtbot.waitUntil(lambda: refining.editing.state is SaveState.FAILED)
    assert refining.session.case_id == "A_1"


def test_an_untouched_copy_can_be_accepted(qtbot, refining, world):
    click(refining, "refine_accept")
    qtbot.waitUntil(lambda: refining.session.case_id == "A_2")
    assert world.refined["Ana", "A_1"].sum() == 48


# ----------------------------------------------------------------- cases as they are


@pytest.fixture
def adopted(qtbot, viewer, world):
    """Return a function that opens a case made in memory and starts an empty mask of it."""

    def open_it(case):
        dock = MamamiaDock(viewer, world.services())
        qtbot.addWidget(dock)
        dock.show()
        dock.show_page("Refine")
        dock.scene.show_case(case, (0.0, 1.0))
        dock.session.set_case(case, None, [])
        dock.editing.start(None)
        qtbot.waitUntil(lambda: dock.editing.live is not None)
        return dock

    return open_it


def test_a_single_slice_is_painted_and_its_slice_only(qtbot, adopted):
    rng = np.random.default_rng(1)
    signal = rng.normal(100, 5, (3, 1, 30, 30)).astype(np.float32)
    case = Case("ONE", Grid((1, 30, 30), np.eye(4)), signal, tuple(Phase(k) for k in range(3)))
    dock = adopted(case)
    qtbot.waitUntil(lambda: dock.measure.images is not None)
    stroke(dock, (0.0, 15.0, 15.0), Brush(radius_mm=5.0, tolerance=4.0))
    assert dock.editing.live.labels.sum() > 10
    assert "strokes not kept" in dock.header.saved.text()


def test_a_case_without_a_late_phase_says_that_two_features_are_compared(qtbot, adopted):
    signal = np.random.default_rng(1).normal(100, 5, (2, 6, 30, 30)).astype(np.float32)
    case = Case("TWO", Grid((6, 30, 30), np.eye(4)), signal, (Phase(0, 0.0), Phase(1, 90.0)))
    dock = adopted(case)
    qtbot.waitUntil(lambda: dock.measure.images is not None)
    assert "no late phase" in dock.refine_page.tools.hint.text()


def test_while_phases_are_read_the_sphere_works_and_smartpaint_waits(adopted):
    signal = np.zeros((2, 6, 30, 30), np.float32)
    phases = (Phase(0, 0.0, loaded=False), Phase(1, 90.0))
    dock = adopted(Case("LOADING", Grid((6, 30, 30), np.eye(4)), signal, phases))
    tools = dock.refine_page.tools
    assert "still loading" in tools.hint.text()
    assert not tools.tools[PaintTool.SMARTPAINT].isEnabled()
    stroke(dock)
    assert dock.editing.live.labels.any()


def test_a_stroke_during_a_slow_save_is_saved_by_itself_afterwards(
    qtbot, refining, world, monkeypatch
):
    monkeypatch.setattr("napari_mamamia.widgets.refine.mask_saving._AUTOSAVE_AFTER_MS", 20)
    held = HeldJobs(refining.jobs, ("save",))
    refining.editing.save()
    held.end()
    live, saving = refining.editing.live, refining.editing.saving
    stroke(refining)
    assert saving.autosave.isActive()
    qtbot.waitUntil(lambda: not saving.autosave.isActive())  # while the save still runs
    assert refining.jobs.is_running("save")
    held.deliver()
    qtbot.waitUntil(lambda: np.array_equal(world.refined["Ana", "A_1"], live.labels))
