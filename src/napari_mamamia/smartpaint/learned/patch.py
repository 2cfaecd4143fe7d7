"""The input of the learned brush: a cube of points around the press, scaled by the brush radius."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

SIDE: Final = 20
"""Number of points along each side of the cube."""

REACH: Final = 1.7
"""Half of the cube's side length, in brush radii."""

CHANNELS: Final = 10
"""Number of channels.

The channels are two images, appearance, mask, pull, hold, distance, sign, radius, and slice
thickness.
"""

MASK: Final = 3
"""Index of the channel with the current mask: 1 inside, -1 outside."""

_MOST: Final = 4.0  # limit of an image in standard deviations, and of the appearance in log odds
_BINS: Final = 16
_CORE: Final = 0.35  # radii around the press in which the image's reference value is measured
_SURE: Final = 0.5  # radii around the press in which points certainly belong to the region
_FLAT: Final = 2.0  # thickness in radii of the slice of a single-slice image

Floats = NDArray[np.float32]
Point = tuple[float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """The image, mask and marks in a box around a press.

    Parameters
    ----------
    features
        Finite float32 array ``(feature, z, y, x)``: the image, or post, post - pre and further
        features.
    noise
        Noise of each feature, in its unit.
    mask
        Boolean mask of the lesion before the press.
    pull, hold
        Label evidence from earlier strokes, see `evidence.marks`.
    spacing_mm
        Spacing along (z, y, x), in mm.
    """

    features: Floats
    noise: tuple[float, ...]
    mask: NDArray[np.bool_]
    pull: Floats
    hold: NDArray[np.int8]
    spacing_mm: Point


@dataclass(frozen=True, slots=True, eq=False)
class Cube:
    """The positions of a cube's points relative to the voxels of a box.

    Parameters
    ----------
    weights, inner
        An interpolation matrix (points x voxels) for each axis, and the part of the box that it
        reads.
    away
        Distance of each point from the press, in radii.
    returns, near
        An interpolation matrix (voxels x points) for each axis, and the part of the box that lies
        in the cube.
    """

    weights: tuple[Floats, Floats, Floats]
    inner: tuple[slice, ...]
    away: Floats
    returns: tuple[Floats, Floats, Floats]
    near: tuple[slice, ...]

    def sample(self, values: NDArray[np.generic]) -> Floats:
        """Return the weighted mean of `values` around each point; `values` has the box's shape."""
        along_z, along_y, along_x = self.weights
        crop = values[self.inner].astype(np.float32)
        rows = crop @ along_x.T
        planes = along_y @ rows
        n_z, n_y, n_x = planes.shape
        cube: Floats = (along_z @ planes.reshape(n_z, n_y * n_x)).reshape(SIDE, n_y, n_x)
        return cube

    def spread(self, values: Floats) -> Floats:
        """Return the points' values, interpolated at the voxels in `near`."""
        along_z, along_y, along_x = self.returns
        planes = along_y @ (values @ along_x.T)
        n_z, n_y, n_x = planes.shape
        rows = along_z @ planes.reshape(n_z, n_y * n_x)
        out: Floats = rows.reshape(len(along_z), n_y, n_x)
        return out


def place_cube(
    shape: tuple[int, int, int], press: Point, radius_mm: float, spacing_mm: Point
) -> Cube:
    """Return the cube around a press; the press is a voxel position in a box of `shape`.

    A point beyond the image has the value of the nearest voxel. In a single-slice image, the points
    of all planes lie in that slice.
    """
    offsets = np.linspace(-REACH, REACH, SIDE) * radius_mm
    step_mm = offsets[1] - offsets[0]
    weights, inner, squares, returns, near = [], [], [], [], []
    for n_voxels, centre, spacing in zip(shape, press, spacing_mm, strict=True):
        points = np.clip(centre + offsets / spacing, 0, n_voxels - 1)
        width = max(step_mm / spacing, 1.0)
        low = max(int(np.floor(points[0] - width)), 0)
        high = min(int(np.ceil(points[-1] + width)) + 1, n_voxels)
        share = 1 - np.abs(points[:, None] - np.arange(low, high)) / width
        np.maximum(share, 0, out=share)
        share /= share.sum(axis=1, keepdims=True)
        weights.append(share.astype(np.float32))
        inner.append(slice(low, high))
        places = (np.arange(low, high) - centre) * (spacing / step_mm) + (SIDE - 1) / 2
        if n_voxels == 1:
            places[:] = (SIDE - 1) / 2
        within = np.flatnonzero((places >= 0) & (places <= SIDE - 1))
        first, last = (within[0], within[-1] + 1) if within.size else (0, 0)
        back = 1 - np.abs(places[first:last, None] - np.arange(SIDE))
        returns.append(np.maximum(back, 0).astype(np.float32))
        near.append(slice(low + int(first), low + int(last)))
        squares.append((offsets / radius_mm) ** 2 if n_voxels > 1 else np.zeros(SIDE))
    z, y, x = squares
    away = np.sqrt(z[:, None, None] + y[:, None] + x).astype(np.float32)
    return Cube(tuple(weights), tuple(inner), away, tuple(returns), tuple(near))


def make_patch(around: Surroundings, cube: Cube, radius_mm: float, *, is_adding: bool) -> Floats:
    """Return the network's input, an array of shape ``(CHANNELS, SIDE, SIDE, SIDE)``."""
    away = cube.away
    patch = np.empty((CHANNELS, *away.shape), np.float32)
    images = np.stack([cube.sample(feature) for feature in around.features])
    mask = cube.sample(around.mask)
    for number in (0, 1):
        image = images[min(number, len(images) - 1)]
        noise = around.noise[min(number, len(images) - 1)]
        middle = np.median(image[away <= _CORE])
        patch[number] = (image - middle) / max(float(image.std()), noise)
    np.clip(patch[:2], -_MOST, _MOST, out=patch[:2])
    patch[2] = weigh_appearance(images, mask, away, is_adding=is_adding)
    patch[MASK] = 2 * mask - 1
    patch[4] = cube.sample(around.pull)
    patch[5] = cube.sample(around.hold)
    patch[6] = 1 - away
    patch[7] = 1 if is_adding else -1
    patch[8] = np.log(radius_mm / 6.0) / 2
    n_slices = around.mask.shape[0]
    patch[9] = min(around.spacing_mm[0] / radius_mm, _FLAT) if n_slices > 1 else _FLAT
    return patch


def weigh_appearance(images: Floats, mask: Floats, away: Floats, *, is_adding: bool) -> Floats:
    """Return the log odds that points look like the lesion rather than like its surroundings.

    The odds are derived from smoothed histograms of each feature and averaged over the features.
    """
    sure, circle = away <= _SURE, away <= 1
    if is_adding:
        inside, outside = (mask >= 0.5) | sure, (mask < 0.5) & ~circle
    else:
        inside, outside = (mask >= 0.5) & ~circle, (mask < 0.5) | sure
    odds = np.zeros(away.shape, np.float32)
    if inside.sum() < 10 or outside.sum() < 10:
        return odds
    for image in images:
        low, high = np.percentile(image, (1, 99))
        scaled = (image - low) * (_BINS / max(float(high - low), 1e-20))
        bins = np.clip(scaled, 0, _BINS - 1).astype(np.intp)
        counts = [
            np.convolve(np.bincount(bins[where], minlength=_BINS), (0.25, 0.5, 0.25), "same")
            for where in (inside, outside)
        ]
        shares = [(count + 0.5) / (count.sum() + 0.5 * _BINS) for count in counts]
        odds += np.log(shares[0] / shares[1]).astype(np.float32)[bins]
    odds /= len(images)
    return np.clip(odds, -_MOST, _MOST, out=odds)
