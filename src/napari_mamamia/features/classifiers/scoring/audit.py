"""Find metadata that leaks a data set's label or split."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import nan
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.progress import report_progress
from napari_mamamia.features.classifiers.scoring.stacking import deal_folds
from napari_mamamia.scoring.classifier.operating import Units
from napari_mamamia.scoring.cohort.comparison import holm
from napari_mamamia.scoring.statistics.auc import auc
from napari_mamamia.scoring.statistics.performance import ratio

N_SIMULATED: Final = 9999
N_PERMUTATIONS: Final = 999
MOST_ROWS: Final = 20_000
"""Maximum number of rows in the joint test; larger tables are sampled."""

_FEW_NUMBERS: Final = 6
_MOST_VALUES: Final = 40
_BINS: Final = 8
_RIDGE: Final = 0.01
_AT_ONCE: Final = 100
_FOLDS: Final = 5
_JOINT_VALUES: Final = 12


class LeakTest(StrEnum):
    """The statistical test that compares a column with a target."""

    FISHER = "Fisher"
    CHI_SQUARE = "chi-square, simulated"
    MANN_WHITNEY = "Mann-Whitney"


@dataclass(frozen=True, slots=True, eq=False)
class MetadataColumn:
    """A column with n cells: `numbers` (n,), NaN where missing, or `texts`, "" where missing."""

    name: str
    numbers: NDArray[np.float64] | None = None
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ColumnLeak:
    """The association of a column with a target.

    `effect` ranges from 0 (none) to 1. It is Cramer's V for categories, and for numbers twice the
    distance between the column's AUC and 0.5. `auc` is NaN for categories, and `odds_ratio` is NaN
    for all tables except 2 x 2 tables. `p_holm` is corrected over all columns and targets.
    """

    target: str
    column: str
    test: LeakTest
    n: int
    effect: float
    auc: float
    odds_ratio: float
    p_value: float
    p_holm: float = nan


@dataclass(frozen=True, slots=True)
class JointLeak:
    """How well all columns together predict a target: cross-validated AUC and its p-value.

    `p_value` is computed from `n_permutations` permuted targets; `n` is the number of rows used.
    """

    target: str
    auc: float
    p_value: float
    n: int
    n_permutations: int


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A value that several rows share; `rows` holds their indices, from 0."""

    kind: str
    value: str
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Audit:
    """The results of an audit, which changes no data; `skipped` lists columns with reasons."""

    columns: tuple[ColumnLeak, ...]
    joint: tuple[JointLeak, ...]
    duplicates: tuple[Duplicate, ...]
    skipped: tuple[str, ...]


def fisher(table: Sequence[Sequence[int]]) -> tuple[float, float]:
    """Return the sample odds ratio and two-sided p-value of a 2 x 2 table; NaN if a margin is 0.

    Examples
    --------
    >>> ratio, p = fisher([[29, 940], [1044, 84860]])
    >>> round(ratio, 6), round(p * 1e5, 6)
    (2.507683, 2.17458)
    """
    from scipy.stats import fisher_exact

    result = fisher_exact(table)
    return float(result.statistic), float(result.pvalue)


def audit(
    columns: Sequence[MetadataColumn],
    targets: Sequence[tuple[str, NDArray[np.float64]]],
    groups: Units,
    seed: int = 42,
    n_permutations: int = N_PERMUTATIONS,
) -> Audit:
    """Test the association of each column, and of all columns together, with each target.

    The joint test keeps all rows of a patient in one fold. For each column, it is also tested
    whether missing values are associated with the target. A column with many different strings is
    tested by its letters and digits, because it may contain ids or dates. The order of the rows is
    tested like a column. A column is not tested against the target with the same name.

    Parameters
    ----------
    columns
        The columns to test.
    targets
        Each target's name, with its value for each row, (n,): 0, 1 or NaN.
    groups
        The patient of each row.
    seed
        Random seed for permutations and simulations.
    n_permutations
        Number of permutations in the joint test.
    """
    skipped: list[str] = []
    ready = [prepared for column in columns for prepared in _prepare_column(column, skipped)]
    ready.append(MetadataColumn("(order of the rows)", np.arange(len(groups.of_row), dtype=float)))
    rng = np.random.default_rng(seed)
    tested = [
        leak
        for name, target in targets
        for column in ready
        if column.name != name and (leak := _test_column(column, name, target, rng)) is not None
    ]
    corrected = holm(np.array([leak.p_value for leak in tested]))
    leaks = [replace(leak, p_holm=float(p)) for leak, p in zip(tested, corrected, strict=True)]
    joint = [
        joint_leak
        for name, target in targets
        if (
            joint_leak := _test_together(
                [column for column in ready if column.name != name],
                name,
                target,
                groups,
                seed,
                n_permutations,
            )
        )
        is not None
    ]
    return Audit(
        tuple(sorted(leaks, key=lambda leak: (-leak.effect, leak.p_value))),
        tuple(joint),
        (),
        tuple(skipped),
    )


def duplicates(
    kind: str, values: Sequence[str], apart: Sequence[str] | None = None
) -> tuple[Duplicate, ...]:
    """Find values that occur in several rows, except "".

    If `apart` is given (such as the part of a split), only values whose rows differ in `apart` are
    returned.

    Parameters
    ----------
    kind
        Kind of the values, such as "patient".
    values
        A value for each row.
    apart
        A second value for each row, or None.

    Examples
    --------
    >>> duplicates("patient", ["a", "b", "a"], ["train", "train", "test"])
    (Duplicate(kind='patient', value='a', rows=(0, 2)),)
    """
    rows: dict[str, list[int]] = {}
    for row, value in enumerate(values):
        if value:
            rows.setdefault(value, []).append(row)
    return tuple(
        Duplicate(kind, value, tuple(places))
        for value, places in rows.items()
        if len(places) > 1 and (apart is None or len({apart[index] for index in places}) > 1)
    )


def _prepare_column(column: MetadataColumn, skipped: list[str]) -> list[MetadataColumn]:
    if column.numbers is not None:
        is_there = ~np.isnan(column.numbers)
        values = np.unique(column.numbers[is_there])
        ready = [column] if values.size > 1 else []
        if 1 < values.size < _FEW_NUMBERS:
            texts = [f"{value:g}" if value == value else "" for value in column.numbers]
            ready = [MetadataColumn(column.name, None, tuple(texts))]
    else:
        is_there = np.array([bool(text) for text in column.texts])
        n_values = len({text for text in column.texts if text})
        ready = [column] if n_values > 1 else []
        if n_values > _MOST_VALUES:
            ready = list(_take_apart(column, skipped))
    if 0 < is_there.sum() < is_there.size:
        texts = ["present" if is_present else "missing" for is_present in is_there]
        ready.append(MetadataColumn(f"{column.name} (missing)", None, tuple(texts)))
    return ready


def _take_apart(column: MetadataColumn, skipped: list[str]) -> Iterator[MetadataColumn]:
    letters = tuple(re.sub(r"[\d\W_]+", " ", text).strip() for text in column.texts)
    if 1 < len({text for text in letters if text}) <= _MOST_VALUES:
        yield MetadataColumn(f"{column.name} (letters)", None, letters)
    digits = [re.sub(r"\D", "", text)[:15] for text in column.texts]
    numbers = np.array([float(text) if text else nan for text in digits])
    if np.unique(numbers[~np.isnan(numbers)]).size > 1:
        yield MetadataColumn(f"{column.name} (digits)", numbers)
    elif len({text for text in letters if text}) > _MOST_VALUES:
        skipped.append(f"{column.name}: more than {_MOST_VALUES} strings without digits")


def _test_column(
    column: MetadataColumn, name: str, target: NDArray[np.float64], rng: np.random.Generator
) -> ColumnLeak | None:
    if column.numbers is not None:
        use = ~np.isnan(column.numbers) & ~np.isnan(target)
        return _test_numbers(column.name, name, column.numbers[use], target[use])
    use = np.array([bool(text) for text in column.texts]) & ~np.isnan(target)
    values, codes = np.unique(np.array(column.texts, dtype=str)[use], return_inverse=True)
    yes = target[use] == 1
    if values.size < 2 or not 0 < yes.sum() < yes.size:
        return None
    counts = np.stack([np.bincount(codes[side], minlength=values.size) for side in (yes, ~yes)])
    effect = float(np.sqrt(_chi_square(counts[None])[0] / yes.size))
    if values.size == 2:
        ratio, p_value = fisher(counts.tolist())
        return ColumnLeak(name, column.name, LeakTest.FISHER, yes.size, effect, nan, ratio, p_value)
    p_value = _simulate_tables(counts, rng)
    return ColumnLeak(name, column.name, LeakTest.CHI_SQUARE, yes.size, effect, nan, nan, p_value)


def _test_numbers(
    column: str, name: str, numbers: NDArray[np.float64], target: NDArray[np.float64]
) -> ColumnLeak | None:
    from scipy.stats import mannwhitneyu

    yes = target == 1
    if not 0 < yes.sum() < yes.size:
        return None
    alone = auc(target, numbers)
    p_value = float(mannwhitneyu(numbers[yes], numbers[~yes], method="asymptotic").pvalue)
    effect = abs(2 * alone - 1)
    p_value = 1.0 if np.isnan(p_value) else p_value
    return ColumnLeak(name, column, LeakTest.MANN_WHITNEY, yes.size, effect, alone, nan, p_value)


def _chi_square(counts: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return Pearson's chi-squared statistic of tables (b, 2, k) without empty margins."""
    rows, columns = counts.sum(axis=2, keepdims=True), counts.sum(axis=1, keepdims=True)
    expected = rows * columns / counts.sum(axis=(1, 2), keepdims=True)
    statistic: NDArray[np.float64] = ((counts - expected) ** 2 / expected).sum(axis=(1, 2))
    return statistic


def _simulate_tables(counts: NDArray[np.integer], rng: np.random.Generator) -> float:
    both = counts.sum(axis=0)
    drawn = rng.multivariate_hypergeometric(
        both, int(counts[0].sum()), size=N_SIMULATED, method="marginals"
    )
    simulated = _chi_square(np.stack([drawn, both - drawn], axis=1))
    reached = simulated >= _chi_square(counts[None])[0] * (1 - 1e-9)
    return float((1 + reached.sum()) / (1 + N_SIMULATED))


def _test_together(
    columns: Sequence[MetadataColumn],
    name: str,
    target: NDArray[np.float64],
    groups: Units,
    seed: int,
    n_permutations: int,
) -> JointLeak | None:
    rows = np.flatnonzero(~np.isnan(target))
    rng = np.random.default_rng(seed)
    if rows.size > MOST_ROWS:
        rows = np.sort(rng.choice(rows, MOST_ROWS, replace=False))
    label = target[rows]
    least = min((label == 1).sum(), (label == 0).sum())
    if least < 2 * _FOLDS:
        return None
    table = np.concatenate([_spread_out(column, rows) for column in columns], axis=1)
    table = table[:, table.std(axis=0) > 0]
    subjects = Units.of([groups.names[groups.of_row[row]] for row in rows])
    if not table.shape[1] or subjects.n < _FOLDS:
        return None
    folds = deal_folds(subjects, label.astype(int).tolist(), _FOLDS, seed)
    (real,) = _cross_validated(table, label[:, None], folds)
    n_reached = 0
    for first in range(0, n_permutations, _AT_ONCE):
        report_progress(first, n_permutations, f"Predicting {name} from all columns")
        n_now = min(_AT_ONCE, n_permutations - first)
        dealt = np.stack([rng.permutation(label) for _ in range(n_now)], axis=1)
        n_reached += int((_cross_validated(table, dealt, folds) >= real).sum())
    p_value = (1 + n_reached) / (1 + n_permutations)
    return JointLeak(name, float(real), p_value, rows.size, n_permutations)


def _cross_validated(
    table: NDArray[np.float64], labels: NDArray[np.float64], folds: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return, for each of m targets (n, m), the mean AUC over the folds with both classes."""
    from scipy.stats import rankdata

    totals, counts = np.zeros(labels.shape[1]), np.zeros(labels.shape[1])
    for fold in range(_FOLDS):
        inside = folds != fold
        fit, y = table[inside], labels[inside]
        center = fit.mean(axis=0)
        wide = fit - center
        ridge = wide.T @ wide + _RIDGE * len(fit) * np.eye(wide.shape[1])
        weights = np.linalg.solve(ridge, wide.T @ (y - y.mean(axis=0)))
        ranks = rankdata((table[~inside] - center) @ weights, axis=0)
        yes = labels[~inside] == 1
        n_yes, n_no = yes.sum(axis=0), (~yes).sum(axis=0)
        area = ratio((ranks * yes).sum(axis=0) - n_yes * (n_yes + 1) / 2, n_yes * n_no + 0.0)
        totals += np.nan_to_num(area)
        counts += ~np.isnan(area)
    return ratio(totals, counts)


def _spread_out(column: MetadataColumn, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return indicators (n, k) of a column's categories, or of quantiles of its numbers."""
    if column.numbers is not None:
        numbers = column.numbers[rows]
        there = numbers[~np.isnan(numbers)]
        if not there.size:
            return np.zeros((rows.size, 0))
        edges = np.unique(np.quantile(there, np.linspace(0, 1, _BINS + 1)[1:-1]))
        codes = np.where(np.isnan(numbers), -1, np.searchsorted(edges, numbers))
        return _mark_places(codes, np.arange(edges.size + 1))
    values, codes, counts = np.unique(
        np.array(column.texts, dtype=str)[rows], return_inverse=True, return_counts=True
    )
    most = np.argsort(-counts, kind="stable")[:_JOINT_VALUES]
    return _mark_places(codes, np.arange(values.size)[most])


def _mark_places(place: NDArray[np.intp], places: NDArray[np.intp]) -> NDArray[np.float64]:
    marks: NDArray[np.float64] = (place[:, None] == places).astype(np.float64)
    return marks
