"""Determine the bolus arrival time from the curve of a vessel or the heart."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from napari_mamamia.core.errors import CaseError
from napari_mamamia.kinetics.time_axis import known_times
from napari_mamamia.kinetics.ultrafast import MOST_GAP_S, steepest_rise

_LEAST_RISE_PERCENT: Final = 50.0
"""Smallest signal rise of a vessel or the heart in percent. Our choice."""


def bolus_arrival_s(times_s: Sequence[float | None], signal: Sequence[float]) -> float:
    """Return the time of contrast arrival in s, on the time axis of `times_s`.

    The arrival is the intersection of the tangent at the steepest rise between two phases with the
    baseline, which is the mean of all earlier phases (`ultrafast.steepest_rise`).

    Parameters
    ----------
    times_s, signal
        The time and the mean signal of a vessel or the heart for each phase.

    Raises
    ------
    CaseError
        If times are unknown, the phases at the steepest rise are more than 10 s apart, there is no
        earlier phase, or the signal rises by less than 50 %.

    Examples
    --------
    >>> times = [3.5 * k for k in range(12)]
    >>> curve = [100 + 180 * max(0, 1 - math.exp(-(t - 21) / 12)) for t in times]
    >>> round(bolus_arrival_s(times, curve), 3)
    21.0
    """
    times, why = known_times(times_s)
    if times is None:
        raise CaseError(
            f"the bolus arrival needs the time of every phase, but {why}; enter the times"
        )
    values = np.asarray(signal, np.float64)
    rise = steepest_rise(times, values[:, None])
    baseline, phase, gap = float(rise.baseline[0]), int(rise.phase[0]), float(rise.gap_s[0])
    # `>` would accept NaN, the gap of a single phase.
    if not gap <= MOST_GAP_S:
        spacing = f"they are {gap:g} s apart" if len(times) > 1 else "there is only 1 phase"
        raise CaseError(
            f"expected phases to be at most {MOST_GAP_S:g} s apart where the vessel's signal "
            f"rises, but {spacing}, so bolus arrival cannot be measured; enter the injection time "
            "in seconds"
        )
    percent = 100 * (float(values.max()) - baseline) / baseline if baseline > 0 else math.nan
    if phase < 1 or not percent >= _LEAST_RISE_PERCENT:
        raise CaseError(
            "expected the signal of the vessel or heart to rise by at least "
            f"{_LEAST_RISE_PERCENT:g} % after the first phases, but it rises by {percent:.0f} %, "
            f"most steeply after phase {phase}; choose a different mask, or enter the injection "
            "time in seconds"
        )
    return max(float(rise.arrival_s[0]), times[0])
