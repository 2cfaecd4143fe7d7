"""Quality control of reference masks: reading order, errors found, and stopping rule.

A random part comes first, so that the error rate can be estimated without bias. The other cases
follow in order of the disagreement between model and reference. Definitions:
docs/methods/quality.md.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from statistics import median
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.names import count_of
from napari_mamamia.features.review.core.quality import RANDOM_SHARE, QualityCase, Queue, QueuePlace

DICE_STEP: Final = 0.05
"""Width of the Dice bins; within a bin, cases are ordered by other criteria (our choice)."""
TARGET: Final = 0.95
CONFIDENCE: Final = 0.95
OUTLIER_SCORE: Final = 3.5
"""Threshold for the modified z-score of the logarithm of a volume, within its site.

Source: B. Iglewicz, D. C. Hoaglin, How to Detect and Handle Outliers (1993): above 3.5.
"""
_LEAST_AT_SITE: Final = 5
_STEEP: Final = 0.6745  # quartile of the normal distribution: MAD to SD
_NEVER: Final = math.inf


def order_queue(
    cases: Sequence[QualityCase], seed: int, random_share: float = RANDOM_SHARE
) -> Queue:
    """Return the reading order: a random part, then the other cases, largest disagreement first.

    The random part consists of the cases with the smallest SHA-256 of seed and id, independent of
    the order of the table. The size of this part is rounded up.

    Raises
    ------
    CaseError
        If there is no case, a case occurs twice, or the share is not within 0 to 1.
    """
    ids = [case.case_id for case in cases]
    if not ids or len(set(ids)) < len(ids):
        twice = next((identifier for identifier in ids if ids.count(identifier) > 1), "")
        raise CaseError(
            "expected at least one case, and each only once, but found "
            f"{repr(twice) + ' twice' if twice else 'none'}: correct the table"
        )
    if not 0 <= random_share <= 1:
        raise CaseError(
            "expected the proportion of random cases to be from 0 to 1, but it is "
            f"{random_share:g}: enter 0.1 for one case in ten"
        )
    outliers = find_volume_outliers(cases)
    ranked = sorted(cases, key=lambda case: _rank_case(case, case.case_id in outliers))
    ranks = {one.case_id: index for index, one in enumerate(ranked, start=1)}
    # in floating point 0.1 * 30 is slightly more than 3
    n_random = math.ceil(round(random_share * len(cases), 9))
    draws = {
        identifier: index
        for index, identifier in enumerate(
            sorted(ids, key=lambda identifier: _draw_number(seed, identifier)), start=1
        )
    }
    words = {case.case_id: describe_case(case, case.case_id in outliers) for case in cases}
    places = [
        QueuePlace(
            identifier,
            draws[identifier] <= n_random,
            ranks[identifier],
            draws[identifier],
            words[identifier],
        )
        for identifier in ids
    ]
    places.sort(key=lambda one: (not one.is_random, one.draw if one.is_random else one.rank))
    return Queue(tuple(places), seed, random_share)


def find_volume_outliers(cases: Iterable[QualityCase]) -> frozenset[str]:
    """Return the ids of cases whose volume is an outlier within their site.

    The criterion is the modified z-score of the logarithm. Sites with fewer than 5 volumes, or with
    more than half of them equal, have no outliers.
    """
    by_site: dict[str, list[QualityCase]] = {}
    for case in cases:
        if case.site and case.volume_mm3 > 0:
            by_site.setdefault(case.site, []).append(case)
    outliers = set()
    for group in by_site.values():
        logs = [math.log(one.volume_mm3) for one in group]
        centre = median(logs)
        spread = median(abs(value - centre) for value in logs)
        if len(group) < _LEAST_AT_SITE or spread == 0:
            continue
        outliers |= {
            one.case_id
            for one, value in zip(group, logs, strict=True)
            if _STEEP * abs(value - centre) / spread > OUTLIER_SCORE
        }
    return frozenset(outliers)


def describe_case(case: QualityCase, is_outlier: bool) -> str:
    """Describe the disagreement between model and reference in a case."""
    parts = [
        case.remark,
        "" if math.isnan(case.dice) else f"Dice {case.dice:.3f}",
        f"{count_of(round(case.n_missed), 'lesion')} missed" if case.n_missed > 0 else "",
        "other side" if case.is_other_side else "",
        f"number of lesions differs by {case.count_gap:.0f}" if case.count_gap > 0 else "",
        "" if math.isnan(case.hd95_mm) else f"HD95 {case.hd95_mm:.1f} mm",
        "" if math.isnan(case.doubt) else f"doubt {case.doubt:.3g}",
        "touches the image border" if case.touches_border else "",
        "unusual volume for its site" if is_outlier else "",
    ]
    return "; ".join(part for part in parts if part)


def _rank_case(case: QualityCase, is_outlier: bool) -> tuple[float | str, ...]:
    dice = 0.0 if math.isnan(case.dice) and case.remark else case.dice
    step = _NEVER if math.isnan(dice) else math.floor(round(dice / DICE_STEP, 9))
    return (
        step,
        _most_first(case.n_missed),
        -float(case.is_other_side is True),
        _most_first(case.count_gap),
        _most_first(case.hd95_mm),
        _most_first(case.doubt),
        -float(case.touches_border is True),
        -float(is_outlier),
        _NEVER if math.isnan(dice) else dice,
        case.case_id,
    )


def _most_first(value: float) -> float:
    return _NEVER if math.isnan(value) else -value


def _draw_number(seed: int, case_id: str) -> str:
    return hashlib.sha256(f"{seed}:{case_id}".encode("utf-8", "surrogatepass")).hexdigest()


# ------------------------------------------------------------------------- capture


@dataclass(frozen=True, slots=True)
class ErrorRate:
    """The proportion of cases with an error, estimated from the random part, with its 95 % CI.

    Of `n_read` random cases, `n_errors` had an error. The rate is NaN if no case was read.
    """

    rate: float
    low: float
    high: float
    n_read: int
    n_errors: int


@dataclass(frozen=True, slots=True)
class CapturePoint:
    """The number of errors found after reading a number of cases."""

    n_read: int
    n_errors: int


@dataclass(frozen=True, slots=True)
class Capture:
    """The number of errors found as a function of the number of cases read.

    Parameters
    ----------
    points
        One point for each case that was read, starting at zero cases.
    n_cases
        Number of cases in the queue.
    rate
        Error rate among all cases.
    p_missed
        The p-value of the hypothesis that less than `target` of all errors were found; 1 until a
        random sample has been read.
    may_stop
        Whether the stopping rule is met.
    to_read
        Ids of the cases to read next; the stopping rule is met if none of them has an error.
    why
        Explanation of `may_stop`, as text.
    """

    points: tuple[CapturePoint, ...]
    n_cases: int
    rate: ErrorRate
    target: float
    p_missed: float
    may_stop: bool
    to_read: tuple[str, ...]
    why: str

    @property
    def n_read(self) -> int:
        """Return the number of cases read."""
        return self.points[-1].n_read

    @property
    def n_errors(self) -> int:
        """Return the number of errors found."""
        return self.points[-1].n_errors


def estimate_rate(n_cases: int, n_read: int, n_errors: int) -> ErrorRate:
    """Estimate the error rate among all cases from a random sample drawn without replacement.

    The interval inverts the hypergeometric test with 2.5 % in each tail. Source: J. P. Buonaccorsi,
    The American Statistician 41 (1987) 215.

    Examples
    --------
    >>> found = estimate_rate(10, 10, 3)
    >>> found.low, found.rate, found.high
    (0.3, 0.3, 0.3)
    """
    from scipy.stats import hypergeom

    if not n_read:
        return ErrorRate(math.nan, math.nan, math.nan, 0, 0)
    totals = np.arange(n_errors, n_cases - (n_read - n_errors) + 1)
    tail = (1 - CONFIDENCE) / 2
    at_most = hypergeom.cdf(n_errors, n_cases, totals, n_read)
    at_least = hypergeom.sf(n_errors - 1, n_cases, totals, n_read)
    inside = totals[(at_most > tail) & (at_least > tail)]
    low, high = inside.min() / n_cases, inside.max() / n_cases
    return ErrorRate(n_errors / n_read, float(low), float(high), n_read, n_errors)


def follow_capture(queue: Queue, is_error: Mapping[str, bool], target: float = TARGET) -> Capture:
    """Return the capture curve of a queue, and whether the stopping rule is met.

    The rule is to stop once the hypothesis that less than `target` of all errors were found is
    rejected at 5 %. The cases that are read by disagreement come first in rank; the urn contains
    all cases that rank after them. The sample consists of the urn's cases that were read in the
    random order without a gap: first the rest of the random part, then further cases. No other
    cases are part of the sample. Source: M. W. Callaghan, F. Mueller-Hansen, Systematic Reviews 9
    (2020) 273.

    Parameters
    ----------
    queue
        The reading order.
    is_error
        Whether each case that was read has an error, in reading order.
    target
        Proportion of all errors that must be found.

    Raises
    ------
    CaseError
        If a case is not in the queue, or the target is not within 0 to 1.
    """
    unknown = sorted(set(is_error) - {one.case_id for one in queue.places})
    if unknown or not 0 < target <= 1:
        raise CaseError(
            "expected cases from the queue and a proportion above 0 and at most 1, but found "
            f"{unknown[0] if unknown else target!r}: use the queue from which the cases were read"
        )
    n = len(queue.places)
    errors = np.cumsum([0, *is_error.values()])
    points = tuple(CapturePoint(index, int(value)) for index, value in enumerate(errors))
    drawn = _count_read(sorted(queue.places, key=lambda one: one.draw), is_error)
    rate = estimate_rate(n, len(drawn), sum(drawn))
    urns = [_look_into_urn(queue, is_error, cut) for cut in _list_cuts(queue, is_error)]
    chances = [float(_chances_of_missing(urn, target)[0]) for urn in urns]
    p_missed, urn = min(zip(chances, urns, strict=True), key=lambda one: one[0])
    may_stop = p_missed < 1 - CONFIDENCE
    to_read = () if may_stop else _list_closing(urn, target)
    why = _explain_stop(n - len(is_error), may_stop, p_missed, target, len(to_read))
    return Capture(points, n, rate, target, p_missed, may_stop, to_read, why)


@dataclass(frozen=True, slots=True)
class _Urn:
    """The cases that rank after those read by disagreement, in random order.

    `marks` holds, for each case, whether it has an error, or None if it is unread. The first
    `n_sampled` cases are the sample that was read. `n_before` is the number of errors found in the
    cases before the urn.
    """

    cases: tuple[QueuePlace, ...]
    marks: tuple[bool | None, ...]
    n_sampled: int
    n_before: int


def _list_cuts(queue: Queue, is_error: Mapping[str, bool]) -> set[int]:
    """Return the ranks after which the urn may begin.

    These are the rank reached by disagreement before reading at random, the rank before it (that
    case may have been drawn at random), and the rank up to which every case is read now.
    """
    rest = sorted((one for one in queue.places if not one.is_random), key=lambda one: one.rank)
    number = {one.case_id: index for index, one in enumerate(rest)}
    n_in_turn = 0
    for case_id in is_error:
        at = number.get(case_id)
        if at is not None and at != n_in_turn:
            break
        n_in_turn += at is not None
    n_read = len(_count_read(rest, is_error))
    ends = {n_in_turn, max(n_in_turn - 1, 0), n_read}
    return {rest[end - 1].rank if end else 0 for end in ends}


def _look_into_urn(queue: Queue, is_error: Mapping[str, bool], cut: int) -> _Urn:
    places = [one for one in queue.places if one.rank > cut or one.case_id not in is_error]
    places.sort(key=lambda one: one.draw)
    is_left = {one.case_id for one in places}
    n_before = sum(mark for case_id, mark in is_error.items() if case_id not in is_left)
    marks = tuple(is_error.get(one.case_id) for one in places)
    return _Urn(tuple(places), marks, len(_count_read(places, is_error)), n_before)


def _count_read(places: Sequence[QueuePlace], is_error: Mapping[str, bool]) -> list[bool]:
    """Return the error marks of the leading cases, up to the first unread case."""
    read = takewhile(lambda one: one.case_id in is_error, places)
    return [is_error[one.case_id] for one in read]


def _chances_of_missing(urn: _Urn, target: float) -> NDArray[np.float64]:
    """Return one p-value for each sample size from the current one up to the whole urn.

    Unread cases count as free of errors.
    """
    from scipy.stats import hypergeom

    errors = np.cumsum([0, *(mark is True for mark in urn.marks)])
    sizes = np.arange(urn.n_sampled, len(urn.cases) + 1)
    n_errors = errors[sizes]
    n_found = urn.n_before + n_errors
    # the smallest number of errors in the urn for which the share found is below the target
    least = np.floor(np.round(n_found / target - urn.n_before, 9)).astype(np.int64) + 1
    can_be = least <= len(urn.cases) - (sizes - n_errors)
    chances = hypergeom.cdf(n_errors, len(urn.cases), np.where(can_be, least, 0), sizes)
    return np.where(can_be, chances, 0.0)


def _list_closing(urn: _Urn, target: float) -> tuple[str, ...]:
    enough = _chances_of_missing(urn, target) < 1 - CONFIDENCE
    end = urn.n_sampled + int(np.argmax(enough))
    pairs = zip(urn.cases[:end], urn.marks[:end], strict=True)
    return tuple(one.case_id for one, mark in pairs if mark is None)


def _explain_stop(
    n_unread: int, may_stop: bool, p_missed: float, target: float, n_to_read: int
) -> str:
    share = f"{100 * target:g} % of the errors"
    if not n_unread:
        return "every case was read"
    if may_stop:
        return f"at least {share} were found, with {100 * CONFIDENCE:.0f} % confidence"
    return (
        f"fewer than {share} may have been found (p = {p_missed:.3f}); to stop, read the next "
        f"{n_to_read} {'case' if n_to_read == 1 else 'cases'} of the random order: if none has an "
        "error, you may stop"
    )
