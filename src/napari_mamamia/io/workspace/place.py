"""Find the workspace of a data set, even after both were moved, renamed or copied.

The first match is used; a sentence says why, and warnings name the folders passed over:

1. the folder that was chosen on this account, unless its file names another data set;
2. a folder beside the data set whose file names it: one that points to its present path before one
   with only the same cases, then the one called ``<name>-workspace``, then the latest;
3. ``<name>-workspace`` beside it;
4. the folder chosen on this account for the same cases at a former path;
5. a folder of ours in the user's documents whose file names it;
6. a new one, as in `io.workspace.preferences.workspace_for`.

If it cannot be written to, 5 is used; if there is none, it is opened read-only.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import CaseError
from napari_mamamia.io.files.own_paths import can_write_in
from napari_mamamia.io.files.sources import DataSet
from napari_mamamia.io.files.user_folders import documents_folder
from napari_mamamia.io.workspace.mark import MARK_NAME, Relation, points_to, relation_to
from napari_mamamia.io.workspace.preferences import (
    Preferences,
    absolute,
    outermost,
    workspace_beside,
    workspace_for,
)

_MOST_NEIGHBOURS: Final = 2000
_READ_ONLY: Final = (
    "the workspace {0} cannot be written to: your masks are not saved there; choose another "
    "folder for your masks on page Cases"
)
_OF_ANOTHER: Final = (
    "the folder {0} was made for another data set with the same case ids, so its masks are not "
    "shown; if it is this data set with rewritten images, delete " + MARK_NAME + " in it"
)
_ALSO: Final = "the folder {0} also holds masks of this data set, which are not shown"


@dataclass(frozen=True, slots=True)
class WorkspacePlace:
    """A workspace's folder, the reason for the choice, and warnings about other folders."""

    root: Path
    why: str
    warnings: tuple[str, ...] = ()


def find_workspace(data_set: DataSet, preferences: Preferences) -> WorkspacePlace:
    """Return the workspace of a data set; nothing is created."""
    chosen = dict(preferences.workspaces).get(absolute(data_set.root))
    beside = _named_beside(data_set)
    warnings = []
    if chosen is not None:
        if relation_to(chosen, data_set) is Relation.OTHER:
            warnings.append(_OF_ANOTHER.format(chosen))
        elif chosen.is_dir() or not beside:
            return _make_chosen_place(chosen, beside)
        else:
            warnings.append(f"the folder {chosen}, chosen for your masks, no longer exists")
    place = _find_place(data_set, preferences, beside, warnings)
    return place or WorkspacePlace(_find_free_place(data_set, warnings), "new", tuple(warnings))


def require_own(workspace: Path, data_set: DataSet) -> None:
    """Raise CaseError if a folder is the workspace of another data set with equal ids.

    Raises
    ------
    CaseError
        If its file says so.
    """
    if relation_to(workspace, data_set) is Relation.OTHER:
        raise CaseError(
            f"expected a workspace of {data_set.root}, but {_OF_ANOTHER.format(workspace)}; or "
            "choose another folder"
        )


def _make_chosen_place(chosen: Path, beside: list[Path]) -> WorkspacePlace:
    others = [_ALSO.format(one) for one in beside if not _is_same(one, chosen)]
    unwritable = chosen.is_dir() and not can_write_in(chosen)
    warnings = [_READ_ONLY.format(chosen)] if unwritable else []
    return WorkspacePlace(chosen, "chosen on this account", (*warnings, *others))


def _find_place(
    data_set: DataSet, preferences: Preferences, beside: list[Path], warnings: list[str]
) -> WorkspacePlace | None:
    """Return the existing workspace that names the data set, or that is named after it."""
    usual_folder = workspace_beside(data_set.root)
    is_free = usual_folder.is_dir() and relation_to(usual_folder, data_set) is Relation.UNKNOWN
    there = beside or ([usual_folder] if is_free else [])
    why = "beside the data set"
    if not there:
        there, why = _moved_from(data_set, preferences), "of this data set at its former path"
    documents = [one for one in _noted_in(documents_folder()) if _is_workspace_of(one, data_set)]
    if documents and not (there and can_write_in(there[0])):
        there, why = [*documents, *there], "in your documents"
    if not there:
        return None
    if not can_write_in(there[0]):
        warnings.append(_READ_ONLY.format(there[0]))
    warnings.extend(_ALSO.format(one) for one in there[1:])
    return WorkspacePlace(there[0], why, tuple(warnings))


def _named_beside(data_set: DataSet) -> list[Path]:
    """Return the folders beside a data set that name it, best first."""
    usual_folder, whole = workspace_beside(data_set.root), outermost(absolute(data_set.root))
    folders = [one for one in _noted_in(whole.parent) if _is_workspace_of(one, data_set)]

    def rank(one: Path) -> tuple[bool, bool, float]:
        noted = (one / MARK_NAME).stat().st_mtime
        return not points_to(one, absolute(data_set.root)), one != usual_folder, -noted

    return sorted(folders, key=rank)


def _moved_from(data_set: DataSet, preferences: Preferences) -> list[Path]:
    """Return workspaces chosen for the same cases at former paths."""
    return [
        workspace
        for root, workspace in preferences.workspaces
        if not root.exists() and _is_workspace_of(workspace, data_set)
    ]


def _find_free_place(data_set: DataSet, warnings: list[str]) -> Path:
    """Return an unused path: the default path, unless it belongs to another data set."""
    usual = workspace_for(data_set.root, Preferences())
    place, number = usual, 2
    while relation_to(place, data_set) is Relation.OTHER:
        place, number = usual.with_name(f"{usual.name}-{number}"), number + 1
    if place != usual:
        warnings.append(_OF_ANOTHER.format(usual))
    return place


def _is_workspace_of(workspace: Path, data_set: DataSet) -> bool:
    return relation_to(workspace, data_set) is Relation.SAME


def _noted_in(folder: Path) -> Iterator[Path]:
    """Yield the subfolders that hold the workspace file; at most the first ones of very many."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in islice(entries, _MOST_NEIGHBOURS)]
    except OSError:
        return
    yield from (folder / name for name in sorted(names) if (folder / name / MARK_NAME).is_file())


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return one == other
