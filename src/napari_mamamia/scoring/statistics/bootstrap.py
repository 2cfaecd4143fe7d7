"""Bootstrap over cases: percentile, basic and BCa intervals of several metrics at once."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isnan, nan
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from napari_mamamia.core.progress import report_progress
from napari_mamamia.scoring.statistics.resampling import (
    N_RESAMPLES,
    SEED,
    draw_cases,
    weigh_cases,
)

Numbers = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Function from sums over the cases (b, k) to the values (b, m) of m metrics."""

LEVEL: Final = 0.95

_PRODUCTS: Final = 1 << 18
"""Largest number of multiplications in one matrix product.

OpenBLAS starts threads above 2^18. On a busy machine these threads wait for each other, which takes
12 ms instead of 2 ms for 1000 x 574 x 52 with both cores in use.
"""

_ROWS: Final = 1 << 12
"""Number of leave-one-out cases that are computed in one step."""

_RESAMPLING: Final = "Resampling cases"

_ROUNDING: Final = 1e-12
"""Rounding tolerance for estimates and leave-one-out values.

An estimate that is this close to an end counts as inside its interval. Leave-one-out values that
differ by less (root of the sum of squares) count as equal.
"""


class IntervalMethod(StrEnum):
    """Method for computing the ends of an interval from the resampled values."""

    PERCENTILE = "percentile"
    """Percentiles of the resampled values, linearly interpolated, as in the paper."""
    BASIC = "basic"
    """The percentile interval mirrored at the estimate."""
    BCA = "bca"
    """Percentiles corrected for bias and acceleration."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval of the metric `name`; undefined ends are nan and have a `reason`.

    The interval contains the estimate or is undefined, unless it is a range of resampled values.
    `n_resamples` values were used, and `n_undefined` further values were nan. `warning` describes
    unusual properties: a range that excludes its estimate, or undefined resamples.
    """

    name: str
    estimate: float
    low: float
    high: float
    method: IntervalMethod
    level: float
    n_resamples: int
    n_undefined: int
    warning: str = ""
    reason: str = ""


def interval_named(
    intervals: Sequence[Interval], name: str, method: IntervalMethod = IntervalMethod.PERCENTILE
) -> Interval | None:
    """Return the interval of a metric by a method, or None if there is no such interval."""
    return next((i for i in intervals if i.name == name and i.method is method), None)


@dataclass(frozen=True, slots=True, eq=False)
class Bootstrap:
    """The resampled values of m metrics.

    `estimates` (m,) are computed from all cases, `replicates` (B, m) from the resamples, and
    `leave_one_out` (n, m) with each case left out once. All are float64, with nan for undefined
    values.
    """

    names: tuple[str, ...]
    estimates: NDArray[np.float64]
    replicates: NDArray[np.float64]
    leave_one_out: NDArray[np.float64]

    def interval(
        self,
        name: str,
        method: IntervalMethod = IntervalMethod.PERCENTILE,
        level: float = LEVEL,
        bounds: tuple[float, float] = (-np.inf, np.inf),
        *,
        is_range: bool = False,
    ) -> Interval:
        """Return the interval of one metric at a `level` between 0 and 1.

        `bounds` are the lowest and highest possible values, to which the ends of the basic interval
        are clipped. With `is_range`, the ends are a range of resampled values, which may exclude
        the estimate. Otherwise, the ends are undefined if they exclude the estimate.
        """
        if not 0 < level < 1:
            raise ValueError(
                f"expected the interval level to be between 0 and 1, but it is {level:g}"
            )
        method, index = IntervalMethod(method), self.names.index(name)
        column = self.replicates[:, index]
        defined = column[~np.isnan(column)]
        estimate = float(self.estimates[index])
        ends, reason = (np.nan, np.nan), "the number itself is undefined"
        if not np.isnan(estimate):
            ends, reason = _find_ends(
                estimate, defined, self.leave_one_out[:, index], method, level
            )
        low, high = np.clip(ends, *bounds).tolist()
        warnings = []
        if isnan(keep_around(estimate, low, high)[0]) and not isnan(low):
            outside = (
                f"the estimate {estimate:.4f} lies outside its {method.value} interval ({low:.4f} "
                f"to {high:.4f}), because resampling shifts this number"
            )
            if is_range:
                warnings.append(outside)
            else:
                reason, low, high = outside, np.nan, np.nan
        n_undefined = column.size - defined.size
        if n_undefined:
            warnings.append(f"{n_undefined} resamples left the number undefined and were not used")
        warning = "; ".join(warnings)
        return Interval(
            name, estimate, low, high, method, level, defined.size, n_undefined, warning, reason
        )

    def intervals(
        self, method: IntervalMethod = IntervalMethod.PERCENTILE, level: float = LEVEL
    ) -> tuple[Interval, ...]:
        """Return the intervals of all metrics, in the order of `names`."""
        return tuple(self.interval(name, method, level) for name in self.names)


def bootstrap(
    names: tuple[str, ...],
    replicates: Iterable[NDArray[np.float64]],
    estimates: NDArray[np.float64],
    leave_one_out: NDArray[np.float64],
    n_resamples: int = N_RESAMPLES,
) -> Bootstrap:
    """Return the bootstrap of m metrics from blocks (b, m) of resampled values.

    `estimates` (m,) are computed from all cases, and `leave_one_out` (n, m) with each case left out
    in turn.
    """
    blocks, n_drawn = [], 0
    for block in replicates:
        blocks.append(block)
        n_drawn += len(block)
        report_progress(n_drawn, n_resamples, _RESAMPLING)
    return Bootstrap(names, estimates, np.concatenate(blocks), leave_one_out)


def bootstrap_sums(
    names: tuple[str, ...],
    parts: NDArray[np.float64],
    numbers: Numbers,
    n_resamples: int = N_RESAMPLES,
    seed: int = SEED,
) -> Bootstrap:
    """Return the bootstrap of metrics that are functions of sums over the cases.

    `parts` (n, k) are the contributions of each case to k sums, and `numbers` maps sums (b, k) to
    values (b, m). Calls with the same number of cases and seed use the same resamples, so models
    can be compared resample by resample.

    Raises
    ------
    ValueError
        If there is no case or no resample.
    """
    resamples = draw_cases(len(parts), n_resamples, seed)
    total, left_out = parts.sum(axis=0), []
    for first in range(0, len(parts), _ROWS):
        report_progress(0, n_resamples, _RESAMPLING)
        left_out.append(numbers(total - parts[first : first + _ROWS]))
    estimates = numbers(np.ones((1, len(parts))) @ parts)[0]
    weights = weigh_cases(resamples, len(parts))
    replicates = (numbers(_weighted_sums(block, parts)) for block in weights)
    return bootstrap(names, replicates, estimates, np.concatenate(left_out), n_resamples)


def _weighted_sums(weights: NDArray[np.uint8], parts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the matrix product of weights (b, n) and parts (n, k), computed in tiles.

    Tiles fit in the cache and are below the size at which OpenBLAS starts threads. A tile contains
    some resamples with all cases for a cohort of ordinary size, otherwise some cases of all
    resamples.
    """
    n_rows, (n_cases, n_sums) = len(weights), parts.shape
    rows = min(n_rows, _PRODUCTS // max(1, parts.size) or n_rows)
    cases = max(1, _PRODUCTS // max(1, rows * n_sums))
    sums = np.zeros((n_rows, n_sums))
    for row in range(0, n_rows, rows):
        for case in range(0, n_cases, cases):
            tile = weights[row : row + rows, case : case + cases].astype(np.float64)
            sums[row : row + rows] += tile @ parts[case : case + cases]
    return sums


def keep_around(estimate: float, low: float, high: float) -> tuple[float, float]:
    """Return both ends of an interval, or (nan, nan) if the interval excludes its estimate.

    Examples
    --------
    >>> keep_around(0.7, 0.6, 0.8)
    (0.6, 0.8)
    >>> keep_around(0.5, 0.6, 0.8)
    (nan, nan)
    """
    is_outside = estimate < low - _ROUNDING or estimate > high + _ROUNDING
    return (nan, nan) if is_outside else (low, high)


def _find_ends(
    estimate: float,
    replicates: NDArray[np.float64],
    leave_one_out: NDArray[np.float64],
    method: IntervalMethod,
    level: float,
) -> tuple[tuple[float, float], str]:
    if not replicates.size:
        return (np.nan, np.nan), "the number is undefined in every resample"
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    if method is IntervalMethod.BCA:
        bias = _estimate_bias(estimate, replicates)
        if np.isinf(bias):
            side = "below" if bias < 0 else "above"
            return (np.nan, np.nan), (
                f"the estimate lies {side} all resampled values, so BCa is undefined"
            )
        shifted = bias + ndtri(tails)
        tails = ndtr(bias + shifted / (1 - acceleration(leave_one_out) * shifted))
    low, high = np.percentile(replicates, 100 * tails)
    if method is IntervalMethod.BASIC:
        low, high = 2 * estimate - high, 2 * estimate - low
    return (float(low), float(high)), ""


def _estimate_bias(estimate: float, replicates: NDArray[np.float64]) -> float:
    """Return the bias z0 from the fraction of resampled values below the estimate; ties count half.

    Source: B. Efron, R. J. Tibshirani, An Introduction to the Bootstrap (1993), Eq. 14.14.
    """
    below = np.count_nonzero(replicates < estimate) + np.count_nonzero(replicates <= estimate)
    return float(ndtri(below / (2 * replicates.size)))


def acceleration(leave_one_out: NDArray[np.float64]) -> float:
    """Return the BCa acceleration from the leave-one-out values, or 0 if all are equal.

    Source: B. Efron, R. J. Tibshirani, An Introduction to the Bootstrap (1993), Eq. 14.15.
    """
    values = leave_one_out[~np.isnan(leave_one_out)]
    apart = values.mean() - values if values.size else np.zeros(1)
    squares = float((apart**2).sum())
    return float((apart**3).sum()) / (6 * squares**1.5) if squares > _ROUNDING**2 else 0.0
