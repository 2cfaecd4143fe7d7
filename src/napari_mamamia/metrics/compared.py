"""Two masks, with intermediate results that several metrics use."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.metrics.overlap import dice_and_iou
from napari_mamamia.metrics.surface import ContourRule, SurfaceDistances, surface_distances


@dataclass(frozen=True, eq=False)
class ComparedMasks:
    """Two masks cropped to one block, with the distances between their contours.

    `reference` and `prediction` are boolean arrays (z, y, x). Foreground touches an edge of the
    block only where the block ends at the edge of the image (see `joint_crop`). `matrix_mm` is 3x3
    (`Grid.matrix_mm`). `mm` holds the distances between closed contours in mm, and `voxels` those
    between open contours in voxels.
    """

    reference: NDArray[np.bool_]
    prediction: NDArray[np.bool_]
    matrix_mm: NDArray[np.float64]
    mm: SurfaceDistances
    voxels: SurfaceDistances

    @cached_property
    def dice_and_iou(self) -> tuple[float, float]:
        """Return Dice and IoU, computed from a single voxel count; NaN if both masks are empty."""
        return dice_and_iou(self.reference, self.prediction)


def compare_masks(
    reference: NDArray[np.bool_], prediction: NDArray[np.bool_], matrix_mm: NDArray[np.float64]
) -> ComparedMasks:
    """Return both masks with the distances between their contours.

    Parameters
    ----------
    reference, prediction
        Boolean arrays (z, y, x) of the same shape, cropped by `joint_crop`.
    matrix_mm
        The 3x3 matrix with the steps along (z, y, x) in mm as columns.
    """
    mm = surface_distances(reference, prediction, matrix_mm)
    voxels = surface_distances(reference, prediction, None, ContourRule.OPEN)
    return ComparedMasks(reference, prediction, matrix_mm, mm, voxels)
