"""Detect by its noise whether each volume of a study was measured or computed.

Two scans have independent noise. An image computed from scans (a subtraction, maximum, mean or map,
or a smoothed, shifted or registered copy) repeats their noise. Therefore the grain of each volume
is predicted from the grain of the other volumes, block by block, and the unexplained fraction is
independent noise. No function of other volumes explains the noise of a real scan, so many features
can be used. The table in docs/methods/dicom_import.md gives results on real exams and on images
computed from them.

The grain is the value minus the mean of the surrounding 3 x 3 voxels in the plane. In quiet blocks,
it is mostly noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.block_means import block_means

# The following code computes how much of one volume's grain the other volumes explain, block by
# block.

_MOST_OTHERS: Final = 6
_DIFFERENCES: Final = 4
MANY: Final = 10
"""Number of volumes above which a faster comparison is used.

This comparison uses only planes at one depth, and removes half of the suspected volumes at once.
"""


_Array = NDArray[np.float32]
_DEPTH: Final = 3
_LARGE: Final = 96
_BLOCKS: Final = 8
_FEWEST_BLOCKS: Final = 2
_QUIET: Final = 3
"""Divisor of the number of blocks: only the quietest third, with little anatomy, is used."""
_LOUDER: Final = 2.0
_EDGES: Final = 8.0
"""Largest ratio of noise power between air and body; above it, the noisier one has edges."""
_AIR: Final = 0.1
_AT_ONCE: Final = 1 << 17
_LEAST_STEPS: Final = 0.6
"""Grain, in steps of the stored values, below which it is only rounding error."""
_EMPTY: Final = 0.7
"""Fraction of voxels at a block's lowest value above which the block counts as masked."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Values and grain of all volumes in one block, with an in-plane `margin` in voxels."""

    values: _Array
    around: _Array
    grain: _Array
    spectra: NDArray[np.complex64]
    inner: _Array
    own: _Array
    levels: NDArray[np.float64]
    norms: NDArray[np.float64]
    margin: int
    first: int


def find_groups(slabs: _Array, steps: Sequence[float]) -> list[list[Block]]:
    """Return the quietest blocks of air and of body; empty if their grain is only rounding."""
    n, depth, rows, columns = slabs.shape
    size = 16 if min(rows, columns) >= _LARGE else 8
    margin = size // 2
    deep = min(_DEPTH, depth)
    first = (depth - deep) // 2
    grain = grain_of(slabs)
    corners = [
        (y, x)
        for y in range(margin, rows - size - margin + 1, size)
        for x in range(margin, columns - size - margin + 1, size)
    ]
    if n < 2 or not corners:
        return []
    inside = [slice(first, first + deep)]
    levels, empty, means = _measure_blocks(slabs[:, *inside], grain[:, *inside], corners, size)
    usual = np.median(levels, axis=1, keepdims=True)
    loudness = np.median(levels / np.maximum(usual, 1e-9), axis=0)
    is_noisy = (~empty).sum(axis=0) >= 2
    white = float(np.percentile(slabs[:, first], 99))
    is_air = means.max(axis=0) < _AIR * white
    spread = np.sqrt(levels / (size * size * deep)) / np.abs(steps)[:, None]
    is_noisy &= np.median(spread, axis=0) >= _LEAST_STEPS
    chosen = [
        _find_quietest(np.flatnonzero(part & is_noisy), loudness) for part in (is_air, ~is_air)
    ]
    chosen = [indices for indices in chosen if len(indices) >= _FEWEST_BLOCKS]
    least = min((float(np.median(loudness[indices])) for indices in chosen), default=0.0)
    return [
        [
            _cut_block(slabs, grain, corners[index], size, first, deep)
            for index in _sample_blocks(indices)
        ]
        for indices in chosen
        if float(np.median(loudness[indices])) <= _EDGES * least
    ]


def _sample_blocks(found: NDArray[np.intp]) -> NDArray[np.intp]:
    some: NDArray[np.intp] = found[
        np.linspace(0, len(found) - 1, min(len(found), _BLOCKS)).astype(int)
    ]
    return some


def _find_quietest(found: NDArray[np.intp], loudness: NDArray[np.float64]) -> NDArray[np.intp]:
    ordered = found[np.argsort(loudness[found])][: max(len(found) // _QUIET, _FEWEST_BLOCKS)]
    if not len(ordered):
        return ordered
    least = loudness[ordered[len(ordered) // 10]]
    quiet: NDArray[np.intp] = ordered[loudness[ordered] <= _LOUDER * least]
    return quiet


def _measure_blocks(
    values: _Array, grain: _Array, corners: Sequence[tuple[int, int]], size: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64]]:
    levels, empty, means = [], [], []
    for y, x in corners:
        index = (..., slice(y, y + size), slice(x, x + size))
        voxels = values[index].reshape(len(values), -1)
        levels.append(
            np.square(grain[index].reshape(len(values), -1)).sum(axis=1, dtype=np.float64)
        )
        empty.append((voxels == voxels.min(axis=1, keepdims=True)).mean(axis=1) > _EMPTY)
        means.append(voxels.mean(axis=1, dtype=np.float64))
    return np.stack(levels, 1), np.stack(empty, 1), np.stack(means, 1)


def _cut_block(
    slabs: _Array, grain: _Array, corner: tuple[int, int], size: int, first: int, deep: int
) -> Block:
    y, x = corner
    margin = size // 2
    around = (slice(y - margin, y + size + margin), slice(x - margin, x + size + margin))
    region = grain[:, :, *around]
    values = slabs[:, first : first + deep, *around]
    planes = region[:, first : first + deep]
    lowest = values[..., margin:-margin, margin:-margin].reshape(len(slabs), -1)
    is_masked = (lowest == lowest.min(axis=1, keepdims=True)).mean(axis=1) > _EMPTY
    inner = np.stack(
        [
            planes[..., margin + dy : margin + dy + size, margin + dx : margin + dx + size]
            .reshape(len(slabs), -1)
            for dy in (-1, 0, 1)
            for dx in (-1, 0, 1)
        ],
        axis=1,
    )  # fmt: skip
    own_grain = np.where(is_masked[:, None], np.float32(0), inner[:, 4])
    return Block(
        values,
        slabs[:, :, *around],
        region,
        np.fft.rfft2(region).astype(np.complex64),
        inner,
        own_grain,
        np.square(own_grain).sum(axis=1, dtype=np.float64),
        np.linalg.norm(inner[:, 4], axis=1).astype(np.float64) + 1e-9,
        margin,
        first,
    )


def grain_of(values: _Array) -> _Array:
    """Return each value minus the mean of the surrounding 3 x 3 voxels in the plane.

    Large arrays are split, so that intermediate results fit into the CPU cache.
    """
    if values.ndim > 2 and values.size > _AT_ONCE:
        whole: _Array = np.empty_like(values)
        for index, value in enumerate(values):
            whole[index] = grain_of(value)
        return whole
    padded = _with_edge(values)
    rows = padded[..., :-2, :] + padded[..., 1:-1, :] + padded[..., 2:, :]
    means = (rows[..., :-2] + rows[..., 1:-1] + rows[..., 2:]) / np.float32(9)
    grain: _Array = values - means
    return grain


def _with_edge(values: _Array) -> _Array:
    *stack, rows, columns = values.shape
    wide: _Array = np.empty((*stack, rows + 2, columns + 2), values.dtype)
    wide[..., 1:-1, 1:-1] = values
    wide[..., 0, 1:-1], wide[..., -1, 1:-1] = values[..., 0, :], values[..., -1, :]
    wide[..., 0], wide[..., -1] = wide[..., 1], wide[..., -2]
    return wide


def unexplained(block: Block, k: int, kept: Sequence[int]) -> float:
    """Return the fraction of a block's grain that other volumes do not explain."""
    grain = block.own[k]
    whole = float(grain @ grain)
    if whole <= 0:
        return 0.0
    others = [j for j in kept if j != k]
    features = _collect_features(block, grain, k, others)
    # `einsum` is used because BLAS would start threads for `@`, which take ten times as long on
    # busy processors.
    products = np.einsum("iv,jv->ij", features, features)
    index = np.arange(len(products))
    # The diagonal is regularised, because the matrix is singular if there are copies among the
    # features.
    products[index, index] += 1e-5 * float(np.trace(products)) / len(index) + 1e-6
    rest = grain - np.linalg.solve(products, features @ grain) @ features
    # So many features explain some of any grain by chance, which this factor corrects.
    freedom = len(grain) / max(len(grain) - len(features), 1)
    return float(rest @ rest) / whole * freedom


def _collect_features(block: Block, own: _Array, k: int, others: Sequence[int]) -> _Array:
    """Return the features (feature, voxel) that may explain the grain of a volume.

    The features are the most similar volumes, each also shifted by one voxel; the best match with a
    larger shift and its neighbouring voxels, because smoothing and registration mix these; the
    maximum, minimum and median of all volumes; and the maximum and minimum along the stack.
    """
    norms = block.norms[others]
    alike = np.abs(block.inner[others] @ own).max(axis=1) / norms
    # Features are at most a third of the voxels: 27 shifted volumes, 9 extremes, and 9 for each
    # further volume.
    room = len(own) // 3 - 36
    most = max(1, min(_MOST_OTHERS, room // 9))
    near = [others[index] for index in np.argsort(-alike)[:most]]
    features = [block.inner[j] for j in near]
    moved = _match_moved_grain(block, k, others)
    if len(moved):
        features.append(moved)
    features.append(_collect_extremes(block, near[0], others))
    return np.concatenate(features)


def _collect_extremes(block: Block, nearest: int, others: Sequence[int]) -> _Array:
    """Return the grain of images that are computed from volumes by non-linear functions.

    The images are the maximum, minimum and median of volumes, sliding projections, and absolute
    differences.
    """
    values = block.values[others]
    ranks = [values.max(axis=0), values.min(axis=0), np.median(values, axis=0)]
    around = block.around[nearest]
    last = len(around) - 1
    index = np.arange(block.first, block.first + values.shape[1])
    beside = around[np.stack([np.maximum(index - 1, 0), index, np.minimum(index + 1, last)])]
    ranks += [beside.max(axis=0), beside.min(axis=0)]
    ranks += list(np.abs(values[1 : 1 + _DIFFERENCES] - values[0]))
    edge = slice(block.margin, -block.margin)
    return grain_of(np.stack(ranks))[..., edge, edge].reshape(len(ranks), -1)


def _match_moved_grain(block: Block, k: int, others: Sequence[int]) -> _Array:
    best, place = 0.0, None
    depth = block.values.shape[1]
    width = block.grain.shape[-1]
    most = 2 * block.margin + 1
    template = np.conj(_spectrum_of_inner(block, k))
    norms = block.norms[others][:, None, None]
    for first in _list_depths(block, len(others)):
        spectra = block.spectra[others, first : first + depth]
        match = np.fft.irfft2((spectra * template).sum(axis=1), s=(width, width))
        match = np.abs(np.roll(match, (block.margin, block.margin), (1, 2))[:, :most, :most])
        match /= norms
        if first == block.first:  # `near` includes these volumes.
            middle = slice(block.margin - 1, block.margin + 2)
            match[:, middle, middle] = 0
        index = np.unravel_index(int(np.argmax(match)), match.shape)
        if match[index] > best:
            best, place = (
                float(match[index]),
                (others[int(index[0])], first, int(index[1]), int(index[2])),
            )
    return (
        np.empty((0, block.own.shape[1]), np.float32)
        if place is None
        else _cut_surroundings(block, place)
    )


def _spectrum_of_inner(block: Block, k: int) -> NDArray[np.complex64]:
    depth = block.values.shape[1]
    alone = np.zeros_like(block.grain[k, :depth])
    inner = slice(block.margin, -block.margin)
    alone[:, inner, inner] = block.own[k].reshape(depth, *block.values[0, 0, inner, inner].shape)
    spectrum: NDArray[np.complex64] = np.fft.rfft2(alone).astype(np.complex64)
    return spectrum


def _list_depths(block: Block, n_others: int) -> range | list[int]:
    last = block.grain.shape[1] - block.values.shape[1]
    return range(last + 1) if n_others < MANY else [block.first]


def _cut_surroundings(block: Block, place: tuple[int, int, int, int]) -> _Array:
    volume, first, row, column = place
    depth, size = block.values.shape[1], block.grain.shape[-1] - 2 * block.margin
    last = block.grain.shape[1] - depth
    most = 2 * block.margin
    return np.stack(
        [
            block.grain[volume, z : z + depth, y : y + size, x : x + size].ravel()
            for z in range(max(first - 1, 0), min(first + 1, last) + 1)
            for y in range(max(row - 1, 0), min(row + 1, most) + 1)
            for x in range(max(column - 1, 0), min(column + 1, most) + 1)
        ]
    )


SLAB: Final = 7
"""Number of neighbouring planes of each volume that are compared.

A registered copy may be shifted by some planes.
"""
_Groups = Sequence[Sequence[Block]]
_BODY: Final = 0.1
_OWN: Final = 0.55
"""Fraction of independent noise below which a volume repeats the noise of other volumes.

Computed volumes have less than 0.5, and real scans of breasts more than 0.92.
"""
_INDEPENDENT: Final = 0.75
"""Fraction of independent noise above which a volume counts as a scan."""
_FAINT: Final = 0.5
"""Noise relative to other volumes below which a volume counts as smoothed or averaged.

The fraction is 0.08 to 0.46 in such volumes, and above 0.9 in real scans of breasts. A lower
receiver gain reduces noise and signal equally.
"""
_GAIN: Final = (0.5, 2.0)
_ODD: Final = 1.33
"""Ratio to the usual noise above which a volume counts as computed from the others.

Such a volume was averaged or sharpened, or is a map.
"""
_OPPOSITE: Final = -0.3
"""Value of `_measure_likeness` below which one volume was subtracted from the other.

The theoretical value is -0.5. If values are clipped at zero, it is -0.41, with a standard deviation
of 0.07 in a block of 192 voxels. View sharing results in a positive value.
"""


@dataclass(frozen=True, slots=True)
class Borrowed:
    """Volumes without independent noise, in ascending order.

    `is_certain` states whether the other volumes have independent noise for comparison. If not,
    there is too little noise, or all volumes share too much of it. `instead` lists alternatives to
    the volume in `volumes`: if any one of these is removed, the remaining volumes have independent
    noise.
    """

    volumes: tuple[int, ...] = ()
    is_certain: bool = True
    instead: tuple[int, ...] = ()


def find_borrowed(slabs: _Array, steps: Sequence[float]) -> Borrowed:
    """Return the volumes that repeat the noise of other volumes.

    This includes volumes from which another volume was subtracted. If removing a single volume
    leaves only independent noise, that volume is returned. Among several such volumes, it is the
    volume with unusually much or little noise, or otherwise the last one in time. If there is no
    such volume, the last volume that repeats others is removed until the remaining volumes have
    independent noise.

    Parameters
    ----------
    slabs
        Some neighbouring planes of each volume, (volume, z, y, x), in order of time.
    steps
        The difference of two neighbouring stored values of each volume.
    """
    groups = find_groups(slabs, steps)
    if not groups:
        return Borrowed(is_certain=False)
    shares = _Shares(groups, _measure_gains(slabs))
    gone = _find_turned(groups, len(slabs))
    volumes = [k for k in range(len(slabs)) if k not in gone]
    repeated = volumes
    while len(volumes) > 1:
        # With fewer other volumes, the fraction can only grow.
        repeated = [k for k in repeated if k in volumes and shares.find(k, volumes) < _OWN]
        if not repeated:
            is_clear = not gone or shares.has_independent(volumes)
            return Borrowed(tuple(sorted(gone)) if is_clear else (), is_clear)
        if len(volumes) == 2:
            return Borrowed(is_certain=False)
        keys = _find_keys(shares, repeated, volumes)
        if keys:
            first, *instead = _by_guilt(shares, keys, volumes)
            return Borrowed(tuple(sorted([*gone, first])), instead=() if gone else tuple(instead))
        n_away = 1 if len(slabs) <= MANY else -(-len(repeated) // 2)
        gone += repeated[-n_away:]
        volumes = [k for k in volumes if k not in gone]
    return Borrowed(tuple(sorted(gone)))


@dataclass(slots=True)
class _Shares:
    """Fractions of volumes' noise that are independent of other volumes, computed on demand."""

    groups: _Groups
    gains: NDArray[np.float64]
    found: dict[tuple[int, tuple[int, ...]], float] = field(default_factory=dict)

    def find(self, k: int, kept: Sequence[int]) -> float:
        """Return the fraction of a volume's noise that is independent of `kept`.

        It is the larger of the fractions in air and in body. A volume with much less noise than the
        others has no independent noise, unless its signal is also lower. A brighter volume does not
        need more noise.
        """
        key = k, tuple(kept)
        if key not in self.found:
            inside = []
            for blocks in self.groups:
                loudness = _measure_loudness(blocks, kept, np.minimum(self.gains, 1.0))
                is_faint = len(kept) > 2 and loudness[k] < _FAINT
                shares = [0.0] if is_faint else [unexplained(block, k, kept) for block in blocks]
                inside.append(float(np.median(shares)))
            self.found[key] = max(inside)
        return self.found[key]

    def has_independent(self, kept: Sequence[int]) -> bool:
        """Return whether `kept` contains a scan with independent noise for comparison."""
        return any(self.find(k, kept) >= _INDEPENDENT for k in kept)


def _measure_loudness(
    blocks: Sequence[Block], kept: Sequence[int], gains: NDArray[np.float64]
) -> NDArray[np.float64]:
    levels = np.array([block.levels for block in blocks]) / gains**2
    usual = np.median(levels[:, list(kept)], axis=1, keepdims=True)
    loudness: NDArray[np.float64] = np.median(levels / np.maximum(usual, 1e-9), axis=0)
    return loudness


def _measure_gains(slabs: _Array) -> NDArray[np.float64]:
    """Return the body brightness of each volume relative to the usual one, from 0.5 to 2.

    Contrast changes less than half of the body.
    """
    coarse = np.stack([block_means(slab) for slab in slabs])
    usual = np.median(coarse, axis=0)
    body = usual > _BODY * float(np.percentile(usual, 99))
    if not body.any():
        return np.ones(len(slabs))
    gains = np.median(coarse[:, body] / usual[body], axis=1).astype(np.float64)
    limited: NDArray[np.float64] = np.clip(gains, *_GAIN)
    return limited


def _find_keys(shares: _Shares, repeated: Sequence[int], kept: Sequence[int]) -> list[int]:
    if len(kept) > MANY:
        return []
    return [
        other
        for other in kept
        if _is_key(shares, [k for k in repeated if k != other], [k for k in kept if k != other])
    ]


def _is_key(shares: _Shares, doubtful: Sequence[int], rest: Sequence[int]) -> bool:
    if any(shares.find(k, rest) < _OWN for k in doubtful):
        return False
    return shares.has_independent(rest)


def _by_guilt(shares: _Shares, keys: Sequence[int], kept: Sequence[int]) -> list[int]:
    """Return the volume in `keys` that was computed from the others, and its alternatives.

    Contrast in most of a body looks like a gain change, so noise counts as unusual only if it is
    unusual both with and without gain correction.
    """
    every = [block for blocks in shares.groups for block in blocks]
    both = [
        _measure_loudness(every, kept, gains)
        for gains in (shares.gains, np.ones(len(shares.gains)))
    ]
    odd = [
        k
        for k in keys
        if all(loud[k] >= _ODD for loud in both) or all(loud[k] <= 1 / _ODD for loud in both)
    ]
    return odd if len(odd) == 1 else sorted(keys, reverse=True)


def _find_turned(groups: _Groups, n_volumes: int) -> list[int]:
    blocks = [block for group in groups for block in group]
    volumes = []
    for later in range(1, n_volumes):
        if min(_measure_likeness(blocks, earlier, later) for earlier in range(later)) < _OPPOSITE:
            volumes.append(later)
    return volumes


def _measure_likeness(blocks: Sequence[Block], a: int, b: int) -> float:
    """Return the excess of voxels in which two volumes deviate in the same direction, -1 to 1.

    An edge is weighted by its number of voxels and not by its height, because contrast can also
    reverse edges.
    """
    pairs = np.array([block.levels[[a, b]] for block in blocks])
    # A block without noise is blank rather than quiet, and is left out below.
    pairs[pairs <= 0] = np.inf
    quiet = (pairs <= _QUIET * pairs.min(axis=0)).all(axis=1) & np.isfinite(pairs).all(axis=1)
    quiet_blocks = [block for block, is_quiet in zip(blocks, quiet, strict=True) if is_quiet]
    if not quiet_blocks:
        return 0.0
    return float(
        np.mean(
            [
                np.sign(quiet_block.own[a]) * np.sign(quiet_block.own[b])
                for quiet_block in quiet_blocks
            ]
        )
    )
