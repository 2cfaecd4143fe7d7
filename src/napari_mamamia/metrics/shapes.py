"""Measurements of hand-drawn shapes: lengths, angles, ellipses and the values inside them.

Points are in RAS mm, so that grids of any spacing, direction and shear are measured correctly.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_mamamia.core.grid import Grid, Plane


@dataclass(frozen=True, slots=True)
class ValuesInside:
    """Number, mean and standard deviation (n - 1) of the voxels inside a shape.

    The mean is NaN if there are no voxels, and the standard deviation if there are fewer than two
    voxels.
    """

    n_voxels: int
    mean: float
    sd: float


def length_mm(start: ArrayLike, end: ArrayLike) -> float:
    """Return the distance between two points in mm.

    Parameters
    ----------
    start, end
        Points in RAS mm.

    Examples
    --------
    >>> length_mm((0, 0, 0), (3, 4, 12))
    13.0
    """
    return float(np.linalg.norm(np.asarray(end, np.float64) - np.asarray(start, np.float64)))


def angle_degrees(end: ArrayLike, apex: ArrayLike, other: ArrayLike) -> float:
    """Return the angle at `apex` in degrees, 0 to 180; NaN if an arm has length 0.

    Parameters
    ----------
    end, other
        Ends of the two arms, RAS mm.
    apex
        The common start of the arms, RAS mm.

    Notes
    -----
    The angle is the arctangent of sine and cosine, which, unlike the arccosine, stays exact near 0
    and
    180 degrees. Source: W. Kahan, Miscalculating Area and Angles of a Needle-like Triangle, 2014.

    Examples
    --------
    >>> angle_degrees((5, 0, 0), (0, 0, 0), (0, 0, 2))
    90.0
    """
    one, two = (np.asarray(arm, np.float64) - np.asarray(apex, np.float64) for arm in (end, other))
    if not (one.any() and two.any()):
        return float("nan")
    return float(np.degrees(np.arctan2(np.linalg.norm(np.cross(one, two)), one @ two)))


def ellipse_area_mm2(centre: ArrayLike, one: ArrayLike, two: ArrayLike) -> float:
    """Return the area of an ellipse in mm2.

    `one` and `two` are the ends of the two half axes a and b. Half axes that are not perpendicular
    are treated as conjugate half diameters; the area is pi times the length of the cross product a
    x b.

    Examples
    --------
    >>> round(ellipse_area_mm2((1, 1, 0), (4, 1, 0), (1, 3, 0)), 3)  # pi 3 2
    18.85
    """
    a, b = (np.asarray(end, np.float64) - np.asarray(centre, np.float64) for end in (one, two))
    return float(np.pi * np.linalg.norm(np.cross(a, b)))


def values_in_ellipse(
    volume: NDArray[Any],
    grid: Grid,
    plane: Plane,
    centre: ArrayLike,
    one: ArrayLike,
    two: ArrayLike,
) -> ValuesInside:
    """Return statistics of the voxels in one slice whose centres lie in or on an ellipse.

    Parameters
    ----------
    volume
        ``(z, y, x)`` on `grid`. Voxels that are not finite are left out.
    grid
        The grid of the volume.
    plane
        The orientation of the slice. The slice nearest to the centre is used; voxel centres are
        projected perpendicularly onto the ellipse.
    centre, one, two
        The centre and the ends of the two half axes, RAS mm.
    """
    nothing = ValuesInside(0, float("nan"), float("nan"))
    a, b = (np.asarray(end, np.float64) - np.asarray(centre, np.float64) for end in (one, two))
    normal = np.cross(a, b)
    if not normal.any():
        return nothing
    axis = grid.display_frame(plane).order[0]
    middle = grid.to_voxel(centre)
    place = int(np.floor(middle[axis] + 0.5))
    if not 0 <= place < grid.shape[axis]:
        return nothing
    # Voxels outside the bounding box of the ellipse are not tested.
    corners = grid.to_voxel(
        np.asarray(centre, np.float64) + [u * a + v * b for u in (-1, 1) for v in (-1, 1)]
    )
    low = np.maximum(np.floor(corners.min(axis=0)).astype(int), 0)
    high = np.minimum(np.ceil(corners.max(axis=0)).astype(int) + 1, grid.shape)
    low[axis], high[axis] = place, place + 1
    if (high <= low).any():
        return nothing
    block = np.indices(high - low).reshape(3, -1).T + low
    apart = grid.to_world_mm(block) - np.asarray(centre, np.float64)
    shares = apart @ np.linalg.inv(np.stack([a, b, normal], axis=1)).T
    inside = (shares[:, :2] ** 2).sum(axis=1) <= 1 + 1e-9
    values = volume[tuple(block[inside].T)].astype(np.float64)
    values = values[np.isfinite(values)]
    if not values.size:
        return nothing
    sd = float(values.std(ddof=1)) if values.size > 1 else float("nan")
    return ValuesInside(int(values.size), float(values.mean()), sd)
