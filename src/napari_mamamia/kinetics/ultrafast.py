"""Ultrafast measures: maximum slope, arrival, time to enhancement, and PE at a chosen time.

They need closely spaced phases (TWIST, DISCO and similar sequences). For standard exams, with
phases 60 to 120 s apart, the measures are undefined. View sharing blurs time, and the phase spacing
is nominal.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.names import count_of
from napari_mamamia.kinetics.map_formulas import Formula
from napari_mamamia.kinetics.time_axis import known_times

MOST_GAP_S: Final = 10.0
"""Longest interval in s at the steepest rise for which arrival can be measured."""

PE_AT_S: Final = 20.0
"""Default time at which PE is measured, in s; it covers first pass and recirculation. Our choice.
"""

_ROUNDS: Final = 4
_NOISE_SD: Final = 3.0

Values = NDArray[np.float32]


class UltrafastMeasure(StrEnum):
    """The ultrafast measure that a map displays."""

    MAXIMUM_SLOPE = "maximum slope"
    ARRIVAL = "bolus arrival"
    TIME_TO_ENHANCEMENT = "time to enhancement"
    ENHANCEMENT_AT = "PE at a stated time"


@dataclass(frozen=True, slots=True, eq=False)
class Rise:
    """The steepest rise of each voxel, as arrays ``(...)``; NaN if the signal does not rise.

    Parameters
    ----------
    slope
        The slope between two phases in the signal's unit per second.
    baseline
        The mean signal of the phases before arrival.
    arrival_s
        The time at which the tangent of the rise meets the baseline.
    gap_s
        The time in s between the two phases, or between the phases around the arrival if these are
        farther apart, because a rise that begins in a long gap was not observed.
    phase
        The first of the two phases.
    """

    slope: Values
    baseline: Values
    arrival_s: Values
    gap_s: Values
    phase: NDArray[np.int16]


@dataclass(frozen=True, slots=True)
class UltrafastNumbers:
    """The ultrafast measures of one curve; undefined values are NaN, with a reason.

    `slope_percent_per_s` is the two-point maximum slope of PE. `arrival_s` is relative to the start
    of phase 0, and `time_to_enhancement_s` is relative to the arrival in the vessel.
    `pe_at_percent` is the PE at the given time after arrival in the vessel (`counted_from` is
    "vessel") or in the lesion ("lesion").
    """

    spacing_s: float = math.nan
    slope_percent_per_s: float = math.nan
    arrival_s: float = math.nan
    time_to_enhancement_s: float = math.nan
    pe_at_percent: float = math.nan
    counted_from: str = ""
    reason: str = ""


def ultrafast_times(times_s: Sequence[float | None]) -> tuple[float, ...]:
    """Return the times of the phases in s; raise `CaseError` if no two phases are close enough.

    Raises
    ------
    CaseError
        If times are unknown, or no two phases after phase 0 are within 10 s.
    """
    times, why = known_times(times_s)
    if times is None:
        raise CaseError(
            f"ultrafast measures need the time of every phase, but {why}; enter the times"
        )
    least = min((late - early for early, late in pairwise(times[1:])), default=math.inf)
    if least > MOST_GAP_S:
        spacing = f"{least:g} s" if math.isfinite(least) else count_of(len(times), "phase")
        raise CaseError(
            f"expected phases to be at most {MOST_GAP_S:g} s apart for ultrafast measures, but "
            f"got {spacing}; choose a different measure"
        )
    return times


def steepest_rise(times: Sequence[float], signal: NDArray[Any]) -> Rise:
    """Return the steepest rise between two phases in ``(phase, ...)``, and its start.

    The baseline is initially phase 0. It is replaced four times by the mean of all phases up to the
    resulting arrival, which excludes rising phases.

    Parameters
    ----------
    times
        The time of each phase in s.
    signal
        The signal ``(phase, ...)`` in any real data type.
    """
    slope = np.full(signal.shape[1:], -np.inf, np.float32)
    phase = np.zeros(signal.shape[1:], np.int16)
    before = signal[0].astype(np.float32)
    start = before.copy()
    for k, (early, late) in enumerate(pairwise(times)):
        after = signal[k + 1].astype(np.float32)
        step_slope = (after - before) * np.float32(1 / (late - early))
        steeper = step_slope > slope
        slope = np.where(steeper, step_slope, slope)
        start = np.where(steeper, before, start)
        phase = np.where(steeper, np.int16(k), phase)
        before = after
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        slope = np.where(slope > 0, slope, np.float32(np.nan))
        baseline, arrival = _find_foot(times, signal, slope, start, phase)
    gaps = np.array([late - early for early, late in pairwise(times)] or [np.nan], np.float32)
    index = np.searchsorted(np.asarray(times, np.float32), arrival, side="right") - 1
    # An arrival of NaN is sorted after the last phase, and an arrival before phase 0 at -1.
    around = gaps[np.clip(index, 0, phase)]
    return Rise(slope, baseline, arrival, np.maximum(gaps[phase], around), phase)


def _find_foot(
    times: Sequence[float], signal: NDArray[Any], slope: Values, start: Values, phase: NDArray[Any]
) -> tuple[Values, Values]:
    """Return the baseline and the arrival, which depend on each other."""
    sums = np.cumsum(signal, axis=0, dtype=np.float32)
    clock = np.asarray(times, np.float32)
    baseline = sums[0]
    arrival = clock[phase]
    for _ in range(_ROUNDS):
        arrival = clock[phase] - (start - baseline) / slope
        last = np.searchsorted(clock, arrival, side="right") - 1
        last = np.clip(last, 0, phase)
        total = np.take_along_axis(sums, last[None].astype(np.intp), axis=0)[0]
        baseline = total / (last + 1).astype(np.float32)
    arrival = clock[phase] - (start - baseline) / slope
    return baseline, arrival.astype(np.float32)


def ultrafast_formula(
    measure: UltrafastMeasure,
    times: tuple[float, ...],
    *,
    counted_from_s: float | None = None,
    at_s: float = PE_AT_S,
) -> Formula:
    """Return the formula of an ultrafast map.

    The map is undefined if the signal does not rise, the baseline is not positive, the rise begins
    with phase 0, or the rise begins or is steepest between phases more than 10 s apart.

    Parameters
    ----------
    counted_from_s
        The arrival time in the vessel on the time axis of `times`, which TIME_TO_ENHANCEMENT
        requires. ENHANCEMENT_AT measures `at_s` from this time, or from each voxel's own arrival if
        it is None.
    """

    def fill(block: NDArray[Any], out: NDArray[Any]) -> None:
        rise = steepest_rise(times, block)
        sound = (rise.gap_s <= MOST_GAP_S) & (rise.phase > 0) & (rise.baseline > 0)
        if measure is UltrafastMeasure.MAXIMUM_SLOPE:
            values = 100 * rise.slope / rise.baseline
        elif measure is UltrafastMeasure.ARRIVAL:
            values = rise.arrival_s
        elif measure is UltrafastMeasure.TIME_TO_ENHANCEMENT:
            values = rise.arrival_s - np.float32(counted_from_s or 0.0)
        else:
            zero = rise.arrival_s if counted_from_s is None else np.float32(counted_from_s)
            moment = np.broadcast_to(zero + np.float32(at_s), rise.arrival_s.shape)
            values = 100 * (_value_at(times, block, moment) - rise.baseline) / rise.baseline
        out[...] = np.where(sound & np.isfinite(values), values, np.float32(np.nan))

    return fill


def _value_at(times: Sequence[float], signal: NDArray[Any], moment: Values) -> Values:
    """Return the signal interpolated at a time; NaN outside the phases and in long gaps."""
    clock = np.asarray(times, np.float32)
    early = np.clip(np.searchsorted(clock, moment, side="right") - 1, 0, len(clock) - 2)
    pair = np.stack([early, early + 1]).astype(np.intp)
    low, high = np.take_along_axis(signal, pair, axis=0).astype(np.float32)
    gap = clock[early + 1] - clock[early]
    share = (moment - clock[early]) / gap
    is_between = (share >= 0) & (share <= 1) & (gap <= MOST_GAP_S)
    value: Values = np.where(is_between, low + share * (high - low), np.float32(np.nan))
    return value


def ultrafast_numbers(
    times_s: Sequence[float | None],
    curve: Sequence[float],
    *,
    vessel_arrival_s: float | None = None,
    at_s: float = PE_AT_S,
) -> UltrafastNumbers:
    """Return the ultrafast measures of a region's mean curve.

    Parameters
    ----------
    times_s
        The time of each phase in s after the start of phase 0; None if unknown.
    curve
        The mean signal of each phase in the signal's unit.
    vessel_arrival_s
        The arrival time in the vessel in s after the start of phase 0, or None.
    at_s
        The time after arrival at which PE is measured, in s.

    Source: maximum slope of the relative enhancement, Mann 2012 (abstract, ECR); arrival relative
    to the aorta, Onishi 2020 (PMC7254650). The forms (two points; tangent; linear between phases)
    are our choice; see docs/methods/ultrafast.md.

    Examples
    --------
    >>> times = [3.5 * k for k in range(12)]
    >>> curve = [100 + 180 * max(0, 1 - math.exp(-(t - 21) / 12)) for t in times]
    >>> numbers = ultrafast_numbers(times, curve, vessel_arrival_s=14.0)
    >>> round(numbers.slope_percent_per_s, 3), numbers.arrival_s, numbers.time_to_enhancement_s
    (13.011, 21.0, 7.0)
    """
    try:
        times = ultrafast_times(times_s)
    except CaseError as error:
        return UltrafastNumbers(reason=str(error))
    signal = np.asarray(curve, np.float64)[:, None]
    rise = steepest_rise(times, signal)
    spacing = float(rise.gap_s[0])
    why = _why_undefined(signal[:, 0], rise)
    if why:
        return UltrafastNumbers(spacing, reason=why)
    arrival, baseline = float(rise.arrival_s[0]), float(rise.baseline[0])
    has_vessel = vessel_arrival_s is not None
    zero = arrival if vessel_arrival_s is None else vessel_arrival_s
    value = float(_value_at(times, signal, np.array([zero + at_s], np.float32))[0])
    late = math.isnan(value)
    return UltrafastNumbers(
        spacing,
        100 * float(rise.slope[0]) / baseline,
        arrival,
        arrival - zero if has_vessel else math.nan,
        100 * (value - baseline) / baseline,
        "vessel" if has_vessel else "lesion",
        (
            f"PE is undefined, because there are no phases within {MOST_GAP_S:g} s around "
            f"{zero + at_s:.1f} s"
        )
        if late
        else "",
    )


def _why_undefined(curve: NDArray[np.float64], rise: Rise) -> str:
    baseline, phase, gap = float(rise.baseline[0]), int(rise.phase[0]), float(rise.gap_s[0])
    if not np.isfinite(curve).all() or not baseline > 0:
        return "the signal before contrast is not positive, or a phase is not a number"
    if math.isnan(float(rise.slope[0])):
        return "the mean curve does not rise"
    if gap > MOST_GAP_S:
        return (
            f"phases are {gap:g} s apart where the curve begins to rise or rises most (phase "
            f"{phase} to {phase + 1}), which is more than {MOST_GAP_S:g} s"
        )
    if phase < 1:
        return "the curve rises most from phase 0 on, so there is no phase before arrival"
    before = curve[:phase]
    if curve.max() - baseline <= _NOISE_SD * float(before.std()):
        return "the curve rises by less than three times the noise before contrast"
    return ""
