"""What collections of garbage leave out while a window is open, and when the rest is looked at.

Python's full collection looks at every object there is, with the interpreter's lock held: 0.2 s
for the 300 000 objects of napari's window, and 40 ms for those of a case, in the middle of a stroke
if it so falls. The former are set aside; the latter wait for a moment that the window names.
Collecting is one for the whole process, and so is what this module remembers: Python would count
for 40 ms to tell it.
"""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_IS_SET_ASIDE = threading.Event()
_ORDINARY: list[int] = []
"""Python's thresholds as they were before `set_aside`."""
# The largest that `gc.set_threshold` takes: a C int.
_NEVER: Final = 2**31 - 1
_DUE: Final = 3
"""Middle collections after which a full one is due: sooner than Python's 10, for shorter ones."""
_MANY: Final = 30_000
"""Objects made in a block from which on they are made old: to look at as many takes 1 ms."""


def set_aside() -> None:
    """Leave out all that exists by now until `take_back`; what refers to itself stays so long.

    Full collections no longer come by themselves: call `collect_if_due` when nobody waits.
    """
    gc.freeze()
    # Called again, the thresholds are ours already, and Python's own would be forgotten.
    if not _IS_SET_ASIDE.is_set():
        _ORDINARY[:] = gc.get_threshold()
        gc.set_threshold(_ORDINARY[0], _ORDINARY[1], _NEVER)
    _IS_SET_ASIDE.set()


def collect_if_due() -> bool:
    """Collect what came since `set_aside` once there is much of it; return whether it was done."""
    if not _IS_SET_ASIDE.is_set() or gc.get_count()[2] < _DUE:
        return False
    gc.collect()
    return True


def take_back() -> None:
    """Look at everything again, by itself; what others than `set_aside` left out stays so.

    Never called from a destructor or by Qt's `destroyed`: during a collection that would end the
    program.
    """
    if not _IS_SET_ASIDE.is_set():
        return
    gc.set_threshold(*_ORDINARY)
    _IS_SET_ASIDE.clear()
    gc.unfreeze()


def is_set_aside() -> bool:
    """Whether something is left out by `set_aside`."""
    return _IS_SET_ASIDE.is_set()


@contextmanager
def uncollected() -> Iterator[None]:
    """Leave out collections in a block that makes very many objects, none of which is garbage.

    Each would look at all of them again: a sixth of the time of reading 300,000 records. Behind the
    block they count as old, or the very next collection, of what is young, would look at them all.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # Few objects are looked at sooner than those that are left out are counted.
        if was_on and gc.get_count()[0] > _MANY and not gc.get_freeze_count():
            gc.freeze()  # what is young is made old without being looked at
            gc.unfreeze()
        if was_on:
            gc.enable()
