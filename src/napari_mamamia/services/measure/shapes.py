"""Convert points that were clicked on a slice to the points of a measurement.

Points are in RAS mm, so drawing and measuring agree on grids with any spacing, direction and shear.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_mamamia.core.grid import Grid, Plane
from napari_mamamia.core.measurement import PLANES, MeasureKind, Measurement, PointMm

HAND_POINTS: Final[Mapping[MeasureKind, int]] = MappingProxyType(
    {
        MeasureKind.RULER: 2,
        MeasureKind.CROSS: 4,
        MeasureKind.ELLIPSE: 2,
        MeasureKind.ANGLE: 3,
        MeasureKind.ARROW: 2,
        MeasureKind.KEY_IMAGE: 1,
    }
)
"""Number of points to click; an ellipse is drawn between opposite corners of its bounding box."""

_SECOND_LINE: Final = 2
_LEAST_MM: Final = 1e-3
"""Smallest length in mm, which is the precision of stored points."""
_ELLIPSE_STEPS: Final = 64


@dataclass(frozen=True)
class Slice:
    """The slice of a grid at `index` of array axis `axis` (0 z, 1 y, 2 x)."""

    grid: Grid
    axis: int
    index: int

    @property
    def plane(self) -> Plane:
        """The anatomical plane of the slice."""
        return next(
            plane for plane in PLANES if self.grid.display_frame(plane).order[0] == self.axis
        )

    @cached_property
    def across(self) -> tuple[int, int]:
        """The two array axes within the slice."""
        first, second = (axis for axis in range(3) if axis != self.axis)
        return first, second

    def find_point(self, voxel: Sequence[float], *, is_clipped: bool = True) -> PointMm | None:
        """Return the point in RAS mm at voxel coordinates (z, y, x) in this slice.

        Outside the image, the result is the nearest point on the edge, or None if `is_clipped` is
        False.
        """
        places = [float(i) for i in voxel]
        places[self.axis] = float(self.index)
        for axis in self.across:
            last = self.grid.shape[axis] - 0.5
            inside = min(max(places[axis], -0.5), last)
            if inside != places[axis] and not is_clipped:
                return None
            places[axis] = inside
        return _to_point(self.grid.to_world_mm(places))

    def turn_right(self, direction: ArrayLike) -> NDArray[np.float64]:
        """Return the unit vector within this slice that is perpendicular (in mm) to a direction."""
        first, second = (self.grid.matrix_mm[:, axis] for axis in self.across)
        turned = np.cross(np.cross(first, second), np.asarray(direction, np.float64))
        unit: NDArray[np.float64] = turned / np.linalg.norm(turned)
        return unit

    def clip(self, start: ArrayLike, end: ArrayLike) -> PointMm:
        """Return `end`, or the point where the line from `start` to `end` leaves the image."""
        a, b = self.grid.to_voxel(start), self.grid.to_voxel(end)
        share = 1.0
        for axis in self.across:
            way = b[axis] - a[axis]
            edge = self.grid.shape[axis] - 0.5 if way > 0 else -0.5
            if abs(way) > _LEAST_MM:
                share = min(share, max((edge - a[axis]) / way, 0.0))
        return _to_point(self.grid.to_world_mm(a + share * (b - a)))


@dataclass(frozen=True, slots=True)
class Sketch:
    """A shape that is being drawn: the clicked points and the position of the pointer."""

    kind: MeasureKind
    on: Slice
    placed: tuple[PointMm, ...] = ()
    pointer: PointMm | None = None

    @property
    def begins_line(self) -> bool:
        """Whether the next point is the first point of a line."""
        n_placed = len(self.placed)
        return n_placed == 0 or (self.kind is MeasureKind.CROSS and n_placed == _SECOND_LINE)

    @property
    def is_complete(self) -> bool:
        """Whether all points are set."""
        return len(self.placed) == HAND_POINTS[self.kind]

    def place(self, point: PointMm) -> "Sketch":
        """Return the sketch with one more point."""
        return replace(self, placed=(*self.placed, point), pointer=None)

    def point_at(self, point: PointMm) -> "Sketch":
        """Return the sketch with a different pointer position."""
        return replace(self, pointer=point)

    @property
    def shape(self) -> tuple[MeasureKind, tuple[PointMm, ...]] | None:
        """The shape drawn so far, or None before the first line; a cross may be a single line."""
        points = self.placed
        if self.pointer is not None and not self.begins_line and not self.is_complete:
            points = (*points, self.pointer)
        if len(points) == HAND_POINTS[self.kind]:
            return self.kind, make_points(self.kind, points, self.on)
        if len(points) < _SECOND_LINE:
            return None
        return MeasureKind.RULER, points[:_SECOND_LINE]


def make_points(kind: MeasureKind, places: Sequence[PointMm], on: Slice) -> tuple[PointMm, ...]:
    """Return the points of a measurement, as defined by `core.measurement.POINTS`.

    The second of two crossed diameters is made perpendicular (in mm) to the first.
    """
    if kind is MeasureKind.CROSS:
        return (*places[:3], _find_foot(places, places[3], on))
    if kind is MeasureKind.ELLIPSE:
        a, b = (on.grid.to_voxel(point) for point in places)
        middle = (a + b) / 2
        ends = []
        for axis in on.across:
            end = middle.copy()
            end[axis] = b[axis]
            ends.append(end)
        return tuple(_to_point(on.grid.to_world_mm(voxel)) for voxel in (middle, *ends))
    return tuple(places)


def has_extent(kind: MeasureKind, points: Sequence[PointMm]) -> bool:
    """Return whether a shape has a length or an area above 0."""
    if kind is MeasureKind.KEY_IMAGE:
        return True
    pairs = {
        MeasureKind.CROSS: ((0, 1), (2, 3)),
        MeasureKind.ELLIPSE: ((0, 1), (0, 2)),
        MeasureKind.ANGLE: ((0, 1), (1, 2)),
    }.get(kind, ((0, 1),))
    lengths = (np.subtract(points[a], points[b]) for a, b in pairs)
    return all(float(np.linalg.norm(way)) > _LEAST_MM for way in lengths)


def move_point(
    kind: MeasureKind, points: Sequence[PointMm], at: int, target: PointMm, on: Slice
) -> tuple[PointMm, ...]:
    """Return a shape with point `at` moved; perpendicular lines remain perpendicular.

    Moving the centre of an ellipse moves all its points; the end of a half-axis moves only along
    that axis.
    """
    moved = list(points)
    if kind is MeasureKind.ELLIPSE:
        return _move_ellipse(points, at, target)
    moved[at] = target
    if kind is not MeasureKind.CROSS:
        return tuple(moved)
    if at >= _SECOND_LINE:
        other = 5 - at
        line = (*points[:2], points[other])
        moved[at] = _find_foot(line, target, on)
        return tuple(moved)
    if not has_extent(MeasureKind.RULER, moved[:2]):
        return tuple(points)
    ends = np.asarray(points[2:])
    half = float(np.linalg.norm(ends[1] - ends[0])) / 2
    across = on.turn_right(np.subtract(moved[1], moved[0]))
    if across @ (ends[1] - ends[0]) < 0:
        across = -across
    middle = ends.mean(axis=0)
    return (*moved[:2], *(on.clip(middle, middle + sign * half * across) for sign in (-1, 1)))


def find_slice(drawn: Measurement, grid: Grid) -> Slice:
    """Return the slice of a measurement, which may be outside the volume."""
    axis = grid.display_frame(drawn.plane).order[0]
    middle = grid.to_voxel(drawn.points_mm).mean(axis=0)
    return Slice(grid, axis, int(np.floor(middle[axis] + 0.5)))


def list_lines(kind: MeasureKind, points: Sequence[PointMm]) -> list[NDArray[np.float64]]:
    """Return the lines of a shape, each (points, 3) in RAS mm, or [] for a key image."""
    every = np.asarray(points, np.float64)
    if kind is MeasureKind.KEY_IMAGE:
        return []
    if kind is MeasureKind.CROSS:
        return [every[:2], every[2:]]
    if kind is MeasureKind.ELLIPSE:
        turn = np.linspace(0, 2 * np.pi, _ELLIPSE_STEPS + 1)[:, None]
        first, second = every[1] - every[0], every[2] - every[0]
        return [every[0] + np.cos(turn) * first + np.sin(turn) * second]
    return [every]


def find_display_mm(grid: Grid, points_mm: ArrayLike) -> NDArray[np.float64]:
    """Convert points (n, 3) from RAS mm to display positions in mm along slice, row and column."""
    frame = grid.display_frame()
    voxels = grid.to_voxel(np.asarray(points_mm, np.float64))
    places = voxels[:, frame.order]
    last = np.array(frame.per_axis(grid.shape)) - 1
    displayed: NDArray[np.float64] = np.where(frame.flips, last - places, places)
    return displayed * frame.per_axis(grid.spacing_mm)


def _find_foot(line: Sequence[PointMm], target: PointMm, on: Slice) -> PointMm:
    """Return the end of a second diameter that goes from ``line[2]`` towards a point."""
    start = np.asarray(line[2], np.float64)
    across = on.turn_right(np.subtract(line[1], line[0]))
    return on.clip(start, start + (np.subtract(target, start) @ across) * across)


def _move_ellipse(points: Sequence[PointMm], at: int, target: PointMm) -> tuple[PointMm, ...]:
    every = np.asarray(points, np.float64)
    if at == 0:
        return tuple(_to_point(point) for point in every + (np.asarray(target) - every[0]))
    way = every[at] - every[0]
    unit = way / np.linalg.norm(way)
    reach = max(abs(float(np.subtract(target, every[0]) @ unit)), 2 * _LEAST_MM)
    every[at] = every[0] + reach * unit
    return tuple(map(_to_point, every))


def _to_point(place: ArrayLike) -> PointMm:
    x, y, z = map(float, np.asarray(place))
    return x, y, z
