"""The panel for `?`: the plugin's shortcuts, which can be changed by a click, and napari's keys."""

from collections.abc import Sequence
from typing import Any, Final

from qtpy.QtCore import QEvent, Qt, Signal
from qtpy.QtGui import QKeySequence
from qtpy.QtWidgets import QGridLayout, QPushButton, QSizePolicy, QWidget

from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.base.keys import KEYS, MOUSE_LINES, NAPARI_KEYS, Key
from napari_mamamia.widgets.controls.controls import (
    button,
    call_by,
    fill_column,
    heading,
    label,
    named,
    row,
    set_level,
)
from napari_mamamia.widgets.controls.page_area import PageArea

# A button that shows a key; once it is pressed, the next key becomes the action's key.

_NAMES: Final = {"Return": tr("Enter"), "PgUp": tr("PageUp"), "PgDown": tr("PageDown")} | {
    "Ins": tr("Insert"),
    "Del": tr("Delete"),
}
_MODIFIERS: Final = (
    Qt.Key.Key_Shift,
    Qt.Key.Key_Control,
    Qt.Key.Key_Alt,
    Qt.Key.Key_Meta,
    Qt.Key.Key_AltGr,
)


def shown_key(event: Any) -> str:
    """Return the displayed name of a key press, such as "Shift+Q", or "" for a modifier alone."""
    if event.key() in _MODIFIERS:
        return ""
    name = QKeySequence(event.key()).toString()
    name = _NAMES.get(name, name)
    held = event.modifiers()
    parts = ["Ctrl"] if held & Qt.KeyboardModifier.ControlModifier else []
    parts += ["Alt"] if held & Qt.KeyboardModifier.AltModifier else []
    # Shift is needed to type most symbols, and is part of them.
    is_sign = len(name) == 1 and not name.isalpha()
    if held & Qt.KeyboardModifier.ShiftModifier and not is_sign:
        parts.append("Shift")
    return "+".join((*parts, name))


class KeyButton(QPushButton):
    """A button that shows the key of an action; `key_given` carries the action and the new key."""

    key_given = Signal(str, str)

    def __init__(self, action: str, text: str) -> None:
        self._action = action
        self._shown = ""
        self._waits = False
        super().__init__()
        named(
            self,
            f"key_{action}",
            tr("{words}: click, then press the new key; Esc cancels", words=text),
        )
        call_by(self, tr("key for {replace}", replace=action.replace("_", " ")))
        self.clicked.connect(self._wait_for_key)

    def show_key(self, shown: str) -> None:
        """Show the key of the button's action."""
        self._shown, self._waits = shown, False
        self.setText(shown)

    def _wait_for_key(self) -> None:
        self._waits = True
        self.setText(tr("press a key…"))
        self.setFocus()

    def event(self, event: QEvent) -> bool:
        """Handle keys before the window's shortcuts while waiting for a new key."""
        if self._waits and event.type() == QEvent.Type.ShortcutOverride:
            event.accept()
            return True
        return bool(super().event(event))

    def keyPressEvent(self, event: Any) -> None:
        """Assign the pressed key."""
        if not self._waits:
            super().keyPressEvent(event)
            return
        event.accept()
        key_name = shown_key(event)
        if not key_name:
            return
        self.show_key(self._shown)
        if event.key() != Qt.Key.Key_Escape:
            self.key_given.emit(self._action, key_name)

    def focusOutEvent(self, event: Any) -> None:
        """Stop waiting for a key when the button loses the focus."""
        if self._waits:
            self.show_key(self._shown)
        super().focusOutEvent(event)


_HINT = tr("Click a key in the table, then press the new key.")
_PAGES = tr(
    "Keys for the Refine page work only while that page is shown. On other pages, only the two "
    "keys that open the Refine page work. A tool is turned off when you leave its page."
)


class KeysPanel(QWidget):
    """The shortcut panel.

    The signal `closed` requests the previous page; `key_wanted` carries a new key.
    """

    closed = Signal()
    key_wanted = Signal(str, str)
    reset_wanted = Signal()

    def __init__(self, keys: Sequence[Key] = KEYS) -> None:
        super().__init__()
        self.setObjectName("keys_panel")
        self.hint = label("keys_hint", _HINT, tr("How to change a key, or why it was not changed."))
        set_level(self.hint, "hint")
        content = QWidget()
        fill_column(
            content,
            heading(tr("Keys")),
            self.hint,
            label("keys_pages", _PAGES, tr("Where the keys for the Refine page work.")),
            self._make_table(keys),
            heading(tr("Mouse actions while a tool is on")),
            label("keys_mouse", _format_table(MOUSE_LINES), tr("Mouse actions of the tools.")),
            heading(tr("napari's own keys while no tool is on")),
            label("keys_napari", _format_table(NAPARI_KEYS), tr("napari's keys.")),
            0,
        )
        area = PageArea(content, "keys_area", is_part=True)
        fill_column(self, area, self._make_buttons())
        self.show_keys(keys)

    def show_keys(self, keys: Sequence[Key]) -> None:
        """Show the current shortcuts."""
        for key in keys:
            self.buttons[key.action].show_key(key.shown)

    def show_refused(self, reason: str) -> None:
        """Show why a shortcut was not changed; "" hides the text."""
        self.hint.setText(tr("Not changed: {reason}.", reason=reason) if reason else _HINT)
        set_level(self.hint, "warning" if reason else "hint")

    def _make_table(self, keys: Sequence[Key]) -> QWidget:
        table, grid = QWidget(), QGridLayout()
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(2)
        grid.setColumnStretch(1, 1)
        self.buttons: dict[str, KeyButton] = {}
        for index, key in enumerate(keys):
            control = KeyButton(key.action, key.text)
            control.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
            control.setEnabled(not key.by_qt)
            control.key_given.connect(self.key_wanted)
            self.buttons[key.action] = control
            text = key.text + (" (held)" if key.held else "")
            grid.addWidget(control, index, 0)
            grid.addWidget(label(f"key_text_{key.action}", text, text), index, 1)
        table.setLayout(grid)
        return table

    def _make_buttons(self) -> QWidget:
        back = button(
            "keys_close", tr("Back"), tr("Goes back to the previous page."), self.closed.emit
        )
        reset = button(
            "keys_reset",
            tr("Reset all keys"),
            tr("Restores the default key of every action."),
            self._reset_keys,
        )
        return row(back, 1, reset)

    def _reset_keys(self) -> None:
        self.reset_wanted.emit()


def _format_table(lines: Sequence[tuple[str, str]]) -> str:
    cells = "".join(
        f"<tr><td><b>{key}</b>&nbsp;&nbsp;&nbsp;</td><td>{text}</td></tr>" for key, text in lines
    )
    return f"<table cellspacing='2'>{cells}</table>"
