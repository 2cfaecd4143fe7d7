"""How much of one volume's fine grain the other volumes explain, block by block."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.io.exam.noise_blocks import Block, grain_of

__all__ = ["MANY", "unexplained"]

_Array = NDArray[np.float32]
_MOST_OTHERS: Final = 6
_DIFFERENCES: Final = 4
MANY: Final = 10
"""Of more volumes only planes at one depth are compared, and half of those in doubt go at once."""


def unexplained(block: Block, k: int, kept: Sequence[int]) -> float:
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


def _features(block: Block, own: _Array, k: int, others: Sequence[int]) -> _Array:
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


def _extremes(block: Block, nearest: int, others: Sequence[int]) -> _Array:
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
    return grain_of(np.stack(ranks))[..., edge, edge].reshape(len(ranks), -1)


def _moved(block: Block, k: int, others: Sequence[int]) -> _Array:
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


def _spectrum_of_inner(block: Block, k: int) -> NDArray[np.complex64]:
    depth = block.values.shape[1]
    alone = np.zeros_like(block.grain[k, :depth])
    inner = slice(block.margin, -block.margin)
    alone[:, inner, inner] = block.own[k].reshape(depth, *block.values[0, 0, inner, inner].shape)
    spectrum: NDArray[np.complex64] = np.fft.rfft2(alone).astype(np.complex64)
    return spectrum


def _depths(block: Block, n_others: int) -> range | list[int]:
    last = block.grain.shape[1] - block.values.shape[1]
    return range(last + 1) if n_others < MANY else [block.first]


def _around(block: Block, place: tuple[int, int, int, int]) -> _Array:
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
