"""The start of a growth: settings, outlines, and the evidence about a region."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid

RING_MM: Final = (2.5, 9.0)
"""Range of distances in mm from the region in which its surroundings are sampled.

Source: docs/methods/growth.md.
"""

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]
Spacing = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class GrowSettings:
    """The extent and smoothness of a growing region.

    Parameters
    ----------
    reach
        The largest distance of the region, as a multiple of the largest radius of its start.
    radius_mm
        The largest distance in mm; None to use `reach`.
    tolerance_mm
        The contour tolerance. In the slice of an outline, every voxel that is deeper inside belongs
        to the region, and no voxel that is farther outside does.
    smoothness
        The cost of a surface in uniform surroundings, in log odds for each face between two voxels
        of the finest spacing.
    most_voxels
        The number of voxels above which the region is computed on a coarser grid, with a note.

    Raises
    ------
    ValueError
        If a value is not above 0.

    Source: docs/methods/growth.md (1.3, 1.5 mm, 100^3 voxels). A smoothness of 1.5 was derived for
    features without common noise; with it, 2.5 measured better (`benchmarks/grow.py`).
    """

    reach: float = 1.3
    radius_mm: float | None = None
    tolerance_mm: float = 1.5
    smoothness: float = 2.5
    most_voxels: int = 1_000_000

    def __post_init__(self) -> None:
        radius = 1.0 if self.radius_mm is None else self.radius_mm
        values = (self.reach, radius, self.tolerance_mm, self.smoothness, self.most_voxels)
        if not all(value > 0 for value in values):
            raise ValueError(f"expected growth settings to be above 0, but got {self}")


@dataclass(frozen=True, slots=True, eq=False)
class Outline:
    """The area inside an outline that a reader drew in one plane.

    Parameters
    ----------
    axis, index
        The plane of the voxels whose index along array axis `axis` (0 z, 1 y, 2 x) is `index`.
    mask
        The boolean plane in array order: (y, x) for a z plane, (z, x) for a y plane, (z, y) for an
        x plane.
    """

    axis: int
    index: int
    mask: Bools

    def require_on(self, grid: Grid) -> None:
        """Raise `CaseError` unless the outline fits a plane of `grid` and contains a voxel."""
        if self.axis not in (0, 1, 2) or not 0 <= self.index < grid.shape[self.axis]:
            raise CaseError(
                f"expected the outline to lie on a plane of the case, but plane {self.index} along "
                f"axis {self.axis} is outside the grid of shape {grid.shape} (z, y, x): draw the "
                "outline again"
            )
        plane = tuple(n for axis, n in enumerate(grid.shape) if axis != self.axis)
        if self.mask.shape != plane:
            raise CaseError(
                f"expected the outline along axis {self.axis} to have the shape {plane} of its "
                f"plane, but got {self.mask.shape}: draw the outline again on this case"
            )
        if not self.mask.any():
            raise CaseError(
                f"expected the outline to have at least one voxel, but plane {self.index} across "
                f"axis {self.axis} has none: outline the lesion on this plane first"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """The evidence about a region before growth; masks are boolean arrays with the box's shape.

    Parameters
    ----------
    box
        The box that contains the region.
    inside, outside
        The voxels that belong to the region and the voxels that do not, regardless of the image;
        the masks are disjoint.
    seed
        The seed: a 26-connected part of the grown region is kept only if it has a voxel of the
        seed.
    drawn
        The reader's drawing, which is the region if the image does not help.
    foreground, background
        The finite features ``(feature, voxel)`` in samples of the region and of its surroundings.
    notes
        Sentences for the reader.
    """

    box: Box
    inside: Bools
    outside: Bools
    seed: Bools
    drawn: Bools
    foreground: Floats
    background: Floats
    notes: tuple[str, ...] = ()


def box_of_ball(
    centre: tuple[float, float, float],
    radius_mm: float,
    spacing_mm: Spacing,
    shape: tuple[int, int, int],
) -> Box:
    """Return the box of all voxels whose centres may lie in a ball, cropped to `shape`."""
    ends = []
    for coordinate, step, n in zip(centre, spacing_mm, shape, strict=True):
        first = min(max(int(np.ceil(coordinate - radius_mm / step)), 0), int(n))
        last = max(min(int(np.floor(coordinate + radius_mm / step)) + 1, int(n)), first)
        ends.append((first, last))
    (z0, z1), (y0, y1), (x0, x1) = ends
    return Box((z0, y0, x0), (z1, y1, x1))


def ball(box: Box, centre: tuple[float, float, float], spacing_mm: Spacing) -> Floats:
    """Return the distance in mm of each voxel of `box` from `centre`, float32."""
    z, y, x = (
        ((np.arange(a, b) - coordinate) * step).astype(np.float32) ** 2
        for a, b, coordinate, step in zip(box.start, box.stop, centre, spacing_mm, strict=True)
    )
    squared = z[:, np.newaxis, np.newaxis] + (y[:, np.newaxis] + x)
    return np.sqrt(squared, out=squared)
