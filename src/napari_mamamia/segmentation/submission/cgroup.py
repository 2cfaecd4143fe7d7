"""A control group for what root runs, so that the system counts its processes too.

An ordinary account's processes are held by their limit (RLIMIT_NPROC), which does not bind root.
Source: getrlimit(2), cgroups(7), the kernel's documents on the pids controller of both versions.
"""

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from napari_mamamia.core.program.child_environment import find_program
from napari_mamamia.core.program.system import is_root

_ROOTS: Final = (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup"))  # version 1, then version 2
_SLACK: Final = 32
"""Above the limit that is told, so that whoever looks sees it passed and says so."""
_GONE_S: Final = 3.0
_ENTER: Final = 'echo 0 > "$0" && exec "$@"'  # 0 is the shell itself, which becomes the program


def can_hold_processes() -> bool:
    """Whether the system can limit what this process starts: by its account, or by a group."""
    if not is_root():
        return True
    with held_processes(1) as prefix:
        return bool(prefix)


@contextmanager
def held_processes(limit: int) -> Iterator[tuple[str, ...]]:
    """Yield what stands before a command so that it and all it starts are at most `limit` or so.

    Nothing for an ordinary account, which the system holds anyway, and where no group can be made.
    The group is removed at the end; by then all that was in it must have been ended.
    """
    group = _new_group(limit + _SLACK)
    try:
        shell = find_program("sh")
        if group is None or shell is None:
            yield ()
        else:
            yield (shell, "-c", _ENTER, str(group / "cgroup.procs"))
    finally:
        if group is not None:
            _remove_group(group)


def _new_group(limit: int) -> Path | None:
    """Return the folder of a new group of at most `limit` processes, None where none can be."""
    if not is_root():
        return None
    for root in _ROOTS:
        group = root / f"mamamia-{os.getpid()}-{secrets.token_hex(6)}"
        if not (root / "cgroup.procs").exists():
            continue
        _sweep_groups(root)
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            limits = group / "pids.max"  # there if the controller is
            with limits.open("r+", encoding="utf-8") as file:
                file.write(str(limit))
        except OSError:
            _remove_group(group)
            continue
        return group
    return None


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
