"""Regions that may be the tumour: measured, and told apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.segmentation.kinetic.enhancement import Enhancement
from napari_mamamia.segmentation.kinetic.regions import Region

_NO_SIGNAL_PERCENT: Final = 300.0  # early PE of what has no signal before contrast
_AROUND_MM: Final = (2.0, 6.0)  # the tissue that a region is compared with

Bools = NDArray[np.bool_]
Spacing = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a region lies; the default for a prompt, which says where to look.

    `behind_chest`, `at_wall` (behind the chest's surface), `near_skin` and `beside` (no breast
    stands out there) are shares of its volume, `height` is its middle from 0 at the image's lower
    end to 1 at its upper. `tissue` is the median signal of the breast in the early phase, 0 where
    it is not known.
    """

    behind_chest: float = 0.0
    at_wall: float = 0.0
    near_skin: float = 0.0
    at_back: bool = False
    beside: float = 0.0
    height: float = 0.5
    tissue: float = 0.0


@dataclass(frozen=True, slots=True)
class Features:
    """What a region is like.

    `percent` is the mean early PE of the core, `contrast` how much that is above the mean PE of the
    tissue 2 to 6 mm around; `ratio` is the core's SER, NaN without a late phase. `compactness` is 1
    for an ellipsoid with two equal long axes, near 0 for a strand; `long_mm` and `thick_mm` are the
    longest and the second axis of the ellipsoid of equal moments. `signal` is the core's mean in
    the early phase.
    """

    volume_mm3: float
    percent: float
    contrast: float
    ratio: float
    compactness: float
    long_mm: float
    thick_mm: float
    share: float = 1.0
    place: Place = Place()
    signal: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """A region with its features and what they are worth."""

    value: float
    region: Region
    features: Features


def measured(region: Region, found: Enhancement, spacing_mm: Spacing, place: Place) -> Features:
    """Return the features of `region`, whose box indexes the maps of `found`.

    PE and SER are ratios of mean rises, so that dark noisy voxels cannot inflate them. The shape is
    that of the filled region, from its second moments: an ellipsoid with semi-axes sqrt(5 lambda)
    has the variances lambda.
    """
    inside = region.box.slices
    early = float(found.rise[inside][region.core].mean())
    pre = float(found.pre[inside][region.core].mean())
    percent = 100 * early / pre if pre > 0 else _NO_SIGNAL_PERCENT
    ratio = float("nan")
    if found.late_rise is not None:
        late = float(found.late_rise[inside][region.core].mean())
        ratio = early / late if late > 0 else float("inf")
    contrast = percent - _percent_around(region, found, spacing_mm)
    volume = int(np.count_nonzero(region.crop)) * float(np.prod(spacing_mm))
    axes = _semi_axes_mm(region.crop, spacing_mm)
    solid = volume / (4 / 3 * np.pi * float(np.prod(axes)))
    compactness = float(min(solid, 1.0) * axes[1] / axes[0])
    return Features(
        volume_mm3=volume,
        percent=percent,
        contrast=contrast,
        ratio=ratio,
        compactness=compactness,
        long_mm=2 * axes[0],
        thick_mm=2 * axes[1],
        share=region.share,
        place=place,
        signal=pre + early,
    )


def separate(
    ranked: Sequence[Scored], at_most: int, shape: Sequence[int], shared: float = 0.0
) -> list[Scored]:
    """Return the first regions that lie apart, in the order of `ranked`.

    Regions of several levels are nested; of each nest only the best-scored one stays. A region is
    left out if more than the share `shared` of its voxels belongs to regions before it.
    """
    taken = np.zeros(tuple(shape), dtype=np.bool_)
    chosen: list[Scored] = []
    for item in ranked:
        if len(chosen) == at_most:
            break
        crop = item.region.crop
        here = taken[item.region.box.slices]
        if np.count_nonzero(here & crop) <= shared * np.count_nonzero(crop):
            here |= crop
            chosen.append(item)
    return chosen


def _percent_around(region: Region, found: Enhancement, spacing_mm: Spacing) -> float:
    """Return the PE of the mean signals 2 to 6 mm around a region, at least 0; 0 of nothing."""
    reach = [int(_AROUND_MM[1] / s) + 1 for s in spacing_mm]
    box = region.box.grown(reach, found.pre.shape)
    start = [a - b for a, b in zip(region.box.start, box.start, strict=True)]
    outside = np.ones(box.shape, dtype=np.bool_)
    inner = tuple(slice(o, o + n) for o, n in zip(start, region.crop.shape, strict=True))
    outside[inner] = ~region.crop
    away_mm = ndimage.distance_transform_edt(outside, sampling=spacing_mm)
    ring = (away_mm > _AROUND_MM[0]) & (away_mm <= _AROUND_MM[1])
    if not ring.any():
        return 0.0
    pre = float(found.pre[box.slices][ring].mean())
    return max(100 * float(found.rise[box.slices][ring].mean()) / pre, 0.0) if pre > 0 else 0.0


def _semi_axes_mm(mask: Bools, spacing_mm: Spacing) -> NDArray[np.float64]:
    """Return the semi-axes in mm, longest first, of the ellipsoid with the mask's moments."""
    steps = np.array(spacing_mm)
    points = np.argwhere(mask) * steps
    points -= points.mean(axis=0)
    scatter = points.T @ points / len(points) + np.diag(steps**2 / 12)  # a voxel has an extent
    axes: NDArray[np.float64] = np.sqrt(5 * np.linalg.eigvalsh(scatter)[::-1])
    return axes
