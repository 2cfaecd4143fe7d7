"""Copy a source image without patient data, for a pseudonymous DICOM SEG."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from napari_mamamia.io.dicom.facts import remapped_uid

_UIDS: Final = ("StudyInstanceUID", "SeriesInstanceUID", "SOPInstanceUID", "FrameOfReferenceUID")
_KEPT: Final = (
    "SOPClassUID", "Modality", "ImageType", "SeriesNumber", "InstanceNumber", "NumberOfFrames",
    "Rows", "Columns", "SamplesPerPixel", "PixelSpacing", "SliceThickness", "SpacingBetweenSlices",
    "ImageOrientationPatient", "ImagePositionPatient",
    "LossyImageCompression", "LossyImageCompressionRatio", "LossyImageCompressionMethod",
)  # fmt: skip
"""The allow-list: elements of source images that a segmentation needs."""
_GROUPS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "PixelMeasuresSequence": ("PixelSpacing", "SliceThickness", "SpacingBetweenSlices"),
        "PlaneOrientationSequence": ("ImageOrientationPatient",),
        "PlanePositionSequence": ("ImagePositionPatient",),
    }
)
_EMPTY: Final = (
    "PatientBirthDate", "PatientSex", "AccessionNumber", "StudyID", "StudyDate", "StudyTime",
    "ReferringPhysicianName",
)  # fmt: skip
"""Elements that must exist in a segmentation but may be empty.

Source: DICOM PS3.3, C.7.1.1 and C.7.2.1, type 2.
"""


@dataclass(frozen=True, slots=True)
class Pseudonym:
    """The case id that replaces a patient's name and number, and the user's secret for UIDs."""

    case_id: str
    secret: bytes = field(repr=False)


def without_person(image: Any, pseudonym: Pseudonym) -> Any:
    """Return a new data set with the position of `image`, and the case id as the patient.

    No other element of `image` is copied, including private elements and elements inside sequences.
    """
    from pydicom.dataset import Dataset, FileMetaDataset

    dataset: Any = Dataset()
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = image.file_meta.TransferSyntaxUID
    _copy_elements(image, dataset, _KEPT)
    for name in _UIDS:
        if image.get(name):
            setattr(dataset, name, remapped_uid(str(image.get(name)), pseudonym.secret))
    dataset.PatientID = dataset.PatientName = pseudonym.case_id
    for name in _EMPTY:
        setattr(dataset, name, "")
    for name in ("SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence"):
        if name in image:
            setattr(dataset, name, [_place_of(group) for group in image.get(name)])
    return dataset


def mark_impersonal(made: Any) -> None:
    """Record in a DICOM SEG that the patient's identity was removed, and by which method."""
    made.PatientIdentityRemoved = "YES"
    made.DeidentificationMethod = "napari-mamamia: allow-list, remapped UIDs"


def _place_of(group: Any) -> Any:
    from pydicom.dataset import Dataset

    dataset = Dataset()
    for name, names in _GROUPS.items():
        if group.get(name):
            item = Dataset()
            _copy_elements(group.get(name)[0], item, names)
            setattr(dataset, name, [item])
    return dataset


def _copy_elements(source: Any, made: Any, names: Iterable[str]) -> None:
    for name in names:
        if name in source:
            setattr(made, name, source.get(name))
