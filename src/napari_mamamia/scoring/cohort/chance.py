"""Test whether a response model is better than chance, against simulated random classifiers."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.progress import report_progress
from napari_mamamia.scoring.statistics.auc import auc
from napari_mamamia.scoring.statistics.performance import ratio
from napari_mamamia.scoring.statistics.resampling import row_blocks

N_CLASSIFIERS: Final = 1000
SEED: Final = 42
"""Default number of classifiers and seed. Source: arXiv 2603.01250v2, significance of pCR
predictions.
"""

_SIMULATING: Final = "Simulating random classifiers"


class Significance(StrEnum):
    """The name of a range of p-values. Source: arXiv 2603.01250v2."""

    SIGNIFICANT = "significant"
    """p < 0.05"""
    MARGINAL = "marginal"
    """0.05 <= p < 0.10"""
    NOT_SIGNIFICANT = "not significant"
    UNDEFINED = "undefined"


@dataclass(frozen=True, slots=True)
class ChanceTest:
    """A number, its one-sided p-value against random classifiers, and their 95th percentile.

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
    """Test balanced accuracy against classifiers that predict response at `rate`.

    `label` and `predicted` are (n,), 0 and 1. With one class only the result is nan.
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

    `label` (n,) is 0 and 1, `score` (n,) any numbers. With one class only the result is nan.
    """
    yes = label == 1
    n_yes, n_no = int(yes.sum()), int((~yes).sum())
    rng = np.random.default_rng(seed)
    reached = []
    for n_rows in row_blocks(n_classifiers, len(label)):
        report_progress(0, 1, _SIMULATING)
        shuffled = yes[rng.random((n_rows, len(label))).argsort(axis=1)]
        # The responders' ranks minus the ranks among themselves: the correctly ordered pairs.
        ordered = shuffled @ np.arange(len(label), dtype=np.float64) - n_yes * (n_yes - 1) / 2
        reached.append(ratio(ordered, np.asarray(float(n_yes * n_no))))
    return _test_against_chance(auc(label, score), np.concatenate(reached))


def _compute_balanced_accuracy(
    said_yes: NDArray[np.float64], parts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the balanced accuracy from the number of cases of each class predicted to respond."""
    shares = ratio(said_yes, parts.sum(axis=0))
    balanced: NDArray[np.float64] = (shares[:, 0] + 1 - shares[:, 1]) / 2
    return balanced


def _test_against_chance(value: float, reached: NDArray[np.float64]) -> ChanceTest:
    if np.isnan(value):
        nothing = float("nan")
        return ChanceTest(value, nothing, Significance.UNDEFINED, nothing, reached.size)
    # A random value that equals the observed one but for rounding counts as reaching it.
    at_least = np.count_nonzero(reached >= value - 1e-12)
    p_value = (1 + at_least) / (1 + reached.size)
    significance = Significance.NOT_SIGNIFICANT
    if p_value < 0.10:
        significance = Significance.SIGNIFICANT if p_value < 0.05 else Significance.MARGINAL
    return ChanceTest(value, p_value, significance, float(np.percentile(reached, 95)), reached.size)
