"""Split a data set by patient, so that each stratum is divided as evenly as possible."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from napari_mamamia.scoring.classifier.operating import Units

STRATIFIED_DEALING: Final = "stratified-dealing"
"""Name of the method by which patients are assigned to parts.

The method differs from the split of the digital mammography challenge (T. Schaffter et al. 2020,
supplement), whose description does not state how the parts are filled.
"""


@dataclass(frozen=True, slots=True)
class PartShare:
    """A part of the split, and its relative share of the patients, which must be above 0."""

    name: str
    share: float


@dataclass(frozen=True, slots=True)
class LevelBalance:
    """The number of patients in each part who have one value of a column, and the imbalance.

    `differences` are standardised: (proportion in the part - overall proportion)/sqrt(p (1 - p)).
    """

    column: str
    value: str
    counts: tuple[int, ...]
    differences: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """The part to which each patient belongs, and the balance of the parts.

    `of_patient` (m,) holds indices into `parts`. `targets` are the exact (fractional) sizes of the
    parts, and `sizes` the actual sizes.
    """

    parts: tuple[PartShare, ...]
    of_patient: NDArray[np.intp]
    sizes: tuple[int, ...]
    targets: tuple[float, ...]
    balance: tuple[LevelBalance, ...]


def deal_patients(
    columns: Mapping[str, Sequence[str]], parts: Sequence[PartShare], seed: int = 42
) -> Split:
    """Split m patients by the method ``stratified-dealing``.

    The parts are disjoint. The strata are formed by the first column, by the first two columns, and
    so on to all columns. In every part and every stratum, the number of patients is the exact
    proportion rounded up or down, and so differs from it by less than one patient. Such a rounding
    always exists, because the constraints form a network flow, which has an integer solution. The
    patients of a stratum are assigned at random with `seed`. Source: L. R. Ford, D. R. Fulkerson,
    Flows in Networks (1962); L. H. Cox, L. R. Ernst, INFOR 20 (1982) 423 (controlled rounding).

    Parameters
    ----------
    columns
        Columns that define the strata, in order of importance, with a value for each patient.
    parts
        The parts and their proportions.
    seed
        Random seed of the assignment.

    Raises
    ------
    ValueError
        If there is no patient, or fewer than two parts, or a proportion is not above 0.
    """
    shares = _exact_shares(parts)
    names = tuple(columns)
    n = len(next(iter(columns.values()))) if names else 0
    if not n:
        raise ValueError("expected at least one patient and one column of strata, but found none")
    keys = list(zip(*(columns[name] for name in names), strict=True))
    leaves = sorted(set(keys))
    leaf_sizes = dict.fromkeys(leaves, 0)
    for key in keys:
        leaf_sizes[key] += 1
    counts = _round_flow([leaf_sizes[leaf] for leaf in leaves], leaves, shares)
    of_patient = np.empty(n, dtype=np.intp)
    rng = np.random.default_rng(seed)
    rows_of: dict[tuple[str, ...], list[int]] = {leaf: [] for leaf in leaves}
    for row, key in enumerate(keys):
        rows_of[key].append(row)
    for leaf, of_part in zip(leaves, counts, strict=True):
        of_patient[rng.permutation(rows_of[leaf])] = np.repeat(np.arange(len(parts)), of_part)
    sizes = np.bincount(of_patient, minlength=len(parts))
    return Split(
        tuple(parts),
        of_patient,
        tuple(sizes.tolist()),
        tuple(float(share * n) for share in shares),
        tuple(_measure_balance(columns, of_patient, len(parts))),
    )


def join_patients(patients: Units, values: Sequence[str]) -> tuple[str, ...]:
    """Return the most frequent value among each patient's rows.

    If several values are equally frequent, the first is returned; "" is returned only if there is
    no other value.
    """
    counted: list[dict[str, int]] = [{} for _ in range(patients.n)]
    for index, value in zip(patients.of_row, values, strict=True):
        counted[index][value] = counted[index].get(value, 0) + 1
    return tuple(max(each, key=lambda value: (bool(value), each[value])) for each in counted)


def _exact_shares(parts: Sequence[PartShare]) -> list[Fraction]:
    fractions = [Fraction(str(part.share)) for part in parts]
    if len(fractions) < 2 or min(fractions) <= 0:
        raise ValueError(
            "expected at least two parts with proportions above 0, but found "
            f"{', '.join(f'{part.name}={part.share:g}' for part in parts) or 'none'}"
        )
    if len({part.name for part in parts}) < len(parts):
        raise ValueError(
            "expected a different name for each part, but found two parts with the same name"
        )
    total = sum(fractions)
    return [share / total for share in fractions]


class _Flow:
    """A network whose edges have lower and upper limits, and an integer flow within the limits."""

    def __init__(self) -> None:
        self.nodes: dict[object, int] = {}
        self.edges: list[tuple[int, int, int, int]] = []

    def add(self, start: object, end: object, exact: Fraction) -> int:
        """Add an edge whose flow is `exact`, rounded down or up; return the edge's number."""
        low = exact.numerator // exact.denominator
        high = low + (exact.denominator != 1)
        places = [self.nodes.setdefault(node, len(self.nodes)) for node in (start, end)]
        self.edges.append((places[0], places[1], low, high))
        return len(self.edges) - 1

    def solve(self) -> list[int]:
        """Return the flow on each edge: set lower limits first, then find augmenting paths."""
        n = len(self.nodes) + 2
        source, sink = n - 2, n - 1
        spare: dict[tuple[int, int], int] = {}
        excess = [0] * n
        for start, end, low, high in self.edges:
            spare[start, end] = spare.get((start, end), 0) + high - low
            excess[end] += low
            excess[start] -= low
        for node in range(n - 2):
            if excess[node] > 0:
                spare[source, node] = excess[node]
            elif excess[node] < 0:
                spare[node, sink] = -excess[node]
        starts, ends = zip(*spare, strict=True)
        capacities = np.array(list(spare.values()), dtype=np.int32)
        flow = maximum_flow(csr_array((capacities, (starts, ends)), shape=(n, n)), source, sink)
        moved = flow.flow
        return [low + max(0, int(moved[start, end])) for start, end, low, _ in self.edges]


def _round_flow(
    sizes: Sequence[int], leaves: Sequence[tuple[str, ...]], shares: Sequence[Fraction]
) -> NDArray[np.intp]:
    flow = _Flow()
    nested: dict[tuple[str, ...], int] = {}
    for leaf, size in zip(leaves, sizes, strict=True):
        flow.add("all", ("row", leaf), Fraction(size))
        for depth in range(len(leaf) + 1):
            nested[leaf[:depth]] = nested.get(leaf[:depth], 0) + size
    cells = np.empty((len(leaves), len(shares)), dtype=np.intp)
    for index, share in enumerate(shares):
        for leaf_index, (leaf, size) in enumerate(zip(leaves, sizes, strict=True)):
            cells[leaf_index, index] = flow.add(("row", leaf), (index, leaf), share * size)
        for node, size in nested.items():
            end = (index, node[:-1]) if node else "all"
            flow.add((index, node), end, share * size)
    solved = np.array(flow.solve(), dtype=np.intp)
    counts: NDArray[np.intp] = solved[cells]
    return counts


def _measure_balance(
    columns: Mapping[str, Sequence[str]], of_patient: NDArray[np.intp], n_parts: int
) -> list[LevelBalance]:
    sizes = np.bincount(of_patient, minlength=n_parts)
    rows = []
    for column, values in columns.items():
        each = np.array(values, dtype=str)
        for value in np.unique(each):
            inside = np.bincount(of_patient[each == value], minlength=n_parts)
            share = inside.sum() / sizes.sum()
            spread = np.sqrt(share * (1 - share))
            apart = np.zeros(n_parts)
            if spread > 0:
                apart = (inside / np.maximum(sizes, 1) - share) / spread
            rows.append(
                LevelBalance(
                    column,
                    str(value),
                    tuple(inside.tolist()),
                    tuple(float(difference) for difference in apart),
                )
            )
    return rows
