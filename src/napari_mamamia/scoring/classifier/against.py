"""Compare models with each other and with a reader."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations
from math import inf, isnan, nan
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.scoring.cohort.comparison import holm
from napari_mamamia.scoring.statistics.auc import AucComparison, compare_aucs


class BayesRule(StrEnum):
    """Threshold of the Bayes factor K above which one model is robustly better than another."""

    OVER_3 = "K>3"
    """The rule of most DREAM challenges. Source: organisers of the Multiple Myeloma DREAM challenge
    (Synapse syn6187098); default of Sage-Bionetworks/challengescoring.
    """
    AT_LEAST_19 = "K>=19"
    """One-sided level 0.05: at most one draw of 20 contradicts the claim."""
    AT_LEAST_39 = "K>=39"
    """The two-sided 95 % percentile interval of the difference lies above 0."""

    def holds(self, factor: "BayesFactor") -> bool:
        """Return whether a Bayes factor meets the rule; nan does not.

        If no draw contradicts the claim, K exceeds the number of draws by an unknown amount.
        """
        k = factor.n_draws if factor.k == inf else factor.k
        if self is BayesRule.OVER_3:
            return k > 3 or (factor.k == inf and k == 3)
        return k >= (19 if self is BayesRule.AT_LEAST_19 else 39)


@dataclass(frozen=True, slots=True)
class BayesFactor:
    """Number of draws in which `better` wins against `other`, divided by the other draws.

    A draw with equal values counts against it. `k` is infinite if no draw contradicts, nan without
    a draw. `n_draws` are those with both classes.
    """

    better: str
    other: str
    k: float
    n_draws: int

    @property
    def name(self) -> str:
        """The claim, such as "A over B"."""
        return f"{self.better} over {self.other}"

    @property
    def text(self) -> str:
        """The factor as text; "> B" if none of B draws contradicts the claim."""
        if isnan(self.k):
            return "no draw"
        return (
            f"> {self.n_draws:,}"
            if self.k == inf
            else f"{self.k:,.3g}"
            if self.k < 100
            else f"{self.k:,.0f}"
        )


def bayes_factor(
    draws: NDArray[np.float64], other_draws: NDArray[np.float64], names: tuple[str, str] = ("", "")
) -> BayesFactor:
    """Return K = (draws with a larger value)/(draws with a smaller or equal one).

    Both arrays (B,) hold a number, larger is better, on the same resamples; a draw that is nan in
    one is not counted. Source of the draws: T. Schaffter et al. 2020, supplement.

    Parameters
    ----------
    draws, other_draws
        Numbers (B,) of two models in the same resamples.
    names
        Names of the two models.

    Examples
    --------
    >>> bayes_factor(np.array([0.8, 0.7, 0.9, 0.8]), np.array([0.7, 0.7, 0.8, 0.7])).k
    3.0
    """
    apart = draws - other_draws
    apart = apart[~np.isnan(apart)]
    n_for = int((apart > 0).sum())
    n_against = apart.size - n_for
    if not apart.size:
        return BayesFactor(*names, nan, 0)
    return BayesFactor(*names, n_for / n_against if n_against else inf, apart.size)


def bayes_factors(draws: NDArray[np.float64], names: Sequence[str]) -> tuple[BayesFactor, ...]:
    """Return the factor of each ordered pair of models, from `draws` (B, k)."""
    return tuple(
        bayes_factor(draws[:, row], draws[:, other], (names[row], names[other]))
        for row in range(len(names))
        for other in range(len(names))
        if row != other
    )


def challengescoring_factors(draws: NDArray[np.float64], reference: int) -> tuple[float, ...]:
    """Return K of each model against a reference, as the R package challengescoring does.

    Its K has no direction, ties count for the model that is not the reference, and K depends on
    which model the reference is. `draws` (B, k) hold a number, larger is better; the reference's
    own K is nan. Source: Sage-Bionetworks/challengescoring, ``computeBayesFactor``.

    Parameters
    ----------
    draws
        Numbers (B, k) of k models in B resamples.
    reference
        Index of the reference.

    Examples
    --------
    >>> a, b = [0.8, 0.7, 0.9, 0.75], [0.8, 0.6, 0.95, 0.7]
    >>> draws = np.array([a, b]).T
    >>> challengescoring_factors(draws, 0)[1], challengescoring_factors(draws, 1)[0]
    (1.0, 3.0)
    """
    apart = draws - draws[:, [reference]]
    with np.errstate(divide="ignore"):
        k = (apart >= 0).sum(axis=0) / (apart < 0).sum(axis=0)
        k = np.maximum(k, 1 / k)
    k[reference] = nan
    return tuple(k.tolist())


@dataclass(frozen=True, slots=True)
class RobustLeader:
    """The winner under a rule: the leader, or the best partial AUC among those tied with it.

    `tied` lists the best model and every model that it does not robustly beat.
    """

    rule: BayesRule
    best: str
    tied: tuple[str, ...]
    winner: str


def robust_leader(
    names: Sequence[str],
    aucs: NDArray[np.float64],
    partial_aucs: NDArray[np.float64],
    draws: NDArray[np.float64],
    rule: BayesRule,
) -> RobustLeader | None:
    """Return the winner of k models; None without a defined AUC or a draw.

    Ties go to the first model. Source: T. Schaffter et al. 2020, supplement: a model that is
    robustly better than the second wins, otherwise partial AUC decides among the tied.

    Parameters
    ----------
    names
        Names of the k models.
    aucs, partial_aucs
        AUCs and partial AUCs, (k,).
    draws
        AUCs in each resample, (B, k).
    rule
        When one model is robustly better.
    """
    if np.isnan(aucs).all() or np.isnan(draws).all():
        return None
    best = int(np.nanargmax(aucs))
    tied = [
        index
        for index in range(len(names))
        if index == best
        or not (isnan(aucs[index]) or rule.holds(bayes_factor(draws[:, best], draws[:, index])))
    ]
    second = max((p for p in range(len(names)) if p != best), key=lambda p: aucs[p], default=best)
    if second not in tied:
        tied = [best]
    winner = max(tied, key=lambda place: partial_aucs[place])
    return RobustLeader(rule, names[best], tuple(names[p] for p in tied), names[winner])


@dataclass(frozen=True, slots=True)
class PairedModels:
    """Two models on the same cases: DeLong's test and the resampled difference of their AUCs.

    `low`, `high`: 95 % percentile interval of the difference a - b over the resamples.
    `p_holm`: DeLong's p-value corrected for all pairs.
    """

    model_a: str
    model_b: str
    delong: AucComparison
    low: float
    high: float
    p_holm: float = nan


def pair_models(
    label: NDArray[np.float64],
    scores: NDArray[np.float64],
    names: Sequence[str],
    draws: NDArray[np.float64],
) -> tuple[PairedModels, ...]:
    """Return every pair of models with scores (k, n), and `draws` (B, k) of their AUCs.

    Parameters
    ----------
    label
        0 or 1 of each case, (n,).
    scores
        Scores (k, n).
    names
        Names of the k models.
    draws
        AUCs in each resample, (B, k).
    """
    pairs = [
        PairedModels(
            names[a],
            names[b],
            compare_aucs(label, scores[a], scores[b]),
            *percentile_ends(draws[:, a] - draws[:, b]),
        )
        for a, b in combinations(range(len(names)), 2)
    ]
    corrected = holm(np.array([pair.delong.p_value for pair in pairs]))
    return tuple(replace(pair, p_holm=float(p)) for pair, p in zip(pairs, corrected, strict=True))


def percentile_ends(draws: NDArray[np.float64], level: float = 0.95) -> tuple[float, float]:
    """Return both ends of the percentile interval of draws (B,); nan if no draw is defined."""
    defined = draws[~np.isnan(draws)]
    if not defined.size:
        return nan, nan
    low, high = np.percentile(defined, [50 * (1 - level), 50 * (1 + level)])
    return float(low), float(high)


@dataclass(frozen=True, slots=True)
class AgainstReader:
    """Comparison of a model with a reader at the reader's sensitivity, on the reader's cases.

    `cut` is the smallest score that the model calls positive; `sensitivity` is its sensitivity
    there, at least the reader's; `only_model_right`, `only_reader_right`: negatives that only one
    of them calls negative; `p_mcnemar` is the exact two-sided test of these.
    """

    cut: float
    sensitivity: float
    specificity: float
    only_model_right: int
    only_reader_right: int
    p_mcnemar: float


def against_reader(
    label: NDArray[np.float64],
    score: NDArray[np.float64],
    recall: NDArray[np.float64],
    cut: float,
) -> AgainstReader:
    """Compare a model that calls scores of `cut` and above positive with a reader.

    Cases with a recall of nan are left out. Source: Q. McNemar, Psychometrika 12 (1947) 153, exact.

    Parameters
    ----------
    label
        0 or 1 of each case, (n,).
    score
        The model's scores, (n,).
    recall
        The reader's 0 or 1, nan if unknown, (n,).
    cut
        The smallest score that the model calls positive.
    """
    from scipy.stats import binomtest

    is_known = ~np.isnan(recall)
    called, seen = score[is_known] >= cut, recall[is_known] == 1
    yes, no = label[is_known] == 1, label[is_known] == 0
    only_model = int((no & ~called & seen).sum())
    only_reader = int((no & called & ~seen).sum())
    apart = only_model + only_reader
    p_value = float(binomtest(only_model, apart).pvalue) if apart else nan
    return AgainstReader(
        cut,
        float(called[yes].mean()) if yes.any() else nan,
        float(1 - called[no].mean()) if no.any() else nan,
        only_model,
        only_reader,
        p_value,
    )


LADDER_SEED: Final = 98121
LADDER_SHOWN: Final = 10
"""Number of draws whose mean is displayed. Source: challengescoring, ``BootLadderBoot``."""


@dataclass(frozen=True, slots=True)
class Rung:
    """The score displayed to a team after an attempt on a locked test set.

    `attempt` counts from 1; `k` is the Bayes factor over its best attempt so far, nan for the
    first; `is_new` means that the displayed score is that of this attempt.
    """

    attempt: int
    shown: float
    k: float
    is_new: bool


def climb(
    attempts: Sequence[NDArray[np.float64]], rule: BayesRule = BayesRule.OVER_3
) -> tuple[Rung, ...]:
    """Return the displayed score after each attempt of a team.

    Each attempt holds one number per resample, (B,), where larger is better. The displayed score is
    the mean of the first `LADDER_SHOWN` defined draws of the best attempt so far, never the number
    on the test set itself, so that a team with many attempts learns little about it. An attempt is
    new if its Bayes factor over the best one holds under `rule` and its mean is larger. Source: A.
    Blum, M. Hardt, ICML 2015; Sage-Bionetworks/challengescoring, ``BootLadderBoot`` (its factor has
    no direction, its second condition adds it, as here).

    Parameters
    ----------
    attempts
        Numbers (B,) of each attempt, in order.
    rule
        When an attempt is robustly better.

    Examples
    --------
    >>> first, worse = np.array([0.7, 0.8, 0.7, 0.8]), np.array([0.6, 0.9, 0.6, 0.7])
    >>> [rung.is_new for rung in climb([first, worse, first + 0.1])]
    [True, False, True]
    """
    return tuple(_list_rungs(attempts, rule))


def _list_rungs(attempts: Sequence[NDArray[np.float64]], rule: BayesRule) -> Iterator[Rung]:
    best: NDArray[np.float64] | None = None
    for number, draws in enumerate(attempts, start=1):
        k, is_new = nan, best is None
        if best is not None:
            factor = bayes_factor(draws, best)
            k = factor.k
            is_new = rule.holds(factor) and float(np.nanmean(draws)) > float(np.nanmean(best))
        if best is None or is_new:
            best = draws
        defined = best[~np.isnan(best)][:LADDER_SHOWN]
        yield Rung(number, float(defined.mean()) if defined.size else nan, k, is_new)
