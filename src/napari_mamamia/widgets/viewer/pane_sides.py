"""One breast in a view: its half of the volume, mirrored and fitted to the canvas.

The main view's left-right axis always runs to the patient's left, so that the right breast has the
lower indices. The midline is the middle of the volume.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from napari_mamamia.core.box import Box
from napari_mamamia.core.grid import Grid

RIGHT: Final = "right"
LEFT: Final = "left"
OTHER: Final = "other"
"""The breast that does not contain the cross-hair."""

_BETWEEN_MM: Final = 20.0
"""Distance in mm from the midline within which a sagittal slice shows the sternum; our choice."""
FILLED: Final = 0.95
"""Fraction of the canvas that a fitted view fills, as in napari."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The side of the screen with the patient's right: left in the radiological convention."""

    neurological: bool = False


def turned_camera(
    grid: Grid, turn: Sequence[int], against: Sequence[bool], sides: Sides
) -> tuple[str, str]:
    """Return the camera's directions of the rows and columns of a plane.

    Parameters
    ----------
    grid
        The case's grid.
    turn, against
        As `DisplayFrame.within` returns them.
    sides
        A left-right row is reversed in the neurological convention.

    Examples
    --------
    >>> import numpy as np
    >>> grid = Grid((2, 3, 4), np.diag([-1.0, 1.0, 2.0, 1.0]))
    >>> turned_camera(grid, (0, 1, 2), (False, False, False), Sides(neurological=True))
    ('down', 'left')
    """
    letter = grid.orientation[2 - grid.display_frame().order[turn[2]]]
    mirrored = sides.neurological and letter in "RL"
    return "up" if against[1] else "down", "left" if against[2] != mirrored else "right"


def find_side_axis(grid: Grid) -> int:
    """Return the left-right axis of the main view (0 slice, 1 row, 2 column)."""
    frame = grid.display_frame()
    letters = [grid.orientation[2 - axis] for axis in frame.order]
    return next(axis for axis, letter in enumerate(letters) if letter in "RL")


def side_of(grid: Grid, index: float) -> str:
    """Return the side of the body for a left-right index; the middle counts as left."""
    return RIGHT if index < (_count_places(grid) - 1) / 2 else LEFT


def put_on_side(grid: Grid, index: int, side: str) -> int:
    """Return the index on `side` at the same distance from the midline; "other" swaps sides."""
    if side == OTHER or (side and side_of(grid, index) != side):
        return _count_places(grid) - 1 - index
    return index


def leave_midline(grid: Grid, index: int) -> int:
    """Return an index inside a breast: an index near the midline moves to the right breast."""
    count, spacing = _count_places(grid), _list_spacing(grid)[find_side_axis(grid)]
    is_between = abs(index - (count - 1) / 2) * spacing < _BETWEEN_MM
    return count // 4 if is_between else index


def mirror_mm(grid: Grid, world: float) -> float:
    """Return the position along the left-right axis after mirroring at the midline."""
    return (_count_places(grid) - 1) * _list_spacing(grid)[find_side_axis(grid)] - world


def find_across(viewer: Any, grid: Grid) -> int | None:
    """Return the displayed left-right axis of a view (0 down, 1 across), or None."""
    lead = viewer.dims.ndim - 3
    displayed = [axis - lead for axis in viewer.dims.displayed]
    axis = find_side_axis(grid)
    return displayed.index(axis) if len(displayed) == 2 and axis in displayed else None


def fit_half(
    viewer: Any, grid: Grid, side: str, breast: Box | None = None, zoom: float | None = None
) -> bool:
    """Show one breast of the displayed plane as large as possible, without the other breast.

    Return False, without changing anything, if the plane does not show one breast.

    Parameters
    ----------
    side
        "right" or "left"; any other value keeps the whole slice.
    breast
        The block of voxels (z, y, x) of the right breast, as returned by `find_breast_box`. None
        uses
        half of the volume, or the whole of a sagittal slice.
    zoom
        Pixels per mm; None for the zoom at which the breast just fits.
    """
    along = find_across(viewer, grid)
    if not _shows_half(along, side, breast):
        return False
    spans = _find_spans(viewer, grid, side, breast)
    canvas: Sequence[float] = viewer.canvas.size
    if zoom is None:
        zoom = find_zoom(viewer, grid, side, breast)
    centre = [(low + high) / 2 for low, high in spans]
    if along is not None:
        # Remaining room goes to the outer side: beyond the midline is the other breast.
        middle, reach = mirror_mm(grid, 0.0) / 2, canvas[along] / zoom / 2
        if side == RIGHT:
            centre[along] = min(centre[along], middle - reach)
        else:
            centre[along] = max(centre[along], middle + reach)
    viewer.scene.camera.center = centre
    viewer.scene.camera.zoom = zoom
    return True


def find_zoom(viewer: Any, grid: Grid, side: str, breast: Box | None) -> float:
    """Return the pixels per mm at which `fit_half` just shows a breast, or infinity without one."""
    if not _shows_half(find_across(viewer, grid), side, breast):
        return math.inf
    spans = zip(viewer.canvas.size, _find_spans(viewer, grid, side, breast), strict=True)
    return float(FILLED * min(pixels / (high - low) for pixels, (low, high) in spans))


def _shows_half(along: int | None, side: str, breast: Box | None) -> bool:
    return side in (RIGHT, LEFT) and (along is not None or breast is not None)


def _find_spans(
    viewer: Any, grid: Grid, side: str, breast: Box | None
) -> list[tuple[float, float]]:
    """Return the extent of a breast along the displayed axes in mm."""
    frame, spacing = grid.display_frame(), _list_spacing(grid)
    counts = frame.per_axis(grid.shape)
    across = find_side_axis(grid)
    ends = [(0.0, float(count - 1)) for count in counts]
    ends[across] = (0.0, counts[across] / 2 - 1)
    if breast is not None:
        corners = (breast.start, tuple(stop - 1 for stop in breast.stop))
        displayed = [frame.point_to_display(corner, grid.shape) for corner in corners]
        ends = [(min(pair), max(pair)) for pair in zip(*displayed, strict=True)]
    if side == LEFT:
        last = counts[across] - 1
        ends[across] = (last - ends[across][1], last - ends[across][0])
    lead = viewer.dims.ndim - 3
    axes = [axis - lead for axis in viewer.dims.displayed]
    return [((ends[a][0] - 0.5) * spacing[a], (ends[a][1] + 0.5) * spacing[a]) for a in axes]


def _count_places(grid: Grid) -> int:
    frame = grid.display_frame()
    return grid.shape[frame.order[find_side_axis(grid)]]


def _list_spacing(grid: Grid) -> tuple[float, float, float]:
    return grid.display_frame().per_axis(grid.spacing_mm)
