"""A timing rule from the user's choice and input."""

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import CaseError
from napari_mamamia.kinetics.time_axis import Timing, TimingRule, rule_of
from napari_mamamia.kinetics.timing import choose_curve_phases, choose_phases


def typed_rule(timing: Timing, text: str = "") -> TimingRule:
    """Return a rule; `text` is the time of the injection in seconds, or two phases such as "2, 4".

    Raises
    ------
    CaseError
        If the text is not valid for the timing.
    """
    words = text.replace(",", " ").split()
    try:
        if timing is Timing.INJECTION:
            (seconds,) = (float(word) for word in words)
            return TimingRule(timing, injection_s=seconds)
        if timing is Timing.MANUAL:
            early, late = (int(word) for word in words)
            return TimingRule(timing, phases=(early, late))
    except ValueError as error:
        hint = (
            "the time of the injection in seconds from phase 0, such as 130"
            if timing is Timing.INJECTION
            else "the early and the late phase, such as 2, 4"
        )
        raise CaseError(f"expected {hint}, but got {text!r}; enter it and press Enter") from error
    return TimingRule(timing)


def require_rule(case: Case, rule: TimingRule) -> None:
    """Raise `CaseError` if a rule does not fit a case, such as an injection after its end."""
    case_rule = rule_of(case, rule)
    choose_phases(case.times_s, case_rule)
    choose_curve_phases(case.times_s, case_rule)
