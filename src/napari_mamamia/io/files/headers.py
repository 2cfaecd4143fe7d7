"""The header of a volume file, independent of the file's format."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.grid import Grid

FORMS_WARNING: Final = "sform and qform differ by"
"""Start of the warning about a NIfTI header with two different affines."""
UNIT_WARNING: Final = "gives lengths in"
"""Part of the warning about a header whose lengths are not in mm."""


@dataclass(frozen=True, slots=True, eq=False)
class VolumeHeader:
    """Shape, type and affine of one volume file or of one DICOM series.

    `stored` is the type of the values in the file; `slope` and `intercept` scale the values to the
    signal (1 and 0 if the file has no scaling). `n_volumes` is the length of a fourth axis.
    `warnings` are sentences about unusual content and the assumptions that were made. `voxels` is
    the path of a second file if the voxels are stored in a separate file.
    """

    path: Path
    grid: Grid
    stored: np.dtype[np.generic]
    slope: float = 1.0
    intercept: float = 0.0
    n_volumes: int = 1
    warnings: tuple[str, ...] = ()
    voxels: Path | None = None

    @property
    def is_scaled(self) -> bool:
        """Whether stored values must be scaled to obtain the signal."""
        return (self.slope, self.intercept) != (1.0, 0.0)

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """Type of the values in memory: the stored type, or float32 for scaled values."""
        return np.dtype(np.float32) if self.is_scaled else self.stored.newbyteorder("=")

    def scaled(self, stored: NDArray[Any]) -> NDArray[Any]:
        """Return stored values as signal values in `dtype`."""
        if not self.is_scaled:
            return stored.astype(self.dtype, copy=False)
        return (stored.astype(np.float64) * self.slope + self.intercept).astype(np.float32)
