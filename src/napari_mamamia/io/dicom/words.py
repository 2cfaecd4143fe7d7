"""Words of DICOM headers that name the kind of an image: ImageType, sequence names, descriptions.

Source: `facts` of rordenlab/dcm2niix at 98ecd0be (nii_dicom.cpp, its notes on vendors) and
rnadkarni2/SlicerBreast_DCEMRI_FTV at f0e9ca57 (names of GE subtractions).
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from napari_mamamia.io.dicom.roles import Role

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
_PART: Final = re.compile(r"(?:[A-Z0-9]+_)*([PRI])(?:_[A-Z0-9]+)*")
"""Pattern for a part of the complex signal within a word, such as P_TSE or SW_P_FFE."""
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
"""Words of languages without spaces between words."""
_GE_DIFFERENCE: Final = re.compile(r"\)\s*-\s*\(")
_DERIVED_ONLY: Final = re.compile(rf"{_BEFORE}(?:ser|pe\d?|ve|vp|wi|wo){_AFTER}")
"""Words that are too short to be meaningful in the name of an original image."""
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
    """Return role and word from ImageType or FrameType in upper case, or None.

    "DERIVED" alone shows nothing: some scanners and many archives write it into every image.
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
    """Return role and word from SeriesDescription, or None."""
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
    """Return role and word from a vendor's name of the pulse sequence, or None."""
    folded = name.casefold()
    for role, pattern in _SEQUENCES:
        match = pattern.search(folded)
        if match:
            return role, match.group()
    return None


def processing_words(image_type: Sequence[str], description: str) -> frozenset[str]:
    """Return the processing steps of an image after the scan, from ImageType and description."""
    steps = {_PROCESSING[word] for word in image_type[2:] if word in _PROCESSING}
    if image_type and image_type[0] == "DERIVED":
        steps.add("derived")
    folded = _fold_text(description)
    steps |= {name for name, pattern in _PROCESSED if pattern.search(folded)}
    return frozenset(steps)


def _fold_text(text: str) -> str:
    """Return a text in lower case without accents, for searching words."""
    apart = unicodedata.normalize("NFKD", text.casefold().replace("_", " ").strip())
    latin = "".join(c for c in apart if not "\u0300" <= c <= "\u036f")
    # Letters that no Unicode normal form decomposes.
    return latin.replace("ł", "l").replace("ø", "o")


def _dixon_part(text: str) -> tuple[Role, str] | None:
    """Return the part of a Dixon acquisition from the first or last word of its name, or None."""
    for role, first, last in _DIXON:
        match = first.search(text) or (last.search(text) if _IS_DIXON.search(text) else None)
        if match:
            return role, match.group()
    return None


def _is_ge_difference(text: str) -> bool:
    """Return whether a name denotes a GE subtraction, such as ``(1/2/3)-(4/5/6)``."""
    n_numbers = len(re.findall(r"\d+", text))
    return bool(_GE_DIFFERENCE.search(text)) and n_numbers >= 6 and text.count("/") >= 4
