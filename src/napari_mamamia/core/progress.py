"""How far long work is, and whether it should stop.

Whoever works calls `report_progress` every 0.2 s at least; whoever waits listens (`listening`) and
stops the work by raising `Cancelled` there. Where nobody listens a report is nothing. A thread that
the work starts has no listener of its own.
"""

import gc
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from napari_mamamia.core.garbage import is_set_aside

T = TypeVar("T")

PACE_S: Final = 0.1
"""Time between two signs of life, half of what long work is allowed."""


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
        done = start + int((stop - start) * inner.fraction)
        return Progress(min(done, total), total, before + inner.text)

    with changing(as_stretch):
        yield


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
