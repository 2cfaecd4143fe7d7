"""Refusing a region whose signals no number can come from, by voxel and phase."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import CaseError

__all__ = ["require_sound_signal"]

_MOST_TIMES_MEDIAN: Final = 1e5
"""16 bits span 65,535: a signal further above the region's median is no picture's. Ours."""


def require_sound_signal(signal: NDArray[Any], mask: NDArray[np.bool_], region: str) -> None:
    """Refuse signals that are not finite, or beyond all measure.

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
        If a voxel is NaN, infinite, or above 100,000 times the region's median; it names the first.
    """
    if signal.dtype.kind != "f" or not mask.any():
        return
    values = np.stack([volume[mask] for volume in signal])
    odd = ~np.isfinite(values)
    what = "not finite"
    if not odd.any():
        limit = _MOST_TIMES_MEDIAN * float(np.median(np.abs(values)))
        odd = np.abs(values) > limit if limit > 0 else odd
        what = f"beyond {_MOST_TIMES_MEDIAN:,.0f} times the median"
    if odd.any():
        phase, place = np.argwhere(odd)[0]
        voxel = ", ".join(str(index) for index in np.argwhere(mask)[place])
        raise CaseError(
            f"expected a measured signal in every voxel of {region}, got "
            f"{np.count_nonzero(odd.any(axis=0))} voxel(s) {what}, the first in phase {phase} at "
            f"(z, y, x) {voxel}: {values[phase, place]:g}; export that phase again, or draw the "
            "mask without them"
        )
