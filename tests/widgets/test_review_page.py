"""Page Review on a viewer without a window: who sits down, what is refused, what is missing."""

import hashlib
import json
import math
import re
import threading
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import typer
from qtpy.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QCheckBox,
    QComboBox,
    QLabel,
    QLineEdit,
    QPushButton,
    QWidget,
)
from tests.review_study import made
from typer.testing import CliRunner

from napari_mamamia.cli.app import app
from napari_mamamia.core.answers import Answer, CaseFacts, LesionFacts, Place
from napari_mamamia.core.blinding import ALL_HIDDEN, NOT_BLIND, STUDY_HIDDEN, Hidden
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.form import Condition, Field, FieldKind, FieldScope, Form, Measure, Term
from napari_mamamia.features.review.core.review import (
    ConsensusRule,
    Meaning,
    ReadingMode,
    StudyPlan,
    Task,
    Triggers,
)
from napari_mamamia.features.review.io import keys
from napari_mamamia.features.review.io.store import FolderStore
from napari_mamamia.features.review.io.study_file import Draft, read_study
from napari_mamamia.features.review.rules.signatures import short_key
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.services import plan_study
from napari_mamamia.features.review.services.client import (
    DisputeRow,
    StudyClient,
    StudySnapshot,
    leave_out_unseen,
    open_client,
)
from napari_mamamia.features.review.services.judging import (
    Dispute,
    LesionRow,
    LesionTable,
    PairedAnswer,
)
from napari_mamamia.features.review.services.plan_study import StudyPeople
from napari_mamamia.features.review.services.session import ReviewSession
from napari_mamamia.features.review.services.signing import (
    Signable,
    SigningStatus,
    load_signing_status,
)
from napari_mamamia.features.review.widgets import flow
from napari_mamamia.features.review.widgets.judging_view import JudgingView
from napari_mamamia.features.review.widgets.page import ExtraSnapshot, ReviewPage, describe_waiting
from napari_mamamia.features.review.widgets.reading_view import ReadingView
from napari_mamamia.features.review.widgets.signing_view import SigningView
from napari_mamamia.features.review.widgets.study_case import ActiveClock
from napari_mamamia.services.case.refine import SavedMask
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.controls.line_list import make_line_list
from napari_mamamia.widgets.findings.form_view import FormView

TERMS = (Term("yes", "yes"), Term("no", "no"))
FORM = Form(
    "f",
    "1",
    (
        Field("lesion", "Lesion", FieldKind.SINGLE, terms=TERMS, required=True),
        Field(
            "margin",
            "Margin",
            FieldKind.MULTIPLE,
            terms=(Term("a", "smooth"), Term("b", "spiculated")),
            asked_if=(Condition("lesion", ("yes",)),),
            required=True,
        ),
        Field("size", "Size", FieldKind.NUMBER, unit="mm", low=0, high=200),
        Field("note", "Remark", FieldKind.TEXT, FieldScope.LESION),
    ),
)


@pytest.fixture
def folder(tmp_path):
    """A blind study of the cases that the fake services open."""
    return made(tmp_path, cases=("A_1", "A_2", "B_1"), blinding=ALL_HIDDEN)


@pytest.fixture
def at_work(qtbot, dock, world, folder, monkeypatch):
    """Return a function that sits somebody down; masks are saved as files."""

    def save(editing, array, _accepted):
        path = editing.workspace.refined(editing.reader, editing.case.case_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(array.tobytes())
        editing.saved = SavedMask(path, hashlib.sha256(path.read_bytes()).hexdigest())
        return editing.saved

    monkeypatch.setattr(world, "_save", save)
    world.has_reference = False  # the fakes know nothing of blinding

    def begin(who="Ana", at=folder):
        dock.flow("Review").open_study(at, who)
        qtbot.waitUntil(lambda: dock.flow("Review").client is not None)
        return dock

    yield begin
    dock.flow("Review").close()


def take(qtbot, dock):
    dock.flow("Review").page.reading.next.click()
    qtbot.waitUntil(lambda: dock.session.case is not None and dock.session.case.is_loaded)
    return dock.flow("Review").reading.taken


def test_a_name_that_is_remembered_is_proposed_and_not_taken(qtbot, dock, world, folder):
    """Who was here last need not be who is here now: a click says so."""
    dock.flow("Review").open_study(folder)
    page, before = dock.flow("Review").page, world.preferences
    qtbot.waitUntil(lambda: page.who.count() > 0)
    assert (page.who.currentText(), dock.flow("Review").client) == ("Ana", None)
    page.begin.click()
    qtbot.waitUntil(lambda: dock.flow("Review").client is not None)
    assert world.preferences == before
    assert dock.session.reader == "ana"
    assert dock.session.blinding == ALL_HIDDEN
    dock.flow("Review").close()


def test_beginning_is_offered_only_with_a_name(qtbot, dock, world, folder):
    world.preferences = replace(world.preferences, reader="Somebody else")
    dock.flow("Review").open_study(folder)
    page = dock.flow("Review").page
    qtbot.waitUntil(lambda: page.who.count() > 0)

    def marked():
        return [one.objectName() for one in (page.open, page.who, page.begin) if is_primary(one)]

    assert (marked(), page.begin.isEnabled()) == (["review_who"], False)
    page.who.setCurrentText("Ana")
    assert (marked(), page.begin.isEnabled()) == (["review_begin"], True)
    page.show_entry()
    assert marked() == ["review_open"]


def test_submitting_is_the_next_step_only_with_a_mask(qtbot, at_work):
    dock = at_work()
    view = dock.flow("Review").page.reading
    dock.show_page("Review")
    to_mask = dock.findChild(QPushButton, "step_next_mask")
    take(qtbot, dock)
    qtbot.waitUntil(lambda: is_primary(to_mask))
    assert not is_primary(view.accept)
    dock.editing.start(None)
    qtbot.waitUntil(lambda: dock.editing.live is not None)
    assert not is_primary(view.accept)
    draw(qtbot, dock, (slice(0, 1), slice(0, 1), slice(0, 1)))
    qtbot.waitUntil(lambda: is_primary(view.accept))
    qtbot.waitUntil(lambda: not is_primary(to_mask))


def is_primary(control):
    return bool(control.property("primary"))


def test_the_checksum_of_the_study_is_shown_to_be_copied_whole(qtbot, at_work, folder):
    line = at_work().flow("Review").page.origin
    digits = hashlib.sha256((folder / "study.json").read_bytes()).hexdigest()
    assert line.text() == digits
    assert digits in line.toolTip()
    line.setFocus()
    line.selectAll()
    assert line.selectedText() == digits
    qtbot.keyClicks(line, "x")
    assert line.text() == digits


def test_a_name_of_somebody_else_is_not_taken_for_one_of_the_study(qtbot, dock, world, folder):
    world.preferences = replace(world.preferences, reader="Zoe")
    dock.flow("Review").open_study(folder)
    page = dock.flow("Review").page
    qtbot.waitUntil(lambda: page.who.count() == 4)
    assert page.who.currentText() == ""
    assert dock.flow("Review").client is None
    page.begin.click()
    assert dock.flow("Review").client is None


def test_a_blind_study_is_refused_where_cases_were_open(qtbot, opened, folder):
    before = opened.session.case
    opened.flow("Review").open_study(folder, "Ana")
    qtbot.waitUntil(lambda: "in a new window" in opened.header.message.text())
    assert opened.flow("Review").client is None
    assert opened.session.blinding == NOT_BLIND
    assert opened.session.case is before
    assert opened.session.study == ""


def test_a_folder_that_is_no_study_is_refused_in_words(qtbot, dock, tmp_path):
    dock.flow("Review").open_study(tmp_path / "nothing")
    qtbot.waitUntil(lambda: "expected a review study" in dock.header.message.text())


def test_the_cases_of_a_study_are_not_opened_elsewhere(qtbot, at_work):
    dock = at_work()
    take(qtbot, dock)
    case = dock.session.case
    dock.cases_flow.open_neighbour(1)
    assert "opened on the Review page" in dock.header.message.text()
    dock.header.reader_given.emit("Ben")
    assert (dock.session.reader, dock.header.reader.text()) == ("ana", "Ana")
    assert dock.header.reader.toolTip() == "reader: Ana; the name is fixed while the study is open."
    dock.blind.end()
    assert dock.session.blinding == ALL_HIDDEN
    assert dock.session.case is case


def test_what_is_missing_is_listed_before_anything_is_handed_in(qtbot, at_work):
    dock = at_work()
    taken = take(qtbot, dock)
    dock.flow("Review").page.form.set_form(FORM)
    dock.show_page("Refine")
    dock.flow("Review").accept()
    view = dock.flow("Review").page.reading
    assert view.missing.text() == "Missing: Lesion, a mask"
    assert view.empty.isHidden()
    assert dock.page == "Review"
    assert dock.focusWidget().objectName() == "review_answer_lesion"
    assert dock.flow("Review").reading.taken is taken


def test_what_the_form_of_a_study_lacks_is_listed_above_accept_on_the_page_of_the_mask(
    qtbot, at_work
):
    dock = at_work()
    dock.show_page("Refine")
    listed = dock.refine_page.gaps
    taken = take(qtbot, dock)
    assert listed.texts == ()  # this study asks nothing
    dock.flow("Review").page.form.set_form(FORM)
    assert listed.texts == ("Missing: Lesion",)
    below = dock.flow("Review").page.reading.gaps
    assert below.texts == ("Lesion",)
    listed.gap_wanted.emit(dock.flow("Review").reading.list_gaps()[0])
    assert dock.page == "Review"
    assert dock.focusWidget().objectName() == "review_answer_lesion"
    choose(dock.flow("Review").page.form, "review_answer_lesion", 2)
    assert listed.texts == below.texts == ()
    choose(dock.flow("Review").page.form, "review_answer_lesion", 1)
    assert listed.texts == ("Missing: Margin",)
    dock.flow("Review").page.reading.put_back.click()
    qtbot.waitUntil(lambda: dock.flow("Review").reading.taken is not taken)
    assert listed.texts == below.texts == ()


def test_a_contradiction_is_listed_below_the_form_of_a_study_before_it_is_accepted(qtbot, at_work):
    dock = at_work()
    take(qtbot, dock)
    form = dock.flow("Review").page.form
    form.set_form(replace(FORM, fields=(*FORM.fields[:1], FORM.fields[2])))
    choose(form, "review_answer_lesion", 1)
    form.give(Answer("size", ("900",)))
    listed = dock.flow("Review").page.reading.gaps
    assert listed.texts == ("⚠ Size: 900 lies outside 0 to 200 mm",)
    listed.gap_wanted.emit(dock.flow("Review").reading.list_gaps()[0])
    assert dock.focusWidget().objectName() == "review_answer_size"


def test_a_case_without_a_lesion_is_handed_in_without_a_mask_once_that_is_said(qtbot, at_work):
    dock = at_work()
    first = take(qtbot, dock)
    view = dock.flow("Review").page.reading
    view.accept.click()
    assert view.missing.text() == "Missing: a mask"
    view.empty.click()
    qtbot.waitUntil(lambda: dock.session.case_id not in ("", first.case_id))
    state = dock.flow("Review").client.session.refresh()
    reading = next(one for one in state.case(first.task.case).readings if one.reader == "ana")
    assert (reading.state, reading.mask) == (CaseState.READ, "")


def test_a_mask_goes_into_the_store_and_the_next_case_comes(qtbot, at_work, folder):
    dock = at_work()
    first = take(qtbot, dock)
    dock.editing.start(None)
    qtbot.waitUntil(lambda: dock.editing.live is not None)
    dock.flow("Review").reading.clock.seconds = 42
    dock.flow("Review").accept()
    qtbot.waitUntil(lambda: dock.session.case_id not in ("", first.case_id))
    store = FolderStore(folder, folder.parent / "other")
    assert len(store.read().masks) == 1
    (event,) = [
        one for chain in store.read().chains.values() for one in chain if one.body["act"] == "read"
    ]
    assert event.body["active_s"] in range(42, 60)
    assert event.body["case"] == first.task.case
    assert Role.REFERENCE not in dock.session.masks


def test_an_earlier_case_is_looked_at_and_reopened_with_a_reason(qtbot, at_work):
    dock = at_work()
    first = take(qtbot, dock)
    view = dock.flow("Review").page.reading
    view.accept.click()
    view.empty.click()
    qtbot.waitUntil(lambda: dock.session.case_id not in ("", first.case_id))
    qtbot.waitUntil(lambda: "read" in view.earlier.item(0).text())
    view.earlier.setCurrentRow(0)
    view.look.click()
    qtbot.waitUntil(lambda: dock.session.case_id == first.case_id)
    dock.flow("Review").accept()
    assert "a reason for reading the case again" in view.missing.text()
    view.reopen.click()
    assert "Give a reason" in view.advice.text()
    view.reason.setText("missed a satellite")
    view.reopen.click()
    qtbot.waitUntil(lambda: dock.flow("Review").reading.taken.state is CaseState.IN_WORK)


def test_a_case_that_is_put_back_leaves_the_screen(qtbot, at_work):
    dock = at_work()
    first = take(qtbot, dock)
    dock.flow("Review").page.reading.put_back.click()
    qtbot.waitUntil(lambda: dock.flow("Review").reading.taken is None)
    assert dock.session.case is None
    assert [layer.name for layer in dock.viewer.layers] == []
    assert (
        f"{first.case_id} was returned to the queue"
        in dock.flow("Review").page.reading.advice.text()
    )


def test_what_another_computer_of_the_reader_holds_is_told(qtbot, at_work, folder, tmp_path):
    other = StudyClient(folder, "Ana", tmp_path / "elsewhere")
    other.store._host = "elsewhere"
    for task, _reading in other.session.queue():
        other.take(task)
    dock = at_work()
    view = dock.flow("Review").page.reading
    view.next.click()
    qtbot.waitUntil(lambda: "is reserved by you, on another computer" in view.advice.text())
    assert dock.session.case is None


def test_numbers_that_a_reader_is_not_shown_are_filled_in_as_the_reading_is_handed_in(
    qtbot, at_work, folder, tmp_path
):
    """2 x 2 x 2 voxels; what another computer of the reader shows of it has no number either."""
    measures = (("vol", Measure.VOLUME_MM3), ("long", Measure.LONGEST_IN_PLANE_MM))
    fields = [
        Field(name, name, FieldKind.NUMBER, FieldScope.LESION, unit="mm", measure=measure)
        for name, measure in measures
    ]
    dock = at_work()
    first = take(qtbot, dock)
    client, view = dock.flow("Review").client, dock.flow("Review").page.form
    client.form = replace(FORM, fields=(*FORM.fields, *fields))
    view.set_form(client.form)
    choose(view, "review_answer_lesion", 2)
    draw(qtbot, dock, np.s_[1:3, 2:4, 2:4])
    qtbot.waitUntil(lambda: view.findChild(QLineEdit, "review_answer_vol_1") is not None)
    view.give(Answer("long", ("7",), Place(FieldScope.LESION, "1")))
    assert view.findChild(QLineEdit, "review_answer_vol_1").text() == ""
    grid = dock.session.case.grid
    dock.flow("Review").accept()
    qtbot.waitUntil(lambda: dock.session.case_id not in ("", first.case_id))
    reading = next(
        one
        for one in client.session.refresh().case(first.task.case).readings
        if one.reader == "ana"
    )
    record = json.loads(reading.answers)
    assert float(record["vol@1"]["number"]) == pytest.approx(8 * grid.voxel_volume_mm3)
    assert record["long@1"]["number"] == "7"
    assert record["@computed"] == ["vol@1"]
    other = StudyClient(folder, "Ana", tmp_path / "elsewhere")
    shown = other.take(first.task).draft.answers
    assert shown["lesion"] == "no"
    assert shown["long@1"]["number"] == "7"
    assert "vol@1" not in shown
    other.close()


def test_a_tab_whose_text_grew_while_another_page_was_shown_is_not_cut(qtbot):
    page = ReviewPage()
    qtbot.addWidget(page)
    page.tabs.setStyleSheet("QTabBar::tab { padding: 4px; }")  # as napari has some
    look = StudySnapshot("T", "Ana", (), NOT_BLIND, 3, 1, 1, ())
    page.show_look(look, ExtraSnapshot(SigningStatus("", counts=False, things=())))
    page.show()
    before = page.tabs.tabRect(2).width()
    page.hide()
    thing = Signable("c0001", "A_1", Meaning.AUTHOR, "A_1 · your reading")
    page.show_look(look, ExtraSnapshot(SigningStatus("", counts=False, things=(thing,))))
    page.show()
    assert page.tabs.tabText(2) == "Sign (1)"
    grown = page.fontMetrics().horizontalAdvance(" (1)")
    assert page.tabs.tabRect(2).width() >= before + grown // 2


@pytest.mark.parametrize(
    ("n_tasks", "n_read", "n_ready", "says"),
    [
        (3, 1, 1, ""),
        (3, 3, 0, "All 3 read and submitted. Next: sign them"),
        (
            3,
            1,
            0,
            "2 of your cases cannot be read at the moment, because they are waiting for the first",
        ),
        (3, 2, 0, "1 of your cases cannot be read at the moment"),
        (0, 0, 0, "No case of this study is assigned to you"),
    ],
)
def test_next_case_is_bright_only_while_there_is_one_and_else_what_to_do_is_said(
    qtbot, n_tasks, n_read, n_ready, says
):
    view = ReadingView(FormView())
    qtbot.addWidget(view)
    look = StudySnapshot("T", "Ana", (), NOT_BLIND, n_tasks, n_read, n_ready, ())
    for showing in (lambda: view.show_look(look), lambda: view.show_task(None, note="put back")):
        showing()
        assert view.next.isEnabled() is bool(n_ready)
        assert view.next.property("primary") is bool(n_ready)
        assert view.advice.text().startswith(says)
    view.show_task(None, is_busy=True)
    view.show_look(look)
    assert not view.next.isEnabled()


def test_of_a_study_that_was_never_seen_no_number_is_said_until_it_is(qtbot):
    view = ReadingView(FormView())
    qtbot.addWidget(view)
    seen = StudySnapshot("T", "Ana", (), NOT_BLIND, 3, 1, 2, ())
    view.show_look(leave_out_unseen(seen))
    assert view.left.isHidden()
    assert view.progress.isHidden()
    assert not view.next.isEnabled()
    assert view.advice.text().startswith("This study has not been read on this computer yet")
    assert describe_waiting(leave_out_unseen(seen)) == "The study cannot be reached at the moment."
    view.show_look(seen)
    assert not view.left.isHidden()
    assert view.left.text() == "1 of 3 read, 2 left"
    assert view.next.isEnabled()
    assert view.advice.text() == ""


def draw(qtbot, dock, *boxes):
    """Lay boxes over the mask, as one step."""
    case = dock.session.case
    array = np.zeros(case.grid.shape, np.uint8)
    for box in boxes:
        array[box] = 1
    dock.editing.start_with(LabelMap.of(array, case.grid), "boxes")
    qtbot.waitUntil(
        lambda: (
            dock.editing.live is not None and np.array_equal(dock.editing.live.labels > 0, array)
        )
    )


def test_an_answer_goes_with_its_lesion_into_the_event_whatever_is_drawn_after_it(
    qtbot, at_work, folder
):
    """The share is away meanwhile, and nothing is waited for between the last stroke and accept."""
    dock = at_work()
    taken = take(qtbot, dock)
    form = dock.flow("Review").page.form
    form.set_form(FORM)
    choose(form, "review_answer_lesion", 2)
    one, other = np.s_[1:3, 2:6, 2:6], np.s_[1:2, 9:11, 9:11]
    draw(qtbot, dock, one, other)
    qtbot.waitUntil(lambda: form.findChild(QLineEdit, "review_answer_note_2") is not None)
    form.give(Answer("note", ("the small one",), Place(FieldScope.LESION, "2")))
    client = dock.flow("Review").client

    def kept():
        return client.files.read_draft(taken.task, taken.round).answers

    # What a killed window leaves: which voxels are lesion 2, on this computer.
    qtbot.waitUntil(lambda: "note@2" in kept())
    assert kept()["@lesions"]["2"] == [[1, 9, 9], [1, 9, 10], [1, 10, 9], [1, 10, 10]]
    dock.scene.view.go_to((0, 0, 0))
    form.findChild(QPushButton, "review_lesion_show_2").click()
    assert dock.viewer.dims.current_step[-3] == 1
    away = folder.with_name("away")
    folder.rename(away)
    draw(qtbot, dock, np.s_[1:2, 2:3, 2:3], np.s_[1:3, 8:14, 8:14])
    dock.flow("Review").accept()
    qtbot.waitUntil(lambda: dock.session.case_id not in ("", taken.case_id))
    away.rename(folder)
    dock.flow("Review").look()
    qtbot.waitUntil(lambda: not dock.flow("Review").page.waiting.text())
    state = client.session.refresh()
    reading = next(one for one in state.case(taken.task.case).readings if one.reader == "ana")
    record = json.loads(reading.answers)
    assert record["note@2"] == {"text": "the small one"}
    assert record["@lesions"]["1"] == [[1, 2, 2]]
    assert all(8 <= place < 14 for _, *rest in record["@lesions"]["2"] for place in rest)


def test_closing_the_window_lets_go_of_the_case_and_keeps_the_answers(qtbot, at_work, folder):
    dock = at_work()
    taken = take(qtbot, dock)
    form = dock.flow("Review").page.form
    form.set_form(FORM)
    box = form.findChild(QComboBox, "review_answer_lesion")
    box.setCurrentIndex(2)
    box.activated.emit(2)
    dock.flow("Review").close()
    again = open_client(folder, "Ana").client.take_next()
    assert again.task == taken.task
    assert again.draft.answers["lesion"] == "no"


def test_closing_waits_shortly_for_a_share_that_hangs_and_says_that_all_is_kept(
    qtbot, at_work, monkeypatch
):
    dock = at_work()
    client, ends, said = dock.flow("Review").client, threading.Event(), []
    monkeypatch.setattr(flow, "_CLOSING_S", (0.01, 0.01))
    close = client.close
    monkeypatch.setattr(client, "close", lambda: (ends.wait(), close()))
    dock.notifier.said.connect(lambda _level, text: said.append(text))
    dock.flow("Review").close()
    ends.set()
    assert "waiting for its folder to respond" in said[0]
    assert "was closed before its folder responded" in said[1]
    qtbot.waitUntil(lambda: not dock.jobs.is_running("review end"))
    assert dock.flow("Review").client is None


@pytest.fixture
def plan(dock, small_data_set):
    """The form of a new study as it opens, with a data set and people typed in."""
    dock.flow("Review").page.new.click()
    plan = dock.flow("Review").page.planning
    plan.data_set.setText(str(small_data_set))
    typed = {plan.name: "T", plan.leads: "Lea", plan.readers: "A, B"}
    for line, text in typed.items():
        line.setText(text)
    return plan


def test_a_new_study_proposes_the_data_set_that_is_open(opened):
    page = opened.flow("Review").page
    page.new.click()
    assert page.planning.data_set.text() == str(opened.session.opened.data_set.root)
    page.planning.data_set.setText("/mine")
    page.new.click()
    assert page.planning.data_set.text() == "/mine"


def test_a_case_of_a_study_has_no_position_in_the_work_list(opened):
    assert opened.session.position == "1 / 3"
    opened.session.study = "STUDY"
    assert opened.session.position == ""


def test_a_missing_reason_puts_the_cursor_into_its_field(qtbot, dock):
    view = dock.flow("Review").page.judging
    focused = []
    view.reason.setFocus = lambda: focused.append(True)
    view.ask_reason()
    assert focused
    assert view.note.text()


def deal(qtbot, plan):
    plan.draft.click()
    qtbot.waitUntil(lambda: not plan.shown.isHidden())
    return plan.shown.result.text()


def type_twice(bind, passphrase):
    for field in (bind.new, bind.again):
        field.setText(passphrase)


def note_of(plan, field):
    """What stands beside a field, "" where nothing does."""
    note = plan._notes[field]
    return "" if note.isHidden() else note.text()


def test_a_lead_sees_who_reads_what_before_it_is_frozen_and_freezes_that(
    qtbot, dock, plan, tmp_path
):
    page = dock.flow("Review").page
    plan.dice.setValue(0.5)
    plan.consensus.setCurrentIndex(plan.consensus.findData(ConsensusRule.UNION))
    text = deal(qtbot, plan)
    assert "A (reader): 3 readings" in text
    assert "A and B share 3 cases" in text
    assert "Dice below 0.5, volume ratio above 1.5, HD95 above 10 mm" in text
    plan.shown.freeze.click()
    assert "Choose a new folder" in note_of(plan, "folder")
    plan.seed.setValue(7)  # what was shown is out of date: it cannot be frozen
    assert plan.shown.isHidden()
    deal(qtbot, plan)
    bind = plan.shown.keys
    assert [bind.lead.itemText(k) for k in range(bind.lead.count())] == ["Lea"]
    (tmp_path / "FULL").mkdir()
    (tmp_path / "FULL" / "a").touch()
    qtbot.keyClicks(plan.shown.folder, str(tmp_path / "FULL"))  # as it is typed: the deal stays
    bind.new.setText("three small words")
    plan.shown.freeze.click()
    assert "passphrases differ" in note_of(plan, "passphrase")
    assert bind.new.text() == ""
    type_twice(bind, "three small words")
    plan.shown.freeze.click()
    qtbot.waitUntil(lambda: "is not empty" in note_of(plan, "folder"))
    plan.shown.folder.clear()
    qtbot.keyClicks(plan.shown.folder, str(tmp_path / "NEW"))
    assert not note_of(plan, "folder")
    plan.shown.freeze.click()  # the passphrase is forgotten by now: no study without her key
    assert "type it again" in note_of(plan, "passphrase")
    assert not (tmp_path / "NEW").exists()
    type_twice(bind, "three small words")
    plan.shown.freeze.click()
    qtbot.waitUntil(lambda: page.who.count() == 3)
    digits = hashlib.sha256((tmp_path / "NEW" / "study.json").read_bytes()).hexdigest()
    assert f"study.json (SHA-256 {digits[:16]}…)" in dock.header.message.text()
    study = FolderStore(tmp_path / "NEW", tmp_path / "home").study
    assert [one.reader for one in study.lead_keys] == ["lea"]
    # her desk finds the key that was made, which counts at once
    look = load_signing_status(StudyClient(tmp_path / "NEW", "Lea", passphrase="three small words"))
    assert (look.digits, look.counts) == (short_key(study.lead_keys[0].key), True)
    frozen = study.plan
    assert (frozen.triggers.dice_below, frozen.consensus) == (0.5, ConsensusRule.UNION)
    assert frozen.blinding == STUDY_HIDDEN


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("data_set", "expected a data set"),
        ("name", "expected a title"),
        ("leads", "found nobody"),
        ("readers", "found nobody"),
        ("adjudicators", "found 'Jo' twice"),
        ("n_readers", "expected at least 3 readers"),
        ("cases", "'DUKE_*' matches none of its 3"),
        ("protocol", "protocol"),
        ("honeypots", "found 'X_9'"),
        ("order", "queue"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field_and_gone_with_the_next_letter(
    qtbot, plan, tmp_path, field, text
):
    (tmp_path / "pots.txt").write_text("X_9")
    (tmp_path / "none.json").write_text("[]")
    edits = {
        "data_set": (plan.data_set, ""),
        "name": (plan.name, ""),
        "leads": (plan.leads, ""),
        "readers": (plan.readers, " , "),
        "adjudicators": (plan.judges, "Jo, Jo"),
        "n_readers": (plan.readers, "A, B"),
        "cases": (plan.cases.line, "DUKE_*"),
        "protocol": (plan.files["protocol"], str(tmp_path / "none.json")),
        "honeypots": (plan.files["honeypots"], str(tmp_path / "pots.txt")),
        "order": (plan.files["order"], str(tmp_path / "none.json")),
    }
    edit, typed = edits[field]
    edit.setText(typed)
    if field == "n_readers":
        plan.readings.setValue(3)
    plan.draft.click()
    qtbot.waitUntil(lambda: text in note_of(plan, "readers" if field == "n_readers" else field))
    assert sum(bool(note_of(plan, one)) for one in plan._notes) == 1
    assert field not in plan._folds or plan._folds[field].is_open
    edit.setText(f"{typed} ")
    assert not any(note_of(plan, one) for one in plan._notes)


def test_cases_are_chosen_by_pattern_or_in_a_list(qtbot, plan):
    cases = plan.cases
    plan.findChild(QPushButton, "review_plan_list_cases").click()
    qtbot.waitUntil(lambda: cases.listed.count() == 3)
    assert len(cases.listed.selectedItems()) == 0
    qtbot.keyClicks(cases.line, "A_*")
    assert [one.text() for one in cases.listed.selectedItems()] == ["A_1", "A_2"]
    cases.listed.clearSelection()
    assert cases.patterns == ()
    cases.listed.item(2).setSelected(True)
    assert cases.line.text() == "B_1"
    assert "1 case" in deal(qtbot, plan)
    assert plan._cases.said.text() == "B_1"
    qtbot.keyClicks(cases.line, "x")
    assert "'B_1x' matches none of its 3" in note_of(plan, "cases")


@pytest.mark.parametrize("case_id", ['a, "b"', "ä/ö", "50 %*", "x" * 200])
def test_an_id_of_any_letters_is_chosen_in_the_list_and_read_back(qtbot, plan, case_id):
    plan.cases.show_ids((case_id, "other"))
    plan.cases.listed.item(0).setSelected(True)
    assert plan_study.choose_cases((case_id, "other"), plan.cases.patterns) == (case_id,)


def test_broken_cases_and_a_missing_key_stop_it_until_that_is_meant(
    qtbot, plan, small_data_set, tmp_path
):
    next((small_data_set / "images" / "A_1").glob("*0002*")).unlink()
    plan.cases.line.setText("*")  # the broken one is asked for, too
    assert "2 cases" in deal(qtbot, plan)
    assert "1 case cannot be read" in plan.shown.warning.text()
    assert not plan.shown.freeze.isEnabled()
    plan.shown.without_broken.click()
    assert plan.shown.freeze.isEnabled()
    plan.shown.folder.setText(str(tmp_path / "NEW"))
    plan.shown.keys.new.setText("typed once")
    for text in ("passphrases differ", "without a key"):
        plan.shown.freeze.click()
        assert text in note_of(plan, "passphrase")
    plan.shown.freeze.click()
    qtbot.waitUntil((tmp_path / "NEW" / "study.json").exists)
    frozen = read_study(tmp_path / "NEW")[0]
    assert (len(frozen.cases), frozen.lead_keys) == (2, ())


ON_PAGE = {
    "data_set": "review_plan_data",
    "out": "review_plan_folder",
    "lead": "review_plan_leads",
    "reader": "review_plan_readers",
    "adjudicator": "review_plan_judges",
    "name": "review_plan_name",
    "mode": "review_plan_mode",
    "readings": "review_plan_readings",
    "blind": "review_hide_reference review_hide_model review_hide_other_readers "
    "review_hide_numbers review_hide_clinical review_hide_site",
    "open_": "",  # no box of what is hidden is ticked
    "consensus": "review_plan_consensus",
    "dice_below": "review_plan_dice_on review_plan_dice",
    "volume_ratio": "review_plan_ratio_on review_plan_ratio",
    "hausdorff_above": "review_plan_hd95_on review_plan_hd95",
    "any_lesions": "review_plan_lesions",
    "any_answers": "review_plan_category",
    "repeats": "review_plan_repeats",
    "honeypots": "review_plan_honeypots",
    "protocol": "review_plan_protocol",
    "order": "review_plan_order",
    "seed": "review_plan_seed",
    "case": "review_plan_cases review_plan_listed",
    "own_key": "review_bind_lead",
    "lead_key": "review_bind_others",
    "passphrase_file": "review_bind_new review_bind_again",
    "freeze": "review_plan_draft review_plan_freeze",
    "without_broken": "review_plan_without_broken",
}
"""By option of `mamamia review init`: the page's controls that say the same."""
ABOUT_THE_FORM = re.compile(r"review_plan_(fold_|back$|list_cases$|choice$|shown$)|_browse$|_text$")


def test_the_page_sets_all_that_the_command_can_and_nothing_else(plan):
    command = typer.main.get_command(app).commands["review"].commands["init"]
    assert {one.name for one in command.params} - {"help"} == set(ON_PAGE)
    kinds = QAbstractButton, QLineEdit, QComboBox, QAbstractSpinBox, QAbstractItemView
    controls = {
        one.objectName()
        for one in plan.findChildren(QWidget)
        if isinstance(one, kinds) and one.objectName().startswith("review_")
    }
    listed = {name for names in ON_PAGE.values() for name in names.split()}
    assert {one for one in controls if not ABOUT_THE_FORM.search(one)} == listed


def test_the_page_and_the_command_freeze_the_same_study(
    qtbot, dock, plan, small_data_set, tmp_path
):
    """Every field of a wish away from where it begins; a new field of it fails here."""
    pots, protocol = tmp_path / "pots.txt", tmp_path / "protocol.json"
    pots.write_text("A_1")
    protocol.write_text(json.dumps({"name": "P", "form": "breast-mri-2013"}))
    said = (
        f"--out {tmp_path / 'BY_COMMAND'} --lead Lea --lead Jo --reader A "
        "--reader B --reader C --adjudicator Jo --name Other --mode panel --readings 3 "
        "--hide numbers --hide model --consensus majority-foreground --dice-below 0.6 "
        "--volume-ratio 2 --hausdorff-above 12.5 --any-lesions --any-answers --repeats 0.5 "
        f"--honeypots {pots} --protocol {protocol} --seed 7 --case A_* --freeze"
    )
    result = CliRunner().invoke(app, ["review", "init", str(small_data_set), *said.split()])
    assert result.exit_code == 0, result.output
    lines = {plan.name: "Other", plan.leads: "Lea, Jo", plan.readers: "A, B, C", plan.judges: "Jo"}
    files = {plan.files["honeypots"]: str(pots), plan.files["protocol"]: str(protocol)}
    for line, text in {**lines, **files, plan.cases.line: "A_*"}.items():
        line.setText(text)
    plan.mode.setCurrentIndex(plan.mode.findData(ReadingMode.PANEL))
    plan.consensus.setCurrentIndex(plan.consensus.findData(ConsensusRule.MAJORITY_FOREGROUND))
    numbers = {plan.readings: 3, plan.dice: 0.6, plan.ratio: 2, plan.distance: 12.5}
    for spin, value in {**numbers, plan.repeats: 50, plan.seed: 7}.items():
        spin.setValue(value)
    for box in (plan.lesions, plan.category):
        box.click()
    for part in (Hidden.REFERENCE, Hidden.OTHER_READERS, Hidden.CLINICAL, Hidden.SITE):
        plan.hidden[part].click()
    usual = plan_study.StudySetup(None, StudyPlan(""), StudyPeople((), ()))
    same = [
        field.name
        for one, other in ((usual, plan.setup), (usual.plan, plan.setup.plan))
        for field in fields(one)
        if getattr(one, field.name) == getattr(other, field.name)
    ]
    # a queue of quality control needs scores: see test_quality_queue; the window has no lease
    assert same == ["order", "lease_s"]
    deal(qtbot, plan)
    plan.shown.folder.setText(str(tmp_path / "BY_PAGE"))
    bind = plan.shown.keys
    bind.others.setText("Lea")
    plan.shown.freeze.click()
    qtbot.waitUntil(lambda: "64 digits of a key" in note_of(plan, "lead_keys"))
    bind.others.setText(f"Lea = {'0a' * 32}")
    bind.lead.setCurrentText("Jo")
    type_twice(bind, "x")
    plan.shown.freeze.click()
    qtbot.waitUntil(lambda: note_of(plan, "passphrase") != "")
    assert not bind.new.text() + bind.again.text(), "a secret stands there no longer than it must"
    type_twice(bind, "a long passphrase")
    plan.shown.freeze.click()
    qtbot.waitUntil((tmp_path / "BY_PAGE" / "study.json").exists)
    bound = read_study(tmp_path / "BY_PAGE")[0].lead_keys
    assert [(one.reader, len(one.key)) for one in bound] == [("lea", 64), ("jo", 64)]
    studies = [
        replace(read_study(tmp_path / name)[0], study_id="", created="", lead_keys=())
        for name in ("BY_COMMAND", "BY_PAGE")
    ]
    assert studies[0] == studies[1]
    assert studies[0].plan.triggers == Triggers(0.6, 2.0, 12.5, False, False)


# ------------------------------------------------------------ judged, signed, overseen


@pytest.fixture
def agreed(folder, tmp_path):
    """The study after Ana and Ben handed the first case in without a lesion."""
    for who in ("Ana", "Ben"):
        client = StudyClient(folder, who, tmp_path / who)
        client.hand_in(client.take(Task(who.lower(), "c0001")), None, Draft())()
        client.close()
    return folder


def titles_of(page):
    tabs = page.tabs
    return [tabs.tabText(k) for k in range(tabs.count()) if tabs.isTabVisible(k)]


def test_each_role_has_its_tabs_and_a_reader_signs_only_as_author(qtbot, at_work, agreed):
    dock = at_work("Ana")
    page = dock.flow("Review").page
    qtbot.waitUntil(lambda: page.signing.things.count() == 1)
    assert titles_of(page) == ["Read", "Sign (1)"]
    assert [page.signing.meaning.itemData(k) for k in range(page.signing.meaning.count())] == [
        Meaning.AUTHOR
    ]
    assert page.signing._word.isHidden()


def test_a_judge_accepts_what_agrees_signs_it_and_reopens_it_with_a_reason(qtbot, at_work, agreed):
    dock = at_work("Lea Lead")
    page, judging = dock.flow("Review").page, dock.flow("Review").page.judging
    qtbot.waitUntil(lambda: "1 in agreement, waiting to be accepted" in judging.nothing.text())
    assert titles_of(page) == ["Judge", "Sign", "Study"]
    judging.queue.setCurrentRow(0)
    assert not judging.accept.isHidden()
    judging.accept.click()
    qtbot.waitUntil(lambda: page.signing.things.count() == 1)
    assert judging.take_up.isHidden()
    signing = page.signing
    assert not signing.passphrase.isEnabled()  # no key yet
    signing.new.setText("three small words")
    signing.again.setText("three small worlds")
    signing.make.click()
    assert "passphrases differ" in signing.note.text()
    signing.again.setText("three small words")
    signing.make.click()
    qtbot.waitUntil(lambda: not signing.forgotten.isHidden())
    assert "valid" in signing.key.text()  # the first lead's own
    assert signing.new.text() == signing.again.text() == ""
    signing.things.selectAll()
    signing.passphrase.setText("three small worlds")
    signing.sign.click()
    assert signing.passphrase.text() == ""  # asked for each time
    qtbot.waitUntil(lambda: "cannot be recovered" in signing.note.text())
    signing.passphrase.setText("three small words")
    signing.sign.click()
    qtbot.waitUntil(lambda: signing.meaning.currentData() is Meaning.APPROVER)
    judging.queue.setCurrentRow(0)
    judging.reopen.click()
    assert "reason" in dock.header.message.text()
    judging.why_again.setText("the other breast, too")
    judging.reopen.click()
    qtbot.waitUntil(lambda: judging.queue.count() == 0)


def test_a_lead_ends_a_key_that_was_stolen_and_its_owner_is_told(
    qtbot, at_work, agreed, tmp_path, monkeypatch
):
    monkeypatch.setattr(keys, "_COST", 1 << 4)
    store = FolderStore(agreed, tmp_path / "laptop", host="laptop", session="1")
    ana = ReviewSession(store, "Ana", tmp_path / "laptop")
    digits = short_key(ana.make_key("three small words"))
    dock = at_work("Lea Lead")
    signing = dock.flow("Review").page.signing
    assert signing._end.isHidden()  # without a key of her own
    signing.new.setText("a lead's own words")
    signing.again.setText("a lead's own words")
    signing.make.click()
    qtbot.waitUntil(lambda: signing.which.count() == 2)
    names = [signing.which.itemText(k) for k in range(2)]
    assert (names[0][20:], names[1]) == ("(yours)", f"{digits} of Ana")
    assert signing._ending.isHidden()
    signing.begin_end.click()
    signing.end.click()
    assert "Choose the key to revoke" in signing.end_note.text()  # none by itself
    signing.which.setCurrentIndex(1)
    signing.reason.setText("laptop stolen")
    for words, since, why in (
        ("a lead's old words", "", "cannot be recovered"),
        ("a lead's own words", "yesterday", "a time such as"),
    ):
        signing.since.setText(since)
        signing.end_word.setText(words)
        signing.end.click()
        assert signing.end_word.text() == ""  # asked for each time
        qtbot.waitUntil(lambda why=why: why in signing.end_note.text())
    signing.since.clear()
    signing.end_word.setText("a lead's own words")
    signing.end.click()
    qtbot.waitUntil(lambda: "The key of Ana is revoked" in dock.header.message.text())
    assert signing._ending.isHidden()
    qtbot.waitUntil(lambda: signing.which.count() == 1)
    (ended,) = [one.ended for one in ana.refresh().keys if one.reader == "ana"]
    assert ended.endswith(": laptop stolen")
    signing.show_look(SigningStatus(digits, counts=False, things=(), ended=ended))
    assert "Create a new key" in signing.key.text()
    assert not signing._making.isHidden()
    assert not signing.passphrase.isEnabled()
    ana.close()


def test_the_page_says_what_a_study_does_not_need(qtbot):
    page = ReviewPage()
    qtbot.addWidget(page)
    said = " ".join(one.text() for one in page.findChildren(QLabel))
    assert "needs no model, no PyTorch, no GPU and no server" in said
    assert "a basic laptop is enough" in said


def test_no_key_is_offered_before_it_is_known_whether_there_is_one(qtbot):
    """A lead whose key the study binds made another, which nobody had vouched for."""
    view = SigningView()
    qtbot.addWidget(view)
    view.show()
    assert not view.make.isVisible()
    view.show_look(SigningStatus("1234 5678", counts=True, things=()))
    assert not view.make.isVisible()
    view.show_look(SigningStatus("", counts=False, things=()))
    assert view.make.isVisible()


def test_what_is_typed_and_chosen_stays_while_the_study_is_looked_at(qtbot, at_work, agreed):
    dock = at_work("Ana")
    signing = dock.flow("Review").page.signing
    qtbot.waitUntil(lambda: signing.things.count() == 1)
    signing.things.setCurrentRow(0)
    signing.new.setText("three small")
    dock.flow("Review").look()
    qtbot.waitUntil(lambda: not dock.flow("Review")._jobs.is_running("review look"))
    assert len(signing.chosen) == 1
    assert signing.new.text() == "three small"


def test_digits_typed_for_a_key_that_another_lead_vouched_for_are_not_kept_for_the_next(
    qtbot, at_work, agreed
):
    signing = at_work("Lea", agreed).flow("Review").page.signing
    look = SigningStatus("1234", counts=True, things=(), waiting=("Ana", "Ben"))
    signing.show_look(look)
    signing.digits.setText("8369 d22f")
    signing.word.setText("three small words")
    signing.show_look(replace(look, waiting=("Ben",)))
    assert signing.whose.currentText() == "Ben"
    assert (signing.digits.text(), signing.word.text()) == ("", "")
    assert "The key of Ana is no longer waiting" in signing.note.text()


def test_a_lead_sees_progress_time_and_agreement_at_any_moment(qtbot, at_work, agreed):
    dock = at_work("Lea Lead")
    progress = dock.flow("Review").page.progress
    qtbot.waitUntil(lambda: "1 of 3" in progress.readers.text())
    assert "min per case" in progress.readers.text()
    progress.measure.click()
    qtbot.waitUntil(lambda: "both masks are empty" in progress.agreement.text())


def test_the_row_of_decisions_keeps_its_place_below_a_note_or_a_hidden_line(qtbot):
    view = JudgingView()
    qtbot.addWidget(view)
    view.resize(480, 420)
    view.show_dispute(Dispute("c", "A", (), ALL_HIDDEN, Path("d"), Path("w")))
    view.show()
    qtbot.waitExposed(view)

    def place():
        return view.decide.mapTo(view, view.decide.rect().bottomLeft()).y()

    qtbot.waitUntil(lambda: view.decide.isVisible())
    qtbot.wait(50)
    before = place()
    line = view.answers.parentWidget()
    line.hide()
    assert place() == before
    line.parentWidget().layout().activate()  # before the layouts around it
    assert place() == before
    view.say("Expected a reason for the decision, but there is none.")
    qtbot.waitUntil(lambda: view.note.isVisible() and view.note.height() > 10)
    qtbot.wait(50)
    assert place() == before


def test_lesions_of_two_readings_are_listed_and_a_line_goes_to_one(qtbot):
    view = JudgingView()
    qtbot.addWidget(view)
    for chooser in (view.first, view.second):
        chooser.addItems(["Reader A", "Reader B"])
    view.second.setCurrentIndex(1)
    same, other = PairedAnswer("Margin", "smooth", "smooth"), PairedAnswer("Shape", "oval", "round")
    rows = (
        LesionRow("", "3", "", math.nan, 120.0, math.nan, (1, 2, 3)),
        LesionRow("4", "", "1", 50.0, math.nan, math.nan, (4, 5, 6)),
        LesionRow("2", "1", "", 900.0, 1000.0, 0.8, (7, 8, 9), (same, other)),
    )
    with qtbot.assertNotEmitted(view.lesion_wanted):
        view.show_lesions(LesionTable(rows, 1, 0, 1, 1, lost_first=("5",)))
    assert view.lesions_told.text() == (
        "Lesions: 1 found by both readers, 0 only by Reader A, 1 only by Reader B, 1 split or "
        "merged; lesions found by both readers: 1 of 2 answers agree; Reader A describes lesion "
        "5, which is not in the mask"
    )
    assert [view.lesions.item(k).text() for k in range(3)] == [
        "only Reader B: lesion 3 · 0.12 ml",
        "lesion 4 (Reader A), part of lesion 1 (Reader B) · 0.05 ml",
        "lesion 2 (Reader A) = lesion 1 (Reader B) · Dice 0.80; Shape: oval / round; "
        "1 identical answer",
    ]
    with qtbot.waitSignal(view.lesion_wanted) as wanted:
        view.lesions.setCurrentRow(2)
    assert wanted.args == [2]
    view.show_lesions(LesionTable())
    assert view.lesions_told.text() == "Neither reading has a lesion."
    view.show_lesions(None)
    assert view.lesions.isHidden()


def test_a_list_of_lesions_is_as_high_as_its_lines_whatever_width_it_gets_when(qtbot):
    lesions = make_line_list("lesions", "")
    qtbot.addWidget(lesions)
    lesions.resize(80, 60)
    lesions.show()
    lesions.addItems(["only Reader B: lesion 3 · 0.12 ml"] * 2)
    lesions.fit()
    narrow = lesions.height()
    lesions.resize(500, narrow)
    qtbot.waitUntil(lambda: lesions.height() < narrow / 2)
    assert lesions.visualItemRect(lesions.item(1)).bottom() <= lesions.viewport().height()


# ------------------------------------------------------------------------- the form


@pytest.fixture
def form(qtbot):
    view = FormView()
    qtbot.addWidget(view)
    view.set_form(FORM)
    return view


def missing(form):
    return tuple(gap.text for gap in form.list_gaps() if not gap.contradicts)


def choose(form, name, at):
    box = form.findChild(QComboBox, name)
    box.setCurrentIndex(at)
    box.activated.emit(at)


def test_a_question_comes_with_the_answer_that_it_depends_on_and_goes_with_it(qtbot, form):
    assert missing(form) == ("Lesion",)
    choose(form, "review_answer_lesion", 1)
    form.findChild(QCheckBox, "review_answer_margin_b").click()
    assert missing(form) == ()
    assert form.answers["margin"] == ["b"]
    choose(form, "review_answer_lesion", 2)
    assert form.findChild(QCheckBox, "review_answer_margin_b") is None


def test_a_number_that_is_none_or_out_of_its_limits_is_said_and_not_kept(qtbot, form):
    choose(form, "review_answer_lesion", 2)
    line = form.findChild(QLineEdit, "review_answer_size")
    for text in ("about 3", "201", "-1"):
        line.setText(text)
        line.textEdited.emit(text)
        assert len(missing(form)) == 1, text
        assert "size" not in form.answers
    line.textEdited.emit("12.50")
    assert missing(form) == ()
    assert form.answers["size"] == {"number": "12.5", "unit": "mm"}


def test_each_lesion_of_the_mask_is_asked_about(qtbot, form):
    form.set_facts(CaseFacts((LesionFacts("1"), LesionFacts("2"))))
    assert form.findChild(QLineEdit, "review_answer_note_2") is not None


def lesions(*names, **more):
    """Facts of lesions, each with one voxel."""
    facts = (LesionFacts(name, anchors=((int(name), 0, 0),)) for name in names)
    return CaseFacts(tuple(facts), **more)


def test_a_described_lesion_that_is_gone_is_told_and_not_handed_in(qtbot, form):
    choose(form, "review_answer_lesion", 2)
    form.set_facts(lesions("1", "2"))
    form.give(Answer("note", ("small",), Place(FieldScope.LESION, "2")))
    form.set_facts(lesions("1"))
    assert "no longer in your mask" in form.findChild(QLabel, "review_lesion_note_2").text()
    assert missing(form) == ("lesion 2 (described, but not in your mask)",)
    assert form.answers["@lesions"]["2"] == [[2, 0, 0]]
    form.set_facts(lesions("1", joined=(("2", "1"),)))
    assert "merged with lesion 1" in form.findChild(QLabel, "review_lesion_note_2").text()
    form.set_facts(lesions("1", "2"))  # undone
    assert missing(form) == ()
    assert form.findChild(QPushButton, "review_lesion_show_2") is not None
    form.set_facts(lesions("1"))
    with qtbot.waitSignal(form.answered):
        form.findChild(QPushButton, "review_lesion_drop_2").click()
    assert missing(form) == ()
    assert "note@2" not in form.answers
    assert "2" not in form.answers["@lesions"]


def test_a_lesion_that_came_off_a_described_one_says_so_until_it_is_described(qtbot, form):
    form.set_facts(lesions("1"))
    form.give(Answer("note", ("large",), Place(FieldScope.LESION, "1")))
    form.set_facts(lesions("1", "2", parted=(("2", "1"),)))
    form.set_facts(lesions("1", "2"))  # a stroke later
    assert "Split from lesion 1" in form.findChild(QLabel, "review_lesion_note_2").text()
    assert form.findChild(QLabel, "review_lesion_note_1") is None
    form.give(Answer("note", ("a new one",), Place(FieldScope.LESION, "2")))
    assert form.findChild(QLabel, "review_lesion_note_2") is None


def test_answers_are_shown_again_as_they_were_given(qtbot, form):
    choose(form, "review_answer_lesion", 1)
    record = json.loads(json.dumps(form.answers))
    form.set_answers({})
    assert form.answers == {}
    form.set_answers(record)
    assert form.findChild(QComboBox, "review_answer_lesion").currentData() == "yes"


def test_seconds_count_only_with_the_window_in_front_and_an_input(qtbot, dock):
    in_front = True
    clock = ActiveClock(dock, lambda: in_front)
    clock.begin(10)
    clock.tick()
    assert clock.seconds == 11
    in_front = False
    clock.tick()
    assert clock.seconds == 11
    clock.end()
    in_front = True
    clock.tick()
    assert clock.seconds == 11


def test_after_a_decision_the_first_waiting_case_is_selected(qtbot):
    view = JudgingView()
    qtbot.addWidget(view)
    waiting = [DisputeRow(k, k, CaseState.DISAGREES, ("Dice",)) for k in ("A", "B")]
    view.show_look(SimpleNamespace(disputes=tuple(waiting)))
    view.queue.setCurrentRow(1)
    view.show_look(SimpleNamespace(disputes=tuple(waiting)))
    assert view.chosen.case == "B"
    decided = replace(waiting[1], state=CaseState.ACCEPTED)
    view.show_look(SimpleNamespace(disputes=(waiting[0],)), (decided,))
    assert view.chosen.case == "A"
    assert view.take_up.isEnabled()
