"""The keys, in one table: it drives the bindings, the tooltips and the panel on `?`.

napari owns digits, C E F L M P V X Z B - = [ ] on labels, arrows, and many with Ctrl; ours avoid
the viewer's, labels' and images' (a test compares with napari's own lists). On a shapes or points
layer napari's own key comes first.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from qtpy.QtGui import QKeySequence, QShortcut
from qtpy.QtWidgets import QWidget

__all__ = ["KEYS", "NAPARI_KEYS", "Key", "bind_keys", "with_key"]


@dataclass(frozen=True, slots=True)
class Key:
    """One line of the table.

    `binding` is napari's name of the key, `shown` what people read. A `held` key acts while it is
    down: its action is called with True and at release with False. A key `by_qt` is a shortcut of
    the window, because napari has no name for it.
    """

    action: str
    binding: str
    shown: str
    text: str
    held: bool = False
    by_qt: bool = False


KEYS: Final = (
    Key("previous_phase", ",", ",", "previous phase"),
    Key("next_phase", ".", ".", "next phase"),
    Key("subtraction", "D", "D", "subtraction on or off: the phase shown minus phase 0"),
    Key("hide_masks", "H", "H", "hide the masks while held", held=True),
    Key("outline", "Shift-H", "Shift+H", "masks as outlines or filled"),
    Key("lesion", "G", "G", "go to the tumour: largest part of the mask shown"),
    Key("next_error", "Shift-G", "Shift+G", "agreement with the reference: the next error"),
    Key("next_case", "N", "N", "next case"),
    Key("previous_case", "Shift-N", "Shift+N", "previous case"),
    Key("keys", "?", "?", "show or hide this table", by_qt=True),
)
"""Every key of ours."""

NAPARI_KEYS: Final = (
    ("1 / E", "eraser"),
    ("2 / P", "brush"),
    ("[  ]", "smaller, larger brush"),
    ("4 / F", "fill"),
    ("Space (held)", "move the image while painting"),
    ("Ctrl+Z", "undo"),
    ("Ctrl+Shift+Z", "redo"),
    ("arrows", "previous, next slice"),
    ("V", "show or hide the chosen layer"),
    ("middle button", "drag: right wider window, up brighter"),
)
"""What napari's own keys and the mouse do while a mask is edited, for the panel."""


def with_key(text: str, action: str) -> str:
    """Return a tooltip that ends with the action's key.

    Examples
    --------
    >>> with_key("Opens the next case", "next_case")
    'Opens the next case  (key N)'
    """
    shown = next(key.shown for key in KEYS if key.action == action)
    return f"{text}  (key {shown})"


def bind_keys(viewer: Any, window: QWidget, actions: Mapping[str, Callable[..., object]]) -> None:
    """Bind every key of the table on `viewer` or `window`; `actions` by the names of the table.

    Raises
    ------
    KeyError
        If an action is missing.
    """
    for key in KEYS:
        action = actions[key.action]
        if key.by_qt:
            QShortcut(QKeySequence(key.binding), window).activated.connect(action)
        else:
            bind = _held if key.held else _pressed
            viewer.bind_key(key.binding, bind(action), overwrite=True)


def _pressed(action: Callable[..., object]) -> Callable[[Any], None]:
    def run(_viewer: Any) -> None:
        action()

    return run


def _held(action: Callable[..., object]) -> Callable[[Any], Any]:
    def run(_viewer: Any) -> Any:
        action(True)
        yield
        action(False)

    return run
