"""Regions that may be the tumour: measured, scored, explained."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.segmentation.enhancement import Enhancement
from napari_mamamia.segmentation.kinetic_settings import KineticSettings
from napari_mamamia.segmentation.regions import Region

__all__ = [
    "Features",
    "Place",
    "Scored",
    "measured",
    "reasons",
    "score",
    "separate",
]

_STRONGEST_PERCENT: Final = 300.0  # more early PE than this says nothing more
_RATIO_RANGE: Final = (0.6, 1.3)  # of SER: persistent curves lie below, vessels above
_AROUND_MM: Final = (2.0, 6.0)  # the tissue that a region is compared with
_LIKELY_PART: Final = 0.5  # share below which the reasons name the larger region
_LIKELY_VESSEL: Final = 0.25  # compactness below which the reasons speak of a vessel

Bools = NDArray[np.bool_]
Spacing = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a region lies, as shares of its volume from 0 to 1; of a prompt all are 0."""

    behind_chest: float = 0.0
    near_skin: float = 0.0
    at_back: bool = False


@dataclass(frozen=True, slots=True)
class Features:
    """What a region is like.

    `percent` is the mean early PE of the core, `contrast` how much that is above the mean PE of the
    tissue 2 to 6 mm around; `ratio` is the core's SER, NaN without a late phase. `compactness` is 1
    for an ellipsoid with two equal long axes, near 0 for a strand; `long_mm` and `thick_mm` are the
    longest and the second axis of the ellipsoid of equal moments.
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
    percent = 100 * early / pre if pre > 0 else _STRONGEST_PERCENT
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
        volume, percent, contrast, ratio, compactness, 2 * axes[0], 2 * axes[1], region.share, place
    )


def score(features: Features, settings: KineticSettings) -> float:
    """Return how much a region looks like a tumour; a number that only orders candidates.

    sqrt(V) x contrast/100 (up to 3) x compactness x SER^2 (SER within 0.6 to 1.3; left out without
    a late phase) x sqrt(share), times 0.05 behind the chest line, 0.2 at the back of the image, 0.4
    near the skin. V is the volume in ml; beyond E = `enough_volume_ml` it is E x E / volume, since
    the largest regions are gland.

    Source: our choice. SER^2 follows Wang 2009, who found 46 % of lesions with washout malignant,
    20 % with a plateau and 13 % with a persistent rise.
    """
    volume, enough = features.volume_mm3 / 1000, settings.enough_volume_ml
    value: float = min(max(features.contrast, 0.0), _STRONGEST_PERCENT) / 100
    value *= features.compactness * math.sqrt(min(volume, enough**2 / volume) * features.share)
    if not np.isnan(features.ratio):
        value *= min(max(features.ratio, _RATIO_RANGE[0]), _RATIO_RANGE[1]) ** 2
    place = features.place
    if place.behind_chest > settings.behind_percent / 100:
        value *= 0.05
    if place.at_back:
        value *= 0.2
    if place.near_skin > 0.5:
        value *= 0.4
    return value


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


def reasons(features: Features, when: str, settings: KineticSettings) -> tuple[str, ...]:
    """Return in plain words, with numbers, why a region got its score.

    `when` names the early phase, such as "at 147 s".
    """
    said = [f"enhances by {features.percent:.0f} % {when}", *_course(features.ratio)]
    said.append(f"{features.volume_mm3 / 1000:.2g} ml, {features.long_mm:.0f} mm long")
    if features.compactness < _LIKELY_VESSEL:
        said.append(
            f"elongated or branching like a vessel (compactness {features.compactness:.2f}, "
            f"{features.thick_mm:.0f} mm thick)"
        )
    else:
        said.append(f"compactness {features.compactness:.2f} (1 is a ball)")
    if features.share < _LIKELY_PART:
        share = 100 * features.share
        said.append(f"{share:.0f} % of a larger enhancing region, such as gland or a vessel")
    return (*said, *_place_reasons(features.place, settings))


def _course(ratio: float) -> tuple[str, ...]:
    if np.isnan(ratio):
        return ()
    if np.isinf(ratio):
        return ("washes out down to the signal before contrast",)
    if ratio > 1.1:
        return (f"washes out (SER {ratio:.2f})",)
    if ratio >= 0.9:
        return (f"stays level (SER {ratio:.2f})",)
    return (f"goes on rising (SER {ratio:.2f})",)


def _place_reasons(place: Place, settings: KineticSettings) -> Iterator[str]:
    if place.behind_chest > settings.behind_percent / 100:
        share = 100 * place.behind_chest
        yield f"{share:.0f} % of it lies behind the chest line: heart or chest wall?"
    if place.at_back:
        yield "touches the back of the image: heart or large vessel?"
    if place.near_skin > 0.5:
        yield f"lies within {settings.near_skin_mm:g} mm of the skin layer: skin or nipple?"


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
