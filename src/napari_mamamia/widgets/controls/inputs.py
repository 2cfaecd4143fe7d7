"""User input in any window of this program: mouse presses, keys and mouse moves.

`PressGuard` and `TypingGuard` block input that was not meant for a control.
"""

from contextlib import suppress
from typing import Any, Final

from qtpy.QtCore import QEvent, QObject, QPoint, Signal
from qtpy.QtGui import QGuiApplication, QWindow
from qtpy.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QTextEdit,
    QWidget,
)

_PRESSES: Final = frozenset({QEvent.Type.MouseButtonPress, QEvent.Type.MouseButtonDblClick})
_INPUTS: Final = _PRESSES | {QEvent.Type.KeyPress, QEvent.Type.MouseMove, QEvent.Type.Wheel}


class InputWatch(QObject):
    """A watcher that reports all input to windows of this program between `begin` and `end`.

    The signal `acted` is emitted for every input, and `pressed`, with the screen position, for
    mouse presses.

    The event filter is installed on windows, never on the application. An application passes the
    events of all objects to its filters, including controls that are being created or deleted, and
    a partly deleted filter would crash the program.
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
        with suppress(TypeError):  # Already ended by a close that was refused.
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
            # Garbage collection may delete a window while others are visited.
            with suppress(RuntimeError):
                window.installEventFilter(self)


_FIELDS: Final = (QLineEdit, QPlainTextEdit, QTextEdit, QAbstractSpinBox)
_CONTROLS: Final = (QAbstractButton, QComboBox, QAbstractItemView, QAbstractSlider, *_FIELDS)
_SHAKE: Final = 4
"""Largest movement in pixels between the clicks of a double-click that counts as no movement."""
_KEYS: Final = frozenset({QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress})


def is_typing() -> bool:
    """Return whether a text field has the keyboard focus."""
    field = QApplication.focusWidget()
    return isinstance(field, _FIELDS) or (isinstance(field, QComboBox) and field.isEditable())


class PressGuard(InputWatch):
    """A filter that ignores mouse presses on a control that appeared under the resting pointer.

    When a page changes, other controls appear under the pointer. Such a control accepts a press
    only after the pointer has moved, so the second click of a double-click has no effect. Menus,
    dialogs and the image are not guarded.

    Parameters
    ----------
    rooms
        The widgets whose controls are guarded.
    """

    def __init__(self, *rooms: QWidget) -> None:
        super().__init__(rooms[0])
        self._rooms = rooms
        self._aimed_at: QWidget | None = None
        self._place = QPoint()
        self._is_aimed = self._ignores_release = False

    def eventFilter(self, _window: QObject, event: Any) -> bool:
        """Remember the control under the moving pointer; ignore a press on another control."""
        kind, kinds = event.type(), QEvent.Type
        if kind == kinds.MouseMove:
            self._follow_pointer(event.globalPosition().toPoint())
        elif kind == kinds.Wheel:
            self._is_aimed = False  # Scrolling moves the controls on purpose.
        elif kind in _PRESSES:
            control = self._find_control(event.globalPosition().toPoint())
            is_other = control is not None and control is not self._aimed_at
            self._ignores_release = self._is_aimed and is_other
            if not self._ignores_release:
                self._aimed_at, self._is_aimed = control, True
            return self._ignores_release
        elif kind == kinds.MouseButtonRelease and self._ignores_release:
            self._ignores_release = False
            return True
        return False

    def _follow_pointer(self, place: QPoint) -> None:
        control = self._find_control(place)
        if control is not None and control is not self._aimed_at and self._is_aimed:
            appeared = control.rect().contains(control.mapFromGlobal(self._place))
            if appeared and (place - self._place).manhattanLength() < _SHAKE:
                return
        self._aimed_at, self._place, self._is_aimed = control, place, True

    def _find_control(self, place: QPoint) -> QWidget | None:
        widget = QApplication.widgetAt(place)
        while widget is not None and not isinstance(widget, _CONTROLS):
            widget = widget.parentWidget()
        is_guarded = widget is not None and any(room.isAncestorOf(widget) for room in self._rooms)
        return widget if is_guarded else None


class TypingGuard(InputWatch):
    """A filter that blocks shortcuts while the text field in use is disabled.

    A page disables its controls while a case loads. The field gets the keyboard focus back when it
    is enabled; until then, keys have no effect. A mouse press ends this state.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._field: QWidget | None = None
        application: Any = QApplication.instance()
        application.focusChanged.connect(self._follow_focus)

    def eventFilter(self, _window: QObject, event: Any) -> bool:
        """Pass a key to the waiting field, or ignore the key while the field is disabled."""
        kind, field = event.type(), self._field
        if kind in _PRESSES:
            self._field = None
        if field is None or kind not in _KEYS:
            return False
        with suppress(RuntimeError):  # The field may have been deleted.
            if field.isVisible() and not field.isEnabled():
                event.accept()
                return True
            if field.isVisible():
                field.setFocus()
        self._field = None
        return False

    def _follow_focus(self, before: QWidget | None, _now: QWidget | None) -> None:
        with suppress(RuntimeError):
            if isinstance(before, _FIELDS) and before.isVisible() and not before.isEnabled():
                self._field = before
