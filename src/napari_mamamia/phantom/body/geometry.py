"""Geometry in mm in the patient: voxel centres, signed distances to shapes, and textures.

`Points` stores voxel centres as three short vectors. The distance to an ellipsoid is exact on its
surface and correct to first order near it; distances to blended and roughened surfaces are
approximate. The sign is exact: the distance is negative inside.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

from napari_mamamia.core.grid import Grid

Bounds = tuple[tuple[float, float], tuple[float, float], tuple[float, float]]
"""Bounds (low, high) in mm along right, anterior and superior."""

Window = tuple[slice, slice, slice]
"""Index of a block in a (z, y, x) array."""
BODY_BOUNDS_MM: Final[Bounds] = ((-210.0, 210.0), (-300.0, 190.0), (-200.0, 200.0))
"""Bounds of the texture fields of the whole body, in mm.

Beyond the bounds, the values at the bounds are repeated.
"""

_VARIANCE_PER_AXIS: Final = 151 / 315
"""Integral of the squared cubic B-spline.

This is the fraction of the variance of white noise that remains after interpolation along one axis.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Centres of a block of voxels with axes parallel to those of the patient.

    Parameters
    ----------
    along
        Positions in RAS mm along right, anterior and superior; one float32 vector for each.
    axes
        For each array axis (z, y, x), the index of its patient axis.
    """

    along: tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]
    axes: tuple[int, int, int]

    @classmethod
    def of(cls, grid: Grid) -> "Points":
        """Return the voxel centres of a grid that is neither oblique nor sheared."""
        axes = np.argmax(np.abs(grid.matrix_mm), axis=0)
        along: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * 3
        for axis, world in enumerate(axes):
            steps = np.arange(grid.shape[axis]) * grid.matrix_mm[world, axis]
            along[world] = (grid.affine[world, 3] + steps).astype(np.float32)
        return cls((along[0], along[1], along[2]), (int(axes[0]), int(axes[1]), int(axes[2])))

    @classmethod
    def lattice(cls, bounds: Bounds, step_mm: float) -> "Points":
        """Return points `step_mm` apart that fill `bounds`; axes run superior, anterior, right."""
        x, y, z = (np.arange(low, high, step_mm, dtype=np.float32) for low, high in bounds)
        return cls((x, y, z), (2, 1, 0))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of points along (z, y, x)."""
        z, y, x = (self.along[world].size for world in self.axes)
        return (z, y, x)

    @property
    def x_mm(self) -> NDArray[np.float32]:
        """Distance to the right of the midline in mm; broadcasts to `shape`."""
        return self._spread_axis(0)

    @property
    def y_mm(self) -> NDArray[np.float32]:
        """Anterior coordinate in mm; broadcasts to `shape`."""
        return self._spread_axis(1)

    @property
    def z_mm(self) -> NDArray[np.float32]:
        """Superior coordinate in mm; broadcasts to `shape`."""
        return self._spread_axis(2)

    def moved(self, shift_mm: Sequence[float]) -> "Points":
        """Return the sampling points for a patient who has moved by `shift_mm`."""
        x, y, z = (a - np.float32(s) for a, s in zip(self.along, shift_mm, strict=True))
        return Points((x, y, z), self.axes)

    def block(self, window: Window) -> "Points":
        """Return the points inside a block of the array."""
        along = list(self.along)
        for axis, world in enumerate(self.axes):
            along[world] = along[world][window[axis]]
        return Points((along[0], along[1], along[2]), self.axes)

    def window(self, bounds: Bounds) -> Window | None:
        """Return the smallest block of the array that contains every point in `bounds`, or None."""
        slices = []
        for world in self.axes:
            low, high = bounds[world]
            inside = np.flatnonzero((self.along[world] >= low) & (self.along[world] <= high))
            if inside.size == 0:
                return None
            slices.append(slice(int(inside[0]), int(inside[-1]) + 1))
        return (slices[0], slices[1], slices[2])

    def _spread_axis(self, world: int) -> NDArray[np.float32]:
        shape = [1, 1, 1]
        shape[self.axes.index(world)] = -1
        return self.along[world].reshape(shape)


Array = NDArray[np.float32]


def filled(distance_mm: Array, voxel_mm: float) -> Array:
    """Return the fraction (0 to 1) of a voxel that lies inside a surface at `distance_mm`.

    The direction of the surface is ignored: the voxel is treated as a cube of the same volume with
    the edge `voxel_mm`.

    Parameters
    ----------
    distance_mm
        Signed distances in mm, negative inside.
    voxel_mm
        Edge of a cube with the voxel's volume, mm.
    """
    share: Array = np.clip(np.float32(0.5) - distance_mm / np.float32(voxel_mm), 0, 1)
    return share


def smoothstep(value: Array, low: float, high: float) -> Array:
    """Return 0 below `low`, 1 above `high`, and a smooth transition in between.

    Parameters
    ----------
    value
        The values to map.
    low
        The lower end of the transition.
    high
        The upper end of the transition.
    """
    t = np.clip((value - np.float32(low)) / np.float32(high - low), 0, 1)
    rise: Array = t * t * (3 - 2 * t)
    return rise


def ellipsoid(
    points: Points, centre_mm: tuple[float, float, float], radii_mm: tuple[float, float, float]
) -> Array:
    """Return the distance to an ellipsoid whose axes are the patient's (right, anterior, superior).

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
    # The formula is 0/0 at the centre, where the surface is nearest along the shortest axis.
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
        A boolean array ``(z, y, x)``.
    spacing_mm
        Spacing along (z, y, x), mm.
    """
    outside = distance_transform_edt(~mask, sampling=spacing_mm)
    inside = distance_transform_edt(mask, sampling=spacing_mm)
    distance: NDArray[np.float64] = np.where(mask, -inside, outside)
    return distance


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """White noise on a lattice, interpolated by cubic B-splines: mean 0, variance about 1.

    `values` is float32 (right, anterior, superior), `origin_mm` the position of its first entry,
    `step_mm` the spacing of the lattice; structures are about two steps wide.
    """

    values: NDArray[np.float32]
    origin_mm: tuple[float, float, float]
    step_mm: float

    def at(self, points: Points) -> NDArray[np.float32]:
        """Return the field at every point, as float32 in the points' shape.

        The axes are interpolated one after the other, starting with the last array axis, so that
        the largest step adds whole planes. BLAS is not used, because its threads would compete with
        other work.
        """
        taps = {world: self._make_taps(points.along[world], world) for world in range(3)}
        values = self.values[tuple(taps[world].reach for world in range(3))]
        values = np.ascontiguousarray(values.transpose(points.axes))
        for axis in (2, 1, 0):
            values = taps[points.axes[axis]].along(values, axis)
        return values

    def _make_taps(self, along_mm: NDArray[np.float32], world: int) -> "_Taps":
        last = self.values.shape[world] - 1
        place = (along_mm.astype(np.float64) - self.origin_mm[world]) / self.step_mm
        # Keeps all four coefficients of each point on the lattice.
        place = np.clip(place, 1.0, last - 1.001)
        first = np.floor(place).astype(np.intp) - 1
        t = place - first - 1
        weights = np.stack(
            [(1 - t) ** 3, 3 * t**3 - 6 * t**2 + 4, 1 + 3 * t + 3 * t**2 - 3 * t**3, t**3]
        )
        low = int(first.min())
        reach = slice(low, int(first.max()) + 4)
        return _Taps(first - low, (weights / 6).astype(np.float32), reach)


@dataclass(frozen=True, slots=True, eq=False)
class _Taps:
    """Cubic B-spline weights along one axis: each point uses four entries, starting at `first`.

    `weights` has the shape (4, point); `reach` is the part of the lattice that is used.
    """

    first: NDArray[np.intp]
    weights: NDArray[np.float32]
    reach: slice

    def along(self, values: NDArray[np.float32], axis: int) -> NDArray[np.float32]:
        shape = [1, 1, 1]
        shape[axis] = -1
        total = np.take(values, self.first, axis=axis)
        total *= self.weights[0].reshape(shape)
        for tap in (1, 2, 3):
            part = np.take(values, self.first + tap, axis=axis)
            part *= self.weights[tap].reshape(shape)
            total += part
        return total


def make_field(
    generator: np.random.Generator, step_mm: float, bounds: Bounds = BODY_BOUNDS_MM
) -> Field:
    """Return a random field over `bounds` with structures about ``2 * step_mm`` wide.

    Parameters
    ----------
    generator
        The random generator.
    step_mm
        Spacing of the lattice, mm.
    bounds
        Bounds of the field in RAS mm.
    """
    shape = [int(np.ceil((high - low) / step_mm)) + 4 for low, high in bounds]
    noise = generator.standard_normal(shape, dtype=np.float32)
    x, y, z = (low - 1.5 * step_mm for low, _ in bounds)
    return Field(noise / np.float32(_VARIANCE_PER_AXIS**1.5), (x, y, z), step_mm)
