"""Ranking of response (pCR) models with stability, Bayes factors and AUCs by DeLong's method."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import RankMethod
from napari_mamamia.scoring.classifier.scores import (
    BayesFactor,
    BayesRule,
    ClassifierCases,
    ClassifierResult,
    ClassifierRules,
    bayes_factor,
    bayes_factors,
    score_classifiers,
)
from napari_mamamia.scoring.cohort.groups import Grouping, GroupRules
from napari_mamamia.scoring.cohort.response_cohort import (
    ResponsePredictions,
    bootstrap_response,
    score_response,
)
from napari_mamamia.scoring.ranking.methods import rank_scores
from napari_mamamia.scoring.ranking.ranking import MethodRanking, stability_of

_SCORE: Final = "ranking_score"
_WITHOUT_GROUPS: Final = "balanced_accuracy"


@dataclass(frozen=True, slots=True, eq=False)
class NamedPredictions:
    """A model's name and its predictions."""

    name: str
    predictions: ResponsePredictions


@dataclass(frozen=True, slots=True)
class RobustGroup:
    """The leading group under a rule: the best model and all models it does not robustly beat."""

    rule: BayesRule
    best: str
    tied: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ResponseRanking:
    """The k models that have a ranking score, ranked on the same `n_cases` cases.

    `factors` are the Bayes factors of that score for each ordered pair of models; `groups` are the
    leading groups under each rule. `aucs` compares the models that have a probability for every
    labelled case, or is None if there is no such model.
    """

    names: tuple[str, ...]
    n_cases: int
    n_draws: int
    method: MethodRanking
    factors: tuple[BayesFactor, ...]
    groups: tuple[RobustGroup, ...]
    aucs: ClassifierResult | None
    notes: tuple[str, ...] = ()

    def factor(self, better: str, other: str) -> BayesFactor | None:
        """Return the Bayes factor of `better` over `other`, or None if there are no resamples."""
        claims = (
            factor for factor in self.factors if (factor.better, factor.other) == (better, other)
        )
        return next(claims, None)


def rank_responses(
    models: Sequence[NamedPredictions],
    groupings: Sequence[Grouping],
    rules: GroupRules,
    n_resamples: int,
    seed: int,
) -> ResponseRanking | None:
    """Return the ranking of models on the same cases, or None if no model has a score.

    The predictions must have the same order. Models whose predictions are rejected have no ranking
    score.

    Parameters
    ----------
    models
        The names and predictions of the models.
    groupings, rules
        The groups of the cases, and the rules for their numbers.
    n_resamples, seed
        The number of resamples, which the models share, and the seed. With 0 resamples, there is no
        stability and no factor.
    """
    weight = rules.weight_of_fairness if groupings else 0.0
    scored = [
        (model, score_response(model.predictions, groupings, rules, weight)) for model in models
    ]
    ranked = [
        (candidate, numbers) for candidate, numbers in scored if not np.isnan(numbers.ranking_score)
    ]
    if not ranked:
        return None
    names = tuple(candidate.name for candidate, _ in ranked)
    scores = np.array([numbers.ranking_score for _, numbers in ranked])
    ranks = rank_scores(scores)
    stable, draws = None, np.empty((0, len(names)))
    if n_resamples:
        draws = _draw_scores(
            [candidate for candidate, _ in ranked], groupings, rules, n_resamples, seed
        )
        stable = stability_of(ranks, rank_scores(draws))
    return ResponseRanking(
        names,
        ranked[0][1].n_scored,
        len(draws),
        MethodRanking(RankMethod.COMPOSITE, scores, ranks, stable),
        bayes_factors(draws, names) if len(draws) else (),
        find_groups(names, scores, draws) if len(draws) and len(names) > 1 else (),
        *_compare_aucs(models, n_resamples, seed),
    )


def _draw_scores(
    models: Sequence[NamedPredictions],
    groupings: Sequence[Grouping],
    rules: GroupRules,
    n_resamples: int,
    seed: int,
) -> NDArray[np.float64]:
    columns = []
    for model in models:
        weight = rules.weight_of_fairness
        drawn = bootstrap_response(model.predictions, groupings, rules, weight, n_resamples, seed)
        name = _SCORE if groupings else _WITHOUT_GROUPS
        columns.append(drawn.replicates[:, drawn.names.index(name)])
    return np.stack(columns, axis=1)


def find_groups(
    names: Sequence[str], scores: NDArray[np.float64], draws: NDArray[np.float64]
) -> tuple[RobustGroup, ...]:
    """Return each rule's leading group: the best model and all models it does not robustly beat.

    `draws` (B, k) are the scores in each resample. In a tie, the first model is the best.

    Parameters
    ----------
    names
        Names of the k models.
    scores
        Ranking scores, (k,).
    draws
        Ranking scores in each resample, (B, k).
    """
    best = int(np.argmax(scores))
    groups = []
    for rule in BayesRule:
        tied = [
            names[index]
            for index in range(len(names))
            if index == best or not rule.holds(bayes_factor(draws[:, best], draws[:, index]))
        ]
        groups.append(RobustGroup(rule, names[best], tuple(tied)))
    return tuple(groups)


def _compare_aucs(
    models: Sequence[NamedPredictions], n_resamples: int, seed: int
) -> tuple[ClassifierResult | None, tuple[str, ...]]:
    first = models[0].predictions
    has_label = ~np.isnan(first.label)
    able = [model for model in models if not np.isnan(model.predictions.score[has_label]).any()]
    without = [model.name for model in models if model not in able]
    notes = (
        (f"no AUC, because probabilities of cases are missing: {', '.join(without)}",)
        if without
        else ()
    )
    if not able or not has_label.any():
        return None, notes
    cases = ClassifierCases(
        tuple(case for case, is_known in zip(first.case_ids, has_label.tolist(), strict=True)
              if is_known),
        first.label[has_label],
        tuple(candidate.name for candidate in able),
        np.stack([candidate.predictions.score[has_label] for candidate in able]),
        (0,) * len(able),
    )  # fmt: skip
    return score_classifiers(cases, ClassifierRules(n_draws=n_resamples, seed=seed)), notes
