"""A process that runs one case at a time and can be killed if a case takes too long.

The process runs this module as a program: it reads pickled requests from standard input, writes
answers to standard output, and ends when its parent process ends. It is not a `multiprocessing`
process, because a daemon process is not allowed to start one.
"""

import os
import pickle
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from queue import Empty, SimpleQueue
from types import MappingProxyType
from typing import IO, Any, Final, TypeVar

from napari_mamamia.core.plugins import be_quiet
from napari_mamamia.core.program import child_process
from napari_mamamia.core.program.child_environment import child_environment
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.records import FailureCause
from napari_mamamia.services.batch.work import POLL_S, CaseInputs, CaseWork, Outcome, attempt

R = TypeVar("R")

_START_LIMIT_S: Final = 60.0
_READY: Final = b"ready"
_MODULE: Final = "napari_mamamia.services.batch.child"
_TRIES: Final = 2


class _Ended(Exception):  # noqa: N818 - an outcome, caught in this module
    """Raised if the child process has ended unexpectedly."""


class _TooLong(Exception):  # noqa: N818 - an outcome, caught in this module
    """Raised if the child does not answer within the time limit."""


class Child:
    """A process that can be killed; it is started on first use and reused for later cases.

    `environment` holds additional environment variables for the process.
    """

    def __init__(self, environment: Mapping[str, str] = MappingProxyType({})) -> None:
        self._environment = environment
        self._process: child_process.Process | None = None
        self._answers: SimpleQueue[Any] = SimpleQueue()
        self._is_closed = False

    @property
    def pid(self) -> int | None:
        """The id of the running process, or None."""
        return None if self._process is None else self._process.pid

    def send(self, work: CaseWork[Any], cases: Iterable[CaseInputs]) -> None:
        """Send cases to the process, which runs them in this order and is started if necessary.

        Raises
        ------
        _Ended
            If the process does not start.
        """
        if self._process is None:
            self._start_process()
        process = self._process
        if process is None or process.stdin is None:
            raise _Ended("it was stopped")
        # If the process has ended, its answers up to that point are still received.
        with suppress(OSError, ValueError):
            for inputs in cases:
                # Pickled twice, so that data that the child cannot unpickle fail one case and do
                # not end the pipe.
                pickle.dump(_pack_request(work, inputs), process.stdin)
            process.stdin.flush()

    def receive(self, case_id: str, limit_s: float) -> Outcome[Any]:
        """Return the next answer; report progress at least every `POLL_S` seconds while waiting.

        Raises
        ------
        _Ended
            If the process ended before it answered.
        _TooLong
            If the case takes longer than `limit_s`, not counting the start of the process. The
            process is then killed.
        """
        answer: Outcome[Any] = pickle.loads(self._wait_for_answer(limit_s))  # noqa: S301 - our own child's pipe
        # A request that could not be unpickled belongs to no known case.
        return answer if answer.case_id else replace(answer, case_id=case_id)

    def kill(self) -> None:
        """End the process and its descendants, and wait until they have ended."""
        process, self._process = self._process, None
        if process is not None:
            child_process.end_group(process)

    def close(self) -> None:
        """End the process permanently; no new process is started afterwards."""
        self._is_closed = True
        self.kill()

    def _start_process(self) -> None:
        if self._is_closed:
            raise _Ended("it was stopped")
        self._answers = SimpleQueue()
        self._process = child_process.start(
            child_process.python_command(_MODULE),
            errors=child_process.Errors.SHOWN,
            environment=child_environment(**self._environment),
        )
        reader = threading.Thread(
            target=_pass_on, args=(self._process.stdout, self._answers), daemon=True
        )
        reader.start()
        try:
            self._wait_for_answer(_START_LIMIT_S)
        except _TooLong:
            # No case has been sent yet, so this time does not count for a case.
            raise _Ended(f"it did not start within {_START_LIMIT_S:g} s") from None

    def _wait_for_answer(self, limit_s: float) -> Any:
        end = time.monotonic() + limit_s
        while True:
            try:
                answer = self._answers.get(timeout=max(0.0, min(POLL_S, end - time.monotonic())))
            except Empty:
                if time.monotonic() >= end:
                    self.kill()
                    raise _TooLong from None
                report_progress(0, 1)
                continue
            if isinstance(answer, _Ended):
                raise _Ended(self._how_it_ended())
            return answer

    def _how_it_ended(self) -> str:
        process, self._process = self._process, None
        code = None if process is None else child_process.end_silent(process)
        if code is None:
            return "it was stopped"
        return f"signal {-code}" if code < 0 else f"exit code {code}"


def attempt_in_child(
    child: Child, work: CaseWork[R], inputs: CaseInputs, limit_s: float | None
) -> Outcome[R]:
    """Run `work` in `child` and return its outcome; report progress at least every 0.1 s.

    A case that takes longer than `limit_s` is stopped and fails. If the process dies, the case is
    tried once more in a new process.
    """
    return next(attempt_all_in_child(child, work, (inputs,), limit_s))


def attempt_all_in_child(
    child: Child, work: CaseWork[R], cases: Sequence[CaseInputs], limit_s: float | None
) -> Iterator[Outcome[R]]:
    """Yield the outcome of each case in order; see `attempt_in_child`.

    All cases are sent at once. If the process dies or is killed, only the case in progress is
    affected, and the remaining cases are sent again.
    """
    waiting, tries, is_sent = deque(cases), 0, False
    while waiting:
        case_id = waiting[0].case_id
        try:
            if not is_sent:
                child.send(work, waiting)
                is_sent = True
            outcome = child.receive(case_id, limit_s or float("inf"))
        except _TooLong:
            is_sent = False
            reason = f"expected an answer within the time limit of {limit_s:g} s, but the case took"
            reason += " longer"
            reason += ": check its files or allow more time"
            outcome = Outcome(case_id, reason=reason, cause=FailureCause.TIME_LIMIT)
        except _Ended as error:
            is_sent, tries = False, tries + 1
            if tries < _TRIES:
                continue
            reason = f"the process of the case ended {_TRIES} times without an answer ({error})"
            reason += ": check its files and the free memory"
            outcome = Outcome(case_id, reason=reason, cause=FailureCause.WORKER_LOST)
        waiting.popleft()
        tries = 0
        yield outcome


class _AbsolutePickler(pickle.Pickler):
    """A pickler that makes paths absolute, because a child starts in a different folder."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Path) and not obj.is_absolute():
            return type(obj), obj.absolute().parts
        return NotImplemented


def _pack_request(work: CaseWork[Any], inputs: CaseInputs) -> bytes:
    packed = BytesIO()
    _AbsolutePickler(packed).dump((work, inputs))
    return packed.getvalue()


def _pass_on(stream: IO[bytes], answers: "SimpleQueue[Any]") -> None:
    """Move the child's output into a queue, which supports a timeout on every system."""
    with suppress(EOFError, OSError, ValueError, pickle.UnpicklingError):
        while True:
            answers.put(pickle.load(stream))  # noqa: S301 - our own child's pipe
    answers.put(_Ended())


def main() -> None:
    """Answer requests until the parent closes the pipe or ends."""
    be_quiet()
    with suppress(BrokenPipeError):
        _answer_all()
    os._exit(
        0
    )  # The listening thread holds standard input, and Python's normal exit would wait for it.


def _answer_all() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # A case's output must not be mixed with the answers.
    requests: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_queue_requests, args=(sys.stdin.buffer, requests), daemon=True).start()
    _send_answer(answers, _READY)
    while True:
        _send_answer(answers, _answer_to(requests.get()))


def _queue_requests(stream: IO[bytes], requests: "SimpleQueue[bytes]") -> None:
    """Queue the requests; end this process when the pipe closes, even during a case."""
    try:
        while True:
            requests.put(pickle.load(stream))  # noqa: S301 - our own parent's pipe
    finally:
        os._exit(0)


def _answer_to(request: bytes) -> bytes:
    try:
        work, inputs = pickle.loads(request)  # noqa: S301 - our own parent's pipe
        return pickle.dumps(attempt(work, inputs))
    except Exception as error:  # noqa: BLE001 - a request that cannot be read or an answer not sent
        reason = f"unexpected {type(error).__name__}: {error}"
        return pickle.dumps(Outcome("", reason=reason))


def _send_answer(stream: IO[bytes], answer: object) -> None:
    pickle.dump(answer, stream)
    stream.flush()


if __name__ == "__main__":
    main()
