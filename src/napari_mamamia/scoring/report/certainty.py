"""The certainty of a first rank in words."""

from typing import Final

import numpy as np

from napari_mamamia.scoring.ranking.ranking import MethodRanking
from napari_mamamia.scoring.ranking.stability import Stability

_SURE: Final = 0.95
_LIKELY: Final = 0.75
"""Shares of resamples from which a lead is called certain, or likely. Our choice."""
FEWEST_CASES: Final = 5
"""Cases from which a lead can be certain: one that wins each of 4 has p = 0.06 (sign test)."""


def judge_certainty(lead: MethodRanking, n_cases: int) -> str:
    """Return the certainty of the first rank in a word.

    The lead is certain if it is first in 95 % of the resamples, and likely in 75 %. With fewer than
    `FEWEST_CASES` cases no lead is certain: their resamples agree by chance.
    """
    stable = lead.stability
    if n_cases < FEWEST_CASES:
        return f"Open ({few_cases(n_cases)}):"
    share = 0.0 if stable is None else float(stable.first[int(np.argmin(lead.ranks))])
    return "Sure:" if share >= _SURE else "Likely:" if share >= _LIKELY else "Open:"


def few_cases(n_cases: int) -> str:
    """Return a sentence if there are too few cases for a conclusion, otherwise "".

    Examples
    --------
    >>> few_cases(1), few_cases(FEWEST_CASES)
    ('1 case is too few to tell', '')
    """
    if n_cases >= FEWEST_CASES:
        return ""
    return f"{n_cases} case{' is' if n_cases == 1 else 's are'} too few to tell"


def show_interval(stable: Stability, at: int, between: str = " to ") -> str:
    """Return the smallest range of whole ranks (halves, if tied) that contains the interval."""
    low, high = np.floor(2 * stable.low[at]) / 2, np.ceil(2 * stable.high[at]) / 2
    if not np.any(stable.ranks[:, at] % 1):
        low, high = np.floor(low), np.ceil(high)
    return f"{low:g}{between}{high:g}"
