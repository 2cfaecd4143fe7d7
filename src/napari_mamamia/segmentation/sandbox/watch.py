"""Measure and limit the resources of a process and its descendants, and kill them (Linux).

A process's status reports its memory. Other resources must be counted one by one: pipes, deleted
files, anonymous shared memory and locks. The system-call filter (`seccomp`), these counts and the
limits that the runner sets follow one list of resources, which docs/security.md shows.
"""

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from napari_mamamia.core.program import system
from napari_mamamia.segmentation.sandbox.runner import PROCESS_HANDLES

_KIBIBYTE: Final = 1024

# Bytes counted for each kernel object: the most that it can hold by Linux' own sizes. A socket
# counts by this computer's buffers: see `watch`.
THREAD_BYTES: Final = 32 * _KIBIBYTE  # a stack of 16 KiB and its descriptor
PIPE_BYTES: Final = 64 * _KIBIBYTE  # 16 pages; the filter refuses larger ones
TERMINAL_BYTES: Final = 128 * _KIBIBYTE  # buffers of both ends
HANDLE_BYTES: Final = 2 * _KIBIBYTE  # an open file of any other kind
MAPPING_BYTES: Final = 384
EMPTY_FILE_BYTES: Final = 1536  # in a folder in memory: its inode and its name
_PROC: Final = Path("/proc")
_FACTS: Final = frozenset(
    ("VmRSS", "VmSwap", "VmPTE", "RssShmem", "HugetlbPages", "Threads"),
)
_NOTHING_WAITS: Final = "00000000:00000000"
_NO_SOCKETS: Final = ("03", "06")
"""TCP_SYN_RECV and TCP_TIME_WAIT: states of connections that are listed but have no socket.

Source: net/tcp_states.h.
"""
_ROUNDS: Final = (
    50  # Each round stops the processes started during the last one; a fork bomb would never end.
)
_REST: Final = 20  # multiples of its duration: 5 % of a core
_LONGEST_REST_S: Final = 2.0
_TERMINALS: Final = ("/dev/ptmx", "/dev/pts/")
_DELETED: Final = " (deleted)"
_DELETED_NAME: Final = _DELETED.encode()
_SHARED: Final = b"/dev/zero" + _DELETED_NAME
"""Name of anonymous shared memory in /proc/PID/maps."""
_EPOLL: Final = "anon_inode:[eventpoll]"
_MEMFD: Final = "/memfd:"


class Hold(StrEnum):
    """How a kind of resource is kept within its limit."""

    DENIED = "denied"
    """The system-call filter denies it, in bubblewrap on x86_64 and aarch64."""
    COUNTED = "counted"
    """This software counts it on Linux, ten times a second or as 5 % of a core allows."""
    LIMITED = "limited"
    """The kernel limits it."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of resource; `calls` are the system calls that the filter denies for it."""

    name: str
    hold: Hold
    how: str
    calls: tuple[str, ...] = ()


RESOURCES: Final = (
    Resource("resident memory, swap, huge pages", Hold.COUNTED, "memory: `/proc/PID/status`"),
    Resource("page tables", Hold.COUNTED, "memory: VmPTE"),
    Resource("threads", Hold.COUNTED, "memory: 32 KiB each"),
    Resource("scratch folders", Hold.COUNTED, "memory: bytes, and 1.5 KiB a file"),
    Resource("unix sockets", Hold.COUNTED, "memory: twice the usual buffer each, in transit too"),
    Resource("TCP and UDP sockets", Hold.COUNTED, "memory: largest buffers, if data wait"),
    Resource("pipes, terminals, open files", Hold.COUNTED, "memory: 64, 128, 2 KiB each"),
    Resource("mappings", Hold.COUNTED, "memory: 384 bytes each"),
    Resource("shared memory without a name", Hold.COUNTED, "memory: as mapped"),
    Resource("memfd", Hold.DENIED, "with a GPU: counted", ("memfd_create",)),
    Resource(
        "System V and POSIX message queues, semaphores, shared memory",
        Hold.DENIED,
        "own IPC namespace too",
        ("shmget", "msgget", "semget", "mq_open"),
    ),
    Resource(
        "pages kept by pipes and sockets",
        Hold.DENIED,
        "no splice, sendfile, larger buffers, zero-copy",
        ("splice", "tee", "vmsplice", "sendfile"),
    ),
    Resource(
        "io_uring, keys, BPF, perf, inotify, fanotify, userfaultfd, landlock, filters of its own",
        Hold.DENIED,
        "no such calls",
        (
            *("io_uring_setup", "add_key", "bpf", "perf_event_open", "inotify_init1"),
            *("fanotify_init", "userfaultfd", "landlock_create_ruleset", "seccomp"),
        ),
    ),
    Resource("open files of a process", Hold.LIMITED, "RLIMIT_NOFILE, 8192"),
    Resource("open files, file locks, epoll's watches", Hold.COUNTED, "65,536 in all"),
    Resource("processes, ended ones too", Hold.LIMITED, "RLIMIT_NPROC, control group; counted"),
    Resource("pending signals, timers", Hold.LIMITED, "RLIMIT_SIGPENDING, 4096"),
    Resource("size of a file", Hold.LIMITED, "RLIMIT_FSIZE"),
    Resource("files in the output folder", Hold.COUNTED, "output: bytes, 64 KiB at least"),
    Resource("files there without a name", Hold.COUNTED, "output: through open handles"),
    Resource(
        "such files mapped or in transit",
        Hold.COUNTED,
        "output: all bytes that the program wrote",
        ("fallocate",),
    ),
    Resource("all of memory", Hold.LIMITED, "cgroup v2, where it may be used"),
)


@dataclass(frozen=True, slots=True)
class TreeUse:
    """Resources used by a process and its descendants, including zombie processes.

    `held_bytes` is the memory and kernel memory that they hold, by kind. Shared memory is counted
    for each process, and kernel memory is counted at its maximum size, so the sum is an upper
    bound. `shared_bytes` is the shared memory included in `resident`.
    """

    members: tuple[int, ...]
    processes: int
    held_bytes: Mapping[str, int]
    shared_bytes: int = 0


def can_watch() -> bool:
    """Return whether this system reports the resources of other processes."""
    return system.IS_LINUX and (_PROC / "self" / "statm").exists()


def tree_use(pid: int, in_memory: Sequence[str] = ()) -> TreeUse:
    """Return the resources that a process and its descendants use, or zeros if it has ended.

    Source: proc(5), status.

    Parameters
    ----------
    pid
        The process.
    in_memory
        The sandbox's folders that are in memory.
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
    """Return a process's memory in KiB and its number of threads.

    A process continues while one of its threads runs. If the first thread has ended, it reports no
    memory, so another thread is read.
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
    """Return the size in bytes of an in-memory folder, including the cost of empty files."""
    with suppress(OSError):
        used, n_files = system.file_system_use(folder)
        return used + n_files * EMPTY_FILE_BYTES
    return 0


def _socket_bytes(net: Path) -> int:
    """Return the maximum number of bytes that a sandbox's sockets can hold, even if closed.

    The sandbox has its own network namespace. A unix socket is assumed to hold twice the default
    buffer size, and any other socket with waiting data the system's maximum buffer size. Source:
    proc_net(5); the kernel's documentation of networking, ip-sysctl and netdevices.
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
    """Return the number of TCP and UDP sockets without waiting data."""
    count = 0
    for name in ("tcp", "tcp6", "udp", "udp6"):
        with suppress(OSError):
            for line in (net / name).read_text("ascii").splitlines()[1:]:
                state, queues = line.split()[3:5]
                count += queues == _NOTHING_WAITS and state not in _NO_SOCKETS
    return count


def _read_size(name: str) -> int:
    """Return the last number in a socket setting of the kernel."""
    return int((_PROC / "sys/net" / name).read_text("ascii").split()[-1])


def offer_to_end(pid: int) -> None:
    """Make a process and its descendants the first to be killed if memory runs out.

    Applies to the kernel's out-of-memory killer. Source: proc(5), oom_score_adj.
    """
    for member in tree_of(pid):
        with suppress(OSError):
            (_PROC / str(member) / "oom_score_adj").write_text("1000", "utf-8")


def own_threads() -> int:
    """Return the number of threads that this user is running, or 0 if it is unknown.

    On older kernels, a limit on processes counts all threads of the user. Source: getrlimit(2),
    RLIMIT_NPROC.
    """
    user = system.account()
    if not can_watch() or user is None:
        return 0
    count = 0
    for entry in _PROC.glob("[0-9]*"):
        with suppress(OSError):
            if entry.stat().st_uid == user[0]:
                count += sum(1 for _ in (entry / "task").iterdir())
    return count


def end_tree(pid: int) -> None:
    """Kill a process and its descendants, including any that are started meanwhile.

    Every process is stopped before any is killed, so that no orphan escapes.
    """
    seen: set[int] = set()
    for _ in range(_ROUNDS):
        members = set(tree_of(pid)) - seen
        if not members:
            break
        for member in members:
            with suppress(OSError):
                system.stop_process(member)
        seen |= members
    for member in seen - {pid}:
        with suppress(OSError):
            system.end_process(member)
    with suppress(OSError):
        system.end_process(pid)


def is_alive(pid: int) -> bool:
    """Return whether a process exists and has not ended."""
    with suppress(OSError, IndexError, ValueError):
        text = (_PROC / str(pid) / "stat").read_text("utf-8", errors="replace")
        return _runs(text.rpartition(")")[2].split())
    return False


def tree_of(pid: int) -> tuple[int, ...]:
    """Return a process and its running descendants; empty if the process has ended."""
    return _list_tree(pid)[0]


def _list_tree(pid: int) -> tuple[tuple[int, ...], int]:
    """Return a process and its running descendants, and the number of ended descendants."""
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
    """Yield (process, parent, whether it runs) for all processes. Source: proc(5), stat.

    A process whose first thread has ended is running while another thread runs.
    """
    for entry in os.scandir(_PROC):
        if not entry.name.isdigit():
            continue
        with suppress(OSError, IndexError, ValueError):
            text = Path(entry.path, "stat").read_text("utf-8", errors="replace")
            fields = text.rpartition(")")[2].split()
            yield int(entry.name), int(fields[1]), _runs(fields)


def _runs(fields: Sequence[str]) -> bool:
    """Return whether a process is running, given the fields after the name in its stat file."""
    return fields[0] != "Z" or int(fields[17]) > 1


@dataclass(slots=True)
class Held:
    """Current counts of resources; locks and epoll watches count as handles.

    `shared` maps each block of anonymous shared memory to its size in bytes, and `nameless` each
    deleted file of the output folder. `written` is the number of bytes that the processes wrote to
    any disk. It is counted only if `is_out_of_sight`, which means that a file may be mapped but not
    open, or in transit in a socket.
    """

    handles: int = 0
    kept_bytes: int = 0
    pipes: set[str] = field(default_factory=set)
    shared: dict[str, int] = field(default_factory=dict)
    nameless: dict[str, int] = field(default_factory=dict)
    is_out_of_sight: bool = False
    written: int = 0

    def memory(self, shared_bytes: int) -> dict[str, int]:
        """Return the bytes held in the kernel by kind, excluding `shared_bytes`."""
        return {
            "open files and pipes": self.kept_bytes + len(self.pipes) * PIPE_BYTES,
            "shared memory": max(sum(self.shared.values()) - shared_bytes, 0),
        }

    def output(self, named_bytes: int) -> int:
        """Return an upper limit of the bytes that the processes have in the output folder.

        `named_bytes` is the total size of the files that have a name.
        """
        seen = named_bytes + sum(self.nameless.values())
        return max(seen, self.written) if self.is_out_of_sight else seen


class Inventory:
    """A repeated count of the resources that a process and its descendants hold.

    Parameters
    ----------
    pid
        The process.
    output
        The outside path of the folder to which the process writes.
    inside
        The path of that folder in the sandbox.
    most_handles
        Number of handles above which counting stops.
    """

    def __init__(self, pid: int, output: Path, inside: str, most_handles: int) -> None:
        self._pid, self._most = pid, most_handles
        self._inside = inside + "/"
        self._device = output.stat().st_dev
        self._steps = self._count_for_ever()
        self._rests_until = 0.0
        self.counts = Held(), Held()

    def go_on(self, seconds: float) -> None:
        """Count for `seconds` of CPU time, or until all resources have been counted once.

        Afterwards, `counts` contains the last complete count and the current count.
        """
        if time.monotonic() < self._rests_until:
            return
        started = time.thread_time()
        for is_whole in self._steps:
            spent = time.thread_time() - started
            if is_whole or spent >= seconds:
                # One process or table may take longer than `seconds`.
                self._rests_until = time.monotonic() + min(spent * _REST, _LONGEST_REST_S)
                return

    def _count_for_ever(self) -> Iterator[bool]:
        while True:
            held = Held()
            self.counts = self.counts[0], held
            tree = tree_of(self._pid)
            for member in tree:
                self._count_handles(member, held)
                yield False
                self._count_mappings(member, held)
                yield False
                if held.handles > self._most:
                    break
            held.handles += _count_locks(tree, self._most)
            if held.is_out_of_sight:
                held.written = sum(_count_written(member) for member in tree)
            self.counts = held, held
            yield True

    def _count_handles(self, pid: int, held: Held) -> None:
        """Count the open handles of a process. Source: proc(5), fd and fdinfo."""
        folder = _PROC / str(pid) / "fd"
        try:
            names = [entry.name for entry in os.scandir(folder)]
        except PermissionError:
            # It hides its handles, as no ordinary program does: count the largest possible
            # number.
            held.handles += PROCESS_HANDLES
            held.kept_bytes += PROCESS_HANDLES * HANDLE_BYTES
            held.is_out_of_sight = True
            return
        except OSError:
            return
        held.handles += len(names)
        held.kept_bytes += len(names) * HANDLE_BYTES
        for name in names:
            if held.handles > self._most:
                return
            with suppress(OSError, ValueError):
                self._look_at_handle(folder, name, held)

    def _look_at_handle(self, folder: Path, name: str, held: Held) -> None:
        target = os.readlink(f"{folder}/{name}")  # noqa: PTH115 - there may be thousands
        if target.startswith("pipe:"):
            held.pipes.add(target)
        elif target.startswith(_TERMINALS):
            held.kept_bytes += TERMINAL_BYTES
        elif target == _EPOLL:
            held.handles += (folder.parent / "fdinfo" / name).read_bytes().count(b"tfd:")
        elif target.startswith("socket:"):
            if not held.is_out_of_sight:
                facts = (folder.parent / "fdinfo" / name).read_text("ascii")
                pending = facts.partition("scm_fds:")[2].split()
                held.is_out_of_sight = bool(pending) and int(pending[0]) > 0
        elif target.endswith(_DELETED):
            self._look_at_nameless(folder / name, target, held)

    def _look_at_nameless(self, handle: Path, target: str, held: Held) -> None:
        state = handle.stat()
        # Some file systems report different devices for a file and its folder.
        is_output = state.st_dev == self._device or target.startswith(self._inside)
        n_bytes = getattr(state, "st_blocks", 0) * 512  # Windows has no such field.
        if state.st_nlink == 0 and is_output:
            held.nameless[f"{state.st_ino}"] = n_bytes
        elif target.startswith(_MEMFD):
            held.shared[f"{state.st_dev}:{state.st_ino}"] = n_bytes

    def _count_mappings(self, pid: int, held: Held) -> None:
        """Count the memory mappings of a process.

        Source: proc(5), maps (range, permissions, offset, device, inode, name).
        """
        try:
            text = (_PROC / str(pid) / "maps").read_bytes()
        except OSError:
            return
        held.kept_bytes += text.count(b"\n") * MAPPING_BYTES
        if _DELETED_NAME not in text:
            return
        for line in text.splitlines():
            if not line.endswith(_DELETED_NAME):
                continue
            addresses, _, offset, _, inode, name = line.split(None, 5)
            if name == _SHARED:
                first, last = (int(address, 16) for address in addresses.split(b"-"))
                key = f"{inode!r} {offset!r}"  # shared by forked processes
                held.shared[key] = max(held.shared.get(key, 0), last - first)
            elif name.startswith(os.fsencode(self._inside)):
                held.is_out_of_sight = True


def _count_locks(tree: Sequence[int], most: int) -> int:
    """Return the number of file locks held by some processes; counting stops above `most`.

    Source: proc(5), locks; a waiting lock has "->" before its kind.
    """
    owners = {str(member).encode() for member in tree}
    count = 0
    with suppress(OSError), (_PROC / "locks").open("rb") as file:
        for line in file:
            count += not owners.isdisjoint(line.split()[4:6])
            if count > most:
                break
    return count


def _count_written(pid: int) -> int:
    """Return the bytes that a process and its ended children have written to disks.

    Source: proc(5), io.
    """
    try:
        text = (_PROC / str(pid) / "io").read_text("ascii")
        return int(text.partition("\nwrite_bytes:")[2].split()[0])
    except PermissionError:
        return sys.maxsize
    except (OSError, IndexError, ValueError):
        return 0
