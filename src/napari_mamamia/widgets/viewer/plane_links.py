"""Synchronisation of position, phase and zoom between all views of a case.

A slice step, a click or a zoom in one view also changes the other views.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from qtpy.QtCore import QObject, QTimer

from napari_mamamia.core.grid import Grid
from napari_mamamia.widgets.adapter.adapter import focus_canvas, layer_scrolling
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.viewer.layer_stack import Part
from napari_mamamia.widgets.viewer.pane import Pane
from napari_mamamia.widgets.viewer.pane_sides import find_side_axis, leave_midline
from napari_mamamia.widgets.viewer.pane_window import PaneWindow
from napari_mamamia.widgets.viewer.scene import Scene
from napari_mamamia.widgets.viewer.slice_view import Voxel, put_steps, read_steps

_LEFT: Final = 1
_NAPARI_ZOOM: Final = "double_click_to_zoom"
"""Name of napari's callback (napari 0.9.2, `components/_viewer_mouse_bindings.py`)."""
_STILL_PIXELS: Final = 3.0
# A resize is a series of events: the planes are fitted once, after the last.
_FIT_AFTER_MS: Final = 40


class PlaneLinks(QObject):
    """A component that synchronises the main view with the additional views.

    Parameters
    ----------
    scene
        The case in the main view.
    window
        The window with the additional views, which draws the cross-hairs.
    panes
        The additional views, in a list that its owner fills and empties.

    Attributes
    ----------
    place
        The voxel (z, y, x) of the cross-hair.
    tools, brushes
        Functions called with the model of each new view, to enable the same mouse tools there.
        `brushes` are not enabled in a mirrored view or in a view of another exam.
    fitted
        Function called after the views were fitted to their canvases.
    is_free
        Function that returns whether a click may move the cross-hair; False while a tool paints.
    """

    def __init__(self, scene: Scene, window: PaneWindow, panes: list[Pane]) -> None:
        super().__init__()
        self._scene = scene
        self._window = window
        self._panes = panes
        self.tools: list[Callable[[Any], None]] = []
        self.brushes: list[Callable[[Any], None]] = []
        self.fitted: list[Callable[[], None]] = []
        self.is_free: Callable[[], bool] = lambda: True
        self.place: Voxel = (0, 0, 0)
        self._before: tuple[int, ...] = ()
        self._is_moving = False
        self._brushes: dict[Pane, list[list[Any]]] = {}
        self._fit = QTimer(self)
        self._fit.setSingleShot(True)
        self._fit.setInterval(_FIT_AFTER_MS)
        self._fit.timeout.connect(self.fit_now)
        scene.stack.redrawn.append(self._redraw_panes)
        scene.view.moved.append(self._look_at)
        viewer = scene.viewer
        viewer.dims.events.current_step.connect(self._on_main_step)
        viewer.scene.camera.events.zoom.connect(self._follow_camera)
        viewer.scene.camera.events.center.connect(self._follow_camera)
        viewer.mouse_drag_callbacks.append(self._follow_click)
        viewer.mouse_move_callbacks.append(self._follow_hover)
        self._take_double_click(viewer)

    def link(self, pane: Pane) -> None:
        """Synchronise a new view with all other views, and enable the mouse in the new view."""
        model = pane.model
        model.dims.events.current_step.connect(lambda _event: self._on_pane_step(pane))
        model.canvas.events.size.connect(lambda _event: self.fit_later_())
        for name in ("zoom", "center"):
            getattr(model.scene.camera.events, name).connect(lambda _event: self._follow_pane(pane))
        for function in layer_scrolling(model):
            model.mouse_wheel_callbacks.remove(function)
        self._take_double_click(model)
        if not pane.kind.is_prior:
            model.mouse_drag_callbacks.append(self._follow_click)
            model.mouse_move_callbacks.append(self._follow_hover)
        for attach in self.tools:
            attach(model)

    def set_brushes(self, pane: Pane) -> None:
        """Enable the brushes in a view, but not in a mirrored view or a view of another exam."""
        can_paint = not (pane.kind.is_mirrored or pane.kind.is_prior)
        callbacks = _list_mouse_callbacks(pane.model)
        if can_paint and pane not in self._brushes:
            before = [list(functions) for functions in callbacks]
            for attach in self.brushes:
                attach(pane.model)
            self._brushes[pane] = [
                [function for function in functions if function not in old]
                for functions, old in zip(callbacks, before, strict=True)
            ]
            return
        for functions, brushes in zip(callbacks, self._brushes.get(pane, ()), strict=False):
            others = [function for function in functions if function not in brushes]
            functions[:] = [*others, *(brushes if can_paint else ())]

    # ------------------------------------------------------------------ place

    def go_to(self, voxel: Voxel) -> None:
        """Show the slices through a voxel (z, y, x), clipped to the volume, in all views."""
        grid = self._scene.grid
        if grid is None:
            return
        z, y, x = (min(max(round(i), 0), n - 1) for i, n in zip(voxel, grid.shape, strict=True))
        if (z, y, x) != self.place:
            self.place = (z, y, x)
            self.spread()

    def leave_midline(self) -> None:
        """Move the cross-hair into a breast if it is near the midline; the slice is unchanged."""
        grid, displayed = self._scene.grid, self.find_shown_place()
        if grid is not None and displayed is not None:
            places, axis = list(displayed), find_side_axis(grid)
            if axis > 0:
                places[axis] = leave_midline(grid, places[axis])
                self._put_place((places[0], places[1], places[2]), grid)

    def _look_at(self, voxel: Voxel, centre: bool) -> None:
        self._before = ()
        self.go_to(voxel)
        if centre and self._scene.view.is_zoomed_in:
            self._centre_planes()

    def find_shown_place(self) -> tuple[int, int, int] | None:
        """Return the position along the main view's axes: slice, row, column."""
        grid = self._scene.grid
        if grid is None:
            return None
        s, r, c = grid.display_frame().point_to_display(self.place, grid.shape)
        return round(s), round(r), round(c)

    def spread(self) -> None:
        """Show the position in every view, and the main view's phase in the additional views."""
        displayed, grid = self.find_shown_place(), self._scene.grid
        if displayed is None or grid is None or not self._panes:
            self._window.point(None)
            return
        before, self._is_moving = self._is_moving, True
        try:
            self._show_in_main(displayed)
            for pane in self._panes:
                pane.show(displayed, self._scene.phase)
        finally:
            self._is_moving = before
        spacing = grid.display_frame().per_axis(grid.spacing_mm)
        self._window.point(tuple(i * mm for i, mm in zip(displayed, spacing, strict=True)))

    def _show_in_main(self, shown: tuple[int, int, int]) -> None:
        dims, grid = self._scene.viewer.dims, self._scene.grid
        if grid is None:
            return
        lead = dims.ndim - len(shown)
        for axis in dims.not_displayed:
            if axis >= lead and read_steps(dims, grid)[axis - lead] != shown[axis - lead]:
                put_steps(dims, grid, {axis: shown[axis - lead]})
        self._before = read_steps(dims, grid)

    def take_place_of_main(self) -> None:
        """Move the cross-hair to the position of napari's sliders."""
        # Without a previous position, all axes are used and not only those that moved.
        self._before = ()
        self._on_main_step()

    def _on_main_step(self, _event: object = None) -> None:
        grid, dims = self._scene.grid, self._scene.viewer.dims
        if self._is_moving or grid is None or dims.ndim < len(grid.shape):
            return
        now = read_steps(dims, grid)
        displayed = self.find_shown_place()
        if displayed is None:
            return
        if not self._before:
            displayed = (now[0], now[1], now[2])
        else:
            s, r, c = (
                new if new != old else here
                for new, old, here in zip(now, self._before, displayed, strict=True)
            )
            displayed = (s, r, c)
        self._before = now
        self._put_place(displayed, grid)

    def _on_pane_step(self, pane: Pane) -> None:
        displayed, grid = self.find_shown_place(), self._scene.grid
        if self._is_moving or displayed is None or grid is None or pane not in self._panes:
            return
        position = pane.read_place(displayed)
        if position is not None:
            self._put_place(position, grid)

    def _put_place(self, shown: tuple[int, int, int], grid: Grid) -> None:
        z, y, x = grid.display_frame().point_from_display(shown, grid.shape)
        self.place = (round(z), round(y), round(x))
        self.spread()

    # ------------------------------------------------------------------ mouse

    def _follow_click(self, _viewer: Any, event: Any) -> Iterator[None]:
        if self._panes:
            focus_canvas(self._scene.viewer)
        held = {str(getattr(key, "name", key)) for key in event.modifiers}
        may = held == {"Control"} or (not held and self.is_free())
        if not self._panes or event.button != _LEFT or not may:
            return
        start, position = tuple(event.pos), tuple(event.position)
        yield
        while event.type == "mouse_move":
            yield
        moved = max(abs(a - b) for a, b in zip(event.pos, start, strict=True))
        if moved <= _STILL_PIXELS:
            self._go_to_position(position)

    def _take_double_click(self, viewer: Any) -> None:
        callbacks = viewer.mouse_double_click_callbacks
        napari_zooms = [f for f in callbacks if getattr(f, "__name__", "") == _NAPARI_ZOOM]
        for function in napari_zooms:
            callbacks.remove(function)

        def show_alone(view: Any, event: Any) -> None:
            if not self._panes:
                for zoom in napari_zooms:
                    zoom(view, event)
            elif event.button == _LEFT and not event.modifiers and self.is_free():
                event.handled = True
                pane = next((pane for pane in self._panes if pane.model is view), None)
                self._window.toggle_alone(pane)

        callbacks.append(show_alone)

    def _follow_hover(self, _viewer: Any, event: Any) -> None:
        held = {str(getattr(key, "name", key)) for key in event.modifiers}
        if self._panes and held == {"Shift"} and self.is_free():
            self._go_to_position(tuple(event.position))

    def _go_to_position(self, position: tuple[float, ...]) -> None:
        voxel = self._scene.view.voxel_at(position)
        if voxel is not None:
            self.go_to(voxel)

    # ------------------------------------------------------------------- zoom

    def fit_later_(self) -> None:
        """Fit the planes after the views have their sizes."""
        self._fit.start()

    def stop(self) -> None:
        """Cancel the pending fit, because the views are being removed."""
        self._fit.stop()
        self._brushes.clear()

    def fit_now(self) -> None:
        """Fit the planes if the main view shows its whole plane, with both breasts at one scale."""
        before, self._is_moving = self._is_moving, True
        view, planes = self._scene.view, self._list_planes()
        facing = [pane for pane in planes if pane.kind.plane is None] if view.half else []
        scale = None
        if facing:
            scale = min(view.half_zoom, *(pane.half_zoom for pane in facing))
        try:
            if not view.is_zoomed_in:
                view.fit(scale)
            for pane in planes:
                pane.fit(scale if pane in facing else None)
        finally:
            self._is_moving = before
        self._follow_camera()
        if view.is_zoomed_in:
            self._centre_planes()
        for listener in tuple(self.fitted):
            listener()

    def _list_planes(self) -> list[Pane]:
        return [pane for pane in self._panes if pane.kind.plane is not None or pane.kind.side]

    def _centre_planes(self) -> None:
        for pane in self._list_planes():
            if pane.kind.plane is not None:
                pane.centre(self.place)

    def _redraw_panes(self, role: Role, part: Part | None) -> None:
        for pane in self._panes:
            pane.copies.redraw(role, part)

    def _follow_camera(self, _event: object = None) -> None:
        if self._is_moving or not self._panes:
            return
        before, self._is_moving = self._is_moving, True
        try:
            camera = self._scene.viewer.scene.camera
            for pane in self._panes:
                other = pane.model.scene.camera
                is_half = bool(pane.kind.side)
                if pane.kind.plane is not None or is_half:
                    other.zoom = pane.whole_zoom * self._scene.view.relative_zoom
                else:
                    other.zoom = camera.zoom
                if pane.kind.plane is None:
                    other.center = pane.turn_centre(camera.center, self._scene.view.half)
        finally:
            self._is_moving = before

    def _follow_pane(self, pane: Pane) -> None:
        if self._is_moving or pane.kind.plane is not None or pane not in self._panes:
            return
        before, self._is_moving = self._is_moving, True
        try:
            camera, other = self._scene.viewer.scene.camera, pane.model.scene.camera
            if pane.kind.side:
                self._scene.view.set_relative_zoom(other.zoom / pane.whole_zoom)
            else:
                camera.zoom = other.zoom
            if not pane.kind.is_prior:
                camera.center = pane.turn_centre(other.center, self._scene.view.half)
        finally:
            self._is_moving = before


def _list_mouse_callbacks(model: Any) -> list[list[Any]]:
    return [
        model.mouse_drag_callbacks,
        model.mouse_move_callbacks,
        model.mouse_wheel_callbacks,
        model.mouse_double_click_callbacks,
    ]
