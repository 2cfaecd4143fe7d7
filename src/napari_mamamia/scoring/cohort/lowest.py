"""Find the lowest ranking score that a model with unusable predictions could have.

`lowest_numbers` explains the method and why it is exact; `complete_cases` returns the values that
give the lowest score.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, permutations, product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.scoring.cohort.groups import EmptyGroups, Grouping
from napari_mamamia.scoring.cohort.policy import CountedCases
from napari_mamamia.scoring.statistics.performance import (
    SegmentationScores,
    performance_of,
    ratio,
)

_ROWS_TIMES_CHOICES: Final = 1 << 17
_MOST_COMPLETIONS: Final = 256
"""Largest number of combinations of left-out cases that are tried.

Each combination takes a few milliseconds.
"""
_ROUNDING: Final = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """The positions of the sums from which the results of one metric (Dice or NormHD) are computed.

    `groups` are the columns of each variable. `cells` (c, v) contains, for free cases that share
    all their groups, the group in each variable, or -1 for none. `as_scripts` (v,) marks variables
    that an empty first group makes undefined.
    """

    groups: tuple[range, ...]
    cells: NDArray[np.intp]
    as_scripts: tuple[bool, ...]

    @property
    def n_groups(self) -> int:
        return self.groups[-1].stop if self.groups else 0


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """Sums of one metric over the cases, for b rows (one row per resample).

    `total` (b,) and `group` (b, g) are sums of values with all free values at 0; `n` and `group_n`
    are the numbers of cases in these sums, of which `group_optional` might be left out. `free` (b,
    c) is the largest total that the free cases of each cell can add.
    """

    total: NDArray[np.float64]
    n: NDArray[np.float64]
    group: NDArray[np.float64]
    group_n: NDArray[np.float64]
    group_optional: NDArray[np.float64]
    free: NDArray[np.float64]

    def __getitem__(self, rows: slice) -> "_Sums":
        return _Sums(
            self.total[rows],
            self.n[rows],
            self.group[rows],
            self.group_n[rows],
            self.group_optional[rows],
            self.free[rows],
        )


@dataclass(frozen=True, slots=True, eq=False)
class LowestNumbers:
    """Function from sums over a model's counted cases to its lowest ranking score.

    `parts` (n, k) are the contributions of the cases to the sums, in order. `cells` contains, for
    Dice and NormHD, the indices of free cases that share all their groups, in the order of the
    layouts.
    """

    parts: NDArray[np.float64]
    worst_norm_hd: float
    layouts: tuple[_Layout, _Layout]
    cells: tuple[tuple[NDArray[np.intp], ...], tuple[NDArray[np.intp], ...]]

    def at_weight(self, sums: NDArray[np.float64], weight: float) -> NDArray[np.float64]:
        """Return the lowest ranking scores (b,) for a fairness weight, from sums (b, k)."""
        dsc, goodness = self._split_sums(sums)
        n_variables = len(self.layouts[0].groups)
        if weight == 0:
            worst = self.worst_norm_hd - ratio(goodness.total, goodness.n)
            lowest: NDArray[np.float64] = performance_of(ratio(dsc.total, dsc.n), worst)
            return lowest
        if not n_variables:
            return np.full(len(sums), np.nan)
        variables = np.full(n_variables, weight / n_variables)
        apart = self._widen_gaps(dsc, goodness, 1 - weight, variables)
        return (1 - weight) * (1 - self.worst_norm_hd) / 2 + weight - apart / 2

    def _widen_gaps(
        self, dsc: _Sums, goodness: _Sums, mean: float, variables: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return -(
            _lowest_difference(dsc, self.layouts[0], mean, variables)
            + _lowest_difference(goodness, self.layouts[1], mean, variables)
        )

    def _split_sums(self, sums: NDArray[np.float64]) -> tuple[_Sums, _Sums]:
        first, parts = 0, []
        for layout in self.layouts:
            g, c = layout.n_groups, len(layout.cells)
            total, n = sums[:, first], sums[:, first + 1]
            first += 2
            thirds = [sums[:, first + k * g : first + (k + 1) * g] for k in range(3)]
            first += 3 * g
            free = sums[:, first : first + c]
            parts.append(_Sums(total, n, thirds[0], thirds[1], thirds[2], free))
            first += c
        return parts[0], parts[1]


@dataclass(frozen=True, slots=True, eq=False)
class LowestScore:
    """The lowest ranking score of a model for any fairness weight, and its best performance.

    `sums` (1, k) are the sums over the counted cases; `worst` contains these cases with the worst
    values.
    """

    lowest: LowestNumbers
    sums: NDArray[np.float64]
    worst: SegmentationScores
    highest_performance: float

    def at_weight(self, weight: float) -> float:
        """Return the lowest ranking score for a fairness weight, 0 to 1."""
        return float(self.lowest.at_weight(self.sums, weight)[0])


def lowest_score(cases: CountedCases, lowest: LowestNumbers) -> LowestScore:
    """Return the lowest ranking score of counted cases as a function of the fairness weight."""
    dsc = np.where(cases.free_dsc, 1.0, cases.dsc)
    norm_hd = np.where(cases.free_norm_hd, 0.0, cases.norm_hd)
    # Only the sums are kept, not the hundreds of thousands of rows behind them.
    sums = lowest.parts.sum(axis=0, keepdims=True)
    best = performance_of(*(_mean_defined(column) for column in (dsc, norm_hd)))
    worst = SegmentationScores(
        cases.case_ids,
        np.where(cases.free_dsc, 0.0, cases.dsc),
        np.where(cases.free_norm_hd, cases.worst_norm_hd, cases.norm_hd),
    )
    return LowestScore(replace(lowest, parts=sums), sums, worst, best)


def _mean_defined(values: NDArray[np.float64]) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")


def lowest_numbers(cases: CountedCases, groupings: Sequence[Grouping]) -> LowestNumbers:
    """Return the function that computes a model's lowest results from sums.

    Every number is a w mean(x) - sum of b_v times the gap of x over variable v, for x = Dice and
    for x = worst - NormHD, which are chosen independently. A gap is the largest difference of two
    group means, so minus a gap is the smallest of the differences m_q - m_p over ordered pairs of
    groups. For one pair of groups per variable, the number is linear in the free values, so it is
    lowest if each free case has 0 or its highest value, depending on the sign of the case's factor.
    The lowest value over all choices of pairs is therefore exactly the lowest over all completions.
    Cases in the same groups have the same factor, so they are counted together. If a case might
    also be left out, each mean takes the choice that by itself lowers the number, which gives a
    lower bound rather than the exact minimum.
    """
    free = cases.free_dsc, cases.free_norm_hd
    values = np.nan_to_num(cases.dsc), cases.worst_norm_hd - np.nan_to_num(cases.norm_hd)
    defined = ~np.isnan(cases.dsc) | free[0], ~np.isnan(cases.norm_hd) | free[1]
    members = [grouping.indicator for grouping in groupings]
    indicator = np.hstack([np.zeros((cases.n, 0)), *members])
    codes = np.stack([np.zeros(cases.n, np.intp), *(g.codes for g in groupings)], axis=1)[:, 1:]
    starts = np.cumsum([0, *(len(grouping.labels) for grouping in groupings)]).tolist()
    groups = tuple(range(a, b) for a, b in pairwise(starts))
    as_scripts = tuple(g.empty_groups is EmptyGroups.AS_SCRIPTS for g in groupings)
    parts: list[NDArray[np.float64]] = []
    layouts: list[_Layout] = []
    members_of: list[tuple[NDArray[np.intp], ...]] = []
    for value, is_free, counts, high in zip(
        values, free, defined, (1.0, cases.worst_norm_hd), strict=True
    ):
        may_go = (is_free & cases.optional).astype(np.float64)
        stays = is_free & ~cases.optional
        cells, which = np.unique(codes[stays], axis=0, return_inverse=True)
        members_of.append(
            tuple(np.flatnonzero(stays)[which.ravel() == cell] for cell in range(len(cells)))
        )
        # This is the column of the group, so that one number identifies variable and group.
        columns = np.where(cells >= 0, cells + np.array(starts[:-1], dtype=np.intp), -1)
        layouts.append(_Layout(groups, columns, as_scripts))
        fixed = np.where(is_free | ~counts, 0.0, value)
        in_cell = np.zeros((cases.n, len(cells)))
        in_cell[np.flatnonzero(stays), which.ravel()] = high
        count = counts.astype(np.float64)
        parts += [fixed[:, None], count[:, None], indicator * fixed[:, None]]
        parts += [indicator * count[:, None], indicator * may_go[:, None], in_cell]
    return LowestNumbers(
        np.hstack(parts),
        cases.worst_norm_hd,
        (layouts[0], layouts[1]),
        (members_of[0], members_of[1]),
    )


def complete_cases(
    cases: CountedCases, groupings: Sequence[Grouping], weight: float
) -> tuple[SegmentationScores, tuple[Grouping, ...]]:
    """Return the counted cases completed with the values that minimise the ranking score.

    Free values become 0 or their highest value. An optional case is either left out or wrong (Dice
    0 and the worst NormHD), because its reference is empty. Every number of such cases is tried, up
    to `_MOST_COMPLETIONS` combinations. If the ranking score is undefined, performance is
    minimised.
    """
    lowest, best, best_kept = float("inf"), cases, np.ones(cases.n, dtype=np.bool_)
    for kept in _keep_optional(cases, groupings):
        settled = _settle_optional(cases, kept)
        own = [replace(grouping, codes=grouping.codes[kept]) for grouping in groupings]
        filled, value = _fill_free(settled, own, weight)
        if value < lowest or best is cases:
            lowest, best, best_kept = (float("inf") if np.isnan(value) else value), filled, kept
    scores = SegmentationScores(best.case_ids, best.dsc, best.norm_hd)
    return scores, tuple(
        replace(grouping, codes=grouping.codes[best_kept]) for grouping in groupings
    )


def _keep_optional(
    cases: CountedCases, groupings: Sequence[Grouping]
) -> Iterator[NDArray[np.bool_]]:
    codes = np.stack(
        [np.zeros(cases.n, np.intp), *(grouping.codes for grouping in groupings)], axis=1
    )
    optional = np.flatnonzero(cases.optional)
    _, which = np.unique(codes[optional], axis=0, return_inverse=True)
    cells = [optional[which.ravel() == cell] for cell in range(int(which.max(initial=-1)) + 1)]
    counts = [range(len(cell) + 1) for cell in cells]
    while np.prod([len(count) for count in counts]) > _MOST_COMPLETIONS:
        longest = max(range(len(counts)), key=lambda place: len(counts[place]))
        n = len(cells[longest])
        counts[longest] = range(0, n + 1, n) if len(counts[longest]) > 2 else range(1)
    for left_out in product(*counts):
        kept = np.ones(cases.n, dtype=np.bool_)
        for cell, n in zip(cells, left_out, strict=True):
            kept[cell[:n]] = False
        yield kept


def _settle_optional(cases: CountedCases, kept: NDArray[np.bool_]) -> CountedCases:
    wrong = cases.optional[kept]
    return replace(
        cases,
        case_ids=tuple(np.array(cases.case_ids, dtype=object)[kept]),
        dsc=np.where(wrong, 0.0, cases.dsc[kept]),
        norm_hd=np.where(
            wrong & cases.free_norm_hd[kept], cases.worst_norm_hd, cases.norm_hd[kept]
        ),
        free_dsc=cases.free_dsc[kept] & ~wrong,
        free_norm_hd=cases.free_norm_hd[kept] & ~wrong,
        optional=np.zeros(int(kept.sum()), dtype=np.bool_),
    )


def _fill_free(
    cases: CountedCases, groupings: Sequence[Grouping], weight: float
) -> tuple[CountedCases, float]:
    """Return the cases with the free values that minimise the ranking score, and this minimum.

    The free cases of a cell are set to 0 together, unless this raises the lowest score.
    """
    lowest = lowest_numbers(cases, groupings)
    sums = lowest.parts.sum(axis=0, keepdims=True)
    value = float(lowest.at_weight(sums, weight)[0])
    if np.isnan(value):
        weight = 0.0
    reached = float(lowest.at_weight(sums, weight)[0])
    columns = cases.dsc.copy(), cases.norm_hd.copy()
    first = 0
    for column, (layout, cells) in enumerate(zip(lowest.layouts, lowest.cells, strict=True)):
        g, high = layout.n_groups, (1.0, cases.worst_norm_hd)[column]
        for cell, members in enumerate(cells):
            place = first + 2 + 3 * g + cell
            added, sums[:, place] = sums[:, place].copy(), 0.0
            is_high = bool(lowest.at_weight(sums, weight)[0] > reached + _ROUNDING)
            if is_high:
                in_groups = layout.cells[cell][layout.cells[cell] >= 0]
                sums[:, [first, *(first + 2 + in_groups)]] += added
            # NormHD is summed as the distance from the worst value.
            columns[column][members] = high if is_high != (column == 1) else 0.0
        first += 2 + 3 * g + len(cells)
    free = cases.free_dsc & False
    filled = replace(
        cases, dsc=columns[0], norm_hd=columns[1], free_dsc=free, free_norm_hd=free.copy()
    )
    return filled, value


def _lowest_difference(
    sums: _Sums, layout: _Layout, mean: float, variables: NDArray[np.float64]
) -> NDArray[np.float64]:
    # A variable without weight needs no choice of a pair.
    pairs = [
        _ordered_pairs(groups if weight else range(0))
        for groups, weight in zip(layout.groups, variables, strict=True)
    ]
    n_choices = int(np.prod([len(pair) for pair in pairs]))
    step = max(1, _ROWS_TIMES_CHOICES // n_choices)
    blocks = [
        _lowest_of_rows(sums[first : first + step], layout, pairs, mean, variables)
        for first in range(0, len(sums.total), step)
    ]
    return np.concatenate(blocks) if blocks else np.zeros(0)


def _ordered_pairs(groups: range) -> NDArray[np.intp]:
    return np.array([(-1, -1), *permutations(groups, 2)], dtype=np.intp)


def _lowest_of_rows(
    sums: _Sums,
    layout: _Layout,
    pairs: Sequence[NDArray[np.intp]],
    mean: float,
    variables: NDArray[np.float64],
) -> NDArray[np.float64]:
    n_rows, n_variables = len(sums.total), len(pairs)
    sure = sums.group_n - sums.group_optional
    # A group whose cases might all be left out still has a mean of 0.
    n_high = np.where(sure > 0, sure, sums.group_n)
    high, low = ratio(sums.group, n_high).T, ratio(sums.group, sums.group_n).T
    shares = ratio(np.ones(1), n_high).T, ratio(np.ones(1), sums.group_n).T
    choices = np.zeros((*(len(pair) for pair in pairs), n_rows))
    choices += mean * ratio(sums.total, sums.n)
    for index, pair in enumerate(pairs):
        apart = np.zeros((len(pair), n_rows))
        apart[1:] = variables[index] * (low[pair[1:, 1]] - high[pair[1:, 0]])
        choices += _lay_along(np.where(np.isnan(apart), np.inf, apart), index, n_variables)
    in_mean = mean * ratio(np.ones(1), sums.n)
    factors = {
        group: _lay_along(
            variables[place] * _find_factor(pairs[place], group, shares), place, n_variables
        )
        for place in np.flatnonzero(variables).tolist()
        for group in layout.groups[place]
    }
    change = np.empty_like(choices)
    for column in np.flatnonzero(sums.free.any(axis=0)):
        change[...] = in_mean
        for group in layout.cells[column].tolist():
            if group in factors:
                change += factors[group]
        np.minimum(change, 0, out=change)
        change *= sums.free[:, column]
        choices += change
    lowest: NDArray[np.float64] = choices.reshape(-1, n_rows).min(axis=0)
    return np.where(_find_undefined(sums, layout, variables), np.nan, lowest)


def _find_undefined(
    sums: _Sums, layout: _Layout, variables: NDArray[np.float64]
) -> NDArray[np.bool_]:
    undefined = np.zeros(len(sums.total), dtype=np.bool_)
    for place in np.flatnonzero(variables):
        groups = layout.groups[place]
        sizes = sums.group_n[:, groups.start : groups.stop]
        undefined |= sizes.sum(axis=1) == 0
        if layout.as_scripts[place] and len(groups):
            undefined |= sizes[:, 0] == 0
    return undefined


def _find_factor(
    pair: NDArray[np.intp], group: int, shares: tuple[NDArray[np.float64], NDArray[np.float64]]
) -> NDArray[np.float64]:
    up, down = (np.nan_to_num(share[group]) for share in shares)
    factor: NDArray[np.float64] = down * (pair[:, 1:] == group) - up * (pair[:, :1] == group)
    return factor


def _lay_along(values: NDArray[np.float64], place: int, n_variables: int) -> NDArray[np.float64]:
    shape = [*(1,) * n_variables, values.shape[1]]
    shape[place] = values.shape[0]
    return values.reshape(shape)
