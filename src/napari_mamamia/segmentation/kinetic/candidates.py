"""Candidate regions of a tumour: compute their features, and select separate regions."""

from collections.abc import Iterator, Sequence
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
_NO_SIGNAL_PERCENT: Final = 300.0  # early PE of voxels without signal before contrast
_AROUND_MM: Final = (2.0, 6.0)  # the tissue around a region with which it is compared


_ALL_NEIGHBOURS: Final = np.ones((3, 3, 3), dtype=np.bool_)
_UNCHANGED: Final = 0.9  # fraction of the volume; a region that keeps more has no strands

Bools = NDArray[np.bool_]
Spacing = tuple[float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """A connected region; `core` is its enhancing part, and `crop` is the core with holes filled.

    `share` is its volume as a fraction of the connected region from which it was separated.
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
    """Return the voxels of `allowed` whose enhancement is at least `level_percent`.

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
    """Yield the parts into which a region falls when strands up to `thickness_mm` are removed.

    An opening removes the strands and separates a lesion from its vessels. No part is returned if
    the region has hardly any strands.
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


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a region relative to the breast, chest wall and image.

    If a prompt gives the position, the defaults are used. `behind_chest`, `at_wall` (behind the
    surface of the chest), `near_skin` and `beside` (where no breast protrudes) are fractions of its
    volume. `height` is the height of its centre, from 0 at the lower end of the image to 1 at the
    upper end. `tissue` is the median signal of the breast in the early phase, or 0 if unknown.
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
    """Measured features of a region.

    `percent` is the mean early PE of the core, and `contrast` is its excess over the mean PE of the
    tissue at a distance of 2 to 6 mm. `ratio` is the SER of the core, or NaN without a late phase.
    `compactness` is 1 for an ellipsoid whose two longest axes are equal, and near 0 for a strand.
    `long_mm` and `thick_mm` are the longest and second longest axis of the ellipsoid with equal
    moments. `signal` is the mean signal of the core in the early phase.
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
    """A region with its features and its score."""

    value: float
    region: Region
    features: Features


def measured(region: Region, found: Enhancement, spacing_mm: Spacing, place: Place) -> Features:
    """Return the features of `region`, whose box is an index into the maps of `found`.

    PE and SER are ratios of mean rises, so dark, noisy voxels cannot inflate them. The shape is
    computed from the second moments of the filled region; an ellipsoid with semi-axes sqrt(5
    lambda) has the variances lambda.
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
    """Return the highest-ranked regions that are separate from each other, in the same order.

    Regions of several levels are nested, and only the nested region with the best score is kept. A
    region is dropped if more than the fraction `shared` of its voxels belongs to earlier regions.
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
    """Return the PE of the mean signals at 2 to 6 mm from a region, or 0 if it is negative.

    Without such voxels the result is 0.
    """
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
    """Return the semi-axes in mm of the ellipsoid with the mask's moments, longest first."""
    steps = np.array(spacing_mm)
    points = np.argwhere(mask) * steps
    points -= points.mean(axis=0)
    scatter = points.T @ points / len(points) + np.diag(steps**2 / 12)  # a voxel has an extent
    axes: NDArray[np.float64] = np.sqrt(5 * np.linalg.eigvalsh(scatter)[::-1])
    return axes
