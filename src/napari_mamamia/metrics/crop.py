"""Crop two masks to the smallest block that contains both."""

from typing import Any

from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import GridMismatchError


def joint_crop(
    reference: NDArray[Any], prediction: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return views of two arrays, cropped to the smallest block that contains both foregrounds.

    The block has a margin of one voxel where the image allows it. Foreground that touches an edge
    of the crop therefore touches an edge of the image, and cropping does not change any metric of
    this package. Zero is background. Two empty arrays give empty crops.

    Parameters
    ----------
    reference, prediction
        Masks or label arrays (z, y, x) of the same shape; zero is background.

    Raises
    ------
    GridMismatchError
        If the shapes differ.
    ValueError
        If an array is not three-dimensional (z, y, x).
    """
    if reference.shape != prediction.shape:
        raise GridMismatchError(
            f"expected two masks on one grid, but the reference has shape {reference.shape} and "
            f"the prediction {prediction.shape} (z, y, x); resample one mask onto the grid of the "
            "other"
        )
    if reference.ndim != 3:
        raise ValueError(
            f"expected a mask with three axes (z, y, x), but got shape {reference.shape}"
        )
    box = Box.around(reference).union(Box.around(prediction))
    if not box.is_empty:
        box = box.grown((1, 1, 1), reference.shape)
    return reference[box.slices], prediction[box.slices]
