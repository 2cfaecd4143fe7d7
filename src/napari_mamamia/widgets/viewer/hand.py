"""What the mouse holds on the image, nothing or one tool, and what its wheel does."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from qtpy.QtCore import QObject, Signal

from napari_mamamia.widgets.adapter.adapter import slice_scrolling
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.slice_view import put_steps, read_steps

_ESCAPE: Final = "Escape"
_SPACE_AXES: Final = 3
_ZOOM_A_TURN: Final = 1.2
"""By looking: four turns double the image."""


@dataclass(frozen=True, slots=True)
class HeldTool:
    """A tool in hand: which part of the window it belongs to, and what people call it.

    `mode` tells the tools of one owner apart. Where `page` is left, the tool is put down, unless
    for one of `other_pages`. One that `waits` is for a click or drag, and put down by Esc.
    """

    owner: str
    mode: str
    name: str
    page: str
    waits: bool = False
    other_pages: tuple[str, ...] = ()

    def belongs_to(self, page: str) -> bool:
        """Whether it may be in hand while a page is on screen."""
        return page == self.page or page in self.other_pages


class Hand(QObject):
    """At most one tool at a time, and only on the page that has its controls.

    `page_wanted` asks for the page of a tool that is taken elsewhere, so that nothing is armed out
    of sight.
    """

    changed = Signal()
    page_wanted = Signal(str)

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tool: HeldTool | None = None
        self.page = page

    def take(self, tool: HeldTool) -> None:
        """Take a tool in place of the one in hand, and go to its page."""
        if not tool.belongs_to(self.page):
            self.page_wanted.emit(tool.page)
        self._set_tool(tool)

    def put_down(self, owner: str | None = None) -> None:
        """Hold nothing any more; with an owner, only where the tool in hand is one of its."""
        if owner is None or (self.tool is not None and self.tool.owner == owner):
            self._set_tool(None)

    def stop_waiting(self) -> None:
        """Put down a tool that waits for a click or a drag."""
        if self.tool is not None and self.tool.waits:
            self._set_tool(None)

    def turn(self, page: str) -> None:
        """Follow the dock to another page."""
        self.page = page
        if self.tool is not None and not self.tool.belongs_to(page):
            self._set_tool(None)

    def mode_of(self, owner: str) -> str:
        """Return which tool of an owner is in hand, "" for none."""
        return self.tool.mode if self.tool is not None and self.tool.owner == owner else ""

    def _set_tool(self, tool: HeldTool | None) -> None:
        if tool != self.tool:
            self.tool = tool
            self.changed.emit()


class EscapeKey:
    """Lets Esc put down a tool that waits, whichever layer is chosen.

    A layer's own keys come before the viewer's, and napari gives Esc to labels and shapes.
    """

    def __init__(self, viewer: Any, hand: Hand) -> None:
        self._viewer = viewer
        self._hand = hand
        self._layer: Any = None
        hand.changed.connect(self._follow_layer)
        viewer.layers.selection.events.active.connect(self._follow_layer)

    def _follow_layer(self, _event: object = None) -> None:
        tool, layer = self._hand.tool, self._viewer.layers.selection.active
        waiting_layer = layer if tool is not None and tool.waits else None
        if self._layer is not None and self._layer is not waiting_layer:
            self._layer.bind_key(_ESCAPE, None, overwrite=True)
            self._layer = None
        # The reader's own mask has the key already, bound with the others of its brush.
        if waiting_layer is not None and not _has_escape(waiting_layer):
            waiting_layer.bind_key(_ESCAPE, self._stop_waiting, overwrite=True)
            self._layer = waiting_layer

    def _stop_waiting(self, _layer: Any) -> None:
        self._hand.stop_waiting()


def _has_escape(layer: Any) -> bool:
    """Whether a layer's own keys have Esc already."""
    return any(str(key) == _ESCAPE for key in layer.keymap)


class WheelTurns(WindowPart):
    """The wheel: slices; with Ctrl it zooms at the pointer, with Shift it goes through the phases.

    It does so while a case is shown in a plane; else napari has its wheel. Where a tool is in hand
    (`is_free` says not) the wheel with Shift is the tool's, and a drag is never moved from under.
    """

    def __init__(self, context: WindowContext, is_free: Callable[[], bool]) -> None:
        super().__init__(context)
        self._is_free = is_free
        self._progress = 0.0
        self.attach(self._scene.viewer)

    def attach(self, viewer: Any) -> None:
        """Turn the slices of another view of the case as well."""
        for function in slice_scrolling(viewer):
            viewer.mouse_wheel_callbacks.remove(function)
            viewer.mouse_wheel_callbacks.append(self._leave_to(function))
        viewer.mouse_wheel_callbacks.insert(0, self._turn_wheel)

    def _leave_to(self, function: Callable[[Any, Any], object]) -> Callable[[Any, Any], None]:
        """Return napari's own function, called where the wheel is not ours."""

        def scroll(viewer: Any, event: Any) -> None:
            if not event.handled:
                function(viewer, event)

        return scroll

    def _turn_wheel(self, viewer: Any, event: Any) -> None:
        held = {str(getattr(key, "name", key)) for key in event.modifiers}
        is_plane = self._scene.layer(Role.PHASE) is not None and viewer.dims.ndisplay == 2
        if not is_plane or held not in (set(), {"Control"}, {"Shift"}):
            return
        if held == {"Shift"} and not self._is_free():
            return
        event.handled = True
        turns = self._read_turns(event)
        if event.is_dragging:
            return
        if held == {"Control"}:
            zoom_at(viewer, event.position, _ZOOM_A_TURN**turns)
            return
        steps = self._count_steps(turns)
        if held:
            self._scene.step_phase(steps)
        elif steps:
            self._step_slices(viewer, steps)

    def _step_slices(self, viewer: Any, by: int) -> None:
        """Go `by` slices on, to the ends; of the exam, whatever steps another layer has."""
        dims, grid = viewer.dims, self._scene.grid
        axis = dims.order[-_SPACE_AXES]
        along = axis - (dims.ndim - _SPACE_AXES)
        if viewer is not self._scene.viewer or grid is None or along < 0:
            dims.set_current_step(axis, dims.current_step[axis] + by)
            return
        last = grid.shape[grid.display_frame().order[along]] - 1
        put_steps(dims, grid, {axis: min(max(read_steps(dims, grid)[along] + by, 0), last)})

    def _read_turns(self, event: Any) -> float:
        """Return how far the wheel was turned up, one turn an event at most, as napari counts."""
        turned = float(event.delta[1] or event.delta[0])  # some systems turn Shift sideways
        inverted = getattr(event.native, "inverted", None)
        return max(-1.0, min(1.0, turned)) * (-1 if inverted is not None and inverted() else 1)

    def _count_steps(self, turns: float) -> int:
        """Return whole steps, downwards positive; a trackpad's small ones add up."""
        self._progress -= turns
        steps = int(self._progress)
        self._progress -= steps
        return steps


def zoom_at(viewer: Any, position: tuple[float, ...], factor: float) -> None:
    """Enlarge the image around a world position, which stays where it is on the screen."""
    camera, shown = viewer.scene.camera, viewer.dims.displayed
    centre = list(camera.center)
    for index, axis in zip(range(len(centre) - len(shown), len(centre)), shown, strict=True):
        centre[index] = position[axis] + (centre[index] - position[axis]) / factor
    camera.zoom *= factor
    camera.center = tuple(centre)
