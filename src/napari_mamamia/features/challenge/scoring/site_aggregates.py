"""Compute aggregates that reveal no single case, and pool them with random effects."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

SMALLEST_GROUP: Final = 10
"""Minimum number of cases in a shared aggregate, as in the FeTS heat map (our choice)."""
_LEVEL: Final = 0.975
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Number, mean, standard deviation (n - 1) and quartiles (type 7) of values; no extremes."""

    n: int
    mean: float
    sd: float
    q25: float
    median: float
    q75: float


@dataclass(frozen=True, slots=True)
class PooledMean:
    """The pooled mean of k sites by a random-effects model.

    `tau2` is the variance between sites (DerSimonian and Laird), `i2` its share of the total
    variance, `low` and `high` the Hartung-Knapp 95 % interval. `is_widened` says whether the lower
    bound on its variance made it wider. Undefined values are NaN, and `reason` says why.
    """

    mean: float
    low: float
    high: float
    tau2: float
    i2: float
    k: int
    reason: str = ""
    is_widened: bool = False


def aggregate(values: NDArray[np.float64]) -> Aggregate:
    """Compute the aggregate of one or more values, shape (n,), none of which is NaN.

    Examples
    --------
    >>> aggregate(np.array([1.0, 2.0, 3.0, 4.0])).q25
    1.75
    """
    q25, median, q75 = (float(quartile) for quartile in np.quantile(values, (0.25, 0.5, 0.75)))
    sd = float(np.std(values, ddof=1)) if values.size > 1 else float("nan")
    return Aggregate(values.size, float(np.mean(values)), sd, q25, median, q75)


def withheld_groups(sizes: Sequence[int], smallest: int = SMALLEST_GROUP) -> tuple[int, ...]:
    """Return the indices of groups that must not be shared: small ones, and some larger ones.

    `sizes` holds the sizes of all groups of a variable; cases in no group form another group. The
    total is public, so a single withheld group could be computed. The smallest other groups are
    therefore withheld too, until all withheld groups together have at least `smallest` cases.

    Examples
    --------
    >>> withheld_groups([12, 30, 4])
    (0, 2)
    >>> withheld_groups([12, 30, 0]), withheld_groups([6, 5, 30])
    ((), (0, 1))
    """
    small = [index for index, size in enumerate(sizes) if 0 < size < smallest]
    others = sorted(
        (index for index, size in enumerate(sizes) if size >= smallest),
        key=lambda place: (sizes[place], place),
    )
    while small and sum(sizes[group] for group in small) < smallest and others:
        small.append(others.pop(0))
    return tuple(sorted(small))


def pool_means(
    means: Sequence[float],
    sds: Sequence[float],
    n: Sequence[int],
    limits: tuple[float, float] = (-np.inf, np.inf),
) -> PooledMean:
    """Pool the means of sites from their means, standard deviations and numbers of cases.

    The variance of the pooled mean is never smaller than in the random-effects model without
    Hartung and Knapp's factor. Sites that agree by chance therefore do not give a narrow interval.
    The interval is clipped to the `limits` of the metric.

    Sources: DerSimonian and Laird, Control Clin Trials 1986;7:177; interval: Hartung and Knapp,
    Stat Med 2001;20:3875; lower bound of the variance: Knapp and Hartung, Stat Med 2003;22:2693.
    """
    from scipy.stats import t as student

    k, nan = len(means), float("nan")
    y = np.array(means, dtype=np.float64)
    variance = np.array(sds, dtype=np.float64) ** 2 / np.array(n, dtype=np.float64)
    if k < 2:
        return PooledMean(y[0] if k else nan, nan, nan, nan, nan, k, "fewer than 2 sites")
    if not (np.isfinite(variance).all() and (variance > 0).all()):
        reason = "a site has one case, or the same value in all cases"
        return PooledMean(float(y.mean()), nan, nan, nan, nan, k, reason)
    weight = 1 / variance
    fixed = float((weight * y).sum() / weight.sum())
    q = float((weight * (y - fixed) ** 2).sum())
    scale = float(weight.sum() - (weight**2).sum() / weight.sum())
    tau2 = max(0.0, (q - (k - 1)) / scale)
    weight = 1 / (variance + tau2)
    mean = float((weight * y).sum() / weight.sum())
    factor = float((weight * (y - mean) ** 2).sum()) / (k - 1)
    half = float(student.ppf(_LEVEL, k - 1) * np.sqrt(max(1.0, factor) / weight.sum()))
    low, high = (float(np.clip(end, *limits)) for end in (mean - half, mean + half))
    i2 = max(0.0, 1 - (k - 1) / q) if q else 0
    return PooledMean(mean, low, high, tau2, i2, k, is_widened=factor < 1 - _ROUNDING)
