"""Postprocessing steps in the user's order, with a summary of the voxels each step changes.

The largest region is often the heart. Therefore the "largest component" step may not come before
the breast step.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.segmentation.model.morphology import ball_offsets, closed, filled

_ALL_NEIGHBOURS: Final = np.ones((3, 3, 3), dtype=np.bool_)

Bools = NDArray[np.bool_]


class PostKind(StrEnum):
    """The kinds of postprocessing steps."""

    BREAST_MASK = "breast mask"
    BREAST_BOX = "breast box"
    LARGEST = "largest component"
    MINIMUM = "minimum volume"
    FILL = "fill holes"
    CLOSE = "closing"


_BREAST: Final = (PostKind.BREAST_MASK, PostKind.BREAST_BOX)
UNITS: Final = {PostKind.MINIMUM: "mm3", PostKind.CLOSE: "mm"}
"""Units of the positive value that some kinds of steps need."""


@dataclass(frozen=True, slots=True)
class PostStep:
    """One postprocessing step; `value` is a minimum volume in mm3, a closing radius in mm, or 0.

    Raises
    ------
    ModelError
        If a step that needs a positive value has none.
    """

    kind: PostKind
    value: float = 0.0

    def __post_init__(self) -> None:
        if self.kind in UNITS and not 0 < self.value < np.inf:
            raise ModelError(
                f"expected the step {self.kind.value} to have a value above 0 {UNITS[self.kind]}, "
                f"but it has {self.value}; set a value, or leave the step out"
            )


@dataclass(frozen=True, slots=True, eq=False)
class BreastArea:
    """The breast as a Boolean mask ``(z, y, x)``, or only as its bounding `box`."""

    box: Box
    mask: Bools | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """The change made by one step, as a number and a volume in mm3 of voxels."""

    kind: PostKind
    removed: int
    added: int
    removed_mm3: float
    added_mm3: float

    @property
    def text(self) -> str:
        """Summary of the change in one line."""
        if not self.removed and not self.added:
            return f"{self.kind.value}: nothing changed"
        parts = []
        if self.removed:
            parts.append(f"removed {self.removed} voxels ({self.removed_mm3:.0f} mm3)")
        if self.added:
            parts.append(f"added {self.added} voxels ({self.added_mm3:.0f} mm3)")
        return f"{self.kind.value}: {', '.join(parts)}"


def check_order(steps: Sequence[PostStep]) -> None:
    """Raise `ModelError` if a "largest component" step comes before the breast step."""
    kinds = [step.kind for step in steps]
    if PostKind.LARGEST in kinds and any(
        kind in _BREAST for kind in kinds[kinds.index(PostKind.LARGEST) :]
    ):
        raise ModelError(
            f"expected the step {PostKind.LARGEST.value} to come after the step breast, but it "
            f"comes before it ({', '.join(kind.value for kind in kinds)}), so the heart could "
            "remain; put the step breast first"
        )


def apply_steps(
    mask: Bools, grid: Grid, steps: Sequence[PostStep], breast: BreastArea | None = None
) -> tuple[Bools, tuple[Change, ...]]:
    """Return a mask after all steps, with the change made by each step.

    Parameters
    ----------
    mask
        bool ``(z, y, x)``; not modified.
    grid
        The grid of the mask.
    steps
        The steps in the order in which they are applied.
    breast
        The breast, needed by the two steps that crop to it.

    Raises
    ------
    ModelError
        If the steps are in an invalid order or the breast is missing.
    """
    check_order(steps)
    if breast is None and any(step.kind in _BREAST for step in steps):
        raise ModelError(
            "cropping to the breast needs the position of the breast, which is missing; provide "
            "the mask or box of the breast"
        )
    current = mask.copy()
    changes = []
    for step in steps:
        after = _apply_step(current, grid, step, breast)
        removed = int(np.count_nonzero(current & ~after))
        added = int(np.count_nonzero(after & ~current))
        size = grid.voxel_volume_mm3
        changes.append(Change(step.kind, removed, added, removed * size, added * size))
        current = after
    return current, tuple(changes)


def _apply_step(mask: Bools, grid: Grid, step: PostStep, breast: BreastArea | None) -> Bools:
    if breast is not None and step.kind in _BREAST:
        return _cut_to_breast(mask, step.kind, breast)
    box = Box.around(mask)
    if box.is_empty:
        return mask
    if step.kind is PostKind.CLOSE:
        reach = [int(step.value / s) + 1 for s in grid.spacing_mm]
        box = box.grown(reach, grid.shape)
    out = np.zeros_like(mask)
    crop = mask[box.slices]
    if step.kind is PostKind.FILL:
        crop = filled(crop)
    elif step.kind is PostKind.CLOSE:
        crop = closed(crop, ball_offsets(step.value, grid.spacing_mm))
    else:
        smallest = step.value / grid.voxel_volume_mm3 if step.kind is PostKind.MINIMUM else None
        crop = _keep_components(crop, smallest)
    out[box.slices] = crop
    return out


def _cut_to_breast(mask: Bools, kind: PostKind, breast: BreastArea) -> Bools:
    if kind is PostKind.BREAST_MASK and breast.mask is not None:
        inside: Bools = mask & breast.mask
        return inside
    out = np.zeros_like(mask)
    out[breast.box.slices] = mask[breast.box.slices]
    return out


def _keep_components(crop: Bools, smallest: float | None) -> Bools:
    """Return the largest 26-connected component, or all with at least `smallest` voxels."""
    labels, count = ndimage.label(crop, structure=_ALL_NEIGHBOURS)
    sizes = np.bincount(labels.ravel(), minlength=count + 1)
    sizes[0] = 0
    if smallest is None:
        largest: Bools = labels == int(np.argmax(sizes))
        return largest
    parts: Bools = (sizes >= smallest)[labels]
    return parts & crop
