"""Growth of outlined slices into a smooth 3-D region that follows the image."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import label

from napari_mamamia.core.box import Box
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.smartpaint.brush.features import FeatureImages
from napari_mamamia.smartpaint.grow.cut import Cut, Energy, least_cut
from napari_mamamia.smartpaint.grow.outlines import start_from_outlines
from napari_mamamia.smartpaint.grow.start import GrowSettings, Outline, Start

# Image evidence: distributions of tissues, and log odds between two of them.

MOST_EVIDENCE: Final = 8.0
"""Limit of a voxel's log odds, so that no single voxel outweighs its neighbourhood.

Source: docs/methods/growth.md.
"""

_MAD_TO_SIGMA: Final = 1.4826  # of a normal distribution
_OUTLIER: Final = 3.0  # scales: values farther away count as this far in correlations; our choice
_PRIOR_VOXELS: Final = (
    10.0  # uncorrelated samples that stabilise the correlations of few voxels; our choice
)
_OWN: Final = (
    0.95  # share of a correlation that is kept, so that no combination is free of noise; our choice
)

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Tissue:
    """A normal distribution of the features, defined by its middle and its precision.

    `root` is an upper triangular matrix; its transpose times itself is the precision. `middle` has
    one value for each feature, in the signal's unit. ``log_density(x)`` is ``-|root (x -
    middle)|^2 / 2 + log_peak`` up to a constant.
    """

    middle: NDArray[np.float64]
    root: NDArray[np.float64]
    log_peak: float


def tissue_of(values: NDArray[Any], noise: tuple[float, ...]) -> Tissue:
    """Return the distribution of a sample of voxels, which is robust against a few outliers.

    The middle of each feature is the median, and its scale is 1.4826 times the median absolute
    deviation, but at least the noise. Features share noise ("post - pre" contains the noise of
    "post"), so their evidence must not be added as if they were independent. Correlations are
    computed from the distances to the middle in units of the scale, limited to 3.

    Parameters
    ----------
    values
        The finite values ``(feature, voxel)`` of at least one voxel.
    noise
        The noise of each feature, which is above 0.

    Source: docs/methods/growth.md for median and MAD; the correlations are our choice.
    """
    middle = _find_medians(values).astype(np.float64)
    away = values - middle[:, np.newaxis]
    scale = np.maximum(_MAD_TO_SIGMA * _find_medians(np.abs(away)), noise)
    away = np.clip(away / scale[:, np.newaxis], -_OUTLIER, _OUTLIER)
    together = away @ away.T + _PRIOR_VOXELS * np.eye(len(scale))
    size = np.sqrt(np.diag(together))
    correlation = _OWN * together / np.outer(size, size) + (1 - _OWN) * np.eye(len(scale))
    precision = np.linalg.inv(correlation * np.outer(scale, scale))
    root = np.linalg.cholesky(precision).T
    return Tissue(middle, root, float(np.log(np.diag(root)).sum()))


def _find_medians(values: NDArray[Any]) -> NDArray[Any]:
    n = values.shape[1]
    parts = np.partition(values, n // 2, axis=1)
    high = parts[:, n // 2]
    return high if n % 2 else np.mean([parts[:, : n // 2].max(axis=1), high], axis=0)


def log_odds(features: Floats, tissue: Tissue, other: Tissue) -> Floats:
    """Return ``log p(tissue) - log p(other)`` of each voxel, float32 within -8 to 8.

    `features` are ``(feature, ...)``. The log odds are 0 for a voxel with a value that is not
    finite.
    """
    odds = _squared_distance(features, other)
    odds -= _squared_distance(features, tissue)
    odds *= np.float32(0.5)
    odds += np.float32(tissue.log_peak - other.log_peak)
    np.clip(odds, -MOST_EVIDENCE, MOST_EVIDENCE, out=odds)
    np.copyto(odds, 0, where=np.isnan(odds))
    return odds


def contrast(tissue: Tissue, other: Tissue, noise: tuple[float, ...]) -> float:
    """Return the largest difference of the two middles over the features, in units of noise."""
    return float(np.max(np.abs(tissue.middle - other.middle) / noise))


def _squared_distance(features: Floats, tissue: Tissue) -> Floats:
    shape = features.shape[1:]
    total = np.zeros(shape, dtype=np.float32)
    row, term = (np.empty(shape, dtype=np.float32) for _ in range(2))
    with np.errstate(over="ignore", invalid="ignore"):
        for i, weights in enumerate(tissue.root):
            np.multiply(features[i], np.float32(weights[i]), out=row)
            row += np.float32(-float(weights @ tissue.middle))
            for j in range(i + 1, len(weights)):
                np.multiply(features[j], np.float32(weights[j]), out=term)
                row += term
            row *= row
            total += row
    return total


# The energy of growth: evidence and edges of a box, on a coarser grid if the box is large.

_SLAB: Final = 250_000  # voxels processed between two yields

Bools = NDArray[np.bool_]
Factors = tuple[int, int, int]
Spacing = tuple[float, float, float]


def coarsening(shape: Sequence[int], spacing_mm: Spacing, most_voxels: int) -> Factors:
    """Return the number of voxels to join along each axis, to get at most `most_voxels` blocks.

    The finest axis is coarsened first. The number is 1 along every axis if the box is small enough.

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
) -> Energy:
    """Return the energy of regions that consist of whole blocks of voxels.

    Evidence is `log_odds`, summed over a block. The weight between neighbours p and q is
    ``smoothness exp(-mean_k (dF_k / 2 noise_k)^2 / 2) (finest spacing / spacing)``, summed over the
    face between two blocks. The energy of a region of blocks therefore equals its energy computed
    for voxels.

    Source: docs/methods/growth.md.
    """
    box = start.box
    # Slabs end at block borders, so that no block is summed in two halves.
    planes = max(_SLAB // (box.shape[1] * box.shape[2]) // factors[0], 1) * factors[0]
    slabs = []
    for first in range(0, box.shape[0], planes):
        report_progress(first, box.shape[0], "Comparing with the outline")
        last = min(first + planes, box.shape[0])
        slabs.append(_weigh_slab(images, box, (first, last), tissues, settings, factors))
    evidence = np.concatenate([slab[0] for slab in slabs])
    deep, rows, columns = (np.concatenate([slab[1][axis] for slab in slabs]) for axis in range(3))
    lowest = blocks(start.inside, factors, np.logical_or).astype(np.float32)
    highest = 1 - blocks(start.outside, factors, np.logical_and).astype(np.float32)
    return Energy(evidence, (deep, rows, columns), lowest, np.maximum(lowest, highest))


def refined(membership: Floats, factors: Factors, shape: tuple[int, int, int]) -> Bools:
    """Return the voxels whose membership, interpolated linearly from blocks, is at least 0.5."""
    if factors == (1, 1, 1):
        return membership >= np.float32(0.5)
    out = np.empty(shape, dtype=np.bool_)
    (low, high, share), *plane = (
        _find_blocks(n, f, len_)
        for n, f, len_ in zip(shape, factors, membership.shape, strict=True)
    )
    for z in range(shape[0]):
        image = membership[low[z]] * (1 - share[z]) + membership[high[z]] * share[z]
        for axis, (before, after, weight) in enumerate(plane):
            weight = weight[:, np.newaxis] if axis == 0 else weight
            image = image.take(before, axis) * (1 - weight) + image.take(after, axis) * weight
        np.greater_equal(image, np.float32(0.5), out=out[z])
    return out


def _find_blocks(
    n: int, factor: int, blocks: int
) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    position = np.clip((np.arange(n) + 0.5) / factor - 0.5, 0, blocks - 1)
    low = np.floor(position).astype(np.intp)
    return low, np.minimum(low + 1, blocks - 1), (position - low).astype(np.float32)


def _weigh_slab(
    images: FeatureImages,
    box: Box,
    planes: tuple[int, int],
    tissues: tuple[Tissue, Tissue],
    settings: GrowSettings,
    factors: Factors,
) -> tuple[Floats, list[Floats]]:
    """Return evidence and weights of some planes of the box, in blocks.

    Weights along z extend to the next plane, if there is one.
    """
    first, last = (box.start[0] + plane for plane in planes)
    more = min(last + 1, box.stop[0])
    features = images.in_box(Box((first, *box.start[1:]), (more, *box.stop[1:])))
    if not np.isfinite(features).all():
        # Infinity would count as the strongest evidence instead of as none.
        features[:, ~np.isfinite(features).all(axis=0)] = np.nan
    slab_features = features[:, : last - first]
    evidence = blocks(log_odds(slab_features, *tissues), factors, np.add)
    spacing, weights = images.case.grid.spacing_mm, []
    for axis in range(3):
        values = features if axis == 0 else slab_features
        strength = settings.smoothness * min(spacing) / spacing[axis]
        weight = _weigh_edges(values, axis, images.noise, strength, factors[axis])
        across = tuple(1 if a == axis else f for a, f in enumerate(factors))
        weights.append(blocks(weight, across, np.add))
    return evidence, weights


def _weigh_edges(
    features: Floats, axis: int, noise: tuple[float, ...], strength: float, every: int
) -> Floats:
    here = [slice(None)] * 3
    there = [slice(None)] * 3
    here[axis] = slice(every - 1, max(features.shape[axis + 1] - 1, 0), every)
    there[axis] = slice(every, None, every)
    weight: Floats = np.zeros_like(features[0][tuple(there)])
    for feature, sigma in zip(features, noise, strict=True):
        difference = feature[tuple(there)] - feature[tuple(here)]
        difference *= np.float32(1 / (2 * sigma * np.sqrt(2 * len(noise))))
        difference *= difference
        weight -= difference
    # An unknown step is no edge; an infinite step stays one, of weight 0.
    np.nan_to_num(weight, copy=False, nan=0.0, neginf=-np.inf)
    with np.errstate(under="ignore"):
        np.exp(weight, out=weight)
    weight *= np.float32(strength)
    return weight


def blocks(array: NDArray[Any], factors: Sequence[int], join: np.ufunc) -> NDArray[Any]:
    """Return `array` reduced with `join` over blocks; blocks at the ends can be smaller."""
    for axis, factor in enumerate(factors):
        if factor > 1 and array.shape[axis]:
            array = join.reduceat(array, np.arange(0, array.shape[axis], factor), axis=axis)
    return array


AT_LIMIT: Final = "of the mask lies at the edge of the search area"
"""Text in the note about a region that reached the edge of its search area."""

_FEWEST: Final = 10  # voxels of surroundings needed for a comparison; our choice
_LEAST_CONTRAST: Final = (
    0.5  # units of noise; with less contrast the region would follow noise; our choice
)
_LEAST_DISTINCTNESS: Final = 0.5  # standard deviations inside and around; our choice
_CLOSE: Final = 1e-3  # excess of energy up to which no note is needed; our choice
_AT_LIMIT: Final = 0.02  # share of the region at its limit that needs a note; our choice


@dataclass(frozen=True, slots=True, eq=False)
class Grown:
    """A grown region; `mask` is a boolean array with the shape of its `box`.

    The box contains all drawn voxels, even those outside the region. `notes` are sentences for the
    reader.
    """

    box: Box
    mask: Bools
    notes: tuple[str, ...] = ()


def grow(
    images: FeatureImages,
    grid: Grid,
    outlines: Sequence[Outline],
    settings: GrowSettings | None = None,
) -> Grown:
    """Grow outlined slices of one lesion to a region in 3-D.

    Outlines may be on several slices perpendicular to different axes. In each outlined slice, the
    result follows the outline within the contour tolerance: it includes every voxel that is deeper
    inside, and no voxel that is farther outside; in between, the image decides. See
    `start_from_outlines` and `grow_start`.

    Raises
    ------
    CaseError
        If there is no outline, or an outline is empty or not a plane of the grid.
    """
    settings = settings or GrowSettings()
    report_progress(0, 1, "Reading the outline")
    start = start_from_outlines(images, grid, outlines, settings)
    return grow_start(images, start, settings)


def grow_start(images: FeatureImages, start: Start, settings: GrowSettings) -> Grown:
    """Grow a region from its start.

    Each voxel has log odds from robust normal distributions of the two samples, and the region has
    minimum energy; see `energy_of` and `least_cut`. Only parts that share a voxel with the seed are
    kept. Their holes are filled, except for voxels that are certainly outside.

    Only the drawn voxels are returned, with a note, if fewer than 10 voxels surround them, or if no
    feature differs between inside and surroundings by at least half its noise and half its
    variation.
    """
    start = replace(start, notes=_about_images(images, start))
    tissues = _measure_tissues(images, start)
    if isinstance(tissues, str):
        return _crop_grown(start, start.drawn.copy(), (tissues,))
    factors = coarsening(start.box.shape, images.case.grid.spacing_mm, settings.most_voxels)
    energy = energy_of(images, start, tissues, settings, factors)
    cut = least_cut(energy)
    report_progress(1, 1, "Filling holes")
    seed = blocks(start.seed, factors, np.logical_or)
    region = _keep_touching(cut.membership >= 0.5, seed & (energy.highest > 0))
    # Filled holes and dropped parts must stay so when blocks are interpolated.
    membership = np.where(region, np.maximum(cut.membership, 0.5), np.minimum(cut.membership, 0.49))
    mask = refined(membership.astype(np.float32), factors, start.box.shape)
    # Blocks are coarser than the drawn voxels, which hold exactly.
    mask |= start.inside
    mask &= ~start.outside
    return _crop_grown(start, mask, _about_cut(cut, factors, images.case.grid, start, mask))


def _measure_tissues(images: FeatureImages, start: Start) -> tuple[Tissue, Tissue] | str:
    instead = "it stays as drawn" if start.drawn.any() else "nothing was grown; outline it instead"
    if not start.foreground.shape[1]:
        return f"the image has no values inside the outline: {instead}"
    if start.background.shape[1] < _FEWEST:
        return f"there is nothing around the outline to compare it with: {instead}"
    inside = tissue_of(start.foreground, images.noise)
    around = tissue_of(start.background, images.noise)
    is_faint = contrast(inside, around, images.noise) < _LEAST_CONTRAST
    if is_faint or _measure_distinctness(start) < _LEAST_DISTINCTNESS:
        return f"the lesion does not differ from its surroundings: {instead}"
    return inside, around


def _measure_distinctness(start: Start) -> float:
    """Return the largest difference between the two samples, in their own standard deviations.

    Noise is not the only variation. In a very heterogeneous lesion, the image cannot show the edge,
    even if the middles are far apart in units of noise.
    """
    middles, squares = [], []
    for values in (start.foreground, start.background):
        middle = np.median(values, axis=1)
        spread = _MAD_TO_SIGMA * np.median(np.abs(values - middle[:, np.newaxis]), axis=1)
        middles.append(middle.astype(np.float64))
        squares.append(spread.astype(np.float64) ** 2)
    step = np.abs(middles[0] - middles[1])
    scale = np.sqrt((squares[0] + squares[1]) / 2)
    ratio = np.divide(step, scale, out=np.full(len(step), np.inf), where=scale > 0)
    return float(ratio[step > 0].max(initial=0.0))


def _keep_touching(region: Bools, seed: Bools) -> Bools:
    parts, count = label(region, structure=np.ones((3, 3, 3)))
    chosen = np.zeros(count + 1, dtype=np.bool_)
    chosen[parts[seed]] = True
    chosen[0] = False
    seeded_parts: Bools = chosen[parts]
    return seeded_parts | _find_holes(seeded_parts)


def _find_holes(mask: Bools) -> Bools:
    flat = tuple(n for n in mask.shape if n > 1)
    plane = mask.reshape(flat or (1,))
    wide = np.pad(~plane, 1, constant_values=True)
    parts, _ = label(wide)
    holes = (parts > 0) & (parts != parts.flat[0])
    inner = holes[tuple(slice(1, -1) for _ in plane.shape)]
    return np.ascontiguousarray(inner).reshape(mask.shape)


def _about_images(images: FeatureImages, start: Start) -> tuple[str, ...]:
    notes = (*images.missing, *start.notes)
    if 1 in images.case.grid.shape:
        notes += ("the image is one slice thick, so the region grew in 2-D",)
    return notes


def _about_cut(
    cut: Cut, factors: Factors, grid: Grid, start: Start, mask: Bools
) -> tuple[str, ...]:
    notes: tuple[str, ...] = ()
    if factors != (1, 1, 1):
        steps = " x ".join(f"{f * s:.3g}" for f, s in zip(factors, grid.spacing_mm, strict=True))
        notes += (
            (f"the region is large, so its edge was computed on a grid of {steps} mm (z, y, x)"),
        )
    if cut.excess > _CLOSE:
        notes += (
            f"the computation stopped after {cut.iterations} iterations, before the edge "
            "had converged",
        )
    share = _share_at_limit(mask, start)
    if share > _AT_LIMIT:
        notes += (
            f"{share:.0%} {AT_LIMIT}: if the lesion continues, extend the search area or outline "
            "a further slice, and grow again",
        )
    return notes


def _share_at_limit(mask: Bools, start: Start) -> float:
    """Return the largest fraction of the region's voxels that lies at the edge of the search area.

    Voxels in outlined slices do not count, because the reader has set the limit there.
    """
    beside = np.zeros_like(mask)
    for axis in range(3):
        here, there = (
            start.outside.swapaxes(0, axis)[shifted] for shifted in (slice(-1), slice(1, None))
        )
        rim = beside.swapaxes(0, axis)
        rim[1:] |= here
        rim[:-1] |= there
    for axis in range(3):
        drawn = start.drawn.any(axis=tuple(a for a in range(3) if a != axis))
        if drawn.sum() == 1:
            beside.swapaxes(0, axis)[drawn] = False
    return float(np.count_nonzero(beside & mask)) / max(int(np.count_nonzero(mask)), 1)


def _crop_grown(start: Start, mask: Bools, notes: tuple[str, ...]) -> Grown:
    tight = Box.around(mask | start.drawn)
    (z, y, x), (a, b, c), (d, e, f) = start.box.start, tight.start, tight.stop
    box = Box((z + a, y + b, x + c), (z + d, y + e, x + f))
    return Grown(box, np.ascontiguousarray(mask[tight.slices]), (*start.notes, *notes))
