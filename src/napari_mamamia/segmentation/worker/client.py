"""`Worker`: the model's process as its caller sees it. Torch never comes into this process."""

import threading
import time
from typing import Final

import numpy as np

from napari_mamamia.core.box import Box
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import PACE_S, Progress, forward_progress, report_progress
from napari_mamamia.segmentation.model.card import ModelCard
from napari_mamamia.segmentation.model.engine import EngineInput
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
        answer = self._ask_process(card, settings, request)
        return wire.TILES.record(answer["tiles"], wire.OTHER)

    def time_tile(self, card: ModelCard, settings: EngineSettings) -> float:
        """Measure one tile through one network, in seconds."""
        answer = self._ask_process(card, settings, {"do": "time"})
        return float(answer["seconds"])

    def predict(
        self,
        card: ModelCard,
        settings: EngineSettings,
        given: EngineInput,
        *,
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
        arrays, deadline = given.arrays, given.deadline
        voxels = int(np.prod(given.grid.shape))
        # Of the answer: labels of at most two bytes for each voxel, and a probability of two.
        with shared_folder(sum(array.nbytes for array in arrays) + 4 * voxels) as folder:
            sent = []
            for number, array in enumerate(arrays):
                report_progress(number, len(arrays), "Handing the images over")
                sent.append(share(folder, f"in{number}", array))
            request = {
                "do": "predict",
                "grid": wire.grid_on_wire(given.grid),
                "region": wire.region_on_wire(given.region),
                "folder": str(folder),
                "arrays": [wire.SHARED.plain(one) for one in sent],
                "seconds_left": None if deadline is None else deadline - time.monotonic(),
            }
            answer = self._ask_process(card, settings, request, kill_at)
            outputs = {
                name: fetch(folder, wire.SHARED.record(one, wire.OTHER))
                for name, one in answer["arrays"].items()
            }
        return EngineResult(
            outputs["labels"],
            wire.RAN.record(answer["ran"], wire.OTHER),
            outputs.get("probability"),
            answer["peak"],
        )

    def close(self) -> None:
        """End the process and wait until it is gone; another request starts a new one."""
        self._process.close()

    # ------------------------------------------------------------------- a request

    def _ask_process(
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
            "settings": wire.SETTINGS.plain(settings),
        }
        while not self._busy.acquire(timeout=PACE_S):
            report_progress(0, 1, "Waiting for the model's process")
        try:
            self._process.started()
            try:
                return self._serve_request(message, kill_at)
            except IdleEndError:
                self._process.started()
                return self._serve_request(message, kill_at)
        finally:
            self._busy.release()

    def _serve_request(self, message: Message, kill_at: float | None) -> Message:
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
