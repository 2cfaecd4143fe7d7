"""Editing time: the time between a reader's acts, longer pauses left out."""

import time
from collections.abc import Callable
from typing import Final

LONGEST_PAUSE_S: Final = 30.0
"""A pause of so many seconds or more between two acts does not count. Our choice."""


class EditingClock:
    """Adds up the time between acts.

    Parameters
    ----------
    seconds
        Editing time of earlier sittings, which counts on.
    now
        A clock in seconds that never goes back.
    """

    def __init__(self, seconds: float = 0.0, now: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._now = now
        self._last: float | None = None

    def act(self) -> float:
        """Note that the reader does something; return the editing time so far in seconds."""
        now = self._now()
        if self._last is not None and now - self._last < LONGEST_PAUSE_S:
            self.seconds += now - self._last
        self._last = now
        return self.seconds
