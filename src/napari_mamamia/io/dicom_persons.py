"""The elements of a DICOM study that tell whose it is."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.io.dicom_elements import DAMAGED, open_dicom
from napari_mamamia.io.dicom_headers import is_dicom_file
from napari_mamamia.io.foreign import reads
from napari_mamamia.io.identifiers import Identifier, folded, signs_of

__all__ = [
    "Persons",
    "find_identifiers",
    "is_identity_removed",
    "kind_of",
    "names_nobody",
    "telling",
]

_GROUP: Final = 0x0010
_IDS: Final = frozenset(
    {
        "AccessionNumber", "StudyID", "StationName", "DeviceSerialNumber", "AdmissionID",
        "RequestedProcedureID", "ScheduledProcedureStepID", "PerformedProcedureStepID",
        "PlacerOrderNumberImagingServiceRequest", "FillerOrderNumberImagingServiceRequest",
        "MedicalRecordLocator", "PatientID", "PatientTelephoneNumbers", "PatientInsurancePlanCode",
        "ServiceEpisodeID",
    }
)  # fmt: skip
_PLACES: Final = frozenset(
    {"InstitutionName", "InstitutionAddress", "InstitutionalDepartmentName", "PatientAddress"}
)
_DATES: Final = frozenset({"PatientBirthDate"})
_EXAM_DAYS: Final = frozenset(
    {
        "StudyDate", "SeriesDate", "AcquisitionDate", "ContentDate", "AcquisitionDateTime",
        "PerformedProcedureStepStartDate", "ScheduledProcedureStepStartDate", "AdmittingDate",
    }
)  # fmt: skip
_NAMES: Final = frozenset(
    {
        "PatientName", "OtherPatientNames", "PatientBirthName", "PatientMotherBirthName",
        "ReferringPhysicianName", "PerformingPhysicianName", "OperatorsName", "PhysiciansOfRecord",
        "NameOfPhysiciansReadingStudy", "RequestingPhysician", "ResponsiblePerson",
        "ConsultingPhysicianName",
    }
)  # fmt: skip
"""Names of persons as JSON files call them; DICOM says by the element's kind (PN)."""
_COMMENTS: Final = frozenset(
    {
        "PatientComments", "AdditionalPatientHistory", "ImageComments", "StudyComments",
        "VisitComments", "RequestedProcedureComments", "CommentsOnThePerformedProcedureStep",
        "ReasonForStudy", "ReasonForTheRequestedProcedure", "AdmittingDiagnosesDescription",
        "InterpretationText", "SpecialNeeds",
    }
)  # fmt: skip
_DESCRIPTIONS: Final = frozenset(
    {
        "StudyDescription", "SeriesDescription", "ProtocolName", "RequestedProcedureDescription",
        "PerformedProcedureStepDescription", "ScheduledProcedureStepDescription",
    }
)  # fmt: skip
"""Free texts that thousands share, unless they hold a word of the patient."""
_OF_MANY: Final = frozenset(
    {
        "EthnicGroup", "Occupation", "MilitaryRank", "BranchOfService", "CountryOfResidence",
        "RegionOfResidence", "PatientReligiousPreference", "PatientSpeciesDescription",
        "PatientBreedDescription", "PatientSexNeutered", "MedicalAlerts", "Allergies",
    }
)  # fmt: skip
"""Elements of the patient that thousands share, in words that tables may hold."""
_UIDS: Final = frozenset(
    {"StudyInstanceUID", "SeriesInstanceUID", "SOPInstanceUID", "FrameOfReferenceUID"}
)
_WHO: Final[list[Any]] = ["SeriesInstanceUID", "PatientID", "PatientName", "PatientBirthDate"]


@dataclass(frozen=True, slots=True)
class Persons:
    """What tells the patients of `n_files` files, each once; `n_unread` could not be asked."""

    identifiers: tuple[Identifier, ...] = ()
    n_unread: int = 0
    n_files: int = 0


def is_identity_removed(header: Any) -> bool:
    """Whether the file itself says that it no longer tells the patient, as those of TCIA do."""
    return str(header.get("PatientIdentityRemoved") or "").strip().upper() == "YES"


@reads("a readable DICOM file", "export it again")
def names_nobody(path: Path) -> bool:
    """Whether a DICOM file says of itself that it no longer tells the patient.

    Raises
    ------
    FormatError
        If it is no DICOM file, or damaged.
    """
    tags: list[Any] = ["PatientIdentityRemoved"]
    header = open_dicom(path, path, stop_before_pixels=True, specific_tags=tags)
    return is_identity_removed(header)


def find_identifiers(files: Iterable[Path]) -> Job[Persons]:
    """Return a job for the identifiers of all DICOM files among `files`, each once.

    Of the files of one series and one patient the first is read to its depth. Files that say that
    the identity was removed give none, and files that say neither, such as a segmentation made of
    them later, do not make their pseudonym a name.
    """
    found: dict[Identifier, None] = {}
    pseudonyms: set[str] = set()
    known: set[tuple[str, ...]] = set()
    n_unread = n_files = 0
    for number, path in enumerate(files):
        yield Progress(number, number + 1, "Reading who the patient is")
        if is_dicom_file(path):
            n_files += 1
            try:
                found.update(dict.fromkeys(_new_identifiers(path, known, pseudonyms)))
            except FormatError:
                n_unread += 1
    told = tuple(one for one in found if one.certain or one.text.casefold() not in pseudonyms)
    return Persons(told, n_unread, n_files)


@reads("a readable DICOM file", "export the series again")
def _new_identifiers(
    path: Path, known: set[tuple[str, ...]], pseudonyms: set[str]
) -> tuple[Identifier, ...]:
    brief = open_dicom(path, path, stop_before_pixels=True, specific_tags=_WHO)
    key = tuple(str(brief.get(name)) for name in _WHO)
    if key in known:
        return ()
    known.add(key)
    header = open_dicom(path, path, stop_before_pixels=True)
    found = telling(_identifiers(path, header))
    if is_identity_removed(header):
        pseudonyms.update(one.text.casefold() for one in found)
        return ()
    is_kept = bool(header.get("PatientIdentityRemoved"))
    return tuple(replace(one, certain=is_kept) for one in found)


def _identifiers(path: Path, header: Any) -> Iterator[Identifier]:
    for tag in list(header.keys()):
        try:
            element = header[tag]
        except DAMAGED as error:
            raise FormatError(
                f"expected a readable element {tag} in {path}, but {error}: export the series "
                "again; whether it tells the patient cannot be known"
            ) from error
        if element.VR == "SQ":
            for item in element.value or ():
                yield from _identifiers(path, item)
            continue
        kind = _kind(element)
        if kind:
            for text in _texts(element.value):
                yield Identifier(element.keyword or str(tag), text, kind)


def _kind(element: Any) -> str:
    kind = kind_of(element.keyword)
    if kind or element.tag.is_private:
        return kind
    if element.VR == "PN":
        return "name"
    is_patient = element.tag.group == _GROUP and element.VR in {"LO", "SH", "UC"}
    return "id" if is_patient and element.keyword not in _OF_MANY else ""


def kind_of(keyword: str) -> str:
    """Return what kind of `Identifier` an element is by its DICOM keyword, "" for none."""
    return next((kind for kind, names in _KINDS.items() if keyword in names), "")


def telling(found: Iterable[Identifier]) -> tuple[Identifier, ...]:
    """Return identifiers without those descriptions that hold no word of the others."""
    told = tuple(found)
    signs = signs_of(one for one in told if one.element not in _DESCRIPTIONS)
    return tuple(
        one
        for one in told
        if one.element not in _DESCRIPTIONS or any(s.is_in(folded(one.text)) for s in signs)
    )


def _texts(value: Any) -> Iterator[str]:
    is_list = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    several = value if is_list else [value]
    yield from (text for one in several if (text := str(one or "").strip()))


_KINDS: Final = {
    "id": _IDS, "place": _PLACES, "date": _DATES, "exam": _EXAM_DAYS, "uid": _UIDS,
    "name": _NAMES, "text": _COMMENTS | _DESCRIPTIONS,
}  # fmt: skip
