"""Columns of a table by the names that a user gives: ids, numbers, yes and no, texts."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import paced
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.io.clinical.rules import UNSEEN, is_missing, parse_id
from napari_mamamia.io.files.foreign import open_plain, reads
from napari_mamamia.io.files.table_text import decoded
from napari_mamamia.io.tables.sheet_gaps import cell_name
from napari_mamamia.io.tables.spreadsheets import Sheet, read_sheets, wrong_length

_YES: Final = frozenset({"1", "1.0", "yes", "true", "positive", "pos", "y"})
_NO: Final = frozenset({"0", "0.0", "no", "false", "negative", "neg", "n"})
_COMMA: Final = re.compile(r"[+-]?\d+,\d+(e[+-]?\d+)?", re.IGNORECASE)
_THOUSANDS: Final = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")
_MOST_DRAWS: Final = 100_000


@dataclass(frozen=True, slots=True)
class BadCell:
    """A cell that is not what its column holds: the row from 0, and why."""

    row: int
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class NamedTable:
    """Rows of a table in its order, by columns.

    `row_numbers` are those of the file, of which the header is 1; `failures` are rows that could
    not be told apart into cells.
    """

    name: str
    columns: Mapping[str, tuple[object, ...]]
    row_numbers: tuple[int, ...]
    failures: tuple[CaseFailure, ...]
    note: str = ""

    @property
    def n(self) -> int:
        """How many rows there are."""
        return len(self.row_numbers)

    def texts(self, column: str) -> tuple[str, ...]:
        """Return a column as texts, "" where a cell is missing; 7.0 is "7"."""
        return tuple(map(_as_text, self.columns[column]))

    def ids(self, column: str) -> tuple[tuple[str, ...], tuple[BadCell, ...]]:
        """Return a column of ids, "" and a reason where there is none, or it was there before."""
        ids, bad, first = [], [], dict[str, int]()
        for row, cell in enumerate(self.columns[column]):
            try:
                name = parse_id(None if is_missing(cell) else cell)
            except ValueError as error:
                name, reason = "", str(error)
            else:
                reason = ""
                if name in first:
                    reason = f"{column} {name} is in row {self.row_numbers[first[name]]} already"
                first.setdefault(name, row)
            ids.append("" if reason else name)
            bad += [BadCell(row, reason)] if reason else []
        return tuple(ids), tuple(bad)

    def yes_no(self, column: str) -> tuple[NDArray[np.float64], tuple[BadCell, ...]]:
        """Return a column of 1 and 0, nan where missing; what is neither is bad and nan too."""
        return self._parse_cells(column, parse_yes_no)

    def numbers(self, column: str) -> tuple[NDArray[np.float64], tuple[BadCell, ...]]:
        """Return a column of finite numbers, nan where missing; what is none is bad and nan too.

        Decimal commas are read unless all of them could be separators of thousands.
        """
        commas = [text for text in self.texts(column) if _COMMA.fullmatch(text)]
        is_decimal = bool(commas) and not all(map(_THOUSANDS.fullmatch, commas))

        def parse(cell: object) -> float:
            return _parse_number(cell, is_decimal)

        return self._parse_cells(column, parse)

    def _parse_cells(
        self, column: str, parse: Callable[[object], float]
    ) -> tuple[NDArray[np.float64], tuple[BadCell, ...]]:
        values, bad = np.full(self.n, np.nan), []
        for row, cell in enumerate(self.columns[column]):
            if is_missing(cell):
                continue
            try:
                values[row] = parse(cell)
            except ValueError as error:
                bad.append(BadCell(row, f"{column} {error}"))
        return values, tuple(bad)


@reads("a readable table", "save it again as .xlsx or CSV UTF-8")
def read_named_columns(path: Path, columns: Sequence[str] | None = None) -> NamedTable:
    """Return columns of the first sheet of a table (.csv, .xlsx, .ods), all where None.

    The first row is the header. Names are compared as they are written, else without regard of
    letter case, blanks and ``_``. Empty rows are passed over.

    Raises
    ------
    FormatError
        If the file cannot be read, has no row, or has a column not or twice.
    """
    text = f"Reading {path.name}"
    sheet = next(read_sheets(path, text), None)
    if sheet is None or not sheet.rows:
        raise FormatError(
            f"expected a table with a header in {path}, but it is empty: choose another file"
        )
    header = [
        UNSEEN.sub("", str(name)).strip() if name is not None else "" for name in sheet.rows[0]
    ]
    asked = [name for name in header if name] if columns is None else columns
    places = {name: _find_column(header, name, path) for name in asked}
    cells: dict[str, list[object]] = {name: [] for name in places}
    numbers, failures, place = [], [], 0
    for line in paced(sheet.rows[1:], text, len(sheet.rows)):
        place += 1
        if all(cell is None or cell == "" for cell in line) and place not in sheet.gaps:
            continue
        if why := _find_damage(sheet, place, line, places):
            failures.append(
                CaseFailure(f"row {place + 1}", f"row {place + 1} of {path.name}: {why}")
            )
            continue
        for name, at in places.items():
            cells[name].append(line[at] if at < len(line) else None)
        numbers.append(place + 1)
    if not numbers:
        raise FormatError(
            f"expected rows below the header of {path}, but none can be read: look whether the "
            "program that wrote it came to its end"
        )
    whole = {name: tuple(column) for name, column in cells.items()}
    return NamedTable(path.name, whole, tuple(numbers), tuple(failures), sheet.note)


@reads("a file of resamples", "write a line for each resample, its row numbers parted by commas")
def read_draws(path: Path) -> tuple[tuple[str, ...], ...]:
    """Return the resamples of a .csv file without a header: a line each, its cells as texts.

    Raises
    ------
    FormatError
        If the file cannot be read, is empty, or has more than 100,000 lines.
    """
    try:
        with open_plain(path) as stream:
            content, _ = decoded(stream.read())
    except (OSError, ValueError) as error:
        raise FormatError(
            f"expected a file of resamples at {path}, but {error}: write it again as text"
        ) from error
    lines = [line for line in content.splitlines() if line.strip(" ,;\t")]
    if not 1 <= len(lines) <= _MOST_DRAWS:
        raise FormatError(
            f"expected 1 to {_MOST_DRAWS:,} resamples in {path}, a line each, found "
            f"{len(lines):,}: "
            "choose another file"
        )
    return tuple(
        tuple(cell.strip().strip('"') for cell in re.split("[,;\t]", line) if cell.strip())
        for line in paced(lines, f"Reading {path.name}")
    )


def _find_column(header: Sequence[str], name: str, path: Path) -> int:
    places = [place for place, one in enumerate(header) if one == name.strip()]
    if not places:
        plain = _as_plain(name)
        places = [place for place, one in enumerate(header) if _as_plain(one) == plain]
    if len(places) == 1:
        return places[0]
    there = ", ".join(name for name in header if name) or "no name"
    if not places:
        raise FormatError(
            f"expected a column {name} in {path}, found {there}: name one of these, or mend the "
            "table"
        )
    raise FormatError(
        f"expected one column {name} in {path}, found {len(places)} (columns "
        f"{', '.join(str(place + 1) for place in places)}): keep the one that counts"
    )


def _as_plain(name: str) -> str:
    return "_".join(name.casefold().replace("_", " ").split())


def _find_damage(
    sheet: Sheet, place: int, line: Sequence[object], places: Mapping[str, int]
) -> str:
    """Return why the cells of a row cannot be used, "" where they can."""
    gaps = sheet.gaps.get(place, {})
    for at in sorted(places.values()):
        if at in gaps:
            return f"{cell_name(place, at)} is {gaps[at]}"
    return wrong_length(sheet, line, len(sheet.rows[0]))


def _as_text(cell: object) -> str:
    if is_missing(cell):
        return ""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return UNSEEN.sub("", str(cell)).strip()


def parse_yes_no(cell: object) -> float:
    """Return 1 or 0 of a cell such as ``1``, ``yes``, ``negative``; ValueError of any other."""
    text = _as_text(cell).casefold()
    if text in _YES:
        return 1.0
    if text in _NO:
        return 0.0
    raise ValueError(f"must be 0 or 1, got {_as_text(cell)!r}")


def _parse_number(cell: object, is_decimal: bool) -> float:
    text = _as_text(cell)
    if isinstance(cell, bool):
        raise ValueError(f"must be a number, got {text!r}")  # noqa: TRY004
    if is_decimal and _COMMA.fullmatch(text):
        text = text.replace(",", ".")
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"must be a number, got {text!r}") from None
    if not math.isfinite(number) or "_" in text:
        raise ValueError(f"must be a finite number, got {text!r}")
    return number
