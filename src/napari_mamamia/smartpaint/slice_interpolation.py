"""Interpolation of the slices between outlined slices."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt, shift

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.smartpaint.mask_tools import Change, change_between

_ROUNDING_MM: Final = (
    1e-6  # equal distances cancel except for rounding: these voxels are not inside
)

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


def interpolate_slices(
    mask: Bools, grid: Grid, axis: int = 0, slices: Sequence[int] | None = None
) -> Change:
    """Fill the slices between outlined slices without changing existing voxels.

    Between two outlined slices the signed distance to the outline (mm, in the plane, positive
    inside) is interpolated linearly; voxels above 0 are added. Outlines without common voxels are
    first moved onto each other along the line between their centres of mass.

    Parameters
    ----------
    mask, grid
        The mask, bool (z, y, x).
    axis
        The array axis (0 z, 1 y, 2 x) perpendicular to the slices.
    slices
        Indices of the outlined slices; None uses all slices that are not empty. A slice in between
        that is not empty keeps its voxels and gains the interpolated voxels.

    Returns
    -------
    Change
        The box and the mask in it. The box is empty if there are fewer than two outlined slices, or
        no slice between them.

    Raises
    ------
    CaseError
        If one of `slices` is empty or beyond the mask.

    Source: Raya and Udupa, IEEE Trans Med Imaging 9 (1990) 32 (shape-based interpolation). Moving
    outlines that do not overlap is our choice.
    """
    box = Box.around(mask)
    crop = np.asarray(mask[box.slices], dtype=np.bool_)
    first = box.start[axis]
    filled: Bools = np.any(crop, axis=tuple(a for a in range(3) if a != axis))
    keys = np.flatnonzero(filled) if slices is None else np.unique(slices) - first
    if any(not 0 <= key < len(filled) or not filled[key] for key in keys):
        raise CaseError(
            "interpolation needs an outline in each of its slices, but got slices "
            f"{sorted(slices or ())} across axis {axis}: outline the lesion in each of them"
        )
    after = crop.copy()
    planes = after.swapaxes(0, axis)
    spacing = [step for a, step in enumerate(grid.spacing_mm) if a != axis]
    flip = axis == 2  # swapping the first and the last axis turns the plane over
    for low, high in pairwise(keys.tolist()):
        if high - low > 1:
            ends = (crop.swapaxes(0, axis)[low], crop.swapaxes(0, axis)[high])
            _fill_planes(planes[low + 1 : high], ends, spacing[::-1] if flip else spacing)
    return change_between(box, crop, after)


def _fill_planes(planes: Bools, ends: tuple[Bools, Bools], spacing_mm: list[float]) -> None:
    before, after = (_signed_distance(end, spacing_mm) for end in ends)
    way = np.zeros(2)
    if not (ends[0] & ends[1]).any():
        way = _find_centre(ends[1]) - _find_centre(ends[0])
    for number, plane in enumerate(planes, start=1):
        share = number / (len(planes) + 1)
        signed = (1 - share) * _shift_distance(before, share * way)
        signed += share * _shift_distance(after, (share - 1) * way)
        plane |= signed > _ROUNDING_MM


def _signed_distance(mask: Bools, spacing_mm: list[float]) -> Floats:
    # The crop ends where the outlines end, and an outline that fills it needs an outside.
    wide = np.pad(mask, 1)
    inside = distance_transform_edt(wide, sampling=spacing_mm)
    outside = distance_transform_edt(~wide, sampling=spacing_mm)
    signed: Floats = (inside - outside)[1:-1, 1:-1]
    return signed


def _find_centre(mask: Bools) -> Floats:
    centre: Floats = np.argwhere(mask).mean(axis=0)
    return centre


def _shift_distance(distance: Floats, way: Floats) -> Floats:
    if not way.any():
        return distance
    moved: Floats = shift(distance, way, order=1, mode="nearest")
    return moved
