"""Signals of a region that no number can come from: named by voxel and phase, never averaged."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import CaseError

_MOST_TIMES_MEDIAN: Final = 1e5
"""16 bits span 65,535: a signal further above the region's median is no picture's. Ours."""


def unmeasured_voxels(signal: NDArray[Any], mask: NDArray[np.bool_], region: str) -> str:
    """Return how many voxels of a region are not finite, and where the first is; "" for none.

    They are left out of every mean (`region_curve`).

    Parameters
    ----------
    signal
        ``(phase, z, y, x)``; whole numbers are always sound.
    mask
        bool ``(z, y, x)``; what lies outside does not count.
    region
        In words, such as "the mask of A_1".

    Raises
    ------
    CaseError
        If no voxel is finite in every phase, or one lies above 100,000 times the region's median.
    """
    if signal.dtype.kind != "f" or not mask.any():
        return ""
    values = signal[:, mask]
    unknown = ~np.isfinite(values)
    sizes = np.abs(np.where(unknown, 0, values))
    limit = _MOST_TIMES_MEDIAN * float(np.median(sizes))
    absurd = (sizes > limit) & (limit > 0)
    if absurd.any() or unknown.any(axis=0).all():
        what = (
            f"beyond {_MOST_TIMES_MEDIAN:,.0f} times the median" if absurd.any() else "not finite"
        )
        raise CaseError(
            f"expected a measured signal in every voxel of {region}, got "
            f"{_describe_voxels(absurd if absurd.any() else unknown, values, mask, what)}: export "
            "that phase "
            "again, or draw the mask without them"
        )
    if not unknown.any():
        return ""
    return f"{_describe_voxels(unknown, values, mask, 'not finite')} in {region}: left out"


def _describe_voxels(
    odd: NDArray[np.bool_], values: NDArray[Any], mask: NDArray[np.bool_], what: str
) -> str:
    phase, place = np.argwhere(odd)[0]
    voxel = ", ".join(str(index) for index in np.argwhere(mask)[place])
    return (
        f"{np.count_nonzero(odd.any(axis=0))} voxel(s) {what}, the first in phase {phase} at "
        f"(z, y, x) {voxel} ({values[phase, place]:g})"
    )
