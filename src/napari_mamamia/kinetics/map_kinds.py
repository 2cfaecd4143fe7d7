"""The table of maps (`MAPS`) that can be overlaid on an image.

Each entry has the formula, colours, ranges and texts of a map. A new map needs a formula and an
entry in `MAPS`, which the window, `mm.kinetics.maps` and the table in docs/methods/kinetics.md use.
Another package can add a map with an entry point.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Final

from napari_mamamia.core.counting import phase_name
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.plugins import Registry
from napari_mamamia.kinetics import map_formulas
from napari_mamamia.kinetics.map_blocks import MapRecipe, ratio_recipe, required_times, type_recipe
from napari_mamamia.kinetics.map_formulas import Formula
from napari_mamamia.kinetics.time_axis import TimingRule
from napari_mamamia.kinetics.timing import PhaseChoice
from napari_mamamia.kinetics.ultrafast import (
    PE_AT_S,
    UltrafastMeasure,
    ultrafast_formula,
    ultrafast_times,
)


class MapKind(StrEnum):
    """The maps that can be overlaid on an image; the values are their names in the window."""

    PE = "PE, early phase"
    SER = "SER"
    WASH_IN = "wash-in slope"
    WASH_OUT = "wash-out slope"
    PEAK = "peak PE"
    TYPE = "curve type"
    MAXIMUM_SLOPE = "maximum slope"
    ARRIVAL = "bolus arrival"
    TIME_TO_ENHANCEMENT = "time to enhancement"
    PE_AT = "PE at 20 s"
    FTV = "FTV by SER"


class Colours(StrEnum):
    """Colour scale of a map: HEAT for high values, COOLING for low values, DIVERGING for both."""

    HEAT = "heat"
    COOLING = "cooling"
    DIVERGING = "diverging"
    FALLING = "falling"


@dataclass(frozen=True, slots=True)
class MapRange:
    """A named range of values, by default the 1st to the 99th percentile of the map."""

    name: str
    limits: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class MapNeeds:
    """The phases, times and timing rule from which maps are computed."""

    choice: PhaseChoice
    times_s: tuple[float | None, ...]
    rule: TimingRule


@dataclass(frozen=True, slots=True)
class MapSpec:
    """The definition of one map.

    Parameters
    ----------
    recipe
        A function that returns the recipe, or raises `CaseError` with the reason.
    basis
        A function that describes the phases or times on which the map depends.
    formula, source
        The formula in words and its source, for docs/methods/kinetics.md.
    ranges
        The ranges of the colour scale, default first; empty for classes. A colour has the same
        meaning in every case.
    of_curve
        Whether the map uses the initial and delayed phases of curve types, and not the early and
        late phases.
    """

    recipe: Callable[[MapNeeds], MapRecipe]
    basis: Callable[[MapNeeds], str]
    formula: str
    source: str
    ranges: tuple[MapRange, ...] = ()
    unit: str = ""
    colours: Colours = Colours.HEAT
    of_curve: bool = False


_ULTRAFAST: Final = "see [ultrafast measures](ultrafast.md)"
_AUTO: Final = MapRange("auto, 1–99 %", None)
_PERCENT: Final = tuple(MapRange(f"0–{top} %", (0.0, float(top))) for top in (300, 100, 200, 400))


def _list_ranges(*own: MapRange) -> tuple[MapRange, ...]:
    return (*own, _AUTO)


def _of_early(needs: MapNeeds) -> MapRecipe:
    early = needs.choice.early
    return MapRecipe(map_formulas.percent(early, 0.0), (0, early))


def _of_slope(
    formula: Callable[[tuple[float, ...], float], Formula], name: str, needs: MapNeeds
) -> MapRecipe:
    times = required_times(needs.times_s, name)
    return MapRecipe(formula(times, 0.0), tuple(range(len(times))))


def _of_close_phases(measure: UltrafastMeasure, needs: MapNeeds) -> MapRecipe:
    times = ultrafast_times(needs.times_s)
    arrival_s = needs.rule.injection_s
    if measure is UltrafastMeasure.TIME_TO_ENHANCEMENT and arrival_s is None:
        raise CaseError(
            "the time to enhancement needs the arrival time in the aorta, which is unknown; draw "
            "a mask in the aorta, read its arrival time under Ultrafast, and enter it with the "
            "timing injection"
        )
    formula = ultrafast_formula(measure, times, counted_from_s=arrival_s)
    return MapRecipe(formula, tuple(range(len(times))))


def _name(needs: MapNeeds, phase: int | None) -> str:
    return "no late phase" if phase is None else phase_name(phase, needs.rule.n_before)


def _told_early(needs: MapNeeds) -> str:
    return f"{_name(needs, needs.choice.early)} against {_name(needs, 0)} · {needs.choice.timing}"


def _told_ser(needs: MapNeeds) -> str:
    early, late, pre = (_name(needs, k) for k in (needs.choice.early, needs.choice.late, 0))
    return f"{early} over {late}, each minus {pre} · {needs.choice.timing}"


def _told_type(needs: MapNeeds) -> str:
    phases = f"{_name(needs, needs.choice.early)} to {_name(needs, needs.choice.late)}"
    return f"{phases}, where PE is at least 50 % · {needs.choice.timing}"


def _told_from(needs: MapNeeds) -> str:
    if needs.rule.injection_s is None:
        return f"{PE_AT_S:g} s after each voxel's own arrival"
    return f"{PE_AT_S:g} s after {needs.rule.injection_s:g} s, the entered time of injection"


def _told_tte(needs: MapNeeds) -> str:
    return f"arrival minus {needs.rule.injection_s or 0:g} s, the entered time of injection"


_MAPS: Final[Mapping[str, MapSpec]] = {
    MapKind.PE: MapSpec(
        _of_early,
        _told_early,
        "100 (S_early - S0) / S0",
        "UCSF FTV code (SeQ)",
        _list_ranges(*_PERCENT),
        "%",
    ),
    MapKind.SER: MapSpec(
        lambda needs: ratio_recipe(needs.choice),
        _told_ser,
        "(S_early - S0) / (S_late - S0)",
        "Arasu, Hylton et al. 2011, figure 1; UCSF FTV code",
        _list_ranges(MapRange("0–2", (0.0, 2.0))),
        colours=Colours.DIVERGING,
    ),
    MapKind.WASH_IN: MapSpec(
        partial(_of_slope, map_formulas.wash_in_slope, "wash-in slope"),
        lambda _: "PE at the peak divided by the time from the first phase to the peak",
        "PE_max / (t_max - t_0)",
        "OSIPI CAPLEX Q.CD1.011",
        _list_ranges(MapRange("0–3 %/s", (0.0, 3.0))),
        "%/s",
    ),
    MapKind.WASH_OUT: MapSpec(
        partial(_of_slope, map_formulas.wash_out_slope, "wash-out slope"),
        lambda _: "fall from the peak to the last phase",
        "(PE_max - PE_last) / (t_max - t_last)",
        "OSIPI CAPLEX Q.CD1.012",
        _list_ranges(MapRange("−20–0 %/min", (-20.0, 0.0))),
        "%/min",
        Colours.FALLING,
    ),
    MapKind.PEAK: MapSpec(
        lambda _: MapRecipe(map_formulas.peak(0.0), (0, 1)),
        lambda _: "largest PE of all phases after contrast",
        "largest PE after contrast",
        "as PE",
        _list_ranges(*_PERCENT),
        "%",
    ),
    MapKind.TYPE: MapSpec(
        lambda needs: type_recipe(needs.choice),
        _told_type,
        "delayed course where the initial PE >= 50 %: 1 persistent, 2 plateau, 3 washout",
        "Partridge et al. 2014, figure 2",
        of_curve=True,
    ),
    MapKind.MAXIMUM_SLOPE: MapSpec(
        partial(_of_close_phases, UltrafastMeasure.MAXIMUM_SLOPE),
        lambda _: "largest rise of PE between two phases",
        "largest 100 (S_(k+1) - S_k) / (t_(k+1) - t_k) / Sb",
        _ULTRAFAST,
        _list_ranges(MapRange("0–20 %/s", (0.0, 20.0)), MapRange("0–40 %/s", (0.0, 40.0))),
        "%/s",
    ),
    MapKind.ARRIVAL: MapSpec(
        partial(_of_close_phases, UltrafastMeasure.ARRIVAL),
        lambda _: (
            "intersection of the tangent at the steepest rise with the baseline, after the "
            "start of phase 0"
        ),
        "t_k - (S_k - Sb) / slope",
        _ULTRAFAST,
        _list_ranges(MapRange("0–60 s", (0.0, 60.0)), MapRange("0–120 s", (0.0, 120.0))),
        "s",
        Colours.COOLING,
    ),
    MapKind.TIME_TO_ENHANCEMENT: MapSpec(
        partial(_of_close_phases, UltrafastMeasure.TIME_TO_ENHANCEMENT),
        _told_tte,
        "bolus arrival minus the entered time of injection",
        _ULTRAFAST,
        _list_ranges(MapRange("0–20 s", (0.0, 20.0))),
        "s",
        Colours.COOLING,
    ),
    MapKind.PE_AT: MapSpec(
        partial(_of_close_phases, UltrafastMeasure.ENHANCEMENT_AT),
        _told_from,
        "100 (S - Sb) / Sb 20 s after the injection, or after the voxel's own arrival",
        _ULTRAFAST,
        _list_ranges(*_PERCENT),
        "%",
    ),
}

MAPS: Final = Registry(
    "napari_mamamia.maps",
    MapSpec,
    _MAPS,
    reserved=(*MapKind, *(kind.name.lower() for kind in MapKind)),
)
"""The built-in maps, followed by the maps of plug-ins.

FTV is not included, because the Kinetics page computes it.
"""


def library_name(kind: str) -> str:
    """Return the name of a map for `mm.kinetics.maps`."""
    return kind.name.lower() if isinstance(kind, MapKind) else kind


def map_recipe(kind: str, needs: MapNeeds) -> MapRecipe:
    """Return the recipe of a map, which can be applied to a whole volume or a part of it.

    Values are float32, or uint8 for curve types.

    Parameters
    ----------
    kind
        The map, which is a `MapKind` or the name of a plug-in's map.
    needs
        The phases, times and timing rule for the map.

    Raises
    ------
    CaseError
        If a phase or time that the map needs is undefined; the message gives the reason.
    """
    return replace(MAPS[kind].recipe(needs), text=f"Computing {kind}")
