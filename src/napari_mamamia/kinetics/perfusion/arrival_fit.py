"""When contrast arrives in a tissue, by the model itself."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import CaseError
from napari_mamamia.kinetics.perfusion.arterial_input import ArterialInput, plasma_curve
from napari_mamamia.kinetics.perfusion.fit import RefinedFit
from napari_mamamia.kinetics.perfusion.spoiled_echo import SpoiledEcho, concentration_mm
from napari_mamamia.kinetics.perfusion.tissue_model import TissueModel

__all__ = ["fitted_arrival_s"]

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
    """Return the arrival whose fit of a mean curve leaves the least, s on the clock of `times`.

    Arrivals from the first phase to the peak are tried, every 2 s and then every 0.25 s around the
    best; each with the phases before it as baseline.

    Raises
    ------
    CaseError
        If no arrival gives a curve of concentrations that rises.
    """
    peak = times[int(np.argmax(signal))]

    def left(arrival_s: float) -> float:
        return _residual(times, signal, t10_s, echo, source, model, arrival_s)

    coarse = np.arange(times[0], peak, _COARSE_S)
    if not len(coarse) or not np.isfinite(best := min(coarse, key=left)) or left(best) == np.inf:
        raise CaseError(
            "expected a mask whose mean curve rises after its first phase, got one that does not: "
            "give the arrival in seconds with --arrival, or another mask"
        )
    around = np.arange(max(best - _COARSE_S, times[0]), min(best + _COARSE_S, peak), _FINE_S)
    return float(min(around, key=left))


def _residual(
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
