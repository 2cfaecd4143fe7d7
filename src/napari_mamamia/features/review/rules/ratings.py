"""Reader agreement on the questions of a form, for pairs of readers and for all readers.

A reading stores its answers as JSON. A string is one category, and a list of strings several
categories. An object with ``number`` is a number, and an object with ``text`` is free text. Keys
``ID@right`` and ``ID@left`` refer to a breast, and ``ID@1`` to a lesion. Keys that begin with ``@``
are not answers.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import combinations
from math import isfinite, isnan, nan
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.progress import report_progress
from napari_mamamia.features.review.rules.agreement import (
    N_RESAMPLES,
    SEED,
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
    divide_all,
    estimate_sums,
    fleiss_of_counts,
    kappa_of_counts,
)
from napari_mamamia.findings.form_values import list_computed

_BREASTS: Final = ("right", "left")
_YES, _NO = "yes", "no"
_LESION: Final = "lesion"
Unit = tuple[int, str]
"""What is rated: the index of the case, and "", a breast, or a lesion such as "lesion 1"."""


class QuestionKind(StrEnum):
    """The type of a question's answers; the values are written to files."""

    CATEGORY = "category"
    SEVERAL = "several"
    NUMBER = "number"
    TEXT = "text"


@dataclass(slots=True)
class Question:
    """A question with its answers; `ratings` maps each rated unit to the answer of each reader.

    `readers` lists the readers of each case, by case index. `n_computed` is the number of answers
    filled in by the program and not changed by a reader.
    """

    name: str
    kind: QuestionKind
    ratings: dict[Unit, dict[str, Any]] = field(default_factory=dict)
    readers: Mapping[int, set[str]] = field(default_factory=dict)
    n_computed: int = 0

    def count_alone(self, *pair: str) -> int:
        """Count the lesions about which one reader answered although others read the case.

        If two readers are given, count the lesions with an answer from only one of them, in cases
        that both readers read. The other reader either did not mark the lesion or did not answer
        the question.
        """
        n_alone = 0
        for (at, place), row in self.ratings.items():
            readers = self.readers.get(at, set())
            among = readers & set(pair) if pair else readers
            is_read = len(among) > 1
            n_alone += place.startswith(_LESION) and is_read and len(among & set(row)) == 1
        return n_alone


@dataclass(frozen=True, slots=True)
class ReaderAnswers:
    """The answers of a reading as canonical JSON, with the index of the case in the study.

    `lesions` maps the reader's lesion numbers to numbers shared by all readers; it is None if there
    are no masks.
    """

    at: int
    reader: str
    answers: str
    lesions: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class QuestionTable:
    """Questions sorted by name; `notes` lists questions that cannot be compared, with reasons.

    `n_unmatched` is the number of readings that describe a lesion that is not in their mask, or
    that describe several lesions but have no mask. The answers about these lesions are not
    compared.
    """

    questions: tuple[Question, ...]
    notes: tuple[tuple[str, str], ...] = ()
    n_unmatched: int = 0


def collect_questions(readings: Iterable[ReaderAnswers]) -> QuestionTable:
    """Collect all answered questions; `readings` has at most one reading per reader and case."""
    kinds: dict[str, set[QuestionKind]] = {}
    given: dict[str, dict[Unit, dict[str, Any]]] = {}
    n_unmatched = 0
    n_computed: Counter[str] = Counter()
    readers: dict[int, set[str]] = {}
    for reading in readings:
        readers.setdefault(reading.at, set()).add(reading.reader)
        answers, is_unmatched = _parse_answers(reading.answers, reading.lesions)
        n_unmatched += is_unmatched
        for name, place, kind, value, is_computed in answers:
            n_computed[name] += is_computed
            kinds.setdefault(name, set())
            if value != []:
                kinds[name].add(kind)
            given.setdefault(name, {}).setdefault((reading.at, place), {})[reading.reader] = value
    questions: list[Question] = []
    notes = []
    for name in sorted(given):
        if len(kinds[name]) > 1:
            text = f"it has answers of different types ({', '.join(sorted(kinds[name]))})"
            notes.append((name, text))
        elif kinds[name] == {QuestionKind.SEVERAL}:
            questions += _split_choices(name, given[name], readers)
        elif kinds[name]:
            kind = kinds[name].pop()
            rows = _drop_empty(given[name])
            questions.append(Question(name, kind, rows, readers, n_computed[name]))
    return QuestionTable(tuple(questions), tuple(notes), n_unmatched)


def _parse_answers(
    text: str, names: Mapping[str, str] | None
) -> tuple[list[tuple[str, str, QuestionKind, Any, bool]], bool]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        record = {}
    answers = []
    computed = list_computed(record) if isinstance(record, dict) else frozenset()
    lesions = set()
    is_unmatched = False
    for key, value in record.items() if isinstance(record, dict) else ():
        name, _, place = key.partition("@")
        kind, plain = _read_value(value)
        if not name or kind is None:
            continue
        if place and place not in _BREASTS:
            lesions.add(place)
            number = "1" if names is None else names.get(place)
            if number is None:
                is_unmatched = True
                continue
            place = f"{_LESION} {number}"
        answers.append((name, place, kind, plain, key in computed))
    if names is None and len(lesions) > 1:
        return [answer for answer in answers if not answer[1].startswith(_LESION)], True
    return answers, is_unmatched


def _read_value(value: Any) -> tuple[QuestionKind | None, Any]:
    if isinstance(value, str):
        return QuestionKind.CATEGORY, value
    if isinstance(value, bool):
        return QuestionKind.CATEGORY, _YES if value else _NO
    if isinstance(value, int):
        return QuestionKind.NUMBER, float(value)
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return QuestionKind.SEVERAL, value
    if isinstance(value, dict) and isinstance(value.get("number"), str):
        try:
            number = float(value["number"])
        except ValueError:
            return None, None
        return (QuestionKind.NUMBER, number) if isfinite(number) else (None, None)
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        return QuestionKind.TEXT, value["text"]
    return None, None


def _split_choices(
    name: str,
    given: Mapping[Unit, Mapping[str, list[str]]],
    readers: Mapping[int, set[str]],
) -> list[Question]:
    terms = sorted({term for row in given.values() for chosen in row.values() for term in chosen})
    return [
        Question(
            f"{name}: {term}",
            QuestionKind.SEVERAL,
            {
                unit: {reader: _YES if term in chosen else _NO for reader, chosen in row.items()}
                for unit, row in given.items()
            },
            readers,
        )
        for term in terms
    ]


def _drop_empty(given: Mapping[Unit, Mapping[str, Any]]) -> dict[Unit, dict[str, Any]]:
    rows = {
        unit: {reader: value for reader, value in row.items() if value != []}
        for unit, row in given.items()
    }
    return {unit: row for unit, row in rows.items() if row}


def order_categories(question: Question, order: Sequence[str] = ()) -> tuple[tuple[str, ...], bool]:
    """Return a question's sorted categories, and whether their order is meaningful.

    `order` is the order in the form; categories that it does not contain come last and make the
    order meaningless. Without `order`, whole numbers are sorted as numbers, and other categories
    alphabetically.
    """
    used = {value for row in question.ratings.values() for value in row.values()}
    if order:
        rest = sorted(used - set(order))
        return (*order, *rest), not rest and question.kind is QuestionKind.CATEGORY
    if used and all(value.isdecimal() and value.isascii() for value in used):
        return tuple(sorted(used, key=lambda value: (int(value), value))), True
    return tuple(sorted(used)), False


@dataclass(frozen=True, slots=True)
class PairedCategories:
    """Two readers' agreement on categories: percentage, and unweighted and weighted kappa.

    Weights need ordered categories; otherwise `linear` and `quadratic` are None. `n_alone` is the
    number of excluded lesions, about which only one of the two readers answered although both read
    the case.
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
    """Reader agreement on a category question.

    Parameters
    ----------
    prevalence
        The proportion of each category among all answers, in the order of the categories.
    is_ordered
        Whether the order is meaningful: it comes from the form, or all categories are numbers.
    fleiss, n_fleiss_left_out
        Fleiss' kappa over the units with the most frequent number of answers (`n_readers`), and the
        number of excluded units.
    alpha, alpha_ordinal
        Krippendorff's alpha, nominal and ordinal; the latter is None without an order.
    n_alone
        Number of lesions with an answer from one reader only although others read the case; these
        are excluded from kappa and alpha.
    n_compared, n_computed
        Number of units with at least two answers, and number of answers filled in by the program.
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
    n_compared: int = 0
    n_computed: int = 0


@dataclass(frozen=True, slots=True)
class PairedValues:
    """Agreement of two readers' numbers: differences, ratios, and ICC(A,1) as `icc`."""

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
    """Reader agreement on a numeric question; the counts are explained in `CategoryAgreement`."""

    question: str
    n_rated: int
    n_answers: int
    pairs: tuple[PairedValues, ...]
    n_alone: int = 0
    n_computed: int = 0


def compare_table(
    table: QuestionTable,
    readers: Sequence[str],
    orders: Mapping[str, Sequence[str]],
    sizes: tuple[int, int],
    cases: Sequence[int] = (),
) -> tuple[tuple[CategoryAgreement, ...], tuple[NumberAgreement, ...]]:
    """Compute the reader agreement on all questions except those with free text.

    Parameters
    ----------
    table
        The questions with their answers.
    readers
        Ids of the readers.
    orders
        Sorted categories by question.
    sizes
        Number of resamples, and seed.
    cases
        The patient of each unit index, if several units belong to one patient; empty if each unit
        is a different patient.
    """
    categories, numbers = [], []
    for index, question in enumerate(table.questions):
        report_progress(index, len(table.questions), f"Comparing answers: {question.name}")
        if question.kind is QuestionKind.NUMBER:
            numbers.append(compare_numbers(question, readers, *sizes, cases))
        elif question.kind is not QuestionKind.TEXT:
            order = orders.get(question.name, ())
            categories.append(compare_categories(question, readers, order, *sizes, cases))
    return tuple(categories), tuple(numbers)


def compare_categories(
    question: Question,
    readers: Sequence[str],
    order: Sequence[str] = (),
    n_resamples: int = N_RESAMPLES,
    seed: int = SEED,
    cases: Sequence[int] = (),
) -> CategoryAgreement:
    """Compute the reader agreement on a category question; for `cases` see `compare_table`."""
    categories, is_ordered = order_categories(question, order)
    units = sorted(question.ratings)
    place = {category: index for index, category in enumerate(categories)}
    counts = np.zeros((len(units), len(categories)))
    for at, unit in enumerate(units):
        for value in question.ratings[unit].values():
            counts[at, place[value]] += 1
    of_cases = _list_cases(units, cases)
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
            sum_by_case(parts, of_cases),
            n_resamples,
            seed,
        )

    total = max(1.0, float(counts.sum()))
    shares = counts.sum(axis=0) / total
    pairs = [
        _compare_pair(question, units, of_cases, pair, place, is_ordered, (n_resamples, seed))
        for pair in combinations(readers, 2)
    ]
    return CategoryAgreement(
        question.name,
        question.kind,
        len(units),
        int(counts.sum()),
        tuple(zip(categories, map(float, shares), strict=True)),
        is_ordered,
        tuple(pair for pair in pairs if pair.n or pair.n_alone),
        estimate_sums(fleiss, sum_by_case(made_of, of_cases[is_usual]), n_resamples, seed)
        if usual >= 2
        else Estimate(nan, nan, nan, 0),
        usual,
        int((~is_usual).sum()),
        alpha(Scale.NOMINAL),
        alpha(Scale.ORDINAL) if is_ordered else None,
        question.count_alone(),
        int((n_answers > 1).sum()),
        question.n_computed,
    )


def _list_cases(units: Sequence[Unit], cases: Sequence[int]) -> NDArray[np.intp]:
    return np.array([cases[index] if cases else index for index, _ in units], dtype=np.intp)


def _find_usual(n_answers: Floats) -> int:
    counted = Counter(int(n) for n in n_answers)
    return max(counted, key=lambda n: (counted[n], n), default=0)


def _compare_pair(
    question: Question,
    units: Sequence[Unit],
    of_cases: NDArray[np.intp],
    pair: tuple[str, str],
    place: Mapping[str, int],
    is_ordered: bool,
    resampling: tuple[int, int],
) -> PairedCategories:
    first, second = pair
    n = len(place)
    rows, cases = [], []
    for unit, case in zip(units, of_cases, strict=True):
        row = question.ratings[unit]
        if first in row and second in row:
            rows.append((place[row[first]], place[row[second]]))
            cases.append(case)
    index = np.array(rows, dtype=np.intp).reshape(-1, 2)
    parts = np.zeros((len(rows), n * n))
    parts[np.arange(len(rows)), index[:, 0] * n + index[:, 1]] = 1
    summed = sum_by_case(parts, np.array(cases, dtype=np.intp))

    def kappa(weighting: Weighting) -> Estimate:
        return estimate_sums(
            lambda sums: kappa_of_counts(sums.reshape(*sums.shape[:-1], n, n), weighting),
            summed,
            *resampling,
        )

    same = float((index[:, 0] == index[:, 1]).mean()) if rows else nan
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


def sum_by_case(parts: Floats, cases: NDArray[np.intp]) -> Floats:
    """Sum rows by case to (cases, m), so that both breasts of a patient are resampled together."""
    if not len(cases):
        return parts
    _, at = np.unique(cases, return_inverse=True)
    sums = np.zeros((int(at.max()) + 1, parts.shape[1]))
    np.add.at(sums, at, parts)
    return sums


def compare_numbers(
    question: Question,
    readers: Sequence[str],
    n_resamples: int = N_RESAMPLES,
    seed: int = SEED,
    cases: Sequence[int] = (),
) -> NumberAgreement:
    """Compute the reader agreement on a numeric question; for `cases` see `compare_table`."""
    rows = question.ratings
    pairs = []
    for first, second in combinations(readers, 2):
        units = [unit for unit, row in rows.items() if first in row and second in row]
        if units:
            both = [(rows[unit][first], rows[unit][second]) for unit in units]
            of_cases = _list_cases(units, cases)
            pairs.append(compare_values(first, second, both, n_resamples, seed, of_cases))
    n_answers = sum(map(len, rows.values()))
    counts = (question.count_alone(), question.n_computed)
    return NumberAgreement(question.name, len(rows), n_answers, tuple(pairs), *counts)


def compare_values(
    first: str,
    second: str,
    values: Sequence[tuple[float, float]],
    n_resamples: int = N_RESAMPLES,
    seed: int = SEED,
    cases: NDArray[np.intp] | None = None,
) -> PairedValues:
    """Compute the agreement of two readers' numbers; pairs with a NaN are left out.

    Parameters
    ----------
    first, second
        Ids of the readers.
    values
        Pairs of values (first, second), one per breast, lesion or case.
    n_resamples, seed
        Number of bootstrap resamples, and their seed.
    cases
        The case of each pair; values of a case are resampled together. None if each pair is one
        case.
    """
    cases = np.arange(len(values)) if cases is None else cases
    places = [index for index, (a, b) in enumerate(values) if not (isnan(a) or isnan(b))]
    values, of_cases = [values[index] for index in places], cases[places]
    ones, others = [a for a, _ in values], [b for _, b in values]
    pairs = np.array(values, dtype=np.float64).reshape(-1, 2)
    from_mean = pairs - (pairs.mean() if pairs.size else 0.0)
    parts = np.column_stack(
        (np.ones(len(pairs)), from_mean, from_mean[:, :1] * from_mean, from_mean[:, 1:] * from_mean)
    )

    def icc(sums: Floats) -> Floats:
        products = sums[..., 3:].reshape(*sums.shape[:-1], 2, 2)
        return absolute_of_sums(sums[..., 0], sums[..., 1:3], products)

    def estimate(of: Floats, which: NDArray[np.bool_]) -> Estimate:
        with_number = np.column_stack((of, np.ones(len(of))))
        by_case = sum_by_case(with_number, of_cases[which])
        return estimate_sums(
            lambda sums: divide_all(sums[..., 0], sums[..., 1]), by_case, n_resamples, seed
        )

    has_ratio: NDArray[np.bool_] = np.all(pairs > 0, axis=1)
    logs = np.log(pairs[has_ratio, 0] / pairs[has_ratio, 1])
    return PairedValues(
        first,
        second,
        len(values),
        bland_altman(ones, others),
        estimate(pairs[:, 0] - pairs[:, 1], np.ones(len(pairs), np.bool_)),
        compare_ratios(ones, others),
        estimate(logs, has_ratio),
        estimate_sums(icc, sum_by_case(parts, of_cases), n_resamples, seed),
    )
