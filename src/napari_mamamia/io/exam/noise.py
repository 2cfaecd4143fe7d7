"""Whether each volume of a study was measured by itself: whether it carries noise of its own.

Two scans have independent noise; what was computed from scans (subtraction, maximum, mean, map,
smoothed, moved or registered copy) repeats theirs. So the fine grain of each volume is explained
by that of the others, block by block: what cannot be explained is its own. Any function of other
volumes leaves the noise of a real scan unexplained, so the features can be as many as needed.
Measured on real exams and on what was computed from them: table in docs/methods.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["SLAB", "Borrowed", "find_borrowed", "own_noise"]

SLAB: Final = 7
"""Neighbouring planes of each volume that are looked at: a registered copy may lie some off."""
_Array = NDArray[np.float32]
_DEPTH: Final = 3
_LARGE: Final = 96
_BLOCKS: Final = 8
_FEWEST_BLOCKS: Final = 2
_QUIET: Final = 3
"""Of the blocks of air and of body the quietest third counts: least anatomy, most noise."""
_LOUDER: Final = 2.0
_EDGES: Final = 8.0
"""How many times the power of the quieter of air and body the other one may have: above that it is
edges, which all volumes share."""
_AIR: Final = 0.1
_AT_ONCE: Final = 1 << 17
_MOST_OTHERS: Final = 6
_DIFFERENCES: Final = 4
_MANY: Final = 10
"""Of more volumes only planes at one depth are compared, and half of those in doubt go at once."""
_OWN: Final = 0.55
"""Below this share of own noise a volume repeats others: computed ones keep below .5, real scans
of breasts above .92."""
_INDEPENDENT: Final = 0.75
"""From this share on volumes are scans of their own; the others can be judged by them."""
_FAINT: Final = 0.5
"""A volume with less than this share of the noise that the others have is smoothed or averaged:
.08 to .46 where it is, above .9 in real scans of breasts."""
_OPPOSITE: Final = -0.3
"""`_likeness` of two volumes below which one was subtracted: -.5 in theory, -.41 where values were
cut at zero, in a block of 192 voxels with a deviation of .07. View sharing makes it positive."""
_LEAST_STEPS: Final = 0.6
"""Grain of fewer steps of the stored values than this is rounding."""
_EMPTY: Final = 0.7
"""Share of voxels of a block at its lowest value from which on it was masked."""


@dataclass(frozen=True, slots=True)
class Borrowed:
    """Volumes without noise of their own, in ascending order.

    `is_certain` where the others have noise of their own, by which these can be judged; else there
    is too little noise, or too much that all volumes have in common, to tell.
    """

    volumes: tuple[int, ...] = ()
    is_certain: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """One place of all volumes: values and grain, with `margin` voxels around it in the plane."""

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


def find_borrowed(slabs: _Array, steps: Sequence[float]) -> Borrowed:
    """Return which volumes repeat the noise of others.

    Those that had another one subtracted are; then the last one in time that repeats others is
    taken away until the rest have noise of their own, so that of a scan and what was made of it the
    later one is named.

    Parameters
    ----------
    slabs
        Some neighbouring planes of each volume, in order of time: (volume, z, y, x).
    steps
        The difference of two neighbouring values of each volume, as stored.
    """
    groups = _groups(slabs, steps)
    if not groups:
        return Borrowed(is_certain=False)
    gone = _turned(groups, len(slabs))
    kept = [k for k in range(len(slabs)) if k not in gone]
    shares = np.zeros(len(slabs))
    while len(kept) > 1:
        doubtful = [k for k in kept if shares[k] < _OWN]  # with fewer others a share only grows
        shares[doubtful] = _shares(groups, doubtful, kept)
        repeated = [k for k in doubtful if shares[k] < _OWN]
        if not repeated:
            is_clear = not gone or bool(_shares(groups, kept, kept).max() >= _INDEPENDENT)
            return Borrowed(tuple(sorted(gone)) if is_clear else (), is_clear)
        if len(kept) == 2:
            return Borrowed(is_certain=False)
        n_away = 1 if len(slabs) <= _MANY else -(-len(repeated) // 2)
        gone += repeated[-n_away:]
        kept = [k for k in kept if k not in gone]
    return Borrowed(tuple(sorted(gone)))


def own_noise(slabs: _Array, steps: Sequence[float]) -> NDArray[np.float64]:
    """Return the share of each volume's noise that no other volume explains, 0 .. 1; NaN: none.

    Takes the same as `find_borrowed`.
    """
    groups = _groups(slabs, steps)
    if not groups:
        return np.full(len(slabs), np.nan)
    every = list(range(len(slabs)))
    return _shares(groups, every, every)


def _shares(
    groups: Sequence[Sequence[_Block]], wanted: Sequence[int], kept: Sequence[int]
) -> NDArray[np.float64]:
    """Return the share of own noise of some volumes among `kept`: in air or body, where it is more.

    A volume of much less noise than the others has none of its own.
    """
    found = np.zeros(len(wanted))
    for blocks in groups:
        shares = np.array([[_share(block, k, kept) for k in wanted] for block in blocks])
        levels = np.array([block.levels for block in blocks])
        usual = np.median(levels[:, list(kept)], axis=1, keepdims=True)
        faint = np.median(levels / np.maximum(usual, 1e-9), axis=0)[list(wanted)] < _FAINT
        own = np.median(shares, axis=0)
        own[faint & (len(kept) > 2)] = 0.0
        found = np.maximum(found, own)
    return found


def _share(block: _Block, k: int, kept: Sequence[int]) -> float:
    """Return the share of one block's grain that the other volumes do not explain."""
    own = block.own[k]
    whole = float(own @ own)
    if whole <= 0:
        return 0.0
    others = [j for j in kept if j != k]
    features = _features(block, own, k, others)
    # einsum, not `@`: BLAS starts threads for it, which on busy processors take ten times as long
    products = np.einsum("iv,jv->ij", features, features)
    at = np.arange(len(products))
    products[at, at] += 1e-5 * float(np.trace(products)) / len(at) + 1e-6
    rest = own - np.linalg.solve(products, features @ own) @ features
    freedom = len(own) / max(len(own) - len(features), 1)
    return float(rest @ rest) / whole * freedom


def _features(block: _Block, own: _Array, k: int, others: Sequence[int]) -> _Array:
    """Return what may explain a volume's grain: (feature, voxel).

    The volumes most like it, each also moved by a voxel; the best match with a greater move, and
    the voxels around it, which smoothing and registration mix; maximum, minimum and median of all,
    and maximum and minimum along the stack.
    """
    norms = block.norms[others]
    alike = np.abs(block.inner[others] @ own).max(axis=1) / norms
    room = len(own) // 3 - 36
    most = max(1, min(_MOST_OTHERS, room // 9))
    near = [others[at] for at in np.argsort(-alike)[:most]]
    found = [block.inner[j] for j in near]
    moved = _moved(block, k, others)
    if len(moved):
        found.append(moved)
    found.append(_extremes(block, near[0], others))
    return np.concatenate(found)


def _extremes(block: _Block, nearest: int, others: Sequence[int]) -> _Array:
    """Return the grain of what no sum of volumes gives, where each voxel chooses.

    Maximum, minimum and median of volumes, sliding projections, and sizes of differences.
    """
    values = block.values[others]
    ranks = [values.max(axis=0), values.min(axis=0), np.median(values, axis=0)]
    around = block.around[nearest]
    last = len(around) - 1
    at = np.arange(block.first, block.first + values.shape[1])
    beside = around[np.stack([np.maximum(at - 1, 0), at, np.minimum(at + 1, last)])]
    ranks += [beside.max(axis=0), beside.min(axis=0)]
    ranks += list(np.abs(values[1 : 1 + _DIFFERENCES] - values[0]))
    edge = slice(block.margin, -block.margin)
    return _grain(np.stack(ranks))[..., edge, edge].reshape(len(ranks), -1)


def _moved(block: _Block, k: int, others: Sequence[int]) -> _Array:
    """Return the grain of the volume that matches best when moved, with its neighbours."""
    best, place = 0.0, None
    depth = block.values.shape[1]
    width = block.grain.shape[-1]
    most = 2 * block.margin + 1
    template = np.conj(_spectrum_of_inner(block, k))
    norms = block.norms[others][:, None, None]
    for first in _depths(block, len(others)):
        spectra = block.spectra[others, first : first + depth]
        match = np.fft.irfft2((spectra * template).sum(axis=1), s=(width, width))
        match = np.abs(np.roll(match, (block.margin, block.margin), (1, 2))[:, :most, :most])
        match /= norms
        if first == block.first:  # `near` has these
            middle = slice(block.margin - 1, block.margin + 2)
            match[:, middle, middle] = 0
        at = np.unravel_index(int(np.argmax(match)), match.shape)
        if match[at] > best:
            best, place = float(match[at]), (others[int(at[0])], first, int(at[1]), int(at[2]))
    return np.empty((0, block.own.shape[1]), np.float32) if place is None else _around(block, place)


def _spectrum_of_inner(block: _Block, k: int) -> NDArray[np.complex64]:
    depth = block.values.shape[1]
    alone = np.zeros_like(block.grain[k, :depth])
    inner = slice(block.margin, -block.margin)
    alone[:, inner, inner] = block.own[k].reshape(depth, *block.values[0, 0, inner, inner].shape)
    spectrum: NDArray[np.complex64] = np.fft.rfft2(alone).astype(np.complex64)
    return spectrum


def _depths(block: _Block, n_others: int) -> range | list[int]:
    last = block.grain.shape[1] - block.values.shape[1]
    return range(last + 1) if n_others < _MANY else [block.first]


def _around(block: _Block, place: tuple[int, int, int, int]) -> _Array:
    """Return a volume's grain at a place of the block, and moved by one voxel from there."""
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


def _turned(groups: Sequence[Sequence[_Block]], n_volumes: int) -> list[int]:
    """Return volumes with the noise of an earlier one, its sign turned: that one was subtracted."""
    blocks = [block for group in groups for block in group]
    found = []
    for later in range(1, n_volumes):
        if min(_likeness(blocks, earlier, later) for earlier in range(later)) < _OPPOSITE:
            found.append(later)
    return found


def _likeness(blocks: Sequence[_Block], a: int, b: int) -> float:
    """Return how much more often than not two volumes deviate to one side, -1 .. 1, where quiet.

    An edge counts by its few voxels, not by its height: contrast turns edges too.
    """
    pairs = np.array([block.levels[[a, b]] for block in blocks])
    pairs[pairs <= 0] = np.inf
    quiet = (pairs <= _QUIET * pairs.min(axis=0)).all(axis=1) & np.isfinite(pairs).all(axis=1)
    told = [one for one, is_quiet in zip(blocks, quiet, strict=True) if is_quiet]
    if not told:
        return 0.0
    return float(np.mean([np.sign(one.own[a]) * np.sign(one.own[b]) for one in told]))


def _groups(slabs: _Array, steps: Sequence[float]) -> list[list[_Block]]:
    """Return the quietest blocks of air and those of body; none where grain is mere rounding."""
    n, depth, rows, columns = slabs.shape
    size = 16 if min(rows, columns) >= _LARGE else 8
    margin = size // 2
    deep = min(_DEPTH, depth)
    first = (depth - deep) // 2
    grain = _grain(slabs)
    corners = [
        (y, x)
        for y in range(margin, rows - size - margin + 1, size)
        for x in range(margin, columns - size - margin + 1, size)
    ]
    if n < 2 or not corners:
        return []
    inside = [slice(first, first + deep)]
    levels, empty, means = _looked(slabs[:, *inside], grain[:, *inside], corners, size)
    usual = np.median(levels, axis=1, keepdims=True)
    loudness = np.median(levels / np.maximum(usual, 1e-9), axis=0)
    is_noisy = (~empty).sum(axis=0) >= 2
    white = float(np.percentile(slabs[:, first], 99))
    is_air = means.max(axis=0) < _AIR * white
    spread = np.sqrt(levels / (size * size * deep)) / np.abs(steps)[:, None]
    is_noisy &= np.median(spread, axis=0) >= _LEAST_STEPS
    chosen = [_quiet(np.flatnonzero(part & is_noisy), loudness) for part in (is_air, ~is_air)]
    chosen = [own for own in chosen if len(own) >= _FEWEST_BLOCKS]
    least = min((float(np.median(loudness[own])) for own in chosen), default=0.0)
    return [
        [_block(slabs, grain, corners[at], size, first, deep) for at in _some(own)]
        for own in chosen
        if float(np.median(loudness[own])) <= _EDGES * least
    ]


def _some(found: NDArray[np.intp]) -> NDArray[np.intp]:
    some: NDArray[np.intp] = found[
        np.linspace(0, len(found) - 1, min(len(found), _BLOCKS)).astype(int)
    ]
    return some


def _quiet(found: NDArray[np.intp], loudness: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the blocks of `found` that are the quietest, none much louder than those."""
    ordered = found[np.argsort(loudness[found])][: max(len(found) // _QUIET, _FEWEST_BLOCKS)]
    if not len(ordered):
        return ordered
    least = loudness[ordered[len(ordered) // 10]]
    quiet: NDArray[np.intp] = ordered[loudness[ordered] <= _LOUDER * least]
    return quiet


def _looked(
    values: _Array, grain: _Array, corners: Sequence[tuple[int, int]], size: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64]]:
    """Return (volume, block): power of the grain, whether it is masked, and the mean value."""
    levels, empty, means = [], [], []
    for y, x in corners:
        at = (..., slice(y, y + size), slice(x, x + size))
        own = values[at].reshape(len(values), -1)
        levels.append(np.square(grain[at].reshape(len(values), -1)).sum(axis=1, dtype=np.float64))
        empty.append((own == own.min(axis=1, keepdims=True)).mean(axis=1) > _EMPTY)
        means.append(own.mean(axis=1, dtype=np.float64))
    return np.stack(levels, 1), np.stack(empty, 1), np.stack(means, 1)


def _block(
    slabs: _Array, grain: _Array, corner: tuple[int, int], size: int, first: int, deep: int
) -> _Block:
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
    own = np.where(is_masked[:, None], np.float32(0), inner[:, 4])
    return _Block(
        values,
        slabs[:, :, *around],
        region,
        np.fft.rfft2(region).astype(np.complex64),
        inner,
        own,
        np.square(own).sum(axis=1, dtype=np.float64),
        np.linalg.norm(inner[:, 4], axis=1).astype(np.float64) + 1e-9,
        margin,
        first,
    )


def _grain(values: _Array) -> _Array:
    """Return values less the mean of 3 x 3 around each of them in its plane.

    Large arrays are taken apart, so that what is in between stays in the processor's cache.
    """
    if values.ndim > 2 and values.size > _AT_ONCE:
        whole: _Array = np.empty_like(values)
        for at, one in enumerate(values):
            whole[at] = _grain(one)
        return whole
    padded = np.pad(values, ((0, 0),) * (values.ndim - 2) + ((1, 1), (1, 1)), "edge")
    rows = padded[..., :-2, :] + padded[..., 1:-1, :] + padded[..., 2:, :]
    means = (rows[..., :-2] + rows[..., 1:-1] + rows[..., 2:]) / np.float32(9)
    grain: _Array = values - means
    return grain
