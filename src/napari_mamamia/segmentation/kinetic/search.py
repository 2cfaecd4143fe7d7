"""The region in which the kinetic segmenter searches (breast or prompt), with its maps."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.progress import part, report_progress
from napari_mamamia.segmentation.kinetic.breast import find_breast
from napari_mamamia.segmentation.kinetic.candidates import Place, Region
from napari_mamamia.segmentation.kinetic.enhancement import (
    Enhancement,
    Factors,
    Scan,
    Voxel,
    enhancement_job,
    moved,
    pool_factors,
    pooled_job,
    times,
)
from napari_mamamia.segmentation.kinetic.kinetic_settings import KineticSettings
from napari_mamamia.segmentation.model.morphology import ball_offsets, eroded

_MARGIN_MM: Final = 10.0  # margin around the searched region, for the outlines
_SURROUNDINGS_MM: Final = 20.0  # margin around a prompt, for the background
_AT_CLICK_MM: Final = 5.0  # radius around a click, for the threshold
_FINE_VOXELS: Final = (
    4_000_000  # a prompt with at most this many voxels is searched without pooling
)

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """A part of the scan, with maps on the search grid and the region allowed for candidates.

    `scan` is cropped to the part, which begins at voxel `origin` of the whole patient frame;
    `limit` is the box in the part that a mask may fill. `percent` is the PE threshold, and `rise`
    is the threshold of the rise. `deep` (away from the skin), `before_chest`, `before_wall` (in
    front of the surface of the chest) and `stands_out` ((superior, left), True at a breast) are
    used by `place_of` and are None for a prompt. `back_row` is the posterior end of the image and
    `top_row` its upper end, both on the search grid. `tissue` is the breast's median signal in the
    early phase, or 0 for a prompt. `brightens` is True if the early phase is brighter than phase 0.
    """

    scan: Scan
    origin: Voxel
    limit: Box
    factors: Factors
    found: Enhancement
    allowed: Bools
    percent: float
    rise: float
    deep: Bools | None = None
    before_chest: Bools | None = None
    before_wall: Bools | None = None
    stands_out: Bools | None = None
    back_row: int = -1
    top_row: int = -1
    tissue: float = 0.0
    brightens: bool = True
    notes: tuple[str, ...] = ()

    @property
    def spacing_mm(self) -> tuple[float, float, float]:
        """Spacing of the search grid in mm."""
        return _coarsen_spacing(self.scan, self.factors)


def search_breast(scan: Scan, settings: KineticSettings) -> Search:
    """Return the breast with its maps, and report progress from 0 to 100."""
    factors = pool_factors(scan.spacing_mm, settings.search_grid_mm)
    with part(0, 50, 100):
        pre, early = _two_phases(scan, factors)
    spacing = _coarsen_spacing(scan, factors)
    with part(50, 65, 100):
        region = find_breast((pre + early) / np.float32(2), spacing, settings.breast)
    rows = np.arange(pre.shape[1])
    searched = region.inside & region.before_cut(rows, settings.behind_search_mm, spacing)
    box = Box.around(searched).grown([int(_MARGIN_MM / s) + 1 for s in spacing], pre.shape)
    here = box.slices
    scan = _cut_to(scan, box, factors, pre)
    with part(65, 95, 100):
        maps = enhancement_job(
            scan, factors, (pre[here], early[here]), region.breast[here], settings.smoothing_mm
        )
    half = ball_offsets(settings.near_skin_mm / 2, spacing)  # twice half the ball is the ball
    deep = eroded(region.inside[here], half)
    report_progress(97, 100, "Comparing phases")
    deep = eroded(deep, half)
    report_progress(100, 100, "Comparing phases")
    return Search(
        scan=scan,
        origin=times(box.start, factors),
        limit=Box.whole(scan.shape),
        factors=factors,
        found=maps,
        allowed=searched[here],
        percent=settings.enhancement_percent,
        rise=settings.noise_factor * maps.noise,
        deep=deep,
        before_chest=region.before_cut(rows, 0.0, spacing)[here],
        before_wall=region.before_cut(rows, -settings.breast.chest_depth_mm, spacing)[here],
        stands_out=region.stands_out[here[0], here[2]],
        back_row=pre.shape[1] - box.start[1],
        top_row=pre.shape[0] - box.start[0],
        tissue=_compute_median(early[region.breast]),
        brightens=_is_brightening(maps, region.breast[here]),
        notes=region.notes,
    )


def search_around(
    scan: Scan, target: Box, settings: KineticSettings, at: Voxel | None = None
) -> Search:
    """Return the maps in and around a box in the patient frame.

    The breast is not detected, because the prompt gives the position. The PE threshold is lowered
    to half of the strongest PE (its 99th percentile) of the box, or within 5 mm of the voxel `at`,
    but not below `lowest_enhancement_percent`.
    """
    margin = [int(_SURROUNDINGS_MM / s) + 1 for s in scan.spacing_mm]
    wide = target.grown(margin, scan.shape)
    fine = int(np.prod(wide.shape)) <= _FINE_VOXELS
    factors = (1, 1, 1) if fine else pool_factors(scan.spacing_mm, settings.search_grid_mm)
    scan = scan.cut(wide)
    with part(0, 60, 100):
        pre, early = _two_phases(scan, factors)
    scan = replace(scan, bright=float(np.percentile(pre, 99)))
    everywhere = np.ones(pre.shape, dtype=np.bool_)
    with part(60, 100, 100):
        maps = enhancement_job(scan, factors, (pre, early), everywhere, settings.smoothing_mm)
    limit = moved(target, [-n for n in wide.start])
    near = touched(limit, factors, maps.pre.shape)
    if at is not None:
        near = _find_near(
            [(a - o) // f for a, o, f in zip(at, wide.start, factors, strict=True)],
            _coarsen_spacing(scan, factors),
            pre,
        )
    half = float(np.percentile(maps.percent[near], 99)) / 2
    percent = max(min(settings.enhancement_percent, half), settings.lowest_enhancement_percent)
    return Search(
        scan=scan,
        origin=wide.start,
        limit=limit,
        factors=factors,
        found=maps,
        allowed=everywhere,
        percent=percent,
        rise=settings.noise_factor * maps.noise,
        brightens=_is_brightening(maps, everywhere),
    )


def touched(box: Box, factors: Factors, shape: Sequence[int]) -> Bools:
    """Return the voxels of a pooled grid of `shape` that touch a box of the original grid."""
    out = np.zeros(tuple(shape), dtype=np.bool_)
    edges = zip(box.start, box.stop, factors, strict=True)
    out[tuple(slice(a // f, -(-b // f)) for a, b, f in edges)] = True
    return out


def place_of(region: Region, search: Search, factors: Factors = (1, 1, 1)) -> Place:
    """Return the position of a region; for a prompt, return the default position.

    `factors` is the number of voxels of the region's grid per voxel of the search grid.
    """
    deep, stands_out = search.deep, search.stands_out
    before_chest, before_wall = search.before_chest, search.before_wall
    if deep is None or stands_out is None or before_chest is None or before_wall is None:
        return Place()
    voxels = (np.argwhere(region.crop) + region.box.start) // factors
    index = tuple(voxels.T)
    rows = search.back_row * factors[1]
    below = search.origin[0] / search.factors[0]
    return Place(
        behind_chest=1 - float(before_chest[index].mean()),
        at_wall=1 - float(before_wall[index].mean()),
        near_skin=1 - float(deep[index].mean()),
        at_back=region.box.stop[1] >= rows,
        beside=1 - float(stands_out[index[0], index[2]].mean()),
        height=(below + float(index[0].mean())) / (below + search.top_row),
        tissue=search.tissue,
    )


def _two_phases(scan: Scan, factors: Factors) -> tuple[Floats, Floats]:
    """Return phase 0 and the early phase, pooled; raise `CaseError` if phase 0 is constant."""
    with part(0, 50, 100):
        pre = pooled_job(scan.pre, factors, "Reading phase 0")
    if pre.max() <= 0 or pre.max() == pre.min():
        raise CaseError(
            "expected phase 0 to show tissue, but all voxels used have the value "
            f"{pre.flat[0]:g}; check the file, or draw a different box"
        )
    with part(50, 100, 100):
        early = pooled_job(scan.early, factors, "Reading the early phase")
    return pre, early


def _cut_to(scan: Scan, box: Box, factors: Factors, pre: Floats) -> Scan:
    stop = np.minimum(times(box.stop, factors), scan.shape)
    full = Box(times(box.start, factors), (int(stop[0]), int(stop[1]), int(stop[2])))
    return replace(scan.cut(full), bright=float(np.percentile(pre, 99)))


def _is_brightening(found: Enhancement, where: Bools) -> bool:
    """Return whether tissue becomes brighter, on average or in its brightest voxels."""
    rise = found.rise[where]
    if rise.size == 0:
        return True
    low, high = np.percentile(rise, (1, 99))
    return bool(rise.mean() > 0 or high > -low)


def _compute_median(values: Floats) -> float:
    return float(np.median(values)) if values.size else 0.0


def _find_near(
    centre: list[int], spacing_mm: tuple[float, float, float], like: NDArray[Any]
) -> Bools:
    squares = [
        ((np.arange(n) - c) * s) ** 2
        for n, c, s in zip(like.shape, centre, spacing_mm, strict=True)
    ]
    away: Bools = squares[0][:, None, None] + squares[1][:, None] + squares[2] <= _AT_CLICK_MM**2
    return away


def _coarsen_spacing(scan: Scan, factors: Factors) -> tuple[float, float, float]:
    a, b, c = (s * f for s, f in zip(scan.spacing_mm, factors, strict=True))
    return (a, b, c)
