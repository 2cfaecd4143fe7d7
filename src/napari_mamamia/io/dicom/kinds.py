"""Determine the kind of a DICOM image and its pulse sequence from the header.

Source: `facts` of rordenlab/dcm2niix at 98ecd0be (nii_dicom.cpp, its notes on vendors) and
rnadkarni2/SlicerBreast_DCEMRI_FTV at f0e9ca57 (names of GE subtractions).
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from napari_mamamia.io.dicom.elements import PrivateElement, optional_number, read_value
from napari_mamamia.io.dicom.roles import Kind, Role

_ANYWHERE: Final = (
    (Role.SUBTRACTION, {"SUB", "SUBTRACT", "SUBTRACTION", "SUBTRACTED"}),
    (Role.PROJECTION, {"MIP", "MAX_IP", "MINIP", "PROJECTION IMAGE", "MIP_SAG", "MIP_COR",
                       "MIP_TRA", "MIP_AX", "MIPT", "THICK_MIP", "MEAN", "AVERAGE"}),
    (Role.REFORMATTED, {"MPR", "REFORMATTED", "CURVED", "CSA MPR", "CSAPARALLEL"}),
    (Role.LOCALISER, {"LOCALIZER"}),
)  # fmt: skip
_FROM_THIRD: Final = (
    (Role.PHASE_IMAGE, {"P", "PHASE", "PHASE MAP", "PHASE_MAP", "PHASE_FFE", "VELOCITY MAP"}),
    (Role.REAL, {"R", "REAL", "R_FFE", "R_SE", "R_IR"}),
    (Role.IMAGINARY, {"I", "IMAGINARY", "I_FFE", "I_SE", "I_IR"}),
    (Role.FIELD_MAP, {"B0", "B0 MAP", "B0_MAP", "B1", "B1 MAP", "B1_MAP", "FIELD_MAP", "FIELDMAP"}),
    (Role.DIFFUSION, {"DIFFUSION", "ADC", "ADC_UNSPECIFIED", "TRACE", "TRACEW", "EADC", "FA",
                      "DIFFUSION_ANISO", "ISOTROPIC", "TENSOR", "COLFA", "EXP"}),
    (Role.MAP, {"T1 MAP", "T1_MAP", "T2 MAP", "T2_MAP", "WI", "WO", "WASHIN", "WASH_IN", "WASHOUT",
                "WASH_OUT", "PEI", "TTP", "AUC", "IAUC", "KTRANS", "KEP", "VE", "VP", "SER",
                "SIGENH", "MAXIMUM", "MINIMUM", "MEDIAN", "STD_DEVIATION", "ADDITION", "DIVISION",
                "MULTIPLICATION", "QUANTITY"}),
    (Role.WATER, {"WATER", "W"}),
    (Role.FAT, {"FAT", "F"}),
    (Role.IN_PHASE, {"IN_PHASE", "IP"}),
    (Role.OPPOSED, {"OUT_PHASE", "OP", "OPP_PHASE", "OPPOSED_PHASE"}),
    (Role.MOTION_CORRECTED, {"MOCO"}),
)  # fmt: skip
_PARTS: Final = {"P": Role.PHASE_IMAGE, "R": Role.REAL, "I": Role.IMAGINARY}
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
"""Private elements that help to determine the kind of an image.

Sources: rordenlab/dcm2niix, nii_dicom.cpp at 98ecd0be; GE's DICOM conformance statements for
(0043,102F) and (0019,109C); for (2005,1011), MRImageTypeMR, several readers of Philips files, such
as bryanfw/fwbsrc, philipsDICOMentries.m, which use the element as (M, P, R, I).
"""
_GE_PARTS: Final = {1: Role.PHASE_IMAGE, 2: Role.REAL, 3: Role.IMAGINARY}
"""Components of the complex signal by GE's code; 0 is the magnitude.

Source: GE DICOM conformance statements, (0043,102F).
"""
_COMPONENTS: Final = {
    "PHASE": Role.PHASE_IMAGE, "REAL": Role.REAL, "IMAGINARY": Role.IMAGINARY,
    "MIXED": Role.COMPONENT,
}  # fmt: skip
_PHILIPS_PARTS: Final = {"P": Role.PHASE_IMAGE, "R": Role.REAL, "I": Role.IMAGINARY}
_GE_LARGE_B: Final = 1e9
"""GE adds multiples of this number to the b value. Source: dcm2niix, GE/README.md."""
_LONG_ECHO_MS: Final = 40.0
_LONG_REPETITION_MS: Final = 1000.0
"""Repetition time in ms that no T1-weighted gradient echo exceeds (our choice)."""
_CONTRASTS: Final = {
    Role.WATER: "water", Role.FAT: "fat", Role.IN_PHASE: "in phase", Role.OPPOSED: "out of phase",
}  # fmt: skip
_SAME_SHARE: Final = 0.1
"""Largest relative difference of echo or repetition times within one pulse sequence.

Scanners adapt these times a little from series to series. The value is our choice.
"""
_SAME_DEGREES: Final = 1.0


_Physical: TypeAlias = tuple[
    tuple[str, ...], str, float | None, float | None, float | None, float | None
]
"""Physical parameters of a sequence.

The tuple holds ScanningSequence, other evidence of echo-planar imaging, echo train length, echo
time, repetition time and b value.
"""


_PART: Final = re.compile(r"(?:[A-Z0-9]+_)*([PRI])(?:_[A-Z0-9]+)*")
"""Pattern for words that name a component of the complex signal, such as P_TSE or SW_P_FFE."""
_ENHANCEMENT: Final = re.compile(r"(?:PE|SER|WI|WO)_?\d+")

_BEFORE, _AFTER = r"(?<![a-z])", r"\d*(?![a-z])"
_DESCRIPTIONS: Final = (
    (Role.LOCALISER,
     r"loc|localizer|localiser|locator|scout|aahscout|survey|3.?plane|3.?pl|calibration|asset.?cal\w*|shim"),
    (Role.FIELD_MAP, r"field.?map\w*|gre.?field\w*|b0.?map\w*|b1.?map\w*"),
    (Role.SUBTRACTION,
     r"subs?|subtr\w*|subtrakt\w*|soustr\w*|sottraz\w*|resta|restas|sustrac\w*|substrac\w*|dif|difs"
     r"|diff?eren[cz]\w*|s\d+ ?- ?s?\d+|ph\d+ ?- ?(?:ph)?\d+|aftrek\w*|verschil\w*|odejm\w*"
     r"|odjec\w*|roznic\w*|odect\w*|odecet\w*|rozdil\w*|kivon\w*|kulonbseg\w*|c[iı]kart?ma\w*"
     r"|vahenn\w*|erotus\w*|scader\w*|вычит\w*|субтр\w*|разн[ио]\w*|αφαιρ\w*"),
    (Role.PROJECTION, r"mips?|minip|max.?ip|projection|mipt|mip.?time|mean|average"),
    (Role.REFORMATTED, r"mpr|reformat\w*"),
    (Role.DIFFUSION, r"dwi\w*|dti\w*|diff\w*|adc|eadc|tracew?|resolve|ep.?b\d+t?|b.?\d{3,4}t?|"
                     r"dwssfse"),
    (Role.EPI, r"epi|fmri|bold"),
    (Role.MAP, r"wash.?in|wash.?out|pei|ttp|time.?to.?peak|i?auc\d*|ktrans|kep|t1.?map\w*|"
               r"t2.?map\w*|perc\w*.?enh\w*|signal.?enh\w*|max.?slope|perfusion.?map\w*"),
    (Role.MOTION_CORRECTED, r"moco|motion.?corr\w*"),
)  # fmt: skip
_COMPILED: Final = tuple(
    (role, re.compile(rf"{_BEFORE}(?:{words}){_AFTER}")) for role, words in _DESCRIPTIONS
)
_ASIAN: Final = tuple(
    (role, unicodedata.normalize("NFKD", word))
    for role, words in (
        (Role.SUBTRACTION, "減算 差分 サブトラクション 减影 減影 剪影 减法 減法 감산 차감 감영"),
        (Role.DIFFUSION, "拡散 扩散 擴散 弥散 彌散 확산"),
    )
    for word in words.split()
)
"""Words for kinds of images in languages that do not separate words by spaces."""
_GE_DIFFERENCE: Final = re.compile(r"\)\s*-\s*\(")
_DERIVED_ONLY: Final = re.compile(rf"{_BEFORE}(?:ser|pe\d?|ve|vp|wi|wo){_AFTER}")
"""Abbreviations that are too short to prove anything in the name of an original image."""
_IS_DIXON: Final = re.compile(r"dixon|mdix|flex|ideal|(?<![a-z])dix")
_DIXON: Final = tuple(
    (role, re.compile(rf"^(?:{first}) ?:"), re.compile(rf"(?<![a-z])(?:{last})$"))
    for role, first, last in (
        (Role.WATER, "water", "w|water"),
        (Role.FAT, "fat", "f|fat"),
        (Role.IN_PHASE, "in.?phase", "in|ip|in.?phase"),
        (Role.OPPOSED, "out.?phase|opp.?phase", "opp|op|out|out.?phase|opp.?phase"),
    )
)
_PROCESSING: Final = {
    "MOCO": "moco", "FILTERED": "filtered", "FIL": "filtered", "FILTER": "filtered",
    "NORM": "norm", "DIS2D": "distortion-corrected", "DIS3D": "distortion-corrected",
    "SMOOTHED": "filtered",
}  # fmt: skip
_PROCESSED: Final = (
    ("moco", re.compile(rf"{_BEFORE}(?:moco|motion.?corr\w*){_AFTER}")),
    ("filtered", re.compile(rf"{_BEFORE}(?:filtered|filter|fil|smooth\w*|denoised?){_AFTER}")),
    ("norm", re.compile(rf"{_BEFORE}norm\w*{_AFTER}")),
)
_SEQUENCES: Final = (
    (Role.DIFFUSION, re.compile(r"ep_b\d|dwssfse|epi2?_?dwi|resolve|\bdwi")),
    (Role.EPI, re.compile(r"^\*?epfid|^\*?epse|(?<![a-z])epi|epibold|feepi")),
    (Role.ECHO_TRAIN, re.compile(r"tse|haste|^\*?h\d?_|spc|spcir|fse|ssfse|frfse|cube|tir\d|tirm")),
    (Role.LOCALISER, re.compile(r"^\*?fl2d1$|aahscout")),
)


def role_by_image_type(words: Sequence[str]) -> tuple[Role, str] | None:
    """Return the role, and the word that shows it, from ImageType or FrameType; or None.

    The text is in upper case. "DERIVED" alone is no evidence, because some scanners and many
    archives write this word into every image.
    """
    for role, role_words in _ANYWHERE:
        matches = role_words.intersection(words)
        if matches:
            return role, min(matches)
    for role, role_words in _FROM_THIRD:
        matches = role_words.intersection(words[2:])
        if matches:
            return role, min(matches)
    part = next(filter(None, map(_PART.fullmatch, words[2:])), None)
    if part is not None:
        return _PARTS[part[1]], part[0]
    enhancement = next((word for word in words[2:] if _ENHANCEMENT.fullmatch(word)), "")
    return (Role.MAP, enhancement) if enhancement else None


def role_by_description(text: str, is_derived: bool) -> tuple[Role, str] | None:
    """Return the role, and the word that shows it, from SeriesDescription; or None."""
    folded = _fold_text(text)
    asian = next(((role, word) for role, word in _ASIAN if word in folded), None)
    if asian is not None:
        return asian[0], unicodedata.normalize("NFC", asian[1])
    if _is_ge_difference(folded):
        return Role.SUBTRACTION, "(...)-(...)"
    for role, pattern in _COMPILED:
        match = pattern.search(folded)
        if match:
            return role, match.group()
    short = _DERIVED_ONLY.search(folded) if is_derived else None
    if short:
        return Role.MAP, short.group()
    return _dixon_part(folded)


def role_by_sequence_name(name: str) -> tuple[Role, str] | None:
    """Return the role, and the word that shows it, from a vendor's pulse sequence name; or None."""
    folded = name.casefold()
    for role, pattern in _SEQUENCES:
        match = pattern.search(folded)
        if match:
            return role, match.group()
    return None


def processing_words(image_type: Sequence[str], description: str) -> frozenset[str]:
    """Return the processing steps after the scan that ImageType and SeriesDescription name."""
    steps = {_PROCESSING[word] for word in image_type[2:] if word in _PROCESSING}
    if image_type and image_type[0] == "DERIVED":
        steps.add("derived")
    folded = _fold_text(description)
    steps |= {name for name, pattern in _PROCESSED if pattern.search(folded)}
    return frozenset(steps)


def _fold_text(text: str) -> str:
    apart = unicodedata.normalize("NFKD", text.casefold().replace("_", " ").strip())
    latin = "".join(c for c in apart if not "\u0300" <= c <= "\u036f")
    # No Unicode normal form decomposes these letters.
    return latin.replace("ł", "l").replace("ø", "o")


def _dixon_part(text: str) -> tuple[Role, str] | None:
    for role, first, last in _DIXON:
        match = first.search(text) or (last.search(text) if _IS_DIXON.search(text) else None)
        if match:
            return role, match.group()
    return None


def _is_ge_difference(text: str) -> bool:
    n_numbers = len(re.findall(r"\d+", text))
    return bool(_GE_DIFFERENCE.search(text)) and n_numbers >= 6 and text.count("/") >= 4


@dataclass(frozen=True, slots=True)
class SequenceKey:
    """Parameters that distinguish pulse sequences; unknown parameters are "" or None.

    `contrast` is the image type of a Dixon acquisition, such as "water". Times are in ms, and the
    flip angle is in degrees. `echo_number` is the number of the echo if the echo time is unknown.
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
        """Return whether two images can be phases of one acquisition; unknown values match."""
        return self.is_same_but_angle(other) and _is_near(self.flip_degrees, other.flip_degrees)

    def is_same_but_angle(self, other: "SequenceKey") -> bool:
        """Return whether two images differ only in the flip angle, as in T1 mapping."""
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
        """Return the differing parameters as (name, own value, other value)."""
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
        """The parameters as a string, such as "GR 3D, TE 1.4 ms, TR 4.1 ms, 12 degrees"."""
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
    """Return the kind of an image, determined from its header.

    Coded elements take precedence over parameters, and parameters over words. A word can show that
    an image is not a phase, but a missing word proves nothing.
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
    """Return the parameters that distinguish an image's pulse sequence from others."""
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
    """Return the diffusion weighting in s/mm2, from the standard element or a vendor's element."""
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
    if str(header.get("EchoPlanarPulseSequence") or "").upper() == "YES":
        return "EchoPlanarPulseSequence YES"
    factor = optional_number(header, PHILIPS_EPI_FACTOR) or 0
    if factor > 1:
        return f"EPI factor {factor:g} in (2001,1013)"
    return ""


def _siemens_words(header: Any) -> list[str]:
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
