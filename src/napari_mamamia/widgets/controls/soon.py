"""What is called a turn of the event loop later."""

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
    timer.timeout.connect(act)
    timer.start(after_ms)
