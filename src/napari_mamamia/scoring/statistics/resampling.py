"""Resamples of cases as weights: how often each case counts."""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

N_RESAMPLES: Final = 1000
SEED: Final = 42
"""Number of resamples and seed. Source: arXiv 2603.01250v2, intervals."""

_BLOCK: Final = 1 << 17
"""Weights held at a time (1 MB, near the core); memory does not grow with the resamples."""


def resample_weights(
    n_cases: int, n_resamples: int = N_RESAMPLES, seed: int = SEED
) -> Iterator[NDArray[np.float64]]:
    """Yield how often each resample holds each case, in blocks of rows (b, n) float64.

    Resample k is row k of `numpy.random.default_rng(seed).integers(0, n, (n_resamples, n))`.
    """
    rng = np.random.default_rng(seed)
    for n_rows in row_blocks(n_resamples, n_cases):
        drawn = rng.integers(0, n_cases, size=(n_rows, n_cases))
        drawn += np.arange(n_rows)[:, None] * n_cases
        counts = np.bincount(drawn.ravel(), minlength=n_rows * n_cases)
        yield counts.reshape(n_rows, n_cases).astype(np.float64)


def leave_one_out_weights(n_cases: int) -> Iterator[NDArray[np.float64]]:
    """Yield weights of 1 with 0 for one case after the other, in blocks of rows (b, n)."""
    first = 0
    for n_rows in row_blocks(n_cases, n_cases):
        weights = np.ones((n_rows, n_cases))
        weights[np.arange(n_rows), first + np.arange(n_rows)] = 0
        first += n_rows
        yield weights


def row_blocks(n_rows: int, row_length: int) -> Iterator[int]:
    """Yield numbers of rows that sum to `n_rows`, each small enough for memory."""
    step = max(1, _BLOCK // max(1, row_length))
    for first in range(0, n_rows, step):
        yield min(step, n_rows - first)
