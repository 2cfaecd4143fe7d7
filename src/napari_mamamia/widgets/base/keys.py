"""The table of shortcuts, used for key bindings, tooltips and the help panel (key `?`).

napari uses digits and C E F L M P V X Z B - = [ ] on labels layers, the arrow keys, and many keys
with Ctrl. Our shortcuts avoid napari's keys for viewers, labels and images; a test compares the two
sets. On a shapes or points layer, napari's key has priority.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from qtpy.QtGui import QKeySequence, QShortcut
from qtpy.QtWidgets import QWidget

from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.base.pages import list_pages


@dataclass(frozen=True, slots=True)
class Key:
    """A shortcut, which is a row of the table.

    `binding` is napari's name of the key, and `shown` is the displayed name. The action of a `held`
    key is called with True when the key is pressed and with False when it is released. A `by_qt`
    key is a Qt shortcut of the window, because napari has no name for the key. An `on_mask` key
    acts only while a tool of the Refine page is active on the reader's own mask, where it has
    priority over napari's key. An `on_image` key replaces a key that napari uses on images and
    whose action has an effect only in 3-D views. A key with a `page` does nothing while another
    page is shown. An `everywhere` key also acts on the viewer even if it is `on_mask`. An `on_edit`
    key has priority over napari's key on the edited mask, whether or not a tool is active.
    """

    action: str
    binding: str
    shown: str
    text: str
    held: bool = False
    by_qt: bool = False
    on_mask: bool = False
    on_image: bool = False
    page: str = ""
    everywhere: bool = False
    on_edit: bool = False


_REFINE: Final = "Refine"

KEYS: Final = (
    Key("previous_phase", ",", ",", tr("previous phase")),
    Key("next_phase", ".", ".", tr("next phase")),
    Key("subtraction", "D", "D", tr("subtraction on or off: the displayed phase minus another")),
    Key("projection", "I", "I", tr("MIP or slab of the enhancement on or off")),
    Key("cine", "U", "U", tr("play or stop the phases")),
    Key("contrast", "Y", "Y", tr("next window/level preset of the displayed image")),
    Key("planes", "J", "J", tr("one plane or three linked planes")),
    Key("two_phases", "Shift-J", "Shift+J", tr("two phases side by side on or off")),
    Key(
        "hanging_next",
        "PageDown",
        "PgDn",
        tr("next step of the hanging protocol: MIP, both, sides, late"),
    ),
    Key(
        "hanging_back",
        "PageUp",
        "PgUp",
        tr("previous step of the hanging protocol, or your own view before the first step"),
    ),
    Key("slice_back", "Up", "Up", tr("previous slice")),
    Key("slice_next", "Down", "Down", tr("next slice")),
    Key("slice_first", "Home", "Home", tr("first slice")),
    Key("slice_last", "End", "End", tr("last slice")),
    Key("sides", "Shift-R", "Shift+R", tr("patient's right on the right of the screen, or left")),
    Key("prior", "Shift-P", "Shift+P", tr("a prior exam next to this one")),
    Key("ruler", "Shift-M", "Shift+M", tr("measure: turn the ruler on or off")),
    Key(
        "diameters", "Shift-D", "Shift+D", tr("measure: turn the perpendicular diameters on or off")
    ),
    Key(
        "ellipse", "Shift-E", "Shift+E", tr("measure: turn the ellipse with mean and SD on or off")
    ),
    Key("angle", "Shift-A", "Shift+A", tr("measure: turn the angle tool on or off")),
    Key("arrow", "Shift-W", "Shift+W", tr("measure: turn the arrow-with-text tool on or off")),
    Key("key_image", "Shift-K", "Shift+K", tr("key image: add or remove this slice")),
    Key("measure_delete", "Delete", "Del", tr("measure: delete the selected drawing")),
    Key("measure_undo", "Shift-Z", "Shift+Z", tr("measure: undo the last step")),
    Key("kinetic_map", "K", "K", tr("kinetic map on or off")),
    Key("hide_masks", "H", "H", tr("hide the masks while held"), held=True),
    Key("outline", "Shift-H", "Shift+H", tr("masks as outlines or filled")),
    Key(
        "lesion",
        "G",
        "G",
        tr(
            "go to the next lesion, including missed lesions, or to the next error or uncertain "
            "region if shown"
        ),
    ),
    Key(
        "previous_error",
        "Shift-G",
        "Shift+G",
        tr("show the agreement; afterwards, go to the previous error or uncertain region"),
    ),
    Key("next_case", "N", "N", tr("next case")),
    Key("previous_case", "Shift-N", "Shift+N", tr("previous case")),
    Key("smartpaint", "Q", "Q", tr("Refine: SmartPaint on or off; goes to that page")),
    Key("other_action", "W", "W", tr("Refine: swap the left and right button"), page=_REFINE),
    Key(
        "outline_tool",
        "O",
        "O",
        tr("Refine: draw outlines on or off; goes to that page"),
        on_image=True,
    ),
    Key("grow", "R", "R", tr("Refine: grow the outlines or the mask in 3-D"), page=_REFINE),
    Key("smaller", "A", "A", tr("Refine: smaller radius"), page=_REFINE),
    Key("larger", "S", "S", tr("Refine: larger radius"), page=_REFINE),
    Key(
        "compare", "T", "T", tr("Refine: show the initial mask while held"), held=True, page=_REFINE
    ),
    Key(
        "accept",
        "Control-Enter",
        "Ctrl+Enter",
        tr("accept the mask, or the prediction, and open the next case"),
    ),
    Key(
        "edit_copy",
        "Shift-Enter",
        "Shift+Enter",
        tr("edit a copy of the prediction on the Refine page"),
    ),
    Key("undo", "Control-Z", "Ctrl+Z", tr("Refine: undo the last step of the mask"), on_edit=True),
    Key(
        "redo",
        "Control-Shift-Z",
        "Ctrl+Shift+Z",
        tr("Refine: redo the last undone step of the mask"),
        on_edit=True,
    ),
    Key(
        "move_image",
        "Space",
        "Space",
        tr("move the image, while a tool is on"),
        held=True,
        on_mask=True,
    ),
    Key(
        "drop_stroke",
        "Escape",
        "Esc",
        tr(
            "cancel the stroke or the expected click; otherwise close the table of keys or the "
            "results"
        ),
        on_mask=True,
        everywhere=True,
    ),
    *(
        Key(
            f"assess_{category}",
            f"Alt+{category}",
            f"Alt+{category}",
            tr("Findings: assessment {category} of the chosen breast", category=category),
            by_qt=True,
        )
        for category in range(7)
    ),
    Key("work_list", "F1", "F1", tr("work list, or back to the case"), by_qt=True),
    Key("read", "F2", "F2", tr("go to the Read step"), by_qt=True),
    Key("mask", "F3", "F3", tr("go to the Mask step"), by_qt=True),
    Key("check", "F4", "F4", tr("go to the Check & export step"), by_qt=True),
    Key("panel", "F9", "F9", tr("side panel: fold to a strip, or show"), by_qt=True),
    Key(
        "alone",
        "F11",
        "F11",
        tr("show only the image and its line; F11 or Esc returns"),
        by_qt=True,
    ),
    Key("reading", "F10", "F10", tr("napari's menu and panels: hide or show"), by_qt=True),
    Key("keys", "?", "?", tr("show or hide this table"), by_qt=True),
    *(
        Key(f"page_{page.short}", page.key, page.key.replace("-", "+"), page.name)
        for page in list_pages()
        if page.key
    ),
)
"""All shortcuts of the plugin."""

RETIRED: Final = frozenset({"stricter", "looser"})
"""Actions that had a shortcut in the past; a user's setting for them is ignored."""

MOUSE_LINES: Final = (
    (tr("left drag"), tr("Refine: add missing areas; Outline: draw around them")),
    (tr("right drag"), tr("Refine: remove false-positive areas")),
    (tr("Shift + drag"), tr("SmartPaint: the stroke acts on the whole lesion")),
    ("wheel", tr("previous, next slice")),
    (tr("Ctrl + wheel"), tr("zoom in or out at the pointer")),
    (tr("Shift + wheel"), tr("previous, next phase (while no tool is on)")),
    (tr("Alt + wheel"), tr("Refine: radius")),
    (
        tr("right drag, middle drag"),
        tr(
            "window/level: drag right for a wider window, up for a brighter image (right drag "
            "while no tool is on)"
        ),
    ),
    (tr("double-click"), tr("several views: show only this view, or all views again")),
    (
        tr("click, Shift + move"),
        tr("several views: move the cross-hair (Ctrl + click while a tool is on)"),
    ),
)
"""Mouse actions for the help panel."""

NAPARI_KEYS: Final = (
    ("1 / E", "eraser"),
    ("2 / P", "brush"),
    ("[  ]", tr("smaller, larger brush")),
    ("4 / F", "fill"),
    ("arrows", tr("previous, next slice")),
    ("V", tr("show or hide the selected layer")),
)
"""napari's keys for the reader's mask while none of our tools is active, for the help panel."""


def with_key(text: str, action: str) -> str:
    """Return a tooltip with the shortcut of `action` appended.

    Examples
    --------
    >>> with_key("Opens the next case", "next_case")
    'Opens the next case  (key N)'
    """
    key_name = next(key.shown for key in KEYS if key.action == action)
    return tr("{words}  (key {shown})", words=text.removesuffix("."), shown=key_name)


def bind_keys(
    viewer: Any,
    window: QWidget | None,
    actions: Mapping[str, Callable[..., object]],
    keys: Sequence[Key] = KEYS,
) -> None:
    """Bind every shortcut of the table on `viewer` or `window`.

    `actions` maps the action names of the table to functions. `bind_mask_keys` binds shortcuts that
    act only on the mask. Without a window, Qt shortcuts are not bound.

    Raises
    ------
    KeyError
        If an action is missing.
    """
    for key in keys:
        action = actions[key.action]
        if key.by_qt and window is None:
            continue
        if key.by_qt:
            shortcut = QShortcut(QKeySequence(key.binding), window)
            shortcut.setObjectName("mamamia_key")
            shortcut.activated.connect(action)
        elif not key.on_mask or key.everywhere:
            viewer.bind_key(key.binding, _bind_action(key, action), overwrite=True)


def bind_mask_keys(
    layer: Any, actions: Mapping[str, Callable[..., object]], keys: Sequence[Key] = KEYS
) -> None:
    """Bind the mask shortcuts on the reader's mask layer, with priority over napari's keys."""
    for key in keys:
        if key.on_mask:
            layer.bind_key(key.binding, _bind_action(key, actions[key.action]), overwrite=True)


def bind_edit_keys(
    layer: Any, actions: Mapping[str, Callable[..., object]], keys: Sequence[Key] = KEYS
) -> None:
    """Bind the undo and redo shortcuts on the edited mask, with priority over napari's keys."""
    for key in keys:
        if key.on_edit:
            layer.bind_key(key.binding, _bind_action(key, actions[key.action]), overwrite=True)


def bind_image_keys(
    layer: Any, actions: Mapping[str, Callable[..., object]], keys: Sequence[Key] = KEYS
) -> None:
    """Bind shortcuts that replace napari's keys on an image layer of this program."""
    for key in keys:
        if key.on_image:
            layer.bind_key(key.binding, _bind_action(key, actions[key.action]), overwrite=True)


def unbind_keys(viewer: Any, keys: Sequence[Key]) -> None:
    """Remove the shortcuts of the table from a viewer before other shortcuts are bound."""
    for key in keys:
        if not key.by_qt and (not key.on_mask or key.everywhere):
            viewer.bind_key(key.binding, None, overwrite=True)


def unbind_image_keys(layer: Any, keys: Sequence[Key] = KEYS) -> None:
    """Restore napari's keys on an image layer."""
    for key in keys:
        if key.on_image:
            layer.bind_key(key.binding, None, overwrite=True)


def unbind_mask_keys(layer: Any, keys: Sequence[Key] = KEYS) -> None:
    """Restore napari's keys on the mask layer."""
    for key in keys:
        if key.on_mask:
            layer.bind_key(key.binding, None, overwrite=True)


def unbind_edit_keys(layer: Any, keys: Sequence[Key] = KEYS) -> None:
    """Restore napari's undo and redo on a mask that is no longer edited."""
    for key in keys:
        if key.on_edit:
            layer.bind_key(key.binding, None, overwrite=True)


def _bind_action(key: Key, action: Callable[..., object]) -> Callable[[Any], Any]:
    return _wrap_hold(action) if key.held else _wrap_press(action)


def _wrap_press(action: Callable[..., object]) -> Callable[[Any], None]:
    def run(_viewer: Any) -> None:
        action()

    return run


# napari runs a generator up to its `yield` when a key is pressed, and the remainder when the key
# is released.
def _wrap_hold(action: Callable[..., object]) -> Callable[[Any], Any]:
    def run(_viewer: Any) -> Any:
        action(True)
        yield
        action(False)

    return run
