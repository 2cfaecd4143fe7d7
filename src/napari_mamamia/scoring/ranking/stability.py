"""The stability of ranks under resampling of the cases."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.scoring.ranking.methods import Weights
from napari_mamamia.scoring.ranking.table import Merits

LEVEL: Final = 0.95
_PLACES: Final = 1 << 22


@dataclass(frozen=True, slots=True)
class TauSummary:
    """Quartiles (type 7) of Kendall's tau-b between resampled and full ranks; nan if undefined.

    `undefined` is the number of resamples in which all ranks are equal, so that tau is undefined.
    """

    median: float
    q25: float
    q75: float
    undefined: int


@dataclass(frozen=True, slots=True, eq=False)
class Stability:
    """The ranks of m algorithms in B resamples, summarised.

    `ranks` (B, m); `tau` (B,), nan where undefined; `low`, `high`, `median` (m,): 2.5, 97.5 and 50
    % quantiles (type 7) of the ranks; `first` (m,): share of resamples in which the algorithm is
    first, also if tied (shares can add to more than 1); `wins` (m, m): share in which the row has a
    better rank than the column, nan on the diagonal.
    """

    ranks: NDArray[np.float64]
    tau: NDArray[np.float64]
    kendall: TauSummary
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    median: NDArray[np.float64]
    first: NDArray[np.float64]
    wins: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class CoveringIntervals:
    """Rank intervals (m, 2) that contain the true rank with at least the level, asymptotically.

    `marginal` for each algorithm by itself, `simultaneous` for all of them at once. Source: M.
    Mogstad, J. P. Romano, A. M. Shaikh, D. Wilhelm, Review of Economic Studies 91 (2024) 476.
    """

    marginal: NDArray[np.float64]
    simultaneous: NDArray[np.float64]


def stability_of(full: NDArray[np.float64], ranks: NDArray[np.float64]) -> Stability:
    """Return the stability of full ranks (m,), given the resampled ranks (B, m).

    Parameters
    ----------
    full
        The full ranks, (m,).
    ranks
        Ranks in each resample, (B, m).
    """
    tau = kendall_tau_b(full, ranks)
    low, median, high = np.quantile(ranks, [(1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2], axis=0)
    is_first = ranks == ranks.min(axis=1, keepdims=True)
    wins = np.stack([(row[:, None] < ranks).mean(axis=0) for row in ranks.T])
    np.fill_diagonal(wins, np.nan)
    return Stability(ranks, tau, summarise_tau(tau), low, high, median, is_first.mean(axis=0), wins)


def summarise_tau(tau: NDArray[np.float64]) -> TauSummary:
    """Return quartiles of the defined values, and the number of undefined ones."""
    defined = tau[~np.isnan(tau)]
    undefined = tau.size - defined.size
    if not defined.size:
        return TauSummary(np.nan, np.nan, np.nan, undefined)
    q25, median, q75 = np.quantile(defined, [0.25, 0.5, 0.75])
    return TauSummary(float(median), float(q25), float(q75), undefined)


def kendall_tau_b(full: NDArray[np.float64], ranks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return tau-b of each row of ranks (B, m) with the full ones (m,); nan where all are equal.

    Parameters
    ----------
    full
        The full ranks, (m,).
    ranks
        Ranks in each resample, (B, m).

    Examples
    --------
    >>> kendall_tau_b(np.array([1.0, 2, 3]), np.array([[1.0, 2, 3], [1, 3, 2], [1, 1, 1]])).tolist()
    [1.0, 0.3333333333333333, nan]
    """
    a, b = np.triu_indices(len(full), 1)
    order = np.sign(full[a] - full[b])
    n_full = np.count_nonzero(order)
    taus = np.full(len(ranks), np.nan)
    step = max(1, _PLACES // max(1, a.size))
    for first in range(0, len(ranks), step):
        rows = slice(first, first + step)
        signs = np.sign(ranks[rows, a] - ranks[rows, b])
        pairs = np.count_nonzero(signs, axis=1).astype(np.float64) * n_full
        np.divide(signs @ order, np.sqrt(pairs), out=taus[rows], where=pairs > 0)
    return taus


class PairMoments:
    """Accumulates, block by block, the statistics for covering rank intervals of means.

    `values` (n, m): larger is better, and their means are ranked.
    """

    def __init__(self, values: NDArray[np.float64]) -> None:
        n = len(values)
        self.values = values
        self.apart = _mean_gaps(values.mean(axis=0))
        self.error = _pair_errors(values, np.ones((1, n), dtype=np.int64))[0]
        self._largest: list[NDArray[np.float64]] = []

    def take(self, weights: Weights) -> None:
        """Add resamples (b, n) and keep the largest studentised distance from the full data."""
        means = weights @ self.values / weights.sum(axis=1, keepdims=True)
        step = max(1, _PLACES // self.values.shape[1] ** 2)
        for first in range(0, len(weights), step):
            rows = slice(first, first + step)
            errors = _pair_errors(self.values, weights[rows])
            off = np.abs(means[rows, :, None] - means[rows, None, :] - self.apart)
            shares = np.zeros_like(off)
            np.divide(off, errors, out=shares, where=errors > 0)
            self._largest.append(shares.max(axis=2))

    def intervals(self, level: float = LEVEL) -> CoveringIntervals:
        """Return the rank intervals, based on which algorithms are significantly better."""
        largest = np.concatenate(self._largest)
        each = np.quantile(largest, level, axis=0, method="higher")
        joint = np.quantile(largest.max(axis=1), level, method="higher")
        return CoveringIntervals(
            self._bound_ranks(each), self._bound_ranks(np.full(each.shape, joint))
        )

    def _bound_ranks(self, critical: NDArray[np.float64]) -> NDArray[np.float64]:
        reach = critical[:, None] * self.error
        is_worse, is_better = self.apart < -reach, self.apart > reach
        m = len(critical)
        return np.stack([1 + is_worse.sum(axis=1), m - is_better.sum(axis=1)], axis=1).astype(
            np.float64
        )


def _mean_gaps(means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return row minus column for each pair of means."""
    gaps: NDArray[np.float64] = means[:, None] - means[None, :]
    return np.where(np.abs(gaps) < 1e-10, 0.0, gaps)


def _pair_errors(values: NDArray[np.float64], weights: Weights) -> NDArray[np.float64]:
    """Return the standard errors of the mean paired differences, (b, m, m)."""
    totals = weights.sum(axis=1)[:, None, None].astype(np.float64)
    m = values.shape[1]
    centred = values - values.mean(axis=0)
    first = (weights @ centred) / totals[:, :, 0]
    second = np.zeros((len(weights), m * m))
    step = max(1, _PLACES // (m * m))
    for start in range(0, len(values), step):
        block = centred[start : start + step]
        products = (block[:, :, None] * block[:, None, :]).reshape(len(block), -1)
        second += weights[:, start : start + step] @ products
    second = second.reshape(-1, m, m) / totals
    covariance = second - first[:, :, None] * first[:, None, :]
    spread = np.diagonal(covariance, axis1=1, axis2=2)
    variance = spread[:, :, None] + spread[:, None, :] - 2 * covariance
    errors = np.sqrt(np.maximum(variance, 0) / np.maximum(totals - 1, 1))
    return np.where(errors < 1e-10, 0.0, errors)


def can_cover(merits: Merits) -> bool:
    """Return whether covering intervals are possible: two or more cases, and no -inf."""
    return len(merits.values) > 1 and not bool(np.isneginf(merits.values).any())
