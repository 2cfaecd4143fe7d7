"""Layout and limits of a sandbox: the paths of Python, submission, images and output."""

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.choices import Task
from napari_mamamia.core.errors import ModelError, SaveError
from napari_mamamia.core.program.child_environment import find_program
from napari_mamamia.core.program.child_process import Answer, answer_of
from napari_mamamia.core.program.system import total_memory_bytes
from napari_mamamia.segmentation.sandbox.external import INGESTED, Submission
from napari_mamamia.segmentation.sandbox.runner import OWN_TASK

CHALLENGE_SECONDS: Final = 300.0
"""The challenge's time limit for one case, in seconds. Source: its rules, 5 minutes per image."""

GIGABYTE: Final = 10**9
_MEMORY_SHARE: Final = 0.75


# Mounted in the sandbox as files: nothing of ours is imported there, and `cuda` nowhere else.
_RUNNER_FILE: Final = Path(__file__).with_name("runner.py")
_CUDA_FILE: Final = Path(__file__).with_name("cuda.py")
_RUNNER: Final = "/app/runner.py"
_MODULES: Final = "/app/modules"
_CUDA: Final = "/app/cuda"
_DATA: Final = "/app/input_data"
_OUTPUT: Final = "/app/output"
_ASK: Final = "import json, sys; print(json.dumps([sys.executable, sys.prefix, sys.base_prefix]))"
_ASK_SECONDS: Final = 60.0
_PASSED_ON: Final = ("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "MKL_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Patient:
    """A case in the form that the challenge's contract requires.

    `phases` are single-volume ``.nii.gz`` files in order of time. `info` is a JSON string with the
    challenge's facts about the case, or "" for none.
    """

    case_id: str
    phases: tuple[Path, ...]
    info: str = ""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python interpreter with its folders; `program` is its path, also inside the sandbox."""

    program: str
    folders: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Files and start command of a sandbox.

    `readable` is as in `isolation.Sandbox`. `order` is the runner's order as JSON. `command` starts
    the runner. `output` is the outside path of the submission's output folder.
    """

    readable: tuple[tuple[Path, str], ...]
    output: tuple[Path, str]
    command: tuple[str, ...]
    order: str


def find_interpreter(python: Path | None = None) -> Interpreter:
    """Return the Python interpreter at a path, with its folders; None means this interpreter.

    Raises
    ------
    ModelError
        If the interpreter does not start, or one of its folders is or contains the user's home
        folder.
    """
    program = _program_of(python)
    answer = answer_of((program, "-I", "-c", _ASK), _ASK_SECONDS)
    try:
        executable, prefix, base = json.loads(answer.said)
    except ValueError as error:
        raise ModelError(
            f"expected {program} to be a Python interpreter that starts, but it does not "
            f"({_why_none(answer)}): choose the Python interpreter of the environment that the "
            "submission needs"
        ) from error
    links = (
        Path(executable).resolve().parent.parent
    )  # the target of a virtual environment's python link
    folders = tuple(
        folder
        for folder in dict.fromkeys((Path(prefix), Path(base), links))
        if not folder.is_relative_to("/usr")
    )
    home = Path.home().resolve()
    for folder in folders:
        if home.is_relative_to(folder.resolve()):
            raise ModelError(
                f"expected the Python interpreter {program} to be outside personal folders, which "
                f"a submission must not see, but it is in {folder}: create a virtual environment "
                "for the submission elsewhere (python -m venv)"
            )
    return Interpreter(executable, folders)


def _program_of(python: Path | None) -> str:
    """Return the absolute path of a Python interpreter; a bare name is looked up in PATH."""
    if python is None:
        return sys.executable
    if python.name == str(python) and (program := find_program(python.name)):
        return program
    return os.path.abspath(python)  # noqa: PTH100 - a link's own place tells the environment


def _why_none(answer: Answer) -> str:
    lines = [line for line in answer.errors.splitlines() if line.strip()]
    return answer.problem or (lines[-1][:200] if lines else f"exit code {answer.code}")


def environment(home: str) -> dict[str, str]:
    """Return a minimal set of environment variables for a submission, without the user's own."""
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {
        **passed,
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": home,
        "TMPDIR": home,
        "USER": "runner",
        "LOGNAME": "runner",
        "LANG": "C.UTF-8",
        "MPLBACKEND": "agg",
    }


def lay_out(
    submission: Submission,
    patients: Sequence[Patient],
    task: Task,
    work: Path,
    python: Interpreter | None,
    *,
    closed: bool,
    cuda_on_processor: bool = False,
) -> Layout:
    """Return the layout of a sandbox for some patients, and create its folders in `work`.

    Parameters
    ----------
    submission, patients, task
        The submission, its cases, and the task that it performs.
    work
        An empty folder.
    python
        The Python interpreter; None uses the container's own ``python``.
    closed
        Whether there is a sandbox. If not, the images are copied, so that a submission cannot reach
        the
        data set through their paths, and the submission runs in its own folder.
    cuda_on_processor
        Whether CUDA requests are run on the CPU; see `cuda`.
    """
    output = work / "output"
    output.mkdir(parents=True)
    if closed:
        readable = tuple(_list_readable(submission, patients, work, python))
        paths = [[_phase_path(_DATA, p, k) for k in range(len(p.phases))] for p in patients]
        roots = (INGESTED, _OUTPUT, _RUNNER)
    else:
        readable = ()
        paths = [list(_copy_phases(patient, work / "input_data")) for patient in patients]
        roots = (str(submission.folder), str(output), str(_RUNNER_FILE))
    program = python.program if python else "python"
    order = _make_order(submission, patients, paths, task, roots[0], roots[1])
    if cuda_on_processor:
        folder = work / "cuda"
        folder.mkdir()
        shutil.copyfile(_CUDA_FILE, folder / "sitecustomize.py")
        readable = (*readable, (folder, _CUDA)) if closed else ()
        order["cuda_on_processor"] = _CUDA if closed else str(folder)
    command = (program, "-I", "-B", "-u", roots[2])
    return Layout(readable, (output, _OUTPUT), command, json.dumps(order))


def lay_out_module(
    module: Path, given: Path, order: Mapping[str, str], work: Path, python: Interpreter
) -> Layout:
    """Return the layout of a sandbox in which a module of this software reads one file.

    The module's ``main`` is called with `order`, to which the sandbox paths of the file (``given``)
    and of the output folder (``output``) are added.

    Parameters
    ----------
    module
        The module's file.
    given
        The file to read.
    order
        The order for the module's ``main``.
    work
        An empty folder.
    python
        The Python interpreter that runs the module.
    """
    output = work / "output"
    output.mkdir(parents=True)
    readable = (
        *((folder, str(folder)) for folder in python.folders),
        (_RUNNER_FILE, _RUNNER),
        (module, f"{_MODULES}/{module.name}"),
        (given.resolve(), f"{_DATA}/{given.name}"),
    )
    content = {
        **order,
        "import_paths": [_MODULES],
        "module": module.stem,
        "output": _OUTPUT,
        "task": OWN_TASK,
        "given": f"{_DATA}/{given.name}",
    }
    command = (python.program, "-I", "-B", "-u", _RUNNER)
    return Layout(readable, (output, _OUTPUT), command, json.dumps(content))


def _make_order(
    submission: Submission,
    patients: Sequence[Patient],
    paths: Sequence[Sequence[str]],
    task: Task,
    root: str,
    output: str,
) -> dict[str, Any]:
    """Return the order for the runner; see `runner.main`."""
    above, _, folder = root.rpartition("/")
    cases: list[dict[str, Any]] = [
        {"id": p.case_id, "phases": phase_paths, "info": json.loads(p.info) if p.info else None}
        for p, phase_paths in zip(patients, paths, strict=True)
    ]
    return {
        "import_paths": [above, root] if submission.is_package else [root, above],
        "module": f"{folder}.model" if submission.is_package else "model",
        "output": output,
        "task": task.value,
        "patients": cases,
    }


def _list_readable(
    submission: Submission, patients: Sequence[Patient], work: Path, python: Interpreter | None
) -> Iterator[tuple[Path, str]]:
    """Yield the mounts of a sandbox, including mount points for nested mounts."""
    for folder in python.folders if python else ():
        yield folder, str(folder)
    yield _RUNNER_FILE, _RUNNER
    places = work / "ingested_program"
    places.mkdir()
    entries = tuple(submission.entries())
    for entry in entries:
        target = places / entry.name
        target.mkdir() if entry.is_dir() else target.touch()
    for name in submission.layouts:
        (places / name).mkdir(exist_ok=True)
    yield places, INGESTED
    for entry in entries:
        yield entry.resolve(), f"{INGESTED}/{entry.name}"
    for name in submission.layouts:
        yield submission.folder, f"{INGESTED}/{name}"
    for patient in patients:
        for index, phase in enumerate(patient.phases):
            yield phase.resolve(), _phase_path(_DATA, patient, index)


def _phase_path(root: str, patient: Patient, index: int) -> str:
    return f"{root}/images/{patient.case_id}/{patient.case_id}_{index:04d}.nii.gz"


def _copy_phases(patient: Patient, folder: Path) -> Iterator[str]:
    for index, phase in enumerate(patient.phases):
        target = Path(_phase_path(str(folder), patient, index))
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(phase, target)
        except OSError as error:
            raise SaveError(
                f"cannot copy {phase} for the submission: {error.strerror or error}; free some "
                "space, and check that the file can be read"
            ) from error
        yield str(target)


def usual_memory_bytes() -> int:
    """Return three quarters of this computer's memory in bytes, or 8 GB if it is unknown."""
    total = total_memory_bytes()
    return 8 * GIGABYTE if total is None else int(total * _MEMORY_SHARE)


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Limits of a run; exceeding one of them ends the run, except for `log_bytes`.

    Parameters
    ----------
    seconds
        Wall-clock time, including the start of Python and the loading of weights.
    memory_bytes
        Memory of all processes together, including kernel memory and in-memory folders; see
        `watch.RESOURCES`.
    processes
        Number of simultaneous processes (and threads, if the kernel counts them).
    output_bytes
        Total size of the written files, including deleted files that are still open.
    log_bytes
        Size of the log of printed output; further output is counted and dropped.
    scratch_bytes
        Size of each temporary in-memory folder.
    handles
        Number of open files, pipes, sockets, file locks and epoll watches of all processes
        together.
    """

    seconds: float = CHALLENGE_SECONDS
    memory_bytes: int = 0
    processes: int = 512
    output_bytes: int = 20 * GIGABYTE
    log_bytes: int = 2 * 2**20
    scratch_bytes: int = 2 * GIGABYTE
    handles: int = 65_536

    def __post_init__(self) -> None:
        if not self.memory_bytes:
            object.__setattr__(self, "memory_bytes", usual_memory_bytes())
        for name in (
            "seconds",
            "memory_bytes",
            "processes",
            "output_bytes",
            "log_bytes",
            "handles",
        ):
            if not getattr(self, name) > 0:
                raise ValueError(
                    f"expected the limit {name} to be above 0, but it is {getattr(self, name)}"
                )


class Ending(StrEnum):
    """How a run ended."""

    FINISHED = "finished"
    FAILED = "failed"
    """The submission raised an error."""
    DIED = "died"
    """The process of the submission ended without reporting an error."""
    TIME = "time limit"
    MEMORY = "memory limit"
    PROCESSES = "process limit"
    OUTPUT = "output limit"
    HANDLES = "handle limit"


@dataclass(frozen=True, slots=True)
class RunOfSubmission:
    """How a run ended, the reason ("" if it finished), and the resources it used.

    `peak_bytes` is the peak memory of all processes together, None if unknown. `dropped_bytes` is
    the amount of printed output that is not in the log.
    """

    ending: Ending
    reason: str
    seconds: float
    peak_bytes: int | None
    dropped_bytes: int
