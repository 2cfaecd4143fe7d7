"""Progress and cancellation of long operations.

An operation calls `report_progress` at least every 0.2 s. A listener (`listening`) receives the
reports and stops the operation by raising `Cancelled`. Without a listener, reports have no effect.
A thread that the operation starts has no listener; `do_abreast` gives one to each of its threads.
"""

import gc
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import repeat
from typing import Final, TypeAlias, TypeVar

from napari_mamamia.core.program.garbage import is_set_aside

A = TypeVar("A")
T = TypeVar("T")

PACE_S: Final = 0.1
"""Interval between two progress reports in seconds, half of the maximum interval."""
_ABREAST_S: Final = 0.02
"""Interval in seconds between checks while waiting for threads; limits the delay of a cancellation.
"""


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a long operation: `done` of `total` steps, and a text on the current step.

    Parameters
    ----------
    binding
        Whether the next step writes files, so that the operation can no longer be cancelled and the
        caller gets the result. So "stopped" always means that nothing was written.

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
            raise ValueError(
                "expected progress to be between 0 and the total, but got "
                f"{self.done} of {self.total}"
            )

    @property
    def fraction(self) -> float:
        """Completed fraction from 0 to 1; 0 if the operation has no steps."""
        return self.done / self.total if self.total else 0.0


Listener: TypeAlias = Callable[[Progress], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


class Cancelled(BaseException):
    """Raised when the user cancels an operation, which then has no result.

    It is not an `Exception`, like `asyncio.CancelledError`, so that error handlers do not treat it
    as a failure.
    """


def report_progress(done: int, total: int, text: str = "", *, binding: bool = False) -> None:
    """Report the progress of the current operation to the listener; see `Progress`.

    Raises
    ------
    Cancelled
        If the operation must stop. Blocks that write files then remove unfinished files.
    """
    forward_progress(Progress(done, total, text, binding))


def forward_progress(progress: Progress) -> None:
    """Report a `Progress` to the listener; errors are those of `report_progress`."""
    listener = _listener.get()
    if listener is not None:
        listener(progress)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Send progress reports in the block only to `listener`; None discards them.

    The listener may raise `Cancelled`, which ends the operation.

    Examples
    --------
    >>> heard = []
    >>> with listening(heard.append):
    ...     report_progress(1, 2, "Reading")
    >>> heard[0].text
    'Reading'
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def changing(change: Callable[[Progress], Progress | None]) -> Iterator[None]:
    """Apply `change` to each progress report in the block; None discards the report."""
    outer = _listener.get()

    def pass_on(progress: Progress) -> None:
        changed = change(progress)
        if changed is not None and outer is not None:
            outer(changed)

    with listening(pass_on):
        yield


@contextmanager
def saying(text: str) -> Iterator[None]:
    """Replace the text of each progress report in the block."""
    with changing(lambda inner: Progress(inner.done, inner.total, text)):
        yield


@contextmanager
def part(start: int, stop: int, total: int, before: str = "") -> Iterator[None]:
    """Map the block's progress to the range from `start` to `stop` of `total` steps.

    `before` is added in front of the report's text. A binding report inside the block does not make
    the whole operation binding.

    Examples
    --------
    >>> heard = []
    >>> with listening(heard.append), part(50, 100, 100, "A_1: "):
    ...     report_progress(1, 2, "reading")
    >>> heard[0].done, heard[0].text
    (75, 'A_1: reading')
    """

    def as_stretch(inner: Progress) -> Progress:
        step = start + int((stop - start) * inner.fraction)
        return Progress(min(step, total), total, before + inner.text)

    with changing(as_stretch):
        yield


def paced(items: Iterable[T], text: str | Callable[[int], str], total: int = 0) -> Iterator[T]:
    """Yield the items, and report regularly how many have been processed.

    Without a total, only the text is reported. The text may be a function of the number of
    completed items. Raises the same errors as `report_progress`.

    Examples
    --------
    >>> list(paced("ab", "Reading", 2))
    ['a', 'b']
    """
    reported_at = time.monotonic()
    for n_done, item in enumerate(items, start=1):
        yield item
        if time.monotonic() - reported_at > PACE_S:
            words = text if isinstance(text, str) else text(n_done)
            report_progress(min(n_done, total), max(total, 1), words)
            reported_at = time.monotonic()


def do_abreast(work: Callable[[A], T], items: Sequence[A], threads: int, text: str = "") -> list[T]:
    """Compute `work` for all items in several threads, and return the results in input order.

    Each item has an equal share of the progress, which is reported in the calling thread with the
    given text. If the operation is cancelled or an item fails, the other threads stop at their next
    report, and no thread remains when this function returns or raises. If several items fail, the
    error of the first item in input order is raised, as in sequential work.

    Examples
    --------
    >>> do_abreast(abs, [-1, -2, -3], 2)
    [1, 2, 3]
    """
    from concurrent.futures import (
        ThreadPoolExecutor,
        wait,
    )  # imported here: it would add 5 ms to the start of every command

    stop = threading.Event()
    fractions = dict.fromkeys(range(len(items)), 0.0)

    def do(index: int) -> T:
        def note(progress: Progress) -> None:
            if stop.is_set():
                raise Cancelled
            fractions[index] = progress.fraction

        with listening(note):
            # Items that waited for a free thread when the work was stopped are not started.
            note(Progress(0, 1))
            return work(items[index])

    results: list[T] = []
    with ThreadPoolExecutor(threads) as pool:
        try:
            # A bare map would submit each item only after waiting for the previous one.
            for future in tuple(map(pool.submit, repeat(do), fractions)):
                while not wait([future], _ABREAST_S).done:
                    report_progress(int(100 * sum(fractions.values())), 100 * len(items), text)
                results.append(future.result())
                fractions[len(results) - 1] = 1.0
                report_progress(int(100 * sum(fractions.values())), 100 * len(items), text)
        finally:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
    return results


@contextmanager
def gc_frozen() -> Iterator[None]:
    """Suspend long garbage collections while a block creates very many objects.

    A full collection visits all objects while holding the interpreter lock. This takes 0.2 s or
    more for 100,000 cases and also blocks the window. Objects that exist at each report are
    excluded until the end of the block. Use it only for work of seconds to minutes, because
    reference cycles among the excluded objects are not freed meanwhile. Objects excluded by the
    window stay excluded until the window closes.
    """
    outer = _listener.get()

    def pass_and_freeze(progress: Progress) -> None:
        if outer is not None:
            outer(progress)
        gc.freeze()

    gc.freeze()
    try:
        with listening(pass_and_freeze):
            yield
    finally:
        if not is_set_aside():
            gc.unfreeze()
