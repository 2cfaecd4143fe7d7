"""What a computer has: hardware, graphics cards, optional packages, isolation. Names nobody."""

import importlib.metadata
import importlib.util
import os
import platform
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from napari_mamamia.core.child_environment import find_program
from napari_mamamia.core.child_process import answer_of
from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.io.files.own_paths import temporary_places
from napari_mamamia.segmentation.model.device import choose_device
from napari_mamamia.segmentation.submission.isolation import find_isolation, is_root

__all__ = [
    "Finding",
    "State",
    "extras",
    "graphics",
    "hardware",
    "isolation",
    "without_names",
]

_GB: Final = 10**9
_LEAST_MEMORY: Final = 8 * _GB
_LEAST_DISK: Final = 5 * _GB
_ASK_SECONDS: Final = 20.0
_EXTRAS: Final = (
    ("gui", ("napari", "qtpy")),
    ("segment", ("torch", "dynamic_network_architectures", "nnunetv2")),
    ("onnx", ("onnxruntime",)),
    ("bundle", ("monai",)),
    ("openvino", ("openvino",)),
    ("dicom", ("pydicom", "highdicom")),
    ("register", ("SimpleITK",)),
    ("cluster", ("dask", "distributed")),
)


class State(StrEnum):
    """What a finding means."""

    OK = "ok"
    NOTE = "note"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the check: what was looked at, what was found, what it means."""

    name: str
    text: str
    state: State = State.OK


def hardware() -> Iterator[Finding]:
    """Yield system, Python, processor, memory and disk."""
    yield Finding("system", f"{platform.system()} {platform.release()} {platform.machine()}")
    yield Finding("python", platform.python_version())
    yield Finding("processor", f"{os.cpu_count() or 1} cores, {_processor()}")
    memory = _memory()
    if memory is None:
        yield Finding("memory", "this system does not tell", State.NOTE)
    else:
        total, free = memory
        state = State.OK if total >= _LEAST_MEMORY else State.NOTE
        hint = "" if total >= _LEAST_MEMORY else ", less than the 8 GB that large cases need"
        yield Finding("memory", f"{total / _GB:.1f} GB, {free / _GB:.1f} GB free{hint}", state)
    disk = shutil.disk_usage(temporary_places()[-1]).free
    state = State.OK if disk >= _LEAST_DISK else State.FAILED
    hint = "" if disk >= _LEAST_DISK else ": free at least 5 GB"
    yield Finding("disk for temporary files", f"{disk / _GB:.1f} GB free{hint}", state)


def _processor() -> str:
    """Return the processor's name. Source: proc(5), cpuinfo, "model name"."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or "name unknown"
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or "name unknown")


def _memory() -> tuple[int, int] | None:
    """Return all and free memory in bytes. Source: sysconf(3)."""
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        return os.sysconf("SC_PHYS_PAGES") * page, os.sysconf("SC_AVPHYS_PAGES") * page
    except (AttributeError, OSError, ValueError):
        return None


def graphics() -> Iterator[Finding]:
    """Yield the cards that the driver knows and the devices that torch sees."""
    program = find_program("nvidia-smi")
    if program is None:
        yield Finding("graphics card", "no NVIDIA driver found: the processor is used", State.NOTE)
    else:
        yield Finding("graphics card", _cards(program))
    if importlib.util.find_spec("torch") is None:
        text = 'not installed: networks cannot run; pip install "napari-mamamia[segment]"'
        yield Finding("torch", text, State.NOTE)
        return
    version = importlib.metadata.version("torch")
    try:
        device = choose_device("auto")
    except MamamiaError as error:
        yield Finding("torch", f"{version}, but {error}", State.NOTE)
        return
    blind = program is not None and device == "cpu"
    hint = ", although there is a card: install a torch that fits its driver" if blind else ""
    yield Finding(
        "torch", f"{version}, runs on {device}{hint}", State.FAILED if blind else State.OK
    )


def _cards(program: str) -> str:
    query = "--query-gpu=name,driver_version,memory.total,memory.free"
    answer = answer_of((program, query, "--format=csv,noheader"), _ASK_SECONDS)
    if not answer.is_good:
        return "the NVIDIA driver is installed but does not answer"
    return "; ".join(f"name, driver, memory, free: {line}" for line in answer.said.splitlines())


def extras() -> Iterator[Finding]:
    """Yield which optional packages are installed, in which version."""
    for extra, packages in _EXTRAS:
        found = [(name, _version(name)) for name in packages]
        missing = [name for name, version in found if not version]
        text = ", ".join(f"{name} {version}" for name, version in found if version)
        if missing:
            lacks = f"without {', '.join(missing)}"
            text = f"{text}; {lacks}" if text else "not installed"
        yield Finding(f"extra [{extra}]", text, State.NOTE if missing else State.OK)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def isolation() -> Iterator[Finding]:
    """Yield what can keep a submission in, or why nothing can."""
    check = find_isolation()
    for found in check.usable:
        yield Finding("isolation", found.text)
    if is_root():
        text = "this is root: foreign programs run with --as-root only, better as another account"
        yield Finding("account", text, State.NOTE)
    if not check.usable:
        reasons = "; ".join(without_names(reason) for reason in check.reasons)
        yield Finding("isolation", f"none, submissions need your consent: {reasons}", State.NOTE)


def without_names(text: str, case_id: str = "") -> str:
    """Return a message without folders, the user's, the computer's and the case's name."""
    words = []
    for word in text.split():
        bare = word.strip("\"'(),;:")
        is_path = "/" in bare or "\\" in bare or bare.startswith("~")
        words.append(word.replace(bare, "[path]") if is_path and len(bare) > 1 else word)
    joined = " ".join(words)
    for name in (case_id, Path.home().name, platform.node()):
        joined = joined.replace(name, "[name]") if len(name) > 2 else joined
    return joined
