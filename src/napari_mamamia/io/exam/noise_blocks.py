"""Find quiet blocks of air and body in some planes of each volume, and their grain.

The grain is the value minus the mean of 3 x 3 around it in its plane: mostly noise in quiet blocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

_Array = NDArray[np.float32]
_DEPTH: Final = 3
_LARGE: Final = 96
_BLOCKS: Final = 8
_FEWEST_BLOCKS: Final = 2
_QUIET: Final = 3
"""Fraction of the blocks that are used: the quietest third, with least anatomy."""
_LOUDER: Final = 2.0
_EDGES: Final = 8.0
"""Largest power ratio of air and body; above it the louder one contains edges."""
_AIR: Final = 0.1
_AT_ONCE: Final = 1 << 17
_LEAST_STEPS: Final = 0.6
"""Grain, in steps of the stored values, below which it is rounding."""
_EMPTY: Final = 0.7
"""Share of a block's voxels at its lowest value above which the block is masked."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """One place in all volumes: values and grain, with a `margin` in voxels within the plane."""

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
    """Return the quietest blocks of air and of body; none if the grain is only rounding."""
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
    """Return the quietest blocks of `found`, none of them much louder than the others."""
    ordered = found[np.argsort(loudness[found])][: max(len(found) // _QUIET, _FEWEST_BLOCKS)]
    if not len(ordered):
        return ordered
    least = loudness[ordered[len(ordered) // 10]]
    quiet: NDArray[np.intp] = ordered[loudness[ordered] <= _LOUDER * least]
    return quiet


def _measure_blocks(
    values: _Array, grain: _Array, corners: Sequence[tuple[int, int]], size: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64]]:
    """Return power of the grain, masked flag and mean value for each (volume, block)."""
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
    """Return values minus the mean of 3 x 3 around each of them in its plane.

    Large arrays are split, so that intermediate results stay in the CPU cache.
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
    """Return planes with their border doubled, as numpy's `pad` in a third of its time."""
    *stack, rows, columns = values.shape
    wide: _Array = np.empty((*stack, rows + 2, columns + 2), values.dtype)
    wide[..., 1:-1, 1:-1] = values
    wide[..., 0, 1:-1], wide[..., -1, 1:-1] = values[..., 0, :], values[..., -1, :]
    wide[..., 0], wide[..., -1] = wide[..., 1], wide[..., -2]
    return wide
