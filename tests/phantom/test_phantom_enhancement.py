"""Curves: arterial input, signal equation, stated enhancement and curve type."""

from math import cos, exp, pi, radians, sin, sqrt

import numpy as np
import pytest

from napari_mamamia.phantom import CurveType, PhantomSpec, Side, Tissue, TumourSpec, make_phantom
from napari_mamamia.phantom.enhancement import (
    Scan,
    arterial_blood_mm,
    early_phase,
    fit_kinetics,
    tissue_signal,
)

TIMES = [
    (0.0, 120.0, 240.0, 360.0, 480.0),
    (0.0, 150.0, 420.0),
    (0.0, 95.0, 180.0, 265.0, 350.0, 435.0),
]


def curve_type(times_s, signal):
    """The delayed course by the rule of Partridge 2014, written out."""
    gaps = [max(90 - t, t - 120, 0) for t in times_s[1:]]
    early = 1 + int(np.argmin(gaps))
    change = 100 * (signal[-1] - signal[early]) / signal[early]
    if change > 10:
        return "persistent"
    return "washout" if change < -10 else "plateau"


def test_arterial_blood_at_the_first_peak_is_the_published_value():
    minute = 0.17046
    first = 0.809 / (0.0563 * sqrt(2 * pi))
    second = 0.330 / (0.132 * sqrt(2 * pi)) * exp(-((minute - 0.365) ** 2) / (2 * 0.132**2))
    tail = 1.050 * exp(-0.1685 * minute) / (1 + exp(-38.078 * (minute - 0.483)))
    found = arterial_blood_mm(np.array([minute, -0.1]))
    assert found == pytest.approx([first + second + tail, 0.0])
    assert found[0] == pytest.approx(6.0, abs=0.1)


def test_signal_follows_the_ernst_formula():
    rate = 1 / 1.68 + 4.97 * 0.3
    decay, angle = exp(-0.005 * rate), radians(10)
    expected = sin(angle) * (1 - decay) / (1 - cos(angle) * decay)
    found = tissue_signal(np.array([0.3]), Tissue.FIBROGLANDULAR, 3.0)
    assert found[0] == pytest.approx(expected)


def test_the_early_phase_is_the_one_nearest_to_90_to_120_seconds():
    assert early_phase((0.0, 60.0, 118.0, 240.0)) == 2
    assert early_phase((0.0, 165.0, 288.0)) == 1
    assert early_phase((0.0, 80.0, 130.0)) == 1


@pytest.mark.parametrize("times_s", TIMES)
@pytest.mark.parametrize("curve", list(CurveType))
@pytest.mark.parametrize("percent", [60.0, 120.0, 240.0])
def test_a_fitted_curve_has_its_early_enhancement_and_type(times_s, curve, percent):
    scan = Scan(times_s, 25.0, 1.5)
    _, signal = fit_kinetics(Tissue.TUMOUR, scan, percent, curve)
    early = early_phase(times_s)
    assert 100 * (signal[early] / signal[0] - 1) == pytest.approx(percent, abs=0.1)
    assert curve_type(times_s, signal) == curve


def test_without_a_late_phase_a_curve_still_has_its_early_enhancement():
    scan = Scan((0.0, 40.0, 100.0), 10.0, 3.0)
    _, signal = fit_kinetics(Tissue.TUMOUR, scan, 90.0, CurveType.WASHOUT)
    assert 100 * (signal[2] / signal[0] - 1) == pytest.approx(90, abs=0.1)


@pytest.fixture(scope="module")
def three_tumours():
    tumours = (
        TumourSpec(26.0, curve=CurveType.WASHOUT, side=Side.LEFT),
        TumourSpec(26.0, curve=CurveType.PLATEAU, side=Side.RIGHT),
        TumourSpec(18.0, curve=CurveType.PERSISTENT, side=Side.RIGHT),
    )
    return make_phantom(
        PhantomSpec(
            seed=2,
            tumours=tumours,
            contrast_to_noise=60.0,
            background_enhancement_percent=30.0,
            breast_density="c",
        )
    )


def test_each_tumour_shows_its_curve_type_in_the_image(three_tumours):
    case = three_tumours.case
    for number, tumour in enumerate(three_tumours.spec.tumours, start=1):
        inside = three_tumours.lesions == number
        signal = [float(phase[inside].mean()) for phase in case.signal]
        assert curve_type(case.times_s, signal) == tumour.curve


def test_tissues_in_the_image_enhance_as_their_truth_says(three_tumours):
    signal = three_tumours.case.signal.astype(np.float64)
    truth = {row.tissue: row for row in three_tumours.curves if row.tumour is None}
    bounds = {Tissue.FIBROGLANDULAR: 5, Tissue.MUSCLE: 3, Tissue.HEART_BLOOD: 12, Tissue.FAT: 6}
    for tissue, tolerance in bounds.items():
        inside = three_tumours.tissue == tissue
        means = [phase[inside].mean() for phase in signal]
        found = [100 * (mean / means[0] - 1) for mean in means]
        assert found == pytest.approx(truth[tissue].enhancement_percent, abs=tolerance)


def test_truth_curves_are_named_for_each_tumour(three_tumours):
    rows = [row for row in three_tumours.curves if row.tissue == Tissue.TUMOUR]
    assert [row.tumour for row in rows] == [1, 2, 3]
    for row in rows:
        assert row.enhancement_percent[0] == 0
        assert row.enhancement_percent[1] == pytest.approx(150, abs=0.1)


def test_heart_and_vessels_enhance_early_and_strongly_and_fat_hardly(three_tumours):
    truth = {row.tissue: row.enhancement_percent for row in three_tumours.curves}
    for tissue in (Tissue.HEART_BLOOD, Tissue.VESSEL):
        assert truth[tissue][1] > 150
        assert truth[tissue][1] == max(truth[tissue])
    assert max(truth[Tissue.FAT]) < 2
