"""The file in a workspace that identifies its data set, so that both can be moved or renamed.

``mamamia_workspace.json`` names each data set that the workspace serves by its relative path and by
fingerprints of some of its cases. A data set is never written to, so only the workspace knows the
connection.
"""

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import Path, PurePath
from typing import Any, Final

from napari_mamamia.core.errors import SaveError
from napari_mamamia.io.files.foreign import open_plain
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.sources import CaseFiles, DataSet
from napari_mamamia.io.tables.tables import write_json

MARK_NAME: Final = "mamamia_workspace.json"
_VERSION: Final = 1
_MOST_CASES: Final = 8
_PIECE: Final = 1 << 16
_MOST_BYTES: Final = 1 << 20


class Relation(StrEnum):
    """The relation of a workspace to a data set, according to the workspace's file.

    OTHER is one with the same case ids and other images, whose masks would be confused with this
    one's: more than half of the recorded cases that exist differ. Some may have been written again,
    and baseline and follow-up may share one by mistake.
    """

    SAME = "same"
    OTHER = "other"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class WorkspaceMark:
    """The record of a data set: its root, and fingerprints of some cases by id."""

    root: Path
    prints: Mapping[str, str]

    def write(self, workspace: Path) -> None:
        """Write the record into an existing workspace, unless it is there already.

        A workspace that does not exist, or cannot be written to, stays unchanged: nothing depends
        on the record before it is moved.
        """
        if not self.prints or not workspace.is_dir():
            return
        try:
            entries = _read_entries(workspace)
        except OSError:
            return  # the records of other data sets would be lost
        others = [
            entry for entry in entries if _find_relation(entry, self.prints) is not Relation.SAME
        ]
        cases = dict(self.prints)
        for case_id, text in chain(
            *(entry["cases"].items() for entry in entries if entry not in others)
        ):
            if len(cases) < _MOST_CASES:  # a record that cannot be read now stays valid
                cases.setdefault(case_id, text)
        entry = {"path": _path_between(workspace, self.root), "cases": cases}
        if entry in entries and len(others) == len(entries) - 1:
            return
        content = {"mamamia_workspace": _VERSION, "data_sets": [entry, *others]}
        with suppress(SaveError):
            write_json(content, workspace / MARK_NAME, overwrite=True)


def prints_of(data_set: DataSet, case_ids: tuple[str, ...] = ()) -> dict[str, str]:
    """Return fingerprints of cases by id: of the named existing cases, otherwise of eight.

    A fingerprint covers a case's first image file: its size, its beginning and its end. A file that
    cannot be read has none.
    """
    cases = {case.case_id: case for case in data_set.cases}
    chosen_ids = case_ids or sorted(cases, key=_hash_case_id)[:_MOST_CASES]
    prints = {}
    for case_id in chosen_ids:
        if case_id in cases:
            with suppress(OSError, IndexError):
                prints[case_id] = _print_of(cases[case_id])
    return prints


def relation_to(workspace: Path, data_set: DataSet) -> Relation:
    """Return a workspace's relation to a data set; UNKNOWN if it has no record."""
    entries = _look_up_entries(workspace)
    ids = tuple(sorted({case_id for entry in entries for case_id in entry["cases"]}))
    if not ids:
        return Relation.UNKNOWN
    now = prints_of(data_set, ids)
    relations = {_find_relation(entry, now) for entry in entries}
    order = (Relation.SAME, Relation.OTHER, Relation.UNKNOWN)
    return next(relation for relation in order if relation in relations)


def points_to(workspace: Path, data_set: Path) -> bool:
    """Return whether the record in a workspace names the present path of a data set."""
    path = _path_between(workspace, data_set)
    return any(up_entry["path"] == path for up_entry in _look_up_entries(workspace))


def _hash_case_id(case_id: str) -> str:
    """Return a hash for sampling cases, so that mostly the same cases are chosen."""
    return hashlib.sha256(case_id.encode()).hexdigest()


def _print_of(case: CaseFiles) -> str:
    path = case.phases[0].files[0]
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
    """Return the recorded data sets; empty if the file cannot be read now."""
    try:
        return _read_entries(workspace)
    except OSError:
        return []


def _read_entries(workspace: Path) -> list[dict[str, Any]]:
    """Return the recorded data sets; empty if the file is missing or of other software."""
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
    """Return the relative path from a workspace to a data set; absolute on another drive."""
    try:
        return PurePath(os.path.relpath(data_set, workspace)).as_posix()
    except ValueError:
        return PurePath(data_set).as_posix()
