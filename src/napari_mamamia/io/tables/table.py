"""Read a table of other software: find its header and columns, and return the rows of cases.

Bytes become text and rows (`text_rows`, `spreadsheets`), within the budget; this module finds the
header below titles and comments, columns by their names, and leaves out rows that are not cases,
with a note: comments, a repeated header, units, summaries. `cells` interprets cells; the meaning of
a column is the caller's.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import FormatError, MissingColumnsError
from napari_mamamia.core.progress import paced
from napari_mamamia.io.tables.cells import (
    FORMULA_ERROR,
    PLAIN_NUMBER,
    UNSEEN,
    AmbiguousNumberError,
    NumberStyle,
    is_blank,
    is_missing,
    is_percent,
    is_plain_column,
    mixed_percent,
    parse_number,
    style_of,
)
from napari_mamamia.io.tables.sheet_gaps import cell_name
from napari_mamamia.io.tables.spreadsheets import Sheet, read_sheets, wrong_length
from napari_mamamia.io.tables.summary_rows import (
    find_odd_ids,
    find_statistic,
    is_summary,
    is_unit_row,
    split_unit,
    unit_of,
)
from napari_mamamia.io.tables.text_rows import BLANKS_BETWEEN, has_blanks_between

MOST_TITLES: Final = 30
"""Most rows above the header, our choice: a sheet that starts lower is no table."""
METRIC_DEFINITION: Final = "metric_definition"
"""First cell of a comment row that states how a table's numbers were made."""
_INDEX_NAMES: Final = frozenset({"", "unnamed:_0", "index"})
_NO_UNIT: Final = frozenset({"", "-", "1", "0-1", "0..1", "au", "a.u."})
_NAMED: Final = 5

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Column:
    """A wanted column; the first of its `spellings` that occurs is used.

    If no spelling occurs, exactly one of `synonyms` may replace it. A column with `is_id` may be
    the first column without a name, as pandas writes an index. With `is_exact`, an exact spelling
    wins over others.
    """

    name: str
    spellings: tuple[str, ...]
    synonyms: tuple[str, ...] = ()
    is_needed: bool = False
    is_id: bool = False
    is_exact: bool = False


IDS: Final = Column(
    "case_id",
    ("case_id", "patient_id", "case", "patient", "subject_id", "id"),
    is_needed=True,
    is_id=True,
)
"""The column of cases. In a table with case_id and patient_id, case_id is used: a patient may have
several cases.
"""


def is_id_name(name: str) -> bool:
    """Return whether a column's name is one that tables use for ids."""
    return spelled(name) in IDS.spellings


def needed(name: str, *synonyms: str) -> Column:
    """Return a column that a table must have."""
    return Column(name, (name,), synonyms, is_needed=True)


def optional(name: str, *synonyms: str) -> Column:
    """Return a column that a table may have."""
    return Column(name, (name,), synonyms)


@dataclass(frozen=True, slots=True)
class Header:
    """Position of a header: its first and last row from 0, and its names, one for each column."""

    first: int
    last: int
    names: tuple[str, ...]
    places: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a case: its number in the file from 1, its cells, and the problem with it."""

    number: int
    cells: Sequence[object]
    problem: str = ""


@dataclass(slots=True)
class DataRows:
    """The rows below a header, in order; comments, units of columns, and the rows left out."""

    rows: list[Row] = field(default_factory=list)
    comments: list[tuple[str, ...]] = field(default_factory=list)
    units: dict[int, str] = field(default_factory=dict)
    summaries: list[tuple[int, str]] = field(default_factory=list)
    headers: list[int] = field(default_factory=list)
    marked: list[str] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)

    @property
    def marked_note(self) -> str:
        """Return a note about cases that begin with #, "" if there are none."""
        if not self.marked:
            return ""
        return (
            f"{_list_few(self.marked)} read as cases although they begin with #: remove the #, or "
            "the rows if they are comments"
        )

    @property
    def odd_note(self) -> str:
        """Return a note about cases whose ids differ in form from the others, "" if none."""
        if not self.odd:
            return ""
        return (
            f"{_list_few(self.odd)} counted, although the form of the id differs from all others: "
            "delete summaries"
        )

    @property
    def doubtful(self) -> tuple[str, ...]:
        """Sentences about rows that may or may not be cases."""
        named = _list_few([f"{row} ({word})" for row, word in self.summaries])
        summaries = f"{named} left out as a summary: if it is a case, give it another id"
        return tuple(filter(None, (summaries if self.summaries else "", self.marked_note)))

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about rows that were left out or may not be cases."""
        headers = f"{_list_few([str(row) for row in self.headers])} left out as repeated header"
        notes = (*self.doubtful, self.odd_note, headers if self.headers else "")
        return tuple(filter(None, notes))


@dataclass(frozen=True, slots=True)
class BadCell:
    """A cell with an unexpected value: the row from 0, and the reason."""

    row: int
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table's rows of cases and the positions of its wanted columns; `notes` are for the user.

    `doubtful` are the notes about rows that may or may not be cases.
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
        """Return whether the table has a wanted column."""
        return name in self.header.places

    def column(self, name: str) -> list[object]:
        """Return a column's cells, None if a row is too short."""
        place = self.header.places[name]
        return [row.cells[place] if place < len(row.cells) else None for row in self.rows]

    def numbers(
        self, name: str, *, low: float = -math.inf, high: float = math.inf, unit: str = ""
    ) -> tuple[list[float], list[BadCell]]:
        """Return a column as numbers, nan for a missing or bad cell, and the bad cells.

        Parameters
        ----------
        name
            A wanted column.
        low, high
            The bounds of a value.
        unit
            The unit of the numbers; a table that names another unit is refused, except percent.

        Raises
        ------
        FormatError
            If the whole column is ambiguous: a comma of thousands or of decimals, percent
            signs in some cells only, percent without a sign, or another unit.
        """
        cells = self.column(name)
        style, scale = self._style(cells), self._scale(name, unit)
        if pair := mixed_percent(cells):
            signed, bare = (self.rows[place].number for place in pair)
            raise self._refuse(
                name,
                f"row {signed} has {cells[pair[0]]!r} and row {bare} {cells[pair[1]]!r}",
                "write all cells with a percent sign or none",
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
                        "write decimals with a point and no separator of thousands",
                    ) from None
                except ValueError as error:
                    reason = f"{name} {error}"
            if not reason and not math.isnan(value) and not low <= value <= high:
                reason = f"{name} must be {_bounds_text(low, high)}, got {_shown(cell)}"
            values.append(math.nan if reason else value)
            bad += [BadCell(index, reason)] if reason else []
        if high == 1 and len(bad) > sum(not math.isnan(value) for value in values):
            self._require_share(name, cells, style)
        return values, bad

    def cells(
        self, name: str, parse: Callable[[object], T | None]
    ) -> tuple[list[T | None], list[BadCell]]:
        """Return each cell of a column as `parse` reads it, None for a cell that it refuses."""
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
        """Raise FormatError if a row may not be a case, for callers that cannot show notes."""
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
        raise self._refuse(name, f"its unit is {said}", f"give it in {unit or 'plain numbers'}")

    def _require_share(self, name: str, cells: Sequence[object], style: NumberStyle) -> None:
        """Raise FormatError if most values of a share look like percent without a sign."""
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
                "if they are percent, divide them by 100 or write them as 46.1%",
            )

    def _refuse(self, name: str, reason: str, remedy: str) -> FormatError:
        column = self.header.names[self.header.places[name]] or name
        return FormatError(
            f"expected numbers of one kind in column {column} of {self.path}, but {reason}: "
            f"{remedy}"
        )


def read_table(
    path: Path,
    *alternatives: Sequence[Column],
    any_of: bool = False,
    takes_others: bool = False,
) -> Table:
    """Return the first table of a file that has the wanted columns.

    In an .xlsx or .ods file the first sheet that has them is read. The header may follow up to 30
    title rows or comments, and take two rows.

    Parameters
    ----------
    path
        The file.
    alternatives
        Sets of columns, of which the first that matches is used; an empty one takes every column.
        The
        first column of a set holds the ids unless another one is marked.
    any_of
        Whether at least one of the optional columns must exist.
    takes_others
        Whether every further column is read too, by its own name.

    Raises
    ------
    FormatError
        If the file cannot be read, no table in it has the columns, or one occurs twice.
    """
    text = f"Reading {path.name}"
    sheets: list[Sheet] = []
    for sheet in read_sheets(path, text):
        sheets.append(sheet)
        if sheet.all_text and any(
            _find_header(sheet, columns, any_of) if columns else len(alternatives) == 1
            for columns in alternatives
        ):
            break
    for columns in alternatives:
        for number, sheet in enumerate(sheets):
            header = _find_header(sheet, columns, any_of)
            if header is not None:
                _require_once(path, header.names, columns)
                if takes_others:
                    header = _with_others(header)
                others = [
                    other.name
                    for other in sheets[number + 1 :]
                    if columns and not sheet.all_text and _find_header(other, columns, any_of)
                ]
                return _build_table(path, sheet, header, columns, others, text)
    raise _lacking(path, sheets, next(filter(None, reversed(alternatives)), ()), any_of)


def data_rows(sheet: Sheet, header: Header, id_place: int | None, text: str) -> DataRows:
    """Return the rows of cases below a header; the result names the rows left out.

    Parameters
    ----------
    sheet, header
        The sheet, and the position of its header; a cell in one of its `places` that only looks
        empty
        is a problem of the row.
    id_place
        The column of ids, None for a table without one: then the first column reveals summaries.
    text
        The progress text.
    """
    data = DataRows()
    data.comments += [_texts(row) for row in sheet.rows[: header.first]]
    width = max((index + 1 for index, name in enumerate(header.names) if name), default=0)
    read = sorted(header.places.values())
    named = [index for index in read or range(len(header.names)) if header.names[index]]
    names = [spelled(name) for name in header.names]
    start = header.last + 1
    for place, cells in enumerate(paced(sheet.rows[start:], text, len(sheet.rows)), start):
        gaps = sheet.gaps.get(place, {})
        if all(is_blank(cell) for cell in cells) and not gaps:
            continue
        wrong = _wrong_length(sheet, cells, width, len(header.names))
        if (comment := _read_comment(cells, wrong)) is not None:
            if comment:
                data.comments.append(comment)
                continue
            data.marked.append(f"{place + 1} ({_texts(cells)[0][:40]})")
        at = 0 if id_place is None else id_place
        id_cell = cells[at] if at < len(cells) else None
        if (
            place == start
            and not gaps
            and is_unit_row(id_cell, [c for k, c in enumerate(cells) if k != at])
        ):
            data.units |= {k: unit for k, cell in enumerate(cells) if (unit := unit_of(cell))}
            continue
        if named and all(
            k < len(cells) and spelled(strip_name(cells[k])) == names[k] for k in named
        ):
            data.headers.append(place + 1)
            continue
        if (word := _find_summary(cells, id_cell, id_place)) is not None:
            data.summaries.append((place + 1, word))
            continue
        gap = next((k for k in read if k in gaps), None)
        problem = f"{cell_name(place, gap)} is {gaps[gap]}" if gap is not None else wrong
        data.rows.append(Row(place + 1, cells, problem))
    _part_odd_rows(data, id_place)
    return data


def _part_odd_rows(data: DataRows, id_place: int | None) -> None:
    """Leave out rows whose id has another form and whose numbers are a statistic of the others.

    Other rows with such an id stay, and are named in the notes.
    """
    if id_place is None:
        return
    ids = [_texts(row.cells[id_place : id_place + 1]) for row in data.rows]
    odd = find_odd_ids([text for texts in ids for text in texts])
    if not odd:
        return
    names = [texts[0] if texts and texts[0] in odd else "" for texts in ids]
    others = [row for row, name in zip(data.rows, names, strict=True) if not name]
    columns = _columns_of_numbers(others, id_place)
    rows = []
    for row, name in zip(data.rows, names, strict=True):
        written = [
            (text, values)
            for index, (style, values) in columns.items()
            if index < len(row.cells) and (text := _written_number(row.cells[index], style))
        ]
        if name and find_statistic(written):
            data.summaries.append((row.number, name))
            continue
        rows.append(row)
        data.odd += [f"{row.number} ({name[:40]})"] if name else []
    data.rows = rows
    data.summaries.sort()


def _columns_of_numbers(
    rows: Sequence[Row], id_place: int
) -> dict[int, tuple[NumberStyle, NDArray[np.float64]]]:
    """Return style and numbers of the columns in which more than half of the rows have one."""
    columns = {}
    for index in range(max((len(row.cells) for row in rows), default=0)):
        cells = [row.cells[index] for row in rows if index < len(row.cells)]
        style = NumberStyle() if is_plain_column(cells) else style_of(cells)
        texts = [text for cell in cells if (text := _written_number(cell, style))]
        if index != id_place and 2 * len(texts) > len(rows):
            columns[index] = style, np.array(texts, dtype=np.float64)
    return columns


def _written_number(cell: object, style: NumberStyle) -> str:
    """Return a cell's number with its digits, "" if it holds none."""
    if is_missing(cell):
        return ""
    try:
        number = parse_number(cell, style)
    except ValueError:
        return ""
    text = str(cell).strip().replace(",", ".") if isinstance(cell, str) else ""
    return text if PLAIN_NUMBER.fullmatch(text) else repr(number)


def spelled(name: object) -> str:
    """Return a column's name for comparison: lower case, ``_`` for blanks and hyphens.

    Examples
    --------
    >>> spelled(" Menopausal-Status "), spelled("# case_id")
    ('menopausal_status', 'case_id')
    """
    text = UNSEEN.sub("", str(name)).strip().removeprefix("#")
    return "_".join(text.casefold().replace("-", " ").replace("_", " ").split())


def strip_name(cell: object) -> str:
    """Return the text of a header's cell, "" if it is empty."""
    return "" if is_blank(cell) else UNSEEN.sub("", str(cell)).strip()


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
        notes.append(f"rows hidden in the workbook, read too: {sheet.n_hidden_rows:,}")
    if others:
        listed = ", ".join(map(repr, others[:_NAMED]))
        notes.append(
            f"the sheet {sheet.name!r} is read, but not {listed}, which has such columns too"
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


def _find_header(sheet: Sheet, columns: Sequence[Column], any_of: bool) -> Header | None:
    """Return the first row, or two rows, that name the wanted columns."""
    rows = sheet.rows[: MOST_TITLES + 2]
    if not columns:
        return _find_full_header(rows)
    names = [[strip_name(cell) for cell in row] for row in rows]
    for place, row in enumerate(names[: MOST_TITLES + 1]):
        places = _match_columns(row, columns, any_of, sheet.rows[place + 1 :])
        if places is not None:
            return Header(place, place, tuple(row), places)
    for place, (above, below) in enumerate(pairwise(names)):
        n_columns = max(len(above), len(below))
        above, below = ([*row, *[""] * (n_columns - len(row))] for row in (above, below))
        joined = [lower or upper for upper, lower in zip(above, below, strict=True)]
        places = _match_columns(joined, columns, any_of, sheet.rows[place + 2 :])
        if places is not None and any(below[index] for index in places.values()):
            return Header(place, place + 1, tuple(joined), places)
    return None


def _with_others(header: Header) -> Header:
    """Return a header that also has the other columns, except an index."""
    places = dict(header.places)
    for index, name in enumerate(header.names):
        if name and index not in places.values() and not (index == 0 and is_index_name(name)):
            places.setdefault(name, index)
    return replace(header, places=places)


def _find_full_header(rows: Sequence[Sequence[object]]) -> Header | None:
    """Return the first row that names nearly as many columns as any: titles name fewer."""
    named = [sum(not is_blank(cell) for cell in row) for row in rows[: MOST_TITLES + 1]]
    most = max(named, default=0)
    if not most:
        return None
    least = most - 1 if most > 2 else most
    place = next(
        (
            k
            for k, n in enumerate(named)
            if n >= least and not (n < most and strip_name(rows[k][0]).startswith("# "))
        ),
        0,
    )
    names = [strip_name(cell) for cell in rows[place]]
    places: dict[str, int] = {}
    for index, name in enumerate(names):
        if name:
            places.setdefault(name, index)
    return Header(place, place, tuple(names), places)


def is_index_name(name: str) -> bool:
    """Return whether a column's name is that of a written index: none, or one of pandas."""
    return spelled(name) in _INDEX_NAMES


def _match_columns(
    names: Sequence[str],
    columns: Sequence[Column],
    any_of: bool,
    below: Sequence[Sequence[object]],
) -> dict[str, int] | None:
    """Return the position of each column, None if a required one is missing."""
    places: dict[str, int] = {}
    for column in columns:
        found = find_columns(names, column)
        if found:
            places[column.name] = found[0]
    missing = [column for column in columns if column.is_needed and column.name not in places]
    is_index = bool(names) and is_index_name(names[0]) and 0 not in places.values()
    if len(missing) == 1 and missing[0].is_id and is_index and places and holds_ids(below):
        places[missing[0].name], missing = 0, []
    if any_of and not any(not column.is_needed and column.name in places for column in columns):
        return None
    return None if missing else places


def find_columns(names: Sequence[str], column: Column) -> list[int]:
    """Return all positions of a wanted column: by exact spelling, else as it is compared."""
    for spelling in column.spellings:
        exact = (str,) if column.is_exact else ()
        for plain in (*exact, spelled, lambda name: spelled(split_unit(name)[0])):
            wanted = plain(spelling)
            columns = [index for index, name in enumerate(names) if name and plain(name) == wanted]
            if columns:
                return columns
    plain_names = [spelled(split_unit(name)[0]) for name in names]
    return [index for index, name in enumerate(plain_names) if name and name in column.synonyms]


def holds_ids(rows: Sequence[Sequence[object]]) -> bool:
    """Return whether a first column without a name holds ids, and is not a mere row count."""
    return any(not str(row[0]).strip().isdecimal() for row in rows if row and not is_blank(row[0]))


def _require_once(path: Path, names: Sequence[str], columns: Sequence[Column]) -> None:
    """Raise FormatError if two columns of a header match a wanted one."""
    for column in columns:
        found = find_columns(names, column)
        if len(found) > 1:
            listed = ", ".join(str(index + 1) for index in found)
            raise FormatError(
                f"expected one column {column.name} in {path}, found {len(found)} (columns "
                f"{listed}): keep the right one"
            )


def _lacking(
    path: Path, sheets: Sequence[Sheet], columns: Sequence[Column], any_of: bool
) -> FormatError:
    if not sheets or not any(sheet.rows for sheet in sheets):
        return FormatError(
            f"expected a table with a header in {path}, but it is empty: choose another file"
        )
    best: list[str] = []
    score = (-1, -1)
    for sheet in sheets:
        for row in sheet.rows[: MOST_TITLES + 1]:
            names = [strip_name(cell) for cell in row]
            matched = sum(bool(find_columns(names, column)) for column in columns)
            if any(names) and (matched, not best) > score:
                best, score = names, (matched, 0)
    missing = [c.name for c in columns if c.is_needed and not find_columns(best, c)]
    if any_of and not missing:
        missing = ["each of the others"]
    names = [_name_column(column) for column in columns if column.is_needed]
    wanted = f"the column{'s' * (len(names) > 1)} {', '.join(names)}"
    if any_of:
        wanted += f" and one of {', '.join(c.name for c in columns if not c.is_needed)}"
    if _is_parted_by_blanks(best, columns):
        return FormatError(f"expected a table in {path}, but {BLANKS_BETWEEN}")
    there = ", ".join(filter(None, best))
    shown = there if len(there) <= 300 else there[:297] + "..."
    return MissingColumnsError(
        f"expected {wanted} in {path}, found {shown or 'no header'}: "
        f"{', '.join(missing)} is missing; rename the columns",
        str(path),
        missing,
        list(filter(None, best)),
    )


def _is_parted_by_blanks(names: Sequence[str], columns: Sequence[Column]) -> bool:
    if len(names) != 1 or not has_blanks_between(names[0]):
        return False
    words = names[0].split()
    return all(find_columns(words, column) for column in columns if column.is_needed)


def _name_column(column: Column) -> str:
    others = column.spellings[1:3] if column.is_id else ()
    return f"{column.name} (or {', '.join(others)})" if others else column.name


def _wrong_length(sheet: Sheet, cells: Sequence[object], width: int, full: int) -> str:
    """Return why a text row's cells cannot be assigned; columns without name may be absent."""
    if width <= len(cells) <= full:
        return ""
    return wrong_length(sheet, cells, full)


def _read_comment(cells: Sequence[object], wrong: str) -> tuple[str, ...] | None:
    """Return the texts of a comment, () for a case that begins with #, None for any other row."""
    first = next((str(cell).strip() for cell in cells if not is_blank(cell)), "")
    if first[:1] not in ("#", "m", "M"):
        return None
    texts = _texts(cells)
    if first.lstrip("# ").rstrip(":").casefold() == METRIC_DEFINITION:
        return texts
    if not first.startswith("#") or first.startswith("#N/A") or FORMULA_ERROR.fullmatch(first):
        return None
    return texts if wrong or len(texts) == 1 else ()


def _find_summary(cells: Sequence[object], id_cell: object, id_place: int | None) -> str | None:
    """Return the word that marks a row as a summary, None if there is none."""
    if is_summary(id_cell):
        return str(id_cell).strip()
    if id_place is None or not is_missing(id_cell):
        return None
    return next((str(cell).strip() for cell in cells if is_summary(cell)), None)


def _texts(cells: Sequence[object]) -> tuple[str, ...]:
    return tuple(str(cell).strip() for cell in cells if not is_blank(cell))


def _list_few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    if len(names) == 1:
        return f"row {names[0]} is"
    return f"rows {', '.join(names[:_NAMED])}{more} are"


def _bounds_text(low: float, high: float) -> str:
    if math.isinf(high):
        return f"{low:g} or above and finite"
    return f"from {low:g} to {high:g}"


def _shown(cell: object) -> str:
    return repr(cell.strip()) if isinstance(cell, str) else repr(cell)
