"""Run long tasks of the library with a progress bar."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Any, Final, TypeVar

from napari_mamamia.core.progress import Progress, listening

T = TypeVar("T")
Report = Callable[[Progress], None]

_PATIENCE_S: Final = 0.5
"""Seconds before the progress bar appears."""
_PACE_S: Final = 0.1


def drive(work: Callable[[], T], progress: bool = True, *, starts_processes: bool = False) -> T:
    """Run a long task and return its result; Ctrl-C stops it, leaving no unfinished files.

    With `progress`, a bar is shown in a terminal or a notebook, but only in the main thread and not
    if the output goes to a file. With `starts_processes`, new processes do not run the caller's
    script; see `_script_unnamed`.
    """
    place = _script_unnamed() if starts_processes else nullcontext()
    with _show_bar(progress) as report, place, listening(report):
        return work()


@contextmanager
def _script_unnamed() -> Iterator[None]:
    """Prevent processes that are started in this context from running the caller's script again.

    multiprocessing runs the file of ``__main__`` in each process. A script without ``if __name__ ==
    "__main__"`` would repeat its work in each process. Our processes do not need the script.
    """
    main = sys.modules["__main__"]
    names = {name: getattr(main, name) for name in ("__file__", "__spec__") if hasattr(main, name)}
    for name in names:
        setattr(main, name, None)
    try:
        yield
    finally:
        for name, value in names.items():
            setattr(main, name, value)


@contextmanager
def _show_bar(wanted: bool) -> Iterator[Report | None]:
    if not wanted or threading.current_thread() is not threading.main_thread():
        yield None
    elif _in_notebook():
        with _notebook_bar() as report:
            yield report
    elif sys.stderr is not None and sys.stderr.isatty():
        with _terminal_bar() as report:
            yield report
    else:
        yield None


def _in_notebook() -> bool:
    """Return whether the code runs in a Jupyter kernel, which can replace earlier output."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


@contextmanager
def _terminal_bar() -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TimeRemainingColumn())
    text = TextColumn("{task.description}", markup=False)
    with Bar(*columns, text, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def report(step: Progress) -> None:
            bar.update(task, completed=step.done, total=step.total, description=step.text)

        yield report


@contextmanager
def _notebook_bar() -> Iterator[Report]:
    show: Any = import_module("IPython.display")
    begun = spoken = time.monotonic()
    handle: Any = None

    def report(step: Progress) -> None:
        nonlocal handle, spoken
        now = time.monotonic()
        if now - begun < _PATIENCE_S or now - spoken < _PACE_S:
            return
        spoken = now
        shown = {"text/plain": _as_text(step), "text/html": _as_html(step)}
        if handle is None:
            handle = show.display(shown, raw=True, display_id=True)
        else:
            handle.update(shown, raw=True)

    try:
        yield report
    finally:
        if handle is not None:
            handle.update({"text/plain": "", "text/html": ""}, raw=True)


def _as_text(step: Progress) -> str:
    return f"{step.fraction:4.0%}  {step.text}"


def _as_html(step: Progress) -> str:
    from html import escape

    return (
        f'<progress max="1" value="{step.fraction:.3f}"></progress> '
        f"{step.fraction:.0%} {escape(step.text)}"
    )
