"""Where the window goes on its screen: the second of two, a small one; names that have no room."""

from types import SimpleNamespace

import pytest
from qtpy.QtCore import QRect, Qt
from qtpy.QtWidgets import QMainWindow, QWidget

from napari_mamamia.widgets.controls.short_texts import NameLabel
from napari_mamamia.widgets.dock import docking
from napari_mamamia.widgets.dock.docking import (
    find_first_place,
    find_screen_room,
    fit_window,
    say_too_small,
)


class _Screen:
    def __init__(self, room):
        self._room = room

    def availableGeometry(self):
        return self._room


class _Window(QMainWindow):
    """A window that says it is on a screen which this computer has not."""

    def __init__(self, room):
        super().__init__()
        self._screen = _Screen(room)

    def screen(self):
        return self._screen


@pytest.fixture(autouse=True)
def _no_screen_here(monkeypatch):
    """Nothing lies on a screen of this computer, so that what a window says counts."""
    monkeypatch.setattr(docking, "QGuiApplication", SimpleNamespace(screenAt=lambda _place: None))


@pytest.mark.parametrize("room", [QRect(1920, 120, 2560, 1400), QRect(-1280, 0, 1280, 700)])
def test_a_first_window_is_in_the_middle_of_its_own_screen_and_within_it(qtbot, room):
    window = _Window(room)
    qtbot.addWidget(window)
    place = find_first_place(window)
    assert room.contains(place)
    assert abs(place.center().x() - room.center().x()) <= 1
    assert place.width() == min(1600, round(0.92 * room.width()))


@pytest.mark.parametrize("width", [1280, 1000])
def test_a_window_comes_into_the_second_screen(qtbot, width):
    room = QRect(1920, 0, width, 640)
    window = _Window(room)
    qtbot.addWidget(window)
    window.setCentralWidget(QWidget())
    window.setGeometry(100, 50, 1500, 900)
    window.show()
    fit_window(window, 700)
    assert window.width() <= room.width()
    assert window.height() <= room.height()
    assert window.geometry().left() >= room.left()


@pytest.mark.parametrize(
    ("room", "size", "said"),
    [
        ((1920, 1080), (1024, 600), ""),
        ((1920, 1080), (1023, 700), "needs 1024 x 600 pixels, but has 1023 x 700"),
        ((1920, 1080), (1200, 500), "needs 1024 x 600 pixels, but has 1200 x 500"),
        ((1024, 600), (942, 540), ""),  # as a first window has it on the least screen
        ((1024, 600), (800, 540), "but has 800 x 540"),
    ],
)
def test_a_window_made_too_small_says_what_it_needs(qtbot, room, size, said):
    window = _Window(QRect(0, 0, *room))
    qtbot.addWidget(window)
    window.resize(*size)
    assert say_too_small(window) == "" if not said else said in say_too_small(window)


def test_the_screen_is_the_one_on_which_the_middle_of_a_window_lies(qtbot, monkeypatch):
    """Qt says the first one still where napari has just put its window on another."""
    first, second = QRect(0, 0, 1920, 1080), QRect(1920, 0, 1280, 720)
    screens = SimpleNamespace(
        screenAt=lambda place: next(_Screen(one) for one in (first, second) if one.contains(place))
    )
    monkeypatch.setattr(docking, "QGuiApplication", screens)
    window = _Window(first)
    qtbot.addWidget(window)
    window.setGeometry(1900, 40, 1100, 640)
    assert find_screen_room(window) == second


def test_a_long_name_keeps_its_beginning_and_its_end(qtbot):
    name = NameLabel()
    qtbot.addWidget(name)
    name.setText("A_very_long_name_of_a_case_that_ends_in_0042")
    assert name.minimumSizeHint().width() < name.sizeHint().width() / 3
    name.resize(name.sizeHint().width() // 2, name.sizeHint().height())
    whole = NameLabel()
    qtbot.addWidget(whole)
    whole.resize(name.size())
    whole.setText(
        name.fontMetrics().elidedText(
            name.text(), Qt.TextElideMode.ElideMiddle, name.contentsRect().width()
        )
    )
    assert whole.text().startswith("A_v")
    assert whole.text().endswith("42")
    assert name.grab().toImage() == whole.grab().toImage()
