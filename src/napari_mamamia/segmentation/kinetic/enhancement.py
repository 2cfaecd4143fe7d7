"""Smoothed maps of signal rise and enhancement, and the noise that remains in them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.box import Box
from napari_mamamia.core.progress import part, report_progress

_CHUNK_VOXELS: Final = 1 << 21

Factors = tuple[int, int, int]
_TRUNCATE: Final = 3.0
_TO_SD: Final = 1.4826  # standard deviation per median absolute deviation of a normal distribution
_STATISTICS_VOXELS: Final = 1_000_000
Voxel = tuple[int, int, int]
_SIGNAL_FLOOR: Final = 0.02  # share of the 99th percentile of phase 0; below it PE has no meaning


def pool_factors(spacing_mm: Sequence[float], coarsest_mm: float) -> Factors:
    """Return the number of voxels to average along each axis for a spacing up to `coarsest_mm`.

    Examples
    --------
    >>> pool_factors((2.0, 0.76, 0.76), 1.6)
    (1, 2, 2)
    """
    a, b, c = (max(int(coarsest_mm / s), 1) for s in spacing_mm)
    return (a, b, c)


def pooled_job(volume: NDArray[Any], factors: Factors, text: str) -> NDArray[np.float32]:
    """Average blocks of `factors` voxels; progress is reported in planes along the first axis.

    Parameters
    ----------
    volume
        An array ``(a, b, c)`` of any real data type and memory order. Values that are not finite
        count as 0.
    factors
        The block size. Blocks start at index 0; incomplete blocks at the far end average the
        existing voxels.
    text
        The text of the progress reports.

    Returns
    -------
    numpy.ndarray
        A contiguous float32 array of shape ``ceil(volume.shape / factors)``.
    """
    n = volume.shape[0]
    step = max(_CHUNK_VOXELS // max(volume[0].size, 1) // factors[0], 1) * factors[0]
    parts = []
    report_progress(0, n, text)
    for start in range(0, n, step):
        parts.append(pooled(volume[start : start + step], factors))
        report_progress(min(start + step, n), n, text)
    return np.concatenate(parts)


def pooled(volume: NDArray[Any], factors: Factors) -> NDArray[np.float32]:
    """Average blocks of voxels as `pooled_job` does, without progress reports."""
    if np.issubdtype(volume.dtype, np.floating):
        volume = np.where(np.isfinite(volume), volume, 0)
    first = volume[tuple(slice(None, None, f) for f in factors)]
    total = np.zeros_like(first, dtype=np.float32)  # This keeps the memory order of `volume`.
    for offset in product(*(range(f) for f in factors)):
        part = volume[tuple(slice(o, None, f) for o, f in zip(offset, factors, strict=True))]
        total[tuple(slice(0, n) for n in part.shape)] += part
    for axis, (size, factor) in enumerate(zip(volume.shape, factors, strict=True)):
        count = np.minimum(size - np.arange(0, size, factor), factor).astype(np.float32)
        total /= np.expand_dims(count, tuple(a for a in range(3) if a != axis))
    return np.ascontiguousarray(total)


def spread(coarse: NDArray[Any], factors: Factors, shape: Sequence[int]) -> NDArray[Any]:
    """Return `coarse` with every voxel repeated `factors` times, cropped to `shape`."""
    for axis, factor in enumerate(factors):
        if factor > 1:
            coarse = np.repeat(coarse, factor, axis=axis)
    return coarse[tuple(slice(0, n) for n in shape)]


def smoothed(
    volume: NDArray[np.float32], sigma_mm: float, spacing_mm: Sequence[float]
) -> NDArray[np.float32]:
    """Return `volume` smoothed by a Gaussian of `sigma_mm` along each sufficiently fine axis.

    Axes with a single voxel or a spacing above three sigma are skipped, because all weights except
    the central weight are negligible. Values beyond the edge repeat the last value.
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
    """Return the standard deviation of the noise that remains in `volume` after `smoothed`.

    The noise, which is assumed to be white, is estimated from the median absolute difference of
    neighbours along the axis with the finest spacing, over the voxels `where`. This separates noise
    from anatomy. Without neighbours, the result is 0.
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


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """The three phases used for segmentation (0, early, late or None), with their spacing.

    The arrays are views of the case as ``(superior, posterior, left)``, in its own data type.
    `bright` is the 99th percentile of phase 0, the reference for darkness.
    """

    pre: NDArray[Any]
    early: NDArray[Any]
    late: NDArray[Any] | None
    spacing_mm: tuple[float, float, float]
    bright: float = 0.0

    @property
    def shape(self) -> Voxel:
        """Number of voxels along (superior, posterior, left)."""
        a, b, c = self.pre.shape
        return (a, b, c)

    def cut(self, box: Box) -> Self:
        """Return the part of the scan inside `box` as views."""
        late = None if self.late is None else self.late[box.slices]
        return replace(self, pre=self.pre[box.slices], early=self.early[box.slices], late=late)


def times(index: Sequence[float], factors: Sequence[int]) -> Voxel:
    """Return an index on a grid pooled by `factors` as an index on the original grid."""
    a, b, c = (int(i * f) for i, f in zip(index, factors, strict=True))
    return (a, b, c)


def moved(box: Box, by: Sequence[int]) -> Box:
    """Return `box` shifted by `by`."""
    (a, b, c), (d, e, f), (i, j, k) = box.start, box.stop, by
    return Box((a + i, b + j, c + k), (d + i, e + j, f + k))


Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Enhancement:
    """Smoothed maps of one region, all float32 and of the same shape.

    `pre` is phase 0, `rise` is the early phase minus phase 0, and `late_rise` is the late phase
    minus phase 0 (or None), all in units of the signal. `percent` is the early PE, or 0 if phase 0
    is too dark. `noise` is the standard deviation of `rise` due to noise alone, or 0 if it was not
    measured.
    """

    pre: Floats
    rise: Floats
    percent: Floats
    late_rise: Floats | None
    noise: float = 0.0


def enhancement_of(pre: Floats, early: Floats, late: Floats | None, bright: float) -> Enhancement:
    """Return the maps computed from smoothed phases.

    PE is 0 if phase 0 is below 2 % of `bright` (its 99th percentile), because noise divided by a
    value near 0 is meaningless.
    """
    rise = early - pre
    percent = np.zeros_like(rise)
    np.divide(rise, pre, out=percent, where=pre > max(_SIGNAL_FLOOR * bright, 0.0))
    percent *= np.float32(100.0)
    return Enhancement(pre, rise, percent, None if late is None else late - pre)


def enhancement_job(
    scan: Scan, factors: Factors, given: tuple[Floats, Floats], where: Bools, sigma_mm: float
) -> Enhancement:
    """Return the maps of a scan on a grid pooled by `factors`.

    Parameters
    ----------
    scan
        The phases, of which only the late phase is read.
    factors
        The number of voxels to average along each axis.
    given
        Phase 0 and the early phase after pooling.
    where
        The voxels over which the noise is measured.
    sigma_mm
        The standard deviation of the Gaussian in mm.
    """
    a, b, c = (s * f for s, f in zip(scan.spacing_mm, factors, strict=True))
    phases: list[Floats] = list(given)
    if scan.late is not None:
        with part(0, 50, 100):
            phases.append(pooled_job(scan.late, factors, "Reading the late phase"))
    noise = noise_left(given[1] - given[0], where, sigma_mm, (a, b, c))
    for n, phase in enumerate(phases):
        report_progress(50 + 15 * n, 100, "Comparing phases")
        phases[n] = smoothed(phase, sigma_mm, (a, b, c))
    report_progress(95, 100, "Comparing phases")
    late: Any = phases[2] if len(phases) > 2 else None
    maps = enhancement_of(phases[0], phases[1], late, scan.bright)
    report_progress(100, 100, "Comparing phases")
    return Enhancement(maps.pre, maps.rise, maps.percent, maps.late_rise, noise)
