"""All numbers of one segmentation model over a cohort: performance, fairness, intervals."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.scoring.cohort.fairness import (
    Fairness,
    VariableFairness,
    disparity,
    segmentation_fairness,
)
from napari_mamamia.scoring.cohort.group_rules import GroupRules
from napari_mamamia.scoring.cohort.groups import Grouping
from napari_mamamia.scoring.cohort.lowest import (
    LowestScore,
    complete_cases,
    lowest_numbers,
    lowest_score,
)
from napari_mamamia.scoring.cohort.policy import CountedCases
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
"""Number of sums needed for two means: DSC and NormHD, each with its number of cases."""


@dataclass(frozen=True, slots=True)
class SegmentationCohort:
    """Results of one segmentation model under one profile.

    `reason` says why `ranking_score` is nan. If cases have no usable prediction, performance,
    fairness and ranking score are the numbers for ranking (`rank_counted`), while groups and
    disparities are those of the scored cases.
    """

    profile: str
    performance: Performance
    fairness: Fairness
    weight_of_fairness: float
    ranking_score: float
    reason: str = ""


def score_groups(
    scores: SegmentationScores,
    groupings: Sequence[Grouping],
    rules: GroupRules,
    weight_of_fairness: float | None = None,
) -> SegmentationCohort:
    """Return the cohort's numbers of a model over existing groupings."""
    performance = segmentation_performance(scores)
    fairness = segmentation_fairness(scores, groupings, rules)
    weight = rules.weight_of_fairness if weight_of_fairness is None else weight_of_fairness
    value = float(ranking_score(performance.value, fairness.value, weight))
    reason = ""
    if np.isnan(value):
        reason = "; ".join(text for text in (performance.reason, fairness.reason) if text)
    return SegmentationCohort(rules.profile, performance, fairness, weight, value, reason)


@dataclass(frozen=True, slots=True)
class CountedNumbers:
    """The numbers by which a model is ranked, and `lowest` if they are bounds.

    `bootstrap` resamples all of them; None if there is nothing to rank.
    """

    cohort: SegmentationCohort
    lowest: LowestScore | None
    bootstrap: Callable[[int, int], Bootstrap] | None


def rank_counted(
    measured: SegmentationCohort,
    cases: CountedCases,
    groupings: Sequence[Grouping],
    rules: GroupRules,
) -> CountedNumbers:
    """Return the numbers by which a model is ranked, from the numbers of its scored cases.

    `groupings` are groups of the counted cases. All numbers are computed from one completion of the
    free cases (`complete_cases`), like those of any scored cases. A rejected submission has none.
    """
    weight = measured.weight_of_fairness
    if cases.rejected:
        return CountedNumbers(_reject_numbers(measured, cases.rejected), None, None)
    if not cases.n:
        return CountedNumbers(measured, None, None)
    lowest = None
    if cases.has_free:
        scores, completed = complete_cases(cases, groupings, weight)
        lowest = lowest_score(cases, lowest_numbers(cases, groupings))
    else:
        scores = SegmentationScores(cases.case_ids, cases.dsc, cases.norm_hd)
        completed = tuple(groupings)
    numbers = score_groups(scores, completed, rules, weight)
    by_variable = {variable.variable: variable for variable in numbers.fairness.variables}
    fairness = _with_values(measured.fairness, by_variable, numbers.fairness)
    job = partial(bootstrap_segmentation, scores, completed, weight)
    return CountedNumbers(replace(numbers, fairness=fairness), lowest, job)


def _reject_numbers(measured: SegmentationCohort, reason: str) -> SegmentationCohort:
    """Return undefined numbers for a rejected submission.

    Only the ranking score has the full reason, which names each case.
    """
    nothing, why = float("nan"), "undefined, as the ranking score"
    of_variables = (
        replace(variable, value=nothing, reason=why) for variable in measured.fairness.variables
    )
    means = replace(
        measured.performance, value=nothing, mean_dsc=nothing, mean_norm_hd=nothing, reason=why
    )
    return replace(
        measured,
        performance=means,
        fairness=Fairness(nothing, tuple(of_variables), why),
        ranking_score=nothing,
        reason=reason,
    )


def _with_values(
    fairness: Fairness, by_variable: Mapping[str, VariableFairness], counted: Fairness
) -> Fairness:
    """Return the measured groups combined with the fairness values of the counted cases."""
    variables = tuple(
        replace(
            variable,
            value=by_variable[variable.variable].value,
            reason=by_variable[variable.variable].reason,
        )
        for variable in fairness.variables
    )
    return Fairness(counted.value, variables, counted.reason)


def bootstrap_segmentation(
    scores: SegmentationScores,
    groupings: Sequence[Grouping],
    weight_of_fairness: float,
    n_resamples: int = N_RESAMPLES,
    seed: int = SEED,
) -> Bootstrap:
    """Return the bootstrap of all numbers of a model.

    The names are mean_dsc, mean_norm_hd, performance and, with groupings, fairness_VARIABLE for
    each, fairness, ranking_score, and disparity_METRIC_VARIABLE. Cases are resampled, and every
    number is recomputed in each resample: each number follows from sums over the cases, and the
    sums of all resamples are one matrix product.
    """
    names = ["mean_dsc", "mean_norm_hd", "performance"]
    if groupings:
        names += [f"fairness_{grouping.variable}" for grouping in groupings]
        names += ["fairness", "ranking_score"]
        for metric in ("dsc", "norm_hd"):
            names += [f"disparity_{metric}_{grouping.variable}" for grouping in groupings]
    parts = _collect_parts(scores, groupings)

    def numbers(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return _compute_numbers(sums, groupings, weight_of_fairness)

    return bootstrap_sums(tuple(names), parts, numbers, n_resamples, seed)


def ranking_scores_of_weights(
    cases: CountedCases,
    groupings: Sequence[Grouping],
    weight_of_fairness: float,
    weights: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return a model's ranking score (b,) under weights of its counted cases (b, n).

    Unusable cases get the values that make it lowest; nan for a rejected submission. Without groups
    the ranking score is the performance.
    """
    if cases.rejected or not cases.n:
        return np.full(len(weights), np.nan)
    if cases.has_free:
        lowest = lowest_numbers(cases, groupings)
        return lowest.at_weight(weights @ lowest.parts, weight_of_fairness)
    scores = SegmentationScores(cases.case_ids, cases.dsc, cases.norm_hd)
    sums = weights @ _collect_parts(scores, groupings)
    # The columns are mean Dice, mean NormHD, performance, each variable, fairness and ranking
    # score; without groups performance is the last.
    place = 4 + len(groupings) if groupings else 2
    return _compute_numbers(sums, groupings, weight_of_fairness)[:, place]


def _collect_parts(
    scores: SegmentationScores, groupings: Sequence[Grouping]
) -> NDArray[np.float64]:
    """Return each case's contribution to the overall and group sums, (n, 4 (1 + G))."""
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
    every: tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]] = ([], [])
    first = 1
    for grouping in groupings:
        columns = slice(first, first + len(grouping.labels))
        gaps = [disparity(means[:, columns], grouping.empty_groups) for means in (dsc, norm_hd)]
        numbers.append(1 - (gaps[0] + gaps[1]) / 2)
        for metric, gap in zip(every, gaps, strict=True):
            metric.append(gap)
        first = columns.stop
    if groupings:
        fairness = sum(numbers[3:]) / len(groupings)
        numbers += [fairness, ranking_score(performance, fairness, weight), *every[0], *every[1]]
    return np.stack(numbers, axis=1)
