"""Mouse input while a tool of the Refine page is active: brush strokes and outlines.

napari calls this code for each press, move and release. Errors are shown in the header and never
reach napari's event loop. An error discards the current stroke; earlier strokes are kept.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QTimer, Signal

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Brush, Tool, Voxel
from napari_mamamia.core.texts import tr
from napari_mamamia.services.refine.outlines import (
    fill_contour,
    line_voxels,
    open_text,
    outline_step,
)
from napari_mamamia.services.refine.strokes import (
    WHOLE_ADVICE,
    StrokeChange,
    advise_whole,
    name_other,
)
from napari_mamamia.smartpaint.evidence.stroke import Preview
from napari_mamamia.widgets.base.notify import Failed, outcome_of
from napari_mamamia.widgets.refine.brush_cursor import BrushCursor
from napari_mamamia.widgets.refine.editing import Editing
from napari_mamamia.widgets.refine.history_list import StepWords
from napari_mamamia.widgets.refine.live_mask import LiveMask
from napari_mamamia.widgets.refine.state import (
    PaintTool,
    RefineState,
    next_radius_mm,
)
from napari_mamamia.widgets.viewer.active_tool import ActiveTool, MouseTool
from napari_mamamia.widgets.viewer.aim import Aim
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.marks import Marks, StrokeMarks


class Outlining:
    """A tool that draws one contour at a time in the displayed plane."""

    def __init__(
        self,
        mask: LiveMask,
        marks: Marks,
        say: Callable[[str], object],
        grown: Callable[[], tuple[Box, NDArray[np.bool_]] | None],
    ) -> None:
        self._mask = mask
        self._grown = grown
        self._marks = marks
        self._say = say
        self._points: list[Voxel] = []
        self._axis = 0
        self._brush = Brush()

    def press(self, place: Voxel, brush: Brush) -> None:
        """Begin a contour at `place` (z, y, x) on the displayed slice."""
        self._marks.clear()
        self._points, self._axis, self._brush = [place], brush.plane_axis, brush

    def drag(self, place: Voxel) -> None:
        """Continue the contour to `place`."""
        live = self._mask.live
        if live is None or not self._points:
            return
        box, on_line = line_voxels(self._points[-1], place, live.grid.shape)
        self._points.append(place)
        if not box.is_empty:
            self._marks.add(box, on_line, "line")

    def release(self) -> None:
        """Close the contour, and add its inside to the mask, or remove it when erasing."""
        points, self._points = self._points, []
        live = self._mask.live
        self._marks.clear()
        outline = fill_contour(points, self._axis, live.grid.shape) if live and points else None
        if live is None or outline is None:
            return
        label, action = self._brush.label, self._brush.action
        step = outline_step(live.labels, outline, label, action, self._grown())
        if self._mask.apply(*step, label=self._brush.label):
            self._say(open_text(points, live.grid.spacing_mm))

    def abandon(self) -> None:
        """Discard the current contour."""
        if self._points:
            self._points = []
            self._marks.clear()


class Pointing:
    """A tool that selects a point or draws a straight line; `use` receives both ends on release.

    If `has_line` is False, both ends are the pressed point.
    """

    def __init__(
        self,
        mask: LiveMask,
        marks: Marks,
        use: Callable[[Voxel, Voxel, Brush], object],
        *,
        has_line: bool,
    ) -> None:
        self._mask = mask
        self._marks = marks
        self._use = use
        self._has_line = has_line
        self._ends: tuple[Voxel, Voxel] | None = None
        self._brush = Brush()

    def press(self, place: Voxel, brush: Brush) -> None:
        """Begin at `place` (z, y, x) on the displayed slice."""
        self._marks.clear()
        self._ends, self._brush = (place, place), brush

    def drag(self, place: Voxel) -> None:
        """Draw the line to `place`."""
        live = self._mask.live
        if live is None or self._ends is None or not self._has_line:
            return
        self._ends = (self._ends[0], place)
        self._marks.clear()
        box, on_line = line_voxels(*self._ends, live.grid.shape)
        if not box.is_empty:
            self._marks.add(box, on_line, "line")

    def release(self) -> None:
        """Pass the point or the line to `use`."""
        ends, self._ends = self._ends, None
        self._marks.clear()
        if ends is not None:
            self._use(*ends, self._brush)

    def abandon(self) -> None:
        """Discard the current point or line."""
        if self._ends is not None:
            self._ends = None
            self._marks.clear()


_OWNER: Final = "painting"
_PAGE: Final = "Refine"
_LEFT: Final = 1
_RIGHT: Final = 2
_PREVIEW_MS: Final = 40
_WHEEL: Final = tr("wheel: radius")
_NO_MASK: Final = tr("Make your own mask first: use “Start from” on the Refine page.")
_HIDDEN: Final = tr("Your mask is hidden: click “refined” in the header to show it.")
_LOCKED: Final = tr(
    "Your mask cannot be changed at the moment: use “Start from” on the Refine page."
)


class Painting(WindowPart):
    """A component that paints with the active tool; `state_changed` reports a new `state`.

    The signal `sign_changed` reports that the effect of a press changed because of a new tool,
    brush, modifier key or view. `said` carries a text about the last action, and whether the text
    is advice. `over_wanted` requests the drawing that a preview has replaced. `part_pointed`
    carries a point and the label of a component to remove; `line_drawn` carries the two ends of a
    cut and the brush.
    """

    state_changed = Signal()
    sign_changed = Signal()
    pointed = Signal(object)
    said = Signal(str, bool)
    over_wanted = Signal()
    part_pointed = Signal(object, int)
    line_drawn = Signal(object, object)

    def __init__(
        self,
        context: WindowContext,
        editing: Editing,
        marks: Marks,
        active_tool: ActiveTool,
        aim: Aim,
    ) -> None:
        super().__init__(context)
        self._editing = editing
        self._mask = editing.mask
        self._marks = marks
        self._active_tool = active_tool
        self._aim = aim
        self._cursor = BrushCursor(self._scene)
        self.grown_so_far: Callable[[], tuple[Box, NDArray[np.bool_]] | None] = lambda: None
        self._drawing: dict[PaintTool, Outlining | Pointing] = {
            PaintTool.OUTLINE: Outlining(
                editing.mask, marks, self._say_open, lambda: self.grown_so_far()
            ),
            PaintTool.PART: Pointing(
                editing.mask,
                marks,
                lambda place, _, brush: self.part_pointed.emit(place, brush.label),
                has_line=False,
            ),
            PaintTool.CUT: Pointing(
                editing.mask,
                marks,
                lambda start, stop, brush: self.line_drawn.emit((start, stop), brush),
                has_line=True,
            ),
        }
        self._shown = StrokeMarks(marks)
        self._change: StrokeChange | None = None
        self._words = StepWords()
        self._brush = Brush()
        self._smart = self._brush.tool
        self.marks_are_free = True
        self.is_comparing = False
        self._is_paused = False
        self._stroke: RefineState | None = None
        self._place: Voxel | None = None
        self._other = ""
        self._held: frozenset[str] = frozenset()
        self._preview = QTimer(self)
        self._preview.setSingleShot(True)
        self._preview.setInterval(_PREVIEW_MS)
        # Not a lambda, which a collection may clear before Qt stops the timer that calls it.
        self._preview.timeout.connect(self._try_preview)
        self._view = self._scene.viewer
        self.attach(self._scene.viewer)
        self._scene.viewer.layers.selection.events.active.connect(self._follow_choice)
        strokes = editing.mask.strokes
        strokes.previewed.connect(self._show_preview)
        strokes.changed.connect(self._show_change)
        strokes.stepped.connect(lambda _step: self._end_preview())
        editing.mask.stepped.connect(self._report_step)
        editing.opened.connect(self._begin_words)
        editing.opened.connect(lambda: self._notifier.withdraw(_NO_MASK))
        active_tool.changed.connect(self._follow_tool)
        aim.changed.connect(self._show_cursor)
        self._cursor.held.changed.connect(self._hold_keys)

    def attach(self, viewer: Any) -> None:
        """Enable painting in this view of the case, whose layers show the same arrays."""
        viewer.mouse_drag_callbacks.append(self._follow_drag)
        viewer.mouse_move_callbacks.append(self._follow_move)
        viewer.mouse_wheel_callbacks.append(self._turn_wheel)
        viewer.events.mouse_over_canvas.connect(lambda _event: self._cursor.leave(viewer))

    @property
    def cursor(self) -> BrushCursor:
        """The brush cursor."""
        return self._cursor

    # --------------------------------------------------------------- choosing

    @property
    def state(self) -> RefineState:
        """The active tool, and its current or last brush."""
        mode = self._active_tool.mode_of(_OWNER)
        tool = PaintTool(mode) if mode else PaintTool.NONE
        return RefineState(tool, self._brush, self._smart)

    @property
    def pressed(self) -> RefineState:
        """The effect of the current stroke, or of a press with the left button."""
        if self._stroke is not None:
            return self._stroke
        return replace(self.state, brush=self.brush_for(False, "Shift" in self._held))

    @property
    def is_paused(self) -> bool:
        """Whether dragging currently pans the image."""
        return self._is_paused

    @property
    def place(self) -> Voxel | None:
        """The last pointer position on a slice, in voxel coordinates (z, y, x)."""
        return self._place

    def problem_in(self, viewer: Any) -> str:
        """Return why painting in a view is not possible at present, or "" if it is possible."""
        layer = self._mask.layer
        if layer is not None and not layer.visible:
            return _HIDDEN
        if layer is not None and not layer.editable:
            return _LOCKED
        return self._aim.problem_in(viewer)

    def set_tool(self, tool: PaintTool) -> None:
        """Turn a tool on; `NONE` turns the active tool off."""
        if tool is not PaintTool.NONE and self._mask.live is None:
            self._notifier.hint(_NO_MASK)
            tool = PaintTool.NONE
        if tool is PaintTool.NONE:
            self._active_tool.turn_off(_OWNER)
            return
        self._brush = replace(self._brush, tool=self._brush_tool(tool) or self._brush.tool)
        self._active_tool.turn_on(MouseTool(_OWNER, str(tool), tool.shown, _PAGE))

    def toggle_tool(self, tool: PaintTool) -> None:
        """Turn a tool on, or off if it is active."""
        self.set_tool(PaintTool.NONE if self.state.tool is tool else tool)

    def set_brush(self, brush: Brush) -> None:
        """Set the brush without changing the tool.

        If it is a smart brush, SmartPaint uses it from now on.
        """
        before = self.state
        if brush.tool.is_smart:
            self._smart = brush.tool
        self._brush = replace(brush, tool=self._brush_tool(before.tool) or brush.tool)
        if self.state != before:
            self.state_changed.emit()
        self._show_cursor()
        self._preview.start()

    def _brush_tool(self, tool: PaintTool) -> Tool | None:
        return self._smart if tool is PaintTool.SMARTPAINT else tool.brush_tool

    def set_label(self, value: int) -> None:
        """Paint another structure."""
        if value != self._brush.label:
            self._forget_change()
        self.set_brush(replace(self._brush, label=value))

    def toggle_action(self) -> None:
        """Switch between adding and erasing."""
        self.set_brush(self._brush.inverted())

    def step_radius(self, by: int) -> None:
        """Increase or decrease the radius by `by` steps."""
        radius = next_radius_mm(self._brush.radius_mm, by)
        self.set_brush(replace(self._brush, radius_mm=radius))

    def pause(self, paused: bool) -> None:
        """Let dragging pan the image while the key is held."""
        self._is_paused = paused and self.state.tool is not PaintTool.NONE
        if self._is_paused:
            self._preview.stop()
            self._clear_preview()
        self._show_cursor()

    def _follow_tool(self) -> None:
        self._end_stroke()
        self._is_paused = False
        if self.state.tool is not PaintTool.NONE:
            self._editing.choose_layer()
        self._show_cursor()
        self.state_changed.emit()

    def _show_cursor(self) -> None:
        layer = self._mask.layer
        if self.state.tool is PaintTool.NONE or layer is None or self._is_paused:
            self._cursor.hide()
            self._clear_preview()
        else:
            state, problem = self.pressed, self.problem_in(self._view)
            if "Control" in self._held:
                state = replace(state, tool=PaintTool.NONE)
            aside = _WHEEL if "Alt" in self._held else problem
            self._cursor.show(layer, state, aside)
            if problem:
                self._clear_preview()
        self.sign_changed.emit()

    def _hold_keys(self, held: set[str]) -> None:
        if frozenset(held) != self._held:
            self._held = frozenset(held)
            if self.state.tool is not PaintTool.NONE:
                self._show_cursor()

    def _follow_choice(self, event: Any) -> None:
        if self.state.tool is PaintTool.NONE or self._scene.is_changing:
            return
        if event.value is not None and event.value is not self._mask.layer:
            self.set_tool(PaintTool.NONE)

    # -------------------------------------------------------------------- mouse

    def _follow_drag(self, viewer: Any, event: Any) -> Iterator[None]:
        self._look_from(viewer)
        layer = self._mask.layer
        if self._is_refused(event) or layer is None:
            return
        event.handled = True
        self._preview.stop()
        self._shown.clear()
        self._clear_preview()
        # A drag with the right button zooms in napari; here it paints the opposite action.
        layer.mouse_zoom = event.button != _RIGHT
        brush = self.brush_for(event.button == _RIGHT, "Shift" in _list_held_keys(event))
        self._stroke = replace(self.state, brush=brush)
        self._show_cursor()
        self._try_work(lambda: self._press_tool(event, brush))
        yield
        while event.type == "mouse_move":
            event.handled = True
            if self.problem_in(viewer):
                self._end_stroke()
            if self._stroke is not None:
                self._place = self._scene.view.place_at(event.position)
                self._try_work(self._go_on)
            self._cursor.move(event.pos, viewer)
            yield
        event.handled = True
        layer.mouse_zoom = True
        self._end_stroke()

    def _is_refused(self, event: Any) -> bool:
        if self.state.tool is PaintTool.NONE or self._is_paused:
            return True
        if event.button not in (_LEFT, _RIGHT) or {"Alt", "Control"} & _list_held_keys(event):
            return True
        if self._mask.live is None or self.problem_in(self._view):
            return True
        return not self._try_work(self._mask.repair_layer)

    def _press_tool(self, event: Any, brush: Brush) -> None:
        self._place = point = self._scene.view.place_at(event.position)
        live = self._mask.live
        if point is None or live is None:
            return
        self._other = name_other(live.labels, live.locked, point)
        if self._other:
            self.said.emit(self._other, True)
        self._drawing.get(self.state.tool, self._mask).press(point, brush)

    def _go_on(self) -> None:
        if self._place is None:
            return
        self._drawing.get(self.state.tool, self._mask).drag(self._place)

    def _end_stroke(self) -> None:
        stroke, self._stroke = self._stroke, None
        if stroke is None:
            return
        drawing = self._drawing.get(stroke.tool)
        self._try_work(self._mask.end_stroke if drawing is None else drawing.release)
        self._show_cursor()

    def drop_stroke(self) -> None:
        """Discard the current stroke, so that releasing the button has no effect."""
        if self._stroke is None:
            return
        self._stroke = None
        self._mask.abandon()
        for drawing in self._drawing.values():
            drawing.abandon()
        self._shown.clear()
        self._end_preview()
        self._show_cursor()

    def _say_open(self, text: str) -> None:
        self.said.emit(text, bool(text))

    def brush_for(self, right_button: bool, shift: bool) -> Brush:
        """Return the brush for a press with these buttons and keys.

        With Shift, SmartPaint acts on the whole lesion.
        """
        brush = self._brush.inverted() if right_button else self._brush
        axis = self._scene.view.upright_axis_in(self._view)
        whole = shift and self.state.tool is PaintTool.SMARTPAINT
        return replace(brush, whole=whole, plane_axis=0 if axis is None else axis)

    def _look_from(self, viewer: Any) -> None:
        if viewer is not self._view:
            self._view = viewer
            self._show_cursor()

    def _follow_move(self, viewer: Any, event: Any) -> None:
        self._look_from(viewer)
        if self.state.tool is PaintTool.NONE or self._is_paused:
            return
        self._hold_keys(_list_held_keys(event))
        self._cursor.move(event.pos, viewer)
        if self.problem_in(viewer):
            self._place = None
            return
        self._place = self._scene.view.place_at(event.position)
        # Not restarted: the preview appears while the pointer moves, not after it rests.
        if not self._preview.isActive():
            self._preview.start()

    def _turn_wheel(self, _viewer: Any, event: Any) -> None:
        held = _list_held_keys(event)
        if self.state.tool is PaintTool.NONE or held != {"Alt"}:
            return
        event.handled = True
        # With Alt held, Qt turns the movement of the wheel sideways.
        turned = event.delta[1] or event.delta[0]
        if turned:  # a trackpad's scroll ends with an event without movement
            self.step_radius(1 if turned > 0 else -1)

    # ------------------------------------------------------------------ preview

    def _try_preview(self) -> None:
        self._try_work(self._draw_preview)

    def _draw_preview(self) -> None:
        live, state = self._mask.live, self.pressed
        if live is None or self._place is None or self._stroke is not None:
            return
        if not self.marks_are_free or not state.is_painting or self.problem_in(self._view):
            return
        self.pointed.emit(self._place)
        if state.brush.tool is Tool.SMOOTH or state.brush.tool.is_smart:
            self._clear_preview()
            return
        box, turned = live.preview(self._place, state.brush)
        if box.is_empty:
            self._clear_preview()
        else:
            self._marks.draw(box, turned, str(state.brush.action), faint=True)

    def _clear_preview(self) -> None:
        if self.marks_are_free and not self._shown.is_shown:
            self._marks.clear()

    # ------------------------------------------------------------ after a stroke

    def _show_preview(self, preview: Preview) -> None:
        if not self.is_comparing and self._stroke is not None:
            self._shown.draw_preview(preview.box, preview.mask)

    def _end_preview(self) -> None:
        self._shown.take_preview()
        if not self.marks_are_free and not self.is_comparing:
            self.over_wanted.emit()

    def _show_change(self, change: StrokeChange) -> None:
        before, self._change = self._change, change
        if self.marks_are_free and self._stroke is None:
            self._shown.flash(change.box, change.added, change.removed)
        is_stuck = advise_whole(before, change)
        self.said.emit(WHOLE_ADVICE if is_stuck else change.text, is_stuck)

    def _begin_words(self) -> None:
        self._words.begin(self._mask.live)
        self._forget_change()

    def _report_step(self) -> None:
        live = self._mask.live
        if live is None:
            return
        words, dropped = self._words.follow(live)
        if words:
            self._forget_change()
        self.said.emit(words or self._other, not words and bool(self._other))
        if dropped:
            self._notifier.hint(dropped)

    def _forget_change(self) -> None:
        self._change = None
        self._shown.clear()
        self.said.emit("", False)

    def _try_work(self, work: Callable[[], object]) -> bool:
        outcome = outcome_of(work)
        if isinstance(outcome, Failed):
            self._stroke = None
            self._mask.abandon()
            for drawing in self._drawing.values():
                drawing.abandon()
            self._notifier.fail("Painting", outcome.error)
            return False
        return True


def _list_held_keys(event: Any) -> set[str]:
    return {str(getattr(key, "name", key)) for key in event.modifiers}
