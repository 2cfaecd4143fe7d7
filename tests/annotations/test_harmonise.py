"""Orientation profiles and label rules."""

import numpy as np
import pytest

from napari_mamamia.annotations.harmonise import harmonised, map_labels
from napari_mamamia.core.choices import OrientationProfile
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.label_rules import LabelRule

AXIAL = Grid((10, 40, 40), np.diag([0.7, 0.7, 3.0, 1.0]))  # RAS, slices along S
SAGITTAL = Grid(
    (10, 40, 40), np.array([[0, 0, 3.0, 0], [0.7, 0, 0, 0], [0, 0.7, 0, 0], [0, 0, 0, 1]])
)
CORONAL = Grid(
    (10, 40, 40), np.array([[0.7, 0, 0, 0], [0, 0, 3.0, 0], [0, 0.7, 0, 0], [0, 0, 0, 1]])
)


@pytest.mark.parametrize(
    ("grid", "profile", "expected"),
    [
        (AXIAL, "las-psr", "LAS"),
        (SAGITTAL, "las-psr", "PSR"),
        (CORONAL, "las-psr", "RSA"),  # x to R, y to S, z to A: as it was
        (AXIAL, "as-is", "RAS"),
        (SAGITTAL, "as-is", "ASR"),
        (SAGITTAL, "ras", "RAS"),
        (AXIAL, "lps", "LPS"),
    ],
)
def test_a_profile_brings_an_acquisition_into_its_orientation(grid, profile, expected):
    assert harmonised(grid, OrientationProfile(profile)).target.orientation == expected


def test_values_become_the_targets_of_their_rules():
    rules = [LabelRule(1, 1, "tumour"), LabelRule(2, 1, "second tumour"), LabelRule(255, 0, "pen")]
    values = np.array([[0, 1, 2], [255, 0, 1]])
    assert map_labels(values, rules).tolist() == [[0, 1, 1], [0, 0, 1]]


def test_a_value_without_a_rule_is_refused_by_name():
    with pytest.raises(FormatError, match="but 3, 7 has none"):
        map_labels(np.array([0, 1, 3, 7]), [LabelRule(1, 1, "tumour")])


def test_two_rules_for_one_value_are_refused():
    with pytest.raises(FormatError, match="two for 1"):
        map_labels(np.array([0, 1]), [LabelRule(1, 1, "a"), LabelRule(1, 2, "b")])


def test_nan_needs_a_rule_too_and_is_refused():
    with pytest.raises(FormatError, match="nan"):
        map_labels(np.array([0.0, np.nan]), [LabelRule(1, 1, "tumour")])
