"""Diameters of a mask in 3-D, within a slice, and along the patient's head-foot axis."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.grid import Grid

_FEW: Final = 400
"""Largest number of points whose pairs are all compared; for more points, the hull is faster."""

_PAIRS: Final = 1 << 17
"""Number of distances computed in one step (1 MB, which fits into the CPU cache)."""

_SWEEPS: Final = 4

_ROUNDING: Final = 1e-9
"""Relative tolerance of the bound, far larger than the rounding error of three added squares."""


@dataclass(frozen=True, slots=True)
class LesionSize:
    """Diameters of a lesion in mm, measured between voxel centres; NaN for an empty mask.

    Parameters
    ----------
    longest_mm
        The longest diameter of the whole lesion in 3-D.
    in_plane_mm, ends
        The longest diameter within one acquired slice, and the voxels ``(z, y, x)`` at its ends.
    perpendicular_mm
        The extent of the lesion in that slice, perpendicular to the diameter.
    head_foot_mm
        The extent of the lesion along the patient's head-foot axis.
    """

    longest_mm: float
    in_plane_mm: float
    perpendicular_mm: float
    head_foot_mm: float
    ends: tuple[tuple[int, int, int], ...] = ()


def measure_size(lesion: NDArray[np.bool_], grid: Grid) -> LesionSize:
    """Return the diameters of a lesion.

    The slice is the acquired slice with the longest diameter, or the first of several such slices.
    Extents are measured as with calipers, between two parallel planes through voxel centres.

    Parameters
    ----------
    lesion
        A boolean array ``(z, y, x)``.
    grid
        The grid of the lesion.

    Source: longest diameter and its perpendicular in one slice as in the WHO handbook for reporting
    results of cancer treatment (1979).
    """
    if not lesion.any():
        return LesionSize(*(float("nan"),) * 4)
    box = Box.around(lesion)
    inside = lesion[box.slices]
    matrix = np.asarray(grid.matrix_mm)
    axis = grid.display_frame().order[0]
    slices = [inside.take([k], axis=axis) for k in range(inside.shape[axis])]
    lengths = [longest_diameter_mm(image, matrix) if image.any() else -1.0 for image in slices]
    place = int(np.argmax(lengths))
    voxels = np.argwhere(slices[place])
    points = voxels @ matrix.T
    first, last = _find_ends(voxels, matrix)
    along = points[last] - points[first]
    # At right angles to the diameter within the slice, whatever the shear of the grid.
    row_step, column_step = (matrix[:, one] for one in range(3) if one != axis)
    normal = np.cross(row_step, column_step)
    across = np.cross(normal, along) if along.any() else np.zeros(3)
    extent = points @ (across / max(float(np.linalg.norm(across)), 1e-30))
    heights = np.argwhere(inside) @ matrix[2]
    offset = np.asarray(box.start)
    offset[axis] += place
    ends = tuple((int(z), int(y), int(x)) for z, y, x in voxels[[first, last]] + offset)
    return LesionSize(
        longest_diameter_mm(inside, matrix),
        lengths[place],
        float(np.ptp(extent)),
        float(np.ptp(heights)),
        ends,
    )


def _find_ends(voxels: NDArray[np.intp], matrix_mm: NDArray[np.float64]) -> tuple[int, int]:
    # Only the ends of rows can be corners of the outline.
    free = [k for k in range(3) if np.ptp(voxels[:, k])]
    if not free:
        return 0, 0
    numbers = np.arange(len(voxels))
    for k in free:
        others = [one for one in free if one != k]
        keys = tuple(voxels[numbers, one] for one in (k, *others))
        numbers = numbers[np.lexsort(keys)]
        rows = voxels[numbers][:, others]
        is_new = np.ones(len(numbers), dtype=np.bool_)
        is_new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
        is_last = np.roll(is_new, -1)
        is_last[-1] = True
        numbers = numbers[is_new | is_last]
    points = voxels[numbers] @ matrix_mm.T
    farthest = (-1.0, 0, 0)
    for at, point in enumerate(points):
        squared = ((points - point) ** 2).sum(axis=1)
        other = int(squared.argmax())
        farthest = max(farthest, (float(squared[other]), -at, -other))
    _, at, other = farthest
    first, last = sorted((int(numbers[-at]), int(numbers[-other])))
    return first, last


def longest_diameter_mm(mask: NDArray[np.bool_], matrix_mm: NDArray[np.float64]) -> float:
    """Return the largest distance between the centres of two foreground voxels, in mm.

    This is the largest Feret diameter of the 3-D convex hull; all components of the mask are
    measured together. The result is NaN for an empty mask and 0 for a single voxel.

    Parameters
    ----------
    mask
        A boolean array (z, y, x), or any crop that contains its foreground.
    matrix_mm
        The 3x3 matrix with the steps along (z, y, x) in mm as columns (`Grid.matrix_mm`), with
        which sheared and oblique grids are measured correctly.

    Notes
    -----
    The two voxels that are farthest apart are corners of the convex hull, and a corner is the first
    or last foreground voxel of its row along every axis. Source: M. I. Shamos, Computational
    Geometry
    (PhD thesis, Yale 1978), the diameter of a set is that of its hull; Feret diameter as in
    R. Beare, G. Lehmann, The Insight Journal 2006 (ITK), between voxel centres.
    """
    if not mask.any():
        return float("nan")
    # A voxel between two other voxels on one line is never one of the two farthest apart. Each
    # axis in turn removes such voxels.
    places = _first_and_last(mask)
    for axes in ((0, 2, 1), (1, 2, 0)):
        places = _row_ends(places, axes)
    places = places[_far_out(places @ matrix_mm.T)]
    corners = _find_corners(places) if len(places) > _FEW else places
    return _measure_farthest(corners @ matrix_mm.T)


def _first_and_last(mask: NDArray[np.bool_]) -> NDArray[np.intp]:
    z, y = np.nonzero(mask.any(axis=2))
    rows = mask[z, y]
    first = rows.argmax(axis=1)
    last = mask.shape[2] - 1 - rows[:, ::-1].argmax(axis=1)
    places = [np.stack([z, y, x], axis=1) for x in (first, last)]
    return np.concatenate(places)


def _row_ends(places: NDArray[np.intp], axes: tuple[int, int, int]) -> NDArray[np.intp]:
    # Sorting one number per voxel is ten times faster than np.lexsort.
    extents = places.max(axis=0) + 1
    turned = [places[:, axis] for axis in axes]
    numbers = np.sort(np.ravel_multi_index(turned, tuple(extents[list(axes)])))
    rows = numbers // extents[axes[2]]
    is_end = np.ones((2, len(rows)), dtype=np.bool_)
    is_end[0, 1:] = is_end[1, :-1] = rows[1:] != rows[:-1]
    ends = np.unravel_index(numbers[is_end[0] | is_end[1]], tuple(extents[list(axes)]))
    row_ends = np.empty((len(ends[0]), 3), dtype=np.intp)
    for axis, along in zip(axes, ends, strict=True):
        row_ends[:, axis] = along
    return row_ends


def _find_corners(places: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the corners of the convex hull, or all voxels if they lie in one plane.

    The hull is computed from integer voxel indices, which have no rounding error; a linear map to
    mm maps corners to corners.
    """
    from scipy.spatial import (
        ConvexHull,
        QhullError,
    )  # The import is here for the same reason as KDTree in `nearest`.

    try:
        hull: Any = ConvexHull(places)
    except QhullError:
        return places
    corners: NDArray[np.intp] = places[hull.vertices]
    return corners


def _far_out(points_mm: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return, for each of n points (n, 3), whether it can be one of the two farthest points.

    A pair can only exceed the longest distance found so far if both its points lie far enough from
    the centre.
    """
    # Adding three long rows is many times faster than adding many rows of three.
    along = np.ascontiguousarray(points_mm.T)
    middle = (along.min(axis=1, keepdims=True) + along.max(axis=1, keepdims=True)) / 2
    radius = np.sqrt(((along - middle) ** 2).sum(axis=0))
    far: NDArray[np.bool_] = radius + radius.max() >= _sweep_points(along) * (1 - _ROUNDING)
    return far


def _measure_farthest(points_mm: NDArray[np.float64]) -> float:
    # The products below lose digits far from the origin, and scanners often place the breast
    # there.
    apart = points_mm - points_mm.mean(axis=0)
    squares = (apart**2).sum(axis=1)
    step = max(1, _PAIRS // len(apart))
    longest = 0.0
    for first in range(0, len(apart), step):
        block = slice(first, first + step)
        squared = squares[block, None] + squares - 2 * (apart[block] @ apart.T)
        one, other = np.unravel_index(int(squared.argmax()), squared.shape)
        # The products only choose the pair. Its distance is computed from the difference, which
        # has a smaller rounding error.
        longest = max(longest, float(np.linalg.norm(apart[first + one] - apart[other])))
    return longest


def _sweep_points(along: NDArray[np.float64]) -> float:
    """Return the distance between two distant points in an array (3, n).

    The distance is a lower bound of the maximum. Each sweep goes from a point to the point farthest
    from it.
    """
    place, longest = 0, 0.0
    for _ in range(_SWEEPS):
        squared = ((along - along[:, place, None]) ** 2).sum(axis=0)
        place = int(squared.argmax())
        longest = max(longest, float(np.sqrt(squared[place])))
    return longest
