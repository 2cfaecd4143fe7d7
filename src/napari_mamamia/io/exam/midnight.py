"""Studies that pass midnight and whose images do not tell the day, or all tell the same one."""

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import numpy as np

from napari_mamamia.io.dicom.slices import Clock, Slice

__all__ = ["over_midnight"]

_DAY_S: Final = 86400.0
_MOST_S: Final = 6 * 3600.0
"""A study is shorter than this. Our own choice: a longer one may have a morning and an evening."""


def over_midnight(slices: Sequence[Slice]) -> tuple[list[Slice], list[str]]:
    """Return planes whose times after midnight count on from the day before, and what was done.

    Only where all planes tell one day, or none, and all times lie within six hours around midnight.
    """
    moved = [c for c in (Clock.ACQUISITION_TIME, Clock.CONTENT_TIME) if _passes(slices, c)]
    if not moved:
        return list(slices), []
    told = (
        f"{' and '.join(moved)} pass midnight, though no date says so: the times after it count on "
        "from those before it"
    )
    return [_moved(piece, moved) for piece in slices], [told]


def _passes(slices: Sequence[Slice], clock: Clock) -> bool:
    times = np.unique([piece.clocks[clock] for piece in slices if clock in piece.clocks])
    if len(times) < 2 or times[0] // _DAY_S != times[-1] // _DAY_S:
        return False
    return bool(np.diff(times).max() >= _DAY_S - _MOST_S)


def _moved(piece: Slice, clocks: Sequence[Clock]) -> Slice:
    """Return the plane with times of the morning moved to the next day."""
    found = dict(piece.clocks)
    for clock in clocks:
        if clock in found and found[clock] % _DAY_S < _DAY_S / 2:
            found[clock] += _DAY_S
            if clock is Clock.ACQUISITION_TIME and Clock.ACQUIRED in found:
                found[Clock.ACQUIRED] += _DAY_S
    return replace(piece, clocks=MappingProxyType(found))
