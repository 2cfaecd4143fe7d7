"""A button that shows a key; pressed, it takes the next key instead."""

from typing import Any, Final

from qtpy.QtCore import QEvent, Qt, Signal
from qtpy.QtGui import QKeySequence
from qtpy.QtWidgets import QPushButton

from napari_mamamia.widgets.controls.controls import named

__all__ = ["KeyButton", "shown_key"]

_NAMES: Final = {"Return": "Enter", "PgUp": "PageUp", "PgDown": "PageDown"} | {
    "Ins": "Insert",
    "Del": "Delete",
}
_MODIFIERS: Final = (
    Qt.Key.Key_Shift,
    Qt.Key.Key_Control,
    Qt.Key.Key_Alt,
    Qt.Key.Key_Meta,
    Qt.Key.Key_AltGr,
)


def shown_key(event: Any) -> str:
    """Return a key press as people read it, such as "Shift+Q"; "" for a modifier alone."""
    if event.key() in _MODIFIERS:
        return ""
    name = QKeySequence(event.key()).toString()
    name = _NAMES.get(name, name)
    held = event.modifiers()
    parts = ["Ctrl"] if held & Qt.KeyboardModifier.ControlModifier else []
    parts += ["Alt"] if held & Qt.KeyboardModifier.AltModifier else []
    is_sign = len(name) == 1 and not name.isalpha()
    if held & Qt.KeyboardModifier.ShiftModifier and not is_sign:
        parts.append("Shift")
    return "+".join((*parts, name))


class KeyButton(QPushButton):
    """`key_given` carries the action and the key that was pressed, such as "Shift+Q"."""

    key_given = Signal(str, str)

    def __init__(self, action: str, text: str) -> None:
        self._action = action
        self._shown = ""
        self._waits = False
        super().__init__()
        named(self, f"key_{action}", f"{text}: a click, then the key that shall do it; Esc leaves")
        self.clicked.connect(self._wait)

    def show_key(self, shown: str) -> None:
        """Show the action's key."""
        self._shown, self._waits = shown, False
        self.setText(shown)

    def _wait(self) -> None:
        self._waits = True
        self.setText("press a key…")
        self.setFocus()

    def event(self, event: QEvent) -> bool:
        """Take keys before the window's shortcuts do, while one is waited for."""
        if self._waits and event.type() == QEvent.Type.ShortcutOverride:
            event.accept()
            return True
        return bool(super().event(event))

    def keyPressEvent(self, event: Any) -> None:
        """Take the key that was pressed."""
        if not self._waits:
            super().keyPressEvent(event)
            return
        event.accept()
        shown = shown_key(event)
        if not shown:
            return
        self.show_key(self._shown)
        if event.key() != Qt.Key.Key_Escape:
            self.key_given.emit(self._action, shown)

    def focusOutEvent(self, event: Any) -> None:
        """Wait no more where the user goes elsewhere."""
        if self._waits:
            self.show_key(self._shown)
        super().focusOutEvent(event)
