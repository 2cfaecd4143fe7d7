"""`Canvas`: a block of voxels onto which tissues are painted one after the other."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.phantom.body.geometry import Array, Points, Window
from napari_mamamia.phantom.body.tissue import FAT_SHARE, Tissue

WHOLE: Final[Window] = (slice(None), slice(None), slice(None))

_ONE: Final = np.float32(1)


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """Factors by which a tissue's signal and enhancement deviate from their means."""

    brightness: Array | np.float32 = _ONE
    enhancement: Array | np.float32 = _ONE


@dataclass(frozen=True, slots=True, eq=False)
class Canvas:
    """Signal and tissue labels of one block of voxels.

    `signal` is float32 (phase, z, y, x) without noise, for the phases listed in `phases`. `tissue`
    is the uint8 label map, and `points` holds the sampled positions. `curves` holds each tissue's
    mean signal at every phase of the case. `fat_left` is the fraction of the fat signal that
    remains after suppression.
    """

    points: Points
    phases: tuple[int, ...]
    curves: Mapping[Tissue, NDArray[np.float32]]
    fat_left: Array
    voxel_mm: float
    signal: NDArray[np.float32]
    tissue: NDArray[np.uint8]

    @classmethod
    def blank(
        cls,
        points: Points,
        phases: tuple[int, ...],
        curves: Mapping[Tissue, NDArray[np.float32]],
        fat_left: Array,
        voxel_mm: float,
    ) -> "Canvas":
        """Return a canvas filled with air."""
        signal = np.zeros((len(phases), *points.shape), np.float32)
        tissue = np.zeros(points.shape, np.uint8)
        fat_left = np.broadcast_to(fat_left, points.shape)
        return cls(points, phases, curves, fat_left, voxel_mm, signal, tissue)

    def paint(
        self,
        tissue: Tissue,
        share: Array,
        window: Window = WHOLE,
        look: Look | None = None,
        curve: NDArray[np.float32] | None = None,
    ) -> None:
        """Paint `tissue` inside `window` of the block; `share` is the covered fraction, 0 to 1.

        Labels change where the fraction is at least one half. `curve` replaces the curve of the
        tissue.
        """
        if not share.any():
            return
        look = look or Look()
        signal = self.curves[tissue] if curve is None else curve
        fat = np.float32(FAT_SHARE.get(tissue, 0.0))
        left = 1 - fat + fat * self.fat_left[window] if fat else _ONE
        before = signal[0] * look.brightness * left
        self.tissue[window][share >= 0.5] = tissue
        for index, phase in enumerate(self.phases):
            rise = np.float32(signal[phase] / signal[0] - 1) if signal[0] else np.float32(0)
            target = before * (1 + rise * look.enhancement)
            view = self.signal[(index, *window)]
            view += share * (target - view)
