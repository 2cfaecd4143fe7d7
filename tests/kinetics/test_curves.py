"""Curve classes, region curves, and the curve of a real tumour."""

import json

import numpy as np
import pytest

from napari_mamamia.kinetics.curve_types import (
    CurveThresholds,
    DelayedCourse,
    InitialRise,
    delayed_change,
    delayed_course,
    initial_rise,
)
from napari_mamamia.kinetics.curves import curve_enhancement, region_curve
from napari_mamamia.kinetics.maps import percent_enhancement
from napari_mamamia.kinetics.timing import choose_curve_phases

NAN = float("nan")


def test_initial_rise_is_slow_below_50_medium_to_100_and_fast_above():
    pe = np.array([-20.0, 49.9, 50.0, 100.0, 100.1])
    slow, medium, fast = InitialRise.SLOW, InitialRise.MEDIUM, InitialRise.FAST
    assert initial_rise(pe).tolist() == [slow, slow, medium, medium, fast]


def test_delayed_course_has_both_edges_in_the_plateau():
    change = np.array([10.1, 10.0, 0.0, -10.0, -10.1])
    rises, stays, falls = (
        DelayedCourse.PERSISTENT,
        DelayedCourse.PLATEAU,
        DelayedCourse.WASHOUT,
    )
    assert delayed_course(change).tolist() == [rises, stays, stays, stays, falls]


def test_undefined_voxels_are_class_0():
    assert initial_rise(np.array([NAN])).tolist() == [InitialRise.UNDEFINED]
    assert delayed_course(np.array([NAN])).tolist() == [DelayedCourse.UNDEFINED]


def test_delayed_change_is_relative_to_the_initial_signal():
    initial = np.array([200, 200, 0], dtype=np.uint16)
    late = np.array([150, 250, 10], dtype=np.uint16)
    expected = [-25.0, 25.0, NAN]
    assert np.array_equal(delayed_change(initial, late), expected, equal_nan=True)


def test_delayed_change_is_nan_where_a_value_is_not_finite():
    initial = np.array([np.inf, 100.0, NAN], dtype=np.float32)
    late = np.array([100.0, np.inf, 100.0], dtype=np.float32)
    assert np.isnan(delayed_change(initial, late)).all()


def test_thresholds_move_the_classes():
    limits = CurveThresholds(medium=60.0, fast=80.0, change=5.0)
    assert initial_rise(np.array([55.0, 90.0]), limits).tolist() == [1, 3]
    assert delayed_course(np.array([6.0, -6.0]), limits).tolist() == [1, 3]


def test_thresholds_out_of_order_are_refused():
    with pytest.raises(ValueError, match="medium <= fast"):
        CurveThresholds(medium=120.0)


def test_maps_of_classes_keep_shape_and_are_uint8():
    pe = np.zeros((2, 3, 4), dtype=np.float32)
    assert initial_rise(pe).shape == delayed_course(pe).shape == (2, 3, 4)
    assert initial_rise(pe).dtype == delayed_course(pe).dtype == np.uint8


def test_region_curve_is_the_mean_signal_of_each_phase():
    signal = np.array([[[[10, 30, 99]]], [[[20, 80, 99]]]], dtype=np.int16)
    mask = np.array([[[True, True, False]]])
    assert region_curve(signal, mask).tolist() == [20.0, 50.0]
    assert curve_enhancement(region_curve(signal, mask)).tolist() == [0.0, 150.0]


def test_region_curve_leaves_out_voxels_that_are_not_finite_in_every_phase():
    signal = np.array([[[[10, 30]]], [[[20, NAN]]]], dtype=np.float32)
    assert region_curve(signal, np.ones((1, 1, 2), dtype=bool)).tolist() == [10.0, 20.0]


def test_curve_of_an_empty_region_and_of_a_dark_region_is_nan():
    signal = np.zeros((3, 1, 1, 2), dtype=np.int16)
    assert np.isnan(region_curve(signal, np.zeros((1, 1, 2), dtype=bool))).all()
    assert np.isnan(curve_enhancement(np.array([0.0, 5.0, 5.0]))).all()


def test_region_of_another_shape_is_refused():
    with pytest.raises(ValueError, match="shape"):
        region_curve(np.zeros((3, 1, 1, 2)), np.zeros((1, 2, 1), dtype=bool))


@pytest.mark.real
def test_the_real_tumour_enhances_fast_and_then_stays_level(real_data):
    nib = pytest.importorskip("nibabel")
    folder = real_data("dce_slice")
    times = json.loads((folder / "times.json").read_text())["times_s"]
    files = sorted((folder / "images" / "REAL_001").glob("*.nii.gz"))
    signal = np.stack([np.asarray(nib.load(f).dataobj).transpose(2, 1, 0) for f in files])
    # rows 95 to 125 from the top: y runs to superior and has 192 voxels; x runs to posterior
    box = np.zeros(signal.shape[1:], dtype=bool)
    box[:, 192 - 125 : 192 - 94, 85:116] = True
    mask = box & (percent_enhancement(signal, 2) > 80)
    enhancement = curve_enhancement(region_curve(signal, mask))
    # the box's edge is not exact: a voxel's row or column moves these means by about 1.5 %
    np.testing.assert_allclose(
        enhancement, [0.0, 164.4, 212.1, 209.9, 205.5, 197.4], rtol=0.025, atol=1e-9
    )
    choice = choose_curve_phases(times)
    curve = region_curve(signal, mask)
    initial, late = curve[choice.early : choice.early + 1], curve[choice.late : choice.late + 1]
    assert (choice.early, choice.late) == (1, 5)
    assert initial_rise(enhancement[1:2]).tolist() == [InitialRise.FAST]
    # from 82 to 394 s the signal still rises by (297.4 - 264.4) / 264.4 = 12 %; from the peak at
    # 148 s on it stays within 10 %: the plateau that the README speaks of
    assert delayed_change(initial, late).item() == pytest.approx(12.0, abs=1.5)
    peak_to_late = delayed_change(curve[2:3], curve[5:6])
    assert delayed_course(peak_to_late).tolist() == [DelayedCourse.PLATEAU]
