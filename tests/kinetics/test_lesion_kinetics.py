"""Kinetics of a lesion against numbers worked out by hand."""

import math

import numpy as np
import pytest

from napari_mamamia.kinetics.curves import DelayedCourse, InitialRise
from napari_mamamia.kinetics.lesion import lesion_kinetics
from napari_mamamia.kinetics.time_axis import Timing
from napari_mamamia.kinetics.timing import PhaseChoice

CHOICE = PhaseChoice(early=1, late=2, timing=Timing.UCSF_FTV)
SHAPE = (3, 6, 6)
WHOLE = np.ones(SHAPE, bool)


def signal_of(pre=100, early=200, late=200):
    return np.stack([np.full(SHAPE, value, np.int16) for value in (pre, early, late)])


def test_a_flat_lesion_of_one_plateau_by_hand():
    found = lesion_kinetics(signal_of(), WHOLE, CHOICE, 2.0)
    assert found.n_voxels == 108
    assert found.curve == (100.0, 200.0, 200.0)
    assert found.peak_enhancement == pytest.approx(100.0)
    assert found.initial is InitialRise.MEDIUM  # exactly 100 % is not above it
    assert found.angio_volume_mm3 == 216.0
    assert (found.persistent_mm3, found.plateau_mm3, found.washout_mm3) == (0.0, 216.0, 0.0)
    assert found.predominant is found.worst is DelayedCourse.PLATEAU


def test_three_touching_washout_voxels_are_the_worst_curve_and_two_are_not():
    signal = signal_of()
    signal[2, 1, 2, 2:4] = 150  # -25 % after the initial phase
    assert lesion_kinetics(signal, WHOLE, CHOICE, 1.0).worst is DelayedCourse.PLATEAU
    signal[2, 2, 3, 4] = 150  # touches the second by a corner
    found = lesion_kinetics(signal, WHOLE, CHOICE, 1.0)
    assert found.worst is DelayedCourse.WASHOUT
    assert found.predominant is DelayedCourse.PLATEAU
    assert found.washout_mm3 == 3.0


def test_washout_scattered_over_single_voxels_is_not_the_worst_curve():
    signal = signal_of()
    signal[2, 0, ::2, ::2] = 150  # nine voxels, none touching
    found = lesion_kinetics(signal, WHOLE, CHOICE, 1.0)
    assert found.washout_mm3 == 9.0
    assert found.worst is DelayedCourse.PLATEAU


def test_voxels_that_enhance_by_less_than_50_percent_are_outside_the_angio_volume():
    signal = signal_of()
    signal[1, 0], signal[2, 0] = 149, 100  # 49 %, then back
    signal[1, 1] = 150  # exactly 50 %, then +33 %
    found = lesion_kinetics(signal, WHOLE, CHOICE, 1.0)
    assert found.angio_volume_mm3 == 72.0
    assert (found.persistent_mm3, found.plateau_mm3, found.washout_mm3) == (36.0, 36.0, 0.0)
    assert found.predominant is DelayedCourse.PLATEAU  # of two equal shares the worse
    assert found.worst is DelayedCourse.PLATEAU


def test_the_hottest_patch_lies_within_one_slice_and_wholly_in_the_lesion():
    signal = signal_of()
    signal[1, 2, 0:3, 0:3] = 400  # one slice; the mask below leaves its corner out
    signal[1, 1, 2:5, 2:5] = 300
    inside = WHOLE.copy()
    inside[2, 0, 0] = False
    found = lesion_kinetics(signal, inside, CHOICE, 1.0)
    # next to the corner: six voxels of 400 and three of 200 beat nine of 300
    assert found.hottest.centre == (2, 1, 2)
    assert found.hottest.curve == pytest.approx((100, (6 * 400 + 3 * 200) / 9, 200))


def test_the_slice_of_the_hottest_patch_follows_the_slice_axis():
    signal = np.stack([np.full((5, 1, 5), v, np.int16) for v in (100, 200, 200)])
    signal[1, 1:4, 0, 1:4] = 300
    inside = np.ones((5, 1, 5), bool)
    assert lesion_kinetics(signal, inside, CHOICE, 1.0).hottest is None
    found = lesion_kinetics(signal, inside, CHOICE, 1.0, slice_axis=1)
    assert found.hottest.centre == (2, 0, 2)


def test_a_lesion_elsewhere_in_the_volume_gives_the_same_and_its_true_place():
    signal = np.full((3, 9, 12, 12), 50, np.int16)
    signal[:, 4:7, 3:9, 5:11] = signal_of()
    signal[1, 5, 5:8, 7:10] = 300
    inside = np.zeros((9, 12, 12), bool)
    inside[4:7, 3:9, 5:11] = True
    found = lesion_kinetics(signal, inside, CHOICE, 1.0)
    assert found.hottest.centre == (5, 6, 8)
    assert found.n_voxels == 108


def test_without_a_delayed_phase_courses_are_undefined_and_the_reason_is_told():
    choice = PhaseChoice(1, None, Timing.UCSF_FTV, reason="the last phase is at 180 s")
    found = lesion_kinetics(signal_of(), WHOLE, choice, 1.0)
    assert found.predominant is found.worst is DelayedCourse.UNDEFINED
    assert math.isnan(found.washout_mm3)
    assert found.angio_volume_mm3 == 108.0
    assert found.reason == "the last phase is at 180 s"


def test_an_empty_mask_is_undefined_not_zero_percent():
    found = lesion_kinetics(signal_of(), np.zeros(SHAPE, bool), CHOICE, 1.0)
    assert found.n_voxels == 0
    assert math.isnan(found.peak_enhancement)
    assert found.reason == "the mask is empty"


def test_a_lesion_that_is_dark_before_contrast_has_no_enhancement():
    found = lesion_kinetics(signal_of(pre=0), WHOLE, CHOICE, 1.0)
    assert found.initial is InitialRise.UNDEFINED
    assert math.isnan(found.peak_enhancement)
    assert found.angio_volume_mm3 == 0.0
    assert found.worst is DelayedCourse.UNDEFINED
