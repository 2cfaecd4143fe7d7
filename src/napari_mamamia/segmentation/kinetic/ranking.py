"""Outline, score and rank candidate regions from the maps of a search, best first."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.box import Box
from napari_mamamia.core.progress import report_progress
from napari_mamamia.segmentation.kinetic.candidates import (
    Features,
    Place,
    Region,
    Scored,
    enhancing,
    measured,
    pieces_of,
    regions_of,
    separate,
)
from napari_mamamia.segmentation.kinetic.enhancement import (
    Enhancement,
    Factors,
    Scan,
    Voxel,
    enhancement_of,
    moved,
    smoothed,
    spread,
    times,
)
from napari_mamamia.segmentation.kinetic.kinetic_settings import KineticSettings
from napari_mamamia.segmentation.kinetic.search import Search, place_of, touched
from napari_mamamia.segmentation.model.morphology import (
    ball_offsets,
    closed,
    dilated,
    filled,
    opened,
)

_STRONGEST_PERCENT: Final = 300.0  # early PE above which the score does not rise
_RATIO_RANGE: Final = (0.6, 1.3)  # limits of SER: persistent curves are below, vessels above
_HIGHEST_RATIO: Final = 3.0  # upper end of UCSF's SER scale in a tumour (0.9 to 3)
_DARK: Final = 0.5  # fraction of the breast's median signal after contrast
_AT_SKIN: Final = 0.4  # fraction near the skin; half of a nipple is deeper
_UPPER: Final = 0.67  # fraction of the image's height; the axilla is above, the heart below
_LIKELY_PART: Final = 0.5  # fraction below which the reasons mention the larger region
_LIKELY_VESSEL: Final = 0.25  # compactness below which the reasons mention a vessel
_ALIKE: Final = 0.6  # fraction of the first score from which the next candidate is equally likely
_WEAK: Final = 0.45  # score of the first candidate below which it is hardly distinct
# The outline of one candidate at the resolution of the image.

_LESION: Final = 75.0  # percentile of the seed's rise; voxels at its border contain little lesion
_MARGIN_MM: Final = 8.0  # distance of the surroundings whose median rise is the background


@dataclass(frozen=True, slots=True)
class Penalty:
    """A reason why a region may not be a tumour; the score is multiplied by `factor`.

    `words` is the reason as text.
    """

    factor: float
    words: str


def penalties(features: Features, settings: KineticSettings) -> tuple[Penalty, ...]:
    """Return the penalties for a region's position and signal."""
    return (*_place_doubts(features.place, settings), *_signal_doubts(features))


def score(features: Features, settings: KineticSettings) -> float:
    """Return a score for how similar a region is to a tumour, used only to order candidates.

    sqrt(V) x contrast/100 (up to 3) x compactness x SER^2 (SER within 0.6 to 1.3; omitted without a
    late phase) x sqrt(share), times the factors of its `penalties`. V is the volume in ml; beyond E
    = `enough_volume_ml` it is E x E / volume, since the largest regions are gland.

    Source: our choice. SER^2 follows Wang 2009, who found 46 % of lesions with washout malignant,
    20 % with a plateau and 13 % with a persistent rise.
    """
    volume, enough = features.volume_mm3 / 1000, settings.enough_volume_ml
    value: float = min(max(features.contrast, 0.0), _STRONGEST_PERCENT) / 100
    value *= features.compactness * math.sqrt(min(volume, enough**2 / volume) * features.share)
    if not np.isnan(features.ratio):
        value *= min(max(features.ratio, _RATIO_RANGE[0]), _RATIO_RANGE[1]) ** 2
    return value * math.prod(penalty.factor for penalty in penalties(features, settings))


def reasons(features: Features, when: str, settings: KineticSettings) -> tuple[str, ...]:
    """Return the reasons for a region's score, as sentences with numbers.

    `when` names the early phase, such as "at 147 s".
    """
    phrases = [f"enhances by {features.percent:.0f} % {when}", *_describe_course(features.ratio)]
    phrases.append(f"{features.volume_mm3 / 1000:.2g} ml, {features.long_mm:.0f} mm long")
    phrases.append(_describe_shape(features, settings))
    if features.share < _LIKELY_PART:
        share = 100 * features.share
        phrases.append(f"{share:.0f} % of a larger enhancing region, such as gland or a vessel")
    return (*phrases, *(penalty.words for penalty in penalties(features, settings)))


def unsure(found: Sequence[Scored], settings: KineticSettings) -> tuple[str, ...]:
    """Return why the highest-ranked region may not be the tumour; empty if it is clear."""
    if not found:
        return ()
    why = [f"candidate 1: {penalty.words}" for penalty in penalties(found[0].features, settings)]
    if found[0].value < _WEAK:
        why.append("candidate 1 is small or has little contrast")
    alike = sum(item.value >= _ALIKE * found[0].value for item in found)
    if alike > 1:
        why.append(f"candidates 1 to {alike} have similar scores")
    return tuple(why)


def _place_doubts(place: Place, settings: KineticSettings) -> Iterator[Penalty]:
    high = place.height > _UPPER
    if place.behind_chest > settings.behind_percent / 100:
        what = "armpit or chest wall" if high else "heart or chest wall"
        share = 100 * place.behind_chest
        yield Penalty(0.05, f"{share:.0f} % of the region is behind the chest line: {what}?")
    elif place.at_wall > 0.5:
        what = "a lymph node of the armpit" if high else "muscle, or a vessel of the chest"
        yield Penalty(
            0.3, f"{100 * place.at_wall:.0f} % of the region is at the chest wall: {what}?"
        )
    if place.at_back:
        yield Penalty(0.2, "touches the back of the image: heart or large vessel?")
    if place.beside > 0.5:
        share = 100 * place.beside
        yield Penalty(
            0.2, f"{share:.0f} % of the region is outside the breast: armpit, neck or chest wall?"
        )
    if place.near_skin > _AT_SKIN:
        near = f"is within {settings.near_skin_mm:g} mm of the skin layer"
        yield Penalty(0.4, f"{near}: skin or nipple?")


def _signal_doubts(features: Features) -> Iterator[Penalty]:
    if features.signal < _DARK * features.place.tissue:
        share = 100 * features.signal / features.place.tissue
        yield Penalty(0.2, f"is only {share:.0f} % as bright as the breast: noise or a ghost?")
    if features.ratio > _HIGHEST_RATIO:
        yield Penalty(0.2, "loses nearly all of its contrast: vessel, motion or a ghost?")


def _describe_course(ratio: float) -> tuple[str, ...]:
    if np.isnan(ratio):
        return ()
    if np.isinf(ratio):
        return ("washes out down to the signal before contrast",)
    if ratio > 1.1:
        return (f"washes out (SER {ratio:.2f})",)
    if ratio >= 0.9:
        return (f"stays constant (SER {ratio:.2f})",)
    return (f"continues to rise (SER {ratio:.2f})",)


def _describe_shape(features: Features, settings: KineticSettings) -> str:
    if features.compactness >= _LIKELY_VESSEL:
        return f"compactness {features.compactness:.2f} (1: spherical)"
    thin = features.thick_mm <= 2 * settings.vessel_mm
    what = "elongated or branching like a vessel" if thin else "irregular or branching"
    return f"{what} (compactness {features.compactness:.2f}, {features.thick_mm:.0f} mm thick)"


Bools = NDArray[np.bool_]
Spacing = tuple[float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Outline:
    """A region at full resolution with its surroundings; its box is an index into `found`.

    `origin` is the voxel of the scan at which the maps begin.
    """

    local: Region
    found: Enhancement
    origin: tuple[int, int, int]

    @property
    def region(self) -> Region:
        """The region, with its box in voxels of the scan."""
        return Region(moved(self.local.box, self.origin), self.local.crop, self.local.core)


def _cut_phase(phase: NDArray[Any], box: Box) -> NDArray[np.float32]:
    """Return the voxels in `box` as a new float32 array, with 0 for non-finite values."""
    values = np.ascontiguousarray(phase[box.slices], dtype=np.float32)
    if np.issubdtype(phase.dtype, np.floating):
        values = np.where(np.isfinite(values), values, np.float32(0))
    return values


def delineate(
    scan: Scan, seed: Region, factors: Factors, limit: Box, settings: KineticSettings
) -> Outline | None:
    """Return the full-resolution outline of a region of the search grid, or None if it is empty.

    1. The level of the lesion is the upper quartile of the rise (early minus phase 0) in the
    enhancing part of the seed. The level of the background is the median rise within 8 mm around
    it. The edge is half-way, because the rise of a voxel is linear in its fraction of lesion; PE is
    not linear if lesion and surroundings differ before contrast. 2. The core is the connected
    region that reaches this level within `edge_reach_mm` of the seed; an opening removes strands.
    3. Gaps are closed and holes filled.

    Parameters
    ----------
    scan
        The phases.
    seed
        A region on the search grid, which begins at index 0 of the scan.
    factors
        The number of scan voxels per voxel of the search grid.
    limit
        A box of the scan to which the outline is cropped.
    settings
        The thresholds.
    """
    inner = _at_full(seed.box, factors, scan.shape)
    margin = [int(_MARGIN_MM / s) + 1 for s in scan.spacing_mm]
    box = inner.grown(margin, scan.shape)
    maps = _compute_maps(scan, box, settings)
    core = _place_mask(spread(seed.core, factors, inner.shape), inner, box)
    around = dilated(core, ball_offsets(settings.edge_reach_mm, scan.spacing_mm))
    high = _edge_level(maps.rise, core, ~around, settings)
    mask = (maps.rise >= high) & around & _mark_limit(box, limit)
    mask = _keep_connected(mask, core, scan.spacing_mm, settings)
    if not mask.any():
        return None
    whole = closed(mask, ball_offsets(settings.closing_mm, scan.spacing_mm))
    whole = filled(whole, most=settings.most_fill) & _mark_limit(box, limit)
    tight = Box.around(whole)
    region = Region(tight, np.ascontiguousarray(whole[tight.slices]), mask[tight.slices])
    return Outline(region, maps, box.start)


def _compute_maps(scan: Scan, box: Box, settings: KineticSettings) -> Enhancement:
    def smooth(phase: NDArray[Any]) -> NDArray[np.float32]:
        return smoothed(_cut_phase(phase, box), settings.outline_smoothing_mm, scan.spacing_mm)

    late = None if scan.late is None else smooth(scan.late)
    return enhancement_of(smooth(scan.pre), smooth(scan.early), late, scan.bright)


def _edge_level(
    rise: NDArray[np.float32], core: Bools, outside: Bools, settings: KineticSettings
) -> float:
    lesion = float(np.percentile(rise[core], _LESION))
    background = float(np.median(rise[outside])) if outside.any() else 0.0
    background = min(max(background, 0.0), lesion)
    return background + settings.edge_level_percent / 100 * (lesion - background)


def _keep_connected(
    mask: Bools, core: Bools, spacing_mm: Spacing, settings: KineticSettings
) -> Bools:
    """Return the 26-connected components of `mask` that touch `core`, opened if any remain."""
    thick = opened(mask, ball_offsets(settings.opening_mm, spacing_mm))
    mask = thick if (thick & core).any() else mask
    labels, count = ndimage.label(mask, structure=np.ones((3, 3, 3), dtype=np.bool_))
    keep = np.zeros(count + 1, dtype=np.bool_)
    keep[labels[core & mask]] = True
    keep[0] = False
    pieces: Bools = keep[labels]
    return pieces


def _at_full(box: Box, factors: Factors, shape: Voxel) -> Box:
    # The last voxel of the search grid may extend beyond the scan.
    d, e, f = (min(a, n) for a, n in zip(times(box.stop, factors), shape, strict=True))
    return Box(times(box.start, factors), (d, e, f))


def _place_mask(mask: Bools, inner: Box, outer: Box) -> Bools:
    out = np.zeros(outer.shape, dtype=np.bool_)
    start = [a - b for a, b in zip(inner.start, outer.start, strict=True)]
    out[tuple(slice(o, o + n) for o, n in zip(start, inner.shape, strict=True))] = mask
    return out


def _mark_limit(box: Box, limit: Box) -> Bools:
    """Return a boolean array over the voxels of `box`, True inside `limit`."""
    out = np.zeros(box.shape, dtype=np.bool_)
    start = [max(a, b) - b for a, b in zip(limit.start, box.start, strict=True)]
    stop = [max(min(a, b) - o, 0) for a, b, o in zip(limit.stop, box.stop, box.start, strict=True)]
    out[tuple(slice(a, b) for a, b in zip(start, stop, strict=True))] = True
    return out


_LEVELS: Final = (1.0, 1.4, 2.0, 2.8, 4.0)
"""Multiples of the PE threshold at which regions are searched (our choice).

A lesion that is connected to glandular tissue or a vessel at the lowest level separates at a higher
level.
"""

_COMPACT: Final = 0.45  # compactness above which a region is not divided
_FAINT: Final = 0.3  # fraction of the breast's median after contrast below which a voxel is noise
_TEXT: Final = "Searching for regions"
_SPARE: Final = 3  # number of additional regions to outline, because outlining may change the order
_SHARED: Final = 0.2  # fraction of a candidate's voxels that a better candidate may also contain


def seeds_anywhere(search: Search, settings: KineticSettings) -> list[Scored]:
    """Return the regions of the search grid that are worth outlining, best first."""
    regions = _score_regions(search, search.percent, search.rise, settings)
    return _separate_regions(regions, search, settings)


def seeds_in_box(search: Search, settings: KineticSettings) -> list[Scored]:
    """Return the regions in and around a box, best first.

    Regions are ordered by score times the square of their fraction inside it. Gland that fills the
    box and extends beyond it is therefore not ranked first.
    """
    box = touched(search.limit, search.factors, search.allowed.shape)
    seeds = []
    for item in _score_regions(search, search.percent, search.rise, settings):
        part = float(np.mean(box[item.region.box.slices][item.region.crop]))
        if part > 0:
            seeds.append(replace(item, value=item.value * part**2))
    return _separate_regions(sorted(seeds, key=lambda item: -item.value), search, settings)


def strongest_in_box(search: Search, settings: KineticSettings) -> list[Scored]:
    """Return the regions that reach at least half of a box's strongest PE, regardless of size.

    The list is empty only if nothing in the box enhances.
    """
    box = touched(search.limit, search.factors, search.allowed.shape)
    strongest = float(search.found.percent[box].max())
    if strongest <= 0:
        return []
    loose = replace(settings, opening_mm=0.0, smallest_mm3=0.0)
    regions = _score_regions(replace(search, allowed=box), strongest / 2, 0.0, loose)
    return _separate_regions(regions, search, loose)


def seeds_at(search: Search, settings: KineticSettings, at: tuple[int, int, int]) -> list[Scored]:
    """Return the regions within reach of a clicked voxel in the patient frame.

    The regions are ordered by score x (1 - d / `click_reach_mm`)^2 x p. Here d is the distance in
    mm from the click to the filled region, which is 0 inside the region; specks next to the click
    are therefore not preferred to a rim around it. p is the fraction of the region within
    `click_core_mm` of the click; gland around a lesion is therefore not preferred to the lesion.
    """
    regions = _score_regions(search, search.percent, search.rise, settings)
    centre = [(a - o) // f for a, o, f in zip(at, search.origin, search.factors, strict=True)]
    near = []
    for item in regions:
        away_mm = _away_mm(item, centre, search)
        closeness = 1 - float(away_mm.min()) / settings.click_reach_mm
        if closeness > 0:
            part = float(np.mean(away_mm <= settings.click_core_mm))
            near.append(replace(item, value=item.value * closeness**2 * part))
    near.sort(key=lambda item: -item.value)
    return _separate_regions(near, search, settings)


def outlined(search: Search, seeds: list[Scored], settings: KineticSettings) -> list[Scored]:
    """Outline the regions at full resolution and score the outlines, in the same order."""
    candidates = []
    for n, seed in enumerate(seeds):
        report_progress(n, len(seeds), "Outlining candidates")
        outline = delineate(search.scan, seed.region, search.factors, search.limit, settings)
        if outline is not None:
            place = place_of(outline.region, search, search.factors)
            local = replace(outline.local, share=seed.region.share)
            features = measured(local, outline.found, search.scan.spacing_mm, place)
            candidates.append(Scored(score(features, settings), outline.region, features))
    return candidates


def best_apart(
    candidates: list[Scored], search: Search, settings: KineticSettings, *, by_score: bool
) -> list[Scored]:
    """Return the separate candidates to display, up to the maximum number."""
    if by_score:
        candidates = sorted(candidates, key=lambda item: -item.value)
    return separate(candidates, settings.candidates, search.scan.shape, _SHARED)


def _score_regions(
    search: Search, percent: float, rise: float, settings: KineticSettings
) -> list[Scored]:
    allowed = search.allowed & (search.found.rise > 0) & (search.found.rise >= rise)
    allowed &= search.found.pre + search.found.rise >= _FAINT * search.tissue
    scored = []
    for n, step in enumerate(_LEVELS):
        report_progress(n, len(_LEVELS), _TEXT)
        mask = enhancing(percent * step, search.found, allowed, search.spacing_mm, settings)
        # The same progress is reported again, because each call is a point at which the work can
        # be cancelled.
        report_progress(n, len(_LEVELS), _TEXT)
        for region in regions_of(mask, search.found, search.spacing_mm, settings):
            report_progress(n, len(_LEVELS), _TEXT)
            scored += _with_pieces(region, search, settings)
    return sorted(scored, key=lambda item: -item.value)


def _with_pieces(region: Region, search: Search, settings: KineticSettings) -> list[Scored]:
    """Return a region with its score, and also its parts if the region is not compact.

    Regions inside the chest are omitted.
    """
    place = place_of(region, search)
    if place.behind_chest > settings.beyond_percent / 100:
        return []
    features = measured(region, search.found, search.spacing_mm, place)
    scored = [Scored(score(features, settings), region, features)]
    # A part has a share below 1 of its region and is not divided again.
    if features.compactness < _COMPACT and region.share == 1:
        for thickness_mm in (settings.vessel_mm, 2 * settings.vessel_mm):
            for piece in pieces_of(region, thickness_mm, search.spacing_mm, settings):
                scored += _with_pieces(piece, search, settings)
    return scored


def _separate_regions(
    found: list[Scored], search: Search, settings: KineticSettings
) -> list[Scored]:
    return separate(found, settings.candidates + _SPARE, search.allowed.shape)


def _away_mm(item: Scored, centre: list[int], search: Search) -> NDArray[np.float64]:
    voxels = np.argwhere(item.region.crop) + item.region.box.start - centre
    away: NDArray[np.float64] = np.sqrt(((voxels * search.spacing_mm) ** 2).sum(axis=1))
    return away
