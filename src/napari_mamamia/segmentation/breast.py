"""The breast mask: body without air and skin, cut off at the chest wall. Anatomy only, no contrast.

Volumes are in the *patient frame* here: ``(superior, posterior, left)``, each axis running towards
that direction of the patient, whatever the file's order is.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.grid import Grid
from napari_mamamia.segmentation.morphology import ball_offsets, closed, dilated, eroded, filled
from napari_mamamia.segmentation.pooling import Factors, pool_factors, pooled, spread
from napari_mamamia.segmentation.settings import checked, setting
from napari_mamamia.segmentation.smoothing import smoothed

__all__ = ["BreastMask", "BreastRegion", "BreastSettings", "breast_mask", "find_breast"]

_BODY_GRID_MM: Final = 3.2  # grid on which body and chest wall are looked for
_DEEPEST: Final = 95.0  # percentile of the skin's depth in a window that stands for the chest
_BOTH_BREASTS_MM: Final = 240.0  # a view this wide across the patient shows both breasts
_AIR_AT_MOST: Final = 0.7  # of the 95th percentile: a higher threshold was not measured in air
_STEADY_MM: Final = 30.0  # the chest's surface is a median over this length

Bools = NDArray[np.bool_]
Spacing = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class BreastSettings:
    """What makes the breast mask; each field's metadata holds unit, range, source and meaning."""

    air_factor: float = setting(
        1.6, 1.1, 5.0, "", "Tissue is brighter than this many times the air in front of the body",
        "our choice: smoothed Rayleigh noise varies by 10 % or less around its mean",
    )  # fmt: skip
    body_share_percent: float = setting(
        6.0, 1.0, 30.0, "%", "Tissue is also brighter than this share of the 95th percentile",
        "our choice: below fat-suppressed fat, above ghosts",
    )  # fmt: skip
    skin_mm: float = setting(
        3.0, 0.0, 10.0, "mm", "Layer under the body's surface that is not searched",
        "our choice: breast skin is up to about 3 mm thick",
    )  # fmt: skip
    chest_radius_mm: float = setting(
        150.0, 80.0, 400.0, "mm", "Across the patient, the chest is at least as curved as a disc "
        "of this radius: wider than a breast, it does not fit into one",
        "our choice: half the width of an adult chest is 130 to 180 mm",
    )  # fmt: skip
    breast_width_mm: float = setting(
        180.0, 100.0, 300.0, "mm", "From head to foot, the chest shows somewhere in any stretch "
        "of this length",
        "our choice: longer than a breast's base",
    )  # fmt: skip
    protrusion_mm: float = setting(
        20.0, 5.0, 60.0, "mm", "A breast stands out from the chest by at least this much",
        "our choice",
    )  # fmt: skip
    chest_depth_mm: float = setting(
        15.0, 0.0, 60.0, "mm", "The mask ends this far behind the skin of the chest",
        "our choice: skin, fat and pectoral muscle; the heart lies deeper",
    )  # fmt: skip

    def __post_init__(self) -> None:
        checked(self)


@dataclass(frozen=True, slots=True, eq=False)
class BreastRegion:
    """The breast in the patient frame.

    `inside` is the body without its skin, `cut_mm` (superior, left) how far behind the volume's
    anterior face the breast ends (infinite where nothing is cut), `breast` the part of `inside`
    before the cut. `notes` say in plain words what could not be found.
    """

    inside: Bools
    breast: Bools
    cut_mm: NDArray[np.float64]
    tissue_from: float
    notes: tuple[str, ...] = ()

    def before_cut(self, rows: NDArray[Any], extra_mm: float, spacing_mm: Spacing) -> Bools:
        """Return, for posterior indices `rows`, where they lie before the cut plus `extra_mm`."""
        depth = (rows * spacing_mm[1])[None, :, None]
        before: Bools = depth < self.cut_mm[:, None, :] + extra_mm
        return before


@dataclass(frozen=True, slots=True, eq=False)
class BreastMask:
    """The breast on the case's own grid: bool ``(z, y, x)``, and what could not be found."""

    array: Bools
    notes: tuple[str, ...] = ()


def breast_mask(
    volume: NDArray[Any], grid: Grid, settings: BreastSettings | None = None
) -> BreastMask:
    """Return where the breasts are in one ``(z, y, x)`` volume, such as phase 0.

    Works on axial, sagittal and coronal scans of one or two breasts: directions come from the
    affine, sizes from the spacing. Where no air, no chest or no protruding breast can be found, the
    mask is larger (up to everything) and `notes` says why. It is made on a grid of at most 3.2 mm
    and is no segmentation of the breast to be measured.
    """
    frame = grid.display_frame("axial")
    spacing = frame.per_axis(grid.spacing_mm)
    shown = frame.to_display(volume)
    factors = pool_factors(spacing, _BODY_GRID_MM / 2)
    coarse = _multiplied(spacing, factors)
    region = find_breast(pooled(shown, factors), coarse, settings)
    full = spread(region.breast, factors, shown.shape)
    return BreastMask(np.ascontiguousarray(frame.from_display(full)), region.notes)


def find_breast(
    volume: NDArray[np.float32], spacing_mm: Spacing, settings: BreastSettings | None = None
) -> BreastRegion:
    """Return the breast in a volume of the patient frame.

    1. Air is what the darker half of the volume's anterior face shows; tissue is clearly brighter.
    2. The body is the tissue, closed, in large pieces, its holes filled; the skin is taken off.
    3. The chest is what remains of the body's anterior surface when its bumps are taken away.
       Where both breasts are in view (240 mm or more across) it is the surface that a disc of
       `chest_radius_mm` reaches from inside, slice by slice: it rests on the breastbone and the
       sides. In narrower views it is the level that the skin reaches within any stretch of
       `breast_width_mm` from head to foot.
    4. What lies more than `chest_depth_mm` behind the chest's surface is cut off.
    """
    settings = settings or BreastSettings()
    factors = pool_factors(spacing_mm, _BODY_GRID_MM)
    steps = _multiplied(spacing_mm, factors)
    coarse = smoothed(pooled(volume, factors), 2.0, steps)
    threshold = _tissue_from(coarse, settings)
    if threshold is None:
        note = "no air was found in front of the breast: the whole image was searched"
        return _whole_image(volume, (note,))
    body = _body(coarse > threshold, steps)
    cut, notes = _chest_cut(body, steps, settings)
    fine = smoothed(volume, 1.0, spacing_mm) > threshold
    inside = _inside(fine, body, factors, spacing_mm, settings)
    shape = (volume.shape[0], volume.shape[2])
    wide = np.repeat(np.repeat(cut, factors[0], axis=0), factors[2], axis=1)
    region = BreastRegion(inside, inside, wide[: shape[0], : shape[1]], threshold, notes)
    before = region.before_cut(np.arange(volume.shape[1]), 0.0, spacing_mm)
    return BreastRegion(inside, inside & before, region.cut_mm, threshold, notes)


def _whole_image(volume: NDArray[np.float32], notes: tuple[str, ...]) -> BreastRegion:
    everything = np.ones(volume.shape, dtype=np.bool_)
    cut = np.full((volume.shape[0], volume.shape[2]), np.inf)
    return BreastRegion(everything, everything, cut, 0.0, notes)


def _tissue_from(coarse: NDArray[np.float32], settings: BreastSettings) -> float | None:
    """Return the signal above which a voxel is tissue, None where there is no air in front."""
    face = coarse[:, : max(coarse.shape[1] // 20, 1), :]
    air = float(np.percentile(face, 25))  # the median of the darker half
    bright = float(np.percentile(coarse, 95))
    threshold = max(settings.air_factor * air, settings.body_share_percent / 100 * bright)
    return threshold if threshold < _AIR_AT_MOST * bright else None


def _body(tissue: Bools, spacing: Spacing) -> Bools:
    """Return the large pieces of `tissue`, closed over 6 mm gaps and with holes filled."""
    tissue = closed(tissue, ball_offsets(max(6.0, min(spacing)), spacing))
    labels, count = ndimage.label(tissue)
    if count == 0:
        return tissue
    sizes = np.bincount(labels.ravel())
    sizes[0] = 0
    large = sizes >= sizes.max() / 10
    return filled(large[labels])


def _inside(
    tissue: Bools, body: Bools, factors: Factors, spacing: Spacing, settings: BreastSettings
) -> Bools:
    """Return the body at the volume's own resolution, without its skin."""
    around = ball_offsets(1.0, (1.0, 1.0, 1.0))
    core = spread(eroded(body, around), factors, tissue.shape)
    shell = spread(dilated(body, around), factors, tissue.shape)
    whole = closed((tissue & shell) | core, ball_offsets(max(2.0, min(spacing)), spacing))
    return eroded(whole, ball_offsets(settings.skin_mm, spacing))


def _chest_cut(
    body: Bools, spacing: Spacing, settings: BreastSettings
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return the depth (superior, left) in mm at which the breast ends, and notes."""
    skin = _skin_depth(body, spacing[1])
    if skin.shape[1] * spacing[2] >= _BOTH_BREASTS_MM:
        chest = _resting_disc(skin, spacing[2], settings.chest_radius_mm)
        across = (_odd(_STEADY_MM / spacing[0]), 1)
    else:
        chest = _deep_level(skin.T, spacing[0], settings.breast_width_mm).T
        across = (1, _odd(_STEADY_MM / spacing[2]))
    chest = ndimage.median_filter(chest, size=across, mode="nearest")
    depth = body.shape[1] * spacing[1]
    standing_out = skin < chest - settings.protrusion_mm
    if np.count_nonzero(standing_out) < 0.02 * skin.size:
        note = "no breast stands out from the chest in this view: the whole body was searched"
        return np.full(skin.shape, np.inf), (note,)
    cut = np.maximum(chest, skin) + settings.chest_depth_mm
    if np.median(cut[standing_out]) >= depth:
        return np.full(skin.shape, np.inf), ("no chest wall is in view: nothing was cut off",)
    return cut, ()


def _skin_depth(body: Bools, step: float) -> NDArray[np.float64]:
    """Return how far behind the anterior face the body begins, in mm; its end where there is none.

    A 3 x 3 median takes out single columns where the signal drops.
    """
    first = np.where(body.any(axis=1), body.argmax(axis=1), body.shape[1])
    depth: NDArray[np.float64] = ndimage.median_filter(first * step, size=3, mode="nearest")
    return depth


def _resting_disc(skin: NDArray[np.float64], step: float, radius_mm: float) -> NDArray[np.float64]:
    """Return the depth in each row of the surface that a disc under the skin reaches.

    This is the grey closing of the depth (the opening of the height) with a disc's upper half; the
    body is thought to go on beyond the image as it is at the image's edge.
    """
    reach = int(radius_mm / step)
    away = np.arange(-reach, reach + 1) * step
    disc = np.sqrt(np.maximum(radius_mm**2 - away**2, 0.0)) - radius_mm
    wide = np.pad(skin, ((0, 0), (2 * reach, 2 * reach)), mode="edge")
    rested = ndimage.grey_closing(wide, structure=disc[None, :], mode="nearest")
    surface: NDArray[np.float64] = rested[:, 2 * reach : -2 * reach or None]
    return surface


def _deep_level(rows: NDArray[np.float64], step: float, width_mm: float) -> NDArray[np.float64]:
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


def _multiplied(spacing: Spacing, factors: Factors) -> Spacing:
    a, b, c = (s * f for s, f in zip(spacing, factors, strict=True))
    return (a, b, c)


def _odd(size: float) -> int:
    return int(size) // 2 * 2 + 1
