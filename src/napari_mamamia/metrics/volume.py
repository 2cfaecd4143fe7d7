"""Compute the volume of a mask."""

import numpy as np
from numpy.typing import NDArray


def volume_mm3(mask: NDArray[np.bool_], matrix_mm: NDArray[np.float64]) -> float:
    """Return the volume of a mask in mm3; 0 for an empty mask.

    Parameters
    ----------
    mask
        A boolean array (z, y, x), or any crop that contains its foreground.
    matrix_mm
        3x3 matrix with the steps along (z, y, x) in mm as columns (`Grid.matrix_mm`). The absolute
        determinant is the volume of a voxel, so that sheared grids are measured correctly.
    """
    return int(np.count_nonzero(mask)) * float(abs(np.linalg.det(matrix_mm)))
