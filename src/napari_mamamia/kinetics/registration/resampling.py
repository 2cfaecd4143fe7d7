"""A phase moved at its own resolution, slab by slab, in its own type."""

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.case import Case
from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.kinetics.registration.itk import Warp, readable
from napari_mamamia.kinetics.registration.progress import in_thread
from napari_mamamia.kinetics.registration.settings import Interpolation

__all__ = ["resample"]

_SLAB_VOXELS: Final = 400_000


def resample(
    case: Case, index: int, warp: Warp, interpolation: Interpolation, out: NDArray[Any]
) -> Job[int]:
    """Return a job that fills `out` with a moved phase; its result counts voxels from outside.

    `out` is ``(z, y, x)`` of the case's type. Whole numbers are rounded; nothing is below the least
    or above the greatest value of the phase.
    """
    spacing, volume = case.grid.spacing_mm, case.signal[index]
    text = f"Phase {index}: resampling"
    ready = Progress(0, len(out), text)
    source = yield from in_thread(
        lambda: readable(volume, spacing, interpolation=interpolation), _nothing, lambda: ready
    )
    outside = 0
    for start, stop in _slabs(out.shape):
        now = Progress(start, len(out), text)
        yield now
        place = (stop - start, *out.shape[1:]), spacing, (start * spacing[0], 0.0, 0.0)
        moved, count = warp.moved(source, *place)
        out[start:stop] = _in_type(moved, out.dtype)
        outside += count
    return outside


def _slabs(shape: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield first and last slices of slabs, each of which takes a moment."""
    thick = max(1, _SLAB_VOXELS // math.prod(shape[1:]))
    for start in range(0, shape[0], thick):
        yield start, min(start + thick, shape[0])


def _in_type(values: NDArray[np.float32], dtype: np.dtype[Any]) -> NDArray[Any]:
    if not np.issubdtype(dtype, np.integer):
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    found: NDArray[Any] = np.clip(np.rint(values.astype(np.float64)), limits.min, limits.max)
    return found.astype(dtype)


def _nothing() -> None:
    """Stop nothing: coefficients are there in a moment."""
