"""Sheets of an OpenDocument spreadsheet (.ods): values, merged cells, formulas without result.

Source: OASIS OpenDocument 1.3, part 3, tables. A cell or row may say that it stands for a million
of its kind: empty ones at the end mean nothing, others are counted before they are made.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, Final
from xml.etree.ElementTree import Element, iterparse

from napari_mamamia.core.progress import paced
from napari_mamamia.io.files.zip_files import open_zip
from napari_mamamia.io.tables.sheet_gaps import Gaps, MergedRange, merged_gaps
from napari_mamamia.io.tables.workbook_limits import Room, most_cells

_TABLE: Final = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_OFFICE: Final = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_STYLE: Final = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
_TEXT: Final = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_CELLS: Final = (f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell")
_NUMBERS: Final = ("float", "percentage", "currency")
_SIGNS: Final = {f"{_TEXT}s": " ", f"{_TEXT}tab": "\t", f"{_TEXT}line-break": "\n"}
_MOST_BLANKS: Final = 1000
_BEFORE_NUMBER: Final = re.compile(r"(?!-)[A-Za-z_-]*0*")
_FORMULA: Final = "a formula without a stored result"


@dataclass(slots=True)
class OdsSheet:
    """A sheet's name and rows; an empty cell is None."""

    name: str
    rows: list[tuple[object, ...]] = field(default_factory=list)
    merged: list[MergedRange] = field(default_factory=list)
    formulas: dict[int, dict[int, str]] = field(default_factory=dict)
    is_hidden: bool = False
    n_hidden_rows: int = 0

    @property
    def gaps(self) -> Gaps:
        """The cells that only look empty."""
        gaps_by_row = merged_gaps(self.merged, self.rows)
        for row, cells in self.formulas.items():
            gaps_by_row[row] = {**gaps_by_row.get(row, {}), **cells}
        return gaps_by_row


def ods_sheets(stream: BinaryIO, text: str) -> Iterator[OdsSheet]:
    """Give the sheets of a file one after the other; `text` is told meanwhile.

    Raises
    ------
    ValueError
        If it would unpack to far more than it is, or is no table.
    zipfile.BadZipFile
        If it is no whole zip.
    """
    room = Room(most_cells(stream))
    with open_zip(stream) as archive, archive.open("content.xml") as content:
        table = _Found()
        steps = iterparse(content, ("start", "end"))  # noqa: S314 - expat has limits
        for event, element in paced(steps, text):
            sheet = table.take(event, element, room)
            if sheet is not None:
                yield sheet


@dataclass(slots=True)
class _Found:
    """The sheet in hand, and how many empty rows wait for one with a value."""

    sheet: OdsSheet | None = None
    empty_rows: int = 0
    hidden_styles: set[str] = field(default_factory=set)

    def take(self, event: str, element: Element, room: Room) -> OdsSheet | None:
        """Take the start or end of an element; return a sheet at its end."""
        if element.tag == f"{_TABLE}table" and event == "start":
            style = element.get(f"{_TABLE}style-name", "")
            name = element.get(f"{_TABLE}name", "")
            self.sheet = OdsSheet(name, is_hidden=style in self.hidden_styles)
            self.empty_rows = 0
        elif element.tag == f"{_STYLE}style" and event == "end":
            shown = [part.get(f"{_TABLE}display") for part in element]
            if "false" in shown:
                self.hidden_styles.add(element.get(f"{_STYLE}name", ""))
        elif self.sheet is not None and event == "end":
            if element.tag == f"{_TABLE}table-row":
                self.empty_rows = _take_row(self.sheet, element, self.empty_rows, room)
                # Otherwise all rows of the sheet stay in memory.
                element.clear()
            elif element.tag == f"{_TABLE}table":
                sheet, self.sheet = self.sheet, None
                return sheet
        return None


def _take_row(sheet: OdsSheet, element: Element, empty_rows: int, room: Room) -> int:
    """Add a row as often as it says; return how many empty ones wait for one with a value."""
    times = _read_count(element, "number-rows-repeated")
    start = len(sheet.rows) + empty_rows
    row, formulas, merged = _read_row(element, start, room)
    if not row and not formulas:
        return empty_rows + times
    room.take(empty_rows + (times - 1) * (len(row) + 1), start + times)
    sheet.rows += [()] * empty_rows + [tuple(row)] * times
    sheet.n_hidden_rows += times * (element.get(f"{_TABLE}visibility", "visible") != "visible")
    sheet.merged += merged
    if formulas:
        sheet.formulas |= dict.fromkeys(range(start, start + times), formulas)
    return 0


def _read_row(
    element: Element, place: int, room: Room
) -> tuple[list[object], dict[int, str], list[MergedRange]]:
    row: list[object] = []
    formulas: dict[int, str] = {}
    merged: list[MergedRange] = []
    column = 0
    for cell in element:
        if cell.tag not in _CELLS:
            continue
        times = _read_count(cell, "number-columns-repeated")
        value = _read_value(cell)
        is_formula = value is None and cell.get(f"{_TABLE}formula") is not None
        if value is not None or is_formula:
            room.take(column + times - len(row), place + 1)
            row += [None] * (column - len(row)) + [value] * times
        if is_formula:
            formulas |= dict.fromkeys(range(column, column + times), _FORMULA)
        down, right = (_read_count(cell, f"number-{way}-spanned") for way in ("rows", "columns"))
        if (down, right) != (1, 1):
            merged.append((place, column, place + down - 1, column + right - 1))
        column += times
    return row, formulas, merged


def _read_count(element: Element, name: str, space: str = _TABLE) -> int:
    times = int(element.get(space + name, 1))
    if times < 1:
        raise ValueError(f"{name} is {times}")
    return times


def _read_value(cell: Element) -> object:
    """Return what a cell holds, None where it is empty."""
    kind = cell.get(f"{_OFFICE}value-type")
    if kind is None or cell.tag == _CELLS[1]:
        return None
    if kind in _NUMBERS:
        number = float(cell.get(f"{_OFFICE}value", ""))
        return _as_shown(cell, int(number)) if number.is_integer() else number
    if kind == "boolean":
        return cell.get(f"{_OFFICE}boolean-value") == "true"
    if kind in {"date", "time"}:
        return cell.get(f"{_OFFICE}{kind}-value")
    shown = "\n".join(_read_line(part) for part in cell if part.tag == f"{_TEXT}p")
    return cell.get(f"{_OFFICE}string-value") or shown  # of an error the value is empty


def _as_shown(cell: Element, number: int) -> object:
    """Return a whole number; as its text where zeros or letters stand before it, as in an id."""
    shown = "".join(_read_line(part) for part in cell if part.tag == f"{_TEXT}p")
    before = shown.removesuffix(str(number))
    is_more = before not in ("", shown) and _BEFORE_NUMBER.fullmatch(before) and number >= 0
    return shown if is_more else number


def _read_line(part: Element) -> str:
    """Return a paragraph's text; runs of blanks, tabs and line breaks are elements of their own."""
    texts = [part.text or ""]
    for inner in part:
        times = min(_read_count(inner, "c", _TEXT), _MOST_BLANKS) if inner.tag == f"{_TEXT}s" else 1
        texts.append(_SIGNS.get(inner.tag, "") * times or _read_line(inner))
        texts.append(inner.tail or "")
    return "".join(texts)
