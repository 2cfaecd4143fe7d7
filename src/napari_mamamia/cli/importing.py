"""`mamamia import`: convert DICOM studies into cases of a data set."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from napari_mamamia.cli import options
from napari_mamamia.cli.given import ALWAYS, Where, refuse_idle
from napari_mamamia.cli.printing import NOT_EVERY_CASE, finish, print_grid, run
from napari_mamamia.cli.quantities import INDEX, Quantity, numbers_of_text
from napari_mamamia.cli.remedies import name_remedies
from napari_mamamia.cli.scripting import report_result, reports_result
from napari_mamamia.core.choices import Clock, Dates, Sides
from napari_mamamia.core.counting import phase_name
from napari_mamamia.core.names import count_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from napari_mamamia.core.records import CaseWarning
    from napari_mamamia.services.dicom.dicom import ImportedCase, ImportSummary
    from napari_mamamia.services.dicom.finding import FoundStudy, ImportSettings


_SERIES: Final = Quantity("a series' number", 0, 2**31 - 1, "", "see --dry-run", is_whole=True)


_WRITES: Final = Where("where something is written", lambda p: not p["dry_run"],
                       lambda _: "with --dry-run, which writes nothing")  # fmt: skip
OPTIONS: Final[dict[str, Where]] = {
    **dict.fromkeys(("source", "out", "case", "clock", "phases", "series", "use"), ALWAYS),
    **dict.fromkeys(("leave_out", "allow_thin", "sides", "dry_run"), ALWAYS),
    **dict.fromkeys(("dates", "columns", "resume", "overwrite"), _WRITES),
}
"""The conditions under which each parameter applies; the import reports unused settings."""


@reports_result
def import_(
    context: typer.Context,
    source: Annotated[
        Path, typer.Argument(metavar="DICOM", help="Folder (searched with its subfolders) or zip.")
    ],
    out: options.OutOption,
    case: Annotated[
        str,
        typer.Option(
            "--case",
            metavar="ID",
            help=("Id of the case, or the prefix of the ids if there are several studies."),
        ),
    ] = "",
    clock: Annotated[
        Clock | None,
        typer.Option(
            "--clock",
            help=("DICOM element that orders the phases (default: chosen automatically)."),
        ),
    ] = None,
    phases: Annotated[
        str, typer.Option("--phases", metavar="0,1,2", help="Keep only these phases.")
    ] = "",
    series: Annotated[
        str, typer.Option("--series", metavar="4,5", help="The same as --use series=4,5.")
    ] = "",
    use: Annotated[
        list[str] | None,
        typer.Option(
            "--use",
            metavar="SELECTOR",
            help=(
                "Series to use: series=5,role=water; echo=2; side=left; phase=0. Repeat for others."
            ),
        ),
    ] = None,
    leave_out: Annotated[
        list[str] | None,
        typer.Option(
            "--leave-out", metavar="SELECTOR", help="Series to leave out, such as series=5,phase=4."
        ),
    ] = None,
    allow_thin: Annotated[
        bool, typer.Option("--allow-thin", help="Accept exams of one or two slices.")
    ] = False,
    sides: Annotated[
        Sides,
        typer.Option(
            "--sides",
            help=(
                "How to store two breasts in two sagittal stacks: as one case, or as "
                "ID_left and ID_right."
            ),
        ),
    ] = Sides.ASK,
    dates: Annotated[
        Dates, typer.Option("--dates", help="Drop the exam's date, or keep a shifted date.")
    ] = Dates.DROP,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the contents without writing any file.")
    ] = False,
    columns: options.ColumnsOption = None,
    resume: options.ResumeOption = False,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Convert DICOM into cases: OUT/images/ID/ID_000k.nii.gz, patient info, clinical row.

    Example: mamamia import EXAM.zip --out DATASET --case P001
    """
    from napari_mamamia.io.exam.selectors import named_series, read_selectors
    from napari_mamamia.services.dicom.dicom import describe_studies, import_dicom
    from napari_mamamia.services.dicom.finding import ImportSettings, look_into

    refuse_idle(context, OPTIONS)
    settings = ImportSettings(
        clock,
        _parse_numbers(phases, INDEX),
        (*named_series(_parse_numbers(series, _SERIES)), *read_selectors(use or ())),
        read_selectors(leave_out or ()),
        dates,
        options.existing_policy(resume, overwrite),
        allow_thin,
        sides,
        options.column_choice(columns),
    )
    if dry_run:
        contents = run(partial(look_into, source, case, settings))
        report_result(partial(describe_studies, contents))
        _dry_run(contents, settings)
    else:
        _finish_import(run(partial(import_dicom, source, out, case, settings)), out)


def _parse_numbers(text: str, quantity: Quantity) -> tuple[int, ...]:
    return tuple(int(number) for number in numbers_of_text(text, quantity, "0,1,2") or ())


def _dry_run(found: "tuple[FoundStudy, ...]", settings: "ImportSettings") -> None:
    for study in found:
        origin = f", {study.origin}" * bool(len(found) > 1 and study.origin)
        print(f"{study.case_id}: {count_of(study.n_images, 'image')} in {study.place}{origin}")
        if study.n_foreign:
            print(f"    {count_of(study.n_foreign, 'file')} below the source left out: not DICOM")
        for archive in study.archives:
            print(f"    {archive} is a zip and was not opened: import it separately")
        _print_table(study)
        _print_exam(study, settings)
        if study.problem:
            print(f"    REFUSED: {study.problem}{name_remedies(study.remedies)}")
    print("nothing was written (--dry-run)")
    if any(study.problem for study in found):
        raise typer.Exit(1 if len(found) == 1 else NOT_EVERY_CASE)


def _print_table(study: "FoundStudy") -> None:
    from rich.table import Table

    table = Table()
    heads = ("series", "part", "description", "images", "slices x phases", "size", "spacing mm")
    for head in (*heads, "role", "evidence", "use", "use in the case"):
        table.add_column(head)
    for row in study.rows:
        seen = row.n_slices > 0
        table.add_row(
            "" if row.number is None else str(row.number),
            row.part,
            row.description,
            str(row.n_images),
            f"{row.n_slices} x {row.n_phases}" if seen else "",
            " x ".join(map(str, row.size)) if row.size != (0, 0) else "",
            " x ".join(f"{mm:.2f}" for mm in row.spacing_mm) if seen else "",
            row.role,
            row.evidence,
            row.use,
            row.fate,
        )
    print_grid(table, 200)


def _print_exam(study: "FoundStudy", settings: "ImportSettings") -> None:
    exam = study.exam
    if exam is None:
        return
    print(f"    ordered by {exam.choice.chosen.text}")
    for verdict in exam.choice.verdicts:
        print(f"        {verdict.clock}: {verdict.reason}")
    seconds = exam.times_s or ()
    times = [f"{time} s" for time in seconds] or ["time unknown"] * len(exam.stacks)
    phases = settings.phases or tuple(range(len(exam.stacks)))
    for index, (stack, time) in enumerate(zip(exam.stacks, times, strict=True)):
        fate = "" if index in phases else ", left out (--phases)"
        name = phase_name(index, study.n_before)
        print(f"    {name}: {time}, {len(stack)} slices, {stack[0].series_name}{fate}")
    print(f"    --phases and file names count from 0: {phase_name(0, study.n_before)} is 0")
    _print_warnings(exam.warnings)


def _finish_import(summary: "ImportSummary", out: Path) -> None:
    report_result(lambda: summary)
    for case in summary.imported:
        _print_case(case)
    if summary.skipped:
        print(f"{count_of(len(summary.skipped), 'case')} existed already")
    print(f"{count_of(len(summary.imported), 'case')} imported into {out}")
    finish(summary.failures)


def _print_case(case: "ImportedCase") -> None:
    z, y, x = case.shape
    phases = count_of(len(list(case.folder.glob("*.nii.gz"))), "phase")
    print(f"{case.case_id}: {phases} of {z} x {y} x {x}, {case.n_bytes / 1e6:.1f} MB")
    print(f"    ordered by {case.clock}")
    times = "unknown" if case.times_s is None else ", ".join(f"{t:g}" for t in case.times_s) + " s"
    print(f"    times {times}")
    if case.scaling:
        print(f"    values scaled by {case.scaling}, written as float32")
    facts = ", ".join(f"{name}={value}" for name, value in case.kept)
    print(f"    kept from the headers, besides the times: {facts}")
    _print_warnings(case.warnings)


def _print_warnings(warnings: "Iterable[CaseWarning]") -> None:
    for warning in warnings:
        print(f"    warning: {warning.text}{name_remedies(warning.remedies)}")
