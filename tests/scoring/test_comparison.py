"""Paired tests with Holm, and permutation tests of disparities."""

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from napari_mamamia.scoring.cohort.comparison import (
    NamedScores,
    compare_models,
    compare_with_baseline,
    holm,
)
from napari_mamamia.scoring.cohort.disparities import (
    permute_odds_groups,
    permute_segmentation_groups,
)
from napari_mamamia.scoring.cohort.groups import Grouping, rules_of
from napari_mamamia.scoring.cohort.response_cohort import ResponsePredictions, equalised_odds
from napari_mamamia.scoring.cohort.segmentation_cohort import variable_fairness
from napari_mamamia.scoring.statistics.performance import SegmentationScores

NAN = float("nan")
RULES = rules_of("clinical")


def model(name: str, dsc, ids=None, norm_hd=None) -> NamedScores:
    dsc = np.asarray(dsc, dtype=float)
    ids = tuple(ids or (str(i) for i in range(len(dsc))))
    norm_hd = np.zeros(len(dsc)) if norm_hd is None else norm_hd
    return NamedScores(name, SegmentationScores(ids, dsc, norm_hd))


def test_holm_by_hand():
    # sorted .01 x 3, .03 x 2, .04 x 1 -> .03, .06, .06 (never falling)
    assert holm(np.array([0.04, 0.01, NAN, 0.03]))[[0, 1, 3]] == pytest.approx([0.06, 0.03, 0.06])
    assert np.isnan(holm(np.array([NAN, 0.2]))[0])
    assert holm(np.array([0.6, 0.7])).tolist() == [1.0, 1.0]


def test_a_paired_t_test_by_hand():
    # differences 0.1, 0.2, 0.3: mean 0.2, sd 0.1, t = 0.2/(0.1/sqrt 3) with 2 degrees of freedom
    found = compare_models((model("a", [0.5, 0.6, 0.7]), model("b", [0.4, 0.4, 0.4])), ("dsc",))
    t = 2 * np.sqrt(3)
    assert len(found) == 1
    assert found[0].mean_difference == pytest.approx(0.2)
    # of a t distribution with 2 degrees of freedom P(|T| > t) = 1 - t/sqrt(2 + t^2)
    assert found[0].p_t_test == pytest.approx(1 - t / np.sqrt(2 + t**2))
    assert found[0].low == pytest.approx(0.2 - 4.302653 * 0.1 / np.sqrt(3), abs=1e-6)
    assert found[0].p_wilcoxon == pytest.approx(2 / 8)  # the largest of 2^3 sign patterns, twice
    assert (found[0].p_t_test_holm, found[0].n) == (found[0].p_t_test, 3)


def test_only_cases_with_a_value_in_both_models_are_paired_by_id():
    a = model("a", [0.9, 0.5, NAN, 0.7], ids="PQRS")
    b = model("b", [0.5, 0.4, 0.3, 0.1], ids="SQRT")
    found = compare_models((a, b), ("dsc",))[0]
    assert found.n == 2
    assert found.mean_difference == pytest.approx((0.5 - 0.4 + 0.7 - 0.5) / 2)


def test_every_pair_is_compared_and_corrected_within_metric_and_test():
    rng = np.random.default_rng(0)
    base = rng.random(30)
    models = [
        model(n, np.clip(base + s + rng.normal(0, 0.1, 30), 0, 1), norm_hd=rng.random(30))
        for n, s in (("a", 0), ("b", 0.05), ("c", -0.1))
    ]
    found = compare_models(models)
    assert [(r.model_a, r.model_b) for r in found[:3]] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert [r.metric for r in found] == ["dsc"] * 3 + ["norm_hd"] * 3
    for rows in (found[:3], found[3:]):
        for test in ("p_t_test", "p_wilcoxon"):
            plain = np.array([getattr(r, test) for r in rows])
            assert [getattr(r, f"{test}_holm") for r in rows] == holm(plain).tolist()
    values = [m.scores.dsc for m in models]
    assert found[0].p_t_test == pytest.approx(stats.ttest_rel(values[0], values[1]).pvalue)
    assert found[0].p_wilcoxon == pytest.approx(stats.wilcoxon(values[0], values[1]).pvalue)


def test_comparing_with_a_baseline_corrects_for_fewer_tests():
    rng = np.random.default_rng(1)
    models = [model(n, rng.random(12)) for n in "abc"]
    found = compare_with_baseline(models[:2], models[2], ("dsc",))
    assert [(r.model_a, r.model_b) for r in found] == [("a", "c"), ("b", "c")]


def test_equal_models_differ_by_nothing():
    found = compare_models((model("a", [0.5, 0.6]), model("b", [0.5, 0.6])), ("dsc",))[0]
    assert (found.p_t_test, found.p_wilcoxon, found.low, found.high) == (1, 1, 0, 0)
    assert "same dsc in every case" in found.reason


def test_a_difference_without_spread_has_no_t_test():
    found = compare_models((model("a", [0.75] * 6), model("b", [0.5] * 6)), ("dsc",))[0]
    assert np.isnan(found.p_t_test)
    assert found.p_wilcoxon == pytest.approx(2 / 64)
    assert "no t-test" in found.reason


def test_models_without_common_cases_cannot_be_compared():
    found = compare_models((model("a", [0.5], ids="P"), model("b", [0.5], ids="Q")), ("dsc",))[0]
    assert found.n == 0
    assert np.isnan([found.mean_difference, found.p_t_test]).all()
    assert "the test needs at least 2" in found.reason


def test_an_unknown_metric_is_refused():
    with pytest.raises(ValueError, match="found iou"):
        compare_models((), ("iou",))


def test_the_p_value_of_a_disparity_is_near_the_exact_one():
    dsc, norm_hd = np.array([0.9, 0.8, 0.85, 0.3, 0.5]), np.array([0.1, 0.2, 0.1, 0.6, 0.2])
    codes = np.array([0, 0, 0, 1, 1])

    def gaps(own):
        parts = [abs(v[own == 0].mean() - v[own == 1].mean()) for v in (dsc, norm_hd)]
        return [*parts, sum(parts) / 2]

    drawn = np.array([gaps(codes[list(order)]) for order in permutations(range(5))])
    grouping = Grouping("v", ("x", "y"), codes)
    scores = SegmentationScores(tuple("ABCDE"), dsc, norm_hd)
    found = permute_segmentation_groups(scores, (grouping,), n_permutations=20_000)
    assert [t.measure for t in found] == ["dsc", "norm_hd", "mean"]
    for place, test in enumerate(found):
        observed = gaps(codes)[place]
        assert test.disparity == pytest.approx(observed)
        assert test.p_value == pytest.approx(np.mean(drawn[:, place] >= observed - 1e-9), abs=0.01)
        assert test.expected == pytest.approx(drawn[:, place].mean(), abs=0.01)
    fairness = variable_fairness(scores, grouping, RULES)
    assert found[2].disparity == pytest.approx(1 - fairness.value)


def test_groups_that_differ_greatly_are_significant_and_random_ones_are_not():
    rng = np.random.default_rng(2)
    codes = rng.integers(-1, 3, 200)
    names = ("x", "y", "z", "empty")
    ids = tuple(str(i) for i in range(200))
    noise = rng.random(200) / 2
    for shift, is_significant in ((0.25 * (codes == 1), True), (0, False)):
        scores = SegmentationScores(ids, noise + shift, np.zeros(200))
        found = permute_segmentation_groups(scores, (Grouping("v", names, codes),))
        assert (found[0].p_value < 0.05) == is_significant
        assert found[1].p_value == 1  # NormHD is the same everywhere


def test_the_equalised_odds_of_random_groups_are_tested_too():
    rng = np.random.default_rng(3)
    label = rng.integers(0, 2, 120).astype(float)
    codes = np.repeat([0, 1, -1], 40)
    predicted = np.where(codes == 0, label, 1 - label)
    predictions = ResponsePredictions(
        tuple(str(i) for i in range(120)), label, predicted, np.full(120, NAN)
    )
    grouping = Grouping("v", ("x", "y"), codes)
    found = permute_odds_groups(predictions, (grouping,), RULES)
    assert [t.p_value for t in found] == [1 / 1001] * 3
    odds = equalised_odds(predictions, (grouping,), RULES)
    assert found[2].disparity == odds.raw == 2


def test_one_group_cannot_be_tested():
    scores = SegmentationScores(("A", "B"), [0.5, 0.6], [0.0, 0.0])
    found = permute_segmentation_groups(scores, (Grouping("v", ("x", "y"), [0, 0]),))
    assert np.isnan(found[0].p_value)
    assert "needs two" in found[0].reason
    with pytest.raises(ValueError, match="at least one permutation"):
        permute_segmentation_groups(scores, (), n_permutations=0)


def test_permuted_sums_are_those_of_rows_taken_in_the_same_orders():
    rng = np.random.default_rng(8)
    n, codes = 40, np.repeat([0, 1, 2], [9, 21, 10])
    scores = SegmentationScores(tuple(map(str, range(n))), rng.random(n), rng.random(n))
    (dsc, *_) = permute_segmentation_groups(
        scores, [Grouping("age", ("a", "b", "c"), codes)], n_permutations=50, seed=3
    )
    # one order after the other, each whole row with it
    orders, gaps = np.random.default_rng(3).permuted(np.tile(np.arange(n), (50, 1)), axis=1), []
    for order in orders:
        means = [scores.dsc[order][codes == group].mean() for group in range(3)]
        gaps.append(max(means) - min(means))
    assert dsc.expected == pytest.approx(np.mean(gaps), abs=1e-14)
    assert dsc.p_value == (1 + sum(g >= dsc.disparity - 1e-12 for g in gaps)) / 51
