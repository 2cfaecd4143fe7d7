"""Overlap of two masks: Dice and intersection over union."""

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.metrics.crop import joint_crop


def dice(reference: NDArray[np.bool_], prediction: NDArray[np.bool_]) -> float:
    """Return the Dice coefficient of two masks, from 0 to 1; NaN if both are empty.

    The value is twice the number of common voxels divided by the sum of both masks' voxels. If the
    shapes differ, a `GridMismatchError` is raised. Source: L. R. Dice, Ecology 26 (1945) 297.

    Parameters
    ----------
    reference, prediction
        Boolean arrays (z, y, x) of the same shape.

    Examples
    --------
    >>> a = np.array([[[True, True, False]]])
    >>> b = np.array([[[False, True, False]]])
    >>> dice(a, b) == 2 / 3
    True
    """
    return dice_and_iou(*joint_crop(reference, prediction))[0]


def iou(reference: NDArray[np.bool_], prediction: NDArray[np.bool_]) -> float:
    """Return the intersection over union of two masks, from 0 to 1; NaN if both are empty.

    Arguments and errors are the same as in `dice`. Source: P. Jaccard, New Phytologist 11 (1912)
    37.

    Parameters
    ----------
    reference, prediction
        Boolean arrays (z, y, x) of the same shape.
    """
    return dice_and_iou(*joint_crop(reference, prediction))[1]


def dice_and_iou(
    reference: NDArray[np.bool_], prediction: NDArray[np.bool_]
) -> tuple[float, float]:
    """Return `dice` and `iou` of two masks, computed from a single voxel count.

    Parameters
    ----------
    reference, prediction
        Boolean arrays (z, y, x) of the same shape.
    """
    shared, together = _count_voxels(reference, prediction)
    if not together:
        return float("nan"), float("nan")
    return 2 * shared / together, shared / (together - shared)


def _count_voxels(reference: NDArray[np.bool_], prediction: NDArray[np.bool_]) -> tuple[int, int]:
    if reference.dtype != np.bool_ or prediction.dtype != np.bool_:
        raise TypeError(
            f"expected masks of type bool, but got {reference.dtype} and {prediction.dtype}"
        )
    shared = int(np.count_nonzero(reference & prediction))
    return shared, int(np.count_nonzero(reference)) + int(np.count_nonzero(prediction))
