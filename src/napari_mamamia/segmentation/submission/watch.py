"""What a process and all that it started use, and how to end them. Linux only: read from /proc."""

import mmap
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from napari_mamamia.core.program.system import (
    IS_LINUX,
    account,
    end_process,
    stop_process,
)

_PROC: Final = Path("/proc")
_ROUNDS: Final = 50  # each stops what was started during the last; a fork bomb could go on for ever


@dataclass(frozen=True, slots=True)
class TreeUse:
    """A process with its descendants: their number, and the sum of their resident memory.

    Memory that several of them share counts for each, so the sum is an upper bound. Files of a
    room's folders in memory are counted with it.
    """

    processes: int
    resident_bytes: int


def can_watch() -> bool:
    """Whether this system tells what other processes use."""
    return IS_LINUX and (_PROC / "self" / "statm").exists()


def tree_use(pid: int, in_memory: Sequence[str] = ()) -> TreeUse:
    """Return what a process and its descendants use now; nothing if it is gone.

    Source: proc(5), statm: the second number is resident memory in pages.

    Parameters
    ----------
    in_memory
        Folders of the processes' room that lie in memory.
    """
    tree = tree_of(pid)
    resident = 0
    for member in tree:
        with suppress(OSError, IndexError, ValueError):
            resident += (
                int((_PROC / str(member) / "statm").read_text("utf-8").split()[1]) * mmap.PAGESIZE
            )
    return TreeUse(len(tree), resident + _folder_bytes(tree, in_memory))


def _folder_bytes(tree: Sequence[int], folders: Sequence[str]) -> int:
    """Return what a room's folders in memory hold, 0 if nobody in the room shows them."""
    for member in reversed(tree):  # those that are inside come last
        root = _PROC / str(member) / "root"
        with suppress(OSError):
            if not root.samefile("/"):
                return sum(shutil.disk_usage(f"{root}{folder}").used for folder in folders)
    return 0


def offer_to_end(pid: int) -> None:
    """Let the system end a process and its descendants first when memory runs out.

    Source: proc(5), oom_score_adj.
    """
    for member in tree_of(pid):
        with suppress(OSError):
            (_PROC / str(member) / "oom_score_adj").write_text("1000", "utf-8")


def own_threads() -> int:
    """Return how many threads this user runs now, 0 where nothing tells it.

    A limit on processes counts all of the user's on older kernels. Source: getrlimit(2),
    RLIMIT_NPROC.
    """
    user = account()
    if not can_watch() or user is None:
        return 0
    count = 0
    for entry in _PROC.glob("[0-9]*"):
        with suppress(OSError):
            if entry.stat().st_uid == user[0]:
                count += sum(1 for _ in (entry / "task").iterdir())
    return count


def end_tree(pid: int) -> None:
    """Kill a process and its descendants, those that are started meanwhile too.

    Each is stopped before any is killed, so that none is orphaned out of sight.
    """
    seen: set[int] = set()
    for _ in range(_ROUNDS):
        members = set(tree_of(pid)) - seen
        if not members:
            break
        for member in members:
            with suppress(OSError):
                stop_process(member)
        seen |= members
    for member in seen - {pid}:
        with suppress(OSError):
            end_process(member)
    with suppress(OSError):
        end_process(pid)


def is_alive(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    with suppress(OSError, IndexError):
        text = (_PROC / str(pid) / "stat").read_text("utf-8", errors="replace")
        return text.rpartition(")")[2].split()[0] != "Z"
    return False


def tree_of(pid: int) -> tuple[int, ...]:
    """Return the process and its descendants that still run; nothing if it is gone."""
    children: dict[int, list[int]] = {}
    alive = set()
    for member, parent in _list_parents():
        alive.add(member)
        children.setdefault(parent, []).append(member)
    members, waiting = [], [pid] if pid in alive else []
    while waiting:
        member = waiting.pop()
        members.append(member)
        waiting.extend(children.get(member, ()))
    return tuple(members)


def _list_parents() -> Iterator[tuple[int, int]]:
    """Yield (process, parent) of all processes but those that ended. Source: proc(5), stat."""
    for entry in os.scandir(_PROC):
        if not entry.name.isdigit():
            continue
        with suppress(OSError, IndexError, ValueError):
            text = Path(entry.path, "stat").read_text("utf-8", errors="replace")
            state, parent = text.rpartition(")")[2].split()[:2]
            if state != "Z":
                yield int(entry.name), int(parent)
