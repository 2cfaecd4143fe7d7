"""Maps, curve types and the choice of phases against numbers worked out by hand."""

import math

import numpy as np
import pytest
from tests.stepped import Stepped

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.progress import listening
from napari_mamamia.kinetics.curves import (
    CurveThresholds,
    DelayedCourse,
    InitialRise,
    curve_enhancement,
    delayed_change,
    delayed_course,
    initial_rise,
    region_curve,
)
from napari_mamamia.kinetics.map_blocks import (
    peak_enhancement,
    percent_enhancement,
    signal_enhancement_ratio,
    subtraction,
)
from napari_mamamia.kinetics.map_kinds import MapKind, MapNeeds, map_recipe
from napari_mamamia.kinetics.time_axis import TimingRule
from napari_mamamia.kinetics.timing import (
    choose_phases,
)

NAN = float("nan")
TYPES = [np.uint8, np.int16, np.uint16, np.int32, np.float32, np.float64]


def same(got, expected):
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, np.array(expected), rtol=1e-6)


# --- the formulas


@pytest.mark.parametrize("dtype", TYPES)
def test_percent_enhancement_by_hand(dtype):
    # 100 (150 - 100) / 100, 100 (40 - 50) / 50, 100 (8 - 8) / 8, 100 (0 - 20) / 20
    signal = np.array([[100, 50, 8, 20], [150, 40, 8, 0]], dtype=dtype)
    same(percent_enhancement(signal, 1), [50, -20, 0, -100])


@pytest.mark.parametrize("dtype", TYPES)
def test_percent_enhancement_of_a_dark_pre_contrast_voxel_is_undefined_not_zero(dtype):
    signal = np.array([[0, 0, 1], [0, 90, 3]], dtype=dtype)
    same(percent_enhancement(signal, 1), [NAN, NAN, 200])


def test_percent_enhancement_is_undefined_up_to_and_including_eps():
    signal = np.array([[9, 10, 11], [18, 20, 22]], dtype=np.int16)
    same(percent_enhancement(signal, 1, eps=10), [NAN, NAN, 100])


def test_percent_enhancement_of_a_negative_pre_contrast_signal_is_undefined():
    same(percent_enhancement(np.array([[-5.0, 5.0], [10.0, 10.0]]), 1), [NAN, 100])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_undefined_and_do_not_spread(bad):
    signal = np.array([[bad, 10, 10], [10, bad, 20], [10, 10, 30]])
    same(percent_enhancement(signal, 1), [NAN, NAN, 100])
    same(signal_enhancement_ratio(signal, 1, 2), [NAN, NAN, 0.5])
    same(signal_enhancement_ratio(signal[[2, 0, 1]], 1, 2)[:2], [NAN, NAN])
    same(peak_enhancement(signal), [NAN, NAN, 200])


@pytest.mark.parametrize("dtype", TYPES)
def test_signal_enhancement_ratio_by_hand(dtype):
    # washout (220 - 100) / (200 - 100); plateau 100 / 100; persistent 40 / 80
    signal = np.array([[100, 100, 20], [220, 200, 60], [200, 200, 100]], dtype=dtype)
    same(signal_enhancement_ratio(signal, 1, 2), [1.2, 1.0, 0.5])


def test_signal_enhancement_ratio_is_undefined_where_the_late_rise_is_not_positive():
    # late equals phase 0; late below phase 0; phase 0 is zero; early below phase 0 is defined
    signal = np.array([[100, 100, 0, 100], [150, 150, 50, 80], [100, 60, 40, 140]], dtype=np.uint16)
    same(signal_enhancement_ratio(signal, 1, 2), [NAN, NAN, NAN, -0.5])


def test_signal_enhancement_ratio_is_undefined_where_the_late_rise_is_at_most_eps():
    signal = np.array([[100, 100], [120, 120], [105, 106]], dtype=np.int16)
    same(signal_enhancement_ratio(signal, 1, 2, eps=5), [NAN, 20 / 6])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_subtraction_of_unsigned_integers_is_signed_and_does_not_wrap(dtype):
    signal = np.array([[200, 3], [100, 5]], dtype=dtype)
    same(subtraction(signal, 1), [-100, 2])
    same(subtraction(signal, 0, 1), [100, -2])


def test_subtraction_uses_the_whole_range_of_int16():
    signal = np.array([[-32768], [32767]], dtype=np.int16)
    same(subtraction(signal, 1), [65535])


@pytest.mark.parametrize("dtype", TYPES)
def test_peak_enhancement_is_the_largest_of_the_post_contrast_phases(dtype):
    # the last voxel never rises: its peak is the least fall, not phase 0's own 0 %
    signal = np.array([[100, 50, 0, 100], [150, 60, 9, 80], [180, 55, 9, 90], [120, 50, 9, 70]])
    same(peak_enhancement(signal.astype(dtype)), [80, 20, NAN, -10])


def test_maps_leave_their_input_alone_and_take_read_only_strided_views():
    signal = np.arange(1, 121, dtype=np.int16).reshape(2, 3, 4, 5)
    before = signal.copy()
    view = signal[:, ::-1, :, ::2]
    view.setflags(write=False)
    same(percent_enhancement(view, 1), 100 * 60 / view[0])
    assert np.array_equal(signal, before)


@pytest.mark.parametrize("phase", [-1, 2, 7])
def test_a_phase_that_does_not_exist_is_an_error_that_names_the_shape(phase):
    with pytest.raises(CaseError, match=r"\(2, 3\)"):
        percent_enhancement(np.ones((2, 3)), phase)


def test_peak_enhancement_needs_a_post_contrast_phase():
    with pytest.raises(CaseError):
        peak_enhancement(np.ones((1, 3)))


# --- parity with a slow loop


def slow_maps(signal, early, late):
    """Return PE, SER, subtraction and peak PE voxel by voxel in Python floats."""
    out = np.full((4, *signal.shape[1:]), np.nan)
    for voxel in np.ndindex(*signal.shape[1:]):
        s = [float(phase[voxel]) for phase in signal]
        out[2][voxel] = s[early] - s[0]
        if s[0] > 0:
            out[0][voxel] = 100 * (s[early] - s[0]) / s[0]
            out[3][voxel] = max(100 * (t - s[0]) / s[0] for t in s[1:])
            if s[late] - s[0] > 0:
                out[1][voxel] = (s[early] - s[0]) / (s[late] - s[0])
    return out


@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.float32])
def test_every_map_equals_a_slow_loop_over_voxels(dtype):
    rng = np.random.default_rng(5)
    signal = rng.integers(0, 600, (5, 4, 6, 7)).astype(dtype)
    signal[0, :2, :3, :3] = 0
    choice = choose_phases((0, 60, 150, 300, 450))
    assert (choice.early, choice.late) == (2, 4)
    expected = slow_maps(signal, 2, 4)
    plain = {
        MapKind.PE: (expected[0], percent_enhancement(signal, 2)),
        MapKind.SER: (expected[1], signal_enhancement_ratio(signal, 2, 4)),
        MapKind.PEAK: (expected[3], peak_enhancement(signal)),
    }
    for kind, (slow, fast) in plain.items():
        np.testing.assert_allclose(fast, slow, rtol=1e-5, atol=1e-4, err_msg=kind)
        recipe = map_recipe(kind, MapNeeds(choice, (), TimingRule()))
        np.testing.assert_array_equal(recipe.compute(signal), fast)
    np.testing.assert_allclose(subtraction(signal, 2), expected[2], rtol=1e-5, atol=1e-4)


STANDARD = {
    MapKind.PE: 120.0,
    MapKind.SER: 1.2,
    MapKind.PEAK: 120.0,
    MapKind.WASH_IN: 0.8,  # 120 % in 150 s
    MapKind.WASH_OUT: -4.0,  # 20 % in 5 minutes
    MapKind.TYPE: 2,  # 100 (200 - 220) / 220 = -9.1 %: a plateau
}


@pytest.mark.parametrize("kind", STANDARD)
def test_the_job_of_a_map_counts_planes_in_order_and_ends_at_its_total(kind):
    # 512 x 512 voxels a plane: several blocks, so that a large volume yields on its way
    signal = np.zeros((3, 6, 512, 512), dtype=np.int16)
    signal[0], signal[1], signal[2] = 100, 220, 200
    seen = []
    with listening(seen.append):
        choice = choose_phases((0, 150, 450))
        needs = MapNeeds(choice, (0, 150, 450), TimingRule())
        result = map_recipe(kind, needs).fill(signal)
    done = [progress.done for progress in seen]
    assert len(done) >= 3
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0, 6)
    assert {progress.total for progress in seen} == {6}
    assert kind.value in seen[0].text
    np.testing.assert_allclose(np.unique(result), [STANDARD[kind]], rtol=1e-6)


def test_the_ratio_without_a_late_phase_is_an_error_with_the_reason():
    with pytest.raises(CaseError, match="no phase after the early phase"):
        map_recipe(MapKind.SER, MapNeeds(choose_phases((0, 150)), (0, 150), TimingRule()))


def test_a_job_of_a_map_can_be_closed_on_its_way():
    needs = MapNeeds(choose_phases((0, 150)), (0, 150), TimingRule())
    job = Stepped(map_recipe(MapKind.PE, needs).fill, np.ones((2, 4, 2, 2)))
    next(job)
    job.close()


# --- curve types


def test_initial_rise_at_its_thresholds():
    enhancement = np.array([NAN, -20, 49.99, 50, 100, 100.01], dtype=np.float32)
    expected = [
        InitialRise.UNDEFINED,
        InitialRise.SLOW,
        InitialRise.SLOW,
        InitialRise.MEDIUM,
        InitialRise.MEDIUM,
        InitialRise.FAST,
    ]
    got = initial_rise(enhancement)
    assert got.dtype == np.uint8
    assert got.tolist() == expected


def test_delayed_course_at_its_thresholds():
    change = np.array([NAN, 10.01, 10, 0, -10, -10.01], dtype=np.float32)
    expected = [
        DelayedCourse.UNDEFINED,
        DelayedCourse.PERSISTENT,
        DelayedCourse.PLATEAU,
        DelayedCourse.PLATEAU,
        DelayedCourse.PLATEAU,
        DelayedCourse.WASHOUT,
    ]
    got = delayed_course(change)
    assert got.dtype == np.uint8
    assert got.tolist() == expected


@pytest.mark.parametrize("start", [10, 30, 70, 130, 330, 1230, 24990])
@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.float32])
def test_a_change_of_exactly_ten_percent_is_a_plateau_whatever_the_signal(start, dtype):
    tenth = start // 10
    initial = np.array([start] * 4, dtype=dtype)
    late = np.array([start + tenth, start - tenth, start + tenth + 1, start - tenth - 1], dtype)
    change = delayed_change(initial, late)
    assert change[:2].tolist() == [10, -10]
    assert delayed_course(change).tolist() == [2, 2, 1, 3]


@pytest.mark.parametrize("pre", [2, 6, 14, 334, 15000])
def test_a_rise_of_exactly_50_or_100_percent_is_medium_whatever_the_signal(pre):
    signal = np.array([[pre] * 4, [pre * 3 // 2, pre * 2, pre * 3 // 2 - 1, pre * 2 + 1]])
    rise = percent_enhancement(signal.astype(np.uint16), 1)
    assert initial_rise(rise).tolist() == [2, 2, 1, 3]


def test_delayed_change_by_hand():
    initial = np.array([200, 200, 50, 0, 10], dtype=np.uint16)
    late = np.array([150, 230, 50, 40, 0], dtype=np.uint16)
    got = delayed_change(initial, late)
    same(got, [-25, 15, 0, NAN, -100])
    same(delayed_change(initial, late, eps=10), [-25, 15, 0, NAN, NAN])


def test_delayed_change_of_values_that_are_not_finite_is_undefined():
    same(delayed_change(np.array([NAN, 1, np.inf, 2]), np.array([1, NAN, 1, 1])), [NAN] * 3 + [-50])


def test_thresholds_of_curve_types_can_be_changed():
    other = CurveThresholds(medium=30, fast=60, change=5)
    assert initial_rise(np.array([29, 30, 60, 61.0]), other).tolist() == [1, 2, 2, 3]
    assert delayed_course(np.array([5.1, 5, -5, -5.1]), other).tolist() == [1, 2, 2, 3]


@pytest.mark.parametrize("wrong", [{"medium": 120}, {"medium": -1}, {"change": -0.1}])
def test_thresholds_that_contradict_each_other_are_refused(wrong):
    with pytest.raises(ValueError, match="medium <= fast"):
        CurveThresholds(**wrong)


# --- the curve of a region


def test_the_curve_of_a_region_is_the_mean_signal_of_every_phase():
    signal = np.zeros((3, 1, 2, 2), dtype=np.int16)
    signal[:, 0, 0, 0] = (100, 200, 180)
    signal[:, 0, 1, 1] = (200, 500, 420)
    mask = np.array([[[True, False], [False, True]]])
    curve = region_curve(signal, mask)
    assert curve.tolist() == [150, 350, 300]
    # 100 (350 - 150) / 150 and 100 (300 - 150) / 150
    np.testing.assert_allclose(curve_enhancement(curve), [0, 400 / 3, 100])


def test_the_curve_of_large_integers_does_not_overflow():
    signal = np.full((2, 4, 50, 50), 32767, dtype=np.int16)
    assert region_curve(signal, np.ones((4, 50, 50), dtype=bool)).tolist() == [32767, 32767]


def test_the_curve_leaves_out_voxels_that_are_not_finite_in_any_phase():
    signal = np.array([[10.0, 20.0, NAN], [20.0, np.inf, 5.0]]).reshape(2, 1, 1, 3)
    assert region_curve(signal, np.ones((1, 1, 3), dtype=bool)).tolist() == [10, 20]


def test_the_curve_of_no_voxels_is_undefined():
    signal = np.ones((3, 1, 1, 2))
    curve = region_curve(signal, np.zeros((1, 1, 2), dtype=bool))
    assert all(math.isnan(value) for value in curve)
    assert all(math.isnan(value) for value in curve_enhancement(curve))


def test_the_enhancement_of_a_curve_that_starts_at_0_is_undefined():
    assert np.isnan(curve_enhancement(np.array([0.0, 5.0]))).all()
    assert np.isnan(curve_enhancement(np.array([5.0, 9.0]), eps=5.0)).all()


def test_a_mask_of_another_shape_is_refused_with_both_shapes():
    with pytest.raises(ValueError, match=r"\(1, 2, 3\).*\(1, 2, 2\)"):
        region_curve(np.ones((2, 1, 2, 3)), np.ones((1, 2, 2), dtype=bool))
