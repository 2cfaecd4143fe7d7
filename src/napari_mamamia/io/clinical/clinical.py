"""Read a clinical table as a `Cohort`, and write a table in the form used by MAMA-MIA."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from napari_mamamia.core.cohort import CaseRecord, Cohort, RefusedRow
from napari_mamamia.core.errors import FormatError, MissingColumnsError, Remedy
from napari_mamamia.core.names import count_of
from napari_mamamia.io.clinical.columns import (
    BY_NAME,
    COLUMNS,
    ColumnChoice,
    Header,
    columns_for,
    find_header,
)
from napari_mamamia.io.clinical.rows import read_row
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.tables.headers import Header as TableHeader
from napari_mamamia.io.tables.headers import data_rows, spelled
from napari_mamamia.io.tables.spreadsheets import Cell, Sheet, read_sheets, write_sheet

_SHEET: Final = "dataset_info"
_UNITS: Final[Mapping[str, tuple[str, ...]]] = {
    "age": ("-", "y", "yr", "yrs", "jahre", "years"),
    "acquisition_times_s": ("-", "s", "sec", "seconds"),
}
_SHORT_S, _LONG_S = 20.0, 2 * 3600.0
"""Limits in seconds of a plausible time from the first phase to the last.

The MAMA-MIA table has 128 to 1,710 s. Smaller values are probably minutes or phase numbers, and
larger values milliseconds.
"""


@reads("a readable clinical table", "save it again as .xlsx or CSV UTF-8")
def read_clinical(path: Path, choice: ColumnChoice = BY_NAME) -> Cohort:
    """Return the cases of a clinical table.

    In an .xlsx or .ods file the first sheet with a column ``patient_id`` or ``case_id`` is read;
    the cells of a .csv file may be separated by commas, semicolons or tabs. The header may follow
    up to 30 title rows (`io.clinical.columns.find_header`). Cells follow the rules of
    `napari_mamamia.io.clinical.rules`. A row is left out and listed in `Cohort.refused`, with its
    number and cells, if it breaks a rule, has no id, repeats an id (ignoring letter case), has a
    cell that only looks empty, or has more or fewer cells than the header of a .csv file. Empty
    rows are skipped. If a field has several columns, such as ``menopause`` and
    ``menopausal_status``, or two columns of the same name, their values must agree.

    Parameters
    ----------
    path
        The table.
    choice
        Columns that the user fixed; by default those in ``clinical_columns.json`` next to the
        table.

    Raises
    ------
    FormatError
        If the file cannot be read, has a different format, or lacks an id column or a fixed
        column.
    """
    text = f"Reading {path.name}"
    choice = columns_for(path, choice)
    header, sheet = _sheet_of_cases(path, text, choice)
    return cohort_of_sheet(header, sheet, text, choice)


def cohort_of_sheet(
    header: Header, sheet: Sheet, text: str, choice: ColumnChoice = BY_NAME
) -> Cohort:
    """Return the cases below the header of a sheet.

    `text` is the progress text. The notes name the file from which `choice` was read, if there is
    one.
    """
    records: list[CaseRecord] = []
    refused: list[RefusedRow] = []
    first_row: dict[str, tuple[int, str]] = {}
    names = tuple(header.names.get(index, "") for index in range(len(sheet.rows[header.row])))
    # Cells that only look empty are reported individually, with their column.
    whole = TableHeader(header.row, header.row, names, {})
    data = data_rows(sheet, whole, header.fields["case_id"][0], text)
    _require_units(header, data.units)
    for line in data.rows:
        number = line.number
        row = read_row(header, sheet, line)
        if isinstance(row, CaseRecord):
            row = _unless_known(row, number, first_row)
        if isinstance(row, RefusedRow):
            refused.append(row)
        else:
            first_row[case_key(row.case_id)] = (number, row.case_id)
            records.append(row)
    refused += [
        RefusedRow(
            row, f"{word!r} looks like a summary row, not a case; if it is a case, change its id"
        )
        for row, word in data.summaries
    ]
    refused += [RefusedRow(row, "it repeats the header") for row in data.headers]
    refused.sort(key=lambda one: one.row)
    others = filter(None, (data.marked_note, data.odd_note))
    notes = (*_list_notes(header, sheet, choice, records), *others)
    return Cohort(tuple(records), tuple(refused), notes)


def _require_units(header: Header, units: Mapping[int, str]) -> None:
    for field, expected in _UNITS.items():
        for index in header.fields.get(field, ()):
            if index in units and units[index] not in expected:
                raise FormatError(
                    f"expected the unit of {field} to be {expected[-1]}, but the row below the "
                    f"header gives {units[index]} for {header.names[index]}: convert the column"
                )


def write_clinical(
    cohort: Cohort, path: Path, choice: ColumnChoice = BY_NAME, *, overwrite: bool = False
) -> None:
    """Write the records to an .xlsx or .csv file, with the column names of the MAMA-MIA table.

    Columns that the user fixed keep their names; a field without a column is written only if a
    record has a value. Columns of `CaseRecord.other` follow the known columns. Reading the file
    again gives equal records, unless a cell begins or ends with blanks or is read as a missing
    value.

    Raises
    ------
    FormatError
        If `path` has a different suffix, or a cell contains a character that is invalid in
        spreadsheets.
    SaveConflictError
        If `path` exists and `overwrite` is False.
    SaveError
        If the file cannot be written.
    """
    others = list(dict.fromkeys(name for record in cohort.records for name in record.other))
    cell_rows = [_list_cells(record) for record in cohort.records]
    columns = [
        index
        for index, field in enumerate(COLUMNS)
        if field not in choice.absent or any(cells[index] is not None for cells in cell_rows)
    ]
    fields = list(COLUMNS)
    names = [
        choice.column(fields[index]) or _written_name(fields[index], others) for index in columns
    ]
    rows = [
        [*(cells[index] for index in columns), *(record.other.get(name) for name in others)]
        for cells, record in zip(cell_rows, cohort.records, strict=True)
    ]
    write_sheet([[*names, *others], *rows], path, name=_SHEET, overwrite=overwrite)


def _unless_known(
    record: CaseRecord, number: int, first_row: Mapping[str, tuple[int, str]]
) -> CaseRecord | RefusedRow:
    earlier_row = first_row.get(case_key(record.case_id))
    if earlier_row is None:
        return record
    row, case_id = earlier_row
    if case_id == record.case_id:
        return RefusedRow(number, f"case {case_id} is already in row {row}")
    return RefusedRow(
        number,
        f"case {record.case_id} is already in row {row} as {case_id}; ids that differ only in "
        "letter case denote one case",
    )


def _list_notes(
    header: Header, sheet: Sheet, choice: ColumnChoice, records: Sequence[CaseRecord]
) -> tuple[str, ...]:
    fixed = f"columns from {choice.source}: {choice}" if choice.source else ""
    titles = f"the header is row {header.row + 1}; the rows above were skipped"
    hidden = f"the sheet {sheet.name!r} is hidden in the workbook" if sheet.is_hidden else ""
    rows = f"hidden rows in the workbook that were also read: {sheet.n_hidden_rows:,}"
    several = (sheet.note, hidden, rows if sheet.n_hidden_rows else "", _odd_times(records))
    return tuple(filter(None, (fixed, *several, titles if header.row else "")))


def _odd_times(records: Sequence[CaseRecord]) -> str:
    odd = [
        record.case_id
        for record in records
        if (times := record.acquisition_times_s)
        and len(times) > 1
        and not _SHORT_S <= times[-1] <= _LONG_S
    ]
    if not odd:
        return ""
    return (
        f"the acquisition times of {count_of(len(odd), 'case')}, such as {odd[0]}, span less than "
        f"{_SHORT_S:g} s or more than {_LONG_S / 3600:g} hours: are they in seconds?"
    )


def _sheet_of_cases(path: Path, text: str, choice: ColumnChoice) -> tuple[Header, Sheet]:
    tables, there = list[str](), list[str]()
    sheets = read_sheets(path, text)
    for sheet in sheets:
        header = find_header(sheet.rows, choice)
        if header is not None:
            others = other_sheets(sheets, sheet, choice)
            return header, replace(sheet, note=others) if others else sheet
        names = sheet.rows[0] if sheet.rows else ()
        there = there or [str(name) for name in names if name is not None]
        tables.append(f"{sheet.name} ({', '.join(map(str, names[:5])) or 'empty'})")
    column = dict(choice.names).get("case_id") or " or ".join(COLUMNS["case_id"])
    raise MissingColumnsError(
        f"expected a column {column} in {path}, but found {'; '.join(dict.fromkeys(tables))}: "
        "rename the column of case ids, or name it in a columns file",
        str(path),
        ["case_id"],
        there,
        remedies=(Remedy(command="clinical", values=(str(path),)),),
    )


def other_sheets(rest: Iterator[Sheet], read: Sheet, choice: ColumnChoice) -> str:
    """Return a note about further sheets that also contain cases."""
    names: list[str] = []
    for sheet in rest if not read.all_text else ():
        with suppress(FormatError):  # The fixed columns belong to the sheet that is read.
            names += [sheet.name] if find_header(sheet.rows, choice) is not None else []
    listed = " and ".join(map(repr, names))
    return (
        f"the sheet {read.name!r} is read, but {listed} also has case ids and is not read"
        if names
        else ""
    )


def _written_name(field: str, others: Sequence[str]) -> str:
    taken = {spelled(name) for name in others}
    for name in COLUMNS[field]:
        if name not in taken:
            return name
    raise FormatError(
        f"expected no further column named {' or '.join(COLUMNS[field])}, but the records have "
        "such a column: rename it"
    )


def _list_cells(record: CaseRecord) -> list[Cell]:
    times = record.acquisition_times_s
    return [
        record.case_id,
        record.dataset,
        None if record.age is None else _shorten_number(record.age),
        record.menopausal_status and str(record.menopausal_status),
        record.breast_density,
        record.tumour_subtype,
        None if record.pcr is None else int(record.pcr),
        None if times is None else f"[{', '.join(str(_shorten_number(time)) for time in times)}]",
    ]


def _shorten_number(number: float) -> float:
    return int(number) if float(number).is_integer() else number
