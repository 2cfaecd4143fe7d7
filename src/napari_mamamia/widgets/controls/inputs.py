"""User input in any window of this program: mouse presses, keys, mouse moves."""

from contextlib import suppress
from typing import Any, Final

from qtpy.QtCore import QEvent, QObject, QPoint, Signal
from qtpy.QtGui import QGuiApplication, QWindow

_PRESSES: Final = frozenset({QEvent.Type.MouseButtonPress, QEvent.Type.MouseButtonDblClick})
_INPUTS: Final = _PRESSES | {QEvent.Type.KeyPress, QEvent.Type.MouseMove, QEvent.Type.Wheel}


class InputWatch(QObject):
    """Reports each input to a window of this program between `begin` and `end`.

    The signal `acted` is emitted for every input, `pressed` for mouse presses, with the screen
    position.

    The event filter is installed on windows, never on the application. An application passes the
    events of all objects to its filters, even of controls that are being created or deleted, and a
    partly deleted filter would crash the program.
    """

    acted = Signal()
    pressed = Signal(QPoint)
    key_pressed = Signal()

    def begin(self) -> None:
        """Watch the existing windows, and each window that gets the keyboard focus later."""
        application: Any = QGuiApplication.instance()
        for window in application.topLevelWindows():
            self._follow_window(window)
        application.focusWindowChanged.connect(self._follow_window)

    def end(self) -> None:
        """Stop watching."""
        application: Any = QGuiApplication.instance()
        application.focusWindowChanged.disconnect(self._follow_window)
        for window in application.topLevelWindows():
            with suppress(RuntimeError):
                window.removeEventFilter(self)

    def eventFilter(self, _window: QObject, event: Any) -> bool:
        """Report an input and let Qt process it as usual."""
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
            # garbage collection may delete a window while others are visited
            with suppress(RuntimeError):
                window.installEventFilter(self)
