"""AUC, average precision and DeLong, by hand, by brute force and by resampling."""

import numpy as np
import pytest
from scipy import stats

from napari_mamamia.scoring.statistics.auc import (
    RankedCases,
    auc,
    auc_interval,
    auc_of_counts,
    average_precision,
    average_precision_of_counts,
    compare_aucs,
)

LABEL = np.array([1.0, 1, 0, 0])
SCORE = np.array([0.8, 0.4, 0.6, 0.2])


def drawn(n: int, seed: int, shift: float = 1.0, decimals: int = 1):
    rng = np.random.default_rng(seed)
    label = (rng.random(n) < 0.3).astype(float)
    return label, np.round(rng.normal(size=n) + shift * label, decimals)


def auc_by_pairs(label, score) -> float:
    yes, no = score[label == 1], score[label == 0]
    return float(np.mean([(a > b) + (a == b) / 2 for a in yes for b in no]))


def precision_by_thresholds(label, score) -> float:
    total, before = 0.0, 0.0
    for threshold in sorted(set(score), reverse=True):
        said = score >= threshold
        recall = label[said].sum() / label.sum()
        total += (recall - before) * label[said].mean()
        before = recall
    return total


def test_auc_counts_rightly_ordered_pairs():
    assert auc(LABEL, SCORE) == 0.75
    assert auc(LABEL, -SCORE) == 0.25
    assert auc(LABEL, np.zeros(4)) == 0.5


def test_auc_and_average_precision_of_one_class_are_nan():
    assert np.isnan(auc(np.ones(3), np.arange(3.0)))
    assert np.isnan(auc(np.zeros(3), np.arange(3.0)))
    assert np.isnan(average_precision(np.zeros(3), np.arange(3.0)))
    assert np.isnan(auc(np.zeros(0), np.zeros(0)))


def test_average_precision_by_hand():
    # thresholds 0.8: recall 1/2, precision 1; 0.6: no rise; 0.4: rise 1/2, precision 2/3
    assert average_precision(LABEL, SCORE) == pytest.approx(0.5 + 0.5 * 2 / 3)
    assert average_precision(LABEL, np.zeros(4)) == 0.5


@pytest.mark.parametrize("seed", range(5))
def test_both_equal_brute_force_with_ties(seed):
    label, score = drawn(80, seed)
    assert auc(label, score) == pytest.approx(auc_by_pairs(label, score), abs=1e-12)
    expected = precision_by_thresholds(label, score)
    assert average_precision(label, score) == pytest.approx(expected, abs=1e-12)


def test_auc_is_the_mann_whitney_statistic():
    label, score = drawn(100, 1)
    u = stats.mannwhitneyu(score[label == 1], score[label == 0]).statistic
    assert auc(label, score) == pytest.approx(u / (label.sum() * (1 - label).sum()), abs=1e-12)


def test_a_resample_counts_a_case_as_often_as_it_is_drawn():
    label, score = drawn(40, 2)
    chosen = np.random.default_rng(3).integers(0, 40, (6, 40))
    counts = RankedCases.of(label, score).counts(chosen)
    values = zip(auc_of_counts(*counts), average_precision_of_counts(*counts), strict=True)
    for own, (area, precision) in zip(chosen, values, strict=True):
        assert area == pytest.approx(auc_by_pairs(label[own], score[own]), abs=1e-12)
        expected = precision_by_thresholds(label[own], score[own])
        assert precision == pytest.approx(expected, abs=1e-12)


def without_each(number, label, score):
    """The values with each case left out, one by one: slow and plain."""
    return [number(np.delete(label, n), np.delete(score, n)) for n in range(len(label))]


def assert_left_out_one_by_one(label, score):
    cases = RankedCases.of(label, score)
    for found, number in (
        (cases.auc_without_each(), auc),
        (cases.average_precision_without_each(), average_precision),
    ):
        expected = without_each(number, label, score)
        assert found == pytest.approx(expected, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("decimals", [9, 1, 0], ids=["no ties", "ties", "mostly ties"])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 60])
@pytest.mark.parity
def test_leaving_out_each_case_in_closed_form_equals_doing_it(n, decimals):
    for seed in range(5):
        assert_left_out_one_by_one(*drawn(n, seed, decimals=decimals))


@pytest.mark.parametrize(
    "label",
    [[1], [0], [1, 1], [0, 0], [1, 0], [0, 1], [1, 0, 0], [1, 1, 0], [0, 0, 0, 1], [0, 1, 1, 1]],
    ids=str,
)
@pytest.mark.parametrize("score", ["rising", "falling", "equal", "pairs"])
def test_leaving_out_the_last_case_of_a_class_is_nan_as_without_it(label, score):
    label = np.array(label, dtype=float)
    scores = np.arange(len(label), dtype=float)
    scores = {"rising": scores, "falling": -scores, "equal": scores * 0, "pairs": scores // 2}
    assert_left_out_one_by_one(label, scores[score])


def test_leaving_out_each_of_many_cases_by_hand():
    # 50,000 responders score 1, 50,000 others 0: every other pair stays in order without any case
    label = np.repeat([1.0, 0.0], 50_000)
    cases = RankedCases.of(label, label)
    assert (cases.auc_without_each() == 1).all()
    assert (cases.average_precision_without_each() == 1).all()
    # the other way round: precision at the last threshold is 50,000 of 100,000, less one case
    turned = RankedCases.of(label, -label)
    assert (turned.auc_without_each() == 0).all()
    expected = np.repeat([49_999 / 99_999, 50_000 / 99_999], 50_000)
    assert turned.average_precision_without_each() == pytest.approx(expected, abs=1e-15)


def test_delong_by_hand():
    # shares of non-responders under each responder: 1, 1/2; of responders over each other: 1/2, 1
    # variances 1/8 each, each over 2 cases: 1/16 + 1/16
    found = auc_interval(LABEL, SCORE)
    assert found.auc == 0.75
    assert found.standard_error == pytest.approx(np.sqrt(1 / 8))
    assert (found.low, found.high) == (pytest.approx(0.75 - 1.959964 * np.sqrt(1 / 8)), 1.0)


def test_delong_of_two_models_by_hand():
    # model b orders all four pairs rightly: its shares are all 1, without variance
    found = compare_aucs(LABEL, SCORE, LABEL)
    assert (found.auc_a, found.auc_b, found.n) == (0.75, 1.0, 4)
    assert found.standard_error == pytest.approx(np.sqrt(1 / 8))
    assert found.z == pytest.approx(-0.25 / np.sqrt(1 / 8))
    assert found.p_value == pytest.approx(2 * stats.norm.cdf(-0.25 / np.sqrt(1 / 8)))


def structural_components(label, score):
    """Return DeLong's components, pair by pair."""
    yes, no = score[label == 1], score[label == 0]
    wins = np.array([[(a > b) + (a == b) / 2 for b in no] for a in yes])
    return wins.mean(axis=1), wins.mean(axis=0)


def test_delong_equals_the_components_pair_by_pair_with_ties():
    label, a = drawn(60, 4)
    b = np.round(a + np.random.default_rng(5).normal(size=60), 1)
    (va, wa), (vb, wb) = structural_components(label, a), structural_components(label, b)
    variance = np.var(va - vb, ddof=1) / len(va) + np.var(wa - wb, ddof=1) / len(wa)
    assert compare_aucs(label, a, b).standard_error == pytest.approx(np.sqrt(variance), abs=1e-12)


def test_delong_is_close_to_resampling():
    label, a = drawn(300, 6, decimals=3)
    b = a + np.random.default_rng(7).normal(size=300)
    rng = np.random.default_rng(8)
    gaps = []
    for _ in range(2000):
        yes, no = (rng.choice(np.flatnonzero(label == v), (label == v).sum()) for v in (1, 0))
        chosen = np.concatenate([yes, no])
        gaps.append(auc(label[chosen], a[chosen]) - auc(label[chosen], b[chosen]))
    assert compare_aucs(label, a, b).standard_error == pytest.approx(np.std(gaps), rel=0.08)


def test_delong_is_close_to_a_permutation_test():
    label, a = drawn(200, 9, shift=0.7, decimals=3)
    b = a + 0.8 * np.random.default_rng(10).normal(size=200)
    a, b = stats.rankdata(a), stats.rankdata(b)
    rng = np.random.default_rng(11)
    gap = abs(auc(label, a) - auc(label, b))
    reached = 0
    for _ in range(2000):
        swapped = rng.random(200) < 0.5
        one, other = np.where(swapped, b, a), np.where(swapped, a, b)
        reached += abs(auc(label, one) - auc(label, other)) >= gap - 1e-12
    assert compare_aucs(label, a, b).p_value == pytest.approx((1 + reached) / 2001, abs=0.03)


def test_delong_of_models_that_order_alike_is_undefined_with_a_reason():
    label, a = drawn(50, 12)
    found = compare_aucs(label, a, 2 * a + 1)
    assert np.isnan(found.p_value)
    assert "order the cases in the same way" in found.reason


def test_delong_needs_two_cases_of_each_class():
    found = compare_aucs(np.array([1.0, 0, 0]), np.arange(3.0), np.arange(3.0)[::-1])
    assert np.isnan(found.p_value)
    assert "fewer than two" in found.reason
    interval = auc_interval(np.array([1.0, 0, 0]), np.arange(3.0))
    assert np.isnan([interval.low, interval.high]).all()
