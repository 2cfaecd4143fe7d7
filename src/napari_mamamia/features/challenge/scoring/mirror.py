"""Mirror a tumour to the other breast in a slice: the valley between two peaks of the profile.

Source: mama-research/mama-synth, commit 7cd36547, ``mirror_utils.py`` (behaviour, no code). Its
background threshold is below the intensity of air, so all pixels count as tissue in practice.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

_BACKGROUND: Final = -1.5
_SMOOTHING: Final = 20
_LOWEST_PEAK: Final = 0.1
_PEAKS_APART: Final = 0.1
_PROMINENCE: Final = 0.05
_CENTRAL: Final = (0.3, 0.7)
_TISSUE_PERCENTILE: Final = 10
_TISSUE_SHARE: Final = 0.3


def mirror_mask(image: NDArray[np.float64], mask: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """Return the mask mirrored along the columns, or else along the rows; None if neither works.

    Parameters
    ----------
    image
        The slice (rows, columns), as z-scores.
    mask
        The tumour, of the same shape.
    """
    tissue = image[image > _BACKGROUND]
    least = np.percentile(tissue, _TISSUE_PERCENTILE) if tissue.size else _BACKGROUND
    for picture, tumour, is_turned in ((image, mask, False), (image.T, mask.T, True)):
        middle = find_midline(picture)
        if middle is None:
            continue
        rows, columns = np.nonzero(tumour)
        mirrored = 2 * middle - columns
        inside = (mirrored >= 0) & (mirrored < picture.shape[1])
        other = np.zeros_like(tumour)
        other[rows[inside], mirrored[inside]] = True
        if other.any() and (picture[other] >= least).mean() >= _TISSUE_SHARE:
            return other.T if is_turned else other
    return None


def find_midline(image: NDArray[np.float64]) -> int | None:
    """Return the column between the breasts, or None if no valley separates two peaks."""
    profile = _smooth_profile(image)
    if np.isnan(profile).all():
        return None
    ends = _find_peaks(profile)
    if ends is None:
        return None
    low, high = sorted(ends)
    between = profile[low : high + 1]
    if np.nanmin(between) >= np.nanmean(profile) * (1 - _PROMINENCE):
        return None
    floor, mean = np.nanmin(between), np.nanmean(between)
    valley = np.flatnonzero(np.where(np.isnan(between), floor, between) <= (floor + mean) / 2)
    middle = low + int(np.median(valley))
    first, last = (low + int(share * (high - low)) for share in _CENTRAL)
    return middle if first <= middle <= last else (low + high) // 2


def _smooth_profile(image: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the smoothed mean of the tissue in each column, nan where there is no tissue."""
    is_tissue = image > _BACKGROUND
    count = is_tissue.sum(axis=0)
    total = np.where(is_tissue, image, 0.0).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(count > 0, total / count, np.nan)
        kernel = np.ones(width := max(3, means.size // _SMOOTHING)) / width
        sums = np.convolve(np.nan_to_num(means), kernel, mode="same")
        shares = np.convolve((~np.isnan(means)).astype(np.float64), kernel, mode="same")
        smooth: NDArray[np.float64] = np.where(shares > 0, sums / shares, np.nan)
    return smooth


def _find_peaks(profile: NDArray[np.float64]) -> tuple[int, int] | None:
    """Return the highest peak near each end of the profile, else in each half."""
    n = profile.size
    outer, apart = max(1, n // 4), max(3, int(n * _PEAKS_APART))
    heights = np.nan_to_num(profile, nan=-np.inf)
    peaks: list[int] = []
    for index in range(1, n - 1):
        height = heights[index]
        is_peak = height >= heights[index - 1] and height >= heights[index + 1]
        if not is_peak or not height >= np.nanmean(profile) * _LOWEST_PEAK:
            continue
        if peaks and index - peaks[-1] < apart:
            if height > heights[peaks[-1]]:
                peaks[-1] = index
        else:
            peaks.append(index)
    ends: list[int] = []
    for zone, half in (((0, outer), (0, n // 2)), ((n - outer, n), (n // 2, n))):
        near = [p for p in peaks if zone[0] <= p < zone[1]]
        near = near or [p for p in peaks if half[0] <= p < half[1]]
        part = profile[slice(*zone)]
        if not near and np.isnan(part).all():
            return None
        near = near or [zone[0] + int(np.nanargmax(part))]
        ends.append(max(near, key=lambda p: float(heights[p])))
    return ends[0], ends[1]
