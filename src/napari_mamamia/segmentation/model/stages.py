"""Jobs as stretches of a longer job, and how long each took."""

import time
from dataclasses import dataclass, field
from typing import TypeVar

from napari_mamamia.core.progress import Job, Progress

T = TypeVar("T")


def part(job: Job[T], start: int, stop: int, total: int, before: str = "") -> Job[T]:
    """Return `job` as the stretch from `start` to `stop` of a longer one of `total` steps.

    `before` is put before what it says.
    """
    try:
        while True:
            progress = next(job)
            done = start + int((stop - start) * progress.fraction)
            yield Progress(done, total, before + progress.text)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        job.close()


@dataclass(slots=True)
class Laps:
    """Seconds between stages; `done` are the (name, seconds) so far."""

    last: float = field(default_factory=time.perf_counter)
    done: list[tuple[str, float]] = field(default_factory=list)

    def add(self, name: str) -> None:
        """End a stage now."""
        now = time.perf_counter()
        self.done.append((name, round(now - self.last, 3)))
        self.last = now
