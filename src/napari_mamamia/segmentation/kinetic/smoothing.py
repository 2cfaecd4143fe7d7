"""Gaussian smoothing in mm, and the noise that remains after it."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

_TRUNCATE: Final = 3.0
_TO_SD: Final = 1.4826  # standard deviation per median absolute deviation of a normal distribution
_STATISTICS_VOXELS: Final = 1_000_000


def smoothed(
    volume: NDArray[np.float32], sigma_mm: float, spacing_mm: Sequence[float]
) -> NDArray[np.float32]:
    """Return `volume` smoothed by a Gaussian of `sigma_mm` along each sufficiently fine axis.

    Axes of a single voxel, and those with a spacing above three sigma, are skipped, because all
    weights except the central one vanish. Values beyond the edge repeat the last value.
    """
    for axis, sigma in _select_axes(volume.shape, sigma_mm, spacing_mm):
        volume = ndimage.gaussian_filter1d(
            volume, sigma, axis=axis, mode="nearest", truncate=_TRUNCATE
        )
    return volume


def noise_left(
    volume: NDArray[np.float32],
    where: NDArray[np.bool_],
    sigma_mm: float,
    spacing_mm: Sequence[float],
) -> float:
    """Return the standard deviation of the noise of `volume` that remains after `smoothed`.

    The noise is estimated from the median absolute difference of neighbours along the axis with the
    finest spacing, over the voxels `where`, which separates it from anatomy; it is assumed to be
    white. 0 without neighbours.
    """
    axis = min(range(3), key=lambda a: (spacing_mm[a] if volume.shape[a] > 1 else np.inf, a))
    ahead, behind = np.moveaxis(volume, axis, 0)[1:], np.moveaxis(volume, axis, 0)[:-1]
    both = np.moveaxis(where, axis, 0)[1:] & np.moveaxis(where, axis, 0)[:-1]
    steps = ahead[both] - behind[both]
    if steps.size == 0:
        return 0.0
    steps = steps[:: steps.size // _STATISTICS_VOXELS + 1]
    noise = _TO_SD * float(np.median(np.abs(steps))) / 2**0.5
    for _, sigma in _select_axes(volume.shape, sigma_mm, spacing_mm):
        reach = int(_TRUNCATE * sigma + 0.5)
        weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
        noise *= float(np.sqrt(np.sum(weights**2)) / np.sum(weights))
    return noise


def _select_axes(
    shape: Sequence[int], sigma_mm: float, spacing_mm: Sequence[float]
) -> list[tuple[int, float]]:
    return [
        (axis, sigma_mm / step)
        for axis, step in enumerate(spacing_mm)
        if sigma_mm * _TRUNCATE >= step and shape[axis] > 1
    ]
