"""Accepting a mask: the row below the Mask step, the line above Check, the key, and the state."""

from pathlib import Path

import numpy as np
import pytest
from qtpy.QtWidgets import QAbstractButton

from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.refine import accepting
from napari_mamamia.widgets.refine.mask_watch import SaveState


def press(dock, name):
    control = dock.findChild(QAbstractButton, name)
    assert control.isVisible(), name
    assert control.isEnabled(), name
    control.click()


def primary(dock):
    """Return the primary buttons that are seen."""
    return {
        control.objectName()
        for control in dock.pages.stack.findChildren(QAbstractButton)
        if control.property("primary") and control.isVisible()
    }


@pytest.fixture
def predicted(qtbot, opened):
    """The dock on Predict with a new prediction of A_1."""
    opened.show_page("Predict")
    opened.predict_flow.start(None)
    qtbot.waitUntil(lambda: opened.session.mask(Role.PREDICTION) is not None)
    qtbot.waitUntil(lambda: primary(opened) == {"refine_accept"})
    return opened


def accept_copy(qtbot, dock):
    press(dock, "refine_accept")
    qtbot.waitUntil(lambda: dock.session.case_id == "A_2")


def test_a_prediction_makes_accepting_it_the_one_primary_control(qtbot, opened):
    opened.show_page("Predict")
    assert primary(opened) == {"predict_start"}
    assert not opened.accept_row.accept.isEnabled()
    opened.predict_flow.start(None)
    qtbot.waitUntil(lambda: primary(opened) == {"refine_accept"})
    widths = {
        control.objectName(): control.width()
        for control in opened.pages.stack.currentWidget().findChildren(QAbstractButton)
        if control.isVisible() and not control.property("section")
    }
    assert max(widths, key=lambda name: widths[name]) == "refine_accept"


def test_using_a_prediction_saves_it_as_an_accepted_mask_and_opens_the_next_case(
    qtbot, predicted, world
):
    expected = predicted.session.mask(Role.PREDICTION).buffer.sum()
    accept_copy(qtbot, predicted)
    assert world.refined["Ana", "A_1"].sum() == expected
    assert world.accepted == {"A_1": "Ana"}
    assert predicted.session.rows["A_1"].status == "accepted"
    assert "A_1" in predicted.header.message.text()


def test_the_key_accepts_on_predict_as_on_refine(qtbot, predicted, world):
    predicted._list_actions()["accept"]()
    qtbot.waitUntil(lambda: predicted.session.case_id == "A_2")
    assert world.accepted == {"A_1": "Ana"}


@pytest.mark.parametrize("way", ["key", "button"])
def test_a_case_that_has_just_opened_is_not_accepted_unseen(
    qtbot, predicted, world, monkeypatch, way
):
    monkeypatch.setattr(accepting, "LOOK_MS", 500)
    press_again = {
        "key": predicted._list_actions()["accept"],
        "button": predicted.accept_row.accept.click,
    }[way]
    predicted.opening.case_shown.emit()
    press_again()
    assert "A_1" in predicted.header.message.text()
    qtbot.wait(200)
    press_again()
    assert predicted.editing.live is None
    assert predicted.session.mask(Role.REFINED) is None
    qtbot.wait(800)
    press_again()
    qtbot.waitUntil(lambda: world.accepted == {"A_1": "Ana"})


def test_a_case_must_be_displayed_before_it_is_accepted(qtbot, opened, monkeypatch):
    monkeypatch.setattr(accepting, "LOOK_MS", 200)
    shown = []
    opened.opening.case_shown.connect(lambda: shown.append(opened.session.case_id))
    opened.cases_flow.open_case("A_2")
    assert opened.session.is_coming
    opened.accepting.accept()
    assert opened.header.message.text().startswith("A case is opening")
    qtbot.waitUntil(lambda: shown == ["A_2"])
    opened.accepting.accept()
    assert "A_2" in opened.header.message.text()


def test_the_key_accepts_nothing_from_the_work_list(qtbot, predicted, world):
    predicted.show_page("Cases")
    predicted._list_actions()["accept"]()
    assert predicted.session.case_id == "A_1"
    assert predicted.editing.live is None


def test_a_copy_is_opened_for_editing_by_another_key(qtbot, predicted, world):
    predicted._list_actions()["edit_copy"]()
    qtbot.waitUntil(lambda: predicted.editing.live is not None)
    assert predicted.page == "Refine"
    assert predicted.editing.live.labels.sum() == 48
    assert world.accepted == {}
    assert predicted.session.case_id == "A_1"


def test_earlier_work_of_the_reader_is_not_replaced_by_accepting_a_prediction(qtbot, dock, world):
    world.refined["Ana", "A_1"] = np.ones((6, 20, 24), np.uint8)
    dock.open_data_set(Path("data"), "A_1")
    qtbot.waitUntil(lambda: dock.editing.live is not None)
    dock.show_page("Predict")
    dock.predict_flow.start(None)
    qtbot.waitUntil(lambda: dock.session.mask(Role.PREDICTION) is not None)
    qtbot.waitUntil(lambda: dock.accept_row.accept.isEnabled())
    before = int(dock.editing.live.labels.sum())
    press(dock, "refine_accept")
    assert dock.page == "Refine"
    assert dock.refine_page.replace.isVisible()
    assert dock.editing.live.labels.sum() == before
    assert world.accepted == {}


def test_an_edit_after_accepting_must_be_accepted_again(qtbot, predicted, world):
    accept_copy(qtbot, predicted)
    predicted.cases_flow.open_case("A_1")
    qtbot.waitUntil(lambda: predicted.editing.live is not None)
    mask = predicted.editing.open
    mask.saved = type(mask.saved)(mask.saved.path, mask.saved.sha256, is_accepted=True)
    predicted.editing.state_changed.emit()
    assert predicted.accepting.is_accepted
    assert "accepted" in predicted.editing.saving.short_text
    box = (slice(0, 1), slice(0, 2), slice(0, 2))
    predicted.editing.live.labels[box] = 1
    predicted.editing.saving.look()
    assert not predicted.accepting.is_accepted
    predicted.editing.save()
    qtbot.waitUntil(lambda: predicted.editing.state is SaveState.SAVED)
    assert not predicted.accepting.is_accepted
    assert world.accepted == {}


def test_accepting_while_an_earlier_save_runs_is_not_forgotten(qtbot, predicted, world):
    press(predicted, "refine_edit_copy")
    qtbot.waitUntil(lambda: predicted.editing.live is not None)
    predicted.editing.save()
    assert predicted.jobs.is_running("save")
    predicted.accepting.accept()
    qtbot.waitUntil(lambda: predicted.session.case_id == "A_2")
    assert world.accepted == {"A_1": "Ana"}


def test_check_begins_with_whether_the_mask_is_accepted(qtbot, predicted):
    predicted.show_page("Score")
    line, panel = predicted.accepted_line, predicted.pages.stack.currentWidget()
    assert line.isVisible()
    assert line.accept.isVisible()
    assert line.state.property("level") == "warning"
    tops = {head.mapTo(panel, head.rect().topLeft()).y() for head in panel._heads.values()}
    assert line.mapTo(panel, line.rect().topLeft()).y() < min(tops)
    assert "step_next_case" not in primary(predicted)
    press(predicted, "accepted_accept")
    qtbot.waitUntil(lambda: predicted.session.case_id == "A_2")


def test_check_of_a_case_without_a_mask_leads_to_predict(qtbot, opened):
    opened.show_page("Score")
    press(opened, "accepted_accept")
    assert opened.page == "Predict"


def test_leaving_a_prediction_that_is_not_accepted_is_reported(qtbot, predicted):
    predicted.show_page("Score")
    assert not predicted.pages._next_buttons[-1].isVisible()
    predicted.header.next_wanted.emit()
    qtbot.waitUntil(lambda: predicted.session.case_id == "A_2")
    assert "A_1" in predicted.header.message.text()


def test_looking_through_cases_with_predictions_reports_nothing(qtbot, opened, world):
    world.predictions["A_2"] = np.zeros((6, 20, 24), np.uint8)
    opened.cases_flow.open_case("A_2")
    qtbot.waitUntil(lambda: opened.session.case_id == "A_2")
    opened.show_page("View")
    opened.cases_flow.open_case("B_1")
    qtbot.waitUntil(lambda: opened.session.case_id == "B_1")
    assert "A_2" not in opened.header.message.text()


def test_the_last_case_of_the_list_stays_open_and_is_reported_as_accepted(qtbot, predicted, world):
    predicted.session.set_queue(["A_1"])
    press(predicted, "refine_accept")
    qtbot.waitUntil(lambda: world.accepted == {"A_1": "Ana"})
    qtbot.waitUntil(lambda: predicted.accepting.is_accepted)
    assert "A_1" in predicted.header.message.text()
    assert "refine_accept" not in primary(predicted)
    assert "step_next_check" in primary(predicted)


def test_export_does_not_check_a_prediction_by_itself(qtbot, predicted):
    predicted.show_page("Export")
    page = predicted.export_page
    assert page.sets.count() == 1
    assert page.chosen() == ()
    assert not page.start.isEnabled()


def test_export_checks_the_masks_of_a_reader_and_says_how_many_are_accepted(
    qtbot, predicted, world
):
    accept_copy(qtbot, predicted)
    predicted.show_page("Export")
    (chosen,) = predicted.export_page.chosen()
    assert (chosen.n_cases, chosen.n_accepted, chosen.is_prediction) == (1, 1, False)


def test_the_buttons_below_refine_stay_when_its_folds_are_opened(qtbot, predicted):
    press(predicted, "refine_edit_copy")
    qtbot.waitUntil(lambda: predicted.editing.live is not None)
    row = predicted.accept_row
    before = row.mapTo(predicted, row.rect().topLeft())
    predicted.refine_page.ask_replacing(Role.PREDICTION)
    if predicted.refine_page.more.is_folded:
        press(predicted, "refine_more_fold")
    qtbot.waitUntil(lambda: predicted.refine_page.start_title.isVisible())
    assert row.mapTo(predicted, row.rect().topLeft()) == before


def test_nothing_leads_on_from_mask_while_a_prediction_runs(opened):
    opened.show_page("Predict")
    opened.predict_page.set_running(True)
    opened.pages.set_accepted(is_accepted=False, has_mask=False)
    assert "step_next_check" not in primary(opened)
    opened.pages.set_accepted(is_accepted=True, has_mask=True)
    assert "step_next_check" in primary(opened)


def test_a_newer_prediction_of_the_last_case_does_not_replace_the_own_mask_of_the_next(
    qtbot, opened, world
):
    own = np.zeros((6, 20, 24), np.uint8)
    own[0, :3, :3] = 1
    world.refined["Ana", "A_2"] = own
    world.predictions["A_2"] = np.ones((6, 20, 24), np.uint8)
    opened.show_page("Refine")
    press(opened, "refine_from_reference")
    qtbot.waitUntil(lambda: opened.editing.live is not None)
    opened.show_page("Predict")
    opened.predict_flow.start(None)
    qtbot.waitUntil(lambda: opened.session.mask(Role.PREDICTION) is not None)
    qtbot.waitUntil(lambda: opened.accept_row.accept.text() == "Use this mask")
    opened.cases_flow.open_case("A_2")
    qtbot.waitUntil(lambda: opened.session.case_id == "A_2")
    qtbot.waitUntil(lambda: opened.editing.live is not None)
    assert opened.accept_row.accept.text() == "Accept and next"
    press(opened, "refine_accept")
    qtbot.waitUntil(lambda: opened.session.case_id == "B_1")
    np.testing.assert_array_equal(world.refined["Ana", "A_2"], own)
    assert world.accepted == {"A_2": "Ana"}


def test_editing_a_copy_of_a_newer_prediction_replaces_an_own_mask_without_strokes(qtbot, opened):
    opened.show_page("Refine")
    press(opened, "refine_from_reference")
    qtbot.waitUntil(lambda: opened.editing.live is not None)
    opened.show_page("Predict")
    opened.predict_flow.start(None)
    qtbot.waitUntil(lambda: opened.session.mask(Role.PREDICTION) is not None)
    press(opened, "refine_edit_copy")
    assert opened.page == "Refine"
    qtbot.waitUntil(lambda: opened.accept_row.accept.text() == "Accept and next")
    assert opened.accept_row.edit.isHidden()
    prediction = opened.session.mask(Role.PREDICTION).buffer
    np.testing.assert_array_equal(opened.editing.live.labels > 0, prediction > 0)


def test_while_the_name_is_asked_accepting_waits_and_ok_is_the_primary_control(predicted):
    predicted.session.set_reader(None)
    press(predicted, "refine_accept")
    row, ok = predicted.accept_row, predicted.findChild(QAbstractButton, "header_reader_ok")
    assert ok.isVisible()
    assert ok.property("primary")
    assert primary(predicted) == set()
    assert not row.accept.isEnabled()
    assert not row.edit.isEnabled()
    predicted.header.reader_cancelled.emit()
    assert primary(predicted) == {"refine_accept"}
    assert row.accept.isEnabled()


def test_in_a_study_only_a_drawn_mask_makes_accepting_primary(opened):
    opened.session.study = "STUDY"
    opened.show_page("Refine")
    opened.accepting.show()
    assert opened.accept_row.accept.isEnabled()
    assert primary(opened) == {"refine_from_reference"}
