"""Projections of a case, and window/level presets for the display."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.kinetics.projection import project_enhancement, slab_slices
from napari_mamamia.services.case.show_case import display_range

_SAMPLES: Final = 200_000
_PRESETS: Final[dict[str, dict[str, tuple[float, float]]]] = {
    "phase": {
        "automatic": (1.0, 99.7),
        "bright tissue": (60.0, 99.95),
        "dark tissue": (0.0, 95.0),
        "whole range": (0.0, 100.0),
    },
    "enhancement": {
        "enhancement": (-1.0, 99.7),
        "strong enhancement": (-1.0, 99.97),
        "signed": (-2.0, 99.7),
        "whole range": (0.0, 100.0),
    },
    "map": {"as made": (-3.0, -3.0), "automatic": (1.0, 99.7), "whole range": (0.0, 100.0)},
}
"""Percentiles displayed as black and white; a negative value stands for a special rule.

The values are our choice.
"""

_FROM_ZERO: Final = -1.0
_SIGNED: Final = -2.0


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """Projections of a positive subtraction for each array axis (z, y, x), with a window/level.

    `arrays` has an empty array for an axis that was not requested. `slab_mm` is 0 if the whole
    volume is projected.
    """

    phase: int
    minus: int
    slab_mm: float
    arrays: tuple[NDArray[Any], ...]
    limits: tuple[float, float]

    @property
    def name(self) -> str:
        """Name of the projection, which is shown in the corner of the image."""
        return f"{self.slab_mm:g} mm slab" if self.slab_mm else "MIP"


def project_case(
    case: Case, phase: int, minus: int, axes: Sequence[int], slab_mm: float
) -> Projection:
    """Project the enhancement of `phase` over `minus` along the given array axes.

    Parameters
    ----------
    case
        A case in which both phases have been read.
    phase, minus
        The phases of the subtraction `phase` minus `minus`.
    axes
        The array axes to project along: 0 for z, 1 for y, 2 for x.
    slab_mm
        The thickness of a slab in mm; 0 projects the whole volume.

    Raises
    ------
    CaseError
        If the slab is negative, or a phase is missing.
    """
    if not slab_mm >= 0:
        raise CaseError(
            f"expected the slab thickness to be 0 mm or above, but it is {slab_mm}: choose a "
            "different thickness"
        )
    spacing = case.grid.spacing_mm
    slabs = [
        None if axis not in axes else slab_slices(slab_mm, spacing[axis]) if slab_mm else 0
        for axis in range(len(spacing))
    ]
    arrays = project_enhancement(case.signal, phase, minus, slabs)
    shown = next((array for array in arrays if array.size), np.zeros((1, 1, 1)))
    _, bright = display_range(shown)
    return Projection(phase, minus, slab_mm, arrays, (0.0, max(bright, 1.0)))


def contrast_names(kind: str) -> tuple[str, ...]:
    """Return the preset names for a "phase", an "enhancement" (subtraction, MIP) or a "map"."""
    return tuple(_PRESETS[kind])


def contrast_limits(
    array: NDArray[Any], kind: str, name: str, as_made: tuple[float, float]
) -> tuple[float, float]:
    """Return the values that a named preset displays as black and white.

    Parameters
    ----------
    array
        The displayed volume in any real data type. Values that are not finite are ignored.
    kind, name
        The kind of image and the name of the preset; see `contrast_names`.
    as_made
        The image's own range, which the preset "as made" uses.

    Returns
    -------
    tuple of float
        The values of black and white. White is always greater than black.
    """
    report_progress(0, 1, "Reading the image values")
    low, high = _PRESETS[kind][name]
    # Equal ends mean the image's own range.
    if low == high:
        return as_made
    sample = _sample_values(array)
    if sample.size == 0:
        return (0.0, 1.0)
    white = float(np.percentile(sample, high))
    black = {_FROM_ZERO: 0.0, _SIGNED: -abs(white)}.get(low)
    if black is None:
        black = float(np.percentile(sample, low))
    return black, white if white > black else black + 1.0


def _sample_values(array: NDArray[Any]) -> NDArray[Any]:
    step = max(1, round((array.size / _SAMPLES) ** (1 / 3)))
    sample = array[..., ::step, ::step, ::step].astype(np.float32)
    return sample[np.isfinite(sample)]
