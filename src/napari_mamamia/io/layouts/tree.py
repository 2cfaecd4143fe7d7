"""`Tree`: the paths below a folder, listed once and never opened."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.names import readable_name

MOST_FILES: Final = 5_000_000
_DEEPEST: Final = 24


@dataclass(frozen=True)
class Tree:
    """The files below a root as relative paths with ``/`` as separator, in no particular order.

    `problems` name folders that could not be listed, and names that are not valid UTF-8; such files
    are left out. Hidden names (with a leading dot) are left out without a message. `empty_folders`
    contain no visible name. `unreadable` are the paths that are not valid UTF-8, with a replacement
    character for each invalid byte.
    """

    root: Path
    files: tuple[str, ...]
    problems: tuple[str, ...] = ()
    is_whole: bool = True
    empty_folders: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()

    @cached_property
    def files_set(self) -> frozenset[str]:
        """The file paths as a set, for membership tests."""
        return frozenset(self.files)

    @cached_property
    def by_lower_case(self) -> Mapping[str, str]:
        """The files by their lower-case path."""
        return {path.lower(): path for path in self.files}

    @cached_property
    def folders(self) -> Mapping[str, tuple[str, ...]]:
        """The names of the files directly inside each folder."""
        names: dict[str, list[str]] = {}
        for path in self.files:
            folder, _, name = path.rpartition("/")
            names.setdefault(folder, []).append(name)
        return {folder: tuple(inside) for folder, inside in names.items()}

    @cached_property
    def subfolders(self) -> Mapping[str, tuple[str, ...]]:
        """The names of subfolders in each folder, including folders without files of their own."""
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


def list_tree(root: Path, most: int = MOST_FILES, most_in_folder: int = MOST_FILES) -> Tree:
    """Return the files below a folder; links to folders are followed, each folder only once.

    Parameters
    ----------
    root
        The folder of a data set.
    most
        Largest number of files to list; ``is_whole`` states whether all files were listed.
    most_in_folder
        Largest number of names to list in one folder.

    Raises
    ------
    FormatError
        If `root` is not a folder, or cannot be listed.
    """
    try:
        os.scandir(root).close()
    except OSError as error:
        raise FormatError(
            f"cannot read the folder {root}: {error.strerror or error}; check the path and that "
            "you may read it"
        ) from error
    walk = _Walk(root, most_in_folder)
    pending = [("", 0)]
    while pending and len(walk.files) <= most:
        prefix, depth = pending.pop()
        folders = walk.list_folder(prefix)
        if depth >= _DEEPEST and folders:
            walk.problems.append(f"{folders[0]}: more than {_DEEPEST} folders deep")
        else:
            pending += [(folder, depth + 1) for folder in folders]
    is_whole = len(walk.files) <= most
    return Tree(
        root,
        tuple(walk.files),
        tuple(walk.problems),
        is_whole,
        tuple(walk.empty_folders),
        tuple(walk.unreadable),
    )


@dataclass(slots=True)
class _Walk:
    """State of a listing; `seen` holds the device and inode number of each folder."""

    root: Path
    most_in_folder: int
    files: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    empty_folders: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    seen: set[tuple[int, int]] = field(default_factory=set)

    def list_folder(self, prefix: str) -> list[str]:
        """Add the files of a folder to the list, and return its subfolders."""
        folder = self.root / prefix
        try:
            with os.scandir(folder) as listing:
                visible = (entry for entry in listing if not entry.name.startswith("."))
                entries = sorted(islice(visible, self.most_in_folder), key=lambda e: e.name)
            status = folder.stat()
        except OSError as error:
            self.problems.append(f"{readable_name(prefix)}: {error.strerror or error}")
            return []
        if (status.st_dev, status.st_ino) in self.seen:
            return []
        self.seen.add((status.st_dev, status.st_ino))
        if not entries:
            self.empty_folders.append(prefix)
        folders: list[str] = []
        for entry in entries:
            path = f"{prefix}/{entry.name}" if prefix else entry.name
            if readable_name(path) != path:
                self.problems.append(f"{readable_name(path)}: its name is not UTF-8")
                self.unreadable.append(readable_name(path))
            else:
                (folders if entry.is_dir() else self.files).append(path)
        return folders
