"""Cases on a dask cluster: processes of this machine, or whatever is behind a scheduler's address.

Only this module and `batch_connection` know dask. Results travel to this process, which alone
writes them. A worker that dies is replaced or left out by dask and its cases are done again
elsewhere; when the scheduler goes away, or no worker is left, the cases that are not done yet
become failures.

Quick cases travel together: handing one over costs this process 6 ms, half of what it takes to
score it. A task is as many cases as take a quarter of a second, so that progress and a cancel stay
what they are. Of a task whose worker dies, dask does not say which case did it, and it blames the
task that waits behind as well: at the end each case of both is tried alone.
"""

import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future as LocalFuture
from math import ceil
from typing import Any, Final, Generic, TypeVar

from distributed import Client, Future, KilledWorker, as_completed

from napari_mamamia.core.errors import ClusterError
from napari_mamamia.core.records import FailureCause
from napari_mamamia.services.batch.connection import TaskAnswer, aside, connection, work_there
from napari_mamamia.services.batch.work import POLL_S, CaseInputs, CaseWork, Outcome, Place

R = TypeVar("R")

_LOOK_EVERY_S: Final = 2.0
_SHORT_S: Final = 0.01
_AHEAD_PER_THREAD: Final = 4
_AHEAD_LEAST: Final = 16
_SILENCE_S: Final = 1.0
_TASK_S: Final = 0.25
_MOST_CASES: Final = 64


def on_cluster(
    cases: Sequence[CaseInputs], work: CaseWork[R], place: Place
) -> Generator[Outcome[R] | None, None, None]:
    """Yield each case's outcome as it comes, and None at least every 0.2 s in between.

    Closing the generator ends local workers with all their processes at once. On a cluster of
    somebody else, waiting cases are withdrawn and those with a time limit ended; others run to
    their end.

    Raises
    ------
    ClusterError
        If the scheduler cannot be reached, or local workers cannot be started.
    """
    with connection(place) as opening:
        end = time.monotonic() + place.patience_s
        while not opening.done():
            if time.monotonic() > end:
                raise _too_late(place)
            yield None
            time.sleep(POLL_S)
        yield from _Run(opening.result(), work, place).outcomes(cases)


def _too_late(place: Place) -> ClusterError:
    if place.scheduler:
        return ClusterError(
            f"expected a dask scheduler at {place.scheduler}, but none answered within "
            f"{place.patience_s:g} s: check the address and that the scheduler runs, or leave it "
            "out and use --workers"
        )
    return ClusterError(
        f"expected {place.workers} worker process(es) within {place.patience_s:g} s, got none yet: "
        "this computer may be too busy; give fewer with --workers, or leave them out"
    )


class _Run(Generic[R]):
    """One batch on a connected cluster: a few tasks for each thread are on their way at a time."""

    def __init__(self, client: Client, work: CaseWork[R], place: Place) -> None:
        self._client = client
        self._work = work
        self._place = place
        self._census = _Census(client)
        self._waiting: deque[CaseInputs] = deque()
        self._alone: deque[CaseInputs] = deque()
        self._sent: dict[Future[Any], tuple[CaseInputs, ...]] = {}
        self._trial: Future[Any] | None = None
        self._heard = time.monotonic()
        self._case_s = _TASK_S
        self._is_lost = False
        # The client is no default one, from which dask would take the loop by itself.
        self._done = as_completed(with_results=True, raise_errors=False, loop=client.loop)

    def outcomes(self, cases: Sequence[CaseInputs]) -> Iterator[Outcome[R] | None]:
        self._waiting.extend(cases)
        self._send_tasks()
        spoken = time.monotonic()
        while self._sent:
            problem = self._find_problem()
            if problem:
                sent = [inputs for task in self._sent.values() for inputs in task]
                yield from _fail_cases([*sent, *self._alone, *self._waiting], problem)
                return
            answers = self._collect_answers()
            for future, answer in answers.items():
                if future.cancelled():  # never by us: the client does that without a scheduler
                    self._is_lost = True
                else:
                    yield from self._sort_answer(future, answer)
            self._send_tasks()
            if time.monotonic() - spoken > POLL_S:
                spoken = time.monotonic()
                yield None
            if not answers:
                time.sleep(_SHORT_S)

    def _collect_answers(self) -> dict[Future[Any], Any]:
        """Return the tasks that came to an end, with what came of them, each once.

        Where the worker of a finished task dies before its result is fetched, `as_completed` may
        never hand it over, although dask does it again: after a silence it is asked for anew.
        """
        now = time.monotonic()
        answers = dict(self._done.next_batch(block=False))
        answers = {future: answers[future] for future in answers if future in self._sent}
        if answers:
            self._heard = now
        elif now - self._heard > _SILENCE_S:
            self._heard = now
            for future in self._sent:
                if future.status in ("finished", "error"):
                    self._done.add(future)
        return answers

    def _sort_answer(self, future: Future[Any], answer: Any) -> tuple[Outcome[R], ...]:
        """Return the outcomes of a task; what has none yet waits again."""
        task, is_trial = self._sent.pop(future), future is self._trial
        if isinstance(answer, TaskAnswer):
            self._case_s = (self._case_s + answer.seconds / len(answer.outcomes)) / 2
            self._waiting.extendleft(reversed(task[len(answer.outcomes) :]))
            return answer.outcomes
        # Told not to raise, dask hands an error over as (type, error, traceback).
        error = answer[1] if isinstance(answer, tuple) else answer
        if is_trial or (len(task) == 1 and not isinstance(error, KilledWorker)):
            return (_explain_loss(task[0], error),)
        self._alone.extend(task)
        return ()

    def _send_tasks(self) -> None:
        ahead = max(_AHEAD_LEAST, _AHEAD_PER_THREAD * self._census.threads)
        while self._waiting and len(self._sent) < ahead:
            share = ceil(len(self._waiting) / ahead)
            n_cases = max(1, min(share, _MOST_CASES, int(_TASK_S / max(self._case_s, 1e-6))))
            self._send_task(tuple(self._waiting.popleft() for _ in range(n_cases)))
        if self._alone and not self._sent:
            self._trial = self._send_task((self._alone.popleft(),))

    def _send_task(self, task: tuple[CaseInputs, ...]) -> Future[Any]:
        limit = self._place.time_limit_s
        # A pure call with the same arguments would be answered by the result of the one before.
        future = self._client.submit(work_there, self._work, task, limit, pure=False)
        self._sent[future] = task
        self._done.add(future)
        return future

    def _find_problem(self) -> str:
        """Return why the cases that are not done will not be, "" if all is well."""
        if self._is_lost or self._client.status != "running":
            return (
                f"the scheduler {self._place.scheduler or 'of the local workers'} went away before "
                "the case was done: start it again and continue with --resume"
            )
        alone = self._census.seconds_without_workers()
        if alone > self._place.patience_s:
            return (
                f"no worker was connected for {alone:.0f} s: start workers and continue with "
                "--resume"
            )
        return ""


class _Census:
    """How many threads the cluster has, asked every two seconds without waiting for the answer."""

    def __init__(self, client: Client) -> None:
        self.threads = 0
        self._client = client
        self._seen = time.monotonic()
        self._asked = 0.0
        self._answer: LocalFuture[Any] | None = None

    def seconds_without_workers(self) -> float:
        now = time.monotonic()
        if self._answer is not None and self._answer.done():
            if self._answer.exception() is None:
                self.threads = sum(self._answer.result().values())
                self._seen = now if self.threads else self._seen
            self._answer = None
        if self._answer is None and now - self._asked > _LOOK_EVERY_S:
            self._asked = now
            self._answer = aside(self._client.nthreads)
        return now - self._seen


def _explain_loss(inputs: CaseInputs, error: Any) -> Outcome[R]:
    reason = f"the worker could not finish it ({type(error).__name__}: {error})"
    reason += ": look at its files and the worker's memory"
    lost = isinstance(error, KilledWorker)
    cause = FailureCause.WORKER_LOST if lost else FailureCause.ERROR
    return Outcome(inputs.case_id, reason=reason, cause=cause)


def _fail_cases(cases: Sequence[CaseInputs], reason: str) -> Iterator[Outcome[Any]]:
    for inputs in cases:
        yield Outcome(inputs.case_id, reason=reason, cause=FailureCause.WORKER_LOST)
