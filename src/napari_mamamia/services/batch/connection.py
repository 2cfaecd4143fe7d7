"""Joining a dask cluster, letting go of it, and what runs in its workers."""

import logging
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Thread, current_thread, get_ident, main_thread
from typing import Any, Final, Generic, TypeVar, cast

from dask import config
from distributed import Client, LocalCluster, WorkerPlugin, get_worker
from distributed.security import Security

from napari_mamamia.core.errors import ClusterError, MissingExtraError
from napari_mamamia.core.program.system import end_process
from napari_mamamia.io.files.own_paths import own_folder
from napari_mamamia.services.batch.child import Child, attempt_in_child
from napari_mamamia.services.batch.work import POLL_S, CaseInputs, CaseWork, Outcome, Place, attempt

R = TypeVar("R")
T = TypeVar("T")

_CONNECT_S: Final = 10.0
_CLOSE_S: Final = 1.0
_HOLD_S: Final = 1.0
_DEATHS_FORGIVEN: Final = 1
"""Workers that may die at a task before it is given up, and its cases are tried alone."""
_PLUGIN: Final = "mamamia-children"
_WORKER_ENVIRONMENT: Final = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONSAFEPATH": "1",
}
"""What dask sets in a worker, which finds no modules in the current folder. Without
MALLOC_TRIM_THRESHOLD_: with any value of it glibc maps every large array anew, and the page faults
double the time that scoring takes (benchmarks/batch.py)."""


@contextmanager
def connection(place: Place) -> Iterator["Future[Client]"]:
    """Give the client to come; at the end, let go of the cluster, or end it if it is ours.

    The future holds a `ClusterError` if the scheduler cannot be reached.
    """
    with own_folder() as folder:
        opening = aside(lambda: _connect_client(place, folder))
        try:
            yield opening
        finally:
            wait([opening], timeout=_CLOSE_S)
            opening.add_done_callback(_close_opened)


def _connect_client(place: Place, folder: Path) -> Client:
    limit_s = min(_CONNECT_S, place.patience_s)
    try:
        if place.scheduler:
            client = Client(place.scheduler, timeout=limit_s, set_as_default=False)
        else:
            client = _start_workers(place.workers, folder)
    except (OSError, ValueError, TimeoutError, RuntimeError) as error:
        raise _make_connect_error(place, error) from error
    if place.workers or place.time_limit_s is not None:
        client.register_plugin(_Children(is_ours=bool(place.workers)))
    return client


def _make_connect_error(place: Place, error: Exception) -> ClusterError:
    if place.scheduler:
        return ClusterError(
            f"expected a dask scheduler at {place.scheduler}, but it cannot be reached ({error}): "
            "check the address and that the scheduler runs, or leave it out and use --workers"
        )
    return ClusterError(
        f"expected {place.workers} worker process(es) on this machine, but they cannot be started "
        f"({error}): leave out --workers to score in one process"
    )


def _start_workers(workers: int, folder: Path) -> Client:
    settings = {
        "distributed.nanny.pre-spawn-environ": _WORKER_ENVIRONMENT,
        "distributed.scheduler.allowed-failures": _DEATHS_FORGIVEN,
        "temporary-directory": str(folder),  # the scheduler's; workers get it below
    }
    with config.set(settings):
        cluster = LocalCluster(
            n_workers=0,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            protocol="tls://",
            security=_key_of_this_run(),
            dashboard_address="127.0.0.1:0",
            local_directory=str(folder),
            silence_logs=logging.CRITICAL,
        )
        cluster.scale(workers)
        return Client(cluster, set_as_default=False)


def _key_of_this_run() -> Security:
    """Return a certificate made for these workers alone, which nobody else can talk to then.

    A scheduler without one runs what any account of this machine sends it.
    """
    try:
        return Security.temporary()
    except ImportError as error:
        raise MissingExtraError("cryptography", "cluster") from error


def _close_opened(opening: "Future[Client]") -> None:
    if opening.exception() is None:
        _close_client(opening.result())


def _close_client(client: Client) -> None:
    """Let go of the cluster within seconds, even if it does not answer any more."""
    cluster = client.cluster
    nannies = list(cluster.workers.values()) if cluster is not None else []
    closing = aside(lambda: _say_goodbye(client))
    end = time.monotonic() + _CLOSE_S
    while not closing.done() and time.monotonic() < end:
        time.sleep(POLL_S)
        # Again at each look: until it hears of the end, a nanny replaces a worker that died.
        for nanny in nannies:
            _kill_worker(nanny.pid)


def _say_goodbye(client: Client) -> None:
    if client.cluster is None and client.status == "running":
        client.cancel(list(client.futures), asynchronous=False)
        with suppress(Exception):  # unless there was a time limit there is none
            client.unregister_worker_plugin(_PLUGIN)
    client.close(timeout=_CLOSE_S)
    if client.cluster is not None:
        client.cluster.close(timeout=_CLOSE_S)


def _kill_worker(pid: int | None) -> None:
    """End a local worker, which would first wait for its case."""
    with suppress(OSError):
        if pid:
            end_process(pid)


class _Children(WorkerPlugin):
    """Gives each thread of a worker a process that can be killed, and ends them with the worker."""

    name = _PLUGIN

    def __init__(self, *, is_ours: bool) -> None:
        self._is_ours = is_ours

    def setup(self, worker: Any) -> None:
        if self._is_ours and current_thread() is main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the driver, who ends us
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
    """The outcomes of the first cases of a task, at least of one, and the seconds they took."""

    outcomes: tuple[Outcome[R], ...]
    seconds: float


def work_there(
    work: CaseWork[R], cases: Sequence[CaseInputs], limit_s: float | None
) -> TaskAnswer[R]:
    """Do cases, one after the other; this runs in a worker.

    After a second it stops early, so that what is done is not held up by what is slow: whoever sent
    the cases sends those without an outcome again.
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


def aside(function: Callable[[], T]) -> "Future[T]":
    """Return the result to come of `function`, run in a thread that never holds up the exit."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:  # noqa: BLE001 - handed to whoever asks for the result
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future
