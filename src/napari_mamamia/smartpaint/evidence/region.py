"""A region of least energy, from the image, outlines, marks and a mask."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

from napari_mamamia.core.progress import report_progress
from napari_mamamia.smartpaint.evidence.appearance import Bins, Samples, weigh_image
from napari_mamamia.smartpaint.grow.cut import Energy, relax
from napari_mamamia.smartpaint.grow.grow import blocks, coarsening, refined

LEAST_APART: Final = 0.35
"""Least share of two distributions that must not overlap for the image to be followed."""

MOST_VOXELS: Final = 400_000
"""Above this number of voxels, a region is computed on blocks of voxels."""

_N_ROUNDS: Final = 3
_N_ITERATIONS: Final = 14  # of the cut in each round
_SMOOTHNESS: Final = 2.0  # cost of a face between two voxels of the finest spacing, in log odds
_DEEP: Final = (1.0, 0.4)  # mm, and share of the greatest depth: the inner sample begins here
_AROUND_MM: Final = (1.5, 9.0)  # mm from the region: the range in which surroundings are sampled
_SURE_SHARE: Final = 0.8  # weight of certain voxels in a side's sample
_THRESHOLD: Final = np.float32(0.5)

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]
Spacing = tuple[float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """The evidence about a region apart from the image; arrays ``(z, y, x)`` of one shape.

    Parameters
    ----------
    prior
        float32, log odds of belonging to the region.
    inside, outside
        bool, voxels that belong to it and voxels that do not, whatever the image shows.
    estimate
        bool, the first estimate of the region.
    lesion, around
        bool, voxels that certainly look like the region and like its surroundings; may be empty.
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
    """Return the region, and the share of values that it does not share with its surroundings.

    Three times, the image's evidence is computed from the current region and the prior, and the
    region moves towards least energy by 14 steps. There is no test of convergence, so that equal
    input takes the same time and gives equal bits. Above `most_voxels` all of this is done on
    blocks of voxels, and the membership is interpolated linearly back.

    Parameters
    ----------
    features
        float32 ``(feature, z, y, x)``; a voxel with a value that is not finite gives no evidence.

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
    """Return all arrays on blocks of voxels: the mean, or whether any or all voxels are set."""
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
    """Return the membership of each voxel, 0 to 1, and how far the two sides differ."""
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
    """Return values of the region and of its surroundings; certain voxels weigh most."""
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
    """Return the values of two samples, weighted so that the certain sample dominates."""
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
    """Return the cost of a surface between neighbours along `axis`: lower at a step of the image.

    A step is measured in units of the usual step along that axis, at least twice the noise.
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
