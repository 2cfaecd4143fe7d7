"""Ultrafast measures: the worked curve, a slow loop for maps, and exams that do not carry them."""

import ast
import math
import re

import numpy as np
import pandas as pd
import pytest

from napari_mamamia.core.errors import CaseError
from napari_mamamia.features.perfusion.kinetics.gate import require_spacing
from napari_mamamia.kinetics.map_blocks import MapRecipe
from napari_mamamia.kinetics.ultrafast import (
    UltrafastMeasure,
    steepest_rise,
    ultrafast_formula,
    ultrafast_numbers,
    ultrafast_times,
)

TIMES = tuple(3.5 * k for k in range(16))


def worked(times=TIMES, arrival=21.0, baseline=100.0):
    percent = np.array([180 * max(0.0, 1 - math.exp(-(t - arrival) / 12)) for t in times])
    return baseline * (1 + percent / 100)


def test_the_worked_curve_has_the_worked_measures():
    found = ultrafast_numbers(TIMES, worked())
    assert found.slope_percent_per_s == pytest.approx(45.54 / 3.5, abs=1e-3)  # 13.011
    assert found.arrival_s == pytest.approx(21.0, abs=1e-4)
    assert found.spacing_s == 3.5
    # 20 s after arrival lies between 38.5 s and 42 s: PE 138.14 and 148.72, 5/7 of the way
    low, high = (180 * (1 - math.exp(-t / 12)) for t in (17.5, 21.0))
    assert found.pe_at_percent == pytest.approx(low + (high - low) * 2.5 / 3.5, abs=1e-3)
    assert (found.counted_from, found.reason) == ("lesion", "")
    assert math.isnan(found.time_to_enhancement_s)


def test_time_to_enhancement_and_the_stated_time_count_from_the_vessel():
    found = ultrafast_numbers(TIMES, worked(), vessel_arrival_s=14.0, at_s=10.5)
    assert found.time_to_enhancement_s == pytest.approx(7.0, abs=1e-4)
    assert found.pe_at_percent == pytest.approx(45.54, abs=0.01)  # at 24.5 s
    assert found.counted_from == "vessel"


def test_the_baseline_is_the_mean_of_all_phases_before_arrival():
    curve = worked() + np.array([3, -3, 1, -1, 2, -2, *([0] * 10)])
    rise = steepest_rise(TIMES, curve[:, None])
    assert rise.baseline[0] == pytest.approx(100, abs=0.01)  # 3 - 3 + 1 - 1 + 2 - 2 + 0
    # a phase that rises a little already is no baseline: 100 100 100 110 200
    slow = np.array([100.0, 100, 100, 110, 200, 230])
    found = steepest_rise((0, 5, 10, 15, 20, 25), slow[:, None])
    # tangent 18/s through (15, 110): cuts 100 at 14.44 s, so that phases 0 to 2 are before
    assert found.baseline[0] == pytest.approx(100)
    assert found.arrival_s[0] == pytest.approx(15 - 10 / 18, abs=1e-4)


@pytest.mark.parametrize(
    ("times", "curve", "word"),
    [
        ((0, 75, 150, 225), (100, 200, 210, 220), "at most 10 s apart .* but got 75 s"),
        ((0, 60, 65, 70), (100, 200, 210, 220), "phases are 60 s apart where the curve begins"),
        ((0, 5, 10, 15), (100, 200, 210, 220), "no phase before arrival"),
        ((0, 5, 10, 15), (100, 90, 80, 70), "does not rise"),
        ((0, 5, 10, 15), (100, 100, 100, 100), "does not rise"),
        ((0, 5, 10, 15), (0, 0, 100, 100), "not positive"),
        ((0, 5, 10, 15), (-5, -5, 100, 100), "not positive"),
        ((0, 5, 10, 15), (100, math.nan, 150, 180), "not a number"),
        ((0, 5, 10, 15, 20), (100, 130, 70, 100, 131), "three times the noise"),
        ((0, 5, 5, 15), (100, 100, 150, 180), "do not increase from phase to phase"),
        ((0, 15, 5, 20), (100, 100, 150, 180), "do not increase from phase to phase"),
        ((None,) * 4, (100, 100, 150, 180), "no acquisition times"),
        ((0,), (100,), "at most 10 s apart .* but got 1 phase"),
    ],
)
def test_a_curve_without_ultrafast_measures_says_why_and_has_none(times, curve, word):
    found = ultrafast_numbers(times, curve)
    assert np.isnan([found.slope_percent_per_s, found.arrival_s, found.time_to_enhancement_s]).all()
    assert math.isnan(found.pe_at_percent)
    assert re.search(word, found.reason), found.reason


def test_a_stated_time_after_the_last_phase_has_no_enhancement_and_says_so():
    found = ultrafast_numbers(TIMES, worked(), at_s=40.0)
    assert math.isnan(found.pe_at_percent)
    assert "around 61.0 s" in found.reason
    assert found.slope_percent_per_s == pytest.approx(13.011, abs=1e-3)


def test_a_stated_time_in_a_long_gap_has_no_enhancement_and_says_so():
    times = (*TIMES[:11], 47.0, 50.5)  # 41 s lies between 35 and 47 s
    found = ultrafast_numbers(times, worked(times))
    assert math.isnan(found.pe_at_percent)
    assert found.reason == "PE is undefined, because there are no phases within 10 s around 41.0 s"
    assert found.arrival_s == pytest.approx(21.0, abs=1e-4)


def slow_measures(times, curve, vessel):
    """One voxel by plain loops; nan where undefined."""
    nothing = (math.nan,) * 4
    slopes = [(curve[k + 1] - curve[k]) / (times[k + 1] - times[k]) for k in range(len(times) - 1)]
    k = max(range(len(slopes)), key=lambda i: (slopes[i], -i))
    if not slopes[k] > 0 or k == 0 or times[k + 1] - times[k] > 10:
        return nothing
    base, foot = curve[0], 0.0
    for _ in range(4):
        foot = times[k] - (curve[k] - base) / slopes[k]
        before = [v for j, v in enumerate(curve[: k + 1]) if times[j] <= foot] or [curve[0]]
        base = sum(before) / len(before)
    foot = times[k] - (curve[k] - base) / slopes[k]
    around = max(sum(time <= foot for time in times) - 1, 0)
    if base <= 0 or times[around + 1] - times[around] > 10:
        return nothing
    at = vessel + 20
    value = math.nan
    for j in range(len(times) - 1):
        if times[j] <= at < times[j + 1] and times[j + 1] - times[j] <= 10:
            share = (at - times[j]) / (times[j + 1] - times[j])
            value = curve[j] + share * (curve[j + 1] - curve[j])
    return 100 * slopes[k] / base, foot, foot - vessel, 100 * (value - base) / base


def test_every_map_equals_a_plain_loop_over_voxels():
    rng = np.random.default_rng(3)
    times = (0.0, 8.0, 20.0, *(20 + 4.0 * k for k in range(1, 12)), 90.0)
    arrivals = rng.uniform(12, 48, 60)
    curves = np.stack([worked(times, a, rng.uniform(50, 300)) for a in arrivals], axis=1)
    curves = np.round(curves + rng.normal(0, 3, curves.shape)).astype(np.int16)
    curves[:, 0], curves[:, 1] = 0, 100  # air, and what does not change
    signal = curves.reshape(len(times), 3, 4, 5)
    expected = np.array([slow_measures(times, [float(v) for v in c], 15.0) for c in curves.T])
    for place, measure in enumerate(UltrafastMeasure):
        formula = ultrafast_formula(measure, times, counted_from_s=15.0)
        found = MapRecipe(formula, tuple(range(len(times)))).compute(signal)
        assert found.dtype == np.float32
        assert found.ravel() == pytest.approx(expected[:, place], rel=1e-4, abs=1e-3, nan_ok=True)
    assert np.isfinite(expected[2:, 0]).mean() > 0.8


def test_an_exam_without_close_phases_has_no_maps():
    with pytest.raises(CaseError, match="choose a different measure"):
        ultrafast_times((0.0, 90.0, 180.0, 300.0))


@pytest.mark.real
def test_every_timed_exam_of_mama_mia_is_refused_by_both_gates(real_data):
    path = real_data("clinical") / "clinical_and_imaging_info.xlsx"
    rows = pd.read_excel(path)["acquisition_times"].dropna()
    assert len(rows) == 1473
    for text in rows:
        times = tuple(float(time) for time in ast.literal_eval(text))
        with pytest.raises(CaseError, match="at most 10 s apart"):
            ultrafast_times(times)
        with pytest.raises(CaseError, match="at most 15 s apart"):
            require_spacing(times)
