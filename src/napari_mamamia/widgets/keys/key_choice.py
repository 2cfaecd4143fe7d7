"""The user's own keys, chosen in the table of keys: bound at once, remembered, refused if taken."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from qtpy.QtCore import QObject, Signal
from qtpy.QtWidgets import QWidget

from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.widgets.base.keys import KEYS, Key, bind_keys, unbind_keys
from napari_mamamia.widgets.base.notify import Notifier
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.keys.own_keys import remapped

__all__ = ["KeyChoice", "retitled"]


def retitled(tip: str, shown: Mapping[str, str]) -> str:
    """Return a tooltip in which a key is replaced by the one that `shown` gives for it.

    Examples
    --------
    >>> retitled("Undoes the last step  (key Ctrl+Z)", {"Ctrl+Z": "U"})
    'Undoes the last step  (key U)'
    """
    return re.sub(r"\(key ([^)]+)\)", lambda m: f"(key {shown.get(m[1], m[1])})", tip)


class KeyChoice(QObject):
    """Holds the table of keys as it is now. `changed` carries it when a key was changed.

    `refused` carries a sentence, "" when a change was taken.
    """

    changed = Signal(object)
    refused = Signal(str)

    def __init__(
        self, viewer: Any, dock: QWidget, services: Services, notifier: Notifier, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._viewer = viewer
        self._dock = dock
        self._services = services
        self._notifier = notifier
        self._actions: Mapping[str, Callable[..., object]] = {}
        self._own = services.load_preferences().keys
        self.keys, self.refused_at_start = remapped(self._own)

    def bind(self, actions: Mapping[str, Callable[..., object]]) -> None:
        """Bind every key of the table, and name them in the tooltips."""
        self._actions = actions
        bind_keys(self._viewer, self._dock, actions, self.keys)
        self._retitle(KEYS, self.keys)
        for refused in self.refused_at_start:
            self._notifier.warn(f"Your own keys: {refused}")

    def change(self, action: str, shown: str) -> None:
        """Give an action another key, or say why not."""
        own = tuple(pair for pair in self._own if pair[0] != action)
        default = next((key.shown for key in KEYS if key.action == action), "")
        if shown != default:
            own = (*own, (action, shown))
        table, refused = remapped(own)
        mine = [reason for reason in refused if repr(action) in reason]
        taken = next((k for k in table if k.shown == shown and k.action != action), None)
        if not mine and taken is not None:
            mine = [f"the key {shown} is that of {taken.action!r}: change that one first"]
        if mine:
            self.refused.emit(mine[0])
            return
        self._take(table, own)

    def reset(self) -> None:
        """Give every action the key of the table back."""
        self._take(KEYS, ())

    def _take(self, table: Sequence[Key], own: tuple[tuple[str, str], ...]) -> None:
        before, self.keys, self._own = self.keys, tuple(table), own
        unbind_keys(self._viewer, before)
        bind_keys(self._viewer, None, self._actions, self.keys)
        self._retitle(before, self.keys)
        self.refused.emit("")
        self.changed.emit(self.keys)
        self._remember()

    def _remember(self) -> None:
        try:
            preferences = self._services.load_preferences()
            self._services.save_preferences(replace(preferences, keys=self._own))
        except MamamiaError as error:
            self._notifier.warn(f"Your keys are used now but not remembered: {error}")

    def _retitle(self, before: Sequence[Key], now: Sequence[Key]) -> None:
        """Name the new keys in the tooltips of the dock."""
        new = {key.action: key.shown for key in now}
        shown = {key.shown: new[key.action] for key in before if key.shown != new[key.action]}
        if not shown:
            return
        for widget in self._dock.findChildren(QWidget):
            tip = widget.toolTip()
            if "(key " in tip:
                widget.setToolTip(retitled(tip, shown))
