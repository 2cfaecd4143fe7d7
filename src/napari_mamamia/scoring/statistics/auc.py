"""Area under the ROC curve with DeLong's test, and average precision."""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from napari_mamamia.scoring.statistics.performance import ratio
from napari_mamamia.scoring.statistics.resampling import count_in_rows

_ROUNDING: Final = 1e-15
"""Variance of the difference below which two models order the cases in the same way.

The remaining variance is due to rounding.
"""


@dataclass(frozen=True, slots=True)
class AucInterval:
    """An AUC with DeLong's standard error and the normal interval, clipped to the range 0 to 1."""

    auc: float
    standard_error: float
    low: float
    high: float
    level: float


@dataclass(frozen=True, slots=True)
class AucComparison:
    """DeLong's test of two AUCs on the same cases; `p_value` is two-sided (nan with a `reason`)."""

    auc_a: float
    auc_b: float
    standard_error: float
    z: float
    p_value: float
    n: int
    reason: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class RankedCases:
    """Cases that are sorted by score once and then counted for any resample.

    `places` (n,) is 2 * (number of lower distinct scores) + (1 for a responder), and `n_scores` is
    the number of distinct scores.
    """

    places: NDArray[np.int64]
    n_scores: int

    @classmethod
    def of(cls, label: NDArray[np.float64], score: NDArray[np.float64]) -> Self:
        """Rank cases; `label` (n,) contains 0 and 1, and `score` (n,) any numbers."""
        distinct, rank = np.unique(score, return_inverse=True)
        return cls(2 * rank.astype(np.int64) + (label == 1), distinct.size)

    def counts(
        self, drawn: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the numbers of responders and non-responders at each ascending score, both (b, u).

        `drawn` (b, n) contains the cases of each resample; without it, each case counts once.
        """
        places = self.places[None] if drawn is None else self.places[drawn]
        both = count_in_rows(places, 2 * self.n_scores).astype(np.float64)
        return both[:, 1::2], both[:, ::2]

    def auc_without_each(self) -> NDArray[np.float64]:
        """Return the AUCs (n,) that result if each case is left out in turn."""
        ((yes,), (no,)) = self.counts()
        n_yes, n_no = yes.sum(), no.sum()
        below, above = np.cumsum(no) - no / 2, n_yes - np.cumsum(yes) + yes / 2
        ordered = (yes * below).sum()
        without = np.stack(
            [
                ratio(ordered - above, n_yes * (n_no - 1)),
                ratio(ordered - below, (n_yes - 1) * n_no),
            ],
            axis=1,
        )
        # `places` is twice the rank of a score plus the class, which is the index into this
        # flattened table.
        aucs: NDArray[np.float64] = without.ravel()[self.places]
        return aucs

    def average_precision_without_each(self) -> NDArray[np.float64]:
        """Return the average precisions (n,) that result if each case is left out in turn.

        Thresholds above the case's score keep their precision. At this score and below, one case
        less is called positive, with one hit less if the case is a responder.
        """
        yes, no = (counts[0, ::-1] for counts in self.counts())
        n_yes, hits, n_called = yes.sum(), np.cumsum(yes), np.cumsum(yes + no)
        shares = yes * np.nan_to_num(ratio(hits, n_called))
        kept_above = np.cumsum(shares) - shares
        fewer_said = yes * np.nan_to_num(ratio(hits, n_called - 1))
        fewer_hits = np.nan_to_num(ratio(hits - 1, n_called - 1))
        without_no = kept_above + _sums_from(fewer_said)
        without_yes = kept_above + _sums_from(yes * fewer_hits) - fewer_hits
        without = np.stack([ratio(without_no, n_yes), ratio(without_yes, n_yes - 1)], axis=1)
        # The thresholds above descend, whereas `places` counts the scores in ascending order.
        precisions: NDArray[np.float64] = without[::-1].ravel()[self.places]
        return precisions


def auc(label: NDArray[np.float64], score: NDArray[np.float64]) -> float:
    """Return the fraction of (responder, non-responder) pairs that the score orders correctly.

    `label` (n,) contains 0 and 1, and `score` (n,) any numbers; ties count half. With only one
    class, the result is nan. Source: J. A. Hanley, B. J. McNeil, Radiology 143 (1982) 29.

    Examples
    --------
    >>> auc(np.array([1, 1, 0, 0]), np.array([0.8, 0.4, 0.6, 0.2]))
    0.75
    """
    return float(auc_of_counts(*RankedCases.of(label, score).counts())[0])


def average_precision(label: NDArray[np.float64], score: NDArray[np.float64]) -> float:
    """Return the sum over thresholds of precision times the increase in recall.

    The sum is not interpolated, and equal scores form one threshold. The arguments are those of
    `auc`. The chance level is the fraction of responders. Without responders, the result is nan.

    Examples
    --------
    >>> round(average_precision(np.array([1, 1, 0, 0]), np.array([0.8, 0.4, 0.6, 0.2])), 6)
    0.833333
    """
    return float(average_precision_of_counts(*RankedCases.of(label, score).counts())[0])


def auc_of_counts(yes: NDArray[np.float64], no: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the AUC of each row of `RankedCases.counts`."""
    ordered = (yes * (np.cumsum(no, axis=1) - no / 2)).sum(axis=1)
    return ratio(ordered, yes.sum(axis=1) * no.sum(axis=1))


def average_precision_of_counts(
    yes: NDArray[np.float64], no: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the average precision of each row of `RankedCases.counts`."""
    yes, no = np.ascontiguousarray(yes[:, ::-1]), no[:, ::-1]
    hits = np.cumsum(yes, axis=1)
    precision = np.nan_to_num(ratio(hits, hits + np.cumsum(no, axis=1)))
    return ratio((yes * precision).sum(axis=1), yes.sum(axis=1))


def auc_interval(
    label: NDArray[np.float64], score: NDArray[np.float64], level: float = 0.95
) -> AucInterval:
    """Return the AUC with DeLong's interval, which is nan if a class has fewer than two cases.

    Source: E. R. DeLong et al., Biometrics 44 (1988) 837.
    """
    value, covariance = _compute_delong(label, score[None])
    error = float(np.sqrt(covariance[0, 0]))
    reach = float(ndtri((1 + level) / 2)) * error
    low, high = max(0.0, value[0] - reach), min(1.0, value[0] + reach)
    ends = (np.nan, np.nan) if np.isnan(error) else (float(low), float(high))
    return AucInterval(float(value[0]), error, *ends, level)


def compare_aucs(
    label: NDArray[np.float64], score_a: NDArray[np.float64], score_b: NDArray[np.float64]
) -> AucComparison:
    """Return DeLong's test of two models' AUCs on the same cases.

    All arrays are (n,) without nan. Source: E. R. DeLong et al., Biometrics 44 (1988) 837, with the
    mid-ranks of X. Sun, W. Xu, IEEE Signal Processing Letters 21 (2014) 1389.
    """
    values, covariance = _compute_delong(label, np.stack([score_a, score_b]))
    variance = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    z, p_value, reason = np.nan, np.nan, ""
    if np.isnan(variance):
        reason = "fewer than two responders or two non-responders"
    elif variance < _ROUNDING:
        reason = "both models order the cases in the same way, so their difference has no variance"
    else:
        z = float((values[0] - values[1]) / np.sqrt(variance))
        p_value = float(2 * ndtr(-abs(z)))
    error = float(np.sqrt(max(variance, 0.0)))
    return AucComparison(float(values[0]), float(values[1]), error, z, p_value, len(label), reason)


def _sums_from(values: NDArray[np.float64]) -> NDArray[np.float64]:
    sums: NDArray[np.float64] = np.cumsum(values[::-1])[::-1]
    return sums


def _compute_delong(
    label: NDArray[np.float64], scores: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    from scipy.stats import rankdata

    yes = label == 1
    n_yes, n_no = int(yes.sum()), int((~yes).sum())
    if min(n_yes, n_no) < 2:
        values = np.array([auc(label, score) for score in scores])
        return values, np.full((len(scores), len(scores)), np.nan)
    together = rankdata(scores, axis=1)
    above = (together[:, yes] - rankdata(scores[:, yes], axis=1)) / n_no
    below = 1 - (together[:, ~yes] - rankdata(scores[:, ~yes], axis=1)) / n_yes
    covariance = np.atleast_2d(np.cov(above)) / n_yes + np.atleast_2d(np.cov(below)) / n_no
    return above.mean(axis=1), covariance
