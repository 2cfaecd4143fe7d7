"""Subtraction, PE, SER and peak PE, by hand and against plain loops."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.progress import run_job
from napari_mamamia.kinetics.maps import (
    KineticMap,
    map_job,
    peak_enhancement,
    percent_enhancement,
    signal_enhancement_ratio,
    subtraction,
)
from napari_mamamia.kinetics.timing import choose_phases

NAN = float("nan")


def loop(signal, formula):
    """Return `formula(curve)` of every voxel, nan where it divides by 0."""
    out = np.empty(signal.shape[1:])
    for index in np.ndindex(signal.shape[1:]):
        curve = [float(v) for v in signal[(slice(None), *index)]]
        out[index] = formula(curve)
    return out


def slow_percent(curve, phase, eps=0.0):
    return 100 * (curve[phase] - curve[0]) / curve[0] if curve[0] > eps else NAN


def slow_ratio(curve, early, late, eps=0.0):
    if curve[0] <= eps or curve[late] - curve[0] <= eps:
        return NAN
    return (curve[early] - curve[0]) / (curve[late] - curve[0])


@pytest.fixture
def signal():
    return np.random.default_rng(3).integers(0, 6, (4, 3, 5, 7)).astype(np.int16) * 50


def test_subtraction_of_unsigned_phases_is_signed():
    signal = np.array([300, 100], dtype=np.uint16).reshape(2, 1, 1, 1)
    result = subtraction(signal, later=1)
    assert result.item() == -200.0
    assert result.dtype == np.float32


def test_subtraction_of_two_later_phases():
    signal = np.array([10, 40, 25], dtype=np.int16).reshape(3, 1, 1, 1)
    assert subtraction(signal, later=2, earlier=1).item() == -15.0


def test_pe_of_a_doubled_signal_is_100_percent():
    signal = np.array([120, 240], dtype=np.int16).reshape(2, 1, 1, 1)
    assert percent_enhancement(signal, 1).item() == 100.0


def test_pe_is_nan_and_not_0_where_phase_0_is_not_above_eps():
    signal = np.array([[0, 20, 21], [50, 50, 42]], dtype=np.int16)
    assert np.array_equal(percent_enhancement(signal, 1), [NAN, 150.0, 100.0], equal_nan=True)
    masked = percent_enhancement(signal, 1, eps=20.0)
    assert np.array_equal(masked, [NAN, NAN, 100.0], equal_nan=True)


def test_ser_of_washout_plateau_and_persistent_curves():
    # rises of 120 then 80, 100 then 100, 60 then 120
    signal = np.array([[100, 100, 100], [220, 200, 160], [180, 200, 220]], dtype=np.int16)
    assert signal_enhancement_ratio(signal, 1, 2).tolist() == [1.5, 1.0, 0.5]


def test_ser_is_nan_where_late_does_not_rise_above_phase_0():
    signal = np.array([[100, 100, 0], [150, 150, 50], [100, 90, 80]], dtype=np.int16)
    assert np.isnan(signal_enhancement_ratio(signal, 1, 2)).all()


def test_ser_is_negative_where_only_early_falls_below_phase_0():
    signal = np.array([[100], [50], [200]], dtype=np.int16)
    assert signal_enhancement_ratio(signal, 1, 2).tolist() == [-0.5]


def test_peak_is_the_largest_pe_of_the_post_contrast_phases():
    signal = np.array([[100, 100], [150, 90], [180, 80], [120, 70]], dtype=np.int16)
    assert peak_enhancement(signal).tolist() == [80.0, -10.0]


def test_maps_agree_with_loops_over_voxels(signal):
    np.testing.assert_allclose(
        percent_enhancement(signal, 2), loop(signal, lambda c: slow_percent(c, 2)), rtol=1e-5
    )
    np.testing.assert_allclose(
        signal_enhancement_ratio(signal, 1, 3),
        loop(signal, lambda c: slow_ratio(c, 1, 3)),
        rtol=1e-5,
    )
    peaks = loop(signal, lambda c: max(slow_percent(c, k) for k in (1, 2, 3)))
    np.testing.assert_allclose(peak_enhancement(signal), peaks, rtol=1e-5)
    np.testing.assert_array_equal(subtraction(signal, 3, 1), loop(signal, lambda c: c[3] - c[1]))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16, np.int32, np.float32])
def test_every_file_type_gives_the_same_float32_map(signal, dtype):
    expected = percent_enhancement(signal, 1)
    result = percent_enhancement(signal.astype(dtype), 1)
    assert result.dtype == np.float32
    if dtype is not np.uint8:
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("bad", [NAN, math.inf, -math.inf])
def test_a_value_that_is_not_finite_makes_its_voxel_nan_and_no_other(bad):
    for phase in range(3):
        signal = np.array([[100, 100], [200, 200], [300, 300]], dtype=np.float32)
        signal[phase, 0] = bad
        for result in (
            signal_enhancement_ratio(signal, 1, 2),
            peak_enhancement(signal) if bad != -math.inf or phase == 0 else np.array([NAN, 200.0]),
        ):
            assert np.isnan(result[0])
            assert np.isfinite(result[1])


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 3000), st.integers(1, 3000), st.floats(0.25, 16))
def test_pe_does_not_depend_on_the_scale_of_the_signal(pre, post, scale):
    signal = np.array([[pre], [post]], dtype=np.float32)
    once, again = percent_enhancement(signal, 1), percent_enhancement(signal * scale, 1)
    np.testing.assert_allclose(once, again, rtol=1e-3, atol=1e-2)


def test_blocks_join_without_a_seam():
    signal = np.random.default_rng(0).integers(1, 900, (2, 37, 160, 200)).astype(np.int16)
    one = percent_enhancement(signal, 1)
    each = np.stack([percent_enhancement(signal[:, z], 1) for z in range(37)])
    np.testing.assert_array_equal(one, each)


def test_extra_memory_is_small_beside_the_result():
    signal = np.ones((3, 64, 256, 256), dtype=np.int16)
    result_bytes = 64 * 256 * 256 * 4
    tracemalloc.start()
    signal_enhancement_ratio(signal, 1, 2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.8 * result_bytes


@pytest.mark.parametrize("kind", list(KineticMap))
def test_a_map_job_ends_at_its_total_and_equals_the_plain_function(signal, kind):
    choice = choose_phases((0.0, 150.0, 300.0, 450.0))
    plain = {
        KineticMap.SUBTRACTION: subtraction(signal, 1),
        KineticMap.PERCENT_ENHANCEMENT: percent_enhancement(signal, 1),
        KineticMap.SIGNAL_ENHANCEMENT_RATIO: signal_enhancement_ratio(signal, 1, 3),
        KineticMap.PEAK_ENHANCEMENT: peak_enhancement(signal),
    }
    seen = []
    result = run_job(map_job(signal, kind, choice), seen.append)
    np.testing.assert_array_equal(result, plain[kind])
    assert (seen[0].done, seen[-1].done, seen[-1].total) == (0, 3, 3)
    assert seen[-1].text == f"Computing {kind}"


def test_a_map_job_can_be_closed_midway():
    signal = np.ones((2, 40, 256, 256), dtype=np.int16)
    job = map_job(signal, KineticMap.SUBTRACTION, choose_phases((None, None)))
    next(job)
    next(job)
    job.close()


def test_ser_without_a_late_phase_is_refused_with_the_reason():
    signal = np.ones((2, 1, 1, 1), dtype=np.int16)
    with pytest.raises(CaseError, match="no phase after the early one"):
        map_job(signal, KineticMap.SIGNAL_ENHANCEMENT_RATIO, choose_phases((0.0, 120.0)))


@pytest.mark.parametrize("phase", [-1, 2])
def test_a_phase_that_does_not_exist_is_refused(phase):
    with pytest.raises(CaseError, match="choose phases that the case has"):
        percent_enhancement(np.ones((2, 3, 3, 3)), phase)


def test_peak_of_one_phase_is_refused():
    with pytest.raises(CaseError):
        peak_enhancement(np.ones((1, 3, 3, 3)))
