"""Formulas of contrast maps, each computed on one block of voxels.

Each formula takes a block ``(phase, ...)`` of any real data type and writes into `out`, which is
float32 (uint8 for the curve type) with the shape of one phase. Arithmetic is float32; undefined
values are NaN (0 for the curve type).
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.kinetics.curves import CurveThresholds

Block = NDArray[np.float32]
Formula = Callable[[NDArray[Any], NDArray[Any]], None]

ANGIO_FROM_PERCENT: Final = 50.0
"""Smallest initial PE in percent of an enhancing voxel (Partridge 2014, figure 2)."""

_PERCENT: Final = np.float32(100.0)
_SECONDS_IN_MINUTE: Final = np.float32(60.0)


def difference(later: int, earlier: int) -> Formula:
    """Return a formula for the signed difference S_later - S_earlier, in the signal's unit.

    Parameters
    ----------
    later, earlier
        The indices of the two phases.
    """

    def fill(block: NDArray[Any], out: NDArray[Any]) -> None:
        _copy_values(block[later], out)
        out -= _make_float(block[earlier])

    return fill


def percent(phase: int, eps: float) -> Formula:
    """Return a formula for 100 (S - S0) / S0 in percent, undefined if S0 <= eps.

    Parameters
    ----------
    phase
        The index of the post-contrast phase.
    eps
        The result is undefined if S0 is at most this value, in the signal's unit.
    """

    def fill(block: NDArray[Any], out: NDArray[Any]) -> None:
        _copy_values(block[phase], out)
        _relate_to_baseline(out, _make_baseline(block, eps))
        _blank_overflow(out, block)

    return fill


def ratio(early: int, late: int, eps: float) -> Formula:
    """Return a formula for (S_early - S0) / (S_late - S0), undefined if S0 or S_late - S0 <= eps.

    Parameters
    ----------
    early, late
        The indices of the two phases.
    eps
        The result is undefined if S0 or the late rise is at most this value.
    """

    def fill(block: NDArray[Any], out: NDArray[Any]) -> None:
        pre = _make_baseline(block, eps)
        fall = _make_float(block[late])
        fall -= pre
        _keep_voxels(fall, fall > eps)
        _copy_values(block[early], out)
        out -= pre
        out /= fall
        _blank_overflow(out, block)

    return fill


def peak(eps: float) -> Formula:
    """Return a formula for the largest PE over the post-contrast phases, in percent."""

    def fill(block: NDArray[Any], out: NDArray[Any]) -> None:
        np.copyto(out, _find_highest(block), casting="unsafe")
        _relate_to_baseline(out, _make_baseline(block, eps))
        _blank_overflow(out, block)

    return fill


def wash_in_slope(times_s: tuple[float, ...], eps: float) -> Formula:
    """Return a formula for PE_max / t_max in % per second; t_max is the time of the first maximum.

    Parameters
    ----------
    times_s
        The time of each phase in s.
    eps
        The result is undefined if S0 is at most this value, in the signal's unit.
    """
    per_second = [np.float32(0.0), *(np.float32(1.0 / t) for t in times_s[1:])]

    def fill(block: NDArray[Any], out: NDArray[Any]) -> None:
        highest, factor = _highest_and(block, per_second)
        np.copyto(out, highest, casting="unsafe")
        _relate_to_baseline(out, _make_baseline(block, eps))
        out *= factor
        _blank_overflow(out, block)

    return fill


def wash_out_slope(times_s: tuple[float, ...], eps: float) -> Formula:
    """Return a formula for (PE_max - PE_last) / (t_max - t_last) in % per minute, at most 0.

    The slope is undefined if the last phase is the largest, because the peak may be later.

    Parameters
    ----------
    times_s
        The time of each phase in s.
    eps
        The result is undefined if S0 is at most this value, in the signal's unit.
    """
    last = len(times_s) - 1
    factors = [
        _SECONDS_IN_MINUTE / np.float32(t - times_s[last]) if k < last else np.float32(np.nan)
        for k, t in enumerate(times_s)
    ]

    def fill(block: NDArray[Any], out: NDArray[Any]) -> None:
        highest, factor = _highest_and(block, factors)
        np.copyto(out, highest, casting="unsafe")
        out -= _make_float(block[last])
        out /= _make_baseline(block, eps)
        out *= _PERCENT
        out *= factor
        _blank_overflow(out, block)

    return fill


def curve_type(initial: int, delayed: int, limits: CurveThresholds, eps: float) -> Formula:
    """Return a formula for the curve type (`DelayedCourse`), 0 if the initial PE is below 50 %.

    Parameters
    ----------
    initial, delayed
        The indices of the two phases.
    limits
        The thresholds of the classes.
    eps
        The result is undefined if S0 is at most this value, in the signal's unit.
    """

    def fill(block: NDArray[Any], out: NDArray[Any]) -> None:
        rise, start = _make_float(block[initial]), _make_float(block[initial])
        _relate_to_baseline(rise, _make_baseline(block, eps))
        change = _make_float(block[delayed])
        np.putmask(start, start <= eps, np.nan)
        _relate_to_baseline(change, start)
        out[...] = 2
        # Arithmetic on all voxels is used, because assignment to selected voxels is several times
        # slower.
        out -= change > limits.change
        out += change < -limits.change
        out *= rise >= ANGIO_FROM_PERCENT
        if _may_be_undefined(block):
            out *= np.isfinite(change)

    return fill


def _may_be_undefined(block: NDArray[Any]) -> bool:
    return bool(np.issubdtype(block.dtype, np.floating))


def _copy_values(values: NDArray[Any], out: NDArray[Any]) -> None:
    """Copy values as float32, with infinite values replaced by NaN."""
    np.copyto(out, values, casting="unsafe")
    if _may_be_undefined(values):
        np.putmask(out, ~np.isfinite(out), np.nan)


def _make_float(values: NDArray[Any]) -> Block:
    out = np.empty(values.shape, np.float32)
    _copy_values(values, out)
    return out


def _make_baseline(block: NDArray[Any], eps: float) -> Block:
    """Return S0, with NaN where it is not above `eps` so that every result is NaN there."""
    pre = _make_float(block[0])
    np.putmask(pre, pre <= eps, np.nan)
    return pre


def _relate_to_baseline(out: NDArray[Any], under: Block) -> None:
    out -= under
    out /= under
    out *= _PERCENT


def _keep_voxels(values: Block, kept: NDArray[np.bool_]) -> None:
    """Set `values` to NaN outside `kept`.

    Multiplying by 0 / 0 is five times faster than a masked assignment.
    """
    factor = kept.astype(np.float32)
    factor /= factor
    values *= factor


def _blank_overflow(out: NDArray[Any], block: NDArray[Any]) -> None:
    if _may_be_undefined(block):
        np.putmask(out, ~np.isfinite(out), np.nan)


def _find_highest(block: NDArray[Any]) -> NDArray[Any]:
    """Return the largest post-contrast value; integer types are preserved."""
    later = block[1:]
    if _may_be_undefined(block):
        # The maximum propagates NaN, but would return an infinity as the highest value.
        later = np.where(np.isfinite(later), later, np.nan)
    out: NDArray[Any] = later[0].copy()
    for phase in later[1:]:
        np.maximum(out, phase, out=out)
    return out


def _highest_and(block: NDArray[Any], by_phase: list[Any]) -> tuple[NDArray[Any], Block]:
    """Return the largest post-contrast value, and the entry of `by_phase` for its first phase."""
    later = block[1:]
    if _may_be_undefined(block):
        later = np.where(np.isfinite(later), later, np.nan)
    out: NDArray[Any] = later[0].copy()
    phase_of = np.ones(out.shape, np.uint8)
    for number, phase in enumerate(later[1:], start=2):
        # Phase numbers increase, so the maximum keeps the latest phase that exceeds all earlier
        # phases.
        np.maximum(phase_of, (phase > out) * np.uint8(number), out=phase_of)
        np.maximum(out, phase, out=out)
    # All numbers are in range; "clip" only avoids a check of each number.
    return out, np.array(by_phase, np.float32).take(phase_of, mode="clip")


def where_enhancing(
    formula: Formula, initial: int, floor_percent: float, least_rise: float = 0.0
) -> Formula:
    """Return `formula`, restricted to voxels that enhance enough in the initial phase.

    The formula is undefined if the initial PE is below `floor_percent`, or S - S0 is below
    `least_rise`. Undefined values are NaN, or 0 for classes.

    Parameters
    ----------
    formula
        The formula to restrict.
    initial
        The index of the initial phase.
    floor_percent
        The smallest initial PE in percent.
    least_rise
        The smallest S - S0 in the signal's unit.
    """

    def fill(block: NDArray[Any], out: NDArray[Any]) -> None:
        formula(block, out)
        rise, pre = _make_float(block[initial]), _make_baseline(block, 0.0)
        rise -= pre
        enough = rise >= least_rise
        rise /= pre
        rise *= _PERCENT
        enough &= rise >= floor_percent
        if out.dtype == np.uint8:
            out *= enough
        else:
            _keep_voxels(out, enough)

    return fill
