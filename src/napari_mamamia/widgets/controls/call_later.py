"""Calls in a later event-loop iteration."""

from collections.abc import Callable
from functools import partial
from typing import Final

from qtpy.QtCore import QObject, QTimer

# The timers are referenced here, so that garbage collection does not find them. A collection in
# another thread clears objects immediately, but Qt deletes a timer later, in its own thread.
# Until then, the timer would call a cleared function, which ends the program.
_WAITING: Final[dict[QTimer, Callable[[], object]]] = {}


def call_later(owner: QObject, act: Callable[[], object], *, after_ms: int = 0) -> None:
    """Call `act` in a later event-loop iteration, unless Qt has deleted `owner` by then.

    `QTimer.singleShot` has no owner, so after the window is closed, its function would use deleted
    Qt objects, and PyQt6 would abort the program.
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
