"""``written_files.json`` lists every file that a run wrote into a folder, with its SHA-256.

The ledger records the SHA-256 of this list, so that the ledger's hash chain covers all files.
"""

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.features.challenge.io.challenge_file import FrozenFile, find_changes
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.record_codec import RecordCodec
from napari_mamamia.io.tables.tables import write_json

LIST_FILE: Final = "written_files.json"
_REMEDY: Final = "restore it from a copy, or run the command that wrote the folder again"


@dataclass(frozen=True, slots=True)
class FileList:
    """The files of a run; for a leaderboard, also the path of its challenge."""

    files: tuple[FrozenFile, ...]
    place: str = ""


_LIST: Final = RecordCodec(FileList, _REMEDY)


def write_file_list(folder: Path, names: Iterable[str], place: str = "") -> str:
    """Write the list of files in a folder, and return the SHA-256 of the list.

    Parameters
    ----------
    folder
        The folder.
    names
        Relative paths of the files.
    place
        Path of the challenge, relative to `folder`.

    Raises
    ------
    FormatError
        If a file cannot be read.
    SaveError
        If the system does not allow writing.
    """
    files = tuple(FrozenFile(name, sha256_of(folder / name)) for name in sorted(names))
    write_json(_LIST.plain(FileList(files, place)), folder / LIST_FILE, overwrite=True)
    return sha256_of(folder / LIST_FILE)


@reads("the list of files that a run wrote", _REMEDY)
def read_file_list(folder: Path) -> FileList:
    """Read the list of files in a folder.

    Raises
    ------
    FormatError
        If the list is missing or cannot be read.
    """
    return _LIST.record(read_json(folder / LIST_FILE), folder / LIST_FILE)


def find_differences(folder: Path, apart: Collection[str] = ()) -> dict[str, str]:
    """Describe each changed, missing or additional file in a folder that has a list, by name.

    Parameters
    ----------
    folder
        The folder.
    apart
        Names of files and folders that the list does not cover.
    """
    try:
        files = {file.name: file for file in read_file_list(folder).files}
    except FormatError as error:
        return {LIST_FILE: f"{LIST_FILE}: {error}"}
    added = set(list_files(folder, apart)) - set(files)
    changes = find_changes(folder, files)
    return changes | {name: f"{name} was added" for name in sorted(added)}


def list_files(folder: Path, apart: Collection[str] = ()) -> list[str]:
    """Return the relative paths of all files and links in a folder, except the list itself.

    Parameters
    ----------
    folder
        The folder.
    apart
        Names of files and folders directly in `folder` to leave out.
    """
    names = []
    for here, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(here, name))]  # noqa: PTH114, PTH118 - may be too long a name
        parts = [Path(here).relative_to(folder) / name for name in (*files, *links)]
        names += [part.as_posix() for part in parts if part.parts[0] not in (*apart, LIST_FILE)]
    return sorted(names)
