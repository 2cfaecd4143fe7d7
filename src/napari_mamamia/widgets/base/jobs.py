"""Running jobs in threads: progress, cancel, one outcome; only the newest answer counts."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from qtpy.QtCore import QObject, Qt, Signal

from napari_mamamia.core.progress import Cancelled, Progress, listening
from napari_mamamia.widgets.base.notify import Finished, Outcome, Stopped, outcome_of

T = TypeVar("T")
_log = logging.getLogger(__name__)

_REPORT_EVERY_S = 0.05


@dataclass(frozen=True, slots=True)
class RunningJob:
    """One request. `lane` is what it is for; a lane has one newest request, older ones are stale.

    `shown` says whether the header shows its progress.
    """

    number: int
    lane: str
    title: str
    shown: bool = True


class _Worker(QObject):
    """One thread that drives one job; the signals reach the GUI thread through its event loop."""

    progressed = Signal(object, object)
    ended = Signal(object, object)

    def __init__(self, ticket: RunningJob, work: Callable[[], Any]) -> None:
        super().__init__()
        self.ticket = ticket
        self._stop_wanted = False
        self._is_bound = False
        self._turn = threading.Lock()
        self._work = work
        self._reported = 0.0
        self.outcome: Outcome[Any] | None = None
        self.thread = threading.Thread(target=self._run, name=f"job {ticket.title}", daemon=True)

    def _run(self) -> None:
        with listening(self._report):
            self.outcome = outcome_of(self._do)
        self._emit(self.ended, self.outcome)

    def _do(self) -> Any:
        if self._stop_wanted:
            raise Cancelled
        return self._work()

    def stop(self) -> bool:
        """Ask the job to stop; False where it writes by now and cannot be stopped any more."""
        with self._turn:
            self._stop_wanted = True
            return not self._is_bound

    def _report(self, progress: Progress) -> None:
        with self._turn:
            if self._stop_wanted and not self._is_bound:
                raise Cancelled
            self._is_bound = self._is_bound or progress.binding
        now = time.monotonic()
        if now - self._reported >= _REPORT_EVERY_S or progress.done == progress.total:
            self._reported = now
            self._emit(self.progressed, progress)

    def _emit(self, signal: Any, value: object) -> None:
        try:
            signal.emit(self.ticket, value)
        except RuntimeError:
            _log.debug("the window was closed before %r answered", self.ticket.title)


class JobRunner(QObject):
    """Starts jobs and hands their outcomes to the GUI thread.

    `started` carries a `RunningJob`, `progressed` one and its `Progress`, `ended` one and its
    outcome (`Finished`, `Stopped` or `Failed`).
    """

    started = Signal(object)
    progressed = Signal(object, object)
    ended = Signal(object, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._count = 0
        self._workers: dict[int, _Worker] = {}
        self._newest: dict[str, int] = {}
        self._on_end: dict[int, Callable[[Any], None]] = {}
        self._on_progress: dict[int, Callable[[Progress], None]] = {}
        self._discard: dict[int, Callable[[Any], None]] = {}

    def start(
        self,
        lane: str,
        title: str,
        work: Callable[[], T],
        on_end: Callable[[Outcome[T]], None],
        *,
        on_progress: Callable[[Progress], None] | None = None,
        discard: Callable[[T], None] | None = None,
        shown: bool = True,
    ) -> RunningJob:
        """Do `work` in a thread; `on_end` gets its outcome once.

        An older request in the same lane is stopped, and `on_end` is called with `Stopped` for it
        at once: its late answer is dropped. A result that comes all the same, because the job was
        at its end, goes to `discard`: it may hold a file that must be let go of. One that writes by
        now (`Progress.binding`) goes on beside the new one, and `on_end` gets what became of it.
        """
        self.cancel(lane)
        self._count += 1
        ticket = RunningJob(self._count, lane, title, shown)
        worker = _Worker(ticket, work)
        worker.progressed.connect(self._progressed, Qt.ConnectionType.QueuedConnection)
        worker.ended.connect(self._ended, Qt.ConnectionType.QueuedConnection)
        self._workers[ticket.number] = worker
        self._newest[lane] = ticket.number
        self._on_end[ticket.number] = on_end
        if on_progress is not None:
            self._on_progress[ticket.number] = on_progress
        if discard is not None:
            self._discard[ticket.number] = discard
        self.started.emit(ticket)
        worker.thread.start()
        return ticket

    def cancel(self, lane: str) -> None:
        """Stop the job in `lane`, if one runs; its outcome is `Stopped`, delivered at once.

        One that writes by now (`Progress.binding`) goes on to its own outcome.
        """
        worker = self._workers.get(self._newest.get(lane, 0))
        if worker is not None and worker.stop():
            del self._newest[lane]
            self._deliver(worker.ticket, Stopped())

    def cancel_all(self) -> None:
        """Stop every job."""
        for lane in tuple(self._newest):
            self.cancel(lane)

    def is_running(self, lane: str) -> bool:
        """Whether a request in `lane` waits for its answer."""
        return lane in self._newest

    def wait(self, timeout_s: float) -> bool:
        """Wait for the threads to end, such as before closing; False if some still run."""
        end = time.monotonic() + timeout_s
        for worker in tuple(self._workers.values()):
            worker.thread.join(max(0.0, end - time.monotonic()))
        return not any(worker.thread.is_alive() for worker in self._workers.values())

    def finish(self, lane: str, timeout_s: float) -> None:
        """Wait for the job in `lane` and deliver its outcome now, such as before closing."""
        worker = self._workers.get(self._newest.get(lane, 0))
        if worker is not None:
            worker.thread.join(timeout_s)
            if worker.outcome is not None:
                self._ended(worker.ticket, worker.outcome)

    def _progressed(self, ticket: RunningJob, progress: Progress) -> None:
        if self._newest.get(ticket.lane) != ticket.number:
            return
        self.progressed.emit(ticket, progress)
        report = self._on_progress.get(ticket.number)
        if report is not None:
            report(progress)

    def _ended(self, ticket: RunningJob, outcome: Outcome[Any]) -> None:
        discard = self._discard.pop(ticket.number, None)
        if self._newest.get(ticket.lane) == ticket.number:
            del self._newest[ticket.lane]
        if ticket.number in self._on_end:
            self._deliver(ticket, outcome)
        elif discard is not None and isinstance(outcome, Finished):
            discard(outcome.result)
        worker = self._workers.pop(ticket.number, None)
        if worker is not None:
            worker.deleteLater()

    def _deliver(self, ticket: RunningJob, outcome: Outcome[Any]) -> None:
        self._on_progress.pop(ticket.number, None)
        on_end = self._on_end.pop(ticket.number)
        self.ended.emit(ticket, outcome)
        on_end(outcome)
