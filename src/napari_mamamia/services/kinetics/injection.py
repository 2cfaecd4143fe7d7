"""The injection time of a case, from the header or from the bolus in a vessel."""

import math
from pathlib import Path
from typing import Final

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import CaseError, Remedy
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.kinetics.bolus import bolus_arrival_s
from napari_mamamia.kinetics.curves import region_curve
from napari_mamamia.kinetics.sound_signal import unmeasured_voxels
from napari_mamamia.kinetics.time_axis import Timing, TimingRule, known_times, temporal_resolution_s
from napari_mamamia.services.batch.work import masks_of_cases
from napari_mamamia.services.case.open_case import read_mask

HEADER: Final = "header"


def injection_rule(case: Case, source: str) -> TimingRule:
    """Return the timing rule of a case based on its injection time.

    Parameters
    ----------
    case
        The case with its phases.
    source
        "header", or the path of a folder with vessel or heart masks.

    Raises
    ------
    CaseError
        If the header has no injection time, the case has no mask, or the curve shows no contrast
        arrival.
    FormatError, GridMismatchError
        If the mask is damaged, or on a different grid.
    """
    if source == HEADER:
        if case.scan.injection_s is None:
            raise CaseError(
                f"expected the headers of {case.case_id} to state the injection time, but found "
                "none; enter the injection time in seconds, or choose a different timing",
                remedies=(Remedy("injection", ("SECONDS",)),),
            )
        return TimingRule(Timing.INJECTION, case.scan.injection_s)
    arrival = vessel_arrival_s(case, source)
    half = temporal_resolution_s(known_times(case.times_s)[0] or (), case.scan.resolution_s) / 2
    return TimingRule(Timing.INJECTION, arrival + (0.0 if math.isnan(half) else half))


def vessel_arrival_s(case: Case, folder: str) -> float:
    """Return the time of bolus arrival in a vessel or the heart, in s on the case's time axis.

    Parameters
    ----------
    case
        The case with its phases.
    folder
        The folder with the masks.

    Raises
    ------
    CaseError
        If `folder` has no mask of the case, or the curve shows no contrast arrival.
    FormatError, GridMismatchError
        If the mask is damaged, or on a different grid.
    """
    path = masks_of_cases(Path(folder), [case.case_id]).get(case_key(case.case_id))
    if path is None:
        raise CaseError(
            f"expected {folder} to have a vessel or heart mask for {case.case_id}, but found "
            "none; add one, or enter the injection time in seconds"
        )
    vessel = read_mask(path, case)
    if not vessel.any():
        raise CaseError(
            f"expected the vessel or heart mask for {case.case_id} in {folder} to have foreground "
            "voxels, but it is empty; draw the mask, or enter the injection time in seconds"
        )
    unmeasured_voxels(case.signal, vessel, f"the vessel's mask of {case.case_id}")
    curve = region_curve(case.signal, vessel)
    return bolus_arrival_s(case.times_s, tuple(float(value) for value in curve))
