"""The user's own keys in place of those of the table; a key that is taken is refused."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from napari_mamamia.widgets.base.keys import KEYS, Key

__all__ = ["remapped"]

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
"""Keys that napari uses on the viewer, on labels or on images, or in its menus."""


def remapped(
    changes: Sequence[tuple[str, str]], keys: Sequence[Key] = KEYS
) -> tuple[tuple[Key, ...], tuple[str, ...]]:
    """Return the table with the user's own keys, and why some of them were refused.

    Parameters
    ----------
    changes
        (action, key) pairs, such as ``("smartpaint", "Shift+Q")``.

    Returns
    -------
    tuple
        The table, in which a refused change leaves the key as it was, and a sentence for each
        change that was refused: an unknown action, no key, or a key that is taken.

    Examples
    --------
    >>> table, refused = remapped([("smartpaint", "W")])
    >>> refused[0]
    "the key W for 'smartpaint' is already that of 'other_action': choose another key"
    """
    table = {key.action: key for key in keys}
    refused = []
    for action, shown in changes:
        problem = _problem_of(action, shown, table)
        if problem:
            refused.append(problem)
        else:
            table[action] = replace(table[action], binding=_binding(shown), shown=shown)
    return tuple(table.values()), tuple(refused)


def _problem_of(action: str, shown: str, table: Mapping[str, Key]) -> str:
    """Return why a key cannot be taken, "" where it can."""
    if action not in table:
        return f"there is no action {action!r} to give the key {shown} to: choose one of the table"
    if not _is_key(shown):
        return f"{shown!r} for {action!r} is no key: write it such as Q, Shift+Q or Ctrl+Enter"
    for other in table.values():
        if other.action != action and other.binding == _binding(shown):
            return (
                f"the key {shown} for {action!r} is already that of {other.action!r}: choose "
                "another key"
            )
    if _binding(shown) in _NAPARIS:
        return f"the key {shown} for {action!r} is one of napari's: choose another key"
    return ""


def _binding(shown: str) -> str:
    return shown.replace("Ctrl+", "Control-").replace("Shift+", "Shift-").replace("Alt+", "Alt-")


def _is_key(shown: str) -> bool:
    *modifiers, last = _binding(shown).split("-") if shown not in "-" else ("-",)
    known = len(last) == 1 or last in _LONG_NAMES
    return bool(last) and known and set(modifiers) <= {"Control", "Shift", "Alt"}
