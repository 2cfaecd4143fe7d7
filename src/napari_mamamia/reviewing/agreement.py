"""How far readers agree: categories, volumes, and intervals over cases; plain arrays.

The formulas are written out here: the libraries that have them are GPL (krippendorff, pingouin) or
large (statsmodels), and a base install takes neither. Tests hold them to those libraries' numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, log, nan

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
N_RESAMPLES = 1000
_NORMAL = 1.96
"""Standard deviations on either side that hold 95 % of differences, as Bland and Altman print."""

Rating = str | int | None
"""A category that a reader gave; None where the reader gave none."""


class Weighting(StrEnum):
    """How much two categories differ, in Cohen's kappa."""

    NONE = "none"
    LINEAR = "linear"
    QUADRATIC = "quadratic"


class Scale(StrEnum):
    """What categories are, in Krippendorff's alpha."""

    NOMINAL = "nominal"
    ORDINAL = "ordinal"


def cohen_kappa(
    first: Sequence[Rating],
    second: Sequence[Rating],
    order: Sequence[Rating],
    weighting: Weighting = Weighting.NONE,
) -> float:
    """Return Cohen's kappa of two readers over the cases that both rated.

    `order` lists the categories, in their order where one is weighted by. nan without a case, or
    where chance alone would agree always (one category). Source: J. Cohen, Educational and
    Psychological Measurement 20 (1960) 37; Psychological Bulletin 70 (1968) 213.

    Examples
    --------
    >>> round(cohen_kappa("aab", "abb", "ab"), 3)
    0.4
    """
    places = _number_pair(first, second, order)
    n = len(order)
    seen = np.zeros((n, n))
    np.add.at(seen, (places[:, 0], places[:, 1]), 1.0)
    distance = np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(np.float64)
    if weighting is Weighting.NONE:
        distance = (distance > 0).astype(np.float64)
    elif weighting is Weighting.QUADRATIC:
        distance **= 2
    by_chance = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / max(1.0, seen.sum())
    expected = float((distance * by_chance).sum())
    return nan if expected == 0 else 1 - float((distance * seen).sum()) / expected


def raw_agreement(first: Sequence[Rating], second: Sequence[Rating]) -> float:
    """Return the share of cases rated by both in which they gave the same category."""
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if None not in (a, b)]
    return sum(a == b for a, b in pairs) / len(pairs) if pairs else nan


def fleiss_kappa(ratings: Sequence[Sequence[Rating]], order: Sequence[Rating]) -> float:
    """Return Fleiss' kappa; `ratings` (cases, readers) must be complete.

    nan with one category alone, no case, or one reader. Source: J. L. Fleiss, Psychological
    Bulletin 76 (1971) 378.

    Raises
    ------
    ValueError
        If a rating is missing or the rows differ in length: `krippendorff_alpha` takes those.
    """
    counts = _count_ratings(ratings, order)
    n_readers = {int(n) for n in counts.sum(axis=1)}
    if len(n_readers) > 1 or any(None in row for row in ratings):
        raise ValueError(
            "Fleiss' kappa expects every reader's rating of every case, got some missing: take "
            "Krippendorff's alpha"
        )
    n = n_readers.pop() if n_readers else 0
    if n < 2:
        return nan
    agreed = ((counts**2).sum(axis=1) - n) / (n * (n - 1))
    by_chance = float(((counts.sum(axis=0) / counts.sum()) ** 2).sum())
    return nan if by_chance == 1 else (float(agreed.mean()) - by_chance) / (1 - by_chance)


def krippendorff_alpha(
    ratings: Sequence[Sequence[Rating]], order: Sequence[Rating], scale: Scale = Scale.NOMINAL
) -> float:
    """Return Krippendorff's alpha; `ratings` (cases, readers), None where one is missing.

    Cases with fewer than two ratings do not count; nan where no difference could be expected.
    Source: K. Krippendorff, Computing Krippendorff's alpha-reliability (2011).
    """
    counts = _count_ratings(ratings, order)
    counts = counts[counts.sum(axis=1) >= 2]
    n = len(order)
    pairs = np.zeros((n, n))
    for row in counts:
        pairs += (np.outer(row, row) - np.diag(row)) / (row.sum() - 1)
    totals = pairs.sum(axis=1)
    if scale is Scale.NOMINAL:
        distance = 1 - np.eye(n)
    else:
        ends = np.cumsum(totals)
        middle = ends - totals / 2
        distance = np.subtract.outer(middle, middle) ** 2
    expected = float((distance * np.outer(totals, totals)).sum())
    if expected == 0:
        return nan
    return 1 - float(totals.sum() - 1) * float((distance * pairs).sum()) / expected


@dataclass(frozen=True, slots=True)
class BlandAltman:
    """Mean of first - second, SD (n - 1) of the differences, and limits that hold 95 % of them.

    In the unit of the values. nan with fewer than two pairs, the bias alone with none.
    """

    bias: float
    sd: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class RatioAgreement:
    """Geometric mean of first / second and the limits that hold 95 % of the ratios.

    `n_left_out` are pairs in which a value is 0: they have no ratio.
    """

    ratio: float
    low: float
    high: float
    n: int
    n_left_out: int


def bland_altman(first: Sequence[float], second: Sequence[float]) -> BlandAltman:
    """Return how two readers' values differ. Source: Bland and Altman, Lancet 327 (1986) 307."""
    gaps = np.subtract(first, second, dtype=np.float64)
    bias = float(gaps.mean()) if gaps.size else nan
    sd = float(gaps.std(ddof=1)) if gaps.size > 1 else nan
    return BlandAltman(bias, sd, bias - _NORMAL * sd, bias + _NORMAL * sd, gaps.size)


def compare_ratios(first: Sequence[float], second: Sequence[float]) -> RatioAgreement:
    """Return how two readers' volumes differ as a ratio: their spread grows with the volume."""
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a > 0 and b > 0]
    logs = bland_altman([log(a) for a, _ in pairs], [log(b) for _, b in pairs])
    left_out = len(first) - len(pairs)
    return RatioAgreement(exp(logs.bias), exp(logs.low), exp(logs.high), logs.n, left_out)


@dataclass(frozen=True, slots=True)
class IntraclassCorrelation:
    """Three forms by McGraw and Wong: say which one is meant.

    `absolute` is ICC(A,1): two-way random, absolute agreement, one reader; the one to report.
    `consistent` is ICC(C,1), which forgives a reader's constant shift; `one_way` is ICC(1,1).
    """

    absolute: float
    consistent: float
    one_way: float


def intraclass_correlation(values: NDArray[np.float64]) -> IntraclassCorrelation:
    """Return the correlation of (cases, readers) complete values; nan with under 2 of either.

    Source: K. O. McGraw, S. P. Wong, Psychological Methods 1 (1996) 30.
    """
    n, k = values.shape
    if min(n, k) < 2:
        return IntraclassCorrelation(nan, nan, nan)
    mean = values.mean()
    of_cases = k * ((values.mean(axis=1) - mean) ** 2).sum()
    of_readers = n * ((values.mean(axis=0) - mean) ** 2).sum()
    rest = ((values - mean) ** 2).sum() - of_cases - of_readers
    rows, columns = of_cases / (n - 1), of_readers / (k - 1)
    error, within = rest / ((n - 1) * (k - 1)), (rest + of_readers) / (n * (k - 1))
    return IntraclassCorrelation(
        _divide_parts(rows - error, rows + (k - 1) * error + k * (columns - error) / n),
        _divide_parts(rows - error, rows + (k - 1) * error),
        _divide_parts(rows - within, rows + (k - 1) * within),
    )


def interval_over_cases(
    statistic: Callable[[NDArray[np.intp]], float],
    n_cases: int,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> tuple[float, float, int]:
    """Return the 95 % percentile interval of a number over resampled cases.

    `statistic` takes the places of the drawn cases. The third value counts resamples in which it
    was undefined: they are left out, and both ends are nan if that were all.
    """
    draw = np.random.default_rng(seed)
    values = np.array(
        [
            statistic(draw.integers(0, n_cases, n_cases))
            for _ in range(n_resamples if n_cases else 0)
        ]
    )
    defined = values[~np.isnan(values)]
    if not defined.size:
        return nan, nan, values.size
    low, high = np.quantile(defined, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high), int(values.size - defined.size)


def _number_pair(
    first: Sequence[Rating], second: Sequence[Rating], order: Sequence[Rating]
) -> NDArray[np.intp]:
    """Return the categories' places, (cases rated by both, 2)."""
    place = {category: at for at, category in enumerate(order)}
    _require_known([*first, *second], place)
    rated = [(a, b) for a, b in zip(first, second, strict=True) if None not in (a, b)]
    return np.array([(place[a], place[b]) for a, b in rated], dtype=np.intp).reshape(-1, 2)


def _count_ratings(
    ratings: Sequence[Sequence[Rating]], order: Sequence[Rating]
) -> NDArray[np.float64]:
    """Return how often each case (row) was given each category (column)."""
    place = {category: at for at, category in enumerate(order)}
    counts = np.zeros((len(ratings), len(order)))
    for at, row in enumerate(ratings):
        _require_known(row, place)
        for category in row:
            if category is not None:
                counts[at, place[category]] += 1
    return counts


def _require_known(ratings: Sequence[Rating], place: dict[Rating, int]) -> None:
    unknown = sorted({str(one) for one in ratings if one is not None and one not in place})
    if unknown:
        names = ", ".join(str(one) for one in place)
        raise ValueError(f"expected the categories {names}, got {', '.join(unknown)} too")


def _divide_parts(part: float, whole: float) -> float:
    return float(part / whole) if whole else nan
