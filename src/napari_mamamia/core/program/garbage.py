"""Limit garbage collections while a window is open, and choose their time.

A full collection of Python visits all objects with the interpreter's lock held: 0.2 s for the
300,000 objects of napari's window, and 40 ms for those of a case, possibly in the middle of a
stroke. `set_aside` excludes the former; the latter are collected when the window calls
`collect_if_due`. The collector belongs to the whole process, and so does the state of this module:
asking Python for its counts would take 40 ms.
"""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_IS_SET_ASIDE = threading.Event()
_ORDINARY: list[int] = []
"""Python's thresholds before `set_aside`."""
# The largest that `gc.set_threshold` takes: a C int.
_NEVER: Final = 2**31 - 1
_DUE: Final = 3
"""Middle collections after which a full one is due: earlier than Python's 10, so that each is
shorter.
"""
_MANY: Final = 30_000
"""Number of objects made in a block above which they are aged: visiting as many takes 1 ms."""


def set_aside() -> None:
    """Exclude all present objects from collections until `take_back`.

    Reference cycles among them are not freed. Full collections no longer happen by themselves:
    call `collect_if_due` when nobody waits.
    """
    gc.freeze()
    # A second call must not store our own thresholds as Python's.
    if not _IS_SET_ASIDE.is_set():
        _ORDINARY[:] = gc.get_threshold()
        gc.set_threshold(_ORDINARY[0], _ORDINARY[1], _NEVER)
    _IS_SET_ASIDE.set()


def collect_if_due() -> bool:
    """Collect objects made since `set_aside` if there are many; return whether a collection ran."""
    if not _IS_SET_ASIDE.is_set() or gc.get_count()[2] < _DUE:
        return False
    gc.collect()
    return True


def take_back() -> None:
    """Include all objects in automatic collections again, except those that other code froze.

    Never called from a destructor or by Qt's `destroyed`: during a collection that would crash the
    program.
    """
    if not _IS_SET_ASIDE.is_set():
        return
    gc.set_threshold(*_ORDINARY)
    _IS_SET_ASIDE.clear()
    gc.unfreeze()


def is_set_aside() -> bool:
    """Return whether `set_aside` is in effect."""
    return _IS_SET_ASIDE.is_set()


@contextmanager
def uncollected() -> Iterator[None]:
    """Suspend collections in a block that makes very many objects, none of which is garbage.

    Each collection would visit all of them again: a sixth of the time of reading 300,000 records.
    After the block they count as old, or the next collection of young objects would visit them all.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # Visiting few objects is faster than counting the frozen ones.
        if was_on and gc.get_count()[0] > _MANY and not gc.get_freeze_count():
            gc.freeze()  # makes young objects old without visiting them
            gc.unfreeze()
        if was_on:
            gc.enable()
