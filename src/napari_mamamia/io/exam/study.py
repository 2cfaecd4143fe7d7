"""Find the DICOM study folder from which a case was imported."""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.dicom.elements import open_dicom
from napari_mamamia.io.dicom.facts import remapped_uid, user_secret
from napari_mamamia.io.dicom.probe import is_dicom_file
from napari_mamamia.io.files.foreign import explained


def imported_study(root: Path, study_uid: str) -> Path | None:
    """Return the folder below `root` that contains the study with a remapped UID, or None.

    Parameters
    ----------
    root
        A folder with one subfolder for each study, or the folder of one study.
    study_uid
        The value of ``import.study_uid_remapped`` in ``patient_info_files/ID.json``. Only the user
        who imported the study can find it again, because that user's secret determines the remapped
        UIDs.
    """
    return _studies_below(root).get(study_uid) if study_uid else None


@lru_cache(maxsize=4)
def _studies_below(root: Path) -> Mapping[str, Path]:
    """Return the study folders, by remapped UID.

    One file of each subfolder is opened, once per process. If all files belong to one study, for
    example with one folder for each series, the study folder is `root`. A study is left out if it
    is spread over several folders that also contain other studies.
    """
    secret = user_secret()
    places: dict[str, list[Path]] = {}
    for folder, files in _list_folders(root):
        for uid in _first_uid(files):
            places.setdefault(remapped_uid(uid, secret), []).append(folder)
    if len(places) == 1:
        (uid, folders), *_ = places.items()
        return {uid: folders[0] if len(folders) == 1 else root}
    return {uid: folders[0] for uid, folders in places.items() if len(folders) == 1}


def _list_folders(root: Path) -> Iterator[tuple[Path, Iterable[Path]]]:
    entries = sorted(root.iterdir())
    yield root, entries
    for folder in entries:
        if folder.is_dir():
            yield folder, sorted(folder.rglob("*"))


def _first_uid(files: Iterable[Path]) -> Iterator[str]:
    for path in files:
        if not is_dicom_file(path):
            continue
        try:
            header = open_dicom(path, path, stop_before_pixels=True)
            with explained(path, "a readable DICOM file", "export the series again"):
                uid = str(
                    header.get("StudyInstanceUID") or ""
                )  # pydicom reads the element only now.
        except FormatError:
            continue
        if uid:
            yield uid
            return
