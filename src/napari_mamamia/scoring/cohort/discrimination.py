"""Discrimination and calibration of a response model's probabilities."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.scoring.cohort.response_predictions import ResponsePredictions
from napari_mamamia.scoring.statistics.auc import (
    RankedCases,
    auc,
    auc_of_counts,
    average_precision,
    average_precision_of_counts,
)
from napari_mamamia.scoring.statistics.bootstrap import Bootstrap, bootstrap
from napari_mamamia.scoring.statistics.calibration import Calibration, calibration
from napari_mamamia.scoring.statistics.resampling import N_RESAMPLES, SEED, draw_cases


@dataclass(frozen=True, slots=True)
class Discrimination:
    """AUC, average precision and calibration, over n cases with a score and a known label."""

    auc: float
    average_precision: float
    calibration: Calibration
    n: int
    reason: str = ""


def discrimination(predictions: ResponsePredictions) -> Discrimination:
    """Return AUC, average precision and calibration; nan and empty without cases."""
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
    """Return the bootstrap of auc and average_precision over cases with a label and a score.

    Raises
    ------
    ValueError
        If no case has both.
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
    """Return label and score of the cases that have both."""
    both = ~(np.isnan(predictions.label) | np.isnan(predictions.score))
    return predictions.label[both], predictions.score[both]
