"""What is done in any window of this program: presses, keys, moves of the mouse."""

from contextlib import suppress
from typing import Any, Final

from qtpy.QtCore import QEvent, QObject, QPoint, Signal
from qtpy.QtGui import QGuiApplication, QWindow

_PRESSES: Final = frozenset({QEvent.Type.MouseButtonPress, QEvent.Type.MouseButtonDblClick})
_INPUTS: Final = _PRESSES | {QEvent.Type.KeyPress, QEvent.Type.MouseMove, QEvent.Type.Wheel}


class InputWatch(QObject):
    """Tells of each input to a window of this program, from `begin` to `end`.

    `acted` tells of all of them, `pressed` where on the screen a button of the mouse went down.

    The windows are asked, never the application: that hands the events of all objects to its
    filters, those of controls that are being made or taken apart too, and a filter that has lost
    its own parts by then ends the program.
    """

    acted = Signal()
    pressed = Signal(QPoint)
    key_pressed = Signal()

    def begin(self) -> None:
        """Listen to the windows that are there, and to each that gets the keyboard."""
        application: Any = QGuiApplication.instance()
        for window in application.topLevelWindows():
            self._follow_window(window)
        application.focusWindowChanged.connect(self._follow_window)

    def end(self) -> None:
        """Listen no more."""
        application: Any = QGuiApplication.instance()
        application.focusWindowChanged.disconnect(self._follow_window)
        for window in application.topLevelWindows():
            with suppress(RuntimeError):
                window.removeEventFilter(self)

    def eventFilter(self, _window: QObject, event: Any) -> bool:
        """Tell of an input; it goes where it was meant to."""
        kind = event.type()
        if kind in _INPUTS:
            self.acted.emit()
        if kind in _PRESSES:
            self.pressed.emit(event.globalPosition().toPoint())
        elif kind == QEvent.Type.KeyPress:
            self.key_pressed.emit()
        return False

    def _follow_window(self, window: QWindow | None) -> None:
        if window is not None:
            # a collection of garbage may take a window apart while those before it are asked
            with suppress(RuntimeError):
                window.installEventFilter(self)
