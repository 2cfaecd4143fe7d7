"""Fill the ultrafast columns of a case's row, or the reason why its phases do not allow them."""

import math
from dataclasses import replace

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import CaseError
from napari_mamamia.kinetics.contrast_curve import ContrastCurve
from napari_mamamia.kinetics.ultrafast import ultrafast_numbers
from napari_mamamia.services.kinetics.injection import vessel_arrival_s
from napari_mamamia.services.kinetics.row import KineticRow


def with_ultrafast(
    row: KineticRow, case: Case, curve: ContrastCurve, vessels: str, pe_at_s: float
) -> KineticRow:
    """Return the row with the ultrafast measures of the lesion's mean curve, or with the reason.

    `vessels` is the folder of vessel masks, whose arrival is the origin of the time to enhancement;
    "" for none. If the vessel's curve shows no arrival, the time to enhancement is undefined, with
    the reason.
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
    """Return a row's ultrafast measures as text; without measures the reason, if `is_asked`.

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
        return None, "no time to enhancement: there is no mask of the aorta or heart"
    try:
        return vessel_arrival_s(case, vessels), ""
    except CaseError as error:
        return None, f"no time to enhancement: {error}"
