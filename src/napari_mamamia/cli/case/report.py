"""`mamamia report`: a report per case, also as PDF or DICOM, and a table of all numbers."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from napari_mamamia.cli import options
from napari_mamamia.cli.opening import open_at
from napari_mamamia.cli.printing import finish, print_table, run
from napari_mamamia.cli.scripting import report_result, reports_result
from napari_mamamia.core.choices import SegmentMaker

if TYPE_CHECKING:
    from napari_mamamia.services.report.report import ReportSummary


@reports_result
def report(
    data_set: options.DataSetArgument,
    out: options.OutOption,
    case: options.CaseOption = None,
    masks: Annotated[
        Path | None,
        typer.Option(
            "--masks",
            metavar="DIR",
            help="Folder of masks (default: the reader's own masks, otherwise the references).",
        ),
    ] = None,
    reader: Annotated[
        str,
        typer.Option(
            "--reader", metavar="NAME", help="Reader whose masks and measurements are used."
        ),
    ] = "",
    label: options.LabelOption = None,
    pdf: Annotated[
        bool, typer.Option("--pdf", help="Also write a PDF of each report; requires Qt.")
    ] = False,
    dicom: Annotated[
        bool,
        typer.Option(
            "--dicom", help="Also write DICOM: lesion segmentations, SR (TID 1500) and key images."
        ),
    ] = False,
    study: Annotated[
        Path | None,
        typer.Option(
            "--study", metavar="DIR", help="The DICOM study from which the cases were imported."
        ),
    ] = None,
    made_by: Annotated[
        SegmentMaker, typer.Option("--made-by", help="How the masks were drawn (stored in DICOM).")
    ] = SegmentMaker.FROM_PROVENANCE,
    identified: Annotated[
        bool,
        typer.Option(
            "--identified",
            help=("Write DICOM with the patient's name and UIDs; send it only to your own PACS."),
        ),
    ] = False,
    columns: options.ColumnsOption = None,
    layout: options.LayoutOption = "",
    patient: options.PatientOption = None,
    visit: options.VisitOption = None,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Write a research report per case: OUT/ID.html, PDF, DICOM SR and OUT/measures.csv.

    Example: mamamia report DATASET --masks MASKS --pdf --out REPORTS
    """
    from napari_mamamia.services.report.printing import require_qt
    from napari_mamamia.services.report.reading import ReportSource
    from napari_mamamia.services.report.report import ReportExtras, report_cases
    from napari_mamamia.services.report.structured import DicomChoice

    if not dicom and (study is not None or identified or made_by != SegmentMaker.FROM_PROVENANCE):
        raise typer.BadParameter(
            "--study, --made-by and --identified apply only with --dicom: add --dicom, or leave "
            "them out"
        )
    if pdf:
        require_qt()
    existing = options.existing_policy(False, overwrite)
    opened = open_at(data_set, columns, layout, patient, visit)
    n_cases = len(case or opened.data_set.cases)
    choice = DicomChoice(study, identified, made_by, n_cases) if dicom else None
    job = partial(
        report_cases,
        opened,
        out,
        ReportSource(masks, reader, label),
        ReportExtras(pdf, choice),
        case_ids=case or (),
        existing=existing,
    )
    summary = run(job)
    report_result(lambda: summary)
    _print_reports(summary)
    finish(summary.failures)


def _print_reports(summary: "ReportSummary") -> None:
    cells = [
        (
            one.case_id,
            str(one.n_lesions),
            str(one.n_drawn),
            ", ".join(path.name for path in one.files),
        )
        for one in summary.reports
    ]
    print_table(
        "Reports (research use only)",
        ("case", "lesions", "drawn", "files"),
        cells,
        to_the_right=("lesions", "drawn"),
        is_folded=True,
    )
    for path in summary.tables:
        print(f"Table: {path}")
