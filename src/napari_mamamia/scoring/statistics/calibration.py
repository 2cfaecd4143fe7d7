"""Calibration of predicted probabilities: Brier score, reliability bins, ECE."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

N_BINS: Final = 10
"""Number of quantile bins of the reliability diagram; tied scores give fewer."""


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Cases with scores above `low` and up to `high`; the first bin also includes `low`.

    `mean_score` is the mean predicted probability and `response_rate` the observed rate, both from
    0 to 1.
    """

    low: float
    high: float
    n: int
    mean_score: float
    response_rate: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """The Brier score, the expected calibration error (ECE) and its bins, over n cases."""

    brier: float
    ece: float
    bins: tuple[ReliabilityBin, ...]
    n: int


def calibration(
    label: NDArray[np.float64], score: NDArray[np.float64], n_bins: int = N_BINS
) -> Calibration:
    """Return the Brier score, the ECE and the reliability bins of scores against labels 0 and 1.

    Both arrays are (n,) without nan, and scores are from 0 to 1. Bin edges are quantiles of
    the scores, linearly interpolated; equal edges are merged, so equal scores share a bin and
    no bin is empty. ECE is the mean over cases of |mean score - response rate| in their bin.
    Without cases, the metrics are nan and there are no bins. Source: arXiv 2603.01250v2
    (quantile bins); C. Guo et al., ICML 2017, Eq. 3 (ECE).
    """
    if n_bins < 1:
        raise ValueError(f"expected at least 1 bin for a reliability diagram, but found {n_bins}")
    if not len(score):
        return Calibration(float("nan"), float("nan"), (), 0)
    bins = _make_bins(label, score, n_bins)
    apart = sum(bin_.n * abs(bin_.mean_score - bin_.response_rate) for bin_ in bins)
    return Calibration(brier_score(label, score), apart / len(score), bins, len(score))


def brier_score(label: NDArray[np.float64], score: NDArray[np.float64]) -> float:
    """Return the mean squared difference of score and label, from 0 (best) to 1, or nan if empty.

    Source: G. W. Brier, Monthly Weather Review 78 (1950) 1, for two classes, counted once.

    Examples
    --------
    >>> brier_score(np.array([1, 0]), np.array([0.5, 0.5]))
    0.25
    """
    return float(((score - label) ** 2).mean()) if len(score) else float("nan")


def _make_bins(
    label: NDArray[np.float64], score: NDArray[np.float64], n_bins: int
) -> tuple[ReliabilityBin, ...]:
    edges = np.unique(np.quantile(score, np.linspace(0, 1, n_bins + 1)))
    codes = np.searchsorted(edges[1:-1], score, side="left")
    bins = []
    for code in np.unique(codes):
        inside = codes == code
        bins.append(
            ReliabilityBin(
                float(edges[code]),
                # Equal scores give a single edge, which is both ends of the bin.
                float(edges[min(code + 1, len(edges) - 1)]),
                int(inside.sum()),
                float(score[inside].mean()),
                float(label[inside].mean()),
            )
        )
    return tuple(bins)
