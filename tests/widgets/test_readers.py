"""The remembered reader name in a data set that other people have worked in."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest


@pytest.mark.parametrize(
    ("people", "is_used"),
    [
        ((), True),
        (("Ana",), True),
        (("ana",), True),  # names of folders differ by more than letter case
        (("Ben",), False),
        (("Ana", "Ben"), False),
        (("Ben", "Ana"), False),
    ],
)
def test_a_remembered_name_is_used_unasked_only_where_nobody_else_has_saved_work(
    qtbot, dock, world, people, is_used
):
    services = dock.services.replacing(
        open_data_set=lambda *names, **options: replace(
            world.open_data_set(*names, **options), people=people
        )
    )
    dock.listing._services = services
    assert dock.session.reader == "Ana"
    dock.open_data_set(Path("data"))
    qtbot.waitUntil(lambda: dock.session.opened is not None)
    assert dock.session.opened.people == people
    assert dock.session.reader == ("Ana" if is_used else None)


def test_a_name_given_in_this_window_is_used_in_a_shared_data_set(qtbot, dock, world):
    services = dock.services.replacing(
        open_data_set=lambda *names, **options: replace(
            world.open_data_set(*names, **options), people=("Ana", "Ben")
        )
    )
    dock.listing._services = services
    dock.header.reader_given.emit("Ana")
    dock.open_data_set(Path("data"))
    qtbot.waitUntil(lambda: dock.session.opened is not None)
    assert dock.session.reader == "Ana"


def test_escape_closes_the_question_and_drops_what_waited_for_the_name(qtbot, dock):
    dock.session.set_reader(None)
    dock.header.set_reader(None)
    calls = []
    dock.readers.with_reader(lambda: calls.append("done"))
    field = dock.header.reader_name
    qtbot.waitUntil(field.isVisible)
    QTest.keyClick(field, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: not field.isVisible())
    dock.header.reader_given.emit("Ana")
    qtbot.waitUntil(lambda: dock.session.reader == "Ana")
    assert calls == []


def test_everything_that_is_recorded_while_the_name_is_asked_is_kept(qtbot, dock):
    dock.session.set_reader(None)
    dock.header.set_reader(None)
    calls = []
    for name in ("artefact", "spiculated"):
        dock.readers.record_with_reader(partial(calls.append, name))
    assert calls == []
    dock.header.reader_given.emit("Ana")
    qtbot.waitUntil(lambda: dock.session.reader == "Ana")
    assert calls == ["artefact", "spiculated"]
    dock.readers.record_with_reader(partial(calls.append, "third"))
    assert calls[2:] == ["third"]
