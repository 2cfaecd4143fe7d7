"""DICOM MR files as planes: records of what the headers say, and the clocks they carry."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from napari_mamamia.core.choices import Clock
from napari_mamamia.io.dicom.elements import PHILIPS_DYNAMIC_TIME, Scaling, optional_number
from napari_mamamia.io.dicom.kinds import SequenceKey
from napari_mamamia.io.dicom.roles import Kind, Role
from napari_mamamia.io.dicom.times import Moment, TimeElements

OFFSET_TIME: Final = "TemporalPositionTimeOffset"
DYNAMIC_TIME: Final = "Philips dynamic scan begin time (2005,10A0)"
RESOLUTION: Final = "TemporalResolution"
"""Names under which `Slice.clocks` has seconds that can time phases, but do not order them."""
REFERENCE_TIME: Final = "FrameReferenceDateTime"
DURATION: Final = "FrameAcquisitionDuration"
"""Names under which it has the moment that stands for a frame, and how long the frame took, in
seconds. Source: DICOM PS3.3, C.7.6.16.2.2."""

UNNUMBERED: Final = -1
"""`Slice.phase` where nothing tells it."""

FRAMES: Final = 1_000_000
"""Instance numbers of enhanced files are spread by this, to leave room for the frames."""


_NO_KIND: Final = Kind()
_NO_SEQUENCE: Final = SequenceKey()


@dataclass(frozen=True, slots=True)
class Header:
    """What the planes of one file share.

    `plain_at` is where the first value lies, None where the values are compressed; `byte_order`
    is theirs in the file. `patient` is number and birth date, "" where they are not told, and in
    no text of ours. `contrast_start_s` is ContrastBolusStartTime, seconds since midnight.
    `unused_bits` are the high bits of each value that are not part of it; `has_bit_overlays`
    whether the header puts overlays there.
    `positions` is NumberOfTemporalPositions, `images` ImagesInAcquisition, 0 where not told;
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
        """The series as messages name it."""
        number = self.series_number
        return f"series {number}" if number is not None else f"series {self.series_uid}"

    @property
    def label(self) -> str:
        """The series as records name it, in which no UID may stand."""
        number = self.series_number
        return f"series {number}" if number is not None else "a series without number"


@dataclass(frozen=True, slots=True)
class Tile:
    """Where a plane lies in a picture of many: first row and column, (rows, columns) of it all."""

    row: int
    column: int
    picture: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Slice:
    """One plane of an MR image.

    `shape` is (rows, columns); `spacing_mm` the distance between rows and between columns;
    `orientation` the six direction cosines (along a row, down a column) and `position_mm` the
    centre of the first voxel, both LPS as DICOM has them. `clocks` are values by the names of
    `Clock` (seconds or counts) and by `OFFSET_TIME`, `DYNAMIC_TIME`, `RESOLUTION`,
    `REFERENCE_TIME` and `DURATION`, as far as the file gives them; `zone_of` names the time zones
    of two of them, `unit_of` the unit where they tell no seconds.
    `refused_times` names elements that hold no date or time, with their values.
    `frame` counts the planes of the file from 0; `tile` is where the plane lies in the picture of a
    mosaic, None where the picture is the plane. `kind` is what the header says it is, `echo` its
    EchoNumbers, `thickness_mm` from one slice to the next as the header has it. `is_padding` marks
    a plane of no image, between two
    breasts that are joined. `phase` is which phase of its series it shows, counted from 0 when the
    images of the series are seen together (`parts_of`). `reversed_axes` says whether the rows and
    whether the columns of the file are read from behind, as the other fields then have them.
    """

    header: Header
    shape: tuple[int, int]
    spacing_mm: tuple[float, float]
    orientation: tuple[float, ...]
    position_mm: tuple[float, ...]
    stored: np.dtype[np.generic]
    scaling: Scaling
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
        """The file of the plane."""
        return self.header.file

    @property
    def series_name(self) -> str:
        """The series as messages name it."""
        return self.header.series_name

    @property
    def name(self) -> str:
        """File, and of a later frame its number, as messages name them."""
        part = "frame" if self.tile is None else "tile"
        return str(self.file) if self.frame == 0 else f"{self.file} ({part} {self.frame + 1})"


@dataclass(frozen=True, slots=True)
class OtherImage:
    """A DICOM file that holds no MR image; `kind` says what it is in words."""

    file: Path
    kind: str
    role: Role = Role.NO_IMAGE
    header: Header | None = None


@dataclass(frozen=True, slots=True)
class BadImage:
    """An MR image whose header lacks what its place depends on; `reason` is the whole sentence."""

    header: Header
    reason: str
    kind: Kind = _NO_KIND
    sequence: SequenceKey = _NO_SEQUENCE


def clocks_of(content: Any, times: TimeElements) -> dict[str, float]:
    """Return clock values of a data set; seconds since the year 1 where a date is given."""
    acquired = times.dated_time("Acquisition") or times.date_time("AcquisitionDateTime")
    clocks = {
        Clock.TEMPORAL_POSITION: optional_number(content, "TemporalPositionIdentifier"),
        Clock.TRIGGER_TIME: to_seconds(optional_number(content, "TriggerTime")),
        Clock.ACQUISITION_NUMBER: optional_number(content, "AcquisitionNumber"),
        Clock.INSTANCE_NUMBER: optional_number(content, "InstanceNumber"),
        Clock.SERIES: optional_number(content, "SeriesNumber"),
        DYNAMIC_TIME: optional_number(content, PHILIPS_DYNAMIC_TIME),
        RESOLUTION: to_seconds(optional_number(content, "TemporalResolution")),
        **readings_of(Clock.ACQUISITION_TIME, acquired),
        **readings_of(Clock.CONTENT_TIME, times.dated_time("Content")),
    }
    return with_sum({str(name): value for name, value in clocks.items() if value is not None})


def readings_of(clock: str, moment: Moment | None) -> dict[str, float | None]:
    """Return a moment, its time zone and a unit above seconds as clock values."""
    if moment is None:
        return {}
    unit_s = moment.unit_s if moment.unit_s > 1 else None
    return {clock: moment.utc_s, zone_of(clock): moment.zone_s, unit_of(clock): unit_s}


def zone_of(clock: str) -> str:
    """Return the name under which `Slice.clocks` has the seconds that a clock is ahead of UTC."""
    return f"time zone of {clock}"


def unit_of(clock: str) -> str:
    """Return the name under which `Slice.clocks` has the unit, in seconds, of a coarse clock."""
    return f"unit of {Clock.ACQUISITION_TIME if clock == Clock.ACQUIRED else clock}"


def with_sum(clocks: dict[str, float]) -> dict[str, float]:
    """Return clock values with the sum of AcquisitionTime and TriggerTime."""
    if Clock.ACQUISITION_TIME not in clocks:
        return clocks
    acquired_s = clocks[Clock.ACQUISITION_TIME] + clocks.get(Clock.TRIGGER_TIME, 0.0)
    return {**clocks, Clock.ACQUIRED.value: acquired_s}


def to_seconds(milliseconds: float | None) -> float | None:
    """Return milliseconds as seconds."""
    return None if milliseconds is None else milliseconds / 1000.0
