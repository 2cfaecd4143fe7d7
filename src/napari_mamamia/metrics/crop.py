"""Cutting two masks down to the block that holds both."""

from typing import Any

from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import GridMismatchError


def joint_crop(
    reference: NDArray[Any], prediction: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return views of both arrays on the smallest block that holds both foregrounds.

    The block has a margin of one voxel where the image allows it, so that an edge of the crop that
    foreground touches is an edge of the image: no metric of this room changes by cropping. Zero is
    background. Two empty arrays give empty crops.

    Raises
    ------
    GridMismatchError
        If the shapes differ.
    ValueError
        If an array is not three-dimensional (z, y, x).
    """
    if reference.shape != prediction.shape:
        raise GridMismatchError(
            f"the reference has shape {reference.shape}, the prediction {prediction.shape} "
            "(z, y, x): they must share one grid; export one of them again on the other's grid"
        )
    if reference.ndim != 3:
        raise ValueError(f"a mask has three axes (z, y, x), got shape {reference.shape}")
    box = Box.around(reference).union(Box.around(prediction))
    if not box.is_empty:
        box = box.grown((1, 1, 1), reference.shape)
    return reference[box.slices], prediction[box.slices]
