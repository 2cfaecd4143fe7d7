"""Recognise what a user opens: a data set, DICOM, a zip archive, or the volumes of one case."""

import hashlib
import shutil
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import FormatError, MamamiaError
from napari_mamamia.core.features import find_opener
from napari_mamamia.core.grid import require_same_grid
from napari_mamamia.io.data_set.mask_files import is_mask_file
from napari_mamamia.io.data_set.volumes import read_header
from napari_mamamia.io.dicom.probe import dicom_source
from napari_mamamia.io.files.file_names import safe_case_id
from napari_mamamia.io.files.sources import LayoutKind
from napari_mamamia.io.files.user_folders import linked_cases_folder
from napari_mamamia.io.layouts.find import find_data_set, recognise
from napari_mamamia.io.volumes.formats import SINGLE_FILE_SUFFIXES, file_stem

_MASK_WORDS: Final = ("mask", "label", "seg", "reference")


class SourceKind(Enum):
    """The kind of the paths that a user opens."""

    DATA_SET = "a data set"
    """A folder or file in a known layout, or in an unknown layout, which its reader reports."""
    DICOM = "a DICOM folder"
    ARCHIVE = "DICOM to be imported"
    """A zip archive, or a folder with several studies."""
    FEATURE = "a folder of a feature"
    """A review study or a ranking."""
    VOLUMES = "volumes of one case"


def find_source(paths: Sequence[Path]) -> tuple[SourceKind, Path]:
    """Return the kind of the given paths, and the folder or file to open; no error is raised."""
    if len(paths) == 1:
        path = paths[0]
        if find_opener(path) is not None:
            return SourceKind.FEATURE, path
        kind = recognise(path)
        if kind is LayoutKind.DICOM:
            return SourceKind.DICOM, path
        if kind is not None:
            return SourceKind.DATA_SET, path
    folder = dicom_source(paths)
    if folder is not None:
        kind = recognise(folder)
        return (SourceKind.DICOM if kind is LayoutKind.DICOM else SourceKind.ARCHIVE), folder
    return (SourceKind.VOLUMES if len(paths) > 1 else SourceKind.DATA_SET), paths[0]


def link_volumes(paths: Sequence[Path]) -> tuple[Path, str]:
    """Return the data set and the case for volumes that a user opened together.

    If the volumes belong to a case in a known layout, that case is returned. Otherwise they are
    linked, in the given order, as phases of a new case in the user's documents. A volume whose name
    contains mask, label, seg or reference becomes the reference.

    Raises
    ------
    FormatError
        If a path is not a 3-D volume in a single file, there are several masks, or there is no
        image.
    GridMismatchError
        If the volumes are on different grids.
    """
    known = _find_known_case(paths)
    if known is not None:
        return known
    masks = [path for path in paths if _is_mask(path)]
    phases = [path for path in paths if path not in masks]
    if len(masks) > 1 or not phases:
        raise FormatError(
            f"expected the phases of one case and at most one mask, but got {len(phases)} images "
            f"and {len(masks)} masks: omit the additional masks, or open the folder of the data "
            "set"
        )
    _require_volumes([*phases, *masks])
    case_id = safe_case_id(file_stem(phases[0].name) or phases[0].name)
    code = hashlib.sha256("\n".join(map(str, paths)).encode()).hexdigest()[:8]
    root = linked_cases_folder() / f"{case_id}-{code}"
    for index, path in enumerate(phases):
        _link(path, root / "images" / case_id / f"{case_id}_{index:04d}{_suffix(path)}")
    for path in masks:
        _link(path, root / "segmentations" / "expert" / f"{case_id}{_suffix(path)}")
    return root, case_id


def _find_known_case(paths: Sequence[Path]) -> tuple[Path, str] | None:
    """Return the data set and id of the case in a known layout that has all these phases."""
    folder = paths[0].parent
    if any(path.parent != folder for path in paths) or recognise(folder) is None:
        return None
    with suppress(MamamiaError):
        data_set = find_data_set(folder)
        for case in data_set.cases:
            if {path.resolve() for path in paths} <= {
                file.resolve() for phase in case.phases for file in phase.files
            }:
                return data_set.root, case.case_id
    return None


def _is_mask(path: Path) -> bool:
    name = path.name.lower()
    return is_mask_file(path) or any(word in name for word in _MASK_WORDS)


def _require_volumes(paths: Sequence[Path]) -> None:
    first = None
    for path in paths:
        if not _suffix(path):
            raise FormatError(
                f"expected volumes in single files ({', '.join(SINGLE_FILE_SUFFIXES)}), but got "
                f"{path}: choose the phases of one case, or its folder"
            )
        header = read_header(path)
        if header.n_volumes > 1:
            raise FormatError(
                f"expected one phase in each of {len(paths)} files, but {path} holds "
                f"{header.n_volumes}: open only this file"
            )
        first = first or header
        require_same_grid(header.grid, first.grid, str(path), str(paths[0]))


def _suffix(path: Path) -> str:
    name = path.name.lower()
    return next((suffix for suffix in SINGLE_FILE_SUFFIXES if name.endswith(suffix)), "")


def _link(path: Path, target: Path) -> None:
    """Link a file, or copy it if the system does not support links."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() and target.samefile(path):
        return
    target.unlink(missing_ok=True)
    try:
        target.symlink_to(path.resolve())
    except OSError:
        shutil.copyfile(path, target)
