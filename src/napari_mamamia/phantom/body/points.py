"""`Points`: voxel centres in patient millimetres, stored as three short vectors."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.grid import Grid

Bounds = tuple[tuple[float, float], tuple[float, float], tuple[float, float]]
"""(low, high) in mm along right, anterior, superior."""

Window = tuple[slice, slice, slice]
"""Index that takes a block out of a (z, y, x) array."""


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Centres of a block of voxels with axes parallel to those of the patient.

    Parameters
    ----------
    along
        RAS mm along right, anterior, superior; one float32 vector each.
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
        """Extents along (z, y, x)."""
        z, y, x = (self.along[world].size for world in self.axes)
        return (z, y, x)

    @property
    def x_mm(self) -> NDArray[np.float32]:
        """Distance to the right of the midline in mm; broadcasts to `shape`."""
        return self._spread_axis(0)

    @property
    def y_mm(self) -> NDArray[np.float32]:
        """Distance towards anterior in mm; broadcasts to `shape`."""
        return self._spread_axis(1)

    @property
    def z_mm(self) -> NDArray[np.float32]:
        """Distance towards superior in mm; broadcasts to `shape`."""
        return self._spread_axis(2)

    def moved(self, shift_mm: Sequence[float]) -> "Points":
        """Return the sampling points for a patient who moved by `shift_mm`."""
        x, y, z = (a - np.float32(s) for a, s in zip(self.along, shift_mm, strict=True))
        return Points((x, y, z), self.axes)

    def block(self, window: Window) -> "Points":
        """Return the points of a block of the array."""
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
