"""FROC and risk-adjusted FROC: sensitivity against false positives per case; average precision."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from napari_mamamia.core.choices import CurveReading
from napari_mamamia.features.classifiers.scoring.detection.boxes import (
    Lesions,
    Numbers,
    Places,
    PredictedBoxes,
)
from napari_mamamia.features.classifiers.scoring.detection.matching import Matches

RATES: Final = (1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0)
"""False positives per case at which the score averages sensitivity.

Source: LUNA16, nnDetection, raFROC.
"""

_RECALLS: Final = np.linspace(0, 1, 101)


class CurveKind(StrEnum):
    """FROC, and the three variants of raFROC, which are not comparable with each other."""

    FROC = "froc"
    """Unweighted numbers of found lesions and false boxes."""
    STRICT = "strict"
    """A lesion weighs its risk, a false box 1 - risk, on the same scale for all models."""
    REFERENCE_CODE = "reference-code"
    """As strict, but with all risks divided by the largest risk of lesions and boxes."""
    PAPER_EQ3 = "paper-eq3"
    """As strict, but the found risk is divided by the number of lesions."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Points of a FROC curve by descending threshold; the first is (0, 0) at threshold inf.

    A point includes all boxes with a score of at least its threshold. `fp_per_case` and
    `sensitivity` are weighted by the curve's kind, and NaN without a lesion.
    """

    thresholds: Numbers
    fp_per_case: Numbers
    sensitivity: Numbers

    def at(self, rates: Numbers, reading: CurveReading = CurveReading.LINEAR) -> Numbers:
        """Return the sensitivity at some rates of false positives per case.

        At a jump the upper value is used; beyond the last point its sensitivity is used.

        Parameters
        ----------
        rates
            False positives per case.
        reading
            Interpolation between two points.
        """
        return _read_curve(self.fp_per_case, self.sensitivity, rates, reading)

    def score(self, reading: CurveReading = CurveReading.LINEAR) -> float:
        """Return the mean sensitivity at `RATES`."""
        return float(self.at(np.array(RATES), reading).mean())

    @property
    def reached_fp_per_case(self) -> float:
        """Return the false positives per case at the lowest threshold."""
        return float(self.fp_per_case[-1])


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """The events of a curve by descending score: found lesions and false boxes.

    `cases`, `scores`, `hits` (1 for a found lesion, 0 for a false box) and `risks` (of the lesion,
    or of the false box itself) have one entry for each; `ends` are the last indices of each score.
    `lesions`, `lesion_risk` and `largest_risk` have one entry for each case.
    """

    cases: Places
    scores: Numbers
    hits: Numbers
    risks: Numbers
    ends: Places
    lesions: Numbers
    lesion_risk: Numbers
    largest_risk: Numbers

    @classmethod
    def of(
        cls,
        matches: Matches,
        lesions: Lesions,
        boxes: PredictedBoxes,
        n_cases: int,
        sought: NDArray[np.bool_] | None = None,
    ) -> Self:
        """Return the events of matched lesions; a false box with unknown risk weighs 1.

        Only the lesions in `sought` (None: all) count. Lesions and boxes must have risks; boxes
        without scores share one threshold.

        Parameters
        ----------
        matches
            The result of matching.
        lesions, boxes
            Lesions and boxes with their risks.
        n_cases
            Number of cases.
        sought
            Whether each lesion counts; None for all.
        """
        sought = np.ones(lesions.cases.size, dtype=np.bool_) if sought is None else sought
        places = np.flatnonzero(matches.found_by >= 0)
        false = np.flatnonzero(matches.is_false)
        false_risks = np.nan_to_num(boxes.risks[false])
        scores = np.concatenate([boxes.scores[matches.found_by[places]], boxes.scores[false]])
        scores = np.nan_to_num(scores, nan=0.0, posinf=np.inf)
        order = np.argsort(-scores, kind="stable")
        cases = np.concatenate([lesions.cases[places], boxes.cases[false]])[order]
        risks = np.concatenate([lesions.risks[places], false_risks])[order]
        hits = np.concatenate([np.ones(places.size), np.zeros(false.size)])[order]
        in_order = scores[order]
        ends = np.flatnonzero(np.append(in_order[1:] != in_order[:-1], True))[: scores.size]
        largest = np.zeros(n_cases)
        cases_sought, risk_sought = lesions.cases[sought], lesions.risks[sought]
        np.maximum.at(largest, cases_sought, risk_sought)
        np.maximum.at(largest, boxes.cases[false], false_risks)
        counts = np.zeros(n_cases)
        np.add.at(counts, cases_sought, 1)
        risk = np.zeros(n_cases)
        np.add.at(risk, cases_sought, risk_sought)
        return cls(cases, in_order, hits, risks, ends, counts, risk, largest)

    def curve(self, kind: CurveKind) -> Curve:
        """Return a curve with a point for each distinct score."""
        every = np.ones((1, self.lesions.size))
        (fp_per_case,), (sensitivity,) = self.sums(self.ends).points((kind,), every)[kind]
        return Curve(np.append(np.inf, self.scores[self.ends]), fp_per_case, sensitivity)

    def scores_of(
        self,
        kinds: Sequence[CurveKind],
        weights: Numbers,
        reading: CurveReading = CurveReading.LINEAR,
    ) -> Numbers:
        """Return the scores of several curve kinds for each row of weights, (b, kinds).

        A weight is how often a case counts, as in a resample.

        Parameters
        ----------
        kinds
            The kinds of curves.
        weights
            How often each case counts, (b, cases).
        reading
            Interpolation between two points.
        """
        return self.sums(self.bends).scores(kinds, weights, reading)

    @property
    def bends(self) -> Places:
        """Return the `ends` at which a curve can bend: at found lesions, and just before.

        Between these ends the curve is horizontal for any case weights.
        """
        hits = np.diff(np.cumsum(self.hits)[self.ends], prepend=0) > 0
        turns = hits | np.append(hits[1:], False)
        turns[-1:] = True
        places: Places = self.ends[turns]
        return places

    def sums(self, ends: Places) -> "CurveSums":
        """Return the cumulative sums of each case at the given ends."""
        columns = np.searchsorted(ends, np.arange(self.cases.size))
        shape = ends.size, self.lesions.size

        def added(values: Numbers) -> csr_array:
            return csr_array((values, (columns, self.cases)), shape=shape)

        false = 1 - self.hits
        return CurveSums(
            added(self.hits),
            added(self.hits * self.risks),
            added(false),
            added(false * self.risks),
            self,
        )


@dataclass(frozen=True, slots=True, eq=False)
class CurveSums:
    """The increments of each case between consecutive ends, (ends, cases) each.

    The increments are numbers of found lesions and of false boxes, and their risks.
    """

    found: csr_array
    found_risk: csr_array
    false: csr_array
    false_risk: csr_array
    events: Events

    def points(
        self, kinds: Sequence[CurveKind], weights: Numbers
    ) -> dict[CurveKind, tuple[Numbers, Numbers]]:
        """Return false positives per case and sensitivity of each row of weights, (b, k) both."""
        events = self.events
        n_cases = weights.sum(axis=1, keepdims=True)
        n_lesions = (weights @ events.lesions)[:, None]
        risk = (weights @ events.lesion_risk)[:, None]
        n_false = _add_up(self.false, weights)
        points = {}
        if CurveKind.FROC in kinds:
            n_found = _add_up(self.found, weights)
            points[CurveKind.FROC] = _divide_by(n_false, n_cases), _divide_by(n_found, n_lesions)
        if set(kinds) <= {CurveKind.FROC}:
            return points
        n_found, false_risk = _add_up(self.found_risk, weights), _add_up(self.false_risk, weights)
        weighted, share = _divide_by(n_false - false_risk, n_cases), _divide_by(n_found, risk)
        largest = np.where(weights > 0, events.largest_risk, 0).max(axis=1, initial=0)[:, None]
        moved = np.where(largest > 0, n_false - _divide_by(false_risk, largest), n_false)
        points[CurveKind.STRICT] = weighted, share
        points[CurveKind.REFERENCE_CODE] = _divide_by(moved, n_cases), share
        points[CurveKind.PAPER_EQ3] = weighted, _divide_by(n_found, n_lesions)
        return points

    def scores(
        self, kinds: Sequence[CurveKind], weights: Numbers, reading: CurveReading
    ) -> Numbers:
        """Return the score of each row of weights and each kind, (b, kinds)."""
        points, rates = self.points(kinds, weights), np.array(RATES)
        columns = [
            [_read_curve(x, y, rates, reading).mean() for x, y in zip(*points[kind], strict=True)]
            for kind in kinds
        ]
        return np.array(columns).T


def _add_up(parts: csr_array, weights: Numbers) -> Numbers:
    """Return the sums up to each end for each row of weights, starting with 0, (b, k + 1)."""
    sums = np.zeros((len(weights), parts.shape[0] + 1))
    np.cumsum((parts @ weights.T).T, axis=1, out=sums[:, 1:])
    return sums


def _divide_by(values: Numbers, by: Numbers) -> Numbers:
    """Return a quotient, NaN for a divisor of 0."""
    quotient: Numbers = np.full(np.broadcast_shapes(values.shape, by.shape), np.nan)
    np.divide(values, by, out=quotient, where=by > 0)
    return quotient


def _read_curve(x: Numbers, y: Numbers, rates: Numbers, reading: CurveReading) -> Numbers:
    index = np.searchsorted(x, rates, side="right") - 1
    if np.isnan(x[0]):
        return np.full(rates.shape, np.nan)
    lower = y[index]
    if reading is CurveReading.STEP:
        return lower
    behind = np.minimum(index + 1, x.size - 1)
    width = x[behind] - x[index]
    share = np.divide(rates - x[index], width, out=np.zeros(rates.shape), where=width > 0)
    values: Numbers = lower + share * (y[behind] - lower)
    return values


def average_precision_of_lesions(events: Events) -> float:
    """Return the mean precision at 101 recalls, 0 to 1 by 0.01; NaN without a lesion.

    At each recall, the highest precision at this recall or above counts, 0 beyond the last recall.
    Equal scores are one threshold. Source: COCO's evaluation, as nnDetection.
    """
    n_lesions = events.lesions.sum()
    if not n_lesions:
        return float("nan")
    hits = np.cumsum(events.hits)[events.ends]
    precision = hits / (events.ends + 1.0)
    highest = np.maximum.accumulate(precision[::-1])[::-1]
    index = np.searchsorted(hits / n_lesions, _RECALLS, side="left")
    return float(np.append(highest, 0.0)[index].mean())
