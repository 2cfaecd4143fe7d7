"""Where the breast ends and the chest begins, read from the shape of the body's front.

Arrays are in the patient frame, ``(superior, posterior, left)``.
"""

import warnings
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.segmentation.kinetic.breast_settings import BreastSettings

__all__ = ["ChestCut", "chest_cut"]

_DEEPEST: Final = 85.0  # percentile of the skin's depth in a window that stands for the chest
_BOTH_BREASTS_MM: Final = 240.0  # a view this wide across the patient shows both breasts
_WHOLE_BREAST_MM: Final = 150.0  # a view this long from head to foot shows chest above or below
_STEADY_MM: Final = 30.0  # the chest's surface is a median over this length
_STANDS_OUT: Final = 0.02  # of the body's front, that must be breast

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Spacing = tuple[float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class ChestCut:
    """Where the breast ends, on (superior, left).

    `depth_mm` is how far behind the anterior face the breast ends, infinite where nothing is cut;
    `stands_out` is true within half of `protrusion_mm` of where a breast stands out from the chest,
    and everywhere where none does. `notes` say what could not be found.
    """

    depth_mm: Floats
    stands_out: Bools
    notes: tuple[str, ...] = ()


def chest_cut(body: Bools, spacing: Spacing, settings: BreastSettings) -> ChestCut:
    """Return where the breast ends and the chest begins."""
    skin = _skin_depth(body, spacing[1])
    there: Bools = np.any(body, axis=1)
    both_breasts = skin.shape[1] * spacing[2] >= _BOTH_BREASTS_MM
    if both_breasts or skin.shape[0] * spacing[0] < _WHOLE_BREAST_MM:
        chest = _resting_disc(_beyond_body(skin, there), spacing[2], settings.chest_radius_mm)
        across = (_odd(_STEADY_MM / spacing[0]), 1)
    else:
        chest = _deep_level(skin.T, there.T, spacing[0], settings.breast_width_mm).T
        across = (1, _odd(_STEADY_MM / spacing[2]))
    chest = ndimage.median_filter(chest, size=across, mode="nearest")
    standing_out = skin < chest - settings.protrusion_mm
    if np.count_nonzero(standing_out) < _STANDS_OUT * skin.size:
        note = "no breast stands out from the chest in this view: the whole body was searched"
        return _nothing_cut(skin, note)
    cut = np.maximum(chest, skin) + settings.chest_depth_mm
    if np.median(cut[standing_out]) >= body.shape[1] * spacing[1]:
        return _nothing_cut(skin, "no chest wall is in view: nothing was cut off")
    beside_mm = ndimage.distance_transform_edt(~standing_out, sampling=(spacing[0], spacing[2]))
    return ChestCut(cut, beside_mm <= settings.protrusion_mm / 2)


def _nothing_cut(skin: Floats, note: str) -> ChestCut:
    return ChestCut(np.full(skin.shape, np.inf), np.ones(skin.shape, dtype=np.bool_), (note,))


def _skin_depth(body: Bools, step: float) -> Floats:
    """Return how far behind the anterior face the body begins, in mm; its end where there is none.

    A 3 x 3 median takes out single columns where the signal drops.
    """
    first = np.where(body.any(axis=1), body.argmax(axis=1), body.shape[1])
    depth: Floats = ndimage.median_filter(first * step, size=3, mode="nearest")
    return depth


def _beyond_body(skin: Floats, there: Bools) -> Floats:
    """Return the depths with those of columns without body taken from the nearest in their row."""
    n = there.shape[1]
    columns = np.where(there, np.arange(n), -n)
    before = np.maximum.accumulate(columns, axis=1)
    columns = np.where(there, np.arange(n), 2 * n)
    after = np.minimum.accumulate(columns[:, ::-1], axis=1)[:, ::-1]
    here = np.arange(n)[None, :]
    nearest = np.where(here - before <= after - here, before, after)
    found = (nearest >= 0) & (nearest < n)
    filled = np.take_along_axis(skin, np.where(found, nearest, here), axis=1)
    return np.where(there, skin, filled)


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


def _deep_level(rows: Floats, there: Bools, step: float, width_mm: float) -> Floats:
    """Return, along each row of skin depths, a flat grey opening of the surface.

    Every window of `width_mm` that lies within the row reaches down to the chest somewhere; its
    deep percentile is the level of the chest there. A point takes the most anterior level of the
    windows that hold it, so that windows which reach the neck do not count. Only skin that is
    `there` is looked at: at the ends of a view, far from the coil, the body fades away.
    """
    n = rows.shape[1]
    width = min(max(round(width_mm / step), 1), n)
    seen = np.where(there, rows, np.nan)
    windows = sliding_window_view(seen, width, axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a window without any body
        deep = np.nanpercentile(windows, _DEEPEST, axis=2)
    deep = np.where(np.isnan(deep), rows.max(), deep)
    level = np.empty_like(rows)
    for j in range(n):
        level[:, j] = deep[:, max(j - width + 1, 0) : min(j, n - width) + 1].min(axis=1)
    return level


def _odd(size: float) -> int:
    return int(size) // 2 * 2 + 1
