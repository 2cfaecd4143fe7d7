"""Smoothed maps of signal rise and enhancement, with the noise that remains."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.progress import part, report_progress
from napari_mamamia.segmentation.kinetic.pooling import Factors, pooled_job
from napari_mamamia.segmentation.kinetic.scan import Scan
from napari_mamamia.segmentation.kinetic.smoothing import noise_left, smoothed

_SIGNAL_FLOOR: Final = 0.02  # share of the 99th percentile of phase 0; below it PE has no meaning

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Enhancement:
    """Smoothed maps of one region, all float32 and of one shape.

    `pre` is phase 0, `rise` the early phase minus phase 0, `late_rise` the late phase minus phase 0
    (None without a late phase), all in the signal's unit; `percent` is the early PE, 0 where phase
    0 is too dark. `noise` is the standard deviation of `rise` due to noise alone, 0 if it was not
    measured.
    """

    pre: Floats
    rise: Floats
    percent: Floats
    late_rise: Floats | None
    noise: float = 0.0


def enhancement_of(pre: Floats, early: Floats, late: Floats | None, bright: float) -> Enhancement:
    """Return the maps of smoothed phases.

    PE is 0 where phase 0 is below 2 % of `bright` (its 99th percentile): noise divided by almost 0
    has no meaning.
    """
    rise = early - pre
    percent = np.zeros_like(rise)
    np.divide(rise, pre, out=percent, where=pre > max(_SIGNAL_FLOOR * bright, 0.0))
    percent *= np.float32(100.0)
    return Enhancement(pre, rise, percent, None if late is None else late - pre)


def enhancement_job(
    scan: Scan, factors: Factors, given: tuple[Floats, Floats], where: Bools, sigma_mm: float
) -> Enhancement:
    """Return the maps of a scan on the grid pooled by `factors`.

    Parameters
    ----------
    scan
        The phases, of which only the late one is read.
    factors
        Number of voxels to average along each axis.
    given
        Phase 0 and the early phase, already pooled.
    where
        Voxels over which the noise is measured.
    sigma_mm
        Standard deviation of the Gaussian.
    """
    a, b, c = (s * f for s, f in zip(scan.spacing_mm, factors, strict=True))
    phases: list[Floats] = list(given)
    if scan.late is not None:
        with part(0, 50, 100):
            phases.append(pooled_job(scan.late, factors, "Reading the late phase"))
    noise = noise_left(given[1] - given[0], where, sigma_mm, (a, b, c))
    for n, phase in enumerate(phases):
        report_progress(50 + 15 * n, 100, "Comparing phases")
        phases[n] = smoothed(phase, sigma_mm, (a, b, c))
    report_progress(95, 100, "Comparing phases")
    late: Any = phases[2] if len(phases) > 2 else None
    maps = enhancement_of(phases[0], phases[1], late, scan.bright)
    report_progress(100, 100, "Comparing phases")
    return Enhancement(maps.pre, maps.rise, maps.percent, maps.late_rise, noise)
