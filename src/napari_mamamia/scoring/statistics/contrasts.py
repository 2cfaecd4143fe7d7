"""Intervals of the largest gap between groups, by inverting pairwise contrasts.

The largest minus the smallest group mean is not smooth if groups tie, is never negative, and is
biased upwards by noise, which resampling adds a second time. Pairwise contrasts avoid these
problems.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainccinv, gammaincinv, ndtr, ndtri, stdtrit

if TYPE_CHECKING:
    from scipy.interpolate import CubicSpline

Array = NDArray[np.float64]

LEVEL: Final = 0.95

_WIDEST: Final = 14.0
"""Largest studentised range that occurs in double precision."""
_FREEDOMS: Final = np.array([1, 1.3, 1.7, 2, 2.5, 3, 4, 5, 6, 8, 10, 15, 20, 30, 60, 120, np.inf])


@dataclass(frozen=True, slots=True, eq=False)
class GroupMoments:
    """Sizes, means and variances (n - 1), each (g,), of g groups with at least two cases.

    `used` is the variance for intervals: the group's variance, but at least the pooled variance. A
    group that by chance contains no failure has both a good mean and a tiny variance.
    docs/methods/intervals.md states the coverage.
    """

    n: Array
    mean: Array
    variance: Array

    @property
    def used(self) -> Array:
        """The variances that intervals use, (g,)."""
        freedom = self.n - 1
        pooled = float((freedom * self.variance).sum() / freedom.sum())
        return np.maximum(self.variance, pooled)

    @property
    def errors(self) -> Array:
        """The squared standard errors of the group means, (g,)."""
        return self.used / self.n


@dataclass(frozen=True, slots=True)
class GapEnds:
    """Both ends of a gap's interval; `pair` holds the two groups that determine the upper end."""

    low: float
    high: float
    pair: tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class GapColumns:
    """The groups of one gap, with moments and each case's contribution to the standard errors.

    `apart` (n, g) is (value - group mean)/group size if a case is in the group, otherwise 0. The
    rows are the same cases in all gaps.
    """

    moments: GroupMoments
    apart: Array


def range_point(level: float, n_groups: int, freedom: Array) -> Array:
    """Return q/sqrt 2, where q is the quantile of the studentised range at `level`.

    `freedom` are degrees of freedom, from 1. With two groups, the result is Student's t at (1 +
    level)/2. The value is interpolated in 1/freedom, with a relative error below 1e-5 from two
    degrees of freedom.
    """
    inverse = np.clip(1 / np.maximum(freedom, 1), 0, 1)
    points: Array = np.exp(_range_spline(level, n_groups)(inverse))
    return points


def range_by_chance(errors: Array) -> float:
    """Return the expected range of independent normal numbers with mean 0 and variances (g,)."""
    spread = np.sqrt(errors[errors > 0])
    if not spread.size:
        return 0.0
    half = 9 * float(spread.max())
    nodes, weights = _gauss_rule(400)
    below = ndtr(half * nodes[:, None] / spread)
    if (errors == 0).any():
        fixed = (nodes > 0).astype(np.float64)[:, None]
        below = np.hstack([below, fixed])
    missing = 1 - below.prod(axis=1) - (1 - below).prod(axis=1)
    return float(half * (weights @ missing))


def beyond_chance(gap: float, by_chance: float) -> float:
    """Return sqrt(max(0, gap^2 - by_chance^2)), the part of a gap that noise does not explain."""
    return float(np.sqrt(max(0.0, gap**2 - by_chance**2)))


def gap_ends(groups: GroupMoments, low: float = LEVEL, high: float = LEVEL) -> GapEnds:
    """Return the interval of the largest difference between the means of at least two groups.

    `low` and `high` are the levels of the two ends. The lower end corrects for choosing the
    largest of many gaps (Games-Howell). The upper end is the highest upper end of all pairs,
    because the true worst pair is one of these pairs and its own bound covers it. With two
    groups, this is Welch's interval of |difference|.
    """
    higher, lower = _ordered_pairs(len(groups.n))
    errors = groups.errors
    difference = groups.mean[higher] - groups.mean[lower]
    both = errors[higher] + errors[lower]
    freedom = _welch_freedom(errors, groups.n)[higher, lower]
    error = np.sqrt(both)
    reach_low = range_point(low, len(groups.n), freedom) * error
    ends = difference + _student_point(high, freedom) * error
    widest = int(np.argmax(ends))
    return GapEnds(
        max(0.0, float((difference - reach_low).max())),
        float(ends[widest]),
        (int(higher[widest]), int(lower[widest])),
    )


def mean_gap_high(gaps: Sequence[GapColumns], level: float = LEVEL) -> float:
    """Return the upper end of the interval for the mean of several gaps over the same cases.

    For each gap, one pair of groups is chosen, so that the upper end for the mean of the
    differences is highest; its variance includes the covariance of all group means. The search
    changes one pair at a time as long as the end increases.
    """
    sizes = np.concatenate([gap.moments.n for gap in gaps])
    means = np.concatenate([gap.moments.mean for gap in gaps])
    errors = np.concatenate([gap.moments.errors for gap in gaps])
    covariance = _join_covariance(gaps, errors)
    firsts = np.cumsum([0, *(len(gap.moments.n) for gap in gaps)])
    pairs = [_ordered_pairs(len(gap.moments.n)) for gap in gaps]
    chosen = [gap_ends(gap.moments, level, level).pair for gap in gaps]
    best = -np.inf
    for _ in range(len(gaps) + 2):
        before = best
        for index, (higher, lower) in enumerate(pairs):
            signs = np.zeros((len(higher), sizes.size))
            for other, pair in enumerate(chosen):
                if other != index:
                    signs[:, firsts[other] + pair[0]] = 1
                    signs[:, firsts[other] + pair[1]] = -1
            rows = np.arange(len(higher))
            signs[rows, firsts[index] + higher] = 1
            signs[rows, firsts[index] + lower] = -1
            ends = _ends_of_sums(signs, means, covariance, errors, sizes, level)
            place = int(np.argmax(ends))
            chosen[index], best = (int(higher[place]), int(lower[place])), float(ends[place])
        if best <= before:
            break
    return best / len(gaps)


def rate_gap_ends(hits: Array, n: Array, low: float = LEVEL, high: float = LEVEL) -> GapEnds:
    """Return the interval of the largest difference in rates hits/n between at least two groups.

    Newcombe's interval of each pair (square-and-add of Wilson's limits) is inverted as in
    `gap_ends`, so rates of 0 and 1 also have an error. Source: R. G. Newcombe, Stat. Med. 17 (1998)
    873.
    """
    higher, lower = _ordered_pairs(len(n))
    rate = hits / n
    point = float(range_point(low, len(n), np.array([np.inf]))[0])
    below, above = wilson_limits(hits, n, point)
    difference = rate[higher] - rate[lower]
    reach = np.hypot(rate[higher] - below[higher], above[lower] - rate[lower])
    below, above = wilson_limits(hits, n, float(ndtri((1 + high) / 2)))
    ends = difference + np.hypot(above[higher] - rate[higher], rate[lower] - below[lower])
    widest = int(np.argmax(ends))
    return GapEnds(
        max(0.0, float((difference - reach).max())),
        min(1.0, float(ends[widest])),
        (int(higher[widest]), int(lower[widest])),
    )


def wilson_limits(hits: Array, n: Array, z: float) -> tuple[Array, Array]:
    """Return Wilson's limits of the rates hits/n at `z` standard errors.

    Source: E. B. Wilson, Journal of the American Statistical Association 22 (1927) 209.
    """
    rate = hits / n
    centre = (rate + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z * np.sqrt(rate * (1 - rate) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return centre - reach, centre + reach


@cache  # Imported here because SciPy would delay the program's start by 40 ms or more.
def _gauss_rule(n_nodes: int) -> tuple[Array, Array]:
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    return nodes, weights


def _ordered_pairs(n_groups: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    higher, lower = np.nonzero(~np.eye(n_groups, dtype=np.bool_))
    return higher, lower


def _welch_freedom(errors: Array, n: Array) -> Array:
    both = (errors[:, None] + errors) ** 2
    shares = errors**2 / (n - 1)
    return _divide_freely(both, shares[:, None] + shares)


def _divide_freely(squares: Array, shares: Array) -> Array:
    freedom = np.full(squares.shape, np.inf)
    np.divide(squares, shares, out=freedom, where=shares > 0)
    return freedom


def _student_point(level: float, freedom: Array) -> Array:
    ends = float(ndtri((1 + level) / 2))
    is_finite = np.isfinite(freedom)
    points = stdtrit(np.where(is_finite, freedom, 1.0), (1 + level) / 2)
    return np.where(is_finite, points, ends)


def _ends_of_sums(
    signs: Array, means: Array, covariance: Array, errors: Array, n: Array, level: float
) -> Array:
    used = np.abs(signs)
    freedom = _divide_freely((used @ errors) ** 2, used @ (errors**2 / (n - 1)))
    variance = np.maximum(((signs @ covariance) * signs).sum(axis=1), 0)
    ends: Array = signs @ means + _student_point(level, freedom) * np.sqrt(variance)
    return ends


def _join_covariance(gaps: Sequence[GapColumns], errors: Array) -> Array:
    apart = np.hstack([gap.apart for gap in gaps])
    covariance = apart.T @ apart
    plain = np.diagonal(covariance).copy()
    scale = np.sqrt(np.divide(errors, plain, out=np.zeros_like(errors), where=plain > 0))
    covariance *= scale[:, None] * scale
    np.fill_diagonal(covariance, errors)
    joined: Array = covariance
    return joined


@lru_cache(maxsize=64)
def _range_spline(level: float, n_groups: int) -> "CubicSpline":
    from scipy.interpolate import CubicSpline
    from scipy.optimize import brentq

    nodes, of_nodes = _gauss_rule(80)
    z = 8 * nodes
    z_weights = 8 * of_nodes * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    widths = np.linspace(0, _WIDEST, 561)
    inside = (ndtr(z) - ndtr(z - widths[:, None])) ** (n_groups - 1)
    shares = CubicSpline(widths, n_groups * (inside @ z_weights))
    tails = ndtr(-np.abs(z))
    points = []
    for freedom in _FREEDOMS:
        spread, weights = np.ones(1), np.ones(1)
        if np.isfinite(freedom):
            half = freedom / 2
            chi = np.where(z < 0, gammaincinv(half, tails), gammainccinv(half, tails))
            spread, weights = np.sqrt(2 * chi / freedom), z_weights

        def miss(q: float, spread: Array = spread, weights: Array = weights) -> float:
            return float(weights @ shares(np.minimum(q * spread, _WIDEST))) - level

        points.append(brentq(miss, 1e-3, 1e6, xtol=1e-10))
    return CubicSpline(1 / _FREEDOMS[::-1], np.log(np.array(points)[::-1] / np.sqrt(2)))
