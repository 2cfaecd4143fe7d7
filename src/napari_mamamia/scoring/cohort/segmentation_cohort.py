"""All metrics of one segmentation model over a cohort: performance, fairness, intervals."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.metrics.registry import Better
from napari_mamamia.scoring.cohort.groups import EmptyGroups, Grouping, GroupRules, Unassigned
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

_NAN: Final = float("nan")
_COLUMNS: Final = 4
"""Number of sums needed for two means: DSC and NormHD, each with its number of cases."""


@dataclass(frozen=True, slots=True)
class GroupScore:
    """One group with its cases, and the means and standard deviations of the defined values.

    `sd_dsc` and `sd_norm_hd` are standard deviations with n - 1, or nan for fewer than two cases.
    `is_small` says whether the group has some cases, but fewer than the profile requires.
    """

    label: str
    n: int
    mean_dsc: float
    mean_norm_hd: float
    sd_dsc: float
    sd_norm_hd: float
    is_small: bool


@dataclass(frozen=True, slots=True)
class Spread:
    """Differences of the group means of one metric.

    `disparity` is the largest minus the smallest mean, `variance` is the mean squared distance of
    the group means from their unweighted mean, and `worst` is the mean of `worst_group`.
    """

    disparity: float
    variance: float
    worst: float
    worst_group: str


@dataclass(frozen=True, slots=True)
class VariableFairness:
    """Fairness over the groups of one variable, from 1 (best) downwards; `reason` explains nan."""

    variable: str
    value: float
    dsc: Spread
    norm_hd: Spread
    groups: tuple[GroupScore, ...]
    unassigned: tuple[Unassigned, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Fairness:
    """Mean fairness over the variables; nan with a `reason` if any variable's fairness is nan."""

    value: float
    variables: tuple[VariableFairness, ...]
    reason: str = ""


def disparity(
    means: NDArray[np.float64], empty_groups: EmptyGroups = EmptyGroups.LEFT_OUT
) -> NDArray[np.float64]:
    """Return the largest minus the smallest group mean along the last axis.

    A group without a value is nan and is left out. Under `EmptyGroups.AS_SCRIPTS`, a nan in the
    first group makes the result nan. Without any value, the result is nan.

    Examples
    --------
    >>> float(disparity(np.array([0.5, np.nan, 0.75])))
    0.25
    """
    # Unlike nanmax, this gives nan without a warning if no group has a value.
    highest = np.fmax.reduce(means, axis=-1, initial=np.nan)
    lowest = np.fmin.reduce(means, axis=-1, initial=np.nan)
    gap: NDArray[np.float64] = np.asarray(highest - lowest)
    if empty_groups is EmptyGroups.AS_SCRIPTS and means.shape[-1]:
        gap = np.where(np.isnan(means[..., 0]), np.nan, gap)
    return gap


def segmentation_fairness(
    scores: SegmentationScores, groupings: Sequence[Grouping], rules: GroupRules
) -> Fairness:
    """Return the fairness of a model over the variables of `groupings`.

    Source: arXiv 2603.01250v2, Eq. 3: the mean over the variables of 1 - D_v.
    """
    variables = tuple(variable_fairness(scores, grouping, rules) for grouping in groupings)
    if not variables:
        return Fairness(_NAN, (), explain_no_groups(scores.case_ids))
    undefined = [variable for variable in variables if np.isnan(variable.value)]
    value = sum(variable.value for variable in variables) / len(variables)
    reason = "; ".join(f"{variable.variable}: {variable.reason}" for variable in undefined)
    return Fairness(value, variables, reason)


def explain_no_groups(case_ids: Sequence[str]) -> str:
    """Return why there are no groups when no group variable exists."""
    if not case_ids:
        return "no case was scored, so there are no groups"
    return "there is no clinical table from which to form groups"


def variable_fairness(
    scores: SegmentationScores, grouping: Grouping, rules: GroupRules
) -> VariableFairness:
    """Return the fairness over the groups of one variable, with the numbers that it is based on.

    The fairness is 1 - (DSC disparity + NormHD disparity)/2. Source: arXiv 2603.01250v2, Eq. 3. A
    variable with only one group has a disparity of 0.
    """
    groups = group_table(scores, grouping, rules.min_group_size)
    dsc = _spread_of([group.mean_dsc for group in groups], grouping, Better.HIGHER)
    norm_hd = _spread_of([group.mean_norm_hd for group in groups], grouping, Better.LOWER)
    value = 1 - (dsc.disparity + norm_hd.disparity) / 2
    reason = _explain_undefined_fairness(groups, grouping) if np.isnan(value) else ""
    return VariableFairness(
        grouping.variable, value, dsc, norm_hd, groups, grouping.unassigned, reason
    )


def group_table(
    scores: SegmentationScores, grouping: Grouping, min_group_size: int = 0
) -> tuple[GroupScore, ...]:
    """Return one row for each group, including empty groups."""
    indicator = grouping.indicator
    mean_dsc, sd_dsc = _compute_moments(scores.dsc, indicator)
    mean_norm_hd, sd_norm_hd = _compute_moments(scores.norm_hd, indicator)
    sizes = grouping.sizes
    return tuple(
        GroupScore(
            label,
            int(sizes[index]),
            float(mean_dsc[index]),
            float(mean_norm_hd[index]),
            float(sd_dsc[index]),
            float(sd_norm_hd[index]),
            bool(0 < sizes[index] < min_group_size),
        )
        for index, label in enumerate(grouping.labels)
    )


def spread(means: NDArray[np.float64], labels: Sequence[str], gap: float, better: Better) -> Spread:
    """Return the spread of group means (g,) with the disparity `gap`; nan means are ignored.

    The worst group has the lowest mean under `Better.HIGHER`, otherwise the highest.
    """
    defined = means[~np.isnan(means)]
    if not defined.size:
        return Spread(_NAN, _NAN, _NAN, "")
    worst = int(np.nanargmin(means) if better is Better.HIGHER else np.nanargmax(means))
    return Spread(gap, float(defined.var()), float(means[worst]), labels[worst])


def _compute_moments(
    values: NDArray[np.float64], indicator: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    defined = ~np.isnan(values)
    members = indicator[defined]
    n = members.sum(axis=0)
    means = ratio(values[defined] @ members, n)
    apart = np.where(members > 0, values[defined][:, None] - means, 0.0)
    return means, np.sqrt(ratio((apart**2).sum(axis=0), np.maximum(n - 1, 0)))


def _spread_of(means: list[float], grouping: Grouping, better: Better) -> Spread:
    values = np.array(means, dtype=np.float64)
    return spread(values, grouping.labels, float(disparity(values, grouping.empty_groups)), better)


def _explain_undefined_fairness(groups: tuple[GroupScore, ...], grouping: Grouping) -> str:
    if not any(group.n for group in groups):
        return f"no case has a group of {grouping.variable}"
    if not any(group.mean_dsc >= 0 and group.mean_norm_hd >= 0 for group in groups):
        return f"no case in a group of {grouping.variable} has both Dice and NormHD"
    return (
        f"the first group of {grouping.variable} ({groups[0].label}) has no scored case, so the "
        "number is undefined in the published scripts"
    )


@dataclass(frozen=True, slots=True)
class SegmentationCohort:
    """Results of one segmentation model under one profile.

    `reason` explains why `ranking_score` is nan. If cases have no usable prediction, performance,
    fairness and ranking score are the metrics for ranking (`rank_counted`), while groups and
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
    """Return the cohort metrics of a model for existing groupings."""
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
    """The metrics by which a model is ranked; `lowest` is set if they are bounds.

    `bootstrap` resamples all these metrics, or is None if there is nothing to rank.
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
    """Return the metrics by which a model is ranked, from the metrics of its scored cases.

    `groupings` are groups of the counted cases. All metrics are computed from one completion of the
    free cases (`complete_cases`), like the metrics of any scored cases. A rejected submission has
    no such metrics.
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
    """Return undefined metrics for a rejected submission.

    Only the ranking score states the full reason, which names each case.
    """
    nothing, why = float("nan"), "undefined, like the ranking score"
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
    """Return the bootstrap of all metrics of a model.

    The names are mean_dsc, mean_norm_hd, performance and, with groupings, fairness_VARIABLE for
    each variable, fairness, ranking_score, and disparity_METRIC_VARIABLE. Cases are resampled, and
    every number is recomputed in each resample. Each number is a function of sums over the cases,
    and the sums of all resamples are one matrix product.
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

    Unusable cases get the values that minimise the ranking score. The score of a rejected
    submission is nan. Without groups, the ranking score is the performance.
    """
    if cases.rejected or not cases.n:
        return np.full(len(weights), np.nan)
    if cases.has_free:
        lowest = lowest_numbers(cases, groupings)
        return lowest.at_weight(weights @ lowest.parts, weight_of_fairness)
    scores = SegmentationScores(cases.case_ids, cases.dsc, cases.norm_hd)
    sums = weights @ _collect_parts(scores, groupings)
    # The columns are mean Dice, mean NormHD, performance, each variable, fairness and ranking
    # score; without groups, performance is the last column.
    place = 4 + len(groupings) if groupings else 2
    return _compute_numbers(sums, groupings, weight_of_fairness)[:, place]


def _collect_parts(
    scores: SegmentationScores, groupings: Sequence[Grouping]
) -> NDArray[np.float64]:
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
