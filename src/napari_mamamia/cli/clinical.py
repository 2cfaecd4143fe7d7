"""`mamamia clinical`: show how a clinical table is read, and suggest columns for its fields."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from napari_mamamia.cli.options import ColumnsOption, OverwriteOption, column_choice
from napari_mamamia.cli.printing import NOT_EVERY_CASE, run
from napari_mamamia.cli.scripting import report_result, reports_result

if TYPE_CHECKING:
    from napari_mamamia.core.cohort import Cohort
    from napari_mamamia.io.clinical.overview import TableOverview


@reports_result
def clinical(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="Table (.xlsx, .ods, .csv).")],
    columns: ColumnsOption = None,
    write_columns: Annotated[
        Path | None,
        typer.Option(
            "--write-columns", metavar="FILE", help="Write the chosen columns to a JSON file."
        ),
    ] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Show how the columns of a clinical table are read, and suggest columns for other fields.

    Example: mamamia clinical clinical.xlsx --write-columns clinical_columns.json
    """
    from napari_mamamia.io.clinical.columns import COLUMNS_FILE, columns_for
    from napari_mamamia.io.clinical.columns import write_columns as write
    from napari_mamamia.io.clinical.overview import overview_job

    choice = columns_for(table, column_choice(columns))
    seen = run(partial(overview_job, table, choice))
    report_result(partial(_describe_columns, seen))
    _print_columns(seen)
    if write_columns is not None:
        write(seen.confirmed(choice), write_columns, overwrite=overwrite)
        print(
            f"Columns written to {write_columns}: check them, then pass the file with --columns, "
            f"or store it as {COLUMNS_FILE} next to the table"
        )
        if seen.cohort is None:
            return
    if seen.cohort is None:
        print("error: no column of case ids was found, so no case was read", file=sys.stderr)
        raise typer.Exit(1)
    _print_refused(seen.cohort)
    if seen.cohort.refused:
        raise typer.Exit(NOT_EVERY_CASE)


def _print_columns(seen: "TableOverview") -> None:
    from napari_mamamia.core.cohort import FIELDS, coverage_text

    if seen.cohort is not None:
        print(coverage_text(len(seen.cohort.records), seen.cohort.coverage()))
        for note in seen.cohort.notes:
            print(f"  {note}")
    proposed = {proposal.field: proposal for proposal in seen.proposals}
    for field in ("case_id", *FIELDS):
        if field in seen.fields:
            print(f"  {field}: read from {' and '.join(map(repr, seen.fields[field]))}")
        if field in proposed:
            print(f"  {field}: proposed {proposed[field].column!r} for {proposed[field].reason}")
        elif field not in seen.fields:
            print(
                f"  {field}: no column; if the table has no such column, set null in the "
                "columns file"
            )
    read = {name for names in seen.fields.values() for name in names}
    read |= {proposal.column for proposal in seen.proposals}
    print(f"  further columns: {', '.join(c for c in seen.columns if c not in read) or 'none'}")


def _print_refused(cohort: "Cohort") -> None:
    for row in cohort.refused:
        print(f"row {row.row} was not read: {row.reason}")
        for cell in row.cells:
            print(f"  {cell.cell} ({cell.column}): {cell.value!r}")


def _describe_columns(seen: "TableOverview") -> dict[str, object]:
    """Return all columns, the column for each field, the suggestions and the rejected rows."""
    cohort = seen.cohort
    return {
        "columns": seen.columns,
        "fields": seen.fields,
        "proposals": seen.proposals,
        "n_rows": 0 if cohort is None else len(cohort.records),
        "refused": () if cohort is None else cohort.refused,
        "notes": () if cohort is None else cohort.notes,
    }
