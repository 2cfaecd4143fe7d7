"""Check the ids of studies against a data set before an import."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.data_set.imported_case import existing_case
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.sources import DataSet, LayoutKind
from napari_mamamia.io.files.user_folders import linked_cases_folder
from napari_mamamia.io.layouts.find import recognise
from napari_mamamia.services.dicom.finding import FoundStudy, require_id, tells_the_patient

_OWN_FOLDER: Final = "mamamia-cases"


@dataclass(frozen=True, slots=True)
class IdState:
    """The problem with an id, or ""; `is_there` says whether a case with that id can be replaced.

    An existing case is not a `problem` by itself, because the user may want to replace the case.
    """

    problem: str = ""
    is_there: bool = False


@dataclass(frozen=True, slots=True)
class ImportCheck:
    """The problem with the target folder, or "", and the state of each study's id."""

    target_problem: str
    ids: tuple[IdState, ...]


def check_import(studies: Sequence[FoundStudy], source: Path, out: Path | None) -> ImportCheck:
    """Check ids against the headers, against each other and against the data set `out`.

    Nothing is written. An id that contains a word from the patient's DICOM elements is a problem,
    even if the user chose it. If `out` is None, only the ids are checked.
    """
    problem = "Choose the data set to import into." if out is None else _target_problem(out, source)
    keys = [case_key(study.case_id) for study in studies]
    states = []
    for index, study in enumerate(studies):
        report_progress(index, len(studies), "Checking ids")
        is_twin = keys.count(keys[index]) > 1
        states.append(_id_state(study, None if problem else out, is_twin=is_twin))
    return ImportCheck(problem, tuple(states))


def default_target(opened: DataSet | None, recent: Sequence[Path]) -> Path:
    """Return the default data set of an import.

    The default is the open data set, or the data set used last, if it is writable and in the
    MAMA-MIA layout. Otherwise the default is ``mamamia-cases`` in the user's home folder.
    """
    if opened is not None and opened.kind is LayoutKind.MAMA_MIA and _is_writable(opened.root):
        return opened.root
    for root in recent:
        if root.is_relative_to(linked_cases_folder()):
            continue
        if recognise(root) is LayoutKind.MAMA_MIA and _is_writable(root):
            return root
    return Path.home() / _OWN_FOLDER


def _id_state(study: FoundStudy, out: Path | None, *, is_twin: bool) -> IdState:
    name = study.case_id
    if not name:
        return IdState("Give the case an id.")
    try:
        require_id(name)
        if study.study is not None and tells_the_patient(study.study, name):
            return IdState(
                f"The id {name} contains a word of the patient's name, number or birth date: "
                "choose an id that does not identify the patient."
            )
    except MamamiaError as error:
        return IdState(str(error))
    if is_twin:
        return IdState(f"Two studies have the id {name}: choose a different id for one of them.")
    return IdState(is_there=out is not None and existing_case(out, name) is not None)


def _target_problem(out: Path, source: Path) -> str:
    try:
        if out == source or source in out.parents:
            return (
                f"{out} is in the DICOM folder, which must not be changed: choose a different "
                "folder."
            )
        there = next((path for path in (out, *out.parents) if path.exists()), out)
        if not there.is_dir():
            return f"{there} is a file, not a folder: choose a different folder."
        if not _is_writable(there):
            return f"{there} is not writable: choose a different folder."
        kind = recognise(out) if there == out else None
    except (OSError, ValueError) as error:
        return f"{out} cannot be used ({error}): choose a different folder."
    if kind not in (None, LayoutKind.MAMA_MIA):
        return f"{out} has a layout to which no case can be added: choose a different folder."
    return ""


def _is_writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK | os.X_OK)
