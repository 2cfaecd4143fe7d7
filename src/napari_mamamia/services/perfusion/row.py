"""One case's perfusion as a flat row of a table; every column with its unit and definition."""

import math
from dataclasses import dataclass, field, fields
from typing import Any

from napari_mamamia.services.kinetic_row import OK

__all__ = ["PerfusionRow", "perfusion_columns"]


def _text(definition: str, default: str = "") -> Any:
    return field(default=default, metadata={"definition": definition})


def _number(definition: str) -> Any:
    return field(default=math.nan, metadata={"definition": definition})


@dataclass(frozen=True, slots=True)
class PerfusionRow:
    """The row of `perfusion.csv`; a number that is undefined is nan, and an empty cell."""

    case_id: str
    status: str = _text("ok, or failed with the reason", OK)
    reason: str = _text("why the case failed or was refused")
    warning: str = _text("what to know before its numbers are used")
    mask: str = _text("whose mask was measured: reference, or the folder's name")
    model: str = _text("tofts or extended-tofts")
    arterial_input: str = _text("whose curve, and the haematocrit or dose it was used with")
    arrival_s: float = _number("arrival of contrast, s since phase 0 started")
    arrival_source: str = _text("where the arrival comes from")
    relaxivity_per_s_mm: float = _number("r1 of the agent, 1/(s mM)")
    t10_source: str = _text("where T1 before contrast comes from")
    t10_median_s: float = _number("median T1 before contrast in the mask, s")
    repetition_ms: float = _number("TR of the dynamic series, ms")
    flip_degrees: float = _number("its nominal flip angle, degrees")
    scan_source: str = _text("where TR and flip angle come from")
    n_phases: float = _number("phases of the case")
    phases_before: float = _number("of them up to the arrival: the baseline")
    spacing_s: float = _number("longest step between phases after phase 1, s")
    last_after_arrival_s: float = _number("time of the last phase after arrival, s")
    n_voxels: float = _number("voxels of the mask")
    n_fitted: float = _number("of them fitted; the others are NaN in every map")
    n_no_concentration: float = _number("saturated, not positive, or T1 unknown")
    n_no_uptake: float = _number("Ktrans not positive")
    n_unresolved: float = _number(
        "kep outside 0.001 to 60 1/min, Ktrans above 5 1/min, ve or vp above 1"
    )
    ktrans_median_per_min: float = _number("median of the fitted voxels, least squares, 1/min")
    ktrans_p10_per_min: float = _number("10th percentile of them, 1/min")
    ktrans_p90_per_min: float = _number("90th percentile of them, 1/min")
    ve_median: float = _number("median of them, share of the volume")
    vp_median: float = _number("median of them, share of the volume; empty by tofts")
    kep_median_per_min: float = _number("median of them, 1/min")
    ktrans_of_mean_per_min: float = _number("Ktrans of the mean curve, 1/min")
    ve_of_mean: float = _number("ve of the mean curve")
    vp_of_mean: float = _number("vp of the mean curve; empty by tofts")
    kep_of_mean_per_min: float = _number("kep of the mean curve, 1/min")
    residual_percent: float = _number("root mean square of its fit's residual, % of its peak")
    n_fitted_volume: float = _number("voxels of the whole volume with a linear or refined fit")
    maps_sha256: str = _text("SHA-256 of each map written")


def perfusion_columns() -> tuple[tuple[str, str], ...]:
    """Return each column's name and what it holds."""
    return tuple(
        (column.name, str(column.metadata.get("definition", "id of the case")))
        for column in fields(PerfusionRow)
    )
