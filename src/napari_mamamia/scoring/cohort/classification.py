"""Measure predicted response (pCR): balanced accuracy, recalls and equalised odds over groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.metrics.registry import Better
from napari_mamamia.scoring.cohort.fairness import Spread, disparity, explain_no_groups, spread
from napari_mamamia.scoring.cohort.group_rules import (
    EmptyGroups,
    GroupRules,
    MissingLabel,
    UndefinedRate,
)
from napari_mamamia.scoring.cohort.groups import Grouping, Unassigned
from napari_mamamia.scoring.cohort.response_predictions import ResponsePredictions
from napari_mamamia.scoring.statistics.performance import ratio

TP, FN, FP, TN = range(4)
"""Columns of the outcome counts."""

_NAN: Final = float("nan")


@dataclass(frozen=True, slots=True)
class Recall:
    """Recall of responders (TPR), of non-responders (TNR), and the difference between them."""

    responders: float
    non_responders: float
    gap: float


@dataclass(frozen=True, slots=True)
class GroupRates:
    """One group: cases with a known label, responders, and its rates, nan where undefined.

    `is_small` is true if the group has cases, but fewer than the profile requires.
    """

    label: str
    n: int
    n_responders: int
    tpr: float
    fpr: float
    is_small: bool


@dataclass(frozen=True, slots=True)
class VariableOdds:
    """The equalised-odds disparity over one variable, 0 (best) to 2: TPR disparity + FPR disparity.

    The value is nan, with the `reason`, if one of them is undefined.
    """

    variable: str
    disparity: float
    tpr: Spread
    fpr: Spread
    groups: tuple[GroupRates, ...]
    unassigned: tuple[Unassigned, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class EqualisedOdds:
    """The mean disparity over the variables: unclipped, clipped to 1, and as fairness.

    `fairness` is 1 - `raw` or 1 - `clipped`, as the profile defines. It is nan, with the `reason`,
    if the disparity of one variable is nan.
    """

    fairness: float
    raw: float
    clipped: float
    variables: tuple[VariableOdds, ...]
    reason: str = ""


def scored_labels(predictions: ResponsePredictions, rules: GroupRules) -> NDArray[np.float64]:
    """Return the labels for balanced accuracy, (n,), with unknown ones treated by the profile."""
    if rules.missing_label is MissingLabel.NO_RESPONSE:
        return np.where(np.isnan(predictions.label), 0.0, predictions.label)
    return predictions.label


def outcomes(label: NDArray[np.float64], predicted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (n, 4) with a 1 in the column TP, FN, FP or TN of each case with a known label."""
    yes, no = label == 1, label == 0
    hit = predicted == 1
    return np.stack([yes & hit, yes & ~hit, no & hit, no & ~hit], axis=-1).astype(np.float64)


def recalls(counts: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return TPR and TNR from outcome counts (..., 4), nan where a class has no case."""
    tpr = ratio(counts[..., TP], counts[..., TP] + counts[..., FN])
    return tpr, ratio(counts[..., TN], counts[..., TN] + counts[..., FP])


def balanced_accuracy(counts: NDArray[np.float64], rules: GroupRules) -> NDArray[np.float64]:
    """Return (TPR + TNR)/2 of outcome counts (..., 4), 0 to 1; chance level is 0.5.

    With one class only it is nan, or that class's recall under `UndefinedRate.ZERO`, as the scripts
    compute it. Source: arXiv 2603.01250v2, Task 2.
    """
    tpr, tnr = recalls(counts)
    if rules.undefined_rate is UndefinedRate.ZERO:
        tpr, tnr = np.where(np.isnan(tpr), tnr, tpr), np.where(np.isnan(tnr), tpr, tnr)
    return (tpr + tnr) / 2


def rate_gaps(
    counts: NDArray[np.float64], rules: GroupRules, empty_groups: EmptyGroups
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the disparities of TPR and of FPR over groups with outcome counts (..., g, 4).

    Both are nan if no group has a case.
    """
    tpr, fpr = _compute_rates(counts, rules, empty_groups)
    nowhere = counts.sum(axis=(-1, -2)) == 0
    return np.where(nowhere, np.nan, disparity(tpr)), np.where(nowhere, np.nan, disparity(fpr))


def _compute_rates(
    counts: NDArray[np.float64], rules: GroupRules, empty_groups: EmptyGroups
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return TPR and FPR of groups from outcome counts (..., g, 4); nan is not counted."""
    tpr = ratio(counts[..., TP], counts[..., TP] + counts[..., FN])
    fpr = ratio(counts[..., FP], counts[..., FP] + counts[..., TN])
    if rules.undefined_rate is UndefinedRate.ZERO:
        n = counts.sum(axis=-1)
        counted = n > 0 if empty_groups is EmptyGroups.LEFT_OUT else np.ones(n.shape, dtype=bool)
        all_hits = counts[..., TP] == n
        tpr = np.where(counted & (np.isnan(tpr) | all_hits), 0.0, tpr)
        fpr = np.where(counted & np.isnan(fpr), 0.0, fpr)
    return tpr, fpr


def group_rates(
    predictions: ResponsePredictions, grouping: Grouping, rules: GroupRules
) -> tuple[GroupRates, ...]:
    """Return one row for each group over its cases with a known label, including empty groups."""
    counts = grouping.indicator.T @ outcomes(predictions.label, predictions.predicted)
    tpr, fpr = _compute_rates(counts, rules, grouping.empty_groups)
    return tuple(
        GroupRates(
            label,
            int(counts[index].sum()),
            int(counts[index, TP] + counts[index, FN]),
            float(tpr[index]),
            float(fpr[index]),
            bool(0 < counts[index].sum() < rules.min_group_size),
        )
        for index, label in enumerate(grouping.labels)
    )


def equalised_odds(
    predictions: ResponsePredictions, groupings: Sequence[Grouping], rules: GroupRules
) -> EqualisedOdds:
    """Return the equalised-odds disparities over the variables of `groupings`.

    D_v = (largest - smallest TPR) + (largest - smallest FPR) over groups. Other software takes the
    larger of the two instead of the sum. Source: arXiv 2603.01250v2, Task 2.
    """
    variables = tuple(_variable_odds(predictions, grouping, rules) for grouping in groupings)
    if not variables:
        return EqualisedOdds(_NAN, _NAN, _NAN, (), explain_no_groups(predictions.case_ids))
    raw = sum(variable.disparity for variable in variables) / len(variables)
    undefined = [variable for variable in variables if variable.reason]
    reason = "; ".join(f"{variable.variable}: {variable.reason}" for variable in undefined)
    clipped = float(np.minimum(raw, 1.0))
    fairness = float(fairness_of(np.asarray(raw), rules))
    return EqualisedOdds(fairness, raw, clipped, variables, reason)


def fairness_of(mean_disparity: NDArray[np.float64], rules: GroupRules) -> NDArray[np.float64]:
    """Return 1 - mean disparity; the profile decides whether the disparity is clipped."""
    limit = np.inf if rules.disparity_limit is None else rules.disparity_limit
    return 1 - np.minimum(mean_disparity, limit)


def _variable_odds(
    predictions: ResponsePredictions, grouping: Grouping, rules: GroupRules
) -> VariableOdds:
    cells = outcomes(predictions.label, predictions.predicted)
    gaps = rate_gaps(grouping.indicator.T @ cells, rules, grouping.empty_groups)
    of_tpr, of_fpr = float(gaps[0]), float(gaps[1])
    groups = group_rates(predictions, grouping, rules)
    tpr, fpr = (np.array([getattr(group, rate) for group in groups]) for rate in ("tpr", "fpr"))
    return VariableOdds(
        grouping.variable,
        of_tpr + of_fpr,
        spread(tpr, grouping.labels, of_tpr, Better.HIGHER),
        spread(fpr, grouping.labels, of_fpr, Better.LOWER),
        groups,
        grouping.unassigned,
        _explain_undefined(grouping.variable, of_tpr, of_fpr),
    )


def _explain_undefined(variable: str, of_tpr: float, of_fpr: float) -> str:
    if np.isnan(of_tpr) and np.isnan(of_fpr):
        return f"no case with a known pcr has a group of {variable}"
    if np.isnan(of_tpr):
        return f"no group of {variable} has responders"
    return f"no group of {variable} has non-responders" if np.isnan(of_fpr) else ""
