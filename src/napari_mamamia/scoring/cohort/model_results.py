"""Compute all metrics of one model in one step: scores, intervals, tests and strata."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.cohort import Cohort
from napari_mamamia.core.progress import report_progress
from napari_mamamia.scoring.case.profiles import profile_named
from napari_mamamia.scoring.cohort import groups, ranking, response_cohort, segmentation_cohort
from napari_mamamia.scoring.cohort.comparison import (
    NamedScores,
    PairedComparison,
    compare_models,
    compare_with_baseline,
)
from napari_mamamia.scoring.cohort.disparities import (
    MINIMUM_GROUP,
    counted_groups,
    is_of_groups,
    odds_uncertainty,
    of_scored_alone,
    permute_odds_groups,
    permute_segmentation_groups,
    segmentation_uncertainty,
    with_ranking_score,
)
from napari_mamamia.scoring.cohort.policy import (
    WITHOUT_REFERENCE,
    CountedCases,
    every_case,
)
from napari_mamamia.scoring.cohort.results import (
    ModelComparison,
    ModelScores,
    RankedModel,
    Resampling,
    ResponseResult,
    SegmentationResult,
    Stratum,
)
from napari_mamamia.scoring.statistics.auc import auc_interval
from napari_mamamia.scoring.statistics.bootstrap import (
    Bootstrap,
    Interval,
    IntervalMethod,
    bootstrap_sums,
    interval_named,
)
from napari_mamamia.scoring.statistics.performance import SegmentationScores, ratio

_SHARE: Final = (0.0, 1.0)
_BOUNDS: Final = {
    "mean_dsc": _SHARE,
    "balanced_accuracy": _SHARE,
    "auc": _SHARE,
    "average_precision": _SHARE,
    "mean_norm_hd": (0.0, np.inf),
    "mean_hausdorff95_mm": (0.0, np.inf),
    "performance": (-np.inf, 1.0),
}
"""The possible range of each resampled metric.

Group metrics have only percentile intervals, which stay inside the range.
"""

_FIRST_STRATA: Final = ("dataset", "tumour_subtype", "pcr")


@dataclass(frozen=True, slots=True, eq=False)
class CaseSizes:
    """Sizes, HD95 and tags of cases, in the order of the scores' cases.

    The record contains reference volumes (n,) in mm3, longest diameters (n,) and HD95 (n,) in mm
    (nan if unknown), and the readers' tags of each case. No clinical table contains these values.
    """

    volumes_mm3: NDArray[np.float64]
    diameters_mm: NDArray[np.float64]
    hausdorff95_mm: NDArray[np.float64]
    tags: tuple[tuple[str, ...], ...]


def segmentation_result(
    scores: SegmentationScores,
    cohort: Cohort | None,
    rules: groups.GroupRules,
    resampling: Resampling,
    sizes: CaseSizes | None = None,
    counted: CountedCases | None = None,
    minimum_group: int = MINIMUM_GROUP,
) -> SegmentationResult:
    """Return the metrics of a segmentation model, its intervals, tests and strata.

    Parameters
    ----------
    scores
        The cases to count. Cases with both metrics undefined should be left out, so that group
        sizes and resamples include only scored cases.
    cohort
        The clinical table, with ids spelled as in `scores`; without it, fairness is undefined.
    rules, resampling
        The rules of the profile, and the number of resamples with the seed.
    sizes
        Sizes, HD95 and tags of each case, for the mean HD95 and strata by size and by tag.
    counted
        The cases that count, including those without a usable prediction; by default the cases of
        `scores`. Performance, fairness, ranking score and their intervals are computed from these
        cases.
    minimum_group
        Groups with fewer cases are left out of tests and of intervals of gaps, but not of the
        score.
    """
    ids = scores.case_ids
    groupings = (groups.group_cases_job(ids, cohort, rules)) if cohort and ids else ()
    report_progress(0, 1, "Scoring the groups")
    measured = segmentation_cohort.score_groups(scores, groupings, rules)
    report_progress(0, 1, "Scoring the groups")
    counted = counted or every_case(scores)
    ranked = _rank_cases(scores, measured, groupings, counted, cohort, rules)
    report_progress(0, 1, "Scoring the groups")
    intervals: tuple[Interval, ...] = ()
    lowest_performance = None
    if ranked.bootstrap is not None and resampling.n_resamples:
        job = ranked.bootstrap(resampling.n_resamples, resampling.seed)
        intervals = _all_intervals(job)
        if ranked.lowest is not None:
            of_worst = segmentation_cohort.bootstrap_segmentation(
                ranked.lowest.worst, (), 0.0, resampling.n_resamples, resampling.seed
            )
            lowest_performance = of_worst.interval("performance", bounds=_BOUNDS["performance"])
    distances = np.zeros(0) if sizes is None else sizes.hausdorff95_mm
    distances = distances[~np.isnan(distances)]
    if distances.size and resampling.n_resamples:
        intervals += _all_intervals(_bootstrap_distance(distances, resampling))
    limit = profile_named(rules.profile).norm_hd_limit
    uncertainty = segmentation_uncertainty(
        scores, groupings, measured.fairness, minimum_group, limit
    )
    if ranked.cohort is measured:
        performance = interval_named(intervals, "performance")
        uncertainty = with_ranking_score(uncertainty, performance, measured.weight_of_fairness)
    else:
        uncertainty = of_scored_alone(uncertainty, len(counted.unusable))
    tests = permute_segmentation_groups(
        scores,
        [counted_groups(grouping, minimum_group) for grouping in groupings],
        seed=resampling.seed,
    )
    strata = _build_strata(ids, cohort, sizes)
    reported = []
    for grouping in strata:
        report_progress(0, 1, f"Groups of {grouping.variable}")
        table = segmentation_cohort.group_table(scores, grouping, rules.min_group_size)
        reported.append(Stratum(grouping, table))
    report_progress(1, 1, "The numbers of the cohort are ready")
    return SegmentationResult(
        scores,
        ranked.cohort,
        groupings,
        intervals,
        uncertainty,
        tests,
        tuple(reported),
        counted,
        measured,
        ranked.lowest,
        lowest_performance,
        float(distances.mean()) if distances.size else np.nan,
        distances.size,
    )


def _bootstrap_distance(distances_mm: NDArray[np.float64], resampling: Resampling) -> Bootstrap:
    """Resample the mean HD95 over the cases (n,) that have an HD95."""
    parts = np.stack([distances_mm, np.ones_like(distances_mm)], axis=1)
    return bootstrap_sums(
        ("mean_hausdorff95_mm",),
        parts,
        lambda sums: ratio(sums[:, :1], sums[:, 1:]),
        resampling.n_resamples,
        resampling.seed,
    )


def _rank_cases(
    scores: SegmentationScores,
    measured: segmentation_cohort.SegmentationCohort,
    groupings: Sequence[groups.Grouping],
    counted: CountedCases,
    cohort: Cohort | None,
    rules: groups.GroupRules,
) -> segmentation_cohort.CountedNumbers:
    ids, weight = scores.case_ids, measured.weight_of_fairness
    if not counted.unusable and counted.case_ids == ids:
        job = partial(segmentation_cohort.bootstrap_segmentation, scores, groupings, weight)
        return segmentation_cohort.CountedNumbers(measured, None, job if ids else None)
    own_groupings = groupings
    if counted.case_ids != ids:
        own_groupings = ()
        if cohort is not None and counted.n:
            own_groupings = groups.group_cases_job(counted.case_ids, cohort, rules)
    if counted.n and cohort is not None and not groupings:
        # No case was scored, so no variable has measured groups.
        empty = SegmentationScores((), np.zeros(0), np.zeros(0))
        nobody = groups.group_cases_job((), cohort, rules)
        measured = segmentation_cohort.score_groups(empty, nobody, rules)
    return segmentation_cohort.rank_counted(measured, counted, own_groupings, rules)


def response_result(
    predictions: response_cohort.ResponsePredictions,
    cohort: Cohort | None,
    rules: groups.GroupRules,
    resampling: Resampling,
    minimum_group: int = MINIMUM_GROUP,
) -> ResponseResult:
    """Return the metrics of a response model, its intervals and tests.

    If the challenge rejects the predictions, only AUC and average precision have intervals.
    """
    ids = predictions.case_ids
    groupings = (groups.group_cases_job(ids, cohort, rules)) if cohort and ids else ()
    numbers = response_cohort.score_response(predictions, groupings, rules)
    scored = ~(np.isnan(predictions.label) | np.isnan(predictions.score))
    label, score = predictions.label[scored], predictions.score[scored]
    n, seed = resampling.n_resamples, resampling.seed
    intervals: tuple[Interval, ...] = ()
    weight = numbers.weight_of_fairness
    if n and ids and not numbers.refused:
        job = response_cohort.bootstrap_response(predictions, groupings, rules, weight, n, seed)
        intervals += _all_intervals(job)
    if n and len(label):
        intervals += _all_intervals(response_cohort.bootstrap_discrimination(predictions, n, seed))
    limit = rules.disparity_limit
    uncertainty = with_ranking_score(
        odds_uncertainty(predictions, groupings, numbers.odds, limit, minimum_group),
        interval_named(intervals, "balanced_accuracy"),
        weight,
    )
    counted = [counted_groups(grouping, minimum_group) for grouping in groupings]
    tests = permute_odds_groups(predictions, counted, rules, seed=seed)
    by_chance = response_cohort.auc_against_chance(label, score)
    delong = auc_interval(label, score)
    return ResponseResult(
        predictions, numbers, groupings, intervals, uncertainty, tests, delong, by_chance
    )


def _all_intervals(resampling: Bootstrap) -> tuple[Interval, ...]:
    intervals = []
    for name in resampling.names:
        report_progress(0, 1, f"Interval of {name.replace('_', ' ')}")
        methods = (IntervalMethod.PERCENTILE,) if is_of_groups(name) else tuple(IntervalMethod)
        bounds = _BOUNDS.get(name, (-np.inf, np.inf))
        is_range = is_of_groups(name)
        intervals += [
            resampling.interval(name, method, bounds=bounds, is_range=is_range)
            for method in methods
        ]
    return tuple(intervals)


def with_composites(model: ModelScores, choice: ranking.CompositeChoice) -> ModelScores:
    """Return a model with the requested variants of its ranking score.

    Raises
    ------
    ValueError
        If the requested baseline is another model.
    """
    result = model.segmentation or model.response
    if not choice.names or result is None:
        return model
    weight = result.cohort.weight_of_fairness
    composites = ranking.composite_results([scored_model(model)], choice, weight)
    return replace(model, composites=composites)


def compare_results(
    models: Sequence[ModelScores], choice: ranking.CompositeChoice = ranking.NO_COMPOSITES
) -> ModelComparison:
    """Return the ranks, paired tests and weight sweep of segmentation models under one profile.

    `choice` names a baseline and variants of the ranking score.

    Raises
    ------
    ValueError
        If there is no model, one was not scored on segmentation or under another profile, or
        no model has the baseline's name.
    """
    results = [model.segmentation for model in models if model.segmentation]
    if not results or len(results) < len(models) or len({model.profile for model in models}) > 1:
        names = ", ".join(f"{model.name} ({model.profile})" for model in models) or "none"
        raise ValueError(
            f"expected at least one model, all scored under one profile, but found {names}"
        )
    named = [NamedScores(m.name, r.scores) for m, r in zip(models, results, strict=True)]
    parts = [
        ranking.ModelScore(
            m.name, r.cohort.performance.value, r.cohort.fairness.value, lowest=r.lowest
        )
        for m, r in zip(models, results, strict=True)
    ]
    barred = _bar_ranks(models)
    weight = results[0].cohort.weight_of_fairness
    composites = ranking.composite_results(
        [scored_model(model) for model in models], choice, weight
    )
    sweep = ranking.sweep_weights(parts)
    if barred:
        sweep = replace(sweep, ranks=np.full(sweep.ranks.shape, np.nan))
        composites = tuple(_without_ranks(composite) for composite in composites)
    return ModelComparison(
        models[0].profile,
        weight,
        _rank_models(models, results, barred),
        compare_models(named),
        sweep,
        (*((barred,) if barred else ()), *_unequal_cases(named)),
        choice.baseline,
        _test_against_baseline(named, choice.baseline),
        composites,
    )


def _test_against_baseline(
    named: Sequence[NamedScores], baseline: str
) -> tuple[PairedComparison, ...]:
    if not baseline:
        return ()
    baseline_scores = next((scores for scores in named if scores.name == baseline), None)
    if baseline_scores is None:
        names = ", ".join(scores.name for scores in named)
        raise ValueError(
            f"expected the baseline to be one of {names}, but it is {baseline!r}: choose one of "
            "them"
        )
    return compare_with_baseline(
        [scores for scores in named if scores.name != baseline], baseline_scores
    )


def scored_model(model: ModelScores) -> ranking.ScoredModel:
    """Return a model's performance with its percentile interval, and its fairness.

    Both metrics are the lowest values to which unusable predictions can lead, so damaged cases can
    neither open a gate nor benefit from another fairness weight.
    """
    lowest = None
    if model.segmentation is not None:
        result, cohort = model.segmentation, model.segmentation.cohort
        interval = interval_named(result.intervals, "performance")
        performance, fairness = cohort.performance.value, cohort.fairness.value
        lowest = result.lowest
        if lowest is not None:
            interval = result.lowest_performance
            performance, fairness = lowest.at_weight(0.0), lowest.at_weight(1.0)
    elif model.response is not None:
        interval = interval_named(model.response.intervals, "balanced_accuracy")
        performance = model.response.cohort.balanced_accuracy
        fairness = model.response.cohort.fairness
    else:
        return ranking.ScoredModel(model.name, np.nan, np.nan)
    low, high = (interval.low, interval.high) if interval else (np.nan, np.nan)
    return ranking.ScoredModel(model.name, performance, fairness, low, high, lowest)


def _bar_ranks(models: Sequence[ModelScores]) -> str:
    parts = [
        {row.case_id for row in model.rows if row.status not in WITHOUT_REFERENCE}
        for model in models
    ]
    everybody = set.union(*parts)
    lacking = [
        f"{model.name} lacks {len(everybody - part)}"
        for model, part in zip(models, parts, strict=True)
        if part != everybody
    ]
    if lacking:
        return (
            "no ranks, because the models do not have a value or a rule for the same "
            f"{len(everybody)} cases ({', '.join(lacking)}); score all models with one list of "
            "cases"
        )
    left_out = [m.name for m in models if m.segmentation and m.segmentation.counted.left_out]
    if left_out:
        return f"no ranks, because cases are left out ({', '.join(left_out)})"
    return ""


def _without_ranks(composite: ranking.CompositeResult) -> ranking.CompositeResult:
    scores = tuple(replace(score, rank=float("nan")) for score in composite.scores)
    return replace(composite, scores=scores)


def _rank_models(
    models: Sequence[ModelScores], found: Sequence[SegmentationResult], barred: str
) -> tuple[RankedModel, ...]:
    cohorts = [result.cohort for result in found]
    by_score = ranking.ranks(np.array([cohort.ranking_score for cohort in cohorts]))
    by_performance = ranking.ranks(np.array([scored_model(model).performance for model in models]))
    if barred:
        by_score, by_performance = np.full((2, len(cohorts)), np.nan)
    return tuple(
        RankedModel(
            model.name,
            model.n_scored,
            cohort.performance.value,
            cohort.fairness.value,
            cohort.ranking_score,
            float(by_score[index]),
            float(by_performance[index]),
            cohort.reason or barred,
            result.counted.n,
            len(result.counted.unusable),
        )
        for index, (model, cohort, result) in enumerate(zip(models, cohorts, found, strict=True))
    )


def _unequal_cases(models: Sequence[NamedScores]) -> tuple[str, ...]:
    scored = [set(model.scores.case_ids) for model in models]
    common = set.intersection(*scored)
    if all(ids == common for ids in scored):
        return ()
    sizes = ", ".join(f"{m.name} {len(s)}" for m, s in zip(models, scored, strict=True))
    return (
        (
            f"the models were scored on different cases ({sizes}; {len(common)} in common): each "
            "model's numbers refer to its own cases, and the paired tests to the common cases"
        ),
    )


def _build_strata(
    ids: Sequence[str], cohort: Cohort | None, sizes: CaseSizes | None
) -> list[groups.Grouping]:
    groupings = _own_strata(ids, sizes) if sizes is not None else []
    if cohort is None or not ids:
        return groupings
    further = dict.fromkeys(name for record in cohort.records for name in record.other)
    for column in (*_FIRST_STRATA, *further):
        report_progress(0, 1, f"Groups of {column}")
        grouping = groups.group_by_column(ids, cohort, column)
        if grouping is not None and 1 < len(grouping.labels) <= grouping.sizes.sum() / 2:
            groupings.append(grouping)
    return groupings


def _own_strata(ids: Sequence[str], sizes: CaseSizes) -> list[groups.Grouping]:
    groupings = []
    if not np.isnan(sizes.volumes_mm3).all():
        groupings.append(groups.group_by_volume(ids, sizes.volumes_mm3))
    if not np.isnan(sizes.diameters_mm).all():
        groupings.append(groups.group_by_diameter(ids, sizes.diameters_mm))
    return [*groupings, *groups.group_by_tags(ids, sizes.tags)]
