"""What is unusual about a case that could be scored, in plain words."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap
from napari_mamamia.scoring.case.pair import MaskPair, listed_values
from napari_mamamia.scoring.case.profiles import Foreground, Profile

__all__ = ["case_warnings"]

_ROUNDING_VOXELS: Final = 0.01
"""Affines that differ by less, at the farthest corner, differ by float32 rounding (see
`core.grid.SAME_PLACE_VOXELS`) and are not worth a warning."""

_COUNTED: Final = {
    Foreground.CHOSEN_LABEL: "any value above 0 (in soft masks at least 0.5)",
    Foreground.ONE: "the value 1 only",
    Foreground.UINT8: "any value that is not 0 as uint8",
}


def case_warnings(
    reference: LabelMap,
    prediction: LabelMap,
    pair: MaskPair,
    profile: Profile,
    label: float | None = None,
) -> tuple[str, ...]:
    """Return plain sentences on unusual values, geometry and shape of a scored case."""
    masks = (
        ("reference", reference, pair.reference),
        ("prediction", prediction, pair.prediction),
    )
    found = [_values(name, labels, profile, label) for name, labels, _ in masks]
    found.append(_affines(reference, prediction))
    found += [_border(name, mask, pair.box, labels.grid.shape) for name, labels, mask in masks]
    found.append(_parts(pair.reference != 0))
    return tuple(text for text in found if text)


def _values(name: str, labels: LabelMap, profile: Profile, label: float | None) -> str:
    if label is not None or _is_plain(labels.crop):
        return ""
    values = labels.values
    expected = len(values) <= 1
    if profile.overlap_foreground is not Foreground.CHOSEN_LABEL:
        expected = values in ((), (1.0,))
    if expected:
        return ""
    overlap, distance = _COUNTED[profile.overlap_foreground], _COUNTED[profile.distance_foreground]
    counted = f"foreground is {overlap}"
    if overlap != distance:
        counted = f"Dice counts {overlap}, distances {distance}"
    return f"the {name} holds the values {listed_values(labels)}: {counted}"


def _is_plain(values: NDArray[Any]) -> bool:
    """Whether an array surely holds nothing but 0 and 1, at the cost of two quick passes."""
    if values.dtype == np.bool_ or not values.size:
        return True
    if not np.issubdtype(values.dtype, np.integer):
        return False
    return bool(values.max() == 1 and values.min() >= 0)


def _affines(reference: LabelMap, prediction: LabelMap) -> str:
    a, b = reference.grid, prediction.grid
    if a == b:
        return ""
    apart = a.farthest_corner_mm(b)
    if not a.is_same_place(b):
        return (
            f"affine_differs: the masks lie up to {apart:.2f} mm apart, which this profile "
            "ignores; mm are measured on the reference's grid"
        )
    if apart <= _ROUNDING_VOXELS * min(a.spacing_mm):
        return ""
    return f"the affines differ slightly (up to {apart:.3f} mm); the reference's is used"


def _border(name: str, mask: NDArray[Any], box: Box, shape: tuple[int, int, int]) -> str:
    touched = []
    for axis, letter in enumerate("zyx"):
        planes = np.moveaxis(mask, axis, 0)
        if shape[axis] == 1 or not planes.size:
            continue
        low = box.start[axis] == 0 and planes[0].any()
        high = box.stop[axis] == shape[axis] and planes[-1].any()
        if low or high:
            touched.append(letter)
    axes = ", ".join(touched)
    return f"the {name} touches the image border (along {axes})" if touched else ""


def _parts(reference: NDArray[np.bool_]) -> str:
    own = reference[Box.around(reference).slices]
    label: Any = ndimage.label  # type: ignore[attr-defined, unused-ignore]
    _, n_parts = label(own)  # sharing faces alone: quicker, and one part is one part
    if n_parts > 1:
        _, n_parts = label(own, structure=np.ones((3, 3, 3)))
    if n_parts < 2:
        return ""
    return f"the reference consists of {n_parts} separate parts, scored together"
