"""What becomes of a scan before contrast that was taken more than once."""

from dataclasses import replace
from enum import StrEnum

import numpy as np

from napari_mamamia.core.case import Case

__all__ = ["RepeatedPre", "with_pre"]


class RepeatedPre(StrEnum):
    """LEAVE_OUT: phase 0 counts, the others are neither early nor late. AVERAGE: S0 is their mean.

    KEEP: all phases after phase 0 count as after contrast, whatever the pixels show.
    """

    LEAVE_OUT = "leave-out"
    AVERAGE = "average"
    KEEP = "keep"


def with_pre(case: Case, how: RepeatedPre) -> Case:
    """Return the case with its scans before contrast treated as chosen; as it is with one.

    AVERAGE gives float32 signals.
    """
    if case.n_before < 2 or how is RepeatedPre.LEAVE_OUT:
        return case
    if how is RepeatedPre.KEEP:
        return replace(case, n_before=1, contrast=f"{case.contrast} (kept as it is)")
    signal = case.signal.astype(np.float32)
    signal[0] = case.signal[: case.n_before].mean(axis=0, dtype=np.float64)
    return replace(case, signal=signal, contrast=f"{case.contrast}; S0 is the mean of those before")
