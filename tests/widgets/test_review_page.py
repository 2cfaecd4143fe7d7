"""Page Review on a viewer without a window: who sits down, what is refused, what is missing."""

import hashlib
import json
from dataclasses import replace

import pytest
from qtpy.QtWidgets import QCheckBox, QComboBox, QLineEdit
from tests.review_study import made

from napari_mamamia.core.answers import CaseFacts, LesionFacts
from napari_mamamia.core.blinding import ALL_HIDDEN, NOT_BLIND
from napari_mamamia.core.form import Condition, Field, FieldKind, FieldScope, Form, Term
from napari_mamamia.core.review import ConsensusRule, Meaning, Task
from napari_mamamia.io.review import keys
from napari_mamamia.io.review.desk_files import Draft
from napari_mamamia.io.review.store import FolderStore
from napari_mamamia.reviewing.signatures import short_key
from napari_mamamia.reviewing.states import CaseState
from napari_mamamia.services.case.refine import SavedMask
from napari_mamamia.services.review.desk import StudyDesk, open_desk
from napari_mamamia.services.review.session import ReviewSession
from napari_mamamia.services.review.signing import SigningLook, look_at_signing
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.findings.form_view import FormView
from napari_mamamia.widgets.review.study_case import ActiveClock

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

    def save(editing, array):
        path = editing.workspace.refined(editing.reader, editing.case.case_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(array.tobytes())
        editing.saved = SavedMask(path, hashlib.sha256(path.read_bytes()).hexdigest())
        return editing.saved

    monkeypatch.setattr(world, "_save", save)
    world.has_reference = False  # the fakes know nothing of blinding

    def begin(who="Ana", at=folder):
        dock.open_study(at, who)
        qtbot.waitUntil(lambda: dock.review_flow.desk is not None)
        return dock

    yield begin
    dock.review_flow.close()


def take(qtbot, dock):
    dock.review_page.reading.next.click()
    qtbot.waitUntil(lambda: dock.session.case is not None and dock.session.case.is_loaded)
    return dock.review_flow.reading.taken


def test_a_name_that_is_remembered_sits_down_at_once(qtbot, dock, world, folder):
    dock.open_study(folder)
    qtbot.waitUntil(lambda: dock.review_flow.desk is not None)
    assert dock.session.reader == "ana"
    assert dock.session.blinding == ALL_HIDDEN
    dock.review_flow.close()


def test_a_name_of_somebody_else_is_not_taken_for_one_of_the_study(qtbot, dock, world, folder):
    world.preferences = replace(world.preferences, reader="Zoe")
    dock.open_study(folder)
    page = dock.review_page
    qtbot.waitUntil(lambda: page.who.count() == 4)
    assert page.who.currentText() == ""
    assert dock.review_flow.desk is None
    page.begin.click()
    assert dock.review_flow.desk is None


def test_a_blind_study_is_refused_where_cases_were_open(qtbot, opened, folder):
    before = opened.session.case
    opened.open_study(folder, "Ana")
    qtbot.waitUntil(lambda: "Start a new window" in opened.header.message.text())
    assert opened.review_flow.desk is None
    assert opened.session.blinding == NOT_BLIND
    assert opened.session.case is before
    assert opened.session.study == ""


def test_a_folder_that_is_no_study_is_refused_in_words(qtbot, dock, tmp_path):
    dock.open_study(tmp_path / "nothing")
    qtbot.waitUntil(lambda: "expected a review study" in dock.header.message.text())


def test_the_cases_of_a_study_are_not_opened_elsewhere(qtbot, at_work):
    dock = at_work()
    take(qtbot, dock)
    case = dock.session.case
    dock.cases_flow.open_neighbour(1)
    assert "opened on page Review" in dock.header.message.text()
    dock.header.reader_given.emit("Ben")
    assert dock.session.reader == "ana"
    dock.blind.end()
    assert dock.session.blinding == ALL_HIDDEN
    assert dock.session.case is case


def test_what_is_missing_is_listed_before_anything_is_handed_in(qtbot, at_work):
    dock = at_work()
    taken = take(qtbot, dock)
    dock.review_page.form.set_form(FORM)
    dock.show_page("Refine")
    dock.review_flow.accept()
    view = dock.review_page.reading
    assert view.missing.text() == "Missing: Lesion, a mask"
    assert view.empty.isHidden()
    assert dock.page == "Review"
    assert dock.review_flow.reading.taken is taken


def test_a_case_without_a_lesion_is_handed_in_without_a_mask_once_that_is_said(qtbot, at_work):
    dock = at_work()
    first = take(qtbot, dock)
    view = dock.review_page.reading
    view.accept.click()
    assert view.missing.text() == "Missing: a mask"
    view.empty.click()
    qtbot.waitUntil(lambda: dock.session.case_id not in ("", first.case_id))
    state = dock.review_flow.desk.session.refresh()
    reading = next(one for one in state.case(first.task.case).readings if one.reader == "ana")
    assert (reading.state, reading.mask) == (CaseState.READ, "")


def test_a_mask_goes_into_the_store_and_the_next_case_comes(qtbot, at_work, folder):
    dock = at_work()
    first = take(qtbot, dock)
    dock.editing.start(None)
    qtbot.waitUntil(lambda: dock.editing.live is not None)
    dock.review_flow.reading.clock.seconds = 42
    dock.review_flow.accept()
    qtbot.waitUntil(lambda: dock.session.case_id not in ("", first.case_id))
    store = FolderStore(folder, folder.parent / "other")
    assert len(store.list_masks()) == 1
    (event,) = [
        one for chain in store.read().chains.values() for one in chain if one.body["act"] == "read"
    ]
    assert event.body["active_s"] in range(42, 60)
    assert event.body["case"] == first.task.case
    assert Role.REFERENCE not in dock.session.masks


def test_an_earlier_case_is_looked_at_and_reopened_with_a_reason(qtbot, at_work):
    dock = at_work()
    first = take(qtbot, dock)
    view = dock.review_page.reading
    view.accept.click()
    view.empty.click()
    qtbot.waitUntil(lambda: dock.session.case_id not in ("", first.case_id))
    qtbot.waitUntil(lambda: "read" in view.earlier.item(0).text())
    view.earlier.setCurrentRow(0)
    view.look.click()
    qtbot.waitUntil(lambda: dock.session.case_id == first.case_id)
    dock.review_flow.accept()
    assert "why you read it again" in view.missing.text()
    view.reopen.click()
    assert "Say in a few words" in view.advice.text()
    view.reason.setText("missed a satellite")
    view.reopen.click()
    qtbot.waitUntil(lambda: dock.review_flow.reading.taken.state is CaseState.IN_WORK)


def test_a_case_that_is_put_back_leaves_the_screen(qtbot, at_work):
    dock = at_work()
    first = take(qtbot, dock)
    dock.review_page.reading.put_back.click()
    qtbot.waitUntil(lambda: dock.review_flow.reading.taken is None)
    assert dock.session.case is None
    assert [layer.name for layer in dock.viewer.layers] == []
    assert f"{first.case_id} is put back" in dock.review_page.reading.advice.text()


def test_what_another_computer_of_the_reader_holds_is_told(qtbot, at_work, folder, tmp_path):
    other = StudyDesk(folder, "Ana", tmp_path / "elsewhere")
    other.store._host = "elsewhere"
    for task, _reading in other.session.queue():
        other.take(task)
    dock = at_work()
    view = dock.review_page.reading
    view.next.click()
    qtbot.waitUntil(lambda: "is held by you, on another computer" in view.advice.text())
    assert dock.session.case is None


def test_closing_the_window_lets_go_of_the_case_and_keeps_the_answers(qtbot, at_work, folder):
    dock = at_work()
    taken = take(qtbot, dock)
    form = dock.review_page.form
    form.set_form(FORM)
    box = form.findChild(QComboBox, "review_answer_lesion")
    box.setCurrentIndex(2)
    box.activated.emit(2)
    dock.review_flow.close()
    again = open_desk(folder, "Ana").desk.take_next()
    assert again.task == taken.task
    assert again.draft.answers["lesion"] == "no"


def test_a_lead_sees_who_reads_what_before_it_is_frozen_and_freezes_that(
    qtbot, dock, world, small_data_set, tmp_path
):
    page = dock.review_page
    plan = page.planning
    page.new.click()
    plan.draft.click()
    qtbot.waitUntil(lambda: "a data set and a title" in dock.header.message.text())
    typed = {plan.data_set: small_data_set, plan.name: "T", plan.leads: "Lea", plan.readers: "A, B"}
    for line, text in typed.items():
        line.setText(str(text))
    plan.dice.setValue(0.5)
    plan.consensus.setCurrentIndex(plan.consensus.findData(ConsensusRule.UNION))
    plan.draft.click()
    qtbot.waitUntil(lambda: "A: 3 reading(s)" in plan.result.text())
    assert "A and B share 3 case(s)" in plan.result.text()
    plan.freeze.click()
    assert "Choose a new folder" in dock.header.message.text()
    assert not plan.freeze.isHidden()
    plan.seed.setValue(7)  # what was shown is out of date: it cannot be frozen
    assert plan._freezing.isHidden()
    plan.draft.click()
    qtbot.waitUntil(lambda: not plan._freezing.isHidden())
    qtbot.keyClicks(plan.folder, str(tmp_path / "NEW"))  # as it is typed: the deal stays
    assert not plan._freezing.isHidden()
    assert [plan.keys.lead.itemText(k) for k in range(plan.keys.lead.count())] == ["Lea"]
    plan.keys.new.setText("three small words")
    plan.freeze.click()
    assert "not the same" in plan.warning.text()
    assert plan.keys.new.text() == ""
    for field in (plan.keys.new, plan.keys.again):
        field.setText("three small words")
    plan.freeze.click()
    qtbot.waitUntil(lambda: page.who.count() == 3)
    study = FolderStore(tmp_path / "NEW", tmp_path / "home").study
    assert [one.reader for one in study.lead_keys] == ["lea"]
    # her desk finds the key that was made, which counts at once
    look = look_at_signing(StudyDesk(tmp_path / "NEW", "Lea"))
    assert (look.digits, look.counts) == (short_key(study.lead_keys[0].key), True)
    frozen = study.plan
    assert (frozen.triggers.dice_below, frozen.consensus) == (0.5, ConsensusRule.UNION)
    assert frozen.blinding == ALL_HIDDEN


# ------------------------------------------------------------ judged, signed, overseen


@pytest.fixture
def agreed(folder, tmp_path):
    """The study after Ana and Ben handed the first case in without a lesion."""
    for who in ("Ana", "Ben"):
        desk = StudyDesk(folder, who, tmp_path / who)
        desk.hand_in(desk.take(Task(who.lower(), "c0001")), None, Draft())()
        desk.close()
    return folder


def titles_of(page):
    tabs = page.tabs
    return [tabs.tabText(k) for k in range(tabs.count()) if tabs.isTabVisible(k)]


def test_each_role_has_its_tabs_and_a_reader_signs_only_as_author(qtbot, at_work, agreed):
    dock = at_work("Ana")
    page = dock.review_page
    qtbot.waitUntil(lambda: page.signing.things.count() == 1)
    assert titles_of(page) == ["Read", "Sign (1)"]
    assert [page.signing.meaning.itemData(k) for k in range(page.signing.meaning.count())] == [
        Meaning.AUTHOR
    ]
    assert page.signing._word.isHidden()


def test_a_judge_accepts_what_agrees_signs_it_and_reopens_it_with_a_reason(qtbot, at_work, agreed):
    dock = at_work("Lea Lead")
    page, judging = dock.review_page, dock.review_page.judging
    qtbot.waitUntil(lambda: "1 agree and wait to be accepted" in judging.nothing.text())
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
    assert "not the same" in signing.note.text()
    signing.again.setText("three small words")
    signing.make.click()
    qtbot.waitUntil(lambda: not signing.forgotten.isHidden())
    assert "it counts" in signing.key.text()  # the first lead's own
    assert signing.new.text() == signing.again.text() == ""
    signing.things.selectAll()
    signing.passphrase.setText("three small worlds")
    signing.sign.click()
    assert signing.passphrase.text() == ""  # asked for each time
    qtbot.waitUntil(lambda: "nobody can find it" in signing.note.text())
    signing.passphrase.setText("three small words")
    signing.sign.click()
    qtbot.waitUntil(lambda: signing.meaning.currentData() is Meaning.APPROVER)
    judging.queue.setCurrentRow(0)
    judging.reopen.click()
    assert "why" in dock.header.message.text()
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
    signing = dock.review_page.signing
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
    assert "Choose which key ends" in signing.end_note.text()  # none by itself
    signing.which.setCurrentIndex(1)
    signing.reason.setText("laptop stolen")
    for words, since, why in (
        ("a lead's old words", "", "nobody can find it"),
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
    qtbot.waitUntil(lambda: "The key of Ana is ended" in dock.header.message.text())
    assert signing._ending.isHidden()
    qtbot.waitUntil(lambda: signing.which.count() == 1)
    (ended,) = [one.ended for one in ana.refresh().keys if one.reader == "ana"]
    assert ended.endswith(": laptop stolen")
    signing.show_look(SigningLook(digits, counts=False, things=(), ended=ended))
    assert "Make a new key" in signing.key.text()
    assert not signing._making.isHidden()
    assert not signing.passphrase.isEnabled()
    ana.close()


def test_what_is_typed_and_chosen_stays_while_the_study_is_looked_at(qtbot, at_work, agreed):
    dock = at_work("Ana")
    signing = dock.review_page.signing
    qtbot.waitUntil(lambda: signing.things.count() == 1)
    signing.things.setCurrentRow(0)
    signing.new.setText("three small")
    dock.review_flow.look()
    qtbot.waitUntil(lambda: not dock.review_flow._jobs.is_running("review look"))
    assert len(signing.chosen) == 1
    assert signing.new.text() == "three small"


def test_a_lead_sees_progress_time_and_agreement_at_any_moment(qtbot, at_work, agreed):
    dock = at_work("Lea Lead")
    progress = dock.review_page.progress
    qtbot.waitUntil(lambda: "1 of 3" in progress.readers.text())
    assert "min a case" in progress.readers.text()
    progress.measure.click()
    qtbot.waitUntil(lambda: "neither drew anything" in progress.agreement.text())


# ------------------------------------------------------------------------- the form


@pytest.fixture
def form(qtbot):
    view = FormView()
    qtbot.addWidget(view)
    view.set_form(FORM)
    return view


def choose(form, name, at):
    box = form.findChild(QComboBox, name)
    box.setCurrentIndex(at)
    box.activated.emit(at)


def test_a_question_comes_with_the_answer_that_it_depends_on_and_goes_with_it(qtbot, form):
    assert form.list_missing() == ("Lesion",)
    choose(form, "review_answer_lesion", 1)
    form.findChild(QCheckBox, "review_answer_margin_b").click()
    assert form.list_missing() == ()
    assert form.answers["margin"] == ["b"]
    choose(form, "review_answer_lesion", 2)
    assert form.findChild(QCheckBox, "review_answer_margin_b") is None


def test_a_number_that_is_none_or_out_of_its_limits_is_said_and_not_kept(qtbot, form):
    choose(form, "review_answer_lesion", 2)
    line = form.findChild(QLineEdit, "review_answer_size")
    for text in ("about 3", "201", "-1"):
        line.setText(text)
        line.textEdited.emit(text)
        assert len(form.list_missing()) == 1, text
        assert "size" not in form.answers
    line.textEdited.emit("12.50")
    assert form.list_missing() == ()
    assert form.answers["size"] == {"number": "12.5", "unit": "mm"}


def test_each_lesion_of_the_mask_is_asked_about(qtbot, form):
    form.set_facts(CaseFacts((LesionFacts("1"), LesionFacts("2"))))
    assert form.findChild(QLineEdit, "review_answer_note_2") is not None


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
