"""Estimate when contrast arrives in a tissue, by fitting the tissue model."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import TissueModel
from napari_mamamia.core.errors import CaseError, Remedy
from napari_mamamia.core.progress import report_progress
from napari_mamamia.features.perfusion.kinetics.arterial_input import ArterialInput, plasma_curve
from napari_mamamia.features.perfusion.kinetics.fit import RefinedFit
from napari_mamamia.features.perfusion.kinetics.spoiled_echo import SpoiledEcho, concentration_mm

_COARSE_S: Final = 2.0
_FINE_S: Final = 0.25
_STEP_MIN: Final = 0.5 / 60


def fitted_arrival_s(
    times: Sequence[float],
    signal: NDArray[np.float64],
    t10_s: float,
    echo: SpoiledEcho,
    source: ArterialInput,
    model: TissueModel,
) -> float:
    """Return the arrival time for which the fit of a mean curve has the smallest residual.

    The arrival is in seconds, on the clock of `times`. Arrivals from the first phase to the peak
    are tested in steps of 2 s, then in steps of 0.25 s around the best arrival. The baseline
    consists of the phases before the arrival that is tested.

    Raises
    ------
    CaseError
        If no arrival gives a rising concentration curve.
    """
    peak = times[int(np.argmax(signal))]
    best, least = math.nan, math.inf
    low, high, step = times[0], peak, _COARSE_S
    for _ in range(2):
        for arrival_s in np.arange(low, high, step):
            report_progress(0, 1, "Arrival of contrast")
            residual = _measure_residual(
                times, signal, t10_s, echo, source, model, float(arrival_s)
            )
            if residual < least:
                best, least = float(arrival_s), residual
        low, high, step = max(best - _COARSE_S, times[0]), min(best + _COARSE_S, peak), _FINE_S
        if math.isinf(least):
            raise _make_no_arrival_error(signal, t10_s, echo)
    return best


def _make_no_arrival_error(
    signal: NDArray[np.float64], t10_s: float, echo: SpoiledEcho
) -> CaseError:
    low, peak = int(np.argmin(signal)), int(np.argmax(signal))
    if signal[low] <= 0:
        return CaseError(
            f"expected the mask to have a signal in every phase, but its mean is {signal[low]:g} "
            f"in phase {low}; use another mask, or export that phase again"
        )
    rise = 100 * (signal[peak] / signal[:peak].mean() - 1) if peak else 0.0
    relaxed = math.exp(-echo.repetition_s / t10_s)
    most = 100 * ((1 - relaxed * math.cos(math.radians(echo.flip_degrees))) / (1 - relaxed) - 1)
    if rise >= most:
        return CaseError(
            f"expected the mean curve to rise by less than {most:.0f} %, the maximum for T1 "
            f"{t10_s:g} s, TR {1e3 * echo.repetition_s:g} ms and {echo.flip_degrees:g} degrees, "
            f"but it rises by {rise:.0f} % in phase {peak}; check T1, TR and the flip angle"
        )
    return CaseError(
        "the mask's mean curve does not rise after the first phase; enter the arrival in seconds, "
        "or choose another mask",
        remedies=(Remedy("arrival", ("SECONDS",)),),
    )


def _measure_residual(
    times: Sequence[float],
    signal: NDArray[np.float64],
    t10_s: float,
    echo: SpoiledEcho,
    source: ArterialInput,
    model: TissueModel,
    arrival_s: float,
) -> float:
    seconds = np.asarray(times, np.float64) - arrival_s
    baseline = np.atleast_1d(signal[seconds <= 0].mean())
    curve = concentration_mm(signal[:, None], baseline, t10_s, echo)[:, 0]
    if not np.isfinite(curve).all() or not curve.max() > 0:
        return float("inf")
    minutes = seconds / 60
    plasma = plasma_curve(source, float(minutes[-1]), _STEP_MIN)
    return RefinedFit(model, plasma, minutes, n_kep=121).residual(curve)
