"""Whether the steps of the cut are compiled: where numba is installed, and once they are ready.

Compiled steps give numpy's bits, so nothing hangs on them but time: whatever is wrong with numba is
said in the log, and numpy goes on.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache, partial
from importlib.util import find_spec
from threading import Thread

from napari_mamamia.io.files.user_folders import cache_folder

Steps = Callable[..., None]
"""`cut_steps.take_steps` with its machine code given."""

_log = logging.getLogger(__name__)


def prepare_steps() -> None:
    """Begin to compile the steps in a thread, once; it takes a moment, seconds the first time.

    Without numba nothing is done. The machine code is kept in the user's cache
    (``MAMAMIA_CACHE_DIR`` moves it).
    """
    _begin_once()


def find_steps() -> Steps | None:
    """Return the compiled steps if `prepare_steps` was asked and they are ready, else None."""
    if not _begin_once.cache_info().currsize:
        return None
    future = _begin_once()
    return future.result() if future.done() else None


def wait_for_steps() -> bool:
    """Wait until it is known whether the steps are compiled, and return that."""
    prepare_steps()
    return _begin_once().result() is not None


@cache
def _begin_once() -> Future[Steps | None]:
    future: Future[Steps | None] = Future()
    if find_spec("numba") is None:
        future.set_result(None)
    else:
        # No daemon: a process that ends waits, and is not torn down within the compiler.
        Thread(target=_compile_steps, args=(future,), name="compiling the cut").start()
    return future


def _compile_steps(future: Future[Steps | None]) -> None:
    steps: Steps | None = None
    try:
        # Here, not above: it loads a compiler.
        from napari_mamamia.smartpaint.grow import cut_steps

        steps = partial(cut_steps.take_steps, cut_steps.compile_walk(cache_folder() / "compiled"))
    except Exception as error:  # noqa: BLE001 - whatever a foreign compiler raises, numpy goes on
        _log.warning(
            "numba should compile the steps of strokes, but %s: %s: strokes are as before, only "
            "slower; install numba again, or remove it",
            type(error).__name__,
            error,
        )
    future.set_result(steps)
