"""Convert outlines that a reader draws on slices to voxels and to steps of a session."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Action, Edit, Voxel
from napari_mamamia.core.provenance import Setting

OUTLINE_STEP: Final = "outline"
"""Name of the step that an outline makes; growth finds the outlined slices by this name."""

_OPEN_MM: Final = 3.0  # our choice
_OPEN_SHARE: Final = 0.1  # of the contour's length; our choice
_AXIS: Final = "axis"
_INDEX: Final = "index"


@dataclass(frozen=True, slots=True, eq=False)
class DrawnOutline:
    """The voxels inside a contour on one plane of the array.

    `box` is one voxel thick along `axis` (0 z, 1 y, 2 x); `inside` is a boolean array with the
    shape of the box.
    """

    axis: int
    index: int
    box: Box
    inside: NDArray[np.bool_]


def fill_contour(points: Sequence[Voxel], axis: int, shape: Sequence[int]) -> DrawnOutline | None:
    """Return the voxels whose centres are inside or on a closed contour, or None.

    Parameters
    ----------
    points
        The voxel coordinates (z, y, x) of the contour on one plane, in order; the last point is
        joined to the first. If the contour crosses itself, the even-odd rule decides. Parts outside
        the volume are cut off.
    axis
        The axis perpendicular to the plane, which contains the first point.
    shape
        The shape (z, y, x) of the array.
    """
    index = floor(points[0][axis] + 0.5)
    rows_axis, columns_axis = (a for a in range(3) if a != axis)
    corners = [(point[rows_axis], point[columns_axis]) for point in points]
    rows, columns = shape[rows_axis], shape[columns_axis]
    if not 0 <= index < shape[axis]:
        return None
    first, stop = _clip_range([row for row, _ in corners], rows)
    begin, right = _clip_range([column for _, column in corners], columns)
    inside = np.zeros((stop - first, right - begin), np.bool_)
    for row in range(first, stop):
        crossings = _find_crossings(corners, row)
        for a, b in zip(crossings[::2], crossings[1::2], strict=True):
            inside[row - first, max(ceil(a) - begin, 0) : max(floor(b) + 1 - begin, 0)] = True
    if not inside.any():
        return None
    start, end = [0, 0, 0], [0, 0, 0]
    start[axis], end[axis] = index, index + 1
    start[rows_axis], end[rows_axis] = first, stop
    start[columns_axis], end[columns_axis] = begin, right
    box = Box((start[0], start[1], start[2]), (end[0], end[1], end[2]))
    return DrawnOutline(axis, index, box, np.expand_dims(inside, axis))


def open_text(points: Sequence[Voxel], spacing_mm: Sequence[float]) -> str:
    """Return a note if the ends of a contour are far apart, or "" if the contour is almost closed.

    Ends are far apart if their distance is more than 3 mm and more than a tenth of the contour's
    length.
    """
    places = np.array(points) * np.array(spacing_mm)
    gap_mm = float(np.linalg.norm(places[-1] - places[0]))
    length_mm = float(np.linalg.norm(np.diff(places, axis=0), axis=1).sum())
    if gap_mm <= max(_OPEN_MM, _OPEN_SHARE * length_mm):
        return ""
    return f"The outline had a gap of {gap_mm:.0f} mm, which was closed with a straight line."


def outline_step(
    labels: NDArray[np.uint8],
    outline: DrawnOutline,
    label: int,
    action: Action,
    grown: tuple[Box, NDArray[np.bool_]] | None = None,
) -> tuple[str, Box, NDArray[np.bool_], tuple[tuple[str, Setting], ...]]:
    """Return the name, box, mask and parameters of the step that an outline makes.

    `Action.ADD` adds the outline to the label on that plane, and `Action.ERASE` removes it. The
    outline replaces voxels that growth added on the plane (`grown`, a box and the boolean voxels in
    it), because no reader drew them.
    """
    now = labels[outline.box.slices] == label
    if grown is not None and action is Action.ADD:
        outline = _widen_outline(outline, grown)
        now = labels[outline.box.slices] == label
        now &= ~_cut_part(grown, outline.box)
    parameters = ((_AXIS, outline.axis), (_INDEX, outline.index))
    if action is Action.ERASE:
        return "erase outline", outline.box, now & ~outline.inside, parameters
    return OUTLINE_STEP, outline.box, now | outline.inside, parameters


def _widen_outline(outline: DrawnOutline, grown: tuple[Box, NDArray[np.bool_]]) -> DrawnOutline:
    """Return the outline in a box that also contains the grown voxels on its plane."""
    start, stop = list(outline.box.start), list(outline.box.stop)
    for axis in range(3):
        if axis != outline.axis:
            start[axis] = min(start[axis], grown[0].start[axis])
            stop[axis] = max(stop[axis], grown[0].stop[axis])
    box = Box((start[0], start[1], start[2]), (stop[0], stop[1], stop[2]))
    return replace(outline, box=box, inside=_cut_part((outline.box, outline.inside), box))


def _cut_part(part: tuple[Box, NDArray[np.bool_]], wanted: Box) -> NDArray[np.bool_]:
    """Return the boolean voxels of a box on the box `wanted`, False outside the original box."""
    box, voxels = part
    out = np.zeros(wanted.shape, np.bool_)
    start = [max(a, b) for a, b in zip(box.start, wanted.start, strict=True)]
    stop = [min(a, b) for a, b in zip(box.stop, wanted.stop, strict=True)]
    if all(a < b for a, b in zip(start, stop, strict=True)):
        here, there = (
            tuple(slice(a - o, b - o) for a, b, o in zip(start, stop, corner, strict=True))
            for corner in (wanted.start, box.start)
        )
        out[here] = voxels[there]
    return out


def outlined_slices(steps: Iterable[Edit], label: int) -> tuple[tuple[int, int], ...]:
    """Return (axis, index) of each plane on which a label was outlined, in step order."""
    planes: dict[tuple[int, int], None] = {}
    for step in steps:
        parameters = dict(step.parameters)
        axis, index = parameters.get(_AXIS), parameters.get(_INDEX)
        is_outline = step.name == OUTLINE_STEP and step.label == label
        if is_outline and isinstance(axis, int) and isinstance(index, int):
            planes[axis, index] = None
    return tuple(planes)


def line_voxels(start: Voxel, stop: Voxel, shape: Sequence[int]) -> tuple[Box, NDArray[np.bool_]]:
    """Return the voxels on a straight line in the volume, as a box and the boolean voxels in it."""
    ends = np.array([start, stop])
    # The points are half a voxel apart, so the line has no gaps.
    steps = max(int(np.ceil(np.abs(ends[1] - ends[0]).max() * 2)), 1)
    share = np.linspace(0.0, 1.0, steps + 1)[:, np.newaxis]
    places = np.floor(ends[0] + share * (ends[1] - ends[0]) + 0.5).astype(int)
    places = places[((places >= 0) & (places < np.array(shape))).all(axis=1)]
    if not len(places):
        return Box.empty(), np.zeros((0, 0, 0), np.bool_)
    low, high = places.min(axis=0), places.max(axis=0) + 1
    box = Box((int(low[0]), int(low[1]), int(low[2])), (int(high[0]), int(high[1]), int(high[2])))
    on_line = np.zeros(box.shape, np.bool_)
    on_line[tuple((places - low).T)] = True
    return box, on_line


def _clip_range(places: Sequence[float], extent: int) -> tuple[int, int]:
    first = min(max(ceil(min(places)), 0), extent)
    return first, max(min(floor(max(places)) + 1, extent), first)


def _find_crossings(corners: Sequence[tuple[float, float]], row: float) -> list[float]:
    """Return the ascending positions where the contour crosses a row, always an even number."""
    columns = []
    for (row_a, column_a), (row_b, column_b) in zip(
        corners, (*corners[1:], corners[0]), strict=True
    ):
        if (row_a <= row) != (row_b <= row):
            share = (row - row_a) / (row_b - row_a)
            columns.append(column_a + share * (column_b - column_a))
    return sorted(columns)
