"""Foreign programs for the tests: small submissions, run once, and what is left of them."""

import textwrap
from dataclasses import dataclass
from pathlib import Path

from napari_mamamia.core.choices import IsolationKind, Task
from napari_mamamia.segmentation.sandbox.external import read_submission
from napari_mamamia.segmentation.sandbox.isolation import Isolation, find_isolation
from napari_mamamia.segmentation.sandbox.run import run_submission_once
from napari_mamamia.segmentation.sandbox.sandbox import (
    Patient,
    RunLimits,
    RunOfSubmission,
    find_interpreter,
)

OPEN = Isolation(IsolationKind.NONE)

# every process of the submission carries this name, which the tests look for afterwards
NAMED = """
import ctypes
ctypes.CDLL(None).prctl(15, b"{name}", 0, 0, 0)
"""

MODEL = """
{before}
class Model:
    def __init__(self, dataset):
        self.dataset = dataset
    def predict_segmentation(self, output_dir):
        from pathlib import Path
        out = Path(output_dir)
{body}
        return output_dir
"""


@dataclass(frozen=True)
class Foreign:
    """How it ended, where it wrote and what its log says."""

    run: RunOfSubmission
    output: Path
    log: str


def sandbox():
    """Return bubblewrap where it works here, else the reason why not."""
    check = find_isolation((IsolationKind.BUBBLEWRAP,))
    return check.usable[0] if check.usable else check.reasons[0]


def write_submission(folder, body, name="", before=""):
    folder.mkdir(parents=True, exist_ok=True)
    before += NAMED.format(name=name) if name else ""
    text = MODEL.format(before=before, body=textwrap.indent(textwrap.dedent(body), " " * 8))
    (folder / "model.py").write_text(text)
    return folder


def job_of(tmp_path, folder, isolation, phases=(), task=Task.SEGMENTATION, **limits):
    work = tmp_path / "work"
    work.mkdir()
    return run_submission_once(
        read_submission(folder),
        [Patient("A_1", tuple(phases))],
        task,
        isolation,
        find_interpreter(),
        RunLimits(**{"seconds": 30.0, **limits}),
        work,
        tmp_path / "log.txt",
    )


def run_foreign(tmp_path, body, isolation, *, name="", before="", phases=(), **limits):
    folder = write_submission(tmp_path / "foreign_sub", body, name, before)
    run = job_of(tmp_path, folder, isolation, phases, **limits)
    return Foreign(run, tmp_path / "work" / "output", (tmp_path / "log.txt").read_text())


def processes_named(name):
    """Return the processes of that name that have not ended."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text()
        except OSError:
            continue
        inside, _, rest = fields.partition("(")[2].rpartition(")")
        # "X": its end was told already, its entry goes in a moment
        if inside == name and rest.split()[0] not in "ZX":
            found.append(int(entry.name))
    return found
