"""The command that registers phases to correct motion between them."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from napari_mamamia.cli import options
from napari_mamamia.cli.opening import open_at
from napari_mamamia.cli.printing import finish_rows, print_table, run, shown
from napari_mamamia.cli.quantities import INDEX
from napari_mamamia.cli.scripting import report_result, reports_result
from napari_mamamia.core.choices import Interpolation, TransformKind
from napari_mamamia.core.counting import phase_name

if TYPE_CHECKING:
    from napari_mamamia.services.register.registration_row import RegistrationRow


@reports_result
def register(
    data_set: options.DataSetArgument,
    out: options.OutOption,
    case: options.CaseOption = None,
    transform: Annotated[
        TransformKind,
        typer.Option(
            "--transform", help="Rigid transformation only, or rigid followed by B-spline."
        ),
    ] = TransformKind.BSPLINE,
    to: Annotated[
        int,
        typer.Option(
            "--to",
            metavar="PHASE",
            parser=INDEX,
            help="Phase to which the other phases are registered.",
        ),
    ] = 1,
    interpolation: Annotated[
        Interpolation,
        typer.Option("--interpolation", help="Interpolation method: cubic B-spline or linear."),
    ] = Interpolation.BSPLINE,
    masks: Annotated[
        Path | None,
        typer.Option("--masks", metavar="DIR", help="Tumour masks (default: the references)."),
    ] = None,
    workers: options.WorkersOption = 0,
    scheduler: options.SchedulerOption = "",
    time_limit: options.TimeLimitOption = None,
    columns: options.ColumnsOption = None,
    layout: options.LayoutOption = "",
    patient: options.PatientOption = None,
    visit: options.VisitOption = None,
    resume: options.ResumeOption = False,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Register phases, and write a new data set OUT with OUT/registration.csv; masks remain valid.

    Example: mamamia register DATASET --out REGISTERED
    """
    from napari_mamamia.kinetics.registration.settings import RegistrationSettings
    from napari_mamamia.services.register.phases import register_data_set

    method = RegistrationSettings(transform, to, interpolation=interpolation)
    existing = options.existing_policy(resume, overwrite)
    place = options.place_of(workers, scheduler, time_limit)
    opened = open_at(data_set, columns, layout, patient, visit)
    job = partial(
        register_data_set,
        opened,
        out,
        method,
        masks=masks,
        case_ids=case or (),
        place=place,
        existing=existing,
    )
    summary = run(job)
    report_result(lambda: summary)
    _print_registration(summary.rows)
    finish_rows(summary, [f"Data set: {summary.folder}", f"Table:    {summary.table}"])


def _print_registration(rows: "tuple[RegistrationRow, ...]") -> None:
    residual = ("residual % before", "after")
    cells = (
        (
            row.case_id,
            phase_name(int(row.phase), int(row.phases_before)),
            shown(row.residual_before_percent, 2),
            shown(row.residual_after_percent, 2),
            shown(row.displacement_p95_mm, 2) if row.verdict != "reference" else "–",
            row.verdict,
            row.applied,
        )
        for row in rows
        if row.status == "ok"
    )
    heads = ("case", "phase", *residual, "moved p95 mm", "verdict", "applied")
    print_table("Registration (residual outside enhancing tissue)", heads, cells)
    warnings = dict.fromkeys((row.case_id, row.warning) for row in rows if row.warning)
    for case_id, warning in warnings:
        print(f"{case_id}: {warning}")
