"""How long the window's own thread is held: processor time of each event, drawing apart.

`MeteredApplication` stands in for Qt's application, so that every event of the real window passes
through `notify`. A *turn* is one event that the event loop hands out, with all that it causes. Its
time is the processor time of that thread, so that another program's load does not count. Taken off
it is the drawing: paint events of napari's canvases, and what Qt does to put a window's picture
together (the time of an update request that no widget's own painting accounts for).

`TurnSampler` says where the longest turn of an action went: every millisecond it notes the stack
of that thread, weighed by the processor time since the last note.
"""

import gc
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from qtpy.QtCore import QEvent, QEventLoop, QObject, QTimer
from qtpy.QtOpenGLWidgets import QOpenGLWidget
from qtpy.QtWidgets import QApplication

PATIENCE_MS = 120_000
_WINDOW_DRAWS = (QEvent.Type.UpdateRequest, QEvent.Type.Expose)
_DRAWS = (QEvent.Type.Paint, *_WINDOW_DRAWS)


SAMPLE_S = 0.001
Stack = tuple[tuple[str, str], ...]
"""File and function of each call, the outermost first."""


@dataclass
class Action:
    """What one action cost: `longest` turn, `ours` in all and `drawn`, in seconds.

    `collected` is its longest full collection of garbage, which comes when nobody acts and counts
    for no turn; `stacks` are those of the longest turn, with seconds, where they are sampled.
    """

    longest: float = 0.0
    where: str = ""
    ours: float = 0.0
    drawn: float = 0.0
    collected: float = 0.0
    stacks: Counter[Stack] = field(default_factory=Counter)


class TurnSampler:
    """Notes the stack of the window's thread during a turn: a signal each millisecond."""

    def __init__(self) -> None:
        self._stacks: Counter[Stack] = Counter()
        self._last = 0.0
        signal.signal(signal.SIGALRM, self._note)

    def begin(self) -> None:
        """Begin a turn."""
        self._stacks, self._last = Counter(), time.thread_time()
        signal.setitimer(signal.ITIMER_REAL, SAMPLE_S, SAMPLE_S)

    def end(self) -> Counter[Stack]:
        """Return the stacks of the turn that ends, with seconds."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        return self._stacks

    def _note(self, _number: int, frame: FrameType | None) -> None:
        now = time.thread_time()
        calls = []
        while frame is not None:
            calls.append((frame.f_code.co_filename, frame.f_code.co_qualname))
            frame = frame.f_back
        self._stacks[tuple(reversed(calls))] += now - self._last
        self._last = now


def share_of(stacks: Counter[Stack]) -> dict[str, float]:
    """Return seconds by whose function was running: ours, napari's with what it draws by, others.

    What Qt or numpy does in C counts for the Python function that called it.
    """
    shares = {"ours": 0.0, "napari": 0.0, "other": 0.0}
    for stack, seconds in stacks.items():
        inner = stack[-1][0]
        is_napari = any(f"/{name}/" in inner for name in ("napari", "vispy", "psygnal"))
        whose = "ours" if "/napari_mamamia/" in inner else "napari" if is_napari else "other"
        shares[whose] += seconds
    return shares


def tree_of(stacks: Counter[Stack], least: float) -> list[str]:
    """Return the calls that took at least `least` seconds, as lines: milliseconds, indented."""
    totals: Counter[Stack] = Counter()
    for stack, seconds in stacks.items():
        for depth in range(1, len(stack) + 1):
            totals[stack[:depth]] += seconds
    return [
        f"{1e3 * totals[calls]:7.1f} {'  ' * (len(calls) - 1)}{calls[-1][1]}  "
        f"{'/'.join(calls[-1][0].split('/')[-2:])}"
        for calls in sorted(totals)
        if totals[calls] >= least
    ]


class MeteredApplication(QApplication):
    """Qt's application with a watch on each event; `action` takes up what it finds."""

    def __init__(self, arguments: list[str], sampler: TurnSampler | None = None) -> None:
        super().__init__(arguments)
        self._sampler = sampler
        self.action = Action()
        self._inside: list[float] = []
        self._thread = threading.get_ident()
        self._collecting = self._collected = 0.0
        gc.callbacks.append(self._watch_garbage)

    def _watch_garbage(self, phase: str, info: dict[str, int]) -> None:
        if info["generation"] == 2 and threading.get_ident() == self._thread:
            if phase == "start":
                self._collecting = time.thread_time()
            else:
                took = time.thread_time() - self._collecting
                self._collected += took
                self.action.collected = max(self.action.collected, took)

    def notify(self, receiver: QObject, event: QEvent) -> bool:
        """Hand the event on, and note its time; inside of another, of drawing alone."""
        kind = event.type()
        is_ours = threading.get_ident() == self._thread  # Qt's other threads come here too
        if not is_ours or (self._inside and kind not in _DRAWS):
            return super().notify(receiver, event)
        whole = self._inside
        self._inside = [0.0, 0.0]
        name = "" if whole else f"{kind.name} of {type(receiver).__name__} {receiver.objectName()}"
        if self._sampler and not whole:
            self._sampler.begin()
        start, collected = time.thread_time(), self._collected
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
                took -= self._collected - collected
                self._note(took - drawn, drawn, name.rstrip())

    def _note(self, ours: float, drawn: float, name: str) -> None:
        self.action.ours += ours
        self.action.drawn += drawn
        stacks = self._sampler.end() if self._sampler else Counter()
        if ours > self.action.longest:
            self.action.longest, self.action.where = ours, name
            self.action.stacks = stacks

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
