"""Jobs as stretches of a longer job."""

from typing import TypeVar

from napari_mamamia.core.progress import Job, Progress

__all__ = ["part"]

T = TypeVar("T")


def part(job: Job[T], start: int, stop: int, total: int) -> Job[T]:
    """Return `job` as the stretch from `start` to `stop` of a longer one of `total` steps."""
    try:
        while True:
            progress = next(job)
            done = start + int((stop - start) * progress.fraction)
            yield Progress(done, total, progress.text)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        job.close()
