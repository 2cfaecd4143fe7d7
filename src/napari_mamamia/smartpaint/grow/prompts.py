"""Growth from a box that a reader has drawn around a lesion."""

from math import ceil
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt, gaussian_filter, label

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.smartpaint.brush.features import FeatureImages
from napari_mamamia.smartpaint.grow.grow import Grown, grow_start
from napari_mamamia.smartpaint.grow.sample import Sampled, leading
from napari_mamamia.smartpaint.grow.start import RING_MM, GrowSettings, Start

_BOX_SHELL_MM: Final = 6.0  # around a box, where no voxel belongs to the lesion; our choice
_SMOOTH_MM: Final = (
    1.0  # standard deviation of the Gaussian before the brightest part is found; our choice
)
_HALF: Final = 0.5  # of the range from the surroundings to the peak: full width at half maximum
_AS_BRIGHT: Final = 0.1  # of the surroundings: with more, another structure is as bright; ours
_PEAK: Final = 99.0  # percentile used as the peak; our choice
_TOUCHING: Final = np.ones((3, 3, 3), dtype=np.bool_)

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]


def grow_from_box(
    images: FeatureImages, grid: Grid, box: Box, settings: GrowSettings | None = None
) -> Grown:
    """Grow the lesion in a box that a reader has drawn around it.

    No voxel outside the box belongs to the lesion. The subtraction (or, without a subtraction, the
    first feature) is smoothed by 1 mm and thresholded half-way between the median of the
    surroundings and the 99th percentile in the box. The connected part with most signal above the
    threshold is the sample of the lesion. The sample of the surroundings consists of the 6 mm
    around the box and the voxels in the box below the threshold, at least 2.5 mm from that part.
    The region is empty, with a note, if no part is brighter, or if a tenth of the 6 mm around the
    box is as bright as the middle of that part.

    Raises
    ------
    CaseError
        If the box is empty or extends outside the image.
    """
    settings = settings or GrowSettings()
    _require_box(box, grid)
    report_progress(0, 1, "Finding the brightest part of the box")
    margin = [ceil(_BOX_SHELL_MM / step) for step in grid.spacing_mm]
    sampled = Sampled.of(images, box.grown(margin, grid.shape))
    allowed = np.zeros(sampled.box.shape, dtype=np.bool_)
    allowed[_index_within(sampled.box, box)] = True
    brightest = _find_brightest(images, sampled, allowed, grid)
    if not brightest.any():
        return _make_nothing(images, box, "nothing in the box is brighter than its surroundings")
    shell = sampled.features[leading(images)][~allowed & sampled.usable]
    level = float(np.median(sampled.features[leading(images)][brightest]))
    if shell.size and np.count_nonzero(shell > level) > _AS_BRIGHT * shell.size:
        note = "the surroundings of the box are as bright as its brightest part"
        return _make_nothing(images, box, note)
    away = distance_transform_edt(~brightest, sampling=grid.spacing_mm)
    start = Start(
        sampled.box,
        _find_deep_voxels(brightest, grid, settings.tolerance_mm),
        ~allowed,
        brightest,
        brightest,
        sampled.values(brightest),
        sampled.values(away > RING_MM[0]),
    )
    return grow_start(images, start, settings)


def _make_nothing(images: FeatureImages, box: Box, why: str) -> Grown:
    notes = (*images.missing, f"{why}: there is no region; outline the lesion instead")
    return Grown(box, np.zeros(box.shape, dtype=np.bool_), notes)


def _find_brightest(images: FeatureImages, sampled: Sampled, allowed: Bools, grid: Grid) -> Bools:
    channel = leading(images)
    values = np.where(sampled.usable, sampled.features[channel], np.float32(0))
    image = gaussian_filter(values, [_SMOOTH_MM / s for s in grid.spacing_mm], mode="nearest")
    shell = sampled.usable & ~allowed
    inner = image[allowed & sampled.usable]
    if not inner.size:
        return np.zeros_like(allowed)
    base = float(np.median(image[shell] if shell.any() else inner))
    peak = float(np.percentile(inner, _PEAK))
    if peak - base < images.noise[channel]:
        return np.zeros_like(allowed)
    level = base + _HALF * (peak - base)
    above = allowed & sampled.usable & (image > level)
    parts, _ = label(above, structure=_TOUCHING)
    strength = np.bincount(parts[above], weights=image[above] - level)
    best: Bools = parts == int(strength.argmax())
    return best


def _find_deep_voxels(mask: Bools, grid: Grid, tolerance_mm: float) -> Bools:
    """Return the voxels of each part that are deeper than the tolerance, or else the whole part."""
    # SciPy's distance to the background is meaningless if there is no background.
    if mask.all():
        return mask
    depth = distance_transform_edt(mask, sampling=grid.spacing_mm)
    deep: Bools = depth > tolerance_mm
    parts, count = label(mask, structure=_TOUCHING)
    has_depth = np.zeros(count + 1, dtype=np.bool_)
    has_depth[parts[deep]] = True
    core: Bools = deep | (mask & ~has_depth[parts])
    return core


def _index_within(outer: Box, box: Box) -> tuple[slice, slice, slice]:
    z, y, x = (
        slice(a - o, b - o) for a, b, o in zip(box.start, box.stop, outer.start, strict=True)
    )
    return (z, y, x)


def _require_box(box: Box, grid: Grid) -> None:
    if box.is_empty or any(b > n for b, n in zip(box.stop, grid.shape, strict=True)):
        raise CaseError(
            f"expected the box to have voxels inside the image, of shape {grid.shape} (z, y, x), "
            f"but got {box.start} to {box.stop}: draw the box again"
        )
