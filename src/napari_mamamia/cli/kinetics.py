"""The command that measures contrast kinetics."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from napari_mamamia.cli.options import (
    CaseOption,
    DataSetArgument,
    LabelOption,
    OutOption,
    OverwriteOption,
    ResumeOption,
    SchedulerOption,
    TimeLimitOption,
    WorkersOption,
    existing_policy,
)
from napari_mamamia.cli.printing import finish, run

if TYPE_CHECKING:
    from napari_mamamia.services.batch_work import Place
    from napari_mamamia.services.kinetic_row import KineticRow

__all__ = ["kinetics", "place_of", "times_of"]


def kinetics(
    data_set: DataSetArgument,
    out: OutOption,
    masks: Annotated[
        Path | None,
        typer.Option("--masks", metavar="DIR", help="Folder of masks (default: the references)."),
    ] = None,
    case: CaseOption = None,
    times: Annotated[
        str,
        typer.Option(
            "--times", metavar='"0,82,148"', help="Seconds of each phase, in place of the table's."
        ),
    ] = "",
    label: LabelOption = None,
    ftv_box: Annotated[
        str,
        typer.Option(
            "--ftv-box", metavar="mask|breast", help="Region of FTV: mask + 10 mm, or breast box."
        ),
    ] = "mask",
    workers: WorkersOption = 0,
    scheduler: SchedulerOption = "",
    time_limit: TimeLimitOption = None,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
) -> None:
    """Measure contrast curves, curve types, FTV and sizes: writes OUT/kinetics.csv (.xlsx)."""
    from napari_mamamia.services.case_kinetics import FtvBox, KineticSettings
    from napari_mamamia.services.data_set import open_data_set
    from napari_mamamia.services.kinetics import kinetics_of_data_set

    if ftv_box not in set(FtvBox):
        raise typer.BadParameter(f"--ftv-box is mask or breast, got {ftv_box}")
    settings = KineticSettings(times_of(times), label, ftv_box=FtvBox(ftv_box))
    existing = existing_policy(resume, overwrite)
    place = place_of(workers, scheduler, time_limit)
    opened = run(open_data_set(data_set))
    for warning in opened.warnings:
        typer.echo(f"warning: {warning}", err=True)
    job = kinetics_of_data_set(
        opened,
        out,
        settings,
        masks=masks,
        case_ids=case or (),
        place=place,
        existing=existing,
    )
    summary = run(job)
    _print(summary.rows)
    if summary.n_reused:
        print(f"{summary.n_reused} case(s) were there already")
    print(f"Table:   {summary.table}\nFigures: {out / 'figures'}")
    finish(summary.failures)


def times_of(text: str) -> tuple[float, ...] | None:
    """Return times as they are typed, separated by commas or spaces; None for nothing.

    Raises
    ------
    typer.BadParameter
        If a part is not a number.

    Examples
    --------
    >>> times_of("0, 82, 148")
    (0.0, 82.0, 148.0)
    """
    if not text.strip():
        return None
    try:
        return tuple(float(part) for part in text.replace(",", " ").split())
    except ValueError as error:
        raise typer.BadParameter(
            f'expected seconds such as "0,82,148", got {text!r}: type one number for each phase'
        ) from error


def place_of(workers: int, scheduler: str, time_limit: float | None) -> "Place":
    """Return where a batch runs; what excludes each other is an error of the command line."""
    from napari_mamamia.services.batch_work import Place

    try:
        return Place(workers, scheduler, time_limit)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _print(rows: "tuple[KineticRow, ...]") -> None:
    import sys

    from rich.console import Console
    from rich.table import Table

    table = Table(title="Kinetics")
    for head in ("case", "volume ml", "diameter mm", "peak PE %", "initial", "delayed", "worst"):
        table.add_column(head)
    table.add_column("FTV cc")
    for row in rows:
        table.add_row(
            row.case_id,
            _number(row.volume_mm3 / 1000, 2),
            _number(row.longest_diameter_mm, 1),
            _number(row.peak_pe_of_mean_percent, 0),
            row.initial_class or "–",
            row.delayed_class or "–",
            row.worst_curve or "–",
            _number(row.ftv_cc, 2),
        )
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    for row in rows:
        if row.warning:
            print(f"{row.case_id}: {row.warning}")


def _number(value: float, digits: int) -> str:
    return "–" if value != value else f"{value:.{digits}f}"
