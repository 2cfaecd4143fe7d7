"""Distance from each of many voxels to the nearest of many others, exactly and fast.

Contours of two masks of one lesion lie close together, so most voxels are settled by looking at the
few rows of the image around them: a table holds, for each voxel, how far the nearest of the others
is along its own row (x). Rows are looked at in order of their distance until none can be nearer.
Voxels that are farther than the table reaches, sparse sets and grids whose axes are not at right
angles go to a k-d tree. Both ways are exact; in voxel units they give the same bits.
"""

from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

__all__ = ["nearest_distances"]

_REACH_ROWS: Final = 12
"""Rows looked at on each side, along the finer of z and y."""
_TABLE_PER_VOXEL: Final = 400
"""Entries of the table for each voxel asked about, above which the tree is faster."""
_FEWEST: Final = 64
"""Voxels asked about, below which the tree is faster."""
_AT_ONCE: Final = 32768
"""Table entries looked up in one step, so that they stay in the processor's cache."""
_LEAF_VOXELS: Final = 64
_NO_ROW: Final = 16000
"""Stands in the table where a row holds none of the others; rows are shorter than this."""
_RIGHT_ANGLE: Final = 1e-12
# All measured on one core with benchmarks/metrics.py.

Voxels = NDArray[np.intp]
Floats = NDArray[np.float64]


def nearest_distances(points: Voxels, others: Voxels, matrix_mm: Floats | None = None) -> Floats:
    """Return the distance of each of `points` to the nearest of `others`.

    Parameters
    ----------
    points, others
        Voxel indices (n, 3) along (z, y, x). Without `others` all distances are infinite.
    matrix_mm
        3x3, steps along (z, y, x) as columns, in mm; None measures in voxels.
    """
    matrix = np.eye(3) if matrix_mm is None else matrix_mm
    if not len(others):
        return np.full(len(points), np.inf)
    squared = _by_rows(points, others, matrix)
    left = np.isnan(squared)
    distances: Floats = np.sqrt(squared)
    if left.any():
        distances[left] = _by_tree(points[left], others, matrix)
    return distances


def _by_tree(points: Voxels, others: Voxels, matrix: Floats) -> Floats:
    tree: Any = KDTree(  # type: ignore[no-untyped-call, unused-ignore]
        others @ matrix.T, leafsize=_LEAF_VOXELS, compact_nodes=False, balanced_tree=False
    )
    distances: Floats = tree.query(points @ matrix.T)[0]
    return distances


def _by_rows(points: Voxels, others: Voxels, matrix: Floats) -> Floats:
    """Return squared distances, nan where the rows in reach do not settle them."""
    unsettled = np.full(len(points), np.nan)
    squares = matrix.T @ matrix
    weights = np.diagonal(squares)
    skew = np.abs(squares - np.diag(weights)).max()
    if len(points) < _FEWEST or skew > _RIGHT_ANGLE * weights.min():
        return unsettled
    low = np.minimum(points.min(axis=0), others.min(axis=0))
    extent = np.maximum(points.max(axis=0), others.max(axis=0)) - low + 1
    pads = (_REACH_ROWS * np.sqrt(weights[:2].min() / weights[:2])).astype(np.intp)
    depth, width = extent[:2] + 2 * pads
    length = extent[2]
    if length >= _NO_ROW or length * depth * width > _TABLE_PER_VOXEL * len(points):
        return unsettled
    start = low - (*pads, 0)
    table = _row_table(others - start, (length, depth, width))
    limit = min(*((pads + 1) ** 2 * weights[:2]), (_NO_ROW - 1) ** 2 * weights[2])
    costs, steps = _rows_around(pads, weights, width, limit)
    z, y, x = (points - start).T
    return _search(table, (x * depth + z) * width + y, costs, steps, limit, weights[2])


def _row_table(others: Voxels, shape: tuple[int, int, int]) -> NDArray[np.int16]:
    """Return, flat in order (x, z, y), how far along x the nearest of `others` is."""
    table = np.full(shape, _NO_ROW, dtype=np.int16)
    table[others[:, 2], others[:, 0], others[:, 1]] = 0
    onward = np.empty(shape[1:], dtype=np.int16)
    for planes in (table, table[::-1]):
        for before, here in pairwise(planes):
            np.add(before, 1, out=onward)
            np.minimum(here, onward, out=here)
    return table.ravel()


def _rows_around(pads: Voxels, weights: Floats, width: int, limit: float) -> tuple[Floats, Voxels]:
    """Return the rows nearer than `limit`: squared distances, ascending, and steps in the table."""
    dz, dy = np.mgrid[-pads[0] : pads[0] + 1, -pads[1] : pads[1] + 1].reshape(2, -1)
    costs = dz**2 * weights[0] + dy**2 * weights[1]
    order = np.argsort(costs, kind="stable")
    order = order[: np.searchsorted(costs[order], limit)]
    return costs[order], (dz * width + dy)[order]


def _search(
    table: NDArray[np.int16],
    at: Voxels,
    costs: Floats,
    steps: Voxels,
    limit: float,
    weight: float,
) -> Floats:
    """Return the least of row cost plus squared way along the row, nan where above `limit`."""
    squared = np.full(at.size, np.nan)
    open_ = np.arange(at.size)
    best = np.full(at.size, np.inf)
    done = 0
    while done < costs.size and open_.size:
        stop = done + max(4, min(_AT_ONCE // open_.size, done + 4))
        ways = table.take(at + steps[done:stop, None]).astype(np.float64)
        ways *= ways
        ways *= weight
        ways += costs[done:stop, None]
        np.minimum(best, ways.min(axis=0), out=best)
        done = stop
        bound = costs[done] if done < costs.size else limit
        settled = best <= bound
        squared[open_[settled]] = best[settled]
        open_, at, best = (kept[~settled] for kept in (open_, at, best))
    return squared
