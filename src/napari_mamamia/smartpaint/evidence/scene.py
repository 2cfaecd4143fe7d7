"""A stroke's box as arrays: image, mask, marks, and each voxel's distance to the path, in mm."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isfinite
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Voxel
from napari_mamamia.smartpaint.evidence.marks import Marks

_KEEP_SHARE: Final = 0.05  # of the radius: how far a place may lie from the path that leaves it out
_MOST_PLACES: Final = 256  # a pointer gives some 100 a second; more are thinned evenly
PREVIEW_VOXELS: Final = 24_000

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]
Factors = tuple[int, int, int]
Spacing = tuple[float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """A stroke's box; arrays are ``(z, y, x)`` of one shape.

    Parameters
    ----------
    features
        float32 ``(feature, z, y, x)``, finite: 0 where the image has no value.
    finite
        Where the image has a value in all features; elsewhere it says nothing.
    noise
        Of each feature, one standard deviation.
    mask
        The label before the stroke.
    closed
        Voxels that stay as they are, because a locked label has them.
    marks
        What earlier strokes said.
    away
        Distance to the stroke's path in mm.
    window
        What the stroke may change, but for the whole lesion.
    radius_mm, window_mm
        The stroke's circle, and how far its window reaches.
    whole_mm
        How far around the lesion a stroke for the whole of it reaches; None for others.
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
    """Return the scene on every second voxel, or third, so that it is small, and the factors.

    The finest axis is coarsened first.
    """
    factors = [1, 1, 1]
    while np.prod([-(-n // f) for n, f in zip(scene.mask.shape, factors, strict=True)]) > (
        most_voxels
    ):
        steps = [f * s for f, s in zip(factors, scene.spacing_mm, strict=True)]
        factors[int(np.argmin(steps))] += 1
    z, y, x = factors
    at = (slice(None, None, z), slice(None, None, y), slice(None, None, x))
    old = scene.marks
    marks = Marks(old.pull[at], old.hold[at], old.count[at], old.seen[at])
    d, r, c = scene.spacing_mm
    coarse = replace(
        scene,
        features=np.ascontiguousarray(scene.features[(slice(None), *at)]),
        finite=scene.finite[at],
        spacing_mm=(d * z, r * y, c * x),
        mask=scene.mask[at],
        closed=scene.closed[at],
        marks=marks,
        away=scene.away[at],
        window=scene.window[at],
    )
    return coarse, (z, y, x)


def refine_mask(mask: Bools, factors: Factors, shape: tuple[int, ...]) -> Bools:
    """Return a coarse mask on the voxels of an array of `shape`: each stands for its block."""
    for axis, factor in enumerate(factors):
        mask = mask.repeat(factor, axis) if factor > 1 else mask
    z, y, x = shape
    return mask[:z, :y, :x]


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
    return [place for place, stays in zip(places, is_corner, strict=True) if stays]


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
        return _take_roots(_find_squares(grids, corners), np.zeros((1, 1, 1)), box.shape)
    upright = flat[0]
    plane = [axis for axis in range(3) if axis != upright]
    grids = [axes[plane[0]][:, np.newaxis], axes[plane[1]][np.newaxis, :]]
    in_plane = np.expand_dims(_find_squares(grids, corners[:, plane]), upright)
    off = np.expand_dims((axes[upright] - corners[0, upright]) ** 2, plane)
    return _take_roots(in_plane, off, box.shape)


def _take_roots(
    squares: NDArray[np.float64], more: NDArray[np.float64], shape: tuple[int, int, int]
) -> Floats:
    """Return the roots of the sum of two arrays that are broadcast to `shape`.

    Planes are worked on one by one: what is wider than the answer stays in the cache.
    """
    roots = np.empty(shape, np.float32)
    first, second = np.broadcast_to(squares, shape), np.broadcast_to(more, shape)
    plane = np.empty(shape[1:])
    for one, other, out in zip(first, second, roots, strict=True):
        np.add(one, other, out=plane)
        np.sqrt(plane, out=out, casting="same_kind")
    return roots


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
