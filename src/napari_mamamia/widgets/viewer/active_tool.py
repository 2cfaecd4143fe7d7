"""The active mouse tool on the image (at most one), and the mouse wheel."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from qtpy.QtCore import QObject, Signal

from napari_mamamia.widgets.adapter.adapter import slice_scrolling
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.slice_view import put_steps, read_steps

_ESCAPE: Final = "Escape"
_ALL: Final = 1_000_000
"""A number larger than the number of slices in any exam."""
_SPACE_AXES: Final = 3
_ZOOM_A_TURN: Final = 1.2
"""Zoom factor for each wheel step, chosen by eye; four steps double the size of the image."""


@dataclass(frozen=True, slots=True)
class MouseTool:
    """A mouse tool, with its owner in the window and its displayed name.

    `mode` distinguishes the tools of one owner. The tool is turned off when the user leaves `page`
    for a page that is not in `other_pages`. If `waits` is true, the tool expects a click or a drag,
    and Esc turns the tool off.
    """

    owner: str
    mode: str
    name: str
    page: str
    waits: bool = False
    other_pages: tuple[str, ...] = ()

    def belongs_to(self, page: str) -> bool:
        """Return whether the tool may be active while a page is shown."""
        return page == self.page or page in self.other_pages


class ActiveTool(QObject):
    """The active mouse tool, if any, which is active only on the page with its controls.

    The signal `page_wanted` requests the page of a tool that is turned on elsewhere, so that no
    tool is active without its controls.
    """

    changed = Signal()
    page_wanted = Signal(str)

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tool: MouseTool | None = None
        self.page = page

    def turn_on(self, tool: MouseTool) -> None:
        """Turn a tool on instead of the active tool, and go to the tool's page."""
        if not tool.belongs_to(self.page):
            self.page_wanted.emit(tool.page)
        self._set_tool(tool)

    def turn_off(self, owner: str | None = None) -> None:
        """Turn the active tool off; with `owner`, only if the tool belongs to this owner."""
        if owner is None or (self.tool is not None and self.tool.owner == owner):
            self._set_tool(None)

    def stop_waiting(self) -> None:
        """Turn off a tool that waits for a click or a drag."""
        if self.tool is not None and self.tool.waits:
            self._set_tool(None)

    def follow_page(self, page: str) -> None:
        """Set the displayed page, and turn off a tool that does not belong to it."""
        self.page = page
        if self.tool is not None and not self.tool.belongs_to(page):
            self._set_tool(None)

    def mode_of(self, owner: str) -> str:
        """Return the mode of an owner's active tool, or "" if the owner has no active tool."""
        return self.tool.mode if self.tool is not None and self.tool.owner == owner else ""

    def _set_tool(self, tool: MouseTool | None) -> None:
        if tool != self.tool:
            self.tool = tool
            self.changed.emit()


class EscapeKey:
    """A handler that lets Esc turn off a waiting tool, whichever layer is selected.

    Keys of a layer have priority over keys of the viewer, and napari uses Esc on labels and shapes
    layers.
    """

    def __init__(self, viewer: Any, active_tool: ActiveTool) -> None:
        self._viewer = viewer
        self._active_tool = active_tool
        self._layer: Any = None
        active_tool.changed.connect(self._follow_layer)
        viewer.layers.selection.events.active.connect(self._follow_layer)

    def _follow_layer(self, _event: object = None) -> None:
        tool, layer = self._active_tool.tool, self._viewer.layers.selection.active
        waiting_layer = layer if tool is not None and tool.waits else None
        if self._layer is not None and self._layer is not waiting_layer:
            self._layer.bind_key(_ESCAPE, None, overwrite=True)
            self._layer = None
        # The reader's own mask already has the key, bound with the others of its brush.
        if waiting_layer is not None and not _has_escape(waiting_layer):
            waiting_layer.bind_key(_ESCAPE, self._stop_waiting, overwrite=True)
            self._layer = waiting_layer

    def _stop_waiting(self, _layer: Any) -> None:
        self._active_tool.stop_waiting()


def _has_escape(layer: Any) -> bool:
    return any(str(key) == _ESCAPE for key in layer.keymap)


class WheelTurns(WindowPart):
    """A component that scrolls slices with the wheel, zooms with Ctrl, and steps phases with Shift.

    This applies while a case is shown in a plane; otherwise napari handles the wheel. While a tool
    is active (`is_free` returns False), the tool handles Shift + wheel. Wheel steps during a drag
    are ignored.
    """

    def __init__(self, context: WindowContext, is_free: Callable[[], bool]) -> None:
        super().__init__(context)
        self._is_free = is_free
        self._progress = 0.0
        self.attach(self._scene.viewer)

    def actions(self) -> dict[str, Callable[..., object]]:
        """Return the actions of the slice shortcuts by action name."""
        steps = {"slice_back": -1, "slice_next": 1, "slice_first": -_ALL, "slice_last": _ALL}
        return {name: partial(self._step_main, by) for name, by in steps.items()}

    def _step_main(self, by: int) -> None:
        viewer = self._scene.viewer
        if self._scene.layer(Role.PHASE) is not None and viewer.dims.ndisplay == 2:
            self._step_slices(viewer, by)

    def attach(self, viewer: Any) -> None:
        """Enable scrolling through the slices in this view of the case."""
        for function in slice_scrolling(viewer):
            viewer.mouse_wheel_callbacks.remove(function)
            viewer.mouse_wheel_callbacks.append(self._leave_to(function))
        viewer.mouse_wheel_callbacks.insert(0, self._turn_wheel)

    def _leave_to(self, function: Callable[[Any, Any], object]) -> Callable[[Any, Any], None]:

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
        dims, grid = viewer.dims, self._scene.grid
        axis = dims.order[-_SPACE_AXES]
        along = axis - (dims.ndim - _SPACE_AXES)
        if viewer is not self._scene.viewer or grid is None or along < 0:
            dims.set_current_step(axis, dims.current_step[axis] + by)
            return
        last = grid.shape[grid.display_frame().order[along]] - 1
        put_steps(dims, grid, {axis: min(max(read_steps(dims, grid)[along] + by, 0), last)})

    def _read_turns(self, event: Any) -> float:
        turned = float(
            event.delta[1] or event.delta[0]
        )  # some systems report Shift and wheel as sideways
        inverted = getattr(event.native, "inverted", None)
        return max(-1.0, min(1.0, turned)) * (-1 if inverted is not None and inverted() else 1)

    def _count_steps(self, turns: float) -> int:
        self._progress -= turns
        steps = int(self._progress)
        self._progress -= steps
        return steps


def zoom_at(viewer: Any, position: tuple[float, ...], factor: float) -> None:
    """Zoom the image around a world position, which remains at the same place on the screen."""
    camera, displayed = viewer.scene.camera, viewer.dims.displayed
    centre = list(camera.center)
    for index, axis in zip(
        range(len(centre) - len(displayed), len(centre)), displayed, strict=True
    ):
        centre[index] = position[axis] + (centre[index] - position[axis]) / factor
    camera.zoom *= factor
    camera.center = tuple(centre)
