"""The mouse on the image while a tool of the page Refine is on: brush strokes and outlines.

napari calls us for each press, move and release; whatever goes wrong there is said in the header
and never reaches napari's event loop. The stroke in hand is dropped then, what was done before
stays.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from qtpy.QtCore import QObject, QTimer, Signal

from napari_mamamia.core.edits import Brush, Tool, Voxel
from napari_mamamia.smartpaint.brush import painted_radius_mm
from napari_mamamia.widgets.brush_cursor import BrushCursor
from napari_mamamia.widgets.editing import Editing
from napari_mamamia.widgets.marks import Marks
from napari_mamamia.widgets.notify import Failed, Notifier, outcome_of
from napari_mamamia.widgets.outlining import Outlining
from napari_mamamia.widgets.refine_state import (
    PaintTool,
    RefineState,
    next_radius_mm,
    next_tolerance,
)
from napari_mamamia.widgets.scene import Scene

__all__ = ["Painting"]

_LEFT: Final = 1
_RIGHT: Final = 2
_PREVIEW_MS: Final = 40
_NO_MASK: Final = "Make your own mask first: page Refine, Start from."
_IN_3D: Final = "Painting needs a slice on screen: leave the 3-D view of the image first."


class Painting(QObject):
    """Holds the tool and the brush. `state_changed` says that `state` is new."""

    state_changed = Signal()
    pointed = Signal(object)

    def __init__(self, scene: Scene, editing: Editing, marks: Marks, notifier: Notifier) -> None:
        super().__init__()
        self._scene = scene
        self._editing = editing
        self._mask = editing.mask
        self._marks = marks
        self._notifier = notifier
        self._cursor = BrushCursor(scene)
        self._outlining = Outlining(editing.mask, marks)
        self.state = RefineState()
        self.marks_are_free = True
        self._is_paused = False
        self._is_dragging = False
        self._place: Voxel | None = None
        self._with_shift = False
        self._preview = QTimer(self)
        self._preview.setSingleShot(True)
        self._preview.setInterval(_PREVIEW_MS)
        self._preview.timeout.connect(lambda: self._guarded(self._draw_preview))
        self._view = scene.viewer
        self.attach(scene.viewer)
        scene.viewer.layers.selection.events.active.connect(self._follow_choice)

    def attach(self, viewer: Any) -> None:
        """Paint in this view of the case as well; its layers show the same arrays."""
        viewer.mouse_drag_callbacks.append(self._drag)
        viewer.mouse_move_callbacks.append(self._move)
        viewer.mouse_wheel_callbacks.append(self._wheel)

    @property
    def cursor(self) -> BrushCursor:
        """The brush at the mouse."""
        return self._cursor

    # --------------------------------------------------------------- choosing

    @property
    def place(self) -> Voxel | None:
        """Where the mouse was last, in voxel coordinates (z, y, x)."""
        return self._place

    def set_tool(self, tool: PaintTool) -> None:
        """Take a tool, or put it down (`NONE`)."""
        if tool is not PaintTool.NONE and self._mask.live is None:
            self._notifier.hint(_NO_MASK)
            tool = PaintTool.NONE
        brush = self.state.brush
        if tool.brush_tool is not None:
            brush = replace(brush, tool=tool.brush_tool)
        self._take(RefineState(tool, brush))
        if tool is not PaintTool.NONE:
            self._editing.choose_layer()
        self._show_cursor()

    def toggle_tool(self, tool: PaintTool) -> None:
        """Take a tool, or put it down where it is the one in hand."""
        self.set_tool(PaintTool.NONE if self.state.tool is tool else tool)

    def set_brush(self, brush: Brush) -> None:
        """Take another brush; the tool stays."""
        tool = self.state.tool.brush_tool or brush.tool
        self._take(replace(self.state, brush=replace(brush, tool=tool)))
        self._show_cursor()
        self._preview.start()

    def set_label(self, value: int) -> None:
        """Paint another structure."""
        self.set_brush(replace(self.state.brush, label=value))

    def toggle_action(self) -> None:
        """Change between adding and erasing."""
        self.set_brush(self.state.brush.inverted())

    def step_radius(self, by: int) -> None:
        """Make the radius a step larger or smaller."""
        radius = next_radius_mm(self.state.brush.radius_mm, by)
        self.set_brush(replace(self.state.brush, radius_mm=radius))

    def step_tolerance(self, by: int) -> None:
        """Make the tolerance a step higher or lower."""
        tolerance = next_tolerance(self.state.brush.tolerance, by)
        self.set_brush(replace(self.state.brush, tolerance=tolerance))

    def pause(self, paused: bool) -> None:
        """Let a drag move the image while the key is held."""
        self._is_paused = paused and self.state.tool is not PaintTool.NONE
        if self._is_paused:
            self._preview.stop()
            self._clear_preview()
            self._cursor.hide()
        else:
            self._show_cursor()

    def _take(self, state: RefineState) -> None:
        if state != self.state:
            self.state = state
            self.state_changed.emit()

    def _show_cursor(self) -> None:
        layer = self._mask.layer
        if self.state.tool is PaintTool.NONE or layer is None:
            self._cursor.hide()
            self._clear_preview()
        else:
            self._cursor.show(layer, self.state, painted_radius_mm(self.state.brush))

    def _follow_choice(self, event: Any) -> None:
        """Put the tool down where the user chooses another layer."""
        if self.state.tool is PaintTool.NONE or self._scene.is_changing:
            return
        if event.value is not None and event.value is not self._mask.layer:
            self.set_tool(PaintTool.NONE)

    # -------------------------------------------------------------------- mouse

    def _drag(self, viewer: Any, event: Any) -> Iterator[None]:
        self._view = viewer
        layer = self._mask.layer
        if self._refuses(event) or layer is None:
            return
        event.handled = True
        self._is_dragging = True
        self._preview.stop()
        self._clear_preview()
        layer.mouse_zoom = event.button != _RIGHT
        hand = self._guarded(lambda: self._press(event))
        yield
        while event.type == "mouse_move":
            event.handled = True
            self._place = self._scene.view.place_at(event.position)
            if hand and not self._guarded(lambda: self._go_on(event)):
                hand = False
            self._cursor.move(event.pos, viewer)
            yield
        event.handled = True
        self._is_dragging = False
        layer.mouse_zoom = True
        if hand:
            self._guarded(self._end)

    def _refuses(self, event: Any) -> bool:
        """Whether this press is none of ours."""
        if self.state.tool is PaintTool.NONE or self._is_paused:
            return True
        if event.button not in (_LEFT, _RIGHT) or {"Alt", "Control"} & _held(event):
            return True
        if self._mask.live is None:
            return True
        if self._scene.view.upright_axis_in(self._view) is None:
            self._notifier.hint(_IN_3D)
            return True
        return not self._guarded(self._mask.mend_layer)

    def _press(self, event: Any) -> None:
        brush = self.brush_for(event.button == _RIGHT, "Shift" in _held(event))
        self._place = place = self._scene.view.place_at(event.position)
        if place is None:
            return
        if self.state.tool is PaintTool.OUTLINE:
            self._outlining.press(place, brush)
        else:
            self._mask.press(place, brush)

    def _go_on(self, _event: Any) -> None:
        if self._place is None:
            return
        if self.state.tool is PaintTool.OUTLINE:
            self._outlining.drag(self._place)
        else:
            self._mask.drag(self._place)

    def _end(self) -> None:
        if self.state.tool is PaintTool.OUTLINE:
            self._outlining.release()
        else:
            self._mask.release()

    def brush_for(self, right_button: bool, shift: bool) -> Brush:
        """Return the brush that a press with these buttons paints with."""
        brush = self.state.brush.inverted() if right_button else self.state.brush
        axis = self._scene.view.upright_axis_in(self._view)
        tool = Tool.SPHERE if shift else brush.tool
        return replace(brush, tool=tool, plane_axis=0 if axis is None else axis)

    def _move(self, viewer: Any, event: Any) -> None:
        self._view = viewer
        if self.state.tool is PaintTool.NONE or self._is_paused:
            return
        self._place = self._scene.view.place_at(event.position)
        shift = "Shift" in _held(event)
        if shift is not self._with_shift:
            self._with_shift = shift
            self._cursor.say(self.state, sphere=shift)
        self._cursor.move(event.pos, viewer)
        if not self._preview.isActive():
            self._preview.start()

    def _wheel(self, _viewer: Any, event: Any) -> None:
        held = _held(event)
        if self.state.tool is PaintTool.NONE or held not in ({"Alt"}, {"Shift"}):
            return
        event.handled = True
        turned = event.delta[1] or event.delta[0]
        step = self.step_radius if held == {"Alt"} else self.step_tolerance
        step(1 if turned > 0 else -1)

    # ------------------------------------------------------------------ preview

    def _draw_preview(self) -> None:
        live = self._mask.live
        if live is None or self._place is None or self._is_dragging or not self.marks_are_free:
            return
        self.pointed.emit(self._place)
        if not self.state.is_painting or self._scene.view.upright_axis_in(self._view) is None:
            return
        brush = self.brush_for(False, self._with_shift)
        if brush.tool is Tool.SMOOTH:
            self._clear_preview()
            return
        box, turned = live.preview(self._place, brush)
        if box.is_empty:
            self._clear_preview()
        else:
            self._marks.draw(box, turned, str(brush.action), faint=True)

    def _clear_preview(self) -> None:
        if self.marks_are_free:
            self._marks.clear()

    def _guarded(self, work: Callable[[], object]) -> bool:
        """Do `work`; whether it succeeded. A failure is said, and drops the stroke in hand."""
        outcome = outcome_of(work)
        if isinstance(outcome, Failed):
            self._mask.abandon()
            self._outlining.abandon()
            self._notifier.fail("Painting", outcome.error)
            return False
        return True


def _held(event: Any) -> set[str]:
    """Return the names of the modifier keys that are down."""
    return {str(getattr(key, "name", key)) for key in event.modifiers}
