"""Machine code for the steps of the cut, if numba is installed and compilation has finished.

Compiled steps give results identical to numpy and only save time. If numba fails, the problem is
logged, and numpy is used.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache, partial
from importlib.util import find_spec
from threading import Thread

from napari_mamamia.io.files.user_folders import cache_folder

Steps = Callable[..., None]
"""`cut_steps.take_steps` bound to its machine code."""

_log = logging.getLogger(__name__)


def prepare_steps() -> None:
    """Start compiling the steps in a thread, once; the first compilation takes seconds.

    Without numba, this function does nothing. The machine code is cached in the user's cache folder
    (or ``MAMAMIA_CACHE_DIR``).
    """
    _begin_once()


def find_steps() -> Steps | None:
    """Return the compiled steps if `prepare_steps` was called and has finished, otherwise None."""
    if not _begin_once.cache_info().currsize:
        return None
    future = _begin_once()
    return future.result() if future.done() else None


def wait_for_steps() -> bool:
    """Wait until compilation has finished, and return whether the steps are compiled."""
    prepare_steps()
    return _begin_once().result() is not None


@cache
def _begin_once() -> Future[Steps | None]:
    future: Future[Steps | None] = Future()
    if find_spec("numba") is None:
        future.set_result(None)
    else:
        # Not a daemon thread: the process waits for it, and is not torn down inside the compiler.
        Thread(target=_compile_steps, args=(future,), name="compiling the cut").start()
    return future


def _compile_steps(future: Future[Steps | None]) -> None:
    steps: Steps | None = None
    try:
        # Imported here, because it loads a compiler.
        from napari_mamamia.smartpaint.grow import cut_steps

        steps = partial(cut_steps.take_steps, cut_steps.compile_walk(cache_folder() / "compiled"))
    except Exception as error:  # noqa: BLE001 - whatever a foreign compiler raises, numpy goes on
        _log.warning(
            "numba could not compile the steps of strokes (%s: %s), so strokes are slower; "
            "reinstall or remove numba",
            type(error).__name__,
            error,
        )
    future.set_result(steps)
