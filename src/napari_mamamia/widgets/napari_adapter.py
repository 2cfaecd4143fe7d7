"""The one place that may touch what napari keeps private; each use is guarded."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from weakref import WeakMethod

import napari
from napari.layers import Labels, Layer
from napari.qt import QtViewer
from napari.settings import get_settings
from napari.utils.theme import get_theme
from qtpy.QtCore import QTimer
from qtpy.QtWidgets import QFrame, QWidget

__all__ = [
    "ThemeColours",
    "bare",
    "canvas_of",
    "canvas_widget",
    "current_viewer",
    "drawn_once",
    "focus_canvas",
    "forget_history",
    "guard_canvas",
    "has_history",
    "insert_unchosen",
    "late_controls",
    "late_drawing",
    "layer_scrolling",
    "main_view",
    "new_view",
    "redraw_part",
    "square_off_brush",
    "theme_colours",
    "watch_font",
]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ThemeColours:
    """Of napari's theme, what our own style rules need: colours as hexadecimal RGB, and points."""

    accent: str
    on_accent: str
    line: str
    quiet: str
    stripe: str
    text: str
    font_points: int
    is_dark: bool


def bare(viewer: Any) -> Any:
    """Return the viewer itself where napari hands out a proxy of it.

    The proxy wraps every layer taken from it, so that ``layer in selection`` fails; napari's menu
    gives the viewer, ``add_plugin_dock_widget`` and commands give the proxy.
    """
    return getattr(viewer, "__wrapped__", viewer)


def current_viewer() -> Any | None:
    """Return the viewer whose window was used last, None where there is no window."""
    viewer = napari.current_viewer()
    return None if viewer is None else bare(viewer)


@contextmanager
def drawn_once(layers: Any) -> Iterator[None]:
    """Let napari put its drawing together once, at the end, for all layers that come and go inside.

    At that end, and whenever a layer goes, it looks at every object there is for garbage: 10 to
    200 ms of the window's thread (napari 0.9.2, `napari/_vispy/canvas.py`,
    ``_clean_and_update_scenegraph``). Python does that too, by and by.
    """
    module: Any = sys.modules.get("napari._vispy.canvas", SimpleNamespace())
    real = getattr(module, "gc", None)
    module.gc = SimpleNamespace(collect=lambda: 0)
    try:
        with layers.batched_update():
            yield
    finally:
        module.gc = real


def focus_canvas(viewer: Any) -> None:
    """Give the keyboard to the image; without the private attribute nothing happens."""
    with suppress(AttributeError, RuntimeError):
        viewer.window._qt_viewer.canvas.native.setFocus()


def forget_history(layer: Labels) -> None:
    """Drop a labels layer's undo steps after its data were replaced.

    napari keeps them, and the next undo would write old voxels into the new mask (napari 0.9.2,
    `napari/layers/labels/labels.py`, ``_reset_history``). Our masks that are replaced are not
    editable, so that without the private method nothing can go wrong.
    """
    reset = getattr(layer, "_reset_history", None)
    if reset is not None:
        reset()


def has_history(layer: Labels) -> bool:
    """Whether a labels layer holds undo steps of its own; True where napari does not tell."""
    return bool(getattr(layer, "_undo_history", True) or getattr(layer, "_redo_history", True))


def layer_scrolling(viewer: Any) -> list[Any]:
    """Return napari's wheel functions that go through the layers with Alt, empty where it has none.

    napari calls every wheel function, handled or not (napari 0.9.2,
    `napari/components/_viewer_mouse_bindings.py`, ``layers_scroll``), so that they must be taken
    out of the public list while the wheel with Alt has another meaning.
    """
    name = "layers_scroll"
    return [f for f in viewer.mouse_wheel_callbacks if getattr(f, "__name__", "") == name]


def redraw_part(layer: Labels, part: tuple[slice, slice, slice]) -> None:
    """Draw a labels layer anew inside `part`, after its data were changed there in place.

    `part` is in the layer's own axes (slice, row, column), with starts and stops. Slice caches of
    small integer layers share memory with the data, so that only the texture's part is missing
    (napari 0.9.2, `napari/layers/labels/labels.py`, ``_partial_labels_refresh``); without the
    private methods the whole slice is drawn anew.
    """
    note = getattr(layer, "_accumulate_updated_slice", None)
    draw = getattr(layer, "_partial_labels_refresh", None)
    if note is None or draw is None:
        layer.refresh(thumbnail=False, extent=False, highlight=False)
        return
    note(part)
    draw()


def square_off_brush(viewer: Any) -> None:
    """Take the background box of napari's brush circle away, a dark square at the mouse.

    It is drawn beside the circle and stays when the circle goes (napari 0.9.2,
    `napari/_vispy/overlays/brush_circle.py`, whose ``_on_visible_change`` leaves the box out).
    """
    with suppress(KeyError, AttributeError):
        viewer.canvas.overlays["_brush_circle"].box = False


def canvas_widget(viewer: Any) -> Any | None:
    """Return the Qt widget that the image is drawn on; None without a window."""
    with suppress(AttributeError, RuntimeError):
        return viewer.window._qt_viewer.canvas.native
    return None


def main_view(viewer: Any) -> QWidget | None:
    """Return napari's own view in the window: canvas and sliders; None without a window."""
    with suppress(AttributeError, RuntimeError):
        view = viewer.window._qt_viewer
        return view if isinstance(view, QWidget) else None
    return None


def keep_when_closed(dock: Any, put_aside: Callable[[], None]) -> None:
    """Let the cross of a dock call `put_aside`, where napari would take the dock apart.

    napari 0.9.2, ``QtViewerDockWidget.destroyOnClose``, which the title bar looks up at each click.
    """
    weakly = WeakMethod(put_aside)  # the panel knows its dock: no circle keeps both alive

    def on_cross() -> None:
        call = weakly()
        if call is not None:
            call()

    if hasattr(dock, "destroyOnClose"):
        dock.destroyOnClose = on_cross


def guard_canvas(view: Any) -> None:
    """Keep what napari tells a canvas before it is drawn on for the first time.

    Taking a layer out, napari sends all that waits to OpenGL, also while the canvas is hidden and
    has no context yet; then it is lost, or reaches the canvas that happens to be current (napari
    0.9.2, `napari/_vispy/canvas.py`, ``_clean_and_update_scenegraph``). With it goes the rule that
    equal depths pass, without which each layer hides those above it. So nothing is sent but to the
    canvas's own context, and each new context gets the rule.
    """
    canvas = getattr(getattr(view, "canvas", None), "_scene_canvas", None)
    if canvas is None:
        return
    context, native, finish = canvas.context, canvas.native, canvas.context.finish

    def set_rule(_event: object = None) -> None:
        context.set_depth_func("lequal")

    def finish_own() -> None:
        with suppress(RuntimeError):
            if native.isValid():
                canvas.set_current()
                finish()

    canvas.events.initialize.connect(set_rule)
    set_rule()
    context.finish = finish_own


def insert_unchosen(layers: Any, place: int, layer: Layer) -> None:
    """Insert a layer without choosing it, where another one is chosen.

    napari chooses each new layer; choosing the old one again afterwards turns controls, buttons and
    cursor twice (napari 0.9.2, `containers/_selectable_list.py`, ``insert``). Without the private
    switch it is done so.
    """
    active, switch = layers.selection.active, "_activate_on_insert"
    if active is None or not hasattr(layers, switch):
        layers.insert(place, layer)
        if active is not None:
            layers.selection.active = active
        return
    before = getattr(layers, switch)
    setattr(layers, switch, False)
    try:
        layers.insert(place, layer)
    finally:
        setattr(layers, switch, before)


def late_controls(view: Any, is_late: Callable[[Layer], bool]) -> None:
    """Make a layer's controls, the box at the top left, when the layer is first chosen.

    napari makes some fifty widgets for each layer at its insertion, 40 to 90 ms (napari 0.9.2,
    `layer_controls/qt_layer_controls_container.py`, ``_add``). A layer that `is_late` gets an empty
    frame until it is chosen, and its controls in a turn of the event loop of their own. Without the
    private methods all is as napari does it.
    """
    box: Any = getattr(view, "controls", None)
    add, widgets = getattr(box, "_add", None), getattr(box, "widgets", None)
    if add is None or not isinstance(widgets, dict):
        return
    layers = view.viewer.layers
    frames: dict[Any, Any] = {}
    timer = QTimer(box)
    timer.setSingleShot(True)

    def insert(event: Any) -> None:
        if not is_late(event.value):
            add(event)
            return
        frames[event.value] = widgets[event.value] = QFrame()
        box.addWidget(widgets[event.value])

    def fill() -> None:
        layer = layers.selection.active
        if layer not in frames or widgets.get(layer) is not frames[layer]:
            return
        frame = frames.pop(layer)
        add(SimpleNamespace(value=layer))
        box.setCurrentWidget(widgets[layer])
        box.removeWidget(frame)
        frame.deleteLater()

    timer.timeout.connect(fill)
    layers.events.inserted.disconnect(add)
    layers.events.inserted.connect(insert)
    layers.events.removed.connect(lambda event: frames.pop(event.value, None))
    layers.selection.events.active.connect(lambda _event: timer.start(0))


def late_drawing(layer: Labels) -> None:
    """Make a labels layer's own pen and polygon when one of napari's drawing modes is chosen.

    napari makes both at insertion, 20 to 30 ms for a mask that is never drawn on with them (napari
    0.9.2, `napari/layers/labels/labels.py`, ``_overlays``).
    """
    overlays = getattr(layer, "_overlays", {})
    own = [overlays[name] for name in ("polygon", "brush_stroke") if name in overlays]
    shown = [overlay for overlay in own if overlay.visible]

    def show(_event: object = None) -> None:
        for overlay in shown:
            overlay.visible = True

    for overlay in shown:
        overlay.visible = False
    layer.events.mode.connect(show)


def new_view(model: Any) -> Any:
    """Return a further view of a `ViewerModel`: napari's canvas without its sliders."""
    view = QtViewer(model, show_welcome_screen=False)
    guard_canvas(view)
    with suppress(AttributeError):
        view.dims.hide()
    return view


def canvas_of(view: Any) -> QWidget | None:
    """Return the widget that a view of `new_view` draws on."""
    native = getattr(getattr(view, "canvas", None), "native", None)
    return native if isinstance(native, QWidget) else None


def watch_font(then: Callable[[], None]) -> None:
    """Call `then` whenever the user changes the size of napari's texts."""
    get_settings().appearance.events.font_size.connect(then)


def theme_colours(viewer: Any) -> ThemeColours:
    """Return the colours of the viewer's theme, and the size of napari's texts."""
    theme = get_theme(viewer.theme)
    return ThemeColours(
        accent=theme.current.as_hex("long"),
        on_accent="#ffffff" if theme.type == "dark" else "#000000",
        line=theme.secondary.as_hex("long"),
        quiet=theme.primary.as_hex("long"),
        stripe=theme.background.as_hex("long"),
        text=theme.text.as_hex("long"),
        font_points=int(get_settings().appearance.font_size),
        is_dark=theme.type == "dark",
    )
