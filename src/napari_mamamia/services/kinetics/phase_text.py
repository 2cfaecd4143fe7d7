"""Describe the phases behind a measure: the rule, and the distance from the target times."""

import math
from typing import Final

from napari_mamamia.core.case import Case
from napari_mamamia.core.counting import phase_name
from napari_mamamia.kinetics.time_axis import TimingRule, rule_of
from napari_mamamia.kinetics.timing import (
    EARLY_TARGET_S,
    LATE_TARGET_S,
    PhaseChoice,
    choose_curve_phases,
    choose_phases,
)
from napari_mamamia.services.kinetics.row import KineticRow

# Keeps a number and its unit on one line.
_NBSP: Final = "\u00a0"


def phases_text(choice: PhaseChoice, n_before: int = 1) -> str:
    """Describe the early and late phases, their distances to 150 and 450 s, and the rule.

    Examples
    --------
    >>> choice = choose_phases((0.0, 1371.0, 1493.0, 1615.0, 1737.0))
    >>> phases_text(choice).replace(_NBSP, " ")
    'early post 2 (183 s, +33 s from 150 s), late post 4 (427 s, −23 s from 450 s) · UCSF-FTV'
    """
    early = _describe_phase(
        choice.early, choice.early_s, choice.early_gap_s, EARLY_TARGET_S, n_before
    )
    late = _describe_phase(
        choice.late_taken, choice.late_s, choice.late_gap_s, LATE_TARGET_S, n_before
    )
    return f"early {early}, late {late} · {choice.timing}"


def phases_of_row(row: KineticRow) -> str:
    """Return `phases_text` of a row of the table; "" if it has no phases."""
    if math.isnan(row.early_phase):
        return ""
    n_before = _make_integer(row.phases_before) or 1
    early = _describe_phase(
        _make_integer(row.early_phase),
        _replace_nan(row.early_s),
        row.early_gap_s,
        EARLY_TARGET_S,
        n_before,
    )
    late = _describe_phase(
        _make_integer(row.late_phase),
        _replace_nan(row.late_s),
        row.late_gap_s,
        LATE_TARGET_S,
        n_before,
    )
    return f"early {early}, late {late} · {row.timing}"


def timing_text(case: Case, rule: TimingRule | None = None) -> tuple[str, str]:
    """Describe the early, late, initial and delayed phases; also return a warning ("" for none).

    Parameters
    ----------
    case
        The case with its phases.
    rule
        The clock for the choice of phases; None for UCSF_FTV.
    """
    if len(case.phases) < 2:
        return "", "kinetics needs a phase after contrast, but this case has one phase"
    rule = rule_of(case, rule)
    choice, curve = choose_phases(case.times_s, rule), choose_curve_phases(case.times_s, rule)
    origin = f"seconds {choice.timing.origin}" if choice.timing.origin else ""
    lines = (
        phases_text(choice, case.n_before),
        f"initial {_describe_phase(curve.early, curve.early_s, None, 0.0, case.n_before)}, "
        f"delayed {_describe_phase(curve.late, curve.late_s, None, 0.0, case.n_before)}",
        origin,
        case.contrast,
    )
    remarks = (choice.reason, curve.reason, choice.remark)
    reasons = dict.fromkeys(reason for reason in remarks if reason)
    return "\n".join(line for line in lines if line), "; ".join(reasons)


def _describe_phase(
    phase: int | None,
    time_s: float | None,
    gap_s: float | None,
    target_s: float = 0.0,
    n_before: int = 1,
) -> str:
    if phase is None:
        return "–"
    name = phase_name(phase, n_before)
    if time_s is None:
        return name
    gap = "" if gap_s is None else f", {gap_s:+.0f}{_NBSP}s from {target_s:.0f}{_NBSP}s"
    return f"{name} ({time_s:.0f}{_NBSP}s{gap})".replace("-", "−")


def _replace_nan(value: float) -> float | None:
    return None if math.isnan(value) else value


def _make_integer(value: float) -> int | None:
    return None if math.isnan(value) else int(value)
