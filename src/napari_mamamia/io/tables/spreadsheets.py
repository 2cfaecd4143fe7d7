"""Sheets of .xlsx, .ods and .csv files as rows of cells, and the first and last back."""

import csv
import io
import math
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import listening, paced, report_progress
from napari_mamamia.io.files.csv_text import from_csv_text, write_csv
from napari_mamamia.io.files.foreign import open_plain, reads
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.io.files.table_text import decoded
from napari_mamamia.io.tables.ods_sheets import ods_sheets
from napari_mamamia.io.tables.sheet_gaps import Gaps, gaps_of_sheet, n_hidden_rows
from napari_mamamia.io.tables.workbook_limits import Room, most_cells
from napari_mamamia.io.tables.workbook_writer import NOT_IN_XML, Cell, write_workbook

_SHOWN_AS: Final = re.compile(r'(?P<before>("[^"0#]*"|\\[A-Za-z_-])*)(?P<zeros>0+)')
"""Number formats that put zeros or fixed letters before a whole number: 0000, "DUKE_"000."""
_SEPARATORS: Final = ",;\t"
_DAMAGED: Final = (zipfile.BadZipFile, OSError, EOFError, KeyError, ValueError, TypeError,
                   AttributeError, IndexError, SyntaxError, RuntimeError)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sheet:
    """The rows of one sheet; all cells are text where `all_text`.

    Rows may have unequal lengths; an empty cell is None, in a text sheet "". `gaps` are the cells
    that only look empty. `note` says what was taken for granted, as an encoding; "" for nothing.
    `is_hidden` and `n_hidden_rows` tell what a spreadsheet program does not show of a workbook.
    """

    name: str
    rows: Sequence[Sequence[object]]
    all_text: bool
    gaps: Gaps = field(default_factory=dict)
    note: str = ""
    is_hidden: bool = False
    n_hidden_rows: int = 0


@reads("a readable table", "save it again as .xlsx or CSV UTF-8")
def read_sheets(path: Path, text: str) -> Iterator[Sheet]:
    """Give the sheets of a table one after the other; `text` is told meanwhile.

    An .xlsx or .ods file has its sheets, hidden ones last. A .csv file has one, separated by
    whichever of comma, semicolon and tab its first line has most of; where a title stands above its
    table that may be the wrong one, so the same rows follow as the other separators part them.

    Raises
    ------
    FormatError
        If the file cannot be read or has another suffix.
    """
    if not path.exists():
        raise FormatError(f"expected a table at {path}, but nothing is there: correct its name")
    suffix = path.suffix.lower()
    if suffix == ".csv":
        yield from _read_csv(path, text)
    elif suffix == ".xlsx":
        yield from _read_xlsx(path, text)
    elif suffix == ".ods":
        yield from _read_ods(path, text)
    else:
        raise _other_kind(path, ".xlsx, .ods or .csv")


def write_sheet(
    rows: Sequence[Sequence[Cell]], path: Path, *, name: str, overwrite: bool = False
) -> None:
    """Write rows as the only sheet of an .xlsx file, or as a .csv file; nan is an empty cell.

    Raises
    ------
    FormatError
        If `path` has another suffix, or a text holds a control character, which .xlsx refuses.
    SaveConflictError
        If `path` exists and `overwrite` is off.
    SaveError
        If the system refuses to write.
    """
    suffix = path.suffix.lower()
    if suffix not in {".csv", ".xlsx"}:
        raise _other_kind(path, ".xlsx or .csv")
    finite_rows = [[_keep_finite(cell) for cell in row] for row in rows]
    if suffix == ".xlsx":
        _require_xml(finite_rows, path)
        with listening(None):
            write_workbook(finite_rows, len(finite_rows), path, name=name, overwrite=overwrite)
    else:
        text = io.StringIO(newline="")
        write_csv(finite_rows, text, "\r\n")
        write_text_atomically(path, text.getvalue(), overwrite=overwrite)


def as_written(text: str) -> Cell:
    """Return the number or yes/no that is written exactly as `text`, else the text.

    Examples
    --------
    >>> as_written("7"), as_written("007"), as_written("0.50"), as_written("True")
    (7, '007', '0.50', True)
    """
    if text in {"True", "False"}:
        return text == "True"
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if abs(number) < math.inf and str(number) == text:
            return number
    return text


def wrong_length(sheet: Sheet, cells: Sequence[object], width: int) -> str:
    """Return why the cells of a text row cannot be told apart, "" where they can.

    A separator that was lost, or one within a value, moves all values after it by a column. Rows of
    a workbook know their columns.
    """
    if not sheet.all_text or len(cells) == width or (len(cells) > width and not any(cells[width:])):
        return ""
    return f"it has {len(cells)} cells where the header has {width}"


def _keep_finite(cell: Cell) -> Cell:
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


def _read_xlsx(path: Path, text: str) -> Iterator[Sheet]:
    openpyxl: Any = import_module("openpyxl")  # 0.2 s, which only reading a table should cost
    try:
        with open_plain(path) as stream:
            room = Room(most_cells(stream))
            book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
            # Cells with their formats take longer to read than bare values, so only where one
            # matters.
            shown_as = any(map(_SHOWN_AS.fullmatch, book._number_formats))
            for sheet in sorted(book.worksheets, key=_is_hidden):
                sheet.reset_dimensions()  # some programs write them wrong
                cells = room.taken(sheet.iter_rows(values_only=not shown_as))
                rows: list[Sequence[object]] = [
                    [_read_shown(cell) for cell in row] if shown_as else row
                    for row in paced(cells, text)
                ]
                gaps = gaps_of_sheet(sheet._get_source, rows)
                hidden = n_hidden_rows(sheet._get_source)
                yield Sheet(sheet.title, rows, False, gaps, "", _is_hidden(sheet), hidden)
    except _DAMAGED as error:
        raise FormatError(
            f"expected a readable .xlsx table at {path}, but {error}: "
            "open it in a spreadsheet program and save it again as .xlsx"
        ) from error


def _is_hidden(sheet: Any) -> bool:
    return bool(sheet.sheet_state != "visible")


def _read_shown(cell: Any) -> object:
    """Return a cell's value; a whole number whose format puts zeros or letters before it, as shown.

    ``0001`` typed into a spreadsheet program is the number 1 with such a format: as an id it must
    stay what the user sees.
    """
    value = cell.value
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        return value
    form = _SHOWN_AS.fullmatch(cell.number_format)
    if form is None:
        return value
    text = form["before"].replace('"', "").replace("\\", "") + str(value).zfill(len(form["zeros"]))
    return value if text == str(value) else text


def _read_ods(path: Path, text: str) -> Iterator[Sheet]:
    hidden: list[Sheet] = []
    try:
        with open_plain(path) as stream:
            for ods in ods_sheets(stream, text):
                sheet = Sheet(ods.name, ods.rows, False, ods.gaps, "", ods.is_hidden,
                              ods.n_hidden_rows)  # fmt: skip
                if sheet.is_hidden:
                    hidden.append(sheet)
                else:
                    yield sheet
        yield from hidden
    except (*_DAMAGED, OverflowError) as error:
        raise FormatError(
            f"expected a readable .ods table at {path}, but {error}: "
            "open it in a spreadsheet program and save it again as .ods or .xlsx"
        ) from error


def _read_csv(path: Path, text: str) -> Iterator[Sheet]:
    try:
        with open_plain(path) as stream:
            content, note = decoded(stream.read())
        report_progress(0, 1, text)
        first_line = content.split("\n", 1)[0]
        first, *others = sorted(_SEPARATORS, key=first_line.count, reverse=True)
        empty = Sheet(path.name, (), all_text=True, note=note)
        yield replace(empty, rows=_part_rows(content, first, text))
        for separator in others:
            if separator in content:
                with suppress(csv.Error):
                    yield replace(empty, rows=_part_rows(content, separator, text))
    except (OSError, ValueError, csv.Error) as error:
        raise FormatError(
            f"expected a readable .csv table in UTF-8 at {path}, but {error}: "
            "save it again as CSV UTF-8 or as .xlsx"
        ) from error


def _part_rows(content: str, separator: str, text: str) -> list[Sequence[object]]:
    lines = csv.reader(io.StringIO(content, newline=""), delimiter=separator, strict=True)
    return [[from_csv_text(cell) for cell in row] for row in paced(lines, text)]


def _require_xml(rows: Sequence[Sequence[Cell]], path: Path) -> None:
    for row in rows:
        for cell in row:
            if isinstance(cell, str) and NOT_IN_XML.search(cell):
                raise FormatError(
                    f"expected texts without control characters for {path}, but {cell!r} has one: "
                    "remove it"
                )


def _other_kind(path: Path, kinds: str) -> FormatError:
    return FormatError(f"expected a table as {kinds}, got {path}: save it as one of these")
