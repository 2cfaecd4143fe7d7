"""The bolus' arrival in a vessel: the worked curve, shifts, and what does not show one."""

import math

import pytest

from napari_mamamia.core.errors import CaseError
from napari_mamamia.kinetics.bolus import bolus_arrival_s


def curve(times, arrival, baseline=100.0):
    rise = (180 * (1 - math.exp(-(time - arrival) / 12)) if time > arrival else 0 for time in times)
    return [baseline * (1 + percent / 100) for percent in rise]


def test_the_tangent_of_the_steepest_rise_meets_the_baseline_at_the_arrival():
    times = [3.5 * k for k in range(14)]
    # PE 0 at 21 s, 45.54 at 24.5: the steepest rise, 13.011 %/s, starts on the baseline
    assert bolus_arrival_s(times, curve(times, 21.0)) == pytest.approx(21.0)
    # between two frames: 45.54 (1 - e^-1.75/12 ...): cut with the baseline within one frame
    assert bolus_arrival_s(times, curve(times, 22.5)) == pytest.approx(22.5, abs=3.5)


def test_times_count_from_the_first():
    times = [100 + 3.5 * k for k in range(14)]
    assert bolus_arrival_s(times, curve(times, 121.0)) == pytest.approx(21.0)


@pytest.mark.parametrize(
    ("times", "signal", "said"),
    [
        ((0, 60, 120, 180), (100, 100, 300, 280), "at most 10 s apart .* they are 60 s apart"),
        ((0, 4, 8, 12), (100, 120, 125, 126), "50 %"),
        ((0, 4, 8, 12), (100, 300, 280, 270), "after phase 0"),
        ((0, 4, 8, 12), (0, 0, 300, 280), "rises by nan %"),
        ((None, None, None), (1, 2, 3), "no acquisition times"),
        ((0,), (1,), "at most 10 s apart .* only 1 phase"),
    ],
)
def test_a_curve_that_shows_no_arrival_is_refused_with_the_reason(times, signal, said):
    with pytest.raises(CaseError, match=said):
        bolus_arrival_s(times, signal)
