"""Contrast between a tumour and its surroundings, from two phases of the case."""

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import GridMismatchError
from napari_mamamia.core.grid import Grid


@dataclass(frozen=True, slots=True, eq=False)
class Enhancement:
    """The phase before contrast and the first one after it, (z, y, x) on the masks' grid."""

    before: NDArray[Any]
    after: NDArray[Any]


def contrast_to_noise(
    reference: NDArray[np.bool_],
    box: Box,
    grid: Grid,
    enhancement: Enhancement,
    surroundings_mm: float,
) -> float:
    """Return the contrast-to-noise ratio of a tumour's enhancement; nan where undefined.

    The ratio is (mean inside - mean around)/SD around. `reference` is bool on `box`. "Around" is a
    shell of `surroundings_mm` around the mask, inside the image. The ratio is undefined if the
    shell has fewer than 2 voxels or only equal values. The spread of the surroundings serves as the
    noise.

    Raises
    ------
    GridMismatchError
        If a phase does not have the shape of the grid.
    """
    for phase in (enhancement.before, enhancement.after):
        if phase.shape != grid.shape:
            raise GridMismatchError(
                f"the masks have shape {grid.shape} (z, y, x), but a phase has {phase.shape}; "
                "give the phases of the same case"
            )
    tumour_box = Box.around(reference)
    if tumour_box.is_empty:
        return float("nan")
    steps = [ceil(surroundings_mm / mm) for mm in grid.spacing_mm]
    there = [a + o for a, o in zip(tumour_box.start, box.start, strict=True)]
    stop = [a + n for a, n in zip(there, tumour_box.shape, strict=True)]
    wide = Box((there[0], there[1], there[2]), (stop[0], stop[1], stop[2]))
    wide = wide.grown(steps, grid.shape)
    mask = np.pad(
        reference[tumour_box.slices],
        [(a - o, p - b) for a, b, o, p in zip(there, stop, wide.start, wide.stop, strict=True)],
    )
    gain = enhancement.after[wide.slices].astype(np.float32) - enhancement.before[wide.slices]
    distance: Any = ndimage.distance_transform_edt  # type: ignore[attr-defined, unused-ignore]
    around = distance(~mask, sampling=grid.spacing_mm) <= surroundings_mm
    around &= ~mask
    if np.count_nonzero(around) < 2:
        return float("nan")
    spread = float(gain[around].std(ddof=1))
    apart = float(gain[mask].mean()) - float(gain[around].mean())
    return apart / spread if spread > 0 else float("nan")
