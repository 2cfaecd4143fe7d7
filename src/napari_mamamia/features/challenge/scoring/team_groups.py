"""Tabulate a team's values by group of cases: means with intervals, and the largest gap."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.metrics.registry import Better, list_metrics
from napari_mamamia.scoring.cohort.groups import Grouping
from napari_mamamia.scoring.ranking.ranking import TableRanking
from napari_mamamia.scoring.report.text import (
    Column,
    ReportTable,
    Row,
    number,
    range_text,
    variable_label,
)
from napari_mamamia.scoring.statistics.contrasts import (
    LEVEL,
    GroupMoments,
    gap_ends,
    range_by_chance,
)

LEAST: Final = 5
"""Smallest group with an interval. Source: our own simulations of intervals of gaps.
"""


def tabulate_groups(
    one: TableRanking, at: int, groupings: Sequence[Grouping]
) -> tuple[ReportTable, ...]:
    """Return a table of the groups of each variable, for the algorithm with index `at`.

    The groupings have their codes in the order of the counted cases.

    Parameters
    ----------
    one
        The ranking of a table.
    at
        Index of the algorithm.
    groupings
        Groups of the counted cases.
    """
    values = one.values[:, at]
    bounds = _find_bounds(one.table.metric)
    return tuple(
        _tabulate_groups(values, grouping, bounds, is_larger_better=one.table.is_larger_better)
        for grouping in groupings
        if (grouping.codes >= 0).any()
    )


def _find_bounds(metric: str) -> tuple[float, float]:
    """Return the possible range of a metric's mean, to which intervals are clipped."""
    if metric == "performance":
        return 0.0, 1.0
    spec = next((candidate for candidate in list_metrics() if candidate.name == metric), None)
    if spec is None:
        return -np.inf, np.inf
    return 0.0, 1.0 if not spec.unit and spec.better is Better.HIGHER else np.inf


def _tabulate_groups(
    values: NDArray[np.float64],
    grouping: Grouping,
    bounds: tuple[float, float],
    *,
    is_larger_better: bool,
) -> ReportTable:
    inside = [values[(grouping.codes == code) & ~np.isnan(values)] for code in
              range(len(grouping.labels))]  # fmt: skip
    counted = [indices for indices in inside if indices.size >= LEAST]
    moments = _find_moments(counted)
    ends = iter(() if moments is None else _mean_ends(moments))
    rows = []
    for label, indices in zip(grouping.labels, inside, strict=True):
        low, high = next(ends) if indices.size >= LEAST else (np.nan, np.nan)
        low, high = max(low, bounds[0]), min(high, bounds[1])
        mean = float(indices.mean()) if indices.size else np.nan
        cells = (
            label,
            f"{indices.size:,}",
            number(mean, 4),
            range_text(low, high, 4),
        )
        rows.append(Row(cells, is_small=indices.size < LEAST))
    columns = (Column("Group", is_number=False), Column("n"), Column("Mean"), Column("95 %"))
    notes = [f"Groups under {LEAST} cases (grey) have no interval and are not compared."]
    if moments is not None and len(counted) > 1:
        labels = [name for name, indices in zip(grouping.labels, inside, strict=True)
                  if indices.size >= LEAST]  # fmt: skip
        notes.insert(0, _say_gap(moments, labels, is_larger_better=is_larger_better))
    n_outside = int((grouping.codes < 0).sum())
    if n_outside:
        notes.append(f"{n_outside:,} cases are in no group.")
    return ReportTable(variable_label(grouping.variable), columns, tuple(rows), (" ".join(notes),))


def _find_moments(groups: Sequence[NDArray[np.float64]]) -> GroupMoments | None:
    if not groups:
        return None
    return GroupMoments(
        np.array([group.size for group in groups], dtype=np.float64),
        np.array([group.mean() for group in groups]),
        np.array([group.var(ddof=1) for group in groups]),
    )


def _mean_ends(moments: GroupMoments) -> list[tuple[float, float]]:
    """Return the 95 % interval of each group's mean; a small group uses the pooled variance."""
    from scipy.stats import t as student

    reach = student.ppf((1 + LEVEL) / 2, moments.n - 1) * np.sqrt(moments.errors)
    return list(zip((moments.mean - reach).tolist(), (moments.mean + reach).tolist(), strict=True))


def _say_gap(moments: GroupMoments, labels: Sequence[str], *, is_larger_better: bool) -> str:
    means = moments.mean if is_larger_better else -moments.mean
    worst, best = labels[int(np.argmin(means))], labels[int(np.argmax(means))]
    gap = float(np.ptp(moments.mean))
    ends = gap_ends(moments)
    if not gap:
        return "No gap between the groups."
    sure = (
        f"The groups differ by at least {number(ends.low)}."
        if ends.low > 0
        else "These cases neither show a difference between groups nor exclude a gap of "
        f"{number(ends.high)}."
    )
    return (
        f"Gap {number(gap)}, from {best} down to {worst}; by chance alone groups of these sizes "
        f"would have {number(range_by_chance(moments.errors))} on average; true gap: between "
        f"{number(ends.low)} and {number(ends.high)} (95 %). {sure}"
    )
