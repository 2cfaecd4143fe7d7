"""Find invalid signal values in a region, and report their voxel and phase."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.names import count_of

_MOST_TIMES_MEDIAN: Final = 1e5
"""Largest plausible signal, as a multiple of the median of the region (our choice).

A 16-bit image has values up to 65,535, so no such image exceeds this multiple.
"""


def unmeasured_voxels(signal: NDArray[Any], mask: NDArray[np.bool_], region: str) -> str:
    """Return a sentence about the non-finite voxels in a region, or "" if there are none.

    The sentence states their number and the first of them. They are excluded from every mean
    (`region_curve`).

    Parameters
    ----------
    signal
        The signal ``(phase, z, y, x)``; integers are always valid.
    mask
        A boolean array ``(z, y, x)``; voxels outside it are not checked.
    region
        The name of the region, such as "the mask of A_1".

    Raises
    ------
    CaseError
        If no voxel is finite in every phase, or a voxel exceeds 100,000 times the region's median.
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
            f"expected every voxel of {region} to have a plausible signal, but found "
            f"{_describe_voxels(absurd if absurd.any() else unknown, values, mask, what)}; export "
            "that phase again, or exclude these voxels from the mask"
        )
    if not unknown.any():
        return ""
    return (
        f"{_describe_voxels(unknown, values, mask, 'not finite')} in {region}, which were excluded"
    )


def _describe_voxels(
    odd: NDArray[np.bool_], values: NDArray[Any], mask: NDArray[np.bool_], what: str
) -> str:
    phase, place = np.argwhere(odd)[0]
    voxel = ", ".join(str(index) for index in np.argwhere(mask)[place])
    return (
        f"{count_of(int(odd.any(axis=0).sum()), 'voxel')} {what}, the first in phase "
        f"{phase} at "
        f"(z, y, x) {voxel} ({values[phase, place]:g})"
    )
