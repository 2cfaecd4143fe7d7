"""How long the window's own thread is held: processor time of each event, drawing apart.

`MeteredApplication` stands in for Qt's application, so that every event of the real window passes
through `notify`. A *turn* is one event that the event loop hands out, with all that it causes. Its
time is the processor time of that thread, so that another program's load does not count. Taken off
it is the drawing: paint events of napari's canvases, and what Qt does to put a window's picture
together (the time of an update request that no widget's own painting accounts for).
"""

import threading
import time
from dataclasses import dataclass
from typing import Any

from qtpy.QtCore import QEvent, QEventLoop, QObject, QTimer
from qtpy.QtOpenGLWidgets import QOpenGLWidget
from qtpy.QtWidgets import QApplication

PATIENCE_MS = 120_000
_WINDOW_DRAWS = (QEvent.Type.UpdateRequest, QEvent.Type.Expose)
_DRAWS = (QEvent.Type.Paint, *_WINDOW_DRAWS)


@dataclass
class Action:
    """What one action cost: `longest` turn, `ours` in all and `drawn`, in seconds."""

    longest: float = 0.0
    where: str = ""
    ours: float = 0.0
    drawn: float = 0.0


class MeteredApplication(QApplication):
    """Qt's application with a watch on each event; `action` takes up what it finds."""

    def __init__(self, arguments: list[str]) -> None:
        super().__init__(arguments)
        self.action = Action()
        self._inside: list[float] = []
        self._thread = threading.get_ident()

    def notify(self, receiver: QObject, event: QEvent) -> bool:
        """Hand the event on, and note its time; inside of another, of drawing alone."""
        kind = event.type()
        is_ours = threading.get_ident() == self._thread  # Qt's other threads come here too
        if not is_ours or (self._inside and kind not in _DRAWS):
            return super().notify(receiver, event)
        whole = self._inside
        self._inside = [0.0, 0.0]
        name = "" if whole else f"{kind.name} of {type(receiver).__name__} {receiver.objectName()}"
        start = time.thread_time()
        try:
            return super().notify(receiver, event)
        finally:
            took = time.thread_time() - start
            painted, drawn = self._inside
            if kind == QEvent.Type.Paint and isinstance(receiver, QOpenGLWidget):
                drawn = took
            elif kind in _WINDOW_DRAWS:
                drawn += took - painted
            self._inside = whole
            if whole:
                whole[0] += took
                whole[1] += drawn
            else:
                self._note(took - drawn, drawn, name.rstrip())

    def _note(self, ours: float, drawn: float, name: str) -> None:
        self.action.ours += ours
        self.action.drawn += drawn
        if ours > self.action.longest:
            self.action.longest, self.action.where = ours, name

    def begin(self) -> Action:
        """Begin another action, and return its account."""
        self.action = Action()
        return self.action


def wait_until(condition: Any) -> float:
    """Let the event loop turn until `condition` holds, asleep between events; return seconds.

    The thread of the window must not spin: it would fight for the interpreter with the readers.
    """
    loop, poll, end = QEventLoop(), QTimer(), QTimer()
    met: list[bool] = []  # asked once: another job may begin while the loop comes to its end

    def look() -> None:
        if condition():
            met.append(True)
            loop.quit()

    poll.timeout.connect(look)
    end.setSingleShot(True)
    end.timeout.connect(loop.quit)
    start = time.perf_counter()
    poll.start(5)
    end.start(PATIENCE_MS)
    loop.exec()
    if not met:
        raise TimeoutError("the window did not get there")
    return time.perf_counter() - start


def rest(ms: int) -> None:
    """Let the event loop turn for some ms, for what comes a little later."""
    loop = QEventLoop()
    QTimer.singleShot(ms, loop.quit)
    loop.exec()
