"""NIfTI geometry: from a `Grid` back to header bytes, the source's own where there is one."""

from typing import Any, Final

import numpy as np
from nibabel.nifti1 import Nifti1Header, data_type_codes
from nibabel.nifti2 import Nifti2Header
from numpy.typing import NDArray

from napari_mamamia.core.grid import Grid
from napari_mamamia.io.volumes.nifti_header import EXTENSION_FLAG, known_fields

__all__ = ["make_nifti_header", "stored_grid"]

_MOST_VOXELS_NIFTI1: Final = 32767
_NEW: Final[tuple[Any, Any]] = (Nifti1Header, Nifti2Header)
_GEOMETRY: Final = (
    "dim_info",
    "dim",
    "pixdim",
    "xyzt_units",
    "qform_code",
    "sform_code",
    "quatern_b",
    "quatern_c",
    "quatern_d",
    "qoffset_x",
    "qoffset_y",
    "qoffset_z",
    "srow_x",
    "srow_y",
    "srow_z",
)


def make_nifti_header(grid: Grid, n_volumes: int, stored: np.dtype[Any]) -> bytes:
    """Return the bytes before the voxels of a NIfTI file on `grid`.

    Where the grid came from a NIfTI file, the fields that say where voxels lie are copied byte for
    byte, in that file's byte order; free text is left out, because it may name the patient.
    Elsewhere the affine, rounded to float32, becomes sform and qform (no qform where the affine is
    sheared, which a qform cannot say), in mm. The voxels must be written in the same byte order.
    """
    old = None if grid.nifti_header is None else known_fields(grid.nifti_header)
    fields = _fresh(grid) if old is None else type(old)(endianness=old.endianness)
    if old is not None:
        for name in _GEOMETRY:
            fields[name] = old[name]
    wanted = 3 if n_volumes == 1 else 4
    fields["dim"][1:4] = grid.shape[::-1]
    if fields["dim"][0] != wanted or wanted == 4:
        fields["dim"][0] = wanted
        fields["dim"][4:] = (n_volumes, 1, 1, 1)
    fields["datatype"] = data_type_codes[stored.newbyteorder("=")]
    fields["bitpix"] = stored.itemsize * 8
    fields["scl_slope"], fields["scl_inter"] = 1, 0
    fields["vox_offset"] = int(fields["sizeof_hdr"]) + len(EXTENSION_FLAG)
    raw: bytes = fields.binaryblock
    return raw + EXTENSION_FLAG


def _fresh(grid: Grid) -> Any:
    """Return a little-endian header that says where `grid` lies."""
    big = max(grid.shape) > _MOST_VOXELS_NIFTI1
    fields = _NEW[big](endianness="<")
    affine: NDArray[np.float32] = grid.affine.astype(np.float32)
    fields.set_data_shape(grid.shape[::-1])
    fields.set_sform(affine, 1)
    if not grid.is_sheared:
        fields.set_qform(affine, 1)
    fields.set_zooms(grid.spacing_mm[::-1])
    fields.set_xyzt_units("mm")
    return fields


def stored_grid(grid: Grid) -> Grid:
    """Return `grid` as a NIfTI file gives it back: without a header of its own, in float32."""
    if grid.nifti_header is not None:
        return grid
    return Grid(grid.shape, grid.affine.astype(np.float32))
