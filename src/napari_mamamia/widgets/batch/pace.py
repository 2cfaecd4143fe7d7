"""How far a batch is, over all its models: a share for the bar, a line for the eye."""

import re
from collections.abc import Sequence
from typing import Final

from napari_mamamia.core.progress import Progress
from napari_mamamia.services.score.pace import Pace

__all__ = ["RunPace"]

_COUNT: Final = re.compile(r"^[\d,]+ of [\d,]+ cases")
"""How `services.batch.batch` begins the text of progress that counts cases."""


class RunPace:
    """Follows models that are scored one after the other, each with so many cases.

    Examples
    --------
    >>> pace = RunPace([4, 4])
    >>> pace.follow(Progress(2, 4, "2 of 4 cases"), 10.0)
    (0.25, 'model 1 of 2 · 2 of 4 cases')
    >>> pace.follow(Progress(4, 4, "4 of 4 cases"), 11.0)
    (0.5, 'model 1 of 2 · 4 of 4 cases')
    >>> pace.follow(Progress(0, 4, "0 of 4 cases"), 11.0)
    (0.5, 'model 2 of 2 · 0 of 4 cases')
    """

    def __init__(self, counts: Sequence[int]) -> None:
        self._counts = tuple(counts)
        self._at = 0
        self._done = 0
        self._share = 0.0
        self._pace = Pace(self._counts[0] if counts else 0)

    def follow(self, progress: Progress, now_s: float) -> tuple[float, str]:
        """Return the share done (0 to 1, never falling) and the line; `now_s` of any clock."""
        if _COUNT.match(progress.text):
            self._count(progress)
        line = self._pace.line(progress, now_s)
        several = len(self._counts) > 1
        return (
            self._share,
            f"model {self._at + 1} of {len(self._counts)} · {line}" * several or line,
        )

    def _count(self, progress: Progress) -> None:
        if progress.done < self._done and self._at + 1 < len(self._counts):
            self._at += 1
            self._pace = Pace(self._counts[self._at])
        self._done = progress.done
        share = (self._at + progress.fraction) / max(len(self._counts), 1)
        self._share = max(self._share, share)
