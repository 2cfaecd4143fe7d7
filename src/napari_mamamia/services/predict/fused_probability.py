"""Mean and variance of several models' probability maps, one map in memory at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import GridMismatchError
from napari_mamamia.core.progress import Job, Progress

__all__ = ["Fused", "Moments", "share_of_masks"]

_SLAB: Final = 8  # planes at once


@dataclass(frozen=True, slots=True, eq=False)
class Fused:
    """Where the mean is above a threshold (a tie is not), the mean, and the variance about it.

    `mean` is float16, 0 to 1; `variance` float16, 0 to 0.25, over all maps (not n - 1), None for
    fewer than two. All ``(z, y, x)``.
    """

    above: NDArray[np.bool_]
    mean: NDArray[np.float16]
    variance: NDArray[np.float16] | None


@dataclass(slots=True, eq=False)
class Moments:
    """Running mean and sum of squared distances from it, float32 ``(z, y, x)``; `count` of maps.

    One map alone is its own mean, bit for bit. Source: Welford, Technometrics 4 (1962) 419.
    """

    count: int = 0
    mean: NDArray[np.float32] | None = None
    squares: NDArray[np.float32] | None = None

    def add(self, probability: NDArray[np.float16]) -> Job[None]:
        """Return a job that takes in one map, ``(z, y, x)``, 0 to 1.

        Raises
        ------
        GridMismatchError
            If its shape is not that of the maps before it.
        """
        if self.mean is None or self.squares is None:
            self.mean = np.zeros(probability.shape, np.float32)
            self.squares = np.zeros(probability.shape, np.float32)
        if probability.shape != self.mean.shape:
            raise GridMismatchError(
                f"probabilities that are fused share one grid, but one has shape "
                f"{probability.shape} (z, y, x), the others {self.mean.shape}: this is a fault of "
                "the model, choose another"
            )
        self.count += 1
        share = np.float32(1 / self.count)
        for first in range(0, len(probability), _SLAB):
            yield Progress(first, len(probability), "Averaging probabilities")
            slab = slice(first, first + _SLAB)
            values = probability[slab].astype(np.float32)
            away = values - self.mean[slab]
            self.mean[slab] += away * share
            self.squares[slab] += away * (values - self.mean[slab])

    def result(self, threshold: float) -> Job[Fused]:
        """Return a job for mean, variance, and where the mean is above `threshold`.

        Raises
        ------
        GridMismatchError
            If no map was taken in.
        """
        if self.mean is None or self.squares is None:
            raise GridMismatchError("a mean needs at least one map of probabilities: add one first")
        shape = self.mean.shape
        above = np.empty(shape, np.bool_)
        mean = np.empty(shape, np.float16)
        variance = np.empty(shape, np.float16) if self.count > 1 else None
        for first in range(0, len(mean), _SLAB):
            yield Progress(first, len(mean), "Averaging probabilities")
            slab = slice(first, first + _SLAB)
            np.greater(self.mean[slab], np.float32(threshold), out=above[slab])
            mean[slab] = self.mean[slab]
            if variance is not None:
                variance[slab] = self.squares[slab] * np.float32(1 / self.count)
        return Fused(above, mean, variance)


def share_of_masks(masks: Sequence[NDArray[np.bool_]]) -> Job[NDArray[np.float16]]:
    """Return a job for the share of masks that marked each voxel, float16 ``(z, y, x)``, 0 to 1."""
    share = np.empty(masks[0].shape, np.float16)
    for first in range(0, len(share), _SLAB):
        yield Progress(first, len(share), "Counting votes")
        slab = slice(first, first + _SLAB)
        votes = np.zeros(share[slab].shape, np.uint8)
        for mask in masks:
            votes += mask[slab]
        share[slab] = votes * np.float32(1 / len(masks))
    return share
