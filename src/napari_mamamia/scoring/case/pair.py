"""Crop two masks to their joint box under a profile, and measure them once."""

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap, foreground, is_soft
from napari_mamamia.core.errors import GridMismatchError
from napari_mamamia.core.grid import Grid, require_same_grid
from napari_mamamia.core.reorientation import reorientation_onto
from napari_mamamia.metrics.compared import ComparedMasks
from napari_mamamia.metrics.lesions import Parts, parts_of
from napari_mamamia.metrics.surface import (
    ContourPair,
    ContourRule,
    SurfaceDistances,
    contour_pair,
    distances_between,
)
from napari_mamamia.metrics.volume import volume_mm3
from napari_mamamia.scoring.case.profiles import Foreground, GridRule, Profile

_VALUES_LISTED: Final = 5


@dataclass(frozen=True, slots=True, eq=False)
class MaskPair:
    """Reference and prediction on `box`, their joint crop with a margin of one voxel.

    All arrays have the shape of the box. The first two are bool, for Dice and IoU. The last two are
    for distances: bool, or uint8 labels if the profile keeps labels apart.
    """

    box: Box
    overlap_reference: NDArray[np.bool_]
    overlap_prediction: NDArray[np.bool_]
    reference: NDArray[Any]
    prediction: NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredPair:
    """Measurements of a pair of masks on `grid`, shared by the score and the failure kinds.

    `mm` are the distances between `contours` under the contour rule CLOSED, `voxels` those under
    the rule OPEN. `lesions` and `parts` are the connected parts of the reference and of the
    prediction in the foreground that distances use.
    """

    pair: MaskPair
    grid: Grid
    contours: ContourPair
    mm: SurfaceDistances
    voxels: SurfaceDistances
    lesions: Parts
    parts: Parts

    @property
    def compared(self) -> ComparedMasks:
        """The input of the metrics: the foreground for Dice, and the distances."""
        masks = self.pair.overlap_reference, self.pair.overlap_prediction
        return ComparedMasks(*masks, self.grid.matrix_mm, self.mm, self.voxels)


def grid_problem(reference: Grid, prediction: Grid, profile: Profile) -> str:
    """Return why the profile does not allow comparing masks on the two grids, or ""."""
    if profile.grid_rule is GridRule.SAME_SHAPE and reference.shape == prediction.shape:
        return ""
    try:
        require_same_grid(reference, prediction, "the reference", "the prediction")
    except GridMismatchError as error:
        return str(error)
    return ""


def laid_on(reference: LabelMap, prediction: LabelMap, profile: Profile) -> LabelMap:
    """Return the prediction in the reference's axis order, if both use the same physical grid.

    Nothing is resampled: axes are only permuted and flipped. A prediction on another grid is
    returned unchanged, and so is any prediction under a profile that only compares shapes.
    """
    if profile.grid_rule is GridRule.SAME_SHAPE or prediction.grid.is_same_place(reference.grid):
        return prediction
    turn = reorientation_onto(prediction.grid, reference.grid)
    if turn is None:
        return prediction
    crop = turn.array(prediction.crop) if prediction.crop.size else prediction.crop
    return replace(prediction, grid=turn.target, box=turn.box(prediction.box), crop=crop)


def nothing_on(grid: Grid) -> LabelMap:
    """Return a label map without foreground, as a replacement for a missing mask."""
    return LabelMap(grid, Box.empty(), np.zeros((0, 0, 0), dtype=np.uint8))


def measure_pair(
    reference: LabelMap, prediction: LabelMap, profile: Profile, label: float | None = None
) -> MeasuredPair:
    """Return both masks with their distances and components; arguments are those of `pair_of`."""
    pair = pair_of(reference, prediction, profile, label)
    matrix_mm = reference.grid.matrix_mm
    foregrounds = pair.reference != 0, pair.prediction != 0
    opened = contour_pair(pair.reference, pair.prediction, ContourRule.OPEN)
    if opened.is_plain:
        closed = opened
        mm, voxels = distances_between(opened, (matrix_mm, None))
    else:
        closed = contour_pair(*foregrounds, ContourRule.CLOSED)
        (mm,) = distances_between(closed, (matrix_mm,))
        (voxels,) = distances_between(opened, (None,))
    lesions, parts = parts_of(foregrounds[0]), parts_of(foregrounds[1])
    return MeasuredPair(pair, reference.grid, closed, mm, voxels, lesions, parts)


def pair_of(
    reference: LabelMap, prediction: LabelMap, profile: Profile, label: float | None = None
) -> MaskPair:
    """Return both masks on their joint crop; their grids must have the same shape.

    `label` is the label to score under a profile that lets the user choose; None scores all
    foreground.
    """
    box = reference.box.union(prediction.box)
    if not box.is_empty:
        # The contour lies between foreground and background, so the crop needs a margin of
        # background.
        box = box.grown((1, 1, 1), reference.grid.shape)
    values_r, values_p = reference.cut(box), prediction.cut(box)
    return MaskPair(
        box,
        _as_bool(_select_foreground(values_r, profile.overlap_foreground, label)),
        _as_bool(_select_foreground(values_p, profile.overlap_foreground, label)),
        _select_foreground(values_r, profile.distance_foreground, label),
        _select_foreground(values_p, profile.distance_foreground, label),
    )


def touched_axes(mask: NDArray[Any], box: Box, shape: tuple[int, int, int]) -> list[str]:
    """Return the axes "z", "y", "x" along which a mask on the crop `box` reaches the image border.

    An axis of 1 voxel has no border.
    """
    touched = []
    for axis, letter in enumerate("zyx"):
        if shape[axis] == 1 or not mask.size:
            continue
        planes = np.moveaxis(mask, axis, 0)
        low = box.start[axis] == 0 and planes[0].any()
        if low or (box.stop[axis] == shape[axis] and planes[-1].any()):
            touched.append(letter)
    return touched


def foreground_volume_mm3(mask: LabelMap, profile: Profile, label: float | None = None) -> float:
    """Return the volume in mm3 of the foreground that the profile uses for distances."""
    return volume_mm3(measured_foreground(mask, profile, label), mask.grid.matrix_mm)


def measured_foreground(
    mask: LabelMap, profile: Profile, label: float | None = None
) -> NDArray[np.bool_]:
    """Return the foreground that the profile uses for distances, bool, on the mask's own crop."""
    return _as_bool(_select_foreground(mask.crop, profile.distance_foreground, label))


def foreground_of(
    values: NDArray[Any], profile: Profile, label: float | None = None
) -> NDArray[np.bool_]:
    """Return the foreground that the profile uses for Dice, bool, from raw label values."""
    chosen: NDArray[np.bool_] = _select_foreground(values, profile.overlap_foreground, label) != 0
    return chosen


def listed_values(mask: LabelMap) -> str:
    """Return the first few distinct non-zero values of a mask, such as "1, 2"; "" without any."""
    values = mask.values
    listed = ", ".join(f"{value:g}" for value in values[:_VALUES_LISTED])
    return f"{listed}, ..." if len(values) > _VALUES_LISTED else listed


def _as_bool(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether each value is non-zero; bool arrays are returned unchanged."""
    return values if values.dtype == np.bool_ else values != 0


def _select_foreground(values: NDArray[Any], rule: Foreground, label: float | None) -> NDArray[Any]:
    """Return the foreground of raw values: bool, or uint8 labels under `Foreground.UINT8`."""
    if rule is Foreground.CHOSEN_LABEL:
        return foreground(values, label)
    if rule is Foreground.ONE:
        return np.asarray(values == 1)
    if rule is Foreground.MASK:
        if is_soft(values):
            return foreground(values)
        present = values[values != 0]
        return np.asarray(values == (255 if present.size and (present == 255).all() else 1))
    return _wrap_to_uint8(values)


def _wrap_to_uint8(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Return values as C casts them to uint8: truncated, modulo 256; nan and infinity become 0.

    The conversion is explicit because C leaves the cast of floats outside 0 to 255 undefined, and
    processors differ.
    """
    if not np.issubdtype(values.dtype, np.floating):
        return values.astype(np.uint8)
    finite = np.where(np.isfinite(values), values, 0)
    return np.fmod(np.trunc(finite), 256).astype(np.int16).astype(np.uint8)
