"""Inputs are heard from the windows, and nothing of ours listens to the whole application."""

import os
import subprocess
import sys

import pytest
from qtpy.QtCore import QEvent, QObject, QPoint, QPointF, Qt
from qtpy.QtGui import QMouseEvent, QWheelEvent
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QLineEdit, QPushButton, QWidget

from napari_mamamia.features.review.widgets.study_case import ActiveClock
from napari_mamamia.widgets.base.notify import Level
from napari_mamamia.widgets.controls.inputs import InputWatch, PressGuard, TypingGuard

LEFT = Qt.MouseButton.LeftButton
DYING = """
import gc
from qtpy.QtWidgets import QApplication, QLabel, QVBoxLayout, QWidget
application = QApplication([])
from napari_mamamia.widgets.base.header import MessagePlace
from napari_mamamia.widgets.controls.controls import column, heading, label

class Panel(QWidget):
    def __init__(self):
        super().__init__()
        self.itself = self  # as a panel is: taken apart by a collection, some time or other
        self.header, self.place = QWidget(), MessagePlace()
        QVBoxLayout(self.header).addWidget(self.place)
        lines = QVBoxLayout(self)
        lines.addWidget(self.header)
        lines.addStretch()
        self.resize(300, 400)

gc.set_threshold(700, 2, 2)
for _ in range(10):
    panel = Panel()
    panel.show()
    application.processEvents()
    panel.place.say("error", "A long message. " * 40)
    application.processEvents()
    assert panel.place.message.isVisible()
    panel.close()
    del panel
    for _ in range(60):
        column(heading("a title"), label("a_text", "text"))
gc.collect()
print("whole")
"""


@pytest.fixture
def window(qtbot):
    made = QWidget()
    qtbot.addWidget(made)
    made.resize(200, 200)
    made.show()
    qtbot.waitExposed(made)
    return made


def test_a_press_a_key_and_a_move_are_told_until_the_end(qtbot, window):
    heard = []
    watch = InputWatch(window)
    watch.pressed.connect(heard.append)
    watch.key_pressed.connect(lambda: heard.append("key"))
    watch.acted.connect(lambda: heard.append("acted"))
    watch.begin()
    handle = window.windowHandle()
    QTest.mousePress(handle, LEFT, pos=QPoint(20, 30))
    assert heard[-2:] == ["acted", window.mapToGlobal(QPoint(20, 30))]
    QTest.mouseRelease(handle, LEFT, pos=QPoint(20, 30))
    QTest.keyClick(handle, Qt.Key.Key_A)
    assert heard[-2:] == ["acted", "key"]
    heard.clear()
    QTest.mouseMove(handle, QPoint(50, 60))
    assert set(heard) == {"acted"}
    watch.end()
    heard.clear()
    QTest.mouseClick(handle, LEFT, pos=QPoint(20, 30))
    assert heard == []


def test_a_window_that_comes_later_is_heard_once_it_has_the_keyboard(qtbot, window):
    heard = []
    watch = InputWatch(window)
    watch.acted.connect(lambda: heard.append("acted"))
    watch.begin()
    later = QWidget()
    qtbot.addWidget(later)
    later.show()
    qtbot.waitExposed(later)
    QApplication.instance().focusWindowChanged.emit(later.windowHandle())
    QTest.keyClick(later.windowHandle(), Qt.Key.Key_A)
    assert "acted" in heard
    watch.end()


def test_nothing_of_ours_listens_to_the_application(qtbot, dock, monkeypatch):
    listening = []
    monkeypatch.setattr(QApplication, "installEventFilter", lambda _app, one: listening.append(one))
    dock.resize(340, 690)
    dock.header.say(Level.ERROR, "A long message. " * 40)
    assert dock.findChild(QObject, "header_message").isVisible()
    clock = ActiveClock(dock)
    clock.begin(0)
    clock.end()
    assert listening == []


def test_an_input_counts_for_the_clock_of_a_study(qtbot, window):
    clock = ActiveClock(window, lambda: True)
    clock.begin(0)
    clock._since_input.invalidate()  # as after half a minute without an input
    assert not clock.is_active
    QTest.mouseClick(window.windowHandle(), LEFT, pos=QPoint(5, 5))
    assert clock.is_active
    clock.begin(3)
    clock.end()
    clock.end()
    assert (clock.seconds, clock.is_active) == (3, False)


def test_a_panel_with_a_long_message_is_taken_apart_while_another_is_made():
    environment = dict(os.environ, MALLOC_PERTURB_="165")
    made = subprocess.run(
        [sys.executable, "-c", DYING], env=environment, capture_output=True, text=True, check=False
    )
    assert (made.returncode, made.stdout.strip()) == (0, "whole"), made.stderr[-2000:]


def test_an_event_that_is_no_input_is_passed_over(window):
    heard = []
    watch = InputWatch(window)
    watch.acted.connect(lambda: heard.append("acted"))
    assert watch.eventFilter(window, QEvent(QEvent.Type.Resize)) is False
    assert heard == []


# ---------------------------------------------------- input that was meant for something else

PLACE = QPoint(60, 60)
NO_KEYS = Qt.KeyboardModifier.NoModifier


@pytest.fixture
def presses(window):
    """Two buttons at the same place of a guarded window, and the names of those pressed."""
    said = []
    window.buttons = []
    for name in ("before", "after"):
        button = QPushButton(name, window)
        button.setGeometry(40, 40, 80, 40)
        button.clicked.connect(lambda _on=False, name=name: said.append(name))
        window.buttons.append(button)
    window.buttons[0].show()
    window.guard = PressGuard(window)
    window.guard.begin()
    yield said
    window.guard.end()


def send(window, kind, place, button=LEFT):
    spot = QPointF(place)
    held = Qt.MouseButton.NoButton if kind == QEvent.Type.MouseButtonRelease else button
    event = QMouseEvent(kind, spot, spot, window.mapToGlobal(spot), button, held, NO_KEYS)
    QApplication.sendEvent(window.windowHandle(), event)


def move(window, place=PLACE):
    send(window, QEvent.Type.MouseMove, place, Qt.MouseButton.NoButton)


def press(window, place=PLACE, kind=QEvent.Type.MouseButtonPress):
    send(window, kind, place)
    send(window, QEvent.Type.MouseButtonRelease, place)


def exchange(window):
    window.buttons[0].hide()
    window.buttons[1].show()
    QApplication.processEvents()


def test_a_control_takes_presses_where_the_pointer_went_to_it(window, presses):
    move(window)
    press(window)
    press(window)
    assert presses == ["before", "before"]


def test_a_control_that_appears_under_the_resting_pointer_takes_no_press(window, presses):
    move(window)
    exchange(window)
    press(window)
    press(window)
    assert presses == []


def test_such_a_control_takes_a_press_after_the_pointer_has_moved(window, presses):
    move(window)
    exchange(window)
    press(window)
    move(window, PLACE + QPoint(1, 0))
    press(window, PLACE + QPoint(1, 0))
    assert presses == []
    move(window, PLACE + QPoint(4, 0))
    press(window, PLACE + QPoint(4, 0))
    assert presses == ["after"]


def test_a_control_takes_a_press_at_its_edge_where_the_pointer_came_from_outside(window, presses):
    move(window, QPoint(39, 60))
    move(window, QPoint(41, 60))
    press(window, QPoint(41, 60))
    assert presses == ["before"]


def test_the_second_click_of_a_double_click_does_not_reach_what_the_first_one_showed(
    window, presses
):
    window.buttons[0].clicked.connect(lambda: exchange(window))
    move(window)
    press(window)
    press(window, PLACE, QEvent.Type.MouseButtonDblClick)
    assert presses == ["before"]


def test_a_control_that_was_scrolled_under_the_pointer_takes_a_press(window, presses):
    move(window)
    spot, turn = QPointF(PLACE), QPoint(0, 120)
    kind, none = Qt.ScrollPhase.NoScrollPhase, Qt.MouseButton.NoButton
    wheel = QWheelEvent(spot, window.mapToGlobal(spot), QPoint(), turn, none, NO_KEYS, kind, False)
    QApplication.sendEvent(window.windowHandle(), wheel)
    exchange(window)
    press(window)
    assert presses == ["after"]


@pytest.fixture
def written(window):
    """A field of a guarded window that is written in, and the keys that reached the window."""
    keys = []
    window.keyPressEvent = lambda event: keys.append(event.text())
    window.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    window.field = QLineEdit(window)
    window.field.show()
    window.guard = TypingGuard(window)
    window.guard.begin()
    window.activateWindow()
    window.field.setFocus()
    yield keys
    window.guard.end()


def type_key(window, key):
    QTest.keyClick(window.windowHandle(), key)
    QApplication.processEvents()


def test_keys_for_a_field_that_is_disabled_meanwhile_reach_nothing_else(qtbot, window, written):
    qtbot.waitUntil(window.field.hasFocus)
    window.field.setEnabled(False)
    type_key(window, Qt.Key.Key_Q)
    assert written == []
    window.field.setEnabled(True)
    type_key(window, Qt.Key.Key_A)
    assert window.field.text() == "a"
    assert written == []


def test_a_press_elsewhere_ends_the_waiting_for_a_field(qtbot, window, written):
    qtbot.waitUntil(window.field.hasFocus)
    window.field.setEnabled(False)
    press(window, QPoint(150, 150))
    type_key(window, Qt.Key.Key_Q)
    assert written == ["q"]
