"""Files of quality control: the queue, further signs of disagreement, what was read."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.quality import Queue
from napari_mamamia.io.clinical.rules import is_missing, parse_id
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.record_codec import RecordCodec
from napari_mamamia.io.tables.spreadsheets import Sheet, read_sheets

_QUEUE_KEY: Final = "mamamia_queue"
_SCHEMA: Final = 1
_REMEDY: Final = "make it again with `mamamia review queue`"
_CODEC: Final = RecordCodec(Queue, _REMEDY)
_CASE: Final = "case_id"
ERROR: Final = "error"
_YES: Final = frozenset({"yes", "y", "true", "1"})
_NO: Final = frozenset({"no", "n", "false", "0"})

SITE: Final = "site"
SIGNS: Final = ("missed_lesions", "count_difference", "doubt", "other_side", "touches_border", SITE)


@dataclass(frozen=True, slots=True)
class CaseSigns:
    """What a table says of a case beside its score; nan, None and "" where it does not.

    See `core.quality.QualityCase`.
    """

    missed_lesions: float = math.nan
    count_difference: float = math.nan
    doubt: float = math.nan
    other_side: bool | None = None
    touches_border: bool | None = None
    site: str = ""


def queue_text(queue: Queue) -> str:
    """Return a queue as its file holds it."""
    content = {_QUEUE_KEY: _SCHEMA, **_CODEC.plain(queue)}
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


@reads("a queue of quality control (JSON)", _REMEDY)
def read_queue(path: Path) -> Queue:
    """Return the queue in a file.

    Raises
    ------
    FormatError
        If it is none.
    """
    content = read_json(path)
    if not isinstance(content, dict) or content.pop(_QUEUE_KEY, None) != _SCHEMA:
        raise FormatError(
            f"expected a queue of version {_SCHEMA} at {path}, got something else: {_REMEDY}"
        )
    return _CODEC.record(content, path)


@reads("a table of signs of disagreement", "give it a column case_id and one of those it may have")
def read_signs(path: Path) -> dict[str, CaseSigns]:
    """Return what a table (.csv, .xlsx, .ods) says of each case.

    Columns: `case_id` and any of `missed_lesions`, `count_difference`, `doubt` (numbers),
    `other_side`, `touches_border` (yes or no), `site`; others are passed over.

    Raises
    ------
    FormatError
        If a case is there twice, no column is known, or a cell is not what its column holds.
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


@reads("a table of what was read", "give it the columns case_id and error (yes or no)")
def read_marks(path: Path) -> dict[str, bool]:
    """Return whether each case that was read had an error, in the order of the lines.

    Columns `case_id` and `error` (yes or no); a case whose `error` is empty was not read.

    Raises
    ------
    FormatError
        If a case is there twice, a column is missing, or a cell is neither yes nor no.
    """
    marks = {}
    for line, row in _read_rows(path, (ERROR,)):
        mark = _parse_flag(row.get(ERROR), ERROR, path, line)
        if mark is not None:
            marks[str(row[_CASE])] = mark
    return marks


def _read_rows(path: Path, names: tuple[str, ...]) -> list[tuple[int, Mapping[str, object]]]:
    """Return the lines of the first sheet by lower case column; ids as texts, each once."""
    sheet = next(read_sheets(path, f"Reading {path.name}"), Sheet("", [], all_text=True))
    lines = enumerate(sheet.rows, start=1)
    head = [str(cell or "").strip().lower() for _, row in islice(lines, 1) for cell in row]
    places = {one: head.index(one) for one in (_CASE, *names) if one in head}
    if _CASE not in places or len(places) < 2:
        raise FormatError(
            f"expected the column {_CASE} and one of {', '.join(names)} in the first line of "
            f"{path}, got {', '.join(filter(None, head))[:80] or 'nothing'}: name the columns so"
        )
    rows: dict[str, tuple[int, Mapping[str, object]]] = {}
    for line, cells in lines:
        row = {one: cells[at] for one, at in places.items() if at < len(cells)}
        if all(is_missing(cell) for cell in row.values()):
            continue
        try:
            case_id = parse_id(row.get(_CASE))
        except ValueError as error:
            raise FormatError(f"{path}, line {line}: {error}: give each line a case") from error
        if case_id in rows:
            raise FormatError(
                f"expected each case once in {path}, got {case_id!r} in lines {rows[case_id][0]} "
                f"and {line}: leave one out"
            )
        rows[case_id] = (line, {**row, _CASE: case_id})
    return list(rows.values())


def _parse_number(cell: object, name: str, path: Path, line: int) -> float:
    if is_missing(cell):
        return math.nan
    try:
        number = float(str(cell))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise FormatError(
            f"expected a number in column {name} of {path}, line {line}, got {str(cell)[:40]!r}: "
            "correct the cell or leave it empty"
        )
    return number


def _parse_flag(cell: object, name: str, path: Path, line: int) -> bool | None:
    if is_missing(cell):
        return None
    if isinstance(cell, float) and cell in (0, 1):
        cell = int(cell)
    word = str(cell).strip().lower()
    if word not in _YES | _NO:
        raise FormatError(
            f"expected yes or no in column {name} of {path}, line {line}, got {word[:40]!r}: "
            "correct the cell or leave it empty"
        )
    return word in _YES
