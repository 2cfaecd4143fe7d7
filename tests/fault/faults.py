"""What goes wrong in a command: killed at its n-th step on a file, a full disk, a failing read.

Installed in a forked child before the command runs. Every step of Python code on a file below one
folder is counted; the n-th is where the fault strikes. A write that is struck is half done first,
as a real one would be. What C++ libraries write themselves is not seen here.
"""

import builtins
import errno
import io
import os
import signal
import threading
from collections import Counter
from pathlib import Path

READS = {"open to read", "read", "list"}
WRITES = {"open to write", "write", "mkdir", "link"}
MOVES = {"rename", "remove", "sync", "chmod", "truncate"}
ALL = READS | WRITES | MOVES
STRUCK = {
    "kill": ALL,
    "full": WRITES,
    "read-only": WRITES | MOVES,
    "eio": READS,
    "estale": READS,
    "stop": ALL,
    "twice": ALL,
}
SOON = 5
ERRORS = {"full": errno.ENOSPC, "read-only": errno.EROFS, "eio": errno.EIO, "estale": errno.ESTALE}


class Faults:
    """Counts the steps on files below `root`, and strikes at step `at` of those that `kind` is of.

    A full disk stays full, a read-only one read-only; a file that could not be read stays
    unreadable. The kind "stop" sends the process the signal `number`, "twice" a second one some
    steps later, while it tidies up.
    """

    def __init__(self, root: str, kind: str = "", at: int = 0, number: int = 0) -> None:
        self.root = f"{Path(root).resolve()}/"
        self.kind, self.at, self.number = kind, at, number
        self.moments = {"stop": {at}, "twice": {at, at + SOON}}.get(kind, set())
        self.counts: Counter[str] = Counter()
        self.n_seen = 0
        self.broken: str | None = None
        self.has_struck = False
        self._lock = threading.Lock()

    def concerns(self, path: object) -> bool:
        try:
            text = os.fsdecode(os.fspath(path))
        except (TypeError, ValueError):
            return False
        return os.path.abspath(text).startswith(self.root)  # noqa: PTH100 - links stay links

    def step(self, what: str, path: object) -> bool:
        """Count a step; return whether it is struck, which `strike` then does."""
        name = str(path)
        with self._lock:
            self.counts[what] += 1
            if what not in STRUCK.get(self.kind, ()):
                return False
            self.n_seen += 1
            if self.moments:
                self.signal()
                return False
            if self.kind in ("eio", "estale") and self.has_struck:
                return name == self.broken
            if self.n_seen < self.at:
                return False
            if not self.has_struck:
                self.has_struck, self.broken = True, name
            return True

    def signal(self) -> None:
        if self.n_seen in self.moments:
            os.kill(os.getpid(), self.number)

    def strike(self) -> None:
        if self.kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        code = ERRORS[self.kind]
        raise OSError(code, os.strerror(code))


class Raw(io.FileIO):
    """A file whose reads and writes are counted, and struck."""

    faults: Faults

    def _reads(self) -> None:
        if self.faults.step("read", self.name):
            self.faults.strike()

    def readinto(self, buffer):
        self._reads()
        return super().readinto(buffer)

    def read(self, size=-1):
        self._reads()
        return super().read(size)

    def readall(self):
        self._reads()
        return super().readall()

    def write(self, data):
        if self.faults.step("write", self.name):
            whole = memoryview(data).cast("B")
            super().write(whole[: whole.nbytes // 2])
            self.faults.strike()
        return super().write(data)

    def truncate(self, size=None):
        if self.faults.step("truncate", self.name):
            self.faults.strike()
        return super().truncate(size)


def install(faults: Faults) -> None:
    """Put counting functions in the place of Python's own, in this process."""
    Raw.faults = faults
    builtins.open = io.open = opening(faults, io.open)
    os.open = opening_handle(faults, os.open)
    for what, names in BY_PATH.items():
        for name in names:
            setattr(os, name, counted(faults, what, name, getattr(os, name), as_path))
    for what, names in BY_HANDLE.items():
        for name in names:
            setattr(os, name, counted(faults, what, name, getattr(os, name), path_of))


BY_PATH = {
    "rename": ("rename", "replace"),
    "remove": ("unlink", "remove", "rmdir"),
    "mkdir": ("mkdir",),
    "link": ("link", "symlink"),
    "chmod": ("chmod",),
    "list": ("listdir", "scandir"),
    "truncate": ("truncate",),
}
BY_HANDLE = {
    "read": ("read", "pread", "preadv"),
    "write": ("write", "pwrite", "sendfile", "posix_fallocate"),
    "sync": ("fsync", "fdatasync"),
    "truncate": ("ftruncate",),
}


def counted(faults, what, name, function, place_of):
    """Return `function` with each call on a file that concerns us counted."""

    def call(first, *rest, **options):
        path = place_of(first, options)
        if path is not None and faults.concerns(path) and faults.step(what, path):
            if name == "write":
                function(first, rest[0][: len(rest[0]) // 2])
            faults.strike()
        if what == "sync":  # what a killed process has written the system keeps without it
            return None
        return function(first, *rest, **options)

    return call


def as_path(path, options):
    """Return a path as it was given; below a folder's handle (shutil.rmtree) that folder's."""
    handle = options.get("dir_fd")
    return path if handle is None else path_of(handle, options)


def path_of(handle, options):
    """Return the path of an open file; None of a pipe or a socket."""
    try:
        path = str(Path("/proc/self/fd", str(handle)).readlink())
    except OSError:
        return None
    return path if path.startswith("/") else None


def opening(faults, real_open):
    """Return `open` for files of ours: the same layers, on a raw file that is counted."""

    def opened(
        file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True,
        opener=None,
    ):  # fmt: skip
        if isinstance(file, int) or not faults.concerns(file):
            return real_open(file, mode, buffering, encoding, errors, newline, closefd, opener)
        writes = any(letter in mode for letter in "wxa+")
        if faults.step("open to write" if writes else "open to read", file):
            faults.strike()
        raw = Raw(file, mode.replace("b", "").replace("t", ""), closefd, opener)
        buffered = raw if buffering == 0 else layer(writes, "+" in mode)(raw, *size_of(buffering))
        if "b" in mode:
            return buffered
        text = io.TextIOWrapper(buffered, encoding, errors, newline, buffering == 1)
        text.mode = mode
        return text

    return opened


def layer(writes, reads_too):
    if not writes:
        return io.BufferedReader
    return io.BufferedRandom if reads_too else io.BufferedWriter


def size_of(buffering):
    return (buffering,) if buffering > 1 else ()


def opening_handle(faults, real_open):
    def opened(path, flags, mode=0o777, *, dir_fd=None):
        if dir_fd is None and faults.concerns(path) and not flags & os.O_DIRECTORY:
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if faults.step("open to write" if writes else "open to read", path):
                faults.strike()
        return real_open(path, flags, mode, dir_fd=dir_fd)

    return opened
