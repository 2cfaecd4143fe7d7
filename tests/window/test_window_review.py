"""A reader in a study, in the real window: blind, next case, form, accept, the share away."""

import hashlib
import json
import logging
import os
import re
import threading
import time
from contextlib import suppress

import numpy as np
import pytest
from qtpy.QtCore import QAbstractTableModel, Qt
from qtpy.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QComboBox,
    QLabel,
    QTabBar,
    QWidget,
)
from tests.conftest import write_small_data_set

from napari_mamamia.core.blinding import ALL_HIDDEN, STUDY_HIDDEN
from napari_mamamia.core.case import Mask
from napari_mamamia.core.edits import Brush, Tool
from napari_mamamia.core.provenance import Maker, Provenance
from napari_mamamia.features.review.core.review import ReadingMode, StudyPlan
from napari_mamamia.features.review.io import share
from napari_mamamia.features.review.io.store import FolderStore
from napari_mamamia.features.review.io.study_file import Draft
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.services.check_study import verify_study
from napari_mamamia.features.review.services.client import StudyClient
from napari_mamamia.features.review.services.look import load_state
from napari_mamamia.features.review.services.plan_study import (
    StudyPeople,
    draft_study,
    freeze_study,
)
from napari_mamamia.io.data_set.volumes import write_mask
from napari_mamamia.io.files import user_folders
from napari_mamamia.services.case.data_set import open_data_set
from napari_mamamia.services.case.open_case import load_case
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.controls.colours import MASK_COLOURS

pytestmark = pytest.mark.window

QUESTIONS = {
    "name": "Study form",
    "questions": [
        {
            "id": "lesion",
            "text": "Is there a lesion?",
            "kind": "single",
            "terms": [{"id": "yes", "text": "yes"}, {"id": "no", "text": "no"}],
            "required": True,
        },
        {
            "id": "margin",
            "text": "Margin",
            "kind": "single",
            "terms": [
                {"id": "smooth", "text": "circumscribed"},
                {"id": "spic", "text": "spiculated"},
            ],
            "asked_if": [{"field": "lesion", "values": ["yes"]}],
            "required": True,
        },
        {"id": "size", "text": "Largest diameter", "kind": "number", "unit": "mm", "low": 0},
        {
            "id": "shape",
            "text": "Shape",
            "kind": "single",
            "scope": "lesion",
            "terms": [{"id": "oval", "text": "oval"}, {"id": "irr", "text": "irregular"}],
        },
    ],
}


@pytest.fixture
def study(tmp_path, small_data_set):
    """The folder of a blind study of three cases with a form."""
    protocol = tmp_path / "protocol.json"
    protocol.write_text(json.dumps(QUESTIONS))
    plan = StudyPlan("Trial", ReadingMode.ARBITRATION, 2, ALL_HIDDEN, seed=3)
    people = StudyPeople(("Lea Lead",), ("Ana López", "Ben Beck"), ("Jo Judge",))
    draft = draft_study(open_data_set(small_data_set), plan, people, protocol=protocol)
    freeze_study(draft, tmp_path / "STUDY")
    return tmp_path / "STUDY"


def paint_blob(panel):
    """Draw the lesion with one press of the sphere, as the mouse would."""
    panel.editing.live.press((4, 17, 23), Brush(tool=Tool.SPHERE, radius_mm=5.0))
    panel.editing.live.lift()
    panel.editing.mask.stepped.emit()


def test_a_reader_reads_a_case_blind_and_gets_the_next(
    qtbot, docked, study, control, picture, window
):
    panel = docked
    panel.flow("Review").open_study(study)
    page = panel.flow("Review").page
    qtbot.waitUntil(lambda: page.who.count() == 4)
    picture(window, "review-entry")
    page.who.setCurrentText("Ana López")
    control(panel, "review_begin")
    qtbot.waitUntil(lambda: panel.flow("Review").client is not None)
    assert panel.session.blinding == ALL_HIDDEN
    assert "0 of 3 read" in page.reading.left.text()
    picture(window, "review-begun")
    control(panel, "review_next")
    qtbot.waitUntil(lambda: panel.session.case is not None and panel.session.case.is_loaded)
    first = panel.flow("Review").reading.taken
    assert panel.session.case_id == first.case_id
    assert panel.session.reader == "ana-lopez"
    assert Role.REFERENCE not in panel.session.masks
    picture(window, "review-case")
    control(panel, "review_accept")
    assert page.reading.missing.text() == "Missing: Is there a lesion?, a mask"
    picture(window, "review-missing")
    answer = panel.findChild(QComboBox, "review_answer_lesion")
    answer.setCurrentIndex(1)
    answer.activated.emit(1)
    qtbot.waitUntil(lambda: panel.findChild(QComboBox, "review_answer_margin") is not None)
    margin = panel.findChild(QComboBox, "review_answer_margin")
    margin.setCurrentIndex(2)
    margin.activated.emit(2)
    panel.show_page("Refine")
    control(panel, "refine_from_nothing")
    qtbot.waitUntil(lambda: panel.editing.live is not None)
    paint_blob(panel)
    qtbot.waitUntil(lambda: panel.findChild(QWidget, "review_lesion_show_1") is not None)
    away = study.with_name("away")
    study.rename(away)
    picture(window, "review-painted")
    panel.accept_row.accept.click()
    qtbot.waitUntil(lambda: panel.session.case_id not in ("", first.case_id))
    panel.show_page("Review")
    panel.flow("Review").look()
    qtbot.waitUntil(lambda: "wait on this computer" in page.waiting.text())
    picture(window, "review-away")
    away.rename(study)
    panel.flow("Review").look()
    qtbot.waitUntil(lambda: not page.waiting.text())
    assert "1 of 3 read" in page.reading.left.text()
    panel.close_down()
    store = FolderStore(study, study.parent / "other home")
    reading = verify_study(store)
    assert not reading.problems
    assert reading.n_masks == 1


class SilentShare:
    """A study's folder that falls silent: what is sent there waits in the kernel, in a pipe.

    `asked_here` are errands for which the window's own thread would have waited.
    """

    def __init__(self, folder, pipe, monkeypatch):
        self._folder, self._pipe = str(folder.absolute()), pipe
        self._is_silent = threading.Event()
        self.asked_here = []
        os.mkfifo(pipe)
        send, run = share.Share._start_background_task, share._BackgroundTask.run

        def send_watched(door, work, wait_s):
            if threading.current_thread() is threading.main_thread():
                self.asked_here.append(door.place)
            return send(door, work, wait_s)

        def run_silent(background_task):
            if self._is_silent.is_set() and background_task.place == self._folder:
                os.close(os.open(pipe, os.O_RDONLY))
            run(background_task)

        monkeypatch.setattr(share.Share, "_start_background_task", send_watched)
        monkeypatch.setattr(share._BackgroundTask, "run", run_silent)

    def fall_silent(self):
        self._is_silent.set()

    def answer_again(self):
        self._is_silent.clear()
        with suppress(OSError):  # nobody waits there
            os.close(os.open(self._pipe, os.O_WRONLY | os.O_NONBLOCK))


@pytest.fixture
def silent(study, tmp_path, monkeypatch):
    monkeypatch.setattr(share, "ANSWER_S", 0.3)
    made = SilentShare(study, tmp_path / "pipe", monkeypatch)
    yield made
    made.answer_again()


@pytest.mark.night
def test_a_share_that_falls_silent_stops_neither_the_window_nor_the_reader_nor_the_end(
    qtbot, docked, study, silent, control, picture, window, caplog, monkeypatch
):
    panel, page = docked, docked.flow("Review").page
    panel.flow("Review").open_study(study, "Ana López")
    qtbot.waitUntil(lambda: panel.flow("Review").client is not None)
    control(panel, "review_next")
    qtbot.waitUntil(lambda: panel.session.case is not None and panel.session.case.is_loaded)
    first = panel.flow("Review").reading.taken
    panel.show_page("Refine")
    control(panel, "refine_from_nothing")
    qtbot.waitUntil(lambda: panel.editing.live is not None)
    silent.fall_silent()
    paint_blob(panel)
    answer = panel.findChild(QComboBox, "review_answer_lesion")
    answer.setCurrentIndex(2)
    answer.activated.emit(2)
    panel.accept_row.accept.click()
    qtbot.waitUntil(lambda: panel.session.case_id not in ("", first.case_id))
    panel.show_page("Review")
    qtbot.waitUntil(lambda: "wait on this computer" in page.waiting.text())
    picture(window, "review-silent")
    # The last case is closed upon: only what is being asked just now hangs, and for ever.
    silent.answer_again()
    panel.flow("Review").look()
    qtbot.waitUntil(lambda: not page.waiting.text())
    monkeypatch.setattr(share, "ANSWER_S", 60.0)
    second = panel.flow("Review").reading.taken
    answer = panel.findChild(QComboBox, "review_answer_lesion")
    answer.setCurrentIndex(2)
    answer.activated.emit(2)
    silent.fall_silent()
    began = time.monotonic()
    with caplog.at_level(logging.WARNING):
        panel.close_down()
    assert time.monotonic() - began < 30
    leaving, left = (one.getMessage() for one in caplog.records[-2:])
    assert "waiting for its folder to respond" in leaving
    assert "was closed before its folder responded" in left
    assert silent.asked_here == []
    silent.answer_again()
    again = StudyClient(study, "Ana López", user_folders.review_folder())
    assert again.take_next().task == second.task
    assert again.files.read_draft(second.task, second.round).answers["lesion"] == "no"
    (mine,) = [one for _, one in again.session.queue() if one.state is CaseState.READ]
    assert mine.mask in again.store.read().masks
    again.close()
    assert verify_study(FolderStore(study, study.parent / "other home")).problems == ()


def read_all(study, home, who, places, more=(), **answers):
    """Read every case of a reader as a window would, each with a box as its mask.

    A_2 has the boxes `more`, too, and these answers.
    """
    client = StudyClient(study, who, home)
    while (taken := client.take_next()) is not None:
        case = load_case(open_data_set(taken.data_set).data_set.case(taken.case_id))
        mask = np.zeros(case.grid.shape, bool)
        for box in (places[taken.case_id], *(more if taken.case_id == "A_2" else ())):
            mask[box] = True
        said = {"lesion": "yes", **(answers if taken.case_id == "A_2" else {})}
        path = home / f"{taken.case_id}.nii.gz"
        write_mask(Mask(case.grid, mask, Provenance(taken.case_id, Maker.READER, who)), path)
        saved = (path, hashlib.sha256(path.read_bytes()).hexdigest())
        client.hand_in(taken, saved, Draft(said, 60))()
    client.close()


def test_a_blind_reading_ends_on_what_comes_next_and_no_step_is_empty(
    qtbot, docked, study, picture, window, tmp_path
):
    panel, page = docked, docked.flow("Review").page
    read_all(study, tmp_path / "ana", "Ana López", dict.fromkeys(("A_1", "A_2", "B_1"), BLOB))
    panel.flow("Review").open_study(study, "Ana López")
    qtbot.waitUntil(lambda: page.reading.advice.text().startswith("All 3 read"))
    for step in ("mask", "check"):
        panel.step_flow.actions()[step]()
        assert panel.page == "Review"
        assert page.reading.advice.isVisible()
    picture(window, "review-all-read")


BLOB = (slice(3, 6), slice(14, 20), slice(20, 26))
WIDE = (slice(2, 7), slice(12, 22), slice(18, 30))
SPECK = (slice(5, 6), slice(30, 33), slice(40, 43))


@pytest.mark.night
def test_a_judge_sees_both_masks_steps_through_differences_decides_and_signs(
    qtbot, docked, study, control, picture, window, canvas, tmp_path
):
    same = dict.fromkeys(("A_1", "A_2", "B_1"), BLOB)
    anchors = {"1": [[5, 31, 41]], "2": [[3, 15, 21]]}
    of_ana, of_ben = {"shape@1": "oval"}, {"shape@2": "irr", "@lesions": anchors}
    read_all(study, tmp_path / "ana", "Ana López", same, **of_ana)
    read_all(study, tmp_path / "ben", "Ben Beck", same | {"A_2": WIDE}, (SPECK,), **of_ben)
    panel, page = docked, docked.flow("Review").page
    panel.flow("Review").open_study(study, "Jo Judge")
    qtbot.waitUntil(lambda: panel.flow("Review").client is not None)
    view = page.judging
    assert view.queue.item(0).text().startswith("A_2 · Dice 0.")
    assert view.queue.count() == 3
    picture(window, "review-disputes")
    control(panel, "review_take_up")
    qtbot.waitUntil(lambda: panel.scene.layer(Role.READING_B) is not None)
    qtbot.waitUntil(lambda: "1 of" in view.difference.text())
    picture(window, "review-dispute")
    for name in ("review_decide", "review_leave_out", "review_decision_reason"):
        shown = panel.findChild(QWidget, name)
        assert shown.visibleRegion().boundingRect() == shown.rect()  # no part of it is cut
    assert "1 found by both" in view.lesions_told.text()
    lone, both = (view.lesions.item(k).text() for k in (0, 1))
    assert re.fullmatch(r"only Reader [AB]: lesion 1 · \d\.\d\d ml", lone)
    pattern = r"lesion [12] \(Reader A\) = lesion [12] \(Reader B\) · Dice 0\.\d\d; Shape: "
    assert re.search(pattern, both)
    assert {*re.findall("oval|irregular", both)} == {"oval", "irregular"}
    view.lesions.setCurrentRow(0)
    assert panel.scene.viewer.dims.current_step[-3] == 5
    picture(window, "review-lesion")
    names = (view.first.itemText(0), view.second.itemText(1))
    assert names == ("Reader A", "Reader B")
    text = " ".join(one.text() for one in panel.findChildren(QLabel))
    assert "Ana" not in text
    assert "Ben" not in text
    panel.scene.view.go_to((4, 17, 23), centre=False)
    for role in (Role.READING_A, Role.READING_B):
        rgb = [int(MASK_COLOURS[role][k : k + 2], 16) for k in (1, 3, 5)]
        near = np.abs(canvas(window).astype(int) - rgb).max(axis=-1) < 40
        assert near.sum() > 50, role
    assert not panel.findChild(QWidget, "review_staple").isEnabled()
    control(panel, "review_decide")
    assert "reason" in view.note.text()
    control(panel, "review_union")
    qtbot.waitUntil(lambda: Role.REFINED in panel.session.masks)
    view.reason.setText("the rim belongs to it")
    picture(window, "review-union")
    control(panel, "review_decide")
    qtbot.waitUntil(lambda: panel.flow("Review").judging.dispute is None)
    qtbot.waitUntil(lambda: "decided, not signed" in view.queue.item(2).text())
    page.tabs.setCurrentIndex(2)
    qtbot.waitUntil(lambda: page.signing.things.count() == 1)
    assert not page.signing.sign.isEnabled()  # no key yet
    picture(window, "review-key")
    page.signing.new.setText("three small words")
    page.signing.again.setText("three small word")
    control(panel, "review_key_make")
    assert "passphrases differ" in page.signing.note.text()
    page.signing.again.setText("three small words")
    control(panel, "review_key_make")
    qtbot.waitUntil(lambda: page.signing.forgotten.isVisible())
    page.signing.things.setCurrentRow(0)
    picture(window, "review-sign")
    page.signing.passphrase.setText("three small words")
    control(panel, "review_sign")
    message = panel.header.message
    qtbot.waitUntil(lambda: "1 signature kept" in message.text())
    assert page.signing.passphrase.text() == ""
    panel.close_down()
    store = FolderStore(study, tmp_path / "other home")
    found = verify_study(store)
    # the key waits for the lead's word, and nothing else is wrong
    assert [one.kind for one in found.problems] == ["signature"]
    view_of = next(one for one in load_state(store).cases if one.decision is not None)
    assert (view_of.decision.choice, view_of.decision.reason) == ("union", "the rim belongs to it")
    assert view_of.decision.mask in store.read().masks


# ---------------------------------------------------------------- the site hidden

SITES = ("DUKE_001", "ISPY2_002", "NACT_003")
TELLS = re.compile(r"duke(?!_\*)|ispy2|\bnact|_00[123]", re.IGNORECASE)
ROLES = (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole)
WORDS = ("text", "toolTip", "windowTitle", "title", "placeholderText", "whatsThis", "statusTip")
WORDS += ("toPlainText", "accessibleName", "accessibleDescription", "currentMessage", "objectName")


def list_item_texts(view):
    """Yield the texts of a list, table or box."""
    model = view.model()
    for row in range(model.rowCount() if model is not None else 0):
        n_columns = model.columnCount() if isinstance(model, QAbstractTableModel) else 1
        for column in range(n_columns):
            for role in ROLES:
                yield str(model.index(row, column).data(role))


def list_widget_texts(widget):
    for word in WORDS:
        text = getattr(widget, word, None)
        if callable(text):
            with suppress(TypeError):
                yield str(text())
    yield from (f"{action.text()} {action.toolTip()}" for action in QWidget.actions(widget))
    if isinstance(widget, QTabBar):
        yield from (widget.tabText(at) for at in range(widget.count()))
    if isinstance(widget, QAbstractItemView | QComboBox):
        yield from list_item_texts(widget)


def list_texts(viewer):
    """Yield every text that the program's windows hold, shown or not, with where it stands."""
    for widget in QApplication.allWidgets():
        where = f"{type(widget).__name__} {widget.objectName()}"
        yield from ((where, text) for text in list_widget_texts(widget))
    yield "viewer", f"{viewer.title} {viewer.status} {viewer.help}"
    yield "text", viewer.canvas.overlays.text.text
    for layer in viewer.layers:
        yield "layer", f"{layer.name} {layer.source.path} {layer.metadata}"


def require_no_site(viewer):
    assert [one for one in list_texts(viewer) if TELLS.search(one[1])] == []


@pytest.fixture
def siteless(tmp_path):
    """A study of three sites that hides them, and where its images are."""
    root = write_small_data_set(tmp_path / "images here", SITES)
    plan = StudyPlan("Trial", ReadingMode.ARBITRATION, 2, STUDY_HIDDEN, seed=3)
    people = StudyPeople(("Lea Lead",), ("Ana López", "Ben Beck"), ("Jo Judge",))
    draft = draft_study(open_data_set(root), plan, people)
    freeze_study(draft, tmp_path / "STUDY")
    return tmp_path / "STUDY", root


@pytest.mark.night  # by day features/review/test_review_site.py: a desk knows no id and no site
def test_a_reader_is_told_no_site_in_any_text_of_the_window(
    qtbot, docked, siteless, control, picture, window
):
    study, root = siteless
    panel, page = docked, docked.flow("Review").page
    numbers = {f"case-000{n}" for n in (1, 2, 3)}
    panel.flow("Review").open_study(study, "Ana López")
    qtbot.waitUntil(lambda: panel.flow("Review").client is not None)
    require_no_site(window)
    control(panel, "review_next")
    qtbot.waitUntil(lambda: panel.session.case is not None and panel.session.case.is_loaded)
    first = panel.session.case_id
    assert first in numbers
    assert {one.case_id for one in panel.session.opened.data_set.cases} == numbers
    require_no_site(window)
    for name in ("Cases", "View", "Kinetics", "Refine"):
        panel.show_page(name)
    control(panel, "refine_from_nothing")
    qtbot.waitUntil(lambda: panel.editing.live is not None)
    paint_blob(panel)
    panel.show_page("Cases")
    picture(window, "review-no-site")
    require_no_site(window)
    panel.show_page("Refine")
    panel.accept_row.accept.click()
    qtbot.waitUntil(lambda: panel.session.case_id in numbers - {first})
    assert "1 of 3 read" in page.reading.left.text()
    require_no_site(window)
    # What goes wrong names files, and files have the names of cases.
    third = (numbers - {first, panel.session.case_id}).pop()
    whole = next(
        one for one in panel.flow("Review").client.whole.cases if f"case-{one.key[1:]}" == third
    )
    (root / "images" / whole.case_id / f"{whole.case_id}_0002.nii.gz").unlink()
    said = []
    panel.notifier.said.connect(lambda _level, text: said.append(text))
    panel.opening.open_case(third)
    qtbot.waitUntil(lambda: bool(said))
    picture(window, "review-no-site-error")
    require_no_site(window)
    assert [text for text in said if TELLS.search(text)] == []
    panel.close_down()
    store = FolderStore(study, study.parent / "other home")
    assert {one.kind for one in verify_study(store).problems} == set()
    events = "".join(path.read_text() for path in (study / "events").rglob("*.jsonl"))
    assert TELLS.search(events) is None
