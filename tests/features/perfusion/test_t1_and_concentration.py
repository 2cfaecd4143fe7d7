"""T1 of flip angles, concentration of signals: OSIPI's and QIBA's numbers, sepal, by hand."""

from pathlib import Path

import numpy as np
import pytest

from napari_mamamia.core.errors import CaseError
from napari_mamamia.features.perfusion.kinetics.spoiled_echo import (
    SpoiledEcho,
    concentration_mm,
    require_t1,
    spoiled_signal,
)
from napari_mamamia.features.perfusion.kinetics.t1_map import t1_of_flip_angles

OSIPI = Path(__file__).with_name("osipi")
FLIPS = (3, 6, 9, 15, 24, 35)


def test_t1_of_all_45_rows_of_osipi_is_within_its_tolerance_and_3_percent():
    rows = np.loadtxt(OSIPI / "t1_qiba_v3.csv", delimiter=",", skiprows=1)
    t1, full = t1_of_flip_angles(rows[:, 2:].T, FLIPS, 0.005)
    true = rows[:, 0]
    assert len(rows) == 45
    assert np.all(np.abs(1 / t1 - true) <= 0.05 + 0.05 * true)  # OSIPI's
    error = np.abs(1 / t1 / true - 1)
    assert np.median(error) == pytest.approx(0.0031, abs=5e-5)  # facts: .31 %
    assert error.max() == pytest.approx(0.025, abs=5e-4)  # 2.5 %
    assert np.allclose(full, rows[:, 1], rtol=0.03)


@pytest.mark.parity
def test_t1_equals_that_of_sepal():
    from sepal import t1_fit

    rows = np.loadtxt(OSIPI / "t1_qiba_v3.csv", delimiter=",", skiprows=1)
    peer = t1_fit.VFALinear(FLIPS, 0.005)
    t1, full = t1_of_flip_angles(rows[:, 2:].T, FLIPS, 0.005)
    for row, own_t1, own_full in zip(rows, t1, full, strict=True):
        their_full, their_t1 = peer.proc(row[2:])
        assert own_t1 == pytest.approx(their_t1, rel=1e-6)
        assert own_full == pytest.approx(their_full, rel=1e-6)


def test_flip_angles_off_by_ten_percent_turn_t1_as_the_note_says():
    true = spoiled_signals(1.4, [f * 1.1 for f in (2, 5, 10, 15)])
    low = spoiled_signals(1.4, [f * 0.9 for f in (2, 5, 10, 15)])
    found, _ = t1_of_flip_angles(np.stack([true, low], 1), (2, 5, 10, 15), 0.005)
    assert found == pytest.approx([1.70, 1.13], abs=0.006)


def spoiled_signals(t1, flips):
    return np.array([float(spoiled_signal(t1, SpoiledEcho(0.005, f), 1000.0)) for f in flips])


def test_t1_of_no_signal_or_of_a_signal_that_no_t1_gives_is_nan():
    good = spoiled_signals(1.0, (3, 9, 15))
    signals = np.stack([[0, 5, 5], [100, 400, 900], good, [np.nan, 50, 50]], axis=1)
    t1, full = t1_of_flip_angles(signals, (3, 9, 15), 0.005)
    assert np.isnan(t1).tolist() == [True, True, False, True]
    assert np.isnan(full).tolist() == [True, True, False, True]


@pytest.mark.parametrize("bad", [0.0, -1e-3, np.nan])
@pytest.mark.parametrize("volume", [0, 1, 2])
def test_one_flip_angle_without_signal_leaves_t1_undefined(volume, bad):
    good = spoiled_signals(1.0, (3, 9, 15))
    signals = np.stack([good, good, good], axis=1)
    signals[volume, 1] = bad
    t1, full = t1_of_flip_angles(signals, (3, 9, 15), 0.005)
    assert np.isnan(t1).tolist() == np.isnan(full).tolist() == [False, True, False]


@pytest.mark.parametrize("flips", [(3,), (3, 3), (3, 6, 9), ()])
def test_flip_angles_that_do_not_fit_the_volumes_are_refused(flips):
    with pytest.raises(CaseError, match="enter the angle of every volume"):
        t1_of_flip_angles(np.ones((2, 4)), flips, 0.005)


@pytest.mark.parametrize(
    ("percent", "expected"),
    [
        (50, (0.7619, 0.1685, 0.1073, 0.0782)),
        (100, (3.6378, 0.4073, 0.2431, 0.1717)),
        (200, (np.nan, 1.3957, 0.6622, 0.4266)),
    ],
)
def test_concentration_of_an_enhancement_depends_on_t1_and_ends_at_saturation(percent, expected):
    echo = SpoiledEcho(0.0045, 10.0, 4.5)
    for t10, value in zip((0.4, 1.0, 1.4, 1.8), expected, strict=True):
        found = concentration_mm(np.array([[100.0 + percent]]), np.array([100.0]), t10, echo)
        assert found[0, 0] == pytest.approx(value, abs=5e-5, nan_ok=True)


def test_concentration_of_osipis_first_curve():
    """Row 1 of SI2Conc_data.csv: flip 13, TR 2 ms, T10 1.4 s, r1 4.5, baseline of point 1."""
    signal = np.array([8.0, 15, 53, 70, 71])[:, None]
    found = concentration_mm(signal, np.array([7.0]), 1.4, SpoiledEcho(0.002, 13.0, 4.5))
    expected = [0.02411, 0.20423, 1.72382, 2.98600, 3.08139]
    assert found[:, 0] == pytest.approx(expected, abs=5e-6)


def test_concentration_of_the_qiba_object():
    """Patch Ktrans .1, ve .2 of the Tofts object v6: TR 5 ms, flip 30, T1 1 s, r1 4.5."""
    signal = np.array([901.0, 901, 916, 1280, 1409, 1500, 1362])[:, None]
    found = concentration_mm(signal, np.array([901.0]), 1.0, SpoiledEcho(0.005, 30.0, 4.5))
    expected = [0, 0, 0.00383, 0.09817, 0.13225, 0.15651, 0.11980]
    assert found[:, 0] == pytest.approx(expected, abs=6e-5)  # its signals are rounded


@pytest.mark.parity
def test_concentration_equals_that_of_dcmri():
    import dcmri

    rate = np.array([0.8, 1.5, 4.0])
    signal = dcmri.signal_ss(5000.0, rate, 0.005, 12.0)
    found = concentration_mm(signal[:, None], signal[:1], 1 / 0.8, SpoiledEcho(0.005, 12.0, 4.5))
    assert found[:, 0] == pytest.approx((rate - 0.8) / 4.5, rel=1e-9, abs=1e-12)


def test_a_signal_of_a_concentration_comes_back_in_float32_to_a_thousandth_of_a_percent():
    truth = np.linspace(0.01, 3, 50)
    echo = SpoiledEcho(0.005, 12.0, 4.5)
    signal = spoiled_signal(1 / (1 / 1.4 + 4.5 * truth), echo, 1e4)[:, None]
    baseline = np.atleast_1d(spoiled_signal(1.4, echo, 1e4))
    exact = concentration_mm(signal, baseline, 1.4, echo)
    quick = concentration_mm(signal.astype(np.float32), baseline, np.float32([1.4]), echo)
    assert exact[:, 0] == pytest.approx(truth, rel=1e-9)
    assert quick.dtype == np.float32
    assert quick[:, 0] == pytest.approx(truth, rel=2e-4, abs=1e-5)


@pytest.mark.parametrize("bad", [0.0, -3.0, np.nan, np.inf, 1e9])
def test_a_signal_or_baseline_that_is_none_has_no_concentration(bad):
    echo = SpoiledEcho(0.0045, 10.0)
    signal, good = np.array([[150.0]]), np.array([100.0])
    with np.errstate(all="raise"):
        assert np.isnan(concentration_mm(np.array([[bad]]), good, 1.4, echo)).all()
        if not bad > 0 or bad == np.inf:
            assert np.isnan(concentration_mm(signal, np.array([bad]), 1.4, echo)).all()
        assert np.isnan(concentration_mm(signal, good, np.array([bad]), echo)).all()


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: SpoiledEcho(5.0, 10.0), "milliseconds"),  # ms where s were meant
        (lambda: SpoiledEcho(0.000005, 10.0), "milliseconds"),
        (lambda: SpoiledEcho(float("nan"), 10.0), "milliseconds"),
        (lambda: SpoiledEcho(0.005, 0.0), "degrees"),
        (lambda: SpoiledEcho(0.005, 180.0), "degrees"),
        (lambda: SpoiledEcho(0.005, 10.0, 4500.0), r"1/\(s mM\)"),  # per M
        (lambda: SpoiledEcho(0.005, 10.0, 0.0045), r"1/\(s mM\)"),  # per ms
        (lambda: require_t1(1400.0), "seconds"),
        (lambda: require_t1(float("nan")), "seconds"),
    ],
)
def test_a_number_in_another_unit_is_refused_with_the_unit(make, word):
    with pytest.raises(CaseError, match=word):
        make()
