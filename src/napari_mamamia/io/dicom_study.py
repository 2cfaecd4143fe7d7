"""The folder that holds the DICOM study which a case was imported from."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.dicom_elements import open_dicom
from napari_mamamia.io.dicom_facts import remapped_uid, user_secret
from napari_mamamia.io.dicom_headers import is_dicom_file

__all__ = ["imported_study"]


def imported_study(root: Path, study_uid: str) -> Path | None:
    """Return the subfolder of `root` with the study of a remapped UID, None if none has it.

    Parameters
    ----------
    root
        A folder with one subfolder for each study.
    study_uid
        As ``import.study_uid_remapped`` of ``patient_info_files/ID.json`` has it. Only the user who
        imported the study can find it again, because UIDs are remapped under a secret of his own.
    """
    return _studies_below(root).get(study_uid) if study_uid else None


@lru_cache(maxsize=4)
def _studies_below(root: Path) -> Mapping[str, Path]:
    """Return the subfolders by remapped UID; of each, one file is opened, once a process."""
    secret = user_secret()
    found: dict[str, Path] = {}
    for folder in sorted(entry for entry in root.iterdir() if entry.is_dir()):
        for uid in _study_uids(folder):
            found.setdefault(remapped_uid(uid, secret), folder)
    return found


def _study_uids(folder: Path) -> Iterator[str]:
    """Yield the UID of the first image below a folder; of a damaged one, the next."""
    for path in sorted(folder.rglob("*")):
        if not is_dicom_file(path):
            continue
        try:
            header = open_dicom(path, path, stop_before_pixels=True)
        except FormatError:
            continue
        if header.get("StudyInstanceUID"):
            yield str(header.StudyInstanceUID)
            return
