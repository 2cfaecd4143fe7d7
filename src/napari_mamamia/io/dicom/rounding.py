"""Distinguish rounded positions and directions from those of a different geometry."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_STEPS: Final = (1.0, 0.1, 0.01, 0.001, 0.0001)
_COARSEST_COSINE: Final = 0.01
"""Largest error of rounded directions (our choice).

Two digits are off by up to 0.7 degrees; one digit is off by 7 degrees, which is too coarse.
"""
_CLEAR_STEPS: Final = 4.0
"""Number of rounding steps above which one gap cannot be two gaps.

Each position is off by half a step, so two gaps are at least 3 steps longer than one.
"""
_UNROUNDED: Final = 0.01
"""Largest relative error of gaps without rounding."""


def rounding_step(numbers: NDArray[Any]) -> float:
    """Return the decimal step of which all numbers are multiples; 0.0 if it is below 0.0001.

    Examples
    --------
    >>> rounding_step(np.array([1.2, 2.5, -3.0]))
    0.1
    """
    for step in _STEPS:
        if np.allclose(numbers / step, np.round(numbers / step), rtol=0, atol=1e-6):
            return step
    return 0.0


def nearest_axes(axes: NDArray[Any], normal: NDArray[Any] | None = None) -> NDArray[Any] | None:
    """Return the directions of rows and columns of which `axes` are rounded values, or None.

    Parameters
    ----------
    axes
        Direction of a row and down a column, (2, 3), as the header has them.
    normal
        Direction from slice to slice, of length 1, where the positions of the slices give it.
    """
    step = rounding_step(axes)
    if not 0 < step <= _COARSEST_COSINE:
        return None
    in_plane = axes if normal is None else axes - np.outer(axes @ normal, normal)
    u, _, right = np.linalg.svd(in_plane, full_matrices=False)
    nearest: NDArray[Any] = u @ right
    return nearest if float(np.abs(nearest - axes).max()) <= step else None


def fit_rounded_gap(
    positions: NDArray[Any], normal: NDArray[Any], steps: Sequence[float], *, may_be_coarse: bool
) -> float | None:
    """Return the gap in mm between slices whose positions are even except for rounding.

    Slices k and l are ``l - k`` gaps apart along `normal`, to one rounding step of each coordinate;
    errors do not add up. The result is the middle of the possible gaps, or None if no gap fits.

    Parameters
    ----------
    positions
        Of each slice up the stack, (slice, 3), in mm.
    normal
        Direction from slice to slice, of length 1.
    steps
        Rounding step of each coordinate.
    may_be_coarse
        Whether other elements show that no slice is missing; a coarse rounding could hide one.
    """
    mean = float((positions[-1] - positions[0]) @ normal) / (len(positions) - 1)
    if max(steps) == 0 or (mean <= _CLEAR_STEPS * max(steps) and not may_be_coarse):
        return None
    first, later = np.triu_indices(len(positions), 1)
    low, high = 0.0, np.inf
    for axis, step in enumerate(steps):
        apart = positions[later, axis] - positions[first, axis]
        reach = max(step, _UNROUNDED * mean) + 1e-6
        if abs(normal[axis]) < 1e-6:
            if float(np.abs(apart).max()) > reach:
                return None
            continue
        along = (later - first) * normal[axis]
        bounds = np.sort([(apart - reach) / along, (apart + reach) / along], axis=0)
        low, high = max(low, float(bounds[0].max())), min(high, float(bounds[1].min()))
    return (low + high) / 2 if low <= high else None
