"""Guard readers by converting library errors about a file into errors that name the file.

Files from other sources may be damaged, truncated or malicious. The decorator `reads` ensures that
each public reader either returns or raises an error from `core.errors`, whatever a library raises.
"""

import errno
import io
import logging
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import isgeneratorfunction
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from napari_mamamia.core.errors import FormatError, MamamiaError
from napari_mamamia.core.progress import Cancelled

_log = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])

READS: Final = "__reads__"
"""Attribute of a guarded reader that describes the content it expects."""


_ASKED: Final = 1 << 20


class _Bounded(io.BufferedReader):
    """A file whose `read` never allocates more memory than the file has bytes."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > _ASKED:
            size = min(size, os.fstat(self.fileno()).st_size)
        return super().read(size)


def open_bounded(path: Path, buffering: int = io.DEFAULT_BUFFER_SIZE) -> io.BufferedReader:
    """Open a file for a library that trusts lengths in the file, which may be wrong."""
    return _Bounded(io.FileIO(path, opener=_open_at_once), buffering)


def open_plain(path: Path) -> io.BufferedReader:
    """Open a regular file; raise an error for a pipe, socket or device.

    Reading a pipe without a writer, or a device, would never end.

    Raises
    ------
    OSError
        If the file cannot be opened, or is not a plain file.
    """
    return io.BufferedReader(io.FileIO(path, opener=_open_at_once))


def _open_at_once(path: str, flags: int) -> int:
    number = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    mode = os.fstat(number).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):  # A folder has its own error.
        return number
    os.close(number)
    raise OSError(errno.EINVAL, "it is a pipe, socket or device", path)


def said(error: BaseException) -> str:
    """Return the message of an error as one line, or its type if there is no message.

    Examples
    --------
    >>> said(ValueError("no")), said(MemoryError()), said(KeyError("shape"))
    ('no', 'there is not enough memory to read it', "the key 'shape' is missing")
    """
    if isinstance(error, MemoryError):
        return "there is not enough memory to read it"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, KeyError):
        return f"the key {error} is missing"
    text = getattr(error, "strerror", None) or str(error)
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)


@contextmanager
def explained(
    where: object, expected: str, remedy: str, kind: type[MamamiaError] = FormatError
) -> Iterator[None]:
    """Convert any exception in the block to one error of type `kind` that names `where`.

    Errors of this software and `Cancelled` are not converted.
    """
    try:
        yield
    except (MamamiaError, Cancelled):
        raise
    except Exception as error:
        _log.debug("%s could not be read", where, exc_info=True)
        raise kind(f"expected {expected} at {where}, but {said(error)}: {remedy}") from error


def reads(expected: str, remedy: str, kind: type[MamamiaError] = FormatError) -> Callable[[F], F]:
    """Return a decorator that guards a reader and names the reader's first argument in errors.

    A generator is guarded while it is iterated, not only when it is called.

    Examples
    --------
    >>> @reads("two numbers", "correct them")
    ... def pair(text):
    ...     a, b = text.split()
    ...     return float(a), float(b)
    >>> pair("1 two")
    Traceback (most recent call last):
    napari_mamamia.core.errors.FormatError: expected two numbers at 1 two, but could not convert
    string to float: 'two': correct them
    """

    def guarded(function: F) -> F:
        def door(*args: Any, **named: Any) -> Any:
            with explained(_find_source(args, named), expected, remedy, kind):
                return function(*args, **named)

        def yielding_door(*args: Any, **named: Any) -> Iterator[Any]:
            with explained(_find_source(args, named), expected, remedy, kind):
                yield from function(*args, **named)

        reader = wraps(function)(yielding_door if isgeneratorfunction(function) else door)
        setattr(reader, READS, expected)
        return cast("F", reader)

    return guarded


def _find_source(args: tuple[Any, ...], named: dict[str, Any]) -> object:
    given = args[0] if args else next(iter(named.values()), "")
    files = getattr(given, "files", given)
    first = files[0] if isinstance(files, list | tuple) and files else given
    return getattr(first, "file", getattr(first, "path", first))
