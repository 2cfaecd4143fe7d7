"""Derive the kind of a DICOM image and its pulse sequence from the header."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from napari_mamamia.io.dicom.elements import optional_number
from napari_mamamia.io.dicom.private import PrivateElement, read_value
from napari_mamamia.io.dicom.roles import Kind, Role
from napari_mamamia.io.dicom.words import (
    processing_words,
    role_by_description,
    role_by_image_type,
    role_by_sequence_name,
)

GE_PART: Final = PrivateElement(0x0043, "gems_parm_01", 0x2F, "SS")
GE_B_VALUE: Final = PrivateElement(0x0043, "gems_parm_01", 0x39, "IS")
GE_SEQUENCE: Final = PrivateElement(0x0019, "gems_acqu_01", 0x9C, "LO")
SIEMENS_B_VALUE: Final = PrivateElement(0x0019, "siemens mr header", 0x0C, "IS")
PHILIPS_B_VALUE: Final = PrivateElement(0x2001, "philips imaging dd 001", 0x03, "FL")
PHILIPS_EPI_FACTOR: Final = PrivateElement(0x2001, "philips imaging dd 001", 0x13, "SL")
PHILIPS_IMAGE_TYPE: Final = PrivateElement(0x2005, "philips mr imaging dd 001", 0x11, "CS")
SIEMENS_TEXT: Final = PrivateElement(0x0021, "siemens mr sdi 02", 0x75, "CS")
KIND_ELEMENTS: Final = (
    GE_PART, GE_B_VALUE, GE_SEQUENCE, SIEMENS_B_VALUE, PHILIPS_B_VALUE, PHILIPS_EPI_FACTOR,
    PHILIPS_IMAGE_TYPE, SIEMENS_TEXT,
)  # fmt: skip
"""Private elements. Source: rordenlab/dcm2niix, nii_dicom.cpp at 98ecd0be; for (0043,102F) and
(0019,109C) GE's DICOM conformance statements; for (2005,1011), MRImageTypeMR, several readers of
Philips files, which use it as (M, P, R, I), such as bryanfw/fwbsrc, philipsDICOMentries.m.
"""
_GE_PARTS: Final = {1: Role.PHASE_IMAGE, 2: Role.REAL, 3: Role.IMAGINARY}
"""Source: GE DICOM conformance statements, (0043,102F): 0 magnitude, 1 phase, 2 real,
3 imaginary."""
_COMPONENTS: Final = {
    "PHASE": Role.PHASE_IMAGE, "REAL": Role.REAL, "IMAGINARY": Role.IMAGINARY,
    "MIXED": Role.COMPONENT,
}  # fmt: skip
_PHILIPS_PARTS: Final = {"P": Role.PHASE_IMAGE, "R": Role.REAL, "I": Role.IMAGINARY}
_GE_LARGE_B: Final = 1e9
"""Number of which GE adds multiples to the b value. Source: dcm2niix, GE/README.md."""
_LONG_ECHO_MS: Final = 40.0
_LONG_REPETITION_MS: Final = 1000.0
"""Repetition time in ms above that of any T1-weighted gradient echo (our choice)."""
_CONTRASTS: Final = {
    Role.WATER: "water", Role.FAT: "fat", Role.IN_PHASE: "in phase", Role.OPPOSED: "out of phase",
}  # fmt: skip
_SAME_SHARE: Final = 0.1
"""Relative difference of echo or repetition times that is allowed within one sequence.

Scanners adapt these times a little from series to series. Our own choice.
"""
_SAME_DEGREES: Final = 1.0


_Physical: TypeAlias = tuple[
    tuple[str, ...], str, float | None, float | None, float | None, float | None
]
"""Physical parameters of a sequence.

In order: ScanningSequence, another sign of echo-planar imaging, echo train length, echo time,
repetition time, b value.
"""


@dataclass(frozen=True, slots=True)
class SequenceKey:
    """The parameters that distinguish pulse sequences; "" and None where the file lacks them.

    `contrast` is the part of a Dixon acquisition ("water"); times in ms, the angle in degrees;
    `echo_number` numbers the echo where only the number is known, not the echo time.
    """

    technique: tuple[str, ...] = ()
    contrast: str = ""
    echo_time_ms: float | None = None
    repetition_time_ms: float | None = None
    flip_degrees: float | None = None
    b_value: float | None = None
    inversion_time_ms: float | None = None
    echo_number: int | None = None

    def is_same(self, other: "SequenceKey") -> bool:
        """Return whether two images may be phases of one acquisition; unknown values match."""
        return self.is_same_but_angle(other) and _is_near(self.flip_degrees, other.flip_degrees)

    def is_same_but_angle(self, other: "SequenceKey") -> bool:
        """Return whether two images differ only in the flip angle, as for a T1 map."""
        words = (self.technique, self.contrast) == (other.technique, other.contrast)
        return (
            words
            and (self.echo_number or other.echo_number) == (other.echo_number or self.echo_number)
            and _is_close(self.echo_time_ms, other.echo_time_ms)
            and _is_close(self.repetition_time_ms, other.repetition_time_ms)
            and self.b_value == other.b_value
            and _is_close(self.inversion_time_ms, other.inversion_time_ms)
        )

    def differences(self, other: "SequenceKey") -> list[tuple[str, str, str]]:
        """Return the differences as (name, own value, other value)."""
        rows = [
            (what, mine_text or "none", two or "none")
            for what, mine_text, two in (
                ("sequence", " ".join(self.technique), " ".join(other.technique)),
                ("part", self.contrast, other.contrast),
            )
            if mine_text != two
        ]
        for what, mine, theirs, unit, is_near in (
            ("TE", self.echo_time_ms, other.echo_time_ms, " ms", _is_close),
            ("TR", self.repetition_time_ms, other.repetition_time_ms, " ms", _is_close),
            ("flip angle", self.flip_degrees, other.flip_degrees, " degrees", _is_near),
            ("b", self.b_value, other.b_value, "", lambda p, q: p == q),
            ("TI", self.inversion_time_ms, other.inversion_time_ms, " ms", _is_close),
        ):
            if not is_near(mine, theirs):
                mine_text, two = ("none" if v is None else f"{v:.4g}{unit}" for v in (mine, theirs))
                rows.append((what, mine_text, two))
        if self.echo_number and other.echo_number and self.echo_number != other.echo_number:
            rows.append(("echo", f"{self.echo_number}", f"{other.echo_number}"))
        return rows

    @property
    def text(self) -> str:
        """A text of the parameters, such as "GR 3D, TE 1.4 ms, TR 4.1 ms, 12 degrees"."""
        parts = [" ".join(self.technique)] if self.technique else []
        if self.contrast:
            parts.append(self.contrast)
        for name, value, unit in (
            ("TE ", self.echo_time_ms, " ms"),
            ("TR ", self.repetition_time_ms, " ms"),
            ("", self.flip_degrees, " degrees"),
            ("b ", self.b_value, ""),
            ("TI ", self.inversion_time_ms, " ms"),
        ):
            if value is not None:
                parts.append(f"{name}{value:.3g}{unit}")
        return ", ".join(parts) or "unnamed"


def kind_of(header: Any) -> Kind:
    """Return the kind of an image from its header.

    Coded elements count first, then parameters, then words. A word can show that an image is not a
    phase, but a missing word proves nothing.
    """
    words = (*_list_texts(header.get("ImageType")), *_siemens_words(header))
    description = str(header.get("SeriesDescription") or "")
    coded = _coded_part(header)
    if coded is not None:
        return Kind(*coded, processing_words(words, description))
    names = (
        str(header.get("SequenceName") or ""),
        _raw_text(header, GE_SEQUENCE).rpartition("/")[2],
    )
    physical = (
        tuple(_list_texts(header.get("ScanningSequence"))),
        _planar_evidence(header),
        optional_number(header, "EchoTrainLength"),
        optional_number(header, "EchoTime"),
        optional_number(header, "RepetitionTime"),
        b_value_of(header),
    )
    return _find_kind(words, description, names, physical)


def sequence_of(header: Any, kind: Kind) -> SequenceKey:
    """Return the parameters that distinguish the image's sequence from others."""
    technique = [
        *_list_texts(header.get("ScanningSequence")),
        *_list_texts(header.get("MRAcquisitionType")),
    ]
    if any("FS" in text or "FAT" in text for text in _list_texts(header.get("ScanOptions"))):
        technique.append("FS")
    if "MTC" in _list_texts(header.get("SequenceVariant")):
        technique.append("MTC")
    return SequenceKey(
        tuple(technique),
        _CONTRASTS.get(kind.role, ""),
        optional_number(header, "EchoTime"),
        optional_number(header, "RepetitionTime"),
        optional_number(header, "FlipAngle"),
        b_value_of(header),
        optional_number(header, "InversionTime") or None,
    )


def b_value_of(header: Any) -> float | None:
    """Return the diffusion weighting in s/mm2, by the standard's or a vendor's element."""
    value = optional_number(header, "DiffusionBValue")
    if value is not None:
        return value
    value = optional_number(header, SIEMENS_B_VALUE)
    if value is not None:
        return value
    if "EP" in _list_texts(header.get("ScanningSequence")):
        value = optional_number(header, GE_B_VALUE)
        if value is not None:
            return value % _GE_LARGE_B if value else None
    return optional_number(header, PHILIPS_B_VALUE) or None


@lru_cache(maxsize=4096)
def _find_kind(
    words: tuple[str, ...],
    description: str,
    names: tuple[str, ...],
    physical: _Physical,
) -> Kind:
    processing = processing_words(words, description)
    by_type = role_by_image_type(words)
    weak = {Role.MOTION_CORRECTED, Role.WATER, Role.FAT, Role.IN_PHASE, Role.OPPOSED}
    if by_type is not None and by_type[0] not in weak:
        return Kind(by_type[0], f"{by_type[1]} in ImageType", processing)
    by_name = role_by_description(description, "DERIVED" in words)
    if by_name is not None and by_name[0] is Role.DIFFUSION:
        return Kind(by_name[0], f"{by_name[1]!r} in SeriesDescription", processing)
    by_physics = _by_physics(physical, names)
    if by_physics is not None:
        return Kind(*by_physics, processing)
    if by_name is not None and by_name[0] not in weak:
        evidence = f"{by_name[1]!r} in SeriesDescription"
        return Kind(by_name[0], evidence, processing, by_name=True)
    if by_type is not None:
        return Kind(by_type[0], f"{by_type[1]} in ImageType", processing)
    if by_name is not None:
        return Kind(by_name[0], f"{by_name[1]!r} in SeriesDescription", processing)
    technique = " ".join(physical[0])
    return Kind(Role.PHASE, f"{technique} in ScanningSequence" if technique else "", processing)


def _by_physics(
    physical: _Physical,
    names: tuple[str, ...],
) -> tuple[Role, str] | None:
    """Return the role that scan parameters prove: diffusion, echo-planar or echo train."""
    techniques, planar, train, echo_ms, repetition_ms, b_value = physical
    if b_value:
        return Role.DIFFUSION, f"b value {b_value:g}"
    named = next((match for name in names if (match := role_by_sequence_name(name))), None)
    sequence_role = None if named is None else (named[0], f"{named[1]!r} in the sequence's name")
    if sequence_role is not None and sequence_role[0] is not Role.LOCALISER:
        return sequence_role
    is_train = bool(train and train > 1) and not {"GR", "GRADIENT"}.intersection(techniques)
    tests = (
        ("EP" in techniques, Role.EPI, "EP in ScanningSequence"),
        (bool(planar), Role.EPI, planar),
        (bool({"SE", "SPIN"}.intersection(techniques)), Role.ECHO_TRAIN,
         "spin echo in ScanningSequence"),
        ((echo_ms or 0) > _LONG_ECHO_MS, Role.ECHO_TRAIN, f"EchoTime {echo_ms} ms"),
        ((repetition_ms or 0) >= _LONG_REPETITION_MS, Role.ECHO_TRAIN,
         f"RepetitionTime {repetition_ms} ms"),
        (is_train, Role.ECHO_TRAIN, f"EchoTrainLength {train}"),
    )  # fmt: skip
    return next(((role, evidence) for holds, role, evidence in tests if holds), sequence_role)


def _coded_part(header: Any) -> tuple[Role, str] | None:
    """Return the part of the complex signal from a coded element, or None for the magnitude."""
    component = str(header.get("ComplexImageComponent") or "").upper()
    if component in _COMPONENTS:
        return _COMPONENTS[component], f"ComplexImageComponent {component}"
    part = int(optional_number(header, GE_PART) or 0)
    if part in _GE_PARTS:
        return _GE_PARTS[part], f"(0043,102F) is {part}"
    image_type = _raw_text(header, PHILIPS_IMAGE_TYPE).upper()
    if image_type in _PHILIPS_PARTS:
        return _PHILIPS_PARTS[image_type], f"(2005,1011) is {image_type}"
    return None


def _planar_evidence(header: Any) -> str:
    """Return evidence for echo-planar imaging apart from ScanningSequence, or ""."""
    if str(header.get("EchoPlanarPulseSequence") or "").upper() == "YES":
        return "EchoPlanarPulseSequence YES"
    factor = optional_number(header, PHILIPS_EPI_FACTOR) or 0
    if factor > 1:
        return f"EPI factor {factor:g} in (2001,1013)"
    return ""


def _siemens_words(header: Any) -> list[str]:
    """Return the words of ImageTypeText, where newer Siemens software writes MOCO and the like."""
    return _list_texts(read_value(header, SIEMENS_TEXT))


def _raw_text(header: Any, name: Any) -> str:
    value = read_value(header, name)
    return "" if value is None or isinstance(value, bytes) else str(value).strip()


def _list_texts(value: Any) -> list[str]:
    if value is None or value == "" or isinstance(value, bytes):
        return []
    parts = [value] if isinstance(value, str) else list(value)
    return [str(part).upper() for part in parts if str(part).strip()]


def _is_close(a: float | None, b: float | None) -> bool:
    return a is None or b is None or abs(a - b) <= _SAME_SHARE * max(abs(a), abs(b))


def _is_near(a: float | None, b: float | None) -> bool:
    return a is None or b is None or abs(a - b) <= _SAME_DEGREES
