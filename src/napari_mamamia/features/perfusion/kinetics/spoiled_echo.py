"""Spoiled gradient echo: compute signal from T1, and concentration from signal."""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import CaseError

LEAST_T1_S: Final = 0.05
MOST_T1_S: Final = 6.0
"""Largest plausible T1 in s; larger values probably have a different unit (our choice).

T1 of fat is 0.3 s, and T1 of water is 4 s.
"""

LEAST_FLIP_DEGREES: Final = 1.0
LEAST_DYNAMIC_DEGREES: Final = 2.0
"""Smallest plausible flip angle of a dynamic series, in degrees (our choice).

A smaller value may be in radians, in which the largest angle is pi / 2. The angles of a T1 map
start at 1 degree, but one of them is larger. A dynamic series below 2 degrees has no T1 contrast.
"""


@dataclass(frozen=True, slots=True)
class SpoiledEcho:
    """Parameters of a spoiled gradient echo, and the relaxivity of the contrast agent.

    Parameters
    ----------
    repetition_s
        Repetition time TR in s, 0.001 to 0.1.
    flip_degrees
        Nominal flip angle, 1 to 90.
    relaxivity
        r1 of the agent at this field strength, in 1/(s mM), 0.5 to 50.

    Raises
    ------
    CaseError
        If a value is out of range, for instance because it is in a different unit.
    """

    repetition_s: float
    flip_degrees: float
    relaxivity: float = 4.5

    def __post_init__(self) -> None:
        if not 0.001 <= self.repetition_s <= 0.1:
            raise CaseError(
                "expected the repetition time to be from 1 to 100 ms, but it is "
                f"{1e3 * self.repetition_s:g} ms; enter it in milliseconds"
            )
        if not LEAST_FLIP_DEGREES <= self.flip_degrees <= 90:
            raise CaseError(
                f"expected the flip angle to be from {LEAST_FLIP_DEGREES:g} to 90 degrees, but it "
                f"is {self.flip_degrees:g}; enter it in degrees (radians times 57.3)"
            )
        if not 0.5 <= self.relaxivity <= 50:
            raise CaseError(
                "expected the relaxivity r1 to be from 0.5 to 50 per second and mM, but it is "
                f"{self.relaxivity:g}; enter it in 1/(s mM), such as 4.5"
            )


def require_dynamic_flip(flip_degrees: float) -> None:
    """Raise an error if a dynamic series has an implausible flip angle, such as one in radians.

    Raises
    ------
    CaseError
        If the angle is below 2 degrees.
    """
    if flip_degrees < LEAST_DYNAMIC_DEGREES:
        raise CaseError(
            f"expected the flip angle to be from {LEAST_DYNAMIC_DEGREES:g} to 90 degrees, but it "
            f"is {flip_degrees:g}; enter it in degrees (radians times 57.3)"
        )


def require_t1(t1_s: float) -> float:
    """Check the range of a T1 value entered by the user, and return the value.

    Raises
    ------
    CaseError
        If the value is not a T1 in seconds.
    """
    if not LEAST_T1_S <= t1_s <= MOST_T1_S:
        raise CaseError(
            f"expected T1 to be from {LEAST_T1_S:g} to {MOST_T1_S:g} s, but it is {t1_s:g}; enter "
            "it in seconds"
        )
    return t1_s


def spoiled_signal(
    t1_s: NDArray[Any] | float, echo: SpoiledEcho, full: NDArray[Any] | float = 1.0
) -> NDArray[np.float64]:
    """Return the signal for a T1, in the same unit as the fully relaxed signal `full`.

    Parameters
    ----------
    t1_s
        T1, s.
    echo
        Repetition time, flip angle and relaxivity.
    full
        Signal at full relaxation.

    Source: Ernst's formula S = S0 sin a (1 - E) / (1 - E cos a), E = exp(-TR / T1); OSIPI CAPLEX
    M.SM2.002.

    Examples
    --------
    >>> round(float(spoiled_signal(1.0, SpoiledEcho(0.005, 30.0), 10000.0)), 1)
    180.3
    """
    angle = math.radians(echo.flip_degrees)
    relaxed = np.exp(-echo.repetition_s / np.asarray(t1_s, np.float64))
    share = math.sin(angle) * (1 - relaxed) / (1 - relaxed * math.cos(angle))
    signal: NDArray[np.float64] = np.asarray(full) * share
    return signal


def concentration_mm(
    signal: NDArray[Any],
    baseline: NDArray[Any],
    t10_s: NDArray[Any] | float,
    echo: SpoiledEcho,
) -> NDArray[Any]:
    """Convert signal to the concentration of contrast agent in mM.

    Parameters
    ----------
    signal
        ``(phase, ...)``. The computation is in float32 for float32 signals, otherwise in float64.
    baseline
        Mean signal before contrast, ``(...)``.
    t10_s
        T1 before contrast, either for every voxel or as one value for all voxels.
    echo
        Repetition time, flip angle and relaxivity.

    Returns
    -------
    numpy.ndarray
        Concentrations in the shape of `signal`. They are NaN where the signal is not positive or
        reaches saturation, where the baseline is not positive, or where T1 is not within 0.05 to 6
        s. Noise can make them negative.

    Source: OSIPI CAPLEX P.SC2.002, P.EC1.001, M.EL1.003: S0 of the baseline, then R1(t), then (R1 -
    1/T10) / r1. The quotient in the logarithm for R1 is written as 1 - S (1 - cos a) / (S0 sin a -
    S cos a), which loses no digits.

    Examples
    --------
    >>> echo = SpoiledEcho(0.0045, 10.0)
    >>> concentration_mm(np.array([[150.0]]), np.array([100.0]), 1.4, echo).round(4)
    array([[0.1073]])
    """
    number: type[Any] = np.float32 if signal.dtype == np.float32 else np.float64
    angle = math.radians(echo.flip_degrees)
    t10 = np.asarray(t10_s, np.float64)
    sound = (t10 >= LEAST_T1_S) & (t10 <= MOST_T1_S) & (baseline > 0) & np.isfinite(baseline)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        relaxed = np.exp(-echo.repetition_s / t10)
        highest = np.asarray(baseline) * (1 - relaxed * math.cos(angle)) / (1 - relaxed)
        top = np.where(sound, highest, np.nan).astype(number)
        under = top - signal.astype(number, copy=False) * number(math.cos(angle))
        share = signal * number(1 - math.cos(angle)) / under
        share = np.where((signal > 0) & (signal < top), share, number(np.nan))
        rate = np.log1p(-share)
        rate *= number(-1 / (echo.repetition_s * echo.relaxivity))
        rate -= (1 / (t10 * echo.relaxivity)).astype(number)
    concentration: NDArray[Any] = rate
    return concentration
