"""One single-frame DICOM MR file: what its header says, and its plane of values."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import FormatError, MissingExtraError

__all__ = ["CLOCKS", "OtherImage", "Slice", "is_dicom_file", "read_plane", "read_slice"]

CLOCKS: Final = ("AcquisitionTime", "ContentTime", "TriggerTime")
"""Elements that may say when a slice was taken, in the order in which they are believed."""

_MR: Final = "1.2.840.10008.5.1.4.1.1.4"
_ENHANCED_MR: Final = frozenset({f"{_MR}.1", f"{_MR}.4"})
_NO_PHASE: Final = frozenset(
    {"SUB", "SUBTRACT", "SUBTRACTION", "MIP", "MAX_IP", "PROJECTION IMAGE", "MPR"}
)
_DATE_OF: Final = {"AcquisitionTime": "AcquisitionDate", "ContentTime": "ContentDate"}
_TAGS: Final = [
    "SOPClassUID", "ImageType", "StudyInstanceUID", "SeriesInstanceUID", "SeriesNumber",
    "NumberOfFrames", "SamplesPerPixel", "Rows", "Columns", "BitsAllocated", "PixelRepresentation",
    "PixelSpacing", "ImageOrientationPatient", "ImagePositionPatient",
    "RescaleSlope", "RescaleIntercept", *CLOCKS, *_DATE_OF.values(),
]  # fmt: skip
_DAMAGED: Final = (OSError, EOFError, ValueError, TypeError, KeyError, AttributeError,
                   IndexError, RuntimeError, NotImplementedError, OverflowError)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Slice:
    """Header of one MR slice.

    `shape` is (rows, columns); `spacing_mm` the distance between rows and between columns;
    `orientation` the six direction cosines (along a row, down a column) and `position_mm` the
    centre of the first voxel, both LPS as DICOM has them. `clocks_s` are seconds, by the names of
    `CLOCKS`, as far as the file gives them.
    """

    file: Path
    study_uid: str
    series_uid: str
    series_number: int | None
    shape: tuple[int, int]
    spacing_mm: tuple[float, float]
    orientation: tuple[float, ...]
    position_mm: tuple[float, ...]
    stored: np.dtype[np.generic]
    slope: float
    intercept: float
    clocks_s: Mapping[str, float]

    @property
    def series_name(self) -> str:
        """The series as messages name it."""
        number = self.series_number
        return f"series {number}" if number is not None else f"series {self.series_uid}"


@dataclass(frozen=True, slots=True)
class OtherImage:
    """A DICOM file that is no MR image; `kind` is its SOP class in words."""

    file: Path
    kind: str


def is_dicom_file(path: Path) -> bool:
    """Whether a file has the DICOM mark, 128 bytes from its start.

    Never raises, and never waits on a pipe or device.
    """
    try:
        if not path.is_file():
            return False
        with path.open("rb") as stream:
            return stream.read(132)[128:] == b"DICM"
    except OSError:
        return False


def read_slice(path: Path) -> Slice | OtherImage:
    """Return the header of one DICOM file.

    Raises
    ------
    FormatError
        If the file is damaged, holds several frames, is computed from others (a subtraction or
        projection), or lacks an element that its place or type depends on; names file and element.
    MissingExtraError
        If pydicom is not installed.
    """
    header = _read(path, stop_before_pixels=True, specific_tags=_TAGS)
    sop_class = _needed(path, header, "SOPClassUID")
    if sop_class in _ENHANCED_MR or int(header.get("NumberOfFrames") or 1) > 1:
        raise FormatError(
            f"expected one slice for each file, but {path} holds several frames (enhanced MR), "
            "which cannot be read yet: convert the exam to NIfTI"
        )
    if sop_class != _MR:
        return OtherImage(path, getattr(sop_class, "name", "unknown kind"))
    try:
        return _slice(path, header)
    except FormatError:
        raise
    except _DAMAGED as error:
        raise _damaged(path, error) from error


def read_plane(path: Path) -> tuple[NDArray[Any], float, float]:
    """Return the stored values (rows, columns), and slope and intercept, of one slice file.

    Raises
    ------
    FormatError
        If the values cannot be read, such as a compression that needs another package.
    MissingExtraError
        If pydicom is not installed.
    """
    whole = _read(path)
    try:
        plane: NDArray[Any] = whole.pixel_array
        return plane, *_scaling(whole)
    except _DAMAGED as error:
        raise _damaged(path, error) from error


def _read(path: Path, **options: Any) -> Any:
    try:
        from pydicom import dcmread
    except ImportError as error:
        raise MissingExtraError("pydicom", "dicom") from error
    try:
        return dcmread(path, **options)
    except _DAMAGED as error:
        raise _damaged(path, error) from error


def _slice(path: Path, header: Any) -> Slice:
    computed = _NO_PHASE.intersection(word.upper() for word in header.get("ImageType") or ())
    if computed:
        raise FormatError(
            f"expected acquired images, but {path} is computed from others "
            f"(ImageType {', '.join(sorted(computed))}): move its series out of the folder"
        )
    if int(header.get("SamplesPerPixel") or 1) != 1:
        raise FormatError(f"expected grey values, but {path} is a colour image: leave it out")
    number = header.get("SeriesNumber")
    return Slice(
        file=path,
        study_uid=str(_needed(path, header, "StudyInstanceUID")),
        series_uid=str(_needed(path, header, "SeriesInstanceUID")),
        series_number=None if number is None else int(number),
        shape=(int(_needed(path, header, "Rows")), int(_needed(path, header, "Columns"))),
        spacing_mm=_spacing(path, header),
        orientation=_numbers(path, header, "ImageOrientationPatient", 6),
        position_mm=_numbers(path, header, "ImagePositionPatient", 3),
        stored=_stored_type(path, header),
        slope=_scaling(header)[0],
        intercept=_scaling(header)[1],
        clocks_s=_clocks(header),
    )


def _needed(path: Path, header: Any, name: str) -> Any:
    value = header.get(name)
    if value is None or value == "":
        raise FormatError(
            f"expected {name} in {path}, but it is missing: export the series again with it"
        )
    return value


def _numbers(path: Path, header: Any, name: str, count: int) -> tuple[float, ...]:
    value = _needed(path, header, name)
    numbers = tuple(float(v) for v in value) if isinstance(value, Sequence) else (float(value),)
    if len(numbers) != count or not all(map(math.isfinite, numbers)):
        raise FormatError(
            f"expected {count} numbers as {name} of {path}, got {numbers}: export the series again"
        )
    return numbers


def _spacing(path: Path, header: Any) -> tuple[float, float]:
    rows, columns = _numbers(path, header, "PixelSpacing", 2)
    if min(rows, columns) <= 0:
        raise FormatError(
            f"expected distances above 0 mm as PixelSpacing of {path}, got {rows} and {columns}: "
            "export the series again"
        )
    return rows, columns


def _stored_type(path: Path, header: Any) -> np.dtype[np.generic]:
    bits = int(_needed(path, header, "BitsAllocated"))
    if bits not in (8, 16, 32):
        raise FormatError(f"expected 8, 16 or 32 bits for each value of {path}, got {bits}")
    sign = "i" if int(_needed(path, header, "PixelRepresentation")) else "u"
    return np.dtype(f"{sign}{bits // 8}")


def _scaling(header: Any) -> tuple[float, float]:
    """Return slope and intercept of the Modality LUT, 1 and 0 where there is none."""
    slope, intercept = header.get("RescaleSlope"), header.get("RescaleIntercept")
    return (
        1.0 if slope in (None, "") else float(slope),
        0.0 if intercept in (None, "") else float(intercept),
    )


def _clocks(header: Any) -> dict[str, float]:
    """Return seconds by clock: since the year 1 where a date is given, else since midnight."""
    found: dict[str, float] = {}
    for name in CLOCKS:
        value = header.get(name)
        if value is None or value == "":
            continue
        if name == "TriggerTime":
            found[name] = float(value) / 1000.0
        else:
            found[name] = _days(str(header.get(_DATE_OF[name]) or "")) * 86400 + _seconds(
                str(value)
            )
    return found


def _seconds(time: str) -> float:
    """Return seconds since midnight of a DICOM TM value, ``HHMMSS.ffffff`` or its older form."""
    digits = time.replace(":", "").strip()
    return int(digits[:2]) * 3600 + int(digits[2:4] or 0) * 60 + float(digits[4:] or 0)


def _days(day: str) -> int:
    """Return the day number of a DICOM DA value, 0 where it is missing or no date."""
    try:
        return date.fromisoformat(day.replace(".", "").strip()).toordinal()
    except ValueError:
        return 0


def _damaged(path: Path, error: Exception) -> FormatError:
    return FormatError(
        f"expected a readable DICOM file at {path}, but {error}: export the series again"
    )
