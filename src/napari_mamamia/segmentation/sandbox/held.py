"""Count in small steps the resources that the processes of a sandbox hold.

The status of a process gives its memory use. Resources held by handles have to be counted one by
one: pipes, deleted files, anonymous shared memory, locks. Linux only.
"""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from napari_mamamia.segmentation.sandbox.resources import (
    HANDLE_BYTES,
    MAPPING_BYTES,
    PIPE_BYTES,
    TERMINAL_BYTES,
)
from napari_mamamia.segmentation.sandbox.runner import PROCESS_HANDLES
from napari_mamamia.segmentation.sandbox.watch import tree_of

_PROC: Final = Path("/proc")
_REST: Final = 20  # multiples of its duration: 5 % of a core
_LONGEST_REST_S: Final = 2.0
_TERMINALS: Final = ("/dev/ptmx", "/dev/pts/")
_DELETED: Final = " (deleted)"
_DELETED_NAME: Final = _DELETED.encode()
_SHARED: Final = b"/dev/zero" + _DELETED_NAME
"""The name of anonymous shared memory."""
_EPOLL: Final = "anon_inode:[eventpoll]"
_MEMFD: Final = "/memfd:"


@dataclass(slots=True)
class Held:
    """The counts so far; locks and epoll watches count as handles.

    `shared` has the bytes of each piece of anonymous shared memory, `nameless` those of each
    deleted file of the output folder. `written` are the bytes that the processes wrote to any disk,
    counted only if some file may be `out_of_sight`: mapped but not open, or in transit in a socket.
    """

    handles: int = 0
    kept_bytes: int = 0
    pipes: set[str] = field(default_factory=set)
    shared: dict[str, int] = field(default_factory=dict)
    nameless: dict[str, int] = field(default_factory=dict)
    is_out_of_sight: bool = False
    written: int = 0

    def memory(self, shared_bytes: int) -> dict[str, int]:
        """Return the bytes held in the kernel, by kind, without `shared_bytes`."""
        return {
            "open files and pipes": self.kept_bytes + len(self.pipes) * PIPE_BYTES,
            "shared memory": max(sum(self.shared.values()) - shared_bytes, 0),
        }

    def output(self, named_bytes: int) -> int:
        """Return the bytes that the processes may have in the output folder.

        Of these, `named_bytes` belong to files with a name.
        """
        seen = named_bytes + sum(self.nameless.values())
        return max(seen, self.written) if self.is_out_of_sight else seen


class Inventory:
    """Repeated count of the resources held by a process and its descendants.

    Parameters
    ----------
    pid
        The process.
    output
        The folder that it writes to, seen from outside.
    inside
        That folder's path in the sandbox.
    most_handles
        Above this number counting stops.
    """

    def __init__(self, pid: int, output: Path, inside: str, most_handles: int) -> None:
        self._pid, self._most = pid, most_handles
        self._inside = inside + "/"
        self._device = output.stat().st_dev
        self._steps = self._count_for_ever()
        self._rests_until = 0.0
        self.counts = Held(), Held()

    def go_on(self, seconds: float) -> None:
        """Count for this many seconds of CPU time, or until everything was counted once.

        `counts` are the last complete count and the current one.
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
        """Count open handles. Source: proc(5), fd and fdinfo."""
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
        """Count mappings. Source: proc(5), maps (range, rights, offset, device, inode, name)."""
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
    """Return the number of file locks of some processes; counting stops above `most`.

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
    """Return the number of bytes that a process and its ended children wrote to disks.

    Source: proc(5), io.
    """
    try:
        text = (_PROC / str(pid) / "io").read_text("ascii")
        return int(text.partition("\nwrite_bytes:")[2].split()[0])
    except PermissionError:
        return sys.maxsize
    except (OSError, IndexError, ValueError):
        return 0
