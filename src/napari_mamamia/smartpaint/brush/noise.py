"""Noise of an image, measured from the differences between voxels that are three voxels apart."""

from dataclasses import dataclass
from math import sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_LAG: Final = 3  # voxels: in interpolated images neighbours share their noise; A4
_MAD_TO_SIGMA: Final = 1.4826  # for a normal distribution
_SAMPLES: Final = 100_000  # pairs along each axis; the estimate is then accurate to 0.5 %
_BINS: Final = 256  # of the histogram that separates tissue from air
_FEWEST: Final = 100  # pairs of tissue
_LEAST_SHARE: Final = 1e-3  # of the range; our choice
_ROUNDING: Final = sqrt(1 / 12)  # standard deviation of rounding to whole numbers

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Noise:
    """The standard deviation of an image's noise in the signal's unit, which is above 0.

    `found` is False if the noise could not be measured, so that a substitute value is used.
    """

    sigma: float
    found: bool


def noise_of(
    plus: NDArray[Any], minus: NDArray[Any] | None, spacing_mm: tuple[float, float, float]
) -> Noise:
    """Return the noise of a volume `plus` (z, y, x), or of `plus` minus `minus`.

    Noise is ``1.4826 median(|difference - its median|) / sqrt(2)`` over pairs of voxels three
    apart, along the two axes of finest spacing. Only pairs whose mean is brighter than Otsu's
    threshold count, because air has less noise than tissue, or no noise if the scanner has masked
    it. Selecting by the mean does not bias the difference. At most about 100,000 pairs along each
    axis are used, evenly spread.

    The smallest possible result is a thousandth of the range and, for whole numbers, the noise of
    rounding, ``sqrt(1 / 12)``. The result is 1 for a uniform image.

    Source: docs/methods/previous_brush.md (lag and estimator); Otsu 1979, IEEE Trans. SMC 9,
    equation 18 (threshold). Using that threshold here is our choice.
    """
    pairs = [_sample_pairs(plus, minus, axis) for axis in _in_plane(spacing_mm, plus.shape)]
    bright, difference = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    if not len(bright):
        return Noise(1.0, found=False)
    low, high = (float(edge) for edge in np.percentile(bright, (0.5, 99.5)))
    tissue = difference[bright > _find_otsu_level(bright, low, high)]
    chosen = tissue if len(tissue) >= _FEWEST else difference
    spread = np.median(np.abs(chosen - np.median(chosen)))
    sigma = float(_MAD_TO_SIGMA * spread / sqrt(2))
    whole = np.issubdtype(plus.dtype, np.integer)
    least = max(_LEAST_SHARE * (high - low), _ROUNDING if whole else 0.0)
    return Noise(max(sigma, least) or 1.0, found=sigma > 0)


def _find_otsu_level(values: Floats, low: float, high: float) -> float:
    """Return Otsu's threshold, which maximises the variance between the two classes of `values`."""
    if not high > low:
        return low
    counts, edges = np.histogram(values, _BINS, (low, high))
    if not counts.any():  # a few values, all beyond the percentiles
        return low
    below = np.cumsum(counts) / counts.sum()
    means = np.cumsum(counts * (edges[:-1] + edges[1:]) / 2) / counts.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        between = (means[-1] * below - means) ** 2 / (below * (1 - below))
    return float(edges[1 + int(np.nanargmax(between[:-1]))])


def _in_plane(spacing_mm: tuple[float, float, float], shape: tuple[int, ...]) -> list[int]:
    """Return the two axes with the finest spacing; of equal axes, the later ones (within a slice).

    An axis with a single voxel has no pairs, so it comes last.
    """
    return sorted(range(3), key=lambda axis: (shape[axis] == 1, spacing_mm[axis], -axis))[:2]


def _sample_pairs(
    plus: NDArray[Any], minus: NDArray[Any] | None, axis: int
) -> tuple[Floats, Floats]:
    lag = min(_LAG, plus.shape[axis] - 1)
    here, there = _make_lattice(plus.shape, axis, 0, lag), _make_lattice(plus.shape, axis, lag, lag)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        first, second = plus[here].astype(np.float32), plus[there].astype(np.float32)
        brightness = (first + second) / 2
        if minus is not None:
            first -= minus[here]
            second -= minus[there]
        difference = second - first
    usable = (lag > 0) & np.isfinite(difference) & np.isfinite(brightness)
    return brightness[usable], difference[usable]


def _make_lattice(shape: tuple[int, ...], axis: int, offset: int, lag: int) -> tuple[slice, ...]:
    """Return slices that select about `_SAMPLES` evenly spread voxels, at least `lag` from the end.

    The voxels selected with `offset` are the partners of those selected with an offset of 0.
    """
    extents = [n - lag if k == axis else n for k, n in enumerate(shape)]
    step = max(np.prod(extents, dtype=float) / _SAMPLES, 1.0) ** (1 / 3)
    # A thin stack keeps eight positions along its short axis too.
    steps = [max(min(int(np.ceil(step)), n // 8), 1) for n in extents]
    return tuple(
        slice(offset * (k == axis), n + offset * (k == axis), s)
        for k, (n, s) in enumerate(zip(extents, steps, strict=True))
    )
