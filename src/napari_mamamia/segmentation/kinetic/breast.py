"""Compute the breast mask: the body without skin, anterior to the chest wall.

The mask depends only on anatomy, not on contrast. Volumes in this module are in the *patient frame*
``(superior, posterior, left)``: each axis increases in that direction of the patient, regardless of
the order in the file.
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import part, report_progress
from napari_mamamia.segmentation.kinetic.enhancement import (
    Factors,
    pool_factors,
    pooled,
    pooled_job,
    smoothed,
    spread,
)
from napari_mamamia.segmentation.kinetic.kinetic_settings import BreastSettings
from napari_mamamia.segmentation.model.morphology import (
    ball_offsets,
    closed,
    dilated,
    eroded,
    filled,
)
from napari_mamamia.segmentation.model.postprocess import BreastArea, PostKind
from napari_mamamia.segmentation.model.recipe import Recipe

# The boundary between breast and chest, from the shape of the body's front. Arrays are in the
# patient frame, ``(superior, posterior, left)``.

_DEEPEST: Final = 85.0  # percentile of the skin's depth in a window that represents the chest
_BOTH_BREASTS_MM: Final = 240.0  # a view this wide across the patient shows both breasts
_WHOLE_BREAST_MM: Final = (
    150.0  # a view this long from head to foot shows chest above or below the breast
)
_STEADY_MM: Final = 30.0  # the chest's surface is a median over this length
_STANDS_OUT: Final = 0.02  # smallest fraction of the body's front that is breast


Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Spacing = tuple[float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class ChestCut:
    """The posterior limit of the breast at each position (superior, left).

    `depth_mm` is the depth of that limit behind the anterior face, or infinite if nothing is cut
    off. `stands_out` is True at a breast that protrudes from the chest, and within half of
    `protrusion_mm` of it, and everywhere if no breast protrudes. `notes` state what could not be
    detected.
    """

    depth_mm: Floats
    stands_out: Bools
    notes: tuple[str, ...] = ()


def chest_cut(body: Bools, spacing: Spacing, settings: BreastSettings) -> ChestCut:
    """Return the boundary between breast and chest wall."""
    skin = _skin_depth(body, spacing[1])
    there: Bools = np.any(body, axis=1)
    both_breasts = skin.shape[1] * spacing[2] >= _BOTH_BREASTS_MM
    if both_breasts or skin.shape[0] * spacing[0] < _WHOLE_BREAST_MM:
        chest = _resting_disc(_beyond_body(skin, there), spacing[2], settings.chest_radius_mm)
        across = (_round_to_odd(_STEADY_MM / spacing[0]), 1)
    else:
        chest = _deep_level(skin.T, there.T, spacing[0], settings.breast_width_mm).T
        across = (1, _round_to_odd(_STEADY_MM / spacing[2]))
    chest = ndimage.median_filter(chest, size=across, mode="nearest")
    standing_out = skin < chest - settings.protrusion_mm
    if np.count_nonzero(standing_out) < _STANDS_OUT * skin.size:
        note = "no breast protrudes from the chest in this view, so the whole body is searched"
        return _nothing_cut(skin, note)
    cut = np.maximum(chest, skin) + settings.chest_depth_mm
    if np.median(cut[standing_out]) >= body.shape[1] * spacing[1]:
        return _nothing_cut(skin, "no chest wall is in view, so the chest was not cut off")
    beside_mm = ndimage.distance_transform_edt(~standing_out, sampling=(spacing[0], spacing[2]))
    return ChestCut(cut, beside_mm <= settings.protrusion_mm / 2)


def _nothing_cut(skin: Floats, note: str) -> ChestCut:
    return ChestCut(np.full(skin.shape, np.inf), np.ones(skin.shape, dtype=np.bool_), (note,))


def _skin_depth(body: Bools, step: float) -> Floats:
    """Return the depth in mm of the body's surface behind the anterior face of the volume.

    Columns without body have the maximum depth. A 3 x 3 median corrects isolated columns in which
    the signal drops out.
    """
    first = np.where(body.any(axis=1), body.argmax(axis=1), body.shape[1])
    depth: Floats = ndimage.median_filter(first * step, size=3, mode="nearest")
    return depth


def _beyond_body(skin: Floats, there: Bools) -> Floats:
    """Return the depths; a column without body gets the nearest depth in its row."""
    n = there.shape[1]
    columns = np.where(there, np.arange(n), -n)
    before = np.maximum.accumulate(columns, axis=1)
    columns = np.where(there, np.arange(n), 2 * n)
    after = np.minimum.accumulate(columns[:, ::-1], axis=1)[:, ::-1]
    here = np.arange(n)[None, :]
    nearest = np.where(here - before <= after - here, before, after)
    has_nearest = (nearest >= 0) & (nearest < n)
    filled = np.take_along_axis(skin, np.where(has_nearest, nearest, here), axis=1)
    return np.where(there, skin, filled)


def _resting_disc(skin: Floats, step: float, radius_mm: float) -> Floats:
    """Return, for each row, the surface on which a disc rests from below the skin.

    This is the grey closing of the depth (the opening of the height) with the upper half of a disc;
    the body is assumed to continue beyond the image as at its edge.
    """
    reach = int(radius_mm / step)
    away = np.arange(-reach, reach + 1) * step
    disc = np.sqrt(np.maximum(radius_mm**2 - away**2, 0.0)) - radius_mm
    wide = np.pad(skin, ((0, 0), (2 * reach, 2 * reach)), mode="edge")
    rested = ndimage.grey_closing(wide, structure=disc[None, :], mode="nearest")
    # With a radius of 0, the slice would end at its start.
    surface: Floats = rested[:, 2 * reach : -2 * reach or None]
    return surface


def _deep_level(rows: Floats, there: Bools, step: float, width_mm: float) -> Floats:
    """Return, for each row of skin depths, a flat grey opening of the surface.

    Every window of `width_mm` within the row reaches the chest somewhere; its deep percentile is
    the level of the chest there. Each point takes the most anterior level of the windows that
    contain it, so windows that reach the neck have no effect. Only skin where `there` is True is
    used, because the signal of the body fades at the ends of a view, far from the coil.
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


def _round_to_odd(size: float) -> int:
    return int(size) // 2 * 2 + 1


_BODY_GRID_MM: Final = 4.0  # grid spacing on which body and chest wall are detected
_AIR_AT_MOST: Final = 0.7  # fraction of the 95th percentile; a higher threshold cannot be air
_BLANKED_AIR: Final = 0.4  # fraction of the front half; a border that a scanner fills is thinner
_LEVELS: Final = 200  # bins of the histogram from 0 to the 95th percentile
_TEXT: Final = "Searching for the breast"
_POOLED, _FOUND, _STEPS = 250, 950, 1000  # approximate shares of the time


@dataclass(frozen=True, slots=True, eq=False)
class BreastRegion:
    """The breast in the patient frame.

    `inside` is the body without its skin. `cut_mm` (superior, left) is the depth of the breast's
    posterior limit behind the anterior face of the volume, or infinite if nothing is cut off.
    `stands_out` (superior, left) is True if a breast protrudes from the chest at this position or
    nearby. `breast` is the part of `inside` in front of the limit. `notes` state what could not be
    detected.
    """

    inside: Bools
    breast: Bools
    cut_mm: NDArray[np.float64]
    stands_out: Bools
    notes: tuple[str, ...] = ()

    def before_cut(self, rows: NDArray[Any], extra_mm: float, spacing_mm: Spacing) -> Bools:
        """Return whether the posterior indices `rows` are anterior to the cut plus `extra_mm`."""
        depth = (rows * spacing_mm[1])[None, :, None]
        before: Bools = depth < self.cut_mm[:, None, :] + extra_mm
        return before


@dataclass(frozen=True, slots=True, eq=False)
class BreastMask:
    """The breast on the grid of the case, bool ``(z, y, x)``, with notes on undetected anatomy."""

    array: Bools
    notes: tuple[str, ...] = ()


def breast_mask(
    volume: NDArray[Any], grid: Grid, settings: BreastSettings | None = None
) -> BreastMask:
    """Return the mask of the breasts in a ``(z, y, x)`` volume, such as phase 0.

    The method works on axial, sagittal and coronal scans of one or two breasts, because directions
    are taken from the affine and sizes from the spacing. If no air, chest or protruding breast is
    detected, the mask is larger (up to the whole volume) and `notes` explain why. The mask is
    computed on a grid of at most 4 mm and is not meant for measurements of the breast.
    """
    frame = grid.display_frame("axial")
    spacing = frame.per_axis(grid.spacing_mm)
    shown = frame.to_display(volume)
    factors = pool_factors(spacing, _BODY_GRID_MM / 2)
    coarse = _scale_spacing(spacing, factors)
    with part(0, _POOLED, _STEPS):
        small = pooled_job(shown, factors, _TEXT)
    with part(_POOLED, _FOUND, _STEPS):
        region = find_breast(small, coarse, settings)
    full = spread(region.breast, factors, shown.shape)
    report_progress(_STEPS, _STEPS, _TEXT)
    return BreastMask(np.ascontiguousarray(frame.from_display(full)), region.notes)


def find_breast(
    volume: NDArray[np.float32], spacing_mm: Spacing, settings: BreastSettings | None = None
) -> BreastRegion:
    """Return the breast region of a volume in the patient frame.

    1. In the front half, air is a peak of the histogram and tissue is the long tail after it. 2.
    The body is the tissue after closing: its large components with holes filled, without nipples
    and skin. 3. The chest is the anterior surface of the body without its bumps. If both breasts
    are in view (240 mm or more across), or less than 150 mm from head to foot, it is the surface
    that a disc of `chest_radius_mm` reaches from inside, slice by slice: it rests on the sternum
    and the sides. In other views of one breast it is the level that the skin reaches within any
    length of `breast_width_mm` from head to foot. 4. Everything more than `chest_depth_mm` behind
    the surface of the chest is cut off.
    """
    settings = settings or BreastSettings()
    report_progress(0, 5, _TEXT)
    factors = pool_factors(spacing_mm, _BODY_GRID_MM)
    steps = _scale_spacing(spacing_mm, factors)
    coarse = smoothed(pooled(volume, factors), 2.0, steps)
    threshold = _tissue_from(coarse, pooled(volume, factors) <= 0, settings)
    if threshold is None:
        note = "no air was detected in front of the breast, so the whole image was searched"
        return _whole_image(volume, (note,))
    report_progress(1, 5, _TEXT)
    with part(1000, 2000, 5000):
        body = _find_body(coarse > threshold, steps, settings)
    report_progress(2, 5, _TEXT)
    cut = chest_cut(body, steps, settings)
    report_progress(3, 5, _TEXT)
    fine = smoothed(volume, 1.0, spacing_mm) > threshold
    report_progress(4, 5, _TEXT)
    with part(4000, 5000, 5000):
        inside = _strip_skin(fine, body, factors, spacing_mm, settings)
    shape = (volume.shape[0], 1, volume.shape[2])
    depth, stands_out = (
        spread(of[:, None], factors, shape)[:, 0] for of in (cut.depth_mm, cut.stands_out)
    )
    region = BreastRegion(inside, inside, depth, stands_out, cut.notes)
    before = region.before_cut(np.arange(volume.shape[1]), 0.0, spacing_mm)
    report_progress(5, 5, _TEXT)
    return replace(region, breast=inside & before)


def _whole_image(volume: NDArray[np.float32], notes: tuple[str, ...]) -> BreastRegion:
    everything = np.ones(volume.shape, dtype=np.bool_)
    cut = np.full((volume.shape[0], volume.shape[2]), np.inf)
    return BreastRegion(everything, everything, cut, np.isinf(cut), notes)


def _tissue_from(
    coarse: NDArray[np.float32], blank: Bools, settings: BreastSettings
) -> float | None:
    """Return the signal above which a voxel counts as tissue, or None if no air is detected.

    In the front half, air is a peak of the histogram and tissue is its long tail. The threshold is
    the level farthest below the line from the peak to the end of the tail (Zack 1977). Voxels that
    are exactly zero, and their neighbours, are ignored, because scanners fill the border of a
    corrected image with zeros. If they make up 40 % or more, the air was set to zero.
    """
    bright = float(np.percentile(coarse, 95))
    half = np.s_[:, : max(coarse.shape[1] // 2, 1)]
    front, blank = coarse[half], blank[half]
    if np.mean(blank) < _BLANKED_AIR:
        front = front[~ndimage.binary_dilation(blank, iterations=2)]
    threshold = max(_end_of_air(front, bright), settings.body_share_percent / 100 * bright)
    return threshold if threshold < _AIR_AT_MOST * bright else None


def _end_of_air(front: NDArray[np.float32], bright: float) -> float:
    """Return the signal level at which the darkest large peak of the histogram ends."""
    counts, edges = np.histogram(front, _LEVELS, range=(0.0, bright))
    counts = ndimage.gaussian_filter1d(counts.astype(np.float64), 1.0)
    peak = int(counts.argmax())
    steps = np.arange(_LEVELS - peak) / max(_LEVELS - 1 - peak, 1)
    line = counts[peak] + (counts[-1] - counts[peak]) * steps
    return float(edges[peak + int(np.argmax(line - counts[peak:]))])


def _find_body(tissue: Bools, spacing: Spacing, settings: BreastSettings) -> Bools:
    """Return the large components of `tissue` without nipples, with gaps and holes filled.

    If this step would remove half of a body with the nipples, the body is too small and is not
    changed.
    """
    tissue = closed(tissue, ball_offsets(6.0, spacing))
    report_progress(1, 4, _TEXT)
    labels, count = ndimage.label(tissue)
    if count == 0:
        return tissue
    sizes = np.bincount(labels.ravel())
    sizes[0] = 0
    large = sizes >= sizes.max() / 10
    body = filled(large[labels])
    report_progress(2, 4, _TEXT)
    bumps = ball_offsets(settings.nipple_mm, spacing)
    core = eroded(body, bumps)
    report_progress(3, 4, _TEXT)
    smooth = dilated(core, bumps)
    return smooth if 2 * np.count_nonzero(smooth) >= np.count_nonzero(body) else body


def _strip_skin(
    tissue: Bools, body: Bools, factors: Factors, spacing: Spacing, settings: BreastSettings
) -> Bools:
    """Return the body without its skin, at the resolution of the volume."""
    around = ball_offsets(1.0, (1.0, 1.0, 1.0))
    core = spread(eroded(body, around), factors, tissue.shape)
    shell = spread(dilated(body, around), factors, tissue.shape)
    report_progress(1, 3, _TEXT)
    whole = closed((tissue & shell) | core, ball_offsets(2.0, spacing))
    report_progress(2, 3, _TEXT)
    return eroded(whole, ball_offsets(settings.skin_mm, spacing))


def _scale_spacing(spacing: Spacing, factors: Factors) -> Spacing:
    a, b, c = (s * f for s, f in zip(spacing, factors, strict=True))
    return (a, b, c)


def breast_area(
    case: Case, recipe: Recipe, drawn: Box | None = None
) -> tuple[BreastArea | None, tuple[str, ...]]:
    """Return the breast of a case, with notes on how it was determined.

    The result is None if the recipe does not need the breast. The reader's box `drawn` is used
    first, and then the box of the case (`Case.breast_box`), which the challenge gives to every
    submission and which the published pipelines use for cropping. Otherwise the breast is detected
    in phase 0, with a note that this is not the box of the published pipeline. For a step that
    needs the outline of the breast, the breast is always detected.

    Raises
    ------
    ModelError
        If the breast must be detected but cannot be.
    """
    if not recipe.needs_breast:
        return None, ()
    if drawn is not None:
        return BreastArea(drawn), ()
    needs_outline = any(step.kind is PostKind.BREAST_MASK for step in recipe.post)
    if case.breast_box is not None and not needs_outline:
        return BreastArea(case.breast_box), ()
    area, notes = find_breast_area(case)
    if needs_outline:
        return area, notes
    note = (
        "the case's patient file has no usable breast_coordinates, so the breast was detected in "
        "phase 0, and a published pipeline may return a different mask"
    )
    return area, (*notes, note)


def find_breast_area(case: Case) -> tuple[BreastArea, tuple[str, ...]]:
    """Detect the breast in phase 0; raise `ModelError` if this fails."""
    case.require_phases(1)
    outline = breast_mask(case.signal[0], case.grid)
    around = Box.around(outline.array)
    if around.is_empty:
        raise ModelError(
            f"expected to detect a breast in phase 0 of {case.case_id}, but none was detected; "
            "draw a box around the breast, add breast_coordinates to the patient file, or choose "
            "a recipe that uses the whole volume"
        )
    return BreastArea(around, outline.array), outline.notes
