"""Distance from each of many voxels to the nearest of many others, exactly and fast.

Contours of two masks of one lesion lie close together, so most voxels are settled by looking at the
few rows of the image around them (`nearest_rows`). Voxels that are farther than the rows reach,
sparse sets and grids whose axes are not at right angles go to a k-d tree. Both ways are exact; in
voxel units they give the same bits.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from napari_mamamia.metrics.nearest_rows import Metric, squared_by_rows

__all__ = ["nearest_distances", "nearest_in_units"]

_FEWEST: Final = 64
"""Voxels asked about, below which the tree is faster (measured with benchmarks/metrics.py)."""
_LEAF_VOXELS: Final = 64
_ROUNDING: Final = 1e-9

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
    found = squared_by_rows(points, others, metrics)
    return tuple(
        _completed(squared, points, others, metric.matrix)
        for squared, metric in zip(found, metrics, strict=True)
    )


def _completed(squared: Floats, points: Voxels, others: Voxels, matrix: Floats) -> Floats:
    """Return the roots of `squared`; where that is nan, what the tree finds."""
    left = np.isnan(squared)
    distances: Floats = np.sqrt(squared)
    if left.any():
        distances[left] = _by_tree(points[left], others, matrix)
    return distances


def _by_tree(points: Voxels, others: Voxels, matrix: Floats) -> Floats:
    if not len(points):
        return np.zeros(0)
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
