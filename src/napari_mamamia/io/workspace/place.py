"""Find the workspace of a data set, even after both were moved.

The first match is used. A sentence gives the reason, and warnings name the folders that were not
chosen:

1. the folder that was chosen on this account, unless its file names another data set;
2. a folder next to the data set whose file names the data set: first a folder with its current
   path, then a folder with only the same cases, then the folder ``<name>-workspace``, then the
   latest;
3. ``<name>-workspace`` next to the data set;
4. the folder that was chosen on this account for the same cases at a former path;
5. a folder of this program in the user's documents whose file names the data set;
6. a new folder, as in `io.workspace.preferences.workspace_for`.

A folder that belongs to another existing copy of the data set is not chosen in 2, 4 and 5, because
its file names the path of that copy, and its name is not derived from this data set. A warning
names the folder before a new one is created.

If the folder is not writable, 5 is used; if there is no such folder, the first folder is opened
read-only.

``mamamia_workspace.json`` names each data set that the workspace serves by its relative path and by
fingerprints of some of its cases. A data set is never changed, so the connection is recorded only
in the workspace.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, islice
from pathlib import Path, PurePath
from typing import Any, Final

from napari_mamamia.core.errors import CaseError, SaveError
from napari_mamamia.io.files.checksums import hash_text
from napari_mamamia.io.files.foreign import open_plain
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.own_paths import can_write_in
from napari_mamamia.io.files.sources import CaseFiles, DataSet, list_source
from napari_mamamia.io.files.user_folders import absolute, documents_folder
from napari_mamamia.io.layouts.find import recognise
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.io.workspace.preferences import (
    Preferences,
    outermost,
    workspace_beside,
    workspace_for,
)

MARK_NAME: Final = "mamamia_workspace.json"
_VERSION: Final = 1
_MOST_CASES: Final = 8
_PIECE: Final = 1 << 16
_MOST_BYTES: Final = 1 << 20
_MOST_NEIGHBOURS: Final = 2000
_READ_ONLY: Final = (
    "the workspace {0} is read-only, so your masks are not saved there; choose another folder for "
    "your masks on the Cases page"
)
_OF_ANOTHER: Final = (
    (
        "the folder {0} belongs to another data set with the same case ids, so its masks are not "
        "shown; if this is the same data set with rewritten images, delete "
    )
    + MARK_NAME
    + " in it"
)
_OF_COPIED: Final = (
    "the same images are in {1}, with masks in {0}, which are not shown here; to see and edit "
    "those masks, choose that folder for your masks"
)
_ALSO: Final = "the folder {0} also contains masks of this data set, which are not shown"


class Relation(StrEnum):
    """How a workspace is related to a data set, according to the workspace's own file.

    OTHER means a data set with the same case ids but different images, whose masks would be
    confused with those of this data set: more than half of the recorded cases that exist differ. A
    few may differ because they were written again, or because baseline and follow-up share a
    workspace by mistake.
    """

    SAME = "same"
    OTHER = "other"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class WorkspaceMark:
    """The entry for a data set in a workspace's file: its root, and fingerprints of some cases."""

    root: Path
    prints: Mapping[str, str]

    def write(self, workspace: Path) -> None:
        """Write the entry into the file of an existing workspace, if it is not there yet.

        A workspace that does not exist or is not writable is not changed, because the entry is
        needed only after the workspace is moved.
        """
        if not self.prints or not workspace.is_dir():
            return
        try:
            entries = _read_entries(workspace)
        except OSError:
            return  # The records of other data sets would be lost.
        others = [
            entry
            for entry in entries
            if _find_relation(entry, self.prints) is not Relation.SAME
            or _is_elsewhere(absolute(workspace / entry["path"]), self.root)
        ]
        cases = dict(self.prints)
        for case_id, text in chain(
            *(entry["cases"].items() for entry in entries if entry not in others)
        ):
            if len(cases) < _MOST_CASES:  # A record that is temporarily unreadable stays valid.
                cases.setdefault(case_id, text)
        entry = {"path": _path_between(workspace, self.root), "cases": cases}
        if entry in entries and len(others) == len(entries) - 1:
            return
        content = {"mamamia_workspace": _VERSION, "data_sets": [entry, *others]}
        with suppress(SaveError):
            write_json(content, workspace / MARK_NAME, overwrite=True)


def prints_of(data_set: DataSet, case_ids: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the fingerprints, by id, of the named cases that exist, or of eight cases.

    A fingerprint covers the size, the beginning and the end of a case's first image file. An
    unreadable file has no fingerprint.
    """
    cases = {case.case_id: case for case in data_set.cases}
    chosen_ids = case_ids or sorted(cases, key=hash_text)[:_MOST_CASES]
    prints = {}
    for case_id in chosen_ids:
        if case_id in cases:
            with suppress(OSError, IndexError):
                prints[case_id] = _print_of_file(_first_file(cases[case_id]))
    return prints


def _first_file(case: CaseFiles) -> Path:
    """Return the first image file of a case; for a DICOM study, the first by name."""
    is_study = case.source is not None and case.source.is_dir()
    return next(list_source(case), Path()) if is_study else case.phases[0].files[0]


def relation_to(workspace: Path, data_set: DataSet) -> Relation:
    """Return how a workspace is related to a data set; UNKNOWN if its file has no entry."""
    entries = _look_up_entries(workspace)
    ids = tuple(sorted({case_id for entry in entries for case_id in entry["cases"]}))
    if not ids:
        return Relation.UNKNOWN
    now = prints_of(data_set, ids)
    relations = {_find_relation(entry, now) for entry in entries}
    order = (Relation.SAME, Relation.OTHER, Relation.UNKNOWN)
    return next(relation for relation in order if relation in relations)


def points_to(workspace: Path, data_set: Path) -> bool:
    """Return whether the file of a workspace contains the current path of a data set."""
    path = _path_between(workspace, data_set)
    return any(up_entry["path"] == path for up_entry in _look_up_entries(workspace))


def _copied_from(workspace: Path, data_set: DataSet) -> Path | None:
    """Return a different existing data set with the same cases to which a workspace belongs.

    The result is None if there is none, or if the workspace is named after `data_set`.
    """
    copied = None
    for entry in _look_up_entries(workspace):
        root = absolute(workspace / entry["path"])
        now = prints_of(data_set, tuple(entry["cases"]))
        if _find_relation(entry, now) is not Relation.SAME:
            continue
        is_named_so = _is_same(workspace, workspace_beside(data_set.root)) and not _is_same(
            workspace, workspace_beside(root)
        )
        if (
            is_named_so
            or not _is_elsewhere(root, data_set.root)
            or _is_replaced(root, data_set, now)
        ):
            return None
        copied = root
    return copied


def _is_elsewhere(root: Path, other_root: Path) -> bool:
    """Return whether a data set still exists at `root`, and `other_root` is not part of it."""
    whole, other = outermost(root), outermost(absolute(other_root))
    return recognise(whole) is not None and not _is_same(whole, other)


def _is_replaced(root: Path, data_set: DataSet, prints: Mapping[str, str]) -> bool:
    """Return whether `root` now contains different images under the same names."""
    for case_id in prints:
        file = _first_file(data_set.case(case_id))
        if file.is_relative_to(data_set.root):
            try:
                return _print_of_file(root / file.relative_to(data_set.root)) != prints[case_id]
            except OSError:
                continue
    return False


def _print_of_file(path: Path) -> str:
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with open_plain(path) as stream:
        digest.update(stream.read(_PIECE))
        stream.seek(max(0, size - _PIECE))
        digest.update(stream.read(_PIECE))
    return digest.hexdigest()[:32]


def _find_relation(entry: Mapping[str, Any], now: Mapping[str, str]) -> Relation:
    shared = [case_id for case_id in entry["cases"] if case_id in now]
    if not shared:
        return Relation.UNKNOWN
    n_same = sum(entry["cases"][case_id] == now[case_id] for case_id in shared)
    return Relation.SAME if 2 * n_same >= len(shared) else Relation.OTHER


def _look_up_entries(workspace: Path) -> list[dict[str, Any]]:
    try:
        return _read_entries(workspace)
    except OSError:
        return []


def _read_entries(workspace: Path) -> list[dict[str, Any]]:
    try:
        content = read_json(workspace / MARK_NAME, _MOST_BYTES)
    except (FileNotFoundError, ValueError):
        return []
    data_sets = content.get("data_sets") if isinstance(content, dict) else None
    entries = data_sets if isinstance(data_sets, list) else []
    return [entry for entry in entries if _is_entry(entry)]


def _is_entry(one: Any) -> bool:
    return (
        isinstance(one, dict)
        and isinstance(one.get("path"), str)
        and isinstance(one.get("cases"), dict)
        and all(isinstance(value, str) for value in one["cases"].values())
    )


def _path_between(workspace: Path, data_set: Path) -> str:
    try:
        return PurePath(os.path.relpath(data_set, workspace)).as_posix()
    except ValueError:
        return PurePath(data_set).as_posix()


@dataclass(frozen=True, slots=True)
class WorkspacePlace:
    """The chosen workspace folder, the reason for the choice, and warnings about other folders."""

    root: Path
    why: str
    warnings: tuple[str, ...] = ()


def find_workspace(data_set: DataSet, preferences: Preferences) -> WorkspacePlace:
    """Return the workspace of a data set without creating anything."""
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
    if place is not None:
        return place
    warnings.extend(
        _OF_COPIED.format(folder, root)
        for folder in _noted_in(outermost(absolute(data_set.root)).parent)
        if (root := _copied_from(folder, data_set)) is not None
    )
    return WorkspacePlace(_find_free_place(data_set, warnings), "new", tuple(warnings))


def require_own(workspace: Path, data_set: DataSet) -> None:
    """Raise an error if a folder is the workspace of a different data set with equal case ids.

    Raises
    ------
    CaseError
        If the folder's file names the other data set.
    """
    if relation_to(workspace, data_set) is Relation.OTHER:
        raise CaseError(
            f"expected the workspace of {data_set.root}, but {_OF_ANOTHER.format(workspace)}; or "
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
    usual_folder = workspace_beside(data_set.root)
    is_free = usual_folder.is_dir() and relation_to(usual_folder, data_set) is Relation.UNKNOWN
    there = beside or ([usual_folder] if is_free else [])
    why = "next to the data set"
    if not there:
        there, why = _moved_from(data_set, preferences), "from this data set's former path"
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
    usual_folder, whole = workspace_beside(data_set.root), outermost(absolute(data_set.root))
    folders = [one for one in _noted_in(whole.parent) if _is_workspace_of(one, data_set)]

    def rank(one: Path) -> tuple[bool, bool, float]:
        noted = (one / MARK_NAME).stat().st_mtime
        return not points_to(one, absolute(data_set.root)), one != usual_folder, -noted

    return sorted(folders, key=rank)


def _moved_from(data_set: DataSet, preferences: Preferences) -> list[Path]:
    return [
        workspace
        for root, workspace in preferences.workspaces
        if not root.exists() and _is_workspace_of(workspace, data_set)
    ]


def _find_free_place(data_set: DataSet, warnings: list[str]) -> Path:
    usual = workspace_for(data_set.root, Preferences())
    place, number = usual, 2
    while relation_to(place, data_set) is Relation.OTHER or _copied_from(place, data_set):
        place, number = usual.with_name(f"{usual.name}-{number}"), number + 1
    if relation_to(usual, data_set) is Relation.OTHER:
        warnings.append(_OF_ANOTHER.format(usual))
    return place


def _is_workspace_of(workspace: Path, data_set: DataSet) -> bool:
    is_same = relation_to(workspace, data_set) is Relation.SAME
    return is_same and _copied_from(workspace, data_set) is None


def _noted_in(folder: Path) -> Iterator[Path]:
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
