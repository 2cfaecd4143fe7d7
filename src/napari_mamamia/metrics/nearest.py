"""Distance from each of many voxels to the nearest of many others, exactly and fast.

Contours of two masks of one lesion lie close together, so most voxels are settled by looking at the
few rows of the image around them (`nearest_rows`). Voxels that are farther than the rows reach,
sparse sets and grids whose axes are not at right angles go to a k-d tree. Both ways are exact; in
voxel units they give the same bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

# Distances to the nearest voxel where it is near: the rows of the image around each voxel.
#
# A table holds, for each voxel, how far the nearest of the others is along its own row (x). Rows
# are looked at in order of their distance until none can be nearer.
#
# All in numpy: the search compiled by numba made scoring from files 10 % faster and each process
# 100 MB larger, a third of what a worker may take (benchmarks/scoring.py, score_memory.py).

_REACH_ROWS: Final = 12
"""Rows looked at on each side, along the finer of z and y."""
_TABLE_PER_VOXEL: Final = 400
"""Entries of the table for each voxel asked about, above which the tree is faster."""
_AT_ONCE: Final = 32768
"""Table entries looked up in one step, so that they stay in the processor's cache."""
_NO_ROW: Final = 16000
"""Stands in the table where a row holds none of the others; rows are shorter than this."""
_RIGHT_ANGLE: Final = 1e-12
# All measured on one core with benchmarks/metrics.py.

Voxels = NDArray[np.intp]
Columns = NDArray[np.int32]
Floats = NDArray[np.float64]
Table = NDArray[np.int16]


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """A unit of distance: `matrix` is 3x3, steps along (z, y, x) as columns.

    `weights` are the squared lengths of the steps. `pads` are the rows looked at on each side,
    along z and y, which settle squared distances up to `limit`.
    """

    matrix: Floats
    weights: Floats
    pads: Voxels
    limit: float

    @classmethod
    def of(cls, matrix_mm: Floats | None) -> Self:
        """Return the unit of a grid's matrix in mm; None measures in voxels."""
        matrix = np.eye(3) if matrix_mm is None else matrix_mm
        weights = np.square(matrix).sum(axis=0)
        pads = (_REACH_ROWS * np.sqrt(weights[:2].min() / weights[:2])).astype(np.intp)
        # The nearest row that is not looked at lies pads + 1 away: whatever is nearer than that is
        # settled.
        limit = min(*((pads + 1) ** 2 * weights[:2]), (_NO_ROW - 1) ** 2 * weights[2])
        return cls(matrix, weights, pads, float(limit))

    @property
    def is_at_right_angles(self) -> bool:
        """Whether squared distances are sums over the axes; only then do rows serve."""
        squares = self.matrix.T @ self.matrix
        skew = np.abs(squares - np.diag(np.diagonal(squares))).max()
        return bool(skew <= _RIGHT_ANGLE * self.weights.min())

    @property
    def reach(self) -> Voxels:
        """How far along (z, y, x) a voxel may lie that settles a distance up to the limit."""
        return np.array([*self.pads, int(np.sqrt(self.limit / self.weights[2])) + 1])


def squared_by_rows(
    points: Voxels, others: Voxels, metrics: Sequence[Metric]
) -> tuple[Floats, ...]:
    """Return the squared distance of each of `points` to the nearest of `others`, in each unit.

    Parameters
    ----------
    points, others
        Voxel indices (n, 3) along (z, y, x); at least one of each.
    metrics
        The units. What none of the rows in reach settles is nan, and so is everything where the
        axes are not at right angles or a table would be larger than it is worth.
    """
    square = [metric for metric in metrics if metric.is_at_right_angles]
    unsettled = tuple(np.full(len(points), np.nan) for _ in metrics)
    if not square:
        return unsettled
    reach = np.max([metric.reach for metric in square], axis=0)
    columns, of_others = _make_columns(points), _make_columns(others)
    asked = _is_within(columns, of_others.min(axis=1) - reach, of_others.max(axis=1) + reach)
    if not asked.any():
        return unsettled
    rows = _make_rows(columns[:, asked], of_others, reach)
    if rows is not None:
        for squared, metric in zip(unsettled, metrics, strict=True):
            if metric.is_at_right_angles:
                squared[asked] = rows.search(metric)
    return unsettled


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """The table, flat in order (x, z, y), and the place in it of each voxel asked about."""

    table: Table
    width: int
    at: Voxels

    def search(self, metric: Metric) -> Floats:
        """Return the squared distances that the rows in reach settle, nan for the others."""
        costs, steps = _rows_around(metric, self.width)
        weight = float(metric.weights[2])
        return _search_rows(self.table, self.at, costs, steps, metric.limit, weight)


def _make_rows(points: Columns, others: Columns, reach: Voxels) -> _Rows | None:
    """Return the table around the points, None where it is too large for them to be worth it."""
    low, high = points.min(axis=1).astype(np.intp), points.max(axis=1).astype(np.intp)
    others = others[:, _is_within(others, low - reach, high + reach)]
    if others.size:
        low[2] = min(low[2], others[2].min())
        high[2] = max(high[2], others[2].max())
    pads = np.array([*reach[:2], 0])
    low -= pads
    depth, width, length = (int(n) for n in high + pads - low + 1)
    if length >= _NO_ROW or length * depth * width > _TABLE_PER_VOXEL * points.shape[1]:
        return None
    table = _row_table(others - low[:, None], (length, depth, width))
    z, y, x = points - low[:, None]
    return _Rows(table, width, (x * depth + z) * width + y)


def _make_columns(voxels: Voxels) -> Columns:
    """Return voxels (n, 3) as three rows (3, n) of small numbers, which are quick to compare."""
    return np.ascontiguousarray(voxels.T, dtype=np.int32)


def _is_within(voxels: Columns, low: Voxels, high: Voxels) -> NDArray[np.bool_]:
    """Return which of the voxels (3, n) lie in the block from `low` to `high`, both included."""
    inside = np.ones(voxels.shape[1], dtype=np.bool_)
    for along, start, stop in zip(voxels, low, high, strict=True):
        inside &= (along >= start) & (along <= stop)
    return inside


def _row_table(others: Voxels, shape: tuple[int, int, int]) -> Table:
    """Return, flat in order (x, z, y), how far along x the nearest of `others` (3, n) is."""
    table = np.full(shape, _NO_ROW, dtype=np.int16)
    z, y, x = others
    table[x, z, y] = 0
    onward = np.empty(shape[1:], dtype=np.int16)
    for planes in (table, table[::-1]):
        for before, here in pairwise(planes):
            np.add(before, 1, out=onward)
            np.minimum(here, onward, out=here)
    return table.ravel()


def _rows_around(metric: Metric, width: int) -> tuple[Floats, Voxels]:
    """Return the rows nearer than the limit: squared distances, ascending; steps in the table."""
    pads, weights = metric.pads, metric.weights
    dz, dy = np.mgrid[-pads[0] : pads[0] + 1, -pads[1] : pads[1] + 1].reshape(2, -1)
    costs = dz**2 * weights[0] + dy**2 * weights[1]
    order = np.argsort(costs, kind="stable")
    order = order[: np.searchsorted(costs[order], metric.limit)]
    return costs[order], (dz * width + dy)[order]


def _search_rows(
    table: Table, at: Voxels, costs: Floats, steps: Voxels, limit: float, weight: float
) -> Floats:
    """Return the least of row cost plus squared way along the row, nan where above `limit`.

    Parameters
    ----------
    table
        Flat int16: the way along its row from each voxel to the nearest of the others.
    at
        The place in `table` of each voxel asked about.
    costs, steps
        Of the rows looked at: squared distance, ascending, and step in `table`.
    limit
        No row left out is nearer than its root.
    weight
        Square of a step along the row.
    """
    squared = np.full(at.size, np.nan)
    open_ = np.arange(at.size)
    best = np.full(at.size, np.inf)
    start = 0
    while start < costs.size and open_.size:
        # Few rows first and then twice as many: contours of one lesion are close, most voxels end
        # early.
        stop = start + max(4, min(_AT_ONCE // open_.size, start + 4))
        ways = table.take(at + steps[start:stop, None]).astype(np.float64)
        ways *= ways
        ways *= weight
        ways += costs[start:stop, None]
        np.minimum(best, ways.min(axis=0), out=best)
        start = stop
        bound = costs[start] if start < costs.size else limit
        settled = best <= bound
        squared[open_[settled]] = best[settled]
        open_, at, best = (values[~settled] for values in (open_, at, best))
    return squared


_FEWEST: Final = 64
"""Voxels asked about, below which the tree is faster (measured with benchmarks/metrics.py)."""
_LEAF_VOXELS: Final = 64
_ROUNDING: Final = 1e-9


def nearest_distances(points: Voxels, others: Voxels, matrix_mm: Floats | None = None) -> Floats:
    """Return the distance of each of `points` to the nearest of `others`.

    Parameters
    ----------
    points, others
        Voxel indices (n, 3) along (z, y, x). Without `others` all distances are infinite.
    matrix_mm
        3x3, steps along (z, y, x) as columns, in mm; None measures in voxels.
    """
    return nearest_in_units(points, others, (matrix_mm,))[0]


def nearest_in_units(
    points: Voxels, others: Voxels, matrices_mm: Sequence[Floats | None]
) -> tuple[Floats, ...]:
    """Return `nearest_distances` for each of several units, which share most of the work."""
    if not len(others):
        return tuple(np.full(len(points), np.inf) for _ in matrices_mm)
    metrics = [Metric.of(matrix) for matrix in matrices_mm]
    if len(points) < _FEWEST:
        return tuple(_by_tree(points, others, metric.matrix) for metric in metrics)
    squares = squared_by_rows(points, others, metrics)
    return tuple(
        _complete_distances(squared, points, others, metric.matrix)
        for squared, metric in zip(squares, metrics, strict=True)
    )


def _complete_distances(squared: Floats, points: Voxels, others: Voxels, matrix: Floats) -> Floats:
    """Return the roots of `squared`; where that is nan, what the tree finds."""
    left = np.isnan(squared)
    distances: Floats = np.sqrt(squared)
    if left.any():
        distances[left] = _by_tree(points[left], others, matrix)
    return distances


def _by_tree(points: Voxels, others: Voxels, matrix: Floats) -> Floats:
    if not len(points):
        return np.zeros(0)
    from scipy.spatial import KDTree  # 0.2 s to import, which the list of metrics must not cost

    asked = matrix @ points.T
    tree: Any = KDTree(  # type: ignore[no-untyped-call, unused-ignore]
        _in_question(asked, matrix @ others.T).T,
        leafsize=_LEAF_VOXELS,
        compact_nodes=False,
        balanced_tree=False,
    )
    distances: Floats = tree.query(asked.T)[0]
    return distances


def _in_question(asked: Floats, others: Floats) -> Floats:
    """Return those of the others (3, n) that may be nearest to one of the points asked about.

    With r the radius of a ball around all points asked about and d the distance of its centre to
    the nearest of the others, the nearest of any of the points lies within d + 2 r of the centre
    (the triangle inequality, twice). For a false positive far away that is a small cap.
    """
    low, high = asked.min(axis=1, keepdims=True), asked.max(axis=1, keepdims=True)
    away = others - (low + high) / 2
    away = np.sqrt(np.einsum("an,an->n", away, away))
    limit = (away.min() + np.linalg.norm(high - low)) * (1 + _ROUNDING)
    return others[:, away <= limit]
