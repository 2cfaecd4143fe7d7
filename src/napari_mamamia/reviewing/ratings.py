"""How far readers agree on a question of a form, pair by pair and all together."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isnan, log, nan
from typing import Any

import numpy as np

from napari_mamamia.reviewing.agreement import (
    BlandAltman,
    Estimate,
    Floats,
    RatioAgreement,
    Scale,
    Weighting,
    absolute_of_sums,
    alpha_of_pairs,
    bland_altman,
    compare_ratios,
    count_pairs,
    estimate_mean,
    estimate_sums,
    fleiss_of_counts,
    kappa_of_counts,
)
from napari_mamamia.reviewing.questions import Question, QuestionKind, Unit, order_categories


@dataclass(frozen=True, slots=True)
class PairedCategories:
    """Two readers' categories: the share that is the same, Cohen's kappa unweighted and weighted.

    Weights need an order: `linear` and `quadratic` are None where the categories have none.
    `n_alone` lesions are not in it: one of the two alone answered about them, though both read the
    case.
    """

    first: str
    second: str
    n: int
    same: float
    kappa: Estimate
    linear: Estimate | None
    quadratic: Estimate | None
    n_alone: int = 0


@dataclass(frozen=True, slots=True)
class CategoryAgreement:
    """How far readers agree on a question of categories.

    Parameters
    ----------
    prevalence
        The share of each category among all answers, in their order.
    is_ordered
        Whether the order means something: from the form, or all categories are numbers.
    fleiss, n_fleiss_left_out
        Over what has the usual number of answers (`n_readers`), and how much has not.
    alpha, alpha_ordinal
        Krippendorff's, nominal and ordinal; the latter None without an order.
    n_alone
        Lesions of which one reader alone answered, though others read the case: in no kappa or
        alpha.
    """

    question: str
    kind: QuestionKind
    n_rated: int
    n_answers: int
    prevalence: tuple[tuple[str, float], ...]
    is_ordered: bool
    pairs: tuple[PairedCategories, ...]
    fleiss: Estimate
    n_readers: int
    n_fleiss_left_out: int
    alpha: Estimate
    alpha_ordinal: Estimate | None
    n_alone: int = 0


@dataclass(frozen=True, slots=True)
class PairedValues:
    """Two readers' numbers, first - second and first / second; ICC(A,1) as `icc`."""

    first: str
    second: str
    n: int
    bland_altman: BlandAltman
    bias: Estimate
    ratio: RatioAgreement
    log_ratio: Estimate
    icc: Estimate


@dataclass(frozen=True, slots=True)
class NumberAgreement:
    """How far readers agree on a question that is answered by a number; `n_alone` as above."""

    question: str
    n_rated: int
    n_answers: int
    pairs: tuple[PairedValues, ...]
    n_alone: int = 0


def compare_categories(
    question: Question,
    readers: Sequence[str],
    order: Sequence[str] = (),
    n_resamples: int = 1000,
    seed: int = 0,
) -> CategoryAgreement:
    """Return how far readers agree on a question of categories; intervals are over cases."""
    categories, is_ordered = order_categories(question, order)
    units = sorted(question.ratings)
    place = {category: at for at, category in enumerate(categories)}
    counts = np.zeros((len(units), len(categories)))
    for at, unit in enumerate(units):
        for value in question.ratings[unit].values():
            counts[at, place[value]] += 1
    cases = np.array([case for case, _ in units], dtype=np.intp)
    n_answers = counts.sum(axis=1)
    usual = _find_usual(n_answers)
    is_usual = n_answers == usual
    made_of = np.column_stack((counts, (counts**2).sum(axis=1)))[is_usual]

    def fleiss(sums: Floats) -> Floats:
        return fleiss_of_counts(sums[..., :-1], sums[..., -1], usual)

    def alpha(scale: Scale) -> Estimate:
        parts = count_pairs(counts).reshape(len(units), -1)
        shape = (len(categories), len(categories))
        return estimate_sums(
            lambda sums: alpha_of_pairs(sums.reshape(*sums.shape[:-1], *shape), scale),
            sum_by_case(parts, cases),
            n_resamples,
            seed,
        )

    total = max(1.0, float(counts.sum()))
    shares = counts.sum(axis=0) / total
    pairs = [
        _compare_pair(question, units, pair, place, is_ordered, (n_resamples, seed))
        for pair in combinations(readers, 2)
    ]
    return CategoryAgreement(
        question.name,
        question.kind,
        len(units),
        int(counts.sum()),
        tuple(zip(categories, map(float, shares), strict=True)),
        is_ordered,
        tuple(one for one in pairs if one.n or one.n_alone),
        estimate_sums(fleiss, sum_by_case(made_of, cases[is_usual]), n_resamples, seed)
        if usual >= 2
        else Estimate(nan, nan, nan, 0),
        usual,
        int((~is_usual).sum()),
        alpha(Scale.NOMINAL),
        alpha(Scale.ORDINAL) if is_ordered else None,
        question.count_alone(),
    )


def _find_usual(n_answers: Floats) -> int:
    """Return the number of answers that most units have, the larger of equals."""
    counted = Counter(int(n) for n in n_answers)
    return max(counted, key=lambda n: (counted[n], n), default=0)


def _compare_pair(
    question: Question,
    units: Sequence[Unit],
    pair: tuple[str, str],
    place: Mapping[str, int],
    is_ordered: bool,
    resampling: tuple[int, int],
) -> PairedCategories:
    first, second = pair
    n = len(place)
    rows, cases = [], []
    for unit in units:
        row = question.ratings[unit]
        if first in row and second in row:
            rows.append((place[row[first]], place[row[second]]))
            cases.append(unit[0])
    at = np.array(rows, dtype=np.intp).reshape(-1, 2)
    parts = np.zeros((len(rows), n * n))
    parts[np.arange(len(rows)), at[:, 0] * n + at[:, 1]] = 1
    summed = sum_by_case(parts, np.array(cases, dtype=np.intp))

    def kappa(weighting: Weighting) -> Estimate:
        return estimate_sums(
            lambda sums: kappa_of_counts(sums.reshape(*sums.shape[:-1], n, n), weighting),
            summed,
            *resampling,
        )

    same = float((at[:, 0] == at[:, 1]).mean()) if rows else nan
    linear = kappa(Weighting.LINEAR) if is_ordered else None
    quadratic = kappa(Weighting.QUADRATIC) if is_ordered else None
    return PairedCategories(
        first,
        second,
        len(rows),
        same,
        kappa(Weighting.NONE),
        linear,
        quadratic,
        question.count_alone(first, second),
    )


def sum_by_case(parts: Floats, cases: np.ndarray[Any, np.dtype[np.intp]]) -> Floats:
    """Return what each case adds, (cases, m): both breasts of a patient are drawn together."""
    if not len(cases):
        return parts
    _, at = np.unique(cases, return_inverse=True)
    sums = np.zeros((int(at.max()) + 1, parts.shape[1]))
    np.add.at(sums, at, parts)
    return sums


def compare_numbers(
    question: Question, readers: Sequence[str], n_resamples: int = 1000, seed: int = 0
) -> NumberAgreement:
    """Return how far readers agree on a question of numbers; breasts of a case count apart."""
    rows = list(question.ratings.values())
    pairs = []
    for first, second in combinations(readers, 2):
        both = [(row[first], row[second]) for row in rows if first in row and second in row]
        if both:
            pairs.append(compare_values(first, second, both, n_resamples, seed))
    n_answers = sum(map(len, rows))
    return NumberAgreement(
        question.name, len(rows), n_answers, tuple(pairs), question.count_alone()
    )


def compare_values(
    first: str,
    second: str,
    values: Sequence[tuple[float, float]],
    n_resamples: int = 1000,
    seed: int = 0,
) -> PairedValues:
    """Return how far two readers' numbers agree: (first, second) of each case; nan left out."""
    values = [(a, b) for a, b in values if not (isnan(a) or isnan(b))]
    ones, others = [a for a, _ in values], [b for _, b in values]
    pairs = np.array(values, dtype=np.float64).reshape(-1, 2)
    centred = pairs - (pairs.mean() if pairs.size else 0.0)
    parts = np.column_stack(
        (np.ones(len(pairs)), centred, centred[:, :1] * centred, centred[:, 1:] * centred)
    )

    def icc(sums: Floats) -> Floats:
        products = sums[..., 3:].reshape(*sums.shape[:-1], 2, 2)
        return absolute_of_sums(sums[..., 0], sums[..., 1:3], products)

    return PairedValues(
        first,
        second,
        len(values),
        bland_altman(ones, others),
        estimate_mean([a - b for a, b in values], n_resamples, seed),
        compare_ratios(ones, others),
        estimate_mean([log(a / b) for a, b in values if a > 0 and b > 0], n_resamples, seed),
        estimate_sums(icc, parts, n_resamples, seed),
    )
