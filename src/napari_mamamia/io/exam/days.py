"""Align dates and time zones that are missing or shifted in the images of a study.

De-identification removes dates, writes the same date everywhere, or shifts each series by a
different number of days. The time of day then still orders the phases of one exam.
"""

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import Clock
from napari_mamamia.core.errors import CaseError
from napari_mamamia.io.dicom.clocks import span_text
from napari_mamamia.io.dicom.elements import DAY_S
from napari_mamamia.io.dicom.remedies import leave_out_each, use_series
from napari_mamamia.io.dicom.slices import Slice, zone_of
from napari_mamamia.io.exam.selectors import Selection

_CLOCKS: Final = (Clock.ACQUISITION_TIME, Clock.CONTENT_TIME)
_MOST_S: Final = 6 * 3600.0
"""Longest duration of a study in s (our choice); a longer one may include two exams of a day."""
MOST_PAUSE_S: Final = 7200.0
"""Longest pause in s between phases of one exam (our choice).

Contrast agent leaves the breast sooner. The longest gap in MAMA-MIA is below 20 minutes.
"""


def align_days(
    slices: Sequence[Slice], selection: Selection
) -> tuple[list[Slice], tuple[str, ...]]:
    """Return the planes with comparable times, and a warning for each assumption.

    Planes without a time zone or a date take the value of the other planes. If all planes have the
    same date or none, and lie within six hours around midnight, times after midnight continue those
    before midnight. If the user chose the series, this also applies to different dates.
    """
    is_counted = np.array([selection.uses_series(p.header.series_number) for p in slices], bool)
    planes = list(slices)
    notes: dict[str, None] = {}
    for clock in _CLOCKS:
        flatnonzero = [k for k in np.flatnonzero(is_counted) if clock in planes[k].clocks]
        if not flatnonzero:
            continue
        timed = [planes[k] for k in flatnonzero]
        times, zones = _to_local(timed, clock, notes)
        aligned = _follow_midnight(_add_days(times, clock, notes), clock, selection, notes) - zones
        for k, time_s, zone_s in zip(flatnonzero, aligned.tolist(), zones.tolist(), strict=True):
            planes[k] = _move_clock(planes[k], clock, time_s, zone_s)
    return planes, tuple(notes)


def shifted_days(stacks: Sequence[Sequence[Slice]], name: str) -> CaseError | None:
    """Return an error if dates differ although the times of day fit a single exam."""
    clock = next((c for c in _CLOCKS if all(c in p.clocks for s in stacks for p in s)), None)
    if clock is None:
        return None
    times = [_to_local(stack, clock, {})[0] for stack in stacks]
    every = np.concatenate(times)
    of_day = _on_one_day(every)
    if of_day is None or not _is_torn(every) or _is_torn(of_day):
        return None
    starts = [float(time.min()) for time in times]
    if len({start % DAY_S for start in starts}) < len(set(starts)):
        return None  # Two visits may take place at the same time of day.
    by_day: dict[float, list[Sequence[Slice]]] = {}
    for stack, start in zip(stacks, starts, strict=True):
        by_day.setdefault(start // DAY_S, []).append(stack)
    apart, gap = (span_text(round(_longest_gap(of), 1)) for of in (every, of_day))
    days = sorted(by_day) if len(by_day) == 2 else []
    return CaseError(
        f"expected the phases of {name} to be one exam, but two of them are {apart} apart by "
        f"{clock.removesuffix('Time')}Date and at most {gap} apart by {clock} alone. Either "
        "de-identification shifted their dates differently, or they belong to two exams. For one "
        "exam, choose the series, so the time of day is used without the date; otherwise leave "
        "out the other exam",
        remedies=[use_series(stacks), *leave_out_each(map(by_day.__getitem__, days), stacks)],
    )


def _to_local(
    planes: Sequence[Slice], clock: Clock, notes: dict[str, None]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    zones = [plane.clocks.get(zone_of(clock)) for plane in planes]
    zones_known = [zone for zone in zones if zone is not None]
    usual = max(sorted(set(zones_known)), key=zones_known.count) if zones_known else 0.0
    if zones_known and len(zones_known) < len(zones):
        notes[
            f"only {len(zones_known)} of {len(zones)} images have the time zone of {clock} "
            "(TimezoneOffsetFromUTC); the same zone was assumed for the others"
        ] = None
    local = [p.clocks[clock] + (z or 0.0) for p, z in zip(planes, zones, strict=True)]
    return np.array(local), np.array([usual if zone is None else zone for zone in zones])


def _add_days(
    times: NDArray[np.float64], clock: Clock, notes: dict[str, None]
) -> NDArray[np.float64]:
    is_dated = times >= DAY_S
    if is_dated.all() or not is_dated.any():
        return times
    dated = times[is_dated]
    days = np.unique(dated // DAY_S) * DAY_S
    nearest = np.abs(times[:, None] + days - np.median(dated)).argmin(axis=1)
    notes[
        (
            f"{clock.removesuffix('Time')}Date is missing in {int((~is_dated).sum())} of "
            f"{len(times)} images; the day of the other images was assumed"
        )
    ] = None
    return np.where(is_dated, times, times + days[nearest])


def _follow_midnight(
    times: NDArray[np.float64], clock: Clock, selection: Selection, notes: dict[str, None]
) -> NDArray[np.float64]:
    of_day = _on_one_day(times)
    if of_day is None or not (of_day - times).any():
        return times
    if len(np.unique(times // DAY_S)) == 1:
        notes[
            (
                f"{clock} passes midnight without a change of date; times after midnight were "
                "placed on the next day"
            )
        ] = None
        return of_day
    if not selection.use or not _is_torn(times) or _is_torn(of_day):
        return times
    notes[
        (
            f"the dates of {clock} differ, but the times of day fit one exam; because the series "
            "were chosen, the time of day was used without the date"
        )
    ] = None
    return of_day


def _on_one_day(times: NDArray[np.float64]) -> NDArray[np.float64] | None:
    of_day = np.unique(times % DAY_S)
    gaps = np.diff(of_day, append=of_day[0] + DAY_S)
    longest = int(gaps.argmax())
    if gaps[longest] < DAY_S - _MOST_S:
        return None
    first = of_day[(longest + 1) % len(of_day)]
    moved_days: NDArray[np.float64] = (
        times.min() // DAY_S - times // DAY_S + (times % DAY_S < first)
    )
    return times + moved_days * DAY_S


def _is_torn(times: NDArray[np.float64]) -> bool:
    return _longest_gap(times) > MOST_PAUSE_S


def _longest_gap(times: NDArray[np.float64]) -> float:
    return float(np.diff(np.unique(times)).max(initial=0.0))


def _move_clock(plane: Slice, clock: Clock, time_s: float, zone_s: float) -> Slice:
    moved_s = time_s - plane.clocks[clock]
    if moved_s == 0:
        return plane
    clocks = {**plane.clocks, clock.value: time_s, zone_of(clock): zone_s}
    if clock is Clock.ACQUISITION_TIME:
        clocks[Clock.ACQUIRED.value] += moved_s
    return replace(plane, clocks=MappingProxyType(clocks))
