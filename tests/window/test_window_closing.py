"""Closing by the window's frame asks first; reading mode and views end only after the answer."""

import numpy as np
import pytest
from napari._qt.dialogs.confirm_close_dialog import ConfirmCloseDialog
from napari.settings import get_settings
from qtpy.QtCore import QTimer
from qtpy.QtGui import QCloseEvent
from qtpy.QtWidgets import QApplication


class FrameClose(QCloseEvent):
    """A close by the frame of the window; Qt marks only its own events as spontaneous."""

    def spontaneous(self):
        return True


@pytest.fixture
def asking(monkeypatch):
    """Let napari ask before it closes a window."""
    monkeypatch.setattr(get_settings().application, "confirm_close_window", True)


def test_cancel_changes_nothing(qtbot, docked, window, asking):
    main = docked.window()
    window.add_image(np.zeros((4, 4)))
    docked.reading.enter()
    closed, asked = [], []
    docked.on_close.append(lambda: closed.append(1))

    def cancel():
        for widget in QApplication.topLevelWidgets():
            if isinstance(widget, ConfirmCloseDialog) and widget.isVisible():
                asked.append(docked.reading.is_on)
                widget.reject()

    timer = QTimer()
    timer.timeout.connect(cancel)
    timer.start(50)
    QApplication.sendEvent(main, FrameClose())
    qtbot.waitUntil(lambda: bool(asked))
    timer.stop()
    qtbot.wait(100)
    assert asked == [True]  # asked while the window was still as it is read in
    assert (docked.reading.is_on, main.isVisible(), closed) == (True, True, [])
