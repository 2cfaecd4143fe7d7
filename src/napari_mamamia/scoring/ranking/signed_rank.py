"""One-sided Wilcoxon signed-rank test for all ordered pairs and many resamples at once."""

from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from napari_mamamia.core.progress import report_progress
from napari_mamamia.scoring.ranking.table import Merits, comparable

_PLACES: Final = 1 << 17
"""Number of elements per step, chosen so that a step fits into the CPU cache."""

_COLUMNS: Final = 16
"""Smallest number of resamples per step; fewer would cause strided reads."""


def better_p_values(merits: Merits, weights: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the p-values (b, m, m) of "row better than column" in each resample.

    `weights` (b, n) are the numbers of times that each case counts, where each copy is a separate
    case. Differences of 0 are dropped, and ties share mean ranks. The normal approximation has
    corrections for ties and continuity, as in R's wilcox.test(paired=TRUE, exact=FALSE). Without
    any difference, p is 1; the diagonal is nan. A value of -inf, which by definition is worse than
    all other values, gives the largest difference.

    Parameters
    ----------
    merits
        The table prepared for ranking.
    weights
        Number of times that each case counts, (b, n).
    """
    values, n_draws = merits.values, len(weights)
    m = values.shape[1]
    p_values = np.full((n_draws, m, m), np.nan)
    columns = np.ascontiguousarray(weights.T, dtype=np.float64)
    step = max(_COLUMNS, _PLACES // len(values))
    for i in range(m):
        report_progress(i, m, "Testing pairs of algorithms")
        for j in range(i + 1, m):
            apart = _subtract_values(values[:, i], values[:, j], merits.is_exact)
            for first in range(0, n_draws, step):
                rows = slice(first, first + step)
                p_values[rows, i, j], p_values[rows, j, i] = _test_pair(apart, columns[:, rows])
    return p_values


def _subtract_values(
    a: NDArray[np.float64], b: NDArray[np.float64], is_exact: bool
) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore"):
        apart = np.where(a == b, 0.0, a - b)
    return comparable(apart, is_exact)


def _test_pair(
    apart: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    size = np.abs(apart)
    order = np.argsort(size, kind="stable")
    order = order[np.count_nonzero(size == 0) :]
    ones = np.ones(weights.shape[1])
    if not order.size:
        return ones, ones
    in_order, is_positive = weights[order], apart[order] > 0
    size = size[order]  # Only for these values, because two infinite values are equal.
    starts = np.flatnonzero(np.concatenate([[True], size[1:] != size[:-1]]))
    positive = np.where(is_positive[:, None], in_order, 0.0)
    if starts.size < order.size:
        in_order = np.add.reduceat(in_order, starts, axis=0)
        positive = np.add.reduceat(positive, starts, axis=0)
    ends = np.cumsum(in_order, axis=0)
    n = ends[-1]
    ranks = ends - (in_order - 1) / 2
    of_positive = np.einsum("gb,gb->b", positive, ranks)
    ties = np.einsum("gb,gb,gb->b", in_order, in_order, in_order) - n
    variance = n * (n + 1) * (2 * n + 1) / 24 - ties / 48
    mean = n * (n + 1) / 4
    scale = np.sqrt(np.where(variance > 0, variance, 1.0))
    both = [
        np.where(n > 0, ndtr(-(total - mean - 0.5) / scale), 1.0)
        for total in (of_positive, 2 * mean - of_positive)
    ]
    return both[0], both[1]


def significant_wins(
    p_values: NDArray[np.float64], alpha: float, is_holm: bool
) -> NDArray[np.float64]:
    """Return the fraction of other algorithms that each algorithm beats significantly, (b, m).

    `p_values` is the result of `better_p_values`. Holm's correction covers all ordered pairs of a
    resample.

    Parameters
    ----------
    p_values
        P-values (b, m, m) of `better_p_values`.
    alpha
        Significance level.
    is_holm
        Whether to correct by Holm.
    """
    n_draws, m, _ = p_values.shape
    if m < 2:
        return np.zeros((n_draws, m))
    flat = np.where(np.isnan(p_values), np.inf, p_values).reshape(n_draws, -1)
    highest = np.full(n_draws, alpha)
    if is_holm:
        n_tests = m * (m - 1)
        in_order = np.sort(flat, axis=1)[:, :n_tests]
        passes = in_order <= alpha / np.arange(n_tests, 0, -1)
        n_passed = np.where(passes.all(axis=1), n_tests, np.argmin(passes, axis=1))
        rows = np.arange(n_draws)
        highest = np.where(n_passed > 0, in_order[rows, n_passed - 1], -1.0)
    wins = flat <= highest[:, None]
    shares: NDArray[np.float64] = wins.reshape(p_values.shape).sum(axis=2) / (m - 1)
    return shares
