"""Process that runs torch and a model.

It is started with ``python -m napari_mamamia.segmentation.worker.worker``.

The process reads requests as JSON lines and writes events as JSON lines to a separate pipe; output
of libraries goes to the error stream. It ends with its parent process, or after some time without
work, which also reliably releases GPU memory.
"""

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any, Final, TextIO

from napari_mamamia.core.plugins import be_quiet
from napari_mamamia.core.program.system import process_peak_memory_bytes
from napari_mamamia.core.progress import Cancelled, Progress, listening
from napari_mamamia.segmentation.model.engine import EngineInput
from napari_mamamia.segmentation.run.engine_host import EngineHost
from napari_mamamia.segmentation.worker import wire
from napari_mamamia.segmentation.worker.shared_arrays import fetch, share

_SAY_EVERY_S: Final = 0.05
_SWEEPS: Final = 20


@dataclass(slots=True)
class _State:
    """State shared by the listening thread and the working thread."""

    requests: "SimpleQueue[dict[str, Any]]" = field(default_factory=SimpleQueue)
    cancelled: int = 0
    folder: str = ""


def main() -> None:
    """Serve requests until the parent ends or no request arrives for `argv[1]` seconds."""
    be_quiet()
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of libraries must not mix with the events
    idle_s = float(sys.argv[1]) if len(sys.argv) > 1 else None
    state = _State()
    threading.Thread(target=_queue_requests, args=(sys.stdin.buffer, state), daemon=True).start()
    _send_message(events, {"event": "ready"})
    with closing(EngineHost()) as host:
        while True:
            try:
                request = state.requests.get(timeout=idle_s)
            except Empty:
                return
            _serve_request(host, request, state, events)


def _queue_requests(stream: IO[bytes], state: _State) -> None:
    """Queue requests until the pipe ends, which means that the parent process has ended."""
    try:
        for line in stream:
            message = json.loads(line)
            if message["do"] == "cancel":
                # Numbers ascend, so that a late cancellation of an earlier request stops no later
                # one.
                state.cancelled = max(state.cancelled, message["id"])
            else:
                state.requests.put(message)
    finally:
        for _ in range(
            _SWEEPS if state.folder else 0
        ):  # an answer may be being written at this moment
            shutil.rmtree(state.folder, ignore_errors=True)
            if not Path(state.folder).exists():
                break
        os._exit(0)


def _serve_request(
    host: EngineHost, request: dict[str, Any], state: _State, events: TextIO
) -> None:
    """Serve one request, and send exactly one final event: result, error or cancelled."""
    state.folder = request.get("folder", "")
    try:
        with listening(_make_reporter(request["id"], state, events)):
            answer = _answer_request(host, request)
    except Cancelled:
        answer = {"event": "cancelled"}
    except Exception as error:  # noqa: BLE001 - one request's failure must not end the process
        answer = wire.error_on_wire(error)
    peak = process_peak_memory_bytes()
    _send_message(events, {**answer, "id": request["id"], "peak": peak})


def _make_reporter(number: int, state: _State, events: TextIO) -> Callable[[Progress], None]:
    """Return a function that reports progress, and raises `Cancelled` once cancelled."""
    spoken, text = 0.0, ""

    def tell(progress: Progress) -> None:
        nonlocal spoken, text
        if state.cancelled >= number:
            raise Cancelled
        now = time.monotonic()
        if progress.text != text or now - spoken > _SAY_EVERY_S:
            spoken, text = now, progress.text
            message = {"event": "progress", "done": progress.done, "total": progress.total}
            peak = process_peak_memory_bytes()
            _send_message(events, {**message, "id": number, "text": text, "peak": peak})

    return tell


def _answer_request(host: EngineHost, request: dict[str, Any]) -> dict[str, Any]:
    card = wire.card_from(request["model"])
    settings = wire.SETTINGS.record(request["settings"], wire.OTHER)
    region = wire.region_from(request.get("region"))
    if request["do"] == "time":
        seconds = host.time_tile(card, settings)
        return {"event": "result", "seconds": seconds}
    grid = wire.grid_from(request["grid"])
    if request["do"] == "plan":
        tiles = host.plan(card, settings, grid, region)
        return {"event": "result", "tiles": wire.TILES.plain(tiles)}
    folder = Path(request["folder"])
    arrays = [fetch(folder, wire.SHARED.record(one, wire.OTHER)) for one in request["arrays"]]
    left = request["seconds_left"]
    deadline = None if left is None else time.monotonic() + left
    result = host.predict(card, settings, EngineInput(arrays, grid, region, deadline))
    outputs = {"labels": result.labels, "probability": result.probability}
    shared = {
        name: wire.SHARED.plain(share(folder, name, array))
        for name, array in outputs.items()
        if array is not None
    }
    return {"event": "result", "ran": wire.RAN.plain(result.ran), "arrays": shared}


def _send_message(events: TextIO, message: dict[str, Any]) -> None:
    events.write(wire.line_of(message))
    events.flush()


if __name__ == "__main__":
    main()
