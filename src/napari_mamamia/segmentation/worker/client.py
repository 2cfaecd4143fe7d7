"""`Worker`: client that starts the process of a model on demand and always ends it.

torch is never imported in the client's own process.
"""

import json
import threading
import time
from collections import deque
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import IO, Any, Final

import numpy as np

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.program.child_process import (
    Process,
    end_group,
    end_silent,
    python_command,
    start,
)
from napari_mamamia.core.program.system import free_memory_bytes, total_memory_bytes
from napari_mamamia.core.progress import PACE_S, Progress, forward_progress, report_progress
from napari_mamamia.io.files.own_paths import sweep_temporary
from napari_mamamia.segmentation.model.card import ModelCard
from napari_mamamia.segmentation.model.engine import EngineInput
from napari_mamamia.segmentation.model.engine_settings import EngineResult, EngineSettings, TilePlan
from napari_mamamia.segmentation.model.planner import OutOfMemoryError, OverLimitError
from napari_mamamia.segmentation.run.engines import require_installed
from napari_mamamia.segmentation.worker import wire
from napari_mamamia.segmentation.worker.shared_arrays import (
    fetch,
    share,
    shared_folder,
)

_MODULE: Final = "napari_mamamia.segmentation.worker.worker"
_START_LIMIT_S: Final = 120.0
_CANCEL_S: Final = 1.0
"""Time in seconds for a tile to finish after a cancellation before the process is killed."""
_KILLED: Final = 9  # SIGKILL, which the system's out-of-memory killer sends

Message = dict[str, Any]


class IdleEndError(ModelError):
    """Raised if an idle process ends just as it receives a request."""


class WorkerProcess:
    """The process of a model; `peak` is the highest memory in bytes that it has reported.

    The process ends by itself after `idle_s` seconds without a request.
    """

    def __init__(self, idle_s: float) -> None:
        self._idle_s = idle_s
        self._process: Process | None = None
        self._events: SimpleQueue[Message | None] = SimpleQueue()
        self._said: deque[str] = deque(maxlen=20)
        self.peak: int | None = None

    @property
    def pid(self) -> int | None:
        """The process id; None if there is no process."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def started(self) -> None:
        """Start the process if it is not running."""
        if self.pid is not None:
            return
        self.close()
        sweep_temporary()
        # A new queue: the thread of the last process may still put its end into the old one.
        self._events, self.peak = SimpleQueue(), None
        self._said.clear()
        self._process = start(python_command(_MODULE, str(self._idle_s)))
        for target, stream, sink in (
            (_pass_on, self._process.stdout, self._events),
            (_keep_lines, self._process.stderr, self._said),
        ):
            threading.Thread(target=target, args=(stream, sink), daemon=True).start()
        end = time.monotonic() + _START_LIMIT_S
        while True:
            report_progress(0, 1, "Starting the model's process")
            event = self.next(PACE_S)
            if event is not None:
                return
            if time.monotonic() > end:
                self.close()
                raise ModelError(
                    f"the model's process did not start within {_START_LIMIT_S:g} s; close other "
                    "programs, and try again"
                )

    def send(self, message: Message) -> None:
        """Send a request; raise `ModelError` if the process has ended."""
        process = self._process
        try:
            if process is None or process.stdin is None:
                raise BrokenPipeError
            process.stdin.write(wire.line_of(message).encode())
            process.stdin.flush()
        except (OSError, ValueError) as error:
            raise self._explain_end() from error

    def next(self, wait_s: float) -> Message | None:
        """Return the next event, or None after `wait_s`; raise `ModelError` if the process died."""
        try:
            event = self._events.get(timeout=wait_s)
        except Empty:
            return None
        if event is None:
            raise self._explain_end()
        return event

    def _explain_end(self) -> ModelError:
        """Return an error that explains why the process ended, with the memory sizes."""
        process, self._process = self._process, None
        code = None if process is None else end_silent(process)
        if code == 0:
            return IdleEndError("the model's process ended because it was idle; try again")
        memory = _describe_memory(self.peak)
        if code == -_KILLED:
            return OutOfMemoryError(
                "the model's process was ended by the system, most likely for lack of memory "
                f"({memory}); close other programs, or choose fewer voxels (a box) or another "
                "model; nothing was changed"
            )
        how = "it had to be ended"
        if code is not None:
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
        last = f"; its last message was: {self._said[-1]}" if self._said else ""
        return ModelError(
            f"the model's process ended without a result ({how}; {memory}){last}; try again; if "
            "it happens again, choose the device cpu"
        )

    def stop(self, number: int) -> None:
        """Cancel a request, and kill the process if it does not respond in time."""
        with suppress(ModelError):
            self.send({"do": "cancel", "id": number})
            end = time.monotonic() + _CANCEL_S
            while time.monotonic() < end:
                event = self.next(max(0.0, end - time.monotonic()))
                if event and event.get("id") == number and event["event"] != "progress":
                    return
        self.close()

    def close(self) -> None:
        """End the process and wait until it has ended; it can be started again."""
        process, self._process = self._process, None
        if process is not None:
            end_group(process)


def _pass_on(stream: IO[bytes], events: "SimpleQueue[Message | None]") -> None:
    """Move events from the process into a queue, and drop lines that are not events."""
    with suppress(OSError, ValueError):
        for line in stream:
            with suppress(json.JSONDecodeError, UnicodeDecodeError):
                events.put(json.loads(line))
    events.put(None)


def _keep_lines(stream: IO[bytes], said: "deque[str]") -> None:
    with suppress(OSError, ValueError):
        for line in stream:
            said.append(line.decode("utf-8", errors="replace").strip()[:300])


def _describe_memory(peak_bytes: int | None) -> str:
    """Describe the peak memory of a process and the free memory, where they are known."""
    free, total = free_memory_bytes(), total_memory_bytes()
    parts = []
    if peak_bytes is not None:
        parts.append(f"it had {peak_bytes / 1e9:.1f} GB at its peak")
    if free is not None and total is not None:
        parts.append(f"{free / 1e9:.1f} of {total / 1e9:.1f} GB are free now")
    return ", ".join(parts) or "its memory use is unknown"


_IDLE_S: Final = 600.0


class Worker:
    """A separate process for models, which implements `engine_host.Host`.

    The process is started on the first request, serves one request at a time, ends after `idle_s`
    seconds without work, and is started again on demand. Its methods may be called from any thread.
    """

    def __init__(self, idle_s: float = _IDLE_S) -> None:
        self._process = WorkerProcess(idle_s)
        self._busy = threading.Lock()
        self._number = 0

    @property
    def pid(self) -> int | None:
        """The process id; None if there is no process."""
        return self._process.pid

    def plan(
        self, card: ModelCard, settings: EngineSettings, grid: Grid, region: Box | None
    ) -> TilePlan:
        """Return the cost of a case on `grid`."""
        request = {
            "do": "plan",
            "grid": wire.grid_on_wire(grid),
            "region": wire.region_on_wire(region),
        }
        answer = self._ask_process(card, settings, request)
        return wire.TILES.record(answer["tiles"], wire.OTHER)

    def time_tile(self, card: ModelCard, settings: EngineSettings) -> float:
        """Return the time in seconds that one network takes for one tile."""
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
        """Label one case as in `Engine.predict`.

        Raises
        ------
        ModelError
            As in `Engine.predict`, and if the process ends.
        OverLimitError
            If there is no result at `kill_at`; the process is then killed.
        OutOfMemoryError
            If the run does not fit into memory.
        """
        arrays, deadline = given.arrays, given.deadline
        voxels = int(np.prod(given.grid.shape))
        # The answer holds labels of at most two bytes for each voxel, and a probability of two.
        with shared_folder(sum(array.nbytes for array in arrays) + 4 * voxels) as folder:
            sent = []
            for number, array in enumerate(arrays):
                report_progress(number, len(arrays), "Sending the images")
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
        """End the process and wait until it has ended; the next request starts a new process."""
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
        """Send a request and report its progress; cancel the request if this fails."""
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
                        "expected the model to finish within its time limit, but it was still "
                        f"busy ({now.text}) and was ended; allow more time, or allow a reduction"
                    )
        finally:
            if answer is None:
                self._process.stop(self._number)
        if answer["event"] == "error":
            raise wire.error_from(answer)
        return answer
