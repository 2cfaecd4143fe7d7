"""Value ranges of a kinetic map's colours: fixed ranges, or the range of the map itself."""

from dataclasses import replace
from typing import Final

import numpy as np

from napari_mamamia.core.progress import report_progress
from napari_mamamia.kinetics.map_kinds import MAPS, MapKind, MapRange
from napari_mamamia.services.kinetics.show_kinetics import ShownMap

_AUTO_PERCENTILES: Final = (1.0, 99.0)
_MOST_VALUES: Final = 1_000_000


def map_ranges(kind: MapKind) -> tuple[MapRange, ...]:
    """Return the ranges of a map, the default first; none for a map of classes."""
    return MAPS[kind].ranges if kind in MAPS else ()


def ranged(shown: ShownMap, wanted: MapRange | None) -> ShownMap:
    """Return a map with a fixed range; unchanged for None and for its own range."""
    if wanted is None or wanted.limits is None:
        return shown
    return replace(shown, limits=wanted.limits)


def auto_limits(shown: ShownMap) -> tuple[float, float]:
    """Return the 1st and 99th percentile of a complete map, without NaN.

    Of more than a million values every n-th is used. If the two percentiles are equal, the map's
    own limits are returned.
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
