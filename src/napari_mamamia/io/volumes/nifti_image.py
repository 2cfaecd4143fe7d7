"""Convert arrays on a grid to nibabel images and back, in memory."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import ArgumentError
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.volumes.nifti import make_nifti_header
from napari_mamamia.io.volumes.nifti_header import known_fields, unit_of
from napari_mamamia.io.volumes.own_nibabel import Nifti1Header, Nifti2Header
from napari_mamamia.io.volumes.voxel_writer import stored_type

if TYPE_CHECKING:
    from nibabel.nifti1 import Nifti1Image as Nifti1Image
    from nibabel.spatialimages import SpatialImage as SpatialImage


def nifti_image(array: NDArray[Any], grid: Grid) -> "Nifti1Image":
    """Return voxels ``(z, y, x)`` or ``(n, z, y, x)`` as a nibabel image.

    The image has the axes ``(x, y, z)``, with n last. The header's geometry is that of the grid's
    source file; voxels are a view of `array`, except that bool becomes uint8.

    Raises
    ------
    ArgumentError
        If NIfTI does not support the voxel type.
    """
    from nibabel.nifti1 import Nifti1Image
    from nibabel.nifti2 import Nifti2Header, Nifti2Image

    try:
        stored = stored_type(array)
    except ValueError as error:
        raise ArgumentError(f"{error}: convert the array with `array.astype('float32')`") from error
    n_volumes = array.shape[0] if array.ndim == 4 else 1
    fields = known_fields(make_nifti_header(grid, n_volumes, stored))
    # The affine of a grid is in mm, whatever the unit of its file.
    fields.set_xyzt_units("mm", fields.get_xyzt_units()[1])
    kind = Nifti2Image if isinstance(fields, Nifti2Header) else Nifti1Image
    voxels = array.astype(np.uint8) if array.dtype == np.bool_ else array
    image: Nifti1Image = kind(voxels.T, grid.affine, fields)  # type: ignore[no-untyped-call]
    return image


def grid_and_voxels(image: "SpatialImage") -> tuple[Grid, NDArray[Any]]:
    """Return the grid and the voxels ``(z, y, x)`` of an image that contains one volume.

    Raises
    ------
    ArgumentError
        If the image has several volumes, or no affine.
    """
    voxels: NDArray[Any] = np.asarray(image.dataobj)
    while voxels.ndim > 3 and voxels.shape[-1] == 1:
        voxels = voxels[..., 0]
    if voxels.ndim != 3:
        raise ArgumentError(
            f"expected an image of one volume, but it has shape {voxels.shape} (x, y, z, ...): "
            "select a volume with `image.slicer[..., k]`"
        )
    try:
        x, y, z = voxels.shape
        affine = np.array(image.affine)
        if isinstance(image.header, Nifti1Header | Nifti2Header):
            affine[:3] *= unit_of(image.header)[1]
        grid = Grid((z, y, x), affine)
    except (ValueError, TypeError) as error:
        raise ArgumentError(
            f"expected an image with an affine, but it has none ({error}): set the affine"
        ) from error
    return grid, voxels.T
