"""Run cases in several processes of this computer.

Each process gets several short cases at once, so that it does not wait for the next one. It answers
after each case. If a process dies, only the case in progress is affected: it is tried once more in
a new process, which then runs the remaining cases.
"""

import time
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final, TypeVar

from napari_mamamia.core.errors import ClusterError, Remedy
from napari_mamamia.services.batch.child import Child, attempt_all_in_child
from napari_mamamia.services.batch.work import POLL_S, CaseInputs, CaseWork, Outcome

R = TypeVar("R")

_CHUNK_S: Final = 0.25
"""Expected duration, in s, of the cases that are sent to a process together."""
_LARGEST_CHUNK: Final = 64
_ONE_THREAD: Final = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


def on_workers(
    cases: Sequence[CaseInputs], work: CaseWork[R], workers: int, limit_s: float | None
) -> Generator[Outcome[R] | None, None, None]:
    """Yield the outcome of each case as it arrives, and None at least every 0.2 s while waiting.

    Closing the generator ends all processes at once.

    Raises
    ------
    ClusterError
        If the processes cannot be started.
    """
    waiting, answers = deque(cases), SimpleQueue[Outcome[R] | Exception]()
    children = [Child(_ONE_THREAD) for _ in range(min(workers, len(cases)))]
    threads = [
        Thread(target=_run_cases, args=(child, work, waiting, len(children), limit_s, answers))
        for child in children
    ]
    try:
        for thread in threads:
            thread.start()
        n_waiting = len(cases)
        while n_waiting:
            try:
                answer = answers.get(timeout=POLL_S)
            except Empty:
                yield None
                continue
            if isinstance(answer, OSError):
                raise ClusterError(
                    f"expected {len(children)} worker processes to start on this computer, but "
                    f"they cannot be started ({answer}): use fewer workers, or none",
                    remedies=(Remedy("workers"),),
                ) from answer
            if isinstance(answer, Exception):
                raise answer
            n_waiting -= 1
            yield answer
    finally:
        waiting.clear()
        _end_all(children, threads)


def _run_cases(
    child: Child,
    work: CaseWork[R],
    waiting: deque[CaseInputs],
    workers: int,
    limit_s: float | None,
    answers: "SimpleQueue[Outcome[R] | Exception]",
) -> None:
    n_cases = 1
    try:
        while chunk := _take(waiting, max(1, min(n_cases, len(waiting) // (2 * workers)))):
            start = time.monotonic()
            for outcome in attempt_all_in_child(child, work, chunk, limit_s):
                answers.put(outcome)
            case_s = (time.monotonic() - start) / len(chunk)
            n_cases = max(1, min(2 * n_cases, _LARGEST_CHUNK, int(_CHUNK_S / max(case_s, 1e-6))))
    except Exception as error:  # noqa: BLE001 - raised in the thread that reads the answers
        answers.put(error)


def _take(waiting: deque[CaseInputs], n_cases: int) -> list[CaseInputs]:
    """Remove and return the next cases, at most `n_cases`; [] if none is left."""
    taken: list[CaseInputs] = []
    with suppress(IndexError):  # other threads take cases too
        while len(taken) < n_cases:
            taken.append(waiting.popleft())
    return taken


def _end_all(children: Sequence[Child], threads: Sequence[Thread]) -> None:
    """End all processes and threads; a thread may still be starting its process."""
    while True:
        for child in children:
            child.close()
        started = [thread for thread in threads if thread.is_alive()]
        if not started:
            return
        started[0].join(POLL_S)
