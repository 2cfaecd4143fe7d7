"""Distances between the contours of two masks, and the metrics derived from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.metrics.crop import joint_crop
from napari_mamamia.metrics.nearest import Units, nearest_in_units

_ROUNDING: Final = 1e-6
"""Fraction of a tolerance that is treated as rounding error.

Affines are float32: on an oblique grid a neighbour at 1 mm has a computed distance of 0.9999999 or
1.0000001 mm, and the fraction of voxels within 1 mm must not depend on that.
"""


class ContourRule(StrEnum):
    """Whether the border of the image counts as a contour of a mask that reaches it.

    Under both rules a contour voxel is a foreground voxel with a face neighbour that has a
    different value. `CLOSED`: background continues beyond the image, so a mask that reaches the
    border has a contour there. `OPEN`: nothing lies beyond the image, so the border is not a
    contour; a mask that fills the image has no contour.
    """

    CLOSED = "closed"
    OPEN = "open"


@dataclass(frozen=True, slots=True, eq=False)
class ContourPair:
    """The contour voxels of two masks on one block, computed once for all units.

    `reference` and `prediction` are voxel indices (n, 3) along (z, y, x). The other two arrays are
    true for voxels that belong to the contour of only one mask and therefore have a distance above
    0. `is_plain` is true if the contours are the same under both contour rules, and the same for
    labels as for their foreground. This is the case if there is at most one label and it does not
    touch the edge of the block.
    """

    reference: NDArray[np.intp]
    prediction: NDArray[np.intp]
    reference_apart: NDArray[np.bool_]
    prediction_apart: NDArray[np.bool_]
    is_plain: bool


@dataclass(frozen=True, slots=True, eq=False)
class SurfaceDistances:
    """Distances from each contour voxel to the nearest contour voxel of the other mask.

    Both arrays are float64, in array order of the contour voxels, in mm or in voxels. For a mask
    without a contour the array is empty, and the values of the other mask are infinite.
    """

    reference_to_prediction: NDArray[np.float64]
    prediction_to_reference: NDArray[np.float64]

    @property
    def is_defined(self) -> bool:
        """Whether both masks have a contour; otherwise every surface metric is NaN."""
        return bool(self.reference_to_prediction.size and self.prediction_to_reference.size)


def contour(values: NDArray[Any], rule: ContourRule) -> NDArray[np.bool_]:
    """Return the contour voxels of a mask or label array (z, y, x) as a bool array.

    Zero is background. Where two labels touch, the voxels of both labels are contour voxels.

    Parameters
    ----------
    values
        A boolean mask or integer labels (z, y, x).
    rule
        The rule for the edge of the image.
    """
    padded = np.zeros(tuple(n + 2 for n in values.shape), dtype=values.dtype)
    inner = (slice(1, -1),) * 3
    padded[inner] = values
    if rule is ContourRule.OPEN:
        _repeat_faces(padded)
    flat = padded.ravel()
    edge = np.zeros(flat.shape, dtype=np.bool_)
    # A step beyond the end of a row reaches the start of the next row. Both voxels are padding,
    # which is cut off below.
    for step in (padded.shape[1] * padded.shape[2], padded.shape[2], 1):
        differs = flat[step:] != flat[:-step]
        edge[step:] |= differs
        edge[:-step] |= differs
    edge &= flat != 0
    return np.ascontiguousarray(edge.reshape(padded.shape)[inner])


def surface_distances(
    reference: NDArray[Any],
    prediction: NDArray[Any],
    matrix_mm: NDArray[np.float64] | None = None,
    rule: ContourRule = ContourRule.CLOSED,
) -> SurfaceDistances:
    """Return the distances from each mask's contour to the other mask's, between voxel centres.

    Parameters
    ----------
    reference, prediction
        Masks (bool) or labels (integer, 0 is background) of the same shape (z, y, x): whole
        volumes, or
        equal crops in which foreground touches an edge only at the edge of the image.
    matrix_mm
        3x3 matrix with the steps along (z, y, x) in mm as columns (`Grid.matrix_mm`), which
        includes
        shear and obliqueness. None measures in voxels (index units).
    rule
        The rule for the edge of the image.

    Raises
    ------
    GridMismatchError
        If the shapes differ.
    ValueError
        If an array is not three-dimensional, or the matrix is not a finite 3x3 matrix.
    """
    if matrix_mm is not None and (matrix_mm.shape != (3, 3) or not np.isfinite(matrix_mm).all()):
        raise ValueError(f"expected matrix_mm to be a finite 3x3 matrix, but it is {matrix_mm!r}")
    contours = contour_pair(*joint_crop(reference, prediction), rule)
    return distances_between(contours, (matrix_mm,))[0]


def contour_pair(
    reference: NDArray[Any], prediction: NDArray[Any], rule: ContourRule
) -> ContourPair:
    """Return the contours of two masks or label arrays, cropped to a common block.

    Both arrays have the same shape (z, y, x). If foreground touches an edge of the block, that edge
    is an edge of the image (`joint_crop` cuts such a block).

    Parameters
    ----------
    reference, prediction
        Boolean masks or integer labels (z, y, x).
    rule
        The rule for the edge of the image.
    """
    # Because of the margin of one voxel, a mask touches an edge of its block only at the image
    # edge.
    own_r, own_p = (Box.around(a).grown((1, 1, 1), a.shape) for a in (reference, prediction))
    values_r, values_p = reference[own_r.slices], prediction[own_p.slices]
    edge_r, edge_p = contour(values_r, rule), contour(values_p, rule)
    return ContourPair(
        _list_places(edge_r, own_r),
        _list_places(edge_p, own_p),
        _find_apart(edge_r, own_r, edge_p, own_p),
        _find_apart(edge_p, own_p, edge_r, own_r),
        _is_plain(values_r) and _is_plain(values_p),
    )


def distances_between(
    contours: ContourPair, matrices_mm: Sequence[NDArray[np.float64] | None]
) -> tuple[SurfaceDistances, ...]:
    """Return the distances between two contours, in each of several units.

    Each entry of `matrices_mm` is a `matrix_mm` of `surface_distances`; None stands for voxels.

    Parameters
    ----------
    contours
        The contours of two masks.
    matrices_mm
        One `Grid.matrix_mm` for each unit; None for voxels.
    """
    units = Units.of(matrices_mm)
    there = _measure_distances(
        contours.reference, contours.reference_apart, contours.prediction, units
    )
    back = _measure_distances(
        contours.prediction, contours.prediction_apart, contours.reference, units
    )
    return tuple(SurfaceDistances(*both) for both in zip(there, back, strict=True))


def hausdorff95(distances: SurfaceDistances) -> float:
    """Return the larger of the two directed 95th percentiles of the contour distances.

    The result is NaN unless both masks have a contour. Percentiles are interpolated linearly
    between ranks. Source: D. P. Huttenlocher et al., IEEE TPAMI 15 (1993) 850, for ranked directed
    distances. Taking the larger of the two percentiles follows MONAI and the challenge's published
    scoring code (LidiaGarrucho/MAMA-MIA, commit bfc321a4).
    """
    if not distances.is_defined:
        return float("nan")
    there = np.percentile(distances.reference_to_prediction, 95)
    back = np.percentile(distances.prediction_to_reference, 95)
    return float(max(there, back))


def hausdorff(distances: SurfaceDistances) -> float:
    """Return the Hausdorff distance, which is the largest contour distance.

    The result is NaN unless both masks have a contour.
    """
    if not distances.is_defined:
        return float("nan")
    there, back = distances.reference_to_prediction, distances.prediction_to_reference
    return float(max(there.max(), back.max()))


def assd(distances: SurfaceDistances) -> float:
    """Return the average symmetric surface distance; NaN unless both masks have a contour.

    The distance is the mean over all contour voxels of both masks, so that the longer contour has
    more weight. Source: T. Heimann et al., IEEE TMI 28 (2009) 1251.
    """
    if not distances.is_defined:
        return float("nan")
    there, back = distances.reference_to_prediction, distances.prediction_to_reference
    return float((there.sum() + back.sum()) / (there.size + back.size))


def nsd(distances: SurfaceDistances, tolerance: float) -> float:
    """Return the fraction (0 to 1) of all contour voxels whose distance is at most `tolerance`.

    This is the normalised surface distance (surface Dice), weighted by number of voxels and not by
    area. The result is NaN unless both masks have a contour. Source: S. Nikolov et al., J Med
    Internet Res 23 (2021) e26151, for the area-weighted form.

    Parameters
    ----------
    distances
        The distances of two contours, in mm or voxels.
    tolerance
        Largest accepted distance, in the unit of `distances`.

    Raises
    ------
    ValueError
        If `tolerance` is negative or NaN.
    """
    # The condition is not `tolerance < 0`, which is false for NaN.
    if not tolerance >= 0:
        raise ValueError(f"expected the tolerance to be at least 0, but it is {tolerance}")
    if not distances.is_defined:
        return float("nan")
    there, back = distances.reference_to_prediction, distances.prediction_to_reference
    limit = tolerance * (1 + _ROUNDING)
    within = np.count_nonzero(there <= limit) + np.count_nonzero(back <= limit)
    return float(within / (there.size + back.size))


def _repeat_faces(padded: NDArray[Any]) -> None:
    """Fill the outermost layer with copies of the adjacent layer, so that the two never differ."""
    for axis in range(3):
        along = np.moveaxis(padded, axis, 0)
        along[0], along[-1] = along[1], along[-2]


def _is_plain(values: NDArray[Any]) -> bool:
    """Return whether there is at most one label and it does not touch the edge of the block."""
    faces = (np.moveaxis(values, axis, 0)[[0, -1]] for axis in range(3) if values.size)
    if any(face.any() for face in faces):
        return False
    if values.dtype == np.bool_ or not values.size:
        return True
    return bool(((values == 0) | (values == values.max())).all())


def _list_places(edge: NDArray[np.bool_], box: Box) -> NDArray[np.intp]:
    along = np.unravel_index(np.flatnonzero(edge), edge.shape)
    return np.stack(
        [indices + start for indices, start in zip(along, box.start, strict=True)], axis=1
    )


def _find_apart(
    edge: NDArray[np.bool_], box: Box, other: NDArray[np.bool_], other_box: Box
) -> NDArray[np.bool_]:
    """Return, for each contour voxel in `box`, whether it is absent from the other contour."""
    start = np.maximum(box.start, other_box.start)
    stop = np.maximum(np.minimum(box.stop, other_box.stop), start)
    here, there = (
        tuple(slice(a - o, b - o) for a, b, o in zip(start, stop, frame.start, strict=True))
        for frame in (box, other_box)
    )
    apart = np.ones(edge.shape, dtype=np.bool_)
    apart[here] = ~other[there]
    return apart[edge]


def _measure_distances(
    places: NDArray[np.intp],
    apart: NDArray[np.bool_],
    others: NDArray[np.intp],
    units: Units,
) -> list[NDArray[np.float64]]:
    """Return the distance of each voxel to the nearest of `others`; 0 where `apart` is false."""
    distances = []
    for nearest in nearest_in_units(places[apart], others, units):
        distances.append(np.zeros(len(places)))
        distances[-1][apart] = nearest
    return distances
