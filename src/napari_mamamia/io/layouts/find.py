"""Find the cases of a folder, first by built-in layouts, then by patterns."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.data_set import layout as own_finders
from napari_mamamia.io.files.folders import list_names
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.sources import DataSet, LayoutKind
from napari_mamamia.io.layouts.cases import build_data_set
from napari_mamamia.io.layouts.complete import complete_case
from napari_mamamia.io.layouts.known import (
    choose_matches,
    find_layout,
    list_layouts,
    read_own_layout,
)
from napari_mamamia.io.layouts.layout import Layout
from napari_mamamia.io.layouts.tree import list_tree

_GLANCE: Final = 2000
"""Number of files listed to recognise a folder (our choice); a file dialog must not wait."""


def own_layout_file(root: Path) -> Path:
    """Return the path of a folder's layout description, next to the folder."""
    return root.with_name(f"{root.name}.layout.toml")


def recognise(path: Path) -> LayoutKind | None:
    """Return the layout of a folder or file, judged by its names alone, or None.

    Never raises and reads no volume, so it can be called with any path.
    """
    kind = own_finders.recognise(path)
    if kind is not None or not path.is_dir():
        return kind
    try:
        tree = list_tree(path, _GLANCE)
        if choose_matches(_layouts_for(path), tree):
            return LayoutKind.PATTERN
    except (FormatError, OSError):
        if own_layout_file(path).is_file():
            return LayoutKind.PATTERN
    inner = _find_only_folder(path)
    return None if inner is None else recognise(inner)


@reads("a data set", "check the folder that the message names")
def find_data_set(path: Path, layout: str = "") -> DataSet:
    """Return the cases of a folder or file, in natural order of their ids.

    A case that cannot be opened as it is (a phase missing, two files for one phase) is listed with
    its problems.

    Parameters
    ----------
    path
        The folder of a data set, the folder of a case, or a file.
    layout
        The name of a layout, or a TOML file that describes one; "" finds it.

    Raises
    ------
    FormatError
        If `path` holds no case, several layouts fit, or a file of the layout is damaged.
    CaseError
        If a DICOM folder contradicts itself.
    MissingExtraError
        If it holds DICOM and pydicom is not installed.
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100 - a link to a data set stays where it is
    is_described = bool(layout) or own_layout_file(path).is_file()
    kind = own_finders.recognise(path)
    if kind is LayoutKind.NNUNET_RAW and (path / "dataset.json").is_file() and not is_described:
        layout = "nnunet"  # its channels need not be phases
    elif not is_described and kind is not None:
        return own_finders.find_data_set(path)
    if not path.is_dir():
        return own_finders.find_data_set(path)
    tree = list_tree(path)
    matches = choose_matches(find_layout(layout) if layout else _layouts_for(path), tree)
    if matches is None and is_described:
        raise FormatError(
            f"expected files as the layout {layout or own_layout_file(path)} describes them in "
            f"{path}, but none fits: correct the layout, or open the folder without it"
        )
    inner = _find_only_folder(path) if matches is None else None
    if inner is not None and recognise(inner) is not None:
        return find_data_set(inner)
    if matches is None:
        return own_finders.find_data_set(path)  # which says what was looked for
    return complete_studies(build_data_set(matches, tree))


def _find_only_folder(path: Path) -> Path | None:
    """Return the only folder in a folder, such as the study in a patient's folder."""
    try:
        entries = [path / name for name in list_names(path)]
        folders = [entry for entry in entries if entry.is_dir() and not entry.is_symlink()]
    except (FormatError, OSError):
        return None
    return folders[0] if len(folders) == 1 else None


def complete_studies(data_set: DataSet) -> DataSet:
    """Return a data set whose DICOM studies and scenes have phases, reading headers."""
    pending = [case for case in data_set.cases if case.source is not None]
    if not pending:
        return data_set
    cases = []
    for index, case in enumerate(data_set.cases):
        report_progress(index, len(data_set.cases), f"Reading headers of {case.case_id}")
        cases.append(complete_case(case))
    return replace(data_set, cases=tuple(cases))


def _layouts_for(path: Path) -> tuple[Layout, ...]:
    described = own_layout_file(path)
    return read_own_layout(described) if described.is_file() else list_layouts()
