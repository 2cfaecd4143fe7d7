"""Averages of voxel blocks, which give coarse grids for a fast search."""

from collections.abc import Sequence
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.progress import report_progress

_CHUNK_VOXELS: Final = 1 << 21

Factors = tuple[int, int, int]


def pool_factors(spacing_mm: Sequence[float], coarsest_mm: float) -> Factors:
    """Return how many voxels to average along each axis so that none exceeds `coarsest_mm`.

    Examples
    --------
    >>> pool_factors((2.0, 0.76, 0.76), 1.6)
    (1, 2, 2)
    """
    a, b, c = (max(int(coarsest_mm / s), 1) for s in spacing_mm)
    return (a, b, c)


def pooled_job(volume: NDArray[Any], factors: Factors, text: str) -> NDArray[np.float32]:
    """Average blocks of `factors` voxels; progress counts the first axis.

    Parameters
    ----------
    volume
        ``(a, b, c)``, any real type and memory order. Values that are not finite count as 0.
    factors
        Block size; blocks start at index 0, incomplete blocks at the far end average the voxels
        that exist.
    text
        Text of the progress.

    Returns
    -------
    numpy.ndarray
        float32, contiguous, of shape ``ceil(volume.shape / factors)``.
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
    """Return the result of `pooled_job` without progress reports."""
    if np.issubdtype(volume.dtype, np.floating):
        volume = np.where(np.isfinite(volume), volume, 0)
    first = volume[tuple(slice(None, None, f) for f in factors)]
    total = np.zeros_like(first, dtype=np.float32)  # keeps the memory order of `volume`
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
