"""Permutation tests of disparities: compare the groups with random groups of cases."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.progress import report_progress
from napari_mamamia.scoring.cohort.classification import outcomes, rate_gaps
from napari_mamamia.scoring.cohort.comparison import holm
from napari_mamamia.scoring.cohort.fairness import disparity
from napari_mamamia.scoring.cohort.group_rules import EmptyGroups, GroupRules
from napari_mamamia.scoring.cohort.groups import Grouping
from napari_mamamia.scoring.cohort.response_predictions import ResponsePredictions
from napari_mamamia.scoring.statistics.performance import SegmentationScores, ratio
from napari_mamamia.scoring.statistics.resampling import row_blocks

N_PERMUTATIONS: Final = 1000
SEED: Final = 42

_ROUNDING: Final = 1e-12
"""Tolerance for rounding when a permuted disparity is compared with the observed one."""

Gaps = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Maps sums over groups (b, g, k) to disparities (b, m)."""


@dataclass(frozen=True, slots=True)
class PermutationTest:
    """One disparity, its p-value, and the disparities of random groups of the same sizes.

    `p_value` is (1 + number of permutations that reach the disparity)/(1 + `n_permutations`), never
    0. It is nan, with the `reason`, if the disparity is undefined or there is only one group.
    `p_holm` is corrected by Holm for the `n_corrected` tests of its family over all variables:
    single metrics or rates form one family, their means or sums another.
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
    """Return the tests of each variable's DSC, NormHD and mean disparity.

    The cases with a group of the variable exchange their groups at random, so that the groups keep
    their sizes. Source: B. Phipson, G. K. Smyth, Stat. Appl. Genet. Mol. Biol. 9 (2010) 39.
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
    """Return the tests of each variable's TPR, FPR and equalised-odds disparity.

    Cases exchange their groups, keeping label and prediction together, as in
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
        raise ValueError(f"expected at least one permutation, got {n_permutations}")
    tests = []
    for grouping in groupings:
        codes = grouping.codes[grouping.codes >= 0]
        # The cases are sorted by group, so that shuffling them exchanges their groups.
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
    """Return the tests with Holm's correction; the `joint` measure forms a separate family."""
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
    """Yield sums over contiguous groups of rows (n, k) in random orders, in blocks (b, g, k).

    Columns are processed one by one: taking whole rows in random order costs four times as much.
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
