"""`Engine`: a loaded model of any kind, and `EngineInput`, the one case that it is given."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.grid import Grid
from napari_mamamia.segmentation.model.engine_settings import (
    EngineResult,
    EngineSettings,
    TilePlan,
)


@dataclass(frozen=True, slots=True, eq=False)
class EngineInput:
    """One case as a network takes it.

    Parameters
    ----------
    arrays
        One ``(z, y, x)`` volume for each of the model's channels, on `grid`.
    region
        Box of the case outside which everything becomes background; None for no such box.
    deadline
        Value of ``time.monotonic()`` at which to stop; None for no limit.
    """

    arrays: Sequence[NDArray[Any]]
    grid: Grid
    region: Box | None = None
    deadline: float | None = None


class Runner(Protocol):
    """Anything that runs a network: the engine in this process, or a worker's stand-in."""

    def predict(self, given: EngineInput) -> EngineResult:
        """Label one case; progress comes with every tile.

        Only tiles that reach into the region are computed; inside it the labels are those of the
        whole volume.

        Raises
        ------
        ModelError
            If the volumes are not as many as the model's channels, or the model cannot run.
        OverLimitError
            If nothing was whole at the deadline.
        CaseError
            If the volumes are all zero or not finite.
        """
        ...

    def close(self) -> None:
        """Let go of the network, and give a graphics card its memory back."""
        ...


class Engine(Runner, Protocol):
    """A model loaded once, kept warm, and run on any number of cases."""

    settings: EngineSettings

    def plan(self, grid: Grid, region: Box | None = None) -> TilePlan:
        """Return what a case on `grid` would cost."""
        ...

    def run_one_tile(self) -> None:
        """Run the network once on an empty tile, to measure how long it takes."""
        ...
