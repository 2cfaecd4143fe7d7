"""The public metrics of two masks on one grid (``mm.metrics``).

Each function takes the reference first and the prediction second. Swapping them changes only the
lesion counts and the metrics of one mask. A mask is an array ``(z, y, x)`` or
``(y, x)``, or a `Mask`. The values
are those of `CaseScore` under the profile `clinical`, bit for bit. NormHD depends on the profile;
``mm.score`` computes it.
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
"""The mm between voxel centres along the axes of an array, (z, y, x) or (y, x)."""


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
        The grid of both masks; may be omitted if one is a `Mask`, which has its own.
    spacing
        In place of a grid: the mm along the axes of the arrays, (z, y, x), or (y, x) of one slice,
        which counts as 1 mm thick.

    Returns
    -------
    dict of str to float
        The columns of ``mm.score(...).cases`` (docs/methods/case_metrics.md); nan where a metric is
        undefined.

    Raises
    ------
    ArgumentError
        If an argument is not a mask, or no grid is given.
    GridMismatchError
        If the masks are not on one grid.

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
    """Return the Dice coefficient of two masks, 0 to 1; nan if both are empty.

    It is twice the number of shared voxels over the sum of both.

    Parameters
    ----------
    reference, prediction
        Bool ``(z, y, x)``; integers in which 0 is background and one other value is foreground; a
        `Mask`; or a prediction.
    grid
        The grid of both masks; without it only the shapes are compared.
    spacing
        Accepted as by `measure`; it changes nothing here.

    Returns
    -------
    float
        0 (no overlap) to 1 (identical); nan if both masks are empty.

    Raises
    ------
    ArgumentError
        If an argument is not a mask: it holds NaN, probabilities, an image or several labels.
    GridMismatchError
        If the masks are not on one grid.

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
    """Return the intersection over union of two masks, 0 to 1; nan if both are empty.

    Parameters
    ----------
    reference, prediction, grid, spacing
        As in `dice`.

    Returns
    -------
    float
        0 (no overlap) to 1 (identical); nan if both masks are empty.

    Raises
    ------
    ArgumentError, GridMismatchError
        As `dice`.
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
    from voxel centre to voxel centre. The whole affine is used, so that sheared and oblique grids
    are measured correctly.

    Parameters
    ----------
    reference, prediction
        As in `dice`.
    grid
        The grid of both masks; may be omitted if one is a `Mask`, which has its own.
    spacing
        In place of a grid: the mm along the axes of the arrays, (z, y, x), or (y, x) of one slice,
        which counts as 1 mm thick.

    Returns
    -------
    float
        Millimetres, 0 or more; nan unless both masks have a contour.

    Raises
    ------
    ArgumentError
        As `dice`; also if no grid is given.
    GridMismatchError
        As `dice`.

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
        Voxels, 0 or more; nan unless both masks have a contour.

    Raises
    ------
    ArgumentError, GridMismatchError
        As `dice`.
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
    """Return the Hausdorff distance of two masks in mm, the largest of all contour distances.

    Parameters
    ----------
    reference, prediction, grid, spacing
        As in `hausdorff95_mm`.

    Returns
    -------
    float
        Millimetres, 0 or more; nan unless both masks have a contour.

    Raises
    ------
    ArgumentError, GridMismatchError
        As `hausdorff95_mm`.
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
        Millimetres, the mean over the contour voxels of both masks; nan unless both have a contour.

    Raises
    ------
    ArgumentError, GridMismatchError
        As `hausdorff95_mm`.
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
    """Return the normalised surface distance (surface Dice) of two masks, 0 to 1.

    The value is the share of all contour voxels that lie within `tolerance_mm` of the other
    contour.

    Parameters
    ----------
    reference, prediction, grid, spacing
        As in `hausdorff95_mm`.
    tolerance_mm
        Largest accepted distance in mm, 0 or more.

    Returns
    -------
    float
        0 to 1; nan unless both masks have a contour.

    Raises
    ------
    ArgumentError
        As `hausdorff95_mm`; also if `tolerance_mm` is negative.
    GridMismatchError
        As `hausdorff95_mm`.
    """
    if not tolerance_mm >= 0:
        raise ArgumentError(
            f"expected a tolerance of 0 mm or above, but got {tolerance_mm}; pass a value such as "
            "1.0"
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
        As `reference` in `dice`.
    grid
        The grid of the mask; may be omitted if `mask` is a `Mask`.
    spacing
        As in `measure`.

    Returns
    -------
    float
        Number of voxels times the volume of a voxel, in mm3.

    Raises
    ------
    ArgumentError, GridMismatchError
        As `dice`; also `ArgumentError` if no grid is given.
    """
    grid, (mask,) = _place(grid, spacing, mask)
    matrix_mm = _require_grid(grid, mask).matrix_mm
    return volume.volume_mm3(mask_array(mask, "the mask", grid), matrix_mm)


def longest_diameter_mm(
    mask: MaskLike, grid: Grid | None = None, *, spacing: Spacing | None = None
) -> float:
    """Return the largest distance between two voxels of one mask in mm; nan for an empty mask.

    All components of the mask count together.

    Parameters
    ----------
    mask, grid, spacing
        As in `volume_mm3`.

    Returns
    -------
    float
        Millimetres between voxel centres; 0 for a single voxel, nan for an empty mask.

    Raises
    ------
    ArgumentError, GridMismatchError
        As `volume_mm3`.
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

    A lesion is a connected component (26 neighbours); one shared voxel is enough to find it.

    Parameters
    ----------
    reference, prediction, grid, spacing
        As in `dice`.

    Returns
    -------
    LesionCounts
        ``found`` and ``missed`` lesions of the reference, ``false`` ones of the prediction.

    Raises
    ------
    ArgumentError, GridMismatchError
        As `dice`.

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
"""Former name of `any_overlap_lesion_counts`, which did not name the matching rule."""


def _place(
    grid: Grid | None, spacing: Spacing | None, *masks: MaskLike
) -> tuple[Grid | None, tuple[MaskLike, ...]]:
    """Return the grid that a spacing defines, and the masks, 2D masks as volumes of one slice.

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
            "expected either a grid, or a spacing with arrays, got both or a Mask: leave spacing "
            "out"
        )
    numbers = tuple(float(number) for number in np.ravel(spacing))
    if len(numbers) != len(shapes[0]) or not all(np.isfinite(n) and n > 0 for n in numbers):
        raise ArgumentError(
            f"expected {len(shapes[0])} positive numbers as spacing, got {spacing!r}: pass mm in "
            "the order of the array's axes, (z, y, x) or (y, x)"
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
    """Return both masks as bool arrays; masks with known grids must share one grid."""
    common = grid_of(grid, reference, prediction)
    reference_mask, other_own = mask_in(reference), mask_in(prediction)
    if reference_mask is not None and other_own is not None:
        require_same_grid(reference_mask.grid, other_own.grid, "the reference", "the prediction")
    one = mask_array(reference, "the reference", common)
    other = mask_array(prediction, "the prediction", common)
    if one.shape != other.shape:
        raise GridMismatchError(
            f"expected two masks of one shape, but got {one.shape} for the reference and "
            f"{other.shape} for the prediction (z, y, x); pass masks of one case"
        )
    return one, other


def _require_grid(grid: Grid | None, *masks: MaskLike) -> Grid:
    place = grid_of(grid, *masks)
    if place is None:
        raise ArgumentError(
            "expected a grid for a measurement in mm, but got arrays alone; pass  case.grid,  "
            "Grid.of_spacing(array.shape, (z, y, x) in mm)  or  spacing=(z, y, x)"
        )
    return place
