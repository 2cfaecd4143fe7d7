"""Acquisition times of phases on a time axis with a named zero point."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import CaseError

_MERGED_S: Final = 2.0
"""Interval in seconds below which UCSF's program counts two phases as one image."""

MOST_SPACING_S: Final = 15.0
"""Longest interval between phases in s that counts as ultrafast.

Source: methods/perfusion.md.
"""

_LEAST_PHASES: Final = 3
_LEAST_SPAN_S: Final = 30.0
_MOST_SPAN_S: Final = 7200.0
"""Longest plausible span of an exam in s (our choice).

Uptake is not visible within half a minute, and no exam lasts two hours.
"""


class Timing(StrEnum):
    """The rule that determined the times and phases, reported with every FTV, SER and curve value.

    With UCSF_FTV, zero is the start of the first phase after contrast, and the time of an image is
    its start plus half the temporal resolution. With PHASE0_START, the time is the start of an
    image after the start of phase 0. With INJECTION, it is the middle of an image after the
    injection. With MANUAL, the user chose the phases. With PHASE_ORDER, times are unknown, and the
    first and last phase after contrast are used.

    Source of UCSF_FTV: rnadkarni2/SlicerBreast_DCEMRI_FTV, chooseEarly_LateByManufacturer.py at
    f0e9ca57; confirmed on UCSF's own result of ISPY1_1002.
    """

    UCSF_FTV = "UCSF-FTV"
    PHASE0_START = "phase0-start"
    INJECTION = "injection"
    MANUAL = "manual"
    PHASE_ORDER = "by phase order, times unknown"

    @property
    def origin(self) -> str:
        """A phrase that describes the zero point of this time axis."""
        return _ORIGINS[self]


_ORIGINS: Final = {
    Timing.UCSF_FTV: "after the first phase with contrast started",
    Timing.PHASE0_START: "after phase 0 started",
    Timing.INJECTION: "after the injection",
    Timing.MANUAL: "after the first phase with contrast started",
    Timing.PHASE_ORDER: "",
}


@dataclass(frozen=True, slots=True)
class TimingRule:
    """The rule by which phases are chosen, with data from the headers or the user.

    Parameters
    ----------
    timing
        The rule: UCSF_FTV, PHASE0_START, INJECTION or MANUAL.
    injection_s
        For INJECTION: the time from the start of phase 0 to the injection in s.
    phases
        For MANUAL: the early and the late phase.
    resolution_s
        The temporal resolution in the header in s; None if it is derived from the times.
    positions
        The number of images after contrast in the header, for UCSF's second choice.
    n_before
        The number of phases before contrast, which is above 1 if the scan was repeated.

    Raises
    ------
    CaseError
        If the rule lacks a value that it needs, or a number is invalid.
    """

    timing: Timing = Timing.UCSF_FTV
    injection_s: float | None = None
    phases: tuple[int, int] | None = None
    resolution_s: float | None = None
    positions: int | None = None
    n_before: int = 1

    def __post_init__(self) -> None:
        if self.timing is Timing.PHASE_ORDER:
            raise CaseError(
                f"expected a timing rule for known times, but got {self.timing!r}, which applies "
                "automatically if the times are unknown; choose a different timing rule"
            )
        if (self.timing is Timing.INJECTION) != (self.injection_s is not None):
            raise CaseError(
                f"expected an injection time if, and only if, the timing is {Timing.INJECTION}, "
                f"but got timing {self.timing} and injection time {self.injection_s}: enter both "
                "or neither"
            )
        if (self.timing is Timing.MANUAL) != (self.phases is not None):
            raise CaseError(
                f"expected two phases if, and only if, the timing is {Timing.MANUAL}, but got "
                f"timing {self.timing} and phases {self.phases}: enter both or neither"
            )
        if self.injection_s is not None and not math.isfinite(self.injection_s):
            raise CaseError(
                "expected the injection time to be a number of seconds, but got "
                f"{self.injection_s}; enter a number"
            )

    @property
    def name(self) -> str:
        """The rule as a short text for the provenance."""
        if self.phases is not None:
            return f"{self.timing}: phases {self.phases[0]} and {self.phases[1]}"
        if self.injection_s is not None:
            return f"{self.timing} at {self.injection_s:g} s"
        return str(self.timing)


def rule_of(case: Case, rule: TimingRule | None = None) -> TimingRule:
    """Return the rule, completed from the case's headers and the contrast arrival in its voxels.

    An injection time or phases chosen by the user take precedence over the voxels, and values in
    the rule take precedence over headers.

    Parameters
    ----------
    case
        The case with its headers and voxels.
    rule
        The user's rule; None for UCSF_FTV.
    """
    rule = rule or TimingRule()
    rule = replace(
        rule,
        resolution_s=rule.resolution_s or case.scan.resolution_s,
        positions=rule.positions or case.scan.positions,
    )
    is_told = rule.timing in (Timing.INJECTION, Timing.MANUAL)
    return rule if is_told else replace(rule, n_before=case.n_before)


def known_times(times_s: Sequence[float | None]) -> tuple[tuple[float, ...] | None, str]:
    """Return the times in s after phase 0, or None and the reason why the times are unusable.

    Every phase needs a finite time, and times must increase from phase to phase. Times that do not
    start at 0 are shifted to start at 0.
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
        return None, f"the acquisition times do not increase from phase to phase ({listed} s)"
    return tuple(t - numbers[0] for t in numbers), ""


def odd_span(times_s: Sequence[float | None]) -> str:
    """Return why the times are implausible in seconds, or "" if they are plausible.

    Examples
    --------
    >>> odd_span((0.0, 1.5, 3.0, 4.5))
    'the phases span 4.5 s, less than any exam: are their times in minutes?'
    """
    times, _ = known_times(times_s)
    if times is None or len(times) < _LEAST_PHASES:
        return ""
    if times[-1] < _LEAST_SPAN_S:
        return f"the phases span {times[-1]:g} s, less than any exam: are their times in minutes?"
    if times[-1] > _MOST_SPAN_S:
        return (
            f"the phases span {times[-1]:g} s, more than any exam: are their times in milliseconds?"
        )
    return ""


def temporal_resolution_s(
    times: Sequence[float], header_s: float | None = None, n_before: int = 1
) -> float:
    """Return the temporal resolution in s: the smallest gap after contrast, or the header's value.

    The smaller value is used. The result is NaN if there is neither a gap (only one phase after
    contrast) nor a header value.

    Parameters
    ----------
    times
        The time of each phase in s.
    header_s
        The temporal resolution in the header in s, or None.
    n_before
        The number of phases before contrast.

    Examples
    --------
    >>> temporal_resolution_s((0.0, 1371.0, 1493.0, 1615.0))
    122.0
    """
    gaps = [b - a for a, b in itertools.pairwise(times[n_before:]) if b - a >= _MERGED_S]
    if header_s is not None and header_s > 0:
        gaps.append(header_s)
    return min(gaps, default=math.nan)


def image_times(times: Sequence[float], rule: TimingRule) -> tuple[float, ...]:
    """Return the time of each phase on the time axis of `rule` in s; NaN if unknown.

    Parameters
    ----------
    times
        The times in s after the start of phase 0, as returned by `known_times`.

    Examples
    --------
    >>> image_times((0.0, 165.0, 288.0, 411.0), TimingRule())
    (-103.5, 61.5, 184.5, 307.5)
    """
    if rule.timing is Timing.PHASE0_START:
        return tuple(times)
    half = temporal_resolution_s(times, rule.resolution_s, rule.n_before) / 2
    zero = times[rule.n_before] if rule.injection_s is None else rule.injection_s
    return tuple(time - zero + half for time in times)
