"""Sentences about compared models: the leader, how certain its lead is, what may change it."""

from collections.abc import Sequence

import numpy as np

from napari_mamamia.scoring.classifier.response_ranking import ResponseRanking
from napari_mamamia.scoring.cohort.ranking import ModelScore, sweep_weights
from napari_mamamia.scoring.cohort.results import (
    ModelComparison,
    ModelScores,
    RankedModel,
    ResponseResult,
    n_text,
)
from napari_mamamia.scoring.report.certainty import describe_stability, judge_certainty
from napari_mamamia.scoring.report.content import RankedModels
from napari_mamamia.scoring.report.models import say_weights
from napari_mamamia.scoring.report.text import Answer, number, p_said, range_text


def answer_comparison(
    comparison: ModelComparison, ranks: RankedModels | None
) -> tuple[Answer, ...]:
    """Return the leading segmentation model, how certain its lead is, and what could change it.

    Parameters
    ----------
    comparison
        The comparison of the models.
    ranks
        The ranks of the models in resamples, or None.
    """
    ordered = sorted(
        (one for one in comparison.ranking if one.rank == one.rank), key=lambda one: one.rank
    )
    if not ordered:
        return (Answer("Who leads", (_say_unranked(comparison),)),)
    leaders = [model for model in ordered if model.rank == ordered[0].rank]
    names = ", ".join(leader.name for leader in leaders)
    verb = "leads" if len(leaders) == 1 else "share the first rank"
    first = leaders[0]
    who = (
        f"{names} {verb}: ranking score {number(first.ranking_score)} (performance "
        f"{number(first.performance)}, fairness {number(first.fairness)}; n {n_text(first)})."
    )
    answers = [Answer("Who leads", (who,))]
    sure = [*_say_ranks(ranks, leaders), *_say_test(comparison, ordered)]
    answers += [Answer("How certain", tuple(sure))] if sure else []
    changes = [text for text in (say_weights(comparison.sweep, comparison.weight_of_fairness),)
               if text and len(ordered) > 1]  # fmt: skip
    by_performance = [model.name for model in ordered if model.rank_by_performance == 1]
    if by_performance and by_performance != [leader.name for leader in leaders]:
        changes.append(f"Order by performance alone: {', '.join(by_performance)}.")
    return (*answers, *((Answer("What would change the lead", tuple(changes)),) if changes else ()))


def _say_unranked(comparison: ModelComparison) -> str:
    best = [model for model in comparison.ranking if model.rank_by_performance == 1]
    reasons = list(dict.fromkeys(model.reason for model in comparison.ranking if model.reason))
    why = f" ({reasons[0]})" if reasons else ""
    if not best:
        return f"No model has a ranked number{why}."
    names = ", ".join(model.name for model in best)
    return (
        f"No model has a ranking score{why}. Best performance: {names}, "
        f"{number(best[0].performance)}."
    )


def _say_ranks(ranks: RankedModels | None, leaders: Sequence[RankedModel]) -> list[str]:
    if ranks is None or len(leaders) > 1 or len(ranks.names) < 2:
        return []
    text = describe_stability(ranks.names, ranks.method, ranks.n_draws)
    return [f"{judge_certainty(ranks.method, leaders[0].n)} {text}."] if text else []


def _say_test(comparison: ModelComparison, ordered: Sequence[RankedModel]) -> list[str]:
    if len(ordered) < 2:
        return []
    pair = {ordered[0].name, ordered[1].name}
    test = next(
        (test for test in comparison.tests
         if test.metric == "dsc" and {test.model_a, test.model_b} == pair), None,
    )  # fmt: skip
    if test is None or np.isnan(test.mean_difference):
        return []
    sign = 1 if test.model_a == ordered[0].name else -1
    low, high = (test.low, test.high) if sign > 0 else (-test.high, -test.low)
    text = (
        f"Dice of {ordered[0].name} minus {ordered[1].name}: {number(sign * test.mean_difference)} "
        f"({range_text(low, high)})"
    )
    p_value = test.p_wilcoxon_holm
    return [f"{text}, {p_said(p_value)} (Wilcoxon, Holm)." if p_value == p_value else f"{text}."]


def answer_weights(models: Sequence[tuple[str, ModelScores]], weight: float) -> tuple[str, ...]:
    """Return the fairness weights at which another segmentation model would lead."""
    inputs = []
    for name, model in models:
        numbers = model.segmentation
        if numbers is None:
            continue
        cohort = numbers.cohort
        performance, fairness = float(cohort.performance.value), float(cohort.fairness.value)
        inputs.append(ModelScore(name, performance, fairness, lowest=numbers.lowest))
    return _say_sweep(inputs, weight)


def _say_sweep(inputs: Sequence[ModelScore], weight: float) -> tuple[str, ...]:
    ranked = [input_ for input_ in inputs if not np.isnan(input_.ranking_score(weight))]
    if len(ranked) < 2:
        return ()
    sweep = sweep_weights(ranked)
    text = say_weights(sweep, weight)
    return (text,) if text else ()


def answer_responses(
    ranking: ResponseRanking, results: Sequence[tuple[str, ResponseResult]]
) -> tuple[Answer, ...]:
    """Return the leading response model, how certain its lead is, and what could change it.

    Parameters
    ----------
    ranking
        The ranking of the models.
    results
        The metrics of each model, by name.
    """
    names, ranks = ranking.names, ranking.method.ranks
    leaders = [names[index] for index in np.flatnonzero(ranks == ranks.min()).tolist()]
    score = float(ranking.method.scores[int(np.argmin(ranks))])
    verb = "leads" if len(leaders) == 1 else "share the first rank"
    who = (
        f"{', '.join(leaders)} {verb}: ranking score {number(score)} on {ranking.n_cases:,} cases."
    )
    answers = [Answer("Leading response model", (who,))]
    sure = [*_say_stability(ranking, leaders), *_say_groups(ranking), *_say_aucs(ranking)]
    answers += [Answer("How certain", tuple(sure))] if sure else []
    weight = results[0][1].cohort.weight_of_fairness
    inputs = [
        ModelScore(name, float(result.cohort.balanced_accuracy), float(result.cohort.fairness))
        for name, result in results
        if name in names
    ]
    changes = _say_sweep(inputs, weight)
    return (*answers, *((Answer("What would change the lead", changes),) if changes else ()))


def _say_stability(ranking: ResponseRanking, leaders: Sequence[str]) -> list[str]:
    stability = describe_stability(ranking.names, ranking.method, ranking.n_draws)
    if not stability or len(leaders) > 1 or len(ranking.names) < 2:
        return []
    order = np.argsort(ranking.method.ranks, kind="stable")
    rival = ranking.names[int(order[1])]
    text = f"{judge_certainty(ranking.method, ranking.n_cases)} {stability}."
    factor = ranking.factor(leaders[0], rival)
    if factor is not None:
        text += f" K of {factor.name}: {factor.text}."
    return [text]


def _say_groups(ranking: ResponseRanking) -> list[str]:
    texts = []
    for group in ranking.groups:
        others = [name for name in group.tied if name != group.best]
        leaders = ", ".join(others[:3]) + (
            f" and {len(others) - 3} more" if len(others) > 3 else ""
        )
        verdict = f"tied with {leaders}" if others else "robustly first"
        texts.append(f"{group.rule.value}: {group.best} is {verdict}")
    return [f"By Bayes factor: {'; '.join(texts)}."] if texts else []


def _say_aucs(ranking: ResponseRanking) -> list[str]:
    aucs = ranking.aucs
    if aucs is None or not aucs.pairs:
        return []
    order = sorted(aucs.models, key=lambda model: (np.isnan(model.auc), -model.auc))
    first, second = order[0].name, order[1].name
    pair = next(pair for pair in aucs.pairs if {pair.model_a, pair.model_b} == {first, second})
    if np.isnan(pair.delong.p_value):
        return [f"AUC: {first} {number(order[0].auc)}, {second} {number(order[1].auc)}."]
    return [
        f"AUC: {first} {number(order[0].auc)}, {second} {number(order[1].auc)}, DeLong "
        f"{p_said(pair.delong.p_value)} (by Holm over all pairs {p_said(pair.p_holm)})."
    ]
