"""Balanced accuracy, recalls and equalised odds, by hand and against a slow loop."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_mamamia.core.cohort import CaseRecord, Cohort
from napari_mamamia.scoring.cohort.groups import EmptyGroups, Grouping, group_cases, rules_of
from napari_mamamia.scoring.cohort.response_cohort import (
    ResponsePredictions,
    balanced_accuracy,
    equalised_odds,
    group_rates,
    outcomes,
    recalls,
)

NAN = float("nan")
CLINICAL, OFFICIAL, PAPER = (rules_of(n) for n in ("clinical", "official-code", "paper"))


def predictions_of(label, predicted) -> ResponsePredictions:
    ids = tuple(str(i) for i in range(len(label)))
    return ResponsePredictions(ids, label, predicted, np.full(len(label), NAN))


def balanced(label, predicted, rules) -> float:
    cells = outcomes(np.array(label, dtype=float), np.array(predicted, dtype=float))
    return float(balanced_accuracy(cells.sum(axis=0), rules))


def test_balanced_accuracy_by_hand():
    # 4 responders, 3 found; 2 others, 1 spared: (0.75 + 0.5)/2
    assert balanced([1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0], CLINICAL) == 0.625


def test_balanced_accuracy_of_one_class_is_nan_except_in_the_scripts():
    assert np.isnan(balanced([1, 1], [1, 0], CLINICAL))
    assert balanced([1, 1], [1, 0], OFFICIAL) == 0.5
    assert balanced([0, 0, 0, 0], [1, 0, 0, 0], OFFICIAL) == 0.75
    assert np.isnan(balanced([], [], OFFICIAL))


def test_recalls_are_those_of_both_classes():
    cells = outcomes(np.array([1, 1, 0, NAN]), np.array([1.0, 0, 0, 1]))
    assert cells.sum(axis=0).tolist() == [1, 1, 0, 1]
    tpr, tnr = recalls(cells.sum(axis=0))
    assert (tpr, tnr) == (0.5, 1)


def test_equalised_odds_is_the_sum_of_both_gaps_by_hand():
    # x: TPR 2/2, FPR 1/2; y: TPR 1/2, FPR 0/2
    grouping = Grouping("v", ("x", "y"), [0] * 4 + [1] * 4)
    found = equalised_odds(
        predictions_of([1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 0, 0]), (grouping,), CLINICAL
    )
    variable = found.variables[0]
    assert (variable.tpr.disparity, variable.fpr.disparity, variable.disparity) == (0.5, 0.5, 1.0)
    assert (variable.tpr.worst_group, variable.tpr.worst, variable.tpr.variance) == (
        "y",
        0.5,
        1 / 16,
    )
    assert (variable.fpr.worst_group, variable.fpr.worst) == ("x", 0.5)
    assert (found.raw, found.clipped, found.fairness) == (1.0, 1.0, 0.0)
    assert [(g.n, g.n_responders, g.is_small) for g in variable.groups] == [(4, 2, True)] * 2


def test_a_disparity_above_one_is_cut_except_in_the_paper():
    # x: TPR 1, FPR 1; y: TPR 0, FPR 0
    grouping = Grouping("v", ("x", "y"), [0, 0, 1, 1])
    predictions = predictions_of([1, 0, 1, 0], [1, 1, 0, 0])
    fairness = {}
    for rules in (CLINICAL, OFFICIAL, PAPER):
        found = equalised_odds(predictions, (grouping,), rules)
        assert (found.raw, found.clipped) == (2.0, 1.0)
        fairness[rules.profile] = found.fairness
    assert fairness == {"clinical": 0, "official-code": 0, "paper": -1}


def test_a_group_without_responders_has_no_tpr_except_in_the_scripts():
    # x: TPR 1/2, FPR 1/2; y has no responders, FPR 1/2
    grouping = Grouping("v", ("x", "y"), [0, 0, 0, 0, 1, 1])
    predictions = predictions_of([1, 1, 0, 0, 0, 0], [1, 0, 1, 0, 1, 0])
    assert np.isnan(group_rates(predictions, grouping, CLINICAL)[1].tpr)
    assert equalised_odds(predictions, (grouping,), CLINICAL).raw == 0
    assert group_rates(predictions, grouping, OFFICIAL)[1].tpr == 0
    assert equalised_odds(predictions, (grouping,), OFFICIAL).raw == 0.5


def test_a_group_of_right_positives_only_counts_as_0_in_the_scripts():
    # their confusion matrix of such a group is 1 x 1, which they take for no answer
    grouping = Grouping("v", ("x", "y"), [0, 0, 1, 1])
    predictions = predictions_of([1, 1, 1, 0], [1, 1, 1, 0])
    assert group_rates(predictions, grouping, OFFICIAL)[0].tpr == 0
    assert group_rates(predictions, grouping, CLINICAL)[0].tpr == 1


def test_an_empty_age_group_counts_with_rates_of_0_in_the_scripts_only():
    predictions = predictions_of([1, 1, 0], [1, 0, 1])
    codes = [1, 1, 1]
    of_scripts = Grouping("age", ("x", "y"), codes, empty_groups=EmptyGroups.AS_SCRIPTS)
    assert equalised_odds(predictions, (of_scripts,), OFFICIAL).raw == 1.5  # TPR 0.5, FPR 1
    of_texts = Grouping("density", ("x", "y"), codes)
    assert equalised_odds(predictions, (of_texts,), OFFICIAL).raw == 0


def test_unknown_labels_belong_to_no_group():
    grouping = Grouping("v", ("x", "y"), [0, 0, 1])
    found = group_rates(predictions_of([1, NAN, NAN], [1, 1, 0]), grouping, OFFICIAL)
    assert [group.n for group in found] == [1, 0]


@pytest.mark.parametrize(
    ("label", "codes", "said"),
    [
        ([1, 0], [-1, -1], "no case with a known pcr has a group of v"),
        ([NAN, NAN], [0, 1], "no case with a known pcr has a group of v"),
        ([0, 0], [0, 1], "no group of v has responders"),
        ([1, 1], [0, 1], "no group of v has non-responders"),
    ],
)
def test_an_undefined_disparity_has_a_reason(label, codes, said):
    grouping = Grouping("v", ("x", "y"), codes)
    found = equalised_odds(predictions_of(label, [1, 0]), (grouping,), CLINICAL)
    assert np.isnan(found.fairness)
    assert found.reason == f"v: {said}"


def test_without_a_clinical_table_fairness_has_a_reason():
    assert "no clinical table" in equalised_odds(predictions_of([1], [1]), (), CLINICAL).reason


def test_labels_come_from_the_clinical_table():
    cohort = Cohort((CaseRecord("A", pcr=True), CaseRecord("B", pcr=False), CaseRecord("C")))
    rows = [("B", 1, 0.7), ("C", 0, 0.2), ("X", 0, NAN), ("A", 1, 0.9)]
    found = ResponsePredictions.of(rows, cohort)
    assert found.label == pytest.approx([0, NAN, NAN, 1], nan_ok=True)
    assert found.predicted.tolist() == [1, 0, 0, 1]


def test_constant_predictions_are_recognised():
    assert "all 3 predictions are 1" in predictions_of([1, 0, 0], [1, 1, 1]).constant
    assert predictions_of([1, 0, 0], [1, 1, 0]).constant == ""
    assert predictions_of([], []).constant == ""


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("A", 2, 0.5)], "expected predicted to be 0 or 1, but it is 2 for case A"),
        ([("A", NAN, 0.5)], "expected predicted to be 0 or 1, but it is nan"),
        ([("A", 1, 1.5)], "expected score to be a probability"),
        ([("A", 1, 0.5), ("A", 0, 0.5)], "expected one prediction for case A"),
    ],
)
def test_impossible_predictions_are_refused(rows, said):
    with pytest.raises(ValueError, match=said):
        ResponsePredictions.of(rows, Cohort(()))


def test_labels_other_than_0_and_1_are_refused():
    with pytest.raises(ValueError, match="expected label to be 0, 1 or nan, but it is 3"):
        predictions_of([3], [1])


def by_the_scripts_formula(frame: pd.DataFrame) -> list[float]:
    """Work out the disparities of age, menopause and density with pandas and python loops."""
    found = []
    for variable in ("age", "menopausal_status", "breast_density"):
        rates = []
        for _, group in frame.groupby(variable, observed=False):
            pairs = list(zip(group.label, group.predicted, strict=True))
            values = {value for pair in pairs for value in pair}
            of = [[p for y, p in pairs if y == wanted] for wanted in (1, 0)]
            one_value = len(values) < 2
            rates.append([0 if one_value or not said else said.count(1) / len(said) for said in of])
        gaps = [max(column) - min(column) for column in zip(*rates, strict=True)]
        found.append(sum(gaps))
    return found


@pytest.mark.parametrize("oldest", [88, 45])
@pytest.mark.parametrize("n_cases", [25, 120])
def test_official_code_equals_the_scripts_formula(random_cohort, n_cases, oldest):
    for seed in range(8):
        cohort = Cohort(
            tuple(r for r in random_cohort(n_cases, seed).records if (r.age or 0) <= oldest)
        )
        rng = np.random.default_rng(seed)
        ids = tuple(r.case_id for r in cohort.records)
        label = np.array([float(r.pcr) for r in cohort.records])
        predicted = rng.integers(0, 2, len(ids)).astype(float)
        ages = [r.age for r in cohort.records]
        menopause = [r.menopausal_status or "unknown" for r in cohort.records]
        frame = pd.DataFrame(
            {
                "label": label,
                "predicted": predicted,
                "age": pd.cut(pd.Series(ages, dtype=float), [0, 40, 50, 60, 70, 100]),
                "menopausal_status": ["pre" if m == "peri" else str(m) for m in menopause],
                "breast_density": [r.breast_density for r in cohort.records],
            }
        )
        predictions = ResponsePredictions(ids, label, predicted, np.full(len(ids), NAN))
        found = equalised_odds(predictions, group_cases(ids, cohort, OFFICIAL), OFFICIAL)
        expected = by_the_scripts_formula(frame)
        assert [v.disparity for v in found.variables] == pytest.approx(expected, abs=1e-12)
        assert found.fairness == pytest.approx(1 - min(1, sum(expected) / 3), abs=1e-12)


cases = st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(-1, 2)), min_size=1)


@settings(deadline=None, max_examples=60)
@given(cases, st.randoms())
def test_equalised_odds_does_not_depend_on_the_order_of_cases(rows, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    found = []
    for own in (rows, shuffled):
        label, predicted, codes = (np.array(column, dtype=float) for column in zip(*own))  # noqa: B905
        grouping = Grouping("v", ("x", "y", "z"), codes.astype(int))
        found.append(equalised_odds(predictions_of(label, predicted), (grouping,), CLINICAL).raw)
    assert found[0] == pytest.approx(found[1], abs=1e-12, nan_ok=True)


@settings(deadline=None, max_examples=60)
@given(cases)
def test_a_perfect_model_has_no_disparity(rows):
    label = np.array([row[0] for row in rows], dtype=float)
    grouping = Grouping("v", ("x", "y", "z"), [row[2] for row in rows])
    found = equalised_odds(predictions_of(label, label), (grouping,), CLINICAL)
    assert found.raw == 0 or np.isnan(found.raw)
