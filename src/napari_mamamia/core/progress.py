"""Long work is a job: a generator that yields progress and returns its result."""

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

__all__ = ["Cancelled", "Job", "Progress", "run_job"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is: `done` of `total` steps, and what it does now in plain words.

    Raises
    ------
    ValueError
        If not ``0 <= done <= total``.

    Examples
    --------
    >>> Progress(1, 4, "Reading phase 1").fraction
    0.25
    """

    done: int
    total: int
    text: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.done <= self.total:
            raise ValueError(f"progress must lie in 0 .. total, got {self.done} of {self.total}")

    @property
    def fraction(self) -> float:
        """Share done, 0 to 1; 0 for a job of no steps."""
        return self.done / self.total if self.total else 0.0


Job: TypeAlias = Generator[Progress, None, T]


class Cancelled(Exception):  # noqa: N818 - an outcome; never a RuntimeError, which nnU-Net catches
    """The user asked a job to stop; nothing of it is kept."""


def run_job(job: Job[T], report: Callable[[Progress], None] | None = None) -> T:
    """Return the result of `job`, run to its end in this thread.

    Parameters
    ----------
    job
        The generator. It is closed (its ``finally`` runs) whatever happens.
    report
        Called with each `Progress`; it may raise `Cancelled` to stop the job.
    """
    with closing(job):
        while True:
            try:
                progress = next(job)
            except StopIteration as stop:
                result: T = stop.value
                return result
            if report is not None:
                report(progress)
