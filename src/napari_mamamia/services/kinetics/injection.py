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
    """Return the clock of a case from its injection time.

    Parameters
    ----------
    case
        The case with its phases.
    source
        "header", or a folder of vessel or heart masks.

    Raises
    ------
    CaseError
        If the header has no injection time, the case has no mask, or its curve shows no arrival.
    FormatError, GridMismatchError
        If the mask is damaged, or on another grid.
    """
    if source == HEADER:
        if case.scan.injection_s is None:
            raise CaseError(
                f"expected the time of the injection in the headers of {case.case_id}, but found "
                "none; give it in seconds, or choose a different timing",
                remedies=(Remedy("injection", ("SECONDS",)),),
            )
        return TimingRule(Timing.INJECTION, case.scan.injection_s)
    arrival = vessel_arrival_s(case, source)
    half = temporal_resolution_s(known_times(case.times_s)[0] or (), case.scan.resolution_s) / 2
    return TimingRule(Timing.INJECTION, arrival + (0.0 if math.isnan(half) else half))


def vessel_arrival_s(case: Case, folder: str) -> float:
    """Return the time of the bolus arrival in a case's vessel or heart, in s of the case's clock.

    Parameters
    ----------
    case
        The case with its phases.
    folder
        The folder of masks.

    Raises
    ------
    CaseError
        If `folder` has no mask of the case, or its curve shows no arrival.
    FormatError, GridMismatchError
        If the mask is damaged, or on another grid.
    """
    path = masks_of_cases(Path(folder), [case.case_id]).get(case_key(case.case_id))
    if path is None:
        raise CaseError(
            f"expected a vessel or heart mask for {case.case_id} in {folder}, but found none; add "
            "one, or give the injection time in seconds"
        )
    vessel = read_mask(path, case)
    if not vessel.any():
        raise CaseError(
            f"expected a vessel or heart mask for {case.case_id}, but the one in {folder} is "
            "empty; draw it, or give the injection time in seconds"
        )
    unmeasured_voxels(case.signal, vessel, f"the vessel's mask of {case.case_id}")
    curve = region_curve(case.signal, vessel)
    return bolus_arrival_s(case.times_s, tuple(float(value) for value in curve))
