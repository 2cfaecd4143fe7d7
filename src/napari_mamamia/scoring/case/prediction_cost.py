"""What the predictions of a model cost, as their provenance says: time, memory, device."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.records import CaseScore


@dataclass(frozen=True, slots=True)
class Cost:
    """Median and worst (largest) over the `n` cases that tell it; nan where none does."""

    median: float
    worst: float
    n: int


@dataclass(frozen=True, slots=True)
class PredictionCosts:
    """Seconds for a case, highest resident memory of the process, and cases by device.

    Memory is the whole process' highest up to the case, so in a run over many cases it never falls
    from case to case. A case that does not tell its device is counted nowhere.
    """

    seconds: Cost
    peak_memory_bytes: Cost
    devices: tuple[tuple[str, int], ...]


def prediction_costs(rows: Sequence[CaseScore]) -> PredictionCosts:
    """Return what the predictions of a table's cases cost."""
    devices = Counter(row.device for row in rows if row.device)
    return PredictionCosts(
        _summarise_cost(np.array([row.prediction_seconds for row in rows], dtype=np.float64)),
        _summarise_cost(np.array([row.peak_memory_bytes for row in rows], dtype=np.float64)),
        tuple(devices.most_common()),
    )


def _summarise_cost(values: NDArray[np.float64]) -> Cost:
    numbers = values[~np.isnan(values)]
    if not numbers.size:
        return Cost(float("nan"), float("nan"), 0)
    return Cost(float(np.median(numbers)), float(numbers.max()), numbers.size)
