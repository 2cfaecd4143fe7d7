"""Read a DICOM file's header as planes, or as a record if the file is not an MR image."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from sys import intern
from types import MappingProxyType
from typing import Any, Final, TypeVar

from napari_mamamia.core.choices import Clock
from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.dicom import slices
from napari_mamamia.io.dicom.elements import (
    DAMAGED,
    PHILIPS_DYNAMIC_TIME,
    PrivateElement,
    TimeElements,
    has_bit_overlays,
    needed,
    numbers,
    open_dicom,
    optional_number,
    optional_whole,
    read_value,
    require_room,
    scaling_of,
    shape_of,
    spacing_of,
    stored_type,
    unused_bits,
)
from napari_mamamia.io.dicom.kinds import KIND_ELEMENTS, SequenceKey, kind_of, sequence_of
from napari_mamamia.io.dicom.mosaic import is_mosaic, tiles_of
from napari_mamamia.io.dicom.quick import read_quickly
from napari_mamamia.io.dicom.roles import Kind, Role
from napari_mamamia.io.files.foreign import open_bounded, reads

# Frames of an enhanced multi-frame MR file get the same facts as single-frame files.

_EMPTY: Final[dict[str, Any]] = {}
_PHILIPS_FRAME: Final = PrivateElement(0x2005, "philips mr imaging dd 005", 0x0F, "SQ")
_SIEMENS_FRAME: Final = PrivateElement(0x0021, "siemens mr sdi 02", 0xFE, "SQ")
_SIEMENS_SEQUENCE: Final = PrivateElement(0x0021, "siemens mr sdi 02", 0x77, "LO")
"""Private sequences of each frame, and the pulse sequence name that Siemens adds to FrameType.

Source: dcm2niix, nii_dicom.cpp at 98ecd0be; the name was seen in dcm_qa_enh.
"""


class _Groups:
    """Functional groups of one frame; its own groups take precedence over shared groups."""

    def __init__(self, shared: Any, own: Any) -> None:
        self._shared, self._own = shared, own

    def group(self, name: str) -> Any:
        """Return the only item in a functional group, or an empty mapping if it is missing."""
        return next(iter(self.items(name)), _EMPTY)

    def items(self, name: str) -> Sequence[Any]:
        """Return the items in a functional group; empty if the group is missing."""
        both = (groups.get(name) for groups in (self._own, self._shared) if groups is not None)
        return next((items for items in both if items), ())

    def philips(self, content: Any) -> Any:
        """Return the data set with Philips' private elements, from the frame's item or the file."""
        return self._find_private_group(_PHILIPS_FRAME) or content

    def private_elements(self, content: Any) -> dict[Any, Any]:
        """Return the private elements that determine the kind of image, a frame's own first."""
        places = (
            self._find_private_group(_PHILIPS_FRAME),
            self._find_private_group(_SIEMENS_FRAME),
            content,
        )
        return {element: _find_first(places, element) for element in KIND_ELEMENTS}

    def _find_private_group(self, element: PrivateElement) -> Any:
        """Return the item in a private sequence, even if the block does not name its creator.

        Only the creator of the elements inside the item matters.
        """
        nameless = element._replace(creator="")
        items = read_value(self._own, element) or read_value(self._own, nameless)
        return items[0] if items and not isinstance(items, bytes) else _EMPTY


def frames_of(header: slices.Header, content: Any, times: TimeElements) -> tuple[slices.Slice, ...]:
    """Return one plane for each frame, in the order of the file.

    Raises
    ------
    FormatError
        If the numbers of frames and of frame descriptions differ, or a frame has no position.
    """
    path = header.file
    per_frame = needed(path, content, "PerFrameFunctionalGroupsSequence")
    n_frames = int(needed(path, content, "NumberOfFrames"))
    if len(per_frame) != n_frames:
        raise FormatError(
            f"expected {n_frames} frames in {path} (NumberOfFrames), but it describes "
            f"{len(per_frame)}: export the series again"
        )
    shared = content.get("SharedFunctionalGroupsSequence")
    first = shared[0] if shared else None
    of_file = _read_file_clocks(content, per_frame, times), times
    shape = shape_of(path, content)
    stored = stored_type(path, content)
    n_bytes = n_frames * shape[0] * shape[1] * stored.itemsize
    require_room(path, n_bytes, packed=header.plain_at is None)
    return tuple(
        _read_frame(header, content, _Groups(first, frame), index, (shape, stored, of_file))
        for index, frame in enumerate(per_frame)
    )


def _read_frame(
    header: slices.Header, content: Any, groups: _Groups, index: int, common: tuple[Any, Any, Any]
) -> slices.Slice:
    path = header.file
    shape, stored, of_file = common
    clocks, refused = _read_clocks(content, groups, of_file, index)
    transform = groups.group("PixelValueTransformationSequence")
    measures = groups.group("PixelMeasuresSequence")
    kind, sequence = _kind_and_sequence(content, groups)
    return slices.Slice(
        header=header,
        shape=shape,
        spacing_mm=spacing_of(path, measures),
        orientation=numbers(
            path, groups.group("PlaneOrientationSequence"), "ImageOrientationPatient", 6
        ),
        position_mm=numbers(path, groups.group("PlanePositionSequence"), "ImagePositionPatient", 3),
        stored=stored,
        scaling=scaling_of(
            transform,
            groups.philips(content),
            groups.items("RealWorldValueMappingSequence"),
        ),
        sequence=sequence,
        kind=kind,
        thickness_mm=optional_number(content, "SpacingBetweenSlices")
        or optional_number(measures, "SpacingBetweenSlices")
        or optional_number(measures, "SliceThickness"),
        frame=index,
        clocks=MappingProxyType(clocks),
        refused_times=refused,
    )


def _kind_and_sequence(content: Any, groups: _Groups) -> tuple[Kind, SequenceKey]:
    timing = groups.group("MRTimingAndRelatedParametersSequence")
    echo = groups.group("MREchoSequence")
    frame_type = groups.group("MRImageFrameTypeSequence")
    modifier = groups.group("MRModifierSequence")
    diffusion = groups.group("MRDiffusionSequence")
    component = frame_type.get("ComplexImageComponent") or content.get("ComplexImageComponent")
    joined: dict[Any, Any] = {
        "ScanningSequence": content.get("EchoPulseSequence"),
        "MRAcquisitionType": content.get("MRAcquisitionType"),
        "EchoPlanarPulseSequence": content.get("EchoPlanarPulseSequence"),
        "SequenceName": content.get("PulseSequenceName") or _siemens_sequence(frame_type),
        "EchoTrainLength": timing.get("RFEchoTrainLength"),
        "EchoTime": echo.get("EffectiveEchoTime"),
        "RepetitionTime": timing.get("RepetitionTime"),
        "InversionTime": modifier.get("InversionTimes"),
        "SequenceVariant": "MTC" if _has_transfer(modifier) else None,
        "FlipAngle": timing.get("FlipAngle"),
        "DiffusionBValue": diffusion.get("DiffusionBValue"),
        "ScanOptions": _fat_options(modifier),
        "SeriesDescription": content.get("SeriesDescription"),
        "ComplexImageComponent": component,
        "ImageType": frame_type.get("FrameType") or content.get("ImageType"),
        **groups.private_elements(content),
    }
    kind = kind_of(joined)
    return kind, sequence_of(joined, kind)


def _find_first(places: tuple[Any, ...], element: PrivateElement) -> Any:
    values = (read_value(data_set, element) for data_set in places)
    return next((value for value in values if value is not None), None)


def _siemens_sequence(frame_type: Any) -> str:
    return str(read_value(frame_type, _SIEMENS_SEQUENCE) or "")


def _has_transfer(modifier: Any) -> bool:
    return str(modifier.get("MagnetizationTransfer") or "NONE").upper() != "NONE"


def _fat_options(modifier: Any) -> str:
    suppression = str(modifier.get("SpectrallySelectedSuppression") or "").upper()
    return "FAT" if "FAT" in suppression else ""


_FileClocks = tuple[dict[str, float], TimeElements]


def _read_file_clocks(content: Any, per_frame: Any, times: TimeElements) -> dict[str, float]:
    clocks = slices.clocks_of(content, times)
    frames = (_Groups(None, frame).group("FrameContentSequence") for frame in per_frame)
    if any(frame.get("FrameAcquisitionDateTime") for frame in frames):
        acquired = Clock.ACQUISITION_TIME
        for name in (acquired, slices.zone_of(acquired), slices.unit_of(acquired), Clock.ACQUIRED):
            clocks.pop(name, None)
    return clocks


def _read_clocks(
    content: Any, groups: _Groups, of_file: _FileClocks, index: int
) -> tuple[dict[str, float], tuple[tuple[str, str], ...]]:
    """Return the clocks of a frame, and the elements with an invalid time.

    Source of the element locations: DICOM PS3.3, C.7.6.16.2.2 (frame content), .7 (cardiac
    synchronization) and .20 (temporal position).
    """
    clocks, file_times = of_file
    frame = groups.group("FrameContentSequence")
    times = TimeElements(frame, file_times.zone_s)
    beat = groups.group("CardiacSynchronizationSequence")
    position = groups.group("TemporalPositionSequence")
    reference = times.date_time("FrameReferenceDateTime")
    frame_clocks = {
        Clock.TEMPORAL_POSITION: optional_number(frame, "TemporalPositionIndex"),
        Clock.TRIGGER_TIME: slices.to_seconds(
            optional_number(beat, "NominalCardiacTriggerDelayTime")
        ),
        Clock.ACQUISITION_NUMBER: optional_number(frame, "FrameAcquisitionNumber"),
        slices.OFFSET_TIME: optional_number(position, "TemporalPositionTimeOffset"),
        slices.DYNAMIC_TIME: optional_number(groups.philips(content), PHILIPS_DYNAMIC_TIME),
        slices.DURATION: slices.to_seconds(optional_number(frame, "FrameAcquisitionDuration")),
        Clock.INSTANCE_NUMBER: clocks.get(Clock.INSTANCE_NUMBER, 0.0) * slices.FRAMES + index,
        **slices.readings_of(slices.REFERENCE_TIME, reference),
        **slices.readings_of(Clock.ACQUISITION_TIME, times.date_time("FrameAcquisitionDateTime")),
    }
    own_clocks = {str(name): value for name, value in frame_clocks.items() if value is not None}
    refused = {**file_times.refused, **times.refused}
    return slices.with_sum({**clocks, **own_clocks}), _intern_value(tuple(refused.items()))


T = TypeVar("T")

_MR: Final = "1.2.840.10008.5.1.4.1.1.4"
_ENHANCED_MR: Final = frozenset({f"{_MR}.1", f"{_MR}.4"})
_BYTE: Final = 8
_IMPLICIT: Final = "1.2.840.10008.1.2"
_EXPLICIT: Final = "1.2.840.10008.1.2.1"
_BIG: Final = "1.2.840.10008.1.2.2"
_NATIVE: Final = {_IMPLICIT: ("<", 8), _EXPLICIT: ("<", 12), _BIG: (">", 12)}
"""Byte order, and offset of the first value in PixelData, by transfer syntax.

The syntaxes are implicit and explicit little-endian, and explicit big-endian. Source: DICOM PS3.5,
7.1.
"""


@reads("a readable DICOM file", "export the series again")
def read_slices(path: Path) -> tuple[slices.Slice, ...] | slices.OtherImage | slices.BadImage:
    """Return the planes in a DICOM file, or a record if the file is not an MR image.

    Raises
    ------
    FormatError
        If the file is so damaged that its series is unknown. The message names the file.
    MissingExtraError
        If pydicom is not installed.
    """
    try:
        with open_bounded(path, 1 << 14) as stream:
            content: Any = read_quickly(stream)
            if content is not None:
                index = content.at
            else:
                stream.seek(0)
                content = open_dicom(stream, path, stop_before_pixels=True)
                index = stream.tell()
    except OSError as error:
        raise _make_damage_error(path, error) from error
    sop_class = needed(path, content, "SOPClassUID")
    if sop_class != _MR and sop_class not in _ENHANCED_MR:
        name = getattr(sop_class, "name", "unknown kind")
        if name == sop_class:  # An unknown class may come from a damaged file.
            needed(path, content, "StudyInstanceUID")
        return slices.OtherImage(path, name)
    try:
        times = TimeElements(content)
        header = _read_header(path, content, index, times)
    # FormatError is a ValueError, so DAMAGED includes it, but its message says more.
    except FormatError:
        raise
    except DAMAGED as error:
        raise _make_damage_error(path, error) from error
    return _read_planes(header, content, times, sop_class in _ENHANCED_MR)


def _read_planes(
    header: slices.Header, content: Any, times: TimeElements, is_enhanced: bool
) -> tuple[slices.Slice, ...] | slices.OtherImage | slices.BadImage:
    if int(optional_number(content, "SamplesPerPixel") or 1) != 1:
        return slices.OtherImage(header.file, Role.CAPTURE.words, Role.CAPTURE, header)
    try:
        if is_enhanced:
            return frames_of(header, content, times)
        picture = _read_slice(header, content, times)
        return tiles_of(picture) if is_mosaic(content) else (picture,)
    except FormatError as error:
        return _describe_bad_image(header, content, str(error))
    except DAMAGED as error:
        return _describe_bad_image(header, content, str(_make_damage_error(header.file, error)))


def _describe_bad_image(header: slices.Header, content: Any, reason: str) -> slices.BadImage:
    try:
        kind = kind_of(content)
        return slices.BadImage(header, reason, kind, sequence_of(content, kind))
    except DAMAGED:
        return slices.BadImage(header, reason)


def _read_header(path: Path, content: Any, at: int, times: TimeElements) -> slices.Header:
    syntax = str(content.file_meta.get("TransferSyntaxUID", "")) or _guessed_syntax(content)
    byte_order, ahead = _NATIVE.get(syntax, ("<", 0))
    if byte_order == ">" and optional_number(content, "BitsAllocated") == _BYTE:
        ahead = 0  # Big-endian words may have swapped values; pydicom handles them.
    return slices.Header(
        file=path,
        study_uid=intern(str(needed(path, content, "StudyInstanceUID"))),
        series_uid=intern(str(needed(path, content, "SeriesInstanceUID"))),
        instance_uid=str(content.get("SOPInstanceUID") or ""),
        series_number=optional_whole(path, content, "SeriesNumber"),
        description=intern(str(content.get("SeriesDescription") or "")),
        manufacturer=intern(str(content.get("Manufacturer") or "")),
        transfer_syntax=intern(syntax),
        plain_at=at + ahead if ahead else None,
        byte_order=byte_order,
        unused_bits=unused_bits(content),
        has_bit_overlays=has_bit_overlays(content),
        patient=_intern_value(
            tuple(_simplify_text(content.get(n)) for n in ("PatientID", "PatientBirthDate"))
        ),
        contrast_start_s=times.time_s("ContrastBolusStartTime"),
        frame_of_reference=intern(str(content.get("FrameOfReferenceUID") or "")),
        positions=int(optional_number(content, "NumberOfTemporalPositions") or 0),
        images=int(optional_number(content, "ImagesInAcquisition") or 0),
        photometric=intern(str(content.get("PhotometricInterpretation") or "")),
    )


def _guessed_syntax(content: Any) -> str:
    is_implicit, is_little = content.original_encoding
    return _IMPLICIT if is_implicit else _EXPLICIT if is_little else _BIG


def _read_slice(header: slices.Header, content: Any, times: TimeElements) -> slices.Slice:
    path = header.file
    if int(content.get("NumberOfFrames") or 1) > 1:
        raise FormatError(
            f"expected one plane in {path}, but it is a classic MR image with several frames that "
            "have no positions: export the series again as single frames or as enhanced MR"
        )
    shape, stored = shape_of(path, content), stored_type(path, content)
    n_bytes = shape[0] * shape[1] * stored.itemsize
    require_room(path, n_bytes, packed=header.plain_at is None, at=header.plain_at or 0)
    kind = _intern_value(kind_of(content))
    echo = optional_number(content, "EchoNumbers")
    clocks = slices.clocks_of(content, times)
    return slices.Slice(
        header=header,
        shape=shape,
        spacing_mm=_intern_value(spacing_of(path, content)),
        orientation=_intern_value(numbers(path, content, "ImageOrientationPatient", 6)),
        position_mm=numbers(path, content, "ImagePositionPatient", 3),
        stored=stored,
        scaling=_intern_value(scaling_of(content)),
        sequence=_intern_value(sequence_of(content, kind)),
        kind=kind,
        echo=None if echo is None else int(echo),
        thickness_mm=optional_number(content, "SpacingBetweenSlices")
        or optional_number(content, "SliceThickness"),
        clocks=MappingProxyType(clocks),
        refused_times=_intern_value(tuple(times.refused.items())),
    )


def _simplify_text(value: Any) -> str:
    return intern("".join(c for c in str(value or "").casefold() if c.isascii() and c.isalnum()))


@lru_cache(maxsize=1024)
def _intern_value(value: T) -> T:
    return value


def _make_damage_error(path: Path, error: Exception) -> FormatError:
    return FormatError(
        f"expected a readable DICOM file at {path}, but {error}: export the series again"
    )
