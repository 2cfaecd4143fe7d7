"""Everything about one model in one step: numbers, intervals, tests and strata."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.cohort import Cohort
from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.scoring.auc import auc_interval
from napari_mamamia.scoring.bootstrap import Bootstrap, Interval, IntervalMethod
from napari_mamamia.scoring.chance import auc_against_chance
from napari_mamamia.scoring.comparison import NamedScores, compare_models
from napari_mamamia.scoring.discrimination import bootstrap_discrimination
from napari_mamamia.scoring.fairness import group_table
from napari_mamamia.scoring.group_rules import GroupRules
from napari_mamamia.scoring.groups import Grouping, group_cases
from napari_mamamia.scoring.performance import SegmentationScores
from napari_mamamia.scoring.permutation import (
    PermutationTest,
    permute_odds_groups,
    permute_segmentation_groups,
)
from napari_mamamia.scoring.ranking import ModelScore, ranks, sweep_weights
from napari_mamamia.scoring.response_cohort import bootstrap_response, score_response
from napari_mamamia.scoring.response_predictions import ResponsePredictions
from napari_mamamia.scoring.results import (
    ModelComparison,
    ModelScores,
    RankedModel,
    Resampling,
    ResponseResult,
    SegmentationResult,
    Stratum,
)
from napari_mamamia.scoring.segmentation_cohort import bootstrap_segmentation, score_segmentation
from napari_mamamia.scoring.strata import group_by_column, group_by_volume

__all__ = ["compare_results", "response_result", "segmentation_result"]

_STEPS: Final = 3
_FIRST_STRATA: Final = ("dataset", "tumour_subtype", "pcr")


def segmentation_result(
    scores: SegmentationScores,
    cohort: Cohort | None,
    rules: GroupRules,
    resampling: Resampling,
    volumes_mm3: NDArray[np.float64] | None = None,
) -> Job[SegmentationResult]:
    """Return a job for the numbers of a segmentation model, its intervals, tests and strata.

    Parameters
    ----------
    scores
        The cases to count; leave out those where both numbers are undefined, so that group sizes
        and resamples hold scored cases only.
    cohort
        The clinical table, its ids spelled as those of `scores`; None leaves fairness undefined.
    rules, resampling
        The profile's rules; the number of resamples and the seed.
    volumes_mm3
        Reference volumes (n,) in the order of the cases, for the strata by size; nan where unknown.
    """
    ids = scores.case_ids
    groupings = group_cases(ids, cohort, rules) if cohort and ids else ()
    found = score_segmentation(scores, cohort, rules)
    yield Progress(0, _STEPS, "Resampling cases")
    weight = found.weight_of_fairness
    intervals: tuple[Interval, ...] = ()
    if ids and resampling.n_resamples:
        n, seed = resampling.n_resamples, resampling.seed
        intervals = _all_intervals(bootstrap_segmentation(scores, groupings, weight, n, seed))
    yield Progress(1, _STEPS, "Permuting groups")
    tests: list[PermutationTest] = []
    for grouping in groupings:
        tests += permute_segmentation_groups(scores, (grouping,), seed=resampling.seed)
        yield Progress(2, _STEPS, f"Permuting groups of {grouping.variable}")
    strata = tuple(
        Stratum(g.variable, group_table(scores, g, rules.min_group_size), g.unassigned)
        for g in _strata(ids, cohort, volumes_mm3)
    )
    yield Progress(_STEPS, _STEPS, "Cohort's numbers are ready")
    return SegmentationResult(scores, found, groupings, intervals, tuple(tests), strata)


def response_result(
    predictions: ResponsePredictions,
    cohort: Cohort | None,
    rules: GroupRules,
    resampling: Resampling,
) -> ResponseResult:
    """Return the numbers of a response model, its intervals and tests.

    Where the challenge refuses the predictions, only AUC and average precision have intervals.
    """
    ids = predictions.case_ids
    groupings = group_cases(ids, cohort, rules) if cohort and ids else ()
    found = score_response(predictions, cohort, rules)
    scored = ~(np.isnan(predictions.label) | np.isnan(predictions.score))
    label, score = predictions.label[scored], predictions.score[scored]
    n, seed = resampling.n_resamples, resampling.seed
    intervals: tuple[Interval, ...] = ()
    if n and ids and not found.refused:
        weight = found.weight_of_fairness
        intervals += _all_intervals(
            bootstrap_response(predictions, groupings, rules, weight, n, seed)
        )
    if n and len(label):
        intervals += _all_intervals(bootstrap_discrimination(predictions, n, seed))
    return ResponseResult(
        predictions,
        found,
        groupings,
        intervals,
        permute_odds_groups(predictions, groupings, rules, seed=seed),
        auc_interval(label, score),
        auc_against_chance(label, score),
    )


def _all_intervals(resampled: Bootstrap) -> tuple[Interval, ...]:
    """Return the percentile, basic and BCa interval of each number, in turn."""
    return tuple(
        resampled.interval(name, method) for name in resampled.names for method in IntervalMethod
    )


def compare_results(models: Sequence[ModelScores]) -> ModelComparison:
    """Return the ranks, paired tests and weight sweep of segmentation models of one profile.

    Raises
    ------
    ValueError
        If there is no model, or one was not scored on segmentation or under another profile.
    """
    found = [model.segmentation for model in models if model.segmentation]
    if not found or len(found) < len(models) or len({model.profile for model in models}) > 1:
        names = ", ".join(f"{model.name} ({model.profile})" for model in models) or "none"
        raise ValueError(f"one or more models scored under one profile were expected, got {names}")
    named = [NamedScores(m.name, r.scores) for m, r in zip(models, found, strict=True)]
    parts = [
        ModelScore(m.name, r.cohort.performance.value, r.cohort.fairness.value)
        for m, r in zip(models, found, strict=True)
    ]
    return ModelComparison(
        models[0].profile,
        found[0].cohort.weight_of_fairness,
        _ranking(models, found),
        compare_models(named),
        sweep_weights(parts),
        _unequal_cases(named),
    )


def _ranking(
    models: Sequence[ModelScores], found: Sequence[SegmentationResult]
) -> tuple[RankedModel, ...]:
    cohorts = [result.cohort for result in found]
    by_score = ranks(np.array([cohort.ranking_score for cohort in cohorts]))
    by_performance = ranks(np.array([cohort.performance.value for cohort in cohorts]))
    return tuple(
        RankedModel(
            model.name,
            model.n_scored,
            cohort.performance.value,
            cohort.fairness.value,
            cohort.ranking_score,
            float(by_score[place]),
            float(by_performance[place]),
            cohort.reason,
        )
        for place, (model, cohort) in enumerate(zip(models, cohorts, strict=True))
    )


def _unequal_cases(models: Sequence[NamedScores]) -> tuple[str, ...]:
    scored = [set(model.scores.case_ids) for model in models]
    common = set.intersection(*scored)
    if all(ids == common for ids in scored):
        return ()
    sizes = ", ".join(f"{m.name} {len(s)}" for m, s in zip(models, scored, strict=True))
    return (
        f"the models were scored on different cases ({sizes}; {len(common)} in common): each "
        "model's own numbers are over its own cases, the paired tests over those of both",
    )


def _strata(
    ids: Sequence[str], cohort: Cohort | None, volumes_mm3: NDArray[np.float64] | None
) -> list[Grouping]:
    """Return the groups by size and by each column that makes groups of two cases or more."""
    found = []
    if volumes_mm3 is not None and not np.isnan(volumes_mm3).all():
        found.append(group_by_volume(ids, volumes_mm3))
    if cohort is None or not ids:
        return found
    further = dict.fromkeys(name for record in cohort.records for name in record.other)
    for column in (*_FIRST_STRATA, *further):
        try:
            grouping = group_by_column(ids, cohort, column)
        except ValueError:
            continue  # an empty column, or one of numbers and names: no groups to report
        if 1 < len(grouping.labels) <= grouping.sizes.sum() / 2:
            found.append(grouping)
    return found
