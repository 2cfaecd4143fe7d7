"""Compute the convergence score: the area under the best validation Dice over simulated time."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

WEEK_S: Final = 604_800.0
"""Time horizon in s, which makes scores of runs of different lengths comparable."""

_BEFORE: Final = -1.0


class ConvergenceReading(StrEnum):
    """The time from which a round's best Dice counts."""

    REFERENCE_CODE = "reference-code"
    """From the start of the round, because a round validates the model that it received."""
    END_OF_ROUND = "end-of-round"
    """From the end of the round; nothing counts before the end of the first round."""


def convergence_scores(
    times_s: Sequence[float],
    dsc: Sequence[float],
    reading: ConvergenceReading = ConvergenceReading.REFERENCE_CODE,
    horizon_s: float = WEEK_S,
) -> NDArray[np.float64]:
    """Return the score after each counted round; the last score is that of the run.

    `times_s` are the durations of the rounds in s, `dsc` their validation Dice. With
    ``reference-code`` the run stops after the first round that ends beyond the horizon, and the
    area beyond the horizon is subtracted. With ``end-of-round`` a round that ends beyond the
    horizon does not count.

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
        raise ValueError(
            f"expected a Dice value for each round, got {len(times_s)} rounds and {len(dsc)} values"
        )
    if not all(0 < one < np.inf for one in times_s) or not np.all(np.isfinite(dsc)):
        raise ValueError("expected rounds longer than 0 s and finite Dice values: correct the run")
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
        # the best Dice before this round counts until the round's end
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
