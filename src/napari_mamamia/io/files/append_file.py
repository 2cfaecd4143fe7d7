"""Append-only files of whole lines with one writer, optionally with checksums or a hash chain.

The file may be in a folder that other users can write to, such as an output folder or a network
share. Therefore a link is never followed, a file with a second hard link is copied first, and no
file is truncated in place.

A line is ``{"hash":H,"prev":P,"seq":N,"entry":...}``: H is the SHA-256 of the line after this hash,
P is the H of the previous line, and N counts from 0. The P of the first line is the origin of the
file (see `ChainedLines`). This chain reveals a line that was changed, removed, duplicated, moved or
inserted from another file. Missing lines at the end cannot be detected from the file itself.
"""

import hashlib
import json
import os
import re
import stat
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

from napari_mamamia.core.errors import FormatError, Remedy, SaveConflictError, SaveError
from napari_mamamia.core.names import count_of
from napari_mamamia.core.program.system import (
    CAN_REPLACE_OPEN_FILES,
    claim,
    force_to_disk,
    open_own,
)
from napari_mamamia.io.files.foreign import open_plain
from napari_mamamia.io.files.json_text import parsed_json
from napari_mamamia.io.files.save import saving

SYNC_EVERY_S: Final = 1.0
"""Longest time in s between two writes to disk.

A power failure loses at most the lines of this period; a crash of the program loses none.
"""

_LOCKED_BYTE: Final = 1 << 40
"""Position of the locked byte on Windows, far beyond any line.

Other processes cannot read this byte.
"""

_BLOCK: Final = 1 << 20

_own_locks: Final[set[tuple[int, int, int]]] = set()
"""Files that this process has opened, as (process, device, file).

This record is needed because system locks do not reveal their owner, and some file systems have no
locks.
"""
_HEAD: Final = b'{"check":"'
_MIDDLE: Final = b'","entry":'
_END: Final = b"}\n"
_DIGITS: Final = 16
_ENTRY_AT: Final = len(_HEAD) + _DIGITS + len(_MIDDLE)
NO_ORIGIN: Final = "0" * 64
"""Previous hash stored in the first line of a file without an origin."""


_own_locks_turn: Final = threading.Lock()


class AppendFile:
    """A file opened by one writer, which only appends lines.

    A line is passed to the system in one write, so it survives even if this process is killed
    (SIGKILL). It is forced to the disk after at most `SYNC_EVERY_S`, if `sync` is called that
    often, and by `close`. If a crash left the last line incomplete, this line is removed when the
    file is opened.

    Parameters
    ----------
    path
        Path of the file, which is created with its folder if missing.
    keep
        Whether the lines of an existing file are kept; otherwise a new file replaces the existing
        file.
    sync_every_s
        How long appended lines may wait before they are forced to the disk; infinite if the caller
        calls `sync`, possibly from another thread.

    Raises
    ------
    SaveConflictError
        If another writer has opened the file. This is not detected on file systems without locks.
    SaveError
        If the system cannot open or write the file, or the path is not a plain file.
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
        """Append one line, including its line end, completely or not at all.

        Raises
        ------
        SaveConflictError
            If another program has written to the file. Then nothing is written.
        SaveError
            If the system cannot write, for example on a full disk. Earlier lines remain.
        """
        try:
            # On file systems without locks, only an unexpected size reveals another writer.
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
        """Length of the file in bytes, which is the position of the next line."""
        return self._size

    @property
    def is_in_place(self) -> bool:
        """Whether the file still exists under its name, and was not removed or replaced."""
        return _is_at(self.path, self._handle)

    def last_line(self) -> bytes:
        """Return the last line with its line end, or b"" if the file is empty."""
        index, tail = self._size, b""
        while index > 0 and tail.count(b"\n", 0, -1) == 0:
            start = max(0, index - _BLOCK)
            tail = _read_at(self._handle, index - start, start) + tail
            index = start
        return tail[tail.rfind(b"\n", 0, -1) + 1 :]

    def count_lines(self) -> int:
        """Read the whole file and return its number of lines."""
        starts = range(0, self._size, _BLOCK)
        return sum(_read_at(self._handle, _BLOCK, start).count(b"\n") for start in starts)

    def put_back(self) -> Self:
        """Write a copy under the name of the removed file, close this file, and return the copy.

        Raises
        ------
        SaveConflictError, SaveError
            As for a new file. This file stays open.
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
        self._is_dirty = False  # A line appended meanwhile counts as not forced.
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
    """Return whether this process is the writer that has the file at `path` open."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return (os.getpid(), status.st_dev, status.st_ino) in _own_locks


def opened_to_add(path: Path) -> IO[bytes]:
    """Open the plain file at `path` for appending bytes; create it if it is missing.

    Raises
    ------
    OSError
        If the system cannot open the file, or the path is not a plain file.
    """
    return os.fdopen(_open_own_file(path, os.O_APPEND), "ab")


def _claim_file(path: Path) -> int:
    while True:
        with _closed_on_error(_open_own_file(path)) as handle:
            _lock_file(handle, path)
            if _is_at(path, handle):
                return handle
        _let_go(handle)  # Another writer replaced the file in the meantime.


def _open_own_file(path: Path, more: int = 0) -> int:
    # `open_own` also rejects a link; this check names the link in the error.
    if path.is_symlink():
        raise _not_own(path, "a link to another path")
    with _closed_on_error(open_own(path, os.O_RDWR | os.O_CREAT | more)) as handle:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise _not_own(path, "not a regular file")
        return handle


def _must_be_new(handle: int, size: int) -> bool:
    if not CAN_REPLACE_OPEN_FILES:
        return False
    now = os.fstat(handle)
    return now.st_nlink > 1 or (size == 0 and now.st_size > 0)


def _copy_file(handle: int, path: Path, size: int) -> int:
    copy = -1
    try:
        with saving(path, overwrite=True) as temporary:
            copy = open_own(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL)
            _copy_bytes(handle, copy, size)
            # The file is locked before it gets its name, under which another writer could claim
            # it.
            _lock_file(copy, path)
    except BaseException:
        if copy >= 0:
            _let_go(copy)
        raise
    _let_go(handle)
    return copy


def _let_go(handle: int) -> None:
    # The identity is read while the file is open, because it is unknown after closing.
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
    # A forked child inherits the set of locks but is another writer.
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
    end = os.lseek(handle, 0, os.SEEK_END)
    while end > 0:
        start = max(0, end - block)
        position = _read_at(handle, end - start, start).rfind(b"\n")
        if position >= 0:
            return start + position + 1
        end = start
    return 0


def _lock_file(handle: int, path: Path) -> None:
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
        return  # The file system has no locks.
    if not is_ours:
        raise _make_conflict_error(path)


def _make_conflict_error(path: Path) -> SaveConflictError:
    return SaveConflictError(
        f"another run is writing {path}: wait for it, or choose another output folder"
    )


def _not_own(path: Path, what: str) -> SaveError:
    return SaveError(
        f"expected a regular file to append to at {path}, but it is {what}, so nothing was "
        "written: remove it, or choose another folder"
    )


def _make_save_error(path: Path, error: OSError) -> SaveError:
    return SaveError(
        f"cannot add a result to {path}: {error.strerror or error}; earlier results are kept; "
        "free some space or check the folder, then continue",
        remedies=(Remedy("resume"),),
    )


class CheckedLines(AppendFile):
    """An append-only file in which each line has a checksum (see `AppendFile`).

    Each line is ``{"check":"...","entry":...}``: valid JSON with the BLAKE2b-64 hash of the entry's
    text.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "results.jsonl"
    ...     with CheckedLines(path, keep=False) as lines:
    ...         lines.add({"case_id": "A", "dsc": 0.5})
    ...     list(read_checked_lines(path))
    [{'case_id': 'A', 'dsc': 0.5}]
    """

    def add(self, entry: object) -> None:
        """Append one line, completely or not at all.

        Raises
        ------
        TypeError, ValueError
            If `entry` cannot be JSON, for example because it contains NaN or infinity.
        SaveError
            If the system cannot write, for example on a full disk. Earlier lines remain.
        """
        text = _encode_entry(entry)
        self.append(_HEAD + _compute_checksum(text) + _MIDDLE + text + _END)


def read_checked_lines(path: Path) -> Iterator[Any]:
    """Yield the entry of each valid line in order; incomplete and damaged lines are skipped.

    Raises
    ------
    FormatError
        If the file cannot be read.
    """
    for _, entry in scan_checked_lines(path):
        if entry is not None:
            yield entry


def scan_checked_lines(path: Path, start: int = 0) -> Iterator[tuple[int, Any]]:
    """Yield the start and entry of each line from byte `start` on; None for damaged lines.

    Raises
    ------
    FormatError
        If the file cannot be read.
    """
    try:
        with open_plain(path) as stream:
            stream.seek(start)
            for line in stream:
                text = checked_text(line)
                yield start, None if text is None else parsed_entry(text)
                start += len(line)
    except OSError as error:
        raise FormatError(
            f"cannot read the results {path}: {error.strerror or error}; check the read "
            "permission of the file"
        ) from error


def parsed_entry(text: bytes) -> Any:
    """Return the JSON value in an entry, or None if Python cannot represent it."""
    try:
        return parsed_json(text.decode("utf-8"))
    except ValueError:
        return None


def _encode_entry(entry: object) -> bytes:
    options = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
    return json.dumps(entry, **options).encode("utf-8")  # type: ignore[arg-type]


def checked_text(line: bytes) -> bytes | None:
    """Return the text of the entry if the line is complete and its checksum matches."""
    text = line[_ENTRY_AT : -len(_END)]
    return text if line == _HEAD + _compute_checksum(text) + _MIDDLE + text + _END else None


def _compute_checksum(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=_DIGITS // 2).hexdigest().encode("ascii")


_LINE: Final = re.compile(
    rb'\{"hash":"([0-9a-f]{64})",("prev":"([0-9a-f]{64})","seq":(0|[1-9][0-9]{0,17}),"entry":(.*)\})\n',
    re.DOTALL,
)
_BEGIN: Final = b'{"hash":"'
_TORN: Final = "it is incomplete"
_CHANGED: Final = "its checksum does not match"
NO_CHAIN: Final = "it has no chain hash: an earlier version wrote it"


@dataclass(frozen=True, slots=True)
class ChainedLine:
    """One line of a file with a hash chain.

    Parameters
    ----------
    number
        Line number, counted from 1.
    start, stop
        Position of the first byte, and of the byte after the line end.
    hash, prev
        Hash of the line, and the stored hash of the previous line. Both are "" if the line cannot
        be read.
    seq
        Sequence number of the line, or -1 if it has none.
    entry
        JSON value of the line, or None if the line cannot be read.
    problem
        Reason why the line cannot be read or does not follow the previous line; "" if the line is
        valid.
    """

    number: int
    start: int
    stop: int
    hash: str = ""
    prev: str = ""
    seq: int = -1
    entry: Any = None
    problem: str = ""

    @property
    def is_torn(self) -> bool:
        """Whether the line end is missing, because of a crash or an ongoing write."""
        return self.problem == _TORN


class ChainedLines(AppendFile):
    """A file with a hash chain, opened by its single writer (see `AppendFile`).

    Parameters
    ----------
    origin
        The "previous hash" of the first line, which is the SHA-256 (64 digits) of a header file.

    Attributes
    ----------
    head
        Hash of the last line, or `origin` for an empty file. The next line stores this hash, which
        proves that all earlier lines existed.
    count
        Number of lines.
    """

    def __init__(
        self,
        path: Path,
        *,
        keep: bool = True,
        sync_every_s: float = SYNC_EVERY_S,
        origin: str = NO_ORIGIN,
    ) -> None:
        super().__init__(path, keep=keep, sync_every_s=sync_every_s)
        self.head, self.count = origin, 0
        last = self.last_line()
        if last:
            parts = _parse_parts(last)
            self.head = hashlib.sha256(last).hexdigest() if parts is None else parts[0]
            self.count = self.count_lines() if parts is None else parts[2] + 1

    def add(self, text: bytes) -> None:
        """Append one line with the JSON value `text`, in UTF-8 without a line end, as its entry.

        The value is not parsed, so megabytes of base64 take little time (see `canonical`). The
        errors are those of `AppendFile.append`.
        """
        body = b'"prev":"%s","seq":%d,"entry":%s}' % (self.head.encode(), self.count, text)
        digest = hashlib.sha256(body).hexdigest()
        self.append(b'{"hash":"%s",%s\n' % (digest.encode(), body))
        self.head, self.count = digest, self.count + 1

    def put_back(self) -> "ChainedLines":
        """Write a copy under the file's name and return it (see `AppendFile.put_back`)."""
        copy = super().put_back()
        copy.head, copy.count = self.head, self.count
        return copy


def scan_chained_lines(
    path: Path, head: str = NO_ORIGIN, *, start: int = 0, seq: int = 0
) -> Iterator[ChainedLine]:
    """Yield all lines in order, including damaged lines.

    Parameters
    ----------
    head, start, seq
        Where reading begins: the hash of the previous line (for the first line, of the header
        file), the position of the first byte, and the number of earlier lines.

    Raises
    ------
    FormatError
        If the file cannot be read.
    """
    try:
        with open_plain(path) as stream:
            stream.seek(start)
            for number, (line, is_joined) in enumerate(_split_lines(stream), start=seq + 1):
                record = parse_line(line, number, start)
                if is_joined:
                    record = replace(record, problem=_CHANGED)
                if record.entry is None:
                    seq += 1
                else:
                    record, seq = _check_order(record, head, seq), record.seq + 1
                head = (
                    record.hash
                )  # The hash is "" after an unreadable line, because it is unknown.
                yield record
                start += len(line)
    except OSError as error:
        raise FormatError(
            f"cannot read the records {path}: {error.strerror or error}; check the read "
            "permission of the file"
        ) from error


def line_at(path: Path, start: int) -> ChainedLine:
    """Return the line that begins at byte `start`, without checking its position in the chain.

    Raises
    ------
    FormatError
        If the file cannot be read.
    """
    try:
        with open_plain(path) as stream:
            stream.seek(start)
            return parse_line(stream.readline(), 0, start)
    except OSError as error:
        raise FormatError(
            f"cannot read a record in {path}: {error.strerror or error}; check the read "
            "permission of the file"
        ) from error


def canonical(value: object) -> bytes:
    """Return a value as canonical JSON: sorted keys, no blanks, UTF-8.

    Raises
    ------
    TypeError, ValueError
        If the value cannot be JSON, for example because it contains NaN or infinity.
    """
    text = json.dumps(
        value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
    )
    return text.encode("utf-8")


def _split_lines(stream: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    for line in stream:
        index = line.find(_BEGIN, 1)
        if index > 0:
            yield line[:index], True
            yield line[index:], False
        else:
            yield line, False


def parse_line(line: bytes, number: int, start: int) -> ChainedLine:
    """Return line `number`, which begins at byte `start`, without checking its order."""
    stop = start + len(line)
    if not line.endswith(b"\n"):
        return ChainedLine(number, start, stop, problem=_TORN)
    parts = _parse_parts(line)
    if parts is None:
        problem = _CHANGED if checked_text(line) is None else NO_CHAIN
        return ChainedLine(number, start, stop, problem=problem)
    entry = parsed_entry(parts[3])
    if entry is None:
        return ChainedLine(number, start, stop, problem=_CHANGED)
    return ChainedLine(number, start, stop, *parts[:3], entry)


def _parse_parts(line: bytes) -> tuple[str, str, int, bytes] | None:
    match = _LINE.fullmatch(line)
    if match is None or hashlib.sha256(match[2]).hexdigest().encode() != match[1]:
        return None
    return match[1].decode(), match[3].decode(), int(match[4]), match[5]


def _check_order(found: ChainedLine, head: str, expected: int) -> ChainedLine:
    # After an unreadable line there is no hash to compare with, only the sequence number.
    if head in ("", found.prev) and (head or found.seq == expected):
        return found
    missing = max(0, found.seq - expected)
    if missing:
        problem = (
            f"{count_of(missing, 'record')} before it {'is' if missing == 1 else 'are'} missing"
        )
    elif found.seq < expected:
        problem = "it is a duplicate or out of order"
    else:
        problem = "it does not follow the previous record"
    return replace(found, problem=problem)
