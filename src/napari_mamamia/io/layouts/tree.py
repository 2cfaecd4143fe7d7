"""`Tree`: the paths below a folder, listed once and never opened."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.names import readable_name

MOST_FILES: Final = 5_000_000
_DEEPEST: Final = 24


@dataclass(frozen=True)
class Tree:
    """The files below a root, as paths with ``/`` between their parts, in no order.

    `problems` name folders that could not be listed and names that are no UTF-8; such files are
    left out. Hidden names (a leading dot) are left out without a word.
    """

    root: Path
    files: tuple[str, ...]
    problems: tuple[str, ...] = ()
    is_whole: bool = True

    @cached_property
    def files_set(self) -> frozenset[str]:
        """The files, for asking whether one is there."""
        return frozenset(self.files)

    @cached_property
    def folders(self) -> Mapping[str, tuple[str, ...]]:
        """The names of the files in each folder that holds files itself."""
        names: dict[str, list[str]] = {}
        for path in self.files:
            folder, _, name = path.rpartition("/")
            names.setdefault(folder, []).append(name)
        return {folder: tuple(inside) for folder, inside in names.items()}

    @cached_property
    def subfolders(self) -> Mapping[str, tuple[str, ...]]:
        """The names of the folders in each folder, with those that hold files only further down."""
        names: dict[str, list[str]] = {}
        seen: set[str] = set()
        for folder in self.folders:
            while folder and folder not in seen:
                seen.add(folder)
                parent, _, name = folder.rpartition("/")
                names.setdefault(parent, []).append(name)
                names.setdefault(folder, [])
                folder = parent
        return {folder: tuple(inside) for folder, inside in names.items()}


def list_tree(root: Path, most: int = MOST_FILES) -> Tree:
    """Return the files below a folder; links to folders are followed, each folder once.

    Parameters
    ----------
    root
        The folder of a data set.
    most
        How many files are listed at most; ``is_whole`` says whether there are no more.

    Raises
    ------
    FormatError
        If `root` is no folder that can be listed.
    """
    try:
        os.scandir(root).close()
    except OSError as error:
        raise FormatError(
            f"expected a readable folder at {root}, but {error.strerror or error}: check the path "
            "and that you may read it"
        ) from error
    files: list[str] = []
    problems: list[str] = []
    seen: set[tuple[int, int]] = set()
    pending = [("", 0)]
    is_whole = True
    while pending:
        prefix, depth = pending.pop()
        folder = root / prefix if prefix else root
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            status = os.stat(folder)
        except OSError as error:
            problems.append(f"{readable_name(prefix)}: {error.strerror or error}")
            continue
        if (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        for entry in entries:
            if entry.name.startswith("."):
                continue
            path = f"{prefix}/{entry.name}" if prefix else entry.name
            if readable_name(path) != path:
                problems.append(f"{readable_name(path)}: its name is no UTF-8")
            elif entry.is_dir():
                if depth < _DEEPEST:
                    pending.append((path, depth + 1))
                else:
                    problems.append(f"{path}: more than {_DEEPEST} folders deep")
            else:
                files.append(path)
        if len(files) > most:
            is_whole = False
            break
    return Tree(root, tuple(files), tuple(problems), is_whole)
