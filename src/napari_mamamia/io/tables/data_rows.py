"""Rows of cases below a header, without comments, repeated headers, units and summaries."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.names import name_some
from napari_mamamia.core.progress import paced
from napari_mamamia.io.tables.cells import (
    FORMULA_ERROR,
    PLAIN_NUMBER,
    NumberStyle,
    is_blank,
    is_missing,
    is_plain_column,
    parse_number,
    style_of,
)
from napari_mamamia.io.tables.headers import METRIC_DEFINITION, Header, spelled, strip_name
from napari_mamamia.io.tables.sheet_gaps import cell_name
from napari_mamamia.io.tables.spreadsheets import Sheet, wrong_length
from napari_mamamia.io.tables.summary_rows import (
    find_odd_ids,
    find_statistic,
    is_summary,
    is_unit_row,
    unit_of,
)

_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a case: its number in the file from 1, its cells, and its problem."""

    number: int
    cells: Sequence[object]
    problem: str = ""


@dataclass(slots=True)
class DataRows:
    """The rows below a header in order, with comments, column units, and rows left out."""

    rows: list[Row] = field(default_factory=list)
    comments: list[tuple[str, ...]] = field(default_factory=list)
    units: dict[int, str] = field(default_factory=dict)
    summaries: list[tuple[int, str]] = field(default_factory=list)
    headers: list[int] = field(default_factory=list)
    marked: list[str] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)

    @property
    def marked_note(self) -> str:
        """Return a note about cases that begin with #, or ""."""
        if not self.marked:
            return ""
        return (
            f"{_name_rows(self.marked)} read as cases although they begin with #: remove the #, or "
            "the rows if they are comments"
        )

    @property
    def odd_note(self) -> str:
        """Return a note about cases whose ids differ in form from the others, or ""."""
        if not self.odd:
            return ""
        return (
            f"{_name_rows(self.odd)} counted, although the form of the id differs from all others: "
            "delete summaries"
        )

    @property
    def doubtful(self) -> tuple[str, ...]:
        """Sentences about rows that may or may not be cases."""
        named = _name_rows([f"{row} ({word})" for row, word in self.summaries])
        summaries = f"{named} left out as a summary: if it is a case, give it another id"
        return tuple(filter(None, (summaries if self.summaries else "", self.marked_note)))

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about rows that were left out or may not be cases."""
        headers = f"{_name_rows([str(row) for row in self.headers])} left out as repeated header"
        notes = (*self.doubtful, self.odd_note, headers if self.headers else "")
        return tuple(filter(None, notes))


def data_rows(sheet: Sheet, header: Header, id_place: int | None, text: str) -> DataRows:
    """Return the rows of cases below a header, and the rows left out.

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
    """Return style and numbers of the columns with numbers in more than half of the rows."""
    columns = {}
    for index in range(max((len(row.cells) for row in rows), default=0)):
        cells = [row.cells[index] for row in rows if index < len(row.cells)]
        style = NumberStyle() if is_plain_column(cells) else style_of(cells)
        texts = [text for cell in cells if (text := _written_number(cell, style))]
        if index != id_place and 2 * len(texts) > len(rows):
            columns[index] = style, np.array(texts, dtype=np.float64)
    return columns


def _written_number(cell: object, style: NumberStyle) -> str:
    """Return the digits of a cell's number, or "" if it has no number."""
    if is_missing(cell):
        return ""
    try:
        number = parse_number(cell, style)
    except ValueError:
        return ""
    text = str(cell).strip().replace(",", ".") if isinstance(cell, str) else ""
    return text if PLAIN_NUMBER.fullmatch(text) else repr(number)


def _wrong_length(sheet: Sheet, cells: Sequence[object], width: int, full: int) -> str:
    """Return why the cells of a text row cannot be assigned to columns, or ""."""
    if width <= len(cells) <= full:
        return ""
    return wrong_length(sheet, cells, full)


def _read_comment(cells: Sequence[object], wrong: str) -> tuple[str, ...] | None:
    """Return the texts of a comment, () for a case that begins with #, or None."""
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
    """Return the word that marks a row as a summary, or None."""
    if is_summary(id_cell):
        return str(id_cell).strip()
    if id_place is None or not is_missing(id_cell):
        return None
    return next((str(cell).strip() for cell in cells if is_summary(cell)), None)


def _texts(cells: Sequence[object]) -> tuple[str, ...]:
    return tuple(str(cell).strip() for cell in cells if not is_blank(cell))


def _name_rows(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"row {names[0]} is"
    return f"rows {name_some(names, _NAMED)} are"
