"""Uncertainty of disparities: expectation by chance, and intervals."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.scoring.cohort.classification import EqualisedOdds
from napari_mamamia.scoring.cohort.fairness import Fairness
from napari_mamamia.scoring.cohort.gap_records import (
    MINIMUM_GROUP,
    WIDE_BELOW,
    DisparityEstimate,
    GapInterval,
    GroupUncertainty,
    SmallGroup,
)
from napari_mamamia.scoring.cohort.groups import Grouping
from napari_mamamia.scoring.cohort.response_predictions import ResponsePredictions
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
from napari_mamamia.scoring.statistics.performance import SegmentationScores

_NAN: Final = float("nan")
_ROUNDING: Final = 1e-12

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class _Gap:
    """A gap between the sufficiently large groups (`labels`); `highest` is its largest value."""

    variable: str
    labels: tuple[str, ...]
    left_out: tuple[SmallGroup, ...]
    highest: float
    columns: GapColumns | None = None
    reason: str = ""
    of: str = "cases"

    def interval(self, ends: GapEnds, n: Array) -> GapInterval:
        """Return the interval with these ends, and the small groups that make it wide."""
        fewest = min(ends.pair, key=lambda place: n[place])
        wide = None
        if n[fewest] < WIDE_BELOW:
            wide = SmallGroup(self.variable, self.labels[fewest], int(n[fewest]), self.of)
        high = min(ends.high, self.highest)
        return GapInterval(min(ends.low, high), high, LEVEL, self.left_out, wide)

    def without_interval(self) -> GapInterval:
        """Return an undefined interval, with the reason."""
        return GapInterval(_NAN, _NAN, left_out=self.left_out, reason=self.reason)


def counted_groups(grouping: Grouping, minimum_group: int) -> Grouping:
    """Return a grouping without small groups: their cases belong to no group."""
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

    `norm_hd_limit` is the highest NormHD under the profile, None if it is not clipped; ends of
    intervals are clipped to possible values. An undefined number has no interval. The interval of
    the ranking score is added by `with_ranking_score`.
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
        for measure, values, disparity, highest in columns:
            gap = _make_gap(grouping, values, minimum_group, highest)
            gaps.append(gap)
            estimates.append(_estimate_gap(gap, measure, disparity))
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

    `disparity_limit` is the value at which the profile clips the mean disparity in the fairness,
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
    # Predictions that the challenge refuses have no fairness, and so no interval of it.
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
    """Return the uncertainty including the interval of the ranking score, if performance has one.

    The ends of both intervals are added with their weights. This is conservative: the interval is
    wider than necessary.
    """
    fairness = uncertainty.fairness
    if performance is None or np.isnan(performance.low) or not fairness.is_defined:
        return uncertainty
    low = (1 - weight) * performance.low + weight * fairness.low
    high = (1 - weight) * performance.high + weight * fairness.high
    return replace(uncertainty, ranking_score=replace(fairness, low=low, high=high))


def of_scored_alone(uncertainty: GroupUncertainty, n_unusable: int) -> GroupUncertainty:
    """Return the uncertainty of a model whose ranked numbers include unusable cases.

    Those numbers are bounds or contain values that nobody measured, so the interval of the scored
    cases does not apply to them. The disparities are those of the scored cases and keep their
    intervals; the interval of their fairness is kept separately.
    """
    measured = uncertainty.fairness
    of_cases = "1 of its cases has" if n_unusable == 1 else f"{n_unusable} of its cases have"

    def hide_ends(interval: GapInterval) -> GapInterval:
        reason = f"{of_cases} no usable prediction"
        if interval.is_defined:
            reason += f"; over the scored cases alone {interval.low:.3f} to {interval.high:.3f}"
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
    """Return the gap of a metric between the groups with enough defined values."""
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
    # Equal values differ from their mean by rounding.
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
    """Return the interval, or an undefined one if the number itself is undefined."""
    if np.isnan(value) and interval.is_defined:
        return replace(interval, low=_NAN, high=_NAN, reason="the number itself is undefined")
    return interval


def _keep_around(interval: GapInterval, value: float) -> GapInterval:
    """Return the interval if it contains the number itself, which also counts small groups."""
    interval = _if_defined(interval, value)
    is_outside = value < interval.low - _ROUNDING or value > interval.high + _ROUNDING
    if not is_outside:
        return interval
    reason = "the number also counts the groups left out, and lies outside the interval of the rest"
    return replace(interval, low=_NAN, high=_NAN, wide_because=None, reason=reason)


def _without_performance(mean: GapInterval) -> GapInterval:
    """Return an undefined interval of the ranking score, because its performance has none yet."""
    reason = mean.reason or "there is no bootstrap, so the performance has no interval"
    return replace(mean, low=_NAN, high=_NAN, reason=reason)


def _have_reason(gaps: Sequence[_Gap]) -> bool:
    return any(gap.reason for gap in gaps)


def _mean_interval(asked: Sequence[_Gap], gaps: Sequence[_Gap]) -> GapInterval:
    """Return the interval of the mean of `gaps`, over the variables that have an interval."""
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
    """Return the smallest of the groups that make these intervals wide."""
    wide = [interval.wide_because for interval in intervals if interval.wide_because]
    return min(wide, key=lambda small: small.n, default=None)


def _turn_round(interval: GapInterval, limit: float = np.inf) -> GapInterval:
    """Return the interval of 1 - mean disparity, where the disparity is clipped at `limit`."""
    low, high = min(interval.low, limit), min(interval.high, limit)
    return replace(interval, low=1 - high, high=1 - low) if interval.is_defined else interval


@dataclass(frozen=True, slots=True, eq=False)
class _Rates:
    """A rate in each group with enough cases of its class: hits out of n."""

    gap: _Gap
    hits: Array
    n: Array

    @classmethod
    def of(
        cls, grouping: Grouping, predictions: ResponsePredictions, label: int, minimum_group: int
    ) -> "_Rates":
        """Count the cases of one class that were predicted to respond, by group."""
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
        """The gap between these groups."""
        return float(np.ptp(self.hits / self.n))

    def ends(self, low: float = LEVEL) -> GapEnds:
        """Return the ends of the interval, the lower one at the level `low`."""
        return rate_gap_ends(self.hits, self.n, low)

    def estimate(self, measure: str, value: float) -> DisparityEstimate:
        """Return the gap with its interval; under chance all groups have the same rate."""
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
    """Return the interval of the sum of two gaps that are computed from different cases."""
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
    """Return the interval of the mean over the variables that have one."""
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
    """Return the labels of the groups that are large enough, and the smaller groups with cases."""
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
        f"{counted} of {name} has {max(minimum_group, 2)} {what} or more, but a gap needs two "
        "groups"
    )
