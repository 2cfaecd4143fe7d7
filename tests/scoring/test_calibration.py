"""Brier score, reliability bins, ECE, and p-values against random classifiers."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_mamamia.scoring.cohort.response_cohort import (
    Significance,
    auc_against_chance,
    balanced_accuracy_against_chance,
)
from napari_mamamia.scoring.statistics.auc import auc
from napari_mamamia.scoring.statistics.calibration import calibration


def test_calibration_by_hand():
    # two bins: {0.1, 0.3} with rate 1/2, {0.6, 0.8} with rate 1
    found = calibration(np.array([0.0, 1, 1, 1]), np.array([0.1, 0.3, 0.6, 0.8]), n_bins=2)
    assert [(b.n, b.response_rate) for b in found.bins] == [(2, 0.5), (2, 1.0)]
    assert [b.mean_score for b in found.bins] == pytest.approx([0.2, 0.7])
    assert [b.low for b in found.bins] == pytest.approx([0.1, 0.45])
    assert found.ece == pytest.approx((2 * 0.3 + 2 * 0.3) / 4)
    assert found.brier == pytest.approx((0.01 + 0.49 + 0.16 + 0.04) / 4)


def test_a_score_on_the_edge_of_two_bins_is_in_the_lower_one():
    # 11 even scores: every second one is an edge of the 5 bins 0-0.2, 0.2-0.4, ... 0.8-1
    score = np.arange(11) / 10
    label = np.array([0.0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1])
    found = calibration(label, score, n_bins=5)
    assert [b.n for b in found.bins] == [3, 2, 2, 2, 2]
    assert [b.mean_score for b in found.bins] == pytest.approx([0.1, 0.35, 0.55, 0.75, 0.95])
    assert [b.response_rate for b in found.bins] == pytest.approx([1 / 3, 0.5, 0.5, 0.5, 0.5])
    # 3 (1/3 - 0.1) = 0.7, then 2 times 0.15, 0.05, 0.25 and 0.45
    assert found.ece == pytest.approx((0.7 + 0.3 + 0.1 + 0.5 + 0.9) / 11)


def test_tied_scores_share_a_bin():
    found = calibration(np.array([0.0, 1, 0, 1]), np.array([0.5, 0.5, 0.5, 0.9]), n_bins=10)
    assert [b.n for b in found.bins] == [3, 1]


def test_scores_that_are_all_alike_make_one_bin():
    found = calibration(np.array([0.0, 1, 1, 1]), np.full(4, 0.5))
    assert [(b.n, b.low, b.high) for b in found.bins] == [(4, 0.5, 0.5)]
    assert found.ece == 0.25


def test_calibration_without_cases_is_nan_without_bins():
    found = calibration(np.zeros(0), np.zeros(0))
    assert np.isnan([found.brier, found.ece]).all()
    assert found.bins == ()


def test_a_diagram_without_bins_is_refused():
    with pytest.raises(ValueError, match="at least 1 bin"):
        calibration(np.ones(1), np.ones(1), n_bins=0)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 20)), min_size=1), st.integers(1, 12))
def test_every_case_is_in_one_bin_between_its_edges(rows, n_bins):
    label = np.array([row[0] for row in rows], dtype=float)
    score = np.array([row[1] for row in rows]) / 20
    found = calibration(label, score, n_bins)
    assert sum(b.n for b in found.bins) == len(rows)
    assert len(found.bins) <= n_bins
    for b in found.bins:
        assert b.low - 1e-12 <= b.mean_score <= b.high + 1e-12
    assert 0 <= found.ece <= 1


def test_the_p_value_of_a_balanced_accuracy_is_near_the_exact_one():
    label = np.array([1.0, 1, 1, 0, 0, 0, 0])
    predicted = np.array([1.0, 1, 1, 0, 0, 0, 1])
    reached = [
        (sum(g[:3]) / 3 + 1 - sum(g[3:]) / 4) / 2 >= 0.875 for g in product((0, 1), repeat=7)
    ]
    found = balanced_accuracy_against_chance(label, predicted, n_classifiers=20_000)
    assert found.value == 0.875
    assert found.p_value == pytest.approx(np.mean(reached), abs=0.005)
    assert found.significance is Significance.SIGNIFICANT


def test_a_useless_model_is_not_significant_and_no_p_value_is_0():
    rng = np.random.default_rng(0)
    label = (np.arange(200) % 2).astype(float)
    useless = balanced_accuracy_against_chance(label, rng.integers(0, 2, 200).astype(float))
    assert useless.significance is Significance.NOT_SIGNIFICANT
    perfect = balanced_accuracy_against_chance(label, label)
    assert perfect.p_value == 1 / 1001
    assert 0.5 < perfect.chance_high < 0.6


def test_the_p_value_of_an_auc_is_near_the_exact_one():
    label = np.array([1.0, 1, 0, 0, 0])
    score = np.array([5.0, 4, 3, 2, 1])
    found = auc_against_chance(label, score, n_classifiers=20_000)
    assert found.value == auc(label, score) == 1
    assert found.p_value == pytest.approx(1 / 10, abs=0.005)  # 5 choose 2 orders


def test_p_values_are_undefined_with_one_class():
    found = balanced_accuracy_against_chance(np.ones(4), np.ones(4))
    assert np.isnan(found.p_value)
    assert found.significance is Significance.UNDEFINED
    assert np.isnan(auc_against_chance(np.ones(4), np.arange(4.0)).p_value)


def test_a_p_value_between_5_and_10_percent_is_marginal():
    label = (np.arange(60) < 30).astype(float)
    for wrong in range(30):
        predicted = label.copy()
        predicted[:wrong] = 0
        predicted[30 : 30 + wrong] = 1
        found = balanced_accuracy_against_chance(label, predicted)
        expected = "significant" if found.p_value < 0.05 else "not significant"
        if 0.05 <= found.p_value < 0.10:
            expected = "marginal"
        assert found.significance == expected
