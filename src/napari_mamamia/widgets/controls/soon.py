"""What is called a turn of the event loop later."""

import weakref
from collections.abc import Callable

from qtpy.QtCore import QObject, QTimer


def call_soon(owner: QObject, act: Callable[[], object], *, after_ms: int = 0) -> None:
    """Call `act` in a turn of its own, unless `owner` is gone by then.

    `QTimer.singleShot` knows no owner: what it calls after a window was closed meets objects that
    Qt has deleted, and PyQt6 ends the program for that.
    """
    timer = QTimer(owner)
    timer.setSingleShot(True)
    timer.timeout.connect(timer.deleteLater)
    timer.timeout.connect(_CallOf(owner, act))
    timer.start(after_ms)


class _CallOf:
    """A call for an owner. A collection of garbage empties functions before Qt's timer is gone.

    To call an emptied one ends the program; weak references are the first that it clears.
    """

    def __init__(self, owner: QObject, act: Callable[[], object]) -> None:
        self._owner = weakref.ref(owner)
        self._act = act

    def __call__(self) -> None:
        if self._owner() is not None:
            self._act()
