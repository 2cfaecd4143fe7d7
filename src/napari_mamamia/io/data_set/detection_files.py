"""Tables of detection that somebody else made: cases, lesions and predicted boxes in mm."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import paced
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.io.clinical.rules import is_missing, parse_id, parse_text
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.tables.sheet_gaps import cell_name
from napari_mamamia.io.tables.spreadsheets import Sheet, read_sheets, wrong_length

_EDGES: Final = ("x1", "x2", "y1", "y2", "z1", "z2")
_SPELLINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "case_id": ("case_id", "patient_id", "name"),
    "centre": ("centre", "center", "site", "dataset"),
    "score": ("score", "prob", "probability"),
    "risk": ("risk",),
    **{edge: (edge,) for edge in _EDGES},
}
"""Spellings of each column, in lower case with ``_`` for blanks; the first that is there counts."""

_ROWS_NAMED: Final = 5
_FARTHEST_MM: Final = 1e6
"""A kilometre from the origin: beyond it lies no patient, and volumes leave what floats hold."""
_DECIMAL_COMMA: Final = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DetectionCases:
    """The cases of a study in the order of their table; `centres` is () without such a column."""

    ids: tuple[str, ...]
    centres: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class BoxTable:
    """Boxes in the order of their table.

    `cases` (n,) is the place of each one's case in the list of cases, `edges_mm` (n, 6) are x1, x2,
    y1, y2, z1, z2. `scores` and `risks` are nan where the table has no such column. A row that
    cannot be read has edges of nan and stands in `failures`, and so do rows of cases that are not
    in the list, which are no boxes here. `n_repeated` counts rows equal to an earlier one.
    """

    cases: NDArray[np.intp]
    edges_mm: NDArray[np.float64]
    scores: NDArray[np.float64]
    risks: NDArray[np.float64]
    has_scores: bool
    has_risks: bool
    failures: tuple[CaseFailure, ...] = ()
    n_repeated: int = 0


@dataclass(frozen=True, slots=True)
class _Table:
    """A sheet whose columns were found; `has_decimal_commas` says how its numbers are written."""

    path: Path
    sheet: Sheet
    places: Mapping[str, int]
    has_decimal_commas: bool

    def cells(self, line: Sequence[object]) -> dict[str, object]:
        """Return the cells of a row by the name of their column."""
        return {name: line[at] if at < len(line) else None for name, at in self.places.items()}


@reads("a readable list of cases", "save it again as .xlsx or CSV UTF-8")
def read_detection_cases(path: Path) -> DetectionCases:
    """Return the column case_id (patient_id, name) and, if there is one, centre (site, dataset).

    Raises
    ------
    FormatError
        If the file cannot be read, lacks the column, names no case, or one twice.
    """
    table = _open_table(path, ("case_id",), ("centre",))
    ids: list[str] = []
    centres: list[str] = []
    first_row: dict[str, int] = {}
    for number, line in _list_rows(table):
        cells = table.cells(line)
        try:
            case_id = parse_id(cells["case_id"])
            centre = parse_text(cells.get("centre")) or ""
            _require_whole(table, number, line)
        except ValueError as reason:
            raise _bad_rows(path, [f"row {number}: {reason}"]) from reason
        key = case_key(case_id)
        if key in first_row:
            raise FormatError(
                f"expected each case once in {path}, but {case_id} is in the rows "
                f"{first_row[key]} and {number}: keep one of them"
            )
        first_row[key] = number
        ids.append(case_id)
        centres.append(centre)
    if not ids:
        raise FormatError(
            f"expected a row for each case in {path}, but there is none below its header: list "
            "every case, those without a lesion too"
        )
    return DetectionCases(tuple(ids), tuple(centres) if "centre" in table.places else ())


@reads("a readable table of lesions", "save it again as .xlsx or CSV UTF-8")
def read_lesions(path: Path, cases: DetectionCases) -> BoxTable:
    """Return the lesions of the reference: case_id, x1, x2, y1, y2, z1, z2, and risk if given.

    The truth must be whole: one bad row, a lesion that is there twice or one of a case that is not
    in the list refuses the table. A table with a header alone has no lesion.

    Raises
    ------
    FormatError
        If the file cannot be read, lacks a column, or a row is bad.
    """
    table = _open_table(path, ("case_id", *_EDGES), ("risk",))
    read = _read_boxes(table, cases, False)
    if read.failures:
        raise _bad_rows(path, [failure.reason for failure in read.failures])
    if read.n_repeated:
        raise FormatError(
            f"expected each lesion once in {path}, but {read.n_repeated} row(s) repeat an earlier "
            "one: remove them, or the lesion would count twice"
        )
    return read


@reads("a readable table of predicted boxes", "save it again as .xlsx or CSV UTF-8")
def read_predicted_boxes(path: Path, cases: DetectionCases) -> BoxTable:
    """Return predicted boxes: the columns of `read_lesions`, and score if they have scores.

    A row that cannot be read costs itself alone: it is a failure with its number, and a box whose
    edges are nan and whose score is inf, so that damage is never better than a wrong box.

    Raises
    ------
    FormatError
        If the file cannot be read or lacks a column.
    """
    table = _open_table(path, ("case_id", *_EDGES), ("score", "risk"))
    return _read_boxes(table, cases, True)


def _read_boxes(table: _Table, cases: DetectionCases, keeps_bad: bool) -> BoxTable:
    place_of = {case_key(case_id): place for place, case_id in enumerate(cases.ids)}
    columns = [name for name in (*_EDGES, "score", "risk") if name in table.places]
    has_scores, has_risks = "score" in columns, "risk" in columns
    own_cases: list[int] = []
    rows: list[tuple[float, ...]] = []
    failures: list[CaseFailure] = []
    seen: set[tuple[float, ...]] = set()
    n_repeated = 0
    unread = (*(6 * (math.nan,)), math.inf if has_scores else math.nan, math.nan)
    for number, line in _list_rows(table):
        cells, name = table.cells(line), f"row {number}"
        try:
            name = parse_id(cells["case_id"])
            place = place_of[case_key(name)]
        except (ValueError, KeyError) as error:
            reason = "the case is not in the list of cases, so that it does not count"
            why = reason if isinstance(error, KeyError) else str(error)
            failures.append(CaseFailure(name, f"row {number} of {table.path.name}: {why}"))
            continue
        try:
            _require_whole(table, number, line)
            numbers = {name: _parse_number(table, name, cells[name]) for name in columns}
            row = _make_row(numbers, has_scores)
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
    )


def _make_row(numbers: Mapping[str, float], has_scores: bool) -> tuple[float, ...]:
    """Return edges, score and risk; ValueError where they are no box."""
    far = next((edge for edge in _EDGES if abs(numbers[edge]) > _FARTHEST_MM), None)
    if far:
        raise ValueError(f"{far} must be a place in mm, got {numbers[far]:g}")
    for low, high in zip(_EDGES[::2], _EDGES[1::2], strict=True):
        if not numbers[low] < numbers[high]:
            raise ValueError(
                f"{high} must be above {low}, got {numbers[low]:g} to {numbers[high]:g}"
            )
    risk = numbers.get("risk", math.nan)
    if not 0 <= numbers.get("risk", 0) <= 1:
        raise ValueError(f"risk must be from 0 to 1, got {risk:g}")
    score = numbers["score"] if has_scores else math.nan
    return (*(numbers[edge] for edge in _EDGES), score, risk)


def _parse_number(table: _Table, name: str, cell: object) -> float:
    if is_missing(cell) or isinstance(cell, bool):
        raise ValueError(f"{name} must be a number, got {cell!r}")
    text = str(cell).strip()
    if "," in text:
        if not table.has_decimal_commas or not _DECIMAL_COMMA.fullmatch(text):
            raise ValueError(f"{name} {text!r} may have a decimal comma or one of thousands")
        text = text.replace(",", ".")
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{name} must be a number, got {cell!r}") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {cell!r}")
    return number


def _open_table(path: Path, required: Sequence[str], optional: Sequence[str]) -> _Table:
    text = f"Reading {path.name}"
    sheet = next(read_sheets(path, text), None)
    if sheet is None:
        raise FormatError(f"expected a table in {path}, but it has no sheet: choose another file")
    if sheet.note:
        raise FormatError(
            f"expected a table in UTF-8 at {path}, but {sheet.note}: save it again as CSV UTF-8 or "
            "as .xlsx"
        )
    header = sheet.rows[0] if sheet.rows else ()
    places = _find_columns(header, (*required, *optional), path)
    missing = [name for name in required if name not in places]
    if missing:
        names = ", ".join(str(name) for name in header if name) or "no header"
        raise FormatError(
            f"expected the columns {', '.join(required)} in {path}, found {names}: "
            f"{', '.join(missing)} is missing; name the columns so"
        )
    numbers = [at for name, at in places.items() if name not in ("case_id", "centre")]
    cells = [
        str(line[at])
        for line in paced(sheet.rows[1:], text, len(sheet.rows))
        for at in numbers
        if at < len(line) and isinstance(line[at], str)
    ]
    has_commas = any("," in cell for cell in cells)
    return _Table(path, sheet, places, has_commas and not any("." in cell for cell in cells))


def _find_columns(header: Sequence[object], wanted: Sequence[str], path: Path) -> Mapping[str, int]:
    """Return where the columns are; two of one name that is read are refused."""
    ats: dict[str, list[int]] = {}
    for at, name in enumerate(header):
        plain = "_".join(str(name or "").casefold().replace("_", " ").split())
        ats.setdefault(plain, []).append(at)
    places = {}
    for column in wanted:
        spelling = next((name for name in _SPELLINGS[column] if name in ats), None)
        if spelling is None:
            continue
        if len(ats[spelling]) > 1:
            raise FormatError(
                f"expected one column {spelling} in {path}, found {len(ats[spelling])} (columns "
                f"{', '.join(str(at + 1) for at in ats[spelling])}): keep the one that counts"
            )
        places[column] = ats[spelling][0]
    return places


def _list_rows(table: _Table) -> Sequence[tuple[int, Sequence[object]]]:
    """Return the rows below the header with their numbers, those without a cell left out."""
    lines = enumerate(table.sheet.rows[1:], start=2)
    return [
        (number, line)
        for number, line in paced(list(lines), f"Reading {table.path.name}", len(table.sheet.rows))
        if any(cell is not None and cell != "" for cell in line) or number - 1 in table.sheet.gaps
    ]


def _require_whole(table: _Table, number: int, line: Sequence[object]) -> None:
    """Raise ValueError where a cell only looks empty, or cells of a text row moved or are lost."""
    gaps = table.sheet.gaps.get(number - 1, {})
    for at in sorted(table.places.values()):
        if at in gaps:
            raise ValueError(f"{cell_name(number - 1, at)} is {gaps[at]}")
    wrong = wrong_length(table.sheet, line, len(table.sheet.rows[0]))
    if wrong:
        raise ValueError(wrong)


def _bad_rows(path: Path, reasons: Sequence[str]) -> FormatError:
    more = f", and {len(reasons) - _ROWS_NAMED} more" if len(reasons) > _ROWS_NAMED else ""
    return FormatError(
        f"expected whole rows in {path}, but {'; '.join(reasons[:_ROWS_NAMED])}{more}: correct them"
    )
