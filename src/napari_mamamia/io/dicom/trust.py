"""Detect unreliable clocks of a DICOM exam: invalid, coarse, or not from the scan."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import Clock
from napari_mamamia.io.dicom.slices import Slice, unit_of

RECONSTRUCTION_S: Final = 20.0
"""Gap of ContentTime in s below which it reflects reconstruction, not the scan (our choice).

Faster scans have other clocks.
"""
_LATE_S: Final = 60.0
"""Tolerance in s between two clocks of one scanner (our choice).

One of the clocks may be truncated to minutes.
"""
_MOST_LATE_S: Final = 6 * 3600.0
"""Difference in s above which two clocks differ by day or time zone (our choice).

Such a difference is not due to the time of storing.
"""
_SAME_STEPS_S: Final = 5.0
_MOST_FASTER: Final = 8.0
"""Largest ratio of TR x lines x partitions to the gap of phases (our choice).

Up to this ratio ContentTime is accepted: parallel imaging in two directions and partial Fourier can
explain it.
"""
_MINUTE_S: Final = 60.0
_FEWEST: Final = 3
"""Least number of phases that rarely all start at a whole minute by chance."""


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
"""Phrase for an invalid element, by the end of its name. Source: DICOM PS3.5, 6.2."""


def list_refused_times(slices: Sequence[Slice], clock: str = "") -> tuple[str, ...]:
    """Return a phrase for each element that has no valid date or time in some images.

    `clock`, such as "AcquisitionTime", selects the elements that it is read from; "" selects all.
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
    """Return a message extended by the invalid times that may have caused the problem."""
    refused = "; ".join(list_refused_times(slices))
    return f"{message}. Ignored: {refused}; correct it in the files" if refused else message


def earliest(name: str, slices: Sequence[Slice], stack: NDArray[np.intp]) -> float | None:
    """Return the smallest value of a clock in one stack, or None if a plane lacks it."""
    values = [slices[index].clocks.get(name) for index in stack]
    numbers = [value for value in values if value is not None]
    return min(numbers) if len(numbers) == len(values) else None


def find_units_s(name: str, slices: Sequence[Slice]) -> set[float]:
    """Return the units in seconds of a clock's values; several if some are coarse."""
    told = [image.clocks for image in slices if name in image.clocks and not image.is_padding]
    return {clocks.get(unit_of(name), 1.0) for clocks in told}


def partial_warnings(slices: Sequence[Slice]) -> list[str]:
    """Return a warning for each clock that is missing or has no seconds in some planes."""
    pieces = [image for image in slices if not image.is_padding]
    sentences = []
    acquired = Clock.ACQUISITION_TIME
    n_missing = sum(acquired not in image.clocks for image in pieces)
    if 0 < n_missing < len(pieces) and not list_refused_times(pieces, acquired):
        sentences.append(
            f"{acquired} is missing in {n_missing} of {len(pieces)} images: it gives no times"
        )
    for clock in (acquired, Clock.CONTENT_TIME):
        if len(find_units_s(clock, pieces)) > 1:
            n_coarse = sum(unit_of(clock) in image.clocks for image in pieces)
            sentences.append(
                f"{clock} has no seconds in {n_coarse} of {len(pieces)} images: it gives no times, "
                "because it may be off by a minute or more between images"
            )
    return sentences


def least_making_s(slices: Sequence[Slice], n_planes: int) -> float:
    """Return the least median gap of ContentTime, in seconds, that is plausible for the scan."""
    image = slices[0]
    repetition_ms = image.sequence.repetition_time_ms
    if not repetition_ms or "3D" not in image.sequence.technique:
        return RECONSTRUCTION_S
    whole_s = repetition_ms / 1000 * min(image.shape) * n_planes
    return max(RECONSTRUCTION_S, whole_s / _MOST_FASTER)


def too_late(slices: Sequence[Slice], stacks: NDArray[np.intp]) -> str:
    """Return why AcquisitionTime cannot be true, or "".

    `stacks` (time, place) are the planes in the order of ContentTime. An image is made after the
    scan. If AcquisitionTime is later, and its pace faster than that of ContentTime, it was
    overwritten when the images were stored.
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
        f"up to {late:.0f} s later than ContentTime of the same image, which cannot be made before "
        "the scan, so it is the time of storing and was ignored"
    )


def without_acquisition_time(slices: Sequence[Slice]) -> list[Slice]:
    """Return planes without AcquisitionTime and without clocks computed from it."""
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
    """Return warnings about uncertain times of phases."""
    if times_s is None or len(times_s) < 2:
        return ()
    sentences = []
    if timed_by == Clock.CONTENT_TIME:
        steps = ", ".join(f"{b - a:g}" for a, b in pairwise(times_s[:7]))
        sentences.append(
            f"the times are those of the reconstruction (ContentTime; steps of {steps} s), because "
            "no reliable element gives the acquisition times: images that were "
            "computed or stored later have other steps than the scan; check them"
        )
    if len(times_s) >= _FEWEST and _are_minutes(timed_by, stacks):
        sentences.append(
            f"{timed_by} has whole minutes only: each time may be off by up to 60 s; check them"
        )
    return tuple(sentences)


def _are_minutes(timed_by: str, stacks: Sequence[Sequence[Slice]]) -> bool:
    if timed_by not in (Clock.ACQUISITION_TIME, Clock.CONTENT_TIME):
        return False
    pieces = (plane for stack in stacks for plane in stack if not plane.is_padding)
    # Without a time it counts as no whole minute: 1 s is none.
    return all(image.clocks.get(timed_by, 1.0) % _MINUTE_S == 0 for image in pieces)
