"""Descriptions of how certain a first rank is."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from napari_mamamia.scoring.ranking.ranking import MethodRanking, Stability

_CERTAIN: Final = 0.95
_LIKELY: Final = 0.75
"""Fraction of resamples above which a lead is called likely (our choice)."""
FEWEST_CASES: Final = 5
"""Smallest number of cases for a certain lead; winning in all of 4 cases has p = 0.06."""


def judge_certainty(lead: MethodRanking, n_cases: int) -> str:
    """Return a word that describes how certain the first rank is.

    The lead is certain if the leader is first in 95 % of the resamples, and likely if it is first
    in 75 %. With fewer than `FEWEST_CASES` cases, no lead is certain, because the resamples agree
    by chance.

    Parameters
    ----------
    lead
        The ranking of the algorithms by the primary ranking method.
    n_cases
        Number of cases.
    """
    stable = lead.stability
    if n_cases < FEWEST_CASES:
        return f"Undecided ({few_cases(n_cases)}):"
    share = 0.0 if stable is None else float(stable.first[int(np.argmin(lead.ranks))])
    return "Certain:" if share >= _CERTAIN else "Likely:" if share >= _LIKELY else "Undecided:"


def describe_stability(names: Sequence[str], lead: MethodRanking, n_draws: int) -> str:
    """Return a phrase describing how often the leader and its rival rank first, or "".

    Parameters
    ----------
    names
        Names of the algorithms.
    lead
        The ranking of the algorithms by the primary ranking method.
    n_draws
        Number of resamples.
    """
    stable = lead.stability
    if stable is None:
        return ""
    index = int(np.argmin(lead.ranks))
    others = np.where(np.arange(len(names)) == index, -1.0, stable.first)
    rival = int(np.argmax(others))
    text = (
        f"first in {100 * stable.first[index]:.0f} % of {n_draws:,} resamples of the cases, rank "
        f"{show_interval(stable, index)} in 95 % of them"
    )
    if others[rival] > 0:
        text += f"; next {names[rival]}, first in {100 * others[rival]:.0f} %"
    return text


def few_cases(n_cases: int) -> str:
    """Return a sentence stating that there are too few cases for a conclusion, or "".

    Examples
    --------
    >>> few_cases(1), few_cases(FEWEST_CASES)
    ('1 case is too few for a conclusion', '')
    """
    if n_cases >= FEWEST_CASES:
        return ""
    return f"{n_cases} case{' is' if n_cases == 1 else 's are'} too few for a conclusion"


def show_interval(stable: Stability, at: int, between: str = " to ") -> str:
    """Return the smallest range of whole or half ranks that contains the interval.

    Parameters
    ----------
    stable
        The stability of the ranks.
    at
        Index of the algorithm.
    between
        Text between the two ends.
    """
    low, high = np.floor(2 * stable.low[at]) / 2, np.ceil(2 * stable.high[at]) / 2
    if not np.any(stable.ranks[:, at] % 1):
        low, high = np.floor(low), np.ceil(high)
    return f"{low:g}{between}{high:g}"
