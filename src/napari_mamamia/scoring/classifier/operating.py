"""Points of the ROC curve at the high sensitivities of screening, and the specificities there."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.scoring.statistics.performance import ratio

SENSITIVITY: Final = 0.87
SENSITIVITY_ABOVE: Final = 0.82
"""Target sensitivity of the digital mammography challenge, and lower end of its partial area.

US radiologists reach a sensitivity of 0.87. Source: T. Schaffter et al., JAMA Network Open 3 (2020)
e200265, supplement.
"""

_ROUNDING: Final = 1e-9
"""Fraction of a case by which a sensitivity may miss its target because of rounding."""


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """Specificities at a given sensitivity, from 0 to 1.

    `threshold` is the largest specificity of a usable threshold that reaches the sensitivity;
    `interpolated` lies on the line between points of the ROC curve.
    """

    sensitivity: float
    threshold: float
    interpolated: float


@dataclass(frozen=True, slots=True)
class PartialAuc:
    """Area under the ROC curve above a sensitivity, also as a fraction of its largest value."""

    raw: float
    scaled: float


@dataclass(frozen=True, slots=True, eq=False)
class RocPoints:
    """Numbers of positives and negatives at or above each threshold, both with shape (b, u + 1).

    Each row is a sample of the cases; the first point of a row is a threshold above all scores. All
    results have shape (b,) and are nan if a class is missing.
    """

    positives: NDArray[np.float64]
    negatives: NDArray[np.float64]

    @property
    def n_positive(self) -> NDArray[np.float64]:
        """Return the number of positives in each row."""
        return self.positives[:, -1]

    @property
    def n_negative(self) -> NDArray[np.float64]:
        """Return the number of negatives in each row."""
        return self.negatives[:, -1]

    def auc(self) -> NDArray[np.float64]:
        """Return the fraction of correctly ordered pairs; a tied pair counts as half."""
        steps = np.diff(self.positives, axis=1)
        beaten = self.n_negative[:, None] - (self.negatives[:, 1:] + self.negatives[:, :-1]) / 2
        return ratio((steps * beaten).sum(axis=1), self.n_positive * self.n_negative)

    def partial_auc(self, above: float) -> NDArray[np.float64]:
        """Return the integral of the specificity over the sensitivities from `above` to 1.

        The integral is at most 1 - `above`, and equals pROC's ``partial.auc = c(1, above),
        partial.auc.focus = "sensitivity"``, uncorrected.
        """
        total = self.n_positive[:, None]
        floor = above * total
        low, high = self.positives[:, :-1], self.positives[:, 1:]
        begin = np.maximum(low, floor)
        width = np.maximum(high - begin, 0.0)
        slope = ratio(np.diff(self.negatives, axis=1), high - low)
        false_at_begin = self.negatives[:, :-1] + np.nan_to_num(slope) * (begin - low)
        beaten = self.n_negative[:, None] - (false_at_begin + self.negatives[:, 1:]) / 2
        return ratio((width * beaten).sum(axis=1), self.n_positive * self.n_negative)

    def specificity(
        self, sensitivity: float | NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the threshold and interpolated specificities described in `OperatingPoint`.

        `sensitivity` is one number, or one number for each row, (b,).
        """
        rows = np.arange(len(self.positives))
        needed = np.asarray(sensitivity, dtype=np.float64) * self.n_positive
        index = self.place(sensitivity)
        before = np.maximum(index - 1, 0)
        low, high = self.positives[rows, before], self.positives[rows, index]
        false_low, false_high = self.negatives[rows, before], self.negatives[rows, index]
        fraction = np.clip(np.nan_to_num(ratio(needed - low, high - low), nan=1.0), 0.0, 1.0)
        fraction = np.where(high - needed <= _ROUNDING, 1.0, fraction)
        between = false_low + fraction * (false_high - false_low)
        n_negative = np.where(self.n_positive > 0, self.n_negative, 0.0)
        return 1 - ratio(false_high, n_negative), 1 - ratio(between, n_negative)

    def place(self, sensitivity: float | NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the index (b,) of the first point in each row that reaches a sensitivity."""
        needed = np.asarray(sensitivity, dtype=np.float64) * self.n_positive - _ROUNDING
        places: NDArray[np.intp] = np.argmax(self.positives >= needed[:, None], axis=1)
        return places


@dataclass(frozen=True, slots=True, eq=False)
class SortedCases:
    """Cases that are sorted by score once, so that they can be counted in many samples.

    `order` (n,) contains the cases by descending score. `ends` (u,) contains the last indices of
    the distinct scores at and around positives (between which the curve is straight), and
    `thresholds` (u,) these scores. `positive_places` (p,) contains the indices of the positives in
    this order.
    """

    order: NDArray[np.intp]
    ends: NDArray[np.intp]
    thresholds: NDArray[np.float64]
    positive_places: NDArray[np.intp]

    @classmethod
    def of(cls, label: NDArray[np.float64], score: NDArray[np.float64]) -> Self:
        """Sort cases by `score` (n,), which may be infinite; `label` (n,) contains 0 or 1."""
        order = np.argsort(-score, kind="stable")
        falling = score[order]
        ends = np.flatnonzero(np.append(falling[1:] != falling[:-1], True))
        positive_places = np.flatnonzero(label[order] == 1)
        has_positive = np.unique(np.searchsorted(ends, positive_places))
        places = np.unique(np.concatenate([has_positive, has_positive - 1, [ends.size - 1]]))
        ends = ends[places[places >= 0]]
        return cls(order, ends, falling[ends], positive_places)

    def points(self, weights: NDArray[np.integer] | None = None) -> RocPoints:
        """Return the ROC points of samples in which each case occurs `weights` (b, n) times.

        Without weights each case counts once.
        """
        counts = np.ones((1, self.order.size), dtype=np.int64) if weights is None else weights
        counts = counts[:, self.order]
        n_before = np.searchsorted(self.positive_places, self.ends, side="right")
        positives = np.zeros((len(counts), self.ends.size + 1))
        until = np.zeros((len(counts), self.positive_places.size + 1))
        np.cumsum(counts[:, self.positive_places], axis=1, out=until[:, 1:])
        positives[:, 1:] = until[:, n_before]
        negatives = np.zeros_like(positives)
        negatives[:, 1:] = np.cumsum(counts, axis=1, dtype=np.int64)[:, self.ends]
        negatives[:, 1:] -= positives[:, 1:]
        return RocPoints(positives, negatives)

    def cut(self, sensitivity: float) -> float:
        """Return the smallest score that must be called positive to reach a sensitivity.

        The result is nan if there is no positive case.
        """
        points = self.points()
        if not points.n_positive[0]:
            return float("nan")
        index = int(points.place(sensitivity)[0])
        return float(self.thresholds[index - 1]) if index else float("inf")


def partial_auc(
    label: NDArray[np.float64], score: NDArray[np.float64], above: float = SENSITIVITY_ABOVE
) -> PartialAuc:
    """Return the area under the ROC curve above a sensitivity, or nan if a class is missing.

    The result is neither McClish's corrected value nor the area over specificities (scikit-learn's
    ``max_fpr``).

    Parameters
    ----------
    label
        Label 0 or 1 of each case, (n,).
    score
        Scores, (n,).
    above
        Lower end of the sensitivities.

    Examples
    --------
    >>> y = np.array([1, 1, 1, 1, 0, 0, 0, 0, 0, 0])
    >>> score = np.array([0.9, 0.8, 0.8, 0.3, 0.85, 0.8, 0.4, 0.3, 0.2, 0.1])
    >>> round(partial_auc(y, score, 0.82).raw, 10)
    0.0708
    """
    (raw,) = SortedCases.of(label, score).points().partial_auc(above)
    return PartialAuc(float(raw), float(raw / (1 - above)))


def too_few_for(sensitivity: float, n_positive: int) -> str:
    """Return a note if there are too few positives to resolve a sensitivity, otherwise "".

    The possible sensitivities are multiples of 1/(number of positives).
    """
    if not 0 < sensitivity < 1:
        return ""
    needed = ceil(1 / (1 - sensitivity) - _ROUNDING)
    if n_positive >= needed:
        return ""
    return (
        f"sensitivity {sensitivity:g} needs at least {needed} positives to differ from 1, but "
        f"there are {n_positive}, so its threshold must detect every positive"
    )


@dataclass(frozen=True, slots=True)
class ReaderPoint:
    """A reader's sensitivity and specificity, from 0 to 1; nan if a class has no case."""

    sensitivity: float
    specificity: float


def reader_point(label: NDArray[np.float64], recall: NDArray[np.float64]) -> ReaderPoint:
    """Return a reader's sensitivity and specificity; cases with nan are left out.

    Parameters
    ----------
    label
        Label 0 or 1 of each case, (n,).
    recall
        The reader's decision 0 or 1, or nan if unknown, (n,).
    """
    is_known = ~np.isnan(recall)
    yes, no = is_known & (label == 1), is_known & (label == 0)
    both = ratio(
        np.array([(recall[yes] == 1).sum(), (recall[no] == 0).sum()], dtype=np.float64),
        np.array([yes.sum(), no.sum()], dtype=np.float64),
    )
    return ReaderPoint(float(both[0]), float(both[1]))


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Rows grouped into units; `of_row` (n,) is the unit of each row, from 0 to `n` - 1."""

    of_row: NDArray[np.intp]
    names: tuple[str, ...]

    @classmethod
    def of(cls, keys: Sequence[str]) -> Self:
        """Return units numbered by key, in order of first appearance."""
        names = tuple(dict.fromkeys(keys))
        places = {name: index for index, name in enumerate(names)}
        return cls(np.array([places[key] for key in keys], dtype=np.intp), names)

    @property
    def n(self) -> int:
        """Return the number of units."""
        return len(self.names)

    def largest(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the largest value (m,) among each unit's rows, for example an exam's breasts.

        Rows with nan are ignored; a unit with only such rows gives nan.
        """
        result = np.full(self.n, -np.inf)
        is_known = ~np.isnan(values)
        np.maximum.at(result, self.of_row[is_known], values[is_known])
        result[np.bincount(self.of_row[is_known], minlength=self.n) == 0] = np.nan
        return result
