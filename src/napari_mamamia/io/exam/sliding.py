"""Whether a volume's neighbouring planes share values: a projection that slides along the stack.

In a scan each plane has noise of its own, so that two neighbours are equal in one place by chance
only: in as many places as the rounding of values leaves room for. A sliding maximum, minimum or
median takes one value for several planes, and so does a stack whose planes were doubled. No other
volume is needed to see that.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["find_sliding", "tied_share"]

_Array = NDArray[np.float32]
_BODY: Final = 0.1
_TIED: Final = 0.12
"""From this share of equal neighbours on, above that in rows, planes share values. Measured: below
.03 in honest real volumes and on phantoms; .20 and more in projections that were computed; in
theory (w - 1) / (w + 1) of noise over w planes."""
_LEAST_STEPS: Final = 2.0
"""Neighbours that differ by fewer steps of the stored values are equal by rounding."""
_FINEST: Final = 5
"""This percentile of the differences is a step, or where steps are finer than noise, a part of it
that is small enough."""
_FEWEST: Final = 500
_EACH: Final = 3


def find_sliding(slabs: _Array) -> tuple[int, ...]:
    """Return the volumes whose neighbouring planes share values.

    Parameters
    ----------
    slabs
        Some neighbouring planes of each volume: (volume, z, y, x).
    """
    return tuple(k for k, tied in enumerate(_tied(slabs)) if tied >= _TIED)


def tied_share(slabs: _Array) -> NDArray[np.float64]:
    """Return the share of each volume's voxels that equal their neighbour in the next plane.

    Less the share of those that equal their neighbour in a row: so many are equal by rounding. Of
    the pairs of planes the one with most of them does not count: a single plane that is there
    twice is no projection. 0 where there are too few planes, or mere rounding. Takes the same as
    `find_sliding`.
    """
    return np.array(_tied(slabs))


def _tied(slabs: _Array) -> list[float]:
    if slabs.shape[1] < 3:
        return [0.0] * len(slabs)
    means = slabs.mean(axis=0)
    body = means > _BODY * float(np.percentile(means, 99))
    return [_of_volume(one, body[1:] & body[:-1]) for one in slabs]


def _of_volume(values: _Array, body: NDArray[np.bool_]) -> float:
    known, counts = np.unique(values[:, ::_EACH, ::_EACH], return_counts=True)
    usual = known[np.argmax(counts)]  # what is masked, or filled in, is equal by itself
    below, above = values[:-1], values[1:]
    lowest = values.min()
    counted = body & (below > lowest) & (above > lowest) & (below != usual)
    differences = np.abs(above - below)
    parted = differences[counted & (differences > 0)]
    if counted.sum() < _FEWEST or len(parted) == 0:
        return 0.0
    step = float(np.percentile(parted, _FINEST))
    if float(np.median(parted)) < _LEAST_STEPS * step:
        return 0.0
    n_tied = (counted & (differences == 0)).sum(axis=(1, 2))
    shares = np.sort(n_tied / np.maximum(counted.sum(axis=(1, 2)), 1))
    beside = counted[..., 1:] & counted[..., :-1]
    by_rounding = float((np.diff(below, axis=2)[beside] == 0).mean()) if beside.any() else 0.0
    return max(float(shares[:-1].mean()) - by_rounding, 0.0)
