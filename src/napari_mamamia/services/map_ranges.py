"""Ranges of values that the colours of a kinetic map stand for: fixed ones, or that of the map."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.services.show_kinetics import MapKind, ShownMap

__all__ = ["MapRange", "auto_limits", "map_ranges", "ranged"]

_AUTO_PERCENTILES: Final = (1.0, 99.0)
_MOST_VALUES: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class MapRange:
    """A range by its name; `limits` None is the 1st to 99th percentile of the map's own values."""

    name: str
    limits: tuple[float, float] | None


_AUTO: Final = MapRange("auto, 1–99 %", None)
_PERCENT: Final = tuple(MapRange(f"0–{top} %", (0.0, float(top))) for top in (300, 100, 200, 400))
_RANGES: Final = {
    MapKind.PE: (*_PERCENT, _AUTO),
    MapKind.PEAK: (*_PERCENT, _AUTO),
    MapKind.SER: (MapRange("0–2", (0.0, 2.0)), _AUTO),
    MapKind.WASH_IN: (MapRange("0–3 %/s", (0.0, 3.0)), _AUTO),
    MapKind.WASH_OUT: (MapRange("−20–0 %/min", (-20.0, 0.0)), _AUTO),
}


def map_ranges(kind: MapKind) -> tuple[MapRange, ...]:
    """Return the ranges that a map can have, its usual one first; none for a map of classes."""
    return _RANGES.get(kind, ())


def ranged(shown: ShownMap, wanted: MapRange | None) -> ShownMap:
    """Return a map with a fixed range; the same map for None and for its own range."""
    if wanted is None or wanted.limits is None:
        return shown
    return replace(shown, limits=wanted.limits)


def auto_limits(shown: ShownMap) -> Job[tuple[float, float]]:
    """Return a job for the 1st and 99th percentile of a map that was filled; NaN left out.

    Of more than a million values every n-th is looked at. Without two different ones the map's own
    limits come back.
    """
    yield Progress(0, 1, "Range of the map")
    step = max(1, shown.array.size // _MOST_VALUES)
    values = shown.array.ravel()[::step]
    values = values[np.isfinite(values)]
    yield Progress(1, 1)
    if not values.size:
        return shown.limits
    low, high = (float(end) for end in np.percentile(values, _AUTO_PERCENTILES))
    return (low, high) if low < high else shown.limits
