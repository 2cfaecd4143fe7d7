"""The metrics by name, of two masks on one grid: the public door of this room.

Each takes the reference first, the prediction second; swapping them changes nothing but lesion
counts and what belongs to one mask. A mask is an array ``(z, y, x)`` or a `Mask`. Values are those
of `CaseScore` under the profile `clinical`, to the last bit. NormHD belongs to a profile, so it is
asked of `mm.score`.
"""

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


def measure(
    reference: MaskLike, prediction: MaskLike, grid: Grid | None = None
) -> dict[str, float]:
    """Return every metric of two masks by its name, such as "dsc", from one measurement of both.

    The names are the columns of ``mm.score(...).cases``, the table in docs/methods/case_metrics.md.
    Arguments and errors are those of `hausdorff95_mm`; nan where a metric is undefined.

    Examples
    --------
    >>> a = np.array([[[True, True, False]]])
    >>> b = np.array([[[False, True, False]]])
    >>> found = measure(a, b, Grid.of_spacing((1, 1, 3), (2.0, 0.5, 0.75)))
    >>> found["iou"], found["hausdorff_mm"], found["volume_reference_mm3"]
    (0.5, 0.75, 1.5)
    """
    matrix_mm = _require_grid(grid, reference, prediction).matrix_mm
    one, other = joint_crop(*_convert_pair(reference, prediction, grid))
    values = pair_values(compare_masks(one, other, matrix_mm))
    return values | reference_values(one, matrix_mm) | prediction_values(other, matrix_mm)


def dice(reference: MaskLike, prediction: MaskLike, grid: Grid | None = None) -> float:
    """Return twice the shared voxels over the sum of both, 0 to 1; nan if both masks are empty.

    Parameters
    ----------
    reference, prediction
        Bool ``(z, y, x)``, or whole numbers of which 0 is background and one other is foreground,
        a `Mask`, or a prediction.
    grid
        The grid of both; only their shapes count without it.

    Raises
    ------
    ArgumentError
        If one is no mask: NaN, probabilities, an image, several labels.
    GridMismatchError
        If they do not lie on one grid.

    Examples
    --------
    >>> a = np.array([[[True, True, False]]])
    >>> b = np.array([[[False, True, False]]])
    >>> dice(a, b) == 2 / 3
    True
    """
    return overlap.dice(*_convert_pair(reference, prediction, grid))


def iou(reference: MaskLike, prediction: MaskLike, grid: Grid | None = None) -> float:
    """Return the shared voxels over those of either, 0 to 1; nan if both masks are empty.

    Arguments and errors are those of `dice`.
    """
    return overlap.iou(*_convert_pair(reference, prediction, grid))


def hausdorff95_mm(reference: MaskLike, prediction: MaskLike, grid: Grid | None = None) -> float:
    """Return the 95th percentile of the distances between the contours, mm; nan without two.

    The larger of both directions, between voxel centres, by the whole affine: sheared and oblique
    grids are measured truly.

    Parameters
    ----------
    reference, prediction
        As in `dice`.
    grid
        The grid of both; may be left out where one is a `Mask`, which knows its own.

    Raises
    ------
    ArgumentError, GridMismatchError
        As `dice`; also if nobody says which grid it is.

    Examples
    --------
    >>> a, b = np.zeros((2, 1, 3, 5), bool)
    >>> a[0, 1, 1], b[0, 1, 3] = True, True
    >>> hausdorff95_mm(a, b, Grid.of_spacing((1, 3, 5), (2.0, 0.5, 0.75)))
    1.5
    """
    return surface.hausdorff95(_distances_mm(reference, prediction, grid))


def hausdorff95_voxels(
    reference: MaskLike, prediction: MaskLike, grid: Grid | None = None
) -> float:
    """Return the same in voxel index units, as the challenge's published code does; nan without.

    Spacing is ignored, and the image's border is no contour. Arguments and errors as `dice`.
    """
    pair = _convert_pair(reference, prediction, grid)
    return surface.hausdorff95(surface_distances(*pair, None, ContourRule.OPEN))


def hausdorff_mm(reference: MaskLike, prediction: MaskLike, grid: Grid | None = None) -> float:
    """Return the largest distance between the contours, mm; nan without two.

    Arguments and errors as `hausdorff95_mm`.
    """
    return surface.hausdorff(_distances_mm(reference, prediction, grid))


def assd_mm(reference: MaskLike, prediction: MaskLike, grid: Grid | None = None) -> float:
    """Return the mean distance between the contours, both ways together, mm; nan without two.

    Arguments and errors as `hausdorff95_mm`.
    """
    return surface.assd(_distances_mm(reference, prediction, grid))


def nsd(
    reference: MaskLike,
    prediction: MaskLike,
    grid: Grid | None = None,
    tolerance_mm: float = 1.0,
) -> float:
    """Return the share of contour voxels within `tolerance_mm` of the other contour, 0 to 1.

    nan without two contours. Arguments and errors as `hausdorff95_mm`; also `ArgumentError` for a
    negative tolerance.
    """
    if not tolerance_mm >= 0:
        raise ArgumentError(
            f"expected a tolerance of 0 mm or more, got {tolerance_mm}: give one such as 1.0"
        )
    return surface.nsd(_distances_mm(reference, prediction, grid), tolerance_mm)


def volume_mm3(mask: MaskLike, grid: Grid | None = None) -> float:
    """Return the volume of one mask, mm3; 0 for an empty one.

    `grid` may be left out for a `Mask`. Errors as `dice`.
    """
    matrix_mm = _require_grid(grid, mask).matrix_mm
    return volume.volume_mm3(mask_array(mask, "the mask", grid), matrix_mm)


def longest_diameter_mm(mask: MaskLike, grid: Grid | None = None) -> float:
    """Return the largest distance between two voxels of one mask, mm; nan for an empty one.

    All its parts count together. `grid` may be left out for a `Mask`. Errors as `dice`.
    """
    matrix_mm = _require_grid(grid, mask).matrix_mm
    return diameter.longest_diameter_mm(mask_array(mask, "the mask", grid), matrix_mm)


def any_overlap_lesion_counts(
    reference: MaskLike, prediction: MaskLike, grid: Grid | None = None
) -> LesionCounts:
    """Return how many lesions were found, missed and falsely predicted; 0 for empty masks.

    A lesion is a connected part (26 neighbours), found by one shared voxel. Arguments and errors as
    `dice`.

    Examples
    --------
    >>> reference = np.array([[[1, 1, 0, 0, 1, 0, 0]]])
    >>> prediction = np.array([[[0, 1, 0, 0, 0, 0, 1]]])
    >>> any_overlap_lesion_counts(reference, prediction)
    LesionCounts(found=1, missed=1, false=1)
    """
    return lesions.any_overlap_lesion_counts(*_convert_pair(reference, prediction, grid))


lesion_counts = any_overlap_lesion_counts
"""The same by its earlier name, which does not say its rule."""


def _distances_mm(reference: MaskLike, prediction: MaskLike, grid: Grid | None) -> SurfaceDistances:
    matrix_mm = _require_grid(grid, reference, prediction).matrix_mm
    return surface_distances(*_convert_pair(reference, prediction, grid), matrix_mm)


def _convert_pair(
    reference: MaskLike, prediction: MaskLike, grid: Grid | None
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return both masks as bool arrays, on one grid as far as anybody says which."""
    common = grid_of(grid, reference, prediction)
    reference_mask, other_own = mask_in(reference), mask_in(prediction)
    if reference_mask is not None and other_own is not None:
        require_same_grid(reference_mask.grid, other_own.grid, "the reference", "the prediction")
    one = mask_array(reference, "the reference", common)
    other = mask_array(prediction, "the prediction", common)
    if one.shape != other.shape:
        raise GridMismatchError(
            f"expected two masks of one shape, got {one.shape} for the reference and "
            f"{other.shape} for the prediction (z, y, x): pass masks of one case"
        )
    return one, other


def _require_grid(grid: Grid | None, *masks: MaskLike) -> Grid:
    place = grid_of(grid, *masks)
    if place is None:
        raise ArgumentError(
            "expected a grid, since this is measured in mm, got arrays alone: pass  case.grid  or  "
            "Grid.of_spacing(array.shape, (z, y, x) in mm)"
        )
    return place
