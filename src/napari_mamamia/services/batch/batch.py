"""Work over many cases: one case's failure costs one row, not the run.

`for_each_case` runs jobs in this process, one after the other. `run_batch` runs a `CaseWork` in
this process, in worker processes or on a cluster, and keeps each result as it comes.
"""

import logging
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from napari_mamamia.core.errors import CaseError, MamamiaError, MissingExtraError, refusal_text
from napari_mamamia.core.progress import Cancelled, Job, Progress
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.io.files.own_paths import sweep_below
from napari_mamamia.services.batch.child import Child, attempt_in_child
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.batch.store import ResultStore
from napari_mamamia.services.batch.work import (
    POLL_S,
    CaseInputs,
    CaseWork,
    Outcome,
    Place,
    attempt_job,
)

T = TypeVar("T")

_STEPS_PER_CASE = 1000
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BatchResult(Generic[T]):
    """Results in the order of the cases, and a failure for each case without one.

    `n_reused` results are of an earlier run.
    """

    results: tuple[T, ...]
    failures: tuple[CaseFailure, ...]
    n_reused: int = 0


def for_each_case(case_ids: Sequence[str], work: Callable[[str], Job[T]]) -> Job[BatchResult[T]]:
    """Return a job that runs ``work(case_id)`` for each case and goes on after a failure.

    Progress counts a thousand steps for each case, so that the work inside a case shows.
    """
    results: list[T] = []
    failures: list[CaseFailure] = []
    total = len(case_ids) * _STEPS_PER_CASE
    for position, case_id in enumerate(case_ids):
        start = position * _STEPS_PER_CASE
        yield Progress(start, total, f"{case_id} ({position + 1} of {len(case_ids)})")
        try:
            results.append((yield from _within(work(case_id), start, total, case_id)))
        except Cancelled:
            raise
        except MamamiaError as error:
            failures.append(CaseFailure(case_id, str(error)))
        except OSError as error:
            failures.append(CaseFailure(case_id, refusal_text(error)))
        except Exception as error:  # noqa: BLE001 - as `attempt_job`, for jobs
            _log.exception("case %s failed", case_id)
            failures.append(CaseFailure(case_id, f"unexpected {type(error).__name__}: {error}"))
    yield Progress(total, total, "Finished")
    return BatchResult(tuple(results), tuple(failures))


def _within(job: Job[T], start: int, total: int, case_id: str) -> Job[T]:
    """Pass a case's own progress on as a share of the batch."""
    try:
        while True:
            inner = next(job)
            done = start + int(inner.fraction * (_STEPS_PER_CASE - 1))
            yield Progress(done, total, f"{case_id}: {inner.text}")
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        job.close()


def run_batch(
    cases: Sequence[CaseInputs],
    work: CaseWork[T],
    place: Place | None = None,
    *,
    store: Path | None = None,
    existing: Existing = Existing.REFUSE,
    here: Callable[[CaseInputs], Job[T]] | None = None,
    still_holds: Callable[[T], bool] | None = None,
) -> Job[BatchResult[T]]:
    """Return a job that does `work` with each case at `place`; progress counts finished cases.

    Parameters
    ----------
    cases
        Each id once. Files are given as absolute paths where `place` is a cluster.
    work
        The definition of the work, the same for every place.
    place
        None is this process, without a time limit.
    store
        File that keeps each outcome as it comes; None keeps none. What is in it survives the end
        of this process, of workers, and of the scheduler.
    existing
        With RESUME, results in `store` are used again where neither the case's files nor the work
        changed.
    here
        Does the same as `work`, with what only this process has, such as a loaded model; used
        where `place` is this process. Progress then shows the steps within a case.
    still_holds
        Whether a result of `store` may be used again, such as because its file is still there.

    Raises
    ------
    CaseError
        If an id comes twice.
    ClusterError
        If the scheduler of `place` cannot be reached, or its workers cannot be started.
    MissingExtraError
        If `place` is a cluster and dask is not installed.
    SaveConflictError
        If `store` exists and `existing` is REFUSE, or another run is writing it.
    SaveError
        If a result cannot be kept, such as on a full disk; the run ends, earlier results stay.
    """
    _require_unique(cases)
    if store is None:
        return (yield from _run(cases, work, place or Place(), {}, None, here))
    try:
        with closing(ResultStore(store, work, existing)) as kept:
            found = yield from kept.reusable(cases) if existing is Existing.RESUME else _nothing()
            if still_holds is not None:
                found = {case_id: own for case_id, own in found.items() if still_holds(own)}
            return (yield from _run(cases, work, place or Place(), found, kept, here))
    finally:
        sweep_below(store.parent)  # what a case's process that was ended left half-written


def _run(
    cases: Sequence[CaseInputs],
    work: CaseWork[T],
    place: Place,
    found: dict[str, T],
    kept: ResultStore[T] | None,
    here: Callable[[CaseInputs], Job[T]] | None,
) -> Job[BatchResult[T]]:
    n_reused = len(found)
    waiting = [inputs for inputs in cases if inputs.case_id not in found]
    failed: dict[str, CaseFailure] = {}
    spoken = float("-inf")
    with closing(_outcomes(waiting, work, place, here)) as outcomes:
        for outcome in outcomes:
            if isinstance(outcome, Progress):
                yield _within_case(len(found) + len(failed), len(cases), outcome)
                continue
            if outcome is not None:
                _sort_in(outcome, found, failed, kept)
            elif kept is not None:
                kept.sync()
            if time.monotonic() - spoken > POLL_S / 2:
                spoken = time.monotonic()
                yield _progress(len(found) + len(failed), len(cases), len(failed))
    yield Progress(len(cases), len(cases), "Finished")
    return BatchResult(
        tuple(found[inputs.case_id] for inputs in cases if inputs.case_id in found),
        tuple(failed[inputs.case_id] for inputs in cases if inputs.case_id in failed),
        n_reused,
    )


def _outcomes(
    cases: Sequence[CaseInputs],
    work: CaseWork[T],
    place: Place,
    here: Callable[[CaseInputs], Job[T]] | None,
) -> Generator[Outcome[T] | Progress | None, None, None]:
    """Yield each case's outcome, and while waiting for one None, or with `here` its progress."""
    if not cases:
        return
    if place.is_cluster:
        place = replace(place, workers=min(place.workers, len(cases)))
        try:
            from napari_mamamia.services.batch.cluster import on_cluster
        except ImportError as error:
            raise MissingExtraError("distributed", "cluster") from error
        yield from on_cluster(cases, work, place)
    elif place.time_limit_s is not None:
        yield from _in_child(cases, work, place.time_limit_s)
    elif here is not None:
        for inputs in cases:
            steps = attempt_job(replace(work, function=_first_of(here)), inputs)
            yield (yield from _named(steps, inputs.case_id))
    else:
        for inputs in cases:
            yield (yield from _in_steps(attempt_job(work, inputs)))


def _named(job: Job[T], case_id: str) -> Job[T]:
    """Return `job` with the case's id before what it says."""
    with closing(job):
        while True:
            try:
                progress = next(job)
            except StopIteration as stop:
                result: T = stop.value
                return result
            yield Progress(progress.done, progress.total, f"{case_id}: {progress.text}")


def _first_of(here: Callable[[CaseInputs], Job[T]]) -> Callable[[CaseInputs, Any], Job[T]]:
    return lambda inputs, _settings: here(inputs)


def _in_steps(job: Job[Outcome[T]]) -> Generator[None, None, Outcome[T]]:
    """Return what a job finds, with a None for each of its steps."""
    with closing(job):
        while True:
            try:
                next(job)
            except StopIteration as stop:
                found: Outcome[T] = stop.value
                return found
            yield None


def _in_child(
    cases: Sequence[CaseInputs], work: CaseWork[T], limit_s: float
) -> Generator[Outcome[T] | None, None, None]:
    with closing(Child()) as child:
        for inputs in cases:
            yield (yield from attempt_in_child(child, work, inputs, limit_s))


def _sort_in(
    outcome: Outcome[T],
    found: dict[str, T],
    failed: dict[str, CaseFailure],
    kept: ResultStore[T] | None,
) -> None:
    if kept is not None:
        kept.add(outcome)
    if outcome.result is None:
        failed[outcome.case_id] = CaseFailure(outcome.case_id, outcome.reason, outcome.cause)
    else:
        found[outcome.case_id] = outcome.result


def _progress(n_done: int, n_cases: int, n_failed: int) -> Progress:
    failed = f", {n_failed} failed" if n_failed else ""
    return Progress(n_done, n_cases, f"{n_done} of {n_cases} cases{failed}")


def _within_case(n_done: int, n_cases: int, inner: Progress) -> Progress:
    done = n_done * _STEPS_PER_CASE + int(inner.fraction * (_STEPS_PER_CASE - 1))
    return Progress(done, n_cases * _STEPS_PER_CASE, inner.text)


def _nothing() -> Job[dict[str, T]]:
    yield Progress(0, 1, "Starting")
    return {}


def _require_unique(cases: Sequence[CaseInputs]) -> None:
    seen: set[str] = set()
    for inputs in cases:
        if inputs.case_id in seen:
            raise CaseError(f"expected each case once, got {inputs.case_id} twice: rename one")
        seen.add(inputs.case_id)
