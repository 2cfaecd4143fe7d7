"""Smooth random fields in patient coordinates, so that every grid samples the same texture."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.phantom.body.points import Bounds, Points

BODY_BOUNDS_MM: Final[Bounds] = ((-210.0, 210.0), (-300.0, 190.0), (-200.0, 200.0))
"""Bounds of the texture fields of the whole body, in mm.

Values at the bounds continue unchanged beyond them.
"""

_VARIANCE_PER_AXIS: Final = 151 / 315
"""Integral of the squared cubic B-spline: the share of white noise's variance that one axis keeps.
"""


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
        """Return the field at every point, float32 of the points' shape.

        Axes are interpolated one after the other, the last array axis first, so that the largest
        step adds whole planes. BLAS is not used: its threads would compete with other work.
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
    """Cubic B-spline weights along one axis: each point uses four entries from `first` on.

    `weights` is (4, point), `reach` the used part of the lattice.
    """

    first: NDArray[np.intp]
    weights: NDArray[np.float32]
    reach: slice

    def along(self, values: NDArray[np.float32], axis: int) -> NDArray[np.float32]:
        """Return `values` interpolated along `axis`."""
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
