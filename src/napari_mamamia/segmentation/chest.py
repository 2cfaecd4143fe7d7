"""Where the breast ends and the chest begins, read from the shape of the body's front.

Arrays are in the patient frame, ``(superior, posterior, left)``.
"""

from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.segmentation.breast_settings import BreastSettings

__all__ = ["chest_cut"]

_DEEPEST: Final = 95.0  # percentile of the skin's depth in a window that stands for the chest
_BOTH_BREASTS_MM: Final = 240.0  # a view this wide across the patient shows both breasts
_WHOLE_BREAST_MM: Final = 150.0  # a view this long from head to foot shows chest above or below
_STEADY_MM: Final = 30.0  # the chest's surface is a median over this length
_STANDS_OUT: Final = 0.02  # of the body's front, that must be breast

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Spacing = tuple[float, float, float]


def chest_cut(
    body: Bools, spacing: Spacing, settings: BreastSettings
) -> tuple[Floats, tuple[str, ...]]:
    """Return the depth (superior, left) in mm at which the breast ends, and notes."""
    skin = _skin_depth(body, spacing[1])
    both_breasts = skin.shape[1] * spacing[2] >= _BOTH_BREASTS_MM
    if both_breasts or skin.shape[0] * spacing[0] < _WHOLE_BREAST_MM:
        chest = _resting_disc(skin, spacing[2], settings.chest_radius_mm)
        across = (_odd(_STEADY_MM / spacing[0]), 1)
    else:
        chest = _deep_level(skin.T, spacing[0], settings.breast_width_mm).T
        across = (1, _odd(_STEADY_MM / spacing[2]))
    chest = ndimage.median_filter(chest, size=across, mode="nearest")
    depth = body.shape[1] * spacing[1]
    standing_out = skin < chest - settings.protrusion_mm
    if np.count_nonzero(standing_out) < _STANDS_OUT * skin.size:
        note = "no breast stands out from the chest in this view: the whole body was searched"
        return np.full(skin.shape, np.inf), (note,)
    cut = np.maximum(chest, skin) + settings.chest_depth_mm
    if np.median(cut[standing_out]) >= depth:
        return np.full(skin.shape, np.inf), ("no chest wall is in view: nothing was cut off",)
    return cut, ()


def _skin_depth(body: Bools, step: float) -> Floats:
    """Return how far behind the anterior face the body begins, in mm; its end where there is none.

    A 3 x 3 median takes out single columns where the signal drops.
    """
    first = np.where(body.any(axis=1), body.argmax(axis=1), body.shape[1])
    depth: Floats = ndimage.median_filter(first * step, size=3, mode="nearest")
    return depth


def _resting_disc(skin: Floats, step: float, radius_mm: float) -> Floats:
    """Return the depth in each row of the surface that a disc under the skin reaches.

    This is the grey closing of the depth (the opening of the height) with a disc's upper half; the
    body is thought to go on beyond the image as it is at the image's edge.
    """
    reach = int(radius_mm / step)
    away = np.arange(-reach, reach + 1) * step
    disc = np.sqrt(np.maximum(radius_mm**2 - away**2, 0.0)) - radius_mm
    wide = np.pad(skin, ((0, 0), (2 * reach, 2 * reach)), mode="edge")
    rested = ndimage.grey_closing(wide, structure=disc[None, :], mode="nearest")
    surface: Floats = rested[:, 2 * reach : -2 * reach or None]
    return surface


def _deep_level(rows: Floats, step: float, width_mm: float) -> Floats:
    """Return, along each row of skin depths, a flat grey opening of the surface.

    Every window of `width_mm` that lies within the row reaches down to the chest somewhere; its
    deep percentile is the level of the chest there. A point takes the most anterior level of the
    windows that hold it, so that windows which reach the neck do not count.
    """
    n = rows.shape[1]
    width = min(max(round(width_mm / step), 1), n)
    windows = sliding_window_view(rows, width, axis=1)
    deep = np.percentile(windows, _DEEPEST, axis=2)
    level = np.empty_like(rows)
    for j in range(n):
        level[:, j] = deep[:, max(j - width + 1, 0) : min(j, n - width) + 1].min(axis=1)
    return level


def _odd(size: float) -> int:
    return int(size) // 2 * 2 + 1
