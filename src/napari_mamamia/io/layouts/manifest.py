"""Compare the download lists of TCIA's programs with the downloaded series."""

import csv
import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Final

from napari_mamamia.core.names import name_some
from napari_mamamia.io.files.foreign import open_plain
from napari_mamamia.io.layouts.tree import Tree

_MOST_BYTES: Final = 64 << 20
_UID: Final = re.compile(r"[0-9]+(?:\.[0-9]+){5,}")
_LOCATION: Final = re.compile(r"\.?[\\/].+")


def list_missing_series(tree: Tree) -> list[str]:
    """Return a warning for each download list that names series missing in the folder.

    ``metadata.csv`` of the NBIA Data Retriever names folders, and ``.tcia`` files name series by
    UID. The UIDs are compared with folder names, unless no folder name is a UID.
    """
    warnings = []
    for path in tree.files:
        name = path.rpartition("/")[2].lower()
        if name == "metadata.csv":
            folder = path.rpartition("/")[0]
            missing = [
                location
                for location in _read_locations(_read_text(tree, path))
                if not _is_there(tree, folder, location)
            ]
        elif name.endswith(".tcia"):
            missing = _find_missing_uids(tree, _read_text(tree, path))
        else:
            continue
        if missing:
            warnings.append(
                f"{len(missing)} series in the list {path} are missing: {name_some(missing, 3)}"
            )
    return warnings


def _read_text(tree: Tree, path: str) -> str:
    try:
        with open_plain(tree.root / path) as file:
            return file.read(_MOST_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        return ""


def _read_locations(text: str) -> Iterable[str]:
    """Yield the folder in each row; some versions write rows one value too short."""
    rows = csv.reader(text.splitlines())
    header = next(rows, [])
    if "File Location" not in header:
        return
    for row in rows:
        cell = next((cell for cell in reversed(row) if _LOCATION.fullmatch(cell)), "")
        if cell:
            yield str(PurePosixPath(cell.replace("\\", "/")))


def _is_there(tree: Tree, folder: str, location: str) -> bool:
    path = str(PurePosixPath(folder, location.lstrip("/")))
    return path in tree.subfolders


def _find_missing_uids(tree: Tree, text: str) -> list[str]:
    listed = [line.strip() for line in text.splitlines() if _UID.fullmatch(line.strip())]
    there = {uid for folder in tree.subfolders for uid in _UID.findall(folder)}
    return [uid for uid in listed if uid not in there] if there else []
