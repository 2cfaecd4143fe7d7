"""Interfaces of a loaded model (`Engine`) and of its input for one case (`EngineInput`)."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.grid import Grid
from napari_mamamia.segmentation.model.engine_settings import EngineResult, EngineSettings, TilePlan


@dataclass(frozen=True, slots=True, eq=False)
class EngineInput:
    """One case as the input of a network.

    Parameters
    ----------
    arrays
        One volume ``(z, y, x)`` on `grid` for each channel of the model.
    region
        The box outside which every voxel becomes background; None for the whole case.
    deadline
        The value of ``time.monotonic()`` at which to stop; None for no limit.
    """

    arrays: Sequence[NDArray[Any]]
    grid: Grid
    region: Box | None = None
    deadline: float | None = None


class Runner(Protocol):
    """Object that runs a network: an engine in this process, or the client of a worker process."""

    def predict(self, given: EngineInput) -> EngineResult:
        """Label one case, and report progress for every tile.

        Only tiles that overlap the region are computed; inside the region, labels are the same as
        for the whole volume.

        Raises
        ------
        ModelError
            If the number of volumes differs from the model's channels, or the model cannot run.
        OverLimitError
            If no result is complete at the deadline.
        CaseError
            If the volumes are all zero or not finite.
        """
        ...

    def close(self) -> None:
        """Release the network and its GPU memory."""
        ...


class Engine(Runner, Protocol):
    """A model that is loaded once and can then be run on any number of cases."""

    settings: EngineSettings

    def plan(self, grid: Grid, region: Box | None = None) -> TilePlan:
        """Return the cost of a case on `grid`."""
        ...

    def run_one_tile(self) -> None:
        """Run the network once on an empty tile to measure the time."""
        ...


@dataclass(slots=True)
class Laps:
    """Duration of each stage of a run in s, as (name, seconds) in `done`."""

    last: float = field(default_factory=time.perf_counter)
    done: list[tuple[str, float]] = field(default_factory=list)

    def add(self, name: str) -> None:
        """End the current stage and store its duration."""
        now = time.perf_counter()
        self.done.append((name, round(now - self.last, 3)))
        self.last = now
