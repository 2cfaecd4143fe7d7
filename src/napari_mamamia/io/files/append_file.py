"""A file to which a single writer only ever appends whole lines.

It may be in a folder that others can write to (an output folder, a share): a link is never
followed, a file with a second hard link is copied first, and nothing is emptied in place.
"""

import os
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from napari_mamamia.core.errors import Remedy, SaveConflictError, SaveError
from napari_mamamia.core.program.system import (
    CAN_REPLACE_OPEN_FILES,
    claim,
    force_to_disk,
    open_own,
)
from napari_mamamia.io.files.save import saving

SYNC_EVERY_S: Final = 1.0
"""Longest time in s between two writes to disk.

A power failure loses at most the lines of this time; a crash of the program loses none.
"""

_LOCKED_BYTE: Final = 1 << 40
"""On Windows, the locked byte: others cannot read it, so it is far beyond any line."""

_BLOCK: Final = 1 << 20

_own_locks: Final[set[tuple[int, int, int]]] = set()
"""Files that this process has open, as (process, device, file).

System locks do not reveal their owner, and some file systems have no locks.
"""
_own_locks_turn: Final = threading.Lock()


class AppendFile:
    """The file at `path`, open for one writer that only appends lines.

    A line goes to the system in one write, so that it survives a kill -9 of this process; it is
    forced to the disk at most `SYNC_EVERY_S` later, if `sync` is called that often, and by `close`.
    A last line that a crash left incomplete is cut off on opening.

    Parameters
    ----------
    path
        Made if missing, its folder too.
    keep
        Whether the lines of an existing file stay; if not, a new file replaces it.
    sync_every_s
        How long `append` may leave lines unforced; infinite if the caller calls `sync`,
        possibly from another thread.

    Raises
    ------
    SaveConflictError
        If another writer has the file open (not detected on file systems without locks).
    SaveError
        If the system refuses to open or write, or the path is not a plain file.
    """

    def __init__(self, path: Path, *, keep: bool, sync_every_s: float = SYNC_EVERY_S) -> None:
        self.path = path
        self._sync_every_s = sync_every_s
        self._handle = -1
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._handle = _claim_file(path)
            self._size = _length_of_whole_lines(self._handle) if keep else 0
            if _must_be_new(self._handle, self._size):
                self._handle = _copy_file(self._handle, path, self._size)
            self._back_to(self._size)
        except OSError as error:
            self._release_handle()
            if isinstance(error, SaveError | SaveConflictError):
                raise
            raise _make_save_error(path, error) from error
        self._synced_at = time.monotonic()
        self._is_dirty = False

    def append(self, line: bytes) -> None:
        """Append one line including its line end, completely or not at all.

        Raises
        ------
        SaveConflictError
            If something else wrote to the file meanwhile; nothing is written then.
        SaveError
            If the system refuses to write, such as on a full disk; earlier lines stay.
        """
        try:
            # On file systems without locks only an unexpected size reveals another writer.
            if os.fstat(self._handle).st_size != self._size:
                raise _make_conflict_error(self.path)
            os.lseek(self._handle, self._size, os.SEEK_SET)
            written = 0
            while written < len(line):
                written += os.write(self._handle, line[written:])
        except SaveConflictError:
            raise
        except OSError as error:
            self._back_to(self._size)
            raise _make_save_error(self.path, error) from error
        self._size += len(line)
        self._is_dirty = True
        self.sync(every_s=self._sync_every_s)

    @property
    def size(self) -> int:
        """Length of the file in bytes: where the next line begins."""
        return self._size

    @property
    def is_in_place(self) -> bool:
        """Whether the file still has its name, so was not removed or replaced."""
        return _is_at(self.path, self._handle)

    def last_line(self) -> bytes:
        """Return the last line with its end, b"" for an empty file."""
        index, tail = self._size, b""
        while index > 0 and tail.count(b"\n", 0, -1) == 0:
            start = max(0, index - _BLOCK)
            tail = _read_at(self._handle, index - start, start) + tail
            index = start
        return tail[tail.rfind(b"\n", 0, -1) + 1 :]

    def count_lines(self) -> int:
        """Return the number of lines, reading the whole file."""
        starts = range(0, self._size, _BLOCK)
        return sum(_read_at(self._handle, _BLOCK, start).count(b"\n") for start in starts)

    def put_back(self) -> Self:
        """Write a copy under the removed file's name, close this file and return the copy.

        Raises
        ------
        SaveConflictError, SaveError
            As for a new file; this one stays open.
        """
        copy = type(self)(self.path, keep=False, sync_every_s=self._sync_every_s)
        try:
            _copy_bytes(self._handle, copy._handle, self._size)
        except OSError as error:
            copy._release_handle()
            with suppress(OSError):
                self.path.unlink()
            raise _make_save_error(self.path, error) from error
        copy._size, copy._is_dirty = self._size, True
        self._release_handle()
        return copy

    def sync(self, *, every_s: float = SYNC_EVERY_S) -> None:
        """Force appended lines to the disk, unless this was done less than `every_s` ago."""
        if not self._is_dirty or time.monotonic() - self._synced_at < every_s:
            return
        self._is_dirty = False  # set before, so that a line appended meanwhile counts as unforced
        try:
            force_to_disk(self._handle)
        except OSError as error:
            self._is_dirty = True
            raise _make_save_error(self.path, error) from error
        self._synced_at = time.monotonic()

    def close(self) -> None:
        """Force all lines to the disk and close the file; closing twice is harmless."""
        if self._handle < 0:
            return
        try:
            self.sync(every_s=0.0)
        finally:
            self._release_handle()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _back_to(self, size: int) -> None:
        os.ftruncate(self._handle, size)
        os.lseek(self._handle, size, os.SEEK_SET)

    def _release_handle(self) -> None:
        if self._handle >= 0:
            _let_go(self._handle)
            self._handle = -1


def is_open_here(path: Path) -> bool:
    """Return whether this process has the file at `path` open as its writer."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return (os.getpid(), status.st_dev, status.st_ino) in _own_locks


def opened_to_add(path: Path) -> IO[bytes]:
    """Return the plain file at `path`, open for appending bytes; create it if missing.

    Raises
    ------
    OSError
        If the system refuses, or the path is not a plain file.
    """
    return os.fdopen(_open_own_file(path, os.O_APPEND), "ab")


def _claim_file(path: Path) -> int:
    """Return the file at `path`, locked for this writer; create it if missing."""
    while True:
        with _closed_on_error(_open_own_file(path)) as handle:
            _lock_file(handle, path)
            if _is_at(path, handle):
                return handle
        _let_go(handle)  # another writer replaced the file meanwhile


def _open_own_file(path: Path, more: int = 0) -> int:
    """Open the file at `path` for reading and writing if it is a plain file and no link."""
    # `open_own` refuses a link as well; this check names it in the error.
    if path.is_symlink():
        raise _not_own(path, "a link to another place")
    with _closed_on_error(open_own(path, os.O_RDWR | os.O_CREAT | more)) as handle:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise _not_own(path, "not a plain file")
        return handle


def _must_be_new(handle: int, size: int) -> bool:
    """Return whether the file has another hard link, or would have to be truncated in place."""
    if not CAN_REPLACE_OPEN_FILES:
        return False
    now = os.fstat(handle)
    return now.st_nlink > 1 or (size == 0 and now.st_size > 0)


def _copy_file(handle: int, path: Path, size: int) -> int:
    """Replace the file by a new one with the first `size` bytes, locked; return its handle."""
    copy = -1
    try:
        with saving(path, overwrite=True) as temporary:
            copy = open_own(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL)
            _copy_bytes(handle, copy, size)
            # Locked before it gets its name, under which others could claim it.
            _lock_file(copy, path)
    except BaseException:
        if copy >= 0:
            _let_go(copy)
        raise
    _let_go(handle)
    return copy


def _let_go(handle: int) -> None:
    # Read while it is open: after closing, its identity is unknown.
    _own_locks.discard(_identify_file(handle))
    os.close(handle)


def _read_at(handle: int, size: int, start: int) -> bytes:
    os.lseek(handle, start, os.SEEK_SET)
    return os.read(handle, size)


def _copy_bytes(source: int, target: int, size: int) -> None:
    index = 0
    while index < size and (block := _read_at(source, min(_BLOCK, size - index), index)):
        index += len(block)
        while block:
            block = block[os.write(target, block) :]


def _identify_file(handle: int) -> tuple[int, int, int]:
    status = os.fstat(handle)
    # A forked child inherits the set of locks, but is another writer.
    return (os.getpid(), status.st_dev, status.st_ino)


@contextmanager
def _closed_on_error(handle: int) -> Iterator[int]:
    try:
        yield handle
    except BaseException:
        os.close(handle)
        raise


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except OSError:
        return False


def _length_of_whole_lines(handle: int, block: int = 1 << 16) -> int:
    """Return the length up to and including the last line end."""
    end = os.lseek(handle, 0, os.SEEK_END)
    while end > 0:
        start = max(0, end - block)
        position = _read_at(handle, end - start, start).rfind(b"\n")
        if position >= 0:
            return start + position + 1
        end = start
    return 0


def _lock_file(handle: int, path: Path) -> None:
    """Lock the file for this writer; the system releases it when the process ends."""
    with _own_locks_turn:
        identity = _identify_file(handle)
        if identity in _own_locks:
            raise _make_conflict_error(path)
        _lock_against_others(handle, path)
        _own_locks.add(identity)


def _lock_against_others(handle: int, path: Path) -> None:
    try:
        is_ours = claim(handle, _LOCKED_BYTE)
    except OSError:
        return  # a file system without locks
    if not is_ours:
        raise _make_conflict_error(path)


def _make_conflict_error(path: Path) -> SaveConflictError:
    return SaveConflictError(
        f"another run is writing {path}: wait for it, or choose another output folder"
    )


def _not_own(path: Path, what: str) -> SaveError:
    return SaveError(
        f"expected a plain file to append to at {path}, but it is {what}: nothing was "
        "written there; remove it, or choose another folder"
    )


def _make_save_error(path: Path, error: OSError) -> SaveError:
    return SaveError(
        f"cannot add a result to {path}: {error.strerror or error}; free some space or check the "
        "folder, then continue; earlier results are kept",
        remedies=(Remedy("resume"),),
    )
