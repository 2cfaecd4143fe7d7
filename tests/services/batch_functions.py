"""Work for the batch tests, in a module that workers can import; what a case does is in its id."""

import os
import signal
import threading
from dataclasses import dataclass
from enum import StrEnum
from math import inf, nan
from pathlib import Path

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.files.own_paths import new_path_in


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Row:
    case_id: str
    size: int
    value: float
    far: float = inf
    undefined: float = nan
    colour: Colour = Colour.BLUE
    ok: bool = True


@dataclass(frozen=True, slots=True)
class Settings:
    """`notes` is a folder: a file for each call, named after the case, holds its process id."""

    notes: Path
    factor: float = 0.1


def measure(inputs, settings):
    case_id = inputs.case_id
    note(settings.notes, case_id)
    kind = case_id.partition("_")[0]
    if kind == "bad":
        raise FormatError("expected a mask, but it is broken: make it again")
    if kind == "bug":
        raise KeyError("oops")
    if kind in ("forever", "half"):
        wait_forever(settings.notes, leaves_half=kind == "half")
    if kind == "gate":
        wait_for(settings.notes / "open")
    if kind == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "dies-once" and calls(settings.notes, case_id) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "prints":
        os.write(1, b"a case may print what it likes")
    size = sum(path.stat().st_size for path in inputs.files if path)
    return Row(case_id, size, size * settings.factor)


def wait_forever(folder, *, leaves_half):
    if leaves_half:
        new_path_in(folder).write_bytes(b"half a mask")
    threading.Event().wait()


def note(folder, case_id):
    number = len(list(folder.glob(f"{case_id}.*"))) + 1
    temporary = folder / f"new-{os.getpid()}-{threading.get_ident()}"
    temporary.write_text(str(os.getpid()))
    temporary.rename(folder / f"{case_id}.{number}")


def calls(folder, case_id=""):
    return len([path for path in folder.glob("*.*") if path.name.startswith(f"{case_id}")])


def wait_for(path, limit_s=30.0):
    pause = threading.Event()
    for _ in range(int(limit_s / 0.02)):
        if path.exists():
            return
        pause.wait(0.02)
    raise TimeoutError(f"{path} did not appear")
