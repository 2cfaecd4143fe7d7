"""A phase of a DICOM study on its way into a volume file: a few planes in memory at a time."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.progress import Progress, run_job
from napari_mamamia.io.dicom.pixels import fill_planes
from napari_mamamia.io.dicom.slices import Slice
from napari_mamamia.io.exam.blanks import blank_tails

__all__ = ["PhasePlanes"]

_PART_BYTES: Final = 1 << 23
_LEAST_PLANES: Final = 8
"""Planes read together: at least so many that the reading threads have work, else 8 MiB."""


class PhasePlanes:
    """The planes of one phase, read from their files when a writer asks for them, turned upright.

    Once all were given, `tails` holds where its planes break off. A plane's memory is
    used again for a later one.

    Parameters
    ----------
    slices
        The planes up the stack.
    shape
        ``(z, y, x)`` of the grid that they are to fill.
    dtype
        Of the values given; of floating point where they are scaled.
    turn
        The slices that turn ``(z, y, x)`` upright, planes in their order.
    check
        Called while planes are read; what it raises ends the reading.
    """

    ndim: Final = 3

    def __init__(
        self,
        slices: Sequence[Slice],
        shape: tuple[int, int, int],
        dtype: np.dtype[Any],
        turn: tuple[slice, ...],
        check: Callable[[Progress], None],
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self._slices = slices
        self._turn = turn
        self._check = check
        self._tails: list[NDArray[np.intp]] = []

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Give the planes, read part by part."""
        n_bytes = self.shape[1] * self.shape[2] * self.dtype.itemsize
        step = max(_LEAST_PLANES, _PART_BYTES // n_bytes)
        planes: NDArray[Any] = np.empty((step, *self.shape[1:]), dtype=self.dtype)
        for start in range(0, len(self._slices), step):
            slices = self._slices[start : start + step]
            part = planes[: len(slices)]
            run_job(fill_planes(slices, part), self._check)
            self._tails.append(blank_tails(part))
            yield from part[self._turn]

    @property
    def tails(self) -> NDArray[np.intp]:
        """What `blank_tails` makes of the phase."""
        return np.concatenate(self._tails)
