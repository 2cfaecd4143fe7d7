"""`Scan`: the phases that the kinetic segmenter uses, as views in the patient frame."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from numpy.typing import NDArray

from napari_mamamia.core.box import Box

Voxel = tuple[int, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """Phase 0, the early and the late phase (None if missing), and their spacing.

    The arrays are views of the case as ``(superior, posterior, left)``, in its own data type.
    `bright` is the 99th percentile of phase 0, the reference for darkness.
    """

    pre: NDArray[Any]
    early: NDArray[Any]
    late: NDArray[Any] | None
    spacing_mm: tuple[float, float, float]
    bright: float = 0.0

    @property
    def shape(self) -> Voxel:
        """Voxels along (superior, posterior, left)."""
        a, b, c = self.pre.shape
        return (a, b, c)

    def cut(self, box: Box) -> Self:
        """Return the part of the scan in `box`, as views."""
        late = None if self.late is None else self.late[box.slices]
        return replace(self, pre=self.pre[box.slices], early=self.early[box.slices], late=late)


def times(index: Sequence[float], factors: Sequence[int]) -> Voxel:
    """Return an `index` of a grid pooled by `factors` as an index of the original grid."""
    a, b, c = (int(i * f) for i, f in zip(index, factors, strict=True))
    return (a, b, c)


def moved(box: Box, by: Sequence[int]) -> Box:
    """Return `box` with `by` added to its start and stop."""
    (a, b, c), (d, e, f), (i, j, k) = box.start, box.stop, by
    return Box((a + i, b + j, c + k), (d + i, e + j, f + k))
