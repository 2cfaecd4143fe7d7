"""Program inside the sandbox that loads and calls a submission as the challenge does.

It is started by its path with the submission's own Python, in which this software may not be
installed. Therefore it uses only the standard library and imports nothing from napari_mamamia.

Input: one JSON line on standard input contains the order. When standard input ends, the parent
process has ended, and the runner ends too. Output: events as JSON lines on standard output, which
the submission cannot use; its printed output goes to standard error. Source of the contract: the
MAMA-MIA challenge's sample submission.
"""

import ctypes
import importlib
import json
import os
import runpy
import signal
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TextIO

OWN_TASK: Final = "own"
"""Name of the task that runs the ``main`` function of a module of this software."""

PROCESS_HANDLES: Final = 8192
"""Maximum number of open files per process, which also limits files in transit in sockets."""
_PENDING_SIGNALS: Final = 4096
_BECOME_SUBREAPER: Final = 36  # PR_SET_CHILD_SUBREAPER of linux/prctl.h
_EXIT_FAILED: Final = 1
_EXIT_ALONE: Final = 3
_KEPT_TEXT: Final = 2000


class RestrictedDataset:
    """The data that a submission receives: case ids, paths of phases, and facts about cases."""

    def __init__(self, patients: Sequence[Mapping[str, Any]]) -> None:
        self._patients = {str(patient["id"]): patient for patient in patients}

    def get_patient_id_list(self) -> list[str]:
        """Return the ids of the cases."""
        return list(self._patients)

    def get_dce_mri_path_list(self, patient_id: str) -> list[str]:
        """Return the phases' files in chronological order, with the pre-contrast phase first."""
        return list(self._patients[patient_id]["phases"])

    def read_json_file(self, patient_id: str) -> dict[str, Any] | None:
        """Return the facts about a case as a dictionary, or None if the data set has none."""
        info = self._patients[patient_id]["info"]
        return None if info is None else json.loads(json.dumps(info))


def main() -> None:
    """Execute the order read from standard input, and leave no process running."""
    order = json.loads(sys.stdin.buffer.readline())
    events = os.fdopen(os.dup(1), "w", encoding="utf-8", closefd=True)
    os.dup2(2, 1)  # Prints of a submission must not mix with the events.
    _set_limits(order)
    if order.get("cuda_on_processor"):
        runpy.run_path(f"{order['cuda_on_processor']}/sitecustomize.py", run_name="sitecustomize")
        os.environ["PYTHONPATH"] = order[
            "cuda_on_processor"
        ]  # for processes that the submission starts
    if not hasattr(os, "fork"):
        threading.Thread(target=_end_when_alone, daemon=True).start()
        sys.exit(_run_submission(order, events))
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_BECOME_SUBREAPER, 1, 0, 0, 0)
    child = os.fork()
    if child == 0:
        # The input belongs to the parent: its end means that the parent is gone, so nothing else
        # may read from it.
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os._exit(_run_submission(order, events))
    events.close()
    threading.Thread(target=_end_when_alone, daemon=True).start()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    _end_children()
    # As a shell reports a signal: 128 and its number.
    os._exit(code if code >= 0 else 128 - code)


def _run_submission(order: Mapping[str, Any], events: TextIO) -> int:
    """Run the submission in this process; return 0 if it completes the order."""
    started = time.monotonic()

    def say(**event: object) -> None:
        with suppress(OSError, ValueError):
            events.write(json.dumps({**event, "seconds": time.monotonic() - started}) + "\n")
            events.flush()

    step = "importing model.py"
    try:
        sys.path[:0] = order["import_paths"]
        if order["task"] == OWN_TASK:
            step = "the work"
            importlib.import_module(order["module"]).main(order)
            say(event="finished")
            return 0
        model_class = importlib.import_module(order["module"]).Model
        step = "Model(dataset)"
        model = model_class(RestrictedDataset(order["patients"]))
        say(event="loaded")
        step = "class Model"
        for step, call in _list_calls(model, order["task"]):
            say(event="calling", step=step)
            _write_table(call(order["output"]), step, Path(order["output"]))
    except BaseException as error:  # noqa: BLE001 - whatever a submission raises is an event
        traceback.print_exc()
        text = f"{type(error).__name__}: {error}"[:_KEPT_TEXT]
        say(event="failed", step=step, error=text)
        return _EXIT_FAILED
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
    say(event="finished")
    return 0


def _list_calls(model: Any, task: str) -> list[tuple[str, Any]]:
    """Return the methods to call, in order; one method for both tasks replaces two."""
    both = "predict_segmentation_and_classification"
    if hasattr(model, both):
        return [(both, getattr(model, both))]
    names = []
    if task != "classification" or hasattr(model, "predict_segmentation"):
        names.append("predict_segmentation")
    if task != "segmentation":
        names.append("predict_classification")
    for name in names:
        if not hasattr(model, name):
            raise AttributeError(f"expected class Model to have a method {name}, but it has none")
    return [(name, getattr(model, name)) for name in names]


def _write_table(returned: object, step: str, output: Path) -> None:
    """Write the table that a submission returns to predictions.csv."""
    if step == "predict_segmentation":
        return
    if step == "predict_segmentation_and_classification":
        if not isinstance(returned, tuple) or len(returned) != 2:
            kind = type(returned).__name__
            raise TypeError(
                f"expected {step} to return (folder, DataFrame), but it returned {kind}"
            )
        returned = returned[1]
    if not hasattr(returned, "to_csv"):
        kind = type(returned).__name__
        raise TypeError(f"expected {step} to return a pandas DataFrame, but it returned {kind}")
    returned.to_csv(output / "predictions.csv", index=False)


def _set_limits(order: Mapping[str, Any]) -> None:
    """Limit file sizes, processes, open files, and the kernel's message and signal queues.

    If the account already has a lower limit, that limit is kept.
    """
    try:
        resource: Any = import_module("resource")
    except ImportError:  # Windows
        return
    limits = (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, order["file_bytes"]),
        (resource.RLIMIT_NPROC, order["processes"]),
        (resource.RLIMIT_NOFILE, PROCESS_HANDLES),
        (getattr(resource, "RLIMIT_MSGQUEUE", None), 0),
        (getattr(resource, "RLIMIT_SIGPENDING", None), _PENDING_SIGNALS),
    )
    for what, most in limits:
        with suppress(OSError, ValueError, TypeError):  # other systems lack some
            soft, hard = resource.getrlimit(what)
            allowed = [
                most if old == resource.RLIM_INFINITY else min(most, old) for old in (soft, hard)
            ]
            resource.setrlimit(what, tuple(allowed))


def _end_when_alone() -> None:
    """Exit when standard input ends, which means that the parent process has ended."""
    while os.read(0, 4096):
        pass
    if hasattr(os, "fork"):
        _end_children()
    os._exit(_EXIT_ALONE)


def _end_children() -> None:
    """Kill all child processes, including orphans that this process has adopted."""
    while True:
        for pid in _list_children():
            with suppress(OSError):
                os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _list_children() -> list[int]:
    children = []
    pid = str(os.getpid())
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError):
            fields = (
                (entry / "stat").read_text("utf-8", errors="replace").rpartition(")")[2].split()
            )
            if fields[1] == pid:  # The threads of an ended process may continue.
                children.append(int(entry.name))
    return children


if __name__ == "__main__":
    main()
