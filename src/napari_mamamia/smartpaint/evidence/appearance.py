"""Image evidence of each voxel: whether it looks like the lesion or like its surroundings.

Lesion and surroundings are sampled from the current mask and the strokes. Two models of their
values are averaged, because each fails where the other works: a smoothed joint histogram (a
rim-enhancing lesion with a dark centre has two peaks) and a normal distribution (for few voxels).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt, gaussian_filter

from napari_mamamia.core.box import Box
from napari_mamamia.smartpaint.evidence.scene import Scene, find_near
from napari_mamamia.smartpaint.grow.grow import log_odds, tissue_of

MOST_EVIDENCE: Final = 4.0
"""Limit of the log odds of each model, so that no voxel outweighs its neighbourhood."""

FEWEST_AROUND: Final = 10
"""Number of voxels in the surroundings below which the image gives no evidence."""

_BINS: Final = {1: 40, 2: 20, 3: 12}  # of the joint histogram along each feature
_RANGE: Final = (0.5, 99.5)  # percentiles that the bins span
_MOST_VALUES: Final = 20_000  # for percentiles and medians, evenly spaced
_FINEST_BIN: Final = 0.35  # of the noise
_LEAST_SMOOTH: Final = 0.9  # bins
_NOISE_SMOOTH: Final = 0.7  # of the noise
_SHARE: Final = 0.15  # weight of the reader's marks in the distribution of a side
_FLOOR: Final = 0.001  # of the highest density: a value outside every sample is not impossible
_DEEP: Final = (1.0, 0.4)  # mm, and share of the greatest depth: the inner sample begins here
_AROUND_MM: Final = (1.5, 9.0)  # mm from the mask: the range in which surroundings are sampled
_NEAR: Final = (3.0, 12.0)  # radii and mm from the path within which samples count; the greater
# From this many voxels of the box on, samples are of every second voxel along axes that are finer
# than this many mm and longer than this many voxels.
_LATTICE: Final = (1.6, 24, 40_000)
# Share of the distributions that does not overlap, from which on evidence counts fully.
_APART: Final = 0.5
_LEAST_APART: Final = 0.2  # weight of evidence where lesion and surroundings look the same
_SPARSE: Final = 8  # below this share of the voxels, their box is cropped first
_AT_A_TIME: Final = (
    16_384  # voxels that are weighed together: their arrays stay in the processor's cache
)

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Values ``(feature, voxel)`` of lesion and surroundings, with a weight for each voxel.

    Parameters
    ----------
    inner, outer
        The finite values in the current mask and in its surroundings.
    inner_weights, outer_weights
        The weights, which are above 0 and smaller far from the stroke.
    inner_marks, outer_marks
        The values of the voxels that strokes fix inside and outside the lesion; may be empty.
    disc
        The values at the centre of the stroke, which are added to the sample of the lesion for an
        adding stroke, and to that of the surroundings for an erasing stroke.
    """

    inner: Floats
    outer: Floats
    inner_weights: Floats
    outer_weights: Floats
    inner_marks: Floats
    outer_marks: Floats
    disc: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """The bins of a joint histogram with `low`, `width` and `count` for each feature.

    `smooth` is the standard deviation, in bins, of the Gaussian that smooths each feature.
    """

    low: NDArray[np.float64]
    width: NDArray[np.float64]
    count: int
    smooth: tuple[float, ...]

    @classmethod
    def of(cls, features: Floats, noise: tuple[float, ...]) -> "Bins":
        """Return bins that span nearly all of the finite values `features` ``(feature, voxel)``."""
        n_features = len(noise)
        count = _BINS.get(n_features, _BINS[3])
        low, high = np.percentile(features, _RANGE, axis=1)
        width = np.maximum((high - low) / (count - 4), _FINEST_BIN * np.array(noise))
        middle = (low + high) / 2
        smooth = tuple(
            max(_LEAST_SMOOTH, _NOISE_SMOOTH * n / w) for n, w in zip(noise, width, strict=True)
        )
        return cls(middle - width * count / 2, width, count, smooth)

    def find(self, features: Floats) -> NDArray[np.int32]:
        """Return the flat bin number of each value; outliers are counted in the end bins."""
        flat = np.zeros(features.shape[1:], np.int32)
        for feature, low, width in zip(features, self.low, self.width, strict=True):
            scaled = feature - np.float32(low)
            scaled *= np.float32(1 / width)
            np.clip(scaled, 0, self.count - 1, out=scaled)
            flat *= np.int32(self.count)
            flat += scaled.astype(np.int32)
        return flat

    def fill(self, features: Floats, weights: Floats | None) -> NDArray[np.float64]:
        """Return a smoothed histogram that sums to 1, or zeros if there are no values."""
        n_features = len(self.low)
        size = self.count**n_features
        if not features.shape[1]:
            return np.zeros(size)
        counts = np.bincount(self.find(features), weights, size).astype(np.float64)
        counts = counts.reshape((self.count,) * n_features)
        density: NDArray[np.float64] = gaussian_filter(
            counts, self.smooth, mode="nearest", truncate=3.0
        ).ravel()
        density /= max(density.sum(), 1e-300)
        return density


def make_bins(scene: Scene) -> Bins:
    """Return the bins of a scene's histograms."""
    step = max(scene.finite.size // _MOST_VALUES, 1)
    finite = scene.finite.reshape(-1)[::step]
    values = scene.features.reshape(len(scene.noise), -1)[:, ::step][:, finite]
    if not values.shape[1]:
        values = np.zeros((len(scene.noise), 1), np.float32)
    return Bins.of(values, scene.noise)


def choose_lattice(scene: Scene) -> tuple[slice, slice, slice]:
    """Return slices that select the voxels to sample: every second voxel in a large box."""
    finest, longest, most = _LATTICE
    is_large = scene.mask.size > most
    steps = [
        2 if is_large and s < finest and n > longest else 1
        for s, n in zip(scene.spacing_mm, scene.mask.shape, strict=True)
    ]
    z, y, x = steps
    return (slice(None, None, z), slice(None, None, y), slice(None, None, x))


def take_samples(
    scene: Scene,
    mask: Bools,
    hold: NDArray[np.int8],
    lattice: tuple[slice, slice, slice],
    part: tuple[slice, slice, slice],
    *,
    is_within: bool,
) -> Samples:
    """Return the values of the estimated lesion and of its surroundings.

    If `is_within` is true, the stroke may be inside a large lesion that surrounds it, so tissue
    beyond the window also counts as surroundings.
    """
    spacing = [s * (step.step or 1) for s, step in zip(scene.spacing_mm, lattice, strict=True)]
    inside, away = mask[lattice], scene.away[lattice]
    inner, outer = _find_sides(inside, spacing)
    circle = away <= scene.radius_mm
    if scene.is_adding:
        outer = outer & ~circle
        if is_within:
            outer = outer | (away > scene.window_mm)
    else:
        inner = inner & ~circle
    inner, outer = inner & scene.finite[lattice], outer & scene.finite[lattice]
    reach = max(_NEAR[0] * scene.radius_mm, _NEAR[1])
    weights = [
        np.exp(-0.5 * (away[side] / np.float32(reach)) ** 2).astype(np.float32)
        for side in (inner, outer)
    ]
    values = scene.features[(slice(None), *lattice)]
    near, held, finite = scene.features[(slice(None), *part)], hold[part], scene.finite[part]
    disc = (scene.away[part] <= max(0.5 * scene.radius_mm, 1.0)) & finite
    return Samples(
        take_values(values, inner),
        take_values(values, outer),
        weights[0],
        weights[1],
        take_values(near, (held > 0) & finite),
        take_values(near, (held < 0) & finite),
        take_values(near, disc),
    )


def take_values(features: Floats, where: Bools) -> Floats:
    """Return ``features[:, where]`` in half the time that numpy's indexing takes.

    `features` is ``(feature, z, y, x)``, `where` is ``(z, y, x)``.
    """
    n_values = int(np.count_nonzero(where))
    values = np.empty((len(features), n_values), np.float32)
    if n_values * _SPARSE < where.size:
        # So few voxels are found faster in the box that holds them than in all of it for each
        # feature.
        slices = Box.around(where).slices
        features, where = features[(slice(None), *slices)], where[slices]
    for feature, out in zip(features, values, strict=True):
        out[:] = feature[where]
    return values


def _find_sides(inside: Bools, spacing_mm: Sequence[float]) -> tuple[Bools, Bools]:
    """Return the voxels well within a mask, and the voxels around it.

    Distances are computed only in the mask's box with the necessary margin.
    """
    inner, outer = inside, np.zeros(inside.shape, np.bool_)
    box = Box.around(inside)
    if box.is_empty or inside.all():
        return inner, outer
    # No voxel is less deep than the finest spacing.
    if min(spacing_mm) <= _DEEP[0]:
        crop = box.grown((1, 1, 1), inside.shape).slices
        least, share = _DEEP
        edge, rim = find_near(~inside[crop], spacing_mm, least, least / share)
        inner = inside.copy()
        if rim.all():
            # The mask is so thin that the share of the greatest depth decides.
            depth = distance_transform_edt(inside[crop], spacing_mm)
            inner[crop] &= depth > min(least, share * depth.max())
        else:
            inner[crop] &= ~edge
    margin = [int(np.ceil(_AROUND_MM[1] / step)) for step in spacing_mm]
    crop = box.grown(margin, inside.shape).slices
    touching, around = find_near(inside[crop], spacing_mm, *_AROUND_MM)
    outer[crop] = around & ~touching
    return inner, outer


def weigh_image(
    features: Floats, samples: Samples, bins: Bins, noise: tuple[float, ...], *, is_adding: bool
) -> tuple[Floats, float]:
    """Return the image evidence of each voxel, and how much lesion and surroundings differ.

    Parameters
    ----------
    features
        The finite features ``(feature, ...)``.
    noise
        The noise of each feature.
    is_adding
        Whether the centre of the stroke is a sample of the lesion, or of its surroundings.

    Returns
    -------
    The log odds of belonging to the lesion, float32 from -4 to 4, which are all 0 if there is
    nothing to compare; and the fraction of the two distributions that does not overlap, from 0 to
    1.

    Source: docs/methods/brush.md.
    """
    if samples.outer.shape[1] < FEWEST_AROUND or not samples.inner.shape[1]:
        return np.zeros(features.shape[1:], np.float32), 0.0
    inside = _mix_distributions(
        bins,
        samples.inner,
        samples.inner_weights,
        samples.inner_marks,
        samples.disc if is_adding else None,
    )
    outside = _mix_distributions(
        bins,
        samples.outer,
        samples.outer_weights,
        samples.outer_marks,
        None if is_adding else samples.disc,
    )
    floor = _FLOOR * float((inside + outside).max()) + 1e-6
    table = np.log((inside + floor) / (outside + floor)).astype(np.float32)
    apart = float(1 - np.minimum(inside, outside).sum())
    weight = np.float32(min(max(apart / _APART, _LEAST_APART), 1.0))
    table = (weight * table).clip(-MOST_EVIDENCE, MOST_EVIDENCE)
    inner = np.concatenate([samples.inner, samples.disc], axis=1) if is_adding else samples.inner
    tissues = tissue_of(_thin_values(inner), noise), tissue_of(_thin_values(samples.outer), noise)
    flat = features.reshape(len(features), -1)
    evidence = np.empty(flat.shape[1], np.float32)
    for first in range(0, len(evidence), _AT_A_TIME):
        values, out = flat[:, first : first + _AT_A_TIME], evidence[first : first + _AT_A_TIME]
        normal = log_odds(values, *tissues)
        normal *= weight
        np.clip(normal, -MOST_EVIDENCE, MOST_EVIDENCE, out=normal)
        table.take(bins.find(values), out=out, mode="clip")
        out += normal
        out *= np.float32(0.5)
    return evidence.reshape(features.shape[1:]), apart


def _mix_distributions(
    bins: Bins, values: Floats, weights: Floats, marks: Floats, disc: Floats | None
) -> NDArray[np.float64]:
    """Return the distribution of one class: 85 % from its sample, 15 % from its marks."""
    marked = [
        bins.fill(sample, None) for sample in (marks, disc) if sample is not None and sample.size
    ]
    density = bins.fill(values, weights)
    if not marked:
        return density
    return (1 - _SHARE) * density + _SHARE * sum(marked) / len(marked)


def _thin_values(values: Floats) -> Floats:
    """Return at most about 20,000 evenly spaced values; more would not improve the medians."""
    return values[:, :: max(values.shape[1] // _MOST_VALUES, 1)]
