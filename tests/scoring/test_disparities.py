"""How sure disparities are, in a cohort: who is counted, what is said, what is never printed."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_mamamia.core.cohort import CaseRecord, Cohort, MenopausalStatus
from napari_mamamia.scoring.cohort.comparison import holm
from napari_mamamia.scoring.cohort.disparities import (
    GapInterval,
    counted_groups,
    odds_uncertainty,
    of_scored_alone,
    segmentation_uncertainty,
)
from napari_mamamia.scoring.cohort.groups import Grouping, rules_of
from napari_mamamia.scoring.cohort.model_results import response_result, segmentation_result
from napari_mamamia.scoring.cohort.response_cohort import ResponsePredictions
from napari_mamamia.scoring.cohort.results import Resampling
from napari_mamamia.scoring.cohort.segmentation_cohort import segmentation_fairness
from napari_mamamia.scoring.report.figures import _measure_arms
from napari_mamamia.scoring.report.tables import (
    disparity_table,
    gap_notes,
    range_table,
    say_disparity,
)
from napari_mamamia.scoring.statistics.performance import SegmentationScores

RULES = rules_of("clinical")
PRE, POST = MenopausalStatus.PRE, MenopausalStatus.POST


def values_of(n, mean, sd):
    """Return n numbers with exactly this mean and standard deviation."""
    numbers = np.linspace(-1, 1, n)
    return mean + sd * numbers / numbers.std(ddof=1)


def scores_of(dsc, norm_hd=None):
    dsc = np.asarray(dsc, dtype=np.float64)
    ids = tuple(f"C{place}" for place in range(dsc.size))
    return SegmentationScores(ids, dsc, np.full(dsc.size, 0.25) if norm_hd is None else norm_hd)


def uncertainty_of(scores, *groupings, least=5, limit=1.0):
    fairness = segmentation_fairness(scores, groupings, RULES)
    return segmentation_uncertainty(scores, groupings, fairness, least, limit)


def three_groups():
    """The worked example: 120, 77 and 6 cases, means .74, .70, .58, SD .21, .23, .12."""
    parts = ((120, 0.74, 0.21), (77, 0.70, 0.23), (6, 0.58, 0.12))
    dsc = np.concatenate([values_of(*part) for part in parts])
    codes = np.repeat([0, 1, 2], [120, 77, 6])
    return dsc.clip(0, None), Grouping("age", ("0-40", "41-50", ">70"), codes)


def test_the_worked_example_comes_out_of_its_cases():
    # the linear spread of 120 values of SD .21 goes from .38 to 1.10: scaled to stay a Dice
    dsc, grouping = three_groups()
    found = uncertainty_of(scores_of(dsc / 2), grouping).of("age", "dsc")
    assert found.value == found.counted == pytest.approx(0.08)
    assert found.by_chance == pytest.approx(0.0857 / 2, abs=1e-4)
    assert found.beyond_chance == pytest.approx(0.135 / 2, abs=5e-4)
    interval = found.interval
    assert (interval.low, interval.left_out) == (0, ())
    assert interval.high == pytest.approx(0.386045 / 2, abs=1e-6)
    wide = interval.wide_because
    assert (wide.group, wide.n) == (">70", 6)
    assert " ".join(say_disparity(found, 5)) == (
        "Dice disparity 0.080. Chance alone gives 0.043 on average between groups of these sizes. "
        "True disparity: between 0 and 0.19 (95 %). These data do not show a difference "
        "between groups, but do not exclude a gap of 0.19 (group >70, n = 6)."
    )


def test_a_smaller_group_is_scored_but_not_spoken_of():
    dsc = np.concatenate([values_of(30, 0.8, 0.05), values_of(30, 0.7, 0.05), [0.05]])
    grouping = Grouping("age", ("a", "b", "old"), np.repeat([0, 1, 2], [30, 30, 1]))
    found = uncertainty_of(scores_of(dsc), grouping).of("age", "dsc")
    assert found.value == pytest.approx(0.75)
    assert found.counted == pytest.approx(0.1)
    assert [(one.group, one.n) for one in found.interval.left_out] == [("old", 1)]
    said = " ".join(say_disparity(found, 5))
    assert "0.75 as scored over all groups, and 0.10 between groups with at least 5 cases" in said
    assert "Groups differ by at least 0.07" in said
    assert said.endswith("Left out because they are too small: old (n = 1).")


@pytest.mark.parametrize(
    ("least", "left_out"), [(2, []), (6, []), (7, [">70"]), (100, ["41-50", ">70"])]
)
def test_the_least_group_can_be_chosen(least, left_out):
    dsc, grouping = three_groups()
    found = uncertainty_of(scores_of(dsc / 2), grouping, least=least).of("age", "dsc")
    assert [one.group for one in found.interval.left_out] == left_out
    assert found.interval.is_defined == (least < 100)


def test_one_group_of_enough_cases_has_no_interval_and_says_why():
    grouping = Grouping("breast_density", ("a", "b", "c"), np.repeat([0, 1, 2], [1, 4, 7]))
    found = uncertainty_of(scores_of(np.linspace(0.3, 0.9, 12)), grouping)
    one = found.of("breast_density", "dsc")
    assert not one.interval.is_defined
    assert np.isnan(one.by_chance)
    said = " ".join(say_disparity(one, 5))
    assert "one group of breast density has at least 5 cases, but a gap needs two groups" in said
    assert "Left out because they are too small: a (n = 1), b (n = 4)." in said
    assert not found.fairness.is_defined


def test_the_fairness_names_the_variables_that_it_does_not_speak_of():
    rng = np.random.default_rng(0)
    age = Grouping("age", ("a", "b"), np.repeat([0, 1], [20, 20]))
    density = Grouping("breast_density", ("a", "b"), np.repeat([0, 1], [37, 3]))
    scores = scores_of(rng.random(40), rng.random(40))
    both, alone = uncertainty_of(scores, age, density), uncertainty_of(scores, age)
    assert both.fairness.without == ("breast_density",)
    assert (both.fairness.low, both.fairness.high) == (alone.fairness.low, alone.fairness.high)
    assert [(one.variable, one.group, one.n) for one in both.fairness.left_out] == [
        ("breast_density", "b", 3)
    ]


def test_values_that_are_all_the_same_tell_nothing():
    grouping = Grouping("age", ("a", "b"), np.repeat([0, 1], [9, 9]))
    found = uncertainty_of(scores_of(np.full(18, 0.5)), grouping).of("age", "dsc")
    assert (found.value, found.by_chance) == (0, 0)
    assert "all values of a group of age are equal" in found.interval.reason


def test_rounding_is_no_gap():
    grouping = Grouping("age", ("a", "b"), np.repeat([0, 1], [20, 20]))
    found = uncertainty_of(scores_of(np.full(40, 0.7), np.full(40, 0.1)), grouping)
    for one in found.disparities:
        assert (one.counted, one.by_chance, one.interval.is_defined) == (0, 0, False)
        assert say_disparity(one, 5)[0].endswith("disparity 0.")


def test_dice_alone_has_its_disparity_and_no_fairness():
    grouping = Grouping("age", ("a", "b"), np.repeat([0, 1], [9, 9]))
    scores = scores_of(np.linspace(0.2, 0.9, 18), np.full(18, np.nan))
    found = uncertainty_of(scores, grouping)
    assert found.of("age", "dsc").interval.is_defined
    assert found.of("age", "norm_hd").interval.reason
    assert not found.fairness.is_defined


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_no_end_lies_where_no_number_can(data):
    n = data.draw(st.integers(4, 40))
    share = st.floats(0, 1, allow_nan=False)
    rows = data.draw(st.lists(st.tuples(share, share, st.integers(-1, 3)), min_size=n, max_size=n))
    dsc, norm_hd, codes = (np.array(column) for column in zip(*rows, strict=True))
    grouping = Grouping("age", ("a", "b", "c", "d"), codes.astype(np.intp))
    found = uncertainty_of(scores_of(dsc, norm_hd), grouping, least=2)
    for one in found.disparities:
        if one.interval.is_defined:
            low, high = one.interval.low, one.interval.high
            assert 0 <= low <= one.counted + 1e-12 <= high + 2e-12 <= 1 + 3e-12
    if found.fairness.is_defined:
        assert 0 <= found.fairness.low <= found.fairness.high <= 1


def test_a_distance_above_the_profiles_limit_is_not_cut():
    grouping = Grouping("age", ("a", "b"), np.repeat([0, 1], [9, 9]))
    far = np.concatenate([values_of(9, 0.3, 0.1), values_of(9, 2.0, 0.4)])
    found = uncertainty_of(scores_of(np.linspace(0, 1, 18), far), grouping).of("age", "norm_hd")
    assert found.value == pytest.approx(1.7)
    assert found.interval.high > 1.7


# --- Task 2 ------------------------------------------------------------------------------------


def predictions_of(groups):
    """Return predictions of groups of (hits, responders, false alarms, others), and the groups."""
    label, predicted, codes = [], [], []
    for code, (hits, yes, alarms, no) in enumerate(groups):
        label += [1] * yes + [0] * no
        predicted += [1] * hits + [0] * (yes - hits) + [1] * alarms + [0] * (no - alarms)
        codes += [code] * (yes + no)
    n = len(label)
    made = ResponsePredictions(
        tuple(f"C{k}" for k in range(n)), np.array(label), np.array(predicted), np.full(n, np.nan)
    )
    labels = tuple(f"g{k}" for k in range(len(groups)))
    return made, Grouping("age", labels, np.array(codes))


def odds_of(groups, least=5):
    from napari_mamamia.scoring.cohort.response_cohort import equalised_odds

    predictions, grouping = predictions_of(groups)
    odds = equalised_odds(predictions, [grouping], RULES)
    return odds_uncertainty(predictions, [grouping], odds, RULES.disparity_limit, least)


def test_the_worked_example_of_rates_comes_out_of_its_cases():
    found = odds_of([(18, 20, 3, 30), (40, 60, 9, 90), (3, 6, 1, 9)])
    tpr = found.of("age", "tpr")
    assert tpr.value == pytest.approx(0.4)
    assert tpr.interval.low == 0
    assert tpr.interval.high == pytest.approx(0.720604, abs=5e-7)
    assert tpr.interval.wide_because.said == "6 responders"
    fpr, both = found.of("age", "fpr"), found.of("age", "equalised_odds")
    gaps = tpr.counted + fpr.counted
    above = np.hypot(tpr.interval.high - tpr.counted, fpr.interval.high - fpr.counted)
    assert both.interval.high == pytest.approx(gaps + above, abs=1e-12)
    assert found.mean_disparity.high == both.interval.high
    assert found.fairness.low == pytest.approx(1 - min(1, both.interval.high), abs=1e-12)


def test_the_sum_of_two_gaps_reaches_up_to_2():
    both = odds_of([(20, 20, 20, 20), (0, 20, 0, 20)]).of("age", "equalised_odds")
    assert both.counted == 2
    assert both.interval.low < 2
    assert both.interval.high == 2


def test_a_rate_counts_groups_with_enough_cases_of_its_class():
    found = odds_of([(8, 10, 2, 10), (5, 10, 2, 10), (1, 1, 3, 20)])
    assert found.of("age", "tpr").value == pytest.approx(0.5)
    assert found.of("age", "tpr").counted == pytest.approx(0.3)
    assert [o.said for o in found.of("age", "tpr").interval.left_out] == ["1 responder"]
    assert found.of("age", "fpr").interval.left_out == ()


def test_predictions_that_are_refused_have_no_interval_of_the_fairness():
    found = odds_of([(10, 10, 10, 10), (9, 9, 9, 9)])
    assert not found.fairness.is_defined


# --- results and texts -------------------------------------------------------------------------


def a_result(n=60, profile="clinical", first_age=80.0, **more):
    rng = np.random.default_rng(2)
    records = tuple(
        CaseRecord(
            f"C{k}",
            age=first_age if not k else 45.0 + 10 * (k % 2),
            menopausal_status=(PRE, POST)[k % 3 == 0],
            breast_density="ab"[k % 5 == 0],
            pcr=bool(k % 2),
        )
        for k in range(n)
    )
    ids = tuple(record.case_id for record in records)
    rules, cohort = rules_of(profile), Cohort(records)
    if more.pop("task2", False):
        predictions = ResponsePredictions(
            ids, np.arange(n) % 2, rng.integers(0, 2, n), rng.random(n)
        )
        return response_result(predictions, cohort, rules, Resampling(60), **more)
    scores = SegmentationScores(ids, rng.random(n), rng.random(n))
    return segmentation_result(scores, cohort, rules, Resampling(60), **more)


def test_p_values_are_corrected_over_the_disparities_that_are_shown():
    result = a_result()
    shown = [t for t in result.permutation_tests if t.measure != "mean"]
    assert [t.p_holm for t in shown] == holm(np.array([t.p_value for t in shown])).tolist()
    assert {t.n_corrected for t in shown} == {6}
    assert "corrected by Holm over the disparities shown (families of 6)" in " ".join(
        disparity_table(result).notes
    )


def test_tests_leave_small_groups_out():
    result = a_result()
    (test, *_), found = result.permutation_tests, result.uncertainty.of("age", "dsc")
    assert [one.group for one in found.interval.left_out] == ["71+"]
    assert test.disparity == pytest.approx(found.counted, abs=1e-12)
    assert found.value != pytest.approx(found.counted)
    everybody = a_result(minimum_group=2).permutation_tests[0]
    assert everybody.disparity == test.disparity  # a single case is never counted


@pytest.mark.parametrize("task2", [False, True])
def test_the_ranking_score_has_an_interval_where_both_parts_have_one(task2):
    result = a_result(task2=task2, first_age=45.0)
    found, name = result.uncertainty, "balanced_accuracy" if task2 else "performance"
    part = next(i for i in result.intervals if i.name == name)
    assert found.ranking_score.low == pytest.approx((part.low + found.fairness.low) / 2)
    assert found.ranking_score.high == pytest.approx((part.high + found.fairness.high) / 2)


def test_bca_and_basic_intervals_are_of_smooth_numbers_alone():
    for task2 in (False, True):
        for interval in a_result(task2=task2).intervals:
            if interval.name.startswith(("fairness", "disparity", "ranking")):
                assert interval.method == "percentile"
            elif interval.name != "performance":
                assert 0 <= interval.low <= interval.high <= 1


def test_resampling_ranges_stand_under_the_paper_alone_and_last():
    assert range_table(a_result()) is None
    table = range_table(a_result(profile="paper"))
    assert all(row.is_small for row in table.rows)
    assert "not a confidence interval" in table.notes[0]


def test_counted_groups_keep_their_names():
    grouping = Grouping("age", ("a", "b"), np.array([0, 0, 1, -1]))
    assert counted_groups(grouping, 2).codes.tolist() == [0, 0, -1, -1]
    assert counted_groups(grouping, 2).labels == ("a", "b")
    nobody = replace(grouping, codes=np.array([-1, -1]))
    assert counted_groups(nobody, 2).codes.tolist() == [-1, -1]


def test_numbers_that_count_unusable_cases_have_no_interval_of_scored_ones():
    plain = a_result(first_age=45.0).uncertainty
    found = of_scored_alone(plain, 3)
    assert not found.fairness.is_defined
    assert not found.ranking_score.is_defined
    assert (
        "3 of the model's cases have no usable prediction; for the scored cases alone, the "
        "interval is"
    ) in (found.fairness.reason)
    assert found.fairness_of_scored == plain.fairness
    # each number names its own interval of the scored cases, never another's
    for one, measured in zip(found.by_variable, plain.by_variable, strict=True):
        assert f"alone, the interval is {measured.low:.3f} to {measured.high:.3f}" in one.reason
    assert (
        "1 of the model's cases has no"
        in of_scored_alone(a_result().uncertainty, 1).fairness.reason
    )
    assert found.disparities == plain.disparities


def test_what_an_interval_leaves_out_stands_beside_it():
    found = a_result().uncertainty.fairness
    assert gap_notes(found)[0] == "without group 71+ (n = 1)"


def test_a_number_outside_its_interval_has_no_interval():
    # two groups of 30 around .8 and .7, and one case of .05 that is scored but not counted
    dsc = np.concatenate([values_of(30, 0.8, 0.05), values_of(30, 0.7, 0.05), [0.05]])
    norm_hd = np.concatenate([values_of(30, 0.3, 0.05), values_of(30, 0.3, 0.05), [0.3]])
    of_all = Grouping("age", ("a", "b", "old"), np.repeat([0, 1, 2], [30, 30, 1]))
    found = uncertainty_of(scores_of(dsc, norm_hd), of_all)
    assert found.of("age", "dsc").value == pytest.approx(0.75)
    (of_age,) = found.by_variable
    for interval in (found.fairness, found.mean_disparity, of_age, found.ranking_score):
        assert not interval.is_defined
        assert "outside" in interval.reason
    assert found.of("age", "dsc").interval.is_defined  # of the groups that it counts
    counted = uncertainty_of(
        scores_of(dsc[:60], norm_hd[:60]), replace(of_all, codes=of_all.codes[:60])
    )
    # gaps .1 and 0 of Dice and NormHD: a fairness of .95
    assert counted.fairness.low < 0.95 < counted.fairness.high


def test_a_value_outside_its_interval_has_no_cross():
    interval = GapInterval(0.6, 0.9)
    assert _measure_arms(0.5, interval) is None
    assert _measure_arms(0.7, interval) == pytest.approx(np.array([[0.1], [0.2]]))
