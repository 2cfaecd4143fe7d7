"""Read the output streams of a sandbox: printed text, and events of the runner."""

import json
import os
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from napari_mamamia.io.files.append_file import opened_to_add
from napari_mamamia.segmentation.sandbox.external import printable
from napari_mamamia.segmentation.sandbox.sandbox import Ending, RunLimits

_EVENT_BYTES: Final = 64 * 1024
_MOST_EVENTS: Final = 1000
_BLOCK: Final = 64 * 1024
_GIGABYTE: Final = 10**9
_NO_CARD: Final = (
    "not compiled with CUDA",
    "NVIDIA driver",
    "No CUDA GPUs",
    "torch.cuda.is_available() is False",
)


@dataclass(frozen=True, slots=True)
class Wording:
    """Nouns for a sandboxed program and its work, used in messages.

    `model` names what the user can make smaller or faster. If `n_masks` is more than one, the masks
    written so far are counted.
    """

    program: str = "the submission"
    work: str = "a case"
    model: str = "the model"
    n_masks: int = 0


class LogPipe(threading.Thread):
    """Reader of a submission's printed output; it stores the first bytes and counts the rest."""

    def __init__(self, stream: IO[bytes], path: Path, most: int) -> None:
        super().__init__(daemon=True)
        self._stream, self._path, self._left = stream, path, most
        self.dropped_bytes = 0

    def run(self) -> None:
        """Read until the stream ends."""
        with suppress(OSError, ValueError), opened_to_add(self._path) as file:
            # Not `read`, which waits for a whole block while the log stays empty.
            while block := os.read(self._stream.fileno(), _BLOCK):
                kept_bytes = block[: self._left]
                file.write(kept_bytes)
                file.flush()
                self._left -= len(kept_bytes)
                self.dropped_bytes += len(block) - len(kept_bytes)


class EventPipe(threading.Thread):
    """Reader of the runner's events; it stores the newest of each kind and skips invalid lines."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self._stream = stream
        self.found: dict[str, dict[str, Any]] = {}
        self._count = 0

    def run(self) -> None:
        """Read until the stream ends."""
        with suppress(OSError, ValueError):
            while line := self._stream.readline(_EVENT_BYTES):
                self._count += 1
                if self._count <= _MOST_EVENTS:
                    self._note_event(line)

    def _note_event(self, line: bytes) -> None:
        with suppress(ValueError, RecursionError):
            event = json.loads(line)
            if isinstance(event, dict) and isinstance(event.get("event"), str):
                self.found[event["event"]] = event

    def text(self, kind: str, key: str) -> str:
        """Return a value of an event as one line of text, or "" if the event lacks it."""
        return printable(str(self.found.get(kind, {}).get(key, "")))


def verdict(
    ending: Ending | None,
    events: EventPipe,
    code: int | None,
    limits: RunLimits,
    wording: Wording,
    largest: str = "",
) -> tuple[Ending, str]:
    """Return how the run ended, and the reason as a tuple of three strings.

    `largest` names the kind of memory with the largest use.

    Parameters
    ----------
    ending
        The limit that was exceeded; None if the process ended by itself.
    events
        Events of the runner.
    code
        Exit code of the process.
    limits
        The limits of the run.
    wording
        Nouns for the messages.
    largest
        The kind of memory with the largest use.
    """
    most = f" (mostly {largest})" if largest and ending is Ending.MEMORY else ""
    texts = {
        Ending.TIME: f"expected {wording.work} within the time limit of {limits.seconds:g} s, but "
        f"it took longer: raise the limit or make {wording.model} faster",
        Ending.MEMORY: (
            f"expected at most {limits.memory_bytes / _GIGABYTE:.1f} GB of memory, but "
            f"the program used more{most}: raise the limit or make {wording.model} "
            "smaller"
        ),
        Ending.PROCESSES: (
            f"expected at most {limits.processes} processes, but the program "
            "started more: read its log"
        ),
        Ending.OUTPUT: (
            f"expected at most {limits.output_bytes / _GIGABYTE:.1f} GB of files, but "
            "the program wrote more, or kept more in deleted files: read its log"
        ),
        Ending.HANDLES: (
            f"expected at most {limits.handles} open files, pipes, sockets and file "
            "locks, but the program had more: read its log"
        ),
    }
    if ending is not None:
        return ending, texts[ending]
    if "failed" in events.found:
        step, error = events.text("failed", "step"), events.text("failed", "error")
        return Ending.FAILED, (
            f"expected {step} of {wording.program} to work, but it raised {error}: its log has the "
            f"full text{_cuda_advice(error)}"
        )
    if "finished" in events.found and code == 0:
        return Ending.FINISHED, ""
    return Ending.DIED, (
        f"expected {wording.program} to finish, but its process ended early (exit code {code}): "
        "its log may say why; a killed process (137) usually ran out of memory"
    )


def _cuda_advice(error: str) -> str:
    """Return advice on an error that torch raises if there is no GPU. Source: torch 2.x."""
    if not any(part in error for part in _NO_CARD):
        return ""
    return "; it needs CUDA: use a computer with an NVIDIA GPU, or run it on the CPU"
