"""Read and write mask files, and convert masks to and from nibabel images."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.case import LabelMap, Mask
from napari_mamamia.core.errors import ArgumentError
from napari_mamamia.core.grid import Grid, require_same_grid
from napari_mamamia.core.mask_arrays import MaskLike, grid_of, mask_array, mask_in
from napari_mamamia.io.data_set.volumes import read_labels, volume_stem
from napari_mamamia.io.data_set.volumes import write_mask as write_volume_of
from napari_mamamia.io.volumes.nifti_image import grid_and_voxels, nifti_image
from napari_mamamia.library.argument_words import advising_arguments
from napari_mamamia.library.arguments import PathLike, path_of, segment_of
from napari_mamamia.library.case import Case
from napari_mamamia.services.case.explained_mask import write_explained
from napari_mamamia.services.case.open_case import require_few_values

if TYPE_CHECKING:
    from napari_mamamia.io.volumes.nifti_image import Nifti1Image, SpatialImage


@advising_arguments
def read_mask(
    path: PathLike, label: float | str | None = None, *, grid: Grid | None = None
) -> Mask:
    """Read a mask from a file, with its grid.

    The formats are NIfTI (including ``.hdr`` with ``.img``), NRRD, 3D Slicer's ``.seg.nrrd``,
    MetaImage, and, with the extra ``dicom``, DICOM SEG.

    Parameters
    ----------
    path
        The file.
    label
        The foreground value, or the name of the segment. By default, any value above 0 is
        foreground; in a floating-point file, any value of at least 0.5.
    grid
        The grid that the mask must have, such as ``case.grid``. A DICOM SEG or ``.seg.nrrd`` file
        may store only a region of the image; the region is then placed on this grid. If `grid` is
        None, the mask has the grid of the region.

    Returns
    -------
    Mask
        The mask. ``mask.array`` is a boolean array ``(z, y, x)``; ``mask.grid`` maps its voxels to
        patient coordinates.

    Raises
    ------
    FormatError
        If the file is missing, damaged or in an unknown format, or has no segment with that name.
    CaseError
        If the file contains an image instead of a mask.
    GridMismatchError
        If the grid of the mask differs from `grid`.
    MissingExtraError
        If the file is a DICOM SEG and the extra ``dicom`` is not installed.

    Examples
    --------
    >>> mm.read_mask("predictions/DUKE_001.nii.gz").volume_mm3  # doctest: +SKIP
    1843.2
    """
    segment = segment_of(label)
    labels = read_labels(path_of(path, "a mask"), segment)
    if (place := grid_of(grid)) is not None:
        labels = labels.on_grid(place)
        require_same_grid(labels.grid, place, str(path), "the grid passed")
    require_few_values(labels, volume_stem(path_of(path, "a mask")))
    for text in labels.warnings:
        warnings.warn(text, stacklevel=3)
    if labels.grid.spacing_warning:
        warnings.warn(f"{labels.source}: {labels.grid.spacing_warning}", stacklevel=3)
    return labels.mask(None if isinstance(segment, str) else segment)


@advising_arguments
def write_mask(
    mask: MaskLike, path: PathLike, *, grid: Grid | None = None, overwrite: bool = False
) -> None:
    """Write a mask with values 0 and 1 to ``.nii.gz``, ``.nii`` or ``.nrrd``; verify the file.

    Parameters
    ----------
    mask
        A `Mask`, or an array ``(z, y, x)`` with its `grid`, such as ``case.grid``. If the grid was
        read from a NIfTI file, the geometry fields of that file are copied byte for byte. The
        provenance of a prediction is written to ``ID.json`` next to the file.
    path
        The file to write.
    grid
        The grid of an array; not needed for a `Mask`.
    overwrite
        Whether to replace an existing file.

    Raises
    ------
    ArgumentError, GridMismatchError
        If `mask` is not a mask, or has no grid.
    SaveConflictError
        If `path` exists and `overwrite` is False.
    SaveError
        If the system does not allow writing, or the written file differs from the mask.
    """
    place = grid_of(grid, mask)
    if place is None:
        raise ArgumentError(
            "expected the grid of the array, but got only the array: pass grid=case.grid"
        )
    voxels, target = mask_array(mask, "the mask", place), path_of(path, "a mask")
    record = mask_in(mask)
    provenance = None if record is None else record.provenance
    if provenance is None:
        write_volume_of(Mask(place, voxels), target, overwrite=overwrite)
    else:
        labels = LabelMap.of(voxels, place)
        write_explained(labels, provenance, target, overwrite=overwrite)


def to_nibabel(what: "Case | MaskLike", grid: Grid | None = None) -> "Nifti1Image":
    """Convert a case, a mask or any volume to a nibabel image with the geometry of its file.

    Parameters
    ----------
    what
        A `Case` (all its phases, 4-D), a `Mask`, or an array ``(z, y, x)`` or ``(phase, z, y, x)``
        with its `grid`.
    grid
        The grid of an array; not needed for a `Case` or a `Mask`.

    Returns
    -------
    nibabel.Nifti1Image
        The image with axes ``(x, y, z)`` or ``(x, y, z, phase)``. Its voxels are a view if NIfTI
        supports their data type; bool becomes uint8.

    Raises
    ------
    ArgumentError
        If an array has no grid, or its shape differs from that of the grid.
    """
    if isinstance(what, Case):
        return nifti_image(what.signal, what.grid)
    place = grid_of(grid, what)
    record = mask_in(what)
    array: NDArray[Any] = np.asarray(what) if record is None else record.array
    if place is None or array.shape[-3:] != place.shape or array.ndim not in (3, 4):
        has = "no grid" if place is None else f"a grid of {place.shape}"
        raise ArgumentError(
            f"expected an array (z, y, x) and its grid, but got shape {array.shape} and {has}: "
            "pass grid=case.grid"
        )
    return nifti_image(array, place)


def from_nibabel(image: "SpatialImage") -> Mask:
    """Convert a nibabel image to a mask; the axes ``(x, y, z)`` become ``(z, y, x)``.

    Parameters
    ----------
    image
        A nibabel image with one volume, in which 0 is background and one other value is foreground.

    Returns
    -------
    Mask
        The mask on the image's grid.

    Raises
    ------
    ArgumentError
        If `image` is not an image with one volume, or does not contain a mask.
    """
    if not hasattr(image, "dataobj") or not hasattr(image, "affine"):
        raise ArgumentError(
            f"expected the mask to be a nibabel image, but got {type(image).__name__}: open the "
            "file with `read_mask(path)`"
        )
    grid, voxels = grid_and_voxels(image)
    return Mask(grid, mask_array(voxels, "the image", grid))
