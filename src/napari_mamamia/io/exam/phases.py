"""Open a folder of DICOM files as ordered phases with times, and read voxels and timing.

All phases may be in one series, or each phase in a separate series, and the files may be classic or
enhanced multi-frame. `napari_mamamia.io.dicom.clocks` chooses the clock that orders the phases. An
uncertain exam raises an error with the reason.

The temporal resolution is read as in UCSF's program (rnadkarni2/SlicerBreast_DCEMRI_FTV,
chooseEarly_LateByManufacturer.py at f0e9ca57), whose choice of phases depends on this value.
"""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

from napari_mamamia.core.case import ScanTiming
from napari_mamamia.core.choices import Clock
from napari_mamamia.core.errors import CaseError, FormatError
from napari_mamamia.core.progress import listening
from napari_mamamia.io.dicom.clocks import find_units_s
from napari_mamamia.io.dicom.elements import (
    DAY_S,
    PrivateElement,
    open_dicom,
    optional_number,
    read_time_s,
)
from napari_mamamia.io.dicom.files import read_studies, require_readable
from napari_mamamia.io.dicom.headers import read_slices
from napari_mamamia.io.dicom.pixels import common_type, fill_planes
from napari_mamamia.io.dicom.slices import DURATION, REFERENCE_TIME, BadImage, OtherImage, Slice
from napari_mamamia.io.dicom.stack import find_places
from napari_mamamia.io.exam.exam import Exam, find_exam
from napari_mamamia.io.exam.selectors import Selection
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.headers import VolumeHeader
from napari_mamamia.io.files.sources import CaseFiles, PhaseSource

_MILLISECONDS_FROM: Final = 1000.0
_WHOLE_FROM: Final = 150.0
_GE_DURATION: Final = PrivateElement(0x0019, "gems_acqu_01", 0x5A, "FL")
_MOST_S: Final = 7200.0
"""Longest time in s between the pre-contrast scan and the injection of an exam."""


_LEAST_S: Final = 0.1
"""Difference in s below which a reference time equals the start time, as on some scanners."""
_LEAST_SHARE: Final = 1.05
"""Largest ratio of a frame's duration to the smallest gap for a duration of a single phase."""
_UNKNOWN: Final = "unknown, because no element gives it"


_log = logging.getLogger(__name__)


@reads("a readable DICOM exam", "export the series again")
def find_phases(
    folder: Path, selection: Selection | None = None, *, allow_thin: bool = False
) -> CaseFiles:
    """Return the phases of an exam in a folder and its subfolders, in chronological order.

    The case id is the folder's name, because headers may contain the patient's name. Images that
    cannot be phases are left out. `time_s` of a phase is None if unknown; `warnings` name
    assumptions.

    Parameters
    ----------
    folder
        The folder of the exam.
    selection
        The parts to use and to leave out; by default the import decides.
    allow_thin
        Whether exams of one or two slices are accepted.

    Raises
    ------
    FormatError
        If there is no MR image, or a file is damaged or has no position.
    CaseError
        If there are several exams, or the exam contradicts itself (see `find_exam`).
    MissingExtraError
        If pydicom is not installed.
    """
    with listening(None):
        studies = read_studies(folder)
    for study in studies:
        require_readable(study)
    with_images = [study for study in studies if any(True for _ in study.headers)]
    if len(with_images) > 1:
        raise CaseError(
            f"expected only one exam in {folder}, but it has {len(with_images)} different "
            f"studies, for example in {with_images[0].folder} and {with_images[1].folder}: open "
            "the folder of one exam"
        )
    exam = find_exam(
        (with_images or studies)[0].images,
        str(folder),
        selection=selection or Selection(),
        allow_thin=allow_thin,
    )
    for row in exam.rows:
        if row.fate.startswith("left out"):
            _log.info("series %s, %d images, %s", row.number, row.n_images, row.fate)
    warnings = tuple(warning.text for warning in exam.warnings)
    return CaseFiles(folder.name, _list_sources(exam), warnings=warnings)


@reads("a readable DICOM series", "export the series again")
def read_dicom_header(files: Sequence[Path], frames: Sequence[int] = ()) -> VolumeHeader:
    """Return the shape, type and grid of one phase; `files` are in slice order.

    Voxel (x, y, z) counts along a row, down a column, and up the stack. If slices have different
    scalings, `slope` and `intercept` are those of one slice, and a warning is added.

    Parameters
    ----------
    files
        The file of each plane.
    frames
        The frame in each file, from 0; empty for single-frame files.

    Raises
    ------
    FormatError
        If a file is damaged, is not an MR image, or is out of order.
    CaseError
        If the files do not form a complete stack.
    MissingExtraError
        If pydicom is not installed.
    """
    slices = _read_planes(files, frames)
    places = find_places(slices)
    if [row[0] for row in places.rows] != slices:
        raise FormatError(
            f"expected the files of {places.name} in slice order, but {files[0]} is out of "
            "order: open the folder again"
        )
    scalings = {image.scaling.pair for image in slices}
    slope, intercept = max(scalings, key=lambda scaling: (scaling != (1.0, 0.0), scaling))
    warnings: tuple[str, ...] = ()
    if len(scalings) > 1:
        warnings = (f"the slices of {places.name} have different scalings (RescaleSlope differs)",)
    stored = common_type(slices)
    return VolumeHeader(files[0], places.grid, stored, slope, intercept, warnings=warnings)


@reads("a readable DICOM series", "export the series again")
def read_dicom_into(
    files: Sequence[Path], header: VolumeHeader, out: NDArray[Any], frames: Sequence[int] = ()
) -> None:
    """Fill `out` plane by plane with the scaled values of each slice.

    `out` is (z, y, x) and has the header's dtype.

    Raises
    ------
    FormatError
        If a plane cannot be read or has a different size.
    MissingExtraError
        If pydicom is not installed.
    """
    if out.dtype != header.dtype:
        raise ValueError(
            f"expected out to have dtype {header.dtype} for {header.path.name}, but "
            f"it has {out.dtype}"
        )
    fill_planes(_read_planes(files, frames), out)


def _read_planes(files: Sequence[Path], frames: Sequence[int]) -> list[Slice]:
    planes: dict[Path, tuple[Slice, ...]] = {}
    for file in files:
        if file not in planes:
            image = read_slices(file)
            if isinstance(image, BadImage):
                raise FormatError(image.reason)
            if isinstance(image, OtherImage):
                raise FormatError(
                    f"expected only MR images, but {file} is not ({image.kind}): open the folder "
                    "again"
                )
            planes[file] = image
    indices = frames or [0] * len(files)
    try:
        return [planes[file][frame] for file, frame in zip(files, indices, strict=True)]
    except IndexError as error:
        raise FormatError(
            f"expected at least {max(indices) + 1} frames in {files[0]}, but found fewer, because "
            "the file has changed: open the folder again"
        ) from error


def _list_sources(exam: Exam) -> tuple[PhaseSource, ...]:
    times = exam.times_s or (None,) * len(exam.stacks)
    has_frames = any(plane.frame for stack in exam.stacks for plane in stack)
    return tuple(
        PhaseSource(
            tuple(plane.file for plane in stack),
            time_s=time,
            frames=tuple(plane.frame for plane in stack) if has_frames else (),
        )
        for stack, time in zip(exam.stacks, times, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Moments:
    """Centre and end of each phase in seconds since the start of phase 0; None if unknown.

    `centres_are` and `ends_are` name the element, or state that no element gives the times.
    """

    centres_s: tuple[float, ...] | None = None
    centres_are: str = _UNKNOWN
    ends_s: tuple[float, ...] | None = None
    ends_are: str = _UNKNOWN


def moments_of(stacks: Sequence[Sequence[Slice]]) -> Moments:
    """Return the centre and end of each phase, as far as the frames state them.

    FrameReferenceDateTime is the centre if it differs from the start and precedes the next phase.
    Otherwise the nominal centre is the start plus half of FrameAcquisitionDuration, if this is the
    duration of one phase rather than of the whole scan. It is unknown whether either value is the
    centre of k-space.
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
        centres_are = f"nominal: start plus half of {DURATION}"
    return Moments(centres, centres_are, ends, ends_are)


def _find_least(stacks: Sequence[Sequence[Slice]], name: str) -> list[float] | None:
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
    """Return temporal resolution, number of images and injection time from two headers.

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

    Midnight may lie between the two times.
    """
    times = (read_time_s(header.get("ContrastBolusStartTime")) for header in (after, before))
    given_s = next((time_s for time_s in times if time_s is not None), None)
    start_s = read_time_s(before.get("AcquisitionTime"))
    if given_s is None or start_s is None:
        return None
    injection_s = (given_s - start_s) % DAY_S
    return injection_s if 0 < injection_s < _MOST_S else None
