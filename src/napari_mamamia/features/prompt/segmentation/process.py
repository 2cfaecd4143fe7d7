"""`WorkerEngine`: a prompt engine in a separate process, which is ended on cancellation."""

import json
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import ModelError, RefusedCheckpointError, Remedy
from napari_mamamia.core.names import printable
from napari_mamamia.core.program.child_process import Process, end_group, end_silent, start
from napari_mamamia.core.progress import PACE_S, report_progress
from napari_mamamia.features.prompt.segmentation.engine import (
    UNKNOWN_LICENCE,
    EngineInfo,
    EngineLostError,
    Region,
)
from napari_mamamia.features.prompt.segmentation.prompts import (
    Abilities,
    PlacedPrompt,
    PromptKind,
)

_MOST_THICKNESS: Final = 20
_MISSING: Final = "!!MISSING!!"  # nnInteractive's word for an unknown licence
_KEPT: Final = "your mask is unchanged"

Answer = tuple[dict[str, Any], bytes]


class WorkerEngine:
    """An engine that runs in a separate process; it implements `PromptEngine`.

    Parameters
    ----------
    command, environment
        The program's command line, and all of its environment variables.
    order
        The request that opens the engine.
    describe
        Function that returns the engine's name and model for a version.
    where
        A noun phrase that names the engine in messages, such as ``the server https://host``.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        order: Mapping[str, Any],
        describe: Callable[[str], tuple[str, str]],
        where: str,
    ) -> None:
        self._command = tuple(command)
        self._environment = environment
        self._order = order
        self._describe = describe
        self._where = where
        self._process: Process | None = None
        self._answers: SimpleQueue[Answer | None] = SimpleQueue()
        self._printed: deque[str] = deque(maxlen=20)
        self._shape: tuple[int, ...] = ()

    @property
    def pid(self) -> int | None:
        """Return the process ID, or None if no process is running."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    @property
    def is_open(self) -> bool:
        """Return whether the process is running and has an image."""
        return self.pid is not None and bool(self._shape)

    def connect(self) -> EngineInfo:
        """Start the process, and load the model or claim a session on a server."""
        self.close()
        self._printed.clear()
        self._answers = SimpleQueue()
        try:
            process = start(self._command, environment=self._environment)
        except OSError as error:
            raise ModelError(
                f"expected a Python interpreter at {self._command[0]}, but it cannot be started "
                f"({error.strerror or error}): choose the environment of the model's package",
                remedies=(Remedy("environment", ("DIR",)),),
            ) from error
        self._process = process
        for target, stream, sink in (
            (_pass_on, process.stdout, self._answers),
            (_keep_lines, process.stderr, self._printed),
        ):
            threading.Thread(target=target, args=(stream, sink), daemon=True).start()
        answer, _ = self._ask(dict(self._order), None, f"Waiting for {self._where}")
        try:
            return self._read_info(answer)
        except (KeyError, TypeError, ValueError) as error:
            raise self._refuse_answer(f"its description is not readable ({error})") from error

    def _read_info(self, answer: Mapping[str, Any]) -> EngineInfo:
        z, y, x = (int(n) for n in answer["thickness"])
        if not 1 <= min(z, y, x) <= max(z, y, x) <= _MOST_THICKNESS:
            raise ValueError(
                f"expected a scribble to be 1 to {_MOST_THICKNESS} voxels thick, but "
                f"got {z} x {y} x {x}"
            )
        licence = printable(str(answer["licence"]))[:200].strip()
        name, model = self._describe(printable(str(answer["version"]))[:40])
        abilities = Abilities(
            frozenset(PromptKind(kind) for kind in answer["kinds"]),
            answer["boxes_3d"],
            (z, y, x),
            frozenset(PromptKind(kind) for kind in answer["excluding"]),
        )
        licence = UNKNOWN_LICENCE if licence in ("", _MISSING) else licence
        return EngineInfo(name, model, licence, abilities, answer["undo"])

    def set_image(self, image: NDArray[Any], spacing_mm: Sequence[float] = (1.0, 1.0, 1.0)) -> None:
        """Send an image, and start with an empty mask."""
        order = {"do": "image", "spacing_mm": [float(s) for s in spacing_mm]}
        self._ask(order, image, "Sending the image")
        self._shape = image.shape

    def start_from(self, region: Region) -> None:
        """Forget all prompts and start from a mask."""
        order = {"do": "start", "box": _ends_of(region.box)}
        self._ask(order, region.mask.astype(np.uint8), "Sending the mask")

    def prompt(self, placed: PlacedPrompt) -> Region:
        """Return the box in which a prompt changed the mask, with the new mask in it."""
        prompt = placed.prompt
        order = {
            "do": "prompt",
            "kind": prompt.kind.value,
            "include": prompt.include,
            "box": _ends_of(placed.box),
        }
        answer, content = self._ask(order, placed.voxels, "Waiting for the prompt model")
        if answer.get("box") is None:
            return Region(Box.empty(), np.zeros((0, 0, 0), np.bool_))
        try:
            return _read_region(answer, content, self._shape)
        except (KeyError, TypeError, ValueError) as error:
            raise self._refuse_answer(str(error)) from error

    def undo(self, checksum: int) -> bool:
        """Undo the last prompt; return whether the mask then has the CRC-32 `checksum`."""
        answer, _ = self._ask({"do": "undo"}, None, "Taking back the last prompt")
        return answer.get("undone") is True and answer.get("crc") == checksum

    def close(self) -> None:
        """Stop the process and wait until it has ended."""
        process, self._process, self._shape = self._process, None, ()
        if process is not None:
            # At the end of its input a worker releases the session of the server.
            with suppress(OSError):
                if process.stdin is not None:
                    process.stdin.close()
            end_group(process)

    def _ask(self, order: dict[str, Any], array: NDArray[Any] | None, text: str) -> Answer:
        """Send a request and return its answer; if the user cancels, end the process."""
        is_answered = False
        try:
            self._send(order, array, text)
            while True:
                report_progress(0, 1, text)
                with suppress(Empty):
                    answer = self._answers.get(timeout=PACE_S)
                    break
            if answer is None:
                raise self._explain_end()
            if "error" in answer[0]:
                error = self._error_of(answer[0])
                is_answered = not isinstance(error, EngineLostError)
                raise error
            is_answered = True
            return answer
        finally:
            if not is_answered:
                self.close()

    def _send(self, order: dict[str, Any], array: NDArray[Any] | None, text: str) -> None:
        process = self._process
        if process is None or process.stdin is None:
            raise EngineLostError(f"expected a connection to {self._where}, but there is none")
        report_progress(0, 1, text)
        if array is not None:
            array = np.ascontiguousarray(array)
            order |= {"shape": array.shape, "dtype": str(array.dtype), "n_bytes": array.nbytes}
        try:
            process.stdin.write(json.dumps(order).encode() + b"\n")
            if array is not None:
                process.stdin.write(array.data.cast("B"))
            process.stdin.flush()
        except (OSError, ValueError) as error:
            raise self._explain_end() from error

    def _explain_end(self) -> EngineLostError:
        process, self._process = self._process, None
        code = None if process is None else end_silent(process)
        last = f"; its last message was: {printable(self._printed[-1])}" if self._printed else ""
        return EngineLostError(
            f"expected an answer from {self._where}, but the process of the prompt model ended "
            f"({code if code is not None else 'it was stopped'}){last}; {_KEPT}: prompt again to "
            "start it from the mask"
        )

    def _refuse_answer(self, why: str) -> EngineLostError:
        self.close()
        return EngineLostError(
            f"expected a mask from {self._where}, but found something else ({printable(why)[:200]})"
            f"; {_KEPT}: choose another server or model"
        )

    def _error_of(self, answer: Mapping[str, Any]) -> ModelError:
        """Convert the answer to a failed request into an error."""
        kind, where = answer["error"], self._where
        detail = printable(str(answer.get("detail", "")))[:300]
        if kind in _LOST:
            return EngineLostError(
                f"expected an answer from {where}, but {_LOST[kind]} ({detail}); {_KEPT}"
            )
        if kind == "key":
            return EngineLostError(
                f"expected {where} to accept the key, but the key was refused ({detail}); {_KEPT}",
                remedies=(Remedy("api_key", ("KEY",)),),
            )
        if kind == "RefusedCheckpointError":
            return RefusedCheckpointError(str(answer["text"]))
        if kind == "ModelError":
            return ModelError(str(answer["text"]))
        if kind == "ImportError":
            return ModelError(
                f"expected the package of the model in its environment, but found {detail}: "
                "choose an environment that has the package",
                remedies=(Remedy("environment", ("DIR",)),),
            )
        return EngineLostError(
            f"expected an answer from {where}, but it failed ({detail}); {_KEPT}: prompt again to "
            "start it from the mask"
        )


_LOST: Final = {
    "expired": "its session has expired or the server was restarted: prompt again to begin a new "
    "session from the mask",
    "full": "all of its sessions are in use: wait until another user has finished",
    "unreachable": "it cannot be reached: check that the server runs, and its address",
    "certificate": "its certificate is not trusted, so it may be another computer, and nothing was "
    "sent: ask for a certificate of an authority that this computer trusts, or name the file of "
    "its authority in the environment variable SSL_CERT_FILE",
    "timeout": "it took too long: a server without a graphics card may need a faster computer",
    "status": "it reported an error: prompt again to begin a new session from the mask",
    "MemoryError": "the memory is not sufficient: close other programs",
    "memory": "the memory of the graphics card is not sufficient: choose the device cpu",
}


def _ends_of(box: Box) -> list[list[int]]:
    return [[int(a), int(b)] for a, b in zip(box.start, box.stop, strict=True)]


def _read_region(answer: Mapping[str, Any], content: bytes, shape: Sequence[int]) -> Region:
    """Return the region that an answer contains.

    Raises
    ------
    ValueError
        If the region is not inside the image, or contains values other than 0 and 1.
    """
    ends = [(int(low), int(high)) for low, high in answer["box"]]
    if len(ends) != 3 or any(
        not 0 <= low <= high <= n for (low, high), n in zip(ends, shape, strict=True)
    ):
        raise ValueError(f"expected a box inside the image {tuple(shape)}, but got {ends}")
    (z0, z1), (y0, y1), (x0, x1) = ends
    box = Box((z0, y0, x0), (z1, y1, x1))
    voxels = np.frombuffer(content, np.uint8)
    if voxels.size != np.prod(box.shape) or voxels.max(initial=0) > 1:
        raise ValueError(
            f"expected only the values 0 and 1 for a box of {box.shape} voxels, but "
            f"got {voxels.size} values up to {voxels.max(initial=0)}"
        )
    return Region(box, voxels.reshape(box.shape).astype(np.bool_))


def _pass_on(stream: IO[bytes], answers: "SimpleQueue[Answer | None]") -> None:
    """Read answers from a stream into a queue, and put None at the end."""
    with suppress(OSError, ValueError):
        while line := stream.readline():
            answer = json.loads(line)
            answers.put((answer, stream.read(answer.get("n_bytes", 0))))
    answers.put(None)


def _keep_lines(stream: IO[bytes], printed: "deque[str]") -> None:
    with suppress(OSError, ValueError):
        for line in stream:
            if text := line.decode("utf-8", errors="replace").strip():
                printed.append(text[:300])
