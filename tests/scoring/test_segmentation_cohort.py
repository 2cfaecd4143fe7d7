"""A segmentation model's cohort numbers and their resampled values."""

import numpy as np
import pytest

from napari_mamamia.core.cohort import CaseRecord, Cohort, MenopausalStatus
from napari_mamamia.scoring.cohort.groups import Grouping, group_cases, rules_of
from napari_mamamia.scoring.cohort.segmentation_cohort import (
    bootstrap_segmentation,
    score_groups,
    segmentation_fairness,
)
from napari_mamamia.scoring.statistics.bootstrap import IntervalMethod
from napari_mamamia.scoring.statistics.performance import (
    SegmentationScores,
    segmentation_performance,
)

NAN = float("nan")
PROFILES = ("clinical", "official-code", "paper")


def drawn(cohort: Cohort, seed: int = 0, share_undefined: float = 0.0) -> SegmentationScores:
    rng = np.random.default_rng(seed)
    n = len(cohort.records)
    dsc, norm_hd = rng.random(n), 2 * rng.random(n) ** 3
    undefined = rng.random(n) < share_undefined
    dsc[undefined] = norm_hd[undefined] = NAN
    return SegmentationScores(tuple(r.case_id for r in cohort.records), dsc, norm_hd)


def four_cases() -> Cohort:
    """Return the worked example of docs/methods/cohort.md."""
    pre, post = MenopausalStatus.PRE, MenopausalStatus.POST
    return Cohort(
        (
            CaseRecord("A", age=35, menopausal_status=pre, breast_density="b"),
            CaseRecord("B", age=40, menopausal_status=MenopausalStatus.PERI, breast_density="c"),
            CaseRecord("C", age=62, menopausal_status=post, breast_density="b"),
            CaseRecord("D", age=71, menopausal_status=None, breast_density="c"),
        )
    )


ROWS = [("A", 0.9, 0.02), ("B", 0.7, 0.1), ("C", 0.8, 0.04), ("D", 0.4, 0.6)]


@pytest.mark.parametrize(
    ("profile", "age", "menopause"),
    [
        # age: {A, B} .8/.06, {C} .8/.04, {D} .4/.6; menopause: pre {A, B}, post {C}
        ("clinical", 1 - (0.4 + 0.56) / 2, 1 - (0.0 + 0.02) / 2),
        # and unknown {D}
        ("official-code", 1 - (0.4 + 0.56) / 2, 1 - (0.4 + 0.56) / 2),
        # age: {A} .9/.02, {C} .8/.04, B and D in none; menopause: pre {A}, post {C}
        ("paper", 1 - (0.1 + 0.02) / 2, 1 - (0.1 + 0.02) / 2),
    ],
)
def test_the_worked_example_of_the_methods_page(profile, age, menopause):
    scores, rules = SegmentationScores.of(ROWS), rules_of(profile)
    found = score_groups(scores, group_cases(scores.case_ids, four_cases(), rules), rules)
    # mean DSC .7, mean NormHD .19; density: b {A, C} .85/.03, c {B, D} .55/.35
    density = 1 - (0.3 + 0.32) / 2
    assert found.performance.value == pytest.approx(0.755)
    values = [v.value for v in found.fairness.variables]
    assert values == pytest.approx([age, menopause, density])
    fairness = (age + menopause + density) / 3
    assert found.fairness.value == pytest.approx(fairness)
    assert found.ranking_score == pytest.approx((0.755 + fairness) / 2)


def test_without_a_clinical_table_the_ranking_score_is_nan_with_the_reason():
    found = score_groups(SegmentationScores.of(ROWS), (), rules_of("clinical"))
    assert found.performance.value == pytest.approx(0.755)
    assert np.isnan(found.ranking_score)
    assert found.reason == "there is no clinical table from which to form groups"


def test_without_any_defined_score_both_reasons_are_given():
    rows = [(row[0], NAN, NAN) for row in ROWS]
    scores, rules = SegmentationScores.of(rows), rules_of("paper")
    found = score_groups(scores, group_cases(scores.case_ids, four_cases(), rules), rules)
    assert "none of the 4 cases" in found.reason
    assert "breast_density: no case" in found.reason


def test_the_weight_of_fairness_can_be_chosen():
    scores = SegmentationScores.of(ROWS)
    found = score_groups(scores, (), rules_of("clinical"), weight_of_fairness=0)
    assert found.ranking_score == found.performance.value
    assert found.reason == ""


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("share_undefined", [0.0, 0.1])
def test_the_bootstrap_equals_a_plain_loop_over_the_same_resamples(
    random_cohort, profile, share_undefined
):
    cohort, rules = random_cohort(60, seed=3), rules_of(profile)
    scores = drawn(cohort, 4, share_undefined)
    groupings = group_cases(scores.case_ids, cohort, rules)
    found = bootstrap_segmentation(scores, groupings, 0.3, n_resamples=40)
    draws = np.random.default_rng(42).integers(0, 60, (40, 60))
    for chosen, row in zip(draws, found.replicates, strict=True):
        again = SegmentationScores(
            tuple(map(str, range(60))), scores.dsc[chosen], scores.norm_hd[chosen]
        )
        regrouped = [
            Grouping(g.variable, g.labels, g.codes[chosen], (), g.empty_groups) for g in groupings
        ]
        performance = segmentation_performance(again)
        fairness = segmentation_fairness(again, regrouped, rules)
        expected = [
            performance.mean_dsc,
            performance.mean_norm_hd,
            performance.value,
            *(v.value for v in fairness.variables),
            fairness.value,
            0.7 * performance.value + 0.3 * fairness.value,
            *(v.dsc.disparity for v in fairness.variables),
            *(v.norm_hd.disparity for v in fairness.variables),
        ]
        assert row == pytest.approx(expected, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("profile", PROFILES)
def test_estimates_and_values_with_a_case_left_out_equal_direct_computation(random_cohort, profile):
    cohort, rules = random_cohort(30, seed=5), rules_of(profile)
    scores = drawn(cohort, 6)
    groupings = group_cases(scores.case_ids, cohort, rules)
    found = bootstrap_segmentation(scores, groupings, 0.5, n_resamples=1)
    place = found.names.index("ranking_score")
    assert found.estimates[place] == pytest.approx(
        score_groups(scores, groupings, rules).ranking_score, abs=1e-12
    )
    for left_out in range(30):
        kept = [i for i in range(30) if i != left_out]
        fewer = SegmentationScores(
            tuple(scores.case_ids[i] for i in kept), scores.dsc[kept], scores.norm_hd[kept]
        )
        groups = group_cases(fewer.case_ids, cohort, rules)
        expected = score_groups(fewer, groups, rules).ranking_score
        assert found.leave_one_out[left_out, place] == pytest.approx(
            expected, abs=1e-12, nan_ok=True
        )


def test_without_groups_only_performance_is_resampled(random_cohort):
    found = bootstrap_segmentation(drawn(random_cohort(20)), (), 0.5, n_resamples=10)
    assert found.names == ("mean_dsc", "mean_norm_hd", "performance")
    assert found.replicates.shape == (10, 3)


def test_resampling_lowers_fairness_and_the_interval_says_so(random_cohort):
    # one and the same distribution everywhere: the gaps are noise, and resampling adds noise
    cohort, rules = random_cohort(150, seed=7), rules_of("clinical")
    scores = drawn(cohort, 8)
    found = bootstrap_segmentation(scores, group_cases(scores.case_ids, cohort, rules), 0.5)
    place = found.names.index("fairness")
    assert np.nanmean(found.replicates[:, place]) < found.estimates[place]
    shifted = found.interval("fairness", IntervalMethod.BASIC, is_range=True)
    assert shifted.high > found.interval("fairness", is_range=True).high
