"""Long work is a job: a generator that yields progress and returns its result."""

import gc
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import wraps
from typing import Final, ParamSpec, TypeAlias, TypeVar

from napari_mamamia.core.garbage import is_set_aside

P = ParamSpec("P")
T = TypeVar("T")

PACE_S: Final = 0.1
"""Time between two signs of life, half of what a job is allowed."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is: `done` of `total` steps, and what it does now in plain words.

    Parameters
    ----------
    binding
        The next step writes: whoever asks the job to stop from here on comes too late, and gets its
        result. So "stopped" always means that nothing was written.

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
    binding: bool = False

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


def paced(items: Iterable[T]) -> Iterator[T | None]:
    """Pass items on, with a None in between whenever it is time for a sign of life.

    Examples
    --------
    >>> list(paced("ab"))
    ['a', 'b']
    """
    spoken = time.monotonic()
    for item in items:
        yield item
        if time.monotonic() - spoken > PACE_S:
            spoken = time.monotonic()
            yield None


def spared_collections(start: Callable[P, Job[T]]) -> Callable[P, Job[T]]:
    """Let the jobs of `start` make very many records without long pauses for collecting garbage.

    A full collection looks at every object there is, with the interpreter's lock held: 0.2 s and
    more at 100,000 cases, for the window too. What exists at each sign of life is set aside until
    the end of the job. For work of seconds to minutes: nothing set aside is freed meanwhile if it
    refers to itself. Where the window has set its own aside already, all stays so until it closes.
    """

    @wraps(start)
    def started(*args: P.args, **kwargs: P.kwargs) -> Job[T]:
        with closing(start(*args, **kwargs)) as job:
            try:
                while True:
                    gc.freeze()
                    try:
                        progress = next(job)
                    except StopIteration as stop:
                        result: T = stop.value
                        return result
                    yield progress
            finally:
                if not is_set_aside():
                    gc.unfreeze()

    return started


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
