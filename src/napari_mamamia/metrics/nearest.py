"""Compute the exact distance from each of many voxels to the nearest voxel of another set.

Contours of two masks of one lesion are close together, so searching a few image rows around each
voxel finds the nearest voxel in most cases (`squared_by_rows`). More distant voxels, sparse sets,
and grids whose axes are not perpendicular are searched with a k-d tree. Both methods are exact; in
voxel units, the results are identical.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

# Distances to the nearest voxel by a search of the image rows around each voxel. For each voxel,
# a table holds the distance to the nearest voxel of the other set in the same row (x). Rows are
# searched in order of their distance until no remaining row can be nearer. The search uses only
# numpy: with numba, scoring from files is 10 % faster, but each process is 100 MB larger, which
# is a third of a worker's memory limit (benchmarks/scoring.py, score_memory.py).

_REACH_ROWS: Final = 12
"""Number of rows searched on each side, along z or y, whichever has the smaller spacing."""
_TABLE_PER_VOXEL: Final = 400
"""Number of table entries per query voxel above which the k-d tree is faster."""
_AT_ONCE: Final = 32768
"""Number of table entries read in one step, small enough to remain in the CPU cache."""
_NO_ROW: Final = 16000
"""Table entry for a row that has no voxel of the other set; all rows are shorter than this."""
_RIGHT_ANGLE: Final = 1e-12
# All values were measured on one core with benchmarks/metrics.py.

Voxels = NDArray[np.intp]
Columns = NDArray[np.int32]
Floats = NDArray[np.float64]
Table = NDArray[np.int16]


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """A unit of distance, defined by a 3x3 matrix whose columns are the steps along (z, y, x).

    `matrix` is that 3x3 matrix. `weights` are the squared lengths of the steps. `pads` are the
    numbers of rows searched on each side, along z and y; within these rows, squared distances up to
    `limit` are exact. `is_at_right_angles` is true if squared distances are sums over the axes,
    which the search by rows requires.
    """

    matrix: Floats
    weights: Floats
    pads: Voxels
    limit: float
    is_at_right_angles: bool

    @classmethod
    def of(cls, matrix_mm: Floats | None) -> Self:
        """Return the unit for a matrix in mm (`Grid.matrix_mm`), or the voxel unit for None."""
        matrix = np.eye(3) if matrix_mm is None else matrix_mm
        weights = np.square(matrix).sum(axis=0)
        pads = (_REACH_ROWS * np.sqrt(weights[:2].min() / weights[:2])).astype(np.intp)
        # The nearest row that is not searched is pads + 1 away, so that every smaller distance is
        # exact.
        limit = min(*((pads + 1) ** 2 * weights[:2]), (_NO_ROW - 1) ** 2 * weights[2])
        squares = matrix.T @ matrix
        skew = np.abs(squares - np.diag(np.diagonal(squares))).max()
        is_at_right_angles = bool(skew <= _RIGHT_ANGLE * weights.min())
        return cls(matrix, weights, pads, float(limit), is_at_right_angles)

    @property
    def reach(self) -> Voxels:
        """Return the distance in voxels along (z, y, x) within which the row search is exact."""
        return np.array([*self.pads, int(np.sqrt(self.limit / self.weights[2])) + 1])


@dataclass(frozen=True, slots=True, eq=False)
class _RowsAround:
    """Rows to search around a voxel, in the same order for all units.

    Each step represents four mirrored rows: `dz` before and after, `dy` above and below. For each
    unit, `costs` are the squared distances of the rows, infinite for rows beyond the unit's limit.
    `bounds` are the smallest costs from each row onwards, followed by the limit.
    """

    dz: Voxels
    dy: Voxels
    reach: Voxels
    costs: list[Floats]
    bounds: list[Floats]
    weights: list[float]

    @classmethod
    def of(cls, metrics: Sequence[Metric]) -> Self:
        """Return the rows to search for units of distance whose axes are perpendicular."""
        reach = np.max([metric.reach for metric in metrics], axis=0)
        n_z, n_y = int(reach[0]) + 1, int(reach[1]) + 1
        dz, dy = np.repeat(np.arange(n_z), n_y), np.tile(np.arange(n_y), n_z)
        costs = [dz**2 * metric.weights[0] + dy**2 * metric.weights[1] for metric in metrics]
        finest = [metric.weights[:2].min() for metric in metrics]
        soonest = np.min([cost / least for cost, least in zip(costs, finest, strict=True)], axis=0)
        order = np.argsort(soonest, kind="stable")
        for cost, metric in zip(costs, metrics, strict=True):
            cost[cost >= metric.limit] = np.inf
        order = order[np.isfinite(np.min(costs, axis=0)[order])]
        costs = [cost[order] for cost in costs]
        ends = [np.append(cost, metric.limit) for cost, metric in zip(costs, metrics, strict=True)]
        bounds = [np.minimum.accumulate(end[::-1])[::-1] for end in ends]
        weights = [float(metric.weights[2]) for metric in metrics]
        return cls(dz[order], dy[order], reach, costs, bounds, weights)

    def steps(self, width: int) -> Voxels:
        """Return the index offsets (n, 4) to each group of four rows in planes of this width."""
        z, y = self.dz * width, self.dy
        return np.stack([z + y, z - y, y - z, -z - y], axis=1)


@dataclass(frozen=True, eq=False)
class Units:
    """Units of distance that are computed in one shared search."""

    metrics: tuple[Metric, ...]

    @classmethod
    def of(cls, matrices_mm: Sequence[Floats | None]) -> Self:
        """Return the units for several matrices in mm; see `Metric.of`."""
        return cls(tuple(Metric.of(matrix) for matrix in matrices_mm))

    @cached_property
    def rows(self) -> _RowsAround | None:
        """Rows to search for the units with perpendicular axes; None if there is no such unit."""
        square = [metric for metric in self.metrics if metric.is_at_right_angles]
        return _RowsAround.of(square) if square else None


def squared_by_rows(points: Voxels, others: Voxels, units: Units) -> list[Floats]:
    """Return the squared distance of each point to the nearest of `others`, in each unit.

    Parameters
    ----------
    points, others
        Voxel indices (n, 3) along (z, y, x), at least one of each.
    units
        The units of distance.

    Returns
    -------
    list of numpy.ndarray
        One array (n,) for each unit. A value is NaN if the searched rows do not determine the
        distance, the axes are not perpendicular, or the table would be too large. It is infinite if
        the point lies beyond the reach of all others, as in a distant false positive.
    """
    unsettled = [np.full(len(points), np.nan) for _ in units.metrics]
    around = units.rows
    if around is None:
        return unsettled
    columns, of_others, reach = _make_columns(points), _make_columns(others), around.reach
    asked = _is_within(columns, of_others.min(axis=1) - reach, of_others.max(axis=1) + reach)
    for squared in unsettled:
        squared[~asked] = np.inf
    if not asked.any():
        return unsettled
    rows = _make_rows(columns[:, asked], of_others, reach)
    if rows is None:
        return unsettled
    squares = iter(_search_rows(rows, around))
    for squared, metric in zip(unsettled, units.metrics, strict=True):
        if metric.is_at_right_angles:
            squared[asked] = next(squares)
    return unsettled


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Table of distances along rows, with the position of each query voxel in the table.

    The table is flat in order (x, z, y). It holds the distance along the row from each voxel to the
    nearest voxel of the other set.
    """

    table: Table
    width: int
    at: Voxels


def _make_rows(points: Columns, others: Columns, reach: Voxels) -> _Rows | None:
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
    return np.ascontiguousarray(voxels.T, dtype=np.int32)


def _is_within(voxels: Columns, low: Voxels, high: Voxels) -> NDArray[np.bool_]:
    inside = np.ones(voxels.shape[1], dtype=np.bool_)
    for along, start, stop in zip(voxels, low, high, strict=True):
        inside &= (along >= start) & (along <= stop)
    return inside


def _row_table(others: Voxels, shape: tuple[int, int, int]) -> Table:
    table = np.full(shape, _NO_ROW, dtype=np.int16)
    z, y, x = others
    table[x, z, y] = 0
    onward = np.empty(shape[1:], dtype=np.int16)
    for planes in (table, table[::-1]):
        for before, here in pairwise(planes):
            np.add(before, 1, out=onward)
            np.minimum(here, onward, out=here)
    return table.ravel()


def _search_rows(rows: _Rows, around: _RowsAround) -> list[Floats]:
    """Return, in each unit, the minimum of row cost plus squared distance along the row.

    Values above a unit's limit are NaN. All units search the same rows, and mirrored rows have the
    same cost, because reading the table takes as long as processing its values.
    """
    steps = around.steps(rows.width)
    squares = [np.full(rows.at.size, np.nan) for _ in around.costs]
    best = [np.full(rows.at.size, np.inf) for _ in around.costs]
    open_, at, start = np.arange(rows.at.size), rows.at, 0
    while start < len(steps) and open_.size:
        # The search starts with few rows and doubles their number. The contours of one lesion are
        # close together, so that most distances are found early.
        stop = min(start + max(2, min(_AT_ONCE // (4 * open_.size), start + 2)), len(steps))
        ways = rows.table.take(at + steps[start:stop, :, None]).min(axis=1)
        ways_squared = ways.astype(np.float64)
        ways_squared *= ways_squared
        for least, costs, weight in zip(best, around.costs, around.weights, strict=True):
            sums = ways_squared * weight
            sums += costs[start:stop, None]
            np.minimum(least, sums.min(axis=0), out=least)
        start = stop
        settled = [least <= bound[start] for least, bound in zip(best, around.bounds, strict=True)]
        for squared, least, is_settled in zip(squares, best, settled, strict=True):
            squared[open_[is_settled]] = least[is_settled]
        left = ~np.logical_and.reduce(settled)
        open_, at = open_[left], at[left]
        best = [least[left] for least in best]
    return squares


_FEWEST: Final = 64
"""Number of query voxels below which the k-d tree is faster (see benchmarks/metrics.py)."""
_LEAF_VOXELS: Final = 64
_ROUNDING: Final = 1e-9


def nearest_distances(points: Voxels, others: Voxels, matrix_mm: Floats | None = None) -> Floats:
    """Return the distance from each of `points` to the nearest of `others`.

    Parameters
    ----------
    points, others
        Voxel indices (n, 3) along (z, y, x). All distances are infinite if `others` is empty.
    matrix_mm
        3x3 matrix with the steps along (z, y, x) in mm as columns; None measures in voxels.

    Returns
    -------
    numpy.ndarray
        float64 (n,), in mm or in voxels.
    """
    return nearest_in_units(points, others, Units.of([matrix_mm]))[0]


def nearest_in_units(points: Voxels, others: Voxels, units: Units) -> list[Floats]:
    """Return the distances computed by `nearest_distances`, in each of several units.

    Parameters
    ----------
    points, others
        Voxel indices (n, 3) along (z, y, x).
    units
        The units of distance.
    """
    metrics = units.metrics
    if not len(others):
        return [np.full(len(points), np.inf) for _ in metrics]
    if len(points) < _FEWEST:
        return [_by_tree(points, others, metric.matrix) for metric in metrics]
    squares = squared_by_rows(points, others, units)
    return [
        _complete_distances(squared, points, others, metric.matrix)
        for squared, metric in zip(squares, metrics, strict=True)
    ]


def _complete_distances(squared: Floats, points: Voxels, others: Voxels, matrix: Floats) -> Floats:
    """Return the square roots of `squared`, with missing values computed by a k-d tree.

    Missing values are NaN or infinite.
    """
    distances: Floats = np.sqrt(squared)
    left = np.flatnonzero(~np.isfinite(squared))
    if left.size:
        far = np.isinf(squared[left])
        distances[left] = _by_tree(points[left], others, matrix, far)
    return distances


def _by_tree(
    points: Voxels, others: Voxels, matrix: Floats, far: NDArray[np.bool_] | None = None
) -> Floats:
    """Return the distances of `points` to the nearest other voxel, computed by a k-d tree.

    Points in `far` are searched separately, because fewer of the other voxels matter for them.
    """
    distances = np.zeros(len(points))
    asked, of_others = matrix @ points.T, matrix @ others.T
    for group in (np.ones(len(points), np.bool_),) if far is None else (far, ~far):
        if group.any():
            distances[group] = _ask_tree(asked[:, group], of_others)
    return distances


def _ask_tree(asked: Floats, others: Floats) -> Floats:
    from scipy.spatial import (
        KDTree,
    )  # Importing scipy takes 0.2 s, which listing the metrics must not cost.

    tree: Any = KDTree(  # type: ignore[no-untyped-call, unused-ignore]
        _in_question(asked, others).T,
        leafsize=_LEAF_VOXELS,
        compact_nodes=False,
        balanced_tree=False,
    )
    distances: Floats = tree.query(asked.T)[0]
    return distances


def _in_question(asked: Floats, others: Floats) -> Floats:
    """Return the voxels of the other set (3, n) that can be the nearest voxel of a query point.

    All query points lie in their bounding box. Let d be the smallest distance from a voxel of the
    other set to the farthest corner of this box. No query point is farther than d from its nearest
    voxel, so voxels farther than d from the box are dropped. If the query points are a distant
    false positive, only a few voxels remain.
    """
    low, high = asked.min(axis=1, keepdims=True), asked.max(axis=1, keepdims=True)
    away, half = np.abs(others - (low + high) / 2), (high - low) / 2
    farthest, nearest = away + half, np.maximum(away - half, 0)
    limit = np.einsum("an,an->n", farthest, farthest).min() * (1 + _ROUNDING)
    return others[:, np.einsum("an,an->n", nearest, nearest) <= limit]
