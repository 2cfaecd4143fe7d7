"""One case's kinetics as a flat row of a table; every column with its unit and definition."""

import math
from dataclasses import dataclass, field, fields
from typing import Any, Final

__all__ = ["FAILED", "OK", "KineticRow", "column_definitions", "numbers_of", "text_of"]

OK: Final = "ok"
FAILED: Final = "failed"
_SEPARATOR: Final = " "


def _column(definition: str, default: Any) -> Any:
    return field(default=default, metadata={"definition": definition})


def _text(definition: str) -> Any:
    return _column(definition, "")


def _number(definition: str) -> Any:
    return _column(definition, math.nan)


@dataclass(frozen=True, slots=True)
class KineticRow:
    """The row of `kinetics.csv`; a number that is undefined is nan, and an empty cell.

    Several numbers in one cell (`times_s`, `mean_signal`, `mean_pe_percent`) stand in order of
    phase with a space between.
    """

    case_id: str
    status: str = _column("ok, or failed with the reason", OK)
    reason: str = _text("why the case failed")
    warning: str = _text("what is unusual about the case's numbers")
    mask: str = _text("whose mask was measured: reference, or the folder's name")
    n_phases: float = _number("phases of the case")
    times_s: str = _text("seconds since the start of phase 0, by phase; empty: not usable")
    times_source: str = _text("where the times come from")
    timing: str = _text("rule that chose the phases: UCSF-FTV, phase0-start, injection, manual")
    timing_remark: str = _text("what else is to be known of this choice")
    contrast: str = _text("between which phases contrast came, by the pixels")
    phases_before: float = _number("phases before contrast; more than 1: scanned again")
    early_phase: float = _number("phase nearest to 150 s by that rule, for PE, SER, FTV")
    early_s: float = _number("its time in s on the clock of the rule")
    early_gap_s: float = _number("its time minus 150 s")
    late_phase: float = _number("phase nearest to 450 s by that rule; SER needs one after early")
    late_s: float = _number("its time in s on that clock")
    late_gap_s: float = _number("its time minus 450 s")
    early_late_reason: str = _text("why early or late is undefined or chosen by order")
    initial_phase: float = _number("phase nearest to 90-120 s, for the curve classes")
    initial_s: float = _number("its time in s on that clock")
    initial_gap_s: float = _number("seconds outside of 90-120 s, 0 inside")
    delayed_phase: float = _number("last phase, if at 270 s or later")
    delayed_s: float = _number("its time in s on that clock")
    delayed_gap_s: float = _number("its time minus 270 s")
    curve_reason: str = _text("why initial or delayed is undefined or chosen by order")
    n_voxels: float = _number("voxels of the mask")
    volume_mm3: float = _number("voxels times the volume of one, mm3")
    longest_diameter_mm: float = _number("largest distance of two voxel centres, mm")
    in_plane_diameter_mm: float = _number("the same within one acquired slice, mm")
    mean_signal: str = _text("mean signal of the mask by phase")
    mean_pe_percent: str = _text("100 (S - S0) / S0 of the mean signals, by phase, percent")
    peak_pe_of_mean_percent: float = _number("largest PE of the mean curve, percent")
    peak_phase_of_mean: float = _number("its phase")
    peak_pe_percent: float = _number("largest PE of any voxel and phase, percent")
    delayed_change_percent: float = _number("100 (S_delayed - S_initial) / S_initial, mean curve")
    initial_class: str = _text("slow < 50, medium 50-100, fast > 100 % (mean curve)")
    delayed_class: str = _text("persistent > +10, plateau, washout < -10 % (mean curve)")
    predominant_curve: str = _text("delayed class of most voxels with initial PE >= 50 %")
    worst_curve: str = _text("worst delayed class of which 3 voxels touch")
    angio_volume_mm3: float = _number("volume of the mask with initial PE >= 50 %, mm3")
    persistent_mm3: float = _number("of it with a persistent curve, mm3")
    plateau_mm3: float = _number("of it with a plateau, mm3")
    washout_mm3: float = _number("of it with washout, mm3")
    hottest_pe_percent: str = _text("PE of the hottest 3x3 patch within a slice, by phase")
    hottest_voxel_zyx: str = _text("its middle voxel")
    ftv_variant: str = _text("whose mask: ucsf-extension (4 neighbours), ucsf-ispy1 (9) or own")
    ftv_thresholds: str = _text("its thresholds")
    ftv_box: str = _text("region of FTV and where it comes from, voxels z, y, x, end excluded")
    ftv_cc: float = _number("functional tumour volume, cc")
    ftv_partial_cc: float = _number("of it SER >= 0.9, cc")
    ftv_washout_cc: float = _number("of it SER > 1.3, cc")
    ftv_blue_cc: float = _number("of it SER in (0, 0.9], cc")
    ftv_purple_cc: float = _number("of it SER in (0.9, 1], cc")
    ftv_green_cc: float = _number("of it SER in (1, 1.3], cc")
    ftv_red_cc: float = _number("of it SER in (1.3, 1.75], cc")
    ftv_yellow_cc: float = _number("of it SER in (1.75, 3], cc")
    ftv_white_cc: float = _number("of it SER 0 or above 3, cc")
    ftv_blue_percent: float = _number("share of FTV, percent")
    ftv_purple_percent: float = _number("share of FTV, percent")
    ftv_green_percent: float = _number("share of FTV, percent")
    ftv_red_percent: float = _number("share of FTV, percent")
    ftv_yellow_percent: float = _number("share of FTV, percent")
    ftv_white_percent: float = _number("share of FTV, percent")
    ftv_reason: str = _text("why FTV is undefined, or not to be used")
    ultrafast_spacing_s: float = _number("s between phases where the mean curve rises, nominal")
    maximum_slope_percent_per_s: float = _number(
        "largest rise of PE between two phases, mean curve, %/s"
    )
    bolus_arrival_s: float = _number("its tangent cut with the baseline, s since phase 0 started")
    vessel_arrival_s: float = _number("the same of the vessel's mask, s since phase 0 started")
    time_to_enhancement_s: float = _number("bolus_arrival_s less vessel_arrival_s, s")
    pe_at_percent: float = _number("PE of the mean curve pe_at_s after pe_at_from, percent")
    pe_at_s: float = _number("the stated time, s")
    pe_at_from: str = _text("what it counts from: arrival in the vessel, or in the lesion itself")
    ultrafast_reason: str = _text("why ultrafast measures are undefined, or one of them")
    bpe_mean_percent_experimental: float = _number(
        "mean PE_early of the brighter tissue of the other breast, half stack; not a BPE grade"
    )
    bpe_median_percent_experimental: float = _number("median of the same")
    bpe_voxels: float = _number("voxels it was measured on")
    bpe_reason: str = _text("why it is undefined")


def column_definitions() -> tuple[tuple[str, str], ...]:
    """Return each column's name and what it holds."""
    return tuple(
        (column.name, str(column.metadata.get("definition", "id of the case")))
        for column in fields(KineticRow)
    )


def text_of(numbers: tuple[float, ...] | None) -> str:
    """Return numbers as one cell, seven digits; "" for None.

    Examples
    --------
    >>> text_of((0.0, 82.5, float("nan")))
    '0 82.5 nan'
    """
    return _SEPARATOR.join(f"{value:.7g}" for value in numbers or ())


def numbers_of(cell: str) -> tuple[float, ...]:
    """Return the numbers of a cell.

    Examples
    --------
    >>> numbers_of("0 82.5")
    (0.0, 82.5)
    """
    return tuple(float(part) for part in cell.split(_SEPARATOR) if part)
