"""Frames of an enhanced multi-frame MR file: the same facts as of single-frame ones."""

from types import MappingProxyType
from typing import Any, Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.dicom.elements import (
    date_time_s,
    needed,
    numbers,
    optional_number,
    require_room,
    scaling_of,
    shape_of,
    spacing_of,
    stored_type,
)
from napari_mamamia.io.dicom.kinds import KIND_TAGS, SequenceKey, kind_of, sequence_of
from napari_mamamia.io.dicom.roles import Kind
from napari_mamamia.io.dicom.slices import (
    DURATION,
    FRAMES,
    OFFSET_TIME,
    REFERENCE_TIME,
    Clock,
    Header,
    Slice,
    clocks_of,
)

__all__ = ["frames_of"]

_EMPTY: Final[dict[str, Any]] = {}
_PHILIPS_FRAME: Final = (0x2005, 0x140F)
_SIEMENS_FRAME: Final = (0x0021, 0x11FE)
_SIEMENS_SEQUENCE: Final = (0x0021, 0x1177)
"""Sequences of private elements in each frame, and Siemens' name of the pulse sequence beside
FrameType. Source: dcm2niix, nii_dicom.cpp at 98ecd0be; the last seen in dcm_qa_enh."""


class _Groups:
    """Functional groups of one frame: its own first, then those that all frames share."""

    def __init__(self, shared: Any, own: Any) -> None:
        self._shared, self._own = shared, own

    def group(self, name: str) -> Any:
        """Return the one item of a functional group, an empty mapping where it is missing."""
        for place in (self._own, self._shared):
            items = place.get(name) if place is not None else None
            if items:
                return items[0]
        return _EMPTY

    def philips(self, content: Any) -> Any:
        """Return where Philips' private elements of the frame lie: its own item, or the file."""
        return self._private(_PHILIPS_FRAME) or content

    def private_elements(self, content: Any) -> dict[Any, Any]:
        """Return the private elements that tell kinds, the frame's own before the file's."""
        places = (self._private(_PHILIPS_FRAME), self._private(_SIEMENS_FRAME), content)
        return {tag: _first(places, tag) for tag in KIND_TAGS}

    def _private(self, tag: tuple[int, int]) -> Any:
        items = getattr(self._own.get(tag), "value", None)
        return items[0] if items else _EMPTY


def frames_of(header: Header, content: Any) -> tuple[Slice, ...]:
    """Return a plane for each frame, in the file's order.

    Raises
    ------
    FormatError
        If the number of frames and of their descriptions differ, or a frame lacks its place.
    """
    path = header.file
    per_frame = needed(path, content, "PerFrameFunctionalGroupsSequence")
    n_frames = int(needed(path, content, "NumberOfFrames"))
    if len(per_frame) != n_frames:
        raise FormatError(
            f"expected {n_frames} frames (NumberOfFrames) in {path}, but it describes "
            f"{len(per_frame)}: export the series again"
        )
    shared = content.get("SharedFunctionalGroupsSequence")
    first = shared[0] if shared else None
    of_file = clocks_of(content)
    shape = shape_of(path, content)
    stored = stored_type(path, content)
    n_bytes = n_frames * shape[0] * shape[1] * stored.itemsize
    require_room(path, n_bytes, packed=header.plain_at is None)
    return tuple(
        _frame(header, content, _Groups(first, own), index, (shape, stored, of_file))
        for index, own in enumerate(per_frame)
    )


def _frame(
    header: Header, content: Any, groups: _Groups, index: int, common: tuple[Any, Any, Any]
) -> Slice:
    path = header.file
    shape, stored, of_file = common
    transform = groups.group("PixelValueTransformationSequence")
    measures = groups.group("PixelMeasuresSequence")
    kind, sequence = _kind_and_sequence(content, groups)
    return Slice(
        header=header,
        shape=shape,
        spacing_mm=spacing_of(path, measures),
        orientation=numbers(
            path, groups.group("PlaneOrientationSequence"), "ImageOrientationPatient", 6
        ),
        position_mm=numbers(path, groups.group("PlanePositionSequence"), "ImagePositionPatient", 3),
        stored=stored,
        scaling=scaling_of(transform, groups.philips(content)),
        sequence=sequence,
        kind=kind,
        thickness_mm=optional_number(content, "SpacingBetweenSlices")
        or optional_number(measures, "SpacingBetweenSlices")
        or optional_number(measures, "SliceThickness"),
        frame=index,
        clocks=MappingProxyType(_clocks(groups.group("FrameContentSequence"), of_file, index)),
    )


def _kind_and_sequence(content: Any, groups: _Groups) -> tuple[Kind, SequenceKey]:
    """Return what a frame is, by its own groups: phase images lie beside magnitudes in one file."""
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


def _first(places: tuple[Any, ...], tag: Any) -> Any:
    """Return an element of the first place that has it, None where none does."""
    return next((place.get(tag) for place in places if place.get(tag) is not None), None)


def _siemens_sequence(frame_type: Any) -> str:
    value = frame_type.get(_SIEMENS_SEQUENCE)
    return "" if value is None else str(getattr(value, "value", value))


def _has_transfer(modifier: Any) -> bool:
    """Whether a pulse for magnetisation transfer was played."""
    return str(modifier.get("MagnetizationTransfer") or "NONE").upper() != "NONE"


def _fat_options(modifier: Any) -> str:
    """Return "FAT" where fat is suppressed."""
    told = str(modifier.get("SpectrallySelectedSuppression") or "").upper()
    return "FAT" if "FAT" in told else ""


def _clocks(frame: Any, of_file: dict[str, float], index: int) -> dict[str, float]:
    """Return the frame's clocks; what only the file says counts for all its frames."""
    acquired = date_time_s(frame.get("FrameAcquisitionDateTime"))
    own = {
        Clock.TEMPORAL_POSITION: optional_number(frame, "TemporalPositionIndex"),
        Clock.ACQUISITION_TIME: acquired,
        Clock.TRIGGER_TIME: _seconds(optional_number(frame, "NominalCardiacTriggerDelayTime")),
        Clock.ACQUISITION_NUMBER: optional_number(frame, "FrameAcquisitionNumber"),
        OFFSET_TIME: optional_number(frame, "TemporalPositionTimeOffset"),
        REFERENCE_TIME: date_time_s(frame.get("FrameReferenceDateTime")),
        DURATION: _seconds(optional_number(frame, "FrameAcquisitionDuration")),
        Clock.INSTANCE_NUMBER: of_file.get(Clock.INSTANCE_NUMBER, 0.0) * FRAMES + index,
    }
    known = {str(name): value for name, value in own.items() if value is not None}
    return {**of_file, **known}


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000.0
