"""Read sheets of .xlsx, .ods and .csv files as rows of cells, and write .xlsx and .csv.

Source for .ods: OASIS OpenDocument 1.3, part 3, tables. A cell or row may be repeated a million
times. Empty repetitions at the end are ignored, and others are counted before they are created.

A formula that no spreadsheet program has computed yet has no value in the file, and only the first
of merged cells has a value. If such cells were read as empty, their values would be lost without a
message.
"""

import csv
import io
import math
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, TypeAlias
from xml.etree.ElementTree import Element, iterparse
from xml.sax.saxutils import escape

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import listening, paced, report_progress
from napari_mamamia.io.files.csv_text import write_csv
from napari_mamamia.io.files.foreign import open_plain, reads, said
from napari_mamamia.io.files.save import saving, write_text_atomically
from napari_mamamia.io.files.zip_files import open_zip
from napari_mamamia.io.tables.budget import Room, most_cells
from napari_mamamia.io.tables.text_rows import part_text, read_text

Gaps: TypeAlias = Mapping[int, Mapping[int, str]]
"""Reasons why cells have no value, by row and column, both counted from 0."""
Cell: TypeAlias = str | float | bool | None
_TABLE: Final = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_OFFICE: Final = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_STYLE: Final = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
_TEXT: Final = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_CELLS: Final = (f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell")
_NUMBERS: Final = ("float", "percentage", "currency")
_SIGNS: Final = {f"{_TEXT}s": " ", f"{_TEXT}tab": "\t", f"{_TEXT}line-break": "\n"}
_MOST_BLANKS: Final = 100


_SUSPICIOUS: Final = re.compile(rb"<(\w+:)?(f[\s/>]|mergeCell\b)")
_HIDDEN_ROW: Final = re.compile(rb"<(?:\w+:)?row\b[^<>]*\bhidden=[\"'](?:1|true)[\"']")
_CHUNK: Final = 1 << 20
_OVERLAP: Final = 64
_MOST: Final = 1 << 20
"""Largest number of cells without a value (our choice).

A single merged range can have 17 billion cells.
"""
_REFERENCE: Final = re.compile(r"([A-Za-z]{1,3})([0-9]{1,7})")


MergedRange: TypeAlias = tuple[int, int, int, int]
"""Merged cells: first row, first column, last row, last column, counted from 0."""


def cell_name(row: int, column: int) -> str:
    """Return the name of a cell, counted from 0, as spreadsheet programs show it.

    Examples
    --------
    >>> cell_name(0, 0), cell_name(6, 27)
    ('A1', 'AB7')
    """
    return f"{_name_column(column)}{row + 1}"


def gaps_of_sheet(part: Callable[[], IO[bytes]], rows: Sequence[Sequence[object]]) -> Gaps:
    """Return the cells of a sheet that only look empty; `part` opens the sheet's XML.

    Raises
    ------
    ValueError
        If there are too many such cells.
    """
    with part() as stream:
        if not _is_suspicious(stream):
            return {}
    with part() as stream:
        formulas, merged = _scan_sheet(stream)
    gaps: dict[int, dict[int, str]] = {}
    for row, column in formulas:
        gaps.setdefault(row, {})[column] = "a formula without a stored result"
    for row, cells in merged_gaps(merged, rows).items():
        gaps[row] = {**cells, **gaps.get(row, {})}
    return gaps


def n_hidden_rows(part: Callable[[], IO[bytes]]) -> int:
    """Return the number of hidden rows in a sheet, such as rows hidden by a filter."""
    count, before = 0, b""
    with part() as stream:
        while data := stream.read(_CHUNK):
            text = before + data
            # The last tag may be incomplete, so it is kept for the next read and counted once.
            whole, _, before = text.rpartition(b"<")
            count += len(_HIDDEN_ROW.findall(whole))
    return count + len(_HIDDEN_ROW.findall(b"<" + before))


def merged_gaps(
    ranges: Sequence[MergedRange], rows: Sequence[Sequence[object]]
) -> dict[int, dict[int, str]]:
    """Return the cells that lost their value when cells were merged.

    A range without a value in its first cell is ignored.
    """
    width = max(map(len, rows), default=0)
    gaps: dict[int, dict[int, str]] = {}
    room = _MOST
    for top, left, bottom, right in ranges:
        if top >= len(rows) or left >= len(rows[top]) or rows[top][left] in (None, ""):
            continue
        last_row, last_column = min(bottom, len(rows) - 1), min(right, width - 1)
        room -= (last_row - top + 1) * max(last_column - left + 1, 1)
        if room < 0:
            raise ValueError(f"the merged ranges cover more cells than the limit of {_MOST:,}")
        text = f"merged with {cell_name(top, left)}"
        for row in range(top, last_row + 1):
            for column in range(left, last_column + 1):
                if (row, column) != (top, left):
                    gaps.setdefault(row, {})[column] = text
    return gaps


def _is_suspicious(stream: IO[bytes]) -> bool:
    before = b""
    while data := stream.read(_CHUNK):
        if _SUSPICIOUS.search(before + data):
            return True
        # A tag may be split between two reads.
        before = data[-_OVERLAP:]
    return False


def _scan_sheet(stream: IO[bytes]) -> tuple[list[tuple[int, int]], list[MergedRange]]:
    formulas: list[tuple[int, int]] = []
    merged: list[MergedRange] = []
    for name, row, column, element in _iterate_cells(stream):
        if name == "mergeCell":
            merged.append(_parse_range(element.get("ref", "")))
        elif _is_uncomputed(element):
            formulas.append((row, column))
        if len(formulas) + len(merged) > _MOST:
            raise ValueError(
                f"the sheet has more than {_MOST:,} formulas without a result and merged ranges"
            )
    return formulas, merged


def _iterate_cells(stream: IO[bytes]) -> Iterator[tuple[str, int, int, Element]]:
    row = column = -1
    for event, element in iterparse(stream, ("start", "end")):  # noqa: S314 - expat has limits
        name = element.tag.rpartition("}")[2]
        if name == "row" and event == "start":
            row, column = int(element.get("r", row + 2)) - 1, -1
        elif name == "row":
            # Otherwise all rows of the sheet would stay in memory.
            element.clear()
        elif name in {"c", "mergeCell"} and event == "end":
            if name == "c":
                row, column = _parse_reference(element.get("r"), row, column + 1)
            yield name, row, column, element


def _is_uncomputed(cell: Element) -> bool:
    parts = {part.tag.rpartition("}")[2]: part for part in cell}
    if "f" not in parts or cell.get("t") == "str":
        return "f" in parts and "v" not in parts
    return "v" not in parts or not parts["v"].text


def _parse_reference(reference: str | None, row: int, column: int) -> tuple[int, int]:
    match = _REFERENCE.fullmatch(reference or "")
    if match is None:
        return row, column
    return int(match[2]) - 1, _parse_column(match[1])


def _parse_column(letters: str) -> int:
    place = 0
    for letter in letters.upper():
        place = 26 * place + ord(letter) - ord("A") + 1
    return place - 1


def _parse_range(reference: str) -> MergedRange:
    first, _, last = reference.partition(":")
    top, left = _parse_reference(first, 0, 0)
    bottom, right = _parse_reference(last, top, left)
    return top, left, bottom, right


NOT_IN_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Pattern of characters that XML cannot contain."""
_LIKE_AN_ESCAPE: Final = re.compile("_(?=x[0-9A-Fa-f]{4}_)")
"""Pattern of strings that spreadsheet programs would read as an escaped character.

``_x0041_`` is read as a character; ``_x005F_`` is an escaped underscore.
"""

_EARLIEST: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time possible in a zip file; with it, equal tables give equal bytes."""

_HEAD: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_FORMATS: Final = "http://schemas.openxmlformats.org"
_MAIN: Final = f"{_FORMATS}/spreadsheetml/2006/main"
_LINKS: Final = f"{_FORMATS}/officeDocument/2006/relationships"
_TYPE: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml"

_PARTS: Final = (
    (
        "[Content_Types].xml",
        f'<Types xmlns="{_FORMATS}/package/2006/content-types">'
        '<Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_TYPE}.worksheet+xml"/>'
        "</Types>",
    ),
    (
        "_rels/.rels",
        f'<Relationships xmlns="{_FORMATS}/package/2006/relationships">'
        f'<Relationship Id="rId1" Type="{_LINKS}/officeDocument" Target="xl/workbook.xml"/>'
        "</Relationships>",
    ),
    (
        "xl/_rels/workbook.xml.rels",
        f'<Relationships xmlns="{_FORMATS}/package/2006/relationships">'
        f'<Relationship Id="rId1" Type="{_LINKS}/worksheet" Target="worksheets/sheet1.xml"/>'
        "</Relationships>",
    ),
)
"""The minimal set of files in a workbook. Source: ECMA-376, Office Open XML, part 1."""


def write_workbook(
    rows: Iterable[Sequence[Cell]],
    n_rows: int,
    path: Path,
    *,
    name: str,
    overwrite: bool = False,
) -> None:
    """Write rows as the only sheet of an .xlsx file; NaN and None become empty cells.

    Numbers have as many digits as are needed to read them back exactly. Characters that are invalid
    in spreadsheets become "?", and a string that starts with = is not a formula. If the work is
    cancelled, no file remains.

    Raises
    ------
    SaveConflictError
        If `path` exists and `overwrite` is False.
    SaveError
        If the file cannot be written.
    """
    with saving(path, overwrite=overwrite) as temporary:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as book:
            for part, text in (*_PARTS, ("xl/workbook.xml", _format_workbook(name))):
                book.writestr(_make_entry(part), _HEAD + text)
            with book.open(_make_entry("xl/worksheets/sheet1.xml"), "w", force_zip64=True) as sheet:
                sheet.write(f'{_HEAD}<worksheet xmlns="{_MAIN}"><sheetData>'.encode())
                for row in paced(_format_rows(rows), f"Writing {path.name}", n_rows):
                    sheet.write(row)
                sheet.write(b"</sheetData></worksheet>")
        report_progress(n_rows, n_rows, f"Writing {path.name}")


def _make_entry(part: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(part, _EARLIEST)
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def _format_workbook(name: str) -> str:
    quoted = escape(name, {'"': "&quot;"})
    return (
        f'<workbook xmlns="{_MAIN}" xmlns:r="{_LINKS}"><sheets>'
        f'<sheet name="{quoted}" sheetId="1" r:id="rId1"/></sheets></workbook>'
    )


def _format_rows(rows: Iterable[Sequence[Cell]]) -> Iterator[bytes]:
    letters: list[str] = []
    for number, row in enumerate(rows, start=1):
        while len(letters) < len(row):
            letters.append(_name_column(len(letters)))
        cells = (_format_cell(f"{letters[k]}{number}", value) for k, value in enumerate(row))
        yield f'<row r="{number}">{"".join(cells)}</row>'.encode("utf-8", "replace")


def _format_cell(place: str, value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{value:d}</v></c>'
    if isinstance(value, str):
        if not value:
            return ""
        text = escape(_LIKE_AN_ESCAPE.sub("_x005F_", NOT_IN_XML.sub("?", str(value))))
        # XML readers convert a bare carriage return to a line feed.
        text = text.replace("\r", "&#13;")
        return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'
    number = value if isinstance(value, int) else float(value)
    return f'<c r="{place}"><v>{number!r}</v></c>' if math.isfinite(number) else ""


def _name_column(place: int) -> str:
    letters = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


_BEFORE_NUMBER: Final = re.compile(r"(?!-)[A-Za-z_-]*0*")
_FORMULA: Final = "a formula without a stored result"


@dataclass(slots=True)
class OdsSheet:
    """Name and rows of a sheet in an .ods file, with None for empty cells."""

    name: str
    rows: list[tuple[object, ...]] = field(default_factory=list)
    merged: list[MergedRange] = field(default_factory=list)
    formulas: dict[int, dict[int, str]] = field(default_factory=dict)
    is_hidden: bool = False
    n_hidden_rows: int = 0

    @property
    def gaps(self) -> Gaps:
        """The cells that only look empty, with the reasons."""
        gaps_by_row = merged_gaps(self.merged, self.rows)
        for row, cells in self.formulas.items():
            gaps_by_row[row] = {**gaps_by_row.get(row, {}), **cells}
        return gaps_by_row


def ods_sheets(stream: BinaryIO, text: str) -> Iterator[OdsSheet]:
    """Yield the sheets in an .ods file; `text` is the progress text.

    Raises
    ------
    ValueError
        If the file would unpack to many times its size, or is not a table.
    zipfile.BadZipFile
        If the file is not a complete zip file.
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
    """The current sheet, and the number of empty rows before the next row with a value."""

    sheet: OdsSheet | None = None
    empty_rows: int = 0
    hidden_styles: set[str] = field(default_factory=set)

    def take(self, event: str, element: Element, room: Room) -> OdsSheet | None:
        """Process the start or end of an XML element; return a sheet at the sheet's end."""
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
                # Otherwise all rows of the sheet would stay in memory.
                element.clear()
            elif element.tag == f"{_TABLE}table":
                sheet, self.sheet = self.sheet, None
                return sheet
        return None


def _take_row(sheet: OdsSheet, element: Element, empty_rows: int, room: Room) -> int:
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
    return cell.get(f"{_OFFICE}string-value") or shown  # An error has an empty value.


def _as_shown(cell: Element, number: int) -> object:
    shown = "".join(_read_line(part) for part in cell if part.tag == f"{_TEXT}p")
    before = shown.removesuffix(str(number))
    is_more = before not in ("", shown) and _BEFORE_NUMBER.fullmatch(before) and number >= 0
    return shown if is_more else number


def _read_line(part: Element) -> str:
    texts = [part.text or ""]
    for inner in part:
        times = min(_read_count(inner, "c", _TEXT), _MOST_BLANKS) if inner.tag == f"{_TEXT}s" else 1
        texts.append(_SIGNS.get(inner.tag, "") * times or _read_line(inner))
        texts.append(inner.tail or "")
    return "".join(texts)


_SHOWN_AS: Final = re.compile(r'(?P<before>("[^"0#]*"|\\[A-Za-z_-])*)(?P<zeros>0+)')
"""Number formats that display zeros or letters before a whole number: 0000, "DUKE_"000."""
TEXT_TABLES: Final = (".csv", ".tsv", ".tab", ".txt")
TABLES: Final = (*TEXT_TABLES, ".xlsx", ".xlsm", ".ods")
"""File suffixes supported by `read_sheets`."""
_DAMAGED: Final = (zipfile.BadZipFile, OSError, EOFError, KeyError, ValueError, TypeError,
                   AttributeError, IndexError, SyntaxError, RuntimeError)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sheet:
    """The rows of one sheet; if `all_text` is True, all cells are strings.

    Rows may have unequal lengths. An empty cell is None, or "" in a text sheet. `gaps` are the
    cells that only look empty. `note` describes an assumption, for example about the encoding, or
    is "". `is_hidden` and `n_hidden_rows` describe what spreadsheet programs hide.
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
    """Yield the sheets in a table file; `text` is the progress text.

    An .xlsx, .xlsm or .ods file gives its sheets, with hidden sheets last. A text file gives one
    sheet, which `text_rows.part_text` splits into cells. Because a title above the table may
    suggest a wrong separator, further sheets follow with the rows split at the other separators.

    Raises
    ------
    FormatError
        If the file cannot be read or has a different suffix.
    """
    if not path.exists():
        raise FormatError(f"expected a table at {path}, but found nothing: check the file name")
    suffix = path.suffix.lower()
    if suffix in TEXT_TABLES:
        yield from _read_text_table(path, text)
    elif suffix in {".xlsx", ".xlsm"}:
        yield from _read_xlsx(path, text)
    elif suffix == ".ods":
        yield from _read_ods(path, text)
    else:
        raise _other_kind(path, ".xlsx, .ods or .csv")


def write_sheet(
    rows: Sequence[Sequence[Cell]], path: Path, *, name: str, overwrite: bool = False
) -> None:
    """Write rows as an .xlsx file with one sheet, or as a .csv file; NaN becomes an empty cell.

    Raises
    ------
    FormatError
        If `path` has a different suffix, or a string contains a control character, which is invalid
        in .xlsx.
    SaveConflictError
        If `path` exists and `overwrite` is False.
    SaveError
        If the file cannot be written.
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
    """Return the number or Boolean that would be written exactly as `text`, or else the string.

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
    """Return why the cells of a text row cannot be assigned to columns, or "".

    A missing separator, or a separator within a value, shifts all later values by one column. The
    rows of a workbook do not have this problem.
    """
    if not sheet.all_text or len(cells) == width or (len(cells) > width and not any(cells[width:])):
        return ""
    return f"it has {len(cells)} cells, but the header has {width}"


def _keep_finite(cell: Cell) -> Cell:
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


def _read_xlsx(path: Path, text: str) -> Iterator[Sheet]:
    openpyxl: Any = import_module(
        "openpyxl"
    )  # Imported here because the import takes 0.2 s, which only readers of tables need.
    try:
        with open_plain(path) as stream:
            room = Room(most_cells(stream))
            book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
            # Cells with formats take longer to read than plain values, so formats are read only
            # if needed.
            shown_as = any(map(_SHOWN_AS.fullmatch, book._number_formats))
            for sheet in sorted(book.worksheets, key=_is_hidden):
                sheet.reset_dimensions()  # Some programs write wrong dimensions.
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
            f"expected a readable .xlsx table at {path}, but {error}: open the file in a "
            "spreadsheet program, and save it again as .xlsx"
        ) from error


def _is_hidden(sheet: Any) -> bool:
    return bool(sheet.sheet_state != "visible")


def _read_shown(cell: Any) -> object:
    """Return a cell's value, or its displayed text if the format adds a prefix to a whole number.

    ``0001`` typed into a spreadsheet program is the number 1 with such a format, but an id must
    stay as displayed.
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
            f"expected a readable .ods table at {path}, but {error}: open the file in a "
            "spreadsheet program, and save it again as .ods or .xlsx"
        ) from error


def _read_text_table(path: Path, text: str) -> Iterator[Sheet]:
    try:
        content, note = read_text(path)
        for rows in part_text(content, text):
            yield Sheet(path.name, rows, all_text=True, note=note)
    except (OSError, ValueError, csv.Error) as error:
        raise FormatError(
            f"expected a readable text table in UTF-8 at {path}, but {said(error)}: save the "
            "table again as CSV UTF-8 or as .xlsx"
        ) from error


def _require_xml(rows: Sequence[Sequence[Cell]], path: Path) -> None:
    for row in rows:
        for cell in row:
            if isinstance(cell, str) and NOT_IN_XML.search(cell):
                raise FormatError(
                    f"expected only strings without control characters for {path}, but {cell!r} "
                    "contains one: remove the character"
                )


def _other_kind(path: Path, kinds: str) -> FormatError:
    return FormatError(
        f"expected a table in the format {kinds}, but found {path}: save the table "
        "in one of these formats"
    )
