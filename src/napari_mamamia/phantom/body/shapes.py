"""Signed distances in mm, negative inside, and the share of a voxel that a shape fills.

The distance of the ellipsoid is exact on its surface and correct to first order near it; blended
and roughened surfaces are approximate. The inside is exact: the distance is negative.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

from napari_mamamia.phantom.body.points import Points

Array = NDArray[np.float32]


def filled(distance_mm: Array, voxel_mm: float) -> Array:
    """Return the share of a voxel inside a surface that passes at `distance_mm`, 0 to 1.

    `voxel_mm` is the edge of a cube with the voxel's volume: the partial volume ignores direction.

    Parameters
    ----------
    distance_mm
        Signed distances, mm, negative inside.
    voxel_mm
        Edge of a cube with the voxel's volume, mm.
    """
    share: Array = np.clip(np.float32(0.5) - distance_mm / np.float32(voxel_mm), 0, 1)
    return share


def smoothstep(value: Array, low: float, high: float) -> Array:
    """Return 0 below `low`, 1 above `high`, and a smooth transition between.

    Parameters
    ----------
    value
        The values to map.
    low
        Value of the lower end.
    high
        Value of the upper end.
    """
    t = np.clip((value - np.float32(low)) / np.float32(high - low), 0, 1)
    rise: Array = t * t * (3 - 2 * t)
    return rise


def ellipsoid(
    points: Points, centre_mm: tuple[float, float, float], radii_mm: tuple[float, float, float]
) -> Array:
    """Return the distance to an ellipsoid along the patient's axes (right, anterior, superior).

    Parameters
    ----------
    points
        The sampled points.
    centre_mm
        Centre in RAS mm.
    radii_mm
        Half axes along right, anterior, superior, mm.
    """
    offsets = (
        points.x_mm - np.float32(centre_mm[0]),
        points.y_mm - np.float32(centre_mm[1]),
        points.z_mm - np.float32(centre_mm[2]),
    )
    return quadric(offsets, radii_mm)


def quadric(offsets_mm: tuple[Array, ...], radii_mm: tuple[float, ...]) -> Array:
    """Return the distance to an ellipse or ellipsoid from offsets to its centre.

    With k = |offset / radius| and g = |offset / radius^2| the distance is k (k - 1) / g: the first
    term of the implicit function over its gradient (Taubin 1991, PAMI 13:1115).

    Parameters
    ----------
    offsets_mm
        Offsets to the centre along each axis, mm.
    radii_mm
        Half axes, mm.
    """
    k2: Array = np.zeros((), np.float32)
    g2: Array = np.zeros((), np.float32)
    for offset, radius in zip(offsets_mm, radii_mm, strict=True):
        scaled = offset / np.float32(radius)
        k2 = k2 + scaled * scaled
        steep = scaled / np.float32(radius)
        g2 = g2 + steep * steep
    k = np.sqrt(k2)
    distance: Array = k * (k - 1) / np.sqrt(np.maximum(g2, np.float32(1e-12)))
    # At the centre the formula is 0/0; the surface is nearest along the shortest axis.
    return np.where(k2 < 1e-8, np.float32(-min(radii_mm)), distance)


def blend(a: Array, b: Array, width_mm: float) -> Array:
    """Return the distance to the union of two shapes with a fillet of about `width_mm`.

    Parameters
    ----------
    a
        Distance to the first shape, mm.
    b
        Distance to the second shape, mm.
    width_mm
        Width of the fillet, mm.
    """
    width = np.float32(width_mm)
    share = np.clip(np.float32(0.5) + (b - a) / (2 * width), 0, 1)
    union: Array = b + (a - b) * share - width * share * (1 - share)
    return union


def distance_to_mask(
    mask: NDArray[np.bool_], spacing_mm: tuple[float, float, float]
) -> NDArray[np.float64]:
    """Return each voxel's signed distance in mm to the border of the mask; negative inside.

    Parameters
    ----------
    mask
        bool ``(z, y, x)``.
    spacing_mm
        Spacing along (z, y, x), mm.
    """
    outside = distance_transform_edt(~mask, sampling=spacing_mm)
    inside = distance_transform_edt(mask, sampling=spacing_mm)
    distance: NDArray[np.float64] = np.where(mask, -inside, outside)
    return distance
