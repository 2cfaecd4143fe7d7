"""Fits of tissue models: OSIPI's objects, what sampling costs, noise, a slow fit, what fails."""

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import curve_fit

from napari_mamamia.core.choices import InputName, TissueModel
from napari_mamamia.core.errors import CaseError
from napari_mamamia.features.perfusion.kinetics.arrival_fit import fitted_arrival_s
from napari_mamamia.features.perfusion.kinetics.arterial_input import (
    ArterialInput,
    PlasmaCurve,
    plasma_curve,
)
from napari_mamamia.features.perfusion.kinetics.fit import (
    FitStatus,
    LinearFit,
    RefinedFit,
    tissue_concentration_mm,
)
from napari_mamamia.features.perfusion.kinetics.gate import require_points, require_spacing
from napari_mamamia.features.perfusion.kinetics.spoiled_echo import SpoiledEcho, spoiled_signal

OSIPI = Path(__file__).with_name("osipi")
BOTH = (LinearFit, RefinedFit)
PAIRS = [(k, v) for k in (0.01, 0.05, 0.1, 0.25, 0.5) for v in (0.05, 0.1, 0.2, 0.5)]


@pytest.mark.parametrize("fit", BOTH)
@pytest.mark.parametrize("model", list(TissueModel))
def test_osipis_voxels_are_fitted_within_its_tolerances(model, fit):
    name = "tofts.csv" if model is TissueModel.TOFTS else "extended_tofts.csv"
    rows = np.genfromtxt(OSIPI / name, delimiter=",", skip_header=1)
    ktrans, ve, vp = rows[:3, 2:]
    minutes = rows[3:, 0] / 60
    plasma = PlasmaCurve(rows[3:, 1], minutes[1])
    found = fit(model, plasma, minutes).fit(rows[3:, 2:])
    assert np.all(np.abs(found.ktrans_per_min - ktrans) <= 0.005 + 0.1 * ktrans)
    assert found.ve == pytest.approx(ve, abs=0.05)
    assert found.vp == pytest.approx(vp, abs=0.025)
    assert found.kep_per_min == pytest.approx(found.ktrans_per_min / found.ve)


def curves(model, minutes, vp=0.05):
    plasma = plasma_curve(ArterialInput(), float(minutes[-1]), 0.05 / 60)
    own = vp if model is TissueModel.EXTENDED else 0.0
    parts = [tissue_concentration_mm(plasma, minutes, k, v, own) for k, v in PAIRS]
    return np.stack(parts, axis=1), np.array(PAIRS).T


@pytest.mark.parametrize("spacing_s", [3.5, pytest.param(7.0, marks=pytest.mark.night), 15.0])
@pytest.mark.parametrize("model", list(TissueModel))
def test_the_refined_fit_knows_ktrans_to_a_thousandth_at_every_spacing_that_passes(
    model, spacing_s
):
    minutes = np.arange(-2 * spacing_s, 420, spacing_s) / 60
    signal, (ktrans, ve) = curves(model, minutes)
    found = RefinedFit(model, plasma_curve(ArterialInput(), 7.0), minutes).fit(signal)
    assert found.ktrans_per_min == pytest.approx(ktrans, rel=1e-3)
    assert found.ve == pytest.approx(ve, rel=1e-3)
    assert found.vp == pytest.approx(0.05 if model is TissueModel.EXTENDED else 0, abs=1e-4)


def test_the_linear_fit_is_right_at_3_5_s_and_off_at_15_s():
    for spacing_s, most, median in ((3.5, 0.005, 1e-4), (15.0, 0.25, 0.02)):
        minutes = np.arange(-2 * spacing_s, 420, spacing_s) / 60
        signal, (ktrans, _) = curves(TissueModel.TOFTS, minutes)
        plasma = plasma_curve(ArterialInput(), 7.0)
        found = LinearFit(TissueModel.TOFTS, plasma, minutes).fit(signal)
        error = np.abs(found.ktrans_per_min / ktrans - 1)
        assert np.nanmax(error) < most
        assert np.nanmedian(error) < median


def test_the_linear_fit_equals_least_squares_of_its_columns_one_by_one():
    minutes = np.arange(-14, 300, 7.0) / 60
    signal, _ = curves(TissueModel.EXTENDED, minutes, vp=0.1)
    signal = signal + np.random.default_rng(0).normal(0, 0.002, signal.shape)
    plasma = plasma_curve(ArterialInput(), 5.0)
    found = LinearFit(TissueModel.EXTENDED, plasma, minutes).fit(signal)
    fine = np.arange(len(plasma.values)) * plasma.step_min
    area = np.concatenate(
        [[0], np.cumsum(np.diff(fine) * (plasma.values[1:] + plasma.values[:-1]))]
    )
    known = np.where(minutes > 0, np.interp(minutes, fine, area / 2), 0)
    for k in range(signal.shape[1]):
        own = signal[:, k]
        steps = np.diff(minutes) * (own[1:] + own[:-1]) / 2
        columns = np.stack([known, -np.concatenate([[0], np.cumsum(steps)]), plasma.at(minutes)], 1)
        first, kep, vp = np.linalg.lstsq(columns, own, rcond=None)[0]
        if vp >= 0 and found.status[k] == FitStatus.FITTED:
            assert found.kep_per_min[k] == pytest.approx(kep, rel=1e-4)
            assert found.ktrans_per_min[k] == pytest.approx(first - kep * vp, rel=1e-4, abs=1e-6)
            assert found.vp[k] == pytest.approx(vp, rel=1e-3, abs=1e-5)


def test_the_refined_fit_of_noise_is_scipys_best():
    minutes = np.arange(-14, 300, 7.0) / 60
    plasma = plasma_curve(ArterialInput(), 5.0)
    rng = np.random.default_rng(1)
    for ktrans, ve in ((0.05, 0.2), (0.2, 0.4), (0.6, 0.3)):
        clean = tissue_concentration_mm(plasma, minutes, ktrans, ve)
        noisy = clean + rng.normal(0, 0.03 * clean.max(), len(clean))
        best, _ = curve_fit(
            lambda t, k, v: tissue_concentration_mm(plasma, t, k, v),
            minutes,
            noisy,
            p0=(ktrans, ve),
            bounds=((1e-4, 1e-3), (5, 1)),
        )
        found = RefinedFit(TissueModel.TOFTS, plasma, minutes).fit(noisy[:, None])
        assert [found.ktrans_per_min[0], found.ve[0]] == pytest.approx(best, rel=2e-3)


@pytest.mark.parametrize("fit", BOTH)
@pytest.mark.parametrize("model", list(TissueModel))
def test_voxels_without_an_answer_are_nan_and_say_why_beside_one_that_has(fit, model):
    minutes = np.arange(-14, 300, 7.0) / 60
    plasma = plasma_curve(ArterialInput(), 5.0)
    good = tissue_concentration_mm(plasma, minutes, 0.2, 0.4)
    unknown = good.copy()
    unknown[7] = np.nan
    rising = np.where(minutes > 0, minutes**2, 0)  # no washout: ve would be above 1
    signal = np.stack([good, unknown, -good, rising], axis=1)
    found = fit(model, plasma, minutes).fit(signal.astype(np.float32))
    assert found.status.tolist() == [
        FitStatus.FITTED,
        FitStatus.NO_CONCENTRATION,
        FitStatus.NO_UPTAKE,
        FitStatus.UNRESOLVED,
    ]
    for values in (found.ktrans_per_min, found.ve, found.vp, found.kep_per_min):
        assert np.isnan(values).tolist() == [False, True, True, True]
    assert found.ktrans_per_min[0] == pytest.approx(0.2, rel=0.02)


@pytest.mark.parametrize("fit", BOTH)
def test_a_ktrans_that_no_tissue_has_is_no_fit(fit):
    minutes = np.arange(-6, 300, 3.0) / 60
    plasma = plasma_curve(ArterialInput(), 5.0)
    signal = tissue_concentration_mm(plasma, minutes, 8.0, 0.9)[:, None]
    found = fit(TissueModel.TOFTS, plasma, minutes).fit(signal)
    assert found.status.tolist() == [FitStatus.UNRESOLVED]
    assert np.isnan(found.ktrans_per_min).all()


def test_a_vessel_share_below_nothing_is_none():
    minutes = np.arange(-14, 300, 7.0) / 60
    plasma = plasma_curve(ArterialInput(), 5.0)
    signal = tissue_concentration_mm(plasma, minutes, 0.2, 0.4)[:, None]
    signal = signal - 0.002 * plasma.at(minutes)[:, None]
    for fit in BOTH:
        found = fit(TissueModel.EXTENDED, plasma, minutes).fit(signal)
        alone = fit(TissueModel.TOFTS, plasma, minutes).fit(signal)
        assert found.vp[0] == 0
        assert found.ktrans_per_min[0] == pytest.approx(alone.ktrans_per_min[0])


@pytest.mark.parametrize("source", [ArterialInput(), ArterialInput(InputName.GEORGIOU)])
@pytest.mark.parametrize("arrival_s", [33.7, 32.9])  # 32.9: as far from two steps of 2 s
def test_the_arrival_comes_out_of_the_curve(source, arrival_s):
    times = tuple(np.arange(0, 300, 5.0))
    echo = SpoiledEcho(0.005, 12.0)
    plasma = plasma_curve(source, 5.0)
    truth = tissue_concentration_mm(plasma, (np.array(times) - arrival_s) / 60, 0.2, 0.3)
    signal = spoiled_signal(1 / (1 / 1.4 + 4.5 * truth), echo, 1e4)
    found = fitted_arrival_s(times, signal, 1.4, echo, source, TissueModel.TOFTS)
    assert found == pytest.approx(arrival_s, abs=0.5)  # OSIPI's tolerance of a delay: 1 s


@pytest.mark.parametrize("curve", [np.full(30, 100.0), np.linspace(100, 50, 30)])
def test_a_curve_that_does_not_rise_has_no_arrival(curve):
    times = tuple(np.arange(30) * 5.0)
    with pytest.raises(CaseError, match="enter the arrival in seconds"):
        fitted_arrival_s(
            times, curve, 1.4, SpoiledEcho(0.005, 12.0), ArterialInput(), TissueModel.TOFTS
        )


@pytest.mark.parametrize(
    ("times", "word"),
    [
        ((0, 75, 150, 225, 300), "at most 15 s apart.*found 75 s"),
        ((0, 60, 65, 70, 130), "found 60 s from phase 3 to 4"),
        ((0,), "at most 15 s apart"),
        ((0, 5), "at most 15 s apart"),
        ((0, 5, 5, 10), "do not increase"),
        ((0, 10, 5, 15), "do not increase"),
        ((None, None, None), "no acquisition times"),
        ((0, None, 10), "phase 1 is missing"),
        ((0, 5, float("nan")), "finite"),
    ],
)
def test_an_exam_whose_phases_cannot_carry_a_model_is_refused_with_the_reason(times, word):
    with pytest.raises(CaseError, match=word):
        require_spacing(times)


def test_the_gate_counts_phases_before_and_after_arrival():
    times = require_spacing(tuple(np.arange(0, 200, 7.0)))
    assert require_points(times, 21.0) == 4
    with pytest.raises(CaseError, match="a phase before contrast"):
        require_points(times, -1.0)
    with pytest.raises(CaseError, match=r"at least 8 phases.*found 7"):
        require_points(tuple(np.arange(0, 9) * 15.0), 15.0)
    with pytest.raises(CaseError, match="found 100 s around 50 s"):
        require_points((0.0, *(100 + 5.0 * k for k in range(30))), 50.0)
    with pytest.raises(CaseError, match="enter another arrival"):
        require_points(times, 1000.0)
