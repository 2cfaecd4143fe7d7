"""When the bolus arrives in a vessel or the heart: the foot of its curve."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from napari_mamamia.core.errors import CaseError
from napari_mamamia.kinetics.time_axis import known_times

__all__ = ["bolus_arrival_s"]

_MOST_GAP_S: Final = 10.0
"""Coarser steps at the steepest rise do not show an arrival. Source: the refusal rule of ultrafast
measures (docs/methods.md)."""
_LEAST_RISE_PERCENT: Final = 50.0
"""A vessel or heart rises more; ours."""


def bolus_arrival_s(times_s: Sequence[float | None], signal: Sequence[float]) -> float:
    """Return when contrast arrives, seconds on the clock of `times_s`.

    The tangent of the steepest rise between two phases, cut with the baseline, which is the mean of
    all phases before it that do not rise yet.

    Parameters
    ----------
    times_s, signal
        Of each phase; the signal is the mean of a vessel or the heart.

    Raises
    ------
    CaseError
        If times are unknown, phases at the steepest rise lie more than 10 s apart, there is no
        phase before it, or the signal rises less than 50 %.

    Examples
    --------
    >>> times = [3.5 * k for k in range(12)]
    >>> curve = [100 + 180 * max(0, 1 - math.exp(-(t - 21) / 12)) for t in times]
    >>> round(bolus_arrival_s(times, curve), 3)
    21.0
    """
    times, why = known_times(times_s)
    if times is None:
        raise CaseError(f"the bolus' arrival needs times, but {why}: type the times in")
    values = np.asarray(signal, np.float64)
    slopes = [
        (after - before) / (late - early)
        for (before, after), (early, late) in zip(pairwise(values), pairwise(times), strict=True)
    ]
    at = int(np.argmax(slopes)) if slopes else 0
    gap = times[at + 1] - times[at] if slopes else math.inf
    if gap > _MOST_GAP_S:
        raise CaseError(
            f"expected phases at most {_MOST_GAP_S:g} s apart where the vessel rises, got {gap:g} "
            "s: the bolus' arrival cannot be seen; give the injection in seconds"
        )
    start = max(at, 1)
    baseline = float(values[:start].mean())
    rise = 100 * (float(values.max()) - baseline) / baseline if baseline > 0 else math.nan
    if at < 1 or not rise >= _LEAST_RISE_PERCENT:
        raise CaseError(
            f"expected a vessel or heart that rises by {_LEAST_RISE_PERCENT:g} % after its first "
            f"phases, got {rise:.0f} % with the steepest rise after phase {at}: give another mask, "
            "or the injection in seconds"
        )
    foot = times[at] - (float(values[at]) - baseline) / slopes[at]
    return float(max(foot, times[0]))
