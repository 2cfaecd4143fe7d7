import logging

import pytest
from napari.utils.notifications import notification_manager

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.progress import Cancelled
from napari_mamamia.widgets.base.notify import (
    Failed,
    Finished,
    Level,
    Notifier,
    Stopped,
    outcome_of,
    plain_text,
)


def _raise(error):
    raise error


@pytest.fixture
def said(qtbot):
    notifier = Notifier()
    heard = []
    notifier.said.connect(lambda level, text: heard.append((level, text)))
    return notifier, heard


def test_an_error_of_ours_is_shown_as_it_is():
    assert plain_text(CaseError("phase 3 is missing")) == "phase 3 is missing"


def test_an_unexpected_error_says_that_the_work_is_kept_and_shows_no_traceback():
    text = plain_text(IndexError("list index out of range"))
    assert "your work is kept" in text
    assert "Traceback" not in text


def test_too_little_memory_is_said_in_plain_words():
    assert "not enough memory" in plain_text(MemoryError())


def test_a_refusal_is_notified_once_and_logged_in_a_line(said, caplog):
    notifier, heard = said
    before = len(notification_manager.records)
    try:
        _raise(CaseError("phase 3 is missing"))
    except CaseError as error:
        with caplog.at_level(logging.ERROR):
            notifier.fail("Opening A_1", error)
    assert heard == [(Level.ERROR, "Opening A_1 failed: phase 3 is missing")]
    assert len(notification_manager.records) == before + 1
    assert "Opening A_1 failed: phase 3 is missing" in caplog.text
    assert "Traceback" not in caplog.text


def test_what_nobody_foresaw_is_logged_with_its_traceback(said, caplog):
    try:
        _raise(IndexError("list index out of range"))
    except IndexError as error:
        said[0].fail("Opening A_1", error)
    assert "Traceback" in caplog.text


def test_a_hint_is_not_a_notification(said):
    notifier, heard = said
    before = len(notification_manager.records)
    notifier.hint("This is the last case of the list.")
    assert heard == [(Level.HINT, "This is the last case of the list.")]
    assert len(notification_manager.records) == before


def test_the_three_outcomes_are_told_apart():
    assert outcome_of(lambda: 3) == Finished(3)
    assert outcome_of(lambda: _raise(Cancelled())) == Stopped()
    assert isinstance(outcome_of(lambda: _raise(ValueError("x"))), Failed)
