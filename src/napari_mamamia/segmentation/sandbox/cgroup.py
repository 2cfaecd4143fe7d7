"""Create a control group for a sandbox, in which the kernel counts processes and memory.

Version 2 counts both, including kernel memory. It is available to root and to accounts with
delegated groups (systemd: a service or scope of the user). Version 1 is used only by root and only
for processes. The processes of an ordinary account are limited by RLIMIT_NPROC, which does not
apply to root. Source: getrlimit(2), cgroups(7), the kernel's documentation of control groups, both
versions.
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
"""Number of processes allowed beyond the limit, so that our own count can report the excess."""
_GONE_S: Final = 3.0
_ENTER: Final = 'echo 0 > "$0" && exec "$@"'  # 0 is the shell itself, which becomes the program.


@dataclass(frozen=True, slots=True)
class Group:
    """A control group; a command that starts with `prefix` runs in the group.

    Without a folder there is no group, and `prefix` is empty.
    """

    folder: Path | None = None
    prefix: tuple[str, ...] = ()
    holds_memory: bool = False

    def is_out_of_memory(self) -> bool:
        """Whether the kernel has killed a process of the group for lack of memory."""
        if self.folder is None or not self.holds_memory:
            return False
        with suppress(OSError, ValueError):
            events = (self.folder / "memory.events").read_text("ascii").split()
            return int(dict(zip(events[::2], events[1::2], strict=False)).get("oom_kill", 0)) > 0
        return False


@contextmanager
def control_group(processes: int, memory_bytes: int) -> Iterator[Group]:
    """Create a control group with limits on processes and memory, including swap.

    The group is removed at the end of the block, by which time its processes must have ended.

    Parameters
    ----------
    processes
        Maximum number of processes.
    memory_bytes
        Maximum memory in bytes, including swap.
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
        # The files of a group show which controllers it has.
        held = [name for name, most in limits.items() if _write(folder / name, most)]
        prefix = (str(shell), "-c", _ENTER, str(folder / "cgroup.procs"))
        # An account may be allowed to create a group, but not to move a process into it.
        if held and answer_of((*prefix, str(shell), "-c", ":"), _GONE_S).is_good:
            if "memory.max" in held:
                _write(folder / "memory.swap.max", 0)
                _write(folder / "memory.oom.group", 1)
            return Group(folder, prefix, "memory.max" in held)
        _remove_group(folder)
    return Group()


def _list_parents() -> Iterator[Path]:
    """Yield the folders in which a control group can be created, version 2 before version 1.

    In version 2, a group with processes cannot have limited subgroups. Therefore the groups above
    this process's group are tried, starting with the nearest.
    """
    group = ""
    with suppress(OSError):
        lines = _OWN.read_text("utf-8", errors="replace").splitlines()
        group = next((line[3:] for line in lines if line.startswith("0::/")), "")
    if group and (_ROOT / "cgroup.controllers").exists():
        folder = _ROOT / group.lstrip("/")
        for parent in (folder, *folder.parents):
            with suppress(OSError):
                if "memory" in (parent / "cgroup.subtree_control").read_text("ascii").split():
                    yield parent
            if parent == _ROOT:
                break
    if is_root():
        yield from (root for root in (_ROOT / "pids", _ROOT) if (root / "cgroup.procs").exists())


def _write(file: Path, number: int) -> bool:
    """Write a number to a control group's file if it exists; return whether this succeeded."""
    with suppress(OSError), file.open("r+", encoding="ascii") as stream:
        stream.write(str(number))
        return True
    return False


def _sweep_groups(root: Path) -> None:
    """Remove control groups of killed processes; the kernel refuses to remove groups in use."""
    for folder in root.glob("mamamia-*-*"):
        if not Path("/proc", folder.name.split("-")[1]).exists():
            with suppress(OSError):
                folder.rmdir()


def _remove_group(group: Path) -> None:
    end = time.monotonic() + _GONE_S
    while group.exists() and time.monotonic() < end:
        with suppress(OSError):  # busy while the kernel cleans up the group
            group.rmdir()
            return
        time.sleep(0.02)
