"""Compare models on paired cases by t-tests and Wilcoxon signed-rank tests, corrected by Holm."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.scoring.statistics.performance import SegmentationScores

METRICS_COMPARED: Final = ("dsc", "norm_hd")

_ROUNDING: Final = 1e-12
"""Range of differences that count as equal; if all differences are equal, no test is defined."""


@dataclass(frozen=True, slots=True, eq=False)
class NamedScores:
    """The name and the scores of a model."""

    name: str
    scores: SegmentationScores


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """The difference of models a and b in one metric, over the n cases with a value in both models.

    `low` and `high` are the 95 % interval of the mean difference from the t-test. All p-values are
    two-sided; those with `_holm` are corrected for all comparisons of the same metric and test in
    the same call. If a test is undefined, its p-values are nan, and `reason` explains why.
    """

    metric: str
    model_a: str
    model_b: str
    n: int
    mean_difference: float
    low: float
    high: float
    p_t_test: float
    p_wilcoxon: float
    p_t_test_holm: float
    p_wilcoxon_holm: float
    reason: str = ""


def compare_models(
    models: Sequence[NamedScores], metrics: Sequence[str] = METRICS_COMPARED
) -> tuple[PairedComparison, ...]:
    """Return the comparison of every pair of models in every metric, with Holm's correction.

    Source of the t-test: arXiv 2603.01250v2 (against the baseline and without correction).
    """
    return _compare_pairs(list(combinations(models, 2)), metrics)


def compare_with_baseline(
    models: Sequence[NamedScores], baseline: NamedScores, metrics: Sequence[str] = METRICS_COMPARED
) -> tuple[PairedComparison, ...]:
    """Return the comparison of every model with the baseline, with Holm's correction.

    There are fewer comparisons than with all pairs, so the correction is smaller.
    """
    return _compare_pairs([(model, baseline) for model in models], metrics)


def holm(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return p-values (m,) corrected for m tests; nan is not counted and remains nan.

    Source: S. Holm, Scandinavian Journal of Statistics 6 (1979) 65.

    Examples
    --------
    >>> holm(np.array([0.04, 0.01, 0.03])).tolist()
    [0.06, 0.03, 0.06]
    """
    defined = np.flatnonzero(~np.isnan(p_values))
    order = defined[np.argsort(p_values[defined], kind="stable")]
    steps = np.arange(order.size, 0, -1) * p_values[order]
    corrected = np.full(p_values.shape, np.nan)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return corrected


def _compare_pairs(
    pairs: list[tuple[NamedScores, NamedScores]], metrics: Sequence[str]
) -> tuple[PairedComparison, ...]:
    unknown = set(metrics) - set(METRICS_COMPARED)
    if unknown:
        raise ValueError(
            f"expected only the metrics {', '.join(METRICS_COMPARED)}, but found "
            f"{', '.join(unknown)}"
        )
    comparisons: list[PairedComparison] = []
    for metric in metrics:
        rows = [_test_pair(metric, a, b) for a, b in pairs]
        t_test = holm(np.array([row.p_t_test for row in rows], dtype=np.float64))
        signed = holm(np.array([row.p_wilcoxon for row in rows], dtype=np.float64))
        comparisons += [
            replace(row, p_t_test_holm=float(t), p_wilcoxon_holm=float(w))
            for row, t, w in zip(rows, t_test, signed, strict=True)
        ]
    return tuple(comparisons)


def _test_pair(metric: str, a: NamedScores, b: NamedScores) -> PairedComparison:
    from scipy.stats import ttest_rel, wilcoxon

    values_a, values_b = _select_common(getattr(a.scores, metric), a.scores, b.scores, metric)
    apart = values_a - values_b
    mean = float(apart.mean()) if apart.size else float("nan")
    nan = float("nan")
    row = PairedComparison(metric, a.name, b.name, apart.size, mean, nan, nan, nan, nan, nan, nan)
    if apart.size < 2:
        reason = (
            f"only {apart.size} of the cases have a value of {metric} in both models; the test "
            "needs at least 2"
        )
        return replace(row, reason=reason)
    if not np.any(np.abs(apart) > _ROUNDING):
        reason = f"both models have the same {metric} in every case"
        return replace(row, p_t_test=1.0, p_wilcoxon=1.0, low=mean, high=mean, reason=reason)
    # Rounding errors would be ranked as differences, while an exact 0 is left out.
    p_wilcoxon = float(wilcoxon(np.where(np.abs(apart) > _ROUNDING, apart, 0.0)).pvalue)
    if np.ptp(apart) <= _ROUNDING:
        reason = f"the difference of {metric} is the same in every case, so there is no t-test"
        return replace(row, p_wilcoxon=p_wilcoxon, reason=reason)
    t_test: Any = ttest_rel(values_a, values_b)
    interval = t_test.confidence_interval(0.95)
    return replace(
        row,
        p_t_test=float(t_test.pvalue),
        p_wilcoxon=p_wilcoxon,
        low=float(interval.low),
        high=float(interval.high),
    )


def _select_common(
    values_a: NDArray[np.float64], a: SegmentationScores, b: SegmentationScores, metric: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    places = {case_id: index for index, case_id in enumerate(b.case_ids)}
    rows = [(i, places[c]) for i, c in enumerate(a.case_ids) if c in places]
    indices = np.array(rows, dtype=np.intp).reshape(-1, 2)
    of_a, of_b = values_a[indices[:, 0]], getattr(b, metric)[indices[:, 1]]
    defined = ~(np.isnan(of_a) | np.isnan(of_b))
    return of_a[defined], of_b[defined]
