"""Choose the early and late phase by acquisition time, or by position with a note."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.names import count_of
from napari_mamamia.kinetics.time_axis import (
    Timing,
    TimingRule,
    image_times,
    known_times,
    rule_of,
    temporal_resolution_s,
)

EARLY_TARGET_S: Final = 150.0
"""Target time of the early phase in s (I-SPY 1 dictionary of TCIA; UCSF FTV extension)."""

LATE_TARGET_S: Final = 450.0
"""Target time of the late phase in s (7'30''). Source: as for `EARLY_TARGET_S`."""

INITIAL_WINDOW_S: Final = (90.0, 120.0)
"""Time window in s for the initial phase of a BI-RADS style curve ("the first 2 minutes").

The initial phase is the phase nearest to this window.
"""

WASHOUT_FROM_S: Final = 270.0
"""Earliest time in s of a delayed phase that can show washout (4.5 minutes).

Source: Partridge 2014, in which moving the limit from 4.5 to 7.5 minutes raised the proportion of
cancers with washout by 9.4 percentage points.
"""


@dataclass(frozen=True, slots=True)
class PhaseChoice:
    """The early and late phase of a case, the rule, and the distances from the target times.

    Phase 0 is always the pre-contrast phase. `late` is None if it is undefined; `reason` explains
    why, or why times could not be used. `late_taken` is the late phase of the rule; under UCSF's
    rule it may equal the early phase, and then `late` and SER are undefined. `early_s` and `late_s`
    are in s on the time axis of `timing`, and the gaps are these times minus the targets. They are
    None if the phase or the times are missing. `remark` is an additional note for the reader.
    """

    early: int
    late: int | None
    timing: Timing
    early_s: float | None = None
    late_s: float | None = None
    early_gap_s: float | None = None
    late_gap_s: float | None = None
    reason: str = ""
    late_taken: int | None = None
    remark: str = ""


def choose_phases(times_s: Sequence[float | None], rule: TimingRule | None = None) -> PhaseChoice:
    """Return the phases nearest to 150 s and 450 s under `rule`, for PE, SER and FTV.

    Only phases after contrast are candidates, because in the MAMA-MIA clinical table the phase
    nearest to 150 s is phase 0 itself in 274 of 1,473 cases. If two phases are equally near, the
    earlier phase is chosen. The late phase is chosen among the phases after the early phase.
    UCSF_FTV follows UCSF's program instead, which chooses the late phase among all phases after
    contrast. If there are only two, it uses the first and the second. If the early and the late
    phase are the same, or the early phase is the first of more than two, it chooses again by the
    number of images.

    Parameters
    ----------
    times_s
        The time of each phase in s after the start of phase 0; None if unknown.
    rule
        The timing rule; None for UCSF_FTV.

    Returns
    -------
    PhaseChoice
        The early and the late phase. Without usable times, the first post-contrast phase is early
        and the last is late. The late phase is None if there is only one phase after phase 0, or no
        phase after the early phase.

    Raises
    ------
    CaseError
        If there are fewer than two phases, no phase after the injection, or a chosen phase does not
        exist.

    Examples
    --------
    >>> choice = choose_phases((0.0, 1371.0, 1493.0, 1615.0, 1737.0))
    >>> choice.early, choice.late, choice.early_gap_s, choice.late_gap_s
    (2, 4, 33.0, -23.0)
    >>> choose_phases((0.0, 165.0, 288.0, 411.0), TimingRule(Timing.PHASE0_START)).early
    1
    >>> choose_phases((None, None, None)).timing.value
    'by phase order, times unknown'
    """
    rule = rule or TimingRule()
    _require_post_contrast(len(times_s), rule)
    targets = (EARLY_TARGET_S, LATE_TARGET_S)
    times, why = known_times(times_s)
    if rule.phases is not None:
        return _choose_named(times, len(times_s), rule, rule.phases, targets)
    if times is None:
        return _by_order(len(times_s), rule.n_before, why)
    seconds = image_times(times, rule)
    if rule.timing is Timing.UCSF_FTV:
        early, late, remark = _as_ucsf(
            seconds, temporal_resolution_s(times, rule.resolution_s, rule.n_before), rule
        )
        return _make_choice(seconds, early, late, targets, rule.timing, remark=remark)
    posts = _after_contrast(times, rule)
    early = _find_nearest(seconds, posts, EARLY_TARGET_S)
    later = [k for k in posts if k > early]
    late_phase = _find_nearest(seconds, later, LATE_TARGET_S) if later else None
    return _make_choice(seconds, early, late_phase, targets, rule.timing)


def choose_image_phases(case: Case) -> PhaseChoice:
    """Return the phases of a case for segmenters, brushes and models, under PHASE0_START.

    The constants of segmenters and brushes, and the weights of models, were selected on these
    phases. No FTV, SER or curve value uses these phases.

    Raises
    ------
    CaseError
        As in `choose_phases`.
    """
    return choose_phases(case.times_s, rule_of(case, TimingRule(Timing.PHASE0_START)))


def choose_curve_phases(
    times_s: Sequence[float | None], rule: TimingRule | None = None
) -> PhaseChoice:
    """Return the initial and delayed phases of a BI-RADS style curve under `rule`.

    The initial phase (`early` in the result) is the post-contrast phase nearest to the window of 90
    to 120 s; its gap is the distance to the nearer edge, or 0 inside the window. The delayed phase
    (`late`) is the last phase if it is after the initial phase, at 4.5 minutes or later; its gap is
    relative to 270 s. Phases chosen by the user (MANUAL) are used unchanged.

    Parameters
    ----------
    times_s
        The time of each phase in s after the start of phase 0; None if unknown.
    rule
        The timing rule; None for UCSF_FTV.

    Raises
    ------
    CaseError
        As in `choose_phases`.

    Examples
    --------
    >>> choice = choose_curve_phases((0.0, 82.0, 148.0, 230.0, 312.0, 394.0))
    >>> choice.early, choice.early_s, choice.late, choice.late_s
    (2, 99.0, 5, 345.0)
    >>> choose_curve_phases((0.0, 60.0, 120.0, 180.0)).reason
    'the last phase is at 150 s, but a delayed phase must be at 270 s or later'
    """
    rule = rule or TimingRule()
    _require_post_contrast(len(times_s), rule)
    times, why = known_times(times_s)
    if rule.phases is not None:
        seconds = () if times is None else image_times(times, rule)
        targets = (_in_window(seconds[rule.phases[0]]) if seconds else 0.0, WASHOUT_FROM_S)
        return _choose_named(times, len(times_s), rule, rule.phases, targets)
    if times is None:
        return _by_order(len(times_s), rule.n_before, why)
    seconds = image_times(times, rule)
    initial = min(
        _after_contrast(times, rule), key=lambda k: abs(seconds[k] - _in_window(seconds[k]))
    )
    last = len(times) - 1
    targets = (_in_window(seconds[initial]), WASHOUT_FROM_S)
    if last == initial:
        why = f"there is no phase after the initial phase {initial}"
    elif seconds[last] < WASHOUT_FROM_S:
        why = (
            f"the last phase is at {seconds[last]:.0f} s, but a delayed phase must be at "
            f"{WASHOUT_FROM_S:.0f} s or later"
        )
    delayed = None if why else last
    return _make_choice(seconds, initial, delayed, targets, rule.timing, why)


def _as_ucsf(
    seconds: Sequence[float], resolution_s: float, rule: TimingRule
) -> tuple[int, int | None, str]:
    """Return the early and late phases that UCSF's program would choose, and a remark.

    The program may choose a second time. In the second choice, image n is at (n - 1/2) times the
    temporal resolution, regardless of the times. This requires the number of images in the header,
    which tables of times lack.
    """
    first = rule.n_before
    posts = range(first, len(seconds))
    if len(posts) <= 2:
        return first, (first + 1 if len(posts) == 2 else None), ""
    early, late = (
        _find_nearest(seconds, posts, EARLY_TARGET_S),
        _find_nearest(seconds, posts, LATE_TARGET_S),
    )
    if early not in (first, late):
        return early, late, ""
    count = min(rule.positions or len(posts), len(posts))
    even = (*(math.nan,) * first, *((n + 0.5) * resolution_s for n in range(count)))
    images = range(first, first + count)
    again = (
        _find_nearest(even, images, EARLY_TARGET_S),
        _find_nearest(even, images, LATE_TARGET_S),
    )
    if rule.positions is not None:
        return *again, "chosen again by the number of images, as UCSF's program does"
    if again == (early, late):
        return early, late, ""
    return (
        early,
        late,
        (
            "UCSF's program would choose again on GE and Siemens by a header value that is "
            f"unknown: phases {again[0]} and {again[1]} for {count} images"
        ),
    )


def _after_contrast(times: Sequence[float], rule: TimingRule) -> Sequence[int]:
    posts = range(rule.n_before, len(times))
    if rule.injection_s is None:
        return posts
    seconds = image_times(times, rule)
    # With one phase after contrast, the middle of the phase is unknown (NaN), so its start is
    # used.
    after = [k for k in posts if seconds[k] > 0 or times[k] >= rule.injection_s]
    if rule.injection_s <= 0 or not after:
        where = "before the start of phase 0" if after else "after the last phase"
        raise CaseError(
            "expected the injection to be between phase 0 and the last phase, but it is at "
            f"{rule.injection_s:g} s, {where}; enter the time in seconds from the start of phase "
            f"0, at most {times[-1]:g}"
        )
    return after


def _find_nearest(seconds: Sequence[float], phases: Iterable[int], target_s: float) -> int:
    return min(phases, key=lambda k: abs(seconds[k] - target_s))


def _in_window(time_s: float) -> float:
    low, high = INITIAL_WINDOW_S
    return min(max(time_s, low), high)


def _make_choice(
    seconds: Sequence[float],
    early: int,
    late: int | None,
    targets: tuple[float, float],
    timing: Timing,
    reason: str = "",
    remark: str = "",
) -> PhaseChoice:
    """Return the choice with its distances from the target times.

    A late phase that is not after the early phase is undefined.
    """
    if late == early:
        reason = f"the rule selects phase {early} as both early and late phase, so SER is undefined"
    elif late is None and not reason:
        reason = f"there is no phase after the early phase {early}"
    return PhaseChoice(
        early=early,
        late=None if late == early else late,
        timing=timing,
        early_s=_measure_distance(seconds, early),
        late_s=_measure_distance(seconds, late),
        early_gap_s=_measure_distance(seconds, early, targets[0]),
        late_gap_s=_measure_distance(seconds, late, targets[1]),
        reason=reason,
        late_taken=late,
        remark=remark,
    )


def _measure_distance(
    seconds: Sequence[float], phase: int | None, target_s: float = 0.0
) -> float | None:
    if phase is None or not seconds or math.isnan(seconds[phase]):
        return None
    return seconds[phase] - target_s


def _choose_named(
    times: tuple[float, ...] | None,
    n_phases: int,
    rule: TimingRule,
    phases: tuple[int, int],
    targets: tuple[float, float],
) -> PhaseChoice:
    early, late = phases
    if not 1 <= early < late < n_phases:
        raise CaseError(
            f"expected an early and a later phase from 1 to {n_phases - 1}, but got {early} and "
            f"{late}; enter two phases after contrast, early phase first"
        )
    seconds = () if times is None else image_times(times, rule)
    return _make_choice(seconds, early, late, targets, Timing.MANUAL)


def _by_order(n_phases: int, first: int, why: str) -> PhaseChoice:
    last = n_phases - 1
    if last > first:
        return PhaseChoice(first, last, Timing.PHASE_ORDER, reason=why, late_taken=last)
    reason = f"{why}; there is no phase after the early phase {first}"
    return PhaseChoice(first, None, Timing.PHASE_ORDER, reason=reason)


def _require_post_contrast(n_phases: int, rule: TimingRule) -> None:
    if not 1 <= rule.n_before < n_phases:
        raise CaseError(
            "expected phase 0 and at least one post-contrast phase for kinetics, but got "
            f"{count_of(n_phases, 'phase')}; add the missing phases"
        )
