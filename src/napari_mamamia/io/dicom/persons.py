"""Find elements in DICOM and other files that identify the patient.

By default, dcm2niix writes the name, number and dates into the JSON file next to an image. Other
converters write the name into `descrip` or into an extension of the NIfTI header.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import FormatError, is_refused
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.dicom.elements import DAMAGED, open_dicom
from napari_mamamia.io.dicom.probe import is_dicom_file
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.privacy.identifiers import Identifier, find_personal, folded, signs_of
from napari_mamamia.io.volumes.formats import file_stem
from napari_mamamia.io.volumes.nifti_header import known_fields
from napari_mamamia.io.volumes.streams import open_stream

_GROUP: Final = 0x0010
_IDS: Final = frozenset(
    {
        "AccessionNumber", "StudyID", "StationName", "DeviceSerialNumber", "AdmissionID",
        "RequestedProcedureID", "ScheduledProcedureStepID", "PerformedProcedureStepID",
        "PlacerOrderNumberImagingServiceRequest", "FillerOrderNumberImagingServiceRequest",
        "MedicalRecordLocator", "PatientID", "PatientTelephoneNumbers", "PatientInsurancePlanCode",
        "ServiceEpisodeID", "CurrentPatientLocation", "PersonTelephoneNumbers",
        "ReferringPhysicianTelephoneNumbers",
    }
)  # fmt: skip
_PLACES: Final = frozenset(
    {
        "InstitutionName", "InstitutionAddress", "InstitutionalDepartmentName", "PatientAddress",
        "PersonAddress", "ReferringPhysicianAddress", "ResponsibleOrganization",
    }
)  # fmt: skip
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
"""Keywords of person names in JSON files; in DICOM files, such elements have the VR PN."""
_COMMENTS: Final = frozenset(
    {
        "PatientComments", "AdditionalPatientHistory", "ImageComments", "StudyComments",
        "VisitComments", "RequestedProcedureComments", "CommentsOnThePerformedProcedureStep",
        "ReasonForStudy", "ReasonForTheRequestedProcedure", "AdmittingDiagnosesDescription",
        "InterpretationText", "SpecialNeeds", "FrameComments", "AcquisitionComments",
        "IdentifyingComments", "TextComments", "TextString", "TextValue", "UnformattedTextValue",
        "ResultsComments", "PatientState", "OverlayComments", "LabelText",
    }
)  # fmt: skip
_DESCRIPTIONS: Final = frozenset(
    {
        "StudyDescription", "SeriesDescription", "ProtocolName", "RequestedProcedureDescription",
        "PerformedProcedureStepDescription", "ScheduledProcedureStepDescription",
    }
)  # fmt: skip
"""Free-text elements with values that many patients share.

They count only if they contain a word from the patient's elements.
"""
_OF_MANY: Final = frozenset(
    {
        "EthnicGroup", "Occupation", "MilitaryRank", "BranchOfService", "CountryOfResidence",
        "RegionOfResidence", "PatientReligiousPreference", "PatientSpeciesDescription",
        "PatientBreedDescription", "PatientSexNeutered", "MedicalAlerts", "Allergies",
    }
)  # fmt: skip
"""Patient elements with values that many patients share and that may occur in tables."""
_UIDS: Final = frozenset(
    {"StudyInstanceUID", "SeriesInstanceUID", "SOPInstanceUID", "FrameOfReferenceUID"}
)
"""Keywords of UIDs in JSON files; in DICOM files, such elements have the VR UI."""
_NO_TEXTS: Final = frozenset(
    {"AE", "AS", "AT", "CS", "DS", "FD", "FL", "IS", "OD", "OF", "OL", "OV", "OW", "SL", "SS",
     "SV", "TM", "UL", "US", "UV"}
)  # fmt: skip
_DAYS: Final = frozenset({"DA", "DT"})
_DIGITS: Final = 8
"""Number of date digits, which precede the time in a DT value."""
_BYTES: Final = frozenset({"OB", "UN"})
_FREE: Final = frozenset({"LO", "LT", "SH", "ST", "UC", "UT", "UR"})
_STANDARD: Final = "1.2.840.10008."
"""Prefix of the UIDs that the DICOM standard defines, which many files share."""
_KINDS_OF: Final = ("ClassUID", "SyntaxUID", "CreatorUID", "SchemeUID")
"""Keyword endings of UIDs that many files share."""


_PACKED_PERSON: Final = re.compile(rb"[A-Za-z\x80-\xff]{3,}\^[A-Za-z\x80-\xff]{3,}")
_PRINTABLE: Final = re.compile(rb"[\t\n\r\x20-\x7e\x80-\xff]+\0*")


@dataclass(frozen=True, slots=True)
class Persons:
    """Patient identifiers found in `n_files` files; `n_unread` files could not be read.

    `n_removed` is the number of DICOM files that state that the patient's identity was removed.
    """

    identifiers: tuple[Identifier, ...] = ()
    n_unread: int = 0
    n_files: int = 0
    n_removed: int = 0


def is_identity_removed(header: Any) -> bool:
    """Return whether a header states that the patient's identity was removed, as in TCIA."""
    return str(header.get("PatientIdentityRemoved") or "").strip().upper() == "YES"


@reads("a readable DICOM file", "export it again")
def names_nobody(path: Path) -> bool:
    """Return whether a DICOM file states that the patient's identity was removed.

    Raises
    ------
    FormatError
        If the file is not DICOM, or is damaged.
    """
    tags: list[Any] = ["PatientIdentityRemoved"]
    header = open_dicom(path, path, stop_before_pixels=True, specific_tags=tags)
    return is_identity_removed(header)


def find_identifiers(files: Iterable[Path]) -> Persons:
    """Return the identifiers in the DICOM files among `files`, without duplicates.

    The whole header of every file is searched, including sequences, frames and private elements. An
    element with the same bytes as in an earlier file is not read again. Files that state that the
    identity was removed give no identifiers. Their pseudonym does not count as an identifier in
    other files either, such as in a segmentation.

    Raises
    ------
    FormatError
        If the system cannot read a file, because its identifiers would be missing.
    """
    reader = _Asked()
    for number, path in enumerate(files):
        report_progress(number, number + 1, "Reading patient identifiers")
        if is_dicom_file(path):
            reader.n_files += 1
            try:
                _ask_file(path, reader)
            except FormatError as error:
                if is_refused(error):
                    raise
                reader.n_unread += 1
    identifiers = (
        identifier
        for identifier in reader.found
        if identifier.certain or folded(identifier.text) not in reader.pseudonyms
    )
    return Persons(telling(identifiers), reader.n_unread, reader.n_files, reader.n_removed)


@dataclass(slots=True)
class _Asked:
    """Identifiers found so far; `seen` holds hashes of the elements that were read."""

    found: dict[Identifier, None] = field(default_factory=dict)
    pseudonyms: set[str] = field(default_factory=set)
    uids: set[str] = field(default_factory=set)
    seen: set[int] = field(default_factory=set)
    n_unread: int = 0
    n_files: int = 0
    n_removed: int = 0


@reads("a readable DICOM file", "export the series again")
def _ask_file(path: Path, asked: _Asked) -> None:
    header = open_dicom(path, path, stop_before_pixels=True)
    is_removed = is_identity_removed(header)
    is_kept = bool(header.get("PatientIdentityRemoved"))
    asked.n_removed += is_removed
    context = (is_removed, is_kept)
    for part in (header, header.file_meta):
        for identifier in _read_identifiers(path, part, asked.seen, context):
            if is_removed:
                asked.pseudonyms.add(folded(identifier.text))
            elif identifier.kind != "uid" or identifier.text not in asked.uids:
                asked.found[replace(identifier, certain=identifier.certain and is_kept)] = None
                asked.uids.update([identifier.text] if identifier.kind == "uid" else ())


def _read_identifiers(
    path: Path, header: Any, seen: set[int], context: tuple[Any, ...]
) -> Iterator[Identifier]:
    """Yield the identifiers in elements that were not read before in the same `context`.

    The context determines the meaning of an element's bytes: whether the identity was removed, and
    the character set, which items inherit.
    """
    character_set = header.get("SpecificCharacterSet")
    context = context if character_set is None else (*context[:2], str(character_set))
    for tag in list(header.keys()):
        # `header[tag]` would decode the element, and most elements were seen before.
        raw = header.get_item(tag)
        if raw.VR in _NO_TEXTS or (raw.VR == "OB" and not tag.is_private):
            continue
        if isinstance(raw.value, bytes):  # pydicom has not decoded the element yet.
            key = hash((context, int(tag), raw.VR, raw.value))
            if key in seen:
                continue
            seen.add(key)
        try:
            element = header[tag]
        except DAMAGED as error:
            raise FormatError(
                f"expected element {tag} to be readable in {path}, but {error}: export the series "
                "again, because it may identify the patient"
            ) from error
        if element.VR == "SQ":
            for item in element.value or ():
                yield from _read_identifiers(path, item, seen, context)
        else:
            yield from _told_by(element)


def _told_by(element: Any) -> Iterator[Identifier]:
    if element.VR in _BYTES:
        yield from _told_by_bytes(element)
        return
    kind = _find_kind(element)
    if kind:
        name = element.keyword or _describe_element(element)
        for text in _list_texts(element.value):
            if kind != "uid" or not text.startswith(_STANDARD):
                yield Identifier(name, text[:_DIGITS] if element.VR == "DT" else text, kind)
    elif element.VR in _FREE:
        for text in _list_texts(element.value):
            yield from _told_by_text(element, text)


def _describe_element(element: Any) -> str:
    return f"private element {element.tag}" if element.tag.is_private else str(element.tag)


def _told_by_bytes(element: Any) -> Iterator[Identifier]:
    value = bytes(element.value or b"")
    if not element.tag.is_private:
        return
    if element.VR == "UN" and _PRINTABLE.fullmatch(value):
        yield from _told_by_text(element, value.decode("utf-8", "replace").strip(" \0"))
        return
    for run in _PACKED_PERSON.findall(value):
        yield Identifier(
            _describe_element(element), run.decode("utf-8", "replace"), "person", False
        )


def _told_by_text(element: Any, text: str) -> Iterator[Identifier]:
    for identifier in find_personal(element.keyword or _describe_element(element), text):
        if identifier.kind == "person" or element.tag.is_private:
            yield identifier


def _find_kind(element: Any) -> str:
    kind = kind_of(element.keyword)
    if kind:
        return kind
    if element.VR == "PN":
        return "name"
    if element.VR == "UI":
        return "" if element.keyword.endswith(_KINDS_OF) else "uid"
    if element.VR in _DAYS:
        return "exam"
    if element.tag.is_private:
        return ""
    is_patient = element.tag.group == _GROUP and element.VR in {"LO", "SH", "UC"}
    return "id" if is_patient and element.keyword not in _OF_MANY else ""


def kind_of(keyword: str) -> str:
    """Return the `Identifier` kind for a DICOM keyword, or ""."""
    return next((kind for kind, names in _KINDS.items() if keyword in names), "")


def telling(found: Iterable[Identifier]) -> tuple[Identifier, ...]:
    """Return those identifiers whose values could identify a patient.

    Descriptions are dropped if they contain no word of the other identifiers, or only look like a
    name ("Breast^Routine").
    """
    identifiers = tuple(found)
    texts = [
        folded(identifier.text) for identifier in identifiers if identifier.element in _DESCRIPTIONS
    ]
    of_many = [
        identifier
        for identifier in identifiers
        if identifier.kind == "person" and any(folded(identifier.text) in t for t in texts)
    ]
    persons = [
        identifier
        for identifier in identifiers
        if identifier.element not in _DESCRIPTIONS and identifier not in of_many
    ]
    signs = signs_of(person for person in persons if person.kind != "uid")
    return tuple(
        identifier
        for identifier in identifiers
        if identifier not in of_many
        and (
            identifier.element not in _DESCRIPTIONS
            or any(s.is_in(folded(identifier.text)) for s in signs)
        )
    )


def _list_texts(value: Any) -> Iterator[str]:
    is_list = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    several = value if is_list else [value]
    yield from (text for one in several if (text := str(one or "").strip()))


_KINDS: Final = {
    "id": _IDS, "place": _PLACES, "date": _DATES, "exam": _EXAM_DAYS, "uid": _UIDS,
    "name": _NAMES, "text": _COMMENTS | _DESCRIPTIONS,
}  # fmt: skip


_META_SILENT: Final = re.compile(
    r"objecttype|ndims|binarydata.*|elementbyteordermsb|compresseddata.*|transformmatrix|rotation|"
    r"orientation|offset|position|origin|centerofrotation|anatomicalorientation|element.*|dimsize|"
    r"distanceunits|headersize"
)
"""Elements of a MetaImage header that contain only numbers and fixed words."""
_TEXTS: Final = ("descrip", "aux_file", "intent_name", "db_name")
_LONGEST: Final = 540
_MOST_EXTENSION: Final = 1 << 20
_MOST_NRRD: Final = 1 << 16
_RUN: Final = re.compile(rb"[\x20-\x7e\x80-\xff]{5,}")
_DEPTH: Final = 8


def find_volume_identifiers(files: Iterable[Path]) -> Persons:
    """Return the identifiers in volume headers and JSON files, without duplicates.

    In a JSON file, only keys that are DICOM keywords are searched. The JSON file with the same name
    as a volume is read too. No identifier is `certain`, because these files do not state whether
    the identity was removed.

    Raises
    ------
    FormatError
        If the system cannot read a file, because its identifiers would be missing.
    """
    identifiers: dict[Identifier, None] = {}
    n_unread = 0
    looked: set[Path] = set()
    for number, path in enumerate(files):
        report_progress(number, number + 1, "Reading patient identifiers")
        for file in (path, *_find_sidecar(path)):
            if file in looked:
                continue
            looked.add(file)
            try:
                identifiers.update(dict.fromkeys(_read_volume_identifiers(file)))
            except FormatError as error:
                if is_refused(error):
                    raise
                n_unread += 1
    return Persons(telling(identifiers), n_unread)


def _find_sidecar(path: Path) -> Iterator[Path]:
    if file_stem(path.name):
        sidecar = path.with_name(f"{file_stem(path.name)}.json")
        if sidecar.is_file():
            yield sidecar


@reads("a volume's header, or JSON", "check it by hand")
def _read_volume_identifiers(path: Path) -> tuple[Identifier, ...]:
    name = path.name.lower()
    if name.endswith(".json"):
        return tuple(_in_json(read_json(path), _DEPTH))
    if name.endswith((".nrrd", ".nhdr")):
        return tuple(_in_texts(_nrrd_texts(path)))
    if name.endswith((".mha", ".mhd")):
        return tuple(_in_texts(_metaimage_texts(path)))
    return tuple(_in_texts(_nifti_texts(path))) if file_stem(name) else ()


def _in_json(value: Any, depth: int) -> Iterator[Identifier]:
    if depth and isinstance(value, list):
        for item in value:
            yield from _in_json(item, depth - 1)
    if not depth or not isinstance(value, dict):
        return
    for key, item in value.items():
        kind = kind_of(key)
        texts = item if isinstance(item, list) else [item]
        if not kind:
            yield from _in_json(item, depth - 1)
            continue
        for text in texts:
            if isinstance(text, str | int) and str(text).strip():
                yield Identifier(key, str(text).strip(), kind, certain=False)


def _nifti_texts(path: Path) -> Iterator[tuple[str, str]]:
    with open_stream(path) as stream:
        head = stream.head(_LONGEST)
        fields = known_fields(head)
        if fields is None:
            raise FormatError(f"{path} is not a NIfTI file: check it by hand")
        for name in _TEXTS:
            if name in fields.keys():  # noqa: SIM118 - nibabel's header is no mapping
                # After the first zero byte, the text may contain leftover memory of the writing
                # program.
                text = bytes(fields[name].item()).split(b"\0")[0]
                yield name, text.decode("utf-8", "replace")
        size = int(fields["sizeof_hdr"])
        n_more = min(int(fields["vox_offset"]), _MOST_EXTENSION) - len(head)
        more = head[size + 4 :] + (stream.head(n_more) if n_more > 0 else b"")
        if head[size : size + 1] == b"\1":
            for run in _RUN.findall(more):
                yield "an extension in the header", run.decode("utf-8", "replace")


def _nrrd_texts(path: Path) -> Iterator[tuple[str, str]]:
    with open_stream(path) as stream:
        head = stream.head(_MOST_NRRD).partition(b"\n\n")[0].replace(b"\r", b"")
    for line in head.decode("utf-8", "replace").split("\n"):
        key, is_pair, value = line.partition(":=")
        if line.startswith("#"):
            yield "a comment in the header", line[1:]
        elif is_pair:
            yield f"{key.strip()[:40]} in the header", value
        elif line.lower().startswith("content:"):
            yield "content in the header", line[8:]


def _metaimage_texts(path: Path) -> Iterator[tuple[str, str]]:
    with open_stream(path, is_gzip=False) as stream:
        head = stream.head(_MOST_NRRD)
    for line in head.decode("utf-8", "replace").split("\n"):
        key, equals, value = line.partition("=")
        name = key.strip().lower()
        if equals and not _META_SILENT.fullmatch(name):
            yield f"{key.strip()[:40]} in the header", value.strip()
        if name == "elementdatafile":
            return


def _in_texts(texts: Iterable[tuple[str, str]]) -> Iterator[Identifier]:
    for element, text in texts:
        yield from find_personal(element, text)
        if text.strip():
            yield Identifier(element, text.strip(), "text", certain=False)
