"""Where a stroke went: each voxel's distance to its path, in mm."""

from collections.abc import Sequence
from itertools import pairwise
from math import isfinite
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Voxel

_KEEP_SHARE: Final = 0.05  # of the radius: how far a place may lie from the path that leaves it out
_MOST_PLACES: Final = 256  # a pointer gives some 100 a second; more are thinned evenly

Floats = NDArray[np.float32]
Spacing = tuple[float, float, float]


def thin_path(path: Sequence[Voxel], spacing_mm: Spacing, radius_mm: float) -> list[Voxel]:
    """Return the corners of a path: places that lie off the straight line between their neighbours.

    No place that is left out lies farther than a twentieth of the radius from what is kept.
    """
    places = [place for place in path if all(isfinite(part) for part in place)]
    if len(places) > _MOST_PLACES:
        chosen = np.unique(np.linspace(0, len(places) - 1, _MOST_PLACES).round().astype(int))
        places = [places[number] for number in chosen]
    if len(places) < 3:
        return places
    in_mm = np.array(places) * np.array(spacing_mm)
    kept = np.zeros(len(places), np.bool_)
    kept[[0, -1]] = True
    open_pieces = [(0, len(places) - 1)]
    while open_pieces:
        first, last = open_pieces.pop()
        if last - first < 2:
            continue
        away = _find_distances(in_mm[first + 1 : last], in_mm[first], in_mm[last])
        farthest = int(away.argmax())
        if away[farthest] > _KEEP_SHARE * radius_mm:
            middle = first + 1 + farthest
            kept[middle] = True
            open_pieces += [(first, middle), (middle, last)]
    return [place for place, is_corner in zip(places, kept, strict=True) if is_corner]


def measure_distance(box: Box, path: Sequence[Voxel], spacing_mm: Spacing) -> Floats:
    """Return the distance of each voxel of `box` to a path in mm, float32 of the box's shape.

    A path of one place is a point. The distance of a path in one plane is worked out in that plane
    once, for all slices.
    """
    corners = np.array(path, np.float64).reshape(-1, 3) * np.array(spacing_mm)
    axes = [
        (np.arange(a, b) * step).astype(np.float64)
        for a, b, step in zip(box.start, box.stop, spacing_mm, strict=True)
    ]
    flat = [axis for axis in range(3) if np.all(corners[:, axis] == corners[0, axis])]
    if not flat:
        grids = [np.expand_dims(axes[a], [b for b in range(3) if b != a]) for a in range(3)]
        away: Floats = np.sqrt(_find_squares(grids, corners)).astype(np.float32)
        return away
    upright = flat[0]
    plane = [axis for axis in range(3) if axis != upright]
    grids = [axes[plane[0]][:, np.newaxis], axes[plane[1]][np.newaxis, :]]
    in_plane = np.expand_dims(_find_squares(grids, corners[:, plane]), upright)
    off = np.expand_dims((axes[upright] - corners[0, upright]) ** 2, plane)
    nearest: Floats = np.sqrt(in_plane + off).astype(np.float32)
    return nearest


def _find_squares(
    grids: Sequence[NDArray[np.float64]], corners: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the squared distance of a grid's points to the nearest piece of a path."""
    pieces = list(pairwise(corners)) or [(corners[0], corners[0])]
    nearest: NDArray[np.float64] = np.array(np.inf)
    for first, last in pieces:
        way = last - first
        length = float(way @ way)
        offsets = [grid - place for grid, place in zip(grids, first, strict=True)]
        if length:
            along = np.zeros(1)
            for offset, step in zip(offsets, way, strict=True):
                along = along + offset * (step / length)
            along = np.clip(along, 0.0, 1.0)
            offsets = [o - along * step for o, step in zip(offsets, way, strict=True)]
        square = np.zeros(1)
        for offset in offsets:
            square = square + offset * offset
        nearest = np.minimum(nearest, square)
    return nearest


def _find_distances(
    points: NDArray[np.float64], first: NDArray[np.float64], last: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the distance of points (rows) to a straight piece."""
    way = last - first
    length = float(way @ way)
    offsets = points - first
    if length:
        share = np.clip(offsets @ way / length, 0.0, 1.0)
        offsets = offsets - share[:, np.newaxis] * way
    away: NDArray[np.float64] = np.sqrt((offsets**2).sum(axis=1))
    return away
