"""What is called a turn of the event loop later."""

from collections.abc import Callable
from functools import partial
from typing import Final

from qtpy.QtCore import QObject, QTimer

# Held from here, so that no collection of garbage finds them. One in another thread empties what it
# collects at once, but Qt deletes a timer in its own thread only, a turn later: until then it would
# call a function that has been emptied, and that ends the program.
_WAITING: Final[dict[QTimer, Callable[[], object]]] = {}


def call_later(owner: QObject, act: Callable[[], object], *, after_ms: int = 0) -> None:
    """Call `act` in a turn of its own, unless Qt has deleted `owner` by then.

    `QTimer.singleShot` knows no owner: what it calls after a window was closed meets objects that
    Qt has deleted, and PyQt6 ends the program for that.
    """
    timer = QTimer(owner)
    _WAITING[timer] = act
    timer.setSingleShot(True)
    timer.timeout.connect(partial(_call_held, timer))
    timer.destroyed.connect(partial(_forget_held, timer))
    timer.start(after_ms)


def _call_held(timer: QTimer) -> None:
    act = _WAITING.pop(timer)
    timer.deleteLater()
    act()


def _forget_held(timer: QTimer, *_: object) -> None:
    _WAITING.pop(timer, None)
