"""Records of planes in DICOM MR files, with the clocks in their headers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from napari_mamamia.core.choices import Clock
from napari_mamamia.io.dicom import elements
from napari_mamamia.io.dicom.kinds import SequenceKey
from napari_mamamia.io.dicom.roles import Kind, Role

OFFSET_TIME: Final = "TemporalPositionTimeOffset"
DYNAMIC_TIME: Final = "Philips dynamic scan begin time (2005,10A0)"
RESOLUTION: Final = "TemporalResolution"
"""Key in `Slice.clocks` for a time in seconds that can time phases but not order them."""
REFERENCE_TIME: Final = "FrameReferenceDateTime"
DURATION: Final = "FrameAcquisitionDuration"
"""Key in `Slice.clocks` for the duration of a frame in seconds."""

UNNUMBERED: Final = -1
"""Value of `Slice.phase` if the phase is unknown."""

FRAMES: Final = 1_000_000
"""Factor applied to instance numbers in enhanced files, to leave room for frame numbers."""


_NO_KIND: Final = Kind()
_NO_SEQUENCE: Final = SequenceKey()


@dataclass(frozen=True, slots=True)
class Header:
    """Facts that apply to all planes in one file.

    `plain_at` is the offset of the first value, or None if the values are compressed; `byte_order`
    is the byte order of the file. `patient` is the number and birth date, or "" if missing; no
    message repeats them. `contrast_start_s` is ContrastBolusStartTime in seconds since midnight.
    `unused_bits` is the number of high bits in each value that are not part of the value;
    `has_bit_overlays` states whether the header puts overlays there. `positions` is
    NumberOfTemporalPositions and `images` is ImagesInAcquisition; both are 0 if missing.
    `photometric` is PhotometricInterpretation.
    """

    file: Path
    study_uid: str
    series_uid: str
    instance_uid: str
    series_number: int | None
    description: str
    manufacturer: str
    transfer_syntax: str
    plain_at: int | None
    byte_order: str
    patient: tuple[str, str] = field(default=("", ""), repr=False)
    contrast_start_s: float | None = None
    unused_bits: int = 0
    has_bit_overlays: bool = False
    frame_of_reference: str = ""
    positions: int = 0
    images: int = 0
    photometric: str = ""

    @property
    def series_name(self) -> str:
        """Name of the series in messages."""
        number = self.series_number
        return f"series {number}" if number is not None else f"series {self.series_uid}"

    @property
    def label(self) -> str:
        """Name of the series in records, without UIDs."""
        number = self.series_number
        return f"series {number}" if number is not None else "a series without number"


@dataclass(frozen=True, slots=True)
class Tile:
    """Position of a plane in a mosaic image, and the size of the mosaic."""

    row: int
    column: int
    picture: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Slice:
    """One plane of an MR image.

    `shape` is (rows, columns), and `spacing_mm` is the distance between rows and between columns.
    `orientation` holds the six direction cosines (along a row, down a column) and `position_mm` the
    centre of the first voxel, in LPS as in DICOM. `clocks` holds the available values by the names
    of `Clock` (seconds or counts) and by `OFFSET_TIME`, `DYNAMIC_TIME`, `RESOLUTION`,
    `REFERENCE_TIME` and `DURATION`. `zone_of` returns the key of a clock's time zone, and `unit_of`
    the key of a coarse clock's unit. `refused_times` names elements with an invalid date or time,
    and their values. `frame` counts the planes of the file from 0. `tile` is the position of the
    plane in a mosaic, or None if the file is not a mosaic. `kind` is the kind of image by the
    header, `echo` is EchoNumbers, and `thickness_mm` is SliceThickness. `is_padding` marks an empty
    plane between two breasts that are joined. `phase` is the phase within the series, which
    `parts_of` counts from 0. `reversed_axes` says whether rows and columns were flipped; the other
    fields describe the flipped plane.
    """

    header: Header
    shape: tuple[int, int]
    spacing_mm: tuple[float, float]
    orientation: tuple[float, ...]
    position_mm: tuple[float, ...]
    stored: np.dtype[np.generic]
    scaling: elements.Scaling
    sequence: SequenceKey
    kind: Kind = _NO_KIND
    echo: int | None = None
    thickness_mm: float | None = None
    frame: int = 0
    tile: Tile | None = None
    clocks: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    refused_times: tuple[tuple[str, str], ...] = ()
    is_padding: bool = False
    phase: int = field(default=0, compare=False)
    reversed_axes: tuple[bool, bool] = (False, False)

    @property
    def file(self) -> Path:
        """Path of the file that contains the plane."""
        return self.header.file

    @property
    def series_name(self) -> str:
        """Name of the series in messages."""
        return self.header.series_name

    @property
    def name(self) -> str:
        """Name of the plane in messages: the file, and the number of the frame after the first."""
        part = "frame" if self.tile is None else "tile"
        return str(self.file) if self.frame == 0 else f"{self.file} ({part} {self.frame + 1})"


@dataclass(frozen=True, slots=True)
class OtherImage:
    """A DICOM file that is not an MR image; `kind` describes its content."""

    file: Path
    kind: str
    role: Role = Role.NO_IMAGE
    header: Header | None = None


@dataclass(frozen=True, slots=True)
class BadImage:
    """An MR image whose header lacks the position; `reason` is the full message."""

    header: Header
    reason: str
    kind: Kind = _NO_KIND
    sequence: SequenceKey = _NO_SEQUENCE


def clocks_of(content: Any, times: elements.TimeElements) -> dict[str, float]:
    """Return the clock values in a data set, in seconds since the year 1 if a date is given."""
    acquired = times.dated_time("Acquisition") or times.date_time("AcquisitionDateTime")
    clocks = {
        Clock.TEMPORAL_POSITION: elements.optional_number(content, "TemporalPositionIdentifier"),
        Clock.TRIGGER_TIME: to_seconds(elements.optional_number(content, "TriggerTime")),
        Clock.ACQUISITION_NUMBER: elements.optional_number(content, "AcquisitionNumber"),
        Clock.INSTANCE_NUMBER: elements.optional_number(content, "InstanceNumber"),
        Clock.SERIES: elements.optional_number(content, "SeriesNumber"),
        DYNAMIC_TIME: elements.optional_number(content, elements.PHILIPS_DYNAMIC_TIME),
        RESOLUTION: to_seconds(elements.optional_number(content, "TemporalResolution")),
        **readings_of(Clock.ACQUISITION_TIME, acquired),
        **readings_of(Clock.CONTENT_TIME, times.dated_time("Content")),
    }
    return with_sum({str(name): value for name, value in clocks.items() if value is not None})


def readings_of(clock: str, moment: elements.Moment | None) -> dict[str, float | None]:
    """Return the clock values for a time: seconds, time zone, and the unit if it is coarse."""
    if moment is None:
        return {}
    unit_s = moment.unit_s if moment.unit_s > 1 else None
    return {clock: moment.utc_s, zone_of(clock): moment.zone_s, unit_of(clock): unit_s}


def zone_of(clock: str) -> str:
    """Return the key in `Slice.clocks` for the UTC offset of a clock in seconds."""
    return f"time zone of {clock}"


def unit_of(clock: str) -> str:
    """Return the key in `Slice.clocks` for the unit, in seconds, of a coarse clock."""
    return f"unit of {Clock.ACQUISITION_TIME if clock == Clock.ACQUIRED else clock}"


def with_sum(clocks: dict[str, float]) -> dict[str, float]:
    """Return clock values with the sum of AcquisitionTime and TriggerTime added."""
    if Clock.ACQUISITION_TIME not in clocks:
        return clocks
    acquired_s = clocks[Clock.ACQUISITION_TIME] + clocks.get(Clock.TRIGGER_TIME, 0.0)
    return {**clocks, Clock.ACQUIRED.value: acquired_s}


def to_seconds(milliseconds: float | None) -> float | None:
    """Convert milliseconds to seconds."""
    return None if milliseconds is None else milliseconds / 1000.0
