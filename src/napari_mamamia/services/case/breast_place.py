"""Find one breast in a bilateral volume, so that the initial view can show it enlarged.

The rest of the slice can be reached by panning, and other steps of the hanging protocol show whole
slices.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case
from napari_mamamia.segmentation.kinetic.breast import find_breast
from napari_mamamia.segmentation.kinetic.enhancement import pool_factors, pooled
from napari_mamamia.services.case.hanging import shows_both

_GRID_MM: Final = 4.0
_MARGIN_MM: Final = 6.0
_SPECKS: Final = 0.01
"""Fraction of the breast's voxels ignored at each end, except the nipple's end. Our choice."""


def find_breast_box(case: Case) -> Box | None:
    """Return the block of voxels (z, y, x) that contains the right breast.

    The left breast is mirrored onto the right breast at the middle of the volume, so the mirrored
    block contains the left breast and both breasts have the same scale. The block extends to the
    middle. The result is None if only one breast is imaged, or if no breast can be distinguished
    from the chest in phase 0.
    """
    grid = case.grid
    if not shows_both(grid):
        return None
    frame = grid.display_frame("axial")
    spacing = frame.per_axis(grid.spacing_mm)
    shown = frame.to_display(case.signal[0])
    factors = pool_factors(spacing, _GRID_MM)
    coarse = [mm * factor for mm, factor in zip(spacing, factors, strict=True)]
    region = find_breast(pooled(shown, factors), (coarse[0], coarse[1], coarse[2]))
    breast = region.breast & region.stands_out[:, None, :]
    if region.notes or not breast.any():
        return None
    folded = breast | breast[:, :, ::-1]
    half = folded[:, :, : (folded.shape[2] + 1) // 2]
    spans = [_find_span(half, axis, _SPECKS) for axis in range(3)]
    spans[1] = (
        _find_span(half, 1, 0.0)[0],
        spans[1][1],
    )  # This includes the nipple, even if it has few voxels.
    spans[2] = (spans[2][0], half.shape[2])
    ends = []
    for axis, (first, stop) in enumerate(spans):
        margin = round(_MARGIN_MM / spacing[axis])
        low = max(first * factors[axis] - margin, 0)
        high = min(stop * factors[axis] + margin, shown.shape[axis])
        ends.append((low, high if axis < 2 else (shown.shape[axis] + 1) // 2))
    corners = [
        frame.point_from_display([low for low, _ in ends], grid.shape),
        frame.point_from_display([high - 1 for _, high in ends], grid.shape),
    ]
    z, y, x = (sorted(round(place) for place in pair) for pair in zip(*corners, strict=True))
    return Box((z[0], y[0], x[0]), (z[1] + 1, y[1] + 1, x[1] + 1))


def _find_span(voxels: NDArray[np.bool_], axis: int, outside: float) -> tuple[int, int]:
    """Return start and stop index on an axis, ignoring a fraction of the voxels at each end."""
    others = tuple(other for other in range(3) if other != axis)
    share = np.cumsum(voxels.sum(axis=others)) / max(int(voxels.sum()), 1)
    first = int(np.searchsorted(share, outside, side="right"))
    last = int(np.searchsorted(share, 1 - outside, side="left"))
    return first, last + 1
