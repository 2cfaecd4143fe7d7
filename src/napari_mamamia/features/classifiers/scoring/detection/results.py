"""Data classes for the settings, curves and results of a detection run."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from napari_mamamia.core.choices import CaseScoreRule, CurveReading, RiskModel
from napari_mamamia.core.provenance import Setting
from napari_mamamia.features.classifiers.scoring.detection.boxes import (
    Lesions,
    Numbers,
    Overlaps,
    Places,
    PredictedBoxes,
)
from napari_mamamia.features.classifiers.scoring.detection.matching import (
    BY_SCORE,
    Matches,
    MatchingRule,
)
from napari_mamamia.scoring.statistics.auc import AucInterval
from napari_mamamia.scoring.statistics.bootstrap import Interval
from napari_mamamia.scoring.statistics.resampling import N_RESAMPLES, SEED

RATES: Final = (1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0)
"""False positives per case at which sensitivity is averaged to obtain the score.

Source: LUNA16, nnDetection, raFROC.
"""
COCO_IGNORE: Final = "coco-ignore"
DISCARD: Final = "discard-then-match"
"""One of two ways to treat lesions that are not in a stratum.

Either these lesions remain and their boxes do not count, or the lesions are removed before
matching.
"""

GIVEN: Final = "given"


_RECALLS: Final = np.linspace(0, 1, 101)


class CurveKind(StrEnum):
    """FROC, or one of the three variants of raFROC, which are not comparable with each other."""

    FROC = "froc"
    """The curve of the unweighted numbers of lesions found and false boxes."""
    STRICT = "strict"
    """Lesions are weighted by risk, and false boxes by 1 - risk, with one scale for all models."""
    REFERENCE_CODE = "reference-code"
    """Like `strict`, but all risks are divided by the largest risk of any lesion or box."""
    PAPER_EQ3 = "paper-eq3"
    """Like `strict`, but the sum of risks of lesions found is divided by the number of lesions."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Points of a FROC curve in order of descending threshold, from (0, 0) at threshold inf.

    A point includes all boxes with a score of at least its threshold. `fp_per_case` and
    `sensitivity` are weighted according to the kind of curve, and are NaN if there is no lesion.
    """

    thresholds: Numbers
    fp_per_case: Numbers
    sensitivity: Numbers

    def at(self, rates: Numbers, reading: CurveReading = CurveReading.LINEAR) -> Numbers:
        """Return the sensitivity at several rates of false positives per case.

        At a jump, the upper value is used. Beyond the last point, the sensitivity at that point is
        used.

        Parameters
        ----------
        rates
            False positives per case.
        reading
            How sensitivity is interpolated between two points.
        """
        return _read_curve(self.fp_per_case, self.sensitivity, rates, reading)

    def score(self, reading: CurveReading = CurveReading.LINEAR) -> float:
        """Return the mean sensitivity at the rates in `RATES`."""
        return float(self.at(np.array(RATES), reading).mean())

    @property
    def reached_fp_per_case(self) -> float:
        """Return the number of false positives per case at the lowest threshold."""
        return float(self.fp_per_case[-1])


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """The events of a curve in order of descending score: lesions found, and false boxes.

    `cases`, `scores`, `hits` (1 for a lesion found, 0 for a false box) and `risks` (of the lesion,
    or of the false box itself) have one entry for each event; `ends` holds the last index of each
    distinct score. `lesions`, `lesion_risk` and `largest_risk` have one entry for each case.
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
        """Make the events from matches; a false box with unknown risk has the weight 1.

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
            Whether each lesion counts; None if all count.
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
        """Return a curve with one point for each distinct score."""
        every = np.ones((1, self.lesions.size))
        (fp_per_case,), (sensitivity,) = self.sums(self.ends).points((kind,), every)[kind]
        return Curve(np.append(np.inf, self.scores[self.ends]), fp_per_case, sensitivity)

    def scores_of(
        self,
        kinds: Sequence[CurveKind],
        weights: Numbers,
        reading: CurveReading = CurveReading.LINEAR,
    ) -> Numbers:
        """Return the scores of several kinds of curves for each row of case weights, (b, kinds).

        A weight says how many times a case counts, as in a resample.

        Parameters
        ----------
        kinds
            The kinds of curves.
        weights
            How often each case counts, (b, cases).
        reading
            How sensitivity is interpolated between two points.
        """
        return self.sums(self.bends).scores(kinds, weights, reading)

    @property
    def bends(self) -> Places:
        """Return the `ends` at which a curve can bend: at each lesion found, and just before it.

        Between these ends the curve is horizontal for any case weights.
        """
        hits = np.diff(np.cumsum(self.hits)[self.ends], prepend=0) > 0
        turns = hits | np.append(hits[1:], False)
        turns[-1:] = True
        places: Places = self.ends[turns]
        return places

    def sums(self, ends: Places) -> "CurveSums":
        """Return cumulative sums for each case, up to each of the given ends."""
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
    """The increments of each case between consecutive ends, as arrays (ends, cases).

    The increments are the numbers of lesions found and of false boxes, and their risks.
    """

    found: csr_array
    found_risk: csr_array
    false: csr_array
    false_risk: csr_array
    events: Events

    def points(
        self, kinds: Sequence[CurveKind], weights: Numbers
    ) -> dict[CurveKind, tuple[Numbers, Numbers]]:
        """Return false positives per case and sensitivity for each row of weights, each (b, k)."""
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
        """Return the scores, (b, kinds), for each row of weights and each kind of curve."""
        points, rates = self.points(kinds, weights), np.array(RATES)
        columns = [
            [_read_curve(x, y, rates, reading).mean() for x, y in zip(*points[kind], strict=True)]
            for kind in kinds
        ]
        return np.array(columns).T


def _add_up(parts: csr_array, weights: Numbers) -> Numbers:
    """Return cumulative sums up to each end for each row of weights, (b, k + 1), starting at 0."""
    sums = np.zeros((len(weights), parts.shape[0] + 1))
    np.cumsum((parts @ weights.T).T, axis=1, out=sums[:, 1:])
    return sums


def _divide_by(values: Numbers, by: Numbers) -> Numbers:
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
    """Return the mean precision at the recalls 0, 0.01, ..., 1; NaN if there are no lesions.

    At each recall, the highest precision at this or a higher recall is used, and 0 beyond the last
    recall. Equal scores share one threshold. Source: COCO's evaluation, as in nnDetection.
    """
    n_lesions = events.lesions.sum()
    if not n_lesions:
        return float("nan")
    hits = np.cumsum(events.hits)[events.ends]
    precision = hits / (events.ends + 1.0)
    highest = np.maximum.accumulate(precision[::-1])[::-1]
    index = np.searchsorted(hits / n_lesions, _RECALLS, side="left")
    return float(np.append(highest, 0.0)[index].mean())


@dataclass(frozen=True, slots=True)
class DetectionSettings:
    """Settings of a detection run.

    Parameters
    ----------
    rule
        The matching rule.
    reading
        How sensitivity is interpolated between two points of a curve.
    case_score
        How the scores of a case's boxes are combined.
    risk
        Model that derives the risk from the size, if the tables have no risk.
    cut_mm
        Size between small and large lesions; a lesion of exactly this size is in both groups.
    n_resamples, seed
        Number of resamples of the cases (0: no intervals), and random seed.

    Raises
    ------
    ValueError
        If a number is out of range.
    """

    rule: MatchingRule = BY_SCORE
    reading: CurveReading = CurveReading.LINEAR
    case_score: CaseScoreRule = CaseScoreRule.MAX
    risk: RiskModel = RiskModel.SOPIK_2018
    cut_mm: float = 20.0
    n_resamples: int = N_RESAMPLES
    seed: int = SEED

    def __post_init__(self) -> None:
        if not 0 < self.rule.iou <= 1:
            raise ValueError(
                "expected the minimum overlap to be above 0 and at most 1, but it is "
                f"{self.rule.iou}"
            )
        if not 0 < self.cut_mm < np.inf:
            raise ValueError(f"expected the size limit to be above 0 mm, but it is {self.cut_mm}")
        if self.n_resamples < 0 or self.seed < 0:
            raise ValueError(
                f"expected resamples and seed to be 0 or above, but they are {self.n_resamples} "
                f"and {self.seed}"
            )

    @property
    def parameters(self) -> tuple[tuple[str, Setting], ...]:
        """Return the name and value of each setting, for ``run.json``."""
        return (
            ("matching", self.rule.matching.value),
            ("iou", self.rule.iou),
            ("duplicates", self.rule.duplicates.value),
            ("interpolation", self.reading.value),
            ("case_score", self.case_score.value),
            ("risk", self.risk.value),
            ("size_cut_mm", self.cut_mm),
            ("bootstrap", self.n_resamples),
            ("seed", self.seed),
        )


@dataclass(frozen=True, slots=True, eq=False)
class DetectionInput:
    """All cases, with their lesions, predicted boxes and overlaps.

    `centres` holds each case's centre, "" if it is unknown; it is () if no centre is known. If the
    boxes have no scores (`has_scores` is False), there is one operating point and no curve.
    """

    case_ids: tuple[str, ...]
    lesions: Lesions
    boxes: PredictedBoxes
    overlaps: Overlaps
    centres: tuple[str, ...] = ()
    has_scores: bool = True

    @property
    def n_cases(self) -> int:
        """Return the number of all cases, including those without a lesion."""
        return len(self.case_ids)


@dataclass(frozen=True, slots=True)
class RiskAdjusted:
    """The scores by the three variants of raFROC; `ceiling` is the maximum of `paper-eq3`."""

    strict: float
    reference_code: float
    paper_eq3: float
    ceiling: float


@dataclass(frozen=True, slots=True)
class Stratum:
    """Results for lesions in a range of sizes (mm, ends included), by one of the two treatments."""

    name: str
    reading: str
    low_mm: float
    high_mm: float
    n_lesions: int
    n_true_positives: int
    n_false_positives: int
    froc: float


@dataclass(frozen=True, slots=True)
class PatientLevel:
    """Patient-level metrics over cases with and without a lesion; if NaN, `reason` says why.

    `specificity` is the fraction of cases without a box among cases without a lesion. `sensitivity`
    is the fraction of cases with a box among cases with a lesion.
    """

    rule: CaseScoreRule
    n_with: int
    n_without: int
    auc: float
    average_precision: float
    sensitivity: float
    specificity: float
    interval: AucInterval | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Centre:
    """The metrics for the cases of one centre."""

    name: str
    n_cases: int
    n_lesions: int
    n_true_positives: int
    n_false_positives: int
    froc: float
    strict: float


@dataclass(frozen=True, slots=True, eq=False)
class DetectionResult:
    """All results of a detection run.

    `lesions` and `boxes` of `data` include their risks; `risk` states where the risks come from.
    `curves` has one entry for each kind of curve. If a score is undefined, it is NaN, and `reason`
    says why.
    """

    data: DetectionInput
    settings: DetectionSettings
    matches: Matches
    risk: str
    curves: tuple[tuple[CurveKind, Curve], ...]
    froc: float
    risk_adjusted: RiskAdjusted
    average_precision: tuple[tuple[str, float], ...]
    strata: tuple[Stratum, ...]
    patient: PatientLevel
    centres: tuple[Centre, ...]
    intervals: tuple[Interval, ...]
    n_nearly_free: int
    warnings: tuple[str, ...]
    reason: str = ""

    @property
    def n_lesions(self) -> int:
        """Return the number of reference lesions."""
        return self.data.lesions.cases.size

    @property
    def n_true_positives(self) -> int:
        """Return the number of lesions found at the lowest threshold."""
        return int(np.count_nonzero(self.matches.found_by >= 0))

    @property
    def n_false_positives(self) -> int:
        """Return the number of false boxes at the lowest threshold."""
        return int(np.count_nonzero(self.matches.is_false))

    def curve(self, kind: CurveKind = CurveKind.FROC) -> Curve:
        """Return the curve of a given kind."""
        return dict(self.curves)[kind]

    @property
    def box_outcomes(self) -> tuple[str, ...]:
        """Return each box's outcome: it found a lesion, is a false positive, or does not count."""
        is_found = np.zeros(self.data.boxes.cases.size, dtype=np.bool_)
        is_found[self.matches.found_by[self.matches.found_by >= 0]] = True
        words: NDArray[np.str_] = np.where(
            is_found, "true", np.where(self.matches.is_false, "false", "not counted")
        )
        return tuple(words.tolist())
