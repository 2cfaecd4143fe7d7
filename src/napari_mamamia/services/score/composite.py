"""Rank several models in resamples of their cases, to show the stability of the ranks."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import RankMethod
from napari_mamamia.core.cohort import Cohort
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.scoring.case.profiles import UnusableRules, profile_named
from napari_mamamia.scoring.classifier.response_ranking import (
    NamedPredictions,
    ResponseRanking,
    rank_responses,
)
from napari_mamamia.scoring.cohort.group_rules import rules_of
from napari_mamamia.scoring.cohort.groups import Grouping, group_cases
from napari_mamamia.scoring.cohort.policy import CountedCases, count_cases
from napari_mamamia.scoring.cohort.results import ModelScores
from napari_mamamia.scoring.cohort.segmentation_cohort import ranking_scores_of_weights
from napari_mamamia.scoring.ranking.draws import seeded_weights
from napari_mamamia.scoring.ranking.methods import Composite, Weights, rank_scores
from napari_mamamia.scoring.ranking.ranking import MethodRanking
from napari_mamamia.scoring.ranking.stability import stability_of
from napari_mamamia.scoring.report.content import RankedModels
from napari_mamamia.services.score.clinical_table import matched

_ROUNDING: Final = 1e-9
_NAMED: Final = 3
_MOST_CASES: Final = 20_000
"""Maximum number of cases for ranking in resamples; with more cases, ranks hardly change."""


def count_model(model: ModelScores) -> CountedCases:
    """Return the counted cases of a model; raise `FormatError` if it has no mask scores."""
    if model.segmentation is None:
        raise FormatError(
            f"expected scores of masks for {model.name}, found none: score its masks again"
        )
    return model.segmentation.counted


def make_composite(
    models: Sequence[ModelScores], cases: Sequence[str], cohort: Cohort | None
) -> Composite:
    """Return the challenge's ranking score as a function of case weights.

    Unusable cases get the values that make the score lowest. Without a clinical table the score is
    the performance.
    """
    places = {case_id: index for index, case_id in enumerate(cases)}
    parts = []
    for model in models:
        counted = count_model(model)
        rules = rules_of(model.profile)
        weight = rules.weight_of_fairness if cohort is not None else 0.0
        groupings: tuple[Grouping, ...] = ()
        if cohort is not None:
            people = matched(counted.case_ids, cohort)
            groupings = group_cases(counted.case_ids, people, rules)
        columns = np.array(
            [places[case_identifier] for case_identifier in counted.case_ids], dtype=np.intp
        )
        parts.append((columns, counted, groupings, weight))

    def score(weights: Weights) -> NDArray[np.float64]:
        by_model = [
            ranking_scores_of_weights(counted, groupings, weight, weights[:, columns])
            for columns, counted, groupings, weight in parts
        ]
        return np.stack(by_model, axis=1)

    return score


def guarded_score(model: ModelScores, cohort: Cohort | None) -> float:
    """Return a model's ranking score with the least favourable values for empty predictions.

    A challenge shows this score next to the official one. If a profile assigns a value to an empty
    prediction, emptying predictions of the best group would narrow the gaps. The result is NaN if
    there is no such case.
    """
    profile = profile_named(model.profile)
    if not profile.unusable.empty_is_value or count_model(model).rejected:
        return float("nan")
    counted = count_cases(model.rows, replace(profile, unusable=UnusableRules()))
    if not counted.has_free:
        return float("nan")
    rules = rules_of(model.profile)
    groupings: tuple[Grouping, ...] = ()
    if cohort is not None:
        groupings = group_cases(counted.case_ids, matched(counted.case_ids, cohort), rules)
    weight = rules.weight_of_fairness if groupings else 0.0
    everybody = np.ones((1, counted.n), dtype=np.int64)
    return float(ranking_scores_of_weights(counted, groupings, weight, everybody)[0])


def rank_models(models: Sequence[ModelScores], n_resamples: int, seed: int) -> RankedModels | None:
    """Return the stability of the models' ranks by the ranking score of their masks.

    The result is None without resamples, with fewer than two scored models, if their cases differ,
    or if the clinical rows behind their scores are missing.
    """
    scored = [
        model
        for model in models
        if model.segmentation and not np.isnan(model.segmentation.cohort.ranking_score)
    ]
    if len(scored) < 2 or not n_resamples:
        return None
    cases = count_model(scored[0]).case_ids
    if len(cases) > _MOST_CASES or any(
        set(count_model(model).case_ids) != set(cases) for model in scored
    ):
        return None
    composite = make_composite(scored, cases, scored[0].cohort)
    scores = np.array(
        [model.segmentation.cohort.ranking_score for model in scored if model.segmentation]
    )
    whole = composite(np.ones((1, len(cases)), dtype=np.int64))[0]
    # A case that might be left out makes the result a bound below the score.
    bounded = any(count_model(model).optional.any() for model in scored)
    if not bounded and not np.allclose(whole, scores, rtol=0, atol=_ROUNDING):
        return None  # differs from the score that the models are ranked by
    ranks = rank_scores(scores)
    drawn = []
    for weights in seeded_weights(len(cases), n_resamples, seed):
        report_progress(0, 1, "Ranking the models in resamples")
        drawn.append(composite(weights))
    draws = np.concatenate(drawn)
    method = MethodRanking(
        RankMethod.COMPOSITE, scores, ranks, stability_of(ranks, rank_scores(draws))
    )
    return RankedModels(tuple(model.name for model in scored), method, len(draws))


def rank_response_models(
    models: Sequence[ModelScores], n_resamples: int, seed: int
) -> ResponseRanking | None:
    """Return the ranking of response models, None if their cases differ."""
    named = [
        NamedPredictions(model.name, model.response.predictions)
        for model in models
        if model.response
    ]
    if len(named) < 2 or len({result.predictions.case_ids for result in named}) > 1:
        return None
    case_ids, cohort = named[0].predictions.case_ids, models[0].cohort
    if len(case_ids) > _MOST_CASES:
        return None
    rules = rules_of(models[0].profile)
    groupings = () if cohort is None else group_cases(case_ids, cohort, rules)
    return rank_responses(named, groupings, rules, n_resamples, seed)


def say_unequal_responses(models: Sequence[ModelScores]) -> str | None:
    """Explain why response models are not ranked; None if all predict the same cases.

    A model that leaves out hard cases has better numbers on the others.
    """
    answered = {
        model.name: set(model.response.predictions.case_ids) for model in models if model.response
    }
    every = set().union(*answered.values())
    lacking = {name: sorted(every - cases) for name, cases in answered.items() if cases != every}
    if not lacking:
        return None
    parts = []
    for name, case_ids in lacking.items():
        names = ", ".join(case_ids[:_NAMED]) + (", ..." if len(case_ids) > _NAMED else "")
        parts.append(f"{name} lacks {len(case_ids):,} of {len(every):,} ({names})")
    return (
        "No model: no rank is given, because the models predict different cases: "
        f"{'; '.join(parts)}. Each number is over a model's own cases."
    )
