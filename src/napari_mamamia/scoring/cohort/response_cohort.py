"""All metrics of one response (pCR) model: performance, fairness, chance and calibration."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.cohort import Cohort
from napari_mamamia.core.progress import report_progress
from napari_mamamia.metrics.registry import Better
from napari_mamamia.scoring.cohort.groups import (
    EmptyGroups,
    Grouping,
    GroupRules,
    MissingLabel,
    Unassigned,
    UndefinedRate,
)
from napari_mamamia.scoring.cohort.ranking import ranking_score
from napari_mamamia.scoring.cohort.segmentation_cohort import (
    Spread,
    disparity,
    explain_no_groups,
    spread,
)
from napari_mamamia.scoring.statistics.auc import (
    RankedCases,
    auc,
    auc_of_counts,
    average_precision,
    average_precision_of_counts,
)
from napari_mamamia.scoring.statistics.bootstrap import Bootstrap, bootstrap, bootstrap_sums
from napari_mamamia.scoring.statistics.calibration import Calibration, calibration
from napari_mamamia.scoring.statistics.performance import ratio
from napari_mamamia.scoring.statistics.resampling import N_RESAMPLES, SEED, draw_cases, row_blocks

TP, FN, FP, TN = range(4)
"""Indices of the columns of the outcome counts."""

_NAN: Final = float("nan")
N_CLASSIFIERS: Final = 1000
"""Default number of random classifiers. Source: arXiv 2603.01250v2, significance of predictions."""

_SIMULATING: Final = "Simulating random classifiers"


@dataclass(frozen=True, slots=True, eq=False)
class ResponsePredictions:
    """Predictions of a model for n cases, with the known labels.

    `label` (n,) float64 is 1 for pathologic complete response, 0 for no complete response, and nan
    if unknown. `predicted` (n,) float64 is 0 or 1. `score` (n,) float64 is the model's probability
    of response from 0 to 1, or nan if missing.
    """

    case_ids: tuple[str, ...]
    label: NDArray[np.float64]
    predicted: NDArray[np.float64]
    score: NDArray[np.float64]

    def __post_init__(self) -> None:
        for name in ("label", "predicted", "score"):
            column = np.array(getattr(self, name), dtype=np.float64)
            _check_column(name, column, self.case_ids)
            column.flags.writeable = False
            object.__setattr__(self, name, column)
        if len(set(self.case_ids)) < len(self.case_ids):
            twice = next(i for i in self.case_ids if self.case_ids.count(i) > 1)
            raise ValueError(f"expected one prediction for case {twice}, but found two")

    @classmethod
    def of(cls, rows: Iterable[tuple[str, float, float]], cohort: Cohort) -> "ResponsePredictions":
        """Return predictions from rows of (case id, pcr, score), with labels from `cohort`."""
        rows = tuple(rows)
        records = cohort.by_id()
        responses = [records[row[0]].pcr if row[0] in records else None for row in rows]
        numbers = np.array([row[1:] for row in rows], dtype=np.float64).reshape(-1, 2)
        label = np.array([np.nan if pcr is None else float(pcr) for pcr in responses])
        return cls(tuple(row[0] for row in rows), label, numbers[:, 0], numbers[:, 1])

    @property
    def constant(self) -> str:
        """A sentence stating that all predictions are equal, or "" if they are not."""
        values = np.unique(self.predicted)
        if values.size != 1:
            return ""
        return (
            f"all {len(self.case_ids)} predictions are {values[0]:g}, but the challenge rejects "
            "constant predictions"
        )


def _check_column(name: str, column: NDArray[Any], case_ids: tuple[str, ...]) -> None:
    if column.shape != (len(case_ids),):
        raise ValueError(
            f"expected {len(case_ids)} values of {name}, one for each case, but found an array of "
            f"shape {column.shape}"
        )
    if name == "score":
        wrong, expected = (column < 0) | (column > 1), "a probability from 0 to 1, or nan"
    elif name == "label":
        wrong, expected = ~(np.isin(column, (0, 1)) | np.isnan(column)), "0, 1 or nan"
    else:
        wrong, expected = ~np.isin(column, (0, 1)), "0 or 1"
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"expected {name} to be {expected}, but it is {column[first]:g} for case "
            f"{case_ids[first]}: correct the table"
        )


@dataclass(frozen=True, slots=True)
class Recall:
    """Recall of responders (TPR), recall of non-responders (TNR), and their difference."""

    responders: float
    non_responders: float
    gap: float


@dataclass(frozen=True, slots=True)
class GroupRates:
    """One group with the numbers of labelled cases and responders, and rates (nan if undefined).

    `is_small` says whether the group has some cases, but fewer than the profile requires.
    """

    label: str
    n: int
    n_responders: int
    tpr: float
    fpr: float
    is_small: bool


@dataclass(frozen=True, slots=True)
class VariableOdds:
    """The equalised-odds disparity over one variable: TPR disparity + FPR disparity, from 0 to 2.

    0 is best. The value is nan, and `reason` explains why, if either disparity is undefined.
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
    """The mean disparity over the variables: unclipped, clipped to 1, and converted to fairness.

    `fairness` is 1 - `raw` or 1 - `clipped`, as the profile defines. It is nan, and `reason`
    explains why, if the disparity of a variable is nan.
    """

    fairness: float
    raw: float
    clipped: float
    variables: tuple[VariableOdds, ...]
    reason: str = ""


def scored_labels(predictions: ResponsePredictions, rules: GroupRules) -> NDArray[np.float64]:
    """Return the labels (n,) for balanced accuracy, with unknown labels treated by the profile."""
    if rules.missing_label is MissingLabel.NO_RESPONSE:
        return np.where(np.isnan(predictions.label), 0.0, predictions.label)
    return predictions.label


def outcomes(label: NDArray[np.float64], predicted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return an array (n, 4) with a 1 in the column TP, FN, FP or TN of each labelled case."""
    yes, no = label == 1, label == 0
    hit = predicted == 1
    return np.stack([yes & hit, yes & ~hit, no & hit, no & ~hit], axis=-1).astype(np.float64)


def recalls(counts: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return TPR and TNR from outcome counts (..., 4), with nan where a class has no case."""
    tpr = ratio(counts[..., TP], counts[..., TP] + counts[..., FN])
    return tpr, ratio(counts[..., TN], counts[..., TN] + counts[..., FP])


def balanced_accuracy(counts: NDArray[np.float64], rules: GroupRules) -> NDArray[np.float64]:
    """Return the balanced accuracy (TPR + TNR)/2 of outcome counts (..., 4), from 0 to 1.

    The chance level is 0.5. With only one class, the result is nan, or under `UndefinedRate.ZERO`
    the recall of that class, as in the scripts. Source: arXiv 2603.01250v2, Task 2.
    """
    tpr, tnr = recalls(counts)
    if rules.undefined_rate is UndefinedRate.ZERO:
        tpr, tnr = np.where(np.isnan(tpr), tnr, tpr), np.where(np.isnan(tnr), tpr, tnr)
    return (tpr + tnr) / 2


def rate_gaps(
    counts: NDArray[np.float64], rules: GroupRules, empty_groups: EmptyGroups
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the disparities of TPR and of FPR over groups with outcome counts (..., g, 4).

    Both disparities are nan if no group has a case.
    """
    tpr, fpr = _compute_rates(counts, rules, empty_groups)
    nowhere = counts.sum(axis=(-1, -2)) == 0
    return np.where(nowhere, np.nan, disparity(tpr)), np.where(nowhere, np.nan, disparity(fpr))


def _compute_rates(
    counts: NDArray[np.float64], rules: GroupRules, empty_groups: EmptyGroups
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
    """Return the rates of each group, including empty groups, over the cases with a known label."""
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
        _explain_undefined_odds(grouping.variable, of_tpr, of_fpr),
    )


def _explain_undefined_odds(variable: str, of_tpr: float, of_fpr: float) -> str:
    if np.isnan(of_tpr) and np.isnan(of_fpr):
        return f"no case with a known pcr has a group of {variable}"
    if np.isnan(of_tpr):
        return f"no group of {variable} has responders"
    return f"no group of {variable} has non-responders" if np.isnan(of_fpr) else ""


@dataclass(frozen=True, slots=True)
class Discrimination:
    """AUC, average precision and calibration over n cases with a score and a known label."""

    auc: float
    average_precision: float
    calibration: Calibration
    n: int
    reason: str = ""


def discrimination(predictions: ResponsePredictions) -> Discrimination:
    """Return the AUC, average precision and calibration, which are nan or empty without cases."""
    label, score = _select_scored(predictions)
    reason = ""
    if not len(label):
        reason = "no case has both a known pcr and a score"
    elif len(np.unique(label)) < 2:
        reason = "all cases with a score have the same pcr"
    return Discrimination(
        auc(label, score),
        average_precision(label, score),
        calibration(label, score),
        len(label),
        reason,
    )


def bootstrap_discrimination(
    predictions: ResponsePredictions, n_resamples: int = N_RESAMPLES, seed: int = SEED
) -> Bootstrap:
    """Return the bootstrap of AUC and average precision over cases with a label and a score.

    Raises
    ------
    ValueError
        If no case has a label and a score.
    """
    label, score = _select_scored(predictions)
    resamples = draw_cases(len(label), n_resamples, seed)
    cases = RankedCases.of(label, score)

    def numbers(drawn: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        counts = cases.counts(drawn)
        both = auc_of_counts(*counts), average_precision_of_counts(*counts)
        return np.stack(both, axis=1)

    without = np.stack([cases.auc_without_each(), cases.average_precision_without_each()], axis=1)
    names = ("auc", "average_precision")
    return bootstrap(names, map(numbers, resamples), numbers()[0], without, n_resamples)


def _select_scored(
    predictions: ResponsePredictions,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    both = ~(np.isnan(predictions.label) | np.isnan(predictions.score))
    return predictions.label[both], predictions.score[both]


class Significance(StrEnum):
    """Names of ranges of p-values. Source: arXiv 2603.01250v2."""

    SIGNIFICANT = "significant"
    """p < 0.05"""
    MARGINAL = "marginal"
    """0.05 <= p < 0.10"""
    NOT_SIGNIFICANT = "not significant"
    UNDEFINED = "undefined"


@dataclass(frozen=True, slots=True)
class ChanceTest:
    """A number with its one-sided p-value against random classifiers.

    `p_value` is (1 + number of random classifiers that reach `value`)/(1 + `n_classifiers`), never
    0. `chance_high` is the 95th percentile of the random classifiers.
    """

    value: float
    p_value: float
    significance: Significance
    chance_high: float
    n_classifiers: int


def balanced_accuracy_against_chance(
    label: NDArray[np.float64],
    predicted: NDArray[np.float64],
    rate: float = 0.5,
    n_classifiers: int = N_CLASSIFIERS,
    seed: int = SEED,
) -> ChanceTest:
    """Test balanced accuracy against classifiers that predict response with probability `rate`.

    `label` and `predicted` are (n,) with 0 and 1. With only one class, the result is nan.
    """
    yes = label == 1
    parts = np.stack([yes, ~yes], axis=1).astype(np.float64)
    rng = np.random.default_rng(seed)
    reached = []
    for n_rows in row_blocks(n_classifiers, len(label)):
        report_progress(0, 1, _SIMULATING)
        guesses = (rng.random((n_rows, len(label))) < rate).astype(np.float64)
        reached.append(_compute_balanced_accuracy(guesses @ parts, parts))
    value = float(_compute_balanced_accuracy(predicted[None] @ parts, parts)[0])
    return _test_against_chance(value, np.concatenate(reached))


def auc_against_chance(
    label: NDArray[np.float64],
    score: NDArray[np.float64],
    n_classifiers: int = N_CLASSIFIERS,
    seed: int = SEED,
) -> ChanceTest:
    """Test the AUC against classifiers with uniform random scores.

    `label` (n,) contains 0 and 1, and `score` (n,) any numbers. With only one class, the result is
    nan.
    """
    yes = label == 1
    n_yes, n_no = int(yes.sum()), int((~yes).sum())
    rng = np.random.default_rng(seed)
    reached = []
    for n_rows in row_blocks(n_classifiers, len(label)):
        report_progress(0, 1, _SIMULATING)
        shuffled = yes[rng.random((n_rows, len(label))).argsort(axis=1)]
        # The responders' ranks minus the ranks among themselves give the number of correctly
        # ordered pairs.
        ordered = shuffled @ np.arange(len(label), dtype=np.float64) - n_yes * (n_yes - 1) / 2
        reached.append(ratio(ordered, np.asarray(float(n_yes * n_no))))
    return _test_against_chance(auc(label, score), np.concatenate(reached))


def _compute_balanced_accuracy(
    said_yes: NDArray[np.float64], parts: NDArray[np.float64]
) -> NDArray[np.float64]:
    shares = ratio(said_yes, parts.sum(axis=0))
    balanced: NDArray[np.float64] = (shares[:, 0] + 1 - shares[:, 1]) / 2
    return balanced


def _test_against_chance(value: float, reached: NDArray[np.float64]) -> ChanceTest:
    if np.isnan(value):
        nothing = float("nan")
        return ChanceTest(value, nothing, Significance.UNDEFINED, nothing, reached.size)
    # A random value that equals the observed value except for rounding counts as reaching it.
    at_least = np.count_nonzero(reached >= value - 1e-12)
    p_value = (1 + at_least) / (1 + reached.size)
    significance = Significance.NOT_SIGNIFICANT
    if p_value < 0.10:
        significance = Significance.SIGNIFICANT if p_value < 0.05 else Significance.MARGINAL
    return ChanceTest(value, p_value, significance, float(np.percentile(reached, 95)), reached.size)


@dataclass(frozen=True, slots=True)
class ResponseCohort:
    """The metrics of one response model under one profile.

    `without_label` lists the cases with unknown pCR. `refused` explains why the challenge would
    reject the predictions, or is ""; rejected predictions have a balanced accuracy, fairness and
    ranking score of nan. `reason` explains why `ranking_score` is nan, and `notes` describe unusual
    properties.
    """

    profile: str
    n_cases: int
    n_scored: int
    without_label: tuple[str, ...]
    balanced_accuracy: float
    recall: Recall
    odds: EqualisedOdds
    fairness: float
    weight_of_fairness: float
    ranking_score: float
    discrimination: Discrimination
    chance: ChanceTest
    refused: str = ""
    reason: str = ""
    notes: tuple[str, ...] = ()


def score_response(
    predictions: ResponsePredictions,
    groupings: Sequence[Grouping],
    rules: GroupRules,
    weight_of_fairness: float | None = None,
) -> ResponseCohort:
    """Return the cohort metrics of a response model.

    If `weight_of_fairness` is None, the profile's weight is used.
    """
    label = scored_labels(predictions, rules)
    refused = "" if rules.scores_constant else predictions.constant
    counts = outcomes(label, predictions.predicted).sum(axis=0)
    tpr, tnr = (float(rate) for rate in recalls(counts))
    odds = equalised_odds(predictions, groupings, rules)
    balanced = float("nan") if refused else float(balanced_accuracy(counts, rules))
    fairness = float("nan") if refused else odds.fairness
    weight = rules.weight_of_fairness if weight_of_fairness is None else weight_of_fairness
    score = float(ranking_score(balanced, fairness, weight))
    has_label = ~np.isnan(label)
    chance = balanced_accuracy_against_chance(label[has_label], predictions.predicted[has_label])
    return ResponseCohort(
        rules.profile,
        len(predictions.case_ids),
        int(has_label.sum()),
        _without_label(predictions),
        balanced,
        Recall(tpr, tnr, abs(tpr - tnr)),
        odds,
        fairness,
        weight,
        score,
        discrimination(predictions),
        chance,
        refused,
        _explain_undefined(refused, balanced, odds) if np.isnan(score) else "",
        (*_note_constant(predictions, rules), *_note_missing_labels(predictions, rules)),
    )


def bootstrap_response(
    predictions: ResponsePredictions,
    groupings: Sequence[Grouping],
    rules: GroupRules,
    weight_of_fairness: float,
    n_resamples: int = N_RESAMPLES,
    seed: int = SEED,
) -> Bootstrap:
    """Return the bootstrap of the scored metrics of a response model.

    The names are balanced_accuracy, disparity_VARIABLE for each grouping, disparity (their mean),
    fairness, ranking_score, disparity_tpr_VARIABLE and disparity_fpr_VARIABLE; without groupings,
    only the first name is used. A resample with constant predictions is scored like any other.
    """
    names = ["balanced_accuracy"]
    if groupings:
        names += [f"disparity_{grouping.variable}" for grouping in groupings]
        names += ["disparity", "fairness", "ranking_score"]
        for rate in ("tpr", "fpr"):
            names += [f"disparity_{rate}_{grouping.variable}" for grouping in groupings]
    parts = _collect_parts(predictions, groupings, rules)

    def numbers(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return _compute_numbers(sums, groupings, rules, weight_of_fairness)

    return bootstrap_sums(tuple(names), parts, numbers, n_resamples, seed)


def _collect_parts(
    predictions: ResponsePredictions, groupings: Sequence[Grouping], rules: GroupRules
) -> NDArray[np.float64]:
    everybody = outcomes(scored_labels(predictions, rules), predictions.predicted)
    counts = outcomes(predictions.label, predictions.predicted)
    in_groups = [
        (grouping.indicator[:, :, None] * counts[:, None, :]).reshape(len(counts), -1)
        for grouping in groupings
    ]
    return np.hstack([everybody, *in_groups])


def _compute_numbers(
    sums: NDArray[np.float64], groupings: Sequence[Grouping], rules: GroupRules, weight: float
) -> NDArray[np.float64]:
    cells = sums.reshape(len(sums), -1, 4)
    balanced = balanced_accuracy(cells[:, 0], rules)
    first, both = 1, []
    for grouping in groupings:
        columns = slice(first, first + len(grouping.labels))
        both.append(rate_gaps(cells[:, columns], rules, grouping.empty_groups))
        first = columns.stop
    if not both:
        return balanced[:, None]
    gaps = [tpr + fpr for tpr, fpr in both]
    mean = np.stack(gaps).mean(axis=0)
    fairness = fairness_of(mean, rules)
    score = ranking_score(balanced, fairness, weight)
    rates = [pair[rate] for rate in (0, 1) for pair in both]
    return np.stack([balanced, *gaps, mean, fairness, score, *rates], axis=1)


def _without_label(predictions: ResponsePredictions) -> tuple[str, ...]:
    places = np.flatnonzero(np.isnan(predictions.label))
    return tuple(predictions.case_ids[index] for index in places)


def _explain_undefined(refused: str, balanced: float, odds: EqualisedOdds) -> str:
    if refused:
        return refused
    one_class = "a balanced accuracy needs responders and non-responders with a known pcr"
    reasons = (one_class if np.isnan(balanced) else "", odds.reason)
    return "; ".join(text for text in reasons if text)


def _note_constant(predictions: ResponsePredictions, rules: GroupRules) -> tuple[str, ...]:
    if not predictions.constant or not rules.scores_constant:
        return ()
    return (f"{predictions.constant}; they are scored as in the published script",)


def _note_missing_labels(predictions: ResponsePredictions, rules: GroupRules) -> tuple[str, ...]:
    n_missing = int(np.isnan(predictions.label).sum())
    if not n_missing:
        return ()
    text = f"pcr is unknown for {n_missing} of {len(predictions.case_ids)} cases"
    if rules.missing_label is MissingLabel.NO_RESPONSE:
        return (
            (
                f"{text}; these cases count as non-responders in balanced accuracy, as in the "
                "published script, but are left out of the groups, where the script stops"
            ),
        )
    return (f"{text}: left out",)
