"""Phases of unsigned types: where the signal falls, no difference of them wraps."""

import numpy as np
import pytest

import napari_mamamia as mm
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.grid import Grid
from napari_mamamia.kinetics.curves import curve_enhancement, region_curve
from napari_mamamia.kinetics.map_blocks import (
    peak_enhancement,
    percent_enhancement,
    signal_enhancement_ratio,
    subtraction,
)
from napari_mamamia.kinetics.map_kinds import MAPS
from napari_mamamia.kinetics.projection import project_enhancement
from napari_mamamia.kinetics.repeated_pre import RepeatedPre, with_pre

SHAPE = (5, 8, 9)
UNSIGNED = [np.uint8, np.uint16, np.uint32]
VALUES = np.random.default_rng(3).integers(1, 250, (5, *SHAPE))
BLOCK = np.zeros(SHAPE, bool)
BLOCK[1:4, 2:7, 2:7] = True


def case_of(signal, n_before=1):
    times = (0.0, 90.0, 180.0, 270.0, 450.0)
    phases = tuple(Phase(index, time) for index, time in enumerate(times))
    grid = Grid.of_spacing(SHAPE, (2.0, 1.0, 1.0))
    return Case("A", grid, signal, phases, n_before=n_before)


def all_maps(signal):
    maps = mm.kinetics.maps(case_of(signal))
    return [maps[name] for name in maps]


def ftv(signal):
    found = mm.kinetics.ftv(case_of(signal), BLOCK)
    return [found.volume_cc, found.partial_cc, found.washout_cc, found.background_signal]


def curve(signal):
    found = mm.kinetics.curve(case_of(signal), BLOCK)
    return [found.signal, found.percent, found.change_percent]


MEASURES = {
    "subtraction": lambda s: [subtraction(s, 2, 1)],
    "PE": lambda s: [percent_enhancement(s, 1)],
    "SER": lambda s: [signal_enhancement_ratio(s, 1, 3)],
    "peak": lambda s: [peak_enhancement(s)],
    "projections": lambda s: project_enhancement(s, 2, 1, (0, 3, 1)),
    "curve of a region": lambda s: [curve_enhancement(region_curve(s, BLOCK))],
    "maps": all_maps,
    "FTV": ftv,
    "curve": curve,
    **{
        how.value: lambda s, how=how: [with_pre(case_of(s, n_before=2), how).signal]
        for how in RepeatedPre
    },
}


@pytest.mark.parametrize("dtype", UNSIGNED)
@pytest.mark.parametrize("name", MEASURES)
def test_unsigned_phases_have_the_numbers_of_floating_point_ones(name, dtype):
    found = MEASURES[name](VALUES.astype(dtype))
    expected = MEASURES[name](VALUES.astype(np.float64))
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", MEASURES)
def test_no_measure_changes_the_phases_of_its_caller(name):
    signal = VALUES.astype(np.uint16)
    MEASURES[name](signal)
    np.testing.assert_array_equal(signal, VALUES)


def test_a_subtraction_is_that_of_whole_numbers():
    found = subtraction(VALUES.astype(np.uint16), 2, 1)
    np.testing.assert_array_equal(found, VALUES[2] - VALUES[1])
    assert (found < 0).any()


@pytest.mark.parametrize("how", ["leave-out", "average"])
@pytest.mark.parametrize("n_before", [2, 3])
def test_s0_of_repeated_phases_before_contrast_by_hand(how, n_before):
    found = with_pre(case_of(VALUES.astype(np.uint16), n_before), RepeatedPre(how)).signal
    before = VALUES[:n_before]
    expected = before[-1] if how == "leave-out" else before.mean(axis=0)
    np.testing.assert_allclose(found[0], expected, rtol=1e-6)
    np.testing.assert_array_equal(found[1:], VALUES[1:])


def test_all_maps_are_compared():
    found = mm.kinetics.maps(case_of(VALUES.astype(np.uint16)), None)
    assert {"pe", "ser", "wash_in", "wash_out", "peak", "type"} <= set(found)
    assert len(MAPS) >= len(found)
