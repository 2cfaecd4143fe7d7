"""The displayed slice: position, voxel under the pointer, and navigation."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from qtpy.QtCore import QObject

from napari_mamamia.core.box import Box
from napari_mamamia.core.counting import slice_number
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.adapter.adapter import canvas_widget, main_view
from napari_mamamia.widgets.adapter.sliders import SliderNumbers, number_sliders, say_numbers
from napari_mamamia.widgets.base.layers import Role, tag_of
from napari_mamamia.widgets.controls.call_later import call_later
from napari_mamamia.widgets.viewer.layer_stack import LayerStack
from napari_mamamia.widgets.viewer.pane_sides import FILLED, find_zoom, fit_half

_SPACE_AXES = 3
_IN_PLANE = 2
_ZOOMED_IN = 1.3
_ALIKE = 1e-3
"""Relative difference below which two step sizes count as equal."""

Voxel = tuple[int, int, int]
"""Index (z, y, x) of a voxel in the case's arrays."""


def read_steps(dims: Any, grid: Grid) -> tuple[int, int, int]:
    """Return a viewer's position along the display axes, in steps of `grid`."""
    spacing = grid.display_frame().per_axis(grid.spacing_mm)
    points = dims.point[dims.ndim - _SPACE_AXES :]
    s, r, c = (round(point / mm) for point, mm in zip(points, spacing, strict=True))
    return s, r, c


def put_steps(dims: Any, grid: Grid, steps: Mapping[int, int]) -> None:
    """Move to steps of `grid` along the given axes of the viewer."""
    lead = dims.ndim - _SPACE_AXES
    spacing = grid.display_frame().per_axis(grid.spacing_mm)
    places = [step * (spacing[axis - lead] if axis >= lead else 1) for axis, step in steps.items()]
    dims.set_point(list(steps), places)


class CaseSteps:
    """A component that makes the steps of a viewer match the phases and slices of the open case.

    napari uses the steps of the finest layer, starting at the first layer. Arrow keys and sliders
    would then step through the slices of another plugin's layer or of the previous case's mask. All
    other layers remain reachable, because the steps extend to their ends.
    """

    def __init__(self, stack: LayerStack) -> None:
        self._stack = stack
        # first of all: later listeners see the steps of the case
        events = stack.viewer.dims.events
        events.range.connect(self._align_steps, position="first")
        for changed in (events.ndim, events.order, events.ndisplay):
            changed.connect(self._give_arrows, position="last")
        number_sliders(main_view(stack.viewer), self.number)

    def follow_case(self) -> None:
        """Use the steps of a new case, so that the arrow keys step through its slices."""
        self._align_steps()
        self._give_arrows()

    def _give_arrows(self, _event: object = None) -> None:
        # each time napari lays out its sliders it assigns the arrow keys to the first: phases
        dims = self._stack.viewer.dims
        if self._read_case() and dims.ndisplay == _IN_PLANE and dims.ndim > _IN_PLANE:
            dims.last_used = dims.not_displayed[-1]

    def _align_steps(self, _event: object = None) -> None:
        dims, steps = self._stack.viewer.dims, self._read_case()
        lead = dims.ndim - len(steps)
        if not steps or lead < 0:
            return
        ranges = [
            _align_range(given, mm) for given, (mm, _) in zip(dims.range[lead:], steps, strict=True)
        ]
        dims.range = (*dims.range[:lead], *ranges)
        say_numbers(main_view(self._stack.viewer))

    def number(self, axis: int) -> SliderNumbers | None:
        """Return the numbering of a viewer axis, or None if no case is open."""
        dims, steps = self._stack.viewer.dims, self._read_case()
        along = axis - (dims.ndim - len(steps))
        if not steps or not 0 <= along < len(steps):
            return None
        mm, count = steps[along]
        first = round(dims.range[axis][0] / mm)
        if along:
            tip = tr("Slice of the case, from 1 to {last}.", last=count)
            return SliderNumbers(slice_number(first), slice_number(count - 1), tip)
        layer = self._stack.layer(Role.PHASE)
        tag = None if layer is None else tag_of(layer)
        n_before = 1 if tag is None else tag.n_before
        last = count - n_before
        tip = tr(
            "Phase: 0 is the last pre-contrast phase, and {last} is the last post-contrast phase.",
            last=last,
        )
        return SliderNumbers(first + 1 - n_before, last, tip)

    def _read_case(self) -> list[tuple[float, int]]:
        """Return step size in mm and number of steps along phase, slice, row and column."""
        layer, grid = self._stack.layer(Role.PHASE), self._stack.grid
        if layer is None or grid is None:
            return []
        spacing = grid.display_frame().per_axis(grid.spacing_mm)
        return list(zip((1.0, *spacing), layer.data.shape, strict=True))


def _align_range(given: tuple[float, float, float], mm: float) -> tuple[float, float, float]:
    """Return start, stop and step of an axis that counts whole steps of `mm` from 0."""
    start, stop, step = given
    first, last = start / mm, stop / mm
    if abs(step / mm - 1) < _ALIKE and abs(first - round(first)) < _ALIKE:
        return given
    first, last = math.floor(first + _ALIKE), math.ceil(last - _ALIKE)
    # napari rounds the number of steps down: a rounding error below a whole number would lose the
    # last step
    return first * mm, math.nextafter(last * mm, math.inf), mm


class EmptyAxes(QObject):
    """A component that gives a viewer without layers the axes of a case.

    Without layers, napari cannot fit a 3-D camera to four axes: it raises an error when its view is
    reset or switched to 3-D. This component lets the view be reset without errors.
    """

    def __init__(self, viewer: Any) -> None:
        super().__init__(main_view(viewer))
        self._viewer = viewer
        viewer.dims.events.ndisplay.connect(self._drop_later)
        viewer.scene.camera.events.synced.connect(self._drop_later)

    def lay_axes(self, last_step: int, n_axes: int = _SPACE_AXES + 1) -> None:
        """Create the axes phase, slice, row and column, or the last of them, up to `last_step`."""
        if not len(self._viewer.layers) and self._is_plain():
            self._viewer.dims.ndim = n_axes
            self._viewer.dims.range = ((0, last_step, 1),) * n_axes

    def _is_plain(self) -> bool:
        return bool(self._viewer.dims.ndisplay == _IN_PLANE and self._viewer.scene.camera.synced)

    def _drop_later(self) -> None:
        # in its own iteration: napari's sliders cannot follow during another change
        call_later(self, self._drop_axes)

    def _drop_axes(self) -> None:
        if not len(self._viewer.layers) and not self._is_plain():
            self._viewer.dims.ndim = min(self._viewer.dims.ndim, _SPACE_AXES)


class SliceView:
    """A component that moves a viewer through the open case, and reads the viewer's position.

    Parameters
    ----------
    stack
        Our layers in the viewer.

    Attributes
    ----------
    moved
        Function called with the voxel that `go_to` showed, and whether the view was centred on it.
    half
        "right" or "left" while one breast is shown, or "" for the whole slice.
    breast
        The box of the right breast (`find_breast_box`), or None if unknown.
    """

    def __init__(self, stack: LayerStack) -> None:
        self._stack = stack
        self._viewer = stack.viewer
        self._whole_zoom = 0.0
        self._as_fitted: tuple[float, tuple[float, ...]] | None = None
        self.half = ""
        self.breast: Box | None = None
        self.moved: list[Callable[[Voxel, bool], None]] = []

    @property
    def grid(self) -> Grid | None:
        """The grid of the displayed case, or None if there is none."""
        return self._stack.grid

    # ------------------------------------------------------------------ going

    def go_to(self, voxel: Voxel, *, centre: bool = True, phase: int | None = None) -> None:
        """Show the slice of `voxel` (z, y, x); with `centre`, also centre the view on the voxel.

        With `phase`, the phase is changed in the same step.
        """
        grid = self._stack.grid
        if grid is None:
            return
        frame = grid.display_frame()
        displayed = frame.point_to_display(voxel, grid.shape)
        dims = self._viewer.dims
        axes = range(dims.ndim - _SPACE_AXES, dims.ndim)
        lead = {axes.start - 1: phase} if phase is not None and axes.start > 0 else {}
        steps = lead | dict(zip(axes, (round(step) for step in displayed), strict=True))
        put_steps(dims, grid, steps)
        if centre:
            self._viewer.scene.camera.center = self._find_world(voxel, grid)
        for listener in tuple(self.moved):
            listener(voxel, centre)

    def reveal(self, voxel: Voxel) -> None:
        """Show the slice of `voxel` without moving an image that shows the whole slice.

        The view moves only if it is zoomed in, or was dragged so that the voxel is not visible.
        """
        self.go_to(voxel, centre=self.is_zoomed_in or not self._is_in_sight(voxel))

    def _is_in_sight(self, voxel: Voxel) -> bool:
        canvas, grid = canvas_widget(self._viewer), self._stack.grid
        if canvas is None or grid is None:
            return True
        camera = self._viewer.scene.camera
        centre = tuple(camera.center)[-2:]
        reach = [pixels / 2 / camera.zoom for pixels in (canvas.height(), canvas.width())]
        index = self._find_world(voxel, grid)[-2:]
        return all(abs(a - c) < r for a, c, r in zip(index, centre, reach, strict=True))

    def _find_world(self, voxel: Voxel, grid: Grid) -> list[float]:
        """Return the position of `voxel` along the displayed axes, in mm."""
        frame = grid.display_frame()
        displayed = frame.point_to_display(voxel, grid.shape)
        spacing = frame.per_axis(grid.spacing_mm)
        world = [coordinate * mm for coordinate, mm in zip(displayed, spacing, strict=True)]
        dims = self._viewer.dims
        return [world[axis - dims.ndim + _SPACE_AXES] for axis in dims.displayed]

    # ------------------------------------------------------------------- zoom

    def fit(self, zoom: float | None = None) -> None:
        """Show the whole slice or the displayed breast; `zoom` is given if another view sets it."""
        if len(self._viewer.layers):
            # Not every layer: a mask of the previous case is removed later, others may be
            # anywhere.
            phases, grid = self._stack.layer(Role.PHASE), self._stack.grid
            if phases is None or grid is None or not self._is_one_slice():
                self._viewer.reset_view(layers=None if phases is None else [phases])
            elif not fit_half(self._viewer, grid, self.half, self.breast, zoom):
                self._fit_slice(phases)
            zoom, centre, _ = self.read_camera()
            self._whole_zoom, self._as_fitted = zoom, (zoom, centre)

    @property
    def half_zoom(self) -> float:
        """Zoom in pixels per mm at which the displayed breast just fits, otherwise infinity."""
        grid = self._stack.grid
        return math.inf if grid is None else find_zoom(self._viewer, grid, self.half, self.breast)

    def _is_one_slice(self) -> bool:
        return bool(
            self._viewer.dims.ndisplay == _IN_PLANE and not self._viewer.canvas.grid.enabled
        )

    def _fit_slice(self, layer: Any) -> None:
        """Fit a layer's slice as napari does, but without its layer list, which saves 3 ms."""
        extent, displayed = layer.extent, list(self._viewer.dims.displayed)
        low, high = (extent.world[end][displayed] for end in (0, 1))
        sizes = high - low + extent.step[displayed]
        camera = self._viewer.scene.camera
        camera.center = tuple((low + high) / 2)
        camera.zoom = FILLED * min(self._viewer.canvas.size / sizes)

    @property
    def is_as_fitted(self) -> bool:
        """Whether the view has not been zoomed or dragged since it was fitted."""
        return self._viewer.dims.ndisplay == _IN_PLANE and self._as_fitted == self.read_camera()[:2]

    @property
    def whole_zoom(self) -> float:
        """Zoom in pixels per mm at which the whole slice or the displayed breast just fits."""
        return self._whole_zoom

    @property
    def is_zoomed_in(self) -> bool:
        """Whether clearly less than the whole slice is visible."""
        return self.relative_zoom > _ZOOMED_IN

    @property
    def relative_zoom(self) -> float:
        """Zoom relative to the fitted slice; 1 means that the slice just fits."""
        whole = self._whole_zoom
        return float(self._viewer.scene.camera.zoom) / whole if whole > 0 else 1.0

    def set_relative_zoom(self, share: float) -> None:
        """Set the zoom relative to the fitted slice."""
        if self._whole_zoom > 0:
            self._viewer.scene.camera.zoom = self._whole_zoom * share

    def read_camera(self) -> tuple[float, tuple[float, ...], float]:
        """Return the zoom, the centre and the fitted zoom, for `put_camera`."""
        camera = self._viewer.scene.camera
        return float(camera.zoom), tuple(camera.center), self._whole_zoom

    def put_camera(self, camera: tuple[float, tuple[float, ...], float]) -> None:
        """Restore the camera returned by `read_camera`."""
        zoom, centre, self._whole_zoom = camera
        self._viewer.scene.camera.zoom = zoom
        self._viewer.scene.camera.center = centre

    # ------------------------------------------------------------------ place

    def voxel_at(self, position: tuple[float, ...]) -> Voxel | None:
        """Return the voxel (z, y, x) at a world position, or None outside the volume."""
        point = self.place_at(position)
        grid = self._stack.grid
        if point is None or grid is None:
            return None
        z, y, x = (round(i) for i in point)
        inside = all(0 <= i < n for i, n in zip((z, y, x), grid.shape, strict=True))
        return (z, y, x) if inside else None

    def place_at(self, position: tuple[float, ...]) -> tuple[float, float, float] | None:
        """Return the voxel coordinates (z, y, x) of a world position, even outside the volume.

        The coordinate across the slices is the displayed slice. The result is None if no case is
        open.
        """
        grid = self._stack.grid
        if grid is None or len(position) < _SPACE_AXES:
            return None
        frame = grid.display_frame()
        spacing = frame.per_axis(grid.spacing_mm)
        displayed = [p / mm for p, mm in zip(position[-_SPACE_AXES:], spacing, strict=True)]
        return frame.point_from_display(displayed, grid.shape)

    # ------------------------------------------------------------------ slice

    def slice_shown(self) -> tuple[int, int] | None:
        """Return the array axis (0 z, 1 y, 2 x) perpendicular to the slice, and the slice index."""
        return self.slice_shown_in(self._viewer)

    def slice_shown_in(self, viewer: Any) -> tuple[int, int] | None:
        """Return the axis and index of the displayed slice in another view of the case."""
        axis, grid = self.upright_axis_in(viewer), self._stack.grid
        if axis is None or grid is None:
            return None
        frame = grid.display_frame()
        steps = read_steps(viewer.dims, grid)
        position = frame.point_from_display([float(step) for step in steps], grid.shape)
        return axis, min(max(round(position[axis]), 0), grid.shape[axis] - 1)

    @property
    def upright_axis(self) -> int | None:
        """The array axis (0 z, 1 y, 2 x) perpendicular to the displayed slice, or None in 3-D."""
        return self.upright_axis_in(self._viewer)

    def upright_axis_in(self, viewer: Any) -> int | None:
        """Return the axis perpendicular to the displayed slice in another view of the case."""
        grid = self._stack.grid
        dims = viewer.dims
        lead = dims.ndim - _SPACE_AXES
        across = set(range(_SPACE_AXES)) - {axis - lead for axis in dims.displayed}
        if grid is None or len(across) != 1:
            return None
        return grid.display_frame().order[across.pop()]
