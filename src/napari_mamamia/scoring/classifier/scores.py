"""Compute and compare all metrics of several classifiers on the same cases."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations
from math import inf, isnan, nan
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.progress import report_progress
from napari_mamamia.scoring.classifier import operating
from napari_mamamia.scoring.cohort.comparison import holm
from napari_mamamia.scoring.statistics.auc import AucComparison, auc_interval, compare_aucs
from napari_mamamia.scoring.statistics.bootstrap import keep_around
from napari_mamamia.scoring.statistics.performance import ratio
from napari_mamamia.scoring.statistics.resampling import SEED, draw_cases, weigh_cases

N_DRAWS: Final = 10_000
N_DRAWS_OF_MANY: Final = 1000
MANY_CASES: Final = 20_000
"""Number of cases above which fewer resamples are drawn.

The default numbers follow DREAM's practice. In large cohorts, intervals hardly depend on the number
of resamples.
"""

SMALL_GROUP: Final = 5
"""Number of cases below which a subgroup is shown in grey, as in tables of segmentation groups."""
_HELD: Final = 1 << 18
"""Limit of cases times resamples that are counted in one step."""


class BayesRule(StrEnum):
    """Threshold of the Bayes factor K above which one model is robustly better than another."""

    OVER_3 = "K>3"
    """The rule of most DREAM challenges.

    Source: organisers of the Multiple Myeloma DREAM challenge (Synapse syn6187098); default of
    Sage-Bionetworks/challengescoring.
    """
    AT_LEAST_19 = "K>=19"
    """One-sided level 0.05: at most one in 20 draws contradicts the claim."""
    AT_LEAST_39 = "K>=39"
    """The two-sided 95 % percentile interval of the difference lies above 0."""

    def holds(self, factor: "BayesFactor") -> bool:
        """Return whether a Bayes factor satisfies the rule; nan does not.

        If no draw contradicts the claim, K exceeds the number of draws by an unknown amount.
        """
        k = factor.n_draws if factor.k == inf else factor.k
        if self is BayesRule.OVER_3:
            return k > 3 or (factor.k == inf and k == 3)
        return k >= (19 if self is BayesRule.AT_LEAST_19 else 39)


@dataclass(frozen=True, slots=True)
class BayesFactor:
    """Number of draws in which `better` exceeds `other`, divided by the number of remaining draws.

    A draw with equal values counts against `better`. `k` is infinite if no draw contradicts the
    claim, and nan without draws. `n_draws` is the number of draws that contain both classes.
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
        """The factor as a string; "> B" if none of B draws contradicts the claim."""
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
    """Return K, the number of draws with a larger value divided by the number of the other draws.

    Both arrays (B,) contain a number, where larger is better, for the same resamples. A draw that
    is nan in either array is not counted. Source of the draws: T. Schaffter et al. 2020,
    supplement.

    Parameters
    ----------
    draws, other_draws
        The numbers (B,) of two models in the same resamples.
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
    """Return the Bayes factor of each ordered pair of models, from `draws` (B, k)."""
    return tuple(
        bayes_factor(draws[:, row], draws[:, other], (names[row], names[other]))
        for row in range(len(names))
        for other in range(len(names))
        if row != other
    )


def challengescoring_factors(draws: NDArray[np.float64], reference: int) -> tuple[float, ...]:
    """Return K of each model against a reference, as in the R package challengescoring.

    This K has no direction, ties count in favour of the model that is not the reference, and K
    depends on the choice of the reference. `draws` (B, k) contain a number, where larger is better.
    The reference's own K is nan. Source: Sage-Bionetworks/challengescoring, ``computeBayesFactor``.

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
    """The winner under a rule: the leader or, in a tie, the model with the best partial AUC.

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
    """Return the winner among k models, or None if no AUC or no resample is defined.

    If values are equal, the first model wins. Source: T. Schaffter et al. 2020, supplement: a model
    that is robustly better than the second wins, otherwise the partial AUC decides among the tied
    models.

    Parameters
    ----------
    names
        Names of the k models.
    aucs, partial_aucs
        AUCs and partial AUCs, (k,).
    draws
        AUCs in each resample, (B, k).
    rule
        The rule by which a model is robustly better.
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
    """Two models on the same cases, with DeLong's test and the resampled difference of their AUCs.

    `low` and `high` are the 95 % percentile interval of the difference a - b over the resamples.
    `p_holm` is DeLong's p-value corrected for all pairs.
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
    """Return the comparison of every pair of models.

    Parameters
    ----------
    label
        Label 0 or 1 of each case, (n,).
    scores
        Scores of the models, (k, n).
    names
        Names of the k models.
    draws
        AUCs in each resample, (B, k).
    """
    pairs = [
        PairedModels(
            names[a],
            names[b],
            delong,
            *percentile_ends(delong.auc_a - delong.auc_b, draws[:, a] - draws[:, b]),
        )
        for a, b in combinations(range(len(names)), 2)
        for delong in [compare_aucs(label, scores[a], scores[b])]
    ]
    corrected = holm(np.array([pair.delong.p_value for pair in pairs]))
    return tuple(replace(pair, p_holm=float(p)) for pair, p in zip(pairs, corrected, strict=True))


def percentile_ends(
    estimate: float, draws: NDArray[np.float64], level: float = 0.95
) -> tuple[float, float]:
    """Return both ends of the percentile interval of draws (B,).

    Both ends are nan if no draw is defined, or if the interval excludes the estimate.
    """
    defined = draws[~np.isnan(draws)]
    if not defined.size:
        return nan, nan
    low, high = np.percentile(defined, [50 * (1 - level), 50 * (1 + level)])
    return keep_around(estimate, float(low), float(high))


@dataclass(frozen=True, slots=True)
class AgainstReader:
    """Comparison of a model with a reader at the reader's sensitivity, on the reader's cases.

    `cut` is the smallest score that the model calls positive, and `sensitivity` is the model's
    sensitivity at this cut, which is at least the reader's sensitivity. `only_model_right` and
    `only_reader_right` are the numbers of negatives that only the model or only the reader calls
    negative, and `p_mcnemar` is the p-value of the exact two-sided test of these numbers.
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
        Label 0 or 1 of each case, (n,).
    score
        The model's scores, (n,).
    recall
        The reader's decision 0 or 1, or nan if unknown, (n,).
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
    """The score that is displayed to a team after an attempt on a locked test set.

    `attempt` counts from 1. `k` is the Bayes factor over the best attempt so far, or nan for the
    first attempt. `is_new` says whether the displayed score is that of this attempt.
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
    on the test set itself, so a team with many attempts learns little about the test set. An
    attempt is new if its Bayes factor over the best attempt satisfies `rule` and its mean is
    larger. Source: A. Blum, M. Hardt, ICML 2015; Sage-Bionetworks/challengescoring,
    ``BootLadderBoot``. The Bayes factor of the latter has no direction; as here, a second condition
    adds the direction.

    Parameters
    ----------
    attempts
        The numbers (B,) of each attempt, in order.
    rule
        The rule by which an attempt is robustly better.

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


@dataclass(frozen=True, slots=True, eq=False)
class ClassifierCases:
    """The scores of k models for n cases, and properties of the cases.

    `label` (n,) contains 0 and 1. `scores` (k, n) are any numbers except nan, where larger is more
    positive. `n_filled` (k,) is the number of each model's scores that replace missing scores.
    `recall` (n,) are a reader's decisions 0 and 1, or nan if unknown. Cases in the same cluster
    (`clusters`) are drawn together. `subgroups` are names with a value for each case, or "" if
    missing.
    """

    ids: tuple[str, ...]
    label: NDArray[np.float64]
    models: tuple[str, ...]
    scores: NDArray[np.float64]
    n_filled: tuple[int, ...] = ()
    recall: NDArray[np.float64] | None = None
    clusters: operating.Units | None = None
    subgroups: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def n_positive(self) -> int:
        """Return the number of positive cases."""
        return int((self.label == 1).sum())


@dataclass(frozen=True, slots=True)
class ClassifierRules:
    """Operating points, the lower end of the partial AUC, the number of resamples and the seed.

    If `n_draws` is None, the number is `N_DRAWS`, or `N_DRAWS_OF_MANY` above `MANY_CASES` cases.
    """

    sensitivities: tuple[float, ...] = (operating.SENSITIVITY,)
    above: float = operating.SENSITIVITY_ABOVE
    n_draws: int | None = None
    seed: int = SEED

    def draws_for(self, n_cases: int) -> int:
        """Return the number of resamples for `n_cases` cases."""
        if self.n_draws is not None:
            return self.n_draws
        return N_DRAWS if n_cases <= MANY_CASES else N_DRAWS_OF_MANY


@dataclass(frozen=True, slots=True)
class Ends:
    """The two ends of a 95 % interval, or nan if there is no interval."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PointInterval:
    """Intervals of the specificities at an operating point.

    `minus_reader` is the interval of the difference from the reader's specificity.
    """

    threshold: Ends
    interpolated: Ends
    minus_reader: Ends | None = None


@dataclass(frozen=True, slots=True)
class ClassifierScores:
    """The metrics of one model; `cuts` are its smallest positive scores at the operating points.

    `auc_delong` is DeLong's interval, which assumes independent cases; `auc_bootstrap` and the
    other intervals are percentile intervals over resamples of the cases or of their clusters.
    """

    name: str
    n_filled: int
    auc: float
    auc_variance_delong: float
    auc_delong: Ends
    auc_bootstrap: Ends
    partial_auc: operating.PartialAuc
    partial_auc_bootstrap: Ends
    specificity_at: tuple[operating.OperatingPoint, ...]
    specificity_bootstrap: tuple[PointInterval, ...]
    cuts: tuple[float, ...]
    against_reader: AgainstReader | None


@dataclass(frozen=True, slots=True)
class GroupModel:
    """A model's AUC in a subgroup with DeLong's interval, and recalls at the overall threshold."""

    name: str
    auc: float
    auc_delong: Ends
    sensitivity: float
    specificity: float


@dataclass(frozen=True, slots=True)
class Subgroup:
    """The cases that have the same value in a column.

    `is_small` says whether there are fewer than `SMALL_GROUP` cases.
    """

    column: str
    value: str
    n: int
    n_positive: int
    is_small: bool
    models: tuple[GroupModel, ...]


@dataclass(frozen=True, slots=True)
class ClassifierResult:
    """All metrics of k models on the same cases.

    `n_drawn` is the number of cases or clusters in a resample. `n_one_class` is the number of
    resamples that lacked a class and were not used.
    """

    n: int
    n_positive: int
    above: float
    sensitivities: tuple[float, ...]
    models: tuple[ClassifierScores, ...]
    reader: operating.ReaderPoint | None
    factors: tuple[BayesFactor, ...]
    leaders: tuple[RobustLeader, ...]
    pairs: tuple[PairedModels, ...]
    subgroups: tuple[Subgroup, ...]
    n_draws: int
    n_one_class: int
    n_drawn: int
    notes: tuple[str, ...]


def score_classifiers(
    cases: ClassifierCases,
    rules: ClassifierRules | None = None,
    draws: Sequence[NDArray[np.int64]] | None = None,
) -> ClassifierResult:
    """Return all metrics of models on the same cases; an undefined metric is nan with a note.

    Parameters
    ----------
    cases
        Labels and scores.
    rules
        Operating points and resampling; by default `ClassifierRules()`.
    draws
        The resamples as arrays of case indices. By default, cases or their clusters are drawn with
        `statistics.resampling.draw_cases`.

    Raises
    ------
    ValueError
        If there is no case.
    """
    rules = rules or ClassifierRules()
    if not cases.ids:
        raise ValueError("expected at least one case with a label, but found none")
    reader = None if cases.recall is None else operating.reader_point(cases.label, cases.recall)
    of_reader = () if reader is None or np.isnan(reader.sensitivity) else (reader.sensitivity,)
    sensitivities = tuple(dict.fromkeys((*rules.sensitivities, *of_reader)))
    ready = [operating.SortedCases.of(cases.label, scores) for scores in cases.scores]
    drawn = _Drawn.of(cases, ready, rules, sensitivities, reader, draws)
    models = tuple(
        _score_model(cases, index, sorted_cases, rules, sensitivities, reader, drawn)
        for index, sorted_cases in enumerate(ready)
    )
    aucs = drawn.numbers[:, :, 0]
    own_aucs = np.array([model.auc for model in models])
    own_partial = np.array([model.partial_auc.raw for model in models])
    leaders = [robust_leader(cases.models, own_aucs, own_partial, aucs, rule) for rule in BayesRule]
    return ClassifierResult(
        len(cases.ids),
        cases.n_positive,
        rules.above,
        sensitivities,
        models,
        reader,
        bayes_factors(aucs, cases.models),
        tuple(leader for leader in leaders if leader) if len(models) > 1 else (),
        pair_models(cases.label, cases.scores, cases.models, aucs),
        tuple(_list_subgroups(cases, models)),
        len(aucs),
        int(np.isnan(aucs[:, 0]).sum()),
        cases.clusters.n if cases.clusters else len(cases.ids),
        tuple(_list_notes(cases, sensitivities, reader)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Drawn:
    """Metrics in each resample, (B, k, m): AUC, partial AUC, and two per operating point.

    `reader` (B,) is the reader's specificity in each resample.
    """

    numbers: NDArray[np.float64]
    reader: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        cases: ClassifierCases,
        ready: Sequence[operating.SortedCases],
        rules: ClassifierRules,
        asked: Sequence[float],
        reader: operating.ReaderPoint | None,
        draws: Sequence[NDArray[np.int64]] | None,
    ) -> "_Drawn":
        """Compute the metrics of every model in every resample."""
        n = len(cases.ids)
        n_draws = rules.draws_for(n) if draws is None else len(draws)
        blocks, readers, n_told = [], [], 0
        for weights in _weigh_cases(cases, n_draws, rules.seed, draws):
            sensitivity, specificity = _reader_in(cases, weights)
            targets: list[float | NDArray[np.float64]] = list(asked)
            if reader is not None and reader.sensitivity in asked:
                targets[list(asked).index(reader.sensitivity)] = sensitivity
            blocks.append(
                np.stack(
                    [_numbers_of(model.points(weights), rules.above, targets) for model in ready],
                    axis=1,
                )
            )
            readers.append(specificity)
            n_told += len(weights)
            report_progress(n_told, n_draws, "Resampling cases")
        if not blocks:
            return cls(np.empty((0, len(ready), 2 + 2 * len(asked))), np.empty(0))
        return cls(np.concatenate(blocks), np.concatenate(readers))


def _weigh_cases(
    cases: ClassifierCases,
    n_draws: int,
    seed: int,
    draws: Sequence[NDArray[np.int64]] | None,
) -> Iterator[NDArray[np.integer]]:
    n = len(cases.ids)
    rows = max(1, _HELD // n)
    blocks: Iterable[NDArray[np.integer]]
    if draws is not None:
        counted = (np.bincount(draw, minlength=n)[None] for draw in draws)
        blocks = _join_rows(counted, rows)
    elif not n_draws:
        blocks = ()
    elif cases.clusters is None:
        blocks = weigh_cases(draw_cases(n, n_draws, seed), n)
    else:
        n_clusters, of_row = cases.clusters.n, cases.clusters.of_row
        of_clusters = weigh_cases(draw_cases(n_clusters, n_draws, seed), n_clusters)
        blocks = (
            block[first : first + rows][:, of_row]
            for block in of_clusters
            for first in range(0, len(block), rows)
        )
    for block in blocks:
        for first in range(0, len(block), rows):
            yield block[first : first + rows]


def _join_rows(rows: Iterable[NDArray[np.integer]], most: int) -> Iterator[NDArray[np.integer]]:
    held: list[NDArray[np.integer]] = []
    for row in rows:
        held.append(row)
        if len(held) == most:
            yield np.concatenate(held)
            held.clear()
    if held:
        yield np.concatenate(held)


def _reader_in(
    cases: ClassifierCases, weights: NDArray[np.integer]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if cases.recall is None:
        return np.full(len(weights), nan), np.full(len(weights), nan)
    is_read = ~np.isnan(cases.recall)
    yes, no = is_read & (cases.label == 1), is_read & (cases.label == 0)

    def share(of: NDArray[np.bool_], right: NDArray[np.bool_]) -> NDArray[np.float64]:
        hits = weights[:, of & right].sum(axis=1, dtype=np.float64)
        return ratio(hits, weights[:, of].sum(axis=1, dtype=np.float64))

    return share(yes, cases.recall == 1), share(no, cases.recall == 0)


def _numbers_of(
    points: operating.RocPoints, above: float, targets: Sequence[float | NDArray[np.float64]]
) -> NDArray[np.float64]:
    columns = [points.auc(), points.partial_auc(above)]
    for target in targets:
        unknown = np.isnan(target) | np.zeros(len(points.positives), dtype=bool)
        both = points.specificity(np.nan_to_num(target))
        columns += [np.where(unknown, nan, column) for column in both]
    return np.stack(columns, axis=1)


def _score_model(
    cases: ClassifierCases,
    place: int,
    ready: operating.SortedCases,
    rules: ClassifierRules,
    asked: Sequence[float],
    reader: operating.ReaderPoint | None,
    drawn: _Drawn,
) -> ClassifierScores:
    (numbers,) = _numbers_of(ready.points(), rules.above, asked)
    delong = auc_interval(cases.label, cases.scores[place])
    replicates = drawn.numbers[:, place]
    ends = [
        Ends(*percentile_ends(float(value), column))
        for value, column in zip(numbers, replicates.T, strict=True)
    ]
    cuts = tuple(ready.cut(sensitivity) for sensitivity in asked)
    points, intervals, compared = [], [], None
    for number, sensitivity in enumerate(asked):
        index = 2 + 2 * number
        points.append(
            operating.OperatingPoint(sensitivity, float(numbers[index]), float(numbers[index + 1]))
        )
        beyond = None
        if reader is not None and cases.recall is not None and sensitivity == reader.sensitivity:
            gain = float(numbers[index]) - reader.specificity
            beyond = Ends(*percentile_ends(gain, replicates[:, index] - drawn.reader))
            cut = cuts[number]
            compared = against_reader(cases.label, cases.scores[place], cases.recall, cut)
        intervals.append(PointInterval(ends[index], ends[index + 1], beyond))
    return ClassifierScores(
        cases.models[place],
        cases.n_filled[place] if cases.n_filled else 0,
        float(numbers[0]),
        delong.standard_error**2,
        Ends(delong.low, delong.high),
        ends[0],
        operating.PartialAuc(float(numbers[1]), float(numbers[1] / (1 - rules.above))),
        ends[1],
        tuple(points),
        tuple(intervals),
        cuts,
        compared,
    )


def _list_subgroups(
    cases: ClassifierCases, models: Sequence[ClassifierScores]
) -> Iterator[Subgroup]:
    for column, values in cases.subgroups:
        each = np.array(values, dtype=object)
        for value in sorted(set(values), key=_natural_order):
            inside = each == value
            label = cases.label[inside]
            n_positive = int((label == 1).sum())
            yield Subgroup(
                column,
                value or "missing",
                int(inside.sum()),
                n_positive,
                bool(inside.sum() < SMALL_GROUP),
                tuple(
                    _score_group(model, label, scores[inside])
                    for model, scores in zip(models, cases.scores, strict=True)
                ),
            )


def _natural_order(value: str) -> tuple[bool, float, str]:
    try:
        return (not value, float(value), "")
    except ValueError:
        return (not value, float("inf"), value)


def _score_group(
    model: ClassifierScores, label: NDArray[np.float64], scores: NDArray[np.float64]
) -> GroupModel:
    delong = auc_interval(label, scores)
    called, cut = scores >= model.cuts[0], model.cuts[0]
    yes, no = label == 1, label == 0
    is_known = not np.isnan(cut)
    return GroupModel(
        model.name,
        delong.auc,
        Ends(delong.low, delong.high),
        float(called[yes].mean()) if yes.any() and is_known else nan,
        float(1 - called[no].mean()) if no.any() and is_known else nan,
    )


def _list_notes(
    cases: ClassifierCases, asked: Sequence[float], reader: operating.ReaderPoint | None
) -> Iterator[str]:
    n_positive, n = cases.n_positive, len(cases.ids)
    if n_positive in (0, n):
        which = "positive" if n_positive else "negative"
        yield f"every case is {which}, so no number of a ROC curve is defined"
        return
    short = (operating.too_few_for(sensitivity, n_positive) for sensitivity in asked)
    for text in filter(None, short):
        yield text
    for name, scores in zip(cases.models, cases.scores, strict=True):
        if scores.min() == scores.max():
            yield f"{name} gives every case the same score, so its AUC of 0.5 is meaningless"
    if min(n_positive, n - n_positive) < 2:
        yield "a class has a single case, so DeLong's variance is undefined"
    if cases.clusters is not None and cases.clusters.n < n:
        yield (
            f"{cases.clusters.n:,} clusters of the {n:,} cases are resampled as a whole; DeLong's "
            "interval and test assume independent cases, so use the resampled interval and test"
        )
    for text in _note_reader(cases, reader):
        yield text


def _note_reader(cases: ClassifierCases, reader: operating.ReaderPoint | None) -> Iterator[str]:
    if reader is None or cases.recall is None:
        return
    n_unknown = int(np.isnan(cases.recall).sum())
    if n_unknown:
        yield (
            f"the reader has no recall for {n_unknown} of {len(cases.ids)} cases; these cases "
            "are left out of the comparison"
        )
