"""Numbers of what is drawn by hand: lengths, angles, ellipses and the values inside them.

Points are RAS mm, so that grids of any spacing, direction and shear are measured truly.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_mamamia.core.grid import Grid, Plane


@dataclass(frozen=True, slots=True)
class ValuesInside:
    """Values of the voxels inside a shape: how many, their mean and standard deviation (n - 1).

    nan where there are too few: none for a mean, fewer than two for a deviation.
    """

    n_voxels: int
    mean: float
    sd: float


def length_mm(start: ArrayLike, end: ArrayLike) -> float:
    """Return the distance of two points, mm.

    Examples
    --------
    >>> length_mm((0, 0, 0), (3, 4, 12))
    13.0
    """
    return float(np.linalg.norm(np.asarray(end, np.float64) - np.asarray(start, np.float64)))


def angle_degrees(end: ArrayLike, apex: ArrayLike, other: ArrayLike) -> float:
    """Return the angle at `apex`, 0 to 180 degrees; nan where an arm has no length.

    Notes
    -----
    By the arctangent of sine and cosine, which stays exact near 0 and 180 where the arccosine does
    not. Source: W. Kahan, Miscalculating Area and Angles of a Needle-like Triangle, 2014.

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
    """Return the area of an ellipse, mm2: pi a b.

    `one` and `two` are the ends of half axes. Where these are not at right angles they are taken
    for conjugate half diameters, whose ellipse has the area pi |a x b|.

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
    """Return what the voxels of one slice hold whose centres lie in an ellipse or on its edge.

    Parameters
    ----------
    volume
        ``(z, y, x)`` on `grid`. Voxels that are no numbers are left out.
    plane
        The slice is the one of this plane that is nearest to the centre; voxel centres are looked
        at straight from above the ellipse.
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
    # The corners of the ellipse's own box, in voxels: nothing outside it is looked at.
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
