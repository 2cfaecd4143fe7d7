"""Summarise the time, memory and device of a model's predictions from their provenance."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.records import CaseScore


@dataclass(frozen=True, slots=True)
class Cost:
    """Median and largest value over the `n` cases that have a value; nan without such a case."""

    median: float
    worst: float
    n: int


@dataclass(frozen=True, slots=True)
class PredictionCosts:
    """Seconds per case, peak resident memory of the process, and number of cases per device.

    Memory is the peak of the whole process up to that case, so it never decreases within one run.
    Cases without a recorded device are not counted.
    """

    seconds: Cost
    peak_memory_bytes: Cost
    devices: tuple[tuple[str, int], ...]


def prediction_costs(rows: Sequence[CaseScore]) -> PredictionCosts:
    """Return the cost of the predictions in a table of cases."""
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
