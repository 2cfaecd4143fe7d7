"""The start of a growth: `GrowSettings`, `Outline`, and `Start`, the evidence on a region."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid

RING_MM: Final = (2.5, 9.0)
"""Distance in mm from the region at which its surroundings are sampled: above the first, at most
the
second.

Source: docs/methods/growth.md.
"""

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]
Spacing = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class GrowSettings:
    """How far and how smoothly a region grows.

    Parameters
    ----------
    reach
        The region ends at `reach` times the greatest radius of its start.
    radius_mm
        The limit in mm instead; None for `reach`.
    tolerance_mm
        How inexact a reader's outline may be: deeper inside it every voxel belongs to the region,
        farther outside none, in the slice of the outline.
    smoothness
        Cost of a surface in uniform surroundings, in units of log odds for each face between two
        voxels of the finest spacing.
    most_voxels
        Above this number of voxels the region is computed on a coarser grid, with a note.

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
            raise ValueError(f"expected growth settings above 0, got {self}")


@dataclass(frozen=True, slots=True, eq=False)
class Outline:
    """The inside of an outline that a reader drew in one plane.

    Parameters
    ----------
    axis, index
        The plane: voxels whose index along array axis `axis` (0 z, 1 y, 2 x) is `index`.
    mask
        bool, the plane in array order: (y, x) of a z plane, (z, x) of a y plane, (z, y) of an x
        plane.
    """

    axis: int
    index: int
    mask: Bools

    def require_on(self, grid: Grid) -> None:
        """Raise `CaseError` unless the outline is a plane of `grid` and holds a voxel."""
        if self.axis not in (0, 1, 2) or not 0 <= self.index < grid.shape[self.axis]:
            raise CaseError(
                f"an outline must lie on a plane of the case, got plane {self.index} across axis "
                f"{self.axis} of shape {grid.shape} (z, y, x): draw it again"
            )
        plane = tuple(n for axis, n in enumerate(grid.shape) if axis != self.axis)
        if self.mask.shape != plane:
            raise CaseError(
                f"an outline across axis {self.axis} must have the shape {plane} of its plane, "
                f"got {self.mask.shape}: draw it again on this case"
            )
        if not self.mask.any():
            raise CaseError(
                f"an outline must hold at least one voxel, plane {self.index} across axis "
                f"{self.axis} holds none: outline the lesion there first"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """The evidence on a region before it grows; all masks are bool of the box's shape.

    Parameters
    ----------
    box
        No voxel outside it belongs to the region.
    inside, outside
        Voxels that belong to the region and voxels that do not, whatever the image shows; they are
        disjoint.
    seed
        Parts of the grown region (26 neighbours) stay if they share a voxel with it.
    drawn
        The reader's drawing, which is the region if the image does not help.
    foreground, background
        Features ``(feature, voxel)`` of samples of the region and of its surroundings, finite.
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
    """Return the box of voxels with centres possibly in a ball, cropped to an array of `shape`."""
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
