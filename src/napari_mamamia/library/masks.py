"""Read and write masks as files, and convert them to and from nibabel images."""

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
    """Return the mask in a file of any format with its grid.

    Formats are NIfTI (also ``.hdr`` with ``.img``), NRRD, ``.seg.nrrd`` of 3D Slicer, MetaImage,
    and with the extra ``dicom`` DICOM SEG.

    Parameters
    ----------
    path
        The file.
    label
        The value that is foreground, or the name of the segment; by default any value above 0, in a
        floating-point file 0.5 and more.
    grid
        The grid that the mask must have, such as ``case.grid``. DICOM SEG and ``.seg.nrrd`` may
        store a
        part of their image, which is placed on it; without it the mask is on the grid of that part.

    Returns
    -------
    Mask
        ``mask.array`` is bool ``(z, y, x)``, ``mask.grid`` gives the position of its voxels.

    Raises
    ------
    FormatError
        If the file is missing, damaged or of another format, or has no segment of that name.
    CaseError
        If it holds an image.
    GridMismatchError
        If it does not lie on `grid`.
    MissingExtraError
        If it is a DICOM SEG and the extra ``dicom`` is not installed.

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
    """Write a mask as 0 and 1 to ``.nii.gz``, ``.nii`` or ``.nrrd``; read back and compared.

    Parameters
    ----------
    mask
        A `Mask`, or an array ``(z, y, x)`` with its `grid`, such as ``case.grid``.
        On a grid that was read from NIfTI the file gets that file's geometry byte for byte. For a
        prediction, ``ID.json`` beside it holds its provenance.
    path
        The file to make.
    grid
        The grid of an array; not needed for a `Mask`.
    overwrite
        Whether to replace an existing file.

    Raises
    ------
    ArgumentError, GridMismatchError
        If `mask` is no mask, or has no grid.
    SaveConflictError
        If `path` exists and `overwrite` is off.
    SaveError
        If the system refuses, or the file does not read back equal.
    """
    place = grid_of(grid, mask)
    if place is None:
        raise ArgumentError(
            "expected a grid for an array, got none: pass  grid=case.grid, which gives the "
            "position of its voxels"
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
    """Return a case, a mask or any volume as a nibabel image, with the file's own geometry.

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
        Its axes are ``(x, y, z)`` or ``(x, y, z, phase)``; voxels are a view if NIfTI supports
        their type, bool becomes uint8.

    Raises
    ------
    ArgumentError
        If an array has no grid, or another shape.
    """
    if isinstance(what, Case):
        return nifti_image(what.signal, what.grid)
    place = grid_of(grid, what)
    record = mask_in(what)
    array: NDArray[Any] = np.asarray(what) if record is None else record.array
    if place is None or array.shape[-3:] != place.shape or array.ndim not in (3, 4):
        has = "no grid" if place is None else f"a grid of {place.shape}"
        raise ArgumentError(
            f"expected an array (z, y, x) and its grid, got shape {array.shape} and {has}: pass "
            "grid=case.grid"
        )
    return nifti_image(array, place)


def from_nibabel(image: "SpatialImage") -> Mask:
    """Return the mask in a nibabel image; its axes ``(x, y, z)`` become ``(z, y, x)``.

    Parameters
    ----------
    image
        A nibabel image of one volume: 0 is background, one other value foreground.

    Returns
    -------
    Mask
        The mask on the image's grid.

    Raises
    ------
    ArgumentError
        If it is no image of one volume, or holds no mask.
    """
    if not hasattr(image, "dataobj") or not hasattr(image, "affine"):
        raise ArgumentError(
            f"expected a mask as a nibabel image, got {type(image).__name__}: open the file with  "
            "read_mask(path)"
        )
    grid, voxels = grid_and_voxels(image)
    return Mask(grid, mask_array(voxels, "the image", grid))
