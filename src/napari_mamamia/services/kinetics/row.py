"""A case's kinetics as a flat table row, with unit and definition of every column."""

from dataclasses import dataclass
from typing import Final

from napari_mamamia.services.batch.row_table import OK, number, text

_SEPARATOR: Final = " "


@dataclass(frozen=True, slots=True)
class KineticRow:
    """A row of `kinetics.csv`; an undefined number is NaN and written as an empty cell.

    Several numbers in one cell (`times_s`, `mean_signal`, `mean_pe_percent`) are in order of phase,
    separated by a space.
    """

    case_id: str
    status: str = text("ok, or failed with the reason", OK)
    reason: str = text("why the case failed")
    warning: str = text("what is unusual about the case's numbers")
    mask: str = text("whose mask was measured: reference, or the name of the folder")
    n_phases: float = number("phases of the case")
    times_s: str = text("seconds since the start of phase 0, by phase; empty: not usable")
    times_source: str = text("where the times come from")
    timing: str = text("rule that chose the phases: UCSF-FTV, phase0-start, injection, manual")
    timing_remark: str = text("a further note on this choice")
    contrast: str = text("phases between which contrast arrived, from the pixels")
    phases_before: float = number("phases before contrast; more than 1: repeated scan")
    early_phase: float = number("phase nearest to 150 s by that rule, for PE, SER, FTV")
    early_s: float = number("its time in s on the clock of the rule")
    early_gap_s: float = number("its time minus 150 s")
    late_phase: float = number("phase nearest to 450 s by that rule; SER needs one after early")
    late_s: float = number("its time in s on that clock")
    late_gap_s: float = number("its time minus 450 s")
    early_late_reason: str = text("why early or late is undefined or chosen by order")
    initial_phase: float = number("phase nearest to 90-120 s, for the curve classes")
    initial_s: float = number("its time in s on that clock")
    initial_gap_s: float = number("seconds outside of 90-120 s, 0 inside")
    delayed_phase: float = number("last phase, if at 270 s or later")
    delayed_s: float = number("its time in s on that clock")
    delayed_gap_s: float = number("its time minus 270 s")
    curve_reason: str = text("why initial or delayed is undefined or chosen by order")
    n_voxels: float = number("voxels of the mask")
    volume_mm3: float = number("voxels times the volume of one, mm3")
    longest_diameter_mm: float = number("largest distance between two voxel centres, mm")
    in_plane_diameter_mm: float = number("the same within one acquired slice, mm")
    mean_signal: str = text("mean signal of the mask by phase")
    mean_pe_percent: str = text("100 (S - S0) / S0 of the mean signals, by phase, percent")
    peak_pe_of_mean_percent: float = number("largest PE of the mean curve, percent")
    peak_phase_of_mean: float = number("its phase")
    peak_pe_percent: float = number("largest PE of any voxel and phase, percent")
    delayed_change_percent: float = number("100 (S_delayed - S_initial) / S_initial, mean curve")
    initial_class: str = text("slow < 50, medium 50-100, fast > 100 % (mean curve)")
    delayed_class: str = text("persistent > +10, plateau, washout < -10 % (mean curve)")
    predominant_curve: str = text("delayed class of most voxels with initial PE >= 50 %")
    worst_curve: str = text("worst delayed class with 3 connected voxels")
    angio_volume_mm3: float = number("volume of the mask with initial PE >= 50 %, mm3")
    persistent_mm3: float = number("of it with a persistent curve, mm3")
    plateau_mm3: float = number("of it with a plateau, mm3")
    washout_mm3: float = number("of it with washout, mm3")
    hottest_pe_percent: str = text("PE of the hottest 3x3 patch within a slice, by phase")
    hottest_voxel_zyx: str = text("its central voxel")
    ftv_variant: str = text("variant: ucsf-extension (4 neighbours), ucsf-ispy1 (9) or own")
    ftv_thresholds: str = text("its thresholds")
    ftv_box: str = text("region of FTV and its source, voxels z, y, x, end excluded")
    ftv_cc: float = number("functional tumour volume, cc")
    ftv_partial_cc: float = number("of it SER >= 0.9, cc")
    ftv_washout_cc: float = number("of it SER > 1.3, cc")
    ftv_blue_cc: float = number("of it SER in (0, 0.9], cc")
    ftv_purple_cc: float = number("of it SER in (0.9, 1], cc")
    ftv_green_cc: float = number("of it SER in (1, 1.3], cc")
    ftv_red_cc: float = number("of it SER in (1.3, 1.75], cc")
    ftv_yellow_cc: float = number("of it SER in (1.75, 3], cc")
    ftv_white_cc: float = number("of it SER 0 or above 3, cc")
    ftv_blue_percent: float = number("share of FTV, percent")
    ftv_purple_percent: float = number("share of FTV, percent")
    ftv_green_percent: float = number("share of FTV, percent")
    ftv_red_percent: float = number("share of FTV, percent")
    ftv_yellow_percent: float = number("share of FTV, percent")
    ftv_white_percent: float = number("share of FTV, percent")
    ftv_reason: str = text("why FTV is undefined, or should not be used")
    ultrafast_spacing_s: float = number("s between phases where the mean curve rises, nominal")
    maximum_slope_percent_per_s: float = number(
        "largest rise of PE between two phases, mean curve, %/s"
    )
    bolus_arrival_s: float = number(
        "intersection of its tangent with the baseline, s since the start of phase 0"
    )
    vessel_arrival_s: float = number("the same of the vessel's mask, s since the start of phase 0")
    time_to_enhancement_s: float = number("bolus_arrival_s minus vessel_arrival_s, s")
    pe_at_percent: float = number("PE of the mean curve pe_at_s after pe_at_from, percent")
    pe_at_s: float = number("the time of pe_at_percent, s")
    pe_at_from: str = text(
        "what that time counts from: arrival in the vessel, or in the lesion itself"
    )
    ultrafast_reason: str = text("why ultrafast measures, or one of them, are undefined")
    bpe_mean_percent_experimental: float = number(
        "mean PE_early of the brighter tissue of the other breast, half stack; not a BPE grade"
    )
    bpe_median_percent_experimental: float = number("median of the same")
    bpe_voxels: float = number("number of voxels measured")
    bpe_reason: str = text("why it is undefined")


def text_of(numbers: tuple[float, ...] | None) -> str:
    """Return numbers as the text of one cell, with seven digits; "" for None.

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
