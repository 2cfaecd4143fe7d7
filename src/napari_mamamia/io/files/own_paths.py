"""Temporary files and folders whose names identify the process that owns them.

No other module creates temporary paths. A killed program leaves its paths behind, so later
processes remove them: when a process creates its first temporary path in a folder, and in `sweep`,
`sweep_below` and `sweep_temporary` when a command starts. Names are ``.mamamia-OWNER-CODE.part``. A
folder that was moved away for a new folder, ``.mamamia-OWNER-CODE.was-NAME``, gets its name back if
that name is free.
"""

import functools
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import SaveError
from napari_mamamia.core.program.child_process import answer_of
from napari_mamamia.core.program.owner import owner_named, this_process
from napari_mamamia.core.program.system import account

_PREFIX: Final = ".mamamia-"
_PART: Final = ".part"
_WAS: Final = ".was-"
_IN_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - only looked into, for names of our own
_LEASE_S: Final = 7 * 24 * 3600.0
"""Time in seconds for which a temporary path of a different computer is kept.

The limit is needed because the processes of another computer are unknown.
"""
_DEPTH: Final = 4
"""Number of folder levels to search, one more than any output folder has.

The deepest folder is ``nnunet/DatasetNNN/imagesTr`` of an export.
"""
_PRIVATE: Final = stat.S_IRWXU
_REMOVE_S: Final = 60.0


def new_path_in(folder: Path) -> Path:
    """Return an unused path in `folder` that belongs to this process, without creating it.

    The caller renames the file written there to its final name, or removes it.
    """
    _sweep_once(folder, os.getpid())
    return folder / f"{_PREFIX}{this_process()}-{secrets.token_hex(4)}{_PART}"


@contextmanager
def own_folder(place: Path | None = None) -> Iterator[Path]:
    """Yield an empty folder that only this account can open, and remove it afterwards.

    Parameters
    ----------
    place
        The parent folder, which is created if missing; by default the system's folder for temporary
        files. `place_folder` may rename the new folder inside the block.

    Raises
    ------
    SaveError
        If the system cannot create the folder.
    """
    where = Path(tempfile.gettempdir()) if place is None else place
    try:
        where.mkdir(parents=True, exist_ok=True)
        folder = new_path_in(where)
        folder.mkdir(_PRIVATE)
    except OSError as error:
        raise SaveError(
            f"cannot write in {where}: {error.strerror or error}; nothing was written; free some "
            "space, or choose another folder"
        ) from error
    try:
        yield folder
    finally:
        remove_tree(folder)


def place_folder(folder: Path, target: Path, earlier: Path | None = None) -> None:
    """Rename a folder from `own_folder` to its final name, with the default mode of new folders.

    `target` may be an empty folder. `earlier` is a folder that is replaced with all its content. It
    is removed after the renaming, and restored if the renaming fails or the program is killed.

    Raises
    ------
    SaveError
        If `target` already exists, or the system cannot rename the folder.
    """
    try:
        folder.chmod(_usual_mode(target.parent))
        _rename_folder(folder, target, earlier)
    except OSError as error:
        raise SaveError(
            f"expected to rename the finished folder to {target}, but {error.strerror or error}: "
            "nothing was written; choose another folder, or free some space"
        ) from error


def _rename_folder(folder: Path, target: Path, earlier: Path | None) -> None:
    if earlier is None:
        if target.is_dir() and not target.is_symlink():
            target.rmdir()
        folder.rename(target)
        return
    aside = folder.with_name(f"{folder.stem}{_WAS}{earlier.name}")
    earlier.rename(aside)
    try:
        folder.rename(target)
    except OSError:
        aside.rename(earlier)
        raise
    remove_tree(aside)


def can_write_in(folder: Path) -> bool:
    """Return whether a file can be created in a folder, tested by creating one."""
    try:
        with tempfile.TemporaryFile(dir=folder):  # The file has no name if the system allows that.
            return True
    except OSError:
        return False


def temporary_places() -> tuple[Path, ...]:
    """Return the folders for temporary files of this account, starting with one in memory."""
    temporary = Path(tempfile.gettempdir())
    usable = _IN_MEMORY.is_dir() and os.access(_IN_MEMORY, os.W_OK)
    return (_IN_MEMORY, temporary) if usable else (temporary,)


def sweep_temporary() -> None:
    """Remove temporary files of ended processes from the system's temporary folders."""
    for place in temporary_places():
        sweep(place)


def sweep_below(root: Path) -> None:
    """Remove temporary files of ended processes from an output folder and its subfolders."""
    folders = [root]
    for _ in range(_DEPTH):
        folders = [inner for folder in folders for inner in sweep(folder)]


def sweep(folder: Path) -> list[Path]:
    """Remove temporary files of ended processes from `folder`; return the other subfolders.

    Only paths of this account are removed. A path that cannot be removed is left without an error,
    because cleaning must not block other work.
    """
    others = []
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return []
    for entry in entries:
        with suppress(OSError):
            if _is_abandoned(entry):
                _clear_path(Path(entry.path))
            elif entry.is_dir(follow_symlinks=False) and not entry.name.startswith(_PREFIX):
                others.append(Path(entry.path))
    return others


def remove_tree(folder: Path) -> None:
    """Remove a folder with all its content, even unreadable or very deep subfolders."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        for place in folder.rglob("*/"):
            if not place.is_symlink():
                place.chmod(_PRIVATE)
        shutil.rmtree(folder, ignore_errors=True)
    except RecursionError:
        # Python's own removal recurses for each level, `rm` does not.
        answer_of(("/bin/rm", "-rf", "--", str(folder.absolute())), _REMOVE_S)
    except OSError:
        return


@functools.lru_cache(maxsize=1024)
def _sweep_once(folder: Path, pid: int) -> None:
    del pid
    sweep(folder)


def _is_abandoned(entry: "os.DirEntry[str]") -> bool:
    if not entry.name.startswith(_PREFIX):
        return False
    owner = owner_named(entry.name.removeprefix(_PREFIX))
    about = entry.stat(follow_symlinks=False)
    if owner is None or not _is_own(about):
        return False  # Processes of other accounts may be hidden from this process.
    if owner.runs is None:
        return time.time() - _find_last_change(Path(entry.path), about.st_mtime) > _LEASE_S
    return not owner.runs


def _is_own(about: os.stat_result) -> bool:
    user = account()
    return user is None or about.st_uid == user[0]


def _find_last_change(path: Path, since: float) -> float:
    inside = (item.lstat().st_mtime for item in path.rglob("*"))
    return max(since, max(inside, default=since))


def _clear_path(path: Path) -> None:
    name = path.name.partition(_WAS)[2]
    if name and not os.path.lexists(path.with_name(name)):
        path.rename(path.with_name(name))
    elif path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        remove_tree(path)


def _usual_mode(folder: Path) -> int:
    probe = new_path_in(folder)
    probe.mkdir()
    try:
        return stat.S_IMODE(probe.stat().st_mode)
    finally:
        probe.rmdir()
