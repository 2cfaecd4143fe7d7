"""Sheets of .xlsx and .csv files as rows of cells, and back."""

import csv
import io
import math
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeAlias

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import paced
from napari_mamamia.io.csv_text import from_csv_text, write_csv
from napari_mamamia.io.foreign import open_plain, reads
from napari_mamamia.io.save import saving, write_text_atomically
from napari_mamamia.io.workbook_limits import Room, most_cells

__all__ = ["Cell", "Sheet", "as_written", "paced_sheets", "read_sheets", "write_sheet"]

Cell: TypeAlias = str | float | bool | None

_SEPARATORS: Final = ",;\t"
_DAMAGED: Final = (zipfile.BadZipFile, OSError, EOFError, KeyError, ValueError, TypeError,
                   AttributeError, IndexError, SyntaxError, RuntimeError)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sheet:
    """The rows of one sheet, the header first; all cells are text where `all_text`.

    Rows may have unequal lengths; an empty cell is None, in a text sheet "".
    """

    name: str
    rows: Sequence[Sequence[object]]
    all_text: bool


def read_sheets(path: Path) -> Iterator[Sheet]:
    """Give the sheets of an .xlsx file, or the one of a .csv file, one after the other.

    A .csv file is UTF-8, separated by whichever of comma, semicolon and tab its first line has
    most of.

    Raises
    ------
    FormatError
        If the file cannot be read or has another suffix.
    """
    return (sheet for sheet in paced_sheets(path) if sheet is not None)


@reads("a readable table", "save it again as .xlsx or CSV UTF-8")
def paced_sheets(path: Path) -> Iterator[Sheet | None]:
    """Do what `read_sheets` does, with a None whenever it is time for a sign of life."""
    suffix = path.suffix.lower()
    if suffix == ".csv":
        yield from _read_csv(path)
    elif suffix == ".xlsx":
        yield from _read_xlsx(path)
    else:
        raise _other_kind(path)


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
        raise _other_kind(path)
    known = [[_known(cell) for cell in row] for row in rows]
    if suffix == ".xlsx":
        _write_xlsx(known, path, name, overwrite)
    else:
        text = io.StringIO(newline="")
        write_csv(known, text, "\r\n")
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


def _known(cell: Cell) -> Cell:
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


def _read_xlsx(path: Path) -> Iterator[Sheet | None]:
    openpyxl: Any = import_module("openpyxl")  # 0.2 s, which only reading a table should cost
    try:
        with open_plain(path) as stream:
            room = Room(most_cells(stream))
            book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
            for sheet in book.worksheets:
                sheet.reset_dimensions()  # some programs write them wrong
                rows: list[Sequence[object]] = []
                for row in paced(room.taken(sheet.iter_rows(values_only=True))):
                    if row is None:
                        yield None
                    else:
                        rows.append(row)
                yield Sheet(sheet.title, rows, all_text=False)
    except _DAMAGED as error:
        raise FormatError(
            f"expected a readable .xlsx table at {path}, but {error}: "
            "open it in a spreadsheet program and save it again as .xlsx"
        ) from error


def _read_csv(path: Path) -> Iterator[Sheet | None]:
    try:
        with open_plain(path) as stream:
            text = stream.read().decode("utf-8-sig")
        yield None
        separator = max(_SEPARATORS, key=text.split("\n", 1)[0].count)
        rows: list[Sequence[object]] = []
        for row in paced(
            csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
        ):
            if row is None:
                yield None
            else:
                rows.append([from_csv_text(cell) for cell in row])
        yield Sheet(path.name, rows, all_text=True)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FormatError(
            f"expected a readable .csv table in UTF-8 at {path}, but {error}: "
            "save it again as CSV UTF-8 or as .xlsx"
        ) from error


def _write_xlsx(rows: Sequence[Sequence[Cell]], path: Path, name: str, overwrite: bool) -> None:
    openpyxl: Any = import_module("openpyxl")
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet(name)

    def cell(value: Cell) -> Any:
        made = openpyxl.cell.WriteOnlyCell(sheet, value)
        if isinstance(value, str):
            made.data_type = "s"  # a text that starts with = is no formula
        return made

    try:
        for row in rows:
            sheet.append([cell(value) for value in row])
    except openpyxl.utils.exceptions.IllegalCharacterError as error:
        raise FormatError(
            f"expected texts without control characters for {path}, but {error}: remove them"
        ) from error
    with saving(path, overwrite=overwrite) as temporary:
        book.save(temporary)


def _other_kind(path: Path) -> FormatError:
    return FormatError(f"expected a table as .xlsx or .csv, got {path}: save it as one of these")
