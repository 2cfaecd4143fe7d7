"""`Engine`: a loaded model of any kind, and `EngineInput`, its input for one case."""

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
    """One case as input of a network.

    Parameters
    ----------
    arrays
        One ``(z, y, x)`` volume for each of the model's channels, on `grid`.
    region
        Box of the case outside which everything becomes background; None for the whole case.
    deadline
        Value of ``time.monotonic()`` at which to stop; None for no limit.
    """

    arrays: Sequence[NDArray[Any]]
    grid: Grid
    region: Box | None = None
    deadline: float | None = None


class Runner(Protocol):
    """Anything that runs a network: the engine in this process, or a worker's client."""

    def predict(self, given: EngineInput) -> EngineResult:
        """Label one case; every tile reports progress.

        Only tiles that overlap the region are computed; inside it the labels are those of the whole
        volume.

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
        """Release the network and the memory of a GPU."""
        ...


class Engine(Runner, Protocol):
    """A model that is loaded once, stays loaded, and runs on any number of cases."""

    settings: EngineSettings

    def plan(self, grid: Grid, region: Box | None = None) -> TilePlan:
        """Return the cost of a case on `grid`."""
        ...

    def run_one_tile(self) -> None:
        """Run the network once on an empty tile, to measure its time."""
        ...


@dataclass(slots=True)
class Laps:
    """Seconds of each stage; `done` lists finished stages as (name, seconds)."""

    last: float = field(default_factory=time.perf_counter)
    done: list[tuple[str, float]] = field(default_factory=list)

    def add(self, name: str) -> None:
        """End a stage now."""
        now = time.perf_counter()
        self.done.append((name, round(now - self.last, 3)))
        self.last = now
