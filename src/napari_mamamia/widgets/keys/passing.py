"""Make the shortcuts in the table work wherever the keyboard focus is, except in text fields."""

from typing import Final

from qtpy.QtCore import QEvent, QObject, Qt
from qtpy.QtGui import QKeyEvent
from qtpy.QtWidgets import QAbstractItemView, QAbstractSlider, QApplication, QComboBox, QWidget

from napari_mamamia.widgets.keys.key_choice import KeyChoice
from napari_mamamia.widgets.keys.panel import shown_key

_TAKERS: Final = (QComboBox, QAbstractSlider, QAbstractItemView)
"""Widgets that would use a letter to choose an item, or a key to scroll."""
_OF_LISTS: Final = (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown, Qt.Key.Key_Home, Qt.Key.Key_End)
_OF_CONTROLS: Final = (Qt.Key.Key_Space, Qt.Key.Key_Up, Qt.Key.Key_Down)


class KeyPassing(QObject):
    """An event filter that keeps shortcuts in the table from the focused widget below `roots`.

    A combo box keeps the focus after a click and would use the next key itself. Pressing `I` for
    the MIP would then set the shape of a mass to irregular. Open lists and text fields receive all
    keys.
    """

    def __init__(self, keys: KeyChoice, *roots: QWidget) -> None:
        super().__init__(roots[0])
        self._keys = keys
        self._roots = roots
        self._watched: QWidget | None = None
        application = QApplication.instance()
        if isinstance(application, QApplication):
            application.focusChanged.connect(self._follow_focus)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Pass a letter, a symbol or a shortcut in the table to the window."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            is_lists = isinstance(watched, QAbstractItemView) and event.key() in _OF_LISTS
            if not is_lists and event.key() not in _OF_CONTROLS and self._is_windows(event):
                event.ignore()
                return True
        return False

    def _is_windows(self, event: QKeyEvent) -> bool:
        text = event.text()
        return (bool(text) and text.isprintable()) or self._keys.has(shown_key(event))

    def _follow_focus(self, _before: QWidget | None, now: QWidget | None) -> None:
        if self._watched is not None:
            self._watched.removeEventFilter(self)
            self._watched.destroyed.disconnect(self._forget_control)
            self._watched = None
        is_written_in = isinstance(now, QComboBox) and now.isEditable()
        is_taker = isinstance(now, _TAKERS) and not is_written_in
        if now is not None and is_taker and any(root.isAncestorOf(now) for root in self._roots):
            self._watched = now
            now.installEventFilter(self)
            now.destroyed.connect(self._forget_control)

    def _forget_control(self) -> None:
        self._watched = None
