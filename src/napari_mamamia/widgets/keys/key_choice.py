"""User-defined shortcuts, which are bound at once, saved, and rejected if the key is taken."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QWidget

from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.base.keys import KEYS, RETIRED, Key, bind_keys, unbind_keys
from napari_mamamia.widgets.controls.controls import refresh_accessible_text
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

# The user's own keys replace those of the table; a key that is taken is refused.

_LONG_NAMES: Final = frozenset(
    {"Enter", "Space", "Tab", "Home", "End", "PageUp", "PageDown", "Insert", "Delete", "Backspace"}
    | {f"F{number}" for number in range(1, 13)}
)
_NAPARIS: Final = frozenset("1234567890CEFLMPVXZB-=[]") | {
    "Left",
    "Right",
    "Up",
    "Down",
    *(f"Control-{letter}" for letter in "EGRTYSCVXAZ"),
}
"""Keys that napari uses on the viewer, on labels, on images, or in its menus."""


def remapped(
    changes: Sequence[tuple[str, str]], keys: Sequence[Key] = KEYS
) -> tuple[tuple[Key, ...], tuple[str, ...]]:
    """Return the table with the user's shortcuts, and why some of these shortcuts were rejected.

    Parameters
    ----------
    changes
        (action, key) pairs, such as ``("smartpaint", "Shift+Q")``; retired actions are ignored.

    Returns
    -------
    tuple
        The table, in which a rejected change leaves the key unchanged, and a sentence for each
        rejected change: the action is unknown, the text is not a key, or the key is taken.

    Examples
    --------
    >>> table, refused = remapped([("smartpaint", "W")])
    >>> refused[0]
    "the key W for 'smartpaint' is already assigned to 'other_action': choose a different key"
    """
    table = {key.action: key for key in keys}
    refused = []
    for action, key_name in changes:
        if action in RETIRED:
            continue
        problem = _problem_of(action, key_name, table)
        if problem:
            refused.append(problem)
        else:
            table[action] = replace(table[action], binding=_make_binding(key_name), shown=key_name)
    return tuple(table.values()), tuple(refused)


def _problem_of(action: str, shown: str, table: Mapping[str, Key]) -> str:
    if action not in table:
        return tr(
            "the action {action!r}, to which the key {shown} is assigned, does not exist: choose "
            "an action from the table",
            action=action,
            shown=shown,
        )
    if not _is_key(shown):
        return tr(
            "{shown!r} for {action!r} is not a key: write, for example, Q, Shift+Q or Ctrl+Enter",
            shown=shown,
            action=action,
        )
    for other in table.values():
        if other.action != action and other.binding == _make_binding(shown):
            return tr(
                "the key {shown} for {action!r} is already assigned to {action_2!r}: choose a "
                "different key",
                shown=shown,
                action=action,
                action_2=other.action,
            )
    if _make_binding(shown) in _NAPARIS:
        return tr(
            "the key {shown} for {action!r} is reserved by napari: choose a different key",
            shown=shown,
            action=action,
        )
    return ""


def _make_binding(shown: str) -> str:
    return shown.replace("Ctrl+", "Control-").replace("Shift+", "Shift-").replace("Alt+", "Alt-")


def _is_key(shown: str) -> bool:
    *modifiers, last = _make_binding(shown).split("-") if shown != "-" else ("-",)
    is_single_key = len(last) == 1 or last in _LONG_NAMES
    return bool(last) and is_single_key and set(modifiers) <= {"Control", "Shift", "Alt"}


def retitled(tip: str, shown: Mapping[str, str]) -> str:
    """Return a tooltip in which the key is replaced with its value in `shown`.

    Examples
    --------
    >>> retitled("Undoes the last step  (key Ctrl+Z)", {"Ctrl+Z": "U"})
    'Undoes the last step  (key U)'
    """
    return re.sub(r"\(key ([^)]+)\)", lambda m: tr("(key {get})", get=shown.get(m[1], m[1])), tip)


class KeyChoice(WindowPart):
    """A holder of the current table of shortcuts; `changed` carries the table after a change.

    `elsewhere` lists widgets outside the dock whose tooltips name keys. The signal `refused`
    carries the reason why a change was rejected, or "" if the change was accepted.
    """

    changed = Signal(object)
    refused = Signal(str)

    def __init__(self, context: WindowContext, dock: QWidget) -> None:
        super().__init__(context)
        self._viewer = self._scene.viewer
        self._dock = dock
        self.elsewhere: list[QWidget] = []
        self._actions: Mapping[str, Callable[..., object]] = {}
        self._own = self._services.load_preferences().keys
        self.keys, self.refused_at_start = remapped(self._own)

    def bind(self, actions: Mapping[str, Callable[..., object]]) -> None:
        """Bind every shortcut in the table, and show the keys in the tooltips."""
        self._actions = actions
        bind_keys(self._viewer, self._dock, actions, self.keys)
        self._retitle_tips(KEYS, self.keys, (self._dock, *self.elsewhere))
        for refused in self.refused_at_start:
            self._notifier.warn(tr("Keys not used: {refused}", refused=refused))

    def has(self, shown: str) -> bool:
        """Return whether a key, such as "Shift+Q", is in the current table."""
        return any(key.binding == _make_binding(shown) for key in self.keys)

    def change(self, action: str, shown: str) -> None:
        """Assign a different key to an action, or report why this is not possible."""
        own_keys = tuple(pair for pair in self._own if pair[0] != action)
        default = next((key.shown for key in KEYS if key.action == action), "")
        if shown != default:
            own_keys = (*own_keys, (action, shown))
        table, refused = remapped(own_keys)
        mine = [reason for reason in refused if repr(action) in reason]
        taken = next((k for k in table if k.shown == shown and k.action != action), None)
        if not mine and taken is not None:
            mine = [
                tr(
                    "the key {shown} is used by {action!r}: change the key of that action first",
                    shown=shown,
                    action=taken.action,
                )
            ]
        if mine:
            self.refused.emit(mine[0])
            return
        self._take_table(table, own_keys)

    def rename(self, text: str) -> str:
        """Return a text with the default keys replaced by the current keys."""
        now = {key.action: key.shown for key in self.keys}
        return retitled(text, {key.shown: now[key.action] for key in KEYS})

    def reset(self) -> None:
        """Restore the default key of every action."""
        self._take_table(KEYS, ())

    def name_in(self, page: QWidget) -> None:
        """Show the current keys in the tooltips of a new page."""
        self._retitle_tips(KEYS, self.keys, (page,))

    def _take_table(self, table: Sequence[Key], own: tuple[tuple[str, str], ...]) -> None:
        before, self.keys, self._own = self.keys, tuple(table), own
        unbind_keys(self._viewer, before)
        # No window is passed: with a second shortcut for one key Qt would run neither.
        bind_keys(self._viewer, None, self._actions, self.keys)
        self._retitle_tips(before, self.keys, (self._dock, *self.elsewhere))
        self.refused.emit("")
        self.changed.emit(self.keys)
        self._remember_keys()

    def _remember_keys(self) -> None:
        try:
            preferences = self._services.load_preferences()
            self._services.save_preferences(replace(preferences, keys=self._own))
        except MamamiaError as error:
            self._notifier.warn(tr("Your keys are in use but were not saved: {error}", error=error))

    @staticmethod
    def _retitle_tips(before: Sequence[Key], now: Sequence[Key], roots: Sequence[QWidget]) -> None:
        new = {key.action: key.shown for key in now}
        renamed = {key.shown: new[key.action] for key in before if key.shown != new[key.action]}
        if not renamed:
            return
        for root in roots:
            for widget in root.findChildren(QWidget):
                tip = widget.toolTip()
                if "(key " in tip:
                    widget.setToolTip(retitled(tip, renamed))
                    refresh_accessible_text(widget)
