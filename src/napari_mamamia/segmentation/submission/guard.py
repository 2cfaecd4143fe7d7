"""Waiting for a room's process to end, or for the first limit that it goes over."""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from napari_mamamia.core.child_process import Process, wait_for
from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.segmentation.submission.isolation import SCRATCH, Isolation, IsolationKind
from napari_mamamia.segmentation.submission.limits import Ending, RunLimits
from napari_mamamia.segmentation.submission.outputs import MASKS
from napari_mamamia.segmentation.submission.watch import TreeUse, can_watch, offer_to_end, tree_use

__all__ = ["guarded"]

_POLL_S: Final = 0.1
_START_S: Final = 1.0
_START_POLL_S: Final = 0.02  # a short program would end between two looks
_FOLDER_POLL_S: Final = 2.0
_MB: Final = 10**6
_LEAST_BYTES: Final = 64 * 2**10


def guarded(
    process: Process,
    isolation: Isolation,
    limits: RunLimits,
    output: Path,
    n_masks: int,
) -> Job[tuple[Ending | None, int | None]]:
    """Return a job that waits until a process ends (None) or goes over a limit.

    The second result is the highest resident memory that was seen of it and all that it started,
    in bytes; None where nothing tells it. Nothing is ended here.

    Parameters
    ----------
    output
        The folder that it writes to.
    n_masks
        Above 1, the progress counts the masks that are there.
    """
    started = time.monotonic()
    next_look = started + _FOLDER_POLL_S
    peak = 0
    watched = can_watch() and isolation.kind not in (IsolationKind.DOCKER, IsolationKind.PODMAN)
    while True:
        now = time.monotonic()
        if watched:
            use = _use_of(process.pid, now - started, isolation)
            peak = max(peak, use.resident_bytes)
            if (over := _over(use, limits)) is not None:
                return over, peak
        if wait_for(process, _pause(now - started)):
            return None, peak or None
        if now >= next_look:
            next_look = now + _FOLDER_POLL_S
            if _folder_bytes(output, limits.output_bytes) > limits.output_bytes:
                return Ending.OUTPUT, peak or None
        if now - started > limits.seconds:
            return Ending.TIME, peak or None
        yield _progress(now - started, limits.seconds, peak, output, n_masks)


def _use_of(pid: int, seconds: float, isolation: Isolation) -> TreeUse:
    if seconds < _START_S:
        offer_to_end(pid)  # what it starts later inherits it
    return tree_use(pid, SCRATCH if isolation.kind is IsolationKind.BUBBLEWRAP else ())


def _over(use: TreeUse, limits: RunLimits) -> Ending | None:
    if use.processes > limits.processes:
        return Ending.PROCESSES
    return Ending.MEMORY if use.resident_bytes > limits.memory_bytes else None


def _pause(seconds: float) -> float:
    return _POLL_S if seconds > _START_S else _START_POLL_S


def _progress(seconds: float, limit: float, peak: int, output: Path, n_masks: int) -> Progress:
    memory = f", {peak / _MB:.0f} MB" if peak else ""
    masks = ""
    if n_masks > 1:
        masks = f", {_n_masks(output)} of {n_masks} masks"
    share = min(int(1000 * seconds / limit), 1000)
    return Progress(share, 1000, f"{seconds:.0f} s of {limit:.0f} s{memory}{masks}")


def _n_masks(output: Path) -> int:
    folder = output / MASKS
    with suppress(OSError):
        return 0 if folder.is_symlink() else sum(1 for _ in folder.iterdir())
    return 0


def _folder_bytes(folder: Path, most: int) -> int:
    """Return what a folder holds, however deep, in bytes; links are not followed.

    Each entry counts as some bytes at least, so that empty files have an end too. Above `most` it
    is not looked further. A folder that cannot be looked into, closed or too deep, counts as more.
    """
    total, waiting = 0, [str(folder)]
    while waiting and total <= most:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    total += _entry_bytes(entry, waiting)
        except (FileNotFoundError, NotADirectoryError):
            continue  # it was removed meanwhile
        except OSError:
            return most + 1
    return total


def _entry_bytes(entry: "os.DirEntry[str]", waiting: list[str]) -> int:
    if entry.is_dir(follow_symlinks=False):
        waiting.append(entry.path)
        return _LEAST_BYTES
    return max(entry.stat(follow_symlinks=False).st_size, _LEAST_BYTES)
