"""Classes of a contrast curve in the style of BI-RADS: initial rise and delayed course."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray


class InitialRise(IntEnum):
    """Class of the initial rise; the number is the label value in a map."""

    UNDEFINED = 0
    SLOW = 1
    MEDIUM = 2
    FAST = 3


class DelayedCourse(IntEnum):
    """Class of the delayed course (curve types I, II and III); the number is the label value."""

    UNDEFINED = 0
    PERSISTENT = 1
    PLATEAU = 2
    WASHOUT = 3


@dataclass(frozen=True, slots=True)
class CurveThresholds:
    """Thresholds of the classes, in percent.

    `medium` and `fast`: from `medium` on the initial PE is medium, above `fast` it is fast (usual
    BI-RADS and CAD convention: slow below 50, fast above 100). `change`: a later change of at most
    this much in either direction is a plateau (Partridge 2014, figure 2: 10).
    """

    medium: float = 50.0
    fast: float = 100.0
    change: float = 10.0

    def __post_init__(self) -> None:
        if not 0 <= self.medium <= self.fast or self.change < 0:
            raise ValueError(
                f"expected thresholds with 0 <= medium <= fast and change >= 0, but got {self}"
            )


def initial_rise(
    enhancement: NDArray[Any], thresholds: CurveThresholds | None = None
) -> NDArray[np.uint8]:
    """Return the `InitialRise` of each PE at the initial phase, as uint8 of the same shape.

    Slow below 50 %, medium from 50 to 100 %, fast above 100 % (defaults); NaN is undefined.

    Parameters
    ----------
    enhancement
        PE at the initial phase, in percent.
    thresholds
        Thresholds of the classes; None for the defaults.

    Examples
    --------
    >>> initial_rise(np.array([np.nan, 49.0, 50.0, 100.0, 101.0]))
    array([0, 1, 2, 2, 3], dtype=uint8)
    """
    limits = thresholds or CurveThresholds()
    out = np.full(enhancement.shape, InitialRise.SLOW, dtype=np.uint8)
    out[enhancement >= limits.medium] = InitialRise.MEDIUM
    out[enhancement > limits.fast] = InitialRise.FAST
    out[np.isnan(enhancement)] = InitialRise.UNDEFINED
    return out


def delayed_change(
    initial: NDArray[Any], late: NDArray[Any], *, eps: float = 0.0
) -> NDArray[np.float32]:
    """Return the delayed change d = 100 (S_late - S_initial) / S_initial in percent, float32.

    NaN where S_initial <= eps or a value is not finite. Source: Partridge et al. 2014, figure 2.

    Parameters
    ----------
    initial, late
        Signals of the initial and the delayed phase, of one shape.
    eps
        Values of S_initial up to eps are undefined, in the signal's unit.
    """
    start, end = initial.astype(np.float32), late.astype(np.float32)
    out = np.full_like(start, np.nan)
    with np.errstate(invalid="ignore", over="ignore"):
        np.divide(end - start, start, out=out, where=start > eps)
        out *= np.float32(100.0)
    out[~np.isfinite(out)] = np.nan
    return out


def delayed_course(
    change: NDArray[Any], thresholds: CurveThresholds | None = None
) -> NDArray[np.uint8]:
    """Return the `DelayedCourse` of each `delayed_change`, as uint8 of the same shape.

    Persistent above +10 %, washout below -10 %, plateau between, limits included (defaults); NaN is
    undefined. Voxels without enhancement also get a course; it is meaningful only where the initial
    rise is medium or fast.

    Parameters
    ----------
    change
        Result of `delayed_change`, in percent.
    thresholds
        Thresholds of the classes; None for the defaults.

    Examples
    --------
    >>> delayed_course(np.array([np.nan, 10.5, 10.0, -10.0, -10.5]))
    array([0, 1, 2, 2, 3], dtype=uint8)
    """
    limits = thresholds or CurveThresholds()
    out = np.full(change.shape, DelayedCourse.PLATEAU, dtype=np.uint8)
    out[change > limits.change] = DelayedCourse.PERSISTENT
    out[change < -limits.change] = DelayedCourse.WASHOUT
    out[np.isnan(change)] = DelayedCourse.UNDEFINED
    return out
