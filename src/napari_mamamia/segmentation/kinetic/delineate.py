"""The outline of one candidate at the image's own resolution."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.box import Box
from napari_mamamia.segmentation.kinetic.enhancement import Enhancement, enhancement_of
from napari_mamamia.segmentation.kinetic.kinetic_settings import KineticSettings
from napari_mamamia.segmentation.kinetic.pooling import Factors, spread
from napari_mamamia.segmentation.kinetic.regions import Region
from napari_mamamia.segmentation.kinetic.scan import Scan, Voxel, moved, times
from napari_mamamia.segmentation.kinetic.smoothing import smoothed
from napari_mamamia.segmentation.model.morphology import (
    ball_offsets,
    closed,
    dilated,
    filled,
    opened,
)

__all__ = ["Outline", "delineate"]

_LESION: Final = 75.0  # percentile of the seed's rise: its border voxels hold little lesion
_MARGIN_MM: Final = 8.0  # surroundings whose median rise is the background

Bools = NDArray[np.bool_]
Spacing = tuple[float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Outline:
    """A region at full resolution, its box within the maps `found` of it and its surroundings.

    `origin` is the voxel of the scan where the maps begin.
    """

    local: Region
    found: Enhancement
    origin: tuple[int, int, int]

    @property
    def region(self) -> Region:
        """The region with its box in the scan."""
        return Region(moved(self.local.box, self.origin), self.local.crop, self.local.core)


def _cut_phase(phase: NDArray[Any], box: Box) -> NDArray[np.float32]:
    """Return the voxels of `box` as a new float32 array, 0 where they are not finite."""
    values = np.ascontiguousarray(phase[box.slices], dtype=np.float32)
    if np.issubdtype(phase.dtype, np.floating):
        values = np.where(np.isfinite(values), values, np.float32(0))
    return values


def delineate(
    scan: Scan, seed: Region, factors: Factors, limit: Box, settings: KineticSettings
) -> Outline | None:
    """Return the outline of a region that was found on the search grid, or None if nothing is left.

    1. The lesion's level is the upper quartile of the rise (early minus phase 0) in the seed's
       enhancing part, the background's the median rise of the surroundings of 8 mm. The rise of a
       voxel is linear in the share of lesion that it holds, so the edge lies half-way; PE is not
       linear in it where lesion and surroundings differ before contrast.
    2. What reaches that level within `edge_reach_mm` of the seed and hangs together with it is the
       core; strands are opened away.
    3. Gaps are closed and holes filled.

    Parameters
    ----------
    scan
        The phases.
    seed
        A region of the search grid, whose index 0 lies on the scan's.
    factors
        Scan voxels in a voxel of the search grid.
    limit
        Nothing outside this box of the scan is returned.
    settings
        Thresholds.
    """
    inner = _at_full(seed.box, factors, scan.shape)
    margin = [int(_MARGIN_MM / s) + 1 for s in scan.spacing_mm]
    box = inner.grown(margin, scan.shape)
    found = _maps(scan, box, settings)
    core = _placed(spread(seed.core, factors, inner.shape), inner, box)
    around = dilated(core, ball_offsets(settings.edge_reach_mm, scan.spacing_mm))
    high = _edge_level(found.rise, core, ~around, settings)
    mask = (found.rise >= high) & around & _within(box, limit)
    mask = _connected(mask, core, scan.spacing_mm, settings)
    if not mask.any():
        return None
    whole = closed(mask, ball_offsets(settings.closing_mm, scan.spacing_mm))
    whole = filled(whole, most=settings.most_fill) & _within(box, limit)
    tight = Box.around(whole)
    region = Region(tight, np.ascontiguousarray(whole[tight.slices]), mask[tight.slices])
    return Outline(region, found, box.start)


def _maps(scan: Scan, box: Box, settings: KineticSettings) -> Enhancement:
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


def _connected(mask: Bools, core: Bools, spacing_mm: Spacing, settings: KineticSettings) -> Bools:
    """Return the 26-connected pieces of `mask`, opened if that leaves any, that meet `core`."""
    thick = opened(mask, ball_offsets(settings.opening_mm, spacing_mm))
    mask = thick if (thick & core).any() else mask
    labels, count = ndimage.label(mask, structure=np.ones((3, 3, 3), dtype=np.bool_))
    keep = np.zeros(count + 1, dtype=np.bool_)
    keep[labels[core & mask]] = True
    keep[0] = False
    kept: Bools = keep[labels]
    return kept


def _at_full(box: Box, factors: Factors, shape: Voxel) -> Box:
    d, e, f = (min(a, n) for a, n in zip(times(box.stop, factors), shape, strict=True))
    return Box(times(box.start, factors), (d, e, f))


def _placed(mask: Bools, inner: Box, outer: Box) -> Bools:
    out = np.zeros(outer.shape, dtype=np.bool_)
    start = [a - b for a, b in zip(inner.start, outer.start, strict=True)]
    out[tuple(slice(o, o + n) for o, n in zip(start, inner.shape, strict=True))] = mask
    return out


def _within(box: Box, limit: Box) -> Bools:
    """Return, over the voxels of `box`, whether they lie in `limit`."""
    out = np.zeros(box.shape, dtype=np.bool_)
    start = [max(a, b) - b for a, b in zip(limit.start, box.start, strict=True)]
    stop = [max(min(a, b) - o, 0) for a, b, o in zip(limit.stop, box.stop, box.start, strict=True)]
    out[tuple(slice(a, b) for a, b in zip(start, stop, strict=True))] = True
    return out
