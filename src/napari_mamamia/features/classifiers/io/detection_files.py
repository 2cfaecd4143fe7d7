"""Read detection tables from other software: cases, lesions and predicted boxes in mm."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.names import count_of, name_some
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.io.clinical.rules import parse_text
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.tables.cells import parse_id
from napari_mamamia.io.tables.headers import Column, Row, needed, optional
from napari_mamamia.io.tables.table import Table, read_table

_EDGES: Final = ("x1", "x2", "y1", "y2", "z1", "z2")
_IDS: Final = Column(
    "case_id", ("case_id", "patient_id", "name", "case", "id"), is_needed=True, is_id=True
)
_CENTRE: Final = Column("centre", ("centre", "center", "site", "dataset"))
_SCORE: Final = Column("score", ("score", "prob", "probability"))
_BOXES: Final = (_IDS, *map(needed, _EDGES))
_RISK: Final = optional("risk")

_FARTHEST_MM: Final = 1e6
"""Largest valid coordinate in mm (1 km from the origin)."""


@dataclass(frozen=True, slots=True)
class DetectionCases:
    """The cases in table order; `centres` is () if there is no centre column."""

    ids: tuple[str, ...]
    centres: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class BoxTable:
    """The boxes in table order.

    `cases` (n,) is the index of each box's case in the list of cases. `edges_mm` (n, 6) holds x1,
    x2, y1, y2, z1 and z2. `scores` and `risks` are NaN if the table does not have the column. An
    unreadable row has NaN edges and is listed in `failures`. Rows of cases that are not in the list
    are also in `failures`, but have no box. `n_repeated` is the number of repeated rows.
    """

    cases: NDArray[np.intp]
    edges_mm: NDArray[np.float64]
    scores: NDArray[np.float64]
    risks: NDArray[np.float64]
    has_scores: bool
    has_risks: bool
    failures: tuple[CaseFailure, ...] = ()
    n_repeated: int = 0
    notes: tuple[str, ...] = ()


@reads("a readable case list", "save it again as .xlsx or CSV UTF-8")
def read_detection_cases(path: Path) -> DetectionCases:
    """Read the list of cases: case_id (or patient_id, name) and optionally centre (site, dataset).

    Raises
    ------
    FormatError
        If the file cannot be read, lacks the column, names no case, or repeats a case.
    """
    table = read_table(path, (_IDS, _CENTRE))
    ids: list[str] = []
    centres: list[str] = []
    first_row: dict[str, int] = {}
    sites = table.column("centre") if table.has("centre") else [None] * len(table.rows)
    for row, cell, site in zip(table.rows, table.column("case_id"), sites, strict=True):
        number = row.number
        try:
            case_id, centre = parse_id(cell), parse_text(site) or ""
            _require_whole(row)
        except ValueError as reason:
            raise _bad_rows(path, [f"row {number}: {reason}"]) from reason
        key = case_key(case_id)
        if key in first_row:
            raise FormatError(
                f"expected {path} to contain each case once, but {case_id} is in the rows "
                f"{first_row[key]} and {number}: keep one of them"
            )
        first_row[key] = number
        ids.append(case_id)
        centres.append(centre)
    if not ids:
        raise FormatError(
            f"expected {path} to have a row for each case, but there are no rows below the "
            "header: list every case, including those without a lesion"
        )
    return DetectionCases(
        tuple(ids), tuple(centres) if table.has("centre") else (), _list_notes(table)
    )


@reads("a readable lesion table", "save it again as .xlsx or CSV UTF-8")
def read_lesions(path: Path, cases: DetectionCases) -> BoxTable:
    """Read the reference lesions: case_id, x1, x2, y1, y2, z1, z2, and optionally risk.

    The reference must be complete: a table with a bad row, a repeated lesion, or a lesion of an
    unlisted case is an error. A table with only a header has no lesions.

    Parameters
    ----------
    path
        The table.
    cases
        The list of cases.

    Raises
    ------
    FormatError
        If the file cannot be read, lacks a column, or a row is invalid.
    """
    table = read_table(path, (*_BOXES, _RISK))
    read = _read_boxes(table, cases, False)
    if read.failures:
        raise _bad_rows(path, [failure.reason for failure in read.failures])
    if read.n_repeated:
        raise FormatError(
            f"expected {path} to contain each lesion once, but {count_of(read.n_repeated, 'row')} "
            "repeated an earlier row: remove these rows, because the lesions would count twice"
        )
    return read


@reads("a readable table of predicted boxes", "save it again as .xlsx or CSV UTF-8")
def read_predicted_boxes(path: Path, cases: DetectionCases) -> BoxTable:
    """Read the predicted boxes: the columns of `read_lesions`, and optionally score.

    An unreadable row is listed as a failure with its row number. The row becomes a box with NaN
    edges and the score inf, so that a damaged row never scores better than a wrong box.

    Parameters
    ----------
    path
        The table.
    cases
        The list of cases.

    Raises
    ------
    FormatError
        If the file cannot be read or lacks a column.
    """
    table = read_table(path, (*_BOXES, _SCORE, _RISK))
    return _read_boxes(table, cases, True)


def _read_boxes(table: Table, cases: DetectionCases, keeps_bad: bool) -> BoxTable:
    place_of = {case_key(case_id): index for index, case_id in enumerate(cases.ids)}
    columns = [name for name in (*_EDGES, "score", "risk") if table.has(name)]
    numbers = {name: table.numbers(name, unit="mm" if name in _EDGES else "") for name in columns}
    reasons = {cell.row: cell.reason for _, bad in numbers.values() for cell in reversed(bad)}
    cells = table.column("case_id")
    has_scores, has_risks = "score" in columns, "risk" in columns
    own_cases: list[int] = []
    rows: list[tuple[float, ...]] = []
    failures: list[CaseFailure] = []
    seen: set[tuple[float, ...]] = set()
    n_repeated = 0
    unread = (*(6 * (math.nan,)), math.inf if has_scores else math.nan, math.nan)
    for at, line in enumerate(table.rows):
        number, name = line.number, f"row {line.number}"
        try:
            name = parse_id(cells[at])
            place = place_of[case_key(name)]
        except (ValueError, KeyError) as error:
            reason = "the case is not in the case list, so it is not scored"
            why = reason if isinstance(error, KeyError) else str(error)
            failures.append(CaseFailure(name, f"row {number} of {table.path.name}: {why}"))
            continue
        try:
            _require_whole(line)
            if at in reasons:
                raise ValueError(reasons[at])  # noqa: TRY301
            row = _make_row({name: values[at] for name, (values, _) in numbers.items()}, has_scores)
        except ValueError as reason:
            failures.append(CaseFailure(name, f"row {number} of {table.path.name}: {reason}"))
            if not keeps_bad:
                continue
            row = unread
        else:
            key = (place, *(-1.0 if math.isnan(value) else value for value in row))
            n_repeated += key in seen
            seen.add(key)
        own_cases.append(place)
        rows.append(row)
    values = np.array(rows, dtype=np.float64).reshape(-1, 8)
    return BoxTable(
        np.array(own_cases, dtype=np.intp),
        values[:, :6],
        values[:, 6],
        values[:, 7],
        has_scores,
        has_risks,
        tuple(failures),
        n_repeated,
        _list_notes(table),
    )


def _make_row(numbers: Mapping[str, float], has_scores: bool) -> tuple[float, ...]:
    """Return edges, score and risk; raise ValueError if the box is invalid."""
    missing = next((name for name, value in numbers.items() if math.isnan(value)), None)
    if missing:
        raise ValueError(f"{missing} must be a number, but it is missing")
    far = next((edge for edge in _EDGES if abs(numbers[edge]) > _FARTHEST_MM), None)
    if far:
        raise ValueError(f"{far} must be a plausible coordinate in mm, but it is {numbers[far]:g}")
    for low, high in zip(_EDGES[::2], _EDGES[1::2], strict=True):
        if not numbers[low] < numbers[high]:
            raise ValueError(
                f"{high} must be above {low}, but they are {numbers[high]:g} and {numbers[low]:g}"
            )
    risk = numbers.get("risk", math.nan)
    if not 0 <= numbers.get("risk", 0) <= 1:
        raise ValueError(f"risk must be from 0 to 1, but it is {risk:g}")
    score = numbers["score"] if has_scores else math.nan
    return (*(numbers[edge] for edge in _EDGES), score, risk)


def _list_notes(table: Table) -> tuple[str, ...]:
    return tuple(f"{table.path.name}: {note}" for note in table.notes)


def _require_whole(row: Row) -> None:
    if row.problem:
        raise ValueError(row.problem)


def _bad_rows(path: Path, reasons: Sequence[str]) -> FormatError:
    return FormatError(
        f"expected all rows in {path} to be complete, but {name_some(reasons, 5)}: correct these "
        "rows"
    )
