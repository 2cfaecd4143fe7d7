"""How far clocks of a DICOM exam can be believed: impossible, coarse, or not of the scan."""

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
"""Gaps of ContentTime below this are the pace at which images were computed, and time nothing. Our
own choice: what is scanned as fast has other clocks."""
_LATE_S: Final = 60.0
"""Two clocks of one scanner may differ by this, and one may be cut to minutes. Our own choice."""
_MOST_LATE_S: Final = 6 * 3600.0
"""More is another day or time zone, not the time of storing. Our own choice."""
_SAME_STEPS_S: Final = 5.0
_MOST_FASTER: Final = 8.0
"""How much faster than TR x lines x partitions a phase may be, for ContentTime to time it: parallel
imaging in two directions and partial Fourier. Our own choice."""
_MINUTE_S: Final = 60.0
_FEWEST: Final = 3
"""Phases of which all start at a whole minute by chance hardly ever."""


def span_text(seconds: float) -> str:
    """Return a stretch of time in words, such as "75 s", "3.5 hours" or "139 days"."""
    if seconds < 2 * 3600:
        return f"{seconds:g} s"
    return f"{seconds / 3600:.1f} hours" if seconds < 2 * 86400 else f"{seconds / 86400:.0f} days"


_EXPECTED: Final = {
    "DateTime": "no date and time (expected YYYYMMDDHHMMSS)",
    "Date": "no date (expected YYYYMMDD)",
    "Time": "no time (expected HHMMSS, hours 00 to 23)",
    "UTC": "no time zone (expected +HHMM or -HHMM)",
}
"""What an element does not hold, by the end of its name. Source: DICOM PS3.5, 6.2."""


def list_refused_times(slices: Sequence[Slice], clock: str = "") -> tuple[str, ...]:
    """Return a phrase for each element that holds no date or time in some images.

    Only of those that a clock such as "AcquisitionTime" is read from; "" for all.
    """
    pieces = [image for image in slices if not image.is_padding]
    values: dict[str, list[str]] = {}
    for piece in pieces:
        for name, value in piece.refused_times:
            if name.replace("DateTime", "Time").endswith(clock):
                values.setdefault(name, []).append(value)
    return tuple(
        f"{name} {refused[0]} is {next(t for e, t in _EXPECTED.items() if name.endswith(e))} in "
        f"{len(refused)} of {len(pieces)} images"
        for name, refused in values.items()
    )


def add_refused_times(message: str, slices: Sequence[Slice]) -> str:
    """Return a refusal with the elements that hold no date or time, which may have led to it."""
    refused = "; ".join(list_refused_times(slices))
    return f"{message}. Did not count: {refused}; correct it in the files" if refused else message


def earliest(name: str, slices: Sequence[Slice], stack: NDArray[np.intp]) -> float | None:
    """Return the least value of a clock in one stack, None where a plane has none."""
    values = [slices[index].clocks.get(name) for index in stack]
    numbers = [value for value in values if value is not None]
    return min(numbers) if len(numbers) == len(values) else None


def find_units_s(name: str, slices: Sequence[Slice]) -> set[float]:
    """Return the units in which the values of a clock are told: several where it is not exact."""
    told = [image.clocks for image in slices if name in image.clocks and not image.is_padding]
    return {clocks.get(unit_of(name), 1.0) for clocks in told}


def partial_warnings(slices: Sequence[Slice]) -> list[str]:
    """Return a sentence for each clock that some planes do not tell, or only without seconds."""
    pieces = [image for image in slices if not image.is_padding]
    sentences = []
    acquired = Clock.ACQUISITION_TIME
    n_missing = sum(acquired not in image.clocks for image in pieces)
    if 0 < n_missing < len(pieces) and not list_refused_times(pieces, acquired):
        sentences.append(
            f"{acquired} is missing in {n_missing} of {len(pieces)} images: it times nothing"
        )
    for clock in (acquired, Clock.CONTENT_TIME):
        if len(find_units_s(clock, pieces)) > 1:
            n_coarse = sum(unit_of(clock) in image.clocks for image in pieces)
            sentences.append(
                f"{clock} tells no seconds in {n_coarse} of {len(pieces)} images and does in "
                "others: it times nothing, since it is off by up to a minute or more between them"
            )
    return sentences


def least_making_s(slices: Sequence[Slice], n_planes: int) -> float:
    """Return the least median gap of ContentTime that may be the scan's, in seconds."""
    image = slices[0]
    repetition_ms = image.sequence.repetition_time_ms
    if not repetition_ms or "3D" not in image.sequence.technique:
        return RECONSTRUCTION_S
    whole_s = repetition_ms / 1000 * min(image.shape) * n_planes
    return max(RECONSTRUCTION_S, whole_s / _MOST_FASTER)


def too_late(slices: Sequence[Slice], stacks: NDArray[np.intp]) -> str:
    """Return why AcquisitionTime cannot be true, "" where it can.

    `stacks` (time, place) are the planes in the order of ContentTime. An image is made after it was
    taken; where AcquisitionTime is later, and its pace faster than that of ContentTime, it was
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
        "it is taken, so it is the time of storing and does not count"
    )


def without_acquisition_time(slices: Sequence[Slice]) -> list[Slice]:
    """Return planes that do not tell AcquisitionTime, nor what is summed from it."""
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
    """Return what makes the times of phases uncertain, in plain sentences."""
    if times_s is None or len(times_s) < 2:
        return ()
    sentences = []
    if timed_by == Clock.CONTENT_TIME:
        steps = ", ".join(f"{b - a:g}" for a, b in pairwise(times_s[:7]))
        sentences.append(
            f"the times are those of the images' making (ContentTime; steps of {steps} s), because "
            "no element that can be believed tells when they were taken: images that were "
            "computed or stored later have other steps than the scan; check them"
        )
    if len(times_s) >= _FEWEST and _are_minutes(timed_by, stacks):
        sentences.append(
            f"{timed_by} tells whole minutes only: each time may be off by up to 60 s; check them"
        )
    return tuple(sentences)


def _are_minutes(timed_by: str, stacks: Sequence[Sequence[Slice]]) -> bool:
    if timed_by not in (Clock.ACQUISITION_TIME, Clock.CONTENT_TIME):
        return False
    pieces = (piece for stack in stacks for piece in stack if not piece.is_padding)
    # Without a time it counts as no whole minute: 1 s is none.
    return all(image.clocks.get(timed_by, 1.0) % _MINUTE_S == 0 for image in pieces)
