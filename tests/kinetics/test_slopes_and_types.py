"""Wash-in, wash-out and curve-type maps by hand and against slow loops over voxels."""

import numpy as np
import pytest

from napari_mamamia.core.errors import CaseError
from napari_mamamia.kinetics import map_formulas
from napari_mamamia.kinetics.curves import CurveThresholds, delayed_change, delayed_course
from napari_mamamia.kinetics.map_blocks import MapRecipe, percent_enhancement, required_times
from napari_mamamia.kinetics.map_kinds import MAPS, MapKind, MapNeeds, map_recipe
from napari_mamamia.kinetics.time_axis import Timing, TimingRule
from napari_mamamia.kinetics.timing import choose_curve_phases, choose_phases

NAN = float("nan")
TIMES = (0.0, 60.0, 120.0, 300.0)


def slope(signal, formula, times):
    """Return the map of a formula that needs times and all phases."""
    built = formula(required_times(times, "slope"), 0.0)
    return MapRecipe(built, tuple(range(len(times)))).compute(signal)


def wash_in_slope(signal, times):
    return slope(signal, map_formulas.wash_in_slope, times)


def wash_out_slope(signal, times):
    return slope(signal, map_formulas.wash_out_slope, times)


def curve_types(signal, initial, delayed):
    formula = map_formulas.curve_type(initial, delayed, CurveThresholds(), 0.0)
    return MapRecipe(formula, (0, initial, delayed), dtype=np.uint8).compute(signal)


def column(*values):
    return np.array(values, dtype=np.int16)[:, None]


def test_wash_in_is_the_peak_enhancement_over_the_seconds_to_it():
    # peak 250 at 120 s: 150 % / 120 s
    np.testing.assert_allclose(wash_in_slope(column(100, 200, 250, 220), TIMES), [1.25], rtol=1e-6)


def test_wash_in_counts_the_first_of_two_equal_peaks():
    np.testing.assert_allclose(wash_in_slope(column(100, 160, 160, 100), TIMES), [1.0], rtol=1e-6)


def test_wash_in_of_a_voxel_that_only_falls_is_negative():
    # 80 at 60 s: -20 % / 60 s
    np.testing.assert_allclose(wash_in_slope(column(100, 80, 70, 60), TIMES), [-1 / 3], rtol=1e-6)


def test_wash_out_is_the_fall_from_the_peak_per_minute():
    # PE 150 % at 120 s, 120 % at 300 s: -30 % in 3 minutes
    np.testing.assert_allclose(
        wash_out_slope(column(100, 200, 250, 220), TIMES), [-10.0], rtol=1e-6
    )


def test_wash_out_is_undefined_where_the_last_phase_is_the_highest():
    np.testing.assert_array_equal(wash_out_slope(column(100, 200, 250, 251), TIMES), [NAN])


def test_times_that_do_not_start_at_0_give_the_same_slopes():
    signal = column(100, 200, 250, 220)
    late = tuple(time + 40 for time in TIMES)
    np.testing.assert_array_equal(wash_in_slope(signal, late), wash_in_slope(signal, TIMES))
    np.testing.assert_array_equal(wash_out_slope(signal, late), wash_out_slope(signal, TIMES))


@pytest.mark.parametrize("dtype", [np.int16, np.float32])
def test_slopes_equal_a_slow_loop_over_voxels(dtype):
    signal = np.random.default_rng(3).integers(0, 90, (4, 5, 6, 7)).astype(dtype)
    rise, fall = np.full((2, *signal.shape[1:]), NAN)
    for at in np.ndindex(*signal.shape[1:]):
        s = [float(value) for value in signal[(slice(None), *at)]]
        if s[0] > 0:
            pe = [100 * (value - s[0]) / s[0] for value in s]
            top = 1 + int(np.argmax(s[1:]))
            rise[at] = pe[top] / TIMES[top]
            if top != 3:
                fall[at] = (pe[top] - pe[3]) / ((TIMES[top] - TIMES[3]) / 60)
    np.testing.assert_allclose(wash_in_slope(signal, TIMES), rise, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(wash_out_slope(signal, TIMES), fall, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("phase", range(4))
def test_one_phase_that_is_not_finite_leaves_slopes_and_type_undefined(bad, phase):
    signal = np.array([[100.0] * 2, [200] * 2, [250] * 2, [220] * 2], np.float32)
    signal[phase, 0] = bad
    for slope in (wash_in_slope(signal, TIMES), wash_out_slope(signal, TIMES)):
        assert np.isnan(slope[0])
        assert np.isfinite(slope[1])
    if phase != 1:
        assert curve_types(signal, 2, 3).tolist() == [0, 3]  # -12 %


def test_the_type_map_says_what_the_classes_say_where_the_voxel_enhances():
    signal = np.random.default_rng(1).integers(0, 300, (3, 4, 30, 30)).astype(np.uint16)
    types = curve_types(signal, 1, 2)
    course = delayed_course(delayed_change(signal[1], signal[2]))
    enhancing = np.nan_to_num(percent_enhancement(signal, 1), nan=0) >= 50
    np.testing.assert_array_equal(types, np.where(enhancing, course, 0))
    assert set(np.unique(types)) == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("times", "reason"),
    [
        ((None, None, None), "no acquisition times are known"),
        ((0.0, 90.0, 90.0), "do not increase"),
        ((0.0, None, 90.0), "phase 1 is missing"),
    ],
)
def test_slopes_without_usable_times_are_an_error_with_the_reason(times, reason):
    for kind in (MapKind.WASH_IN, MapKind.WASH_OUT):
        with pytest.raises(CaseError, match=reason):
            map_recipe(kind, MapNeeds(choose_phases(times), times, TimingRule()))


def test_the_type_map_without_a_delayed_phase_is_an_error_with_the_reason():
    choice = choose_curve_phases((0.0, 100.0, 200.0, 300.0))
    with pytest.raises(CaseError, match="a delayed phase must be at 270 s"):
        map_recipe(MapKind.TYPE, MapNeeds(choice, (), TimingRule()))


def test_a_map_of_a_part_equals_that_part_of_the_whole_map():
    signal = np.random.default_rng(2).integers(1, 500, (4, 6, 20, 20)).astype(np.int16)
    part = (slice(2, 5), slice(3, 17), slice(0, 9))
    times = (0.0, 92.0, 100.0, 400.0)
    for kind, spec in MAPS.items():
        choice = choose_curve_phases(times) if spec.of_curve else choose_phases(times)
        recipe = map_recipe(kind, MapNeeds(choice, times, TimingRule(Timing.INJECTION, 1.0)))
        whole, cut = recipe.compute(signal)[part], recipe.compute(signal[:, *part])
        np.testing.assert_array_equal(cut, whole, err_msg=kind)
