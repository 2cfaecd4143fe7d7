"""A challenge's board in words: a team's attempts, who leads, how sure, what would change it."""

import re
from typing import Final

from napari_mamamia.features.challenge.io.leaderboard_file import BoardRow

_PLACES: Final = re.compile(r"(?:\S*/)?(?:results/\S[^/]*/[0-9a-f]+/sealed|submissions)/")


def describe_row(row: BoardRow) -> str:
    """Return a team's n and attempts in words: "n 60, 38 unusable; 7th attempt"."""
    n = f"n {row.n}" + (f", {row.n_unusable} unusable" if row.n_unusable else "")
    attempt = say_attempt(row)
    given = "; scores as given" if row.is_as_given else ""
    reason = f"; not ranked: {row.reason}" if row.rank is None else ""
    guarded = f"; {text}" if (text := say_guarded(row)) else ""
    return f"{row.team}: {n}; {attempt}{given}{guarded}{reason}"


def say_guarded(row: BoardRow) -> str:
    """Return a team's guarded score, "" where it has none."""
    if row.guarded_score is None:
        return ""
    return f"guarded score {row.guarded_score:.4f}: its empty predictions at their least favourable"


def say_attempt(row: BoardRow) -> str:
    """Return which attempt is shown, such as "7th attempt", and of how many if others came."""
    if not row.attempt:
        return "no attempt"
    attempt = f"{ordinal(row.attempt)} attempt"
    return attempt + (f" of {row.n_attempts}" if row.n_attempts > row.attempt else "")


def hide_places(text: str) -> str:
    """Return a reason without where on the organiser's computer its files lie.

    Examples
    --------
    >>> hide_places("/srv/org/results/a/0f3c/sealed/C_01.nii.gz: it is cut off")
    'C_01.nii.gz: it is cut off'
    >>> hide_places("expected a zip at /srv/org/submissions/a.zip")
    'expected a zip at a.zip'
    """
    return _PLACES.sub("", text)


def ordinal(number: int) -> str:
    """Return a number as English counts: 1st, 2nd, 3rd, 11th.

    Examples
    --------
    >>> [ordinal(number) for number in (1, 2, 3, 7, 11, 12, 13, 21, 112)]
    ['1st', '2nd', '3rd', '7th', '11th', '12th', '13th', '21st', '112th']
    """
    teens = 10 <= number % 100 < 20
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
