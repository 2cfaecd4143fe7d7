"""Compute a map block by block, so that blocks stay in the CPU cache and memory use is low."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.progress import listening, report_progress
from napari_mamamia.kinetics.map_formulas import Formula

_BLOCK_VOXELS: Final = 1 << 16
"""Voxels of one block: with 256 kB of float32, a formula's arrays fit into one core's cache.

A quarter and four times this size were measured to be slower.
"""

_VOXELS_PER_STEP: Final = 1 << 20
"""Voxels between two progress reports, about 20 ms."""


@dataclass(frozen=True, slots=True)
class MapRecipe:
    """Definition of one map: its formula, the phases it needs, and the data type of its values."""

    formula: Formula
    needed: tuple[int, ...]
    text: str = ""
    dtype: type[Any] = np.float32

    def compute(self, signal: NDArray[Any]) -> NDArray[Any]:
        """Return the whole map; errors are those of `fill`."""
        with listening(None):
            return self.fill(signal)

    def fill(self, signal: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Compute the map into `out`, or into a new array if `out` is None.

        Progress counts positions along the first spatial axis.

        Raises
        ------
        CaseError
            If `signal` lacks a phase that the map needs.
        """
        if signal.ndim < 2 or not all(0 <= phase < signal.shape[0] for phase in self.needed):
            raise CaseError(
                f"this map needs phases {sorted(set(self.needed))} of a (phase, ...) array, but "
                f"got shape {signal.shape}; choose phases of this case"
            )
        return self._fill_map(signal, out)

    def _fill_map(self, signal: NDArray[Any], given: NDArray[Any] | None) -> NDArray[Any]:
        out = np.empty(signal.shape[1:], self.dtype) if given is None else given
        total, waiting = signal.shape[1], 0
        report_progress(0, total, self.text)
        for planes, rows, ends in _iterate_blocks(signal.shape[1:]):
            block = signal[:, planes, rows] if signal.ndim > 2 else signal[:, planes]
            target = out[planes, rows] if signal.ndim > 2 else out[planes]
            with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
                self.formula(block, target)
            waiting += target.size
            if ends and (waiting >= _VOXELS_PER_STEP or planes.stop == total):
                waiting = 0
                report_progress(planes.stop, total, self.text)
        return out


def _iterate_blocks(shape: tuple[int, ...]) -> Iterator[tuple[slice, slice, bool]]:
    """Yield plane ranges, row ranges in them, and whether the last row is included."""
    n_rows = shape[1] if len(shape) > 1 else 1
    per_row = max(int(np.prod(shape[2:])), 1)
    rows = max(min(_BLOCK_VOXELS // per_row, n_rows), 1)
    planes = max(_BLOCK_VOXELS // (per_row * rows), 1) if rows >= n_rows else 1
    for plane in range(0, shape[0], planes):
        index = slice(plane, min(plane + planes, shape[0]))
        for row in range(0, max(n_rows, 1), rows):
            yield index, slice(row, row + rows), row + rows >= n_rows
