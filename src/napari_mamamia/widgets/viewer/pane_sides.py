"""One breast of two on a view: which half of the volume it is, mirrored, and fitted to the canvas.

The main view's axis between right and left always runs to the patient's left, so that the right
breast has the lower indices; the midline is the middle of the volume.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from napari_mamamia.core.grid import Grid

RIGHT: Final = "right"
LEFT: Final = "left"
OTHER: Final = "other"
"""The breast that the cross-hair is not in."""

_BETWEEN_MM: Final = 20.0
"""So near to the midline a sagittal slice shows the breastbone, and neither breast. Ours."""
_FILLED: Final = 0.95
"""So much of a canvas a view fills that is fitted, as napari's own."""


@dataclass(frozen=True, slots=True)
class Sides:
    """Which side of the screen the patient's right is on: the left in the radiological way."""

    neurological: bool = False


def turned_camera(
    grid: Grid, turn: Sequence[int], against: Sequence[bool], sides: Sides
) -> tuple[str, str]:
    """Return which way the camera shows the rows and the columns of a plane.

    Parameters
    ----------
    grid
        The case's grid.
    turn, against
        As `DisplayFrame.within` returns them.
    sides
        A row that runs between right and left is shown the other way in the neurological one.

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
    """Return which axis of the main view (0 slice, 1 row, 2 column) runs between right and left."""
    frame = grid.display_frame()
    letters = [grid.orientation[2 - axis] for axis in frame.order]
    return next(axis for axis, letter in enumerate(letters) if letter in "RL")


def side_of(grid: Grid, index: float) -> str:
    """Return the side on which an index along that axis lies; the middle counts as left."""
    return RIGHT if index < (_count_places(grid) - 1) / 2 else LEFT


def put_on_side(grid: Grid, index: int, side: str) -> int:
    """Return the index on `side` that is as far from the midline; "other" is the other side."""
    if side == OTHER or (side and side_of(grid, index) != side):
        return _count_places(grid) - 1 - index
    return index


def leave_midline(grid: Grid, index: int) -> int:
    """Return an index inside a breast: the middle of the right one for one near the midline."""
    count, spacing = _count_places(grid), _list_spacing(grid)[find_side_axis(grid)]
    is_between = abs(index - (count - 1) / 2) * spacing < _BETWEEN_MM
    return count // 4 if is_between else index


def mirror_mm(grid: Grid, world: float) -> float:
    """Return a world position along that axis, mirrored at the midline."""
    return (_count_places(grid) - 1) * _list_spacing(grid)[find_side_axis(grid)] - world


def find_across(viewer: Any, grid: Grid) -> int | None:
    """Return which displayed axis of a view (0 down, 1 across) runs between right and left."""
    lead = viewer.dims.ndim - 3
    shown = [axis - lead for axis in viewer.dims.displayed]
    axis = find_side_axis(grid)
    return shown.index(axis) if len(shown) == 2 and axis in shown else None


def fit_half(viewer: Any, grid: Grid, side: str) -> None:
    """Show one breast of the plane on screen as large as it goes; the whole of a sagittal one."""
    along = find_across(viewer, grid)
    if along is None or side not in (RIGHT, LEFT):
        return
    lead = viewer.dims.ndim - 3
    frame = grid.display_frame()
    counts, spacing = frame.per_axis(grid.shape), _list_spacing(grid)
    axes = [axis - lead for axis in viewer.dims.displayed]
    sizes = [counts[axis] * spacing[axis] for axis in axes]
    centre = [(counts[axis] - 1) / 2 * spacing[axis] for axis in axes]
    shift = sizes[along] / 4
    centre[along] += -shift if side == RIGHT else shift
    sizes[along] /= 2
    canvas: Sequence[float] = viewer.canvas.size
    viewer.scene.camera.center = centre
    viewer.scene.camera.zoom = _FILLED * min(
        pixels / mm for pixels, mm in zip(canvas, sizes, strict=True)
    )


def _count_places(grid: Grid) -> int:
    frame = grid.display_frame()
    return grid.shape[frame.order[find_side_axis(grid)]]


def _list_spacing(grid: Grid) -> tuple[float, float, float]:
    return grid.display_frame().per_axis(grid.spacing_mm)
