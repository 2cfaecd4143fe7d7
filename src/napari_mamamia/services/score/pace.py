"""Format the progress of a scoring run: finished cases, rate and remaining time."""

from napari_mamamia.core.progress import Progress

_SECONDS = 60
_TOO_SOON_S = 1.0


class Pace:
    """The progress of a run of `n_cases`.

    During scoring, the total of a report is `n_cases` or a multiple of it. Reports of later steps
    have different totals and are shown with their own text.

    Examples
    --------
    >>> pace = Pace(8)
    >>> pace.line(Progress(0, 8), 10.0)
    '0 of 8 cases'
    >>> pace.line(Progress(2, 8), 14.0)
    '2 of 8 cases · 0.50 cases/s · 0:12 left'
    """

    def __init__(self, n_cases: int) -> None:
        self._n_cases = n_cases
        self._started: float | None = None
        self._is_over = False

    def line(self, progress: Progress, now_s: float) -> str:
        """Return the text for a progress report; `now_s` is the time in s from any clock."""
        if self._is_over:
            return f"{self._n_cases} of {self._n_cases} cases · {progress.text}"
        if not self._counts_cases(progress):
            return progress.text
        if progress.done == progress.total:
            self._is_over = True
            return f"{self._n_cases} of {self._n_cases} cases"
        if self._started is None:
            self._started = now_s
        n_done = progress.fraction * self._n_cases
        counted = f"{int(n_done)} of {self._n_cases} cases"
        elapsed = now_s - self._started
        if elapsed < _TOO_SOON_S or n_done <= 0:
            return counted
        rate = n_done / elapsed
        seconds = round((self._n_cases - n_done) / rate)
        return f"{counted} · {rate:.2f} cases/s · {clock(seconds)} left"

    def _counts_cases(self, progress: Progress) -> bool:
        return progress.total >= self._n_cases > 0 and progress.total % self._n_cases == 0


def clock(seconds: int) -> str:
    """Return a duration as minutes and seconds, or hours and minutes.

    Examples
    --------
    >>> clock(75), clock(3720)
    ('1:15', '1 h 02 min')
    """
    minutes, rest = divmod(seconds, _SECONDS)
    if minutes < _SECONDS:
        return f"{minutes}:{rest:02d}"
    return f"{minutes // _SECONDS} h {minutes % _SECONDS:02d} min"
