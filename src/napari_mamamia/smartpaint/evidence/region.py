"""Find the region of minimum energy from the image, outlines, marks and a mask.

In an outlined plane the depth is the signed distance to the outline (positive inside). Between two
planes it is interpolated linearly; beyond the last plane it decreases with the distance. Planes
perpendicular to different axes are combined, each weighted by the inverse of its distance.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt, shift

from napari_mamamia.core.box import Box
from napari_mamamia.core.progress import report_progress
from napari_mamamia.smartpaint.evidence.appearance import Bins, Samples, weigh_image
from napari_mamamia.smartpaint.grow.cut import Energy, relax
from napari_mamamia.smartpaint.grow.grow import blocks, coarsening, refined
from napari_mamamia.smartpaint.grow.start import Outline

LEAST_APART: Final = 0.35
"""Smallest non-overlapping fraction of two distributions for which the image is used."""

MOST_VOXELS: Final = 400_000
"""Number of voxels above which a region is computed on blocks of voxels."""

_N_ROUNDS: Final = 3
_N_ITERATIONS: Final = 14  # of the cut in each round
_SMOOTHNESS: Final = 2.0  # cost of a face between two voxels of the finest spacing, in log odds
_DEEP: Final = (1.0, 0.4)  # mm, and share of the greatest depth: the inner sample begins here
_AROUND_MM: Final = (1.5, 9.0)  # mm from the region: the range in which surroundings are sampled
_SURE_SHARE: Final = 0.8  # weight of certain voxels in a side's sample
_FALL: Final = 0.6  # mm of depth per mm beyond the last outline; for a ball 0 to 1 and above
_NEAREST_MM: Final = 1e-3  # mm from a plane: nearer, only the plane counts


_THRESHOLD: Final = np.float32(0.5)

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]
Spacing = tuple[float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """All evidence about a region except the image, as arrays ``(z, y, x)`` of the same shape.

    Parameters
    ----------
    prior
        The log odds of belonging to the region, float32.
    inside, outside
        The voxels that belong to the region, and the voxels that do not, regardless of the image.
    estimate
        The first estimate of the region.
    lesion, around
        The voxels that certainly look like the region, and those that look like its surroundings;
        may be empty.
    """

    prior: Floats
    inside: Bools
    outside: Bools
    estimate: Bools
    lesion: Bools
    around: Bools


def settle_region(
    features: Floats,
    noise: tuple[float, ...],
    spacing_mm: Spacing,
    belief: Belief,
    most_voxels: int = MOST_VOXELS,
) -> tuple[Bools, float]:
    """Return the region, and the fraction of its values that do not occur in its surroundings.

    The image evidence is computed three times from the current region and the prior; each time, 14
    optimisation steps towards minimum energy follow. Convergence is not tested, so identical input
    takes the same time and gives identical results. If there are more than `most_voxels`, the
    region is computed on blocks of voxels, and the membership is interpolated linearly to voxels.

    Parameters
    ----------
    features
        A float32 array ``(feature, z, y, x)``. A voxel with a value that is not finite gives no
        evidence.

    Source: docs/methods/growth.md.
    """
    shape = belief.prior.shape
    factors = coarsening(shape, spacing_mm, most_voxels)
    usable: Bools = np.all(np.isfinite(features), axis=0)
    if not usable.all():
        features = np.where(usable, features, np.float32(0))
    if factors != (1, 1, 1):
        features, usable, belief = _join_blocks(features, usable, belief, factors)
        z, y, x = (step * factor for step, factor in zip(spacing_mm, factors, strict=True))
        spacing_mm = (z, y, x)
    membership, apart = _settle_energy(features, usable, noise, spacing_mm, belief)
    return refined(membership, factors, (shape[0], shape[1], shape[2])), apart


def _join_blocks(
    features: Floats, usable: Bools, belief: Belief, factors: tuple[int, int, int]
) -> tuple[Floats, Bools, Belief]:
    count = blocks(usable.astype(np.float32), factors, np.add)
    size = blocks(np.ones(usable.shape, np.float32), factors, np.add)
    means = [
        blocks(np.where(usable, feature, np.float32(0)), factors, np.add) / np.maximum(count, 1)
        for feature in features
    ]
    joined = Belief(
        prior=blocks(belief.prior, factors, np.add) / size,
        inside=blocks(belief.inside, factors, np.logical_or),
        outside=blocks(belief.outside, factors, np.logical_and),
        estimate=blocks(belief.estimate.astype(np.float32), factors, np.add) >= size / 2,
        lesion=blocks(belief.lesion, factors, np.logical_and),
        around=blocks(belief.around, factors, np.logical_and),
    )
    return np.stack(means), count > 0, joined


def _settle_energy(
    features: Floats,
    usable: Bools,
    noise: tuple[float, ...],
    spacing_mm: Spacing,
    belief: Belief,
) -> tuple[Floats, float]:
    """Return the membership of each voxel (0 to 1), and how much region and surroundings differ."""
    weights = tuple(_weigh_edges(features, noise, spacing_mm, axis) for axis in range(3))
    lowest = belief.inside.astype(np.float32)
    highest = np.maximum(lowest, (~belief.outside).astype(np.float32))
    energy = Energy(belief.prior, (weights[0], weights[1], weights[2]), lowest, highest)
    values = features[:, usable]
    if not values.shape[1]:
        values = np.zeros((len(features), 1), np.float32)
    bins = Bins.of(values, noise)
    region, apart = belief.estimate, 0.0
    membership = region.astype(np.float32)
    for number in range(_N_ROUNDS):
        report_progress(number, _N_ROUNDS, "Following the edge")
        samples = _take_samples(features, usable, spacing_mm, belief, region)
        evidence, apart = weigh_image(features, samples, bins, noise, is_adding=True)
        evidence[~usable] = 0
        evidence += belief.prior
        membership = relax(replace(energy, evidence=evidence), membership, _N_ITERATIONS)
        region = membership >= _THRESHOLD
    report_progress(_N_ROUNDS, _N_ROUNDS, "Following the edge")
    return membership, apart


def _take_samples(
    features: Floats, usable: Bools, spacing_mm: Spacing, belief: Belief, region: Bools
) -> Samples:
    """Return the values of the region and its surroundings; certain voxels weigh most."""
    inner = outer = np.zeros(region.shape, np.bool_)
    if region.all():
        inner = region
    elif region.any():
        depth = distance_transform_edt(region, spacing_mm)
        inner = region & (depth > min(_DEEP[0], _DEEP[1] * depth.max()))
        away = distance_transform_edt(~region, spacing_mm)
        outer = (away > _AROUND_MM[0]) & (away <= _AROUND_MM[1]) & ~belief.lesion
    inner_values, inner_weights = _join_samples(features, inner & usable, belief.lesion & usable)
    outer_values, outer_weights = _join_samples(features, outer & usable, belief.around & usable)
    nothing = np.zeros((len(features), 0), np.float32)
    return Samples(
        inner_values, outer_values, inner_weights, outer_weights, nothing, nothing, nothing
    )


def _join_samples(features: Floats, sampled: Bools, sure: Bools) -> tuple[Floats, Floats]:
    parts = [features[:, sampled], features[:, sure]]
    shares = [1 - _SURE_SHARE if parts[1].size else 1.0, _SURE_SHARE]
    weights = [
        np.full(sample.shape[1], share / max(sample.shape[1], 1), np.float32)
        for sample, share in zip(parts, shares, strict=True)
    ]
    return np.concatenate(parts, axis=1), np.concatenate(weights)


def _weigh_edges(
    features: Floats, noise: tuple[float, ...], spacing_mm: Spacing, axis: int
) -> Floats:
    """Return the cost of a surface between neighbours along `axis`, which is lower at image edges.

    Differences between neighbours are measured in units of the usual difference along that axis,
    which is at least twice the noise.
    """
    moved = features.swapaxes(1, axis + 1)
    total = np.zeros((moved.shape[1] - 1, *moved.shape[2:]), np.float32)
    if total.size:
        for feature, sigma in zip(moved, noise, strict=True):
            step = feature[1:] - feature[:-1]
            step *= step
            scale = max((2 * sigma) ** 2, 2 * float(step.mean(dtype=np.float64)))
            step *= np.float32(1 / (2 * len(noise) * scale))
            total -= step
        with np.errstate(under="ignore"):
            np.exp(total, out=total)
    total *= np.float32(_SMOOTHNESS * min(spacing_mm) / spacing_mm[axis])
    return np.ascontiguousarray(total.swapaxes(0, axis))


Planes = dict[int, dict[int, Bools]]
"""Outlines by axis and by index in the box, as boolean planes of the box."""


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """The shape defined by outlines, as float32 arrays with one value per voxel of a box.

    Parameters
    ----------
    depth_mm
        The depth of a voxel in the shape, which is negative outside.
    beyond_mm
        The distance beyond the outermost outlines along the perpendicular axis; 0 between the
        outlines.
    near_mm
        The distance from the nearest outlined plane.
    """

    depth_mm: Floats
    beyond_mm: Floats
    near_mm: Floats


def planes_in(outlines: Sequence[Outline], box: Box) -> Planes:
    """Return the outlines by plane, cropped to a box; outlines in the same plane are joined.

    Planes outside the box are dropped.
    """
    planes: Planes = {}
    for outline in outlines:
        others = tuple(box.slices[a] for a in range(3) if a != outline.axis)
        of_axis = planes.setdefault(outline.axis, {})
        index = outline.index - box.start[outline.axis]
        of_axis[index] = of_axis.get(index, np.False_) | outline.mask[others]
    return planes


def interpolate_shape(planes: Planes, box_shape: Sequence[int], spacing_mm: Spacing) -> Shape:
    """Return the shape between and beyond outlined planes.

    At least one outline must have a voxel. Source: Raya and Udupa, IEEE Trans Med Imaging 9 (1990)
    32 for the interpolation between outlines. Extrapolation is our choice; see
    docs/methods/growth.md.
    """
    depth, beyond, total = (np.zeros(tuple(box_shape), np.float32) for _ in range(3))
    nearest = np.full(tuple(box_shape), np.inf, np.float32)
    for axis, of_axis in planes.items():
        along, near_mm, beyond_mm = _follow_axis(of_axis, axis, box_shape[axis], spacing_mm)
        upright = [a for a in range(3) if a != axis]
        weight = np.expand_dims(1 / (near_mm + np.float32(_NEAREST_MM)), upright)
        depth += weight * along
        beyond += weight * np.expand_dims(beyond_mm, upright)
        total += weight
        np.minimum(nearest, np.expand_dims(near_mm, upright), out=nearest)
    depth /= total
    beyond /= total
    return Shape(depth, beyond, nearest)


def measure_depth(mask: Bools, spacing_mm: Sequence[float]) -> Floats:
    """Return the depth of each voxel in a mask in mm; it is negative outside.

    The edge is half-way between two voxels of the finest spacing, and the border of the array is
    not an edge. The depth is infinite if a mask has no edge.
    """
    half = min(spacing_mm) / 2
    depth = np.full(mask.shape, -np.inf, np.float32)
    if mask.any():
        depth = (half - distance_transform_edt(~mask, sampling=spacing_mm)).astype(np.float32)
        inner = np.inf if mask.all() else distance_transform_edt(mask, sampling=spacing_mm) - half
        depth = np.where(mask, inner, depth).astype(np.float32)
    return depth


def _follow_axis(
    drawn: Mapping[int, Bools], axis: int, extent: int, spacing_mm: Spacing
) -> tuple[Floats, Floats, Floats]:
    """Return the depth of each plane along an axis, and two distances in mm for each plane.

    The distances are those to the nearest outline, and beyond the outermost outlines.
    """
    in_plane = [step for a, step in enumerate(spacing_mm) if a != axis]
    keys = sorted(drawn)
    depths = {key: measure_depth(drawn[key], in_plane) for key in keys}
    planes = np.arange(extent)
    near = np.abs(planes[:, np.newaxis] - np.array(keys)).min(axis=1) * spacing_mm[axis]
    out_of = np.maximum(keys[0] - planes, planes - keys[-1])
    beyond = np.maximum(out_of, 0) * spacing_mm[axis]
    along = np.empty((extent, *drawn[keys[0]].shape), np.float32)
    for plane in range(extent):
        low = max((key for key in keys if key <= plane), default=keys[0])
        high = min((key for key in keys if key >= plane), default=keys[-1])
        if low == high:
            along[plane] = depths[low] - np.float32(_FALL * beyond[plane])
        else:
            share = (plane - low) / (high - low)
            way = _find_way(drawn[low], drawn[high])
            along[plane] = (1 - share) * _move_depth(depths[low], share * way)
            along[plane] += share * _move_depth(depths[high], (share - 1) * way)
    return np.moveaxis(along, 0, axis), near.astype(np.float32), beyond.astype(np.float32)


def _find_way(first: Bools, second: Bools) -> NDArray[np.float64]:
    """Return the offset in voxels between outlines that share no voxel, or 0 for other outlines."""
    if (first & second).any():
        return np.zeros(2)
    way: NDArray[np.float64] = np.argwhere(second).mean(axis=0) - np.argwhere(first).mean(axis=0)
    return way


def _move_depth(depth: Floats, way: NDArray[np.float64]) -> Floats:
    if not way.any():
        return depth
    moved: Floats = shift(depth, way, order=1, mode="nearest")
    return moved
