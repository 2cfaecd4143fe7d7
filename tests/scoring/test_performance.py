"""Mean DSC, mean NormHD and the performance made of both."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_mamamia.scoring.statistics.performance import (
    SegmentationScores,
    ratio,
    segmentation_performance,
)

NAN = float("nan")


def test_performance_is_half_of_mean_dsc_plus_one_minus_mean_norm_hd():
    scores = SegmentationScores.of([("A", 0.5, 0.25), ("B", 1.0, 0.75)])
    found = segmentation_performance(scores)
    assert (found.mean_dsc, found.mean_norm_hd, found.value) == (0.75, 0.5, 0.625)
    assert (found.n_cases, found.excluded, found.reason) == (2, (), "")


def test_undefined_values_are_left_out_counted_and_listed():
    rows = [("A", 0.5, 0.25), ("B", NAN, NAN), ("C", 0.0, NAN)]
    found = segmentation_performance(SegmentationScores.of(rows))
    assert (found.mean_dsc, found.mean_norm_hd) == (0.25, 0.25)
    assert (found.n_cases, found.n_dsc, found.n_norm_hd) == (3, 2, 1)
    assert found.excluded == ("B", "C")


def test_without_a_defined_score_performance_is_nan_with_a_reason():
    for rows in ([], [("A", NAN, NAN)]):
        found = segmentation_performance(SegmentationScores.of(rows))
        assert np.isnan(found.value)
        assert "defined score" in found.reason


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("A", 1.2, 0.1)], "expected dsc to be from 0 to 1 .* it is 1.2 for case A"),
        ([("A", -0.1, 0.1)], "it is -0.1"),
        ([("A", 0.5, -0.1)], "expected norm_hd to be 0 or above"),
        ([("A", 0.5, float("inf"))], "it is inf"),
        ([("A", 0.5, 0.1), ("A", 0.5, 0.1)], "expected one score for case A"),
    ],
)
def test_impossible_scores_are_refused_with_case_and_value(rows, said):
    with pytest.raises(ValueError, match=said):
        SegmentationScores.of(rows)


def test_columns_of_another_length_are_refused():
    with pytest.raises(ValueError, match="expected 2 values of dsc"):
        SegmentationScores(("A", "B"), np.zeros(3), np.zeros(2))


def test_a_ratio_with_nothing_below_is_nan():
    assert ratio(np.array([1.0, 0.0]), np.array([2.0, 0.0]))[0] == 0.5
    assert np.isnan(ratio(np.array([0.0]), np.array([0.0]))[0])


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 3)), min_size=1, max_size=30), st.randoms())
def test_performance_does_not_depend_on_the_order_of_cases(values, random):
    rows = [(str(i), *pair) for i, pair in enumerate(values)]
    shuffled = list(rows)
    random.shuffle(shuffled)
    values = [segmentation_performance(SegmentationScores.of(r)).value for r in (rows, shuffled)]
    assert values[0] == pytest.approx(values[1], abs=1e-12)
