"""Inputs are heard from the windows, and nothing of ours listens to the whole application."""

import os
import subprocess
import sys

import pytest
from qtpy.QtCore import QEvent, QObject, QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QWidget

from napari_mamamia.features.review.widgets.study_case import ActiveClock
from napari_mamamia.widgets.base.notify import Level
from napari_mamamia.widgets.controls.inputs import InputWatch

LEFT = Qt.MouseButton.LeftButton
DYING = """
import gc
from qtpy.QtWidgets import QApplication, QLabel, QVBoxLayout, QWidget
application = QApplication([])
from napari_mamamia.widgets.base.message_place import MessagePlace
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
