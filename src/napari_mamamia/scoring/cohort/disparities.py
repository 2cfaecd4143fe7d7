"""Disparities between groups with permutation tests and intervals."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.progress import report_progress
from napari_mamamia.scoring.cohort.comparison import holm
from napari_mamamia.scoring.cohort.groups import EmptyGroups, Grouping, GroupRules
from napari_mamamia.scoring.cohort.response_cohort import (
    EqualisedOdds,
    ResponsePredictions,
    outcomes,
    rate_gaps,
)
from napari_mamamia.scoring.cohort.segmentation_cohort import Fairness, disparity
from napari_mamamia.scoring.statistics.bootstrap import Interval
from napari_mamamia.scoring.statistics.contrasts import (
    LEVEL,
    GapColumns,
    GapEnds,
    GroupMoments,
    beyond_chance,
    gap_ends,
    mean_gap_high,
    range_by_chance,
    rate_gap_ends,
)
from napari_mamamia.scoring.statistics.performance import SegmentationScores, ratio
from napari_mamamia.scoring.statistics.resampling import row_blocks

MINIMUM_GROUP: Final = 5
"""Default minimum size of the groups that intervals, tests and sentences include.

For example, the mean of three values from 0 to 1 has an uncertainty of 0.78 in both directions.
"""

WIDE_BELOW: Final = 10
"""Group size below which a group makes an interval wide and is named next to the interval."""

_DIFFERENT: Final = 1e-9
_NAN: Final = float("nan")
_ROUNDING: Final = 1e-12
N_PERMUTATIONS: Final = 1000
SEED: Final = 42


@dataclass(frozen=True, slots=True)
class SmallGroup:
    """A small group; `n` counts its cases with a value or, for a rate, those of the class `of`."""

    variable: str
    group: str
    n: int
    of: str = "cases"

    @property
    def said(self) -> str:
        """The group's number of cases, as part of a sentence."""
        if self.of == "cases":
            return f"n = {self.n}"
        return f"{self.n} {self.of.removesuffix('s') if self.n == 1 else self.of}"


@dataclass(frozen=True, slots=True)
class GapInterval:
    """The interval of a gap at `level`, from contrasts of groups; nan if it is undefined.

    `left_out` lists groups under the minimum size, which the interval does not cover. The groups in
    `wide_because` have few cases and make the interval wide. `without` names the variables that the
    interval of a mean does not cover.
    """

    low: float
    high: float
    level: float = LEVEL
    left_out: tuple[SmallGroup, ...] = ()
    wide_because: SmallGroup | None = None
    without: tuple[str, ...] = ()
    reason: str = ""

    @property
    def is_defined(self) -> bool:
        """Whether the interval is defined."""
        return not np.isnan(self.low)


NO_INTERVAL: Final = GapInterval(
    float("nan"), float("nan"), reason="no scored case belongs to a group"
)


@dataclass(frozen=True, slots=True)
class DisparityEstimate:
    """A disparity, its expectation by chance, the excess over chance, and its interval.

    `value` is the scored disparity over all groups. `counted` is the disparity over the groups that
    have at least the minimum size, to which the interval, chance and sentences refer. `by_chance`
    is the mean gap between such groups if they do not differ, and `beyond_chance` is sqrt(max(0,
    counted^2 - by_chance^2)).
    """

    variable: str
    measure: str
    value: float
    counted: float
    by_chance: float
    beyond_chance: float
    interval: GapInterval

    @property
    def is_of_all(self) -> bool:
        """Whether all groups are counted, so that `counted` is the scored value."""
        return abs(self.value - self.counted) < _DIFFERENT


@dataclass(frozen=True, slots=True)
class GroupUncertainty:
    """The uncertainty of all metrics that depend on groups.

    `by_variable` holds the intervals of the fairness over one variable (Task 1) or of its
    equalised-odds disparity (Task 2), in the order of the groupings. If ranked metrics include
    cases without a usable prediction, they have no interval, and `fairness_of_scored` is the
    interval over the scored cases alone.
    """

    minimum_group: int
    disparities: tuple[DisparityEstimate, ...]
    by_variable: tuple[GapInterval, ...]
    mean_disparity: GapInterval
    fairness: GapInterval
    ranking_score: GapInterval
    fairness_of_scored: GapInterval | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables, in the order of the groupings."""
        return tuple(dict.fromkeys(disparity.variable for disparity in self.disparities))

    def by_name(self, prefix: str) -> dict[str, GapInterval]:
        """Return the intervals by the name of their number (``PREFIXvariable`` for a variable)."""
        by_variable = {
            f"{prefix}{variable}": interval
            for variable, interval in zip(self.variables, self.by_variable, strict=True)
        }
        return by_variable | {
            "fairness": self.fairness,
            "disparity": self.mean_disparity,
            "ranking_score": self.ranking_score,
        }

    def of(self, variable: str, measure: str) -> DisparityEstimate:
        """Return the estimate of one disparity, which is undefined without groups."""
        nan = float("nan")
        none = DisparityEstimate(variable, measure, nan, nan, nan, nan, NO_INTERVAL)
        named = (d for d in self.disparities if (d.variable, d.measure) == (variable, measure))
        return next(named, none)


def is_of_groups(name: str) -> bool:
    """Return whether a resampled metric includes gaps between groups, so it is not smooth."""
    return name.startswith(("fairness", "disparity", "ranking_score"))


Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class _Gap:
    """A gap, of at most `highest`, between the sufficiently large groups (`labels`)."""

    variable: str
    labels: tuple[str, ...]
    left_out: tuple[SmallGroup, ...]
    highest: float
    columns: GapColumns | None = None
    reason: str = ""
    of: str = "cases"

    def interval(self, ends: GapEnds, n: Array) -> GapInterval:
        """Return the interval with the ends `ends`, and the small groups that make it wide."""
        fewest = min(ends.pair, key=lambda place: n[place])
        wide = None
        if n[fewest] < WIDE_BELOW:
            wide = SmallGroup(self.variable, self.labels[fewest], int(n[fewest]), self.of)
        high = min(ends.high, self.highest)
        return GapInterval(min(ends.low, high), high, LEVEL, self.left_out, wide)

    def without_interval(self) -> GapInterval:
        """Return an undefined interval with the reason."""
        return GapInterval(_NAN, _NAN, left_out=self.left_out, reason=self.reason)


def counted_groups(grouping: Grouping, minimum_group: int) -> Grouping:
    """Return a grouping without the small groups; their cases then belong to no group."""
    is_counted = np.append(grouping.sizes >= minimum_group, False)
    codes = np.where(is_counted[grouping.codes], grouping.codes, -1)
    return replace(grouping, codes=codes)


def segmentation_uncertainty(
    scores: SegmentationScores,
    groupings: Sequence[Grouping],
    fairness: Fairness,
    minimum_group: int = MINIMUM_GROUP,
    norm_hd_limit: float | None = None,
) -> GroupUncertainty:
    """Return the uncertainty of the disparities and the fairness of a segmentation model.

    `norm_hd_limit` is the highest NormHD under the profile, or None if it is not clipped. Ends of
    intervals are clipped to possible values. An undefined number has no interval.
    `with_ranking_score` adds the interval of the ranking score.
    """
    limit = np.inf
    if norm_hd_limit is not None and not (scores.norm_hd > norm_hd_limit).any():
        limit = norm_hd_limit
    estimates: list[DisparityEstimate] = []
    gaps: list[_Gap] = []
    for grouping, scored in zip(groupings, fairness.variables, strict=True):
        columns = (
            ("dsc", scores.dsc, scored.dsc.disparity, 1.0),
            ("norm_hd", scores.norm_hd, scored.norm_hd.disparity, limit),
        )
        for measure, values, largest, highest in columns:
            gap = _make_gap(grouping, values, minimum_group, highest)
            gaps.append(gap)
            estimates.append(_estimate_gap(gap, measure, largest))
    pairs = [tuple(gaps[first : first + 2]) for first in range(0, len(gaps), 2)]
    of_variables = [_mean_interval(pair, pair) for pair in pairs]
    whole = [gap for pair in pairs if not _have_reason(pair) for gap in pair]
    mean = _keep_around(_mean_interval(gaps, whole), 1 - fairness.value)
    by_variable = zip(of_variables, fairness.variables, strict=True)
    return GroupUncertainty(
        minimum_group,
        tuple(estimates),
        tuple(
            _turn_round(_keep_around(interval, 1 - scored.value))
            for interval, scored in by_variable
        ),
        mean,
        _turn_round(mean),
        _without_performance(mean),
    )


def odds_uncertainty(
    predictions: ResponsePredictions,
    groupings: Sequence[Grouping],
    odds: EqualisedOdds,
    disparity_limit: float | None,
    minimum_group: int = MINIMUM_GROUP,
) -> GroupUncertainty:
    """Return the uncertainty of the equalised-odds disparities and fairness of a response model.

    `disparity_limit` is the value at which the profile clips the mean disparity in the fairness, or
    None for no limit.
    """
    estimates: list[DisparityEstimate] = []
    sums: list[GapInterval] = []
    by_variable: list[GapInterval] = []
    lows: list[float] = []
    n_variables = max(len(groupings), 1)
    for grouping, scored in zip(groupings, odds.variables, strict=True):
        tpr = _Rates.of(grouping, predictions, 1, minimum_group)
        fpr = _Rates.of(grouping, predictions, 0, minimum_group)
        both = (
            tpr.estimate("tpr", scored.tpr.disparity),
            fpr.estimate("fpr", scored.fpr.disparity),
        )
        total = _add_gaps(tpr, fpr, both)
        estimates += both
        estimates.append(
            DisparityEstimate(
                grouping.variable,
                "equalised_odds",
                scored.disparity,
                both[0].counted + both[1].counted,
                both[0].by_chance + both[1].by_chance,
                both[0].beyond_chance + both[1].beyond_chance,
                total,
            )
        )
        sums.append(total)
        by_variable.append(_keep_around(total, scored.disparity))
        if total.is_defined:
            level = 1 - (1 - LEVEL) / (2 * n_variables)
            lows.append(tpr.ends(level).low + fpr.ends(level).low)
    # Predictions that the challenge rejects have no fairness, and therefore no interval of the
    # fairness.
    mean = _keep_around(
        _join_sums(groupings, sums, lows), _NAN if predictions.constant else odds.raw
    )
    fairness = _turn_round(mean, np.inf if disparity_limit is None else disparity_limit)
    return GroupUncertainty(
        minimum_group,
        tuple(estimates),
        tuple(by_variable),
        mean,
        fairness,
        _without_performance(mean),
    )


def with_ranking_score(
    uncertainty: GroupUncertainty, performance: Interval | None, weight: float
) -> GroupUncertainty:
    """Return the uncertainty with the ranking score's interval, if performance has an interval.

    The ends of the two intervals are added with their weights. This is conservative, because the
    interval is wider than necessary.
    """
    fairness = uncertainty.fairness
    if performance is None or np.isnan(performance.low) or not fairness.is_defined:
        return uncertainty
    low = (1 - weight) * performance.low + weight * fairness.low
    high = (1 - weight) * performance.high + weight * fairness.high
    return replace(uncertainty, ranking_score=replace(fairness, low=low, high=high))


def of_scored_alone(uncertainty: GroupUncertainty, n_unusable: int) -> GroupUncertainty:
    """Return the uncertainty of a model whose ranked metrics include unusable cases.

    Those metrics are bounds or contain values that were not measured, so the interval of the scored
    cases does not apply. The disparities are those of the scored cases and keep their intervals;
    the interval of their fairness is kept separately.
    """
    measured = uncertainty.fairness
    of_cases = (
        "1 of the model's cases has"
        if n_unusable == 1
        else f"{n_unusable} of the model's cases have"
    )

    def hide_ends(interval: GapInterval) -> GapInterval:
        reason = f"{of_cases} no usable prediction"
        if interval.is_defined:
            reason += (
                f"; for the scored cases alone, the interval is {interval.low:.3f} to "
                f"{interval.high:.3f}"
            )
        return replace(interval, low=_NAN, high=_NAN, wide_because=None, reason=reason)

    return replace(
        uncertainty,
        by_variable=tuple(hide_ends(interval) for interval in uncertainty.by_variable),
        fairness=hide_ends(measured),
        mean_disparity=hide_ends(uncertainty.mean_disparity),
        ranking_score=hide_ends(uncertainty.ranking_score),
        fairness_of_scored=measured,
    )


def _make_gap(grouping: Grouping, values: Array, minimum_group: int, highest: float) -> _Gap:
    codes = np.where(np.isnan(values), -1, grouping.codes)
    sizes = np.bincount(codes[codes >= 0], minlength=len(grouping.labels))
    labels, left_out = _part_labels(grouping, sizes, minimum_group)
    large = np.flatnonzero(sizes >= max(minimum_group, 2))
    if large.size < 2:
        reason = _say_too_few(grouping.variable, large.size, minimum_group)
        return _Gap(grouping.variable, labels, left_out, highest, None, reason)
    n = sizes[large].astype(np.float64)
    members = (codes[:, None] == large).astype(np.float64)
    defined = np.nan_to_num(values)
    mean = defined @ members / n
    apart = members * (defined[:, None] - mean)
    # Equal values differ from their mean because of rounding.
    apart[np.abs(apart) < _ROUNDING] = 0
    moments = GroupMoments(n, mean, (apart**2).sum(axis=0) / (n - 1))
    reason = ""
    if not moments.used.max() > 0:
        name = grouping.variable.replace("_", " ")
        reason = f"all values of a group of {name} are equal, so their spread is unknown"
    return _Gap(
        grouping.variable, labels, left_out, highest, GapColumns(moments, apart / n), reason
    )


def _estimate_gap(gap: _Gap, measure: str, value: float) -> DisparityEstimate:
    if gap.columns is None:
        nothing = gap.without_interval()
        return DisparityEstimate(gap.variable, measure, value, _NAN, _NAN, _NAN, nothing)
    moments = gap.columns.moments
    counted = float(np.ptp(moments.mean))
    counted = counted if counted > _ROUNDING else 0.0
    chance = range_by_chance(moments.errors)
    interval = gap.without_interval()
    if not gap.reason:
        interval = _if_defined(gap.interval(gap_ends(moments), moments.n), value)
    beyond = beyond_chance(counted, chance)
    return DisparityEstimate(gap.variable, measure, value, counted, chance, beyond, interval)


def _if_defined(interval: GapInterval, value: float) -> GapInterval:
    if np.isnan(value) and interval.is_defined:
        return replace(interval, low=_NAN, high=_NAN, reason="the number itself is undefined")
    return interval


def _keep_around(interval: GapInterval, value: float) -> GapInterval:
    interval = _if_defined(interval, value)
    is_outside = value < interval.low - _ROUNDING or value > interval.high + _ROUNDING
    if not is_outside:
        return interval
    reason = (
        "the number also includes the omitted groups, and lies outside the interval of the "
        "other groups"
    )
    return replace(interval, low=_NAN, high=_NAN, wide_because=None, reason=reason)


def _without_performance(mean: GapInterval) -> GapInterval:
    reason = mean.reason or "there is no bootstrap, so the performance has no interval"
    return replace(mean, low=_NAN, high=_NAN, reason=reason)


def _have_reason(gaps: Sequence[_Gap]) -> bool:
    return any(gap.reason for gap in gaps)


def _mean_interval(asked: Sequence[_Gap], gaps: Sequence[_Gap]) -> GapInterval:
    left_out = tuple(dict.fromkeys(small for gap in asked for small in gap.left_out))
    reasons = dict.fromkeys(gap.reason for gap in asked if gap.reason)
    moments = [gap.columns.moments for gap in gaps if gap.columns is not None]
    if not moments or _have_reason(gaps):
        why = "; ".join(reasons) or "there are no groups"
        return GapInterval(_NAN, _NAN, left_out=left_out, reason=why)
    level = 1 - (1 - LEVEL) / len(gaps)
    both = list(zip(gaps, moments, strict=True))
    lows = [min(gap_ends(moments, low=level).low, gap.highest) for gap, moments in both]
    singles = [gap.interval(gap_ends(moments), moments.n) for gap, moments in both]
    columns = [gap.columns for gap in gaps if gap.columns is not None]
    high = min(mean_gap_high(columns), float(np.mean([gap.highest for gap in gaps])))
    low = min(float(np.mean(lows)), high)
    spoken = {gap.variable for gap in gaps}
    without = tuple(dict.fromkeys(gap.variable for gap in asked if gap.variable not in spoken))
    return GapInterval(low, high, LEVEL, left_out, _find_fewest(singles), without)


def _find_fewest(intervals: Sequence[GapInterval]) -> SmallGroup | None:
    wide = [interval.wide_because for interval in intervals if interval.wide_because]
    return min(wide, key=lambda small: small.n, default=None)


def _turn_round(interval: GapInterval, limit: float = np.inf) -> GapInterval:
    low, high = min(interval.low, limit), min(interval.high, limit)
    return replace(interval, low=1 - high, high=1 - low) if interval.is_defined else interval


@dataclass(frozen=True, slots=True, eq=False)
class _Rates:
    """The rate (`hits` out of `n`) in each group that has enough cases of the class."""

    gap: _Gap
    hits: Array
    n: Array

    @classmethod
    def of(
        cls, grouping: Grouping, predictions: ResponsePredictions, label: int, minimum_group: int
    ) -> "_Rates":
        """Count the cases of one class that were predicted to respond, in each group."""
        codes = np.where(predictions.label == label, grouping.codes, -1)
        in_class = codes >= 0
        sizes = np.bincount(codes[in_class], minlength=len(grouping.labels))
        hit = in_class & (predictions.predicted == 1)
        hits = np.bincount(codes[hit], minlength=len(grouping.labels))
        what = "responders" if label else "non-responders"
        labels, left_out = _part_labels(grouping, sizes, minimum_group, what)
        large = sizes >= max(minimum_group, 2)
        reason = ""
        if large.sum() < 2:
            reason = _say_too_few(grouping.variable, int(large.sum()), minimum_group, what)
        gap = _Gap(grouping.variable, labels, left_out, 1.0, None, reason, what)
        return cls(gap, hits[large].astype(np.float64), sizes[large].astype(np.float64))

    @property
    def counted(self) -> float:
        """The gap between the groups that have enough cases."""
        return float(np.ptp(self.hits / self.n))

    def ends(self, low: float = LEVEL) -> GapEnds:
        """Return the ends of the gap's interval, with the lower end at the level `low`."""
        return rate_gap_ends(self.hits, self.n, low)

    def estimate(self, measure: str, value: float) -> DisparityEstimate:
        """Return the gap with its interval; chance means that all groups have the same rate."""
        gap = self.gap
        if gap.reason:
            nothing = gap.without_interval()
            return DisparityEstimate(gap.variable, measure, value, _NAN, _NAN, _NAN, nothing)
        rate = self.hits.sum() / self.n.sum()
        chance = range_by_chance(rate * (1 - rate) / self.n)
        counted = self.counted
        beyond = beyond_chance(counted, chance)
        interval = _if_defined(gap.interval(self.ends(), self.n), value)
        return DisparityEstimate(gap.variable, measure, value, counted, chance, beyond, interval)


def _add_gaps(
    tpr: _Rates, fpr: _Rates, both: tuple[DisparityEstimate, DisparityEstimate]
) -> GapInterval:
    left_out = tuple(dict.fromkeys((*tpr.gap.left_out, *fpr.gap.left_out)))
    reason = "; ".join(gap.reason for gap in (tpr.gap, fpr.gap) if gap.reason)
    if reason:
        return GapInterval(_NAN, _NAN, left_out=left_out, reason=reason)
    level = 1 - (1 - LEVEL) / 2
    low = tpr.ends(level).low + fpr.ends(level).low
    gaps = [estimate.counted for estimate in both]
    ends = [rates.gap.interval(rates.ends(), rates.n) for rates in (tpr, fpr)]
    above = [end.high - gap for end, gap in zip(ends, gaps, strict=True)]
    high = min(2.0, sum(gaps) + float(np.hypot(above[0], above[1])))
    return GapInterval(min(low, high), high, LEVEL, left_out, _find_fewest(ends))


def _join_sums(
    groupings: Sequence[Grouping], sums: Sequence[GapInterval], lows: Sequence[float]
) -> GapInterval:
    left_out = tuple(dict.fromkeys(small for total in sums for small in total.left_out))
    used = [total for total in sums if total.is_defined]
    if not used:
        why = "; ".join(total.reason for total in sums if total.reason) or "there are no groups"
        return GapInterval(_NAN, _NAN, left_out=left_out, reason=why)
    high = float(np.mean([interval.high for interval in used]))
    without = tuple(g.variable for g, total in zip(groupings, sums, strict=True) if total.reason)
    low = min(float(np.mean(lows)), high)
    return GapInterval(low, high, LEVEL, left_out, _find_fewest(used), without)


def _part_labels(
    grouping: Grouping, sizes: NDArray[np.intp], minimum_group: int, of: str = "cases"
) -> tuple[tuple[str, ...], tuple[SmallGroup, ...]]:
    least = max(minimum_group, 2)
    labels = tuple(label for label, n in zip(grouping.labels, sizes, strict=True) if n >= least)
    left_out = tuple(
        SmallGroup(grouping.variable, label, int(n), of)
        for label, n, size in zip(grouping.labels, sizes, grouping.sizes, strict=True)
        if n < least and size
    )
    return labels, left_out


def _say_too_few(variable: str, n_groups: int, minimum_group: int, what: str = "cases") -> str:
    name = variable.replace("_", " ")
    counted = ("no group", "one group")[n_groups]
    return (
        f"{counted} of {name} has at least {max(minimum_group, 2)} {what}, but a gap needs two "
        "groups"
    )


Gaps = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Function that maps sums over groups (b, g, k) to disparities (b, m)."""


@dataclass(frozen=True, slots=True)
class PermutationTest:
    """One disparity with its p-value, compared with random groups of the same sizes.

    `p_value` is (1 + number of permutations that reach the disparity)/(1 + `n_permutations`), never
    0. It is nan, and `reason` explains why, if the disparity is undefined or there is only one
    group. `p_holm` is corrected by Holm for the `n_corrected` tests of its family over all
    variables. Single metrics or rates form one family, and their means or sums form another.
    """

    variable: str
    measure: str
    disparity: float
    p_value: float
    expected: float
    n_permutations: int
    reason: str = ""
    p_holm: float = float("nan")
    n_corrected: int = 0


def permute_segmentation_groups(
    scores: SegmentationScores,
    groupings: Sequence[Grouping],
    n_permutations: int = N_PERMUTATIONS,
    seed: int = SEED,
) -> tuple[PermutationTest, ...]:
    """Return permutation tests of each variable's disparities in DSC and NormHD, and their mean.

    Groups are permuted at random between the cases that have a group, so the groups keep their
    sizes. Source: B. Phipson, G. K. Smyth, Stat. Appl. Genet. Mol. Biol. 9 (2010) 39.
    """
    has_dsc, has_norm_hd = ~np.isnan(scores.dsc), ~np.isnan(scores.norm_hd)
    columns = np.stack(
        [np.nan_to_num(scores.dsc), has_dsc, np.nan_to_num(scores.norm_hd), has_norm_hd], axis=1
    )

    def gaps(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        dsc = disparity(ratio(sums[..., 0], sums[..., 1]))
        norm_hd = disparity(ratio(sums[..., 2], sums[..., 3]))
        return np.stack([dsc, norm_hd, (dsc + norm_hd) / 2], axis=-1)

    measures = ("dsc", "norm_hd", "mean")
    return _test_groupings(
        groupings, measures, columns.astype(np.float64), gaps, n_permutations, seed
    )


def permute_odds_groups(
    predictions: ResponsePredictions,
    groupings: Sequence[Grouping],
    rules: GroupRules,
    n_permutations: int = N_PERMUTATIONS,
    seed: int = SEED,
) -> tuple[PermutationTest, ...]:
    """Return permutation tests of each variable's disparities in TPR, FPR and equalised odds.

    Groups are permuted between cases, while each case keeps its label and prediction, as in
    `permute_segmentation_groups`.
    """

    def gaps(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        tpr, fpr = rate_gaps(sums, rules, EmptyGroups.LEFT_OUT)
        return np.stack([tpr, fpr, tpr + fpr], axis=-1)

    columns = outcomes(predictions.label, predictions.predicted)
    measures = ("tpr", "fpr", "equalised_odds")
    return _test_groupings(groupings, measures, columns, gaps, n_permutations, seed)


def _test_groupings(
    groupings: Sequence[Grouping],
    measures: tuple[str, ...],
    columns: NDArray[np.float64],
    gaps: Gaps,
    n_permutations: int,
    seed: int,
) -> tuple[PermutationTest, ...]:
    if n_permutations < 1:
        raise ValueError(f"expected at least one permutation, but found {n_permutations}")
    tests = []
    for grouping in groupings:
        codes = grouping.codes[grouping.codes >= 0]
        # The cases are sorted by group, so shuffling them permutes their groups.
        rows = columns[grouping.codes >= 0][np.argsort(codes, kind="stable")]
        sizes = grouping.sizes[grouping.sizes > 0]
        starts = np.cumsum(sizes) - sizes
        if sizes.size < 2:
            tests += [_make_undefined_test(grouping, measure, sizes.size) for measure in measures]
            continue
        observed = gaps(np.add.reduceat(rows, starts, axis=0)[None])[0]
        parts, n_permuted = [], 0
        for sums in _sum_permuted(rows, starts, n_permutations, seed):
            text = f"Permuting groups of {grouping.variable}"
            report_progress(n_permuted, n_permutations, text)
            parts.append(gaps(sums))
            n_permuted += len(sums)
        drawn = np.concatenate(parts)
        tests += [
            _test_disparity(grouping.variable, measure, float(observed[index]), drawn[:, index])
            for index, measure in enumerate(measures)
        ]
    return _correct_tests(tests, measures[-1])


def _correct_tests(tests: Sequence[PermutationTest], joint: str) -> tuple[PermutationTest, ...]:
    corrected = list(tests)
    for is_joint in (False, True):
        places = [index for index, test in enumerate(tests) if (test.measure == joint) == is_joint]
        p_values = np.array([tests[index].p_value for index in places], dtype=np.float64)
        n_corrected = int((~np.isnan(p_values)).sum())
        for at, p_holm in zip(places, holm(p_values), strict=True):
            corrected[at] = replace(tests[at], p_holm=float(p_holm), n_corrected=n_corrected)
    return tuple(corrected)


def _sum_permuted(
    rows: NDArray[np.float64], starts: NDArray[np.intp], n_permutations: int, seed: int
) -> Iterator[NDArray[np.float64]]:
    """Yield sums over contiguous groups of randomly ordered rows (n, k), in blocks (b, g, k).

    Columns are processed one by one, because taking whole rows in random order takes four times as
    long.
    """
    rng = np.random.default_rng(seed)
    columns = np.ascontiguousarray(rows.T)
    unmoved = [np.add.reduceat(column, starts) for column in columns]
    is_same = [column.min() == column.max() for column in columns]
    for n_blocks in row_blocks(n_permutations, rows.size):
        orders = rng.permuted(np.tile(np.arange(len(rows)), (n_blocks, 1)), axis=1)
        sums = np.empty((n_blocks, len(starts), len(columns)))
        for index, column in enumerate(columns):
            sums[..., index] = (
                unmoved[index]
                if is_same[index]
                else np.add.reduceat(column[orders], starts, axis=1)
            )
        yield sums


def _test_disparity(
    variable: str, measure: str, observed: float, drawn: NDArray[np.float64]
) -> PermutationTest:
    if np.isnan(observed):
        reason = f"the {measure} disparity of {variable} is undefined"
        return PermutationTest(variable, measure, observed, np.nan, np.nan, drawn.size, reason)
    defined = drawn[~np.isnan(drawn)]
    p_value = (1 + np.count_nonzero(defined >= observed - _ROUNDING)) / (1 + defined.size)
    expected = float(defined.mean()) if defined.size else float("nan")
    return PermutationTest(variable, measure, observed, p_value, expected, defined.size)


def _make_undefined_test(grouping: Grouping, measure: str, n_groups: int) -> PermutationTest:
    reason = f"{n_groups} group of {grouping.variable} has cases, but a disparity needs two"
    return PermutationTest(grouping.variable, measure, np.nan, np.nan, np.nan, 0, reason)
