"""Compute scores and ranks from case values by each method, for many resamples at once."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import (
    Correction,
    MissingKind,
    RankMethod,
    RankResampling,
    RankTies,
)
from napari_mamamia.scoring.ranking.signed_rank import better_p_values, significant_wins
from napari_mamamia.scoring.ranking.table import Merits, RankSettings, comparable

Weights: TypeAlias = NDArray[np.int64]
"""How often each of n cases counts in each of b resamples, as an array (b, n)."""

Composite: TypeAlias = Callable[[Weights], NDArray[np.float64]]
"""Function from case weights (b, n) to the challenge's score of each algorithm (b, m).

Larger scores are better; an undefined score is nan.
"""

_Q05: Final = 0.05
_RANK_METHODS: Final = (RankMethod.RANK_MEAN, RankMethod.RANK_MEDIAN)
_PLACES: Final = 1 << 20


def rank_cases(merits: Merits, settings: RankSettings) -> NDArray[np.float64]:
    """Return the rank of each algorithm in each case, (n, m); rank 1 is best.

    A missing value that counts as worst is ranked last; under ``worst-rank-challenger`` its rank is
    the largest rank of the case plus 1 (with average ties and k missing values, plus the mean of 1
    to k).

    Parameters
    ----------
    merits
        The table prepared for ranking.
    settings
        Rules for ties and missing values.
    """
    ranks = rank_scores(merits.compared, settings.ties, is_exact=True)
    rule = settings.missing
    is_worst = np.isneginf(merits.values)
    if rule is None or rule.kind is not MissingKind.WORST_RANK_CHALLENGER or not is_worst.any():
        return ranks
    highest = np.where(is_worst, 0.0, ranks).max(axis=1)
    n_lost = is_worst.sum(axis=1)
    after = np.ones(len(ranks)) if settings.ties is RankTies.MIN else (n_lost + 1) / 2
    return np.where(is_worst, (highest + after)[:, None], ranks)


def rank_scores(
    scores: NDArray[np.float64], ties: RankTies = RankTies.MIN, *, is_exact: bool = False
) -> NDArray[np.float64]:
    """Return the ranks along the last axis; the largest score has rank 1, nan and -inf are last.

    Parameters
    ----------
    scores
        Scores; larger is better.
    ties
        Rule for the rank of equal scores.
    is_exact
        Whether scores that are equal to 10 decimals may have different ranks.

    Examples
    --------
    >>> rank_scores(np.array([0.5, 0.9, 0.5, 0.1])).tolist()
    [2.0, 1.0, 2.0, 4.0]
    """
    from scipy.stats import rankdata

    plain = np.where(np.isnan(scores), -np.inf, comparable(scores, is_exact))
    ranks: NDArray[np.float64] = rankdata(-plain, method=ties.value, axis=-1).astype(np.float64)
    return ranks


class Scorer:
    """Scores of a table's algorithms by any method, for its cases and for resamples."""

    def __init__(
        self, merits: Merits, settings: RankSettings, composite: Composite | None = None
    ) -> None:
        self.merits, self.settings = merits, settings
        self.case_ranks = rank_cases(merits, settings)
        self._composite = composite
        self._is_parity = settings.resampling is RankResampling.CHALLENGER

    def score(self, method: RankMethod, weights: Weights) -> NDArray[np.float64]:
        """Return the scores for ranking, (b, m): larger is better, -inf is last.

        `weights` (b, n) are the weights of the kept cases.
        """
        values = self.merits.values
        if method is RankMethod.MEAN:
            return self._average_cases(weights, values)
        if method is RankMethod.MEDIAN:
            return weighted_quantile(weights, values, 0.5)
        if method is RankMethod.Q05:
            return weighted_quantile(weights, values, _Q05)
        if method in _RANK_METHODS:
            return -self._score_ranks(method, weights)
        if method is RankMethod.TEST:
            drawn = np.minimum(weights, 1) if self._is_parity else weights
            p_values = better_p_values(self.merits, drawn)
            is_holm = self.settings.correction is Correction.HOLM
            return significant_wins(p_values, self.settings.alpha, is_holm)
        if self._composite is None:
            raise ValueError("expected a composite score for this table, but found none")
        return self._composite(weights)

    def as_shown(self, method: RankMethod, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return scores in their usual form: distances are positive, and mean ranks start at 1."""
        sign = -1.0 if method in _RANK_METHODS else 1.0
        if method in (RankMethod.MEAN, RankMethod.MEDIAN, RankMethod.Q05):
            sign = self.merits.sign
        # Adding 0.0 converts -0.0 to 0.0.
        return np.where(np.isinf(scores), np.nan, sign * scores + 0.0)

    def rank(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the ranks of scores (b, m) under the rules in the settings."""
        return rank_scores(scores, self.settings.ties, is_exact=self.settings.is_exact)

    def _average_cases(self, weights: Weights, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return weighted_mean(weights, values, is_exact=self.settings.is_exact)

    def _score_ranks(self, method: RankMethod, weights: Weights) -> NDArray[np.float64]:
        ranks = self.case_ranks
        if self._is_parity and weights.max(initial=0) > 1:
            return _score_copied_ranks(method, ranks, weights, self.settings.ties)
        if method is RankMethod.RANK_MEAN:
            return self._average_cases(weights, ranks)
        return weighted_quantile(weights, ranks, 0.5)


def weighted_mean(
    weights: Weights, values: NDArray[np.float64], *, is_exact: bool = False
) -> NDArray[np.float64]:
    """Return the means (b, m) of values (n, m) under weights (b, n).

    A mean is -inf if any value with a weight above 0 is -inf. With `is_exact`, sums use a longer
    float type and follow the order of the cases, so equal columns have bit-identical means.

    Parameters
    ----------
    weights
        Number of times that each case counts, (b, n).
    values
        Values, (n, m).
    is_exact
        Whether to sum in the order of the cases.
    """
    is_worst = np.isneginf(values)
    plain = np.where(is_worst, 0.0, values)
    totals = weights.sum(axis=1, keepdims=True)
    if is_exact:
        step = max(1, _PLACES // values.size)
        sums = np.concatenate(
            [
                (weights[first : first + step, :, None] * plain.astype(np.longdouble)).sum(axis=1)
                for first in range(0, len(weights), step)
            ]
        )
        means = (sums / totals).astype(np.float64)
    else:
        means = weights.astype(np.float64) @ plain / totals
    if is_worst.any():
        counts = weights.astype(np.float64) @ is_worst.astype(np.float64)
        means = np.where(counts > 0, -np.inf, means)
    return np.asarray(means, dtype=np.float64)


def weighted_quantile(
    weights: Weights, values: NDArray[np.float64], share: float
) -> NDArray[np.float64]:
    """Return the quantile of each column of values (n, m), with each value repeated by its weight.

    The quantiles of the resamples (b, m) are linear between order statistics (type 7, as in R and
    numpy).

    Parameters
    ----------
    weights
        Number of times that each case counts, (b, n).
    values
        Values, (n, m).
    share
        The quantile, 0 to 1.
    """
    columns = np.ascontiguousarray(weights.T, dtype=np.int32)
    position = (columns.sum(axis=0) - 1) * share
    below = np.floor(position).astype(np.int64)
    between = position - below
    quantiles = np.empty((len(weights), values.shape[1]))
    for column, column_values in enumerate(values.T):
        order = np.argsort(column_values, kind="stable")
        in_order = column_values[order]
        ends = np.cumsum(columns[order], axis=0, dtype=np.int32)
        low = in_order[_find_order_statistic(ends, below)]
        high = in_order[_find_order_statistic(ends, below + (between > 0))]
        with np.errstate(invalid="ignore"):
            inner = low + (high - low) * between
        quantiles[:, column] = np.where(np.isneginf(low) | (low == high), low, inner)
    return quantiles


def _find_order_statistic(ends: NDArray[np.int32], place: NDArray[np.int64]) -> Any:
    return np.count_nonzero(ends <= place, axis=0)


def _score_copied_ranks(
    method: RankMethod, ranks: NDArray[np.float64], weights: Weights, ties: RankTies
) -> NDArray[np.float64]:
    """Return mean or median ranks as in challengeR 1.0.5, which ranks copies of a case together.

    For k copies, an algorithm that r - 1 others beat has rank k (r - 1) + 1 in each copy, so ranks
    exceed the number of algorithms, and the weight of a case is k squared.
    """
    offset = 1.0 if ties is RankTies.MIN else 0.5
    if method is RankMethod.RANK_MEAN:
        square = (weights**2).astype(np.float64)
        total = weights.sum(axis=1, keepdims=True)
        means: NDArray[np.float64] = square @ (ranks - offset) / total + offset
        return means
    medians = []
    for row in weights:
        drawn = np.flatnonzero(row)
        copied = row[drawn, None] * (ranks[drawn] - offset) + offset
        medians.append(np.median(np.repeat(copied, row[drawn], axis=0), axis=0))
    return np.array(medians)


def methods_for(methods: Sequence[RankMethod], composite: Composite | None) -> list[RankMethod]:
    """Return the usable methods; the composite method needs `composite` and comes last."""
    if composite is not None and RankMethod.COMPOSITE in methods:
        return list(methods)
    plain: list[RankMethod] = [method for method in methods if method is not RankMethod.COMPOSITE]
    return plain if composite is None else [*plain, RankMethod.COMPOSITE]
