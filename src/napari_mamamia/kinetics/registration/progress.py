"""Run long SimpleITK work in a thread, with progress and cancellation."""

import threading
from collections.abc import Callable
from typing import Final, TypeVar

from napari_mamamia.core.progress import Progress, forward_progress

T = TypeVar("T")

_POLL_S: Final = 0.1


def in_thread(work: Callable[[], T], stop: Callable[[], None], step: Callable[[], Progress]) -> T:
    """Return the result of `work`, run in a thread; `step()` is reported every 0.1 s.

    If cancelled, it calls `stop` and waits until `work` returns.
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
            forward_progress(step())
    finally:
        stop()
        thread.join()
    if failures:
        raise failures[0]
    return results[0]
