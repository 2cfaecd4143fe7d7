"""Volume of a mask."""

import numpy as np
from numpy.typing import NDArray


def volume_mm3(mask: NDArray[np.bool_], matrix_mm: NDArray[np.float64]) -> float:
    """Return the volume of a mask in mm3; 0 for an empty mask.

    Parameters
    ----------
    mask
        bool (z, y, x), or any crop that holds its foreground.
    matrix_mm
        3x3, the steps along (z, y, x) in mm as columns (`Grid.matrix_mm`). The volume of a voxel is
        its
        absolute determinant, so that sheared grids are measured correctly.
    """
    return int(np.count_nonzero(mask)) * float(abs(np.linalg.det(matrix_mm)))
