"""Process many cases; if one case fails, the others continue.

`for_each_case` runs the cases in this process, one after the other. `run_batch` runs a `CaseWork`
in this process, in worker processes or on a cluster, and stores each result as it arrives.
"""

import logging
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from napari_mamamia.core import errors
from napari_mamamia.core.progress import Progress, changing, forward_progress, part, report_progress
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.io.files.own_paths import sweep_below
from napari_mamamia.services.batch.child import Child, attempt_in_child
from napari_mamamia.services.batch.local_workers import on_workers
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.batch.work import (
    POLL_S,
    CaseInputs,
    CaseWork,
    Outcome,
    Place,
    ResultStore,
    attempt,
)

T = TypeVar("T")

_STEPS_PER_CASE = 1000
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BatchResult(Generic[T]):
    """The results in the order of the cases, and a failure for each case without a result.

    `n_reused` is the number of results reused from an earlier run.
    """

    results: tuple[T, ...]
    failures: tuple[CaseFailure, ...]
    n_reused: int = 0


def for_each_case(case_ids: Sequence[str], work: Callable[[str], T]) -> BatchResult[T]:
    """Run ``work(case_id)`` for each case and continue after a failure.

    Progress counts a thousand steps for each case, so it also advances during a case.
    """
    results: list[T] = []
    failures: list[CaseFailure] = []
    total = len(case_ids) * _STEPS_PER_CASE
    for position, case_id in enumerate(case_ids):
        start = position * _STEPS_PER_CASE
        report_progress(start, total, f"{case_id} ({position + 1} of {len(case_ids)})")
        try:
            with part(start, start + _STEPS_PER_CASE - 1, total, f"{case_id}: "):
                results.append(work(case_id))
        except errors.MamamiaError as error:
            failures.append(CaseFailure(case_id, str(error), remedies=errors.list_remedies(error)))
        except OSError as error:
            failures.append(CaseFailure(case_id, errors.refusal_text(error)))
        except Exception as error:  # noqa: BLE001 - as `attempt`
            _log.exception("case %s failed", case_id)
            failures.append(CaseFailure(case_id, f"unexpected {type(error).__name__}: {error}"))
    report_progress(total, total, "Finished")
    return BatchResult(tuple(results), tuple(failures))


def run_batch(
    cases: Sequence[CaseInputs],
    work: CaseWork[T],
    place: Place | None = None,
    *,
    store: Path | None = None,
    existing: Existing = Existing.REFUSE,
    here: Callable[[CaseInputs], T] | None = None,
    still_holds: Callable[[T], bool] | None = None,
) -> BatchResult[T]:
    """Run `work` for each case at `place`; progress counts finished cases.

    Parameters
    ----------
    cases
        The cases, each with a unique id. If `place` has a scheduler, the paths of their files must
        be absolute.
    work
        The function to run, with its settings; independent of `place`.
    place
        Where the cases run. None runs them in this process without a time limit.
    store
        The file in which each outcome is stored as it arrives, or None. The file remains if this
        process, a worker or the scheduler ends.
    existing
        What to do with an existing `store`. With RESUME, a stored result is reused if neither the
        case's files nor the work has changed.
    here
        A function that does the same as `work` with objects of this process, such as a loaded
        model. It is used if `place` is this process; progress then includes the steps of a case.
    still_holds
        Function that returns whether a stored result may be reused, for example because its file
        still exists.

    Raises
    ------
    CaseError
        If an id occurs twice.
    ClusterError
        If the scheduler of `place` cannot be reached, or worker processes cannot be started.
    MissingExtraError
        If `place` has a scheduler and dask is not installed, or a case's files need a package that
        is missing. Earlier results are kept.
    SaveConflictError
        If `store` exists and `existing` is REFUSE, or another run is writing it.
    SaveError
        If a result cannot be stored, for example because the disk is full. The run ends, and
        earlier results are kept.
    """
    _require_unique(cases)
    if store is None:
        return _run_cases(cases, work, place or Place(), {}, None, here)
    try:
        with closing(ResultStore(store, work, existing)) as result_store:
            report_progress(0, 1, "Starting")
            results = result_store.reusable(cases) if existing is Existing.RESUME else {}
            if still_holds is not None:
                results = {case_id: item for case_id, item in results.items() if still_holds(item)}
            return _run_cases(cases, work, place or Place(), results, result_store, here)
    finally:
        sweep_below(store.parent)  # unfinished files of a case whose process was ended


def _run_cases(
    cases: Sequence[CaseInputs],
    work: CaseWork[T],
    place: Place,
    found: dict[str, T],
    kept: ResultStore[T] | None,
    here: Callable[[CaseInputs], T] | None,
) -> BatchResult[T]:
    n_reused = len(found)
    waiting = [inputs for inputs in cases if inputs.case_id not in found]
    failed: dict[str, CaseFailure] = {}
    spoken = float("-inf")

    def whole(_: Progress | None = None) -> Progress | None:
        nonlocal spoken
        if kept is not None:
            kept.sync()
        if time.monotonic() - spoken <= POLL_S / 2:
            return None
        spoken = time.monotonic()
        return _describe_progress(len(found) + len(failed), len(cases), len(failed))

    def within(case_id: str) -> AbstractContextManager[None]:
        start = (len(found) + len(failed)) * _STEPS_PER_CASE
        end = start + _STEPS_PER_CASE - 1
        return part(start, end, len(cases) * _STEPS_PER_CASE, f"{case_id}: ")

    stream = _gather_outcomes(waiting, work, place, here, lambda _: changing(whole), within)
    with closing(stream) as outcomes:
        for outcome in outcomes:
            if outcome is not None:
                _sort_in(outcome, found, failed, kept)
            if (now := whole()) is not None:
                forward_progress(now)
    report_progress(len(cases), len(cases), "Finished")
    return BatchResult(
        tuple(found[inputs.case_id] for inputs in cases if inputs.case_id in found),
        tuple(failed[inputs.case_id] for inputs in cases if inputs.case_id in failed),
        n_reused,
    )


def _gather_outcomes(
    cases: Sequence[CaseInputs],
    work: CaseWork[T],
    place: Place,
    here: Callable[[CaseInputs], T] | None,
    waiting: Callable[[str], AbstractContextManager[None]],
    within: Callable[[str], AbstractContextManager[None]],
) -> Generator[Outcome[T] | None, None, None]:
    """Yield the outcome of each case, and None while waiting for other processes.

    The progress of a case is reported to `within` if `here` runs the case, and to `waiting`
    otherwise.
    """
    if not cases:
        return
    if place.workers:
        yield from on_workers(cases, work, place.workers, place.time_limit_s)
        return
    if place.scheduler:
        try:
            from napari_mamamia.services.batch.cluster import on_cluster
        except ImportError as error:
            raise errors.MissingExtraError("distributed", "cluster") from error
        yield from on_cluster(cases, work, place)
        return
    telling = waiting
    if place.time_limit_s is None and here is not None:
        work, telling = replace(work, function=_first_of(here)), within
    with closing(Child()) as child:
        for inputs in cases:
            with telling(inputs.case_id):
                if place.time_limit_s is None:
                    outcome = attempt(work, inputs)
                else:
                    outcome = attempt_in_child(child, work, inputs, place.time_limit_s)
            yield outcome


def _first_of(here: Callable[[CaseInputs], T]) -> Callable[[CaseInputs, Any], T]:
    return lambda inputs, _settings: here(inputs)


def _sort_in(
    outcome: Outcome[T],
    found: dict[str, T],
    failed: dict[str, CaseFailure],
    kept: ResultStore[T] | None,
) -> None:
    if outcome.missing_extra is not None:
        raise errors.MissingExtraError(*outcome.missing_extra)
    if kept is not None:
        kept.add(outcome)
    if outcome.result is None:
        failed[outcome.case_id] = CaseFailure(
            outcome.case_id, outcome.reason, outcome.cause, outcome.remedies
        )
    else:
        found[outcome.case_id] = outcome.result


def _describe_progress(n_done: int, n_cases: int, n_failed: int) -> Progress:
    failed = f", {n_failed} failed" if n_failed else ""
    return Progress(n_done, n_cases, f"{n_done} of {n_cases} cases{failed}")


def _require_unique(cases: Sequence[CaseInputs]) -> None:
    seen: set[str] = set()
    for inputs in cases:
        if inputs.case_id in seen:
            raise errors.CaseError(
                f"expected each case id to occur once, but {inputs.case_id} occurs twice: rename "
                "one case"
            )
        seen.add(inputs.case_id)
