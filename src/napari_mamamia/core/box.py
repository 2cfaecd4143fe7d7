"""A half-open, axis-aligned block of voxels (`Box`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import ArgumentError

Corners: TypeAlias = tuple[tuple[int, int, int], tuple[int, int, int]]
"""The first voxel and the voxel after the last one, each ``(z, y, x)``."""


@dataclass(frozen=True, slots=True)
class Box:
    """Voxels ``start <= index < stop`` along (z, y, x); the box is empty if any extent is 0.

    Examples
    --------
    >>> Box((0, 2, 2), (1, 5, 4)).shape
    (1, 3, 2)
    """

    start: tuple[int, int, int]
    stop: tuple[int, int, int]

    def __post_init__(self) -> None:
        if any(a < 0 or b < a for a, b in zip(self.start, self.stop, strict=True)):
            raise ValueError(
                f"expected 0 <= start <= stop for a box, but got {self.start} to {self.stop}"
            )

    @classmethod
    def empty(cls) -> Self:
        """Return a box without voxels."""
        return cls((0, 0, 0), (0, 0, 0))

    @classmethod
    def whole(cls, shape: Sequence[int]) -> Self:
        """Return the box of a whole (z, y, x) array of `shape`."""
        z, y, x = shape
        return cls((0, 0, 0), (int(z), int(y), int(x)))

    @classmethod
    def around(cls, array: NDArray[Any]) -> Self:
        """Return the smallest box that contains every non-zero voxel of a (z, y, x) array.

        Memory is read once: planes across the axis with the longest stride are tested from each
        end, and only the planes in between are searched along the other two axes.
        """
        slow, *_ = axes = sorted(range(3), key=lambda axis: -abs(array.strides[axis]))
        planes = array.transpose(axes)
        first, stop = 0, len(planes)
        while first < stop and not planes[first].any():
            first += 1
        if first == stop:
            return cls.empty()
        while not planes[stop - 1].any():
            stop -= 1
        ends = {slow: (first, stop)}
        shadow = np.any(planes[first:stop], axis=0)
        for index, axis in enumerate(axes[1:]):
            hit = np.flatnonzero(np.any(shadow, axis=1 - index))
            ends[axis] = (int(hit[0]), int(hit[-1]) + 1)
        (z0, z1), (y0, y1), (x0, x1) = (ends[axis] for axis in range(3))
        return cls((z0, y0, x0), (z1, y1, x1))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Extents along (z, y, x) in voxels."""
        (z0, y0, x0), (z1, y1, x1) = self.start, self.stop
        return (z1 - z0, y1 - y0, x1 - x0)

    @property
    def is_empty(self) -> bool:
        """Whether the box has no voxel."""
        return 0 in self.shape

    @property
    def slices(self) -> tuple[slice, slice, slice]:
        """Slices that select the box in a (z, y, x) array."""
        z, y, x = (slice(a, b) for a, b in zip(self.start, self.stop, strict=True))
        return (z, y, x)

    @property
    def centre(self) -> tuple[float, float, float]:
        """Centre of the box in voxel coordinates (z, y, x), where a voxel's centre is its index."""
        z, y, x = ((a + b - 1) / 2 for a, b in zip(self.start, self.stop, strict=True))
        return (z, y, x)

    def union(self, other: "Box") -> "Box":
        """Return the smallest box that contains both boxes; an empty box has no effect."""
        if self.is_empty or other.is_empty:
            return other if self.is_empty else self
        z0, y0, x0 = (min(a, b) for a, b in zip(self.start, other.start, strict=True))
        z1, y1, x1 = (max(a, b) for a, b in zip(self.stop, other.stop, strict=True))
        return Box((z0, y0, x0), (z1, y1, x1))

    def grown(self, voxels: Sequence[int], shape: Sequence[int]) -> "Box":
        """Return the box enlarged by `voxels` (z, y, x) on each side, cropped to `shape`."""
        z0, y0, x0 = (max(a - v, 0) for a, v in zip(self.start, voxels, strict=True))
        z1, y1, x1 = (min(b + v, n) for b, v, n in zip(self.stop, voxels, shape, strict=True))
        return Box((z0, y0, x0), (z1, y1, x1))


def box_of(corners: Corners, shape: tuple[int, int, int]) -> Box:
    """Return the box between two corners; the second corner is the voxel after the last.

    Raises
    ------
    ArgumentError
        If the corners are not two points of three integers, or are outside `shape`.
    """
    try:
        start, stop = (tuple(int(n) for n in corner) for corner in corners)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            "expected a box as two corners, (z, y, x) of the first voxel and (z, y, x) of the "
            f"voxel after the last, but got {corners!r}: pass two corners"
        ) from error
    inside = len(start) == len(stop) == 3 and all(
        0 <= a < b <= n for a, b, n in zip(start, stop, shape, strict=False)
    )
    if not inside:
        raise ArgumentError(
            f"expected a box inside {shape} (z, y, x), but got {start} to {stop}: pass the first "
            "voxel and the voxel after the last"
        )
    return Box((start[0], start[1], start[2]), (stop[0], stop[1], stop[2]))
