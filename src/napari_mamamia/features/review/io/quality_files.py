"""Read the files of quality control: the queue, disagreement criteria, and reading results."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.features.review.core.quality import Queue
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.record_codec import RecordCodec
from napari_mamamia.io.tables.cells import is_missing, parse_id, parse_label, parse_number
from napari_mamamia.io.tables.headers import Column, optional
from napari_mamamia.io.tables.table import read_table

_QUEUE_KEY: Final = "mamamia_queue"
_SCHEMA: Final = 1
_REMEDY: Final = "create the queue again with `mamamia review queue`"
_CODEC: Final = RecordCodec(Queue, _REMEDY)
_CASE: Final = "case_id"
ERROR: Final = "error"

SITE: Final = "site"
SIGNS: Final = ("missed_lesions", "count_difference", "doubt", "other_side", "touches_border", SITE)


@dataclass(frozen=True, slots=True)
class CaseSigns:
    """Additional disagreement criteria for a case, read from a table; NaN, None or "" if missing.

    See `core.quality.QualityCase`.
    """

    missed_lesions: float = math.nan
    count_difference: float = math.nan
    doubt: float = math.nan
    other_side: bool | None = None
    touches_border: bool | None = None
    site: str = ""


def queue_text(queue: Queue) -> str:
    """Return a queue as JSON text."""
    content = {_QUEUE_KEY: _SCHEMA, **_CODEC.plain(queue)}
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


@reads("a queue of quality control (JSON)", _REMEDY)
def read_queue(path: Path) -> Queue:
    """Read a queue from a file.

    Raises
    ------
    FormatError
        If the file is not a queue.
    """
    content = read_json(path)
    if not isinstance(content, dict) or content.pop(_QUEUE_KEY, None) != _SCHEMA:
        raise FormatError(
            f"expected a queue of version {_SCHEMA} at {path}, but found other content: {_REMEDY}"
        )
    return _CODEC.record(content, path)


@reads("a table of disagreement criteria", "add a column case_id and at least one criterion")
def read_signs(path: Path) -> dict[str, CaseSigns]:
    """Read the disagreement criteria of each case from a table (.csv, .xlsx, .ods).

    Columns: `case_id` and any of `missed_lesions`, `count_difference`, `doubt` (numbers),
    `other_side`, `touches_border` (yes or no), `site`; other columns are ignored.

    Raises
    ------
    FormatError
        If a case occurs twice, no column is known, or a cell has the wrong type.
    """
    signs = {}
    for line, row in _read_rows(path, SIGNS):
        number = partial(_parse_number, path=path, line=line)
        flag = partial(_parse_flag, path=path, line=line)
        site = row.get(SITE)
        signs[str(row[_CASE])] = CaseSigns(
            number(row.get("missed_lesions"), "missed_lesions"),
            number(row.get("count_difference"), "count_difference"),
            number(row.get("doubt"), "doubt"),
            flag(row.get("other_side"), "other_side"),
            flag(row.get("touches_border"), "touches_border"),
            "" if is_missing(site) else str(site).strip(),
        )
    return signs


@reads("a table of reading results", "add the columns case_id and error (yes or no)")
def read_marks(path: Path) -> dict[str, bool]:
    """Read from a table whether each case had an error, in line order; unread cases are omitted.

    The columns are `case_id` and `error` (yes or no); an empty `error` means that the case was not
    read.

    Raises
    ------
    FormatError
        If a case occurs twice, a column is missing, or a cell is neither yes nor no.
    """
    marks = {}
    for line, row in _read_rows(path, (ERROR,)):
        mark = _parse_flag(row.get(ERROR), ERROR, path, line)
        if mark is not None:
            marks[str(row[_CASE])] = mark
    return marks


def _read_rows(path: Path, names: tuple[str, ...]) -> list[tuple[int, Mapping[str, object]]]:
    columns = [Column(_CASE, (_CASE,), is_needed=True, is_id=True), *map(optional, names)]
    table = read_table(path, columns, any_of=True)
    table.require_cases()
    cells = {name: table.column(name) for name in (_CASE, *names) if table.has(name)}
    rows: dict[str, tuple[int, Mapping[str, object]]] = {}
    for index, line in enumerate(table.rows):
        row = {name: column[index] for name, column in cells.items()}
        try:
            if line.problem:
                raise ValueError(line.problem)  # noqa: TRY301
            case_id = parse_id(row.get(_CASE))
        except ValueError as error:
            raise FormatError(
                f"{path}, line {line.number}: {error}: write one case id per line"
            ) from error
        if case_id in rows:
            raise FormatError(
                f"expected each case once in {path}, but found {case_id!r} in lines "
                f"{rows[case_id][0]} and {line.number}: remove one of the lines"
            )
        rows[case_id] = (line.number, {**row, _CASE: case_id})
    return list(rows.values())


def _parse_number(cell: object, name: str, path: Path, line: int) -> float:
    if is_missing(cell):
        return math.nan
    try:
        return parse_number(cell)
    except ValueError:
        raise FormatError(
            f"expected a number in column {name} of {path}, line {line}, but found "
            f"{str(cell)[:40]!r}: correct the cell or leave it empty"
        ) from None


def _parse_flag(cell: object, name: str, path: Path, line: int) -> bool | None:
    try:
        return parse_label(cell)
    except ValueError:
        raise FormatError(
            f"expected yes or no in column {name} of {path}, line {line}, but found "
            f"{str(cell)[:40]!r}: correct the cell or leave it empty"
        ) from None
