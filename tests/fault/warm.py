"""A process that has imported the package and runs one command after the other in forked children.

``python warm.py`` reads trials as lines of JSON and answers each with a line. A child is a command
as its user has it: its own session, folder, environment and streams; it ends as a program ends.
This process inherits what a killed child leaves running, tells of it, and ends it.
"""

import atexit
import ctypes
import gc
import importlib
import io
import json
import os
import pkgutil
import select
import signal
import sys
import tempfile
import threading
import time
from contextlib import redirect_stderr, suppress
from pathlib import Path
from types import SimpleNamespace

from napari_mamamia.core import progress
from napari_mamamia.core.program import garbage
from napari_mamamia.core.progress import report_progress

PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
PATIENCE_S = 5.0
COLD = ("child", "cluster")
FOREIGN = ("nibabel", "pandas", "openpyxl", "pyarrow.parquet", "pydicom", "highdicom", "SimpleITK")
FOREIGN += ("dicomweb_client", "rich.table", "rich.progress", "jinja2", "scipy.ndimage")
FOREIGN += ("typer.rich_utils", "rich._emoji_codes")
# What a function imports when it draws or tests: the first time costs seconds, and a list of fonts.
FOREIGN += ("matplotlib.figure", "matplotlib.style", "matplotlib.backends.backend_agg")
FOREIGN += ("matplotlib.backends.backend_svg", "scipy.stats", "scipy.interpolate")


def warm_up() -> None:
    import napari_mamamia.cli
    import napari_mamamia.services

    for room in (napari_mamamia.services, napari_mamamia.cli):
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            if module.name.rpartition(".")[2] not in COLD:
                importlib.import_module(module.name)
    for name in FOREIGN:
        importlib.import_module(name)
    with suppress(SystemExit), redirect_stderr(io.StringIO()):
        sys.argv = ["mamamia", "cases", os.devnull]
        napari_mamamia.cli.main()
    gc.collect()
    gc.freeze()  # else each child spends half a second on taking all modules apart


def main() -> None:
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    sys.path.insert(0, str(Path(__file__).parent))
    warm_up()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print("warm", file=answers, flush=True)
    for line in sys.stdin:
        trial = json.loads(line)
        pid = os.fork()
        if pid == 0:
            run_command(trial)
        print(json.dumps(watched(pid, trial)), file=answers, flush=True)


def run_command(trial: dict) -> None:
    """Be the command; never returns."""
    os.setsid()
    for number, name, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, trial["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        (2, trial["err"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
    ):
        os.dup2(os.open(name, flags, 0o600), number)
    os.chdir(trial["cwd"])
    os.environ.update(trial["env"])
    tempfile.tempdir = None
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):  # as a shell starts it
        signal.signal(number, signal.SIG_DFL)
    from faults import Faults, install

    from napari_mamamia.cli import main as command

    keep_left_out()
    if trial["dots"]:
        draw_dots()
    if trial["kind"] == "silence":
        from silence import silence

        faults = silence(trial["root"], trial["at"], trial["pipe"])
    else:
        faults = Faults(trial["root"], trial["kind"], trial["at"], trial["number"])
        install(faults)
    sys.argv = ["mamamia", *trial["argv"]]
    code = 0
    try:
        command()
    except BaseException as error:  # noqa: BLE001 - whatever it is, it ends the program
        code = code_of(error)
    Path(trial["counts"]).write_text(json.dumps(faults.counts))
    end_with(code)


def keep_left_out() -> None:
    """Leave what the warm process imported out of collections, though a long job takes all back.

    A million objects, each on a page that the child has then for itself: 0.3 s at the end of each
    such command. What the program leaves out and takes back, tests/core holds.
    """
    kept = SimpleNamespace(**vars(gc) | {"freeze": lambda: None, "unfreeze": lambda: None})
    for module in (garbage, progress):
        module.gc = kept


def end_with(code: int) -> None:
    """End as Python does, but for taking 2,500 modules apart: 0.2 s after each command."""
    gc.collect()
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def code_of(error: BaseException | None) -> int:
    """Return the exit status that Python gives for what ended the program; print a traceback."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if error is not None:
        sys.excepthook(type(error), error, error.__traceback__)
    return int(error is not None)


def draw_dots() -> None:
    """Put a dot in the place of each figure: matplotlib takes 2 s for those of one report."""
    from contextlib import nullcontext

    from napari_mamamia.features.classifiers.services.detection import score_detection
    from napari_mamamia.scoring.report import drawing as drawings
    from napari_mamamia.services.score import report as score_report

    def draw(drawing):
        report_progress(0, 1, "Drawing")
        return draw_dot(drawing)

    def draw_dot(drawing):
        return drawings.Drawn(b"\x89PNG", "<svg></svg>" if drawing.has_svg else "")

    drawings.draw_now = draw_dot
    score_report.drawing_place = lambda: nullcontext(draw)
    score_detection.drawing_place = lambda: nullcontext(draw)


def watched(pid: int, trial: dict) -> dict:
    """Wait for the command's end, and see what outlives it."""
    began = time.monotonic()
    handle = os.pidfd_open(pid)
    ended = bool(select.select([handle], [], [], trial["limit_s"])[0])
    if not ended:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    os.close(handle)
    seconds = time.monotonic() - began
    return {
        "code": os.waitstatus_to_exitcode(status),
        "hung": not ended,
        "seconds": seconds,
        "orphans": left_running(),
    }


def left_running() -> list[str]:
    """Return the command lines of processes that the command left, after a while; end them."""
    end = time.monotonic() + PATIENCE_S
    while (left := children()) and time.monotonic() < end:
        time.sleep(0.02)
    said = [" ".join(command_line(pid))[:200] for pid in left]
    while left:
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
        left = children()
    return said


def children() -> list[int]:
    """Return this process's children that run; those that ended are let go of."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return []
    return [
        int(pid)
        for pid in Path("/proc/self/task", str(os.getpid()), "children").read_text().split()
    ]


def command_line(pid: int) -> list[str]:
    return Path("/proc", str(pid), "cmdline").read_bytes().decode(errors="replace").split("\0")


if __name__ == "__main__":
    main()
