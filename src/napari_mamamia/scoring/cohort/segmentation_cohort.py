"""Everything about one segmentation model over a cohort: performance, fairness, intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.cohort import Cohort
from napari_mamamia.scoring.cohort.fairness import Fairness, disparity, segmentation_fairness
from napari_mamamia.scoring.cohort.group_rules import GroupRules
from napari_mamamia.scoring.cohort.groups import Grouping, group_cases
from napari_mamamia.scoring.cohort.ranking import ranking_score
from napari_mamamia.scoring.statistics.bootstrap import Bootstrap, bootstrap_sums
from napari_mamamia.scoring.statistics.performance import (
    Performance,
    SegmentationScores,
    performance_of,
    ratio,
    segmentation_performance,
)
from napari_mamamia.scoring.statistics.resampling import N_RESAMPLES, SEED

_COLUMNS: Final = 4
"""Sums that two means are made of: DSC and NormHD, each with its number of defined cases."""


@dataclass(frozen=True, slots=True)
class SegmentationCohort:
    """One model's numbers under one profile. `reason` says why `ranking_score` is nan."""

    profile: str
    performance: Performance
    fairness: Fairness
    weight_of_fairness: float
    ranking_score: float
    reason: str = ""


def score_segmentation(
    scores: SegmentationScores,
    cohort: Cohort | None,
    rules: GroupRules,
    weight_of_fairness: float | None = None,
) -> SegmentationCohort:
    """Return the cohort's numbers of a model; without a clinical table fairness is undefined.

    `weight_of_fairness` lies from 0 to 1; None takes the profile's.
    """
    groupings = group_cases(scores.case_ids, cohort, rules) if cohort else ()
    return score_groups(scores, groupings, rules, weight_of_fairness)


def score_groups(
    scores: SegmentationScores,
    groupings: Sequence[Grouping],
    rules: GroupRules,
    weight_of_fairness: float | None = None,
) -> SegmentationCohort:
    """Return the cohort's numbers of a model over groups that were made already."""
    performance = segmentation_performance(scores)
    fairness = segmentation_fairness(scores, groupings, rules)
    weight = rules.weight_of_fairness if weight_of_fairness is None else weight_of_fairness
    value = float(ranking_score(performance.value, fairness.value, weight))
    reason = ""
    if np.isnan(value):
        reason = "; ".join(text for text in (performance.reason, fairness.reason) if text)
    return SegmentationCohort(rules.profile, performance, fairness, weight, value, reason)


def bootstrap_segmentation(
    scores: SegmentationScores,
    groupings: Sequence[Grouping],
    weight_of_fairness: float,
    n_resamples: int = N_RESAMPLES,
    seed: int = SEED,
) -> Bootstrap:
    """Return resampled values of all numbers of a model.

    The names are mean_dsc, mean_norm_hd, performance, fairness_VARIABLE for each grouping,
    fairness and ranking_score; the last two and the variables only where there are groupings.
    Resampling is over cases, and everything is computed anew in each resample: each number comes
    from sums over the cases, and the sums of all resamples are one matrix product.
    """
    names = ["mean_dsc", "mean_norm_hd", "performance"]
    if groupings:
        names += [f"fairness_{grouping.variable}" for grouping in groupings]
        names += ["fairness", "ranking_score"]
    parts = _collect_parts(scores, groupings)

    def numbers(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return _compute_numbers(sums, groupings, weight_of_fairness)

    return bootstrap_sums(tuple(names), parts, numbers, n_resamples, seed)


def ranking_scores_of_weights(
    models: Sequence[SegmentationScores],
    groupings: Sequence[Grouping],
    weight_of_fairness: float,
    weights: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return each model's ranking score (b, m) under weights of the cases (b, n).

    The models have the same cases in one order, which `groupings` follow too.
    """
    scores = []
    for model in models:
        sums = weights @ _collect_parts(model, groupings)
        scores.append(_compute_numbers(sums, groupings, weight_of_fairness)[:, -1])
    return np.stack(scores, axis=1)


def _collect_parts(
    scores: SegmentationScores, groupings: Sequence[Grouping]
) -> NDArray[np.float64]:
    """Return what each case adds to the sums over everybody and over each group, (n, 4 (1 + G))."""
    n = len(scores.case_ids)
    columns = np.empty((n, _COLUMNS))
    for place, values in ((0, scores.dsc), (2, scores.norm_hd)):
        columns[:, place] = np.nan_to_num(values)
        columns[:, place + 1] = ~np.isnan(values)
    members = np.hstack([np.ones((n, 1)), *(grouping.indicator for grouping in groupings)])
    parts: NDArray[np.float64] = members[:, :, None] * columns[:, None, :]
    return parts.reshape(n, -1)


def _compute_numbers(
    sums: NDArray[np.float64], groupings: Sequence[Grouping], weight: float
) -> NDArray[np.float64]:
    """Return the numbers (b, m) from sums (b, 4 (1 + G))."""
    cells = sums.reshape(len(sums), -1, _COLUMNS)
    dsc, norm_hd = ratio(cells[..., 0], cells[..., 1]), ratio(cells[..., 2], cells[..., 3])
    performance = performance_of(dsc[:, 0], norm_hd[:, 0])
    numbers = [dsc[:, 0], norm_hd[:, 0], performance]
    first = 1
    for grouping in groupings:
        columns = slice(first, first + len(grouping.labels))
        gaps = [disparity(means[:, columns], grouping.empty_groups) for means in (dsc, norm_hd)]
        numbers.append(1 - (gaps[0] + gaps[1]) / 2)
        first = columns.stop
    if groupings:
        fairness = sum(numbers[3:]) / len(groupings)
        numbers += [fairness, ranking_score(performance, fairness, weight)]
    return np.stack(numbers, axis=1)
