"""An append-only file of checked JSON lines: what was appended survives the end of the program."""

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from napari_mamamia.core.errors import FormatError, SaveConflictError, SaveError
from napari_mamamia.io.json_text import parsed_json

if sys.platform != "win32":
    import fcntl

__all__ = ["CheckedLines", "read_checked_lines", "scan_checked_lines"]

SYNC_EVERY_S: Final = 1.0
"""A power failure costs at most the lines of this time; the end of the program costs none."""

_HEAD: Final = b'{"check":"'
_MIDDLE: Final = b'","entry":'
_END: Final = b"}\n"
_DIGITS: Final = 16
_ENTRY_AT: Final = len(_HEAD) + _DIGITS + len(_MIDDLE)


class CheckedLines:
    r"""The file at `path`, open for one writer that only ever adds lines.

    Each line is ``{"check":"...","entry":...}``: valid JSON, with the BLAKE2b-64 of the entry's
    text. A line goes to the system in one write, so that it is there after a kill -9 of this
    process; it is forced to the disk at most `SYNC_EVERY_S` later, if `sync` is called that often,
    and by `close`. A last line that a crash left without its end is cut off on opening.

    Parameters
    ----------
    path
        Made if missing, its folder too.
    keep
        Whether the lines of an existing file stay.
    sync_every_s
        How long `append` may leave lines unforced; infinite where the caller calls `sync`, from
        another thread if it likes.

    Raises
    ------
    SaveConflictError
        If another process has the file open as its writer (not noticed on Windows and on file
        systems without locks).
    SaveError
        If the system refuses to open or write.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "results.jsonl"
    ...     with CheckedLines(path, keep=False) as lines:
    ...         lines.append({"case_id": "A", "dsc": 0.5})
    ...     list(read_checked_lines(path))
    [{'case_id': 'A', 'dsc': 0.5}]
    """

    def __init__(self, path: Path, *, keep: bool, sync_every_s: float = SYNC_EVERY_S) -> None:
        self.path = path
        self._sync_every_s = sync_every_s
        self._handle = -1
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            binary = getattr(os, "O_BINARY", 0)
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | binary, 0o666)
            _lock(self._handle, path)
            self._size = _length_of_whole_lines(self._handle) if keep else 0
            self._back_to(self._size)
        except OSError as error:
            self._release()
            if isinstance(error, SaveConflictError):
                raise
            raise _failure(path, error) from error
        self._synced_at = time.monotonic()
        self._is_dirty = False

    def append(self, entry: object) -> None:
        """Add one line; nothing of it stays if it cannot be written whole.

        Raises
        ------
        TypeError, ValueError
            If `entry` is not JSON; nan and infinite numbers are not.
        SaveError
            If the system refuses to write, such as on a full disk; earlier lines stay.
        """
        self.append_text(_json(entry))

    def append_text(self, text: bytes) -> None:
        """Add one line whose entry is JSON text already, such as with megabytes of base64 in it.

        `text` must be one JSON value in UTF-8 without a line end; it is not looked at. Raises
        `SaveError` as `append`.
        """
        line = _HEAD + _check(text) + _MIDDLE + text + _END
        try:
            written = 0
            while written < len(line):
                written += os.write(self._handle, line[written:])
        except OSError as error:
            self._back_to(self._size)
            raise _failure(self.path, error) from error
        self._size += len(line)
        self._is_dirty = True
        self.sync(every_s=self._sync_every_s)

    @property
    def size(self) -> int:
        """Length of the file in bytes: where the next line begins."""
        return self._size

    @property
    def is_in_place(self) -> bool:
        """Whether the file still lies under its name; somebody may have removed or replaced it."""
        try:
            there, own = self.path.stat(), os.fstat(self._handle)
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino)

    def put_back(self) -> "CheckedLines":
        """Return a copy of the file under its name, from which it was removed; let go of this one.

        Raises
        ------
        SaveConflictError, SaveError
            As for a new file; this one stays open.
        """
        copy = CheckedLines(self.path, keep=False, sync_every_s=self._sync_every_s)
        try:
            os.lseek(self._handle, 0, os.SEEK_SET)
            while block := os.read(self._handle, 1 << 20):
                while block:
                    block = block[os.write(copy._handle, block) :]
        except OSError as error:
            copy._release()
            with suppress(OSError):
                self.path.unlink()
            raise _failure(self.path, error) from error
        finally:
            os.lseek(self._handle, self._size, os.SEEK_SET)
        copy._size, copy._is_dirty = self._size, True
        self._release()
        return copy

    def sync(self, *, every_s: float = SYNC_EVERY_S) -> None:
        """Force to the disk what was appended, unless that was done less than `every_s` ago."""
        if not self._is_dirty or time.monotonic() - self._synced_at < every_s:
            return
        self._is_dirty = False  # before, so that a line appended meanwhile counts as unforced
        try:
            os.fsync(self._handle)
        except OSError as error:
            self._is_dirty = True
            raise _failure(self.path, error) from error
        self._synced_at = time.monotonic()

    def close(self) -> None:
        """Force all lines to the disk and let go of the file; closing twice is harmless."""
        if self._handle < 0:
            return
        try:
            self.sync(every_s=0.0)
        finally:
            self._release()

    def __enter__(self) -> "CheckedLines":
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

    def _release(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def read_checked_lines(path: Path) -> Iterator[Any]:
    """Yield the entry of each whole line in order; a torn or damaged line is passed over.

    Raises
    ------
    FormatError
        If the file cannot be read.
    """
    for _, entry in scan_checked_lines(path):
        if entry is not None:
            yield entry


def scan_checked_lines(path: Path, start: int = 0) -> Iterator[tuple[int, Any]]:
    """Yield the place and the entry of each line from `start` on; None for a damaged line.

    Raises
    ------
    FormatError
        If the file cannot be read.
    """
    try:
        with path.open("rb") as stream:
            stream.seek(start)
            for line in stream:
                text = _checked(line)
                yield start, None if text is None else _entry(text)
                start += len(line)
    except OSError as error:
        raise FormatError(
            f"expected readable results at {path}, but {error.strerror or error}: "
            "check that you may read the file"
        ) from error


def _entry(text: bytes) -> Any:
    """Return what a whole line says, None where it is no JSON of ours."""
    try:
        return parsed_json(text.decode("utf-8"))
    except ValueError:
        return None


def _json(entry: object) -> bytes:
    options = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
    return json.dumps(entry, **options).encode("utf-8")  # type: ignore[arg-type]


def _checked(line: bytes) -> bytes | None:
    """Return the entry's text if the line is whole and its check fits."""
    text = line[_ENTRY_AT : -len(_END)]
    return text if line == _HEAD + _check(text) + _MIDDLE + text + _END else None


def _check(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=_DIGITS // 2).hexdigest().encode("ascii")


def _length_of_whole_lines(handle: int, block: int = 1 << 16) -> int:
    """Return the length up to and including the last line end."""
    end = os.lseek(handle, 0, os.SEEK_END)
    while end > 0:
        start = max(0, end - block)
        os.lseek(handle, start, os.SEEK_SET)
        found = os.read(handle, end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _lock(handle: int, path: Path) -> None:
    """Claim the file for this writer; the system lets go of it when the process ends."""
    if sys.platform == "win32":
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise SaveConflictError(
            f"expected to be the only run that writes {path}, but another one is at work: wait "
            "for it, or choose another output folder"
        ) from error
    except OSError:
        return  # a file system without locks


def _failure(path: Path, error: OSError) -> SaveError:
    return SaveError(
        f"expected to add a result to {path}, but {error.strerror or error}: free some space or "
        "check the folder; results saved before are kept, --resume continues from them"
    )
