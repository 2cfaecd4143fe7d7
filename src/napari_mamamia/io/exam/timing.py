"""Read further times from DICOM headers: resolution, injection, centres and ends of phases.

Source of the resolution: UCSF's program (rnadkarni2/SlicerBreast_DCEMRI_FTV,
chooseEarly_LateByManufacturer.py at f0e9ca57), whose choice of phases depends on it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.case import ScanTiming
from napari_mamamia.core.choices import Clock
from napari_mamamia.io.dicom.elements import open_dicom, optional_number
from napari_mamamia.io.dicom.private import PrivateElement
from napari_mamamia.io.dicom.slices import DURATION, REFERENCE_TIME, Slice
from napari_mamamia.io.dicom.times import DAY_S, read_time_s
from napari_mamamia.io.dicom.trust import find_units_s
from napari_mamamia.io.files.foreign import reads

_MILLISECONDS_FROM: Final = 1000.0
_WHOLE_FROM: Final = 150.0
_GE_DURATION: Final = PrivateElement(0x0019, "gems_acqu_01", 0x5A, "FL")
_MOST_S: Final = 7200.0
"""Longest time in s from the pre-contrast scan to the injection in an exam."""


_LEAST_S: Final = 0.1
"""Difference in s below which a reference time equals the start, as on some scanners."""
_LEAST_SHARE: Final = 1.05
"""Largest ratio of a frame's duration to the least gap for the duration of one phase."""
_UNKNOWN: Final = "unknown: no element gives it"


@dataclass(frozen=True, slots=True)
class Moments:
    """Centre and end of each phase in seconds since the start of phase 0; None if unknown.

    `centres_are` and `ends_are` name the element, or say that none gives them.
    """

    centres_s: tuple[float, ...] | None = None
    centres_are: str = _UNKNOWN
    ends_s: tuple[float, ...] | None = None
    ends_are: str = _UNKNOWN


def moments_of(stacks: Sequence[Sequence[Slice]]) -> Moments:
    """Return the centre and end of each phase, as far as its frames have them.

    FrameReferenceDateTime is the centre if it differs from the start and is before the next phase.
    Otherwise the centre is nominal: the start plus half of FrameAcquisitionDuration, if that is one
    phase's and not the whole scan's. Neither is known to be the centre of k-space.
    """
    starts = _find_least(stacks, Clock.ACQUISITION_TIME)
    if starts is None:
        return Moments()
    gaps = [b - a for a, b in pairwise(starts)]
    longest = _LEAST_SHARE * min(gaps) if gaps else math.inf
    lasting = _find_least(stacks, DURATION)
    ends, ends_are = None, _UNKNOWN
    if lasting is not None and all(0 < duration <= longest for duration in lasting):
        ends, ends_are = _count_from_start(starts, lasting), f"start and {DURATION}"
    centres, centres_are = None, _UNKNOWN
    reference_times = _find_least(stacks, REFERENCE_TIME)
    if reference_times is not None:
        behind = [
            reference_time - start
            for reference_time, start in zip(reference_times, starts, strict=True)
        ]
        if all(_LEAST_S <= duration <= longest for duration in behind):
            centres, centres_are = _count_from_start(starts, behind), REFERENCE_TIME
    if centres is None and ends is not None and lasting is not None:
        centres = _count_from_start(starts, [duration / 2 for duration in lasting])
        centres_are = f"nominal: start and half of {DURATION}"
    return Moments(centres, centres_are, ends, ends_are)


def _find_least(stacks: Sequence[Sequence[Slice]], name: str) -> list[float] | None:
    """Return the least value of each phase, or None if a plane has no value."""
    minima = []
    if len(find_units_s(name, [plane for stack in stacks for plane in stack])) > 1:
        return None
    for stack in stacks:
        times = [plane.clocks[name] for plane in stack if name in plane.clocks]
        if len(times) < len(stack):
            return None
        minima.append(min(times))
    return minima


def _count_from_start(starts: Sequence[float], later: Sequence[float]) -> tuple[float, ...]:
    pairs = zip(starts, later, strict=True)
    return tuple(round(start + more - starts[0], 3) for start, more in pairs)


@reads("a readable DICOM file", "export the series again")
def read_scan_timing(post: Path, pre: Path) -> ScanTiming:
    """Return temporal resolution, number of images and injection from two headers.

    Parameters
    ----------
    post, pre
        A file of the first phase after contrast, and of phase 0.

    Raises
    ------
    FormatError
        If a file is damaged.
    MissingExtraError
        If pydicom is not installed.
    """
    after = open_dicom(post, post, stop_before_pixels=True)
    before = open_dicom(pre, pre, stop_before_pixels=True)
    maker = str(after.get("Manufacturer") or "").casefold()
    count = optional_number(after, "NumberOfTemporalPositions")
    positions = int(count) if count is not None and count >= 1 else None
    return ScanTiming(
        resolution_s=_read_resolution(after, maker, positions),
        positions=None if "philips" in maker else positions,
        injection_s=_read_injection(after, before),
    )


def _read_resolution(header: Any, maker: str, positions: int | None) -> float | None:
    """Return the temporal resolution in s as UCSF's program reads it, or None."""
    resolution_s = optional_number(header, "TemporalResolution")
    if resolution_s is not None and resolution_s > _MILLISECONDS_FROM:
        resolution_s /= 1000
    if not resolution_s and maker.startswith("ge"):
        duration = optional_number(header, _GE_DURATION)
        resolution_s = None if duration is None else duration / 1e6 / (positions or 1)
    if resolution_s and "siemens" in maker and resolution_s > _WHOLE_FROM and positions:
        resolution_s /= positions
    return resolution_s if resolution_s and resolution_s > 0 else None


def _read_injection(after: Any, before: Any) -> float | None:
    """Return the time of the injection in seconds since the start of phase 0.

    Midnight may lie between both times.
    """
    times = (read_time_s(header.get("ContrastBolusStartTime")) for header in (after, before))
    given_s = next((time_s for time_s in times if time_s is not None), None)
    start_s = read_time_s(before.get("AcquisitionTime"))
    if given_s is None or start_s is None:
        return None
    injection_s = (given_s - start_s) % DAY_S
    return injection_s if 0 < injection_s < _MOST_S else None
