"""Read value tables for ranking (long, wide or one per algorithm), and lists of resamples.

No value is guessed or skipped. A table that cannot be ranked is rejected with the number of the
row, because a lost value would change a rank.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import FormatError, Remedy
from napari_mamamia.core.names import name_some
from napari_mamamia.core.progress import paced
from napari_mamamia.io.data_set.rank_files import CaseNumbers
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.tables.cells import parse_id
from napari_mamamia.io.tables.headers import Column, needed, optional, spelled, split_unit
from napari_mamamia.io.tables.spreadsheets import read_sheets
from napari_mamamia.io.tables.table import Table, read_table

KEYS: Final = ("task", "metric", "site")
"""Columns by which one file is split into several tables."""

_CASE: Final = Column("case", ("case", "case_id", "patient_id", "id"), is_needed=True, is_id=True)
_LONG: Final = (_CASE, needed("algorithm"), needed("value"), *map(optional, KEYS))
_USUAL: Final = ("dsc", "value", "score")
SHARES: Final = frozenset({"dsc", "dice", "iou", "jaccard"})
"""Metrics from 0 to 1; a table with such a metric in percent would wrongly rank first."""
_FACTS_OF_CASES: Final = """
age age_years sex gender ethnicity race menopause menopausal_status breast_density density
centre center hospital institution group cohort dataset data_set vendor manufacturer scanner
field_strength fold split part subtype tumor_subtype tumour_subtype pcr stage grade weight bmi
year status profile n_phases volume volume_mm3
"""
_NO_ALGORITHMS: Final = frozenset(_FACTS_OF_CASES.split())
"""Columns of a wide table that describe the case and are not algorithms."""
_EXPECTED: Final = "a table to rank by"
_REMEDY: Final = "correct it, or save it again as .xlsx or CSV UTF-8"


@dataclass(frozen=True, slots=True, eq=False)
class ValueTables:
    """The tables in a file, all with the same algorithms; `keys` are the columns that split it."""

    keys: tuple[str, ...]
    tables: tuple[CaseNumbers, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class CaseColumns:
    """The columns of one algorithm's table; `values` is (n, k), float64, NaN where missing.

    `profiles` holds the values of the column ``profile``, and `statuses` the value of the column
    ``status`` for each case; both are () if there is no such column.
    """

    cases: tuple[str, ...]
    columns: tuple[str, ...]
    values: NDArray[np.float64]
    profiles: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Cell:
    """A value with its table keys, case and algorithm, all normalised for comparison."""

    key: tuple[str, str, str]
    case: str
    algorithm: str
    value: float
    row: int


@reads(_EXPECTED, _REMEDY)
def read_value_tables(path: Path) -> ValueTables:
    """Read the tables in a file: long (algorithm, case, value) or wide (one column per algorithm).

    Optional columns task, metric and site split the file into several tables. An empty cell is a
    missing value, and so is a missing row for a case and an algorithm. Case ids are compared
    without letter case.

    Raises
    ------
    FormatError
        If the file cannot be read, a column or name is missing or occurs twice, a value is not a
        finite number, or an algorithm has no value at all.
    """
    table = read_table(path, _LONG, (_CASE, *map(optional, KEYS)), (), takes_others=True)
    is_long = table.has("value") and table.has("algorithm") and table.has("case")
    keys = tuple(key for key in KEYS if table.has(key))
    names: dict[str, str] = {}
    not_ranked = () if is_long else _list_case_facts(table)
    cells = _read_long(table, names) if is_long else _read_wide(table, names, not_ranked)
    if not cells:
        raise FormatError(
            f"expected a row for each case in {path}, but there are no rows below the header: "
            "check whether the program that wrote the file finished"
        )
    notes = _list_notes(table)
    if not_ranked:
        listed = name_some(not_ranked)
        notes += (
            (
                f"{path.name}: {listed} read as properties of the cases, not as algorithms: "
                "if one is an algorithm, rename its column"
            ),
        )
    return ValueTables(keys, _part_cells(path, cells, names), notes)


@reads(_EXPECTED, _REMEDY)
def read_case_columns(path: Path, columns: Sequence[str]) -> CaseColumns:
    """Read the named columns of a table with one row per case.

    If `columns` is (), the column is dsc, value or score, or the only column besides the case. The
    errors are those of `read_value_tables`.

    Parameters
    ----------
    path
        The table.
    columns
        Names of the columns; () for the default.
    """
    wanted = [needed(name) for name in dict.fromkeys(map(spelled, columns))]
    besides = (optional("profile"), optional("status"))
    table = read_table(
        path,
        *([_CASE, needed(name), *besides] for name in (() if wanted else _USUAL)),
        (_CASE, *wanted, *besides),
        takes_others=True,
    )
    names = [column.name for column in wanted] or _choose_column(table)
    values = np.array([_read_values(table, name) for name in names], dtype=np.float64).T
    seen: dict[str, tuple[str, int]] = {}
    for row, cell in zip(table.rows, table.column("case"), strict=True):
        case = _parse_name(path, row.number, "case", cell)
        if case_key(case) in seen:
            before = seen[case_key(case)][1]
            raise FormatError(
                f"expected each case once in {path}, but {case} is in rows {before} and "
                f"{row.number}: keep the correct row"
            )
        seen[case_key(case)] = case, row.number
    if not seen:
        raise FormatError(f"expected a row for each case in {path}, but found none: check the file")
    profiles, statuses = (
        [str(cell or "") for cell in table.column(name)] if table.has(name) else []
        for name in ("profile", "status")
    )
    return CaseColumns(
        tuple(case for case, _ in seen.values()),
        tuple(names),
        values,
        tuple(dict.fromkeys(filter(None, profiles))),
        tuple(statuses),
        _list_notes(table),
    )


@reads("a table of resamples", "write the names of a resample's cases into each row")
def read_draws(path: Path) -> tuple[tuple[str, ...], ...]:
    """Read resamples from a table without a header: each row lists case names.

    Raises
    ------
    FormatError
        If the file cannot be read, or a cell is not a name.
    """
    sheet = next(read_sheets(path, f"Reading {path.name}"), None)
    if sheet is None:
        raise FormatError(f"expected a table in {path}, but it has no sheet: choose another file")
    draws = []
    for number, line in enumerate(paced(sheet.rows, f"Reading {path.name}", len(sheet.rows)), 1):
        cells = list(line)
        while cells and (cells[-1] is None or cells[-1] == ""):
            cells.pop()
        if cells:
            draws.append(tuple(_parse_name(path, number, "case", cell) for cell in cells))
    return tuple(draws)


def _read_long(table: Table, names: dict[str, str]) -> list[_Cell]:
    values = _read_values(table, "value")
    columns = {name: table.column(name) for name in table.header.places}
    cells = []
    for index, row in enumerate(table.rows):
        task, metric, site, case, algorithm = (
            _parse_name(table.path, row.number, name, columns[name][index])
            if name in columns
            else ""
            for name in (*KEYS, "case", "algorithm")
        )
        names.setdefault(case_key(case), case)
        key = task, metric, site
        cells.append(_Cell(key, case_key(case), algorithm, values[index], row.number))
    return cells


def _list_case_facts(table: Table) -> tuple[str, ...]:
    """Return the columns of a wide table whose names suggest that they describe the case."""
    places = table.header.places
    return tuple(name for name in places if spelled(split_unit(name)[0]) in _NO_ALGORITHMS)


def _read_wide(table: Table, names: dict[str, str], not_ranked: Sequence[str]) -> list[_Cell]:
    path, header = table.path, table.header.names
    case_at = table.header.places.get("case", 0)
    others = (*(key for key in KEYS if table.has(key)), *not_ranked)
    not_algorithms = {case_at, *(table.header.places[name] for name in others)}
    algorithms = {name: at for name, at in table.header.places.items() if at not in not_algorithms}
    if not algorithms:
        raise FormatError(
            f"expected the columns algorithm, case and value in {path}, or a case and a column "
            f"for each algorithm, but found {name_some(header) or 'no header'}: rename the columns"
        )
    for name in algorithms:
        places = [index for index, other in enumerate(header) if other == name]
        if len(places) > 1:
            raise FormatError(
                f"expected only one column {name} in {path}, but found {len(places)} (columns "
                f"{name_some([str(index + 1) for index in places])}): keep the correct one"
            )
    values = {name: _read_values(table, name) for name in algorithms}
    columns = {key: table.column(key) for key in KEYS if table.has(key)}
    cells = []
    for k, row in enumerate(table.rows):
        task, metric, site = (
            _parse_name(path, row.number, key, columns[key][k]) if key in columns else ""
            for key in KEYS
        )
        cell = row.cells[case_at] if case_at < len(row.cells) else None
        case = _parse_name(path, row.number, "case", cell)
        names.setdefault(case_key(case), case)
        cells += [
            _Cell((task, metric, site), case_key(case), name, column[k], row.number)
            for name, column in values.items()
        ]
    return cells


def _part_cells(
    path: Path, cells: Sequence[_Cell], names: Mapping[str, str]
) -> tuple[CaseNumbers, ...]:
    algorithms = {
        name: index for index, name in enumerate(dict.fromkeys(c.algorithm for c in cells))
    }
    by_key: dict[tuple[str, str, str], list[_Cell]] = {}
    for cell in cells:
        by_key.setdefault(cell.key, []).append(cell)
    tables = []
    for (task, metric, site), inside in by_key.items():
        cases = {case: index for index, case in enumerate(dict.fromkeys(c.case for c in inside))}
        values = np.full((len(cases), len(algorithms)), np.nan)
        rows = np.zeros(values.shape, dtype=np.int64)
        for cell in inside:
            place = cases[cell.case], algorithms[cell.algorithm]
            if rows[place]:
                raise FormatError(
                    f"expected only one value of {cell.algorithm} for case {names[cell.case]} in "
                    f"{path}, but found values in rows {rows[place]} and {cell.row}: keep the "
                    "correct row"
                )
            rows[place] = cell.row
            values[place] = cell.value
        ids = tuple(names[case] for case in cases)
        tables.append(CaseNumbers(task, metric, site, tuple(algorithms), ids, values))
    for name, algorithm in algorithms.items():
        if all(np.isnan(table.values[:, algorithm]).all() for table in tables):
            raise FormatError(
                f"expected a value of {name} in {path} for at least one case, but found none: add "
                "its values, or leave the algorithm out"
            )
    return tuple(tables)


def _choose_column(table: Table) -> list[str]:
    case_at = table.header.places["case"]
    names = [name for index, name in enumerate(table.header.names) if name and index != case_at]
    others = [spelled(name) for name in names]
    for name in _USUAL:
        if name in others:
            return [name]
    if len(others) == 1:
        return [name for name in table.header.places if name != "case"]
    raise FormatError(
        f"expected a column dsc, value or score in {table.path}, but found "
        f"{name_some(others) or 'none'}: name the column to rank by",
        remedies=(Remedy("metric", ("COLUMN",)),),
    )


def _read_values(table: Table, name: str) -> list[float]:
    """Return a column of finite numbers, with NaN for empty cells; reject any other cell."""
    for row in table.rows:
        if row.problem:
            raise FormatError(
                f"expected a cell for each column in row {row.number} of {table.path}, but "
                f"{row.problem}: correct the row"
            )
    is_share = spelled(name) in SHARES
    values, bad = table.numbers(name, low=0 if is_share else -inf, high=1 if is_share else inf)
    if bad:
        row, cell = table.rows[bad[0].row], table.column(name)[bad[0].row]
        raise FormatError(
            f"expected a finite number{' from 0 to 1' if is_share else ''} or an empty cell in "
            f"column {name}, row {row.number} of {table.path}, but got {str(cell).strip()!r}: "
            "correct the cell, or leave it empty and choose a rule for missing values",
            remedies=(Remedy("missing", ("RULE",)),),
        )
    return values


def _list_notes(table: Table) -> tuple[str, ...]:
    return tuple(f"{table.path.name}: {note}" for note in table.notes)


def _parse_name(path: Path, number: int, what: str, cell: object) -> str:
    try:
        return parse_id(cell)
    except ValueError:
        raise FormatError(
            f"expected the name of the {what} in row {number} of {path}, but got {cell!r}: enter "
            "the name, or delete the row"
        ) from None
