"""Work over many cases: one case's failure costs one row, not the run."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.progress import Cancelled, Job, Progress
from napari_mamamia.core.records import CaseFailure

__all__ = ["BatchResult", "for_each_case"]

T = TypeVar("T")

_STEPS_PER_CASE = 1000
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BatchResult(Generic[T]):
    """Results in the order of the cases, and a failure for each case without one."""

    results: tuple[T, ...]
    failures: tuple[CaseFailure, ...]


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
        except Exception as error:  # noqa: BLE001 - the one place where a batch survives a case
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
