"""Ranking score, its variants, sweeps and ranks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_mamamia.scoring.cohort.ranking import (
    Adaptive,
    Evidence,
    Gated,
    ModelScore,
    WeightedMean,
    ranking_score,
    ranks,
    sweep_weights,
)

NAN = float("nan")
GOOD = ModelScore("good", 0.8, 0.6, performance_low=0.75)
EVEN = ModelScore("even", 0.5, 0.95, performance_low=0.45)


def test_ranking_score_weighs_both_parts():
    assert ranking_score(0.8, 0.6) == pytest.approx(0.7)
    assert ranking_score(0.8, 0.6, weight=0.25) == pytest.approx(0.75)


def test_the_ends_are_one_part_alone_even_where_the_other_is_undefined():
    assert ranking_score(0.8, NAN, weight=0) == 0.8
    assert ranking_score(NAN, 0.6, weight=1) == 0.6
    assert np.isnan(ranking_score(0.8, NAN, weight=0.5))


@pytest.mark.parametrize("weight", [-0.1, 1.1, NAN])
def test_a_weight_outside_0_to_1_is_refused(weight):
    with pytest.raises(ValueError, match="fairness weight"):
        ranking_score(0.8, 0.6, weight)


def test_equal_scores_share_the_better_rank_and_nan_has_none():
    found = ranks(np.array([0.7, 0.9, NAN, 0.7, 0.1]))
    assert found[[0, 1, 3, 4]].tolist() == [2, 1, 2, 4]
    assert np.isnan(found[2])


def test_scores_that_differ_by_rounding_share_a_rank():
    assert ranks(np.array([0.1 + 0.2, 0.3])).tolist() == [1, 1]


def test_the_sweep_goes_from_performance_only_to_fairness_only():
    found = sweep_weights((GOOD, EVEN), n_weights=5)
    assert found.weights.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert found.ends == ("performance only", "fairness only")
    assert found.scores[:, 0].tolist() == [0.8, 0.5]
    assert found.scores[:, -1].tolist() == [0.6, 0.95]
    # they cross where 0.8 - 0.2 w = 0.5 + 0.45 w, at w = 0.46
    assert found.ranks.tolist() == [[1, 1, 2, 2, 2], [2, 2, 1, 1, 1]]


def test_a_sweep_of_no_models_is_empty_and_one_weight_is_refused():
    assert sweep_weights(()).scores.shape == (0, 101)
    with pytest.raises(ValueError, match="2 weights"):
        sweep_weights((GOOD,), n_weights=1)


def test_fairness_of_an_uninformative_model_does_not_count_behind_the_gate():
    gate = Gated(threshold=0.5)
    assert (gate.is_open(GOOD), gate.is_open(EVEN)) == (True, False)
    assert gate.score(GOOD, 0.5) == pytest.approx(0.7)
    assert gate.score(EVEN, 0.5) == pytest.approx(0.25)
    assert WeightedMean().score(EVEN, 0.5) > WeightedMean().score(GOOD, 0.5)
    assert gate.score(EVEN, 0.5) < gate.score(GOOD, 0.5)


def test_a_gate_may_ask_for_the_lower_bound_of_the_interval():
    gate = Gated(threshold=0.78, evidence=Evidence.LOWER_BOUND)
    assert not gate.is_open(GOOD)
    assert Gated(threshold=0.7, evidence=Evidence.LOWER_BOUND).is_open(GOOD)
    assert not Gated(threshold=0.0, evidence=Evidence.LOWER_BOUND).is_open(ModelScore("m", 1, 1))


def test_adaptive_weight_rises_with_performance():
    adaptive = Adaptive(start=0.5, full=0.9)
    assert adaptive.weight(EVEN, 0.5) == 0
    assert adaptive.weight(GOOD, 0.5) == pytest.approx(0.5 * 0.75)
    assert adaptive.score(EVEN, 0.5) == 0.5
    assert adaptive.score(GOOD, 0.5) == pytest.approx(0.8 * 0.625 + 0.6 * 0.375)
    assert np.isnan(adaptive.score(ModelScore("m", NAN, 0.5), 0.5))


def test_adaptive_weighting_refuses_a_falling_ramp():
    with pytest.raises(ValueError, match="start to be below full"):
        Adaptive(start=0.9, full=0.5)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=12))
def test_the_ranks_at_both_ends_are_those_of_each_part_alone(pairs):
    models = [ModelScore(str(i), *pair) for i, pair in enumerate(pairs)]
    found = sweep_weights(models, n_weights=3)
    for column, place in ((0, 0), (1, -1)):
        values = np.round([pair[column] for pair in pairs], 10)
        expected = [1 + sum(other > value for other in values) for value in values]
        assert found.ranks[:, place].tolist() == expected
