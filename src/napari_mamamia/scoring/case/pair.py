"""Two mask files on their joint crop, as a profile sees them."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap, foreground
from napari_mamamia.metrics.diameter import longest_diameter_mm
from napari_mamamia.metrics.volume import volume_mm3
from napari_mamamia.scoring.case.profiles import Foreground, Profile

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


def pair_of(
    reference: LabelMap, prediction: LabelMap, profile: Profile, label: float | None = None
) -> MaskPair:
    """Return both masks on their joint crop; they must have grids of one shape.

    `label` is the chosen label of profiles that let the user choose, None for all foreground.
    """
    box = reference.box.union(prediction.box)
    if not box.is_empty:
        box = box.grown((1, 1, 1), reference.grid.shape)
    values_r, values_p = reference.cut(box), prediction.cut(box)
    return MaskPair(
        box,
        _as_bool(_selected(values_r, profile.overlap_foreground, label)),
        _as_bool(_selected(values_p, profile.overlap_foreground, label)),
        _selected(values_r, profile.distance_foreground, label),
        _selected(values_p, profile.distance_foreground, label),
    )


def foreground_volume_mm3(mask: LabelMap, profile: Profile, label: float | None = None) -> float:
    """Return the volume of what the profile's distances count as foreground, in mm3."""
    chosen = _selected(mask.crop, profile.distance_foreground, label) != 0
    return volume_mm3(chosen, mask.grid.matrix_mm)


def foreground_diameter_mm(mask: LabelMap, profile: Profile, label: float | None = None) -> float:
    """Return the longest diameter of what the profile's distances count as foreground, in mm."""
    chosen = _selected(mask.crop, profile.distance_foreground, label) != 0
    return longest_diameter_mm(chosen, mask.grid.matrix_mm)


def foreground_of(
    values: NDArray[Any], profile: Profile, label: float | None = None
) -> NDArray[np.bool_]:
    """Return what the profile's Dice counts as foreground of raw label values, bool."""
    chosen: NDArray[np.bool_] = _selected(values, profile.overlap_foreground, label) != 0
    return chosen


def listed_values(mask: LabelMap) -> str:
    """Return the first few distinct values of a mask that are not 0, such as "1, 2"; "" if none."""
    values = mask.values
    listed = ", ".join(f"{value:g}" for value in values[:_VALUES_LISTED])
    return f"{listed}, ..." if len(values) > _VALUES_LISTED else listed


def _as_bool(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where values are not 0; bool arrays as they are."""
    return values if values.dtype == np.bool_ else values != 0


def _selected(values: NDArray[Any], rule: Foreground, label: float | None) -> NDArray[Any]:
    """Return the foreground of raw values: bool, or uint8 labels under `Foreground.UINT8`."""
    if rule is Foreground.CHOSEN_LABEL:
        return foreground(values, label)
    if rule is Foreground.ONE:
        ones: NDArray[np.bool_] = values == 1
        return ones
    with np.errstate(invalid="ignore"):
        return values.astype(np.uint8)
