"""Tools that change a whole mask: islands, holes, margin and smoothing.

Each tool takes a boolean mask (z, y, x) and its grid, without changing them, and returns a
`Change`: the smallest box with all changed voxels, and the new mask in this box. Only the bounding
box of the mask is processed. Parts are 26-connected. Distances in mm are measured between voxel
centres along the array's axes. The border of the image is the end of the scan, not of the tissue,
and is therefore not an edge.
"""

from math import ceil
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import (
    binary_fill_holes,
    distance_transform_edt,
    find_objects,
    gaussian_filter,
    label,
)

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid

_ALL_NEIGHBOURS: Final = np.ones((3, 3, 3), dtype=np.bool_)
_ROUNDING: Final = 1e-6  # of a distance: affines are stored as float32
_TRUNCATE: Final = 3.0  # standard deviations at which a Gaussian is truncated

Bools = NDArray[np.bool_]
Change = tuple[Box, Bools]
"""A box and the new mask in it; the box is empty if nothing changes."""


def keep_largest(mask: Bools, grid: Grid) -> Change:
    """Keep only the part with most voxels, or the first in the array among equal parts."""
    box, crop = _crop_mask(mask, grid)
    parts, sizes = _label_parts(crop)
    if len(sizes) < 3:
        return _make_empty_change()
    return change_between(box, crop, parts == int(sizes[1:].argmax()) + 1)


def remove_small(mask: Bools, grid: Grid, least_mm3: float) -> Change:
    """Remove parts smaller than `least_mm3`, which must not be negative."""
    _require_value(
        least_mm3 >= 0,
        f"expected the minimum volume to be 0 mm3 or above, but got {least_mm3:g} mm3",
    )
    box, crop = _crop_mask(mask, grid)
    parts, sizes = _label_parts(crop)
    stays = sizes * grid.voxel_volume_mm3 >= least_mm3 * (1 - _ROUNDING)
    stays[0] = False
    return change_between(box, crop, stays[parts])


def fill_holes(mask: Bools, grid: Grid, plane_axis: int | None = None) -> Change:
    """Fill the voxels that the mask encloses.

    Parameters
    ----------
    mask, grid
        The mask.
    plane_axis
        None fills holes that are closed in 3-D. An array axis (0 z, 1 y, 2 x) fills holes that are
        closed in a plane perpendicular to the axis, such as the core of a rim that is open above.
        Background voxels are connected through faces.
    """
    box, crop = _crop_mask(mask, grid)
    if plane_axis is None:
        return change_between(box, crop, _fill_enclosed(crop))
    full = crop.copy()
    for plane in full.swapaxes(0, plane_axis):
        plane |= binary_fill_holes(plane)
    return change_between(box, crop, full)


def margin(mask: Bools, grid: Grid, margin_mm: float) -> Change:
    """Add voxels within `margin_mm` of the mask; with a negative margin, remove voxels.

    A voxel is added if its centre is at most the margin away from a voxel of the mask, and removed
    if it is at most that far from a voxel outside. A margin below the slice spacing does not change
    the neighbouring slices.
    """
    _require_value(
        bool(np.isfinite(margin_mm)),
        f"expected the margin to be a number of mm, but got {margin_mm}",
    )
    reach = [ceil(abs(margin_mm) / step) + 1 for step in grid.spacing_mm]
    tight = Box.around(mask)
    if tight.is_empty or margin_mm == 0:
        return _make_empty_change()
    box = tight.grown(reach if margin_mm > 0 else (1, 1, 1), grid.shape)
    crop = np.asarray(mask[box.slices], dtype=np.bool_)
    away = _distance_to(crop if margin_mm > 0 else ~crop, grid)
    near = away <= abs(margin_mm) * (1 + _ROUNDING)
    return change_between(box, crop, crop | near if margin_mm > 0 else crop & ~near)


def smooth(mask: Bools, grid: Grid, smooth_mm: float) -> Change:
    """Smooth the surface of each part with a Gaussian of `smooth_mm`, which must be above 0.

    A part is blurred, and as many voxels with the highest values are kept as the part had before,
    so each part keeps its volume except for voxels of equal value. Parts that then overlap are
    joined, and the volume decreases by the overlap. Parts with one voxel are not changed.

    Source: Gaussian smoothing; the level that preserves the volume is our choice. At a level of
    0.5, a ball of 5 mm radius would lose a tenth of its volume with 1.5 mm.
    """
    _require_value(
        smooth_mm > 0, f"expected the smoothing to be above 0 mm, but got {smooth_mm:g} mm"
    )
    sigma = [smooth_mm / step for step in grid.spacing_mm]
    reach = [ceil(_TRUNCATE * s) + 1 for s in sigma]
    tight = Box.around(mask)
    if tight.is_empty:
        return _make_empty_change()
    box = tight.grown(reach, grid.shape)
    crop = np.asarray(mask[box.slices], dtype=np.bool_)
    parts, _ = label(crop, structure=_ALL_NEIGHBOURS)
    out = np.zeros_like(crop)
    for number, object_ in enumerate(find_objects(parts), start=1):
        around = Box(tuple(s.start for s in object_), tuple(s.stop for s in object_)).grown(
            reach, crop.shape
        )
        out[around.slices] |= _smooth_part(parts[around.slices] == number, sigma)
    return change_between(box, crop, out)


def change_between(box: Box, before: Bools, after: Bools) -> Change:
    """Return the change from mask `before` to mask `after`, which both have the shape of `box`."""
    tight = Box.around(before != after)
    if tight.is_empty:
        return _make_empty_change()
    (z, y, x), (a, b, c), (d, e, f) = box.start, tight.start, tight.stop
    return Box((z + a, y + b, x + c), (z + d, y + e, x + f)), after[tight.slices].copy()


def _make_empty_change() -> Change:
    return Box.empty(), np.zeros((0, 0, 0), dtype=np.bool_)


def _require_value(holds: bool, message: str) -> None:
    if not holds:
        raise CaseError(f"{message}: enter a different value")


def _crop_mask(mask: Bools, grid: Grid) -> Change:
    if mask.shape != grid.shape:
        raise CaseError(
            f"expected the mask to have the shape {grid.shape} (z, y, x) of its grid, but it has "
            f"{mask.shape}: open the case again"
        )
    box = Box.around(mask)
    return box, np.asarray(mask[box.slices], dtype=np.bool_)


def _label_parts(crop: Bools) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """Return the part number of each voxel (0 for background), and each part's voxel count."""
    parts, count = label(crop, structure=_ALL_NEIGHBOURS)
    return parts, np.bincount(parts.ravel(), minlength=count + 1)


def _fill_enclosed(crop: Bools) -> Bools:
    # The padding connects all voxels that are not enclosed with the corner.
    outside = np.pad(~crop, 1, constant_values=True)
    parts, _ = label(outside)
    return np.ascontiguousarray((parts != parts[0, 0, 0])[1:-1, 1:-1, 1:-1])


def _distance_to(what: Bools, grid: Grid) -> NDArray[np.float64]:
    if not what.any():
        return np.full(what.shape, np.inf)
    distance: NDArray[np.float64] = distance_transform_edt(~what, sampling=grid.spacing_mm)
    return distance


def _smooth_part(part: Bools, sigma: list[float]) -> Bools:
    count = int(np.count_nonzero(part))
    blurred = gaussian_filter(part.astype(np.float32), sigma, mode="nearest", truncate=_TRUNCATE)
    level = np.partition(blurred.ravel(), blurred.size - count)[blurred.size - count]
    with_ties, without = blurred >= level, blurred > level
    more, fewer = int(np.count_nonzero(with_ties)), int(np.count_nonzero(without))
    nearest: Bools = with_ties if more - count <= count - fewer else without
    return nearest
