"""The box around a stroke as arrays: image, mask, marks, and distance to the path in mm."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from math import isfinite
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Voxel
from napari_mamamia.smartpaint.evidence.marks import Marks

_KEEP_SHARE: Final = 0.05  # of the radius: distance from the path up to which a point is dropped
_MOST_PLACES: Final = 256  # a pointer gives about 100 a second; more points are thinned evenly
_GAP: Final = 1e-9  # of a squared distance; a value closer to a limit may round either way
_VOXELS_A_SHIFT: Final = (
    50  # shifting a row takes as long as computing the distances of this many voxels
)
PREVIEW_VOXELS: Final = 24_000

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]
Factors = tuple[int, int, int]
Spacing = tuple[float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """The box around a stroke; its arrays ``(z, y, x)`` have the same shape.

    Parameters
    ----------
    features
        The features, float32 ``(feature, z, y, x)``, which are 0 where the image has no value.
    finite
        The voxels where all features have a value; other voxels give no evidence.
    noise
        The noise of each feature as one standard deviation.
    mask
        The label before the stroke.
    closed
        The voxels that must not change, because they have a locked label.
    marks
        The evidence of earlier strokes.
    away
        The distance to the stroke's path in mm.
    window
        The voxels that the stroke may change, unless it acts on the whole lesion.
    radius_mm, window_mm
        The radius of the stroke's circle, and the distance that its window covers.
    whole_mm
        The distance around the lesion that a stroke for the whole lesion covers; None for other
        strokes.
    """

    features: Floats
    finite: Bools
    noise: tuple[float, ...]
    spacing_mm: tuple[float, float, float]
    mask: Bools
    closed: Bools
    marks: Marks
    away: Floats
    window: Bools
    radius_mm: float
    window_mm: float
    whole_mm: float | None
    is_adding: bool


def coarsen_scene(scene: Scene, most_voxels: int = PREVIEW_VOXELS) -> tuple[Scene, Factors]:
    """Return a scene reduced to every second or third voxel, and the reduction factor of each axis.

    The finest axis is reduced first.
    """
    factors = [1, 1, 1]
    while np.prod([-(-n // f) for n, f in zip(scene.mask.shape, factors, strict=True)]) > (
        most_voxels
    ):
        steps = [f * s for f, s in zip(factors, scene.spacing_mm, strict=True)]
        factors[int(np.argmin(steps))] += 1
    z, y, x = factors
    index = (slice(None, None, z), slice(None, None, y), slice(None, None, x))
    old = scene.marks
    marks = Marks(old.pull[index], old.hold[index], old.count[index], old.seen[index])
    d, r, c = scene.spacing_mm
    coarse = replace(
        scene,
        features=np.ascontiguousarray(scene.features[(slice(None), *index)]),
        finite=scene.finite[index],
        spacing_mm=(d * z, r * y, c * x),
        mask=scene.mask[index],
        closed=scene.closed[index],
        marks=marks,
        away=scene.away[index],
        window=scene.window[index],
    )
    return coarse, (z, y, x)


def refine_mask(mask: Bools, factors: Factors, shape: tuple[int, ...]) -> Bools:
    """Return a coarse mask enlarged to `shape`, in which each coarse voxel fills its block."""
    for axis, factor in enumerate(factors):
        mask = mask.repeat(factor, axis) if factor > 1 else mask
    z, y, x = shape
    return mask[:z, :y, :x]


def thin_path(path: Sequence[Voxel], spacing_mm: Spacing, radius_mm: float) -> list[Voxel]:
    """Return the corners of a path; points on the line between their neighbours are dropped.

    No dropped point lies farther than a twentieth of the radius from the remaining path.
    """
    places = [point for point in path if all(isfinite(coordinate) for coordinate in point)]
    if len(places) > _MOST_PLACES:
        chosen = np.unique(np.linspace(0, len(places) - 1, _MOST_PLACES).round().astype(int))
        places = [places[number] for number in chosen]
    if len(places) < 3:
        return places
    in_mm = np.array(places) * np.array(spacing_mm)
    is_corner = np.zeros(len(places), np.bool_)
    is_corner[[0, -1]] = True
    open_pieces = [(0, len(places) - 1)]
    while open_pieces:
        first, last = open_pieces.pop()
        if last - first < 2:
            continue
        away = _find_distances(in_mm[first + 1 : last], in_mm[first], in_mm[last])
        farthest = int(away.argmax())
        if away[farthest] > _KEEP_SHARE * radius_mm:
            middle = first + 1 + farthest
            is_corner[middle] = True
            open_pieces += [(first, middle), (middle, last)]
    return [point for point, stays in zip(places, is_corner, strict=True) if stays]


def measure_distance(box: Box, path: Sequence[Voxel], spacing_mm: Spacing) -> Floats:
    """Return the distance in mm of each voxel of `box` from a path, float32 of the box's shape.

    A path with one position is a point. If a path lies in one plane, its distance within the plane
    is computed once for all slices.
    """
    corners = np.array(path, np.float64).reshape(-1, 3) * np.array(spacing_mm)
    axes = [
        (np.arange(a, b) * step).astype(np.float64)
        for a, b, step in zip(box.start, box.stop, spacing_mm, strict=True)
    ]
    flat = [axis for axis in range(3) if np.all(corners[:, axis] == corners[0, axis])]
    away, more = np.empty(box.shape, np.float32), np.zeros(1)
    if not flat:
        grids = [np.expand_dims(axes[a], [b for b in range(3) if b != a]) for a in range(3)]
        squares = _find_squares(grids, corners)
    else:
        upright = flat[0]
        plane = [axis for axis in range(3) if axis != upright]
        grids = [axes[plane[0]][:, np.newaxis], axes[plane[1]][np.newaxis, :]]
        squares = np.expand_dims(_find_squares(grids, corners[:, plane]), upright)
        more = np.expand_dims((axes[upright] - corners[0, upright]) ** 2, plane)
    # Plane by plane: temporary arrays wider than the result stay in the processor's cache.
    total = np.empty(box.shape[1:])
    wide = (np.broadcast_to(squared, box.shape) for squared in (squares, more))
    for square, other, out in zip(*wide, away, strict=True):
        np.add(square, other, out=total)
        np.sqrt(total, out=out, casting="same_kind")
    return away


def _find_squares(
    grids: Sequence[NDArray[np.float64]], corners: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the squared distance of a grid's points to the nearest segment of a path."""
    pieces = list(pairwise(corners)) or [(corners[0], corners[0])]
    nearest: NDArray[np.float64] = np.array(np.inf)
    for first, last in pieces:
        way = last - first
        length = float(way @ way)
        offsets = [grid - corner for grid, corner in zip(grids, first, strict=True)]
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
    """Return the squared distance of points (rows) to a straight segment."""
    way = last - first
    length = float(way @ way)
    offsets = points - first
    if length:
        share = np.clip(offsets @ way / length, 0.0, 1.0)
        offsets = offsets - share[:, np.newaxis] * way
    away: NDArray[np.float64] = np.sqrt((offsets**2).sum(axis=1))
    return away


def find_near(mask: Bools, spacing_mm: Sequence[float], *reaches_mm: float) -> list[Bools]:
    """Return ``distance_transform_edt(~mask, spacing_mm) <= reach_mm`` for each `reach_mm`.

    A distance transform finds the nearest voxel for each voxel. This function is faster: it widens
    the rows of the mask, packed eight voxels to a byte, and combines them at each offset of planes
    and rows.

    Parameters
    ----------
    mask
        A boolean array ``(z, y, x)``.
    reaches_mm
        The distances in mm, which must not be negative.
    """
    widths = [_measure_rows(mask.shape, tuple(spacing_mm), reach) for reach in reaches_mm]
    sure = [of_reach for of_reach in widths if of_reach is not None]
    n_shifts = sum(np.count_nonzero(of_reach >= 0) for of_reach in sure)
    if len(sure) < len(widths) or n_shifts * _VOXELS_A_SHIFT > mask.size or not mask.any():
        away = distance_transform_edt(~mask, spacing_mm)
        return [away <= reach for reach in reaches_mm]
    return _lay_rows(mask, sure)


@lru_cache(maxsize=256)
def _measure_rows(
    shape: tuple[int, ...], spacing_mm: tuple[float, ...], reach_mm: float
) -> NDArray[np.intp] | None:
    """Return the number of voxels along x within reach, for each offset in planes and rows.

    The array is ``(planes, rows)``, with -1 for an offset without voxels. The result is None if an
    offset is so near the limit that the distance transform may round either way.
    """
    counts = [
        min(int(reach_mm / step) + 1, n - 1) + 1 for n, step in zip(shape, spacing_mm, strict=True)
    ]
    deep, rows, columns = ((np.arange(n) * s) ** 2 for n, s in zip(counts, spacing_mm, strict=True))
    # In the order of the transform's sum.
    squares = (deep[:, np.newaxis, np.newaxis] + rows[:, np.newaxis]) + columns
    within = np.sqrt(squares) <= reach_mm
    most = float(squares[within].max())
    if not within.all() and float(squares[~within].min()) - most <= _GAP * most:
        return None
    widths: NDArray[np.intp] = np.count_nonzero(within, axis=2) - 1
    return widths


def _lay_rows(mask: Bools, widths: Sequence[NDArray[np.intp]]) -> list[Bools]:
    """Return the union of a mask's rows for each reach, each row widened as its offset requires."""
    wide, rows = mask, [np.packbits(mask, axis=2)]
    for _ in range(max(int(of_reach.max()) for of_reach in widths)):
        before, wide = wide, wide.copy()
        wide[:, :, 1:] |= before[:, :, :-1]
        wide[:, :, :-1] |= before[:, :, 1:]
        rows.append(np.packbits(wide, axis=2))
    n_planes, n_rows, n_columns = mask.shape
    near = []
    for of_reach in widths:
        out = np.zeros_like(rows[0])
        for off_z, of_plane in enumerate(of_reach):
            plane = np.zeros_like(out)
            for off_y, width in enumerate(of_plane[of_plane >= 0]):
                plane[:, off_y:] |= rows[width][:, : n_rows - off_y]
                plane[:, : n_rows - off_y] |= rows[width][:, off_y:]
            out[off_z:] |= plane[: n_planes - off_z]
            out[: n_planes - off_z] |= plane[off_z:]
        near.append(np.unpackbits(out, axis=2, count=n_columns).view(np.bool_))
    return near
