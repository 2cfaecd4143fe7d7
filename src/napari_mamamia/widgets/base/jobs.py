"""Jobs in threads, with progress and cancelling; each lane keeps only its newest request."""

import atexit
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from qtpy.QtCore import QObject, Qt, Signal

from napari_mamamia.core.progress import Cancelled, Progress, listening, report_progress
from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.base.notify import (
    Failed,
    Finished,
    Notifier,
    Outcome,
    Stopped,
    outcome_of,
)

T = TypeVar("T")
_log = logging.getLogger(__name__)

# Each report is an event of the GUI thread, so a report for every plane would fill its queue.
_REPORT_EVERY_S = 0.05
_POLL_S = 0.05
_LAST_S = 5.0
"""Time in s to wait for a stopped job when the program closes; a system call may block longer."""
_STOPPED = tr("{}: stopped")
_TOO_LATE = tr("{}: the files are being written, and the job will end shortly")


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A requested job; its `lane` names the purpose.

    A new request replaces older requests in the same lane. `shown` says whether the header shows
    the progress.
    """

    number: int
    lane: str
    title: str
    shown: bool = True


@dataclass(frozen=True, slots=True)
class _Answers(Generic[T]):
    """Callbacks for the possible outcomes of one request."""

    then: Callable[[T], object]
    failed: Callable[[Exception], object]
    stopped: Callable[[], object] | None
    ended: Callable[[], object] | None
    still: Callable[[], bool]
    discard: Callable[[T], object] | None
    on_progress: Callable[[Progress], object] | None

    def take(self, outcome: Outcome[T]) -> None:
        """Pass an outcome to its callback, then to `ended`, even if the callback raises."""
        try:
            if not self.still():
                self.drop(outcome)
            elif isinstance(outcome, Finished):
                self.then(outcome.result)
            elif isinstance(outcome, Failed):
                self.failed(outcome.error)
            elif self.stopped is not None:
                self.stopped()
        finally:
            if self.ended is not None:
                self.ended()

    def drop(self, outcome: Outcome[T]) -> None:
        """Discard a result that is no longer needed."""
        if isinstance(outcome, Failed):
            _log.info("a job whose result was not needed failed", exc_info=outcome.error)
        elif self.discard is not None and isinstance(outcome, Finished):
            self.discard(outcome.result)


class _Worker(QObject):
    """A worker that runs one job in a thread; its signals reach the GUI through the event loop."""

    progressed = Signal(object, object)
    ended = Signal(object, object)

    def __init__(
        self, ticket: RunningJob, work: Callable[[], Any], before: Sequence[threading.Thread]
    ) -> None:
        super().__init__()
        self.ticket = ticket
        self._stop_wanted = False
        self._is_bound = False
        self._turn = threading.Lock()
        self._work = work
        self._before = before
        self._reported = 0.0
        self.outcome: Outcome[Any] | None = None
        self.thread = threading.Thread(
            target=self._run_thread, name=tr("job {title}", title=ticket.title), daemon=True
        )

    def start(self) -> None:
        """Start the thread; if the program closes, the job gets a short time to clean up."""
        atexit.register(self.thread.join, _LAST_S)
        self.thread.start()

    def _run_thread(self) -> None:
        with listening(self._report_progress):
            # Stored as well as emitted, because `finish` reads the outcome if the event loop no
            # longer runs.
            self.outcome = outcome_of(self._run_work)
        atexit.unregister(self.thread.join)
        self._emit_value("ended", self.outcome)

    def _run_work(self) -> Any:
        if self._stop_wanted:
            # A newer request may arrive before this thread runs, and a short job would never
            # check.
            raise Cancelled
        for thread in self._before:
            while thread.is_alive():
                report_progress(0, 0, tr("Waiting for the stopped job to end"))
                thread.join(_POLL_S)
        return self._work()

    def stop(self) -> bool:
        """Ask the job to stop; return False if it is writing and therefore cannot be stopped."""
        # One lock is used for both, so a stop comes either before the first byte is written or
        # too late.
        with self._turn:
            self._stop_wanted = True
            return not self._is_bound

    def _report_progress(self, progress: Progress) -> None:
        with self._turn:
            if self._stop_wanted and not self._is_bound:
                raise Cancelled
            self._is_bound = self._is_bound or progress.binding
        now = time.monotonic()
        if now - self._reported >= _REPORT_EVERY_S or progress.done == progress.total:
            self._reported = now
            self._emit_value("progressed", progress)

    def _emit_value(self, signal: str, value: object) -> None:
        try:
            getattr(self, signal).emit(self.ticket, value)  # A deleted object has no signal.
        except RuntimeError:
            _log.debug("the window was closed before %r returned", self.ticket.title)


class JobRunner(QObject):
    """A runner that starts jobs in threads and passes their outcomes to the GUI thread.

    The signal `started` carries a `RunningJob`, `progressed` a `RunningJob` and its `Progress`, and
    `ended` a `RunningJob` and its outcome (`Finished`, `Stopped` or `Failed`).
    """

    started = Signal(object)
    progressed = Signal(object, object)
    ended = Signal(object, object)

    def __init__(self, notifier: Notifier, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._notifier = notifier
        self._count = 0
        self._workers: dict[int, _Worker] = {}
        self._newest: dict[str, int] = {}
        self._waiting: dict[int, _Answers[Any]] = {}
        self._dropped: dict[int, _Answers[Any]] = {}

    def start(
        self,
        lane: str,
        doing: str,
        work: Callable[[], T],
        then: Callable[[T], object],
        *,
        failed: Callable[[Exception], object] | None = None,
        stopped: Callable[[], object] | None = None,
        ended: Callable[[], object] | None = None,
        still: Callable[[], bool] = lambda: True,
        on_progress: Callable[[Progress], object] | None = None,
        discard: Callable[[T], object] | None = None,
        shown: bool = True,
        in_turn_of: str = "",
    ) -> RunningJob:
        """Run `work` in a thread, then call exactly one of `then`, `failed` and `stopped` once.

        An older request in the same lane is stopped immediately, and its result is discarded. A job
        that is writing (`Progress.binding`) continues alongside the new job until it ends.

        Parameters
        ----------
        doing
            Description of the job, such as "Opening A_1". The header shows this text while the job
            runs, and the message is "Opening A_1 failed: ..." if `failed` is not given.
        then
            Callback for the result, called in the GUI thread.
        failed
            Callback for the error.
        stopped
            Callback for a job that was stopped by the user or by a newer request. `stop` always
            reports a stop by the user.
        ended
            Callback for any outcome, called last, so that controls can be enabled again.
        still
            Function that returns whether the result still belongs to the displayed data. If not,
            only `ended` is called.
        discard
            Callback for a result that is no longer needed, because it may keep a file open.
        in_turn_of
            A lane whose jobs must end before the work begins, because a stopped job may keep files
            open.
        """
        self.cancel(lane)
        before = [
            worker.thread
            for worker in self._workers.values()
            if in_turn_of and worker.ticket.lane == in_turn_of
        ]
        self._count += 1
        ticket = RunningJob(self._count, lane, doing, shown)
        if failed is None:
            failed = partial(self._notifier.fail, doing)
        answers = _Answers(then, failed, stopped, ended, still, discard, on_progress)
        worker = _Worker(ticket, work, before)
        worker.progressed.connect(self._on_progressed, Qt.ConnectionType.QueuedConnection)
        worker.ended.connect(self._on_ended, Qt.ConnectionType.QueuedConnection)
        self._workers[ticket.number] = worker
        self._newest[lane] = ticket.number
        self._waiting[ticket.number] = answers
        self.started.emit(ticket)
        worker.start()
        return ticket

    def cancel(self, lane: str) -> None:
        """Stop any job in `lane` because its result is no longer needed.

        A job that is writing (`Progress.binding`) continues until it ends.
        """
        worker = self._newest_worker(lane)
        if worker is not None and worker.stop():
            self._stop_waiting(worker.ticket)

    def stop(self, lane: str) -> None:
        """Stop any job in `lane` at the user's request; a message always follows."""
        worker = self._newest_worker(lane)
        if worker is None:
            return
        ticket = worker.ticket
        if not worker.stop():
            self._notifier.hint(_TOO_LATE.format(ticket.title))
            return
        self._stop_waiting(ticket)
        self._notifier.hint(_STOPPED.format(ticket.title))

    def cancel_all(self) -> None:
        """Stop every job."""
        for lane in tuple(self._newest):
            self.cancel(lane)

    def is_running(self, lane: str) -> bool:
        """Return whether a request in `lane` is waiting for its result."""
        return lane in self._newest

    def wait(self, timeout_s: float) -> bool:
        """Wait until all threads have ended; return False if this takes longer than `timeout_s`."""
        end = time.monotonic() + timeout_s
        for worker in tuple(self._workers.values()):
            worker.thread.join(max(0.0, end - time.monotonic()))
        return not any(worker.thread.is_alive() for worker in self._workers.values())

    def finish(self, lane: str, timeout_s: float) -> bool:
        """Wait for the job in `lane` and deliver its outcome now; return False if it still runs."""
        worker = self._newest_worker(lane)
        if worker is None:
            return True
        worker.thread.join(timeout_s)
        if worker.outcome is None:
            return False
        # The queued signal for the same end comes later and no longer has a request.
        self._on_ended(worker.ticket, worker.outcome)
        return True

    # -------------------------------------------------------------------- inner

    def _newest_worker(self, lane: str) -> _Worker | None:
        return self._workers.get(self._newest.get(lane, 0))

    def _stop_waiting(self, ticket: RunningJob) -> None:
        del self._newest[ticket.lane]
        self._dropped[ticket.number] = self._waiting[ticket.number]
        self._deliver_outcome(ticket, Stopped())

    def _on_progressed(self, ticket: RunningJob, progress: Progress) -> None:
        if self._newest.get(ticket.lane) != ticket.number:
            return
        self.progressed.emit(ticket, progress)
        answers = self._waiting[ticket.number]
        if answers.on_progress is not None:
            answers.on_progress(progress)

    def _on_ended(self, ticket: RunningJob, outcome: Outcome[Any]) -> None:
        # A job that was writing ends alongside a newer job, which remains the newest job of the
        # lane.
        if self._newest.get(ticket.lane) == ticket.number:
            del self._newest[ticket.lane]
        worker = self._workers.pop(ticket.number, None)
        if worker is not None:
            worker.deleteLater()
        dropped = self._dropped.pop(ticket.number, None)
        if dropped is not None:
            dropped.drop(outcome)
        elif ticket.number in self._waiting:
            self._deliver_outcome(ticket, outcome)

    def _deliver_outcome(self, ticket: RunningJob, outcome: Outcome[Any]) -> None:
        answers = self._waiting.pop(ticket.number)
        self.ended.emit(ticket, outcome)
        answers.take(outcome)
