"""Treatment of a pre-contrast scan that was acquired more than once."""

from dataclasses import replace
from enum import StrEnum

import numpy as np

from napari_mamamia.core.case import Case


class RepeatedPre(StrEnum):
    """How S0 is computed from repeated pre-contrast phases.

    With LEAVE_OUT, S0 is the last pre-contrast phase, as in an import. With AVERAGE, S0 is the mean
    of the pre-contrast phases. Under both rules, no pre-contrast phase is early or late. With KEEP,
    S0 is phase 0, and all later phases count as post-contrast, regardless of the voxels.
    """

    LEAVE_OUT = "leave-out"
    AVERAGE = "average"
    KEEP = "keep"


def with_pre(case: Case, how: RepeatedPre) -> Case:
    """Return the case with its repeated pre-contrast phases treated as requested.

    A case with one pre-contrast phase is returned unchanged. S0 becomes phase 0 of the signals.
    AVERAGE returns float32.

    Parameters
    ----------
    case
        The case with all phases.
    how
        The treatment of repeated pre-contrast scans.
    """
    if case.n_before < 2:
        return case
    if how is RepeatedPre.KEEP:
        return replace(case, n_before=1, contrast=f"{case.contrast} (unchanged)")
    last = case.n_before - 1
    if how is RepeatedPre.LEAVE_OUT:
        signal = case.signal.copy()
        signal[0] = signal[last]
        note = f"S0 is phase {last}, the last phase before contrast"
    else:
        signal = case.signal.astype(np.float32)
        signal[0] = case.signal[: case.n_before].mean(axis=0, dtype=np.float64)
        note = "S0 is the mean of the phases before contrast"
    return replace(case, signal=signal, contrast=f"{case.contrast}; {note}")
