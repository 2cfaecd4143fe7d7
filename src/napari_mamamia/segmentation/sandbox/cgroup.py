"""A control group for a room, in which the system itself counts its processes and memory.

Version 2 counts both, with what the kernel holds; it can be had by root, and by an account that the
system gave groups of its own (systemd: a service or scope of the user). Version 1 is asked for
processes alone, of root. An ordinary account's processes are held by their limit (RLIMIT_NPROC),
which does not bind root.
Source: getrlimit(2), cgroups(7), the kernel's documents on control groups of both versions.
"""

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from napari_mamamia.core.program.child_environment import find_program
from napari_mamamia.core.program.child_process import answer_of
from napari_mamamia.core.program.system import is_root

_ROOT: Final = Path("/sys/fs/cgroup")
_OWN: Final = Path("/proc/self/cgroup")
_SLACK: Final = 32
"""Above the limit that is told, so that whoever looks sees it passed and says so."""
_GONE_S: Final = 3.0
_ENTER: Final = 'echo 0 > "$0" && exec "$@"'  # 0 is the shell itself, which becomes the program


@dataclass(frozen=True, slots=True)
class Group:
    """A control group; `prefix` stands before a command that is to run in it.

    Without a folder there is none, and the prefix is empty.
    """

    folder: Path | None = None
    prefix: tuple[str, ...] = ()
    holds_memory: bool = False

    def is_out_of_memory(self) -> bool:
        """Whether the system ended something in it for lack of memory."""
        if self.folder is None or not self.holds_memory:
            return False
        with suppress(OSError, ValueError):
            events = (self.folder / "memory.events").read_text("ascii").split()
            return int(dict(zip(events[::2], events[1::2], strict=False)).get("oom_kill", 0)) > 0
        return False


@contextmanager
def control_group(processes: int, memory_bytes: int) -> Iterator[Group]:
    """Make a group of at most so many processes and so much memory, swap included.

    It is removed at the end; by then all that was in it must have been ended.
    """
    group = _new_group(processes + _SLACK, memory_bytes)
    try:
        yield group
    finally:
        if group.folder is not None:
            _remove_group(group.folder)


def _new_group(processes: int, memory_bytes: int) -> Group:
    shell = find_program("sh")
    limits = {"pids.max": processes, "memory.max": memory_bytes}
    for parent in _list_parents() if shell else ():
        _sweep_groups(parent)
        folder = parent / f"mamamia-{os.getpid()}-{secrets.token_hex(6)}"
        try:
            folder.mkdir()
        except OSError:
            continue
        # Which files there are says which controllers there are.
        held = [name for name, most in limits.items() if _write(folder / name, most)]
        prefix = (str(shell), "-c", _ENTER, str(folder / "cgroup.procs"))
        # An account may make a group and yet not move a process into it.
        if held and answer_of((*prefix, str(shell), "-c", ":"), _GONE_S).is_good:
            if "memory.max" in held:
                _write(folder / "memory.swap.max", 0)
                _write(folder / "memory.oom.group", 1)
            return Group(folder, prefix, "memory.max" in held)
        _remove_group(folder)
    return Group()


def _list_parents() -> Iterator[Path]:
    """Yield where a group may be made: version 2 beside this process's own, then version 1.

    A group of version 2 that has processes can have no group below it that is limited, so the
    groups above are tried, from the nearest on.
    """
    own = ""
    with suppress(OSError):
        lines = _OWN.read_text("utf-8", errors="replace").splitlines()
        own = next((line[3:] for line in lines if line.startswith("0::/")), "")
    if own and (_ROOT / "cgroup.controllers").exists():
        place = _ROOT / own.lstrip("/")
        for parent in (place, *place.parents):
            with suppress(OSError):
                if "memory" in (parent / "cgroup.subtree_control").read_text("ascii").split():
                    yield parent
            if parent == _ROOT:
                break
    if is_root():
        yield from (root for root in (_ROOT / "pids", _ROOT) if (root / "cgroup.procs").exists())


def _write(file: Path, number: int) -> bool:
    """Write to a file of a group if it is there; return whether that worked."""
    with suppress(OSError), file.open("r+", encoding="ascii") as stream:
        stream.write(str(number))
        return True
    return False


def _sweep_groups(root: Path) -> None:
    """Remove what killed processes of ours left; a group with somebody in it cannot be removed."""
    for left in root.glob("mamamia-*-*"):
        if not Path("/proc", left.name.split("-")[1]).exists():
            with suppress(OSError):
                left.rmdir()


def _remove_group(group: Path) -> None:
    end = time.monotonic() + _GONE_S
    while group.exists() and time.monotonic() < end:
        with suppress(OSError):  # busy as long as the system clears away what was in it
            group.rmdir()
            return
        time.sleep(0.02)
