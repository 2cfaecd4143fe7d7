"""Hosts, which keep one model loaded and run it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import part, report_progress
from napari_mamamia.segmentation.model.card import ModelCard
from napari_mamamia.segmentation.model.device import is_device_failure, lacks_memory
from napari_mamamia.segmentation.model.engine import Engine, EngineInput
from napari_mamamia.segmentation.model.engine_settings import EngineResult, EngineSettings, TilePlan
from napari_mamamia.segmentation.model.kinds import NETWORK_KINDS
from napari_mamamia.segmentation.model.planner import OutOfMemoryError
from napari_mamamia.segmentation.run.engines import load_engine

_LOADED: Final = 30  # of 1000 steps


class Host(Protocol):
    """Protocol of an object that runs models and keeps one model loaded at a time."""

    def plan(
        self, card: ModelCard, settings: EngineSettings, grid: Grid, region: Box | None
    ) -> TilePlan:
        """Return the cost of a case on `grid`."""
        ...

    def time_tile(self, card: ModelCard, settings: EngineSettings) -> float:
        """Return the time in seconds that one network takes for one tile."""
        ...

    def predict(
        self,
        card: ModelCard,
        settings: EngineSettings,
        given: EngineInput,
        *,
        kill_at: float | None = None,
    ) -> EngineResult:
        """Label one case; at the time `kill_at`, the run is stopped whatever its state."""
        ...

    def close(self) -> None:
        """Release the model; if it has a process of its own, end the process."""
        ...


@dataclass(slots=True, eq=False)
class EngineHost:
    """Host that runs models in this process, where `kill_at` has no effect."""

    _engine: Engine | None = field(default=None, repr=False)
    _key: tuple[Any, ...] = field(default=(), repr=False)

    def plan(
        self, card: ModelCard, settings: EngineSettings, grid: Grid, region: Box | None
    ) -> TilePlan:
        """Return the cost of a case on `grid`."""
        engine = self._prepare_engine(card, settings)
        return engine.plan(grid, region)

    def time_tile(self, card: ModelCard, settings: EngineSettings) -> float:
        """Return the time in seconds of a tile, measured after a first tile as warm-up."""
        with _device_errors(card):
            engine = self._prepare_engine(card, settings)
            for turn in range(2):
                report_progress(turn, 2, "Measuring a tile")
                started = time.perf_counter()
                engine.run_one_tile()
        return time.perf_counter() - started

    def predict(
        self,
        card: ModelCard,
        settings: EngineSettings,
        given: EngineInput,
        *,
        kill_at: float | None = None,
    ) -> EngineResult:
        """Label one case as in `Engine.predict`.

        Raises
        ------
        OutOfMemoryError
            If the run does not fit into memory; the engine raises all other errors.
        """
        with _device_errors(card):
            with part(0, _LOADED, 1000):
                engine = self._prepare_engine(card, settings)
            with part(_LOADED, 1000, 1000):
                return engine.predict(given)

    def close(self) -> None:
        """Release the model."""
        if self._engine is not None:
            self._engine.close()
        self._engine, self._key = None, ()

    def _prepare_engine(self, card: ModelCard, settings: EngineSettings) -> Engine:
        """Return the engine for `settings`; it is reloaded only if the network changes."""
        key = _make_key(card, settings)
        if self._engine is None or self._key != key:
            self.close()
            self._engine = load_engine(card, settings)
            self._key = key
        else:
            report_progress(0, 1, "Loaded")
            self._engine.settings = settings
        return self._engine


@dataclass(slots=True, eq=False)
class HostedRunner:
    """A `Runner` for one model with fixed settings on a shared host.

    `last` is the latest result, from which the speed is computed.
    """

    host: Host
    card: ModelCard
    settings: EngineSettings
    kill_at: float | None = None
    last: EngineResult | None = None

    def predict(self, given: EngineInput) -> EngineResult:
        """Label one case and store the result in `last`."""
        self.last = None
        self.last = self.host.predict(self.card, self.settings, given, kill_at=self.kill_at)
        return self.last

    def close(self) -> None:
        """Do nothing, because whoever created the host closes it."""


def _make_key(card: ModelCard, settings: EngineSettings) -> tuple[Any, ...]:
    """Return the settings that determine which network is loaded."""
    fixed = replace(settings, step=0.5, mirroring=True, most_copies=None, keep_probability=False)
    if settings.backend == "torch" and card.kind not in NETWORK_KINDS:
        fixed = replace(fixed, precision="fp32", threads=None)
    return (card.path, card.inner, card.sha256, card.network, fixed)


@contextmanager
def _device_errors(card: ModelCard) -> Iterator[None]:
    """Convert memory, GPU and driver errors to model errors that name the model."""
    try:
        yield
    except (ModelError, MemoryError, RuntimeError) as error:
        line = next(iter(str(error).strip().splitlines()), "no reason given")
        if isinstance(error, OutOfMemoryError):
            raise
        if lacks_memory(error):
            raise OutOfMemoryError(
                f"expected {card.name} to fit into the memory, but there was not enough ({line}): "
                "close other programs, or choose the device cpu"
            ) from error
        if is_device_failure(error) and not isinstance(error, ModelError):
            raise ModelError(
                f"expected the GPU to run {card.name}, but it failed ({line}): start the program "
                "again, update the GPU's driver, or choose the device cpu"
            ) from error
        raise
