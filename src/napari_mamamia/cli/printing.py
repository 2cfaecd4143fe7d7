"""What the commands print: tables, failures, and a progress bar on the error stream."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import typer

from napari_mamamia.core.progress import Job, Progress, run_job
from napari_mamamia.io.csv_text import write_csv

if TYPE_CHECKING:
    from napari_mamamia.core.records import CaseFailure, CaseScore
    from napari_mamamia.services.data_set import CaseRow, OpenDataSet

__all__ = [
    "NOT_EVERY_CASE",
    "STOPPED",
    "finish",
    "print_case_csv",
    "print_case_table",
    "print_scores",
    "run",
]

T = TypeVar("T")

NOT_EVERY_CASE = 3
STOPPED = 130


def run(job: Job[T]) -> T:
    """Drive a job with a progress bar on the error stream; Ctrl-C says what is kept."""
    try:
        with _progress_bar() as report:
            return run_job(job, report)
    except KeyboardInterrupt:
        print("stopped; what was finished is kept", file=sys.stderr)
        raise typer.Exit(STOPPED) from None


@contextmanager
def _progress_bar() -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TimeRemainingColumn())
    with Bar(
        *columns,
        TextColumn("{task.description}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task("", total=None)

        def report(progress: Progress) -> None:
            bar.update(
                task, completed=progress.done, total=progress.total, description=progress.text
            )

        yield report


def finish(failures: "tuple[CaseFailure, ...]") -> None:
    """Print each failure; exit with 3 if there is one."""
    for failure in failures:
        print(f"failed: {failure.case_id}: {failure.reason}", file=sys.stderr)
    if failures:
        raise typer.Exit(NOT_EVERY_CASE)


def print_scores(rows: "tuple[CaseScore, ...]") -> None:
    """Print the table of cases, and below it why some are not ok."""
    from rich.console import Console
    from rich.table import Table

    profile = rows[0].profile if rows else "clinical"
    table = Table(title=f"Case scores (profile: {profile})")
    table.add_column("case")
    table.add_column("status")
    for head in ("Dice", "HD95 mm", "NormHD", "NSD 1 mm", "reference ml", "prediction ml"):
        table.add_column(head, justify="right")
    for row in rows:
        volumes = (row.volume_reference_mm3 / 1000, row.volume_prediction_mm3 / 1000)
        table.add_row(
            row.case_id,
            row.status.value,
            _number(row.dsc, 3),
            _number(row.hausdorff95_mm, 1),
            _number(row.norm_hd, 3),
            _number(row.nsd_1mm, 3),
            *(_number(volume, 2) for volume in volumes),
        )
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    for row in rows:
        if row.reason:
            print(f"{row.case_id}: {row.reason}")


def _number(value: float, digits: int) -> str:
    return "–" if value != value else f"{value:.{digits}f}"


def print_case_csv(rows: "tuple[CaseRow, ...]") -> None:
    """Print the cases of a data set as comma-separated values."""
    head = ("case_id", "phases", "reference", "predictions", "refined", "status", "problems")
    lines = (
        (
            row.case_id,
            row.n_phases,
            "yes" if row.has_reference else "no",
            " ".join(row.predictions),
            " ".join(row.refined),
            row.status,
            "; ".join(row.files.problems),
        )
        for row in rows
    )
    write_csv((head, *lines), sys.stdout, "\r\n")


def print_case_table(rows: "tuple[CaseRow, ...]", opened: "OpenDataSet") -> None:
    """Print the cases of a data set as a table, and where the user's masks are."""
    from rich.console import Console
    from rich.table import Table

    data_set = opened.data_set
    table = Table(title=f"{data_set.name}: {len(rows)} case(s), layout {data_set.kind}")
    for head in ("case", "phases", "reference", "predictions", "refined", "status"):
        table.add_column(head)
    for row in rows:
        table.add_row(
            row.case_id,
            str(row.n_phases),
            "yes" if row.has_reference else "–",
            ", ".join(row.predictions) or "–",
            ", ".join(row.refined) or "–",
            "; ".join(row.files.problems) or row.status,
        )
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    print(f"Workspace: {opened.workspace.root} ({opened.workspace_why})")
