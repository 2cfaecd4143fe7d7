"""Tables of values that algorithms are ranked by: long, wide or one for each; and named resamples.

Nothing is guessed and nothing passed over: a table that cannot be ranked as it stands is refused
with its row, since a lost value would be a rank.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import FormatError, Remedy
from napari_mamamia.core.progress import paced
from napari_mamamia.io.clinical.rules import is_missing, parse_id
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.tables.sheet_gaps import cell_name
from napari_mamamia.io.tables.spreadsheets import Sheet, read_sheets, wrong_length

KEYS: Final = ("task", "metric", "site")
"""Columns that part a table into several."""

_CASES: Final = ("case", "case_id", "patient_id")
_LONG: Final = ("algorithm", "case", "value")
_EXPECTED: Final = "a table to rank by"
_REMEDY: Final = "correct it, or save it again as .xlsx or CSV UTF-8"


@dataclass(frozen=True, slots=True, eq=False)
class ValueTable:
    """Values (n, m) float64 of cases by algorithms, nan where one is missing."""

    task: str
    metric: str
    site: str
    algorithms: tuple[str, ...]
    cases: tuple[str, ...]
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ValueTables:
    """The tables of a file, all of the same algorithms; `keys` are the columns that part them."""

    keys: tuple[str, ...]
    tables: tuple[ValueTable, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CaseColumns:
    """The columns of one algorithm's table: `values` (n, k) float64, nan where one is missing.

    `profiles` are those that its column ``profile`` names, `statuses` what its column ``status``
    says of each case; () where there is none.
    """

    cases: tuple[str, ...]
    columns: tuple[str, ...]
    values: NDArray[np.float64]
    profiles: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Cell:
    """A value and where it belongs; keys, case and algorithm as they are compared."""

    key: tuple[str, str, str]
    case: str
    algorithm: str
    value: float
    row: int


@reads(_EXPECTED, _REMEDY)
def read_value_tables(path: Path) -> ValueTables:
    """Return the tables of a file: long (algorithm, case, value) or wide (case, each algorithm).

    Optional columns task, metric and site part it into several. An empty cell is a missing value,
    and so is a case that an algorithm has no row for. Letter case does not part case ids.

    Raises
    ------
    FormatError
        If the file cannot be read, a column or name is missing or there twice, a value is no finite
        number, or an algorithm has no value at all.
    """
    sheet, header = _read_sheet(path)
    plain = [_plain_name(name) for name in header]
    is_long = {"algorithm", "value"} <= set(plain) and bool(set(_CASES) & set(plain))
    keys = tuple(key for key in KEYS if key in plain)
    names: dict[str, str] = {}
    cells = (_read_long if is_long else _read_wide)(path, sheet, header, names)
    if not cells:
        raise FormatError(
            f"expected a row for each case in {path}, but there is none below its header: look "
            "whether the program that wrote it came to its end"
        )
    return ValueTables(keys, _part_cells(path, cells, names))


@reads(_EXPECTED, _REMEDY)
def read_case_columns(path: Path, columns: Sequence[str]) -> CaseColumns:
    """Return columns of a table with a row for each case, by their names.

    Without `columns` it is dsc, value or score, or the only one besides the case. Errors as
    `read_value_tables`.
    """
    sheet, header = _read_sheet(path)
    plain = [_plain_name(name) for name in header]
    case_at = _find_case(path, plain)
    wanted_names = [_plain_name(name) for name in columns] or _choose_column(path, header, case_at)
    ats = [_find_column(path, header, plain, name) for name in wanted_names]
    profile_at = plain.index("profile") if "profile" in plain else None
    status_at = plain.index("status") if "status" in plain else None
    profiles: dict[str, None] = {}
    statuses: list[str] = []
    seen: dict[str, tuple[str, int]] = {}
    rows: list[list[float]] = []
    for number, line in _rows_of(path, sheet):
        case = _parse_name(path, number, "case", line[case_at])
        if case_key(case) in seen:
            before = seen[case_key(case)][1]
            raise FormatError(
                f"expected each case once in {path}, but {case} is in rows {before} and {number}: "
                "keep the row that counts"
            )
        seen[case_key(case)] = case, number
        if profile_at is not None and line[profile_at]:
            profiles[str(line[profile_at])] = None
        if status_at is not None:
            statuses.append(str(line[status_at] or ""))
        rows.append([_parse_value(path, number, header[at], line[at]) for at in ats])
    if not rows:
        raise FormatError(f"expected a row for each case in {path}, found none: look into the file")
    cases = tuple(case for case, _ in seen.values())
    values = np.array(rows, dtype=np.float64)
    return CaseColumns(cases, tuple(wanted_names), values, tuple(profiles), tuple(statuses))


@reads("a table of resamples", "write the names of a resample's cases into each row")
def read_draws(path: Path) -> tuple[tuple[str, ...], ...]:
    """Return the case names of each row; there is no header. Empty rows are passed over.

    Raises
    ------
    FormatError
        If the file cannot be read, or a cell is no name.
    """
    sheet = _first_sheet(path)
    draws = []
    for number, line in enumerate(paced(sheet.rows, f"Reading {path.name}", len(sheet.rows)), 1):
        cells = list(line)
        while cells and (cells[-1] is None or cells[-1] == ""):
            cells.pop()
        if cells:
            draws.append(tuple(_parse_name(path, number, "case", cell) for cell in cells))
    return tuple(draws)


def _read_long(
    path: Path, sheet: Sheet, header: Sequence[str], names: dict[str, str]
) -> list[_Cell]:
    plain = [_plain_name(name) for name in header]
    at = {"case": _find_case(path, plain)}
    for name in ("algorithm", "value", *KEYS):
        if name in plain:
            at[name] = _find_column(path, header, plain, name)
    cells = []
    for number, line in _rows_of(path, sheet):
        key = _read_key(path, number, line, at)
        case = _parse_name(path, number, "case", line[at["case"]])
        algorithm = _parse_name(path, number, "algorithm", line[at["algorithm"]])
        value = _parse_value(path, number, "value", line[at["value"]])
        names.setdefault(case_key(case), case)
        cells.append(_Cell(key, case_key(case), algorithm, value, number))
    return cells


def _read_wide(
    path: Path, sheet: Sheet, header: Sequence[str], names: dict[str, str]
) -> list[_Cell]:
    plain = [_plain_name(name) for name in header]
    at: dict[str, int] = {
        key: _find_column(path, header, plain, key) for key in KEYS if key in plain[1:]
    }
    of_algorithms = [
        place for place in range(1, len(header)) if place not in at.values() and header[place]
    ]
    if not of_algorithms:
        raise FormatError(
            f"expected the columns algorithm, case and value in {path}, or a case and a column for "
            f"each algorithm, found {', '.join(header) or 'no header'}: name the columns so"
        )
    for place in of_algorithms:
        _find_column(path, header, list(header), header[place])
    cells = []
    for number, line in _rows_of(path, sheet):
        key = _read_key(path, number, line, at)
        case = _parse_name(path, number, "case", line[0])
        names.setdefault(case_key(case), case)
        for place in of_algorithms:
            value = _parse_value(path, number, header[place], line[place])
            cells.append(_Cell(key, case_key(case), header[place], value, number))
    return cells


def _part_cells(
    path: Path, cells: Sequence[_Cell], names: Mapping[str, str]
) -> tuple[ValueTable, ...]:
    algorithms = {name: at for at, name in enumerate(dict.fromkeys(c.algorithm for c in cells))}
    by_key: dict[tuple[str, str, str], list[_Cell]] = {}
    for cell in cells:
        by_key.setdefault(cell.key, []).append(cell)
    tables = []
    for (task, metric, site), inside in by_key.items():
        cases = {case: at for at, case in enumerate(dict.fromkeys(c.case for c in inside))}
        values = np.full((len(cases), len(algorithms)), np.nan)
        rows = np.zeros(values.shape, dtype=np.int64)
        for cell in inside:
            place = cases[cell.case], algorithms[cell.algorithm]
            if rows[place]:
                raise FormatError(
                    f"expected one value of {cell.algorithm} for case {names[cell.case]} in "
                    f"{path}, found it in rows {rows[place]} and {cell.row}: keep the one that "
                    "counts"
                )
            rows[place] = cell.row
            values[place] = cell.value
        ids = tuple(names[case] for case in cases)
        tables.append(ValueTable(task, metric, site, tuple(algorithms), ids, values))
    for name, at in algorithms.items():
        if all(np.isnan(table.values[:, at]).all() for table in tables):
            raise FormatError(
                f"expected a value of {name} in {path} for one case or more, found none: give its "
                "values, or leave the algorithm out"
            )
    return tuple(tables)


def _read_key(
    path: Path, number: int, line: Sequence[object], at: Mapping[str, int]
) -> tuple[str, str, str]:
    task, metric, site = (
        _parse_name(path, number, key, line[at[key]]) if key in at else "" for key in KEYS
    )
    return task, metric, site


def _first_sheet(path: Path) -> Sheet:
    sheet = next(read_sheets(path, f"Reading {path.name}"), None)
    if sheet is None:
        raise FormatError(f"expected a table in {path}, but it has no sheet: choose another file")
    if sheet.note:
        raise FormatError(
            f"expected a table in UTF-8 at {path}, but {sheet.note}: save it again as CSV UTF-8 or "
            "as .xlsx"
        )
    return sheet


def _read_sheet(path: Path) -> tuple[Sheet, list[str]]:
    """Return the first sheet and its header; empty columns at its end are no columns."""
    sheet = _first_sheet(path)
    header: list[str] = []
    for cell in sheet.rows[0] if sheet.rows else ():
        header.append("" if cell is None or cell == "" else _parse_name(path, 1, "column", cell))
    return sheet, header


def _rows_of(path: Path, sheet: Sheet) -> "list[tuple[int, list[object]]]":
    """Return each row that is not empty with its number, as long as the header."""
    width = len(sheet.rows[0]) if sheet.rows else 0
    rows = []
    lines = paced(sheet.rows[1:], f"Reading {path.name}", len(sheet.rows))
    for number, line in enumerate(lines, 2):
        gaps = sheet.gaps.get(number - 1, {})
        if gaps:
            at = min(gaps)
            raise FormatError(
                f"expected a value in {cell_name(number - 1, at)} of {path}, but it is {gaps[at]}: "
                "open it in a spreadsheet program and save it again"
            )
        if all(cell is None or cell == "" for cell in line):
            continue
        if wrong := wrong_length(sheet, line, width):
            raise FormatError(
                f"expected a cell for each column in row {number} of {path}, but {wrong}: correct "
                "the row"
            )
        rows.append((number, [*line[:width], *[None] * (width - len(line))]))
    return rows


def _plain_name(name: str) -> str:
    return "_".join(name.casefold().replace("_", " ").split())


def _find_case(path: Path, plain: Sequence[str]) -> int:
    for name in _CASES:
        if name in plain:
            return _find_column(path, plain, plain, name)
    raise FormatError(
        f"expected a column case, case_id or patient_id in {path}, found "
        f"{', '.join(filter(None, plain)) or 'no header'}: name the column so"
    )


def _find_column(path: Path, header: Sequence[str], plain: Sequence[str], name: str) -> int:
    places = [at for at, one in enumerate(plain) if one == name]
    if not places:
        raise FormatError(
            f"expected a column {name} in {path}, found {', '.join(filter(None, header))}: choose "
            "one of them"
        )
    if len(places) > 1:
        raise FormatError(
            f"expected one column {name} in {path}, found {len(places)} (columns "
            f"{', '.join(str(at + 1) for at in places)}): keep the one that counts"
        )
    return places[0]


def _choose_column(path: Path, header: Sequence[str], case_at: int) -> list[str]:
    others = [_plain_name(name) for at, name in enumerate(header) if name and at != case_at]
    for name in ("dsc", "value", "score"):
        if name in others:
            return [name]
    if len(others) == 1:
        return others
    raise FormatError(
        f"expected a column dsc, value or score in {path}, found {', '.join(others) or 'none'}: "
        "name the one to rank by",
        remedies=(Remedy("metric", ("COLUMN",)),),
    )


def _parse_name(path: Path, number: int, what: str, cell: object) -> str:
    try:
        return parse_id(cell)
    except ValueError:
        raise FormatError(
            f"expected the name of a {what} in row {number} of {path}, got {cell!r}: write it, or "
            "delete the row"
        ) from None


def _parse_value(path: Path, number: int, column: str, cell: object) -> float:
    """Return a finite number, nan for a missing one; a decimal comma is understood."""
    try:
        value = float(cell)  # type: ignore[arg-type]  # what is none raises
        if math.isfinite(value) and not isinstance(cell, bool) and "_" not in str(cell):
            return value
    except (TypeError, ValueError):
        pass
    if is_missing(cell):
        return math.nan
    text = str(cell).strip()
    if text.count(",") == 1 and "." not in text:
        try:
            value = float(text.replace(",", "."))
            before, _, after = text.lstrip("+-").partition(",")
            if math.isfinite(value) and not (len(after) == 3 and before.strip("0")):
                return value
        except ValueError:
            pass
    raise FormatError(
        f"expected a finite number or an empty cell in column {column}, row {number} of {path}, "
        f"got {text!r}: correct it, or leave the cell empty and choose what that counts",
        remedies=(Remedy("missing"),),
    )
