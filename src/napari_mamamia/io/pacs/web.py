"""Find studies on a PACS over DICOMweb, fetch a study into a folder, and store objects.

An interrupted fetch can be resumed. Fetched files are originals that contain the patient's name, so
the user chooses the folder; importing the files creates a case.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from napari_mamamia.core.errors import FormatError, MissingExtraError, PacsError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.dicom.elements import open_dicom
from napari_mamamia.io.files.checksums import hash_text
from napari_mamamia.io.files.foreign import explained, reads, said
from napari_mamamia.io.files.own_paths import sweep_below
from napari_mamamia.io.files.save import saving

if TYPE_CHECKING:
    from napari_mamamia.io.pacs.limits import Pace, TransferLimits


_STUDY_UID: Final = "0020000D"
_SERIES_UID: Final = "0020000E"
_INSTANCE_UID: Final = "00080018"
_UID: Final = re.compile(r"[0-9.]{1,64}")
# Without a transfer syntax, a PACS may decompress an image; "*" requests the stored form.
_IMAGE: Final = 'multipart/related; type="application/dicom"; transfer-syntax=*'
_BOUNDARY: Final = re.compile(r'boundary="?([^";]+)"?', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PacsStudy:
    """A study listed by a PACS; `date` is ``YYYYMMDD``, or "" if unknown."""

    study_uid: str
    date: str
    description: str
    modalities: tuple[str, ...]
    n_images: int | None


@dataclass(frozen=True, slots=True)
class FoundStudies:
    """The studies that a PACS lists, by date; `has_more` states whether there may be more."""

    studies: tuple[PacsStudy, ...]
    has_more: bool


@dataclass(frozen=True, slots=True)
class FetchedStudy:
    """A study fetched into a folder; `n_kept` images were there from an earlier attempt."""

    folder: Path
    n_images: int
    n_kept: int


@dataclass(frozen=True, slots=True)
class _Line:
    """A connection to a PACS."""

    url: str
    client: Any
    session: Any
    pace: "Pace"
    limits: "TransferLimits"


@reads("a PACS", "check the address", PacsError)
def find_studies_on(
    url: str, *, patient_id: str = "", date: str = "", limits: "TransferLimits | None" = None
) -> FoundStudies:
    """Return MR studies on a PACS, at most `limits.n_studies`.

    Parameters
    ----------
    url
        DICOMweb root, such as ``http://pacs:8042/dicom-web``.
    patient_id, date
        Filters; the date is ``YYYYMMDD`` or a range ``YYYYMMDD-YYYYMMDD``.
    limits
        Limits of the transfer; by default those of `TransferLimits`.

    Raises
    ------
    PacsError
        If the PACS cannot be reached, rejects the request, or exceeds the limits.
    MissingExtraError
        If dicomweb-client is not installed.
    """
    filters = {"ModalitiesInStudy": "MR", "PatientID": patient_id, "StudyDate": date}
    line = _open_line(url, limits)
    most = line.limits.n_studies
    with _explain_failures(line):
        entries = line.client.search_for_studies(
            limit=most,
            fields=["StudyDescription", "NumberOfStudyRelatedInstances", "ModalitiesInStudy"],
            search_filters={name: value for name, value in filters.items() if value},
        )
    studies = map(_parse_study, islice(entries, most))
    in_order = tuple(sorted(studies, key=lambda s: (s.date, s.study_uid)))
    return FoundStudies(in_order, len(entries) >= most)


@reads("a study of a PACS", "check the address", PacsError)
def fetch_study(
    url: str, study_uid: str, folder: Path, *, limits: "TransferLimits | None" = None
) -> FetchedStudy:
    """Fetch a study image by image; incomplete images are not saved.

    File names are digests of the UIDs, and files contain the bytes that the PACS sent. Images that
    are already in `folder` are not fetched again, so the same call resumes an interrupted transfer.

    Parameters
    ----------
    url
        DICOMweb root.
    study_uid
        StudyInstanceUID.
    folder
        Folder for the files, which is created if missing.
    limits
        Limits of the transfer; by default those of `TransferLimits`.

    Raises
    ------
    PacsError
        If the PACS cannot be reached, has no such study, exceeds the limits, or if the transfer is
        interrupted. The message states the number of saved images.
    MissingExtraError
        If dicomweb-client is not installed.
    SaveError
        If the files cannot be written.
    """
    line = _open_line(url, limits)
    sweep_below(folder)
    text = "Fetching from the PACS"
    report_progress(0, 1, text)
    with _explain_failures(line):
        listed = _all_images(line, _require_uid(study_uid))
    if not listed:
        raise PacsError(
            f"expected study {study_uid} at {url}, but the server has no image of that study: "
            "list the studies again, because the study may have been moved"
        )
    n_kept = n_bytes = 0
    for number, entry in enumerate(listed):
        report_progress(number, len(listed), text)
        series, instance = (_read_first(entry, tag) for tag in (_SERIES_UID, _INSTANCE_UID))
        target = folder / hash_text(series)[:12] / f"{hash_text(instance)[:32]}.dcm"
        if target.is_file():
            n_kept += 1
            continue
        state = f"{number} of {len(listed)} images are in {folder}"
        with _explain_failures(line, state):
            image = _image_bytes(
                line,
                f"{_require_uid(study_uid)}/series/{_require_uid(series)}",
                _require_uid(instance),
            )
            n_bytes += len(image)
            if n_bytes > line.limits.study_bytes:
                line.pace.too_large()
        with saving(target) as temporary:
            temporary.write_bytes(image)
            with _explain_failures(line, state):
                _require_image(temporary, image, instance)
    report_progress(len(listed), len(listed), text)
    return FetchedStudy(folder, len(listed), n_kept)


def store_files(url: str, files: Sequence[Path], *, limits: "TransferLimits | None" = None) -> int:
    """Store DICOM files, such as a DICOM SEG, on a PACS; return the number of stored files.

    Raises
    ------
    PacsError
        If the PACS cannot be reached, rejects a file, or exceeds the limits. The message names the
        file.
    FormatError
        If a file is not a DICOM file.
    MissingExtraError
        If dicomweb-client is not installed.
    """
    line = _open_line(url, limits)
    for n_stored, file in enumerate(files):
        report_progress(n_stored, len(files), f"Storing {file.name}")
        image = open_dicom(file, file)
        line.pace.begin(line.limits.list_bytes, line.limits.image_s)
        with _explain_failures(
            line, f"{n_stored} of {len(files)} files were stored, but {file} was not"
        ):
            _require_stored(line.client.store_instances([image]))
    report_progress(len(files), len(files), "Stored")
    return len(files)


def _all_images(line: _Line, study_uid: str) -> list[Mapping[str, Any]]:
    images: dict[str, Mapping[str, Any]] = {}
    line.pace.begin(line.limits.list_bytes, line.limits.list_s)
    while True:
        n_before = len(images)
        for entry in line.client.search_for_instances(
            study_instance_uid=study_uid, offset=n_before
        ):
            images.setdefault(_read_first(entry, _INSTANCE_UID), entry)
        if len(images) == n_before:
            return list(images.values())
        if len(images) > line.limits.n_images:
            line.pace.stop(f"the server lists more than {line.limits.n_images} images of one study")


def _image_bytes(line: _Line, series: str, instance: str) -> bytes:
    line.pace.begin(line.limits.image_bytes, line.limits.image_s)
    address = f"{line.client.base_url}/studies/{series}/instances/{instance}"
    answer = line.session.get(address, headers={"Accept": _IMAGE}, timeout=line.limits.idle_s)
    answer.raise_for_status()
    kind = answer.headers.get("Content-Type", "")
    if kind.lower().startswith(
        "application/dicom"
    ):  # Not standard-conforming, but seen in practice.
        return bytes(answer.content)
    named = _BOUNDARY.search(kind)
    if named is None:
        raise ValueError(f"the server sent {kind[:60]!r} instead of an image")
    edge = b"--" + named[1].encode()
    head, _, rest = bytes(answer.content).partition(edge)
    part, separator, after = rest.partition(b"\r\n" + edge)
    if head.strip() or not separator or after[:2] != b"--":
        raise ValueError("the response is not one complete image")
    return part.partition(b"\r\n\r\n")[2]


def _require_image(path: Path, sent: bytes, instance: str) -> None:
    if path.read_bytes() != sent:
        raise ValueError("the written file differs when it is read back")
    try:
        image = open_dicom(path, path)
    except FormatError as error:
        why = said(error.__cause__ or error)
        raise ValueError(f"the server sent no readable image ({why})") from error
    if str(image.get("SOPInstanceUID")) != instance:
        raise ValueError(f"the server sent an image other than {instance}")


def _require_uid(text: str) -> str:
    if not _UID.fullmatch(text):
        raise ValueError(f"expected a UID of digits and dots, but found {text[:70]!r}")
    return text


def _open_line(url: str, limits: "TransferLimits | None") -> _Line:
    try:
        from dicomweb_client.api import DICOMwebClient

        from napari_mamamia.io.pacs.limits import Pace, TransferLimits, limited_session
    except ImportError as error:
        raise MissingExtraError("dicomweb-client", "dicom") from error
    limits = limits or TransferLimits()
    pace = Pace(limits)
    try:
        session = limited_session(pace, url)
        client = DICOMwebClient(url, session=session, timeout=limits.idle_s)
    except ValueError as error:
        raise FormatError(
            f"expected a DICOMweb address like http://pacs:8042/dicom-web, but found {url!r}: "
            "correct the address"
        ) from error
    client.set_http_retry_params(retry=False)
    return _Line(url, client, session, pace, limits)


@contextmanager
def _explain_failures(line: _Line, state: str = "nothing was changed") -> Iterator[None]:
    remedy = (
        f"{state}; check the address, network and access rights, then run the command again "
        "to continue"
    )
    with explained(line.url, "a response from the PACS", remedy, PacsError):
        try:
            yield
        finally:
            if line.pace.reason:  # This replaces the message of the libraries.
                raise TimeoutError(line.pace.reason)


def _require_stored(answer: Any) -> None:
    failed = answer.get("FailedSOPSequence") or ()
    if failed:
        reason = failed[0].get("FailureReason")
        raise ValueError(f"the server rejected the file (failure reason {reason})")


def _parse_study(entry: Mapping[str, Any]) -> PacsStudy:
    count = _read_first(entry, "00201208")
    return PacsStudy(
        _read_first(entry, _STUDY_UID),
        _read_first(entry, "00080020"),
        _read_first(entry, "00081030"),
        tuple(str(v) for v in entry.get("00080061", {}).get("Value", ())),
        int(count) if count.isdigit() else None,
    )


def _read_first(entry: Mapping[str, Any], tag: str) -> str:
    values = entry.get(tag, {}).get("Value") or ("",)
    return "".join(c if c.isprintable() else " " for c in str(values[0]))
