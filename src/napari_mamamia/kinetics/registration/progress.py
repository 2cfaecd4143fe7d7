"""Steps of a registration as parts of one job: in a thread, and as a share of the whole."""

import threading
from collections.abc import Callable
from typing import Final, TypeVar

from napari_mamamia.core.progress import Job, Progress

T = TypeVar("T")

_POLL_S: Final = 0.1


def in_thread(
    work: Callable[[], T], stop: Callable[[], None], step: Callable[[], Progress]
) -> Job[T]:
    """Return a job that runs `work` in a thread and says `step()` every 0.1 s.

    Closed before its end, it calls `stop` and waits until `work` returns.
    """
    results: list[T] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            failures.append(error)

    thread = threading.Thread(target=run, name="registration", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_POLL_S)
            yield step()
    finally:
        stop()
        thread.join()
    if failures:
        raise failures[0]
    return results[0]


def share(job: Job[T], start: int, width: int, total: int) -> Job[T]:
    """Return a job whose progress goes from `start` to `start + width` of a longer one."""
    try:
        while True:
            inner = next(job)
            done = start + int(inner.fraction * width)
            yield Progress(min(done, total), total, inner.text)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        job.close()
