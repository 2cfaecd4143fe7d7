"""The keys, in one table: it drives the bindings, the tooltips and the panel on `?`.

napari owns digits, C E F L M P V X Z B - = [ ] on labels, arrows, and many with Ctrl; ours avoid
the viewer's, labels' and images' (a test compares with napari's own lists). On a shapes or points
layer napari's own key comes first.
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
    """One line of the table.

    `binding` is napari's name of the key, `shown` what people read. A `held` key acts while it is
    down: its action is called with True and at release with False. A key `by_qt` is a shortcut of
    the window, because napari has no name for it. A key `on_mask` acts only while a tool of the
    page Refine is active on the reader's own mask, and there comes before napari's. A key
    `on_image` is one of napari's on images, where it acts in a 3-D view only: on ours it is this.
    A key of a `page` does nothing while another page is shown. One `everywhere` acts on the viewer
    too, though it is one `on_mask`.
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


_REFINE: Final = "Refine"

KEYS: Final = (
    Key("previous_phase", ",", ",", tr("previous phase")),
    Key("next_phase", ".", ".", tr("next phase")),
    Key("subtraction", "D", "D", tr("subtraction on or off: the phase shown minus another")),
    Key("projection", "I", "I", tr("MIP or slab of the enhancement on or off")),
    Key("cine", "U", "U", tr("play or stop the phases")),
    Key("contrast", "Y", "Y", tr("next range of grey of the image shown")),
    Key("planes", "J", "J", tr("one plane or three linked planes")),
    Key("two_phases", "Shift-J", "Shift+J", tr("two phases side by side on or off")),
    Key("hanging_next", "PageDown", "PgDn", tr("next step of the hanging: MIP, both, sides, late")),
    Key("hanging_back", "PageUp", "PgUp", tr("step of the hanging before; first: your own view")),
    Key("prior", "Shift-P", "Shift+P", tr("a prior exam beside this one")),
    Key("ruler", "Shift-M", "Shift+M", tr("measure: ruler on or off")),
    Key("diameters", "Shift-D", "Shift+D", tr("measure: diameters at right angles on or off")),
    Key("ellipse", "Shift-E", "Shift+E", tr("measure: ellipse with mean and SD on or off")),
    Key("angle", "Shift-A", "Shift+A", tr("measure: angle on or off")),
    Key("arrow", "Shift-W", "Shift+W", tr("measure: arrow with words on or off")),
    Key("key_image", "Shift-K", "Shift+K", tr("key image: keep this slice, or no more")),
    Key("measure_delete", "Delete", "Del", tr("measure: delete the chosen drawing")),
    Key("measure_undo", "Shift-Z", "Shift+Z", tr("measure: take the last step back")),
    Key("kinetic_map", "K", "K", tr("kinetic map on or off")),
    Key("hide_masks", "H", "H", tr("hide the masks while held"), held=True),
    Key("outline", "Shift-H", "Shift+H", tr("masks as outlines or filled")),
    Key("lesion", "G", "G", tr("go to the tumour; to the next error or doubtful place, if shown")),
    Key(
        "previous_error",
        "Shift-G",
        "Shift+G",
        tr("show the agreement; then: the error or doubtful place before"),
    ),
    Key("next_case", "N", "N", tr("next case")),
    Key("previous_case", "Shift-N", "Shift+N", tr("previous case")),
    Key("smartpaint", "Q", "Q", tr("Refine: SmartPaint on or off; goes to that page")),
    Key("other_action", "W", "W", tr("Refine: left and right button change places"), page=_REFINE),
    Key(
        "outline_tool",
        "O",
        "O",
        tr("Refine: draw outlines on or off; goes to that page"),
        on_image=True,
    ),
    Key("grow", "R", "R", tr("Refine: grow the outlines, or the mask, to 3-D"), page=_REFINE),
    Key("smaller", "A", "A", tr("Refine: smaller radius"), page=_REFINE),
    Key("larger", "S", "S", tr("Refine: larger radius"), page=_REFINE),
    Key("compare", "T", "T", tr("Refine: show the start mask while held"), held=True, page=_REFINE),
    Key(
        "accept",
        "Control-Enter",
        "Ctrl+Enter",
        tr("Refine, Review: save, accept and open the next case"),
        page=_REFINE,
    ),
    Key("undo", "Control-Z", "Ctrl+Z", tr("while a tool is on: undo"), on_mask=True),
    Key("redo", "Control-Shift-Z", "Ctrl+Shift+Z", tr("while a tool is on: redo"), on_mask=True),
    Key(
        "move_image",
        "Space",
        "Space",
        tr("while a tool is on: move the image"),
        held=True,
        on_mask=True,
    ),
    Key(
        "drop_stroke",
        "Escape",
        "Esc",
        tr("during a stroke: drop it, nothing happens; a click or box that is waited for: no more"),
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
    Key("work_list", "F1", "F1", tr("work list; again: back to the case"), by_qt=True),
    Key("read", "F2", "F2", tr("step Read"), by_qt=True),
    Key("mask", "F3", "F3", tr("step Mask"), by_qt=True),
    Key("check", "F4", "F4", tr("step Check & export"), by_qt=True),
    Key("panel", "F9", "F9", tr("side panel: fold it to a strip, or show it"), by_qt=True),
    Key("alone", "F11", "F11", tr("the picture and its line alone; F11 or Esc: back"), by_qt=True),
    Key("reading", "F10", "F10", tr("napari's menu and panels: hide or show"), by_qt=True),
    Key("keys", "?", "?", tr("show or hide this table"), by_qt=True),
    *(
        Key(f"page_{page.short}", page.key, page.key.replace("-", "+"), page.name)
        for page in list_pages()
        if page.key
    ),
)
"""Every key of ours."""

RETIRED: Final = frozenset({"stricter", "looser"})
"""Actions that had a key once: a key that somebody gave one then is passed over."""

MOUSE_LINES: Final = (
    (tr("left drag"), tr("Refine: what is missing; Outline: draw round it")),
    (tr("right drag"), tr("Refine: what is too much")),
    (tr("Shift + drag"), tr("SmartPaint: the stroke acts on the whole lesion")),
    ("wheel", tr("previous, next slice")),
    (tr("Ctrl + wheel"), tr("larger, smaller, at the pointer")),
    (tr("Shift + wheel"), tr("previous, next phase (while no tool is on)")),
    (tr("Alt + wheel"), tr("Refine: radius")),
    (tr("middle drag"), tr("right wider window, up brighter")),
    (
        tr("click, Shift + move"),
        tr("several views: move the cross-hair (Ctrl + click while a tool is on)"),
    ),
)
"""What the mouse does, for the panel."""

NAPARI_KEYS: Final = (
    ("1 / E", "eraser"),
    ("2 / P", "brush"),
    ("[  ]", tr("smaller, larger brush")),
    ("4 / F", "fill"),
    ("Ctrl+Z", tr("undo of napari's own brush")),
    ("arrows", tr("previous, next slice")),
    ("V", tr("show or hide the chosen layer")),
)
"""What napari's own keys do on the own mask while no tool of ours is on, for the panel."""


def with_key(text: str, action: str) -> str:
    """Return a tooltip that ends with the action's key.

    Examples
    --------
    >>> with_key("Opens the next case", "next_case")
    'Opens the next case  (key N)'
    """
    shown = next(key.shown for key in KEYS if key.action == action)
    return tr("{words}  (key {shown})", words=text, shown=shown)


def bind_keys(
    viewer: Any,
    window: QWidget | None,
    actions: Mapping[str, Callable[..., object]],
    keys: Sequence[Key] = KEYS,
) -> None:
    """Bind every key of the table on `viewer` or `window`; `actions` by the names of the table.

    Keys that act on the mask only are left to `bind_mask_keys`; without a window its shortcuts are
    left as they are.

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
    """Bind the keys that act on the reader's mask on its layer, before napari's own."""
    for key in keys:
        if key.on_mask:
            layer.bind_key(key.binding, _bind_action(key, actions[key.action]), overwrite=True)


def bind_image_keys(
    layer: Any, actions: Mapping[str, Callable[..., object]], keys: Sequence[Key] = KEYS
) -> None:
    """Bind on an image layer of ours the keys that napari would take first there."""
    for key in keys:
        if key.on_image:
            layer.bind_key(key.binding, _bind_action(key, actions[key.action]), overwrite=True)


def unbind_keys(viewer: Any, keys: Sequence[Key]) -> None:
    """Take the keys of the table off a viewer, before others are bound."""
    for key in keys:
        if not key.by_qt and (not key.on_mask or key.everywhere):
            viewer.bind_key(key.binding, None, overwrite=True)


def unbind_image_keys(layer: Any, keys: Sequence[Key] = KEYS) -> None:
    """Give the keys of an image layer back to napari."""
    for key in keys:
        if key.on_image:
            layer.bind_key(key.binding, None, overwrite=True)


def unbind_mask_keys(layer: Any, keys: Sequence[Key] = KEYS) -> None:
    """Give the keys of the mask's layer back to napari."""
    for key in keys:
        if key.on_mask:
            layer.bind_key(key.binding, None, overwrite=True)


def _bind_action(key: Key, action: Callable[..., object]) -> Callable[[Any], Any]:
    return _wrap_hold(action) if key.held else _wrap_press(action)


def _wrap_press(action: Callable[..., object]) -> Callable[[Any], None]:
    def run(_viewer: Any) -> None:
        action()

    return run


# napari runs a generator up to its `yield` at the press of a key, and the rest at its release.
def _wrap_hold(action: Callable[..., object]) -> Callable[[Any], Any]:
    def run(_viewer: Any) -> Any:
        action(True)
        yield
        action(False)

    return run
