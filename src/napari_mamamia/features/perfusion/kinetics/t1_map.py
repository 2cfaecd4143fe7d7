"""Compute T1 from spoiled gradient-echo volumes with several flip angles."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import CaseError
from napari_mamamia.features.perfusion.kinetics.spoiled_echo import (
    LEAST_DYNAMIC_DEGREES,
    SpoiledEcho,
)

B1_NOTE: Final = (
    "T1 of flip angles without a B1 map: if the true angles are 10 % above the nominal ones, T1 "
    "1.40 s becomes 1.70 s; if 10 % below, 1.13 s"
)


def require_flip_angles(
    flips_degrees: Sequence[float], n_volumes: int, repetition_s: float
) -> None:
    """Raise an error if the flip angles do not determine T1.

    Parameters
    ----------
    flips_degrees
        Flip angle of each volume, in degrees.
    n_volumes
        Number of volumes.
    repetition_s
        Repetition time, s.

    Raises
    ------
    CaseError
        If the numbers of angles and volumes differ, fewer than two angles are different, or an
        angle or TR is in a different unit.
    """
    if len(flips_degrees) != n_volumes or len(set(flips_degrees)) < 2:
        listed = ", ".join(f"{angle:g}" for angle in flips_degrees)
        raise CaseError(
            f"expected at least two different flip angles, one for each of {n_volumes} volumes, "
            f"but got {listed or 'none'}; enter the angle of every volume in order"
        )
    for flip in flips_degrees:
        SpoiledEcho(repetition_s, float(flip))
    if max(flips_degrees) < LEAST_DYNAMIC_DEGREES:
        listed = ", ".join(f"{angle:g}" for angle in flips_degrees)
        raise CaseError(
            "expected the flip angles to be in degrees and the largest to be at least "
            f"{LEAST_DYNAMIC_DEGREES:g}, but they are {listed}, which look like radians; enter "
            "degrees (radians times 57.3)"
        )


def t1_of_flip_angles(
    signals: NDArray[Any], flips_degrees: Sequence[float], repetition_s: float
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Compute T1 in s, and the fully relaxed signal, in every voxel.

    Parameters
    ----------
    signals
        Signals of any real type, ``(flip, ...)``: one volume for each angle, with the same TR, TE
        and gains.
    flips_degrees
        Nominal flip angles, at least two of which differ; see `B1_NOTE`.
    repetition_s
        Repetition time, s.

    Returns
    -------
    tuple
        Two float32 arrays ``(...)``; NaN where a signal is not positive or the fitted line has no
        T1 (its slope is not between 0 and 1).

    Raises
    ------
    CaseError
        See `require_flip_angles`.

    Source: linear form of the Ernst formula, S / sin a over S / tan a with slope E = exp(-TR / T1)
    and intercept S0 (1 - E), Gupta 1977 (J Magn Reson 25:231), OSIPI CAPLEX M.SM2.002.

    Examples
    --------
    >>> signals = np.array([[1889], [2054], [1747], [1219], [797], [551]])
    >>> t1, full = t1_of_flip_angles(signals, (3, 6, 9, 15, 24, 35), 0.005)
    >>> t1.round(4)
    array([1.4198], dtype=float32)
    """
    angles = np.radians(np.asarray(flips_degrees, np.float64))
    require_flip_angles(flips_degrees, len(signals), repetition_s)
    n = len(angles)
    sum_x, sum_y, sum_xx, sum_xy = (np.zeros(signals.shape[1:], np.float64) for _ in range(4))
    sound = np.ones(signals.shape[1:], np.bool_)
    for signal, angle in zip(signals, angles, strict=True):
        sound &= signal > 0
        x, y = signal / np.tan(angle), signal / np.sin(angle)
        sum_x += x
        sum_y += y
        sum_xx += x * x
        sum_xy += x * y
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = (n * sum_xy - sum_x * sum_y) / (n * sum_xx - sum_x * sum_x)
        slope = np.where(sound & (slope > 0) & (slope < 1), slope, np.nan)
        full = (sum_y - slope * sum_x) / n / (1 - slope)
        t1 = -repetition_s / np.log(slope)
    return t1.astype(np.float32), full.astype(np.float32)
