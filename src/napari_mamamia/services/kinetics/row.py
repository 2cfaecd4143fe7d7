"""A case's kinetics as a flat table row, with the unit and definition of every column."""

import math
from dataclasses import dataclass, replace
from typing import Final

from napari_mamamia.core.case import Case
from napari_mamamia.core.counting import phase_name
from napari_mamamia.core.errors import CaseError
from napari_mamamia.kinetics.curves import ContrastCurve
from napari_mamamia.kinetics.time_axis import TimingRule, rule_of
from napari_mamamia.kinetics.timing import (
    EARLY_TARGET_S,
    LATE_TARGET_S,
    PhaseChoice,
    choose_curve_phases,
    choose_phases,
)
from napari_mamamia.kinetics.ultrafast import ultrafast_numbers
from napari_mamamia.services.batch.row_table import OK, number, text
from napari_mamamia.services.kinetics.injection import vessel_arrival_s

_SEPARATOR: Final = " "
# This character keeps a number and its unit on one line.
_NBSP: Final = "\u00a0"
_Chosen = tuple[int | None, float | None, float | None]
"""A chosen phase with its time and its distance to the target, in s."""


@dataclass(frozen=True, slots=True)
class KineticRow:
    """A row of `kinetics.csv`; an undefined number is NaN and written as an empty cell.

    Several numbers in one cell (`times_s`, `mean_signal`, `mean_pe_percent`) are in order of phase,
    separated by a space.
    """

    case_id: str
    status: str = text("ok, or failed if the case could not be measured", OK)
    reason: str = text("reason why the case failed")
    warning: str = text("unusual properties of the case's numbers")
    mask: str = text("source of the mask: reference, or the name of the folder")
    n_phases: float = number("number of phases of the case")
    times_s: str = text("time of each phase in s since the start of phase 0; empty if not usable")
    times_source: str = text("source of the times")
    timing: str = text("rule that chose the phases: UCSF-FTV, phase0-start, injection, manual")
    timing_remark: str = text("note on the choice of phases")
    contrast: str = text("phases between which contrast arrived, detected from the voxels")
    phases_before: float = number(
        "number of phases before contrast; more than 1 for a repeated scan"
    )
    early_phase: float = number("phase nearest to 150 s under that rule, for PE, SER and FTV")
    early_s: float = number("time of that phase in s, on the time axis of the rule")
    early_gap_s: float = number("time of that phase minus 150 s, in s")
    late_phase: float = number(
        "phase nearest to 450 s under that rule; SER needs it to be later than early"
    )
    late_s: float = number("time of that phase in s, on the time axis of the rule")
    late_gap_s: float = number("time of that phase minus 450 s, in s")
    early_late_reason: str = text("reason why early or late is undefined or chosen by order")
    initial_phase: float = number("phase nearest to 90-120 s, for the curve classes")
    initial_s: float = number("time of that phase in s, on the time axis of the rule")
    initial_gap_s: float = number("distance of that time from 90-120 s in s; 0 inside the range")
    delayed_phase: float = number("last phase, if acquired at 270 s or later")
    delayed_s: float = number("time of that phase in s, on the time axis of the rule")
    delayed_gap_s: float = number("time of that phase minus 270 s, in s")
    curve_reason: str = text("reason why initial or delayed is undefined or chosen by order")
    n_voxels: float = number("number of voxels in the mask")
    volume_mm3: float = number("number of voxels times the volume of one voxel, mm3")
    longest_diameter_mm: float = number("largest distance between two voxel centres, mm")
    in_plane_diameter_mm: float = number(
        "largest distance between two voxel centres in one acquired slice, mm"
    )
    mean_signal: str = text("mean signal in the mask, by phase")
    mean_pe_percent: str = text("100 (S - S0) / S0 of the mean signals, by phase, percent")
    peak_pe_of_mean_percent: float = number("largest PE of the mean curve, percent")
    peak_phase_of_mean: float = number("its phase")
    peak_pe_percent: float = number("largest PE of any voxel and phase, percent")
    delayed_change_percent: float = number("100 (S_delayed - S_initial) / S_initial, mean curve")
    initial_class: str = text("slow < 50, medium 50-100, fast > 100 % (mean curve)")
    delayed_class: str = text("persistent > +10, plateau, washout < -10 % (mean curve)")
    predominant_curve: str = text("delayed class of most voxels with initial PE >= 50 %")
    worst_curve: str = text("worst delayed class with at least 3 connected voxels")
    angio_volume_mm3: float = number("volume of the mask with initial PE >= 50 %, mm3")
    persistent_mm3: float = number("of which with a persistent curve, mm3")
    plateau_mm3: float = number("of which with a plateau, mm3")
    washout_mm3: float = number("of which with washout, mm3")
    hottest_pe_percent: str = text("PE of the most enhancing 3x3 patch within a slice, by phase")
    hottest_voxel_zyx: str = text("central voxel of that patch")
    ftv_variant: str = text("variant: ucsf-extension (4 neighbours), ucsf-ispy1 (9) or own")
    ftv_thresholds: str = text("its thresholds")
    ftv_box: str = text("region of FTV and its source; voxels z, y, x, stop excluded")
    ftv_cc: float = number("functional tumour volume, cc")
    ftv_partial_cc: float = number("of which SER >= 0.9, cc")
    ftv_washout_cc: float = number("of which SER > 1.3, cc")
    ftv_blue_cc: float = number("of which SER in (0, 0.9], cc")
    ftv_purple_cc: float = number("of which SER in (0.9, 1], cc")
    ftv_green_cc: float = number("of which SER in (1, 1.3], cc")
    ftv_red_cc: float = number("of which SER in (1.3, 1.75], cc")
    ftv_yellow_cc: float = number("of which SER in (1.75, 3], cc")
    ftv_white_cc: float = number("of which SER 0 or above 3, cc")
    ftv_blue_percent: float = number("percentage of FTV")
    ftv_purple_percent: float = number("percentage of FTV")
    ftv_green_percent: float = number("percentage of FTV")
    ftv_red_percent: float = number("percentage of FTV")
    ftv_yellow_percent: float = number("percentage of FTV")
    ftv_white_percent: float = number("percentage of FTV")
    ftv_reason: str = text("reason why FTV is undefined or should not be used")
    ultrafast_spacing_s: float = number("nominal time between phases where the mean curve rises, s")
    maximum_slope_percent_per_s: float = number(
        "largest rise of PE between two phases of the mean curve, %/s"
    )
    bolus_arrival_s: float = number(
        "intersection of the tangent with the baseline, s since the start of phase 0"
    )
    vessel_arrival_s: float = number("the same for the vessel mask, s since the start of phase 0")
    time_to_enhancement_s: float = number("bolus_arrival_s minus vessel_arrival_s, s")
    pe_at_percent: float = number(
        "PE of the mean curve at the time pe_at_s after pe_at_from, percent"
    )
    pe_at_s: float = number("time at which pe_at_percent is measured, s")
    pe_at_from: str = text("origin of that time: arrival in the vessel, or in the lesion itself")
    ultrafast_reason: str = text("reason why an ultrafast measure is undefined")
    bpe_mean_percent_experimental: float = number(
        "mean PE_early in the brighter tissue of the contralateral breast, half stack; not a BPE "
        "grade"
    )
    bpe_median_percent_experimental: float = number("median PE_early in that tissue")
    bpe_voxels: float = number("number of voxels measured")
    bpe_reason: str = text("reason why the value is undefined")


def text_of(numbers: tuple[float, ...] | None) -> str:
    """Return numbers as the text of one cell, with seven digits, or "" for None.

    Examples
    --------
    >>> text_of((0.0, 82.5, float("nan")))
    '0 82.5 nan'
    """
    return _SEPARATOR.join(f"{value:.7g}" for value in numbers or ())


def numbers_of(cell: str) -> tuple[float, ...]:
    """Return the numbers in a cell.

    Examples
    --------
    >>> numbers_of("0 82.5")
    (0.0, 82.5)
    """
    return tuple(float(part) for part in cell.split(_SEPARATOR) if part)


def with_ultrafast(
    row: KineticRow, case: Case, curve: ContrastCurve, vessels: str, pe_at_s: float
) -> KineticRow:
    """Return the row with the ultrafast measures of the lesion's mean curve, or a reason for none.

    `vessels` is a folder with vessel masks, or "". Contrast arrival in the vessel is the origin of
    the time to enhancement. If the vessel's curve shows no arrival, the time to enhancement is
    undefined, and the reason is given.
    """
    if not curve.n_voxels:
        return replace(row, ultrafast_reason="the mask is empty")
    vessel_arrival, why_no_vessel = _vessel_arrival(case, vessels)
    measures = ultrafast_numbers(
        case.times_s, curve.signal, vessel_arrival_s=vessel_arrival, at_s=pe_at_s
    )
    if math.isnan(measures.slope_percent_per_s):
        return replace(
            row, ultrafast_spacing_s=measures.spacing_s, ultrafast_reason=measures.reason
        )
    return replace(
        row,
        ultrafast_spacing_s=measures.spacing_s,
        maximum_slope_percent_per_s=measures.slope_percent_per_s,
        bolus_arrival_s=measures.arrival_s,
        vessel_arrival_s=math.nan if vessel_arrival is None else vessel_arrival,
        time_to_enhancement_s=measures.time_to_enhancement_s,
        pe_at_percent=measures.pe_at_percent,
        pe_at_s=pe_at_s,
        pe_at_from=measures.counted_from,
        ultrafast_reason="; ".join(filter(None, (measures.reason, why_no_vessel))),
    )


def ultrafast_text(row: KineticRow, *, is_asked: bool) -> str:
    """Return a row's ultrafast measures as text, or if `is_asked` the reason why there are none.

    Examples
    --------
    >>> row = KineticRow("A", maximum_slope_percent_per_s=13.01, bolus_arrival_s=21.0)
    >>> ultrafast_text(row, is_asked=False)
    'maximum slope 13.0 %/s, arrival 21.0 s after the start of phase 0'
    """
    if math.isnan(row.maximum_slope_percent_per_s):
        return row.ultrafast_reason if is_asked else ""
    text = (
        f"maximum slope {row.maximum_slope_percent_per_s:.1f} %/s, arrival "
        f"{row.bolus_arrival_s:.1f} s after the start of phase 0"
    )
    if not math.isnan(row.time_to_enhancement_s):
        text += f", {row.time_to_enhancement_s:.1f} s after the vessel"
    if not math.isnan(row.pe_at_percent):
        text += f", PE {row.pe_at_percent:.0f} % {row.pe_at_s:g} s after the {row.pe_at_from}"
    return f"{text}; {row.ultrafast_reason}" if is_asked and row.ultrafast_reason else text


def _vessel_arrival(case: Case, vessels: str) -> tuple[float | None, str]:
    if not vessels:
        return None, (
            "the time to enhancement is undefined, because there is no mask of the aorta or heart"
        )
    try:
        return vessel_arrival_s(case, vessels), ""
    except CaseError as error:
        return None, f"the time to enhancement is undefined: {error}"


def phases_text(choice: PhaseChoice, n_before: int = 1) -> str:
    """Describe the early and late phases, their distances to 150 and 450 s, and the rule.

    Examples
    --------
    >>> choice = choose_phases((0.0, 1371.0, 1493.0, 1615.0, 1737.0))
    >>> phases_text(choice).replace(_NBSP, " ")
    'early post 2 (183 s, +33 s from 150 s), late post 4 (427 s, −23 s from 450 s) · UCSF-FTV'
    """
    early = (choice.early, choice.early_s, choice.early_gap_s)
    late = (choice.late_taken, choice.late_s, choice.late_gap_s)
    return _describe_phases(early, late, n_before, choice.timing)


def phases_of_row(row: KineticRow) -> str:
    """Return `phases_text` for a row of the table, or "" if the row has no phases."""
    if math.isnan(row.early_phase):
        return ""
    n_before = _make_integer(row.phases_before) or 1
    early = (_make_integer(row.early_phase), _replace_nan(row.early_s), row.early_gap_s)
    late = (_make_integer(row.late_phase), _replace_nan(row.late_s), row.late_gap_s)
    return _describe_phases(early, late, n_before, row.timing)


def _describe_phases(early: _Chosen, late: _Chosen, n_before: int, timing: object) -> str:
    early_text = _describe_phase(*early, EARLY_TARGET_S, n_before)
    late_text = _describe_phase(*late, LATE_TARGET_S, n_before)
    return f"early {early_text}, late {late_text} · {timing}"


def timing_text(case: Case, rule: TimingRule | None = None) -> tuple[str, str]:
    """Describe the early, late, initial and delayed phases; also return a warning, or "".

    Parameters
    ----------
    case
        The case with its phases.
    rule
        The timing rule that selects the phases; None for UCSF_FTV.
    """
    if len(case.phases) < 2:
        return "", "kinetics needs a phase after contrast, but this case has only one phase"
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
