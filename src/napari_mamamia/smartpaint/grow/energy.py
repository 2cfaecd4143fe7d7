"""The energy of growth: evidence and edges of a box, on a coarser grid where the box is large."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.smartpaint.brush.features import FeatureImages
from napari_mamamia.smartpaint.grow.cut import Energy
from napari_mamamia.smartpaint.grow.evidence import Tissue, log_odds
from napari_mamamia.smartpaint.grow.start import GrowSettings, Start

__all__ = ["Factors", "blocks", "coarsening", "energy_of", "refined"]

_SLAB: Final = 250_000  # voxels that are worked on between two yields

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]
Factors = tuple[int, int, int]
Spacing = tuple[float, float, float]


def coarsening(shape: Sequence[int], spacing_mm: Spacing, most_voxels: int) -> Factors:
    """Return how many voxels to join along each axis so that at most `most_voxels` are left.

    The finest axis is coarsened first; 1 along every axis where the box is small enough.

    Examples
    --------
    >>> coarsening((60, 200, 200), (2.0, 0.7, 0.7), 1_000_000)
    (1, 2, 2)
    """
    factors = [1, 1, 1]
    while np.prod([-(-n // f) for n, f in zip(shape, factors, strict=True)]) > most_voxels:
        sizes = [
            f * s if f < n else np.inf for f, s, n in zip(factors, spacing_mm, shape, strict=True)
        ]
        factors[int(np.argmin(sizes))] += 1
    return (factors[0], factors[1], factors[2])


def energy_of(
    images: FeatureImages,
    start: Start,
    tissues: tuple[Tissue, Tissue],
    settings: GrowSettings,
    factors: Factors,
) -> Job[Energy]:
    """Return a job that computes the energy of regions that are made of whole blocks of voxels.

    Evidence is `log_odds`, summed over a block. The weight between neighbours p and q is
    ``smoothness exp(-mean_k (dF_k / 2 noise_k)^2 / 2) (finest spacing / spacing)``, summed over the
    face between two blocks. So a region of blocks costs what it costs voxel by voxel.

    Source: docs/methods/growth.md.
    """
    box = start.box
    planes = max(_SLAB // (box.shape[1] * box.shape[2]) // factors[0], 1) * factors[0]
    slabs = []
    for first in range(0, box.shape[0], planes):
        yield Progress(first, box.shape[0], "Comparing with the outline")
        last = min(first + planes, box.shape[0])
        slabs.append(_slab(images, box, (first, last), tissues, settings, factors))
    evidence = np.concatenate([slab[0] for slab in slabs])
    deep, rows, columns = (np.concatenate([slab[1][axis] for slab in slabs]) for axis in range(3))
    lowest = blocks(start.inside, factors, np.logical_or).astype(np.float32)
    highest = 1 - blocks(start.outside, factors, np.logical_and).astype(np.float32)
    return Energy(evidence, (deep, rows, columns), lowest, np.maximum(lowest, highest))


def refined(membership: Floats, factors: Factors, shape: tuple[int, int, int]) -> Bools:
    """Return where a membership of blocks, interpolated linearly to voxels, is at least 0.5."""
    if factors == (1, 1, 1):
        return membership >= np.float32(0.5)
    out = np.empty(shape, dtype=np.bool_)
    (low, high, share), *plane = (
        _between(n, f, len_) for n, f, len_ in zip(shape, factors, membership.shape, strict=True)
    )
    for z in range(shape[0]):
        image = membership[low[z]] * (1 - share[z]) + membership[high[z]] * share[z]
        for axis, (before, after, part) in enumerate(plane):
            part = part[:, np.newaxis] if axis == 0 else part
            image = image.take(before, axis) * (1 - part) + image.take(after, axis) * part
        np.greater_equal(image, np.float32(0.5), out=out[z])
    return out


def _between(n: int, factor: int, blocks: int) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """Return, for `n` voxels, the blocks whose centres lie before and after, and the share."""
    place = np.clip((np.arange(n) + 0.5) / factor - 0.5, 0, blocks - 1)
    low = np.floor(place).astype(np.intp)
    return low, np.minimum(low + 1, blocks - 1), (place - low).astype(np.float32)


def _slab(
    images: FeatureImages,
    box: Box,
    planes: tuple[int, int],
    tissues: tuple[Tissue, Tissue],
    settings: GrowSettings,
    factors: Factors,
) -> tuple[Floats, list[Floats]]:
    """Return evidence and weights of some planes of the box, in blocks.

    Weights along z reach to the next plane after them, where there is one.
    """
    first, last = (box.start[0] + plane for plane in planes)
    more = min(last + 1, box.stop[0])
    features = images.in_box(Box((first, *box.start[1:]), (more, *box.stop[1:])))
    if not np.isfinite(features).all():
        features[:, ~np.isfinite(features).all(axis=0)] = np.nan
    own = features[:, : last - first]
    evidence = blocks(log_odds(own, *tissues), factors, np.add)
    spacing, weights = images.case.grid.spacing_mm, []
    for axis in range(3):
        part = features if axis == 0 else own
        strength = settings.smoothness * min(spacing) / spacing[axis]
        weight = _edges(part, axis, images.noise, strength, factors[axis])
        across = tuple(1 if a == axis else f for a, f in enumerate(factors))
        weights.append(blocks(weight, across, np.add))
    return evidence, weights


def _edges(
    features: Floats, axis: int, noise: tuple[float, ...], strength: float, every: int
) -> Floats:
    """Return the weight between each voxel that ends a block along `axis` and the next one."""
    here = [slice(None)] * 3
    there = [slice(None)] * 3
    here[axis] = slice(every - 1, max(features.shape[axis + 1] - 1, 0), every)
    there[axis] = slice(every, None, every)
    weight: Floats = np.zeros_like(features[0][tuple(there)])
    for feature, sigma in zip(features, noise, strict=True):
        part = feature[tuple(there)] - feature[tuple(here)]
        part *= np.float32(1 / (2 * sigma * np.sqrt(2 * len(noise))))
        part *= part
        weight -= part
    np.nan_to_num(weight, copy=False, nan=0.0, neginf=-np.inf)
    with np.errstate(under="ignore"):
        np.exp(weight, out=weight)
    weight *= np.float32(strength)
    return weight


def blocks(array: NDArray[Any], factors: Sequence[int], join: np.ufunc) -> NDArray[Any]:
    """Return `array` with `join` taken over blocks; those at the ends may be smaller."""
    for axis, factor in enumerate(factors):
        if factor > 1 and array.shape[axis]:
            array = join.reduceat(array, np.arange(0, array.shape[axis], factor), axis=axis)
    return array
