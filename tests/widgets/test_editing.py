import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from napari.utils.notifications import notification_manager
from tests.widgets.conftest import blob_mask, make_case

from napari_mamamia.core.errors import SaveConflictError
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.dock.dock import MamamiaDock
from napari_mamamia.widgets.refine import editing as editing_module
from napari_mamamia.widgets.refine import mask_saving
from napari_mamamia.widgets.refine.mask_watch import SaveState


def click(dock, name):
    dock.findChild(object, name).click()


def paint(dock, voxel=(3, 2, 2)):
    """Paint one voxel (z, y, x) through the layer, as the brush does."""
    layer = dock.scene.layer(Role.REFINED)
    case = dock.session.case
    layer.brush_size = 1
    layer.paint(case.grid.display_frame().point_to_display(voxel, case.grid.shape), 1)


def saved(world):
    return [call for call in world.calls if call[0] == "save_refined"]


@pytest.fixture
def editing(qtbot, opened):
    """A copy of the reference, open for editing."""
    opened.show_page("Refine")
    click(opened, "refine_from_reference")
    qtbot.waitUntil(lambda: opened.editing.live is not None)
    return opened


def test_an_own_mask_is_a_copy_of_the_one_it_was_made_from(editing):
    reference = editing.session.mask(Role.REFERENCE)
    refined = editing.session.mask(Role.REFINED)
    np.testing.assert_array_equal(refined.buffer, reference.buffer)
    assert not np.shares_memory(refined.buffer, reference.buffer)
    assert (refined.name, refined.started_from) == ("Ana", "reference expert")


def test_an_own_mask_opens_though_its_case_lies_where_one_that_is_gone_lay(
    qtbot, opened, world, monkeypatch
):
    """Between them comes one that is left before it is read: the array of the first is free."""
    session = opened.session
    first, left = session.case, make_case("A_2", loaded=False)
    qtbot.waitUntil(lambda: not opened.jobs.is_running("edit"))
    third = make_case("B_1")
    world.refined["Ana", "B_1"] = blob_mask(third.grid)
    places = {id(third.signal): id(first.signal)}
    monkeypatch.setattr(
        editing_module, "id", lambda thing: places.get(id(thing), id(thing)), raising=False
    )
    for case in (left, third):
        session.set_case(case, replace(session.context, case_id=case.case_id), [])
    assert opened.jobs.is_running("edit")
    qtbot.waitUntil(lambda: opened.editing.live is not None)


def test_a_tool_chooses_the_own_mask_and_a_second_click_puts_it_down(editing, viewer):
    layer = editing.scene.layer(Role.REFINED)
    click(editing, "refine_tool_sphere")
    assert viewer.layers.selection.active is layer
    assert not viewer.scene.camera.mouse_pan
    click(editing, "refine_tool_sphere")
    assert viewer.scene.camera.mouse_pan


def test_a_copy_that_was_not_touched_is_not_saved_by_itself(qtbot, editing, world):
    assert editing.editing.state is SaveState.NEW
    editing.editing.save_if_needed(lambda _: None)
    assert saved(world) == []


def test_painting_makes_unsaved_changes_and_save_the_next_step(qtbot, editing):
    paint(editing)
    qtbot.waitUntil(lambda: editing.editing.state is SaveState.UNSAVED)
    assert editing.header.saved.text().startswith("unsaved")
    assert editing.refine_page.save.isEnabled()
    assert editing.accept_row.accept.property("primary")


def test_save_writes_the_mask_under_the_readers_name_with_its_history(qtbot, editing, world):
    paint(editing)
    click(editing, "refine_save")
    qtbot.waitUntil(lambda: editing.editing.state is SaveState.SAVED)
    # the reference has 2 x 4 x 6 = 48 voxels, one was painted
    assert saved(world) == [("save_refined", "Ana", "A_1", 49, "reference expert")]
    assert "0 s ago" in editing.header.saved.text()
    assert "workspace" in editing.header.saved.toolTip()
    assert editing.cases_page.model.index(0, 4).data() == "Ana"


def test_undo_of_the_session_back_to_the_saved_mask_is_no_change(qtbot, editing):
    paint(editing)
    click(editing, "refine_save")
    qtbot.waitUntil(lambda: editing.editing.state is SaveState.SAVED)
    paint(editing, (4, 3, 3))
    qtbot.waitUntil(lambda: editing.editing.state is SaveState.UNSAVED)
    click(editing, "refine_undo")
    assert editing.editing.state is SaveState.SAVED


def test_undo_of_a_saved_stroke_is_a_change(qtbot, editing):
    paint(editing)
    click(editing, "refine_save")
    qtbot.waitUntil(lambda: editing.editing.state is SaveState.SAVED)
    editing.scene.layer(Role.REFINED).undo()
    qtbot.waitUntil(lambda: editing.editing.state is SaveState.UNSAVED, timeout=3000)


@pytest.fixture
def save_soon(monkeypatch):
    """Return what lets a mask be saved by itself after some ms in place of 5 s."""
    return lambda ms: monkeypatch.setattr(mask_saving, "_AUTOSAVE_AFTER_MS", ms)


def test_changes_are_saved_by_themselves(qtbot, editing, save_soon, world):
    save_soon(50)
    paint(editing)
    qtbot.waitUntil(lambda: editing.editing.state is SaveState.SAVED, timeout=3000)
    assert len(saved(world)) == 1


def test_another_case_opens_only_after_the_mask_is_saved(qtbot, editing, world):
    paint(editing)
    editing.cases_flow.open_case("A_2")
    qtbot.waitUntil(lambda: editing.session.case_id == "A_2")
    names = [call[:2] for call in world.calls]
    assert names.index(("save_refined", "Ana")) < names.index(("open", "A_2"))
    assert editing.session.mask(Role.REFINED) is None
    assert editing.header.saved.text() == ""


def test_a_mask_that_cannot_be_saved_keeps_its_case_open(qtbot, editing, world, disk_full):
    world.save_error = disk_full
    paint(editing)
    editing.cases_flow.open_case("A_2")
    qtbot.waitUntil(lambda: editing.editing.state is SaveState.FAILED)
    qtbot.wait(50)
    assert editing.session.case_id == "A_1"
    assert editing.session.mask(Role.REFINED).buffer.sum() == 49
    assert "NOT saved" in editing.header.saved.text()
    assert "No space left" in editing.header.message.text()


def test_painting_on_does_not_hide_that_saving_failed(qtbot, editing, world, disk_full):
    world.save_error = disk_full
    paint(editing)
    click(editing, "refine_save")
    qtbot.waitUntil(lambda: editing.editing.state is SaveState.FAILED)
    paint(editing, (4, 4, 4))
    qtbot.wait(500)
    assert editing.editing.state is SaveState.FAILED
    editing.scene.layer(Role.REFINED).undo()
    editing.scene.layer(Role.REFINED).undo()
    qtbot.wait(500)
    assert editing.editing.state is SaveState.FAILED


def test_a_mask_that_cannot_be_saved_can_be_discarded(qtbot, editing, world, disk_full):
    world.save_error = disk_full
    paint(editing)
    assert not editing.refine_page.discard.isVisible()
    click(editing, "refine_save")
    qtbot.waitUntil(editing.refine_page.discard.isVisible)
    click(editing, "refine_discard")
    assert editing.session.mask(Role.REFINED) is None
    editing.cases_flow.open_case("A_2")
    qtbot.waitUntil(lambda: editing.session.case_id == "A_2")


def test_a_mask_that_conflicts_can_be_kept_under_another_name(qtbot, editing, world):
    world.save_error = SaveConflictError("A_1.nii.gz was changed by another window")
    paint(editing)
    click(editing, "refine_save")
    qtbot.waitUntil(lambda: editing.editing.state is SaveState.FAILED)
    click(editing, "header_reader")
    editing.header.reader_name.setText("Bo")
    click(editing, "header_reader_ok")
    qtbot.waitUntil(lambda: editing.session.reader == "Bo")
    qtbot.waitUntil(lambda: not editing.jobs.is_running("save"))
    world.save_error = None
    click(editing, "refine_save")
    qtbot.waitUntil(lambda: editing.editing.state is SaveState.SAVED)
    assert world.refined["Bo", "A_1"].sum() == 49


def test_a_failed_saving_is_notified_once_and_tried_again(
    qtbot, editing, save_soon, world, disk_full
):
    world.save_error = disk_full
    save_soon(30)
    before = len(notification_manager.records)
    paint(editing)
    qtbot.waitUntil(lambda: editing.editing.state is SaveState.FAILED)
    qtbot.wait(200)
    assert len(notification_manager.records) == before + 1
    world.save_error = None
    qtbot.waitUntil(lambda: editing.editing.state is SaveState.SAVED, timeout=3000)


def test_the_mask_is_there_again_when_the_case_is_opened_again(qtbot, editing, world):
    paint(editing)
    editing.cases_flow.open_case("A_2")
    qtbot.waitUntil(lambda: editing.session.case_id == "A_2")
    editing.cases_flow.open_case("A_1")
    qtbot.waitUntil(lambda: editing.session.case_id == "A_1")
    assert editing.session.mask(Role.REFINED).buffer.sum() == 49
    qtbot.waitUntil(lambda: editing.editing.state is SaveState.SAVED)
    assert editing.scene.layer(Role.REFINED).editable


@pytest.mark.parametrize("has_begun", [True, False])
def test_start_from_while_the_own_mask_is_still_opening_waits_for_it(
    qtbot, opened, world, monkeypatch, has_begun
):
    """The opening holds the journal: stopped for a second one, it stood in its own way."""
    gate, asked = threading.Event(), []
    if has_begun:
        world.refined["Bea", "A_1"] = np.zeros(opened.session.case.grid.shape, np.uint8)
    is_begun = world.is_begun

    def slowly(*who):
        asked.append(who[1])
        assert gate.wait(5)
        return is_begun(*who)

    monkeypatch.setattr(
        opened.editing, "_services", opened.editing._services.replacing(is_begun=slowly)
    )
    opened.show_page("Refine")
    opened.session.set_reader("Bea")
    qtbot.waitUntil(lambda: asked == ["Bea"])
    click(opened, "refine_from_reference")
    gate.set()
    qtbot.waitUntil(lambda: opened.editing.live is not None)
    reference = opened.session.mask(Role.REFERENCE)
    live = opened.editing.live
    qtbot.waitUntil(lambda: (live.labels == reference.buffer).all())
    assert [step.name for step in live.steps] == ["reference expert"] * has_begun
    assert asked == ["Bea"]


def test_closing_saves_at_once(editing, world):
    paint(editing)
    editing.close_down()
    assert len(saved(world)) == 1


def test_closing_while_a_saving_runs_keeps_what_was_painted_meanwhile(editing, world):
    paint(editing)
    click(editing, "refine_save")
    paint(editing, (4, 4, 4))
    editing.close_down()
    assert world.refined["Ana", "A_1"].sum() == 50
    assert editing.editing.state is SaveState.SAVED


def test_leaving_while_a_saving_runs_waits_for_what_was_painted_meanwhile(qtbot, editing, world):
    paint(editing)
    click(editing, "refine_save")
    paint(editing, (4, 4, 4))
    editing.cases_flow.open_case("A_2")
    qtbot.waitUntil(lambda: editing.session.case_id == "A_2")
    assert world.refined["Ana", "A_1"].sum() == 50


def test_saving_is_not_put_off_by_painting_on(qtbot, editing, save_soon, world):
    save_soon(150)
    for k in range(300):  # far longer than the saving takes, each paint sooner than it is due
        paint(editing, (4, 1 + k % 18, 1 + k // 18))
        qtbot.wait(30)
        if saved(world):
            break
    assert saved(world)


def test_starting_again_asks_first(qtbot, editing):
    paint(editing)
    click(editing, "refine_from_nothing")
    assert editing.session.mask(Role.REFINED).buffer.sum() == 49
    assert editing.refine_page.question.isVisible()
    click(editing, "refine_keep")
    assert not editing.refine_page.question.isVisible()
    click(editing, "refine_from_nothing")
    click(editing, "refine_replace")
    assert editing.session.mask(Role.REFINED).buffer.sum() == 0
    assert editing.editing.state is SaveState.UNSAVED


def test_the_reference_itself_is_never_painted(opened, viewer):
    layer = opened.scene.layer(Role.REFERENCE)
    viewer.layers.selection.active = layer
    layer.mode = "paint"
    assert layer.mode == "pan_zoom"


def test_deleting_the_layer_saves_what_was_painted(qtbot, editing, viewer, world):
    paint(editing)
    viewer.layers.remove(editing.scene.layer(Role.REFINED))
    qtbot.waitUntil(lambda: editing.session.mask(Role.REFINED) is None)
    assert saved(world)[0][3] == 49


def test_a_layer_deleted_while_saving_fails_comes_back(qtbot, editing, viewer, world, disk_full):
    world.save_error = disk_full
    paint(editing)
    viewer.layers.remove(editing.scene.layer(Role.REFINED))
    qtbot.waitUntil(lambda: editing.scene.layer(Role.REFINED) is not None)
    assert editing.session.mask(Role.REFINED).buffer.sum() == 49


def test_painting_goes_on_while_a_saving_runs_and_is_saved_after_it(
    qtbot, editing, save_soon, world
):
    save_soon(30)
    paint(editing)
    click(editing, "refine_save")
    paint(editing, (4, 4, 4))
    qtbot.waitUntil(lambda: editing.editing.state is SaveState.SAVED, timeout=3000)
    qtbot.waitUntil(lambda: world.refined["Ana", "A_1"].sum() == 50, timeout=3000)


@pytest.fixture
def nameless(qtbot, viewer, world):
    """The dock of a reader who was never asked, with A_1 open."""
    world.preferences = type(world.preferences)()
    dock = MamamiaDock(viewer, world.services())
    qtbot.addWidget(dock)
    dock.show()
    dock.open_data_set(Path("data"), "A_1")
    qtbot.waitUntil(lambda: dock.session.case is not None and dock.session.case.is_loaded)
    return dock


def test_the_reader_is_asked_once_in_a_line_and_remembered(qtbot, nameless, world):
    click(nameless, "refine_from_reference")
    assert nameless.header.reader_name.isVisible()
    assert nameless.session.mask(Role.REFINED) is None
    nameless.header.reader_name.setText("Bo Smith")
    click(nameless, "header_reader_ok")
    qtbot.waitUntil(lambda: nameless.session.mask(Role.REFINED) is not None)
    assert world.preferences.reader == "Bo Smith"
    assert nameless.header.reader.text() == "Bo Smith"
    assert not nameless.header.reader_name.isVisible()


def test_a_name_that_cannot_be_a_folder_is_refused_with_the_reason(nameless, world):
    click(nameless, "refine_from_reference")
    nameless.header.reader_name.setText("A/B")
    click(nameless, "header_reader_ok")
    assert "holds /" in nameless.header.message.text()
    assert nameless.session.reader is None
    assert nameless.header.reader_name.isVisible()


def test_another_reader_gets_an_own_mask(qtbot, editing, world):
    paint(editing)
    click(editing, "header_reader")
    editing.header.reader_name.setText("Bo")
    click(editing, "header_reader_ok")
    qtbot.waitUntil(lambda: editing.session.reader == "Bo")
    qtbot.waitUntil(lambda: not editing.jobs.is_running("masks"))
    assert world.refined["Ana", "A_1"].sum() == 49
    assert editing.session.mask(Role.REFINED) is None
    click(editing, "header_reader")
    editing.header.reader_name.setText("Ana")
    click(editing, "header_reader_ok")
    qtbot.waitUntil(lambda: editing.session.mask(Role.REFINED) is not None)
    assert editing.session.mask(Role.REFINED).buffer.sum() == 49


def test_a_case_without_a_workspace_says_where_its_mask_can_go(qtbot, opened):
    opened.session.context = None
    opened.show_page("Refine")
    click(opened, "refine_from_reference")
    qtbot.waitUntil(lambda: opened.editing.live is not None)
    paint(opened)
    opened.cases_flow.open_case("A_2")
    assert "Save Selected Layers" in opened.header.message.text()
    assert opened.session.case_id == "A_1"
