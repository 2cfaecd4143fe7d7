"""The ultrafast columns of a case's row: what its phases are close enough for, and why not."""

import math
from dataclasses import replace

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import CaseError
from napari_mamamia.kinetics.contrast_curve import ContrastCurve
from napari_mamamia.kinetics.ultrafast import ultrafast_numbers
from napari_mamamia.services.injection import vessel_arrival_s
from napari_mamamia.services.kinetic_row import KineticRow

__all__ = ["with_ultrafast"]


def with_ultrafast(
    row: KineticRow, case: Case, curve: ContrastCurve, vessels: str, pe_at_s: float
) -> KineticRow:
    """Return the row with the measures of the lesion's mean curve, or the reason why not.

    `vessels` is the folder of masks that time to enhancement counts from, "" for none; a vessel
    whose curve shows no arrival leaves that measure out, and says so.
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


def _vessel_arrival(case: Case, vessels: str) -> tuple[float | None, str]:
    if not vessels:
        return None, "no time to enhancement: no mask of the aorta or heart was given"
    try:
        return vessel_arrival_s(case, vessels), ""
    except CaseError as error:
        return None, f"no time to enhancement: {error}"
