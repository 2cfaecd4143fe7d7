"""Read a table of other software: its header, requested columns, and rows of cases.

`text_rows` and `spreadsheets` convert bytes to rows within the budget. `headers` finds the header
below titles and comments, and the columns by their names, and leaves out rows that are not cases,
with a note. `cells` interprets cells. The caller defines the meaning of a column.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.names import name_some
from napari_mamamia.io.tables.cells import (
    AmbiguousNumberError,
    NumberStyle,
    is_missing,
    is_percent,
    is_plain_column,
    mixed_percent,
    parse_number,
    style_of,
)
from napari_mamamia.io.tables.headers import (
    Column,
    Header,
    Row,
    data_rows,
    explain_missing,
    find_header,
    require_once,
    split_unit,
    with_other_columns,
)
from napari_mamamia.io.tables.spreadsheets import Sheet, read_sheets

_NO_UNIT: Final = frozenset({"", "-", "1", "0-1", "0..1", "au", "a.u."})

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BadCell:
    """A cell with an unexpected value: its row, counted from 0, and the reason."""

    row: int
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The rows of cases in a table, and the positions of the requested columns.

    `notes` are for the user. `doubtful` are the notes about rows that may or may not be cases.
    """

    path: Path
    header: Header
    rows: tuple[Row, ...]
    all_text: bool
    comments: tuple[tuple[str, ...], ...]
    units: Mapping[int, str]
    notes: tuple[str, ...]
    doubtful: tuple[str, ...] = ()

    def has(self, name: str) -> bool:
        """Return whether the table contains a requested column."""
        return name in self.header.places

    def column(self, name: str) -> list[object]:
        """Return the cells of a column, with None for rows that are too short."""
        place = self.header.places[name]
        return [row.cells[place] if place < len(row.cells) else None for row in self.rows]

    def numbers(
        self, name: str, *, low: float = -math.inf, high: float = math.inf, unit: str = ""
    ) -> tuple[list[float], list[BadCell]]:
        """Return a column as numbers (NaN for missing and invalid cells), and the invalid cells.

        Parameters
        ----------
        name
            A requested column.
        low, high
            The bounds of a value.
        unit
            The unit of the numbers. A table that names another unit raises an error, except for
            percent.

        Raises
        ------
        FormatError
            If the whole column is ambiguous, because a comma may separate thousands or decimals,
            only some cells have percent signs, or percentages lack the sign, or if the unit
            differs.
        """
        cells = self.column(name)
        style, scale = self._style(cells), self._scale(name, unit)
        if pair := mixed_percent(cells):
            signed, bare = (self.rows[place].number for place in pair)
            raise self._refuse(
                name,
                f"row {signed} has {cells[pair[0]]!r} and row {bare} has {cells[pair[1]]!r}",
                "write a percent sign in all cells or in none",
            )
        values, bad = [], []
        for index, cell in enumerate(cells):
            value, reason = math.nan, ""
            if not is_missing(cell):
                try:
                    value = parse_number(cell, style) * scale
                except AmbiguousNumberError as error:
                    raise self._refuse(
                        name,
                        f"row {self.rows[index].number}: {error}",
                        "write decimals with a point and no thousands separator",
                    ) from None
                except ValueError as error:
                    reason = f"{name} {error}"
            if not reason and not math.isnan(value) and not low <= value <= high:
                reason = f"{name} must be {_bounds_text(low, high)}, but it is {_shown(cell)}"
            values.append(math.nan if reason else value)
            bad += [BadCell(index, reason)] if reason else []
        if high == 1 and len(bad) > sum(not math.isnan(value) for value in values):
            self._require_share(name, cells, style)
        return values, bad

    def cells(
        self, name: str, parse: Callable[[object], T | None]
    ) -> tuple[list[T | None], list[BadCell]]:
        """Return the parsed cells of a column (None if invalid), and the invalid cells."""
        values: list[T | None] = []
        bad = []
        for index, cell in enumerate(self.column(name)):
            try:
                values.append(parse(cell))
            except ValueError as error:
                values.append(None)
                bad.append(BadCell(index, f"{name} {error}"))
        return values, bad

    def require_cases(self) -> None:
        """Raise `FormatError` if a row may not be a case, for callers that cannot show notes."""
        if self.doubtful:
            raise FormatError(
                f"expected a row for each case and nothing else in {self.path}, but "
                f"{self.doubtful[0]}: correct the table"
            )

    def _style(self, cells: Sequence[object]) -> NumberStyle:
        if is_plain_column(cells):
            return NumberStyle()
        style = style_of(cells)
        if style.comma and style.point:
            return style
        every = (cell for row in self.rows for cell in row.cells)
        return style_of(cells, style_of(every))

    def _scale(self, name: str, unit: str) -> float:
        said = self.units.get(self.header.places[name], "")
        if said in {"%", "percent"}:
            return 1.0 if any(map(is_percent, self.column(name))) else 0.01
        if said == unit or said in _NO_UNIT:
            return 1.0
        raise self._refuse(
            name, f"its unit is {said}", f"convert the column to {unit or 'plain numbers'}"
        )

    def _require_share(self, name: str, cells: Sequence[object], style: NumberStyle) -> None:
        numbers = []
        for cell in cells:
            try:
                numbers.append(parse_number(cell, style))
            except ValueError:
                continue
        if numbers and min(numbers) >= 0 and 1 < max(numbers) <= 100:
            raise self._refuse(
                name,
                f"its values range from {min(numbers):g} to {max(numbers):g}",
                "if the values are percentages, divide them by 100, or write them like 46.1%",
            )

    def _refuse(self, name: str, reason: str, remedy: str) -> FormatError:
        column = self.header.names[self.header.places[name]] or name
        return FormatError(
            f"expected all numbers in column {column} of {self.path} to have the same unit and "
            f"format, but {reason}: {remedy}"
        )


def read_table(
    path: Path,
    *alternatives: Sequence[Column],
    any_of: bool = False,
    takes_others: bool = False,
) -> Table:
    """Return the first table in a file that contains the requested columns.

    In an .xlsx or .ods file, the first sheet with these columns is read. The header may follow up
    to 30 title rows or comments, and may span two rows.

    Parameters
    ----------
    path
        The file to read.
    alternatives
        Sets of columns, of which the first matching set is used; an empty set takes every column.
        The first column of a set contains the ids, unless another column is marked.
    any_of
        Whether at least one of the optional columns must exist.
    takes_others
        Whether every further column is also read, by its name.

    Raises
    ------
    FormatError
        If the file cannot be read, no table in it has the columns, or a column occurs twice.
    """
    text = f"Reading {path.name}"
    sheets: list[Sheet] = []
    for sheet in read_sheets(path, text):
        sheets.append(sheet)
        if sheet.all_text and any(
            find_header(sheet, columns, any_of) if columns else len(alternatives) == 1
            for columns in alternatives
        ):
            break
    for columns in alternatives:
        for number, sheet in enumerate(sheets):
            header = find_header(sheet, columns, any_of)
            if header is not None:
                require_once(path, header.names, columns)
                if takes_others:
                    header = with_other_columns(header)
                others = [
                    other.name
                    for other in sheets[number + 1 :]
                    if columns and not sheet.all_text and find_header(other, columns, any_of)
                ]
                return _build_table(path, sheet, header, columns, others, text)
    raise explain_missing(path, sheets, next(filter(None, reversed(alternatives)), ()), any_of)


def _build_table(
    path: Path,
    sheet: Sheet,
    header: Header,
    columns: Sequence[Column],
    others: Sequence[str],
    text: str,
) -> Table:
    places = header.places
    ids = next((column for column in columns if column.is_id), next(iter(columns), None))
    id_place = None if ids is None else places.get(ids.name)
    data = data_rows(sheet, header, id_place, text)
    units = {
        index: unit for index, name in enumerate(header.names) if (unit := split_unit(name)[1])
    }
    notes = [sheet.note] if sheet.note else []
    if sheet.is_hidden:
        notes.append(f"the sheet {sheet.name!r} is hidden in the workbook")
    if sheet.n_hidden_rows:
        notes.append(f"hidden rows in the workbook that were also read: {sheet.n_hidden_rows:,}")
    if others:
        listed = name_some([repr(name) for name in others], 5)
        notes.append(
            f"the sheet {sheet.name!r} is read, but {listed} also has such columns and is not read"
        )
    return Table(
        path,
        header,
        tuple(data.rows),
        sheet.all_text,
        tuple(data.comments),
        {**units, **data.units},
        (*notes, *data.notes),
        data.doubtful,
    )


def _bounds_text(low: float, high: float) -> str:
    if math.isinf(high):
        return f"{low:g} or above and finite"
    return f"from {low:g} to {high:g}"


def _shown(cell: object) -> str:
    return repr(cell.strip()) if isinstance(cell, str) else repr(cell)
