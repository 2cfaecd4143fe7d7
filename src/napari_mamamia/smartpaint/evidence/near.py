"""What lies near a mask: the answer that a distance transform gives, in a tenth of its time."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

_GAP: Final = 1e-9  # of a squared distance; what lies closer to the limit may round either way
_VOXELS_A_SHIFT: Final = 50  # a shift of rows takes as long as the distances of so many voxels

Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]


def find_near(mask: Bools, spacing_mm: Sequence[float], reach_mm: float) -> Bools:
    """Return ``distance_transform_edt(~mask, spacing_mm) <= reach_mm``, the same bits.

    A distance transform finds the nearest voxel for each voxel. Here rows of the mask are widened,
    packed eight voxels to a byte, and laid over each other at each offset of planes and rows.

    Parameters
    ----------
    mask
        bool ``(z, y, x)``.
    reach_mm
        0 or more.
    """
    widths = _measure_rows(mask.shape, spacing_mm, reach_mm)
    n_shifts = 0 if widths is None else int(np.count_nonzero(widths >= 0))
    if widths is None or n_shifts * _VOXELS_A_SHIFT > mask.size or not mask.any():
        near: Bools = distance_transform_edt(~mask, spacing_mm) <= reach_mm
        return near
    rows = _widen_rows(mask, int(widths.max()))
    out = np.zeros_like(rows[0])
    for off_z, of_plane in enumerate(widths):
        plane = np.zeros_like(out)
        for off_y, width in enumerate(of_plane[of_plane >= 0]):
            _lay_over(plane, rows[width], 1, off_y)
        _lay_over(out, plane, 0, off_z)
    return np.unpackbits(out, axis=2, count=mask.shape[2]).view(np.bool_)


def _measure_rows(
    shape: Sequence[int], spacing_mm: Sequence[float], reach_mm: float
) -> NDArray[np.intp] | None:
    """Return how many voxels along x lie within reach at each offset of planes and rows.

    ``(planes, rows)``, -1 where none does. None where an offset lies so near the limit that the
    transform may say either.
    """
    counts = [
        min(int(reach_mm / step) + 1, n - 1) + 1 for n, step in zip(shape, spacing_mm, strict=True)
    ]
    deep, rows, columns = ((np.arange(n) * s) ** 2 for n, s in zip(counts, spacing_mm, strict=True))
    # In the order of the transform's sum.
    squares = (deep[:, np.newaxis, np.newaxis] + rows[:, np.newaxis]) + columns
    within = np.sqrt(squares) <= reach_mm
    most = float(squares[within].max())
    if not within.all() and float(squares[~within].min()) - most <= _GAP * most:
        return None
    widths: NDArray[np.intp] = np.count_nonzero(within, axis=2) - 1
    return widths


def _widen_rows(mask: Bools, most: int) -> list[Bytes]:
    """Return a mask widened by 0, 1, ... `most` voxels along its rows, packed along them."""
    wide, packed = mask, [np.packbits(mask, axis=2)]
    for _ in range(most):
        before, wide = wide, wide.copy()
        wide[:, :, 1:] |= before[:, :, :-1]
        wide[:, :, :-1] |= before[:, :, 1:]
        packed.append(np.packbits(wide, axis=2))
    return packed


def _lay_over(out: Bytes, part: Bytes, axis: int, offset: int) -> None:
    """Add `part` to `out`, moved by `offset` along an axis, either way."""
    if not offset:
        out |= part
        return
    out, part = out.swapaxes(0, axis), part.swapaxes(0, axis)
    out[offset:] |= part[:-offset]
    out[:-offset] |= part[offset:]
