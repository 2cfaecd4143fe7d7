"""Constants of the brush, the circle that it paints, and the box of voxels that it touches."""

from math import ceil, floor, isfinite, log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Brush, Extent, Tool, Voxel

Spacing = tuple[float, float, float]

START_INSIDE: Final = np.float32(0.95)
START_OUTSIDE: Final = np.float32(0.05)
"""Membership outside and inside a mask at the start of painting.

The values are never 0 or 1, so one full dose changes a voxel's label. Source:
docs/methods/previous_brush.md.
"""

THRESHOLD: Final = 0.5
"""Membership from which a voxel belongs to the label."""

PRESS_DOSE: Final = 3.0
"""Dose E0 in the middle of a press. Source: docs/methods/previous_brush.md."""

_HARDNESS: Final = 0.5  # share of the radius with full dose; A4
_TURNING_DOSE: Final = log((1 - 0.05) / (1 - THRESHOLD))  # from .05 to .5, and from .95 to .5
_PAINTED_SHARE: Final = 1 - (1 - _HARDNESS) * _TURNING_DOSE / PRESS_DOSE
SMOOTHING_MM: Final = 1.0
"""Standard deviation in mm of the smoothing brush's Gaussian.

Source: docs/methods/previous_brush.md.
"""
_SMOOTHING_REACH: Final = 3.0  # the Gaussian is truncated at this many standard deviations


def painted_radius_mm(brush: Brush) -> float:
    """Return the radius in mm that `brush` paints, which is the circle of the cursor.

    A press on a uniform image changes a voxel's label where its dose ``E0 (1 - d / r) / (1 - h)``
    is at least ``ln(.95 / .5)``. This is up to ``r (1 - (1 - h) ln(.95 / .5) / E0) = 0.893 r`` for
    a radius r, h = 0.5, E0 = 3 and an initial membership of 0.05 outside a mask (0.95 inside it,
    for an eraser). No stamp deposits a dose farther out, so voxels outside the circle never change,
    regardless of how often a stroke passes. The plain sphere and the smoothing brush use the same
    circle, so it does not change with the tool.

    Source: derived from the formula of the dose (docs/methods/previous_brush.md); an initial
    membership of 0 would give 0.884 r.

    Examples
    --------
    >>> round(painted_radius_mm(Brush(Tool.SMARTPAINT, radius_mm=10.0)), 2)
    8.93
    """
    return _PAINTED_SHARE * brush.radius_mm


def voxel_under(point: Voxel) -> tuple[int, int, int]:
    """Return the index of the voxel that contains `point`, which may be outside the volume."""
    z, y, x = (floor(coordinate + 0.5) for coordinate in point)
    return (z, y, x)


def stamp_box(centre: Voxel, brush: Brush, spacing_mm: Spacing, shape: tuple[int, int, int]) -> Box:
    """Return the voxels that a stamp at `centre` may read and change; empty outside the volume.

    The box contains the sphere of `painted_radius_mm` (for `Extent.PLANE`, its disc) and the voxel
    under the centre, cropped to a volume of `shape`. The smoothing brush reads 3 mm more on each
    side.
    """
    if not all(isfinite(coordinate) for coordinate in centre):
        return Box.empty()
    reach_mm = painted_radius_mm(brush)
    if brush.tool is Tool.SMOOTH:
        reach_mm += _SMOOTHING_REACH * SMOOTHING_MM
    start, stop = [0, 0, 0], [0, 0, 0]
    for axis, under in enumerate(voxel_under(centre)):
        reach = reach_mm / spacing_mm[axis]
        if brush.extent is Extent.PLANE and axis == brush.plane_axis:
            reach = 0.0
        low = min(under, ceil(centre[axis] - reach))
        high = max(under, floor(centre[axis] + reach))
        start[axis], stop[axis] = max(low, 0), min(high + 1, shape[axis])
        if start[axis] >= stop[axis]:
            return Box.empty()
    return Box((start[0], start[1], start[2]), (stop[0], stop[1], stop[2]))


def fall_off(centre: Voxel, brush: Brush, spacing_mm: Spacing, box: Box) -> NDArray[np.float32]:
    """Return the fraction of the dose (0 to 1) that each voxel of the box gets by its distance.

    The fraction is 1 up to half the radius, then ``(1 - d / r) / (1 - h)`` with h = 0.5, and 0
    beyond `painted_radius_mm`. It is 1 everywhere for the plain sphere, and always 1 in the voxel
    under the centre. Source: docs/methods/previous_brush.md.
    """
    shares = _squared_shares(centre, brush, spacing_mm, box)
    beyond = shares > np.float32(_PAINTED_SHARE**2)
    if brush.tool is Tool.SPHERE:
        shares.fill(1.0)
    else:
        np.sqrt(shares, out=shares)
        shares *= np.float32(-1 / (1 - _HARDNESS))
        shares += np.float32(1 / (1 - _HARDNESS))
        np.minimum(shares, np.float32(1.0), out=shares)
    shares[beyond] = 0.0
    under = tuple(a - b for a, b in zip(voxel_under(centre), box.start, strict=True))
    if all(0 <= index < extent for index, extent in zip(under, box.shape, strict=True)):
        shares[under] = 1.0
    return shares


def suggested_radius_mm(
    mask: NDArray[np.bool_], point: Voxel, spacing_mm: Spacing, limits_mm: tuple[float, float]
) -> float:
    """Return the distance in mm from `point` to the nearest edge of `mask`, within the limits.

    If the voxel under `point` is outside the mask, the edge is the centre of the nearest voxel
    inside, and vice versa. Positions outside the volume count as outside the mask, but not as an
    edge. The upper limit is returned if no edge is closer. Only voxels within the upper limit are
    examined.
    """
    least, most = limits_mm
    under = tuple(
        min(max(index, 0), n - 1) for index, n in zip(voxel_under(point), mask.shape, strict=True)
    )
    reach = [ceil(most / step) for step in spacing_mm]
    start = [max(a - n, 0) for a, n in zip(under, reach, strict=True)]
    crop = mask[tuple(slice(a, u + n + 1) for a, u, n in zip(start, under, reach, strict=True))]
    other = crop != mask[under]
    if not other.any():
        return most
    z, y, x = (
        ((np.arange(extent) + first - index) * step).astype(np.float32) ** 2
        for extent, first, index, step in zip(crop.shape, start, point, spacing_mm, strict=True)
    )
    squared = z[:, np.newaxis, np.newaxis] + (y[:, np.newaxis] + x)
    nearest = float(np.sqrt(squared[other].min()))
    return min(max(nearest, least), most)


def _squared_shares(
    centre: Voxel, brush: Brush, spacing_mm: Spacing, box: Box
) -> NDArray[np.float32]:
    """Return (distance / radius) squared of each voxel, within the plane for a 2-D brush."""
    along = []
    for axis in range(3):
        step = spacing_mm[axis] / brush.radius_mm
        offset = (np.arange(box.start[axis], box.stop[axis]) - centre[axis]) * step
        if brush.extent is Extent.PLANE and axis == brush.plane_axis:
            there = np.arange(box.start[axis], box.stop[axis]) == voxel_under(centre)[axis]
            # The pointer may be between two slices; the painted slice counts as exactly under it.
            offset = np.where(there, 0.0, np.inf)
        along.append((offset * offset).astype(np.float32))
    plane = along[1][:, np.newaxis] + along[2]
    shares: NDArray[np.float32] = along[0][:, np.newaxis, np.newaxis] + plane
    return shares
