"""Choose a reliable clock (DICOM element) by which to order the phases of an exam in time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import Clock
from napari_mamamia.core.errors import CaseError, Remedy
from napari_mamamia.io.dicom.slices import (
    DYNAMIC_TIME,
    OFFSET_TIME,
    REFERENCE_TIME,
    RESOLUTION,
    Slice,
    unit_of,
)

RECONSTRUCTION_S: Final = 20.0
"""Gap between ContentTimes in s below which they show the reconstruction, not the scan.

Scans with shorter gaps are timed by other clocks. The value is our choice.
"""
_LATE_S: Final = 60.0
"""Tolerance in s for the difference between two clocks of one scanner (our choice).

It allows for a clock that is truncated to minutes.
"""
_MOST_LATE_S: Final = 6 * 3600.0
"""Difference in s above which two clocks differ by a day or a time zone (our choice).

A delay in storing the images does not explain such a difference.
"""
_SAME_STEPS_S: Final = 5.0
_MOST_FASTER: Final = 8.0
"""Largest plausible ratio of TR x lines x partitions to the gap between phases (our choice).

ContentTime is accepted up to this ratio, because parallel imaging in two directions and partial
Fourier can explain it.
"""
_MINUTE_S: Final = 60.0
_FEWEST: Final = 3
"""Number of phases from which it is no longer chance that all start at whole minutes."""
LEAST_GAP_S: Final = 1.0
MOST_GAP_S: Final = 1800.0
"""Longest plausible gap in seconds between phases (our choice).

Ultrafast exams have gaps of 2 to 5 s. The longest gap of the cases in the MAMA-MIA table is below
20 minutes.
"""


def span_text(seconds: float) -> str:
    """Return a duration as text, such as "75 s", "3.5 hours" or "139 days"."""
    if seconds < 2 * 3600:
        return f"{seconds:g} s"
    return f"{seconds / 3600:.1f} hours" if seconds < 2 * 86400 else f"{seconds / 86400:.0f} days"


_EXPECTED: Final = {
    "DateTime": "no date and time (expected YYYYMMDDHHMMSS)",
    "Date": "no date (expected YYYYMMDD)",
    "Time": "no time (expected HHMMSS, hours 00 to 23)",
    "UTC": "no time zone (expected +HHMM or -HHMM)",
}
"""Phrase for an invalid element, by the ending of its name. Source: DICOM PS3.5, 6.2."""


def list_refused_times(slices: Sequence[Slice], clock: str = "") -> tuple[str, ...]:
    """Return a phrase for each element that has an invalid date or time in some images.

    `clock`, such as "AcquisitionTime", selects the elements that determine this clock; "" selects
    all elements.
    """
    pieces = [image for image in slices if not image.is_padding]
    values: dict[str, list[str]] = {}
    for plane in pieces:
        for name, value in plane.refused_times:
            if name.replace("DateTime", "Time").endswith(clock):
                values.setdefault(name, []).append(value)
    return tuple(
        f"{name} {refused[0]} is {next(t for e, t in _EXPECTED.items() if name.endswith(e))} in "
        f"{len(refused)} of {len(pieces)} images"
        for name, refused in values.items()
    )


def add_refused_times(message: str, slices: Sequence[Slice]) -> str:
    """Return a message with the invalid times that may have caused the problem added."""
    refused = "; ".join(list_refused_times(slices))
    return f"{message}. Ignored: {refused}; correct it in the files" if refused else message


def earliest(name: str, slices: Sequence[Slice], stack: NDArray[np.intp]) -> float | None:
    """Return the smallest value of a clock in one stack, or None if a plane has no value."""
    values = [slices[index].clocks.get(name) for index in stack]
    numbers = [value for value in values if value is not None]
    return min(numbers) if len(numbers) == len(values) else None


def find_units_s(name: str, slices: Sequence[Slice]) -> set[float]:
    """Return the units, in seconds, in which the values of a clock are given.

    There are several if some values are coarse.
    """
    told = [image.clocks for image in slices if name in image.clocks and not image.is_padding]
    return {clocks.get(unit_of(name), 1.0) for clocks in told}


def partial_warnings(slices: Sequence[Slice]) -> list[str]:
    """Return a warning for each clock that is missing, or lacks seconds, in some planes."""
    pieces = [image for image in slices if not image.is_padding]
    sentences = []
    acquired = Clock.ACQUISITION_TIME
    n_missing = sum(acquired not in image.clocks for image in pieces)
    if 0 < n_missing < len(pieces) and not list_refused_times(pieces, acquired):
        sentences.append(
            f"{acquired} is missing in {n_missing} of {len(pieces)} images, so it gives no times"
        )
    for clock in (acquired, Clock.CONTENT_TIME):
        if len(find_units_s(clock, pieces)) > 1:
            n_coarse = sum(unit_of(clock) in image.clocks for image in pieces)
            sentences.append(
                f"{clock} has no seconds in {n_coarse} of {len(pieces)} images, so it gives no "
                "times: it may be off by a minute or more between images"
            )
    return sentences


def least_making_s(slices: Sequence[Slice], n_planes: int) -> float:
    """Return the smallest median gap of ContentTime, in seconds, that is plausible for a scan."""
    image = slices[0]
    repetition_ms = image.sequence.repetition_time_ms
    if not repetition_ms or "3D" not in image.sequence.technique:
        return RECONSTRUCTION_S
    whole_s = repetition_ms / 1000 * min(image.shape) * n_planes
    return max(RECONSTRUCTION_S, whole_s / _MOST_FASTER)


def too_late(slices: Sequence[Slice], stacks: NDArray[np.intp]) -> str:
    """Return why AcquisitionTime cannot be correct, or "".

    An image is computed after the scan. If AcquisitionTime is later than ContentTime and advances
    faster, it was overwritten when the images were stored. `stacks` (time, slice position) are the
    indices of the planes in the order of ContentTime.
    """
    starts = [earliest(Clock.ACQUISITION_TIME, slices, stack) for stack in stacks]
    makings = [earliest(Clock.CONTENT_TIME, slices, stack) for stack in stacks]
    pairs = [
        (a, b) for a, b in zip(starts, makings, strict=True) if a is not None and b is not None
    ]
    if len(pairs) < max(len(stacks), 2):
        return ""
    late = max(a - b for a, b in pairs)
    steps, true_steps = (np.diff([pair[k] for pair in pairs]) for k in (0, 1))
    is_late = _LATE_S < late < _MOST_LATE_S
    is_other = float(np.abs(steps - true_steps).max()) > _SAME_STEPS_S
    paces = float(np.median(steps)), float(np.median(true_steps))
    if not (is_late and is_other and paces[0] < paces[1]):
        return ""
    if paces[1] < least_making_s(slices, len(stacks[0])):
        return ""
    return (
        f"up to {late:.0f} s later than ContentTime of the same image, so it is a storing time "
        "and was ignored"
    )


def without_acquisition_time(slices: Sequence[Slice]) -> list[Slice]:
    """Return the planes without AcquisitionTime and the clocks computed from it."""
    both = (Clock.ACQUISITION_TIME, Clock.ACQUIRED)
    return [
        replace(
            image,
            clocks=MappingProxyType({k: v for k, v in image.clocks.items() if k not in both}),
        )
        for image in slices
    ]


def time_oddities(
    stacks: Sequence[Sequence[Slice]], times_s: Sequence[float] | None, timed_by: str
) -> tuple[str, ...]:
    """Return warnings about phase times that are uncertain."""
    if times_s is None or len(times_s) < 2:
        return ()
    sentences = []
    if timed_by == Clock.CONTENT_TIME:
        steps = ", ".join(f"{b - a:g}" for a, b in pairwise(times_s[:7]))
        sentences.append(
            f"the times are reconstruction times (ContentTime, in intervals of {steps} s), "
            "because no reliable element gives the acquisition times; check them, because the "
            "intervals of the scan may differ"
        )
    if len(times_s) >= _FEWEST and _are_minutes(timed_by, stacks):
        sentences.append(
            f"{timed_by} has whole minutes only, so each time may be off by up to 60 s; check the "
            "times"
        )
    return tuple(sentences)


def _are_minutes(timed_by: str, stacks: Sequence[Sequence[Slice]]) -> bool:
    if timed_by not in (Clock.ACQUISITION_TIME, Clock.CONTENT_TIME):
        return False
    pieces = (plane for stack in stacks for plane in stack if not plane.is_padding)
    # A plane without a time counts as 1 s, which is not a whole minute.
    return all(image.clocks.get(timed_by, 1.0) % _MINUTE_S == 0 for image in pieces)


_NONE: Final[NDArray[np.intp]] = np.empty((0, 0), dtype=np.intp)
_IN_SECONDS: Final = (
    Clock.ACQUISITION_TIME, Clock.CONTENT_TIME, Clock.TRIGGER_TIME, Clock.ACQUIRED,
)  # fmt: skip
_TIMING: Final = (
    Clock.ACQUISITION_TIME.value,
    REFERENCE_TIME,
    Clock.TRIGGER_TIME.value,
    Clock.ACQUIRED.value,
    OFFSET_TIME,
    DYNAMIC_TIME,
    Clock.CONTENT_TIME.value,
)
"""Elements that can give the times of phases ordered by a different element, best first."""
_MUST_AGREE: Final = frozenset(Clock) - {
    Clock.CONTENT_TIME, Clock.INSTANCE_NUMBER, Clock.ACQUIRED,
}  # fmt: skip
"""Clocks that make the order uncertain if they contradict the chosen clock.

ContentTime is the time when the image was computed or sent, and InstanceNumber may count slices in
any order, so neither is included.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """The order and the times of the phases according to one clock.

    `stacks` (time, slice position) holds the index of each plane; its size is 0 if the clock gives
    no order. `reason` explains the failure, or names the support for the clock. `times_s` are
    seconds since phase 0 from the element `timed_by`, or None if no element gives times.
    """

    clock: Clock
    stacks: NDArray[np.intp]
    reason: str
    times_s: tuple[float, ...] | None = None
    timed_by: str = ""

    @property
    def works(self) -> bool:
        """Whether the clock gives stacks of equal size that follow one another."""
        return self.stacks.size > 0

    @property
    def text(self) -> str:
        """The clock, the reason, and the element that gives the times, as text."""
        timed = f", timed by {self.timed_by}" if self.timed_by else ", times unknown"
        return f"{self.clock} ({self.reason}{timed})"

    @property
    def is_plausible(self) -> bool:
        """Whether times are known and the gaps between them are plausible."""
        if self.times_s is None:
            return False
        return all(LEAST_GAP_S <= b - a <= MOST_GAP_S for a, b in pairwise(self.times_s))


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The chosen clock, the verdicts on all clocks (best first), and warnings."""

    chosen: Verdict
    verdicts: tuple[Verdict, ...]
    warnings: tuple[str, ...] = ()

    @property
    def other_orders(self) -> list[Clock]:
        """Clocks that would give a different order of the phases."""
        return [v.clock for v in self.verdicts if v.works and not _is_same_order(v, self.chosen)]


def choose_clock(rows: Sequence[Sequence[Slice]], name: str, wanted: Clock | None = None) -> Choice:
    """Return the clock by which to order planes on one grid in time.

    Clocks that give stacks of equal size are ranked. Clocks that give plausible times for the
    phases come first, and the order of `Clock` decides among equals. If a second clock gives a
    different order, the order is uncertain, and only the user can decide it with `wanted`.
    ContentTime and InstanceNumber make the order uncertain only if the gaps of the first clock are
    implausible.

    Parameters
    ----------
    rows
        The planes that show each slice position, from the bottom of the stack. Each position has
        the same number of planes.
    name
        Name of the exam or series, for messages.
    wanted
        The clock that the user chose; if None, a clock is chosen.

    Raises
    ------
    CaseError
        If no clock orders the planes, or two clocks contradict each other.
    """
    n_times = len(rows[0])
    if n_times == 1:
        only = Verdict(Clock.SERIES, np.arange(len(rows))[None, :], "one phase", (0.0,), "")
        return Choice(only, (only,))
    slices = [plane for row in rows for plane in row]
    slices, verdicts, doubts = _judge_clocks(slices, n_times, wanted)
    working = sorted((v for v in verdicts if v.works), key=lambda v: not v.is_plausible)
    if wanted is not None:
        chosen = next(verdict for verdict in verdicts if verdict.clock is wanted)
        if not chosen.works:
            message = f"expected {wanted} to order {name}, but it does not ({chosen.reason}): " + (
                "choose another clock"
                if working
                else (
                    "no other clock orders them, so convert the exam to NIfTI with the phases in "
                    "the right order"
                )
            )
            raise CaseError(
                add_refused_times(message, slices), remedies=[use_clock(v.clock) for v in working]
            )
        return Choice(chosen, verdicts, (*doubts, *_list_oddities(chosen, working)))
    if not working:
        reasons = "; ".join(f"{verdict.clock}: {verdict.reason}" for verdict in verdicts)
        message = (
            f"expected a clock that orders the {n_times} phases of {name}, but {reasons}: "
            "convert the exam to NIfTI with the phases in the right order"
        )
        raise CaseError(add_refused_times(message, slices))
    _require_agreement(working, slices, name)
    return Choice(working[0], verdicts, (*doubts, *_list_oddities(working[0], working)))


def use_clock(clock: Clock) -> Remedy:
    """Return the remedy that selects the clock by which to order the phases."""
    return Remedy("clock", (clock.value,))


def _judge_clocks(
    slices: list[Slice], n_times: int, wanted: Clock | None
) -> tuple[list[Slice], tuple[Verdict, ...], list[str]]:
    """Return the planes, the verdict on each clock, and a warning about a wrong AcquisitionTime.

    An AcquisitionTime that cannot be correct is removed from the planes, unless the user chose that
    clock.
    """
    content = judge(Clock.CONTENT_TIME, slices, n_times)
    names_it = wanted in (Clock.ACQUISITION_TIME, Clock.ACQUIRED)
    late = too_late(slices, content.stacks) if content.works and not names_it else ""
    if late:
        slices = without_acquisition_time(slices)
    verdicts = tuple(judge(clock, slices, n_times) for clock in Clock)
    if not late:
        return slices, verdicts, partial_warnings(slices)
    message = f"{Clock.ACQUISITION_TIME} is {late}"
    return (
        slices,
        tuple(
            replace(v, reason=late) if v.clock is Clock.ACQUISITION_TIME else v for v in verdicts
        ),
        [message],
    )


def judge(clock: Clock, slices: Sequence[Slice], n_times: int) -> Verdict:
    """Return the verdict on one clock.

    A clock works if three conditions are met. All planes have a value. The values at one slice
    position differ. The stacks made of the first, second, ... planes of all positions follow one
    another without overlap. Alternatively, an instance number may count all times of one position
    before those of the next position.

    Parameters
    ----------
    clock
        The clock to judge.
    slices
        The planes, sorted by slice position, with `n_times` planes at each position.
    n_times
        Number of planes at each slice position.
    """
    values = _read_values(clock, slices, n_times)
    if isinstance(values, str):
        return Verdict(clock, _NONE, values)
    order = np.argsort(values, axis=1, kind="stable")
    ranked = np.take_along_axis(values, order, axis=1)
    if np.any(np.diff(ranked, axis=1) == 0):
        return _judge_tie(clock, ranked, order, slices)
    latest = ranked
    if (
        len(find_units_s(clock, slices)) > 1
    ):  # A value without seconds may be anywhere in its minute.
        units = [image.clocks.get(unit_of(clock), 0.0) for image in slices]
        own_units = np.take_along_axis(np.reshape(units, values.shape), order, axis=1)
        latest = ranked + own_units
    follow = bool(np.all(latest[:, :-1].max(axis=0) < ranked[:, 1:].min(axis=0)))
    if not follow and not (clock is Clock.INSTANCE_NUMBER and _place_by_place(ranked)):
        return Verdict(clock, _NONE, "the stacks overlap in time")
    stacks = (order + np.arange(len(order))[:, None] * n_times).T
    times_s, timed_by = _find_times(clock, slices, stacks)
    text = (
        f"{n_times} equal stacks, one after the other"
        if follow
        else ("the clock counts the times of one slice position before the next position")
    )
    return Verdict(clock, stacks, text, times_s, timed_by)


def _read_values(clock: Clock, slices: Sequence[Slice], n_times: int) -> NDArray[Any] | str:
    if clock is Clock.SERIES:
        return _series_values(slices, n_times)
    values = [image.clocks.get(clock) for image in slices]
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        if list_refused_times(slices, clock):
            return "no time"
        n_missing = len(values) - len(numbers)
        return "missing" if not numbers else f"missing in {n_missing} of {len(values)} images"
    if len(set(numbers)) == 1:
        return "the same in all"
    return np.array(numbers).reshape(-1, n_times)


def _series_values(slices: Sequence[Slice], n_times: int) -> NDArray[Any] | str:
    by_series: dict[str, list[int]] = {}
    for index, image in enumerate(slices):
        by_series.setdefault(image.header.series_uid, []).append(index)
    if len(by_series) == 1:
        return "all phases are in one series"
    values = np.empty(len(slices))
    starts = _rank_series([[slices[index] for index in group] for group in by_series.values()])
    for index_of_series, members in enumerate(by_series.values()):
        group = [slices[index] for index in members]
        number = group[0].header.series_number if starts is None else starts[index_of_series]
        if number is None:
            return "missing"
        inner = len(group) * n_times // len(slices)
        verdict = order_inside(group, inner)
        if verdict is None:
            return f"nothing orders the {inner} phases inside {group[0].series_name}"
        for time, stack in enumerate(verdict):
            # Fractions below 1 keep the last phase of a series before the next series.
            values[np.array(members)[stack]] = number + time / (inner + 1)
    return values.reshape(-1, n_times)


def _rank_series(series: Sequence[Sequence[Slice]]) -> list[int] | None:
    times = [[plane.clocks.get(Clock.ACQUISITION_TIME) for plane in group] for group in series]
    if any(time is None for group in times for time in group):
        return None
    firsts = [min(time for time in group if time is not None) for group in times]
    if len(set(firsts)) < len(firsts):
        return None
    return [sorted(firsts).index(first) for first in firsts]


def order_inside(own: Sequence[Slice], n_times: int) -> NDArray[np.intp] | None:
    """Return the stacks formed by the planes of one series, or None if no clock orders them."""
    if n_times == 1:
        return np.arange(len(own))[None, :]
    verdicts = (judge(clock, own, n_times) for clock in Clock if clock is not Clock.SERIES)
    return next((verdict.stacks for verdict in verdicts if verdict.works), None)


def _judge_tie(
    clock: Clock, ranked: NDArray[Any], order: NDArray[np.intp], slices: Sequence[Slice]
) -> Verdict:
    row, time = np.argwhere(np.diff(ranked, axis=1) == 0)[0]
    start = row * ranked.shape[1]
    a, b = (slices[start + order[row, time + k]] for k in (0, 1))
    is_between = a.header.series_uid != b.header.series_uid
    both = (a.series_name, b.series_name) if is_between else (a.name, b.name)
    return Verdict(clock, _NONE, f"{both[0]} and {both[1]} have the same {clock}")


def _place_by_place(ranked: NDArray[Any]) -> bool:
    by_place = ranked[np.argsort(ranked[:, 0])]
    return bool(np.all(by_place[:-1, -1] < by_place[1:, 0]))


def _find_times(
    clock: Clock, slices: Sequence[Slice], stacks: NDArray[np.intp]
) -> tuple[tuple[float, ...] | None, str]:
    clock_names = [clock.value] if clock in _IN_SECONDS else []
    for name in dict.fromkeys((*clock_names, *_TIMING)):
        if len(find_units_s(name, slices)) > 1:
            continue
        starts = [earliest(name, slices, stack) for stack in stacks]
        seconds = [start for start in starts if start is not None]
        if len(seconds) < len(starts) or not all(a < b for a, b in pairwise(seconds)):
            continue
        if name != Clock.CONTENT_TIME or float(np.median(np.diff(seconds))) >= least_making_s(
            slices, stacks.shape[1]
        ):
            return tuple(round(start - seconds[0], 3) for start in seconds), name
    return _count_times(clock, slices, stacks)


def _count_times(
    clock: Clock, slices: Sequence[Slice], stacks: NDArray[np.intp]
) -> tuple[tuple[float, ...] | None, str]:
    steps = {image.clocks.get(RESOLUTION) for image in slices}
    step = steps.pop() if len(steps) == 1 else None
    if clock is not Clock.TEMPORAL_POSITION or not step or step <= 0:
        return None, ""
    counts = [earliest(clock, slices, stack) or 0.0 for stack in stacks]
    return tuple(round((count - counts[0]) * step, 3) for count in counts), RESOLUTION


def _require_agreement(working: Sequence[Verdict], slices: Sequence[Slice], name: str) -> None:
    first = working[0]
    is_odd = (
        first.times_s is not None and not first.is_plausible
    )  # The clock passed midnight, and it has no date.
    for other in working[1:]:
        if other.clock is Clock.SERIES and first.is_plausible:
            continue  # Series numbers follow the order of storing, not of scanning.
        if (is_odd or other.clock in _MUST_AGREE) and not _is_same_order(first, other):
            message = (
                f"expected one order of the phases in {name}, but {first.clock} and {other.clock} "
                f"differ: by {first.clock} {_name_order(first, slices)}, and by {other.clock} "
                f"{_name_order(other, slices)}: choose the correct clock"
            )
            raise CaseError(
                add_refused_times(message, slices),
                remedies=[use_clock(first.clock), use_clock(other.clock)],
            )


def _is_same_order(a: Verdict, b: Verdict) -> bool:
    return bool(np.array_equal(a.stacks, b.stacks))


def _name_order(verdict: Verdict, slices: Sequence[Slice]) -> str:
    firsts = [slices[stack[0]] for stack in verdict.stacks]
    if len({first.header.series_uid for first in firsts}) == len(firsts):
        return f"the series are {', '.join(str(p.header.series_number) for p in firsts)}"
    return f"phase 0 starts with {firsts[0].file.name}, phase 1 with {firsts[1].file.name}"


def _list_oddities(chosen: Verdict, working: Sequence[Verdict]) -> list[str]:
    notes = [
        f"{other.clock} would give another order of the phases than {chosen.clock}, which was used"
        for other in working
        if other is not chosen and not _is_same_order(chosen, other)
    ]
    if chosen.times_s is None:
        notes.append(
            "no element gives the times of the phases, so only the order of the phases is known. "
            "If times are needed, enter the seconds since phase 0 in the acquisition_times column "
            "of the clinical table"
        )
    elif not chosen.is_plausible:
        gaps = [f"{b - a:g}" for a, b in pairwise(chosen.times_s)]
        notes.append(
            f"the gaps between phases are {', '.join(gaps[:6])} s, outside the {LEAST_GAP_S:g} to "
            f"{MOST_GAP_S:g} s that are usual for DCE-MRI: check the times, and correct the "
            "acquisition_times column of the clinical table if necessary"
        )
    return notes
