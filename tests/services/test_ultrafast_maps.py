"""Ultrafast maps as the window gets them: each of the table, by plane and whole, and refused."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.phantoms.perfusion_case import perfusion_phantom

import napari_mamamia as mm
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.errors import CaseError
from napari_mamamia.kinetics.map_kinds import MAPS, MapKind
from napari_mamamia.kinetics.time_axis import Timing, TimingRule
from napari_mamamia.kinetics.ultrafast import ultrafast_numbers
from napari_mamamia.services.kinetics.show_kinetics import (
    begin_map,
    fill_map,
    fill_plane,
    map_ranges,
)
from napari_mamamia.widgets.kinetics.colours import ramp_of

CLOSE = (MapKind.MAXIMUM_SLOPE, MapKind.ARRIVAL, MapKind.TIME_TO_ENHANCEMENT, MapKind.PE_AT)
AORTA = TimingRule(Timing.INJECTION, 20.0)


@pytest.fixture(scope="module")
def phantom():
    return perfusion_phantom(shape=(8, 16, 24), n_phases=24, arrival_s=22.0)


def test_the_table_has_every_map_with_its_colours_ranges_and_words():
    assert set(MapKind) == {*MAPS, MapKind.FTV}
    for kind, spec in MAPS.items():
        assert map_ranges(kind) == spec.ranges
        if kind is not MapKind.TYPE:  # classes have letters in their place
            assert spec.ranges[0].limits is not None
            assert len(ramp_of(kind).colours) >= 3


def test_the_library_gives_every_map_of_the_table_by_its_name(phantom):
    names = [kind.name.lower() for kind in MAPS]
    times = (0.0, 50.0, 58.0, *(80.0 + 20 * k for k in range(21)))  # close ones, and late ones
    phases = tuple(Phase(k, time_s) for k, time_s in enumerate(times))
    found = mm.kinetics.maps(replace(phantom.case, phases=phases), names, injection_s=20.0)
    assert list(found) == names
    assert found.units == {kind.name.lower(): spec.unit for kind, spec in MAPS.items()}


@pytest.mark.parametrize("kind", CLOSE)
def test_an_ultrafast_map_is_that_of_the_curve_and_the_same_by_plane(phantom, kind):
    case = phantom.case
    shown = begin_map(case, kind, None, AORTA)
    fill_plane(shown, case, 1, 8)
    plane = shown.array[:, 8].copy()
    fill_map(shown, case)
    np.testing.assert_array_equal(shown.array[:, 8], plane)
    z, y, x = np.argwhere(phantom.lesion)[0]
    own = ultrafast_numbers(case.times_s, case.signal[:, z, y, x], vessel_arrival_s=20.0)
    expected = {
        MapKind.MAXIMUM_SLOPE: own.slope_percent_per_s,
        MapKind.ARRIVAL: own.arrival_s,
        MapKind.TIME_TO_ENHANCEMENT: own.time_to_enhancement_s,
        MapKind.PE_AT: own.pe_at_percent,
    }[kind]
    assert shown.array[z, y, x] == pytest.approx(expected, rel=1e-4)
    assert (shown.unit, shown.limits) == (MAPS[kind].unit, MAPS[kind].ranges[0].limits)
    assert shown.text


def test_time_to_enhancement_without_the_aortas_arrival_says_how_to_get_it(phantom):
    with pytest.raises(CaseError, match="draw a mask in the aorta"):
        begin_map(phantom.case, MapKind.TIME_TO_ENHANCEMENT)
    assert "own arrival" in begin_map(phantom.case, MapKind.PE_AT).text


@pytest.mark.parametrize("kind", CLOSE)
@pytest.mark.parametrize(
    ("times", "word"), [((0, 90, 180, 270), "got 90 s"), ((None,) * 4, "enter the times")]
)
def test_a_standard_exam_has_no_ultrafast_map_and_the_reason(phantom, kind, times, word):
    phases = tuple(Phase(k, time) for k, time in enumerate(times))
    standard = Case("S", phantom.case.grid, phantom.case.signal[:4], phases)
    with pytest.raises(CaseError, match=word):
        begin_map(standard, kind)
