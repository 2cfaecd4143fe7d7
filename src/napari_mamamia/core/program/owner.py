"""The owner of a temporary file or folder: a process that is named in the path.

A process is identified by its computer, process id and start time, because process ids are reused.
A process in a container with its own process ids counts as a process on a different computer.
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
"""Indices of two fields in /proc/PID/stat, counted after the process name.

Source: proc_pid_stat(5), fields 3 and 22.
"""


@dataclass(frozen=True, slots=True)
class Owner:
    """A process, identified by short codes for its computer and start time."""

    host: str
    pid: int
    start: str

    def __str__(self) -> str:
        return f"{self.host}-{self.pid}-{self.start}"

    @property
    def runs(self) -> bool | None:
        """Whether the process is still running; None if unknown, as for a different computer."""
        if self.host != _this_host():
            return None
        if not process_lives(self.pid):
            return False
        now = _start_of(self.pid)
        return now == self.start or _UNKNOWN in (now, self.start)


def this_process() -> Owner:
    """Return the current process as an owner; a forked child is a different owner."""
    pid = os.getpid()
    return Owner(_this_host(), pid, _start_of(pid))


def owner_named(text: str) -> Owner | None:
    """Return the owner whose code a string begins with, or None if there is none."""
    match = _PATTERN.match(text)
    return None if match is None else Owner(match["host"], int(match["pid"]), match["start"])


@functools.cache
def _this_host() -> str:
    """Return a code for this computer, or for this container if it has its own process ids."""
    room = ""
    with suppress(OSError):
        room = str((_PROC / "self/ns/pid").readlink())
    return _hash_parts(platform.node(), _read_text(Path("/etc/machine-id")), room)


def _start_of(pid: int) -> str:
    """Return a code for the start time of a process on this computer, or "" if it has ended."""
    # The name before is in brackets and may itself hold blanks and brackets.
    fields = _read_text(_PROC / str(pid) / "stat").rpartition(")")[2].split()
    if len(fields) <= _START_TICKS:
        return "" if (_PROC / "self" / "stat").exists() else _UNKNOWN
    if fields[_STATE] in "ZX":  # a zombie: it has ended, and its parent has not read its exit code
        return ""
    # Ticks count from the boot: after the next boot a process may have the same number and ticks.
    return _hash_parts(_read_text(_PROC / "sys/kernel/random/boot_id"), fields[_START_TICKS])


def _read_text(path: Path) -> str:
    with suppress(OSError, UnicodeDecodeError):
        return path.read_text(encoding="utf-8").strip()
    return ""


def _hash_parts(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_DIGITS]
