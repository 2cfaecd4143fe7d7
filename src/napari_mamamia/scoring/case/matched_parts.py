"""The connected parts of a reference and a prediction, and which of them share a voxel."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.box import Box
from napari_mamamia.core.grid import Grid
from napari_mamamia.scoring.case.pair import MaskPair

__all__ = ["MatchedParts", "matched_parts"]

_TOUCHING: Final = np.ones((3, 3, 3), dtype=np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class MatchedParts:
    """The 26-connected parts of both masks on the crop `box`, numbered from 1, and who meets whom.

    `lesions` (of the reference) and `parts` (of the prediction) are label arrays of the box's
    shape, 0 is background; `lesion_voxels` and `part_voxels` are their sizes, from number 1 on.
    `meets` (lesions + 1, parts + 1) is True where lesion i and part j share a voxel.
    """

    box: Box
    grid: Grid
    lesions: NDArray[np.int32]
    parts: NDArray[np.int32]
    lesion_voxels: NDArray[np.intp]
    part_voxels: NDArray[np.intp]
    meets: NDArray[np.bool_]

    @property
    def found(self) -> NDArray[np.bool_]:
        """Whether each lesion shares a voxel with the prediction."""
        return np.asarray(self.meets[1:, 1:].any(axis=1))

    @property
    def true(self) -> NDArray[np.bool_]:
        """Whether each predicted part shares a voxel with the reference."""
        return np.asarray(self.meets[1:, 1:].any(axis=0))


def matched_parts(pair: MaskPair, grid: Grid) -> MatchedParts:
    """Return the parts of both masks of a pair on `grid`, 26-connected."""
    label: Any = ndimage.label  # type: ignore[attr-defined, unused-ignore]
    lesions, n_lesions = label(pair.reference != 0, structure=_TOUCHING)
    parts, n_parts = label(pair.prediction != 0, structure=_TOUCHING)
    both = (lesions > 0) & (parts > 0)
    meets = np.zeros((n_lesions + 1, n_parts + 1), dtype=np.bool_)
    meets[lesions[both], parts[both]] = True
    return MatchedParts(
        pair.box,
        grid,
        lesions,
        parts,
        np.bincount(lesions.ravel(), minlength=n_lesions + 1)[1:],
        np.bincount(parts.ravel(), minlength=n_parts + 1)[1:],
        meets,
    )
