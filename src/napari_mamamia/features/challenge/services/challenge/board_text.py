"""Texts of a leaderboard row: number of cases, attempts, guarded score."""

import re
from typing import Final

from napari_mamamia.features.challenge.io.leaderboard_file import BoardRow

_PLACES: Final = re.compile(r"(?:\S*/)?(?:results/\S[^/]*/[0-9a-f]+/sealed|submissions)/")


def describe_row(row: BoardRow) -> str:
    """Return a team's number of cases and attempts, as in "n 60, 38 unusable; 7th attempt"."""
    n = f"n {row.n}" + (f", {row.n_unusable} unusable" if row.n_unusable else "")
    attempt = say_attempt(row)
    origin = "; scores as given" if row.is_as_given else ""
    reason = f"; not ranked: {row.reason}" if row.rank is None else ""
    guarded = f"; {text}" if (text := say_guarded(row)) else ""
    return f"{row.team}: {n}; {attempt}{origin}{guarded}{reason}"


def say_guarded(row: BoardRow) -> str:
    """Return a team's guarded score as text, "" if it has none."""
    if row.guarded_score is None:
        return ""
    return (
        f"guarded score {row.guarded_score:.4f}: with the least favourable value for each of its "
    )


"empty predictions"


def say_attempt(row: BoardRow) -> str:
    """Return the displayed attempt, such as "7th attempt", and the total if others follow."""
    if not row.attempt:
        return "no attempt"
    attempt = f"{ordinal(row.attempt)} attempt"
    return attempt + (f" of {row.n_attempts}" if row.n_attempts > row.attempt else "")


def hide_places(text: str) -> str:
    """Remove the paths of the organiser's computer from a reason.

    Examples
    --------
    >>> hide_places("/srv/org/results/a/0f3c/sealed/C_01.nii.gz: it is cut off")
    'C_01.nii.gz: it is cut off'
    >>> hide_places("expected a zip at /srv/org/submissions/a.zip")
    'expected a zip at a.zip'
    """
    return _PLACES.sub("", text)


def ordinal(number: int) -> str:
    """Return an English ordinal number: 1st, 2nd, 3rd, 11th.

    Examples
    --------
    >>> [ordinal(number) for number in (1, 2, 3, 7, 11, 12, 13, 21, 112)]
    ['1st', '2nd', '3rd', '7th', '11th', '12th', '13th', '21st', '112th']
    """
    teens = 10 <= number % 100 < 20
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
