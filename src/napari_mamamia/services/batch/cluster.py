"""Run cases on the workers of a dask scheduler.

Only this module uses dask. It connects to the cluster, sends the cases, and holds the code that
runs in the workers. Results are sent to this process, which alone writes them. If a worker dies,
dask replaces it or continues without it, and its cases run again elsewhere. If the scheduler or all
workers are lost, the unfinished cases become failures.

Short cases are sent together, because sending a case takes 6 ms, which is half the time needed to
score it. A task has as many cases as can be processed in a quarter of a second, which keeps
progress and cancelling responsive. If the worker of a task dies, dask does not report which case
was the cause, and also counts the failure for the next waiting task. Each case of both tasks is
therefore run alone at the end.
"""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future as LocalFuture
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import ceil
from threading import Lock, Thread, get_ident
from typing import Any, Final, Generic, TypeVar, cast

from distributed import (
    Client,
    Future,
    KilledWorker,
    WorkerPlugin,
    as_completed,
    get_worker,
)

from napari_mamamia.core.errors import ClusterError, Remedy
from napari_mamamia.core.plugins import be_quiet
from napari_mamamia.core.records import FailureCause
from napari_mamamia.services.batch.child import Child, attempt_in_child
from napari_mamamia.services.batch.work import POLL_S, CaseInputs, CaseWork, Outcome, Place, attempt

R = TypeVar("R")
T = TypeVar("T")

_CONNECT_S: Final = 10.0
_CLOSE_S: Final = 1.0
_HOLD_S: Final = 1.0
_LOOK_EVERY_S: Final = 2.0
_SHORT_S: Final = 0.01
_AHEAD_PER_THREAD: Final = 4
_AHEAD_LEAST: Final = 16
_SILENCE_S: Final = 1.0
_TASK_S: Final = 0.25
_MOST_CASES: Final = 64
_PLUGIN: Final = "mamamia-children"


def on_cluster(
    cases: Sequence[CaseInputs], work: CaseWork[R], place: Place
) -> Generator[Outcome[R] | None, None, None]:
    """Yield the outcome of each case as it arrives, and None at least every 0.2 s while waiting.

    If the generator is closed, waiting cases are withdrawn, running cases with a time limit are
    stopped, and all other cases run to their end.

    Raises
    ------
    ClusterError
        If the scheduler cannot be reached.
    """
    with connection(place) as opening:
        end = time.monotonic() + place.patience_s
        while not opening.done():
            if time.monotonic() > end:
                raise _make_connect_error(place, f"no answer within {place.patience_s:g} s")
            yield None
            time.sleep(POLL_S)
        yield from _Run(opening.result(), work, place).outcomes(cases)


class _Run(Generic[R]):
    """One batch on a connected cluster; only a few tasks per thread are submitted at a time."""

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
        # This is not a default client, whose event loop dask would reuse.
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
                if (
                    future.cancelled()
                ):  # We never cancel a future; the client does this if it loses the scheduler.
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
        """Return each finished task once, together with its result.

        If the worker of a finished task dies before its result is fetched, `as_completed` may never
        return the task, although dask repeats it. The result is therefore requested again if no
        answer arrives for a while.
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
        """Return the outcomes of a task, and queue its cases without an outcome again."""
        task, is_trial = self._sent.pop(future), future is self._trial
        if isinstance(answer, TaskAnswer):
            self._case_s = (self._case_s + answer.seconds / len(answer.outcomes)) / 2
            self._waiting.extendleft(reversed(task[len(answer.outcomes) :]))
            return answer.outcomes
        # With errors disabled, dask returns an error as (type, error, traceback).
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
        # Dask would answer a pure call with the same arguments with the earlier result.
        future = self._client.submit(work_there, self._work, task, limit, pure=False)
        self._sent[future] = task
        self._done.add(future)
        return future

    def _find_problem(self) -> str:
        """Return why the unfinished cases cannot be run, or "" if they can be run."""
        if self._is_lost or self._client.status != "running":
            return (
                f"the scheduler {self._place.scheduler} was lost before the case was done: start "
                "it again, then continue this run"
            )
        alone = self._census.seconds_without_workers()
        if alone > self._place.patience_s:
            return (
                f"no worker has been connected for {alone:.0f} s: start workers, then continue "
                "this run"
            )
        return ""


class _Census:
    """The number of threads in the cluster, requested every two seconds without blocking."""

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
    reason += ": check its files and the worker's memory"
    lost = isinstance(error, KilledWorker)
    cause = FailureCause.WORKER_LOST if lost else FailureCause.ERROR
    return Outcome(inputs.case_id, reason=reason, cause=cause)


def _fail_cases(cases: Sequence[CaseInputs], reason: str) -> Iterator[Outcome[Any]]:
    for inputs in cases:
        yield Outcome(inputs.case_id, reason=reason, cause=FailureCause.WORKER_LOST)


@contextmanager
def connection(place: Place) -> Iterator[LocalFuture[Client]]:
    """Yield the pending client, and disconnect from the cluster at the end.

    The future holds a `ClusterError` if the scheduler cannot be reached.
    """
    opening = aside(lambda: _connect_client(place))
    try:
        yield opening
    finally:
        wait([opening], timeout=_CLOSE_S)
        opening.add_done_callback(_close_opened)


def _connect_client(place: Place) -> Client:
    limit_s = min(_CONNECT_S, place.patience_s)
    try:
        client = Client(place.scheduler, timeout=limit_s, set_as_default=False)
    except (OSError, ValueError, TimeoutError, RuntimeError) as error:
        raise _make_connect_error(place, error) from error
    if place.time_limit_s is not None:
        client.register_plugin(_Children())
    return client


def _make_connect_error(place: Place, problem: object) -> ClusterError:
    return ClusterError(
        f"expected a dask scheduler at {place.scheduler}, but it cannot be reached ({problem}): "
        "check the address and whether the scheduler is running, or omit the address and use "
        "workers on this computer",
        remedies=(Remedy("workers"),),
    )


def _close_opened(opening: LocalFuture[Client]) -> None:
    if opening.exception() is None:
        wait([aside(lambda: _close_client(opening.result()))], timeout=_CLOSE_S)


def _close_client(client: Client) -> None:
    """Withdraw all tasks, and disconnect from the cluster."""
    if client.status == "running":
        client.cancel(list(client.futures), asynchronous=False)
        with suppress(Exception):  # A case without a time limit needs no subprocess.
            client.unregister_worker_plugin(_PLUGIN)
    client.close(timeout=_CLOSE_S)


class _Children(WorkerPlugin):
    """A dask plug-in that gives each worker thread its own process, and ends it with the worker."""

    name = _PLUGIN

    def setup(self, worker: Any) -> None:
        be_quiet()
        self._lock = Lock()
        self._children: dict[int, Child] = {}

    def teardown(self, worker: Any) -> None:
        for child in self._children.values():
            child.close()

    def child(self) -> Child:
        """Return the process of the calling thread."""
        with self._lock:
            return self._children.setdefault(get_ident(), Child())


@dataclass(frozen=True, slots=True)
class TaskAnswer(Generic[R]):
    """The outcomes of the first cases of a task (at least one), and the time they took in s."""

    outcomes: tuple[Outcome[R], ...]
    seconds: float


def work_there(
    work: CaseWork[R], cases: Sequence[CaseInputs], limit_s: float | None
) -> TaskAnswer[R]:
    """Run cases one after the other in a worker.

    The function stops after one second, because slow cases would delay the results of finished
    cases. The sender then submits the remaining cases again.
    """
    start, outcomes = time.monotonic(), []
    for inputs in cases:
        if limit_s is None:
            outcomes.append(attempt(work, inputs))
        else:
            children = cast("_Children", get_worker().plugins[_PLUGIN])
            outcomes.append(attempt_in_child(children.child(), work, inputs, limit_s))
        if time.monotonic() - start > _HOLD_S:
            break
    return TaskAnswer(tuple(outcomes), time.monotonic() - start)


def aside(function: Callable[[], T]) -> LocalFuture[T]:
    """Run `function` in a thread that never delays the exit of the program; return its future."""
    future: LocalFuture[T] = LocalFuture()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:  # noqa: BLE001 - handed to whoever asks for the result
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future
