"""How far long work is, and whether it should stop.

Whoever works calls `report_progress` every 0.2 s at least; whoever waits listens (`listening`) and
stops the work by raising `Cancelled` there. Where nobody listens a report is nothing. A thread that
the work starts has no listener of its own; `do_abreast` has one for each.
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
"""Time between two signs of life, half of what long work is allowed."""
_ABREAST_S: Final = 0.02
"""The same where threads are waited for: whoever cancels them to go on waits so long."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far long work is: `done` of `total` steps, and what it does now in plain words.

    Parameters
    ----------
    binding
        The next step writes: whoever asks the work to stop from here on comes too late, and gets
        its result. So "stopped" always means that nothing was written.

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
        """Share done, 0 to 1; 0 for work of no steps."""
        return self.done / self.total if self.total else 0.0


Listener: TypeAlias = Callable[[Progress], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


class Cancelled(BaseException):
    """The user asked the work to stop; nothing of it is kept.

    As `asyncio.CancelledError` no `Exception`: nothing on its way may take it for a failure.
    """


def report_progress(done: int, total: int, text: str = "", *, binding: bool = False) -> None:
    """Tell whoever listens how far this work is; see `Progress`.

    Raises
    ------
    Cancelled
        If the work is to stop. Files that are being made go with the blocks that made them.
    """
    forward_progress(Progress(done, total, text, binding))


def forward_progress(progress: Progress) -> None:
    """Tell whoever listens what a `Progress` says; raises as `report_progress`."""
    listener = _listener.get()
    if listener is not None:
        listener(progress)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Let `listener` hear of the work in the block, and nobody else; None hears nothing.

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
    """Tell what the block reports as `change` makes it; where that is None, nothing."""
    outer = _listener.get()

    def pass_on(progress: Progress) -> None:
        changed = change(progress)
        if changed is not None and outer is not None:
            outer(changed)

    with listening(pass_on):
        yield


@contextmanager
def saying(text: str) -> Iterator[None]:
    """Tell the block's progress with another text."""
    with changing(lambda inner: Progress(inner.done, inner.total, text)):
        yield


@contextmanager
def part(start: int, stop: int, total: int, before: str = "") -> Iterator[None]:
    """Tell the block's progress as the stretch from `start` to `stop` of work of `total` steps.

    `before` is put before what it says. What is binding in a part is not for the whole.

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
    """Pass items on, and report how many of `total` are done whenever a sign of life is due.

    Without a total only the text is told; it may be a function of how many are done. Raises as
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
    """Return what `work` returns for each item, in their order; so many are worked on at a time.

    Their progress, each a like part of the whole, is reported where they are waited for, under
    `text`. Once that is cancelled, or one has failed, the others end at their next report; no
    thread is left when this returns or raises. Of several failures the first in order is raised,
    as if they were done one after the other.

    Examples
    --------
    >>> do_abreast(abs, [-1, -2, -3], 2)
    [1, 2, 3]
    """
    from concurrent.futures import ThreadPoolExecutor, wait  # 5 ms of every command's start

    stop = threading.Event()
    fractions = dict.fromkeys(range(len(items)), 0.0)

    def do(index: int) -> T:
        def note(progress: Progress) -> None:
            if stop.is_set():
                raise Cancelled
            fractions[index] = progress.fraction

        with listening(note):
            # What waited for a free thread while the others were stopped does not begin any more.
            note(Progress(0, 1))
            return work(items[index])

    results: list[T] = []
    with ThreadPoolExecutor(threads) as pool:
        try:
            # A bare map would submit each item only after the one before it has been waited for.
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
    """Let the block make very many records without long pauses for collecting garbage.

    A full collection looks at every object there is, with the interpreter's lock held: 0.2 s and
    more at 100,000 cases, for the window too. What exists at each report is set aside until the end
    of the block. For work of seconds to minutes: nothing set aside is freed meanwhile if it refers
    to itself. Where the window has set its own aside already, all stays so until it closes.
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
