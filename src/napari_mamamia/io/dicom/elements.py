"""Read DICOM header elements: numbers, dates, times and private elements.

Errors about numbers name the element and the file. In private elements, (gggg,00xx) names the
creator of the elements (gggg,xx00) to (gggg,xxFF), and xx may be any block from 10 to FF (DICOM
PS3.5, 7.8). Archives change the case and the spaces of creator names. Times follow DICOM PS3.5,
6.2, including its notes on the forms of ACR-NEMA 300 (`09:00:07`, `2020.01.02`).
"""

import math
import os
import re
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, TypeVar

import numpy as np

from napari_mamamia.core.errors import FormatError, MissingExtraError
from napari_mamamia.core.program.hidden_package import without_package
from napari_mamamia.io.files.foreign import explained, open_bounded

_FIRST_VALUE: Final = 0x1000
DAMAGED: Final = (OSError, EOFError, ValueError, TypeError, KeyError, AttributeError,
                  IndexError, RuntimeError, NotImplementedError, OverflowError)  # fmt: skip
"""Errors that pydicom raises for damaged or unsupported files."""
DAY_S: Final = 86400.0


class PrivateElement(NamedTuple):
    """A private element: group, folded creator name, number in its block, and VR.

    `fold_creator` folds the creator's name. The creator "" denotes elements of a block without a
    creator.
    """

    group: int
    creator: str
    number: int
    form: str


def decode_text(raw: bytes) -> str | None:
    """Return a decoded value without padding, or None if the value is empty."""
    return raw.decode("latin-1").strip(" \0") or None


def decode_texts(raw: bytes) -> Any:
    """Return a decoded value: a string, a list if backslashes separate several, or None."""
    text = raw.decode("latin-1").rstrip(" \0")
    if "\\" in text:
        return [part.strip() for part in text.split("\\")]
    return text.strip() or None


def make_unpacker(form: str) -> Callable[[bytes], Any]:
    """Return a function that unpacks little-endian numbers to one number, a list or None."""
    size = struct.calcsize(form)

    def unpack(raw: bytes) -> Any:
        if not raw:
            return None
        numbers = [value for (value,) in struct.iter_unpack(form, raw)]
        return numbers[0] if len(raw) == size else numbers

    return unpack


READERS: Final[Mapping[str, Callable[[bytes], Any]]] = {
    "CS": decode_texts, "IS": decode_texts, "DS": decode_texts, "LO": decode_text,
    "US": make_unpacker("<H"), "SS": make_unpacker("<h"), "SL": make_unpacker("<i"),
    "FL": make_unpacker("<f"), "FD": make_unpacker("<d"),
}  # fmt: skip
"""Functions that decode the bytes of a value, by VR."""


def fold_creator(value: Any) -> str:
    """Return a creator's name without padding, in lower case."""
    text = value.decode("latin-1") if isinstance(value, bytes) else str(value or "")
    return " ".join(text.replace("\0", " ").split()).casefold()


def read_value(header: Any, name: Any) -> Any:
    """Return the value of an element by keyword or tag, or of a private element by creator."""
    if not isinstance(name, PrivateElement) or not hasattr(header, "private_block"):
        value = header.get(name)
        return getattr(value, "value", value)
    tag = _find_tag(header, name)
    value = None if tag is None else header[tag].value
    # pydicom returns bytes if its own list lacks this spelling of the creator.
    return READERS[name.form](value) if isinstance(value, bytes) and name.form in READERS else value


def find_block(header: Any, group: int, creator: str) -> int | None:
    """Return the number of a creator's private block in a pydicom data set, or None."""
    tags = header.keys()
    return next(
        (
            tag & 0xFF
            for tag in tags
            if tag >> 16 == group
            and 0x10 <= tag & 0xFFFF <= 0xFF
            and fold_creator(header[tag].value) == fold_creator(creator)
        ),
        None,
    )


def _find_tag(header: Any, name: PrivateElement) -> int | None:
    tags = header.keys()
    for tag in tags:
        if tag >> 16 != name.group or tag & 0xFFFF < _FIRST_VALUE or tag & 0xFF != name.number:
            continue
        creator = (name.group, tag >> 8 & 0xFF)
        if fold_creator(header[creator].value if creator in header else "") == name.creator:
            return int(tag)
    return None


PHILIPS_SCALE_SLOPE: Final = PrivateElement(0x2005, "philips mr imaging dd 001", 0x0E, "FL")
PHILIPS_DYNAMIC_TIME: Final = PrivateElement(0x2005, "philips mr imaging dd 001", 0xA0, "FL")
"""Philips' private element for the start time of a dynamic scan.

Source for the slope: Chenevert (see `scaling_of`). In dcm_qa_philips, the times are 0, 2, 4 s at a
TR of 2 s.
"""
NAMELESS_SCALE_SLOPE: Final = PrivateElement(0x2005, "", 0x0E, "FL")
"""Philips' Scale Slope (2005,100E) in a private block that does not name its creator."""
PRIVATE_ELEMENTS: Final = (PHILIPS_SCALE_SLOPE, PHILIPS_DYNAMIC_TIME, NAMELESS_SCALE_SLOPE)
"""Private elements with scale slopes and times, which `quick` also reads."""
OVERLAY_TAGS: Final = tuple((group, 0x0102) for group in range(0x6000, 0x6020, 2))
"""OverlayBitPosition of each overlay. Source: DICOM PS3.3, C.9.2."""
_MOST_ROWS: Final = 65535
"""Largest value of Rows and Columns, which are 16-bit. Source: DICOM PS3.3, C.7.6.3."""
_MOST_RATIO: Final = 1000
_FREE_BYTES: Final = 1 << 24
"""Size in bytes up to which uncompressed data are always allowed (our choice).

The limit on the compression ratio follows. MR images compress 2 to 5 times, blank images several
hundred times.
"""
_MOST_DEFLATED: Final = 100
_DEFLATED: Final = b"1.2.840.10008.1.2.1.99"
_SLOPES: Final = (1e-10, 1e10)
"""Range of slopes that are plausible calibrations (our choice).

MR images have slopes from 0.001 to 1,000, and maps have slopes of about 1e-6.
"""
_LUT: Final = ("RescaleSlope", "RescaleIntercept")
_SAME_MAP: Final = 1e-4
"""Largest relative difference at which two mappings count as equal.

RescaleSlope has few digits, while other elements have 64 bits.
"""
_WHOLE: Final = 2**24
"""Largest integer up to which float32 represents every integer."""
_NUMBER: Final = re.compile(r"(?i:[-+.,\d]*\d[-+.,\de]*|[-+]?nan|[-+]?inf(inity)?)")
_MARK_END: Final = 132
_BARE_BYTES: Final = 12
_LONGEST_FIRST: Final = 64
_LONG_FORMS: Final = frozenset({b"OB"})
_FIRST_ELEMENTS: Final = frozenset(
    group.to_bytes(2, "little") + element.to_bytes(2, "little")
    for group, element in (
        (0x0002, 0x0000), (0x0002, 0x0001), (0x0002, 0x0002), (0x0002, 0x0010),
        (0x0008, 0x0000), (0x0008, 0x0001), (0x0008, 0x0005), (0x0008, 0x0008), (0x0008, 0x0012),
        (0x0008, 0x0016),
    )
)  # fmt: skip
"""Possible first elements of an image's data set, including the group length."""
_GROUP_LENGTH: Final = b"\x02\x00\x00\x00"
_META_BYTES: Final = 4096
_HEAD_BYTES: Final = 8
_MOST_SAME_HEADS: Final = 256
"""Largest number of consecutive elements with the same first bytes.

Tags ascend, so no two elements have equal beginnings. Items can have equal beginnings, but many
empty items in a row are rare.
"""
_PIECE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Scaling:
    """The linear mapping from stored values to the signal: ``stored * slope + intercept``.

    `source` names the elements that define the mapping, or is "". `fault` names elements with
    implausible values, which are ignored, or is "". `nameless` is a number that may be Philips'
    Scale Slope, but comes from a block without a creator name. `unused` names a different mapping
    in the image that is not applied, or is "".
    """

    slope: float = 1.0
    intercept: float = 0.0
    source: str = ""
    fault: str = ""
    nameless: float | None = None
    unused: str = ""

    @property
    def pair(self) -> tuple[float, float]:
        """Slope and intercept."""
        return self.slope, self.intercept


def open_dicom(path: Path | Any, name: Path, **options: Any) -> Any:
    """Return the pydicom data set in a file or an open stream, named `name` in errors.

    Raises
    ------
    FormatError
        If the file is damaged.
    MissingExtraError
        If pydicom is not installed.
    """
    require_pydicom()
    from pydicom import dcmread
    from pydicom.errors import InvalidDicomError

    with explained(name, "a readable DICOM file", "export the series again"):
        try:
            with open_bounded(path) if isinstance(path, Path) else nullcontext(path) as stream:
                _require_modest(stream)
                padded: Any = _PaddedStream(stream)
                return dcmread(padded, force=_is_bare(stream), **options)
        except InvalidDicomError as error:  # pydicom's message recommends an argument of its own.
            raise ValueError("the first bytes are not those of a DICOM file") from error


class _PaddedStream:
    """Stream that ends where an element starts to repeat endlessly, as in trailing zeros.

    pydicom reads every eight zeros as an element or item, so 1 MB of zeros gives 131,072 elements.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._head = b""
        self._n_same = 0

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        if len(data) == _HEAD_BYTES:
            self._n_same = self._n_same + 1 if data == self._head else 0
            self._head = data
        elif len(data) > _HEAD_BYTES:
            self._n_same = 0
        if self._n_same < _MOST_SAME_HEADS:
            return data
        self._stream.seek(0, os.SEEK_END)  # The next element repeats as well.
        return b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def begins_bare(head: bytes) -> bool:
    """Return whether a file begins directly with a DICOM data set, without preamble and prefix.

    The first element belongs to group 0002 or 0008 and has a short value: a group length, a class
    or a character set. Source: DICOM PS3.5, 7.1, and PS3.10, 7.1, for files from before 1993.
    """
    if len(head) < _BARE_BYTES or head[:4] not in _FIRST_ELEMENTS:
        return False
    length = int.from_bytes(head[6:8] if head[4:6].isalpha() else head[4:8], "little")
    return length <= _LONGEST_FIRST or head[4:6] in _LONG_FORMS


def _is_bare(stream: IO[bytes]) -> bool:
    start = stream.tell()
    head = stream.read(_MARK_END)
    stream.seek(start)
    return head[_MARK_END - 4 :] != b"DICM" and begins_bare(head)


def _require_modest(stream: IO[bytes]) -> None:
    """Raise `ValueError` if a deflated file would inflate to too many bytes.

    pydicom inflates the whole file at once. Source: DICOM PS3.5, A.5: the data after the file meta
    information are raw deflate.
    """
    start = stream.tell()
    try:
        head = stream.read(_META_BYTES)
        if _DEFLATED not in head:
            return
        if head[132:136] != _GROUP_LENGTH:
            raise ValueError("the meta information of the deflated file has no length")
        # The length counts from the end of its own element: 132 bytes up to the prefix, and 12
        # bytes of the element.
        stream.seek(start + 144 + int.from_bytes(head[140:144], "little"))
        inflate, n_packed, n_bytes = zlib.decompressobj(-zlib.MAX_WBITS), 0, 0
        while not inflate.eof and (packed := stream.read(_PIECE_BYTES)):
            n_packed += len(packed)
            while packed:
                n_bytes += len(inflate.decompress(packed, _FREE_BYTES))
                if n_bytes > _FREE_BYTES + _MOST_DEFLATED * n_packed:
                    raise ValueError(
                        f"the file inflates to more than {_MOST_DEFLATED} times its compressed size"
                    )
                packed = inflate.unconsumed_tail
    except zlib.error as error:
        raise ValueError(f"the data cannot be inflated ({error})") from error
    finally:
        stream.seek(start)


def require_pydicom() -> None:
    """Raise `MissingExtraError` if pydicom is not installed."""
    try:
        with without_package("requests"):
            import pydicom  # noqa: F401 - whether it is there
    except ImportError as error:
        raise MissingExtraError("pydicom", "dicom") from error


def needed(path: Path, header: Any, name: str) -> Any:
    """Return a required element.

    Raises
    ------
    FormatError
        If the element is missing. The message names the element and the file.
    """
    value = header.get(name)
    if value is None or value == "":
        raise FormatError(
            f"expected {name} in {path}, but it is missing: export the series again with this "
            "element"
        )
    return value


def numbers(path: Path, header: Any, name: str, count: int) -> tuple[float, ...]:
    """Return an element of `count` finite numbers; raise `FormatError` if it is invalid."""
    try:
        value = needed(path, header, name)
        is_list = isinstance(value, Sequence) and not isinstance(value, str)
        values = tuple(float(v) for v in value) if is_list else (float(value),)
    except FormatError:
        raise
    except DAMAGED as error:
        raise FormatError(
            f"expected {name} to be {count} numbers with decimal points in {path}, but {error}: "
            "export the series again"
        ) from error
    if len(values) != count or not all(map(math.isfinite, values)):
        raise FormatError(
            f"expected {name} to be {count} numbers in {path}, but it is {values}: export the "
            "series again"
        )
    return values


def optional_whole(path: Path, header: Any, name: str) -> int | None:
    """Return an element as a whole number, or None if it is missing."""
    try:
        value = header.get(name)
        return None if value is None or value == "" else int(value)
    except DAMAGED as error:
        raise FormatError(
            f"expected {name} to be a whole number in {path}, but {error}: export the series again"
        ) from error


def optional_number(header: Any, name: Any) -> float | None:
    """Return an element, given by keyword, tag or creator, as a number or None.

    None is returned if the value is missing or not a number.
    """
    try:
        value = read_value(header, name)
        if isinstance(value, Sequence) and not isinstance(value, str | bytes) and value:
            value = value[0]
        number = float(value)
    except DAMAGED:
        return None
    return number if math.isfinite(number) else None


def shape_of(path: Path, header: Any) -> tuple[int, int]:
    """Return the numbers of rows and columns, both above 0.

    Raises
    ------
    FormatError
        If a number is missing or outside the range of DICOM.
    """
    shape = (int(needed(path, header, "Rows")), int(needed(path, header, "Columns")))
    if not all(0 < extent <= _MOST_ROWS for extent in shape):
        raise FormatError(
            f"expected Rows and Columns in {path} to be from 1 to {_MOST_ROWS}, but they are "
            f"{shape[0]} and {shape[1]}: export the series again"
        )
    return shape


def require_room(path: Path, n_bytes: int, packed: bool, at: int = 0) -> None:
    """Raise `FormatError` if a file is too small for the values that its header describes.

    Parameters
    ----------
    path
        The file.
    n_bytes
        Size of the uncompressed values in bytes.
    packed
        Whether the values are compressed.
    at
        Byte offset of the values, or 0 if the offset is unknown.
    """
    size = path.stat().st_size
    if n_bytes + at > (_FREE_BYTES + size * _MOST_RATIO if packed else size):
        raise FormatError(
            f"expected {n_bytes:,} bytes of values in {path}, as its header says, but found "
            f"{max(0, size - at):,}{' after the header' * bool(at)}: the file is truncated or its "
            "header is damaged; export the series again"
        )


def spacing_of(path: Path, header: Any) -> tuple[float, float]:
    """Return the distance in mm between rows and between columns, both above 0."""
    rows, columns = numbers(path, header, "PixelSpacing", 2)
    if min(rows, columns) <= 0:
        raise FormatError(
            f"expected PixelSpacing in {path} to be two distances above 0 mm, but it is {rows} "
            f"and {columns}: export the series again"
        )
    return rows, columns


def stored_type(path: Path, header: Any) -> np.dtype[np.generic]:
    """Return the NumPy type of the stored values, in native byte order."""
    if int(header.get("SamplesPerPixel") or 1) != 1:
        raise FormatError(
            f"expected grey values, but {path} is a colour image: leave the image out"
        )
    bits = int(needed(path, header, "BitsAllocated"))
    if bits not in (8, 16, 32):
        raise FormatError(
            f"expected 8, 16 or 32 bits per value in {path}, but found {bits}: export the series "
            "again"
        )
    sign = "i" if int(needed(path, header, "PixelRepresentation")) else "u"
    used, high = int(needed(path, header, "BitsStored")), optional_number(header, "HighBit")
    if not 0 < used <= bits or high not in (None, used - 1):
        raise FormatError(
            f"expected values in the lowest 1 to {bits} bits (BitsStored) of {path}, with HighBit "
            f"as the highest, but found {used} bits and HighBit {high:g}: export the series again"
        )
    return np.dtype(f"{sign}{bits // 8}")


def unused_bits(header: Any) -> int:
    """Return the number of unused high bits in each stored value, or 0 if unknown.

    Source: DICOM PS3.5, 8.1.1: BitsAllocated - BitsStored; HighBit is BitsStored - 1.
    """
    whole, used = (optional_number(header, name) for name in ("BitsAllocated", "BitsStored"))
    return 0 if whole is None or used is None else int(whole - used)


def has_bit_overlays(header: Any) -> bool:
    """Return whether overlays are stored in bits of the pixel values."""
    return any(optional_number(header, tag) for tag in OVERLAY_TAGS)


def scaling_of(header: Any, whole: Any | None = None, mappings: Sequence[Any] = ()) -> Scaling:
    """Return the mapping from stored values to the signal.

    The Modality LUT (RescaleSlope RS, RescaleIntercept RI) is applied if there is one. If Philips'
    private Scale Slope SS (2005,100E) is also present, the signal is ``(stored * RS + RI) / (RS *
    SS)``. Only this signal is comparable between series, because Philips fits RS to the display
    range of each series. Source: Chenevert et al., Transl Oncol 2014;7(1):65-71, equation 1.

    Numbers that cannot be a calibration, such as a slope of 0, are ignored and named in
    `Scaling.fault`. Then the Modality LUT is applied if SS is at fault, and the stored values are
    unchanged otherwise.

    Parameters
    ----------
    header
        Data set with the Modality LUT. In an enhanced file this is the functional group.
    whole
        Data set with the private element; by default `header`.
    mappings
        Items of an enhanced file's RealWorldValueMappingSequence; if empty, the items of `header`.
    """
    scaling = _scaling_by_elements(header, header if whole is None else whole)
    maps = mappings or header.get("RealWorldValueMappingSequence") or ()
    tables = header.get("ModalityLUTSequence") or ()
    return replace(scaling, unused=_find_unused(header, scaling, maps, tables))


def _scaling_by_elements(header: Any, place: Any) -> Scaling:
    slope, intercept = (_find_value(header, name) for name in _LUT)
    rescale = 1.0 if slope is None else _read_number(slope)
    offset = 0.0 if intercept is None else _read_number(intercept)
    is_lut = _is_calibration(rescale, offset)
    private = _find_value(place, PHILIPS_SCALE_SLOPE)
    if private is not None:
        scale = _read_number(private) or math.nan
        # Without RI the signal is stored / SS, whatever RS is.
        shift = 0.0 if offset == 0 else offset / (rescale * scale) if is_lut else math.nan
        if _is_calibration(1.0 / scale, shift):
            return Scaling(1.0 / scale, shift, "Philips (2005,100E)")
    nameless = None if private is not None else optional_number(place, NAMELESS_SCALE_SLOPE)
    if nameless is not None and not (nameless > 0 and _is_calibration(1.0 / nameless, 0.0)):
        nameless = None
    there = [(n, v) for n, v in zip(_LUT, (slope, intercept), strict=True) if v is not None]
    if not is_lut:
        faults = there if _is_calibration(rescale, 0.0) else there[:1]
        text = " and ".join(f"{name} {_show_value(value)}" for name, value in faults)
        return Scaling(fault=text, nameless=nameless)
    source = there[0][0] if there else ""
    fault = "" if private is None else f"Philips (2005,100E) {_show_value(private)}"
    return Scaling(rescale, offset, source, fault, nameless)


def _find_unused(header: Any, scaling: Scaling, maps: Sequence[Any], tables: Sequence[Any]) -> str:
    if tables:
        values = read_value(tables[0], "LUTData")
        data = values if isinstance(values, bytes) else str(values).encode()
        return f"ModalityLUTSequence (table {zlib.crc32(data):08x})"
    if not maps:
        return ""
    pairs = [
        tuple(optional_number(item, f"RealWorldValue{name}") for name in ("Slope", "Intercept"))
        for item in maps
    ]
    slope, intercept = (optional_number(header, name) for name in _LUT)
    applied = [scaling.pair, (1.0 if slope is None else slope, intercept or 0.0)]
    if any(_is_same_map(mapping, other) for mapping in pairs for other in applied):
        return ""
    slope, intercept = pairs[0]
    if slope is None:
        return "RealWorldValueMappingSequence (a table)"
    return f"RealWorldValueMappingSequence (slope {slope:g}, intercept {intercept or 0.0:g})"


def _is_same_map(told: tuple[float | None, ...], other: tuple[float, float]) -> bool:
    slope, intercept = told
    if slope is None:
        return False
    return math.isclose(slope, other[0], rel_tol=_SAME_MAP) and math.isclose(
        intercept or 0.0, other[1], rel_tol=_SAME_MAP, abs_tol=_SAME_MAP * abs(other[0])
    )


def _is_calibration(slope: float, intercept: float) -> bool:
    return _SLOPES[0] <= abs(slope) <= _SLOPES[1] and abs(intercept) <= _WHOLE * abs(slope)


def _find_value(header: Any, name: Any) -> Any:
    try:
        value = read_value(header, name)
    except DAMAGED:
        return math.nan
    return None if value is None or value == "" else value


def _read_number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _show_value(value: Any) -> str:
    text = str(value)
    return text if _NUMBER.fullmatch(text) else "(no number)"


_DATE: Final = re.compile(r"(\d{4})(\.?)(\d\d)\2(\d\d)", re.ASCII)
_TIME: Final = re.compile(r"(\d\d)(?:(:?)(\d\d)(?:\2(\d\d(?:\.\d{1,6})?))?)?", re.ASCII)
_DATE_TIME: Final = re.compile(r"(\d{8})(\d{2,6}(?:\.\d+)?)([+-]\d{4})?", re.ASCII)
_ZONE: Final = re.compile(r"([+-])(\d\d)(\d\d)", re.ASCII)
_MOST_ZONE_HOURS: Final = 14
_LEAP_SECOND: Final = 60
_CLOCK_LIKE: Final = re.compile(r"[\d:. ]*([ap]m)?", re.IGNORECASE)
_DATE_LIKE: Final = re.compile(r"\d{8}|\d +\d|\..*\.")
_LONGEST: Final = 24

_Parsed = TypeVar("_Parsed")


class Moment(NamedTuple):
    """A time in seconds since the year 1, or since midnight if the date is unknown.

    The time zone is given as seconds ahead of UTC. `unit_s` is 60 or 3600 if the value lacks
    seconds or minutes.
    """

    local_s: float
    zone_s: float | None
    unit_s: float = 1.0

    @property
    def utc_s(self) -> float:
        """The time in UTC if the time zone is known, otherwise the time as stored."""
        return self.local_s - (self.zone_s or 0.0)


def read_date(value: Any) -> date | None:
    """Return the day in a DA value (`YYYYMMDD` or `YYYY.MM.DD`), or None if it is invalid."""
    match = _DATE.fullmatch(_without_padding(value))
    if match is None:
        return None
    try:
        return date(int(match[1]), int(match[3]), int(match[4]))
    except ValueError:
        return None


def read_time_s(value: Any) -> float | None:
    """Return a TM value as seconds since midnight, or None if it is invalid.

    Valid forms are `HH`, `HHMM`, `HHMMSS` and `HHMMSS.F` with one to six fractional digits, and the
    same forms with colons. Second 60 is a leap second and counts as the first second of the next
    minute.

    Examples
    --------
    >>> read_time_s("090007.5"), read_time_s("09:00:07"), read_time_s("09")
    (32407.5, 32407.0, 32400.0)
    >>> read_time_s("90007.000"), read_time_s("1:22:00 PM"), read_time_s("096107")
    (None, None, None)
    """
    match = _TIME.fullmatch(_without_padding(value))
    if match is None:
        return None
    hour, minute, second = int(match[1]), int(match[3] or 0), float(match[4] or 0)
    if hour > 23 or minute > 59 or int(second) > _LEAP_SECOND:
        return None
    return hour * 3600 + minute * 60 + second


def _read_unit_s(value: Any) -> float:
    match = _TIME.fullmatch(_without_padding(value))
    return 1.0 if match is None or match[4] else 60.0 if match[3] else 3600.0


def read_date_time(value: Any) -> Moment | None:
    """Return the time in a DT value with date and time, or None if it is invalid."""
    match = _DATE_TIME.fullmatch(_without_padding(value))
    if match is None:
        return None
    day, time_s, zone_s = read_date(match[1]), read_time_s(match[2]), read_zone_s(match[3])
    if day is None or time_s is None or (zone_s is None and match[3]):
        return None
    return Moment(day.toordinal() * DAY_S + time_s, zone_s, _read_unit_s(match[2]))


def read_zone_s(value: Any) -> float | None:
    """Return a UTC offset `+HHMM` or `-HHMM` in seconds, or None if it is invalid."""
    match = _ZONE.fullmatch(_without_padding(value))
    if match is None or int(match[2]) > _MOST_ZONE_HOURS or int(match[3]) > 59:
        return None
    ahead_s = int(match[2]) * 3600.0 + int(match[3]) * 60.0
    return -ahead_s if match[1] == "-" else ahead_s


class TimeElements:
    """Dates and times in one data set; `refused` maps elements to their invalid values.

    Values that may contain a date or a name are recorded only as patterns.
    """

    __slots__ = ("_content", "refused", "zone_s")

    def __init__(self, content: Any, zone_s: float | None = None) -> None:
        self._content = content
        self.refused: dict[str, str] = {}
        self.zone_s = zone_s
        """UTC offset, in seconds, of all times without their own time zone."""
        if zone_s is None:
            self.zone_s = self._read("TimezoneOffsetFromUTC", read_zone_s)

    def time_s(self, name: str) -> float | None:
        """Return the value of a TM element in seconds since midnight."""
        return self._read(name, read_time_s)

    def date_time(self, name: str) -> Moment | None:
        """Return the value of a DT element as a time."""
        moment = self._read(name, read_date_time)
        return moment._replace(zone_s=self.zone_s) if moment and moment.zone_s is None else moment

    def dated_time(self, which: str) -> Moment | None:
        """Return the time given by two elements, such as AcquisitionDate and AcquisitionTime."""
        time_s = self.time_s(f"{which}Time")
        if time_s is None:
            return None
        day = self._read(f"{which}Date", read_date)
        unit_s = _read_unit_s(self._content.get(f"{which}Time"))
        return Moment((day.toordinal() if day else 0) * DAY_S + time_s, self.zone_s, unit_s)

    def _read(self, name: str, read: Callable[[Any], _Parsed | None]) -> _Parsed | None:
        value = self._content.get(name)
        if not _without_padding(value):
            return None
        parsed = read(value)
        if parsed is None:
            self.refused[name] = _describe_value(value, is_time=read is read_time_s)
        return parsed


def _without_padding(value: Any) -> str:
    return "" if value is None else str(value).rstrip(" \0")


def _describe_value(value: Any, *, is_time: bool) -> str:
    text = _without_padding(value)[:_LONGEST]
    if is_time and _CLOCK_LIKE.fullmatch(text) and not _DATE_LIKE.search(text):
        return repr(text)
    form = re.sub(r"[^\W\d_]", "x", re.sub(r"\d", "9", text))
    return f"of the form {form!r}"
