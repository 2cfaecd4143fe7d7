"""Responses ranked: stability, Bayes factors with rule and direction, AUCs, all on one draw."""

import numpy as np
import pytest

from napari_mamamia.scoring.classifier.response_ranking import (
    NamedPredictions,
    find_groups,
    rank_responses,
)
from napari_mamamia.scoring.classifier.scores import BayesRule
from napari_mamamia.scoring.cohort.groups import Grouping, rules_of
from napari_mamamia.scoring.cohort.response_cohort import ResponsePredictions
from napari_mamamia.scoring.statistics.resampling import draw_cases

N = 40
LABEL = np.arange(N) % 3 == 0
GROUPS = (Grouping("age", ("young", "old"), np.arange(N) % 2),)
RULES = rules_of("clinical")


def model(name, wrong, score=None):
    predicted = np.where(np.isin(np.arange(N), wrong), ~LABEL, LABEL).astype(float)
    rng = np.random.default_rng(len(wrong))
    given = np.clip(predicted * 0.6 + 0.2 + rng.normal(0, 0.1, N), 0, 1)
    score = given if score is None else score
    ids = tuple(f"C{at:02d}" for at in range(N))
    return NamedPredictions(name, ResponsePredictions(ids, LABEL.astype(float), predicted, score))


def balanced(one, drawn):
    """Return the ranking score of drawn cases, group by group, as the paper says it."""
    label, predicted = LABEL[drawn], one.predictions.predicted[drawn] == 1
    gap = 0.0
    for hits in (label, ~label):
        rates = [predicted[hits & (drawn % 2 == k)].mean() for k in (0, 1)]
        gap += abs(rates[0] - rates[1])
    performance = (predicted[label].mean() + (~predicted[~label]).mean()) / 2
    return 0.5 * performance + 0.5 * max(0.0, 1 - gap)


def test_scores_ranks_and_factors_agree_with_a_slow_count_over_the_same_resamples():
    models = [model("A", [1, 2, 4]), model("B", [1, 3, 5, 6, 9, 12]), model("C", [0, 3, 6, 7])]
    ranking = rank_responses(models, GROUPS, RULES, 60, seed=5)
    drawn = np.concatenate(list(draw_cases(N, 60, 5)))
    slow = np.array([[balanced(one, row) for one in models] for row in drawn])
    whole = [balanced(one, np.arange(N)) for one in models]
    assert ranking.method.scores == pytest.approx(whole)
    order = np.argsort(np.argsort([-score for score in whole])) + 1
    assert ranking.method.ranks.tolist() == order.tolist()
    above = int((slow[:, 0] > slow[:, 1]).sum())
    factor = ranking.factor("A", "B")
    assert factor.k == (above / (60 - above) if above < 60 else np.inf)
    first = (np.round(slow, 10) == np.round(slow, 10).max(axis=1, keepdims=True)).mean(axis=0)
    assert ranking.method.stability.first == pytest.approx(first)
    assert ranking.n_cases == N


def test_the_direction_of_a_factor_is_that_of_its_claim_and_ties_count_against_it():
    models = [model("A", []), model("twin", [])]
    ranking = rank_responses(models, GROUPS, RULES, 20, seed=1)
    assert ranking.factor("A", "twin").k == ranking.factor("twin", "A").k == 0
    assert ranking.factor("A", "nobody") is None
    assert [group.tied for group in ranking.groups] == [("A", "twin")] * 3


def test_the_rules_draw_the_line_at_their_own_factor():
    # best over other: 30 of 40 draws, K = 3: no rule; 38 of 40, K = 19: two rules; 40 of 40: all
    draws = np.zeros((40, 4))
    draws[:, 0] = 1.0
    draws[:10, 1] = draws[:2, 2] = 2.0
    groups = find_groups(("best", "k3", "k19", "never"), np.array([1.0, 0.9, 0.8, 0.7]), draws)
    assert {one.rule: one.tied for one in groups} == {
        BayesRule.OVER_3: ("best", "k3"),
        BayesRule.AT_LEAST_19: ("best", "k3"),
        BayesRule.AT_LEAST_39: ("best", "k3", "k19"),
    }


def test_a_constant_answer_has_no_rank_and_a_missing_probability_no_auc():
    constant = NamedPredictions(
        "constant",
        ResponsePredictions(
            model("x", []).predictions.case_ids, LABEL.astype(float), np.ones(N), np.full(N, 0.9)
        ),
    )
    silent = model("silent", [1, 2], np.full(N, np.nan))
    ranking = rank_responses([constant, silent, model("A", [1, 3, 7])], GROUPS, RULES, 10, seed=1)
    assert set(ranking.names) == {"silent", "A"}
    assert [one.name for one in ranking.aucs.models] == ["constant", "A"]
    assert ranking.notes == ("no AUC, because probabilities of cases are missing: silent",)
    assert rank_responses([constant], GROUPS, RULES, 10, seed=1) is None


def test_one_team_and_no_resamples_make_a_ranking():
    ranking = rank_responses([model("A", [1])], GROUPS, RULES, 0, seed=1)
    assert ranking.method.ranks.tolist() == [1.0]
    assert ranking.method.stability is None
    assert ranking.factors == ranking.groups == ()
