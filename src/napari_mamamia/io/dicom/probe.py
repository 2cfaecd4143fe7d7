"""Detect whether a dropped path is DICOM, by a limited search that does not need pydicom."""

import os
import re
import zipfile
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.dicom.elements import begins_bare
from napari_mamamia.io.files.folders import list_names
from napari_mamamia.io.files.foreign import explained, open_plain
from napari_mamamia.io.files.zip_files import is_zip, open_zip

_LOOK_AT: Final = 8
_INDEX: Final = "DICOMDIR"
_MARK: Final = b"DICM"
_MARK_START: Final = 128
_MARK_END: Final = 132
_META_BYTES: Final = 2048
_SEG_CLASS: Final = re.compile(rb"1\.2\.840\.10008\.5\.1\.4\.1\.1\.66\.[47](?![0-9.])")
_MOST_FOLDERS: Final = 64
_MOST_ENTRIES: Final = 2000
_FILES_OF_FOLDER: Final = 4
_FILES_IN_ALL: Final = 64
_FILES_OF_ZIP: Final = 8
"""Largest number of files opened in an archive (our choice).

The limits that follow count listed folders, entries per folder, and opened files per folder and in
total. Studies are one to four folders below the top.
"""


def dicom_source(paths: Sequence[Path]) -> Path | None:
    """Return the folder or zip to import if `paths` are DICOM, otherwise None.

    A folder or an archive is returned unchanged, even if the files lie in its subfolders. For files
    of one folder, the folder is returned, because one slice is not a case. At most 64 files are
    opened. The function never raises.
    """
    try:
        if len(paths) == 1:
            return _source_of(paths[0])
        parents = {path.parent for path in paths}
        if len(parents) != 1 or not _one_is_dicom(paths[:_FILES_OF_FOLDER]):
            return None
        return parents.pop()
    except OSError:
        return None


def is_dicom_file(path: Path) -> bool:
    """Return whether a file has the DICOM prefix at byte 128, or begins with a DICOM data set.

    The function never raises and never waits for a pipe or device.
    """
    try:
        with open_plain(path) as stream:
            head = stream.read(_MARK_END)
    except OSError:
        return False
    return _begins_as_dicom(head)


def is_seg_file(path: Path) -> bool:
    """Return whether the first bytes of a file are those of a DICOM segmentation.

    The function never raises. Source: DICOM PS3.4, B.5: Segmentation Storage and Label Map
    Segmentation Storage.
    """
    try:
        with open_plain(path) as stream:
            head = stream.read(_META_BYTES)
    except OSError:
        return False
    return head[_MARK_START:_MARK_END] == _MARK and _SEG_CLASS.search(head) is not None


def _begins_as_dicom(head: bytes) -> bool:
    return head[_MARK_START:_MARK_END] == _MARK or begins_bare(head)


def looks_like_dicom(folder: Path, names: Sequence[str]) -> bool:
    """Return whether a folder or a direct subfolder contains files with the DICOM prefix.

    Only a few of the folder's entries, `names`, are inspected, without pydicom.
    """
    if _has_dicom_file(folder, names):
        return True
    entries = [folder / name for name in names[: 4 * _LOOK_AT]]
    subfolders = [entry for entry in entries if entry.is_dir()][:_LOOK_AT]
    return any(_has_dicom_file(subfolder, list_names(subfolder)) for subfolder in subfolders)


def may_be_dicom(name: str) -> bool:
    """Return whether a file name is possible for DICOM: no suffix, .dcm, .ima, or digits."""
    _, dot, suffix = name.rpartition(".")
    return not dot or suffix.lower() in {"dcm", "ima", "dicom"} or suffix.isdigit()


def _source_of(path: Path) -> Path | None:
    if path.is_dir():
        return path if _holds_dicom(path) else None
    if is_zip(path):
        return path if _zip_holds_dicom(path) else None
    return path.parent if is_dicom_file(path) else None


def _holds_dicom(folder: Path) -> bool:
    waiting, n_listed, left = deque([folder]), 0, _FILES_IN_ALL
    while waiting and n_listed < _MOST_FOLDERS and left > 0:
        below, names = _list_folder(waiting.popleft())
        n_listed += 1
        waiting.extend(below)
        if any(path.name.upper() == _INDEX for path in names):
            return True
        likely = list(islice((p for p in names if may_be_dicom(p.name)), _FILES_OF_FOLDER))
        left -= len(likely)
        if _one_is_dicom(likely):
            return True
    return False


def _list_folder(folder: Path) -> tuple[list[Path], list[Path]]:
    folders, files = [], []
    try:
        with os.scandir(folder) as entries:
            for entry in islice(entries, _MOST_ENTRIES):
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(folder / entry.name)
                # A link to a folder may lead back to a parent folder, without end.
                elif not entry.is_dir():
                    files.append(folder / entry.name)
    except OSError:
        return [], []
    return sorted(folders), sorted(files)


def _one_is_dicom(paths: Iterable[Path]) -> bool:
    return any(is_dicom_file(path) for path in paths)


def _zip_holds_dicom(path: Path) -> bool:
    try:
        with explained(path, "a zip", "make it again"), open_zip(path) as opened:
            names = [info for info in opened.infolist() if not info.is_dir()]
            if any(info.filename.rpartition("/")[2].upper() == _INDEX for info in names):
                return True
            likely = (info for info in names if may_be_dicom(info.filename.rpartition("/")[2]))
            return any(_is_dicom_member(opened, info) for info in islice(likely, _FILES_OF_ZIP))
    except FormatError:
        return False


def _is_dicom_member(opened: zipfile.ZipFile, info: zipfile.ZipInfo) -> bool:
    with opened.open(info) as stream:
        head = stream.read(_MARK_END)
        return _begins_as_dicom(head)


def _has_dicom_file(folder: Path, names: Sequence[str]) -> bool:
    likely = islice(filter(may_be_dicom, names), _LOOK_AT)
    return any(is_dicom_file(folder / name) for name in likely)
