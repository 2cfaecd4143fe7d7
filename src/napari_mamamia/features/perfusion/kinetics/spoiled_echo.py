"""Spoiled gradient echo: from T1 to signal, and from signal to concentration."""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import CaseError

LEAST_T1_S: Final = 0.05
MOST_T1_S: Final = 6.0
"""T1 of fat is 0.3 s, of water 4 s: values beyond these limits have another unit. Our choice."""

LEAST_FLIP_DEGREES: Final = 1.0
LEAST_DYNAMIC_DEGREES: Final = 2.0
"""The largest angle in radians is pi / 2: a value below 2 may be in radians.

Angles of a T1 map start at 1 degree, and one of them is larger; a dynamic series below 2 degrees
shows no T1. Our choice.
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
        r1 of the agent at this field, in 1/(s mM), 0.5 to 50.

    Raises
    ------
    CaseError
        If a value is out of range, for instance because of another unit.
    """

    repetition_s: float
    flip_degrees: float
    relaxivity: float = 4.5

    def __post_init__(self) -> None:
        if not 0.001 <= self.repetition_s <= 0.1:
            raise CaseError(
                f"expected a repetition time of 1 to 100 ms, but got {1e3 * self.repetition_s:g} "
                "ms; give it in milliseconds"
            )
        if not LEAST_FLIP_DEGREES <= self.flip_degrees <= 90:
            raise CaseError(
                f"expected a flip angle of {LEAST_FLIP_DEGREES:g} to 90 degrees, but got "
                f"{self.flip_degrees:g}; give it in degrees (radians times 57.3)"
            )
        if not 0.5 <= self.relaxivity <= 50:
            raise CaseError(
                "expected a relaxivity r1 of 0.5 to 50 per second and mM, but got "
                f"{self.relaxivity:g}; give it in 1/(s mM), such as 4.5"
            )


def require_dynamic_flip(flip_degrees: float) -> None:
    """Refuse an implausible flip angle of a dynamic series, such as an angle in radians.

    Raises
    ------
    CaseError
        If the angle is below 2 degrees.
    """
    if flip_degrees < LEAST_DYNAMIC_DEGREES:
        raise CaseError(
            f"expected a flip angle of {LEAST_DYNAMIC_DEGREES:g} to 90 degrees, but got "
            f"{flip_degrees:g}; give it in degrees (radians times 57.3)"
        )


def require_t1(t1_s: float) -> float:
    """Return a T1 entered by the user, after a check of its range.

    Raises
    ------
    CaseError
        If the value is not a T1 in seconds.
    """
    if not LEAST_T1_S <= t1_s <= MOST_T1_S:
        raise CaseError(
            f"expected a T1 of {LEAST_T1_S:g} to {MOST_T1_S:g} s, but got {t1_s:g}; give it in "
            "seconds"
        )
    return t1_s


def spoiled_signal(
    t1_s: NDArray[Any] | float, echo: SpoiledEcho, full: NDArray[Any] | float = 1.0
) -> NDArray[np.float64]:
    """Return the signal for a T1, in the unit of `full`, the fully relaxed signal.

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
    """Return the contrast agent's concentration in mM.

    Parameters
    ----------
    signal
        ``(phase, ...)``. The computation is in float32 for float32 signals, otherwise in float64.
    baseline
        ``(...)``: the mean signal before contrast.
    t10_s
        T1 before contrast, for every voxel or one value for all.

    Returns
    -------
    numpy.ndarray
        As `signal`; NaN where the signal is not positive or at saturation or above, where the
        baseline is not positive, or where T1 is not within 0.05 to 6 s. Noise can make it negative.

    Source: OSIPI CAPLEX P.SC2.002, P.EC1.001, M.EL1.003: S0 of the baseline, then R1(t), then (R1 -
    1/T10) / r1; the quotient of R1's logarithm is written as 1 - S (1 - cos a) / (S0 sin a - S cos
    a), which loses no digits.

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
