"""The maps that can be laid over an image: one table of how each is computed, coloured and told.

A new map is a formula and an entry in `MAPS`: list, colours, ranges and texts of the window follow.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final

from napari_mamamia.core.errors import CaseError
from napari_mamamia.kinetics.map_blocks import MapRecipe
from napari_mamamia.kinetics.time_axis import TimingRule
from napari_mamamia.kinetics.timing import PhaseChoice
from napari_mamamia.kinetics.ultrafast import (
    PE_AT_S,
    UltrafastMeasure,
    ultrafast_formula,
    ultrafast_times,
)
from napari_mamamia.kinetics.voxel_maps import KineticMap, map_recipe


class MapKind(StrEnum):
    """What can be laid over the image, named as in the list of the page."""

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
    """How a map's colours run: heat rises with the value, COOLING falls, DIVERGING has a middle."""

    HEAT = "heat"
    COOLING = "cooling"
    DIVERGING = "diverging"
    FALLING = "falling"


@dataclass(frozen=True, slots=True)
class MapRange:
    """A range by its name; `limits` None is the 1st to 99th percentile of the map's own values."""

    name: str
    limits: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class MapNeeds:
    """What a map rests on: the phases chosen for it, all times, and the clock."""

    choice: PhaseChoice
    times_s: tuple[float | None, ...]
    rule: TimingRule


@dataclass(frozen=True, slots=True)
class MapSpec:
    """One map.

    Parameters
    ----------
    recipe
        How it is computed; raises `CaseError` with the reason where it cannot be.
    basis
        Which phases or clock it rests on, in words.
    ranges
        What its colours may stand for, the usual one first; none for classes. The same colours mean
        the same in every case.
    of_curve
        Whether it looks at the phases of curve types in place of early and late.
    """

    recipe: Callable[[MapNeeds], MapRecipe]
    basis: Callable[[MapNeeds], str]
    ranges: tuple[MapRange, ...] = ()
    unit: str = ""
    colours: Colours = Colours.HEAT
    of_curve: bool = False


_AUTO: Final = MapRange("auto, 1–99 %", None)
_PERCENT: Final = tuple(MapRange(f"0–{top} %", (0.0, float(top))) for top in (300, 100, 200, 400))


def _ranges(*own: MapRange) -> tuple[MapRange, ...]:
    return (*own, _AUTO)


def _of_phases(kind: KineticMap, needs: MapNeeds) -> MapRecipe:
    return map_recipe(kind, needs.choice, times_s=needs.times_s)


def _of_close_phases(measure: UltrafastMeasure, needs: MapNeeds) -> MapRecipe:
    times = ultrafast_times(needs.times_s)
    arrival_s = needs.rule.injection_s
    if measure is UltrafastMeasure.TIME_TO_ENHANCEMENT and arrival_s is None:
        raise CaseError(
            "time to enhancement counts from the arrival in the aorta, which is not known: draw "
            "a mask in the aorta, read its arrival under Ultrafast, and type it beside Timing "
            "injection"
        )
    formula = ultrafast_formula(measure, times, counted_from_s=arrival_s)
    return MapRecipe(formula, tuple(range(len(times))), f"Computing {measure}")


def _told_early(needs: MapNeeds) -> str:
    return f"phase {needs.choice.early} against phase 0 · {needs.choice.timing}"


def _told_ser(needs: MapNeeds) -> str:
    early, late = needs.choice.early, needs.choice.late
    return f"phase {early} over phase {late}, each minus phase 0 · {needs.choice.timing}"


def _told_type(needs: MapNeeds) -> str:
    phases = f"phase {needs.choice.early} to phase {needs.choice.late}"
    return f"{phases}, where PE is at least 50 % · {needs.choice.timing}"


def _told_from(needs: MapNeeds) -> str:
    if needs.rule.injection_s is None:
        return f"{PE_AT_S:g} s after each voxel's own arrival"
    return f"{PE_AT_S:g} s after {needs.rule.injection_s:g} s, the time typed as injection"


def _told_tte(needs: MapNeeds) -> str:
    return f"arrival less {needs.rule.injection_s or 0:g} s, the time typed as injection"


MAPS: Final = {
    MapKind.PE: MapSpec(
        partial(_of_phases, KineticMap.PERCENT_ENHANCEMENT), _told_early, _ranges(*_PERCENT), "%"
    ),
    MapKind.SER: MapSpec(
        partial(_of_phases, KineticMap.SIGNAL_ENHANCEMENT_RATIO),
        _told_ser,
        _ranges(MapRange("0–2", (0.0, 2.0))),
        colours=Colours.DIVERGING,
    ),
    MapKind.WASH_IN: MapSpec(
        partial(_of_phases, KineticMap.WASH_IN_SLOPE),
        lambda _: "PE at the peak over its time since phase 0",
        _ranges(MapRange("0–3 %/s", (0.0, 3.0))),
        "%/s",
    ),
    MapKind.WASH_OUT: MapSpec(
        partial(_of_phases, KineticMap.WASH_OUT_SLOPE),
        lambda _: "fall from the peak to the last phase",
        _ranges(MapRange("−20–0 %/min", (-20.0, 0.0))),
        "%/min",
        Colours.FALLING,
    ),
    MapKind.PEAK: MapSpec(
        partial(_of_phases, KineticMap.PEAK_ENHANCEMENT),
        lambda _: "largest of all phases after contrast",
        _ranges(*_PERCENT),
        "%",
    ),
    MapKind.TYPE: MapSpec(partial(_of_phases, KineticMap.CURVE_TYPE), _told_type, of_curve=True),
    MapKind.MAXIMUM_SLOPE: MapSpec(
        partial(_of_close_phases, UltrafastMeasure.MAXIMUM_SLOPE),
        lambda _: "largest rise of PE between two phases",
        _ranges(MapRange("0–20 %/s", (0.0, 20.0)), MapRange("0–40 %/s", (0.0, 40.0))),
        "%/s",
    ),
    MapKind.ARRIVAL: MapSpec(
        partial(_of_close_phases, UltrafastMeasure.ARRIVAL),
        lambda _: "tangent of the steepest rise cut with the baseline, after phase 0 started",
        _ranges(MapRange("0–60 s", (0.0, 60.0)), MapRange("0–120 s", (0.0, 120.0))),
        "s",
        Colours.COOLING,
    ),
    MapKind.TIME_TO_ENHANCEMENT: MapSpec(
        partial(_of_close_phases, UltrafastMeasure.TIME_TO_ENHANCEMENT),
        _told_tte,
        _ranges(MapRange("0–20 s", (0.0, 20.0))),
        "s",
        Colours.COOLING,
    ),
    MapKind.PE_AT: MapSpec(
        partial(_of_close_phases, UltrafastMeasure.ENHANCEMENT_AT),
        _told_from,
        _ranges(*_PERCENT),
        "%",
    ),
}
"""Every map but FTV, which the page counts itself. Ranges are our choice; SER's is centred on 1."""
