"""Run an untrusted program in its sandbox, with supervision and limits.

At the end of a run, all processes of the program are killed. `run_in_sandbox` is used both for
submissions and for opening rejected checkpoints.
"""

import json
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import IO, Final

from napari_mamamia.core.choices import IsolationKind, Task
from napari_mamamia.core.program.child_environment import child_environment
from napari_mamamia.core.program.child_process import Process, answer_of, end_group, start, wait_for
from napari_mamamia.core.progress import Progress, forward_progress
from napari_mamamia.segmentation.sandbox.cgroup import Group, control_group
from napari_mamamia.segmentation.sandbox.external import Submission
from napari_mamamia.segmentation.sandbox.isolation import (
    SCRATCH,
    Isolation,
    Sandbox,
    bubblewrap_command,
    container_command,
    has_graphics_card,
)
from napari_mamamia.segmentation.sandbox.outputs import MASKS
from napari_mamamia.segmentation.sandbox.pipes import EventPipe, LogPipe, Wording, verdict
from napari_mamamia.segmentation.sandbox.sandbox import (
    Ending,
    Interpreter,
    Layout,
    Patient,
    RunLimits,
    RunOfSubmission,
    environment,
    lay_out,
)
from napari_mamamia.segmentation.sandbox.seccomp import call_filter, filter_file
from napari_mamamia.segmentation.sandbox.watch import (
    Held,
    Inventory,
    TreeUse,
    can_watch,
    end_tree,
    is_alive,
    offer_to_end,
    own_threads,
    tree_of,
    tree_use,
)

# Wait for a sandbox's process to end, or for the first limit that it exceeds.

_POLL_S: Final = 0.1
_START_S: Final = 1.0
_START_POLL_S: Final = 0.02  # a short program could end between two checks
_FOLDER_POLL_S: Final = 2.0
_COUNT_S: Final = 0.005  # for the inventory at each check
_MB: Final = 10**6
_LEAST_BYTES: Final = 64 * 2**10


@dataclass(slots=True)
class _Seen:
    """Observed use of resources by a process, and the limit that it exceeded, if any.

    `peak_bytes` is the peak memory, 0 if unknown. `largest` is the kind of memory of which the
    process used most. `output_bytes` is the total size of its output files that have a name.
    """

    ending: Ending | None = None
    peak_bytes: int = 0
    largest: str = ""
    output_bytes: int = 0


def _guard(
    process: Process, isolation: Isolation, limits: RunLimits, layout: Layout, n_masks: int
) -> _Seen:
    """Wait until a process ends or exceeds a limit, without killing it.

    Parameters
    ----------
    process, isolation, limits, layout
        The process with its sandbox, limits and files.
    n_masks
        Expected number of masks; above 1, the progress shows how many have been written.
    """
    started = time.monotonic()
    output = layout.output[0]
    next_look = started + _FOLDER_POLL_S
    seen = _Seen()
    watched = can_watch() and isolation.kind not in (IsolationKind.DOCKER, IsolationKind.PODMAN)
    inside = layout.output[1] if isolation.is_closed else str(output)
    inventory = Inventory(process.pid, output, inside, limits.handles) if watched else None
    while True:
        now = time.monotonic()
        if inventory is not None:
            use = _use_of(process.pid, now - started, isolation)
            inventory.go_on(_COUNT_S)
            overs = [_judge_use(use, held, seen, limits) for held in inventory.counts]
            seen.ending = next((over for over in overs if over is not None), None)
            if any(_is_output_over(held, seen, output, limits) for held in inventory.counts):
                seen.ending = seen.ending or Ending.OUTPUT
        has_ended = seen.ending is None and wait_for(process, _choose_pause(now - started))
        if has_ended or now >= next_look:
            next_look = now + _FOLDER_POLL_S
            seen.output_bytes = _folder_bytes(output, limits.output_bytes)
            if seen.output_bytes > limits.output_bytes:
                seen.ending = seen.ending or Ending.OUTPUT
        if now - started > limits.seconds and not has_ended:
            seen.ending = seen.ending or Ending.TIME
        if has_ended or seen.ending is not None:
            return seen
        text = _describe_progress(now - started, limits.seconds, seen.peak_bytes, output, n_masks)
        forward_progress(text)


def _use_of(pid: int, seconds: float, isolation: Isolation) -> TreeUse:
    if seconds < _START_S:
        offer_to_end(pid)  # inherited by the processes that it starts later
    return tree_use(pid, SCRATCH if isolation.kind is IsolationKind.BUBBLEWRAP else ())


def _judge_use(use: TreeUse, held: Held, seen: _Seen, limits: RunLimits) -> Ending | None:
    """Record the current use of resources; return the first exceeded limit."""
    memory = {**use.held_bytes, **held.memory(use.shared_bytes)}
    if (total := sum(memory.values())) > seen.peak_bytes:
        seen.peak_bytes, seen.largest = total, max(memory, key=lambda kind: memory[kind])
    if use.processes > limits.processes:
        return Ending.PROCESSES
    if total > limits.memory_bytes:
        return Ending.MEMORY
    return Ending.HANDLES if held.handles > limits.handles else None


def _is_output_over(held: Held, seen: _Seen, output: Path, limits: RunLimits) -> bool:
    """Return whether named and deleted output files together exceed the limit."""
    if held.output(seen.output_bytes) <= limits.output_bytes:
        return False
    # A file that had a name at the last check may be deleted now, and counts once.
    seen.output_bytes = _folder_bytes(output, limits.output_bytes)
    return held.output(seen.output_bytes) > limits.output_bytes


def _choose_pause(seconds: float) -> float:
    return _POLL_S if seconds > _START_S else _START_POLL_S


def _describe_progress(
    seconds: float, limit: float, peak: int, output: Path, n_masks: int
) -> Progress:
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
    """Return the total size in bytes of a folder's entries at any depth, ignoring links.

    For each entry, at least a few bytes are counted, so that the number of empty files is limited
    too. Counting stops above `most`. If a folder cannot be read or is nested too deeply, the result
    is above `most`.
    """
    total, waiting = 0, [str(folder)]
    while waiting and total <= most:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    total += _entry_bytes(entry, waiting)
        except (FileNotFoundError, NotADirectoryError):
            continue  # removed meanwhile
        except OSError:
            return most + 1
    return total


def _entry_bytes(entry: "os.DirEntry[str]", waiting: list[str]) -> int:
    if entry.is_dir(follow_symlinks=False):
        waiting.append(entry.path)
        return _LEAST_BYTES
    return max(entry.stat(follow_symlinks=False).st_size, _LEAST_BYTES)


_END_S: Final = 3.0
_KILL_S: Final = 10.0


def run_submission_once(
    submission: Submission,
    patients: Sequence[Patient],
    task: Task,
    isolation: Isolation,
    python: Interpreter | None,
    limits: RunLimits,
    work: Path,
    log: Path,
    *,
    cuda_on_processor: bool = False,
) -> RunOfSubmission:
    """Run a submission once on some patients; it writes its results to work/output.

    A cancellation ends the submission and all its processes. The results are not checked here; see
    `outputs`.

    Parameters
    ----------
    submission, patients, task
        The submission, its cases, and the task that it performs.
    isolation, python
        The sandbox and its Python.
    limits
        The limits of the run; the time limit applies to all `patients` together.
    work
        An empty folder for this run only; the caller removes it.
    log
        File to which the submission's printed output is appended.
    cuda_on_processor
        As in `sandbox.lay_out`.
    """
    layout = lay_out(
        submission,
        patients,
        task,
        work,
        python,
        closed=isolation.is_closed,
        cuda_on_processor=cuda_on_processor,
    )
    count = len(patients)
    wording = Wording(work="a case" if count == 1 else f"{count} cases", n_masks=count)
    return run_in_sandbox(layout, isolation, limits, work, log, wording)


def run_in_sandbox(
    layout: Layout,
    isolation: Isolation,
    limits: RunLimits,
    work: Path,
    log: Path,
    wording: Wording,
) -> RunOfSubmission:
    """Run a program in its sandbox; if cancelled, end all its processes.

    Parameters
    ----------
    layout
        The files of the sandbox, and the runner's order.
    isolation, limits
        The sandbox and its limits.
    work, log
        As in `run_submission_once`.
    wording
        The nouns for the program and its work in messages.
    """
    with _start_room(layout, isolation, limits, work, log) as sandbox:
        with suppress(OSError):
            # If the sandbox could not be made, nobody reads the pipe; how it ended is reported
            # below.
            sandbox.input.write(_limit_order(layout.order, limits).encode() + b"\n")
            sandbox.input.flush()
        started = time.monotonic()
        seen = _guard(sandbox.process, isolation, limits, layout, wording.n_masks)
        seconds = time.monotonic() - started
        cause = seen.ending or (Ending.MEMORY if sandbox.group.is_out_of_memory() else None)
    code = sandbox.process.returncode
    ending, reason = verdict(cause, sandbox.events, code, limits, wording, seen.largest)
    return RunOfSubmission(
        ending, reason, seconds, seen.peak_bytes or None, sandbox.printed.dropped_bytes
    )


def _limit_order(order: str, limits: RunLimits) -> str:
    """Return the runner's order with limits that the runner sets for its own process."""
    content = json.loads(order)
    content["file_bytes"] = limits.output_bytes
    content["processes"] = own_threads() + limits.processes
    return json.dumps(content)


@dataclass(frozen=True, slots=True, eq=False)
class _Room:
    """The process of a sandbox, with its input and the threads that read its output."""

    process: Process
    input: IO[bytes]
    printed: LogPipe
    events: EventPipe
    group: Group


@contextmanager
def _start_room(
    layout: Layout, isolation: Isolation, limits: RunLimits, work: Path, log: Path
) -> Iterator[_Room]:
    """Start a sandbox's process; at the end of the block, end it with all its descendants."""
    name = f"mamamia-{secrets.token_hex(6)}"
    own_environment = environment(SCRATCH[0] if isolation.is_closed else str(work))
    if isolation.kind in (IsolationKind.DOCKER, IsolationKind.PODMAN):
        own_environment = (
            child_environment()
        )  # for the container client; nothing of it reaches the container
    spared = ("memfd_create",) if has_graphics_card() else ()  # a card's driver may need it
    content = call_filter(spared=spared) if isolation.has_filter else None
    with _hold_room(isolation, limits) as group:
        with nullcontext() if content is None else filter_file(content) as number:
            process = start(
                (*group.prefix, *_make_command(layout, isolation, limits, name, number)),
                environment=own_environment,
                folder=work,
                kept_files=() if number is None else (number,),
            )
        readers: list[Thread] = []
        try:
            if process.stdin is None or process.stdout is None or process.stderr is None:
                raise RuntimeError("expected three pipes to the sandbox's process, but found fewer")
            printed = LogPipe(process.stderr, log, limits.log_bytes)
            events = EventPipe(process.stdout)
            readers += [printed, events]
            for reader in readers:
                reader.start()
            yield _Room(process, process.stdin, printed, events, group)
        finally:
            _end_room(process, readers, isolation, name)


def _hold_room(isolation: Isolation, limits: RunLimits) -> AbstractContextManager[Group]:
    """Return the control group for a sandbox; containers have their own groups."""
    if isolation.kind in (IsolationKind.DOCKER, IsolationKind.PODMAN):
        return nullcontext(Group())
    return control_group(limits.processes, limits.memory_bytes)


def _make_command(
    layout: Layout, isolation: Isolation, limits: RunLimits, name: str, filter_file: int | None
) -> tuple[str, ...]:
    sandbox = Sandbox(
        layout.readable,
        layout.output,
        limits.scratch_bytes,
        limits.memory_bytes,
        limits.processes,
    )
    if isolation.kind is IsolationKind.BUBBLEWRAP:
        return bubblewrap_command(isolation.program, sandbox, layout.command, filter_file)
    if isolation.kind is IsolationKind.NONE:
        return layout.command
    return container_command(isolation, sandbox, layout.command, name)


def _end_room(process: Process, readers: Sequence[Thread], isolation: Isolation, name: str) -> None:
    """End a process and all its descendants, and wait until they have ended."""
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()  # the runner ends its own when this ends
    if isolation.kind in (IsolationKind.DOCKER, IsolationKind.PODMAN):
        answer_of((isolation.program, "kill", name), _KILL_S)
    elif isolation.kind is IsolationKind.NONE:
        wait_for(process, _END_S)
        if can_watch():
            end_tree(process.pid)
    below = tree_of(process.pid) if can_watch() else ()
    end_group(process, readers)  # bubblewrap's sandbox ends with its parent
    end = time.monotonic() + _END_S
    while any(is_alive(pid) for pid in below) and time.monotonic() < end:
        time.sleep(_POLL_S / 10)
