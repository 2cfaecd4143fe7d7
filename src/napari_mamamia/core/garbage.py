"""What collections of garbage leave out while a window is open.

Python's full collection looks at every object there is, with the interpreter's lock held: 0.2 s
for the 300 000 objects of napari's window. Set aside, they cost nothing. Collecting is one for the
whole process, and so is what this module remembers: Python would count for 40 ms to tell it.
"""

import gc
import threading

__all__ = ["is_set_aside", "set_aside", "take_back"]

_IS_SET_ASIDE = threading.Event()


def set_aside() -> None:
    """Leave out all that exists by now until `take_back`; what refers to itself stays so long."""
    gc.freeze()
    _IS_SET_ASIDE.set()


def take_back() -> None:
    """Look at everything again.

    Never called from a destructor or by Qt's `destroyed`: during a collection that would end the
    program.
    """
    _IS_SET_ASIDE.clear()
    gc.unfreeze()


def is_set_aside() -> bool:
    """Whether something is left out by `set_aside`."""
    return _IS_SET_ASIDE.is_set()
