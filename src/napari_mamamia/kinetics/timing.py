"""Which phases count as early and late: chosen by acquisition time, never silently by position."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from napari_mamamia.core.errors import CaseError

__all__ = [
    "EARLY_NOMINAL_S",
    "INITIAL_WINDOW_S",
    "LATE_NOMINAL_S",
    "WASHOUT_FROM_S",
    "PhaseChoice",
    "TimingBasis",
    "choose_curve_phases",
    "choose_phases",
    "known_times",
]

EARLY_NOMINAL_S: Final = 150.0
"""Nominal time of the early phase. Source: I-SPY 1 TCIA dictionary ("2'30''") and the defaults of
the UCSF FTV extension."""

LATE_NOMINAL_S: Final = 450.0
"""Nominal time of the late phase. Source: as `EARLY_NOMINAL_S` ("7'30''")."""

INITIAL_WINDOW_S: Final = (90.0, 120.0)
"""The initial phase of a BI-RADS style curve lies nearest to this window: "the first 2 minutes"."""

WASHOUT_FROM_S: Final = 270.0
"""A delayed phase shows washout from 4.5 minutes on. Source: Partridge 2014, who found that moving
it from 4.5 to 7.5 minutes raises the share of washout in cancers by 9.4 points."""


class TimingBasis(StrEnum):
    """What a choice of phases rests on; the text is shown to the user."""

    TIMES = "by acquisition time"
    PHASE_ORDER = "by phase order, times unknown"


@dataclass(frozen=True, slots=True)
class PhaseChoice:
    """The early and the late phase of a case, and how far they lie from their nominal times.

    Phase 0 is always the pre-contrast one. `late` is None where it is undefined; `reason` then says
    why, and it also says why times could not be used. `early_s` and `late_s` are seconds since
    the start of phase 0, the gaps are chosen minus nominal time in seconds; they are None where the
    phase is, and under `TimingBasis.PHASE_ORDER`.
    """

    early: int
    late: int | None
    basis: TimingBasis
    early_s: float | None = None
    late_s: float | None = None
    early_gap_s: float | None = None
    late_gap_s: float | None = None
    reason: str = ""


def known_times(times_s: Sequence[float | None]) -> tuple[tuple[float, ...] | None, str]:
    """Return seconds since the start of phase 0, or None and the reason why they cannot be used.

    Times must be there for every phase, finite, and rise from phase to phase. Times that do not
    start at 0 are counted from the first.
    """
    numbers = [float(t) for t in times_s if t is not None]
    if not numbers:
        return None, "no acquisition times are known"
    if len(numbers) < len(times_s):
        missing = [str(k) for k, t in enumerate(times_s) if t is None]
        return None, f"the acquisition time of phase {', '.join(missing)} is missing"
    if not all(math.isfinite(t) for t in numbers):
        return None, "an acquisition time is not a finite number"
    if any(b <= a for a, b in itertools.pairwise(numbers)):
        listed = ", ".join(f"{t:g}" for t in numbers)
        return None, f"the acquisition times do not rise from phase to phase ({listed} s)"
    return tuple(t - numbers[0] for t in numbers), ""


def choose_phases(
    times_s: Sequence[float | None],
    early_nominal_s: float = EARLY_NOMINAL_S,
    late_nominal_s: float = LATE_NOMINAL_S,
) -> PhaseChoice:
    """Return the phases nearest to the early and late nominal times, for PE and SER.

    Only post-contrast phases are looked at: in the MAMA-MIA clinical table the phase nearest to
    150 s is phase 0 itself in 274 of 1,473 cases. Late is nearest to its nominal time among the
    phases after early. Of two equally near phases the earlier one is taken.

    Parameters
    ----------
    times_s
        One time for each phase, seconds since the start of phase 0; None where unknown.
    early_nominal_s, late_nominal_s
        Where the two phases should lie, in seconds.

    Returns
    -------
    PhaseChoice
        Without usable times: the first post-contrast phase as early and the last as late. Late is
        None where there is only one phase after phase 0, or none after early.

    Raises
    ------
    CaseError
        If there are fewer than two phases.

    Examples
    --------
    >>> choice = choose_phases((0.0, 165.0, 288.0, 411.0))
    >>> choice.early, choice.late, choice.late_gap_s
    (1, 3, -39.0)
    >>> choose_phases((None, None, None)).basis.value
    'by phase order, times unknown'
    """
    _require_post_contrast(len(times_s))
    times, why = known_times(times_s)
    if times is None:
        return _by_order(len(times_s), why)
    early = min(range(1, len(times)), key=lambda k: abs(times[k] - early_nominal_s))
    later = range(early + 1, len(times))
    late = min(later, key=lambda k: abs(times[k] - late_nominal_s)) if later else None
    reason = "" if late is not None else f"there is no phase after the early one (phase {early})"
    return _by_time(times, early, late, (early_nominal_s, late_nominal_s), reason)


def choose_curve_phases(times_s: Sequence[float | None]) -> PhaseChoice:
    """Return the initial and the delayed phase of a BI-RADS style curve.

    Initial is the post-contrast phase nearest to the window of 90 to 120 s (`early` of the result,
    its gap is to the nearer edge, 0 inside). Delayed is the last phase, provided it lies after the
    initial one and at 4.5 minutes or later (`late`; its gap is to 270 s).

    Raises
    ------
    CaseError
        If there are fewer than two phases.

    Examples
    --------
    >>> choose_curve_phases((0.0, 82.0, 148.0, 230.0, 312.0, 394.0)).late
    5
    >>> choose_curve_phases((0.0, 60.0, 120.0, 180.0)).reason
    'the last phase is at 180 s, a delayed phase needs 270 s or later'
    """
    _require_post_contrast(len(times_s))
    times, why = known_times(times_s)
    if times is None:
        return _by_order(len(times_s), why)
    nominal = [min(max(t, INITIAL_WINDOW_S[0]), INITIAL_WINDOW_S[1]) for t in times]
    initial = min(range(1, len(times)), key=lambda k: abs(times[k] - nominal[k]))
    last = len(times) - 1
    delayed, reason = None, ""
    if times[last] < WASHOUT_FROM_S:
        reason = (
            f"the last phase is at {times[last]:.0f} s, a delayed phase needs "
            f"{WASHOUT_FROM_S:.0f} s or later"
        )
    elif last == initial:
        reason = f"there is no phase after the initial one (phase {initial})"
    else:
        delayed = last
    return _by_time(times, initial, delayed, (nominal[initial], WASHOUT_FROM_S), reason)


def _by_time(
    times: tuple[float, ...],
    early: int,
    late: int | None,
    nominal: tuple[float, float],
    reason: str,
) -> PhaseChoice:
    return PhaseChoice(
        early=early,
        late=late,
        basis=TimingBasis.TIMES,
        early_s=times[early],
        late_s=None if late is None else times[late],
        early_gap_s=times[early] - nominal[0],
        late_gap_s=None if late is None else times[late] - nominal[1],
        reason=reason,
    )


def _by_order(n_phases: int, why: str) -> PhaseChoice:
    if n_phases > 2:
        return PhaseChoice(1, n_phases - 1, TimingBasis.PHASE_ORDER, reason=why)
    reason = f"{why}; there is no phase after the early one (phase 1)"
    return PhaseChoice(1, None, TimingBasis.PHASE_ORDER, reason=reason)


def _require_post_contrast(n_phases: int) -> None:
    if n_phases < 2:
        raise CaseError(
            f"kinetics needs phase 0 and at least one post-contrast phase, got {n_phases} phase(s):"
            " add the missing phases"
        )
