"""Run work that would block the window in a subprocess.

Matplotlib and pyarrow hold the interpreter's lock for up to 0.3 s while loading and working, and
cannot be divided into smaller steps. They would block the window even in a thread.
"""

import hashlib
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any, TypeVar

from napari_mamamia.core.errors import SaveConflictError, SaveError
from napari_mamamia.core.progress import report_progress, saying
from napari_mamamia.core.records import CaseScore
from napari_mamamia.io.tables.tables import read_case_scores, write_case_scores
from napari_mamamia.scoring.report.drawing import Draw, Drawing, Drawn, draw_here, draw_now
from napari_mamamia.services.batch.child import Child, attempt_in_child
from napari_mamamia.services.batch.work import CaseInputs, CaseWork

R = TypeVar("R")


@contextmanager
def drawing_place() -> Iterator[Draw]:
    """Yield a function that draws figures, in this process only if called from the main thread.

    Work outside the main thread belongs to a window, which must not wait for Matplotlib, so a
    subprocess draws the figures. The subprocess starts with the first figure and ends with the
    context or with this process.
    """
    if current_thread() is main_thread():
        yield draw_here
        return
    with drawing_beside() as draw:
        yield draw


@contextmanager
def drawing_beside() -> Iterator[Draw]:
    """Yield a function that draws figures in a subprocess; each figure is drawn once."""
    with closing(Child()) as child:
        yield partial(_drawn_beside, child, {})


def _drawn_beside(child: Child, known: dict[bytes, Drawn], drawing: Drawing) -> Drawn:
    report_progress(0, 1, "Drawing")
    key = hashlib.sha256(pickle.dumps(drawing)).digest()
    if key not in known:
        known[key] = run_in_subprocess(child, _draw_figure, drawing, Drawn, "Drawing")
    return known[key]


def write_parquet(rows: Sequence[CaseScore], csv: Path, *, overwrite: bool = False) -> None:
    """Write ``case_scores.parquet`` next to the table ``case_scores.csv``.

    Outside the main thread, `csv` is converted in a subprocess.

    Raises
    ------
    SaveConflictError
        If the file exists and `overwrite` is False.
    SaveError
        If the file cannot be written.
    """
    path = csv.with_suffix(".parquet")
    if current_thread() is main_thread():
        write_case_scores(rows, path, overwrite=overwrite)
        return
    if path.exists() and not overwrite:
        raise SaveConflictError(
            f"{path} already exists: choose a different folder, or allow overwriting"
        )
    with closing(Child()) as child:
        run_in_subprocess(
            child,
            _convert_table,
            _Table(csv.absolute(), path.absolute()),
            bool,
            f"Writing {path.name}",
        )


@dataclass(frozen=True, slots=True)
class _Table:
    csv: Path
    parquet: Path


def _convert_table(inputs: CaseInputs, table: _Table) -> bool:
    """Convert the table to .parquet; this function runs in the subprocess."""
    del inputs
    write_case_scores(read_case_scores(table.csv), table.parquet, overwrite=True)
    return True


def _draw_figure(inputs: CaseInputs, drawing: Drawing) -> Drawn:
    """Draw a figure; this function runs in the subprocess."""
    del inputs
    return draw_now(drawing)


def run_in_subprocess(
    child: Child,
    function: Callable[[CaseInputs, Any], R],
    argument: object,
    result: type[R],
    text: str,
) -> R:
    """Call `function` with `argument` in a subprocess and return its result.

    Raises
    ------
    SaveError
        If the subprocess fails; the message gives the reason.
    """
    work = CaseWork(text, function, argument, result)
    with saying(text):
        outcome = attempt_in_child(child, work, CaseInputs(text), None)
    if outcome.result is None:
        raise SaveError(f"expected an answer from the subprocess, but {outcome.reason}: try again")
    answer: R = outcome.result
    return answer
