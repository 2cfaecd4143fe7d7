"""A PACS over DICOMweb: find studies, fetch one to a folder (and resume), store objects back.

What is fetched is the original with the patient's name in it: the folder is the user's own, and
`mamamia import` makes a case of it.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import FormatError, MissingExtraError, PacsError
from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.io.dicom_elements import open_dicom
from napari_mamamia.io.foreign import explained, reads
from napari_mamamia.io.own_paths import sweep_below
from napari_mamamia.io.save import saving

__all__ = ["FetchedStudy", "PacsStudy", "fetch_study", "find_studies_on", "store_files"]

_TIMEOUT_S: Final = 20.0
_MOST: Final = 1000
_STUDY_UID: Final = "0020000D"
_SERIES_UID: Final = "0020000E"
_INSTANCE_UID: Final = "00080018"


@dataclass(frozen=True, slots=True)
class PacsStudy:
    """One study as the PACS lists it; `date` is ``YYYYMMDD``, "" where it is not told."""

    study_uid: str
    date: str
    description: str
    modalities: tuple[str, ...]
    n_images: int | None


@dataclass(frozen=True, slots=True)
class FetchedStudy:
    """Where a study was fetched to; `n_kept` of its images were there from an earlier attempt."""

    folder: Path
    n_images: int
    n_kept: int


@reads("a PACS", "check the address", PacsError)
def find_studies_on(url: str, *, patient_id: str = "", date: str = "") -> tuple[PacsStudy, ...]:
    """Return the MR studies of a PACS, at most 1000, in order of date.

    Parameters
    ----------
    url
        DICOMweb root, such as ``http://pacs:8042/dicom-web``.
    patient_id, date
        What the study must have; the date is ``YYYYMMDD`` or a range ``YYYYMMDD-YYYYMMDD``.

    Raises
    ------
    PacsError
        If the PACS cannot be reached or refuses.
    MissingExtraError
        If dicomweb-client is not installed.
    """
    filters = {"ModalitiesInStudy": "MR", "PatientID": patient_id, "StudyDate": date}
    client = _client(url)
    with _reachable(url):
        found = client.search_for_studies(
            limit=_MOST,
            fields=["StudyDescription", "NumberOfStudyRelatedInstances", "ModalitiesInStudy"],
            search_filters={name: value for name, value in filters.items() if value},
        )
    return tuple(sorted((_study(entry) for entry in found), key=lambda s: (s.date, s.study_uid)))


@reads("a study of a PACS", "check the address", PacsError)
def fetch_study(url: str, study_uid: str, folder: Path) -> Job[FetchedStudy]:
    """Return a job that fetches a study, image by image, each whole or not at all.

    Files are named by a digest of their UID. Images that are in `folder` already are not fetched
    again: after a transfer that broke off, the same call goes on where it ended.

    Raises
    ------
    PacsError
        If the PACS cannot be reached, has no such study, or the transfer breaks off; the message
        says how many images are there.
    MissingExtraError
        If dicomweb-client is not installed.
    SaveError
        If the system refuses to write.
    """
    client = _client(url)
    sweep_below(folder)
    text = "Fetching from the PACS"
    yield Progress(0, 1, text)
    with _reachable(url):
        listed = _all_images(client, study_uid)
    if not listed:
        raise PacsError(
            f"expected study {study_uid} at {url}, but it has no image of it: look for the study "
            "again, it may have been moved"
        )
    n_kept = 0
    for done, entry in enumerate(listed):
        yield Progress(done, len(listed), text)
        series, instance = (_first(entry, tag) for tag in (_SERIES_UID, _INSTANCE_UID))
        target = folder / _digest(series)[:12] / f"{_digest(instance)[:32]}.dcm"
        if target.is_file():
            n_kept += 1
            continue
        with _reachable(url, f"{done} of {len(listed)} images are in {folder}"):
            image = client.retrieve_instance(study_uid, series, instance)
            if str(image.get("SOPInstanceUID")) != instance:
                raise ValueError(f"it sent another image than {instance}")
        with saving(target) as temporary:
            image.save_as(temporary, enforce_file_format=True)
    yield Progress(len(listed), len(listed), text)
    return FetchedStudy(folder, len(listed), n_kept)


def store_files(url: str, files: Sequence[Path]) -> Job[int]:
    """Return a job that stores DICOM files, such as a DICOM SEG, one by one; returns how many.

    Raises
    ------
    PacsError
        If the PACS cannot be reached or refuses a file; the message names it.
    FormatError
        If a file is no DICOM file.
    MissingExtraError
        If dicomweb-client is not installed.
    """
    client = _client(url)
    for done, file in enumerate(files):
        yield Progress(done, len(files), f"Storing {file.name}")
        image = open_dicom(file, file)
        with _reachable(url, f"{done} of {len(files)} files were stored, {file} was not"):
            _require_stored(client.store_instances([image]))
    yield Progress(len(files), len(files), "Stored")
    return len(files)


def _all_images(client: Any, study_uid: str) -> list[Mapping[str, Any]]:
    """Return what the PACS lists, page by page; one that knows no pages repeats the first."""
    found: dict[str, Mapping[str, Any]] = {}
    while True:
        known = len(found)
        for entry in client.search_for_instances(study_instance_uid=study_uid, offset=known):
            found.setdefault(_first(entry, _INSTANCE_UID), entry)
        if len(found) == known:
            return list(found.values())


def _client(url: str) -> Any:
    try:
        from dicomweb_client.api import DICOMwebClient
    except ImportError as error:
        raise MissingExtraError("dicomweb-client", "dicom") from error
    try:
        client = DICOMwebClient(url, timeout=_TIMEOUT_S)
    except ValueError as error:
        raise FormatError(
            f"expected a DICOMweb address like http://pacs:8042/dicom-web, got {url!r}: correct it"
        ) from error
    client.set_http_retry_params(retry=False)
    return client


@contextmanager
def _reachable(url: str, state: str = "nothing was changed") -> Iterator[None]:
    """Turn what goes wrong on the way into one error that says what is done so far."""
    remedy = f"{state}; check address, network and rights, then run it again to go on"
    with explained(url, "an answer from the PACS", remedy, PacsError):
        yield


def _require_stored(answer: Any) -> None:
    failed = answer.get("FailedSOPSequence") or ()
    if failed:
        reason = failed[0].get("FailureReason")
        raise ValueError(f"it refused the file (failure reason {reason})")


def _study(entry: Mapping[str, Any]) -> PacsStudy:
    count = _first(entry, "00201208")
    return PacsStudy(
        _first(entry, _STUDY_UID),
        _first(entry, "00080020"),
        _first(entry, "00081030"),
        tuple(str(v) for v in entry.get("00080061", {}).get("Value", ())),
        int(count) if count.isdigit() else None,
    )


def _first(entry: Mapping[str, Any], tag: str) -> str:
    """Return the first value of an element in DICOM JSON as text, "" where there is none."""
    values = entry.get(tag, {}).get("Value") or ("",)
    return str(values[0])


def _digest(uid: str) -> str:
    return hashlib.sha256(uid.encode()).hexdigest()
