"""Readers on damaged files, in a child process with limits: whatever is no `MamamiaError` is found.

A fork of a warm process reads one input after the other. It may use so much memory and so much
processor time for each; a child that dies or hangs is seen by its parent, which goes on with the
next input in another fork.
"""

import json
import os
import resource
import select
import shutil
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from mutations import kind_of, mutated

MEMORY_BYTES = 1 << 30
"""Address space above what the warm process has."""
GROWTH_BYTES = 400 << 20
"""Resident memory that one small input may take: an .xlsx of 330 kB took 3.7 GB."""
CPU_S = 12
UNREADABLE = 0.04
"""Share of the inputs whose file is not damaged, but cannot be read."""
WALL_S = 120
"""For an input; the machine may be busy, so the clock on the wall is generous."""


@dataclass(frozen=True)
class Format:
    """A format: how an example is made, what reads it, which readers that covers.

    `make` fills an empty folder and returns what `read` is given. `readers` are names such as
    "io.data_set.volumes.read_header". `touched` are ends of names of the files that get damaged. A
    slow one runs in `make fuzz` and at night. `called` is what messages name where it is no file.
    """

    name: str
    make: Callable[[Path], Path]
    read: Callable[[Path], object]
    readers: tuple[str, ...]
    touched: tuple[str, ...] = ("",)
    share: float = 1.0
    is_slow: bool = False
    called: str = ""


@dataclass
class Result:
    """What became of the inputs of one format."""

    inputs: int = 0
    accepted: int = 0
    refused: int = 0
    peak_bytes: int = 0
    seconds: float = 0.0
    found: list[dict] = field(default_factory=list)

    def count(self, kind: str) -> int:
        return sum(one["kind"] == kind for one in self.found)


def _make_unreadable(target: Path, rng: Random) -> None:
    """Put in a file's place what opens and fails at reading (EIO), a link to nothing, a folder."""
    kind = rng.randrange(3)
    if kind == 2:
        target.mkdir()
    else:
        target.symlink_to(("/proc/self/mem", "nothing")[kind])


class Example:
    """The files of a valid example, kept in memory; `place` writes them with one damaged."""

    def __init__(self, form: Format, folder: Path) -> None:
        self._form = form
        self._given = form.make(folder).relative_to(folder)
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        self._files = {path.relative_to(folder): path.read_bytes() for path in paths}
        self._touched = [name for name in self._files if name.name.endswith(form.touched)]

    def place(self, folder: Path, rng: Random) -> tuple[Path, str]:
        """Write the files; return what the reader is given, and which file is damaged."""
        victim = rng.choice(self._touched)
        for name, data in self._files.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if name != victim:
                target.write_bytes(data)
            elif rng.random() < UNREADABLE:
                _make_unreadable(target, rng)
            else:
                target.write_bytes(mutated(data, kind_of(name.name), rng))
        return folder / self._given, victim.name


def run_format(
    form: Format, seed: int, inputs: int, until: float, work: Path, keep: Path
) -> Result:
    """Try `inputs` inputs of a format, or as many as there is time for before `until`."""
    result = Result()
    started = time.monotonic()
    folder = _empty(work / form.name)
    example = Example(form, folder)
    shutil.rmtree(folder)
    index = 0
    while index < inputs and time.monotonic() < until:
        for said in _in_child(form, example, seed, range(index, inputs), folder, until):
            index = said["index"] + 1
            result.inputs += 1
            result.peak_bytes = max(result.peak_bytes, said["growth"])
            if said["kind"] in ("accepted", "refused"):
                setattr(result, said["kind"], getattr(result, said["kind"]) + 1)
            else:
                result.found.append(said)
                _keep(form, example, seed, said, keep)
    result.seconds = time.monotonic() - started
    shutil.rmtree(folder, ignore_errors=True)
    return result


def reached(form: Format, folder: Path) -> set[str]:
    """Return the functions of ours that reading a format's example runs, as "room.module.name".

    It is read twice: what a first import does is not looked at.
    """
    _spent(form.read(form.make(_empty(folder))))
    seen = set()

    def watch(frame, event, _):
        if event == "call":
            seen.add(frame.f_code)

    given = form.make(_empty(folder))
    sys.setprofile(watch)
    threading.setprofile(watch)
    try:
        _spent(form.read(given))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    mark = "/napari_mamamia/"
    return {
        f"{_module_of(code.co_filename.rpartition(mark)[2])}.{code.co_qualname}"
        for code in seen
        if mark in code.co_filename
    }


def _module_of(place: str) -> str:
    return place.removesuffix(".py").replace("/", ".")


def _empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _in_child(
    form: Format, example: Example, seed: int, todo: range, folder: Path, until: float
) -> Iterator[dict]:
    """Yield what became of each input until the child ends; its death is the last one's result."""
    out, into = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.close(out)
        _child(form, example, seed, todo, folder, until, into)
        os._exit(0)
    os.close(into)
    index, buffer, killed = todo.start - 1, b"", ""
    while True:
        ready, _, _ = select.select([out], [], [], WALL_S)
        if not ready:
            killed = f"no answer for {WALL_S} s"
            os.kill(pid, signal.SIGKILL)
            break
        data = os.read(out, 1 << 16)
        if not data:
            break
        buffer += data
        *lines, buffer = buffer.split(b"\n")
        for line in lines:
            said = json.loads(line)
            if "start" in said:
                index = said["start"]
                continue
            yield said
            index = None
    os.close(out)
    _, status = os.waitpid(pid, 0)
    if index is not None and index >= todo.start:
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else -1
        is_hang = killed or number in (signal.SIGXCPU, signal.SIGKILL)
        said = killed or (
            f"{CPU_S} s of processor time" if is_hang else f"ended with status {status}"
        )
        yield {
            "index": index,
            "kind": "hang" if is_hang else "death",
            "growth": 0,
            "text": said,
            "trace": "",
        }


def _child(form, example, seed, todo, folder, until, into) -> None:
    warnings.simplefilter("ignore")
    limit = _status("VmSize") + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    for index in todo:
        if time.monotonic() > until:
            return
        os.write(into, json.dumps({"start": index}).encode() + b"\n")
        own = resource.getrusage(resource.RUSAGE_SELF)
        soft = int(own.ru_utime + own.ru_stime) + CPU_S + 1
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))
        given, victim = example.place(folder, Random(f"{seed}/{form.name}/{index}"))
        names = (str(folder), victim, form.called or given.name)
        said = {"index": index, **_tried(form, given, names)}
        shutil.rmtree(folder, ignore_errors=True)
        os.write(into, json.dumps(said).encode() + b"\n")


def _tried(form: Format, given: Path, names: tuple[str, ...]) -> dict:
    from napari_mamamia.core.errors import MamamiaError

    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    kind, text, trace = "accepted", "", ""
    try:
        _spent(form.read(given))
    except MamamiaError as error:
        kind, text = "refused", str(error)
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, MemoryError):
                kind, trace = "memory", traceback.format_exc()
            cause = cause.__cause__ or cause.__context__
        if kind == "refused" and not any(name in text for name in names):
            kind, text = "crash", f"the message names no file: {text}"
    except BaseException as error:
        kind, text, trace = "crash", f"{type(error).__name__}: {error}", traceback.format_exc()
    growth = max(0, _status("VmHWM") - before)
    if growth > GROWTH_BYTES and kind in ("accepted", "refused"):
        kind, text = "memory", f"{growth >> 20} MB for {text or 'an input that was accepted'}"
    return {"kind": kind, "text": text[:300], "trace": trace[-3000:], "growth": growth}


def _spent(found: object) -> None:
    """Run a job or iterator to its end."""
    if hasattr(found, "__next__"):
        for _ in found:
            pass


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    return 0


def _keep(form: Format, example: Example, seed: int, said: dict, keep: Path) -> None:
    place = keep / form.name / f"{seed}-{said['index']}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    example.place(place, Random(f"{seed}/{form.name}/{said['index']}"))
    (place / "found.txt").write_text(f"{said['kind']}: {said['text']}\n\n{said['trace']}")
