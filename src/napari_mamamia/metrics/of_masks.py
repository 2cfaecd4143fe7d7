"""The public metrics of two masks on one grid (``mm.metrics``).

Each function takes the reference first and the prediction second. Swapping the masks changes only
the lesion counts and the metrics of a single mask. A mask is an array ``(z, y, x)`` or ``(y, x)``,
or a `Mask`. The values are identical to those of `CaseScore` under the profile `clinical`. NormHD
depends on the profile; ``mm.score`` computes it.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import ArgumentError, GridMismatchError
from napari_mamamia.core.grid import Grid, require_same_grid
from napari_mamamia.core.mask_arrays import MaskLike, grid_of, mask_array, mask_in
from napari_mamamia.metrics import diameter, lesions, overlap, surface, volume
from napari_mamamia.metrics.compared import compare_masks
from napari_mamamia.metrics.crop import joint_crop
from napari_mamamia.metrics.lesions import LesionCounts
from napari_mamamia.metrics.registry import pair_values, prediction_values, reference_values
from napari_mamamia.metrics.surface import ContourRule, SurfaceDistances, surface_distances

Spacing: TypeAlias = Sequence[float]
"""Distances between voxel centres in mm along the axes of an array, (z, y, x) or (y, x)."""


def measure(
    reference: MaskLike,
    prediction: MaskLike,
    grid: Grid | None = None,
    *,
    spacing: Spacing | None = None,
) -> dict[str, float]:
    """Return all metrics of two masks by name, such as "dsc".

    Parameters
    ----------
    reference, prediction
        The two masks, as in `dice`.
    grid
        The grid of the masks, which may be omitted if one mask is a `Mask` with its own grid.
    spacing
        The spacing in mm along the array axes, (z, y, x) or (y, x), if there is no grid. A single
        slice counts as 1 mm thick.

    Returns
    -------
    dict of str to float
        The values by column name of ``mm.score(...).cases`` (docs/methods/case_metrics.md);
        undefined values are NaN.

    Raises
    ------
    ArgumentError
        If an argument is not a mask, or neither a grid nor a spacing is passed.
    GridMismatchError
        If the masks are on different grids.

    Examples
    --------
    >>> a = np.array([[[True, True, False]]])
    >>> b = np.array([[[False, True, False]]])
    >>> values = measure(a, b, Grid.of_spacing((1, 1, 3), (2.0, 0.5, 0.75)))
    >>> values["iou"], values["hausdorff_mm"], values["volume_reference_mm3"]
    (0.5, 0.75, 1.5)
    """
    grid, (reference, prediction) = _place(grid, spacing, reference, prediction)
    matrix_mm = _require_grid(grid, reference, prediction).matrix_mm
    one, other = joint_crop(*_convert_pair(reference, prediction, grid))
    values = pair_values(compare_masks(one, other, matrix_mm))
    return values | reference_values(one, matrix_mm) | prediction_values(other, matrix_mm)


def dice(
    reference: MaskLike,
    prediction: MaskLike,
    grid: Grid | None = None,
    *,
    spacing: Spacing | None = None,
) -> float:
    """Return the Dice coefficient of two masks, from 0 to 1; NaN if both are empty.

    It is twice the number of common voxels divided by the sum of the voxels in both masks.

    Parameters
    ----------
    reference, prediction
        The masks: boolean arrays ``(z, y, x)``, integer arrays in which 0 is background and one
        other value is foreground, `Mask` objects, or predictions.
    grid
        The grid of both masks. Without a grid, only the shapes are compared.
    spacing
        As in `measure`; it does not affect this metric.

    Returns
    -------
    float
        The coefficient from 0 (no overlap) to 1 (identical); NaN if both masks are empty.

    Raises
    ------
    ArgumentError
        If an argument is not a mask, but has NaN, probabilities, an image or several labels.
    GridMismatchError
        If the masks are on different grids.

    Examples
    --------
    >>> a = np.array([[[True, True, False]]])
    >>> b = np.array([[[False, True, False]]])
    >>> dice(a, b) == 2 / 3
    True
    """
    grid, (reference, prediction) = _place(grid, spacing, reference, prediction)
    return overlap.dice(*_convert_pair(reference, prediction, grid))


def iou(
    reference: MaskLike,
    prediction: MaskLike,
    grid: Grid | None = None,
    *,
    spacing: Spacing | None = None,
) -> float:
    """Return the intersection over union of two masks, from 0 to 1; NaN if both are empty.

    Parameters
    ----------
    reference, prediction, grid, spacing
        As in `dice`.

    Returns
    -------
    float
        The value from 0 (no overlap) to 1 (identical); NaN if both masks are empty.

    Raises
    ------
    ArgumentError, GridMismatchError
        As in `dice`.
    """
    grid, (reference, prediction) = _place(grid, spacing, reference, prediction)
    return overlap.iou(*_convert_pair(reference, prediction, grid))


def hausdorff95_mm(
    reference: MaskLike,
    prediction: MaskLike,
    grid: Grid | None = None,
    *,
    spacing: Spacing | None = None,
) -> float:
    """Return the 95th percentile Hausdorff distance of two masks in mm.

    It is the larger of the two directed 95th percentiles of the distances between contour voxels,
    from voxel centre to voxel centre. The full affine is used, so sheared and oblique grids are
    measured correctly.

    Parameters
    ----------
    reference, prediction
        As in `dice`.
    grid
        The grid of the masks, which may be omitted if one mask is a `Mask` with its own grid.
    spacing
        The spacing in mm along the array axes, (z, y, x) or (y, x), if there is no grid. A single
        slice counts as 1 mm thick.

    Returns
    -------
    float
        The distance in mm; NaN unless both masks have a contour.

    Raises
    ------
    ArgumentError
        As in `dice`, and if neither a grid nor a spacing is passed.
    GridMismatchError

    Examples
    --------
    >>> a, b = np.zeros((2, 1, 3, 5), bool)
    >>> a[0, 1, 1], b[0, 1, 3] = True, True
    >>> hausdorff95_mm(a, b, Grid.of_spacing((1, 3, 5), (2.0, 0.5, 0.75)))
    1.5
    """
    grid, (reference, prediction) = _place(grid, spacing, reference, prediction)
    return surface.hausdorff95(_distances_mm(reference, prediction, grid))


def hausdorff95_voxels(
    reference: MaskLike,
    prediction: MaskLike,
    grid: Grid | None = None,
    *,
    spacing: Spacing | None = None,
) -> float:
    """Return the 95th percentile Hausdorff distance in voxels, as the challenge's code computes it.

    Spacing is ignored, and the border of the image is not a contour.

    Parameters
    ----------
    reference, prediction, grid, spacing
        As in `dice`.

    Returns
    -------
    float
        The distance in voxels; NaN unless both masks have a contour.

    Raises
    ------
    ArgumentError, GridMismatchError
        As in `dice`.
    """
    grid, (reference, prediction) = _place(grid, spacing, reference, prediction)
    pair = _convert_pair(reference, prediction, grid)
    return surface.hausdorff95(surface_distances(*pair, None, ContourRule.OPEN))


def hausdorff_mm(
    reference: MaskLike,
    prediction: MaskLike,
    grid: Grid | None = None,
    *,
    spacing: Spacing | None = None,
) -> float:
    """Return the Hausdorff distance of two masks in mm, which is the largest contour distance.

    Parameters
    ----------
    reference, prediction, grid, spacing
        As in `hausdorff95_mm`.

    Returns
    -------
    float
        The distance in mm; NaN unless both masks have a contour.

    Raises
    ------
    ArgumentError, GridMismatchError
        As in `hausdorff95_mm`.
    """
    grid, (reference, prediction) = _place(grid, spacing, reference, prediction)
    return surface.hausdorff(_distances_mm(reference, prediction, grid))


def assd_mm(
    reference: MaskLike,
    prediction: MaskLike,
    grid: Grid | None = None,
    *,
    spacing: Spacing | None = None,
) -> float:
    """Return the average symmetric surface distance of two masks in mm.

    Parameters
    ----------
    reference, prediction, grid, spacing
        As in `hausdorff95_mm`.

    Returns
    -------
    float
        The mean distance in mm over the contour voxels of both masks; NaN unless both masks have a
        contour.

    Raises
    ------
    ArgumentError, GridMismatchError
        As in `hausdorff95_mm`.
    """
    grid, (reference, prediction) = _place(grid, spacing, reference, prediction)
    return surface.assd(_distances_mm(reference, prediction, grid))


def nsd(
    reference: MaskLike,
    prediction: MaskLike,
    grid: Grid | None = None,
    tolerance_mm: float = 1.0,
    *,
    spacing: Spacing | None = None,
) -> float:
    """Return the normalised surface distance (surface Dice) of two masks, from 0 to 1.

    The value is the fraction of all contour voxels that are within `tolerance_mm` of the other
    mask's contour.

    Parameters
    ----------
    reference, prediction, grid, spacing
        As in `hausdorff95_mm`.
    tolerance_mm
        The largest accepted distance in mm, which must not be negative.

    Returns
    -------
    float
        The value from 0 to 1; NaN unless both masks have a contour.

    Raises
    ------
    ArgumentError
        As in `hausdorff95_mm`, and if `tolerance_mm` is negative.
    GridMismatchError
    """
    if not tolerance_mm >= 0:
        raise ArgumentError(
            f"expected the tolerance to be 0 mm or above, but got {tolerance_mm}; pass a value "
            "such as 1.0"
        )
    grid, (reference, prediction) = _place(grid, spacing, reference, prediction)
    return surface.nsd(_distances_mm(reference, prediction, grid), tolerance_mm)


def volume_mm3(
    mask: MaskLike, grid: Grid | None = None, *, spacing: Spacing | None = None
) -> float:
    """Return the volume of one mask in mm3; 0 for an empty mask.

    Parameters
    ----------
    mask
        The mask, as `reference` in `dice`.
    grid
        The grid of the mask, which may be omitted if `mask` is a `Mask`.
    spacing
        As in `measure`.

    Returns
    -------
    float
        The number of voxels times the volume of a voxel in mm3.

    Raises
    ------
    ArgumentError, GridMismatchError
        As in `dice`; also `ArgumentError` if neither a grid nor a spacing is passed.
    """
    grid, (mask,) = _place(grid, spacing, mask)
    matrix_mm = _require_grid(grid, mask).matrix_mm
    return volume.volume_mm3(mask_array(mask, "the mask", grid), matrix_mm)


def longest_diameter_mm(
    mask: MaskLike, grid: Grid | None = None, *, spacing: Spacing | None = None
) -> float:
    """Return the largest distance between two voxels of a mask in mm; NaN for an empty mask.

    All components of the mask are measured together.

    Parameters
    ----------
    mask, grid, spacing
        As in `volume_mm3`.

    Returns
    -------
    float
        The distance between voxel centres in mm; 0 for a single voxel, NaN for an empty mask.

    Raises
    ------
    ArgumentError, GridMismatchError
        As in `volume_mm3`.
    """
    grid, (mask,) = _place(grid, spacing, mask)
    matrix_mm = _require_grid(grid, mask).matrix_mm
    return diameter.longest_diameter_mm(mask_array(mask, "the mask", grid), matrix_mm)


def any_overlap_lesion_counts(
    reference: MaskLike,
    prediction: MaskLike,
    grid: Grid | None = None,
    *,
    spacing: Spacing | None = None,
) -> LesionCounts:
    """Return the numbers of found, missed and false lesions; all are 0 for empty masks.

    A lesion is a 26-connected component; one common voxel is enough for it to be found.

    Parameters
    ----------
    reference, prediction, grid, spacing
        As in `dice`.

    Returns
    -------
    LesionCounts
        The numbers of ``found`` and ``missed`` lesions of the reference, and of ``false`` lesions
        of the prediction.

    Raises
    ------
    ArgumentError, GridMismatchError
        As in `dice`.

    Examples
    --------
    >>> reference = np.array([[[1, 1, 0, 0, 1, 0, 0]]])
    >>> prediction = np.array([[[0, 1, 0, 0, 0, 0, 1]]])
    >>> any_overlap_lesion_counts(reference, prediction)
    LesionCounts(found=1, missed=1, false=1)
    """
    grid, (reference, prediction) = _place(grid, spacing, reference, prediction)
    return lesions.any_overlap_lesion_counts(*_convert_pair(reference, prediction, grid))


lesion_counts = any_overlap_lesion_counts
"""Former name of `any_overlap_lesion_counts`, which did not state the matching rule."""


def _place(
    grid: Grid | None, spacing: Spacing | None, *masks: MaskLike
) -> tuple[Grid | None, tuple[MaskLike, ...]]:
    """Return the grid defined by a spacing, and the masks, with 2D masks as one-slice volumes.

    Raises
    ------
    ArgumentError
        If both a grid and a spacing are passed, or the spacing is not one positive number for each
        axis of the masks.
    """
    shapes = [np.shape(mask) for mask in masks if isinstance(mask, np.ndarray)]
    is_slice = len(shapes) == len(masks) and all(len(shape) == 2 for shape in shapes)
    volumes = tuple(np.asarray(mask)[np.newaxis] for mask in masks) if is_slice else masks
    if spacing is None:
        return grid, volumes
    if grid is not None or not shapes:
        raise ArgumentError(
            "expected spacing only with arrays that have no grid, but got a grid or a Mask too: "
            "omit spacing"
        )
    numbers = tuple(float(number) for number in np.ravel(spacing))
    if len(numbers) != len(shapes[0]) or not all(np.isfinite(n) and n > 0 for n in numbers):
        raise ArgumentError(
            f"expected spacing to be {len(shapes[0])} positive numbers, but got {spacing!r}: pass "
            "mm in the order of the array's axes, (z, y, x) or (y, x)"
        )
    shape = shapes[0] if len(shapes[0]) == 3 else (1, *shapes[0])
    z, y, x = numbers if len(numbers) == 3 else (1.0, *numbers)
    return Grid.of_spacing((shape[0], shape[1], shape[2]), (z, y, x)), volumes


def _distances_mm(reference: MaskLike, prediction: MaskLike, grid: Grid | None) -> SurfaceDistances:
    matrix_mm = _require_grid(grid, reference, prediction).matrix_mm
    return surface_distances(*_convert_pair(reference, prediction, grid), matrix_mm)


def _convert_pair(
    reference: MaskLike, prediction: MaskLike, grid: Grid | None
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return both masks as Boolean arrays; masks with known grids must be on the same grid."""
    common = grid_of(grid, reference, prediction)
    reference_mask, other_own = mask_in(reference), mask_in(prediction)
    if reference_mask is not None and other_own is not None:
        require_same_grid(reference_mask.grid, other_own.grid, "the reference", "the prediction")
    one = mask_array(reference, "the reference", common)
    other = mask_array(prediction, "the prediction", common)
    if one.shape != other.shape:
        raise GridMismatchError(
            f"expected the two masks to have the same shape, but got {one.shape} for the "
            f"reference and {other.shape} for the prediction (z, y, x); pass masks of the same "
            "case"
        )
    return one, other


def _require_grid(grid: Grid | None, *masks: MaskLike) -> Grid:
    place = grid_of(grid, *masks)
    if place is None:
        raise ArgumentError(
            "expected a grid for a measurement in mm, but got only arrays; pass `case.grid`, "
            "`Grid.of_spacing(array.shape, (z, y, x) in mm)` or `spacing=(z, y, x)`"
        )
    return place
