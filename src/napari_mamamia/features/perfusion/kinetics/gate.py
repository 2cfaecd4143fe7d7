"""Check that an exam allows a tissue model: short intervals and a pre-contrast phase."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from napari_mamamia.core.errors import CaseError, Remedy
from napari_mamamia.kinetics.time_axis import MOST_SPACING_S, known_times

LEAST_POINTS: Final = 8
FIRST_S: Final = 120.0
"""Seconds after arrival within which 8 phases are needed.

With a spacing of 15 s, a fit with a known input is accurate to 0.2 %. At 60 s the error may be 76
%, and larger with a population curve. Source: noise-free fits of the QIBA object,
docs/methods/perfusion.md.
"""

_OTHER_ARRIVAL: Final = Remedy("arrival", ("SECONDS",))
_MEASURE_CURVE: Final = Remedy(command="kinetics")


def require_spacing(times_s: Sequence[float | None]) -> tuple[float, ...]:
    """Check that the phases are close enough, and return their times in seconds since phase 0.

    The interval between phase 0 and phase 1 may be longer if contrast arrives after it; see
    `require_points`.

    Raises
    ------
    CaseError
        If times are unknown, or phases are more than 15 s apart.
    """
    times, why = known_times(times_s)
    if times is None:
        raise CaseError(
            f"Ktrans needs the time of every phase, but {why}; enter the times, or correct the "
            "row in the clinical table that a warning names",
            remedies=(Remedy("times", ("SECONDS",)),),
        )
    if len(times) < 3:
        raise CaseError(
            f"Ktrans needs at least {LEAST_POINTS} phases, at most {MOST_SPACING_S:g} s apart, "
            f"but found {len(times)}; measure the curve instead",
            remedies=(_MEASURE_CURVE,),
        )
    gaps = [(late - early, k) for k, (early, late) in enumerate(pairwise(times[1:]), start=1)]
    longest, phase = max(gaps)
    if longest > MOST_SPACING_S:
        spacing = f"{longest:g} s from phase {phase} to {phase + 1}"
        raise CaseError(
            f"Ktrans needs phases at most {MOST_SPACING_S:g} s apart, but found {spacing}; with 60 "
            "to 90 s between phases, the bolus passes between two phases and no fit can recover "
            "it; measure the curve instead",
            remedies=(_MEASURE_CURVE,),
        )
    return times


def require_points(times: Sequence[float], arrival_s: float) -> int:
    """Check that enough phases surround the arrival, and return the number of phases before it.

    Parameters
    ----------
    times
        The time of each phase in s.
    arrival_s
        Arrival of contrast, in seconds on the clock of `times`.

    Raises
    ------
    CaseError
        If no phase is before arrival, the phases around arrival are more than 15 s apart, or fewer
        than 8 phases are in the 2 minutes after arrival.
    """
    before = sum(time <= arrival_s for time in times)
    if not before:
        raise CaseError(
            f"Ktrans needs a phase before contrast arrives, but contrast arrives at {arrival_s:g} "
            f"s and the first phase is at {times[0]:g} s; enter another arrival",
            remedies=(_OTHER_ARRIVAL,),
        )
    if before == len(times):
        raise CaseError(
            f"Ktrans needs phases after contrast arrives, but contrast arrives at {arrival_s:g} s "
            f"and the last phase is at {times[-1]:g} s; enter another arrival",
            remedies=(_OTHER_ARRIVAL,),
        )
    around = times[before] - times[before - 1]
    if around > MOST_SPACING_S:
        raise CaseError(
            f"Ktrans needs phases at most {MOST_SPACING_S:g} s apart where contrast arrives, but "
            f"found {around:g} s around {arrival_s:g} s; enter another arrival, or measure the "
            "curve instead",
            remedies=(_OTHER_ARRIVAL, _MEASURE_CURVE),
        )
    within = sum(0 < time - arrival_s <= FIRST_S for time in times)
    if within < LEAST_POINTS:
        raise CaseError(
            f"Ktrans needs at least {LEAST_POINTS} phases in the {FIRST_S:g} s after contrast "
            f"arrives, but found {within}; measure the curve instead",
            remedies=(_MEASURE_CURVE,),
        )
    return before
