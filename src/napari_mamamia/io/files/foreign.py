"""The door of every reader: what a foreign file makes of a library becomes one error that names it.

Files come from others, damaged, cut or made to harm. A reader returns, or raises an error of
`core.errors`: `reads` stands at each public one and sees to that, whatever a library below raises.
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
"""Attribute of a reader: what it expects of a file, in words. Tests find the readers by it."""


_ASKED: Final = 1 << 20


class _Bounded(io.BufferedReader):
    """A file whose `read` never asks the system for more memory than the file has bytes."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > _ASKED:
            size = min(size, os.fstat(self.fileno()).st_size)
        return super().read(size)


def open_bounded(path: Path, buffering: int = io.DEFAULT_BUFFER_SIZE) -> io.BufferedReader:
    """Open a file for a library that reads as many bytes as a damaged length says: up to 4 GB."""
    return _Bounded(io.FileIO(path, opener=_open_at_once), buffering)


def open_plain(path: Path) -> io.BufferedReader:
    """Open a file that lies in somebody's folder; one that is a pipe, socket or device is refused.

    A pipe that nobody writes to would be waited for without end, a device read without end.

    Raises
    ------
    OSError
        If it cannot be opened, or is no plain file.
    """
    return io.BufferedReader(io.FileIO(path, opener=_open_at_once))


def _open_at_once(path: str, flags: int) -> int:
    number = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    mode = os.fstat(number).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):  # a folder has an error of its own
        return number
    os.close(number)
    raise OSError(errno.EINVAL, "it is a pipe, socket or device", path)


def said(error: BaseException) -> str:
    """Return what an error says in one line; its kind where it says nothing.

    Examples
    --------
    >>> said(ValueError("no")), said(MemoryError()), said(KeyError("shape"))
    ('no', 'there is not enough memory for it', "the key 'shape' is missing")
    """
    if isinstance(error, MemoryError):
        return "there is not enough memory for it"
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
    """Turn whatever goes wrong in the block into one error of `kind` that names `where`.

    Errors of this software and `Cancelled` pass as they are.
    """
    try:
        yield
    except (MamamiaError, Cancelled):
        raise
    except Exception as error:
        _log.debug("%s could not be read", where, exc_info=True)
        raise kind(f"expected {expected} at {where}, but {said(error)}: {remedy}") from error


def reads(expected: str, remedy: str, kind: type[MamamiaError] = FormatError) -> Callable[[F], F]:
    """Make a function the door of a reader; its first argument is what errors name.

    One that yields is guarded while it is read from, not only as it is called.

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
    """Return what a reader is asked to read: the first of several files stands for all."""
    given = args[0] if args else next(iter(named.values()), "")
    files = getattr(given, "files", given)
    first = files[0] if isinstance(files, list | tuple) and files else given
    return getattr(first, "file", getattr(first, "path", first))
