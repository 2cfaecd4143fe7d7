"""Fairness of a segmentation model: differences of its means between groups of cases."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.metrics.registry import Better
from napari_mamamia.scoring.cohort.group_rules import EmptyGroups, GroupRules
from napari_mamamia.scoring.cohort.groups import Grouping, Unassigned
from napari_mamamia.scoring.statistics.performance import SegmentationScores, ratio

_NAN: Final = float("nan")


@dataclass(frozen=True, slots=True)
class GroupScore:
    """One group: its cases, the means of the defined values, and their spread inside the group.

    `sd_dsc`, `sd_norm_hd` are standard deviations with n - 1, nan under two cases. `is_small` is
    true if the group has cases, but fewer than the profile requires.
    """

    label: str
    n: int
    mean_dsc: float
    mean_norm_hd: float
    sd_dsc: float
    sd_norm_hd: float
    is_small: bool


@dataclass(frozen=True, slots=True)
class Spread:
    """Differences of the group means of one metric.

    `disparity` is the largest minus the smallest, `variance` the mean squared distance of the group
    means from their unweighted mean, `worst` the mean of `worst_group`.
    """

    disparity: float
    variance: float
    worst: float
    worst_group: str


@dataclass(frozen=True, slots=True)
class VariableFairness:
    """Fairness over the groups of one variable, 1 (best) downwards; nan with the `reason`."""

    variable: str
    value: float
    dsc: Spread
    norm_hd: Spread
    groups: tuple[GroupScore, ...]
    unassigned: tuple[Unassigned, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Fairness:
    """The mean fairness over the variables; nan with the `reason` if one of them is nan."""

    value: float
    variables: tuple[VariableFairness, ...]
    reason: str = ""


def disparity(
    means: NDArray[np.float64], empty_groups: EmptyGroups = EmptyGroups.LEFT_OUT
) -> NDArray[np.float64]:
    """Return the largest minus the smallest of group means along the last axis.

    nan marks a group without a value and is left out; under `EmptyGroups.AS_SCRIPTS` a nan in the
    first place makes the result nan. Without any value the result is nan.

    Examples
    --------
    >>> float(disparity(np.array([0.5, np.nan, 0.75])))
    0.25
    """
    # Unlike nanmax this gives nan without a warning if no group has a value.
    highest = np.fmax.reduce(means, axis=-1, initial=np.nan)
    lowest = np.fmin.reduce(means, axis=-1, initial=np.nan)
    gap: NDArray[np.float64] = np.asarray(highest - lowest)
    if empty_groups is EmptyGroups.AS_SCRIPTS and means.shape[-1]:
        gap = np.where(np.isnan(means[..., 0]), np.nan, gap)
    return gap


def segmentation_fairness(
    scores: SegmentationScores, groupings: Sequence[Grouping], rules: GroupRules
) -> Fairness:
    """Return the fairness of a model over the variables of `groupings`.

    Source: arXiv 2603.01250v2, Eq. 3: the mean over the variables of 1 - D_v.
    """
    variables = tuple(variable_fairness(scores, grouping, rules) for grouping in groupings)
    if not variables:
        return Fairness(_NAN, (), explain_no_groups(scores.case_ids))
    undefined = [variable for variable in variables if np.isnan(variable.value)]
    value = sum(variable.value for variable in variables) / len(variables)
    reason = "; ".join(f"{variable.variable}: {variable.reason}" for variable in undefined)
    return Fairness(value, variables, reason)


def explain_no_groups(case_ids: Sequence[str]) -> str:
    """Return why there are no groups when no group variable exists."""
    if not case_ids:
        return "no case was scored, so there are no groups"
    return "there is no clinical table to make groups from"


def variable_fairness(
    scores: SegmentationScores, grouping: Grouping, rules: GroupRules
) -> VariableFairness:
    """Return the fairness over the groups of one variable, with the numbers behind it.

    1 - (DSC disparity + NormHD disparity)/2. Source: arXiv 2603.01250v2, Eq. 3. A variable with one
    group only has disparity 0.
    """
    groups = group_table(scores, grouping, rules.min_group_size)
    dsc = _spread_of([group.mean_dsc for group in groups], grouping, Better.HIGHER)
    norm_hd = _spread_of([group.mean_norm_hd for group in groups], grouping, Better.LOWER)
    value = 1 - (dsc.disparity + norm_hd.disparity) / 2
    reason = _explain_undefined(groups, grouping) if np.isnan(value) else ""
    return VariableFairness(
        grouping.variable, value, dsc, norm_hd, groups, grouping.unassigned, reason
    )


def group_table(
    scores: SegmentationScores, grouping: Grouping, min_group_size: int = 0
) -> tuple[GroupScore, ...]:
    """Return one row for each group of a grouping, including empty groups."""
    indicator = grouping.indicator
    mean_dsc, sd_dsc = _compute_moments(scores.dsc, indicator)
    mean_norm_hd, sd_norm_hd = _compute_moments(scores.norm_hd, indicator)
    sizes = grouping.sizes
    return tuple(
        GroupScore(
            label,
            int(sizes[index]),
            float(mean_dsc[index]),
            float(mean_norm_hd[index]),
            float(sd_dsc[index]),
            float(sd_norm_hd[index]),
            bool(0 < sizes[index] < min_group_size),
        )
        for index, label in enumerate(grouping.labels)
    )


def spread(means: NDArray[np.float64], labels: Sequence[str], gap: float, better: Better) -> Spread:
    """Return the spread of group means (g,) with the disparity `gap`; nan is left out.

    The worst group has the lowest mean under `Better.HIGHER`, otherwise the highest.
    """
    defined = means[~np.isnan(means)]
    if not defined.size:
        return Spread(_NAN, _NAN, _NAN, "")
    worst = int(np.nanargmin(means) if better is Better.HIGHER else np.nanargmax(means))
    return Spread(gap, float(defined.var()), float(means[worst]), labels[worst])


def _compute_moments(
    values: NDArray[np.float64], indicator: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean and the standard deviation of the defined values of each group."""
    defined = ~np.isnan(values)
    members = indicator[defined]
    n = members.sum(axis=0)
    means = ratio(values[defined] @ members, n)
    apart = np.where(members > 0, values[defined][:, None] - means, 0.0)
    return means, np.sqrt(ratio((apart**2).sum(axis=0), np.maximum(n - 1, 0)))


def _spread_of(means: list[float], grouping: Grouping, better: Better) -> Spread:
    values = np.array(means, dtype=np.float64)
    return spread(values, grouping.labels, float(disparity(values, grouping.empty_groups)), better)


def _explain_undefined(groups: tuple[GroupScore, ...], grouping: Grouping) -> str:
    if not any(group.n for group in groups):
        return f"no case has a group of {grouping.variable}"
    if not any(group.mean_dsc >= 0 and group.mean_norm_hd >= 0 for group in groups):
        return f"no case with a group of {grouping.variable} has a defined score"
    return (
        f"the first group of {grouping.variable} ({groups[0].label}) has no scored case, so the "
        "number is undefined in the published scripts"
    )
