"""The one door to a folder on a share: whoever asks gets an answer, whatever the share does.

A network share that is gone does not refuse, it says nothing: each call to the system then waits in
it for ever, and no time limit of ours reaches in. So every look into the folder is an errand, done
by a thread that nobody has to wait for. One that gives no sign of life is given up; while it still
hangs no other is sent after it, so that there is one such thread for a folder, and the program can
end without it. A study, the data set that it reads and the folder for results each are such a
folder.
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
"""A share that did not say for so long whether a file is there does not answer: our choice."""
FILE_S: Final = 60.0
"""The same for an errand, since its last sign of life; it gives one between two files."""
_PACE_S: Final = 0.1
_TIDY_S: Final = 2.0
"""How long an errand that is stopped may tidy up: our choice."""


class SilentShareError(SaveError):
    """The share does not answer: what was asked of it is not known, or may come about later."""


class Share:
    """A folder that may lie on a share. Its path is handed to errands alone.

    Parameters
    ----------
    folder
        Looked at by nobody yet.
    answer_s, file_s
        Seconds without a sign after which a look and an errand are given up; None for the usual.
    """

    def __init__(
        self, folder: Path, *, answer_s: float | None = None, file_s: float | None = None
    ) -> None:
        self._folder = folder
        self.place = str(folder.absolute())
        self._answer_s, self._file_s = answer_s, file_s

    def look(self, work: Callable[[Path], T]) -> T:
        """Return what a short look into the folder gives; see `run`."""
        return self._start_background_task(
            work, ANSWER_S if self._answer_s is None else self._answer_s
        )

    def run(self, work: Callable[[Path], T]) -> T:
        """Return what `work` returns for the folder; what it raises is raised here.

        It is done in a thread, so it keeps nothing for later but what it returns: after it was
        given up it may still come to its end. What it reports is reported where it is waited for.

        Raises
        ------
        SilentShareError
            If there is no sign of life for too long, or an earlier errand still hangs: then at
            once.
        """
        return self._start_background_task(work, FILE_S if self._file_s is None else self._file_s)

    def _start_background_task(self, work: Callable[[Path], T], wait_s: float) -> T:
        current = threading.current_thread()
        if isinstance(current, _BackgroundTask) and current.place == self.place:
            return work(self._folder)  # an errand within an errand
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
            f"expected {self.place} to be there or not, but the share does not answer: see that "
            "the network and the share's server work, then try again"
        )


def _list_background_tasks(place: str) -> "list[_BackgroundTask]":
    """Return what is under way to a place, of whatever part of this program."""
    return [
        one
        for one in threading.enumerate()
        if isinstance(one, _BackgroundTask) and one.place == place
    ]


class _BackgroundTask(threading.Thread):
    """A thread that does one thing on a share; a daemon, which no program waits for at its end."""

    def __init__(self, place: str, work: Callable[[], object]) -> None:
        super().__init__(name=f"share {place}", daemon=True)
        self.place, self._work = place, work
        self.error: BaseException | None = None
        self.is_given_up = False
        self._progress: Progress | None = None
        self._sign_at = time.monotonic()
        self._ended = threading.Event()

    def run(self) -> None:
        """Do it; what goes wrong is kept for who waits."""
        try:
            with listening(self._note_sign):
                self._work()
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            self.error = error
        finally:
            self._ended.set()

    def wait(self, wait_s: float) -> bool:
        """Wait for the end, and pass on what is reported; False after `wait_s` without a sign.

        Who waits here on an errand to another folder gives a sign by that: this one has its limit.
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
        """End it at its next sign of life; it may tidy up, and is not waited for longer."""
        self.is_given_up = True
        self.join(_TIDY_S)
        self.is_given_up = self.is_alive()

    def give_sign(self) -> None:
        """Say that it is at work; raises `Cancelled` where nobody waits any longer."""
        if self.is_given_up:
            raise Cancelled
        self._sign_at = time.monotonic()

    def _note_sign(self, progress: Progress) -> None:
        self.give_sign()
        self._progress = progress
