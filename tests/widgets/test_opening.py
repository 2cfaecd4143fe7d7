import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from napari.layers import Layer
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QAbstractButton, QApplication, QWidget

from napari_mamamia.core.errors import CaseError, FormatError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.files.sources import Deferred, Reading
from napari_mamamia.services.case.show_case import CaseMasks
from napari_mamamia.widgets.base.layers import (
    Role,
    array_of,
    case_layer,
    mask_layer,
    tag_for,
    tag_of,
)
from napari_mamamia.widgets.base.session import SessionMask
from napari_mamamia.widgets.dock.dock import MamamiaDock


def open_case(qtbot, dock, case_id):
    dock.cases_flow.open_case(case_id)
    qtbot.waitUntil(
        lambda: dock.session.case_id == case_id and dock.session.case.is_loaded, timeout=5000
    )


def test_with_nothing_open_the_pages_say_what_is_missing(dock):
    assert dock.header.case.text() == "no case open"
    for page in (dock.predict_page, dock.refine_page, dock.score_page, dock.export_page):
        assert "first" in page.missing.text()
    dock.show_page("Score")
    dock.score_page.to_cases.click()
    assert dock.page == "Cases"


def test_a_data_set_is_listed_and_remembered(qtbot, dock, world):
    dock.open_data_set(Path("data"))
    qtbot.waitUntil(lambda: dock.session.opened is not None)
    assert dock.cases_page.queue() == ["A_1", "A_2", "B_1"]
    assert "3 cases" in dock.cases_page.note.text()
    assert [path.name for path in world.preferences.recent] == ["data"]
    assert dock.session.case is None


def test_a_file_that_fixed_the_clinical_tables_columns_is_told_under_the_list(qtbot, dock, world):
    world.clinical_notes = ("columns as clinical_columns.json says: age: Age (y)",)
    dock.cases_flow.open_data_set(world.root)
    note = dock.cases_page.note
    qtbot.waitUntil(lambda: "columns as clinical_columns.json says: age" in note.text())


def test_an_opened_case_shows_its_phases_and_reference(opened, viewer):
    image = opened.scene.layer(Role.PHASE)
    assert np.shares_memory(image.data, opened.session.case.signal)
    assert np.shares_memory(
        opened.scene.layer(Role.REFERENCE).data, opened.session.mask(Role.REFERENCE).buffer
    )
    assert opened.header.case.text() == "A_1"
    assert opened.header.position.text() == "1 / 3"


def test_a_mask_that_needs_a_new_layer_comes_a_turn_later_and_the_header_follows(qtbot, dock):
    there = []
    dock.opening.case_shown.connect(lambda: there.append(dock.scene.layer(Role.REFERENCE)))
    dock.open_data_set(Path("data"), "A_1")
    qtbot.waitUntil(lambda: dock.scene.layer(Role.REFERENCE) is not None)
    assert there == [None]
    chip = dock.header.findChild(QWidget, "header_mask_reference")
    qtbot.waitUntil(lambda: chip.isVisibleTo(dock.header) and chip.isChecked())
    open_case(qtbot, dock, "A_2")
    assert there[1] is dock.scene.layer(Role.REFERENCE)


@pytest.fixture
def between_turns(qtbot, dock, world, case, new_mask):
    """Open A_1, act after the first of its late turns, and let all turns come."""
    world.predictions = {name: new_mask(case.grid) for name in ("A_1", "A_2")}

    def run(act):
        acted = []

        def act_once():
            dock.opening.case_shown.disconnect(act_once)
            assert dock.scene.layer(Role.REFERENCE) is None, "its turn is still to come"
            act()
            acted.append(True)

        dock.opening.case_shown.connect(act_once)
        dock.open_data_set(Path("data"), "A_1")
        qtbot.waitUntil(lambda: bool(acted))
        qtbot.waitUntil(lambda: not dock.jobs._newest)
        for _ in range(20):
            QApplication.processEvents()

    return run


def test_late_turns_of_a_case_write_nothing_on_the_next_one(qtbot, dock, viewer, between_turns):
    def go_on():
        open_case(qtbot, dock, "A_2")

    between_turns(go_on)
    assert {tag_of(layer).case_id for layer in viewer.layers if tag_of(layer)} == {"A_2"}
    for role in (Role.REFERENCE, Role.PREDICTION):
        assert np.shares_memory(array_of(dock.scene.layer(role)), dock.session.mask(role).buffer)
    assert dock.header.case.text() == "A_2"
    assert dock.header.findChild(QWidget, "header_mask_prediction").isChecked()


def test_late_turns_go_on_where_the_next_case_was_cancelled(dock, viewer, between_turns):
    def ask_and_cancel():
        dock.cases_flow.open_case("A_2")
        dock.header.cancel.click()

    between_turns(ask_and_cancel)
    assert {tag_of(layer).case_id for layer in viewer.layers if tag_of(layer)} == {"A_1"}
    for role in (Role.REFERENCE, Role.PREDICTION):
        assert np.shares_memory(array_of(dock.scene.layer(role)), dock.session.mask(role).buffer)
    assert dock.header.case.text() == "A_1"


@pytest.mark.parametrize("end", ["case left", "window closed", "layers deleted"])
def test_late_turns_write_nothing_after_the_end(dock, viewer, between_turns, end):
    act = {
        "case left": dock.session.close_case,
        "window closed": dock.close_down,
        "layers deleted": viewer.layers.clear,
    }[end]
    between_turns(act)
    assert dock.scene.layer(Role.REFERENCE) is None
    assert dock.scene.layer(Role.PREDICTION) is None


def test_a_case_opens_on_the_first_phase_after_contrast_and_the_slice_of_the_tumour(opened):
    assert opened.scene.phase == 1
    assert opened.viewer.dims.current_step[1] in (2, 3)


def test_a_case_without_a_mask_opens_on_its_middle_slice(qtbot, dock, world):
    world.has_reference = False
    dock.open_data_set(Path("data"), "A_1")
    qtbot.waitUntil(lambda: dock.session.case is not None)
    assert dock.viewer.dims.current_step[1] == 3


def test_a_case_opens_in_a_volume_in_space_with_the_pointer_on_the_canvas(qtbot, dock, viewer):
    viewer.mouse_over_canvas, viewer.dims.ndisplay = True, 3
    viewer.cursor._view_direction = (0.0, 1.0, 0.0, 0.0)
    viewer.cursor.position = (0.0, 0.0, 0.0, 0.0)
    dock.open_data_set(Path("data"), "A_1")
    qtbot.waitUntil(lambda: dock.session.case is not None and dock.session.case.is_loaded)
    assert "A_1 phases" in viewer.layers
    assert viewer.mouse_over_canvas
    assert viewer.dims.ndisplay == 3


def test_contrast_is_set_from_the_phase_on_screen(opened):
    low, high = opened.scene.layer(Role.PHASE).contrast_limits
    assert 0 <= low < 10
    assert 90 < high <= 397


def test_next_and_previous_go_through_the_table_as_sorted(qtbot, opened):
    opened.cases_page.table.sortByColumn(0, Qt.SortOrder.DescendingOrder)
    assert opened.header.position.text() == "3 / 3"
    opened.header.previous.click()
    qtbot.waitUntil(lambda: opened.session.case_id == "A_2")
    assert opened.header.position.text() == "2 / 3"


def test_past_the_last_case_nothing_opens_and_a_line_says_so(opened):
    opened.cases_flow.open_neighbour(-1)
    assert "first case" in opened.header.message.text()
    assert opened.session.case_id == "A_1"


def test_a_case_that_cannot_be_opened_leaves_the_one_on_screen(qtbot, opened, world):
    world.open_error = CaseError("phase 3 of case A_2 is missing: add A_2_0003.nii.gz")
    opened.cases_flow.open_case("A_2")
    qtbot.waitUntil(lambda: "phase 3" in opened.header.message.text())
    assert opened.session.case_id == "A_1"
    assert opened.scene.layer(Role.PHASE) is not None
    world.open_error = None
    open_case(qtbot, opened, "A_2")
    assert opened.header.message.text() == ""


def test_a_cancelled_opening_leaves_the_case_on_screen(qtbot, opened):
    opened.cases_flow.open_case("A_2")
    opened.header.cancel.click()
    qtbot.waitUntil(lambda: not opened.jobs.is_running("open"))
    assert opened.session.case_id == "A_1"
    assert opened.header.message.text() == "Opening A_2: stopped"


def test_a_mask_that_cannot_be_read_is_told_and_the_case_opens(qtbot, dock, world, monkeypatch):
    def damaged(case, files, workspace, reader):
        report_progress(0, 1)
        return CaseMasks((), ("the reference mask is not shown: A_1.nii.gz is cut short",))

    monkeypatch.setattr(world, "open_masks", damaged)
    fresh = MamamiaDock(dock.viewer, world.services())
    qtbot.addWidget(fresh)
    fresh.open_data_set(Path("data"), "A_1")
    qtbot.waitUntil(lambda: fresh.session.case is not None)
    assert "is cut short" in fresh.header.message.text()
    fresh.close_down()


def test_the_progress_line_is_there_only_while_something_runs(qtbot, dock):
    dock.open_data_set(Path("data"), "A_1")
    assert dock.header.state.currentIndex() == 1
    qtbot.waitUntil(lambda: dock.session.case is not None and dock.session.case.is_loaded)
    qtbot.waitUntil(lambda: dock.header.state.currentIndex() == 0)


def test_deleting_the_image_layer_closes_the_case(qtbot, opened, viewer):
    viewer.layers.remove(opened.scene.layer(Role.PHASE))
    qtbot.waitUntil(lambda: opened.session.case is None)
    assert opened.header.case.text() == "no case open"
    assert "Open a case first" in opened.predict_page.missing.text()


def test_all_layers_selected_and_deleted_go_in_one_act(qtbot, opened, viewer):
    tag = tag_for(opened.session.case, Role.SUBTRACTION, phase=1)
    opened.scene.overlays.show_subtraction(tag, opened.session.case.signal[1], (0.0, 1.0))
    viewer.layers.selection = set(viewer.layers)
    viewer.layers.remove_selected()
    assert len(viewer.layers) == 0
    qtbot.waitUntil(lambda: opened.session.case is None)


def test_deleting_a_mask_layer_takes_it_out_of_the_header_and_the_next_case_has_it_again(
    qtbot, opened, viewer
):
    viewer.layers.remove(opened.scene.layer(Role.REFERENCE))
    assert opened.session.mask(Role.REFERENCE) is None
    assert not opened.header.findChild(object, "header_mask_reference").isVisible()
    open_case(qtbot, opened, "A_2")
    assert opened.session.mask(Role.REFERENCE) is not None


def test_renamed_and_reordered_layers_still_follow_their_case(qtbot, opened, viewer):
    for place, layer in enumerate(viewer.layers):
        layer.name = f"mine {place}"
    viewer.layers.reverse()
    open_case(qtbot, opened, "B_1")
    assert {tag_of(layer).case_id for layer in viewer.layers} == {"B_1"}
    assert len(viewer.layers) == 2


def test_chips_in_the_header_show_and_hide_masks(opened):
    chip = opened.header.findChild(object, "header_mask_reference")
    assert chip.isChecked()
    chip.click()
    assert not opened.scene.layer(Role.REFERENCE).visible
    opened.scene.layer(Role.REFERENCE).visible = True
    assert chip.isChecked()


def test_the_lesion_button_goes_to_the_largest_part_of_the_mask(qtbot, opened):
    opened.viewer.dims.set_current_step(1, 0)
    opened.header.lesion.click()
    qtbot.waitUntil(lambda: opened.viewer.dims.current_step[1] in (2, 3))


def test_the_lesion_key_goes_on_to_the_lesions_that_the_mask_misses(qtbot, opened):
    mask = np.zeros_like(opened.session.mask(Role.REFERENCE).buffer)
    mask[5, 1:3, 1:3] = 1  # touches nothing of the reference, in slices 2 and 3
    tag = tag_for(opened.session.case, Role.PREDICTION)
    opened.scene.show_mask(tag, mask)
    opened.session.set_mask(SessionMask(Role.PREDICTION, "kinetic", mask))
    slices, messages = [], []
    for _ in range(3):
        opened.header.say("hint", "")
        opened.jumping.to_lesion_or_error()
        qtbot.waitUntil(lambda: not opened.jobs.is_running("lesion"))
        slices.append(opened.viewer.dims.current_step[1])
        messages.append("Missed" in opened.header.message.text())
    assert messages == [False, True, False]
    assert slices[0] == slices[2]
    assert slices[1] != slices[0]


def test_a_case_has_the_number_of_the_list_whatever_orders_the_queue(opened):
    before = opened.session.position
    assert before == "1 / 3"
    opened.session.set_queue(["B_1", "A_1"], is_list=False)
    assert opened.session.position == before
    assert opened.session.neighbour(-1) == "B_1"


def test_without_a_visible_mask_the_lesion_button_says_why(opened):
    opened.scene.stack.set_visible(Role.REFERENCE, False)
    opened.jumping.to_lesion()
    assert "No mask is shown" in opened.header.message.text()


def test_sample_data_are_adopted_as_the_open_case(qtbot, dock, viewer, case, new_mask):
    viewer.add_layer(Layer.create(*case_layer(case, (0, 400))))
    buffer = new_mask(case.grid)
    viewer.add_layer(Layer.create(*mask_layer(tag_for(case, Role.REFERENCE), buffer)))
    qtbot.waitUntil(lambda: dock.session.case_id == "A_1")
    assert np.shares_memory(dock.session.case.signal, case.signal)
    assert dock.session.mask(Role.REFERENCE) is not None
    assert not dock.scene.layer(Role.REFERENCE).editable
    assert dock.session.workspace is None


def test_sample_data_take_the_place_of_an_open_case(qtbot, opened, viewer, new_case):
    viewer.add_layer(Layer.create(*case_layer(new_case("SAMPLE"), (0, 400))))
    qtbot.waitUntil(lambda: opened.session.case_id == "SAMPLE")
    assert {tag_of(layer).case_id for layer in viewer.layers} == {"SAMPLE"}
    assert array_of(opened.scene.layer(Role.PHASE)).shape == (3, 6, 20, 24)


@pytest.mark.parametrize("page", ["Cases", "Predict", "Refine", "Score", "Export"])
def test_every_page_is_reached_by_its_tab(dock, page):
    dock.show_page(page)
    assert dock.page == page
    assert dock.pages.shown is getattr(dock, f"{page.lower()}_page")


def test_the_table_of_keys_comes_and_goes(dock):
    dock.show_page("Score")
    dock.pages.toggle_keys()
    assert dock.pages.shown is dock.keys_panel
    dock.pages.toggle_keys()
    assert dock.pages.shown is dock.score_page


def test_a_click_on_the_same_tab_leaves_the_table_of_keys(dock):
    dock.show_page("Score")
    dock.pages.toggle_keys()
    dock.pages.bar.findChild(QAbstractButton, "step_check").click()
    assert dock.pages.shown is dock.score_page


def test_a_click_on_a_tab_takes_a_hint_away_and_leaves_a_warning(dock):
    for level, kept in (("hint", ""), ("warning", "the disk is nearly full")):
        dock.header.say(level, "the disk is nearly full")
        dock.pages.clicked.emit()
        assert dock.header.message.text() == kept


def test_changing_the_workspace_opens_the_data_set_with_it(qtbot, opened, world, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    opened.cases_page.workspace_chosen.emit(elsewhere)
    qtbot.waitUntil(lambda: opened.session.opened.workspace.root == elsewhere)
    assert dict(world.preferences.workspaces)[Path("data").absolute()] == elsewhere


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_phase_shown_before_its_files_checksum_was_seen_is_called_not_yet_verified(
    qtbot, viewer, world, is_damaged
):
    """The header of a 4-D .nii.gz says so until the whole file was read; for ever if it cannot."""
    plain_open, plain_rest = world.open_case, world.load_remaining
    may_go_on = threading.Event()

    def open_one_file(files, record=None, first=1):
        case = plain_open(files, record, first)
        whole = (Path("A_1.nii.gz"),)
        phases = [replace(p, sources=whole, loaded=p.index == 0) for p in case.phases]
        return replace(case, phases=tuple(phases))

    def read_rest(case, files):
        while not may_go_on.wait(0.01):
            report_progress(0, 1, "Reading")
        if is_damaged:
            raise FormatError("A_1.nii.gz is damaged")
        return plain_rest(case, files)

    world.open_case, world.load_remaining = open_one_file, read_rest
    dock = MamamiaDock(viewer, world.services())
    qtbot.addWidget(dock)
    dock.open_data_set(Path("data"), "A_1")
    qtbot.waitUntil(lambda: dock.session.case is not None)
    assert dock.header.case.text() == "A_1 · not yet verified"
    may_go_on.set()
    if is_damaged:
        qtbot.waitUntil(lambda: "damaged" in dock.header.message.text())
        assert dock.header.case.text() == "A_1 · not yet verified"
    else:
        qtbot.waitUntil(lambda: dock.session.case.is_loaded)
        assert dock.header.case.text() == "A_1"


@pytest.mark.parametrize("problem", ["", "a file of A_1 is damaged"])
def test_the_row_of_a_dicom_study_is_complete_after_its_headers_were_read(
    qtbot, dock, world, monkeypatch, problem
):
    """The list is made of names; phases and problems come with the case."""
    whole = world.files("A_1")
    reading = Reading(lambda: replace(whole, problems=(problem,) if problem else ()))
    pending = replace(
        whole,
        source=world.root,
        **{name: Deferred(reading, name) for name in ("phases", "problems", "warnings")},
    )
    files_of = world.files
    monkeypatch.setattr(
        world, "files", lambda case_id: pending if case_id == "A_1" else files_of(case_id)
    )
    dock.open_data_set(Path("data"))
    qtbot.waitUntil(lambda: dock.session.opened is not None)
    model = dock.cases_page.model

    def cells():
        row = next(n for n, texts in enumerate(model._texts) if texts[0] == "A_1")
        return model._texts[row][1], model._texts[row][-1]

    assert cells() == ("–", "new")
    world.open_error = CaseError(problem) if problem else None
    reading.get()  # as the reader of the next case does
    dock.cases_flow.open_case("A_1")
    qtbot.waitUntil(lambda: cells() == (("3", "problem") if problem else ("3", "new")))
