"""Worst subgroups: combinations of up to 3 columns in which a metric is worst, with p-values.

Every combination of groups with enough cases is a slice, and each slice is compared with all cases.
The more slices are searched, the worse the worst slice is by chance alone. Therefore the p-values
are corrected for the whole search by the worst slices of random cohorts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.progress import paced, report_progress
from napari_mamamia.metrics.registry import Better
from napari_mamamia.scoring.cohort.groups import Grouping
from napari_mamamia.scoring.statistics.resampling import row_blocks

MOST_COLUMNS: Final = 3
MIN_SUPPORT: Final = 20
"""Smallest number of cases in a slice (our choice): twice the limit for flagging a group."""
N_PERMUTATIONS: Final = 1000
SEED: Final = 42
N_WORST: Final = 10
LEAST_GAIN: Final = 0.5
"""Smallest number of standard errors by which a further condition must worsen a slice (our choice).

Without this limit, the search would list the same group many times with slightly different
conditions.
"""

_SEARCHING: Final = "Searching for the worst subgroups"
_ROUNDING: Final = 1e-9
"""Tolerance for rounding when a permuted statistic is compared with the observed one."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The cases that satisfy all `conditions`, which are pairs of a variable and a group.

    The `n` cases have the mean `mean`; `mean_elsewhere` is the mean of all other cases. `statistic`
    is the number of standard errors by which the mean is worse than that of all cases (above 0 is
    worse). `p_value` is corrected for the whole search.
    """

    conditions: tuple[tuple[str, str], ...]
    n: int
    mean: float
    mean_elsewhere: float
    statistic: float
    p_value: float

    @property
    def name(self) -> str:
        """The conditions as displayed, such as ``age 41-50, breast_density c``."""
        return ", ".join(f"{variable} {label}" for variable, label in self.conditions)


@dataclass(frozen=True, slots=True)
class SliceSearch:
    """The result of the search for one metric, with the worst slices first.

    There are `n_slices` different slices of at least `min_support` cases among `n_cases` with a
    defined value, whose mean is `mean`. `reason` explains why there is no result, or is "".
    """

    metric: str
    n_cases: int
    mean: float
    n_slices: int
    min_support: int
    n_permutations: int
    worst: tuple[Slice, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """Slices as a sparse (slices, cases) matrix of ones, with the conditions of each slice."""

    members: Any
    sizes: NDArray[np.float64]
    conditions: tuple[tuple[tuple[str, str], ...], ...]


def worst_slices(
    metric: str,
    values: NDArray[np.float64],
    groupings: Sequence[Grouping],
    better: Better = Better.HIGHER,
    *,
    min_support: int = MIN_SUPPORT,
    most_columns: int = MOST_COLUMNS,
    n_worst: int = N_WORST,
    n_permutations: int = N_PERMUTATIONS,
    seed: int = SEED,
) -> SliceSearch:
    """Return the slices in which a metric is worst.

    Parameters
    ----------
    metric
        Name of the metric, for the result.
    values
        Values (n,) float64 in the order of the groupings' codes. Cases with nan are left out.
    groupings
        The columns to combine. A case without a group in a column is in no slice of this column.
    better
        Whether higher or lower values are better; `NEITHER` raises an error.
    min_support
        Smallest number of cases in a slice and outside the slice.
    most_columns
        Largest number of columns in a combination.

    Returns
    -------
    SliceSearch
        A slice with the same cases as a slice of fewer columns is skipped, and a slice that is not
        worse by `LEAST_GAIN` than each broader slice (fewer of its conditions) is not listed. The
        statistic is (mean of all - mean of slice)/(s sqrt(1/n - 1/N)), with s the SD of all N
        cases: the standard error of the mean of n cases drawn without replacement. p is the
        fraction of random cohorts (with values permuted among the cases, and including the observed
        cohort) whose worst slice reaches the statistic.

    Notes
    -----
    Source: P. H. Westfall, S. S. Young, Resampling-Based Multiple Testing (1993), single-step
    maxT; the search over itemsets with a minimum support follows E. Pastor, L. de Alfaro,
    E. Baralis, SIGMOD 2021 (DivExplorer), which tests each slice separately.
    """
    _check_arguments(values, groupings, better, min_support, most_columns)
    defined = ~np.isnan(values)
    case_values = values[defined]
    slices = _find_slices(groupings, defined, min_support, most_columns)
    report_progress(0, 1, _SEARCHING)
    mean, n_slices = (
        (float(case_values.mean()) if case_values.size else float("nan")),
        len(slices.conditions),
    )
    reason = _explain_no_slices(case_values, n_slices, min_support)
    worst: tuple[Slice, ...] = ()
    if not reason:
        worse = case_values if better is Better.LOWER else -case_values
        observed = _compute_statistics(slices, worse[:, None])[:, 0]
        report_progress(0, 1, _SEARCHING)
        highest = _simulate_highest(slices, worse, n_permutations, seed)
        report_progress(0, 1, _SEARCHING)
        for index in _select_telling(slices, observed)[:n_worst]:
            worst += (_describe_slice(slices, index, case_values, observed, highest),)
            report_progress(0, 1, _SEARCHING)
    report_progress(1, 1, _SEARCHING)
    return SliceSearch(
        metric, case_values.size, mean, n_slices, min_support, n_permutations, worst, reason
    )


def _check_arguments(
    values: NDArray[np.float64],
    groupings: Sequence[Grouping],
    better: Better,
    min_support: int,
    most_columns: int,
) -> None:
    for grouping in groupings:
        if grouping.codes.shape != values.shape:
            raise ValueError(
                f"expected {values.size} codes for {grouping.variable}, one for each value, but "
                f"found {grouping.codes.size}: group the same cases"
            )
    if better is Better.NEITHER:
        raise ValueError(
            "it is unknown whether higher or lower values of the metric are better; specify "
            "higher or lower"
        )
    if min_support < 1 or most_columns < 1:
        raise ValueError(
            "expected the minimum support and the number of columns to be at least 1, but they "
            f"are {min_support} and {most_columns}"
        )


def _find_slices(
    groupings: Sequence[Grouping], defined: NDArray[np.bool_], least: int, most_columns: int
) -> _Found:
    n = int(defined.sum())
    # Slices with the same cases are recognised by their size and the sum of random marks of the
    # cases, which is faster than comparing cases.
    marks = np.random.default_rng(0).integers(1 << 62, size=n)
    columns: list[NDArray[np.intp]] = []
    sizes: list[NDArray[np.intp]] = []
    seen: set[tuple[int, int]] = set()
    conditions: list[tuple[tuple[str, str], ...]] = []
    for chosen in _combine_columns(groupings, most_columns):
        report_progress(0, 1, _SEARCHING)
        codes, n_codes = _joint_codes(chosen, defined)
        inside = np.flatnonzero(codes >= 0)
        counts = np.bincount(codes[inside], minlength=n_codes)
        sums = np.zeros(n_codes, dtype=np.int64)
        np.add.at(sums, codes[inside], marks[inside])
        new_codes = [
            code
            for code in np.flatnonzero((counts >= least) & (n - counts >= least))
            if (int(counts[code]), int(sums[code])) not in seen
        ]
        seen |= {(int(counts[code]), int(sums[code])) for code in new_codes}
        columns.append(_find_members(codes, inside, new_codes))
        conditions += [_list_conditions(chosen, int(code)) for code in new_codes]
        sizes.append(counts[new_codes])
    report_progress(0, 1, _SEARCHING)
    return _join_slices(columns, sizes, conditions, n)


def _find_members(
    codes: NDArray[np.intp], inside: NDArray[np.intp], kept: Sequence[np.signedinteger[Any]]
) -> NDArray[np.intp]:
    is_kept = np.zeros(int(codes.max(initial=0)) + 1, dtype=np.bool_)
    is_kept[list(kept)] = True
    cases = inside[is_kept[codes[inside]]]
    members: NDArray[np.intp] = cases[np.argsort(codes[cases], kind="stable")]
    return members


def _join_slices(
    columns: Sequence[NDArray[np.intp]],
    sizes: Sequence[NDArray[np.intp]],
    conditions: Sequence[tuple[tuple[str, str], ...]],
    n: int,
) -> _Found:
    # Imported here, so that the window starts without SciPy.
    from scipy import sparse

    size = np.concatenate([np.zeros(0, dtype=np.intp), *sizes])
    ends = np.concatenate([[0], np.cumsum(size)])
    small = (
        np.int32 if ends[-1] <= np.iinfo(np.int32).max else np.int64
    )  # The same dtype avoids copies.
    column = np.empty(ends[-1], dtype=small)
    filled = 0
    for places in paced(columns, _SEARCHING):
        column[filled : filled + places.size] = places
        filled += places.size
    report_progress(0, 1, _SEARCHING)
    ones = np.ones(column.size)
    report_progress(0, 1, _SEARCHING)
    members = sparse.csr_array((ones, column, ends.astype(small)), shape=(len(conditions), n))
    return _Found(members, size.astype(np.float64), tuple(conditions))


def _combine_columns(
    groupings: Sequence[Grouping], most_columns: int
) -> Iterator[tuple[Grouping, ...]]:
    for n_columns in range(1, most_columns + 1):
        yield from combinations(groupings, n_columns)


def _joint_codes(
    chosen: tuple[Grouping, ...], defined: NDArray[np.bool_]
) -> tuple[NDArray[np.intp], int]:
    codes = np.zeros(int(defined.sum()), dtype=np.intp)
    nowhere = np.zeros(codes.shape, dtype=np.bool_)
    for grouping in chosen:
        group_codes = grouping.codes[defined]
        nowhere |= group_codes < 0
        codes = codes * len(grouping.labels) + group_codes
    codes[nowhere] = -1
    return codes, prod(len(grouping.labels) for grouping in chosen)


def _list_conditions(chosen: tuple[Grouping, ...], code: int) -> tuple[tuple[str, str], ...]:
    places = np.unravel_index(code, [len(grouping.labels) for grouping in chosen])
    return tuple(
        (grouping.variable, grouping.labels[int(place)])
        for grouping, place in zip(chosen, places, strict=True)
    )


def _compute_statistics(found: _Found, worse: NDArray[np.float64]) -> NDArray[np.float64]:
    n = len(worse)
    apart = worse - worse.mean(axis=0)
    error = worse.std(axis=0, ddof=1) * np.sqrt(1 / found.sizes - 1 / n)[:, None]
    statistics: NDArray[np.float64] = (found.members @ apart) / found.sizes[:, None] / error
    return statistics


def _simulate_highest(
    found: _Found, worse: NDArray[np.float64], n_permutations: int, seed: int
) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    highest = []
    for n_rows in row_blocks(n_permutations, worse.size + len(found.conditions)):
        report_progress(0, 1, _SEARCHING)
        shuffled = rng.permuted(np.tile(worse, (n_rows, 1)), axis=1)
        highest.append(_compute_statistics(found, np.ascontiguousarray(shuffled.T)).max(axis=0))
    return np.concatenate(highest) if highest else np.zeros(0)


def _select_telling(found: _Found, observed: NDArray[np.float64]) -> list[int]:
    statistics = {
        frozenset(conditions): statistic
        for conditions, statistic in zip(found.conditions, observed.tolist(), strict=True)
    }
    return [
        int(index)
        for index in np.argsort(-observed, kind="stable")
        if all(
            statistics.get(frozenset(broader), -np.inf) + LEAST_GAIN <= observed[index]
            for size in range(1, len(found.conditions[index]))
            for broader in combinations(found.conditions[index], size)
        )
    ]


def _describe_slice(
    found: _Found,
    place: int,
    values: NDArray[np.float64],
    observed: NDArray[np.float64],
    highest: NDArray[np.float64],
) -> Slice:
    inside = found.members[[place]].toarray()[0] > 0
    reached = np.count_nonzero(highest >= observed[place] - _ROUNDING)
    return Slice(
        found.conditions[place],
        int(inside.sum()),
        float(values[inside].mean()),
        float(values[~inside].mean()),
        float(observed[place]),
        (1 + reached) / (1 + highest.size),
    )


def _explain_no_slices(values: NDArray[np.float64], n_slices: int, min_support: int) -> str:
    if values.size and not n_slices:
        return f"no combination of groups has {min_support} cases inside and outside"
    if values.size < 2 or np.ptp(values) <= _ROUNDING:
        return "the metric is the same in all cases" if values.size else "no case has a value"
    return ""
