"""SmartPaint strokes in the window: settled in a thread, in their order, none lost, none half."""

import threading

import numpy as np
import pytest
from tests.widgets.test_painting import RIGHT, Mouse, mask_of

from napari_mamamia.services.refine.strokes import settle_kept
from napari_mamamia.smartpaint.evidence.stroke import Preview
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.refine.state import PaintTool
from napari_mamamia.widgets.viewer.marks import StrokeMarks

AT, OTHER, THIRD = (2, 9, 12), (3, 9, 13), (2, 15, 5)


@pytest.fixture
def refining(qtbot, opened):
    """An own mask made from nothing, with SmartPaint of 4 mm in hand and its images measured."""
    opened.show_page("Refine")
    opened.refine_page.from_nothing.click()
    qtbot.waitUntil(lambda: opened.measure.images is not None)
    opened.painting.set_tool(PaintTool.SMARTPAINT)
    for _ in range(4):
        opened.painting.step_radius(-1)
    assert opened.painting.state.brush.radius_mm == 4.0
    return opened


def test_steps_are_prepared_in_a_thread_before_the_first_stroke_can_be_drawn(opened, qtbot):
    asked, measure = [], opened.measure

    def prepare():
        asked.append((threading.current_thread(), measure.images))

    measure._services = measure._services.replacing(prepare_steps=prepare)
    opened.show_page("Refine")
    opened.refine_page.from_nothing.click()
    qtbot.waitUntil(lambda: measure.images is not None)
    ((thread, images),) = asked
    assert thread is not threading.main_thread()
    assert images is None


@pytest.fixture
def mouse(refining):
    return Mouse(refining)


@pytest.fixture
def gate(refining):
    """Holds the thread that settles strokes until it is opened."""
    held = threading.Event()

    def settle(work):
        assert held.wait(60)
        return settle_kept(work)

    queue = refining.editing.mask.strokes
    queue._services = queue._services.replacing(settle_stroke=settle)
    yield held
    held.set()


def settled(dock):
    return not dock.editing.mask.strokes.is_settling


def names(dock):
    live = dock.editing.live
    return [step.name for step in live.steps[: live.position]]


def test_a_stroke_changes_the_mask_when_its_result_comes_and_is_one_step(
    qtbot, refining, mouse, gate
):
    mouse.stroke(AT, OTHER)
    assert not mask_of(refining).any()
    assert refining.editing.is_dirty
    gate.set()
    qtbot.waitUntil(lambda: settled(refining))
    assert mask_of(refining)[AT] == 1
    assert names(refining) == ["paint 4 mm"]
    assert refining.editing.live.steps[0].changed_voxels == mask_of(refining).sum()


def test_the_stroke_in_the_thread_gives_the_bits_of_one_settled_here(qtbot, refining, mouse):
    mouse.stroke(AT, OTHER)
    qtbot.waitUntil(lambda: settled(refining))
    live = refining.editing.live
    in_thread = mask_of(refining).copy()
    stroke = live.steps[0].stroke
    refining.editing.mask.undo()
    live.press(stroke.path[0], stroke.brush)
    for place in stroke.path[1:]:
        live.drag(place)
    live.release()
    np.testing.assert_array_equal(mask_of(refining), in_thread)


def test_strokes_that_are_drawn_meanwhile_come_in_their_order(qtbot, refining, mouse, gate):
    mouse.stroke(AT)
    mouse.stroke(AT, OTHER, button=RIGHT)
    refining.painting.set_tool(PaintTool.SPHERE)
    mouse.stroke(THIRD)
    assert names(refining) == []
    gate.set()
    qtbot.waitUntil(lambda: settled(refining))
    assert names(refining) == ["paint 4 mm", "erase 4 mm", "paint 4 mm (sphere)"]
    assert mask_of(refining)[THIRD] == 1
    assert mask_of(refining)[AT] == 0


def test_a_stroke_still_in_hand_when_the_one_before_is_settled_goes_on(
    qtbot, refining, mouse, gate
):
    mouse.stroke(AT)
    mouse.press(THIRD)
    gate.set()
    qtbot.waitUntil(lambda: names(refining) == ["paint 4 mm"])
    mouse.drag((2, 15, 8))
    mouse.release((2, 15, 8))
    qtbot.waitUntil(lambda: settled(refining))
    path = refining.editing.live.steps[1].stroke.path
    assert path[0] == THIRD
    assert path[-1] == (2, 15, 8)


def test_an_undo_meanwhile_undoes_the_stroke_that_was_on_its_way(qtbot, refining, mouse, gate):
    mouse.stroke(AT)
    mouse.stroke(THIRD, button=RIGHT)
    threading.Timer(0.05, gate.set).start()
    refining.editing.mask.undo()
    assert settled(refining)
    live = refining.editing.live
    assert [step.name for step in live.steps] == ["paint 4 mm", "erase 4 mm"]
    assert live.position == 1
    assert mask_of(refining)[AT] == 1


@pytest.mark.parametrize("act", ["save", "accept", "close"])
def test_what_is_saved_meanwhile_has_every_stroke(qtbot, refining, mouse, gate, world, act):
    mouse.stroke(AT)
    mouse.stroke(OTHER)
    live = refining.editing.live
    threading.Timer(0.05, gate.set).start()
    if act == "save":
        refining.editing.save()
    elif act == "accept":
        refining.accepting.accept()
    else:
        assert refining.close_down()
    qtbot.waitUntil(lambda: ("Ana", "A_1") in world.refined or bool(world.refined))
    assert live.position == 2
    (saved,) = world.refined.values()
    np.testing.assert_array_equal(saved, live.labels)
    assert saved[AT] == saved[OTHER] == 1


def test_escape_during_a_stroke_drops_it(qtbot, refining, mouse):
    mouse.press(AT)
    mouse.drag(OTHER)
    refining.refine_flow.actions()["drop_stroke"]()
    mouse.drag(THIRD)
    mouse.release(THIRD)
    qtbot.wait(50)
    assert names(refining) == []
    assert not mask_of(refining).any()
    assert refining.marks.is_empty
    mouse.stroke(AT)
    qtbot.waitUntil(lambda: names(refining) == ["paint 4 mm"])


def test_escape_drops_the_stroke_in_hand_and_not_the_one_on_its_way(qtbot, refining, mouse, gate):
    mouse.stroke(AT)
    mouse.press(THIRD)
    refining.refine_flow.actions()["drop_stroke"]()
    mouse.release(THIRD)
    gate.set()
    qtbot.waitUntil(lambda: settled(refining))
    assert names(refining) == ["paint 4 mm"]
    assert mask_of(refining)[AT] == 1
    assert mask_of(refining)[THIRD] == 0


def test_a_stroke_that_fails_in_the_thread_is_said_and_the_next_one_counts(
    qtbot, refining, mouse, monkeypatch
):
    queue = refining.editing.mask.strokes
    services = queue._services

    def fail(_work):
        raise MemoryError

    queue._services = services.replacing(settle_stroke=fail)
    mouse.stroke(AT)
    qtbot.waitUntil(lambda: settled(refining))
    assert "not enough memory" in refining.header.message.text()
    assert names(refining) == []
    queue._services = services
    mouse.stroke(AT)
    qtbot.waitUntil(lambda: names(refining) == ["paint 4 mm"])


def test_the_next_case_meanwhile_loses_no_stroke(qtbot, refining, mouse, gate, world):
    mouse.stroke(AT)
    live = refining.editing.live
    threading.Timer(0.05, gate.set).start()
    refining.cases_flow.open_neighbour(1)
    qtbot.waitUntil(lambda: refining.session.case_id != "A_1")
    assert live.position == 1
    (saved,) = world.refined.values()
    np.testing.assert_array_equal(saved, live.labels)


def test_saving_by_itself_waits_for_the_stroke_in_hand(qtbot, refining, mouse):
    mouse.stroke(AT)
    qtbot.waitUntil(lambda: settled(refining))
    mouse.press(THIRD)
    refining.editing.saving.autosave.timeout.emit()
    mouse.drag((2, 15, 9))
    mouse.release((2, 15, 9))
    qtbot.waitUntil(lambda: len(names(refining)) == 2)
    assert refining.editing.live.steps[1].stroke.path[-1] == (2, 15, 9)


def test_saving_by_itself_does_not_wait_for_a_stroke_that_is_settled(
    qtbot, refining, mouse, gate, world
):
    """The window would stand still meanwhile."""
    mouse.stroke(AT)
    refining.editing.saving.autosave.timeout.emit()
    assert not settled(refining)
    assert not world.refined
    gate.set()
    qtbot.waitUntil(lambda: bool(world.refined))
    (saved,) = world.refined.values()
    assert saved[AT] == 1


# ------------------------------------------------------------------------ what is shown


def test_while_it_is_drawn_the_outline_of_what_it_would_make_is_shown(qtbot, refining, mouse):
    mouse.press(AT)
    mouse.drag(OTHER)
    qtbot.waitUntil(lambda: not refining.marks.is_empty)
    layer = refining.scene.layer(Role.MARKS)
    assert layer.contour == 1
    assert not mask_of(refining).any()
    mouse.release(OTHER)
    qtbot.waitUntil(lambda: settled(refining))
    assert layer.contour == 0


@pytest.mark.parametrize("ends_by", ["release", "drop"])
def test_with_marks_shown_the_outline_comes_too_and_the_marks_come_back(
    qtbot, refining, mouse, ends_by
):
    mouse.stroke(AT)
    qtbot.waitUntil(lambda: settled(refining) and len(names(refining)) == 1)
    refining.refine_flow.show_marks(True)
    shown = refining.marks._buffer.copy()
    layer = refining.scene.layer(Role.MARKS)
    assert shown.any()
    mouse.press(AT)
    mouse.drag(OTHER)
    qtbot.waitUntil(lambda: layer.contour == 1)
    if ends_by == "drop":
        refining.painting.drop_stroke()
        assert np.array_equal(refining.marks._buffer, shown)
    mouse.release(OTHER)
    qtbot.waitUntil(lambda: settled(refining))
    assert layer.contour == 0
    qtbot.waitUntil(lambda: refining.marks._buffer.any())


def test_one_preview_is_worked_out_at_a_time_and_the_last_is_of_the_newest_place(
    qtbot, refining, mouse
):
    running, most, paths = [], [], []

    def preview(work):
        running.append(work)
        most.append(len(running))
        paths.append(work.path)
        threading.Event().wait(0.02)
        running.pop()
        return Preview(work.box, work.labels > 0)

    queue = refining.editing.mask.strokes
    queue._services = queue._services.replacing(preview_stroke=preview)
    mouse.press(AT)
    for x in range(13, 20):
        mouse.drag((2, 9, x))
    qtbot.waitUntil(lambda: bool(paths) and paths[-1][-1] == (2, 9, 19))
    mouse.release((2, 9, 19))
    assert max(most) == 1
    assert len(paths) < 8


def test_what_changed_is_seen_for_a_moment_and_said(qtbot, refining, mouse):
    said = refining.refine_page.tools.stroke_note
    seen = []
    refining.painting.said.connect(
        lambda text, _: text and seen.append(not refining.marks.is_empty)
    )
    mouse.stroke(AT)
    qtbot.waitUntil(lambda: bool(said.text()))
    count = int(mask_of(refining).sum())
    # voxels of 3 x 2 x 1.5 mm are 9 mm3
    assert said.text().startswith(f"+{count} voxel")
    assert f", {count * 9 / 1000:.2f} ml." in said.text()
    assert seen == [True]
    qtbot.waitUntil(lambda: refining.marks.is_empty)
    mouse.stroke(AT, button=RIGHT)
    qtbot.waitUntil(lambda: said.text().startswith("−"))


def test_what_an_act_did_stands_until_the_next_act(qtbot, refining, mouse):
    said, mask = refining.refine_page.tools.stroke_note, refining.editing.mask
    mouse.stroke(AT)
    qtbot.waitUntil(lambda: said.text().startswith("+"))
    mask.undo()
    assert said.text() == "Undone: 1 paint 4 mm."
    assert refining.marks.is_empty  # what the stroke added no longer flashes
    mask.redo()
    assert said.text() == "Redone: 1 paint 4 mm."
    refining.painting.set_tool(PaintTool.SPHERE)
    mouse.stroke(THIRD)
    assert said.text() == ""
    for row, words in (  # a jump may take several turns of the event loop
        (0, "At row 0 of 2: the start."),
        (2, "At row 2 of 2: paint 4 mm (sphere)."),
        (1, "Undone: 2 paint 4 mm (sphere)."),
    ):
        mask.go_to(row)
        qtbot.waitUntil(lambda words=words: said.text() == words)


def test_undo_beneath_another_lesion_says_which_step_and_what_no_redo_brings_back(
    qtbot, refining, mouse
):
    said, mask = refining.refine_page.tools.stroke_note, refining.editing.mask
    message = refining.header.message
    refining.painting.set_tool(PaintTool.SPHERE)
    mouse.stroke(AT)
    refining.protocols.begin_lesion()
    mouse.stroke(THIRD)
    mouse.stroke((2, 16, 5))
    mask.undo()
    assert said.text() == "Undone: 3 paint 4 mm (sphere)."
    assert "no longer be redone" not in message.text()
    refining.protocols.choose_label(1)
    mask.undo()
    assert said.text() == "Undone: 1 paint 4 mm (sphere)."
    assert message.text().startswith("1 undone step of lesion 2 can no longer be redone")
    mask.redo()
    assert said.text() == "Redone: 1 paint 4 mm (sphere)."
    # a step of the same lesion ends its own undone ones, as everywhere, without a word
    mask.undo()
    refining.header.say("hint", "")
    mouse.stroke(AT)
    assert message.text() == ""


def test_two_strokes_in_vain_offer_the_whole_lesion(qtbot, refining, mouse):
    said = refining.refine_page.tools.stroke_note
    mouse.stroke(AT)
    qtbot.waitUntil(lambda: len(names(refining)) == 1)
    mouse.stroke(THIRD, button=RIGHT)
    qtbot.waitUntil(lambda: len(names(refining)) == 2)
    assert "hold Shift" not in said.text()
    mouse.stroke(THIRD, button=RIGHT)
    qtbot.waitUntil(lambda: len(names(refining)) == 3)
    assert "hold Shift and press" in said.text()


def test_marks_of_a_stroke_never_wipe_what_others_drew(refining):
    shown = StrokeMarks(refining.marks)
    refining.marks.draw(*_somewhere(), "added")
    shown.clear()
    shown.take_preview()
    assert not refining.marks.is_empty


def _somewhere():
    from napari_mamamia.core.box import Box

    return Box((2, 8, 10), (3, 9, 11)), np.ones((1, 1, 1), bool)
