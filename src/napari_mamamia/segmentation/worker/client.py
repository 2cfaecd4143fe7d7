"""`Worker`: the model's process as its caller sees it. Torch never comes into this process."""

import threading
import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import PACE_S, Progress, forward_progress, report_progress
from napari_mamamia.segmentation.model.card import ModelCard
from napari_mamamia.segmentation.model.engine_settings import EngineResult, EngineSettings, TilePlan
from napari_mamamia.segmentation.model.planner import OverLimitError
from napari_mamamia.segmentation.run.engines import require_installed
from napari_mamamia.segmentation.worker import wire
from napari_mamamia.segmentation.worker.process import IdleEndError, Message, WorkerProcess
from napari_mamamia.segmentation.worker.shared_arrays import (
    fetch,
    share,
    shared_folder,
)

_IDLE_S: Final = 600.0


class Worker:
    """A process of its own for models; implements `engine_host.Host`.

    It is started at the first request, serves one at a time, ends after `idle_s` seconds without
    work, and is started again when it is needed. Its methods may be called from any thread.
    """

    def __init__(self, idle_s: float = _IDLE_S) -> None:
        self._process = WorkerProcess(idle_s)
        self._busy = threading.Lock()
        self._number = 0

    @property
    def pid(self) -> int | None:
        """Number of the process, None while there is none."""
        return self._process.pid

    def plan(
        self, card: ModelCard, settings: EngineSettings, grid: Grid, region: Box | None
    ) -> TilePlan:
        """Say what a case on `grid` would cost."""
        request = {
            "do": "plan",
            "grid": wire.grid_on_wire(grid),
            "region": wire.region_on_wire(region),
        }
        answer = self._asked(card, settings, request)
        return wire.tiles_from(answer["tiles"])

    def time_tile(self, card: ModelCard, settings: EngineSettings) -> float:
        """Measure one tile through one network, in seconds."""
        answer = self._asked(card, settings, {"do": "time"})
        return float(answer["seconds"])

    def predict(
        self,
        card: ModelCard,
        settings: EngineSettings,
        arrays: Sequence[NDArray[Any]],
        grid: Grid,
        *,
        region: Box | None = None,
        deadline: float | None = None,
        kill_at: float | None = None,
    ) -> EngineResult:
        """Label one case, as `Engine.predict` does.

        Raises
        ------
        ModelError
            Also if the process ends.
        OverLimitError
            If it has no answer at `kill_at`: it is ended then.
        OutOfMemoryError
            If it does not fit the memory.
        """
        voxels = int(np.prod(grid.shape))
        with shared_folder(sum(array.nbytes for array in arrays) + 4 * voxels) as folder:
            sent = []
            for number, array in enumerate(arrays):
                report_progress(number, len(arrays), "Handing the images over")
                sent.append(share(folder, f"in{number}", array))
            request = {
                "do": "predict",
                "grid": wire.grid_on_wire(grid),
                "region": wire.region_on_wire(region),
                "folder": str(folder),
                "arrays": [{"name": s.name, "dtype": s.dtype, "shape": s.shape} for s in sent],
                "seconds_left": None if deadline is None else deadline - time.monotonic(),
            }
            answer = self._asked(card, settings, request, kill_at)
            found = {
                name: fetch(folder, wire.shared_from(one)) for name, one in answer["arrays"].items()
            }
        return EngineResult(
            found["labels"], wire.ran_from(answer["ran"]), found.get("probability"), answer["peak"]
        )

    def close(self) -> None:
        """End the process and wait until it is gone; another request starts a new one."""
        self._process.close()

    # ------------------------------------------------------------------- a request

    def _asked(
        self,
        card: ModelCard,
        settings: EngineSettings,
        request: Message,
        kill_at: float | None = None,
    ) -> Message:
        require_installed(card, settings)
        message = {
            **request,
            "model": wire.card_on_wire(card),
            "settings": wire.settings_on_wire(settings),
        }
        while not self._busy.acquire(timeout=PACE_S):
            report_progress(0, 1, "Waiting for the model's process")
        try:
            self._process.started()
            try:
                return self._served(message, kill_at)
            except IdleEndError:
                self._process.started()
                return self._served(message, kill_at)
        finally:
            self._busy.release()

    def _served(self, message: Message, kill_at: float | None) -> Message:
        """Send a request and pass its progress on; whatever happens, no request stays behind."""
        self._number += 1
        answer: Message | None = None
        try:
            self._process.send({**message, "id": self._number})
            now = Progress(0, 1, "Loading the model")
            while answer is None:
                forward_progress(now)
                event = self._process.next(PACE_S)
                if event is not None and event.get("id") == self._number:
                    self._process.peak = event["peak"]
                    if event["event"] == "progress":
                        now = Progress(event["done"], event["total"], event["text"])
                    else:
                        answer = event
                elif kill_at is not None and time.monotonic() > kill_at:
                    raise OverLimitError(
                        f"the model should answer within its time limit, but was still busy "
                        f"({now.text}): it was ended; allow more time, or let it give something up"
                    )
        finally:
            if answer is None:
                self._process.stop(self._number)
        if answer["event"] == "error":
            raise wire.error_from(answer)
        return answer
