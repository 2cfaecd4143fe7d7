"""Measure the resources of a process and its descendants, and kill them (Linux /proc only)."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from napari_mamamia.core.program.system import (
    IS_LINUX,
    account,
    end_process,
    file_system_use,
    stop_process,
)
from napari_mamamia.segmentation.sandbox.resources import EMPTY_FILE_BYTES, THREAD_BYTES

_PROC: Final = Path("/proc")
_KIBIBYTE: Final = 1024
_FACTS: Final = frozenset(
    ("VmRSS", "VmSwap", "VmPTE", "RssShmem", "HugetlbPages", "Threads"),
)
_NOTHING_WAITS: Final = "00000000:00000000"
_NO_SOCKETS: Final = ("03", "06")
"""TCP_SYN_RECV and TCP_TIME_WAIT, which are listed although they have no socket. Source:
net/tcp_states.h.
"""
_ROUNDS: Final = (
    50  # Each round stops the processes started during the last one; a fork bomb would never end.
)


@dataclass(frozen=True, slots=True)
class TreeUse:
    """Resources of a process and its descendants; zombie processes count.

    `held_bytes` has, by kind, what they hold, in memory and in the kernel. Shared memory counts for
    each process, and kernel memory counts with the largest possible size, so the sum is an upper
    bound. `shared_bytes` is the shared memory in `resident`.
    """

    members: tuple[int, ...]
    processes: int
    held_bytes: Mapping[str, int]
    shared_bytes: int = 0


def can_watch() -> bool:
    """Return whether this system reports the resources of other processes."""
    return IS_LINUX and (_PROC / "self" / "statm").exists()


def tree_use(pid: int, in_memory: Sequence[str] = ()) -> TreeUse:
    """Return the current resources of a process and its descendants; zeros if it has ended.

    Source: proc(5), status.

    Parameters
    ----------
    pid
        The process.
    in_memory
        Folders of the processes' sandbox that are in memory.
    """
    tree, n_ended = _list_tree(pid)
    facts = Counter[str]()
    for member in tree:
        facts.update(_read_status(member))
    resident = facts["VmRSS"] + facts["VmSwap"] + facts["HugetlbPages"]
    held = {
        "resident memory": resident * _KIBIBYTE,
        "page tables": facts["VmPTE"] * _KIBIBYTE,
        "threads": facts["Threads"] * THREAD_BYTES,
    }
    if in_memory and (root := _find_room(tree)):
        held["scratch files"] = sum(_folder_bytes(f"{root}/root{folder}") for folder in in_memory)
        held["sockets"] = _socket_bytes(root / "net")
    return TreeUse(tree, len(tree) + n_ended, held, facts["RssShmem"] * _KIBIBYTE)


def _read_status(pid: int) -> dict[str, int]:
    """Return the memory of a process, in KiB, and its number of threads.

    A process continues while one of its threads runs. If its first thread has ended, that thread
    reports no memory, so another thread is read.
    """
    facts: dict[str, int] = {}
    with suppress(OSError, IndexError, ValueError):
        facts = _read_facts(_PROC / str(pid) / "status")
        if "VmRSS" not in facts and facts.get("Threads", 0) > 1:
            for thread in (_PROC / str(pid) / "task").iterdir():
                facts = _read_facts(thread / "status")
                if "VmRSS" in facts:
                    break
    return facts


def _read_facts(file: Path) -> dict[str, int]:
    facts = {}
    for line in file.read_text("utf-8", errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name in _FACTS:
            facts[name] = int(value.split()[0])
    return facts


def _find_room(tree: Sequence[int]) -> Path | None:
    """Return the /proc folder of a process in the sandbox, or None if none is accessible."""
    for member in reversed(tree):  # Processes in the sandbox come last.
        with suppress(OSError):
            if not (_PROC / str(member) / "root").samefile("/"):
                return _PROC / str(member)
    return None


def _folder_bytes(folder: str) -> int:
    """Return the size of a folder in memory, including its empty files."""
    with suppress(OSError):
        used, n_files = file_system_use(folder)
        return used + n_files * EMPTY_FILE_BYTES
    return 0


def _socket_bytes(net: Path) -> int:
    """Return the most bytes that a sandbox's sockets can hold, including closed ones.

    The sandbox has a network of its own. A unix socket counts with twice the usual buffer, another
    one with the largest buffer of the system as soon as data wait in it. Source: proc_net(5); the
    kernel's documents on networking, ip-sysctl and netdevices.
    """
    with suppress(OSError, ValueError, IndexError):
        if (net.parent / "ns/net").samefile(_PROC / "self/ns/net"):
            return 0
        used = int((net / "sockstat").read_text("ascii").split()[2])  # sockets: used N
        lines = (net / "protocols").read_text("ascii").splitlines()
        n_unix = sum(int(line.split()[2]) for line in lines if line.startswith("UNIX"))
        n_unix = min(n_unix, used)
        total = n_unix * 2 * _read_size("core/wmem_default")
        if used > n_unix:
            most = sum(_read_size(f"ipv4/tcp_{kind}mem") for kind in "rw")
            total += max(used - n_unix - _count_idle(net), 0) * most
        return total
    return 0


def _count_idle(net: Path) -> int:
    """Return the number of TCP and UDP sockets with no waiting data."""
    count = 0
    for name in ("tcp", "tcp6", "udp", "udp6"):
        with suppress(OSError):
            for line in (net / name).read_text("ascii").splitlines()[1:]:
                state, queues = line.split()[3:5]
                count += queues == _NOTHING_WAITS and state not in _NO_SOCKETS
    return count


def _read_size(name: str) -> int:
    """Return the last number of a setting of the kernel's sockets."""
    return int((_PROC / "sys/net" / name).read_text("ascii").split()[-1])


def offer_to_end(pid: int) -> None:
    """Make a process and its descendants the first choice of the kernel's out-of-memory killer.

    Source: proc(5), oom_score_adj.
    """
    for member in tree_of(pid):
        with suppress(OSError):
            (_PROC / str(member) / "oom_score_adj").write_text("1000", "utf-8")


def own_threads() -> int:
    """Return the number of threads that this user runs now; 0 if unknown.

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
    """Kill a process and its descendants, including those started meanwhile.

    Each is stopped before any is killed, so that no orphan escapes.
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
    """Return whether a process exists and has not ended."""
    with suppress(OSError, IndexError, ValueError):
        text = (_PROC / str(pid) / "stat").read_text("utf-8", errors="replace")
        return _runs(text.rpartition(")")[2].split())
    return False


def tree_of(pid: int) -> tuple[int, ...]:
    """Return the process and its running descendants; empty if it is gone."""
    return _list_tree(pid)[0]


def _list_tree(pid: int) -> tuple[tuple[int, ...], int]:
    """Return the process and its running descendants, and the number of ended ones."""
    children: dict[int, list[int]] = {}
    running: dict[int, bool] = {}
    for member, parent, is_running in _list_parents():
        running[member] = is_running
        children.setdefault(parent, []).append(member)
    members, n_ended, waiting = [], 0, [pid] if running.get(pid) else []
    while waiting:
        member = waiting.pop()
        if running[member]:
            members.append(member)
        else:
            n_ended += 1
        waiting.extend(children.get(member, ()))
    return tuple(members), n_ended


def _list_parents() -> Iterator[tuple[int, int, bool]]:
    """Yield (process, parent, whether it runs) of all processes. Source: proc(5), stat.

    A process whose first thread has ended runs while another thread does.
    """
    for entry in os.scandir(_PROC):
        if not entry.name.isdigit():
            continue
        with suppress(OSError, IndexError, ValueError):
            text = Path(entry.path, "stat").read_text("utf-8", errors="replace")
            fields = text.rpartition(")")[2].split()
            yield int(entry.name), int(fields[1]), _runs(fields)


def _runs(fields: Sequence[str]) -> bool:
    """Return whether a process runs, from the fields after the name in its stat."""
    return fields[0] != "Z" or int(fields[17]) > 1
