"""Disparities and fairness, by hand and against pandas."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_mamamia.core.cohort import CaseRecord, Cohort, MenopausalStatus
from napari_mamamia.scoring.cohort.groups import EmptyGroups, Grouping, group_cases, rules_of
from napari_mamamia.scoring.cohort.segmentation_cohort import (
    disparity,
    group_table,
    segmentation_fairness,
    variable_fairness,
)
from napari_mamamia.scoring.statistics.performance import SegmentationScores

NAN = float("nan")
RULES = rules_of("clinical")


def scores_of(dsc, norm_hd=None) -> SegmentationScores:
    norm_hd = np.zeros(len(dsc)) if norm_hd is None else norm_hd
    return SegmentationScores(tuple(str(i) for i in range(len(dsc))), dsc, norm_hd)


def test_fairness_of_a_variable_by_hand():
    # groups x: DSC (0.8 + 0.6)/2 = 0.7, NormHD 0.1; y: DSC 0.5, NormHD (0.2 + 0.4)/2 = 0.3
    grouping = Grouping("v", ("x", "y"), [0, 0, 1, 1])
    found = variable_fairness(
        scores_of([0.8, 0.6, 0.5, 0.5], [0.1, 0.1, 0.2, 0.4]), grouping, RULES
    )
    assert found.dsc.disparity == pytest.approx(0.2)
    assert found.norm_hd.disparity == pytest.approx(0.2)
    assert found.value == pytest.approx(1 - (0.2 + 0.2) / 2)
    assert (found.dsc.worst_group, found.dsc.worst) == ("y", 0.5)
    assert (found.norm_hd.worst_group, found.norm_hd.worst) == ("y", pytest.approx(0.3))
    assert found.dsc.variance == pytest.approx(0.01)  # 0.7 and 0.5, each 0.1 from 0.6
    assert found.groups[0].sd_dsc == pytest.approx(np.std([0.8, 0.6], ddof=1))
    assert found.groups[1].sd_dsc == 0


def test_a_group_under_the_minimum_size_is_flagged_and_kept():
    grouping = Grouping("v", ("x", "y", "none"), [0] * 10 + [1] * 9)
    found = variable_fairness(scores_of([1.0] * 10 + [0.5] * 9), grouping, RULES)
    assert [group.is_small for group in found.groups] == [False, True, False]
    assert found.dsc.disparity == 0.5


def test_a_group_of_one_case_has_no_standard_deviation():
    found = group_table(scores_of([0.5]), Grouping("v", ("x",), [0]))
    assert found[0].n == 1
    assert np.isnan(found[0].sd_dsc)


def test_undefined_scores_are_left_out_of_the_group_means():
    found = group_table(scores_of([0.5, NAN], [0.1, NAN]), Grouping("v", ("x",), [0, 0]))
    assert (found[0].n, found[0].mean_dsc, found[0].mean_norm_hd) == (2, 0.5, 0.1)


def test_an_empty_first_group_makes_only_the_scripts_disparity_undefined():
    means = np.array([NAN, 0.5, 0.75])
    assert disparity(means) == 0.25
    assert np.isnan(disparity(means, EmptyGroups.AS_SCRIPTS))
    assert disparity(means[::-1], EmptyGroups.AS_SCRIPTS) == 0.25


def test_an_empty_first_age_group_is_explained_under_official_code():
    cohort = Cohort((CaseRecord("0", age=45), CaseRecord("1", age=65)))
    scores = scores_of([0.5, 0.75])
    for profile, value in (("official-code", NAN), ("clinical", 0.875)):
        rules = rules_of(profile)
        found = variable_fairness(scores, group_cases("01", cohort, rules)[0], rules)
        assert found.value == pytest.approx(value, nan_ok=True)
    found = segmentation_fairness(
        scores, group_cases("01", cohort, rules_of("official-code")), rules_of("official-code")
    )
    assert "the first group of age (0-40) has no scored case" in found.reason
    assert "no case has a group of breast_density" in found.reason


def test_groups_with_cases_but_without_scores_are_explained():
    found = variable_fairness(scores_of([NAN], [NAN]), Grouping("v", ("x",), [0]), RULES)
    assert np.isnan(found.value)
    assert found.reason == "no case in a group of v has both Dice and NormHD"


def test_without_a_clinical_table_fairness_is_nan_with_the_reason():
    found = segmentation_fairness(scores_of([0.5]), (), RULES)
    assert np.isnan(found.value)
    assert "no clinical table" in found.reason


def test_fairness_is_the_mean_over_variables():
    first, second = Grouping("v", ("x", "y"), [0, 1]), Grouping("w", ("x", "y"), [0, 0])
    found = segmentation_fairness(scores_of([0.4, 0.8]), (first, second), RULES)
    assert [v.value for v in found.variables] == [pytest.approx(0.8), 1.0]
    assert found.value == pytest.approx(0.9)


def by_the_scripts_formula(scores: SegmentationScores, cohort: Cohort) -> list[float]:
    """Work out the three fairness values with pandas and python's own max and min."""
    table = pd.DataFrame(
        {
            "dsc": scores.dsc,
            "norm_hd": scores.norm_hd,
            "age": pd.cut([r.age for r in cohort.records], [0, 40, 50, 60, 70, 100]),
            "menopause": [
                {None: "unknown", MenopausalStatus.PERI: "pre"}.get(s, s and s.value)
                for s in (r.menopausal_status for r in cohort.records)
            ],
            "density": [r.breast_density for r in cohort.records],
        }
    )
    found = []
    for variable in ("age", "menopause", "density"):
        gaps = []
        for metric in ("dsc", "norm_hd"):
            means = table.groupby(variable, observed=False)[metric].mean().tolist()
            gaps.append(max(means) - min(means))
        found.append(1 - sum(gaps) / 2)
    return found


@pytest.mark.parametrize(
    ("youngest", "oldest", "is_defined"),
    [(20, 90, True), (20, 45, True), (30, 40, True), (41, 90, False), (66, 90, False)],
)
def test_official_code_equals_the_scripts_formula_with_full_and_empty_age_groups(
    random_cohort, youngest, oldest, is_defined
):
    for seed in range(5):
        drawn = random_cohort(60, seed)
        ages = np.random.default_rng(seed).integers(youngest, oldest, 60, endpoint=True)
        cohort = Cohort(
            tuple(replace(r, age=float(a)) for r, a in zip(drawn.records, ages, strict=True))
        )
        rng = np.random.default_rng(seed)
        scores = SegmentationScores(
            tuple(r.case_id for r in cohort.records), rng.random(60), rng.random(60) * 2
        )
        rules = rules_of("official-code")
        found = segmentation_fairness(scores, group_cases(scores.case_ids, cohort, rules), rules)
        expected = by_the_scripts_formula(scores, cohort)
        assert np.isnan(expected[0]) == (not is_defined)
        assert [v.value for v in found.variables] == pytest.approx(expected, abs=1e-12, nan_ok=True)


codes = st.lists(st.integers(-1, 3), min_size=1, max_size=40)


@settings(deadline=None, max_examples=60)
@given(codes, st.floats(0, 1), st.floats(0, 3))
def test_fairness_is_one_when_all_cases_score_alike(codes, dsc, norm_hd):
    grouping = Grouping("v", ("a", "b", "c", "d"), codes)
    n = len(codes)
    found = variable_fairness(scores_of(np.full(n, dsc), np.full(n, norm_hd)), grouping, RULES)
    expected = 1.0 if max(codes) >= 0 else NAN
    assert found.value == pytest.approx(expected, abs=1e-12, nan_ok=True)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_fairness_depends_neither_on_the_order_of_cases_nor_on_that_of_groups(data):
    own = data.draw(codes)
    dsc = np.array(data.draw(st.lists(st.floats(0, 1), min_size=len(own), max_size=len(own))))
    order = np.array(data.draw(st.permutations(range(len(own)))), dtype=int)
    relabelled = np.array([-1, *data.draw(st.permutations(range(4)))])[np.array(own) + 1]
    names = ("a", "b", "c", "d")
    found = [
        variable_fairness(scores_of(d), Grouping("v", names, c), RULES).value
        for d, c in ((dsc, own), (dsc[order], np.array(own)[order]), (dsc, relabelled))
    ]
    assert found[1:] == pytest.approx([found[0]] * 2, abs=1e-12, nan_ok=True)


@settings(deadline=None, max_examples=60)
@given(codes, st.integers(0, 1000))
def test_fairness_of_scores_within_one_lies_from_0_to_1(codes, seed):
    rng = np.random.default_rng(seed)
    scores = scores_of(rng.random(len(codes)), rng.random(len(codes)))
    value = variable_fairness(scores, Grouping("v", ("a", "b", "c", "d"), codes), RULES).value
    assert np.isnan(value) or 0 <= value <= 1
