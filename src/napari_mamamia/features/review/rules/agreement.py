"""Reader agreement: kappa, alpha, ICC, Bland-Altman, and confidence intervals over cases.

The formulas are implemented here because the libraries that provide them are GPL-licensed
(krippendorff, pingouin) or large (statsmodels). The tests compare the results with those libraries.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, isnan, log, nan
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.scoring.statistics.bootstrap import keep_around

LEVEL = 0.95
N_RESAMPLES = 1000
SEED: Final = 42
_NORMAL = 1.96
"""Number of standard deviations around the mean that enclose 95 % of the differences."""

Floats = NDArray[np.float64]


class Weighting(StrEnum):
    """How Cohen's kappa weights disagreements."""

    NONE = "none"
    LINEAR = "linear"
    QUADRATIC = "quadratic"


class Scale(StrEnum):
    """The scale of measurement for Krippendorff's alpha."""

    NOMINAL = "nominal"
    ORDINAL = "ordinal"


def kappa_of_counts(counts: Floats, weighting: Weighting = Weighting.NONE) -> Floats:
    """Return Cohen's kappa of contingency tables of shape (..., categories, categories).

    The result is NaN if there are no cases, or if chance agreement is 1 (a single category).
    Source: J. Cohen, Educational and Psychological Measurement 20 (1960) 37; Psychological Bulletin
    70 (1968) 213.
    """
    steps = np.arange(counts.shape[-1])
    distance: Floats = np.abs(np.subtract.outer(steps, steps)).astype(np.float64)
    if weighting is Weighting.NONE:
        distance = (distance > 0).astype(np.float64)
    elif weighting is Weighting.QUADRATIC:
        distance **= 2
    total = counts.sum(axis=(-2, -1))
    by_chance = counts.sum(axis=-1)[..., :, None] * counts.sum(axis=-2)[..., None, :]
    expected = divide_all((distance * by_chance).sum(axis=(-2, -1)), total)
    return np.asarray(1 - divide_all((distance * counts).sum(axis=(-2, -1)), expected))


def fleiss_of_counts(counts: Floats, squares: Floats, n_readers: int) -> Floats:
    """Return Fleiss' kappa from sums over cases, each of which has `n_readers` ratings.

    `counts` (..., categories) holds how often each category was given, and `squares` (...) the sum
    of the squares of each case's counts. The result is NaN if there is only one category or no
    case. Source: J. L. Fleiss, Psychological Bulletin 76 (1971) 378.
    """
    total = counts.sum(axis=-1)
    share = divide_all(squares - total, total * (n_readers - 1))
    by_chance = (divide_all(counts, total[..., None]) ** 2).sum(axis=-1)
    return divide_all(share - by_chance, 1 - by_chance)


def count_pairs(counts: Floats) -> Floats:
    """Return the coincidence matrix of each case, with shape (cases, categories, categories).

    `counts` (cases, categories) is how often each category was given to the case. As in
    Krippendorff's coincidences, the pairs of a case have weight 1 / (ratings - 1), and a case with
    fewer than two ratings has no pairs.
    """
    n_ratings = counts.sum(axis=1)
    pairs = counts[:, :, None] * counts[:, None, :]
    index = np.arange(counts.shape[1])
    pairs[:, index, index] -= counts
    pairs /= np.maximum(n_ratings - 1, 1)[:, None, None]
    return np.asarray(pairs * (n_ratings >= 2)[:, None, None])


def alpha_of_pairs(pairs: Floats, scale: Scale = Scale.NOMINAL) -> Floats:
    """Return Krippendorff's alpha; `pairs` sums `count_pairs`, (..., categories, categories).

    The result is NaN if the expected disagreement is 0. Source: K. Krippendorff, Computing
    Krippendorff's alpha-reliability (2011).
    """
    totals = pairs.sum(axis=-1)
    n = totals.shape[-1]
    if scale is Scale.NOMINAL:
        distance = np.broadcast_to(1 - np.eye(n), pairs.shape)
    else:
        middle = np.cumsum(totals, axis=-1) - totals / 2
        distance = (middle[..., :, None] - middle[..., None, :]) ** 2
    expected = (distance * totals[..., :, None] * totals[..., None, :]).sum(axis=(-2, -1))
    told_apart = (distance * pairs).sum(axis=(-2, -1))
    return np.asarray(1 - (totals.sum(axis=-1) - 1) * divide_all(told_apart, expected))


@dataclass(frozen=True, slots=True)
class BlandAltman:
    """Mean of first - second, SD (n - 1) of these differences, and 95 % limits of agreement.

    All numbers are in the unit of the values. With fewer than two pairs all are NaN, except the
    bias of a single pair.
    """

    bias: float
    sd: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class RatioAgreement:
    """Geometric mean of first / second, and the limits that enclose 95 % of the ratios.

    `n_left_out` is the number of pairs without a ratio because a value is 0.
    """

    ratio: float
    low: float
    high: float
    n: int
    n_left_out: int


def bland_altman(first: Sequence[float], second: Sequence[float]) -> BlandAltman:
    """Compute the limits of agreement. Source: Bland and Altman, Lancet 327 (1986) 307."""
    gaps = np.subtract(first, second, dtype=np.float64)
    bias = float(gaps.mean()) if gaps.size else nan
    sd = float(gaps.std(ddof=1)) if gaps.size > 1 else nan
    return BlandAltman(bias, sd, bias - _NORMAL * sd, bias + _NORMAL * sd, gaps.size)


def compare_ratios(first: Sequence[float], second: Sequence[float]) -> RatioAgreement:
    """Compare two readers' volumes by ratio, because differences grow with the volume."""
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a > 0 and b > 0]
    logs = bland_altman([log(a) for a, _ in pairs], [log(b) for _, b in pairs])
    left_out = len(first) - len(pairs)
    return RatioAgreement(exp(logs.bias), exp(logs.low), exp(logs.high), logs.n, left_out)


def absolute_of_sums(n: Floats, sums: Floats, products: Floats) -> Floats:
    """Return ICC(A,1) from sums over cases: two-way random effects, absolute agreement, one rater.

    The result is NaN with fewer than 2 cases or readers. Source: K. O. McGraw, S. P. Wong,
    Psychological Methods 1 (1996) 30.

    Parameters
    ----------
    n
        Number of cases, (...).
    sums, products
        Sums of each reader's values, (..., readers), and sums of their products, (..., readers,
        readers). The overall mean is subtracted from the values first, for numerical precision.
    """
    k = sums.shape[-1]
    n = np.where(n > 1, n, nan)
    middle = sums.sum(axis=-1) ** 2 / (n * k)
    of_cases = products.sum(axis=(-2, -1)) / k - middle
    of_readers = (sums**2).sum(axis=-1) / n - middle
    rest = np.trace(products, axis1=-2, axis2=-1) - middle - of_cases - of_readers
    rows, columns, error = of_cases / (n - 1), of_readers / (k - 1), rest / ((n - 1) * (k - 1))
    return divide_all(rows - error, rows + (k - 1) * error + k * (columns - error) / n)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic with its 95 % bootstrap interval; cases are resampled.

    `n` is the number of counted cases. `n_undefined` is the number of resamples without a value,
    which are left out. Both limits of the interval are NaN if all resamples are undefined.
    """

    value: float
    low: float
    high: float
    n: int
    n_undefined: int = 0


def estimate_sums(
    statistic: Callable[[Floats], Floats],
    parts: Floats,
    n_resamples: int = N_RESAMPLES,
    seed: int = SEED,
) -> Estimate:
    """Return a statistic of sums over cases, with its bootstrap interval.

    Parameters
    ----------
    statistic
        Function from (..., m) sums to (...) numbers.
    parts
        Each case's contribution to the sums, (cases, m). A case with only zeros does not count and
        is not drawn.
    """
    parts = parts[(parts != 0).any(axis=1)]
    n = len(parts)
    if not n:
        return Estimate(nan, nan, nan, 0)
    places = np.random.default_rng(seed).integers(0, n, (n_resamples, n))
    places += n * np.arange(n_resamples)[:, None]
    times = np.bincount(places.ravel(), minlength=n * n_resamples).reshape(n_resamples, n)
    value = float(statistic(parts.sum(axis=0)))
    low, high, n_undefined = _interval_of(value, np.asarray(statistic(times @ parts)))
    return Estimate(value, low, high, n, n_undefined)


def estimate_mean(
    values: Sequence[float], n_resamples: int = N_RESAMPLES, seed: int = SEED
) -> Estimate:
    """Return the mean of the defined values (one per case), with its bootstrap interval."""
    defined = np.array([value for value in values if not isnan(value)], dtype=np.float64)
    parts = np.stack([defined, np.ones_like(defined)], axis=1)
    return estimate_sums(lambda sums: sums[..., 0] / sums[..., 1], parts, n_resamples, seed)


def _interval_of(estimate: float, values: Floats) -> tuple[float, float, int]:
    """Return the lower and upper limit of the interval, and the number of undefined resamples.

    The limits are NaN if the interval does not contain its estimate.
    """
    defined = values[~np.isnan(values)]
    ends = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    low, high = np.quantile(defined, ends) if defined.size else (nan, nan)
    return *keep_around(estimate, float(low), float(high)), int(values.size - defined.size)


def divide_all(parts: Floats, wholes: Floats) -> Floats:
    """Divide parts by wholes; return NaN where the whole is 0."""
    wholes = np.asarray(wholes, dtype=np.float64)
    return np.asarray(np.divide(parts, np.where(wholes == 0, nan, wholes)))
