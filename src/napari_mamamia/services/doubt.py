"""Where a model was in doubt: the entropy of its mean probability, and its most doubtful places."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import Job, Progress

__all__ = ["MOST_PLACES", "Doubt", "DoubtfulPlace", "entropy_bits", "find_doubt"]

MOST_PLACES: Final = 20
_DOUBTFUL_BITS: Final = 0.5
"""Entropy from which a voxel counts as doubtful: probability 0.11 to 0.89. Our choice."""

_LEAST: Final = 1e-7
_SLAB: Final = 8
_ALL_NEIGHBOURS: Final = np.ones((3, 3, 3), dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class DoubtfulPlace:
    """A connected doubtful region: its most doubtful voxel, volume and mean entropy.

    `weight` is the sum of the entropy times the voxel's volume, in bit mm3; it orders the places.
    """

    voxel: tuple[int, int, int]
    volume_mm3: float
    mean_bits: float
    weight: float


@dataclass(frozen=True, slots=True, eq=False)
class Doubt:
    """Entropy in bits, float16 ``(z, y, x)``, 0 to 1, and the heaviest doubtful places, first."""

    entropy: NDArray[np.float16]
    places: tuple[DoubtfulPlace, ...]
    n_places: int


def entropy_bits(probability: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return the binary entropy of probabilities, in bits: 0 where certain, 1 at a half.

    -p log2 p - (1 - p) log2 (1 - p). Source: Shannon, A Mathematical Theory of Communication
    (1948), section 6.

    Examples
    --------
    >>> entropy_bits(np.array([0.0, 0.5, 1.0])).round(3).tolist()
    [0.0, 1.0, 0.0]
    """
    p = np.clip(probability.astype(np.float32), _LEAST, 1 - _LEAST)
    q = 1 - p
    found: NDArray[np.float32] = -(p * np.log2(p) + q * np.log2(q))
    return found


def find_doubt(probability: NDArray[np.float16], grid: Grid) -> Job[Doubt]:
    """Return a job for the entropy map and its places (26-connected, entropy of 0.5 bit or more).

    Parameters
    ----------
    probability
        Mean over folds, mirrored copies and models, ``(z, y, x)``, 0 to 1.
    grid
        Its grid.
    """
    n_slabs = range(0, len(probability), _SLAB)
    entropy = np.empty(probability.shape, dtype=np.float16)
    for first in n_slabs:
        yield Progress(first, len(probability) + 1, "Looking for doubtful places")
        entropy[first : first + _SLAB] = entropy_bits(probability[first : first + _SLAB])
    labels, count = ndimage.label(entropy >= _DOUBTFUL_BITS, structure=_ALL_NEIGHBOURS)
    yield Progress(len(probability), len(probability) + 1, "Looking for doubtful places")
    places = [
        _place(labels[where] == number, entropy[where], where, grid)
        for number, where in enumerate(ndimage.find_objects(labels), start=1)
    ]
    places.sort(key=lambda place: -place.weight)
    return Doubt(entropy, tuple(places[:MOST_PLACES]), int(count))


def _place(
    inside: NDArray[np.bool_],
    entropy: NDArray[np.float16],
    where: tuple[slice, ...],
    grid: Grid,
) -> DoubtfulPlace:
    bits = np.where(inside, entropy, 0).astype(np.float64)
    z, y, x = np.unravel_index(int(np.argmax(bits)), bits.shape)
    voxels = int(np.count_nonzero(inside))
    total, size = float(bits.sum()), grid.voxel_volume_mm3
    voxel = (int(z) + where[0].start, int(y) + where[1].start, int(x) + where[2].start)
    return DoubtfulPlace(voxel, voxels * size, total / voxels, total * size)
