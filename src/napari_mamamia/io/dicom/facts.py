"""The allow-list of DICOM elements that an import keeps; none of them describes the patient.

The images themselves are not changed: a face, for example, may still be visible in them.
"""

import hashlib
import hmac
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from napari_mamamia.core.choices import Dates
from napari_mamamia.core.errors import FormatError, SaveConflictError, SaveError
from napari_mamamia.core.program.system import open_own
from napari_mamamia.io.dicom.elements import DAMAGED, open_dicom, optional_number, read_date
from napari_mamamia.io.dicom.persons import is_identity_removed
from napari_mamamia.io.files.foreign import open_plain, reads
from napari_mamamia.io.files.save import saving
from napari_mamamia.io.files.user_folders import preferences_path
from napari_mamamia.io.privacy.identifiers import folded

Fact: TypeAlias = str | float

KEPT_NUMBERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "field_strength": "MagneticFieldStrength",
        "echo_time": "EchoTime",
        "repetition_time": "RepetitionTime",
        "flip_angle": "FlipAngle",
        "slice_thickness": "SliceThickness",
        "high_bit": "HighBit",
    }
)
KEPT_TEXTS: Final[Mapping[str, str]] = MappingProxyType(
    {"manufacturer": "Manufacturer", "scanner_model": "ManufacturerModelName"}
)
"""The allow-list: a DICOM keyword for each column name in the MAMA-MIA table."""

_MOST_TESLA: Final = 100.0
_GAUSS: Final = 10_000.0
"""Gauss per tesla. Older GE software writes the field strength in gauss, such as 15000 for 1.5 T.
"""

_PERSON_GROUP: Final = 0x0010
_PERSON_VRS: Final = frozenset({"PN"})
_PERSON_KEYWORDS: Final = frozenset(
    {"AccessionNumber", "StudyID", "InstitutionName", "InstitutionAddress", "StationName"}
)
_WHO: Final = (
    "SeriesInstanceUID", "PatientIdentityRemoved", "PatientName", "PatientID", "OtherPatientIDs",
    "OtherPatientNames", "PatientBirthDate", "AccessionNumber", "ReferringPhysicianName",
)  # fmt: skip
_LEAST_LETTERS: Final = 3
_MOST_TEXT: Final = 64
_DAYS: Final = 365
_UID_BITS: Final = 120
_SECRET_FILE: Final = "deidentify.key"  # noqa: S105 - a file's name
_SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class ScannerFacts:
    """Facts about a scan that an import keeps from the DICOM headers of a study.

    `values` has the column names of the MAMA-MIA table as keys. `study_uid`, `series_uids` and
    `frame_uid` are remapped; `frame_uid` is "" if the images name no frame of reference or several.
    `acquisition_date` is shifted by the same number of days for all exams of a patient, or is "" if
    the date is dropped or unknown.
    """

    values: Mapping[str, Fact]
    study_uid: str
    series_uids: tuple[str, ...]
    acquisition_date: str = ""
    frame_uid: str = ""


@reads("a readable DICOM file", "export the series again")
def read_facts(
    file: Path,
    series_uids: Sequence[str],
    secret: bytes,
    dates: Dates,
    frame_uids: Sequence[str] = (),
) -> ScannerFacts:
    """Return the facts that an import keeps about the study of `file`.

    A value is dropped if it contains the patient's name or number. A new UID is ``2.25.`` and 120
    bits of HMAC-SHA-256 with the user's secret. A UID is remapped to the same new UID in every
    import by this user, and nobody can recompute the new UID without the secret.

    Parameters
    ----------
    file
        One file of the study.
    series_uids
        UIDs of the imported series.
    secret
        The user's secret from `user_secret`.
    dates
        How the exam date is treated: dropped or shifted.
    frame_uids
        UIDs of the frames of reference in the images. A UID is kept only if it is the same in all
        images.

    Raises
    ------
    FormatError
        If the file is damaged.
    MissingExtraError
        If pydicom is not installed.
    """
    header = open_dicom(file, file, stop_before_pixels=True)
    persons = tuple(_person_words(header))
    joined = _with_groups(header)
    values: dict[str, Fact] = {}
    for name, keyword in KEPT_TEXTS.items():
        text = str(header.get(keyword) or "").strip()[:_MOST_TEXT]
        if text and not _has_person_word(text, persons):
            values[name] = text
    for name, keyword in KEPT_NUMBERS.items():
        number = next((n for part in joined if (n := optional_number(part, keyword))), None)
        if number is not None:
            if name == "field_strength" and number > _MOST_TESLA:
                number /= _GAUSS
            values[name] = int(number) if number.is_integer() else number
    return ScannerFacts(
        MappingProxyType(values),
        remapped_uid(str(header.get("StudyInstanceUID") or ""), secret),
        tuple(remapped_uid(uid, secret) for uid in series_uids),
        _shifted_date(header, secret) if dates is Dates.SHIFT else "",
        remapped_uid(frame_uids[0], secret) if len(frame_uids) == 1 and frame_uids[0] else "",
    )


@reads("a readable DICOM file", "export the series again")
def names_a_person(files: Iterable[Path], text: str) -> bool:
    """Return whether a string, such as a case id, contains a word from the patient's elements.

    The elements are read from `files`. Words are names, numbers, the birth date and the accession
    number, with at least 3 letters or digits; accents and punctuation are ignored. A file with
    PatientIdentityRemoved = YES, as in all of TCIA, names nobody. Among files with equal patient
    elements, only the first file is read with its sequences.
    """
    patients: set[tuple[str, ...]] = set()
    for file in files:
        brief = open_dicom(file, file, stop_before_pixels=True, specific_tags=list(_WHO))
        key = tuple(str(brief.get(name)) for name in _WHO)
        if key in patients or is_identity_removed(brief):
            continue
        patients.add(key)
        persons = tuple(_person_words(open_dicom(file, file, stop_before_pixels=True)))
        if _has_person_word(text, persons) or _has_person_word(
            "".join(filter(str.isalnum, text)), persons
        ):
            return True
    return False


def user_secret() -> bytes:
    """Return the user's secret for remapping UIDs and shifting dates.

    The first call creates the secret. The secret is a file in the preferences folder that only the
    user can read. It is never part of a data set.

    Raises
    ------
    SaveError
        If the secret cannot be read or created.
    """
    path = preferences_path().with_name(_SECRET_FILE)
    with suppress(SaveConflictError):  # The secret exists, or another import has just created it.
        _make_secret(path)
    try:
        return _known_secret(path)
    except OSError as error:
        raise SaveError(
            f"expected to save the secret for remapped UIDs at {path}, but "
            f"{error.strerror or error}: make the folder writable"
        ) from error


def _make_secret(path: Path) -> None:
    with saving(path) as temporary:
        handle = open_own(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "wb") as stream:
            stream.write(secrets.token_bytes(_SECRET_BYTES))


def _known_secret(path: Path) -> bytes:
    with open_plain(path) as stream:
        secret = stream.read(_SECRET_BYTES + 1)
    if len(secret) != _SECRET_BYTES:
        raise FormatError(
            f"expected {_SECRET_BYTES} bytes in {path}, but its size differs: remove the file; a "
            "new secret then gives different UIDs"
        )
    return secret


def remapped_uid(uid: str, secret: bytes) -> str:
    """Return the UID that replaces `uid`: ``2.25.`` and 120 bits of HMAC-SHA-256."""
    digest = hmac.new(secret, uid.encode(), hashlib.sha256).digest()
    return f"2.25.{int.from_bytes(digest, 'big') >> (256 - _UID_BITS)}"


def _shifted_date(header: Any, secret: bytes) -> str:
    dates_read = (read_date(header.get(name)) for name in ("AcquisitionDate", "StudyDate"))
    exam = next((day for day in dates_read if day), None)
    if exam is None:
        return ""
    patient = str(header.get("PatientID") or header.get("StudyInstanceUID") or "")
    digest = hmac.new(secret, f"date {patient}".encode(), hashlib.sha256).digest()
    days = 1 + int.from_bytes(digest[:4], "big") % _DAYS
    # No date exists before day 1; some files have year 1 instead of the exam's year.
    return (exam - timedelta(days=days)).isoformat() if days < exam.toordinal() else ""


def _with_groups(header: Any) -> list[Any]:
    places = [header]
    for name in ("SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence"):
        for group in (header.get(name) or ())[:1]:
            places += [item for element in group if element.VR == "SQ" for item in element.value]
    for data_set in places[1:]:
        if data_set.get("EffectiveEchoTime") is not None and data_set.get("EchoTime") is None:
            data_set.EchoTime = data_set.EffectiveEchoTime
    return places


def _person_words(header: Any) -> Iterator[str]:
    for element in _iterate_elements(header):
        is_named = element.VR in _PERSON_VRS or element.keyword in _PERSON_KEYWORDS
        is_patient = element.tag.group == _PERSON_GROUP and element.VR not in {"SQ", "CS", "DS"}
        if is_named or is_patient:
            for value in str(element.value).replace("\\", "^").split("^"):
                yield from _split_words(value)


def _iterate_elements(header: Any) -> Iterator[Any]:
    for tag in list(header.keys()):
        try:
            element = header[tag]
        except DAMAGED as error:
            raise FormatError(
                f"expected element {tag} to be readable in {header.filename}, but {error}: export "
                "the series again, because it may hold the patient's name"
            ) from error
        yield element


def _split_words(text: str) -> Iterator[str]:
    cleaned = "".join(c if c.isalnum() else " " for c in folded(text))
    yield from (word for word in cleaned.split() if len(word) >= _LEAST_LETTERS)


def _has_person_word(text: str, persons: Sequence[str]) -> bool:
    plain = folded(text)
    return any(word in plain for word in persons)
