"""Read one row of a clinical table as a `CaseRecord`, or report every invalid cell."""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from napari_mamamia.core.cohort import CaseRecord, RefusedRow, RejectedCell
from napari_mamamia.io.clinical import rules
from napari_mamamia.io.clinical.columns import Header
from napari_mamamia.io.tables.cells import parse_id
from napari_mamamia.io.tables.headers import Row
from napari_mamamia.io.tables.spreadsheets import Cell, Sheet, as_written, cell_name

PARSERS: Final[Mapping[str, Callable[[object], Any]]] = MappingProxyType(
    {
        "case_id": parse_id,
        "dataset": rules.parse_text,
        "age": rules.parse_age,
        "menopausal_status": rules.parse_menopausal_status,
        "breast_density": rules.parse_breast_density,
        "tumour_subtype": rules.parse_text,
        "pcr": rules.parse_pcr,
        "acquisition_times_s": rules.parse_times,
    }
)
"""The parsing function for each field.

It returns None for a missing value and raises `ValueError` for an invalid value.
"""


def read_row(header: Header, sheet: Sheet, row: Row) -> CaseRecord | RefusedRow:
    """Return a sheet row as a record, or as a rejected row with the reasons."""
    place, cells = row.number - 1, row.cells
    if row.problem:
        return RefusedRow(row.number, row.problem)
    rejected = _find_gaps(header, sheet, place)
    values: dict[str, Any] = {}
    for field, columns in header.fields.items():
        read, refused = _read_field(field, header, cells, place)
        rejected += refused
        distinct_values = set(read.values()) - {None}
        if len(distinct_values) > 1:
            rejected += _reject_disagreement(header, cells, place, columns, distinct_values)
        values[field] = distinct_values.pop() if len(distinct_values) == 1 else None
    if rejected:
        reasons = dict.fromkeys(cell.reason for cell in rejected)
        return RefusedRow(place + 1, "; ".join(reasons), tuple(rejected))
    other = {
        name: _convert_cell(_read_cell(cells, at), sheet.all_text)
        for name, at in header.other.items()
    }
    return CaseRecord(**values, other=MappingProxyType(other))


def _find_gaps(header: Header, sheet: Sheet, place: int) -> list[RejectedCell]:
    gaps = sheet.gaps.get(place, {})
    return [
        RejectedCell(
            name, header.names[index], "", f"{name} ({header.names[index]}) is {gaps[index]}"
        )
        for index in sorted(gaps)
        if index in header.names and (name := cell_name(place, index))
    ]


def _read_field(
    field: str, header: Header, cells: Sequence[object], place: int
) -> tuple[dict[int, Any], list[RejectedCell]]:
    values: dict[int, Any] = {}
    rejected: list[RejectedCell] = []
    for index in header.fields[field]:
        cell = _read_cell(cells, index)
        try:
            values[index] = PARSERS[field](cell)
        except ValueError as reason:
            text = "" if cell is None else str(cell)
            rejected.append(
                RejectedCell(cell_name(place, index), header.names[index], text, str(reason))
            )
    return values, rejected


def _reject_disagreement(
    header: Header,
    cells: Sequence[object],
    place: int,
    columns: Sequence[int],
    known: set[Any],
) -> list[RejectedCell]:
    names = [header.names[index] for index in columns]
    if len(set(names)) < len(names):
        names = [f"{header.names[index]} ({cell_name(place, index)})" for index in columns]
    reason = f"the columns {' and '.join(names)} disagree: {' and '.join(sorted(map(str, known)))}"
    return [
        RejectedCell(
            cell_name(place, index), header.names[index], str(_read_cell(cells, index)), reason
        )
        for index in columns
    ]


def _read_cell(cells: Sequence[object], index: int) -> object:
    return cells[index] if index < len(cells) else None


def _convert_cell(value: object, all_text: bool) -> Cell:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    text = str(value)
    if not text.strip():
        return None
    return as_written(text) if all_text else text
