"""The measures of a challenge: how cases are measured, and how the values are combined.

A measure has one function for a case, which returns a number or rows of numbers. A measure of the
whole set has a second function, which combines the rows of all cases.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import CaseError
from napari_mamamia.features.challenge.io.definition import AnswerKind
from napari_mamamia.scoring.statistics.auc import auc

Rows: TypeAlias = NDArray[np.float64]
"""Rows of numbers, shape (n, d), for one case or for all cases."""


class NotDefinedError(ValueError):
    """Error raised if the answer leaves a measure without a value, such as an empty mask."""


class NoTruthError(ValueError):
    """Error raised if the truth leaves a measure without a value; the case is then ignored."""


class NotComputedError(CaseError):
    """Error raised if a measure cannot be computed because a model or package is missing."""


@dataclass(frozen=True, slots=True)
class CaseAnswer:
    """The answer and the truth of a case.

    Parameters
    ----------
    case_id
        The case.
    answer
        An image (rows, columns); probabilities by part, each (k,); or a number by part. A case
        without parts has the single part "".
    truth
        Images by role; if the truth is a table, the role "table" holds the class or number by part.
    models
        The models that the organiser provides, by role.
    n_classes
        Number of classes; 0 if there are none.
    """

    case_id: str
    answer: Any
    truth: Mapping[str, Any]
    models: Mapping[str, Callable[..., Any]] = field(default_factory=lambda: MappingProxyType({}))
    n_classes: int = 0

    def model(self, role: str) -> Callable[..., Any]:
        """Return the model with a role; raise `NotComputedError` if there is none."""
        if role not in self.models:
            raise NotComputedError(f"not computed: no model was given for {role}")
        return self.models[role]


@dataclass(frozen=True, slots=True)
class ChallengeMeasure:
    """A registered measure.

    Parameters
    ----------
    name
        The name that definitions use, such as ``image.mse``.
    kind
        The kind of answer.
    of_case
        Function that returns a number or rows of numbers for a `CaseAnswer` (with the definition's
        arguments). For masks, its arguments are prediction and reference, both (z, y, x), and their
        spacing (z, y, x) in mm. It raises `NotDefinedError` or `NoTruthError` if there is no value.
    of_rows
        Function that returns the measure from the rows of all cases, (n, d); None to average the
        numbers.
    worst
        The value for a case without a usable answer, which also limits all other values: a number,
        or a function with the same arguments as `of_case`. If None, a team with such a case is
        ranked last by this measure.
    is_resampled
        Whether `of_rows` is fast enough to be computed in each resample.
    """

    name: str
    kind: AnswerKind
    of_case: Callable[..., Any]
    of_rows: Callable[..., float] | None = None
    worst: float | Callable[..., Any] | None = None
    is_resampled: bool = True


@dataclass(frozen=True, slots=True)
class ChallengeModel:
    """A kind of model that measures can use; `load` makes the model from the text after ``:``."""

    name: str
    load: Callable[[str], Callable[..., Any]]


def _class_rows(case: CaseAnswer, target: int = -1) -> Rows:
    """Return label and probability of each (part, class) pair, or of the class `target` only.

    Using the pairs of all classes together gives the micro average. A single class has the code 1.
    """
    rows = []
    for part, probabilities in case.answer.items():
        label = int(case.truth["table"][part])
        rows += [(float(label == code), float(probabilities[place]))
                 for place, code in _list_codes(case, target)]  # fmt: skip
    return np.array(rows)


def _list_codes(case: CaseAnswer, target: int) -> list[tuple[int, int]]:
    """Return the index of each class to use among the probabilities, and its code."""
    if case.n_classes == 1:
        return [(0, 1)]
    return [(code, code) for code in (range(case.n_classes) if target < 0 else (target,))]


def _worst_class_rows(case: CaseAnswer, target: int = -1) -> Rows:
    """Return the rows of a case for which every class has the worst possible probability."""
    labels = [int(label) for label in case.truth["table"].values()]
    return np.array([(float(label == code), float(label != code)) for label in labels
                     for _, code in _list_codes(case, target)])  # fmt: skip


def roc_curve(rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return false and true positive rates at each threshold, including collinear points.

    Examples
    --------
    >>> roc_curve(np.array([[1, 0.9], [0, 0.9], [0, 0.2], [1, 0.6]]))[1].tolist()
    [0.0, 0.5, 1.0, 1.0]
    """
    order = np.argsort(-rows[:, 1], kind="stable")
    label, score = rows[order, 0], rows[order, 1]
    ends = np.append(np.flatnonzero(np.diff(score)), len(score) - 1)
    hits, alarms = np.cumsum(label)[ends], np.cumsum(1 - label)[ends]
    with np.errstate(invalid="ignore"):
        return np.append(0.0, alarms / alarms[-1]), np.append(0.0, hits / hits[-1])


def _auc_of_rows(rows: Rows) -> float:
    return auc(rows[:, 0], rows[:, 1])


def _sensitivity_at(rows: Rows, specificity: float = 0.9) -> float:
    """Return the sensitivity at a given specificity, interpolated with np.interp.

    If several points of the curve have this false positive rate, np.interp uses the last one.
    """
    return float(np.interp(1 - specificity, *roc_curve(rows)))


def _specificity_at(rows: Rows, sensitivity: float = 0.9) -> float:
    false_rate, true_rate = roc_curve(rows)
    return float(1 - np.interp(sensitivity, true_rate, false_rate))


def _macro_rows(case: CaseAnswer) -> Rows:
    """Return the label and all class probabilities of each part."""
    return np.array([[float(case.truth["table"][part]), *map(float, probabilities)]
                     for part, probabilities in case.answer.items()])  # fmt: skip


def _worst_macro_rows(case: CaseAnswer) -> Rows:
    labels = [int(label) for label in case.truth["table"].values()]
    return np.array([[float(label), *(float(code != label) for code in range(case.n_classes))]
                     for label in labels])  # fmt: skip


def _macro_auc(rows: Rows) -> float:
    label, codes = rows[:, 0], range(rows.shape[1] - 1)
    return float(np.mean([auc((label == code).astype(float), rows[:, code + 1]) for code in codes]))


def _number_rows(case: CaseAnswer) -> Rows:
    """Return the answered and the true number of each part."""
    return np.array([(case.answer[part], true) for part, true in case.truth["table"].items()])


def _error_rows(case: CaseAnswer) -> Rows:
    rows = _number_rows(case)
    return np.abs(rows[:, :1] - rows[:, 1:])


def _absolute_error(case: CaseAnswer) -> float:
    return float(_error_rows(case).mean())


def _root_mean_square(rows: Rows) -> float:
    return float(np.sqrt(np.mean(rows**2)))


def _correlation(rows: Rows) -> float:
    """Return Pearson's correlation; NaN if all answers or all true numbers are equal."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.asarray(np.corrcoef(rows.T))[0, 1]) if len(rows) > 1 else np.nan


def _determination(rows: Rows) -> float:
    """Return R2 = 1 - residual / total sum of squares; NaN if all true numbers are equal."""
    answer, true = rows.T
    total = np.sum((true - true.mean()) ** 2)
    return float(1 - np.sum((true - answer) ** 2) / total) if total > 0 else np.nan


_CLASS: Final = AnswerKind.PROBABILITIES
_NUMBERS: Final = AnswerKind.NUMBERS
CLASS_MEASURES: Final = (
    ChallengeMeasure("class.auc", _CLASS, _class_rows, _auc_of_rows, _worst_class_rows),
    ChallengeMeasure("class.macro_auc", _CLASS, _macro_rows, _macro_auc, _worst_macro_rows),
    ChallengeMeasure("class.sensitivity_at", _CLASS, _class_rows, _sensitivity_at,
                     _worst_class_rows),
    ChallengeMeasure("class.specificity_at", _CLASS, _class_rows, _specificity_at,
                     _worst_class_rows),
    ChallengeMeasure("number.absolute_error", _NUMBERS, _absolute_error),
    ChallengeMeasure("number.rmse", _NUMBERS, _error_rows, _root_mean_square),
    ChallengeMeasure("number.pearson", _NUMBERS, _number_rows, _correlation),
    ChallengeMeasure("number.r2", _NUMBERS, _number_rows, _determination),
)  # fmt: skip
