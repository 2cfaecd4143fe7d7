"""All numbers of one response (pCR) model over a cohort: performance, fairness, intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.scoring.cohort.chance import ChanceTest, balanced_accuracy_against_chance
from napari_mamamia.scoring.cohort.classification import (
    EqualisedOdds,
    Recall,
    balanced_accuracy,
    equalised_odds,
    fairness_of,
    outcomes,
    rate_gaps,
    recalls,
    scored_labels,
)
from napari_mamamia.scoring.cohort.discrimination import Discrimination, discrimination
from napari_mamamia.scoring.cohort.group_rules import GroupRules, MissingLabel
from napari_mamamia.scoring.cohort.groups import Grouping
from napari_mamamia.scoring.cohort.ranking import ranking_score
from napari_mamamia.scoring.cohort.response_predictions import ResponsePredictions
from napari_mamamia.scoring.statistics.bootstrap import Bootstrap, bootstrap_sums
from napari_mamamia.scoring.statistics.resampling import N_RESAMPLES, SEED


@dataclass(frozen=True, slots=True)
class ResponseCohort:
    """One response model's numbers under one profile.

    `without_label` lists the cases with unknown pCR. `refused` says why the challenge would refuse
    the predictions ("" if it would not); balanced accuracy, fairness and ranking score are then
    nan. `reason` says why `ranking_score` is nan, `notes` hold what is unusual.
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
    """Return the cohort's numbers of a response model.

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
    """Return the bootstrap of the scored numbers of a response model.

    The names are balanced_accuracy, disparity_VARIABLE for each grouping, disparity (their mean),
    fairness, ranking_score, and disparity_tpr_VARIABLE, disparity_fpr_VARIABLE; without groupings
    only the first. A resample with constant predictions is scored like any other.
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
    """Return each case's contribution to the overall and group counts, (n, 4 (1 + G))."""
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
    """Return the numbers (b, m) from outcome counts (b, 4 (1 + G))."""
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
    return (f"{predictions.constant}; the published script scores them, and so do these numbers",)


def _note_missing_labels(predictions: ResponsePredictions, rules: GroupRules) -> tuple[str, ...]:
    n_missing = int(np.isnan(predictions.label).sum())
    if not n_missing:
        return ()
    text = f"pcr is unknown for {n_missing} of {len(predictions.case_ids)} cases"
    if rules.missing_label is MissingLabel.NO_RESPONSE:
        return (
            (
                f"{text}: they count as non-responders in balanced accuracy, as in the published "
                "script, and are left out of the groups, where the script stops"
            ),
        )
    return (f"{text}: left out",)
