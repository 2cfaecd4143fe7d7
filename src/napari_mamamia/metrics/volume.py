"""Volume of a mask."""

import numpy as np
from numpy.typing import NDArray


def volume_mm3(mask: NDArray[np.bool_], matrix_mm: NDArray[np.float64]) -> float:
    """Return the number of voxels times the volume of one, in mm3; 0 for an empty mask.

    `mask` is bool (z, y, x), or any crop that holds its foreground. `matrix_mm` is 3x3
    (`Grid.matrix_mm`); the volume of a voxel is the size of its determinant, so a sheared grid is
    measured truly.
    """
    return int(np.count_nonzero(mask)) * float(abs(np.linalg.det(matrix_mm)))
