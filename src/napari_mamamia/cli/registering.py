"""The command that registers phases: motion between them is taken out, where that helps."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from napari_mamamia.cli.opening import open_at
from napari_mamamia.cli.options import (
    CaseOption,
    ColumnsOption,
    DataSetArgument,
    OutOption,
    OverwriteOption,
    ResumeOption,
    SchedulerOption,
    TimeLimitOption,
    WorkersOption,
    existing_policy,
    place_of,
)
from napari_mamamia.cli.printing import finish, run
from napari_mamamia.cli.quantities import INDEX

if TYPE_CHECKING:
    from napari_mamamia.services.registration_row import RegistrationRow

__all__ = ["register"]


class TransformName(StrEnum):
    """Names of `kinetics.registration_settings.TransformKind`."""

    RIGID = "rigid"
    BSPLINE = "bspline"


class InterpolationName(StrEnum):
    """Names of `kinetics.registration_settings.Interpolation`."""

    LINEAR = "linear"
    BSPLINE = "bspline"


def register(
    data_set: DataSetArgument,
    out: OutOption,
    case: CaseOption = None,
    transform: Annotated[
        TransformName, typer.Option("--transform", help="Rigid alone, or rigid and then B-spline.")
    ] = TransformName.BSPLINE,
    to: Annotated[
        int,
        typer.Option(
            "--to", metavar="PHASE", parser=INDEX, help="Phase that the others move onto."
        ),
    ] = 1,
    interpolation: Annotated[
        InterpolationName,
        typer.Option("--interpolation", help="Between voxels: cubic B-spline, or linear."),
    ] = InterpolationName.BSPLINE,
    masks: Annotated[
        Path | None,
        typer.Option("--masks", metavar="DIR", help="Tumour masks (default: the references)."),
    ] = None,
    workers: WorkersOption = 0,
    scheduler: SchedulerOption = "",
    time_limit: TimeLimitOption = None,
    columns: ColumnsOption = None,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
) -> None:
    """Register phases: writes a new data set OUT and OUT/registration.csv; masks stay valid."""
    from napari_mamamia.kinetics.registration_settings import (
        Interpolation,
        RegistrationSettings,
        TransformKind,
    )
    from napari_mamamia.services.register_phases import register_data_set

    reading = Interpolation(interpolation.value)
    method = RegistrationSettings(TransformKind(transform.value), to, interpolation=reading)
    existing = existing_policy(resume, overwrite)
    place = place_of(workers, scheduler, time_limit)
    opened = open_at(data_set, columns)
    job = register_data_set(
        opened, out, method, masks=masks, case_ids=case or (), place=place, existing=existing
    )
    summary = run(job)
    _print(summary.rows)
    if summary.n_reused:
        print(f"{summary.n_reused} case(s) were there already")
    print(f"Data set: {summary.folder}\nTable:    {summary.table}")
    finish(summary.failures)


def _print(rows: "tuple[RegistrationRow, ...]") -> None:
    import sys

    from rich.console import Console
    from rich.table import Table

    table = Table(title="Registration (residual where nothing enhances)")
    for head in ("case", "phase", "residual % before", "after", "moved p95 mm", "verdict"):
        table.add_column(head)
    table.add_column("applied")
    for row in rows:
        if row.status == "ok":
            table.add_row(
                row.case_id,
                f"{row.phase:.0f}",
                _number(row.residual_before_percent),
                _number(row.residual_after_percent),
                _number(row.displacement_p95_mm) if row.verdict != "reference" else "–",
                row.verdict,
                row.applied,
            )
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    told = dict.fromkeys((row.case_id, row.warning) for row in rows if row.warning)
    for case_id, warning in told:
        print(f"{case_id}: {warning}")


def _number(value: float) -> str:
    return "–" if value != value else f"{value:.2f}"
