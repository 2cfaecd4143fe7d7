"""Fill missing times of single images from the other images of the phase."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from napari_mamamia.core.choices import Clock
from napari_mamamia.io.dicom.parts import Part
from napari_mamamia.io.dicom.roles import PHASES
from napari_mamamia.io.dicom.slices import UNNUMBERED, Slice, unit_of, with_sum, zone_of
from napari_mamamia.io.dicom.trust import find_units_s

_CLOCKS: Final = (Clock.ACQUISITION_TIME, Clock.CONTENT_TIME)
_MOST_SHARE: Final = 0.5
"""Largest share of a phase's images whose missing times may be filled (our choice)."""


def fill_times(
    slices: Sequence[Slice], parts: Iterable[Part]
) -> tuple[list[Slice], tuple[str, ...]]:
    """Return planes with complete times in each phase, and a warning for each filled time.

    A time without seconds counts as missing if other images of the part have seconds.
    """
    times: dict[tuple[str, int], dict[str, float]] = {}
    counts = dict.fromkeys(_CLOCKS, 0)
    for part in parts:
        for clock in _CLOCKS if part.role in PHASES else ():
            for bare, start in _list_gaps(part, clock):
                counts[clock] += len(bare)
                for plane in bare:
                    times.setdefault((str(plane.file), plane.frame), {}).update(start)
    notes = tuple(
        f"{clock} is missing in {n} image(s), or has no seconds, in phases whose other "
        "images have it: the first time of the phase was assumed"
        for clock, n in counts.items()
        if n
    )
    return [_fill(p, times.get((str(p.file), p.frame), {})) for p in slices], notes


def _list_gaps(part: Part, clock: Clock) -> list[tuple[list[Slice], dict[str, float]]]:
    """Return the images of each phase that lack a clock, and the first value of the others."""
    by_phase: dict[int, list[Slice]] = {}
    for plane in part.slices:
        by_phase.setdefault(plane.phase, []).append(plane)
    by_phase.pop(UNNUMBERED, None)
    least_s = min(find_units_s(clock, part.slices), default=1.0)
    gaps = []
    for stack in by_phase.values():
        halves: tuple[list[Slice], list[Slice]] = ([], [])
        for plane in stack:
            halves[clock in plane.clocks and _find_unit(plane, clock) <= least_s].append(plane)
        bare, timed = halves
        if bare and len(bare) < _MOST_SHARE * len(stack):
            first = min(timed, key=lambda p: p.clocks[clock]).clocks
            names = (clock.value, zone_of(clock))
            gaps.append((bare, {name: first[name] for name in names if name in first}))
    return gaps


def _find_unit(piece: Slice, clock: Clock) -> float:
    return piece.clocks.get(unit_of(clock), 1.0)


def _fill(piece: Slice, times: dict[str, float]) -> Slice:
    if not times:
        return piece
    clocks = {**piece.clocks, **times}
    for clock in _CLOCKS:
        if clock in times:
            clocks.pop(unit_of(clock), None)
    return replace(piece, clocks=MappingProxyType(with_sum(clocks)))
