"""The convergence score: the area below the best validation Dice over simulated time."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

WEEK_S: Final = 604_800.0
"""The horizon: scores of runs of other lengths compare."""

_BEFORE: Final = -1.0


class ConvergenceReading(StrEnum):
    """When a round's best Dice begins to count."""

    REFERENCE_CODE = "reference-code"
    """From the start of the round: a round validates the model that it received."""
    END_OF_ROUND = "end-of-round"
    """From its end; before the first end nothing counts."""


def convergence_scores(
    times_s: Sequence[float],
    dsc: Sequence[float],
    reading: ConvergenceReading = ConvergenceReading.REFERENCE_CODE,
    horizon_s: float = WEEK_S,
) -> NDArray[np.float64]:
    """Return the score after each round that counts; the last one is the run's.

    `times_s` are how long the rounds take, `dsc` the validation Dice of each. Under
    ``reference-code`` the run stops after the first round that ends beyond the horizon, and what
    goes beyond is taken off at the last best; under ``end-of-round`` what ends beyond it does not
    count.

    Raises
    ------
    ValueError
        If there is no round, the lengths differ, or a time is not positive and finite.

    Examples
    --------
    >>> convergence_scores([700_000], [0.4]).tolist()
    [0.4]
    """
    if len(times_s) != len(dsc) or not len(dsc):
        raise ValueError(f"expected a Dice for each round, got {len(times_s)} and {len(dsc)}")
    if not all(0 < one < np.inf for one in times_s) or not np.all(np.isfinite(dsc)):
        raise ValueError("expected rounds of more than 0 s and finite Dice: correct the run")
    is_code = ConvergenceReading(reading) is ConvergenceReading.REFERENCE_CODE
    best, area, total, scores = _BEFORE, 0.0, 0.0, []
    counted = 0.0
    for seconds, value in zip(times_s, dsc, strict=True):
        if is_code:
            best = max(best, value)
            area += best * seconds
            total += seconds
            scores.append((area + (horizon_s - total) * best) / horizon_s)
            if total > horizon_s:
                break
            continue
        # What was best before this round counts until its end.
        end = min(total + seconds, horizon_s)
        area += counted * (end - total)
        total += seconds
        if total < horizon_s:
            best = max(best, value)
            counted = best
        scores.append((area + counted * max(horizon_s - total, 0.0)) / horizon_s)
        if total >= horizon_s:
            break
    return np.array(scores)
