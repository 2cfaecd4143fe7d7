"""Output of commands: tables, failures, and a progress bar on the error stream."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import typer

from napari_mamamia.cli.remedies import name_remedies
from napari_mamamia.cli.scripting import is_quiet, is_verbose, output
from napari_mamamia.core.names import count_of, printable
from napari_mamamia.core.progress import Progress, listening
from napari_mamamia.io.files.csv_text import write_csv

if TYPE_CHECKING:
    from rich.table import Table

    from napari_mamamia.core.records import CaseFailure, CaseScore
    from napari_mamamia.services.batch.row_table import RowSummary
    from napari_mamamia.services.case.data_set import CaseRow, OpenDataSet


T = TypeVar("T")

NOT_EVERY_CASE = 3
STOPPED = 130


def run(work: Callable[[], T]) -> T:
    """Run a long task with a progress bar; after Ctrl-C, report which results were kept."""
    try:
        with _progress_bar() as report, listening(report):
            return work()
    except KeyboardInterrupt:
        print("stopped; finished results are kept", file=sys.stderr)
        raise typer.Exit(STOPPED) from None


class _StepLines:
    """Shows progress as lines on the error stream: each step once, with the elapsed seconds."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._last = ""

    def print(self, progress: Progress) -> None:
        if progress.text != self._last:
            self._last = progress.text
            seconds = time.monotonic() - self._start
            print(f"{seconds:8.1f} s  {printable(progress.text)}", file=sys.stderr)


@contextmanager
def _progress_bar() -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    steps = _StepLines()
    columns = (BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TimeRemainingColumn())
    with Bar(
        *columns,
        TextColumn("{task.description}", markup=False),
        console=console,
        transient=True,
        disable=is_quiet() or not console.is_terminal,
    ) as bar:
        task = bar.add_task("", total=None)

        def report(progress: Progress) -> None:
            if is_verbose():
                steps.print(progress)
            bar.update(
                task, completed=progress.done, total=progress.total, description=progress.text
            )

        yield report


def print_table(
    title: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    to_the_right: Sequence[str] = (),
    is_folded: bool = False,
) -> None:
    """Print a table (120 columns wide if there is no terminal); `is_folded` wraps long cells."""
    from rich.table import Table

    table = Table(title=printable(title))
    for head in heads:
        side: Literal["left", "right"] = "right" if head in to_the_right else "left"
        table.add_column(head, justify=side, overflow="fold" if is_folded else "ellipsis")
    for row in rows:
        table.add_row(*("\n".join(map(printable, cell.split("\n"))) for cell in row))
    print_grid(table, 120)


def print_grid(table: "Table", width: int) -> None:
    """Print a `rich` table; it is `width` columns wide if the output is not a terminal.

    Brackets and colons in cells, as in ``napari-mamamia[dicom]``, are printed as text, not
    interpreted as markup.
    """
    from rich.console import Console

    columns = None if sys.stdout.isatty() else width
    Console(width=columns, markup=False, emoji=False).print(table)


def shown(value: float, digits: int) -> str:
    """Format a number for a table; NaN is shown as a dash."""
    return "–" if value != value else f"{value:.{digits}f}"


def finish_rows(summary: "RowSummary[Any]", places: Sequence[str]) -> None:
    """Print the number of reused cases and the result folders; exit 3 if a case failed."""
    if summary.n_reused:
        print(f"{count_of(summary.n_reused, 'case')} done in an earlier run")
    print("\n".join(places))
    finish(summary.failures)


def finish(failures: "tuple[CaseFailure, ...]") -> None:
    """Print all failures; exit with code 3 if there are any."""
    for failure in failures:
        remedies = name_remedies(failure.remedies)
        print(f"failed: {failure.case_id}: {printable(failure.reason)}{remedies}", file=sys.stderr)
    if failures:
        raise typer.Exit(NOT_EVERY_CASE)


def print_scores(rows: "tuple[CaseScore, ...]") -> None:
    """Print the table of cases, then the reasons for cases that were not scored normally."""
    from napari_mamamia.metrics.registry import Place, metrics_at
    from napari_mamamia.scoring.report.text import name_status

    profile = rows[0].profile if rows else "clinical"
    columns = [(spec.name, spec.heading, spec.in_tables) for spec in metrics_at(Place.CASES)]
    measures = [f"{heading} {way.unit}".strip() for _, heading, way in columns]
    cells = (
        (
            row.case_id,
            name_status(row),
            *(shown(getattr(row, name) / way.divisor, way.decimals) for name, _, way in columns),
        )
        for row in rows
    )
    title = f"Case scores (profile: {profile})"
    print_table(title, ("case", "status", *measures), cells, to_the_right=measures)
    for row in rows:
        if row.reason:
            print(f"{row.case_id}: {row.reason}")


def print_case_csv(rows: "tuple[CaseRow, ...]") -> None:
    """Print the cases of a data set as comma-separated values."""
    head = ("case_id", "phases", "reference", "predictions", "refined", "status", "problems")
    lines = (
        (
            row.case_id,
            "" if row.n_phases is None else row.n_phases,
            "yes" if row.has_reference else "no",
            " ".join(row.predictions),
            " ".join(row.refined),
            row.status,
            "; ".join(row.problems),
        )
        for row in rows
    )
    write_csv((head, *lines), output(), "\r\n")


def _describe_exam(row: "CaseRow") -> tuple[str, str, str]:
    files = row.files
    return (files.patient or "–", files.visit.name if files.visit else "–", files.side or "–")


def print_case_table(rows: "tuple[CaseRow, ...]", opened: "OpenDataSet") -> None:
    """Print the cases of a data set as a table, followed by the folder with the user's masks."""
    data_set = opened.data_set
    layout = data_set.layout or data_set.kind
    has_visits = any(row.files.visit or row.files.side for row in rows)
    exam = ("patient", "visit", "side") if has_visits else ()
    heads = ("case", *exam, "phases", "reference", "predictions", "refined", "status")
    cells = (
        (
            row.case_id,
            *(_describe_exam(row) if has_visits else ()),
            "?" if row.n_phases is None else str(row.n_phases),
            "yes" if row.has_reference else "–",
            ", ".join(row.predictions) or "–",
            ", ".join(row.refined) or "–",
            "; ".join(row.problems) or row.status,
        )
        for row in rows
    )
    print_table(f"{data_set.name}: {count_of(len(rows), 'case')}, layout {layout}", heads, cells)
    if pending := [row for row in rows if row.n_phases is None]:
        studies = count_of(len(pending), "DICOM study", "DICOM studies")
        print(f"? : phases of {studies} are counted when a case is opened, and with --json")
    print(f"Workspace: {opened.workspace.root} ({opened.workspace_why})")
