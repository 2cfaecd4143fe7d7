"""Two mask files on their joint crop, as a profile sees them, and what is measured of them once."""

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
    """The reference and the prediction on `box`, the joint crop with a margin of one voxel.

    All arrays have the box's shape. The first two are bool, for Dice and IoU. The last two are for
    distances: bool, or uint8 labels where the profile keeps labels apart.
    """

    box: Box
    overlap_reference: NDArray[np.bool_]
    overlap_prediction: NDArray[np.bool_]
    reference: NDArray[Any]
    prediction: NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredPair:
    """A pair of masks on `grid`, measured once for the score and for why the case failed.

    `mm` are the distances between `contours`, those of the rule CLOSED; `voxels` those of the rule
    OPEN. `lesions` and `parts` are the parts of the reference and of the prediction, of what
    distances count as foreground.
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
        """What metrics are computed of: Dice's foreground, and the distances."""
        masks = self.pair.overlap_reference, self.pair.overlap_prediction
        return ComparedMasks(*masks, self.grid.matrix_mm, self.mm, self.voxels)


def grid_problem(reference: Grid, prediction: Grid, profile: Profile) -> str:
    """Return why the profile does not compare masks on the two grids, "" if it does."""
    if profile.grid_rule is GridRule.SAME_SHAPE and reference.shape == prediction.shape:
        return ""
    try:
        require_same_grid(reference, prediction, "the reference", "the prediction")
    except GridMismatchError as error:
        return str(error)
    return ""


def laid_on(reference: LabelMap, prediction: LabelMap, profile: Profile) -> LabelMap:
    """Return the prediction with its axes as the reference's, where it is the same physical grid.

    Nothing is resampled: axes are exchanged and turned. A prediction on another grid, and any under
    a profile that looks at shapes alone, comes back as it is.
    """
    if profile.grid_rule is GridRule.SAME_SHAPE or prediction.grid.is_same_place(reference.grid):
        return prediction
    turn = reorientation_onto(prediction.grid, reference.grid)
    if turn is None:
        return prediction
    crop = turn.array(prediction.crop) if prediction.crop.size else prediction.crop
    return replace(prediction, grid=turn.target, box=turn.box(prediction.box), crop=crop)


def nothing_on(grid: Grid) -> LabelMap:
    """Return the labels of a mask without foreground, which stands for one that is missing."""
    return LabelMap(grid, Box.empty(), np.zeros((0, 0, 0), dtype=np.uint8))


def measure_pair(
    reference: LabelMap, prediction: LabelMap, profile: Profile, label: float | None = None
) -> MeasuredPair:
    """Return both masks with their distances and parts; arguments are those of `pair_of`."""
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
    """Return both masks on their joint crop; they must have grids of one shape.

    `label` is the chosen label of profiles that let the user choose, None for all foreground.
    """
    box = reference.box.union(prediction.box)
    if not box.is_empty:
        # A contour is where foreground meets background, which the crop must show all around.
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
    """Return the axes "z", "y", "x" along which foreground on the crop `box` reaches the border.

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
    """Return the volume of what the profile's distances count as foreground, in mm3."""
    return volume_mm3(measured_foreground(mask, profile, label), mask.grid.matrix_mm)


def measured_foreground(
    mask: LabelMap, profile: Profile, label: float | None = None
) -> NDArray[np.bool_]:
    """Return what the profile's distances count as foreground, bool, on the mask's own crop."""
    return _as_bool(_select_foreground(mask.crop, profile.distance_foreground, label))


def foreground_of(
    values: NDArray[Any], profile: Profile, label: float | None = None
) -> NDArray[np.bool_]:
    """Return what the profile's Dice counts as foreground of raw label values, bool."""
    chosen: NDArray[np.bool_] = _select_foreground(values, profile.overlap_foreground, label) != 0
    return chosen


def listed_values(mask: LabelMap) -> str:
    """Return the first few distinct values of a mask that are not 0, such as "1, 2"; "" if none."""
    values = mask.values
    listed = ", ".join(f"{value:g}" for value in values[:_VALUES_LISTED])
    return f"{listed}, ..." if len(values) > _VALUES_LISTED else listed


def _as_bool(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where values are not 0; bool arrays as they are."""
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
    """Return values as C converts them: cut to whole numbers, modulo 256; 0 for nan and endless.

    Written out for floats, which C leaves undefined beyond 0 to 255: processors differ.
    """
    if not np.issubdtype(values.dtype, np.floating):
        return values.astype(np.uint8)
    finite = np.where(np.isfinite(values), values, 0)
    return np.fmod(np.trunc(finite), 256).astype(np.int16).astype(np.uint8)
