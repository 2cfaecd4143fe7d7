"""Flip and permute a volume together with its grid, points and boxes (`Reorientation`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.grid import Grid

_AXES: Final = "RLAPSI"


@dataclass(frozen=True, slots=True)
class Reorientation:
    """The axis permutation and flips that map a volume between two grids without resampling.

    Parameters
    ----------
    source, target
        The grids before and after. The centre of each voxel keeps its position in RAS mm.
    order
        The source array axis that becomes each target axis (z, y, x).
    flips
        Whether each target axis (z, y, x) runs in the opposite direction to its source axis.
    """

    source: Grid
    target: Grid
    order: tuple[int, int, int]
    flips: tuple[bool, bool, bool]

    def array(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return an array ``(..., z, y, x)`` on the source grid as a view on the target grid."""
        ahead = tuple(range(array.ndim - 3))
        turned = array.transpose(*ahead, *(array.ndim - 3 + axis for axis in self.order))
        out: NDArray[Any] = turned[self._make_slices()]
        return out

    def array_back(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return an array ``(..., z, y, x)`` on the target grid as a view on the source grid."""
        ahead = tuple(range(array.ndim - 3))
        back = tuple(array.ndim - 3 + int(axis) for axis in np.argsort(self.order))
        out: NDArray[Any] = array[self._make_slices()].transpose(*ahead, *back)
        return out

    def point(self, voxel: Sequence[float]) -> tuple[float, float, float]:
        """Return the target coordinates (z, y, x) of a point in source voxel coordinates."""
        ends = self.target.shape
        z, y, x = (
            (ends[k] - 1 - voxel[axis]) if self.flips[k] else voxel[axis]
            for k, axis in enumerate(self.order)
        )
        return (z, y, x)

    def box(self, box: Box) -> Box:
        """Return the box on the target grid with the same voxels as a box on the source grid."""
        start, stop = [0, 0, 0], [0, 0, 0]
        for k, axis in enumerate(self.order):
            a, b = box.start[axis], box.stop[axis]
            end = self.target.shape[k]
            start[k], stop[k] = (end - b, end - a) if self.flips[k] else (a, b)
        return Box((start[0], start[1], start[2]), (stop[0], stop[1], stop[2]))

    def _make_slices(self) -> Any:
        return (..., *(slice(None, None, -1 if flip else 1) for flip in self.flips))


def reorientation_to(grid: Grid, orientation: str) -> Reorientation:
    """Return the reorientation of `grid` to the orientation given by three letters.

    Parameters
    ----------
    orientation
        Three letters for the file's (x, y, z) axes, such as ``"LAS"``; each is the patient
        direction
        that the axis points to. For an oblique grid, each axis is assigned the nearest direction,
        and
        the grid stays oblique.

    Raises
    ------
    ValueError
        If `orientation` does not contain each of the three directions exactly once.

    Examples
    --------
    >>> turn = reorientation_to(Grid((2, 3, 4), np.diag([-1.0, 1.0, 1.0, 1.0])), "RAS")
    >>> turn.flips, turn.target.orientation
    ((False, False, True), 'RAS')
    """
    code = orientation.upper()
    if len(code) != 3 or sorted(_find_world_axis(letter) for letter in code) != [0, 1, 2]:
        raise ValueError(
            "expected an orientation to have one of R and L, one of A and P, and one of S and I, "
            f"but got {orientation!r}: write it like 'RAS' or 'LPS'"
        )
    grid_letters = grid.orientation[::-1]
    order, flips = [], []
    for letter in code[::-1]:
        axis = next(
            k
            for k, mine in enumerate(grid_letters)
            if _find_world_axis(mine) == _find_world_axis(letter)
        )
        order.append(axis)
        flips.append(grid_letters[axis] != letter)
    turned = (order[0], order[1], order[2])
    flipped = (flips[0], flips[1], flips[2])
    return Reorientation(grid, _turn_grid(grid, turned, flipped), turned, flipped)


def reorientation_onto(grid: Grid, target: Grid) -> Reorientation | None:
    """Return the reorientation from `grid` to `target`, or None if there is none.

    A reorientation exists if both grids are physically the same and differ only in the order or
    direction of their axes.
    """
    for order in permutations((0, 1, 2)):
        if tuple(grid.shape[axis] for axis in order) != target.shape:
            continue
        for flips in product((False, True), repeat=3):
            turned_order = (order[0], order[1], order[2])
            turned_flips = (flips[0], flips[1], flips[2])
            turned = _turn_grid(grid, turned_order, turned_flips)
            if turned.is_same_place(target):
                return Reorientation(grid, turned, turned_order, turned_flips)
    return None


def _turn_grid(grid: Grid, order: tuple[int, int, int], flips: tuple[bool, bool, bool]) -> Grid:
    if order == (0, 1, 2) and not any(flips):
        return grid
    z, y, x = (grid.shape[axis] for axis in order)
    # Indexing by a tuple copies: flipping the steps below does not change the source's matrix.
    steps = grid.matrix_mm[:, order]
    origin = grid.affine[:3, 3].copy()
    for k, flip in enumerate(flips):
        if flip:
            origin += steps[:, k] * ((z, y, x)[k] - 1)
            steps[:, k] *= -1
    affine = np.eye(4)
    affine[:3, :3] = steps[:, ::-1]
    affine[:3, 3] = origin
    return Grid((z, y, x), affine)


def _find_world_axis(letter: str) -> int:
    """Return the index of a letter's RAS axis, or -1 if it is not an orientation letter."""
    return _AXES.find(letter) // 2 if letter in _AXES else -1
