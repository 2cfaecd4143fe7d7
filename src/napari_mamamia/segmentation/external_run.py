"""Running a submission in its room: watched, limited, and ended with all that it started."""

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.segmentation.external import Submission, Task
from napari_mamamia.segmentation.external_isolation import (
    Isolation,
    IsolationKind,
    Room,
    bubblewrap_command,
    container_command,
)
from napari_mamamia.segmentation.external_limits import Ending, RunLimits, RunOfSubmission
from napari_mamamia.segmentation.external_outputs import MASKS
from napari_mamamia.segmentation.external_pipes import EventPipe, LogPipe, verdict
from napari_mamamia.segmentation.external_room import (
    Interpreter,
    Layout,
    Patient,
    environment,
    lay_out,
)
from napari_mamamia.segmentation.external_watch import (
    can_watch,
    end_tree,
    is_alive,
    own_threads,
    tree_of,
    tree_use,
)

__all__ = ["run_submission_once"]

_POLL_S: Final = 0.1
_START_S: Final = 1.0
_START_POLL_S: Final = 0.02  # a short program would end between two looks
_FOLDER_POLL_S: Final = 2.0
_END_S: Final = 3.0
_DRAIN_S: Final = 2.0
_MB: Final = 10**6


def run_submission_once(
    submission: Submission,
    patients: Sequence[Patient],
    task: Task,
    isolation: Isolation,
    python: Interpreter | None,
    limits: RunLimits,
    work: Path,
    log: Path,
) -> Job[RunOfSubmission]:
    """Return a job that runs a submission once on these patients; what it wrote is in work/output.

    Closing the job ends the submission and everything that it started. Nothing that it wrote has
    been looked at: see `external_outputs`.

    Parameters
    ----------
    limits
        Its `seconds` are for all of `patients` together.
    work
        An empty folder that nothing else uses; the caller removes it.
    log
        File that gets what the submission prints, below what is there already.
    """
    layout = lay_out(submission, patients, task, work, python, closed=isolation.is_closed)
    with _started(layout, isolation, limits, work) as process:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise RuntimeError("expected three pipes to the room's process, got fewer")
        printed = LogPipe(process.stderr, log, limits.log_bytes)
        events = EventPipe(process.stdout)
        printed.start()
        events.start()
        with suppress(OSError):
            process.stdin.write(_ordered(layout.order, limits).encode() + b"\n")
            process.stdin.flush()
        started = time.monotonic()
        ending, peak = yield from _watch(
            process, isolation, limits, layout.output[0], len(patients)
        )
        seconds = time.monotonic() - started
    events.join(_DRAIN_S)
    printed.join(_DRAIN_S)
    ending, reason = verdict(ending, events, process.returncode, limits, len(patients))
    return RunOfSubmission(ending, reason, seconds, peak, printed.dropped_bytes)


def _ordered(order: str, limits: RunLimits) -> str:
    """Return the order with the limits that a process sets itself."""
    content = json.loads(order)
    content["file_bytes"] = limits.output_bytes
    content["processes"] = own_threads() + limits.processes
    return json.dumps(content)


@contextmanager
def _started(
    layout: Layout, isolation: Isolation, limits: RunLimits, work: Path
) -> Iterator["subprocess.Popen[bytes]"]:
    """Start the room's process; leaving the block ends it and everything below it."""
    name = f"mamamia-{secrets.token_hex(6)}"
    own_environment = environment("/tmp" if isolation.is_closed else str(work))
    if isolation.kind in (IsolationKind.DOCKER, IsolationKind.PODMAN):
        own_environment = dict(os.environ)  # the client's; the container gets none of it
    process = subprocess.Popen(
        _command(layout, isolation, limits, name),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=own_environment,
        cwd=work,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        _end(process, isolation, name)


def _command(layout: Layout, isolation: Isolation, limits: RunLimits, name: str) -> tuple[str, ...]:
    room = Room(
        layout.readable,
        layout.output,
        limits.scratch_bytes,
        limits.memory_bytes,
        limits.processes,
    )
    if isolation.kind is IsolationKind.BUBBLEWRAP:
        return bubblewrap_command(isolation.program, room, layout.command)
    if isolation.kind is IsolationKind.NONE:
        return layout.command
    return container_command(isolation, room, layout.command, name)


def _watch(
    process: "subprocess.Popen[bytes]",
    isolation: Isolation,
    limits: RunLimits,
    output: Path,
    n_patients: int,
) -> Job[tuple[Ending | None, int | None]]:
    """Wait for the end of the process or of a limit; None if it ended by itself."""
    started = time.monotonic()
    next_look = started + _FOLDER_POLL_S
    peak = 0
    watched = can_watch() and isolation.kind not in (IsolationKind.DOCKER, IsolationKind.PODMAN)
    while True:
        now = time.monotonic()
        if watched:
            use = tree_use(process.pid)
            peak = max(peak, use.resident_bytes)
            if use.processes > limits.processes:
                return Ending.PROCESSES, peak
            if use.resident_bytes > limits.memory_bytes:
                return Ending.MEMORY, peak
        with suppress(subprocess.TimeoutExpired):
            process.wait(_POLL_S if now - started > _START_S else _START_POLL_S)
            return None, peak or None
        if now >= next_look:
            next_look = now + _FOLDER_POLL_S
            if _folder_bytes(output) > limits.output_bytes:
                return Ending.OUTPUT, peak or None
        if now - started > limits.seconds:
            return Ending.TIME, peak or None
        yield _progress(now - started, limits.seconds, peak, output, n_patients)


def _progress(seconds: float, limit: float, peak: int, output: Path, n_patients: int) -> Progress:
    memory = f", {peak / _MB:.0f} MB" if peak else ""
    masks = ""
    if n_patients > 1:
        masks = f", {_n_masks(output)} of {n_patients} masks"
    share = min(int(1000 * seconds / limit), 1000)
    return Progress(share, 1000, f"{seconds:.0f} s of {limit:.0f} s{memory}{masks}")


def _n_masks(output: Path) -> int:
    folder = output / MASKS
    with suppress(OSError):
        return 0 if folder.is_symlink() else sum(1 for _ in folder.iterdir())
    return 0


def _folder_bytes(folder: Path) -> int:
    """Return the size of the files in a folder, however deep; links are not followed."""
    total, waiting = 0, [str(folder)]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    total += entry.stat(follow_symlinks=False).st_size
    return total


def _end(process: "subprocess.Popen[bytes]", isolation: Isolation, name: str) -> None:
    """End the process and all it started, and wait until it is gone."""
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()  # the runner ends its own when this ends
    if isolation.kind in (IsolationKind.DOCKER, IsolationKind.PODMAN):
        _quietly([isolation.program, "kill", name])
    elif isolation.kind is IsolationKind.NONE:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_END_S)
        if can_watch():
            end_tree(process.pid)
    below = tree_of(process.pid) if can_watch() else ()
    with suppress(OSError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)  # bubblewrap's room ends with its maker
    process.wait()
    end = time.monotonic() + _END_S
    while any(is_alive(pid) for pid in below) and time.monotonic() < end:
        time.sleep(_POLL_S / 10)


def _quietly(command: Sequence[str]) -> None:
    with suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False
        )
