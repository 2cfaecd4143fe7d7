"""Check the output folder of an export before anything is written."""

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from napari_mamamia.core.names import count_of
from napari_mamamia.io.data_set.bundle import MANIFEST_NAME
from napari_mamamia.services.batch.output_folder import run_in


class TargetState(StrEnum):
    """The state of an output folder."""

    FREE = "free"
    BUNDLE = "an earlier export"
    CUT_OFF = "an export that was cut off"
    TAKEN = "other files"
    READ_ONLY = "read-only"
    NO_FOLDER = "no folder"


@dataclass(frozen=True, slots=True)
class ExportTarget:
    """The state of an output folder, and a sentence about it."""

    folder: Path
    state: TargetState
    text: str


def look_at_target(folder: Path) -> ExportTarget:
    """Return the state of `folder`; never raise, write nothing.

    A folder that does not exist yet is judged by its nearest existing parent.
    """
    try:
        return _looked_at(folder)
    except (OSError, ValueError) as error:
        text = f"{folder} cannot be used ({error}): choose another folder"
        return ExportTarget(folder, TargetState.NO_FOLDER, text)


def _looked_at(folder: Path) -> ExportTarget:
    there = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    if not there.is_dir():
        text = f"{there} is a file, not a folder: choose another folder"
        return ExportTarget(folder, TargetState.NO_FOLDER, text)
    if not os.access(there, os.W_OK):
        text = f"{there} may not be written to: choose another folder"
        return ExportTarget(folder, TargetState.READ_ONLY, text)
    names = [path.name for path in folder.iterdir()] if there == folder else []
    if not names:
        return ExportTarget(folder, TargetState.FREE, "The folder is empty or new.")
    if MANIFEST_NAME in names:
        text = "It holds an earlier export: replace its files, or choose another folder."
        return ExportTarget(folder, TargetState.BUNDLE, text)
    if run_in(folder) == "export":
        text = "It holds an unfinished export: replace its files, or choose another folder."
        return ExportTarget(folder, TargetState.CUT_OFF, text)
    text = (
        f"It holds {count_of(len(names), 'other file')}: choose another folder, or replace files."
    )
    return ExportTarget(folder, TargetState.TAKEN, text)
