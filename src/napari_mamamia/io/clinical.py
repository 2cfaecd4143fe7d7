"""Clinical spreadsheet -> `Cohort`, and back in the spelling of the MAMA-MIA table."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from napari_mamamia.core.cohort import CaseRecord, Cohort, RefusedRow
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import Job, Progress, paced, run_job
from napari_mamamia.io.clinical_rules import (
    parse_age,
    parse_breast_density,
    parse_id,
    parse_menopausal_status,
    parse_pcr,
    parse_text,
    parse_times,
)
from napari_mamamia.io.foreign import reads
from napari_mamamia.io.spreadsheets import Cell, Sheet, as_written, paced_sheets, write_sheet

__all__ = ["COLUMNS", "clinical_job", "read_clinical", "write_clinical"]

COLUMNS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "case_id": ("patient_id", "case_id"),
        "dataset": ("dataset",),
        "age": ("age",),
        "menopausal_status": ("menopause", "menopausal_status"),
        "breast_density": ("breast_density",),
        "tumour_subtype": ("tumor_subtype", "tumour_subtype"),
        "pcr": ("pcr",),
        "acquisition_times_s": ("acquisition_times",),
    }
)
"""Column names of each field, in lower case with ``_`` for blanks. The first is written. Where a
table has both names of the id, ``case_id`` counts and ``patient_id`` is kept as a further column:
a patient may have several cases."""

_PARSERS: Final[Mapping[str, Callable[[object], Any]]] = MappingProxyType(
    {
        "dataset": parse_text,
        "age": parse_age,
        "menopausal_status": parse_menopausal_status,
        "breast_density": parse_breast_density,
        "tumour_subtype": parse_text,
        "pcr": parse_pcr,
        "acquisition_times_s": parse_times,
    }
)
_SHEET: Final = "dataset_info"


@dataclass(frozen=True, slots=True)
class _Header:
    """Where the columns are: by field, and the further ones by their own name."""

    fields: Mapping[str, tuple[int, ...]]
    other: Mapping[str, int]


@reads("a readable clinical table", "save it again as .xlsx or CSV UTF-8")
def read_clinical(path: Path) -> Cohort:
    """Return what `clinical_job` finds."""
    return run_job(clinical_job(path))


@reads("a readable clinical table", "save it again as .xlsx or CSV UTF-8")
def clinical_job(path: Path) -> Job[Cohort]:
    """Return a job for the cases of a clinical table.

    An .xlsx file is read from the first sheet that has a column ``patient_id`` or ``case_id``; a
    .csv file may be separated by comma, semicolon or tab. Cells follow the rules of
    `napari_mamamia.io.clinical_rules`. A row that breaks one, has no id or repeats one is left out
    and told in `Cohort.refused` by its number; wholly empty rows are passed over. Where a field
    has two columns, such as ``menopause`` and ``menopausal_status``, they must agree.

    Raises
    ------
    FormatError
        If the file cannot be read, is of another kind, or has no column of ids.
    """
    text = f"Reading {path.name}"
    header, sheet = yield from _sheet_of_cases(path, text)
    records: list[CaseRecord] = []
    refused: list[RefusedRow] = []
    first_row: dict[str, int] = {}
    number = 1
    for cells in paced(sheet.rows[1:]):
        if cells is None:
            yield Progress(number, len(sheet.rows), text)
            continue
        number += 1
        if all(cell is None or cell == "" for cell in cells):
            continue
        try:
            record = _record(header, cells, sheet.all_text)
            if record.case_id in first_row:
                raise ValueError(  # noqa: TRY301 - every refusal ends in one place
                    f"case {record.case_id} is in row {first_row[record.case_id]} already"
                )
        except ValueError as reason:
            refused.append(RefusedRow(number, str(reason)))
            continue
        first_row[record.case_id] = number
        records.append(record)
    return Cohort(tuple(records), tuple(refused))


def write_clinical(cohort: Cohort, path: Path, *, overwrite: bool = False) -> None:
    """Write the records as .xlsx or .csv, with the column names of the MAMA-MIA table.

    Columns of `CaseRecord.other` follow the known ones. Reading the file again gives equal
    records, as far as texts have no blanks around them and none stands for a missing value;
    .xlsx keeps 16 digits of a number.

    Raises
    ------
    FormatError
        If `path` has another suffix, or a text holds a character that spreadsheets refuse.
    SaveConflictError
        If `path` exists and `overwrite` is off.
    SaveError
        If the system refuses to write.
    """
    others = list(dict.fromkeys(name for record in cohort.records for name in record.other))
    names = [_written_name(field, others) for field in COLUMNS]
    rows = [
        [*_cells(record), *(record.other.get(name) for name in others)] for record in cohort.records
    ]
    write_sheet([[*names, *others], *rows], path, name=_SHEET, overwrite=overwrite)


def _record(header: _Header, cells: Sequence[object], all_text: bool) -> CaseRecord:
    """Return one row as a record; ValueError with the reason where it cannot be."""
    case_id = parse_id(_cell(cells, header.fields["case_id"][0]))
    values = {
        field: _agreed(field, [parse(_cell(cells, index)) for index in header.fields[field]])
        for field, parse in _PARSERS.items()
        if field in header.fields
    }
    other = {name: _plain(_cell(cells, index), all_text) for name, index in header.other.items()}
    return CaseRecord(case_id=case_id, other=MappingProxyType(other), **values)


def _agreed(field: str, values: Sequence[Any]) -> Any:
    known = {value for value in values if value is not None}
    if len(known) > 1:
        raise ValueError(
            f"the columns {' and '.join(COLUMNS[field])} disagree: "
            f"{' and '.join(sorted(map(str, known)))}"
        )
    return known.pop() if known else None


def _cell(cells: Sequence[object], index: int) -> object:
    return cells[index] if index < len(cells) else None


def _plain(value: object, all_text: bool) -> Cell:
    """Return a cell of a further column as text or number, None where it is empty."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    text = str(value)
    if not text.strip():
        return None
    return as_written(text) if all_text else text


def _sheet_of_cases(path: Path, text: str) -> Job[tuple[_Header, Sheet]]:
    """Return a job for the first sheet that has a column of ids."""
    found = []
    for sheet in paced_sheets(path):
        if sheet is None:
            yield Progress(0, 1, text)
            continue
        names = sheet.rows[0] if sheet.rows else ()
        header = _header(names)
        if header is not None:
            return header, sheet
        found.append(f"{sheet.name} ({', '.join(map(str, names[:5])) or 'empty'})")
    raise FormatError(
        f"expected a column {' or '.join(COLUMNS['case_id'])} in {path}, found "
        f"{'; '.join(found)}: name the column of case ids so"
    )


def _header(names: Sequence[object]) -> _Header | None:
    """Return where the columns are, None where there is no column of ids."""
    places = _places(names)
    known = {_spelled(name): index for name, index in reversed(places.items())}
    fields = {
        field: tuple(known[alias] for alias in aliases if alias in known)
        for field, aliases in COLUMNS.items()
    }
    fields = {field: found for field, found in fields.items() if found}
    if "case_id" not in fields:
        return None
    fields["case_id"] = fields["case_id"][-1:]
    taken = {index for found in fields.values() for index in found}
    return _Header(fields, {name: index for name, index in places.items() if index not in taken})


def _places(names: Sequence[object]) -> dict[str, int]:
    """Return the index of each named column; of two with one name the second gets " (2)"."""
    places: dict[str, int] = {}
    for index, name in enumerate(names):
        text = "" if name is None else str(name).strip()
        if text:
            number = 1 + sum(known == text or known.startswith(f"{text} (") for known in places)
            places[text if number == 1 else f"{text} ({number})"] = index
    return places


def _spelled(name: str) -> str:
    return "_".join(name.casefold().replace("-", " ").replace("_", " ").split())


def _written_name(field: str, others: Sequence[str]) -> str:
    taken = {_spelled(name) for name in others}
    for name in COLUMNS[field]:
        if name not in taken:
            return name
    raise FormatError(
        f"expected no further column named {' or '.join(COLUMNS[field])}, but the records have "
        "one: rename it"
    )


def _cells(record: CaseRecord) -> list[Cell]:
    """Return the known fields in the order of `COLUMNS`, as the MAMA-MIA table spells them."""
    times = record.acquisition_times_s
    return [
        record.case_id,
        record.dataset,
        None if record.age is None else _short(record.age),
        record.menopausal_status and str(record.menopausal_status),
        record.breast_density,
        record.tumour_subtype,
        None if record.pcr is None else int(record.pcr),
        None if times is None else f"[{', '.join(str(_short(time)) for time in times)}]",
    ]


def _short(number: float) -> float:
    return int(number) if float(number).is_integer() else number
