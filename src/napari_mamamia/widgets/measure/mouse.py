"""Mouse input for drawing measurements and moving their points.

A line is drawn by a drag, or by a click at each end.
"""

from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any, Final

from qtpy.QtCore import Signal

from napari_mamamia.core.measurement import MeasureKind, PointMm
from napari_mamamia.core.texts import tr
from napari_mamamia.services.measure.shapes import Sketch, Slice, has_extent
from napari_mamamia.widgets.measure.overlay import Grip
from napari_mamamia.widgets.viewer.active_tool import ActiveTool, MouseTool
from napari_mamamia.widgets.viewer.aim import Aim
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

OWNER: Final = "measure"
PAGE: Final = "View"
_OTHER_PAGES: Final = ("Findings", "Kinetics", "Review")
_BRUSHES: Final = ("painting", "napari")
_LEFT: Final = 1
_STILL_PIXELS: Final = 3.0
NAMES: Final = MappingProxyType(
    {
        MeasureKind.RULER: tr("Ruler"),
        MeasureKind.CROSS: tr("Diameters"),
        MeasureKind.ELLIPSE: tr("Ellipse"),
        MeasureKind.ANGLE: tr("Angle"),
        MeasureKind.ARROW: tr("Arrow"),
        MeasureKind.KEY_IMAGE: tr("Key image"),
    }
)
_ASKS: Final = MappingProxyType(
    {
        MeasureKind.RULER: tr("from end to end"),
        MeasureKind.CROSS: tr("longest diameter, then across it"),
        MeasureKind.ELLIPSE: tr("from corner to corner"),
        MeasureKind.ANGLE: tr("one end, the corner, the other end"),
        MeasureKind.ARROW: tr("from the text to the point"),
    }
)


class DrawTool(WindowPart):
    """A component that draws with the active tool, and moves points of drawings.

    Signals: `changed` reports that the unfinished drawing changed, and `tool_changed` that a
    different tool is active. `drawn` carries a complete `Sketch` and the view of the sketch.
    `chosen` carries the key of a clicked drawing, or "" for none. `dragged` carries a `Grip` and
    the new position of the point; `dropped` reports the end of the drag. `refused` carries the
    reason why nothing was drawn.

    Attributes
    ----------
    find
        Function that finds the drawing at a pixel of a view.
    is_over
        Whether the pointer is over a drawing that a press would grab.
    """

    changed = Signal()
    tool_changed = Signal()
    drawn = Signal(object, object)
    chosen = Signal(str)
    dragged = Signal(object, object)
    dropped = Signal()
    refused = Signal(str)

    def __init__(self, context: WindowContext, active_tool: ActiveTool, aim: Aim) -> None:
        super().__init__(context)
        self._active_tool = active_tool
        self._aim = aim
        self.sketch: Sketch | None = None
        self.find: Callable[[Any, Any], Grip | None] = lambda _viewer, _pixel: None
        self.is_over = False
        self._is_gripping = False
        self._last_pixel: tuple[float, float] = (0.0, 0.0)
        active_tool.changed.connect(self._follow_tool)
        self.attach(self._scene.viewer)

    def attach(self, viewer: Any) -> None:
        """Enable drawing in this view of the case as well."""
        viewer.mouse_drag_callbacks.append(self._follow_grip)
        viewer.mouse_drag_callbacks.append(self._follow_drawing)
        viewer.mouse_move_callbacks.append(self._follow_move)

    @property
    def kind(self) -> MeasureKind | None:
        """The kind of the active tool, or None."""
        mode = self._active_tool.mode_of(OWNER)
        return MeasureKind(mode) if mode else None

    @property
    def is_shown(self) -> bool:
        """Whether drawings are visible, which they are unless a brush is active."""
        tool = self._active_tool.tool
        return tool is None or tool.owner not in _BRUSHES

    def toggle(self, kind: MeasureKind) -> None:
        """Turn a tool on, or off if it is active."""
        if self.kind is kind:
            self._active_tool.turn_off(OWNER)
            return
        if self._scene.grid is None:
            self.refused.emit(tr("Open a case first."))
            return
        name = f"{NAMES[kind]}: {_ASKS[kind]}"
        tool = MouseTool(OWNER, kind, name, PAGE, waits=True, other_pages=_OTHER_PAGES)
        self._active_tool.turn_on(tool)

    # -------------------------------------------------------------------- inner

    def _follow_tool(self) -> None:
        if self.kind is not None:
            self._rest_layer()
        self._set_sketch(None)
        self.tool_changed.emit()

    def _rest_layer(self) -> None:
        layer = self._scene.viewer.layers.selection.active
        if layer is not None and str(getattr(layer, "mode", "pan_zoom")) != "pan_zoom":
            layer.mode = "pan_zoom"

    def _set_sketch(self, sketch: Sketch | None) -> None:
        if sketch != self.sketch:
            self.sketch = sketch
            self.changed.emit()

    def _find_place(
        self, viewer: Any, position: Any, *, is_clipped: bool = True
    ) -> tuple[Slice, PointMm] | None:
        """Return the slice of a view and a world position on it, in RAS mm."""
        grid, plane = self._scene.grid, self._scene.view.slice_shown_in(viewer)
        voxel = self._scene.view.place_at(position)
        if grid is None or plane is None or voxel is None:
            return None
        on = Slice(grid, *plane)
        point = on.find_point(voxel, is_clipped=is_clipped)
        return None if point is None else (on, point)

    def _follow_move(self, viewer: Any, event: Any) -> None:
        if self.sketch is not None:
            self._lead_line(viewer, event.position)
        may = self._active_tool.tool is None and not event.modifiers
        self.is_over = may and self.find(viewer, event.pos) is not None

    def _lead_line(self, viewer: Any, position: Any) -> None:
        target = self._find_place(viewer, position)
        if target is not None and self.sketch is not None and target[0] == self.sketch.on:
            self._set_sketch(self.sketch.point_at(target[1]))

    def _follow_drawing(self, viewer: Any, event: Any) -> Iterator[None]:
        kind = self.kind
        if kind is None or self._is_gripping or event.button != _LEFT or event.modifiers:
            return
        target = self._find_place(viewer, event.position, is_clipped=False)
        if self._aim.problem_in(viewer) or (target is None and self.sketch is None):
            return
        event.handled = True
        self._rest_layer()
        camera, start = viewer.scene.camera, _read_pixel(event)
        camera.mouse_pan = False
        began = target is not None and self._begin_line(kind, target, start)
        has_moved = False
        yield
        while event.type == "mouse_move":
            has_moved = has_moved or _find_distance(event, start) > _STILL_PIXELS
            self._lead_line(viewer, event.position)
            yield
        camera.mouse_pan = True
        has_moved = has_moved or _find_distance(event, start) > _STILL_PIXELS
        if self.sketch is not None and (has_moved or not began):
            self._lead_line(viewer, event.position)
            self._end_line(viewer, event)

    def _begin_line(
        self, kind: MeasureKind, place: tuple[Slice, PointMm], pixel: tuple[float, float]
    ) -> bool:
        """Begin a line if there is none on this slice; return whether a line was begun."""
        sketch = self.sketch
        if sketch is None or sketch.on != place[0] or sketch.kind is not kind:
            sketch = Sketch(kind, place[0])
        if not sketch.begins_line:
            return False
        self._last_pixel = pixel
        self._set_sketch(sketch.place(place[1]))
        return True

    def _end_line(self, viewer: Any, event: Any) -> None:
        sketch = self.sketch
        if sketch is None or sketch.pointer is None:
            return
        if _find_distance(event, self._last_pixel) <= _STILL_PIXELS:
            self.refused.emit(tr("Both points are the same: click another point."))
            return
        self._last_pixel = _read_pixel(event)
        sketch = sketch.place(sketch.pointer)
        if not sketch.is_complete:
            self._set_sketch(sketch)
            return
        self._set_sketch(None)
        shape = sketch.shape
        if shape is None or not has_extent(*shape):
            self.refused.emit(tr("The drawing has no length and was discarded."))
            return
        self.drawn.emit(sketch, viewer)

    def _follow_grip(self, viewer: Any, event: Any) -> Iterator[None]:
        is_free = self._active_tool.tool is None or self.kind is not None
        if not is_free or self.sketch is not None or event.button != _LEFT or event.modifiers:
            return
        grip = self.find(viewer, event.pos)
        if grip is None or self._aim.problem_in(viewer):
            if self.kind is None:
                self.chosen.emit("")
            return
        event.handled = self._is_gripping = True
        camera, start = viewer.scene.camera, _read_pixel(event)
        camera.mouse_pan = False
        self.chosen.emit(grip.key)
        has_moved = False
        yield
        while event.type == "mouse_move":
            has_moved = has_moved or _find_distance(event, start) > _STILL_PIXELS
            target = self._find_place(viewer, event.position)
            if has_moved and grip.at is not None and target is not None and target[0] == grip.on:
                self.dragged.emit(grip, target[1])
            yield
        camera.mouse_pan = self.kind is None
        self._is_gripping = False
        self.dropped.emit()


def _read_pixel(event: Any) -> tuple[float, float]:
    return float(event.pos[0]), float(event.pos[1])


def _find_distance(event: Any, pixel: tuple[float, float]) -> float:
    x, y = _read_pixel(event)
    return max(abs(x - pixel[0]), abs(y - pixel[1]))
