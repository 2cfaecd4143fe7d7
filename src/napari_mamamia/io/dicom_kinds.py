"""Which DICOM images can be a phase, and what the others are called when they are left out."""

import re
from dataclasses import dataclass
from typing import Any, Final

from napari_mamamia.io.dicom_elements import optional_number

__all__ = ["GE_TAGS", "SequenceKey", "left_out_as", "sequence_of"]

_WORDS: Final = {
    "computed from others (a subtraction)": {"SUB", "SUBTRACT", "SUBTRACTION"},
    "computed from others (a projection)": {"MIP", "MAX_IP", "MINIP", "PROJECTION IMAGE"},
    "computed from others (reformatted)": {"MPR", "REFORMATTED", "CURVED"},
    "localiser": {"LOCALIZER"},
    "phase image": {"P", "PHASE", "PHASE MAP", "PHASE_MAP", "PHASE_FFE", "VELOCITY MAP"},
    "real part": {"R", "REAL", "R_FFE", "R_SE", "R_IR"},
    "imaginary part": {"I", "IMAGINARY", "I_FFE", "I_SE", "I_IR"},
    "parameter map": {"T1 MAP", "T1_MAP", "T2 MAP", "T2_MAP", "ADC", "B1 MAP", "ADC_UNSPECIFIED"},
}
_ANYWHERE: Final = 4
"""How many of `_WORDS` count at any place of ImageType; the others (P, R, I) from the third on."""
_GE_PARTS: Final = {1: "phase image", 2: "real part", 3: "imaginary part"}
"""Source: GE DICOM conformance statements, (0043,102F): 0 magnitude, 1 phase, 2 real,
3 imaginary."""
GE_CREATOR: Final = (0x0043, 0x0010)
GE_PART: Final = (0x0043, 0x102F)
GE_TAGS: Final = (GE_CREATOR, GE_PART)
_NAMES: Final = (
    ("localiser", r"loc|localizer|localiser|scout|survey|3.?plane|3.?pl|calibration|asset|shim"),
    ("computed from others (a subtraction)", r"sub|subs|subtr\w*|subtraction"),
    ("computed from others (a projection)", r"mip|mips|minip|max.?ip|projection"),
    ("computed from others (reformatted)", r"mpr|reformat\w*"),
)
_COMPILED: Final = tuple(
    (kind, re.compile(rf"(?<![a-z])(?:{words})(?:\d*)(?![a-z])")) for kind, words in _NAMES
)
_CONTRASTS: Final = {
    "WATER": "water", "W": "water", "FAT": "fat", "F": "fat", "IN_PHASE": "in phase",
    "IP": "in phase", "OUT_PHASE": "out of phase", "OP": "out of phase", "OPP_PHASE":
    "out of phase", "OPPOSED_PHASE": "out of phase",
}  # fmt: skip
_SAME_SHARE: Final = 0.1
"""Echo and repetition time of one sequence may differ by this share: scanners adapt them a little
from series to series. Our own choice."""
_SAME_DEGREES: Final = 1.0


@dataclass(frozen=True, slots=True)
class SequenceKey:
    """What tells one sequence from another; "" and None where the file does not say.

    `contrast` is the part of a Dixon acquisition ("water"); times in ms, the angle in degrees.
    """

    technique: tuple[str, ...] = ()
    contrast: str = ""
    echo_time_ms: float | None = None
    repetition_time_ms: float | None = None
    flip_degrees: float | None = None
    b_value: float | None = None

    def is_same(self, other: "SequenceKey") -> bool:
        """Whether two images may be phases of one acquisition; unknown values do not differ."""
        words = (self.technique, self.contrast) == (other.technique, other.contrast)
        return (
            words
            and _close(self.echo_time_ms, other.echo_time_ms)
            and _close(self.repetition_time_ms, other.repetition_time_ms)
            and _near(self.flip_degrees, other.flip_degrees)
            and self.b_value == other.b_value
        )

    @property
    def text(self) -> str:
        """The key in words, such as "GR 3D, TE 1.4 ms, TR 4.1 ms, 12 degrees"."""
        parts = [" ".join(self.technique)] if self.technique else []
        if self.contrast:
            parts.append(self.contrast)
        for name, value, unit in (
            ("TE ", self.echo_time_ms, " ms"),
            ("TR ", self.repetition_time_ms, " ms"),
            ("", self.flip_degrees, " degrees"),
            ("b ", self.b_value, ""),
        ):
            if value is not None:
                parts.append(f"{name}{value:.3g}{unit}")
        return ", ".join(parts) or "unnamed"


def left_out_as(header: Any) -> str:
    """Return why an MR image cannot be a phase, "" where it can.

    ImageType decides first, then GE's own (0043,102F), then the words of SeriesDescription.
    "DERIVED" alone says nothing: some scanners and many archives write it into every image.
    """
    words = _texts(header.get("ImageType"))
    for position, (kind, known) in enumerate(_WORDS.items()):
        places = words if position < _ANYWHERE else words[2:]
        if known.intersection(places):
            return kind
    part = _GE_PARTS.get(_ge_part(header), "")
    if part:
        return part
    component = str(header.get("ComplexImageComponent") or "").upper()
    if component in {"PHASE", "REAL", "IMAGINARY"}:
        return {"PHASE": "phase image", "REAL": "real part"}.get(component, "imaginary part")
    description = str(header.get("SeriesDescription") or "").casefold().replace("_", " ")
    return next((kind for kind, known in _COMPILED if known.search(description)), "")


def sequence_of(header: Any) -> SequenceKey:
    """Return what tells the image's sequence from others."""
    words = _texts(header.get("ImageType"))
    contrast = next((_CONTRASTS[word] for word in words[2:] if word in _CONTRASTS), "")
    technique = [*_texts(header.get("ScanningSequence")), *_texts(header.get("MRAcquisitionType"))]
    if any("FS" in text or "FAT" in text for text in _texts(header.get("ScanOptions"))):
        technique.append("FS")
    return SequenceKey(
        tuple(technique),
        contrast,
        optional_number(header, "EchoTime"),
        optional_number(header, "RepetitionTime"),
        optional_number(header, "FlipAngle"),
        optional_number(header, "DiffusionBValue"),
    )


def _ge_part(header: Any) -> int:
    creator = header.get(GE_CREATOR)
    if "GEMS" not in str(getattr(creator, "value", "")):
        return 0
    return int(optional_number(header, GE_PART) or 0)


def _texts(value: Any) -> list[str]:
    if value is None or value == "":
        return []
    parts = [value] if isinstance(value, str) else list(value)
    return [str(part).upper() for part in parts if str(part).strip()]


def _close(a: float | None, b: float | None) -> bool:
    return a is None or b is None or abs(a - b) <= _SAME_SHARE * max(abs(a), abs(b))


def _near(a: float | None, b: float | None) -> bool:
    return a is None or b is None or abs(a - b) <= _SAME_DEGREES
