"""The breast without the tumour: found by anatomy, for the enhancement of its background."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.case import Case
from napari_mamamia.kinetics.background import (
    BackgroundEnhancement,
    background_enhancement,
    central_half,
)
from napari_mamamia.segmentation.kinetic.breast import breast_mask
from napari_mamamia.segmentation.kinetic.breast_settings import BreastSettings

__all__ = ["other_breast", "other_breast_enhancement"]

_BOTH_FROM_MM: Final = 240.0
"""Two breasts are in view from this width on. Source: as `segmentation.kinetic.breast`."""

_SMOOTH_MM: Final = 10.0
_ON_BOTH_SIDES: Final = 0.1
_NO_MUSCLE: Final = BreastSettings(chest_depth_mm=0.0)
"""Muscle, as bright as gland, begins behind the chest's surface."""

_NOT_ALONE: Final = "only one breast is in view"


def other_breast_enhancement(
    case: Case, lesion: NDArray[np.bool_], early: int
) -> BackgroundEnhancement:
    """Return the background enhancement of the breast on the other side; experimental.

    `lesion` is bool ``(z, y, x)`` on the case's grid.
    """
    breast, why = other_breast(case, lesion)
    if breast is None:
        return BackgroundEnhancement.unknown(why)
    axis = case.grid.display_frame().order[0]
    return background_enhancement(case.signal, central_half(breast, axis), early)


def other_breast(case: Case, lesion: NDArray[np.bool_]) -> tuple[NDArray[np.bool_] | None, str]:
    """Return the breast mask on the side without the lesion; None and the reason.

    The midline is the plane, in the middle third of the breasts' width, that holds least of them.
    """
    if not lesion.any():
        return None, "the mask is empty"
    frame = case.grid.display_frame("axial")
    found = breast_mask(case.signal[0], case.grid, _NO_MUSCLE)
    shown = frame.to_display(found.array)
    step = frame.per_axis(case.grid.spacing_mm)[2]
    profile = np.count_nonzero(shown, axis=(0, 1)).astype(np.float64)
    planes = np.flatnonzero(profile)
    if planes.size == 0 or (planes[-1] - planes[0]) * step < _BOTH_FROM_MM:
        return None, _NOT_ALONE
    middle = _midline(profile, int(planes[0]), int(planes[-1]), step)
    beyond = _share_beyond(frame.to_display(lesion), middle)
    if _ON_BOTH_SIDES <= beyond <= 1 - _ON_BOTH_SIDES:
        return None, "the mask lies on both sides of the midline"
    other = found.array.copy()
    half = frame.to_display(other)
    if beyond > 0.5:
        half[:, :, middle:] = False
    else:
        half[:, :, :middle] = False
    return other, ""


def _midline(profile: NDArray[np.float64], first: int, last: int, step_mm: float) -> int:
    width = max(round(_SMOOTH_MM / step_mm), 1)
    smooth: NDArray[Any] = ndimage.uniform_filter1d(profile, width)
    third = (last - first) // 3
    return first + third + int(np.argmin(smooth[first + third : last - third + 1]))


def _share_beyond(lesion: NDArray[np.bool_], middle: int) -> float:
    return float(np.count_nonzero(lesion[:, :, middle:]) / np.count_nonzero(lesion))
