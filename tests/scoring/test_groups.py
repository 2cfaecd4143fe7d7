"""Groups by age, menopausal status and density under the three profiles."""

import numpy as np
import pytest

from napari_mamamia.core.cohort import CaseRecord, Cohort, MenopausalStatus
from napari_mamamia.scoring.case.profiles import PROFILES
from napari_mamamia.scoring.cohort.groups import (
    FAIRNESS_VARIABLES,
    GROUP_RULES,
    Grouping,
    group_cases,
    rules_of,
)


def label_of(profile: str, **fields) -> list[str | None]:
    cohort = Cohort((CaseRecord("A", **fields),))
    groupings = group_cases(("A",), cohort, rules_of(profile))
    return [g.labels[g.codes[0]] if g.codes[0] >= 0 else None for g in groupings]


def test_there_are_rules_for_every_profile_in_its_order():
    assert list(GROUP_RULES) == list(PROFILES)


def test_an_unknown_profile_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="one of the profiles clinical, official-code, paper"):
        rules_of("strict")


@pytest.mark.parametrize(
    ("age", "of_scripts", "of_paper"),
    [
        (0, None, "<40"),
        (39, "0-40", "<40"),
        (40, "0-40", None),
        (40.5, "41-50", None),
        (41, "41-50", "41-50"),
        (50, "41-50", "41-50"),
        (51, "51-60", "51-60"),
        (60, "51-60", "51-60"),
        (61, "61-70", "61-70"),
        (70, "61-70", "61-70"),
        (71, "71+", None),
        (72, "71+", ">71"),
        (100, "71+", ">71"),
        (101, None, ">71"),
    ],
)
def test_ages_fall_into_the_groups_that_each_profile_names(age, of_scripts, of_paper):
    assert label_of("official-code", age=age)[0] == of_scripts
    assert label_of("clinical", age=age)[0] == of_scripts
    assert label_of("paper", age=age)[0] == of_paper


@pytest.mark.parametrize(
    ("status", "official", "paper", "clinical"),
    [
        (MenopausalStatus.PRE, "pre", "pre", "pre"),
        (MenopausalStatus.PERI, "pre", None, "pre"),
        (MenopausalStatus.POST, "post", "post", "post"),
        (None, "unknown", None, None),
    ],
)
def test_peri_and_missing_menopausal_status_go_where_each_profile_says(
    status, official, paper, clinical
):
    assert label_of("official-code", menopausal_status=status)[1] == official
    assert label_of("paper", menopausal_status=status)[1] == paper
    assert label_of("clinical", menopausal_status=status)[1] == clinical


def test_every_unassigned_case_is_listed_with_its_reason():
    cohort = Cohort(
        (
            CaseRecord("A", age=40, menopausal_status=MenopausalStatus.PERI, breast_density="e"),
            CaseRecord("B"),
        )
    )
    age, menopause, density = group_cases(("A", "B", "C"), cohort, rules_of("paper"))
    assert [(u.case_id, u.reason) for u in age.unassigned] == [
        ("A", "age 40 is in no age group of the profile paper"),
        ("B", "the age is missing"),
        ("C", "it is not in the clinical table"),
    ]
    assert [u.reason for u in menopause.unassigned] == [
        "menopausal status peri is in no group of the profile paper",
        "the menopausal status is missing",
        "it is not in the clinical table",
    ]
    assert [u.reason for u in density.unassigned] == [
        "breast density 'e' is not one of a, b, c, d",
        "the breast density is missing",
        "it is not in the clinical table",
    ]
    assert [g.variable for g in (age, menopause, density)] == list(FAIRNESS_VARIABLES)


def test_a_case_without_a_clinical_row_is_no_unknown_of_official_code():
    _, menopause, _ = group_cases(("X",), Cohort(()), rules_of("official-code"))
    assert menopause.codes.tolist() == [-1]


def test_sizes_and_indicator_follow_from_the_codes():
    grouping = Grouping("centre", ("p", "q", "r"), np.array([0, 2, -1, 0]))
    assert grouping.sizes.tolist() == [2, 0, 1]
    assert grouping.indicator.tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0], [1, 0, 0]]


@pytest.mark.parametrize("codes", [[0, 3], [-2, 0], [[0], [1]]])
def test_codes_outside_the_groups_are_refused(codes):
    with pytest.raises(ValueError, match="centre"):
        Grouping("centre", ("p", "q", "r"), np.array(codes))


def test_codes_are_a_copy_that_nobody_can_write_to():
    codes = np.array([0, 1])
    grouping = Grouping("centre", ("p", "q"), codes)
    codes[0] = 1
    assert grouping.codes.tolist() == [0, 1]
    with pytest.raises(ValueError, match="read-only"):
        grouping.codes[0] = 1
