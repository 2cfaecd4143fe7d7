"""Growth from a click: the size of the clicked lesion is estimated first, then its edge."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.edits import Voxel
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.smartpaint.brush.features import FeatureImages
from napari_mamamia.smartpaint.grow.grow import Grown, grow_start
from napari_mamamia.smartpaint.grow.sample import Sampled, cropped, leading
from napari_mamamia.smartpaint.grow.start import RING_MM, GrowSettings, Start, ball, box_of_ball

_SEED_MM: Final = 1.5  # radius that certainly belongs to a click; as the sample of a stamp, A4
_SIZES_MM: Final = range(2, 26)  # radii tried for a clicked lesion; our choice
_SHELL_MM: Final = 4  # thickness of the surroundings in the contrast of a size; our choice
_GOOD: Final = 0.7  # share of the best contrast that a smaller size needs; our choice
_CLICK_REACH: Final = 1.3  # larger than for an outline: a click may be off the centre; our choice

Floats = NDArray[np.float32]


def grow_from_click(
    images: FeatureImages, grid: Grid, point: Voxel, settings: GrowSettings | None = None
) -> Grown:
    """Grow a clicked lesion.

    Balls of 2 to 25 mm radius around the click are compared with the 4 mm around them. The lesion
    is taken to be the smallest ball whose contrast (`_size_mm`) is at least 0.7 of the best. The
    sample of the lesion consists of the voxels that are deeper in this ball than the tolerance, and
    the sample of the surroundings is the shell 2.5 to 9 mm around it. Only voxels within 1.5 mm of
    the click are certainly inside. The region ends at 1.3 times `reach` times the radius of the
    ball.

    Raises
    ------
    CaseError
        If the click is outside the image.
    """
    settings = settings or GrowSettings()
    under = _require_inside(point, grid)
    report_progress(0, 1, "Measuring the size of the lesion")
    farthest = _SIZES_MM[-1] + RING_MM[1]
    sampled = Sampled.of(images, box_of_ball(point, farthest, grid.spacing_mm, grid.shape))
    away = ball(sampled.box, point, grid.spacing_mm)
    size_mm = _size_mm(sampled, away, images.noise, leading(images))
    drawn = away <= min(_SEED_MM, size_mm)
    drawn[tuple(u - s for u, s in zip(under, sampled.box.start, strict=True))] = True
    sample = (away <= max(size_mm - settings.tolerance_mm, _SEED_MM)) | drawn
    around = (away > size_mm + RING_MM[0]) & (away <= size_mm + RING_MM[1])
    limit_mm = settings.radius_mm or settings.reach * _CLICK_REACH * size_mm
    start = Start(
        sampled.box,
        drawn,
        (away > limit_mm) & ~drawn,
        sample,
        # If the image does not help, a click gives no information on the lesion's edge.
        np.zeros_like(drawn),
        sampled.values(sample),
        sampled.values(around),
        (f"the lesion was taken to be about {2 * size_mm:.0f} mm across",),
    )
    return grow_start(images, cropped(start), settings)


def _size_mm(sampled: Sampled, away: Floats, noise: tuple[float, ...], leading: int) -> float:
    """Return the radius of the ball around a click with the highest contrast, 2 to 25 mm.

    Contrast is the root mean square over the features of the difference between the mean in the
    ball and the mean in the 4 mm around it, in units of noise, minus twice its standard error due
    to noise. Balls that are darker than their surroundings in the subtraction (or, without a
    subtraction, in the first feature) count only if no ball is brighter, because the dark core of a
    lesion is not the lesion.
    """
    shells = np.floor(away[sampled.usable]).astype(np.intp)
    most = _SIZES_MM[-1] + _SHELL_MM + 1
    count = np.bincount(shells, minlength=most).cumsum()
    squared, brighter = np.zeros(len(_SIZES_MM)), np.ones(len(_SIZES_MM), dtype=np.bool_)
    radii = np.array(_SIZES_MM)
    # Shell k holds distances from k up to k + 1, so the voxels nearer than a radius end one shell
    # before.
    inside, around = count[radii - 1], count[radii - 1 + _SHELL_MM] - count[radii - 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        for number, (feature, sigma) in enumerate(zip(sampled.features, noise, strict=True)):
            total = np.bincount(shells, feature[sampled.usable], most).cumsum()
            shell = total[radii - 1 + _SHELL_MM] - total[radii - 1]
            step = total[radii - 1] / inside - shell / around
            squared += (step / sigma) ** 2
            if number == leading:
                brighter = step > 0
        error = np.sqrt(1 / inside + 1 / around)
        bound = np.nan_to_num(np.sqrt(squared / len(noise)) - 2 * error, nan=0.0, neginf=0.0)
    if (bound[brighter] > 0).any():
        bound[~brighter] = 0
    return float(radii[int(np.argmax(bound >= _GOOD * bound.max()))])


def _require_inside(point: Voxel, grid: Grid) -> tuple[int, int, int]:
    z, y, x = (round(coordinate) if np.isfinite(coordinate) else -1 for coordinate in point)
    if not all(0 <= u < n for u, n in zip((z, y, x), grid.shape, strict=True)):
        raise CaseError(
            f"expected the click to be in the image, of shape {grid.shape} (z, y, x), but got "
            f"{point}: click on the lesion"
        )
    return (z, y, x)
