"""Access, with a time limit, to a folder that may be on a network share.

If a network share is unreachable, any system call on it may block indefinitely. Therefore all
access to the folder runs as a background task in a daemon thread. A task without progress is
abandoned. While it still blocks, further tasks on the same folder fail at once, so that at most one
thread per folder is blocked and the program can exit. This applies to a study's folder, its data
set, and the output folder.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from napari_mamamia.core.errors import SaveError
from napari_mamamia.core.progress import Cancelled, Progress, forward_progress, listening

T = TypeVar("T")

ANSWER_S: Final = 10.0
"""Seconds without a response after which a share counts as unreachable (our choice)."""
FILE_S: Final = 60.0
"""Maximum seconds between two progress reports of a task, which reports at least once per file."""
_PACE_S: Final = 0.1
_TIDY_S: Final = 2.0
"""Seconds that a stopped task may take to clean up (our choice)."""


class SilentShareError(SaveError):
    """Error raised if a share does not respond; the operation may still be completed later."""


class Share:
    """A folder that may be on a network share; the path is passed only to background tasks.

    Parameters
    ----------
    folder
        The folder, which the constructor does not access.
    answer_s, file_s
        Time limits without progress, in s, of `look` and `run`; None for the defaults.
    """

    def __init__(
        self, folder: Path, *, answer_s: float | None = None, file_s: float | None = None
    ) -> None:
        self._folder = folder
        self.place = str(folder.absolute())
        self._answer_s, self._file_s = answer_s, file_s

    def look(self, work: Callable[[Path], T]) -> T:
        """Run a short task on the folder and return its result; see `run`."""
        return self._start_background_task(
            work, ANSWER_S if self._answer_s is None else self._answer_s
        )

    def run(self, work: Callable[[Path], T]) -> T:
        """Run `work(folder)` in a thread, and return its result or raise its exception.

        `work` must be stateless, because an abandoned call may still finish later. Its progress is
        reported in the calling thread.

        Raises
        ------
        SilentShareError
            If there is no progress within the time limit, or an earlier task still blocks.
        """
        return self._start_background_task(work, FILE_S if self._file_s is None else self._file_s)

    def _start_background_task(self, work: Callable[[Path], T], wait_s: float) -> T:
        current = threading.current_thread()
        if isinstance(current, _BackgroundTask) and current.place == self.place:
            return work(self._folder)  # a background task that runs within another one
        if any(
            background_task.is_given_up for background_task in _list_background_tasks(self.place)
        ):
            raise self._describe_silence()
        results: list[T] = []
        background_task = _BackgroundTask(self.place, lambda: results.append(work(self._folder)))
        background_task.start()
        try:
            is_done = background_task.wait(wait_s)
        except BaseException:
            background_task.stop()
            raise
        background_task.is_given_up = background_task.is_alive()
        if not is_done:
            raise self._describe_silence()
        if background_task.error is not None:
            raise background_task.error
        return results[0]

    def _describe_silence(self) -> SilentShareError:
        return SilentShareError(
            f"expected access to {self.place}, but the network share does not respond: check the "
            "network and the share's server, then try again"
        )


def _list_background_tasks(place: str) -> "list[_BackgroundTask]":
    return [
        one
        for one in threading.enumerate()
        if isinstance(one, _BackgroundTask) and one.place == place
    ]


class _BackgroundTask(threading.Thread):
    """A daemon thread that runs a function on a share and does not delay the program's exit."""

    def __init__(self, place: str, work: Callable[[], object]) -> None:
        super().__init__(name=f"share {place}", daemon=True)
        self.place, self._work = place, work
        self.error: BaseException | None = None
        self.is_given_up = False
        self._progress: Progress | None = None
        self._sign_at = time.monotonic()
        self._ended = threading.Event()

    def run(self) -> None:
        """Run the function, and store any exception for the waiting thread."""
        try:
            with listening(self._note_sign):
                self._work()
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            self.error = error
        finally:
            self._ended.set()

    def wait(self, wait_s: float) -> bool:
        """Wait for the end, forwarding progress; return False after `wait_s` without progress.

        Waiting for a task on a different folder counts as progress, because that task has its own
        time limit.
        """
        last, outer = None, threading.current_thread()
        while not self._ended.wait(min(_PACE_S, wait_s)):
            if isinstance(outer, _BackgroundTask):
                outer.give_sign()
            progress, self._progress = self._progress, None
            if progress is not None and progress != last:
                forward_progress(progress)
                last = progress
            if time.monotonic() - self._sign_at > wait_s:
                return self._ended.is_set()
        self.join()
        return True

    def stop(self) -> None:
        """Ask the task to stop at its next progress report, and limit the time for cleaning up."""
        self.is_given_up = True
        self.join(_TIDY_S)
        self.is_given_up = self.is_alive()

    def give_sign(self) -> None:
        """Record progress; raise `Cancelled` if the caller no longer waits."""
        if self.is_given_up:
            raise Cancelled
        self._sign_at = time.monotonic()

    def _note_sign(self, progress: Progress) -> None:
        self.give_sign()
        self._progress = progress
