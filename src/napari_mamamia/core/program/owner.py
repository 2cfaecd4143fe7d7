"""Which process a temporary path belongs to, as its name tells, and whether that process runs.

A process is told by this computer, its number and its start: numbers are given again. A process in
a container with processes of its own counts as one of another computer.
"""

import functools
import hashlib
import os
import platform
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from napari_mamamia.core.program.system import process_lives

_PROC: Final = Path("/proc")
_UNKNOWN: Final = "0"
_DIGITS: Final = 8
_PATTERN: Final = re.compile(r"(?P<host>[0-9a-f]{8})-(?P<pid>[0-9]{1,10})-(?P<start>[0-9a-f]{1,8})")
_STATE, _START_TICKS = 0, 19
"""Fields of /proc/PID/stat after the name. Source: proc_pid_stat(5), fields 3 and 22."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A process: its computer and its start as short codes; start "0" where it cannot be known."""

    host: str
    pid: int
    start: str

    def __str__(self) -> str:
        """Return what a file's name says of it, such as ``1f0c2a9b-4711-83ac01de``."""
        return f"{self.host}-{self.pid}-{self.start}"

    @property
    def runs(self) -> bool | None:
        """Whether it still runs; None where that cannot be known, as on another computer."""
        if self.host != _this_host():
            return None
        if not process_lives(self.pid):
            return False
        now = _start_of(self.pid)
        return now == self.start or _UNKNOWN in (now, self.start)


def this_process() -> Owner:
    """Return the calling process; a forked child is another one than its parent."""
    pid = os.getpid()
    return Owner(_this_host(), pid, _start_of(pid))


def owner_named(text: str) -> Owner | None:
    """Return the owner that a text as of `Owner` begins with, None where it begins with none."""
    match = _PATTERN.match(text)
    return None if match is None else Owner(match["host"], int(match["pid"]), match["start"])


@functools.cache
def _this_host() -> str:
    """Return a code for this computer, or for this container where it counts its own processes."""
    room = ""
    with suppress(OSError):
        room = str((_PROC / "self/ns/pid").readlink())
    return _hash_parts(platform.node(), _read_text(Path("/etc/machine-id")), room)


def _start_of(pid: int) -> str:
    """Return a code for the start of a process of this computer; "" of one that has ended."""
    # The name before stands in brackets and may itself hold blanks and brackets.
    fields = _read_text(_PROC / str(pid) / "stat").rpartition(")")[2].split()
    if len(fields) <= _START_TICKS:
        return "" if (_PROC / "self" / "stat").exists() else _UNKNOWN
    if fields[_STATE] in "ZX":  # ended, and nobody asked yet how
        return ""
    # Ticks count from the boot: after the next one a process may have the same number and ticks.
    return _hash_parts(_read_text(_PROC / "sys/kernel/random/boot_id"), fields[_START_TICKS])


def _read_text(path: Path) -> str:
    with suppress(OSError, UnicodeDecodeError):
        return path.read_text(encoding="utf-8").strip()
    return ""


def _hash_parts(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_DIGITS]
