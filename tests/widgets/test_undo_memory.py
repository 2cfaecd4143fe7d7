"""The memory of undo is visible, and its limit is the reader's to set."""

from qtpy.QtWidgets import QComboBox, QLabel


def limit_of(dock):
    return dock.findChild(QComboBox, "refine_undo_limit")


def begin(qtbot, dock):
    dock.show_page("Refine")
    dock.findChild(object, "refine_from_reference").click()
    qtbot.waitUntil(lambda: dock.editing.live is not None)


def test_an_edit_begins_with_the_usual_limit_and_shows_what_undo_holds(qtbot, opened):
    begin(qtbot, opened)
    assert opened.editing.live.history.limit_bytes == 256 * 2**20
    text = opened.findChild(QLabel, "refine_undo_memory").text()
    qtbot.waitUntil(lambda: opened.findChild(QLabel, "refine_undo_memory").text() != "")
    assert text in ("", "undo: 0 MB, limit")


def test_a_limit_that_is_chosen_holds_at_once_and_is_remembered(qtbot, opened):
    begin(qtbot, opened)
    limit_of(opened).setCurrentIndex(limit_of(opened).findText("64 MB"))
    assert opened.editing.live.history.limit_bytes == 64 * 2**20
    assert dict(opened.services.load_preferences().view)["undo_mb"] == "64"


def test_a_limit_chosen_before_an_edit_is_that_of_the_edit(qtbot, opened):
    limit_of(opened).setCurrentIndex(limit_of(opened).findText("1 GB"))
    begin(qtbot, opened)
    qtbot.waitUntil(lambda: opened.editing.live.history.limit_bytes == 2**30)
