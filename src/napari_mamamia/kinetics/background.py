"""Background enhancement of the brighter tissue in the contralateral breast (experimental).

The gland is not segmented. The value approximates background parenchymal enhancement (BPE) only if
fat is suppressed, because gland is then the bright tissue before contrast.
"""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.box import Box
from napari_mamamia.kinetics.map_blocks import percent_enhancement

_LEAST_VOXELS: Final = 200  # our choice; fewer voxels give no stable mean
_LEVELS: Final = 256


@dataclass(frozen=True, slots=True)
class BackgroundEnhancement:
    """Mean and median early PE in percent over `n_voxels`, or NaN with a `reason`."""

    mean_percent: float
    median_percent: float
    n_voxels: int
    reason: str = ""

    @classmethod
    def unknown(cls, reason: str) -> "BackgroundEnhancement":
        """Return an undefined result with the reason."""
        return cls(math.nan, math.nan, 0, reason)


def background_enhancement(
    signal: NDArray[Any], breast: NDArray[np.bool_], early: int
) -> BackgroundEnhancement:
    """Return the enhancement of the brighter tissue in `breast`.

    A voxel counts as brighter if the mean of its 26 neighbours before contrast is above the
    threshold that best separates these means into two classes (Otsu). The voxel's own signal is not
    used, because noise that makes the voxel bright before contrast would make its enhancement too
    small. Voxels with an undefined PE are ignored.

    Parameters
    ----------
    signal
        The signal ``(phase, z, y, x)`` in any real data type.
    breast
        A boolean array ``(z, y, x)`` of the breast without the lesion.
    early
        The index of the early phase.

    Source: the mean or median PE_early over the gland of the contralateral breast is used in the
    I-SPY 2 work on BPE (PMC7289261). Selecting gland by brightness, without a gland model, is our
    choice.
    """
    box = Box.around(breast)
    inside = breast[box.slices]
    around = _neighbour_mean(signal[0][box.slices])[inside]
    if np.count_nonzero(np.isfinite(around)) < _LEAST_VOXELS:
        return BackgroundEnhancement.unknown("too little of the contralateral breast is in view")
    with np.errstate(invalid="ignore"):
        bright = around > bright_from(around)
    values = percent_enhancement(signal[:, *box.slices][:, inside], early)[bright]
    values = values[np.isfinite(values)]
    if values.size < _LEAST_VOXELS:
        return BackgroundEnhancement.unknown("the contralateral breast has no brighter tissue")
    mean = float(values.mean(dtype=np.float64))
    return BackgroundEnhancement(mean, float(np.median(values)), int(values.size))


def _neighbour_mean(volume: NDArray[Any]) -> NDArray[np.float32]:
    """Return the mean of each voxel's 26 neighbours, without the voxel itself."""
    values = volume.astype(np.float32)
    with np.errstate(invalid="ignore"):
        mean: NDArray[np.float32] = ndimage.uniform_filter(values, 3, mode="nearest")
        mean *= 27
        mean -= values
        mean /= 26
    return mean


def bright_from(values: NDArray[np.float32]) -> float:
    """Return the threshold that best separates the finite `values` into two classes (Otsu).

    The threshold is one of 256 levels and maximises the variance between the classes.

    Source: Otsu 1979 (IEEE Trans. Syst. Man Cybern. 9:62).

    Examples
    --------
    >>> 10 < bright_from(np.array([10, 10, 11, 90, 91], np.float32)) < 90
    True
    """
    counts, edges = np.histogram(values[np.isfinite(values)], bins=_LEVELS)
    middles = (edges[:-1] + edges[1:]) / 2
    below = np.cumsum(counts)
    total = np.cumsum(counts * middles)
    above = below[-1] - below
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = below * above * (total / below - (total[-1] - total) / above) ** 2
    # No value is above the last level, for which the variance is 0/0.
    return float(edges[1 + int(np.nanargmax(apart[:-1]))])


def central_half(mask: NDArray[np.bool_], slice_axis: int) -> NDArray[np.bool_]:
    """Return `mask` restricted to the central half of the slices that contain it.

    Parameters
    ----------
    mask
        A boolean array ``(z, y, x)``.
    slice_axis
        The array axis across the slices.

    Source: the central half of the slices was the best compromise for BPE in I-SPY 2 (PMC7289261).
    """
    others = tuple(axis for axis in range(3) if axis != slice_axis)
    slices = np.flatnonzero(mask.any(axis=others))
    out = np.zeros_like(mask)
    if slices.size:
        first, count = int(slices[0]), int(slices[-1]) - int(slices[0]) + 1
        start = first + count // 4
        index = [slice(None)] * 3
        index[slice_axis] = slice(start, start + max(count - 2 * (count // 4), 1))
        out[tuple(index)] = mask[tuple(index)]
    return out
