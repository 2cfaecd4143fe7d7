"""How napari draws its layers: once for several changes, and no more in a turn than it must.

Beside adapter.py the one place that may touch what napari keeps private; each use is
guarded, and without the private parts all is as napari does it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, partial, partialmethod
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Final
from weakref import WeakKeyDictionary, ref

import numpy as np
from napari.layers import Labels, Layer
from napari.qt import QtViewer
from numpy.typing import NDArray
from qtpy.QtCore import QTimer
from qtpy.QtWidgets import QDockWidget, QFrame, QWidget

_CONTROLS: Final = "layer controls"
"""The objectName of the dock that has them (napari 0.9.2, `_qt/qt_viewer.py`)."""
_NOWHERE_MM: Final = -1e9
"""Outside of every volume."""


@contextmanager
def drawn_once(layers: Any) -> Iterator[None]:
    """Let napari put its drawing together once, at the end, for all layers that come and go inside.

    A canvas of `split_drawing` does most of it a turn later.
    """
    with layers.batched_update():
        yield


@contextmanager
def sliced_once(viewer: Any) -> Iterator[None]:
    """Let napari slice all layers once, at the end, however often place and layers change inside.

    It does so twice at each step of a slider, and once for each layer that comes or gets new data
    (napari 0.9.2, `napari/components/viewer_model.py`, ``_update_layers``).
    """
    slicer: Any = getattr(viewer, "_layer_slicer", None)
    real = getattr(slicer, "submit", None)
    held = [layer for layer in viewer.layers if hasattr(layer, "_slicing_state")]
    if real is None or len(held) < len(viewer.layers):
        yield
        return
    stale: set[Any] = set()
    slicer.submit = lambda **_: None
    for layer in held:
        layer.refresh = partial(_note_stale, stale, ref(layer))
    try:
        yield
    finally:
        slicer.submit = real
        for layer in held:
            # The instance's attribute hid the method of the class, which is in force again without
            # it.
            del layer.refresh
    real(layers=[layer for layer in viewer.layers if layer not in stale], dims=viewer.dims)
    for layer in stale:
        layer._slicing_state.set_slice_input_from_dims(viewer.dims, True)
        layer.refresh()


@contextmanager
def sliced_later(layer: Layer) -> Iterator[None]:
    """Let a layer that is in no viewer yet be told what it shows; its insertion slices it.

    napari slices it at each value that it is told, 15 to 30 ms in all, though only the slice of the
    viewer that it goes into is ever drawn (napari 0.9.2, `napari/layers/base/base.py`,
    ``refresh``). Without the private parts all is as napari does it.
    """
    state: Any = getattr(layer, "_slicing_state", None)
    names = ("_block_refresh", "_clear_extent")
    if not all(hasattr(layer, name) for name in names) or not hasattr(state, "_slice_input"):
        yield
        return
    with layer._block_refresh():
        yield
    layer._clear_extent()
    # So that no place of the viewer counts as sliced already; outside of it a slice is empty.
    cut = state._slice_input
    nowhere = cut.world_slice.copy_with(point=(_NOWHERE_MM,) * len(cut.world_slice.point))
    state._slice_input = replace(cut, world_slice=nowhere)


def _note_stale(stale: set[Any], layer_ref: Any, *_: object, **__: object) -> None:
    """Note that a layer is to be drawn anew; its new size counts at once."""
    layer = layer_ref()
    if layer is not None:
        stale.add(layer)
        layer._clear_extent()


def split_drawing(view: Any) -> None:
    """Put a canvas's drawing together in two turns of the event loop, after a `drawn_once`.

    At its end the layers stand in their order at once, so that the next picture has them; texts,
    bars and boxes over them follow in a turn of their own (napari 0.9.2,
    `napari/_vispy/canvas.py`, ``_resume_scene_graph_update``). napari looks there at every object
    there is for garbage, too: 10 to 200 ms of the window's thread, which Python does by and by.

    Also lets `make_visual` make what a layer is drawn with before its insertion.
    """
    canvas: Any = getattr(view, "canvas", None)
    names = ("_resume_scene_graph_update", "_update_scenegraph", "_setup_single_view")
    if not all(hasattr(canvas, name) for name in (*names, "_reorder_layers", "layer_to_visual")):
        return
    timer = QTimer(view)
    timer.setSingleShot(True)
    # By a weak reference: a canvas that holds itself would stay until a full garbage collection.
    canvas._resume_scene_graph_update = partial(_resume_canvas, ref(canvas), timer)
    timer.timeout.connect(partial(_put_together, ref(canvas)))
    add = getattr(type(view), "_add_layer", None)
    if add is not None:
        view._mamamia_visuals = {}
        view._add_layer = partial(_add_layer, ref(view), add)


def _resume_canvas(canvas_ref: Any, timer: QTimer, _event: object = None) -> None:
    canvas = canvas_ref()
    if canvas is None:
        return
    canvas._pause_scene_graph = False
    viewer = canvas.viewer
    is_plain = not viewer.canvas.grid.enabled
    if is_plain and all(layer in canvas.layer_to_visual for layer in viewer.layers):
        canvas._setup_single_view()
        canvas._reorder_layers()
        with suppress(RuntimeError):  # the view is gone, and its timer with it
            timer.start(0)
    else:
        _put_together(canvas_ref)


def _put_together(canvas_ref: Any) -> None:
    canvas = canvas_ref()
    # Another change has begun meanwhile: its end puts everything together.
    if canvas is None or canvas._pause_scene_graph:
        return
    with suppress(AttributeError):  # napari's own guard for contexts that are not there yet
        canvas._scene_canvas.context.finish()
    canvas._update_scenegraph()


def make_visual(view: Any, layer: Layer) -> None:
    """Make what a layer is drawn with, 10 to 40 ms, in another turn than that of its insertion."""
    visuals: Any = getattr(view, "_mamamia_visuals", None)
    if visuals is None:
        return
    with suppress(ImportError, AttributeError):
        from napari._vispy.utils.visual import create_vispy_layer

        visuals[layer] = create_vispy_layer(layer, font_info=view.canvas.font_info())


@cache
def read_shaders_once() -> None:
    """Let vispy look for the variables of equal shaders once, not anew in each program.

    The programs of a window repeat few texts, and each look holds the window's thread for some ms
    (vispy 0.17, `vispy/gloo/program.py`, ``_parse_variables_from_code``).
    """
    with suppress(ImportError, AttributeError):
        kind: Any = import_module("vispy.gloo.program").Program
        real = kind._parse_variables_from_code
        kind._process_pending_variables  # noqa: B018 - without it all stays as vispy does it
        kind._parse_variables_from_code = partialmethod(_take_variables, real, {})


def _take_variables(
    program: Any, real: Callable[..., None], known: dict[Any, Any], update_variables: bool = True
) -> None:
    texts = tuple(shader.code for shader in program._shaders)
    if texts not in known:
        real(program, update_variables=False)
        known[texts] = dict(program._code_variables)
    program._code_variables = dict(known[texts])
    if update_variables:
        program._process_pending_variables()


def _add_layer(view_ref: Any, add: Callable[[Any, Layer], None], layer: Layer) -> None:
    view = view_ref()
    if view is None:
        return
    visual = view._mamamia_visuals.pop(layer, None)
    if visual is None:
        add(view, layer)
    else:
        view.canvas.add_layer_visual_mapping(layer, visual)


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
    frame until it is chosen and the box is seen, and its controls in a turn of the event loop of
    their own. Without the private methods all is as napari does it.
    """
    box: Any = getattr(view, "controls", None)
    add, widgets = getattr(box, "_add", None), getattr(box, "widgets", None)
    if add is None or not isinstance(widgets, dict):
        return
    layers = view.viewer.layers
    frames: dict[Any, Any] = {}
    docks: list[QDockWidget] = []
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
        dock = box.window().findChild(QDockWidget, _CONTROLS)
        if dock is not None and not dock.isVisible():
            if not docks:
                docks.append(dock)
                dock.visibilityChanged.connect(lambda is_seen: is_seen and timer.start(0))
            return
        frame = frames.pop(layer)
        # Of an event napari's `_add` reads the value alone.
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
    mode_overlays = [overlays[name] for name in ("polygon", "brush_stroke") if name in overlays]
    shown = [overlay for overlay in mode_overlays if overlay.visible]

    def show(_event: object = None) -> None:
        for overlay in shown:
            overlay.visible = True

    for overlay in shown:
        overlay.visible = False
    layer.events.mode.connect(show)


def trim_contours(layer: Labels) -> None:
    """Let a labels layer look for contours only where it has labels: the picture is the same.

    napari filters the whole slice at each step, 2 ms for 160x448 pixels with a tumour in a few of
    them. Outside the labels' box all is background, whatever the filters say there, and napari
    takes what the filters reach around a part along with it (napari 0.9.2,
    `napari/layers/labels/labels.py`, ``_calculate_contour``). The layer keeps its whole array, so
    that there is no box to grow when somebody paints. Without the private method all is as napari
    does it.
    """
    find_whole = getattr(type(layer), "_calculate_contour", None)
    if find_whole is not None:
        patched: Any = layer
        patched._calculate_contour = partial(_find_contours, ref(layer), find_whole)


def _find_contours(
    layer_ref: Any, find_whole: Callable[..., Any], labels: Any, data_slice: tuple[slice, ...]
) -> Any:
    """Return the contours inside `data_slice` as `find_whole` does, asked about a part of it."""
    layer = layer_ref()
    smooth = getattr(layer, "_smooth_outline", None)
    is_smooth = smooth is not None and smooth.draw(labels)
    if layer.contour < 1 or labels.ndim > 2:
        return find_whole(layer, labels, data_slice)
    background = layer.colormap.background_value
    part = labels[data_slice]
    contours = np.full(part.shape, background, part.dtype)
    if is_smooth:
        return contours
    labelled = part != background
    hits = [np.flatnonzero(labelled.any(axis=1 - axis)) for axis in range(2)]
    if all(hit.size for hit in hits):
        box = tuple(slice(int(hit[0]), int(hit[-1]) + 1) for hit in hits)
        place = tuple(
            slice(whole.start + side.start, whole.start + side.stop)
            for whole, side in zip(data_slice, box, strict=True)
        )
        contours[box] = find_whole(layer, labels, place)
    return contours


# Rings at the mouse: napari's brush circle in a colour, a ring inside it, a dashed one around.
# They hang on napari's circle (napari 0.9.2, `napari/_vispy/overlays/brush_circle.py`), so that a
# move of the mouse draws no more than it does anyway; without it there is that circle, in white.

_CIRCLE: Final = "_brush_circle"
_NAPARIS_COLOUR: Final = "white"
_CORNERS: Final = 64
_DASHES: Final = 28


@dataclass(frozen=True, slots=True)
class RingLook:
    """The circle's colour, and the radii of the rings in and around it, as shares of its own."""

    colour: str = _NAPARIS_COLOUR
    inner: float | None = None
    outer: float | None = None


class BrushRings:
    """Gives the brush circle of each view its look."""

    def __init__(self) -> None:
        self._lines: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        self._drawn: WeakKeyDictionary[Any, tuple[RingLook, int]] = WeakKeyDictionary()
        self.look = RingLook()

    def show(self, look: RingLook) -> None:
        """Show this look from now on, in every view that the mouse was in."""
        self.look = look
        for circle in tuple(self._drawn):
            self._dress_circle(circle)

    def enter(self, canvas: QWidget | None) -> None:
        """Dress the circle of the view whose canvas the mouse is on.

        napari makes it when it is to be seen first.
        """
        circle = _find_circle(canvas)
        if circle is None:
            return
        if circle not in self._drawn:
            circle.overlay.events.size.connect(lambda _event: self._dress_circle(circle))
        self._dress_circle(circle)

    def _dress_circle(self, circle: Any) -> None:
        drawn = (self.look, int(circle.overlay.size))
        if self._drawn.get(circle) == drawn:
            return
        self._drawn[circle] = drawn
        with suppress(AttributeError, RuntimeError):
            circle._white_circle.border_color = self.look.colour
            self._draw_rings(circle, drawn[1] / 2)

    def _draw_rings(self, circle: Any, radius: float) -> None:
        line = self._lines.get(circle)
        parts = _ring_segments(self.look, radius)
        if line is None and len(parts):
            line = self._lines[circle] = _make_line(circle.node)
        if line is None:
            return
        line.visible = bool(len(parts))
        if len(parts):
            line.set_data(pos=parts, color=self.look.colour)


def _make_line(parent: Any) -> Any:
    # Imported with the first circle: a window's first second has enough to do.
    visuals: Any = import_module("vispy.scene.visuals")
    return visuals.Line(connect="segments", method="gl", antialias=True, parent=parent)


def _ring_segments(look: RingLook, radius: float) -> NDArray[np.float32]:
    """Return the ends of the lines, (2 n, 2) in pixels from the mouse: two rows a line."""
    parts = []
    if look.inner is not None:
        parts.append(_walk_ring(look.inner * radius, _CORNERS, 1.0))
    if look.outer is not None:
        parts.append(_walk_ring(look.outer * radius, _DASHES, 0.5))
    return np.concatenate(parts) if parts else np.zeros((0, 2), np.float32)


def _walk_ring(radius: float, n_lines: int, share: float) -> NDArray[np.float32]:
    turns = np.arange(n_lines)[:, None] + np.array([0.0, share])
    angles = (2 * np.pi / n_lines * turns).ravel()
    return (radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)).astype(np.float32)


def _find_circle(canvas: QWidget | None) -> Any | None:
    """Return what napari draws the brush circle with on a canvas, None where it has not yet."""
    view: Any = canvas
    with suppress(AttributeError, RuntimeError, KeyError, IndexError):
        while view is not None and not isinstance(view, QtViewer):
            view = view.parent()
        if view is not None:
            overlay = view.canvas.viewer.canvas.overlays[_CIRCLE]
            return view.canvas._viewer_overlay_to_visual[overlay][0]
    return None
