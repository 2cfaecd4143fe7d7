"""The measures of a challenge: the values of each case, and how they are combined.

A measure is one function of a case, which returns a number or rows of numbers, and for measures of
the whole set a second function of all rows.
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
"""Numbers of a case or of all cases, (n, d)."""


class NotDefinedError(ValueError):
    """A measure has no value for a case because of the answer, such as an empty mask."""


class NoTruthError(ValueError):
    """A measure has no value for a case because of the truth; the measure ignores this case."""


class NotComputedError(CaseError):
    """A measure cannot be computed at all, because a model or a package is missing."""


@dataclass(frozen=True, slots=True)
class CaseAnswer:
    """The answer and the truth of a case.

    Parameters
    ----------
    case_id
        The case.
    answer
        An image (rows, columns); probabilities by part, each (k,); or a number by part. The part
        of a case without parts is "".
    truth
        By role: images; for a table, the role "table" has the class or number by part.
    models
        By role: the models that the organiser gave.
    n_classes
        Number of classes, 0 without classes.
    """

    case_id: str
    answer: Any
    truth: Mapping[str, Any]
    models: Mapping[str, Callable[..., Any]] = field(default_factory=lambda: MappingProxyType({}))
    n_classes: int = 0

    def model(self, role: str) -> Callable[..., Any]:
        """Return a model, or raise `NotComputedError` if the organiser gave none."""
        if role not in self.models:
            raise NotComputedError(f"not computed: no model was given for {role}")
        return self.models[role]


@dataclass(frozen=True, slots=True)
class ChallengeMeasure:
    """A measure by name.

    Parameters
    ----------
    name
        The name that definitions use, such as ``image.mse``.
    kind
        The kind of answer.
    of_case
        Returns a number or rows of numbers of a `CaseAnswer` (with the definition's arguments); for
        masks, of a prediction, a reference, both (z, y, x), and their spacing (z, y, x) in mm.
        It raises `NotDefinedError` or `NoTruthError` where it has no value.
    of_rows
        Returns the measure from the rows of all cases, (n, d); None averages the numbers.
    worst
        The number, or a function of the same arguments that returns the number or rows, of a case
        without a usable answer; it is also the limit of all values. None: a team with such a case
        is ranked last by this measure.
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
    """A kind of model that a measure uses: `load` returns the function from a text after ``:``."""

    name: str
    load: Callable[[str], Callable[..., Any]]


def _class_rows(case: CaseAnswer, target: int = -1) -> Rows:
    """Return label and probability of each (part, class) pair; of one class if `target` is given.

    The pairs of all classes together are the micro average. A single class has the code 1.
    """
    rows = []
    for part, probabilities in case.answer.items():
        label = int(case.truth["table"][part])
        rows += [(float(label == code), float(probabilities[place]))
                 for place, code in _list_codes(case, target)]  # fmt: skip
    return np.array(rows)


def _list_codes(case: CaseAnswer, target: int) -> list[tuple[int, int]]:
    """Return the places of the counted classes among the probabilities, and their codes."""
    if case.n_classes == 1:
        return [(0, 1)]
    return [(code, code) for code in (range(case.n_classes) if target < 0 else (target,))]


def _worst_class_rows(case: CaseAnswer, target: int = -1) -> Rows:
    """Return the rows of a case in which every class gets the wrong probability."""
    labels = [int(label) for label in case.truth["table"].values()]
    return np.array([(float(label == code), float(label != code)) for label in labels
                     for _, code in _list_codes(case, target)])  # fmt: skip


def roc_curve(rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return false and true positive rates at each threshold, from (0, 0); collinear points stay.

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
    """Return the sensitivity at a specificity, interpolated by np.interp.

    On a plateau np.interp takes the last point of the curve with this false positive rate.
    """
    return float(np.interp(1 - specificity, *roc_curve(rows)))


def _specificity_at(rows: Rows, sensitivity: float = 0.9) -> float:
    false_rate, true_rate = roc_curve(rows)
    return float(1 - np.interp(sensitivity, true_rate, false_rate))


def _macro_rows(case: CaseAnswer) -> Rows:
    """Return label and all probabilities of each part."""
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
    """Return the answer and the truth of each part."""
    return np.array([(case.answer[part], true) for part, true in case.truth["table"].items()])


def _error_rows(case: CaseAnswer) -> Rows:
    rows = _number_rows(case)
    return np.abs(rows[:, :1] - rows[:, 1:])


def _absolute_error(case: CaseAnswer) -> float:
    return float(_error_rows(case).mean())


def _root_mean_square(rows: Rows) -> float:
    return float(np.sqrt(np.mean(rows**2)))


def _correlation(rows: Rows) -> float:
    """Return Pearson's correlation, or nan if all answers or all true numbers are equal."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.asarray(np.corrcoef(rows.T))[0, 1]) if len(rows) > 1 else np.nan


def _determination(rows: Rows) -> float:
    """Return R2, 1 - residual / total sum of squares, or nan if all true numbers are equal."""
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
