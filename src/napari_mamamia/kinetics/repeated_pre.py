"""What becomes of a scan before contrast that was taken more than once."""

from dataclasses import replace
from enum import StrEnum

import numpy as np

from napari_mamamia.core.case import Case


class RepeatedPre(StrEnum):
    """LEAVE_OUT: S0 is the last before contrast, as in an import. AVERAGE: S0 is their mean.

    In both none of them is early or late. KEEP: S0 is phase 0, and all phases after it count as
    after contrast, whatever the pixels show.
    """

    LEAVE_OUT = "leave-out"
    AVERAGE = "average"
    KEEP = "keep"


def with_pre(case: Case, how: RepeatedPre) -> Case:
    """Return the case with its scans before contrast treated as chosen; as it is with one.

    S0 stands as phase 0 of the signals. AVERAGE gives float32.
    """
    if case.n_before < 2:
        return case
    if how is RepeatedPre.KEEP:
        return replace(case, n_before=1, contrast=f"{case.contrast} (kept as it is)")
    last = case.n_before - 1
    if how is RepeatedPre.LEAVE_OUT:
        signal = case.signal.copy()
        signal[0] = signal[last]
        note = f"S0 is phase {last}, the last of those before"
    else:
        signal = case.signal.astype(np.float32)
        signal[0] = case.signal[: case.n_before].mean(axis=0, dtype=np.float64)
        note = "S0 is the mean of those before"
    return replace(case, signal=signal, contrast=f"{case.contrast}; {note}")
