"""Scheduling of napari's drawing: one redraw for several changes, spread over several iterations.

The module uses napari's private attributes. Each use is guarded; without these attributes, napari
draws as usual.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, Final
from weakref import ref

from napari.layers import Layer
from qtpy.QtCore import QObject, QTimer
from qtpy.QtWidgets import QDockWidget, QFrame

from napari_mamamia.widgets.adapter.patches import is_on, patch, patch_within

_CONTROLS: Final = "layer controls"
"""objectName of the dock with the layer controls (napari 0.9.2, `_qt/qt_viewer.py`)."""
_NOWHERE_MM: Final = -1e9
"""Coordinate in mm that lies outside every volume."""
_MEASURED: Final = (
    *("data", "scale", "units", "translate", "rotate", "shear", "affine", "axis_labels"),
)
"""Layer events after which napari measures all layers again (`ViewerModel._on_add_layer`)."""


@contextmanager
def drawn_once(layers: Any) -> Iterator[None]:
    """Rebuild napari's scene graph only once, on exit, for all layer changes in the context.

    A canvas prepared by `split_drawing` does most of this work in the next event-loop iteration.
    """
    with layers.batched_update():
        yield


@patch_within
@contextmanager
def sliced_once(viewer: Any) -> Iterator[None]:
    """Slice all layers only once, on exit, for all changes of position and layers in the context.

    napari slices twice at each slider step, and once for each layer that is added or gets new data
    (napari 0.9.2, `napari/components/viewer_model.py`, ``_update_layers``). Inside the context,
    napari does not read values at the pointer, because this fails for a layer that was never sliced
    in 3-D.
    """
    slicer: Any = getattr(viewer, "_layer_slicer", None)
    real = getattr(slicer, "submit", None)
    held = [layer for layer in viewer.layers if hasattr(layer, "_slicing_state")]
    is_inside_other = any("refresh" in vars(layer) for layer in held)
    if real is None or len(held) < len(viewer.layers) or is_inside_other:
        yield
        return
    stale: set[Any] = set()
    slicer.submit = lambda **_: None
    for layer in held:
        layer.refresh = partial(_note_stale, stale, ref(layer))
    try:
        with _pointer_away(viewer):
            yield
    finally:
        slicer.submit = real
        for layer in held:
            # The instance attribute hid the class's method, which applies again after deletion.
            del layer.refresh
    real(layers=[layer for layer in viewer.layers if layer not in stale], dims=viewer.dims)
    for layer in stale:
        layer._slicing_state.set_slice_input_from_dims(viewer.dims, True)
        layer.refresh()


@patch_within
@contextmanager
def measured_once(viewer: Any) -> Iterator[None]:
    """Measure the existing layers only once, on exit, for all changes in the context.

    napari needs 3 to 8 ms to lay out axes, sliders and their numbers each time a layer is moved or
    gets new data (napari 0.9.2, `napari/components/viewer_model.py`, ``_on_layers_change``). A
    layer that is inserted in the context is measured immediately.
    """
    measure = getattr(viewer, "_on_layers_change", None)
    groups = [layer.events for layer in viewer.layers]
    if measure is None or not groups:
        yield
        return
    events = [getattr(group, name) for group in groups for name in _MEASURED if name in group]
    try:
        with ExitStack() as held:
            for event in events:
                held.enter_context(event.blocker(measure))
            yield
    finally:
        measure()


@contextmanager
def _pointer_away(viewer: Any) -> Iterator[None]:
    name = "mouse_over_canvas"
    is_over = getattr(viewer, name, False)
    if not is_over:
        yield
        return
    with getattr(viewer.events, name).blocker():
        setattr(viewer, name, False)
    try:
        yield
    finally:
        with getattr(viewer.events, name).blocker():
            setattr(viewer, name, is_over)


@patch_within
@contextmanager
def sliced_later(layer: Layer) -> Iterator[None]:
    """Set properties of a layer without slicing, before the layer is added to a viewer.

    napari slices the layer for each property, which takes 15 to 30 ms in total, although only the
    slice after insertion is drawn (napari 0.9.2, `napari/layers/base/base.py`, ``refresh``).
    Without the private attributes napari slices as usual.
    """
    state: Any = getattr(layer, "_slicing_state", None)
    names = ("_block_refresh", "_clear_extent")
    if not all(hasattr(layer, name) for name in names) or not hasattr(state, "_slice_input"):
        yield
        return
    with layer._block_refresh():
        yield
    layer._clear_extent()
    # A position outside the volume has an empty slice, so no position of the viewer counts as
    # already sliced.
    cut = state._slice_input
    nowhere = cut.world_slice.copy_with(point=(_NOWHERE_MM,) * len(cut.world_slice.point))
    state._slice_input = replace(cut, world_slice=nowhere)


def _note_stale(stale: set[Any], layer_ref: Any, *_: object, **__: object) -> None:
    layer = layer_ref()
    if layer is not None:
        stale.add(layer)
        layer._clear_extent()


@patch
def split_drawing(view: Any) -> None:
    """Rebuild a canvas's scene graph in two event-loop iterations after `drawn_once`.

    The layers are ordered immediately, so that the next frame shows them. Overlays such as text,
    bars and boxes follow in a separate iteration (napari 0.9.2, `napari/_vispy/canvas.py`,
    ``_resume_scene_graph_update``). napari also runs a full garbage collection there, which blocks
    the GUI thread for 10 to 200 ms; this collection is skipped, because Python also collects
    garbage in small steps.

    The patch also lets `make_visual` create a layer's vispy visual before its insertion.
    """
    canvas: Any = getattr(view, "canvas", None)
    names = ("_resume_scene_graph_update", "_update_scenegraph", "_setup_single_view")
    if not all(hasattr(canvas, name) for name in (*names, "_reorder_layers", "layer_to_visual")):
        return
    timer = QTimer(view)
    timer.setSingleShot(True)
    # A weak reference is used because a canvas in a reference cycle would stay until a full
    # garbage collection.
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
        with suppress(RuntimeError):  # The view and its timer are deleted.
            timer.start(0)
    else:
        _put_together(canvas_ref)


def _put_together(canvas_ref: Any) -> None:
    canvas = canvas_ref()
    # Another change has begun in the meantime, and its end rebuilds everything.
    if canvas is None or canvas._pause_scene_graph:
        return
    with suppress(AttributeError):  # This is napari's guard for contexts that do not exist yet.
        canvas._scene_canvas.context.finish()
    canvas._update_scenegraph()


@patch
def make_visual(view: Any, layer: Layer) -> None:
    """Create the vispy visual of a layer, which takes 10 to 40 ms, before the layer is inserted."""
    visuals: Any = getattr(view, "_mamamia_visuals", None)
    if visuals is None:
        return
    with suppress(ImportError, AttributeError):
        from napari._vispy.utils.visual import create_vispy_layer

        visuals[layer] = create_vispy_layer(layer, font_info=view.canvas.font_info())


def _add_layer(view_ref: Any, add: Callable[[Any, Layer], None], layer: Layer) -> None:
    view = view_ref()
    if view is None:
        return
    visual = view._mamamia_visuals.pop(layer, None)
    if visual is None:
        add(view, layer)
    else:
        view.canvas.add_layer_visual_mapping(layer, visual)


@patch
def guard_canvas(view: Any) -> None:
    """Hold back the OpenGL commands of a canvas until it is drawn for the first time.

    When napari removes a layer, it sends all pending commands to OpenGL, even if the canvas is
    hidden and has no context. Then the commands are lost, or reach the current canvas (napari
    0.9.2, `napari/_vispy/canvas.py`, ``_clean_and_update_scenegraph``). The commands include the
    depth function that lets equal depths pass; without this function, each layer hides the layers
    above. Therefore commands are sent only to the canvas's own context, and each new context gets
    this depth function.
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
    """Insert a layer without selecting it, if another layer is selected.

    napari selects each new layer, and selecting the previous layer again switches controls, buttons
    and cursor twice (napari 0.9.2, `containers/_selectable_list.py`, ``insert``). Without the
    private attribute, this function selects the previous layer again.
    """
    active, switch = layers.selection.active, "_activate_on_insert"
    if active is None or not hasattr(layers, switch) or not is_on("insert_unchosen"):
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


@patch
def late_controls(view: Any, is_late: Callable[[Layer], bool]) -> None:
    """Delay creating the controls of a layer (the box at the top left) until it is first selected.

    napari creates about fifty widgets for each inserted layer, which takes 40 to 90 ms (napari
    0.9.2, `layer_controls/qt_layer_controls_container.py`, ``_add``). A layer for which `is_late`
    is true gets an empty frame until it is selected and the box is visible. Its controls are
    created in one event-loop iteration and shown in another, because the image may be resized then.
    Without the private methods, napari creates the controls as usual.
    """
    box: Any = getattr(view, "controls", None)
    if hasattr(box, "_add") and isinstance(getattr(box, "widgets", None), dict):
        _LateControls(box, view.viewer.layers, is_late)


class _LateControls(QObject):
    """An object that replaces the empty frame in `box` with the controls of the selected layer."""

    def __init__(self, box: Any, layers: Any, is_late: Callable[[Layer], bool]) -> None:
        super().__init__(box)
        self._box, self._layers, self._is_late = box, layers, is_late
        self._frames: dict[Any, QFrame] = {}
        self._spent: list[QFrame] = []
        self._dock: QDockWidget | None = None
        self._filling, self._turning = QTimer(self), QTimer(self)
        acts = {self._filling: self._make_controls, self._turning: self._show_controls}
        for timer, act in acts.items():
            timer.setSingleShot(True)
            timer.timeout.connect(act)
        layers.events.inserted.disconnect(box._add)
        layers.events.inserted.connect(self._insert_frame)
        layers.events.removed.connect(self._forget_frame)
        layers.selection.events.active.connect(self._fill_later)

    def _insert_frame(self, event: Any) -> None:
        if not self._is_late(event.value):
            self._box._add(event)
            return
        frame = self._frames[event.value] = self._box.widgets[event.value] = QFrame()
        self._box.addWidget(frame)

    def _forget_frame(self, event: Any) -> None:
        self._frames.pop(event.value, None)

    def _fill_later(self, _event: object = None) -> None:
        self._filling.start(0)

    def _follow_dock(self, is_seen: bool) -> None:
        if is_seen:
            self._fill_later()

    def _make_controls(self) -> None:
        layer, widgets = self._layers.selection.active, self._box.widgets
        if layer not in self._frames or widgets.get(layer) is not self._frames[layer]:
            return
        dock = self._box.window().findChild(QDockWidget, _CONTROLS)
        if dock is not None and not dock.isVisible():
            if self._dock is None:
                self._dock = dock
                dock.visibilityChanged.connect(self._follow_dock)
            return
        self._spent.append(self._frames.pop(layer))
        # napari's `_add` reads only the value of an event.
        self._box._add(SimpleNamespace(value=layer))
        self._turning.start(0)

    def _show_controls(self) -> None:
        controls = self._box.widgets.get(self._layers.selection.active)
        if controls is not None:
            self._box.setCurrentWidget(controls)
        while self._spent:
            frame = self._spent.pop()
            self._box.removeWidget(frame)
            frame.deleteLater()
