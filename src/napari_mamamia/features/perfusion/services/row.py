"""A case's perfusion as a table row, with the unit and definition of every column."""

from dataclasses import dataclass

from napari_mamamia.services.batch.row_table import OK, number, text


@dataclass(frozen=True, slots=True)
class PerfusionRow:
    """A row of `perfusion.csv`; undefined numbers are NaN and are written as empty cells."""

    case_id: str
    status: str = text("ok, or failed with the reason", OK)
    reason: str = text("why the case failed or was rejected")
    warning: str = text("what to check before its numbers are used")
    mask: str = text("source of the measured mask: reference, or the name of the folder")
    model: str = text("tofts or extended-tofts")
    arterial_input: str = text("the arterial input, with its haematocrit or dose")
    arrival_s: float = number("arrival of contrast, s since the start of phase 0")
    arrival_source: str = text("source of the arrival")
    relaxivity_per_s_mm: float = number("r1 of the agent, 1/(s mM)")
    t10_source: str = text("source of T1 before contrast")
    t10_median_s: float = number("median T1 before contrast in the mask, s")
    repetition_ms: float = number("TR of the dynamic series, ms")
    flip_degrees: float = number("nominal flip angle of the dynamic series, degrees")
    scan_source: str = text("source of TR and flip angle")
    n_phases: float = number("phases of the case")
    phases_before: float = number("phases up to the arrival: the baseline")
    spacing_s: float = number("longest step between phases after phase 1, s")
    last_after_arrival_s: float = number("time of the last phase after arrival, s")
    n_voxels: float = number("voxels of the mask")
    n_fitted: float = number("fitted voxels of the mask; all other voxels are NaN in every map")
    n_no_concentration: float = number(
        "voxels whose signal is saturated or not positive, or whose T1 is unknown"
    )
    n_no_uptake: float = number("voxels whose Ktrans is not positive")
    n_unresolved: float = number(
        "voxels with kep outside 0.001 to 60 1/min, Ktrans above 5 1/min, or ve or vp above 1"
    )
    ktrans_median_per_min: float = number(
        "median Ktrans of the fitted voxels, least squares, 1/min"
    )
    ktrans_p10_per_min: float = number("10th percentile of Ktrans in the fitted voxels, 1/min")
    ktrans_p90_per_min: float = number("90th percentile of Ktrans in the fitted voxels, 1/min")
    ve_median: float = number("median ve of the fitted voxels, volume fraction")
    vp_median: float = number("median vp of the fitted voxels, volume fraction; empty for tofts")
    kep_median_per_min: float = number("median kep of the fitted voxels, 1/min")
    ktrans_of_mean_per_min: float = number("Ktrans of the mean curve, 1/min")
    ve_of_mean: float = number("ve of the mean curve")
    vp_of_mean: float = number("vp of the mean curve; empty for tofts")
    kep_of_mean_per_min: float = number("kep of the mean curve, 1/min")
    residual_percent: float = number(
        "root mean square of the residual of the mean curve's fit, % of its peak"
    )
    n_fitted_volume: float = number("voxels of the whole volume with a linear or refined fit")
    maps_sha256: str = text("SHA-256 of each written map")
