"""Cases on a dask cluster: processes of this machine, or whatever is behind a scheduler's address.

Only this module and `batch_connection` know dask. Results travel to this process, which alone
writes them. A worker that dies is replaced or left out by dask and its case is done again
elsewhere; when the scheduler goes away, or no worker is left, the cases that are not done yet
become failures.
"""

import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future as LocalFuture
from itertools import islice
from typing import Any, Final, Generic, TypeVar

from distributed import Client, Future, KilledWorker, as_completed

from napari_mamamia.core.errors import ClusterError
from napari_mamamia.core.records import FailureCause
from napari_mamamia.services.batch.connection import aside, connection, work_there
from napari_mamamia.services.batch.work import POLL_S, CaseInputs, CaseWork, Outcome, Place

R = TypeVar("R")

_LOOK_EVERY_S: Final = 2.0
_SHORT_S: Final = 0.01
_AHEAD_PER_THREAD: Final = 4
_AHEAD_LEAST: Final = 16


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
    """One batch on a connected cluster: a few cases for each thread are on their way at a time."""

    def __init__(self, client: Client, work: CaseWork[R], place: Place) -> None:
        self._client = client
        self._work = work
        self._place = place
        self._census = _Census(client)
        self._sent: dict[Future[Any], CaseInputs] = {}
        self._is_lost = False
        self._done = as_completed(with_results=True, raise_errors=False, loop=client.loop)

    def outcomes(self, cases: Sequence[CaseInputs]) -> Iterator[Outcome[R] | None]:
        waiting = iter(cases)
        self._send(waiting)
        spoken = time.monotonic()
        while self._sent:
            problem = self._problem()
            if problem:
                yield from _failed([*self._sent.values(), *waiting], problem)
                return
            batch = self._done.next_batch(block=False)
            for future, found in batch:
                if future.cancelled():  # never by us: the client does that without a scheduler
                    self._is_lost = True
                else:
                    yield _outcome(self._sent.pop(future), found)
            self._send(waiting)
            if time.monotonic() - spoken > POLL_S:
                spoken = time.monotonic()
                yield None
            if not batch:
                time.sleep(_SHORT_S)

    def _send(self, waiting: Iterator[CaseInputs]) -> None:
        ahead = max(_AHEAD_LEAST, _AHEAD_PER_THREAD * self._census.threads)
        for inputs in islice(waiting, ahead - len(self._sent)):
            limit = self._place.time_limit_s
            future = self._client.submit(work_there, self._work, inputs, limit, pure=False)
            self._sent[future] = inputs
            self._done.add(future)

    def _problem(self) -> str:
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


def _outcome(inputs: CaseInputs, found: Any) -> Outcome[R]:
    if isinstance(found, Outcome):
        return found
    error = found[1] if isinstance(found, tuple) else found
    reason = f"the worker could not finish it ({type(error).__name__}: {error})"
    reason += ": look at its files and the worker's memory"
    lost = isinstance(error, KilledWorker)
    cause = FailureCause.WORKER_LOST if lost else FailureCause.ERROR
    return Outcome(inputs.case_id, reason=reason, cause=cause)


def _failed(cases: Sequence[CaseInputs], reason: str) -> Iterator[Outcome[Any]]:
    for inputs in cases:
        yield Outcome(inputs.case_id, reason=reason, cause=FailureCause.WORKER_LOST)
