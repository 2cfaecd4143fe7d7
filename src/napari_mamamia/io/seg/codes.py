"""DICOM codes of a segment: category, type, region and method of creation."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from napari_mamamia.core.errors import CaseError, MissingExtraError

AlgorithmType: TypeAlias = Literal["AUTOMATIC", "SEMIAUTOMATIC", "MANUAL"]

Code: TypeAlias = tuple[str, str, str]

_ABNORMAL: Final[Code] = ("49755003", "SCT", "Morphologically Abnormal Structure")
_ANATOMY: Final[Code] = ("91723000", "SCT", "Anatomical Structure")
_BREAST: Final[Code] = ("76752008", "SCT", "Breast")
_NEOPLASM: Final[Code] = ("108369006", "SCT", "Neoplasm")
_FAMILIES: Final[Mapping[AlgorithmType, Code]] = MappingProxyType(
    {
        "AUTOMATIC": ("123110", "DCM", "Artificial Intelligence"),
        "SEMIAUTOMATIC": ("123109", "DCM", "Manual Processing"),
    }
)

SEGMENT_CODES: Final[Mapping[str, tuple[Code, Code]]] = MappingProxyType(
    {
        "tumour": (_ABNORMAL, _NEOPLASM),
        "tumor": (_ABNORMAL, _NEOPLASM),
        "lesion": (_ABNORMAL, ("52988006", "SCT", "Lesion")),
        "necrosis": (_ABNORMAL, ("6574001", "SCT", "Necrosis")),
        "oedema": (_ABNORMAL, ("79654002", "SCT", "Edema")),
        "cyst": (_ABNORMAL, ("367643001", "SCT", "Cyst")),
        "breast": (_ANATOMY, _BREAST),
        "lymph node": (_ANATOMY, ("59441001", "SCT", "Lymph Node")),
        "vessel": (_ANATOMY, ("59820001", "SCT", "Blood Vessel")),
    }
)
"""Category and type of a segment, by the name of its label.

Source: DICOM PS3.16 (2024), CID 7150, 7159, 7162, as listed in pydicom 3.0.
"""


@dataclass(frozen=True, slots=True)
class SegmentMeaning:
    """How a mask was created, in DICOM terms.

    `name` and `version` are those of the algorithm or reader.
    """

    algorithm: AlgorithmType
    name: str
    version: str


def segment_description(hd: Any, number: int, name: str, meaning: SegmentMeaning) -> Any:
    """Return highdicom's description of a segment; `hd` is the highdicom package.

    Raises
    ------
    CaseError
        If the label's name has no code.
    """
    codes = SEGMENT_CODES.get(name.casefold())
    if codes is None:
        raise CaseError(
            f"expected the label name to have a DICOM code ({', '.join(SEGMENT_CODES)}), but "
            f"found {name!r}: rename the label in the label map, or leave out the format dicom-seg"
        )
    concept = hd.sr.CodedConcept
    category, kind = (concept(*code) for code in codes)
    algorithm = None
    if meaning.algorithm in _FAMILIES:
        algorithm = hd.AlgorithmIdentificationSequence(
            name=meaning.name[:64],
            family=concept(*_FAMILIES[meaning.algorithm]),
            version=meaning.version or "unknown",
        )
    regions = None if codes[1] == _BREAST else [concept(*_BREAST)]
    return hd.seg.SegmentDescription(
        segment_number=number,
        segment_label=name,
        segmented_property_category=category,
        segmented_property_type=kind,
        algorithm_type=meaning.algorithm,
        algorithm_identification=algorithm,
        tracking_uid=hd.UID(),
        tracking_id=f"{name} {number}",
        anatomic_regions=regions,
    )


def load_highdicom() -> Any:
    """Return the highdicom package with its submodules for segmentations.

    Raises
    ------
    MissingExtraError
        If highdicom is not installed.
    """
    try:
        import highdicom as hd
        import highdicom.seg
        import highdicom.sr
    except ImportError as error:
        raise MissingExtraError("highdicom", "dicom") from error
    return hd
