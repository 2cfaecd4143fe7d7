"""Progress of long work, and its cancellation.

The work calls `report_progress` at least every 0.2 s; a listener (`listening`) receives the reports
and stops the work by raising `Cancelled`. Without a listener a report does nothing. A thread that
the work starts has no listener of its own; `do_abreast` gives one to each.
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
"""Seconds between two reports, half of the longest interval allowed."""
_ABREAST_S: Final = 0.02
"""The same when waiting for threads: the delay until a cancellation takes effect."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of long work: `done` of `total` steps, and a text about the present step.

    Parameters
    ----------
    binding
        The next step writes: cancelling comes too late from here on, and the caller
        gets the result. So "stopped" always means that nothing was written.

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
            raise ValueError(f"expected progress from 0 to total, got {self.done} of {self.total}")

    @property
    def fraction(self) -> float:
        """Share done, 0 to 1; 0 for work without steps."""
        return self.done / self.total if self.total else 0.0


Listener: TypeAlias = Callable[[Progress], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


class Cancelled(BaseException):
    """The user cancelled the work; it leaves no result.

    Like `asyncio.CancelledError` it is no `Exception`: no handler on its way takes it for a
    failure.
    """


def report_progress(done: int, total: int, text: str = "", *, binding: bool = False) -> None:
    """Report the progress of this work to the listener; see `Progress`.

    Raises
    ------
    Cancelled
        If the work is to stop. The blocks that write files remove unfinished ones.
    """
    forward_progress(Progress(done, total, text, binding))


def forward_progress(progress: Progress) -> None:
    """Report a `Progress` to the listener; raises as `report_progress`."""
    listener = _listener.get()
    if listener is not None:
        listener(progress)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Send the reports of the work in the block to `listener` alone; None ignores them.

    It may raise `Cancelled`, which ends the work.

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
    """Replace the block's reports by those that `change` returns; None drops a report."""
    outer = _listener.get()

    def pass_on(progress: Progress) -> None:
        changed = change(progress)
        if changed is not None and outer is not None:
            outer(changed)

    with listening(pass_on):
        yield


@contextmanager
def saying(text: str) -> Iterator[None]:
    """Replace the text of the block's progress reports."""
    with changing(lambda inner: Progress(inner.done, inner.total, text)):
        yield


@contextmanager
def part(start: int, stop: int, total: int, before: str = "") -> Iterator[None]:
    """Report the block's progress as the range from `start` to `stop` of work of `total` steps.

    `before` is put before its text. A binding report of the block is not binding for the whole.

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
    """Yield the items, and report the number of finished items whenever a report is due.

    Without a total only the text is reported; it may be a function of the number done. Raises as
    `report_progress`.

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
    """Return the results of `work` for all items, in their order, using `threads` threads.

    Their progress, each an equal part of the whole, is reported in the calling thread, under
    `text`. Once that is cancelled, or one has failed, the others end at their next report; no
    thread remains when this returns or raises. Of several failures the first in order is raised, as
    in sequential work.

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
    """Avoid long garbage collections while the block makes very many records.

    A full collection visits all objects with the interpreter's lock held: 0.2 s and more at 100,000
    cases, which blocks the window too. Objects that exist at each report are excluded until the end
    of the block. For work of seconds to minutes: reference cycles among the excluded objects are
    not freed meanwhile. If the window has excluded its own, that stays until it closes.
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
