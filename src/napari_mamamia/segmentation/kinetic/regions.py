"""Connected regions that enhance, and their parts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.box import Box
from napari_mamamia.segmentation.kinetic.enhancement import Enhancement
from napari_mamamia.segmentation.kinetic.kinetic_settings import KineticSettings
from napari_mamamia.segmentation.model.morphology import ball_offsets, closed, filled, opened

_LOOKED_AT: Final = 40  # regions of one level that are measured, strongest enhancement first
_ALL_NEIGHBOURS: Final = np.ones((3, 3, 3), dtype=np.bool_)
_UNCHANGED: Final = 0.9  # share of its volume: a region that keeps more has no strands

Bools = NDArray[np.bool_]
Spacing = tuple[float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """A connected region: `core` is its enhancing part, `crop` is the core with holes filled.

    `share` is its share, by volume, of the connected region from which it was opened.
    """

    box: Box
    crop: Bools
    core: Bools
    share: float = 1.0


def enhancing(
    level_percent: float,
    found: Enhancement,
    allowed: Bools,
    spacing_mm: Spacing,
    settings: KineticSettings,
) -> Bools:
    """Return the voxels of `allowed` that enhance by at least `level_percent`.

    An opening removes thin strands, and gaps are closed.
    """
    mask = allowed & (found.percent >= level_percent)
    mask = opened(mask, ball_offsets(settings.opening_mm, spacing_mm))
    return closed(mask, ball_offsets(settings.closing_mm, spacing_mm)) & allowed


def regions_of(
    mask: Bools, found: Enhancement, spacing_mm: Spacing, settings: KineticSettings
) -> Iterator[Region]:
    """Yield the 26-connected regions of `mask` with their holes filled.

    At most 40 regions are returned, in descending order of their sum of PE.
    """
    labels, _ = ndimage.label(mask, structure=_ALL_NEIGHBOURS)
    hit = labels[mask]
    if hit.size == 0:
        return
    smallest = settings.smallest_mm3 / float(np.prod(spacing_mm))
    strength = np.bincount(hit, weights=found.percent[mask])
    strength[np.bincount(hit) < smallest] = 0.0
    boxes = ndimage.find_objects(labels)
    for label in np.argsort(-strength, kind="stable")[:_LOOKED_AT]:
        if strength[label] > 0:
            where = boxes[label - 1]
            core = labels[where] == label
            start, stop = tuple(s.start for s in where), tuple(s.stop for s in where)
            yield Region(Box(start, stop), filled(core, most=settings.most_fill), core)


def pieces_of(
    whole: Region, thickness_mm: float, spacing_mm: Spacing, settings: KineticSettings
) -> Iterator[Region]:
    """Yield the parts of a region after an opening that removes strands of `thickness_mm`.

    This separates a lesion from its vessels. Nothing is returned if the region has hardly any
    strands.
    """
    rest = opened(whole.crop, ball_offsets(thickness_mm / 2, spacing_mm))
    before = np.count_nonzero(whole.crop)
    if np.count_nonzero(rest) > _UNCHANGED * before:
        return
    labels, _ = ndimage.label(rest, structure=_ALL_NEIGHBOURS)
    sizes = np.bincount(labels.ravel())
    smallest = settings.smallest_mm3 / float(np.prod(spacing_mm))
    for label, where in enumerate(ndimage.find_objects(labels), start=1):
        crop = labels[where] == label
        core = crop & whole.core[where]
        if sizes[label] >= smallest and core.any():
            start = tuple(s.start + o for s, o in zip(where, whole.box.start, strict=True))
            stop = tuple(s.stop + o for s, o in zip(where, whole.box.start, strict=True))
            yield Region(Box(start, stop), crop, core, int(sizes[label]) / before)
