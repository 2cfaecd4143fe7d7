"""Ranges of values that the colours of a kinetic map stand for: fixed ones, or that of the map."""

from dataclasses import replace
from typing import Final

import numpy as np

from napari_mamamia.core.progress import report_progress
from napari_mamamia.kinetics.map_kinds import MAPS, MapKind, MapRange
from napari_mamamia.services.kinetics.show_kinetics import ShownMap

_AUTO_PERCENTILES: Final = (1.0, 99.0)
_MOST_VALUES: Final = 1_000_000


def map_ranges(kind: MapKind) -> tuple[MapRange, ...]:
    """Return the ranges that a map can have, its usual one first; none for a map of classes."""
    return MAPS[kind].ranges if kind in MAPS else ()


def ranged(shown: ShownMap, wanted: MapRange | None) -> ShownMap:
    """Return a map with a fixed range; the same map for None and for its own range."""
    if wanted is None or wanted.limits is None:
        return shown
    return replace(shown, limits=wanted.limits)


def auto_limits(shown: ShownMap) -> tuple[float, float]:
    """Return the 1st and 99th percentile of a map that was filled; NaN left out.

    Of more than a million values every n-th is looked at. Without two different ones the map's own
    limits come back.
    """
    report_progress(0, 1, "Range of the map")
    step = max(1, shown.array.size // _MOST_VALUES)
    values = shown.array.ravel()[::step]
    values = values[np.isfinite(values)]
    report_progress(1, 1)
    if not values.size:
        return shown.limits
    low, high = (float(end) for end in np.percentile(values, _AUTO_PERCENTILES))
    return (low, high) if low < high else shown.limits
