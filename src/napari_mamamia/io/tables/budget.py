"""Limits on the bytes, rows, columns and cells of a table in any format.

A workbook is a zip file of XML: 330 kB can contain 300 MB of text, one cell in the last column
implies 16,384 cells, and a zip file of 1.5 MB has needed 9 GB of memory. Every table reader checks
these limits before and during reading, so one table needs less than about 1 GB. A larger table
raises ``ValueError``, which each reader converts to a `FormatError` with the file's name.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, BinaryIO, Final

from napari_mamamia.io.files.zip_files import open_zip

TEXT_BYTES: Final = 128 << 20
"""Largest size of a .csv or other text file, which allows a million rows of 128 bytes."""
LINE_CHARACTERS: Final = 1 << 20
MOST_ROWS: Final = 1 << 20
MOST_COLUMNS: Final = 1 << 14
"""Largest number of columns.

Source: Excel specifications and limits, 1,048,576 rows by 16,384 columns.
"""
MOST_CELLS: Final = 8 << 20

WORKBOOK_BYTES: Final = 512 << 20
"""Largest size of a workbook's XML; a cell has about 40 bytes."""
SHARED_BYTES: Final = 64 << 20
"""Largest size of the shared strings in an .xlsx file, which the library keeps in memory."""
_FREE_BYTES: Final = 16 << 20
_MOST_RATIO: Final = 100
_MOST_SMALL_BYTES: Final = 8 << 20
"""Largest size of a strongly compressed part (our choice); styles and names need a few kB.

Real tables compress 5 to 30 times.
"""
ROW_BYTES: Final = 16 << 20
"""Largest size of the XML of a row, for which libraries keep a tree of ten times the size."""
_ROW: Final = re.compile(rb"[<:-](row|si)\b")
_HIDES: Final = re.compile(rb"<!--|<!\[CDATA\[")
_CHUNK: Final = 1 << 20
_SHARED: Final = "xl/sharedStrings"
_LARGE: Final = ("xl/worksheets/", "content.xml")
_FREE_CELLS: Final = 1 << 20
_CELL_BYTES: Final = 8
"""Smallest number of XML bytes for a cell with a value or an empty cell before it."""


def most_cells(stream: BinaryIO) -> int:
    """Return the largest number of cells allowed in a workbook, and rewind the stream.

    Raises
    ------
    ValueError
        If the file would unpack to a multiple of its size, or beyond the limits of a table.
    zipfile.BadZipFile
        If the file is not a complete zip file.
    """
    with open_zip(stream) as archive:
        total = 0
        for part in archive.infolist():
            total += part.file_size
            packed = max(part.compress_size, 1)
            if part.file_size > _FREE_BYTES and part.file_size > _MOST_RATIO * packed:
                times = part.file_size // packed
                raise ValueError(f"{part.filename} unpacks to {times} times its size")
            most = _MOST_SMALL_BYTES
            if part.filename.startswith(_SHARED):
                most = SHARED_BYTES
            elif part.filename.startswith(_LARGE):
                most = WORKBOOK_BYTES
            if part.file_size > most:
                raise ValueError(
                    f"{part.filename} is {part.file_size >> 20} MB long, above the limit of "
                    f"{most >> 20} MB"
                )
            if part.file_size > _FREE_BYTES:
                with archive.open(part) as content:
                    _require_short_rows(content, part.filename)
    if total > WORKBOOK_BYTES:
        raise ValueError(
            f"the file unpacks to {total >> 20} MB, above the limit of {WORKBOOK_BYTES >> 20} MB"
        )
    stream.seek(0)
    return min(MOST_CELLS, _FREE_CELLS + total // _CELL_BYTES)


def _require_short_rows(content: IO[bytes], name: str) -> None:
    begun = position = 0
    before = b""
    while data := content.read(_CHUNK):
        text = before + data
        if _HIDES.search(text):
            raise ValueError(
                f"{name} has comments between its cells, which no spreadsheet program writes"
            )
        for tag in _ROW.finditer(text):
            begun = position - len(before) + tag.start()
        position += len(data)
        if position - begun > ROW_BYTES:
            raise ValueError(f"a row of {name} is longer than the limit of {ROW_BYTES >> 20} MB")
        before = text[-16:]


class Room:
    """The number of cells that a table may still contain."""

    def __init__(self, cells: int = MOST_CELLS) -> None:
        self._left = cells

    def taken(self, rows: Iterable[Sequence[object]]) -> Iterator[Sequence[object]]:
        """Yield the rows of a sheet; raise `ValueError` if there are too many rows or cells."""
        for number, row in enumerate(rows, start=1):
            self.take(len(row), number)
            yield row

    def take(self, cells: int, row: int) -> None:
        """Count the cells in a row; raise `ValueError` if there are too many cells or rows."""
        self._left -= cells
        if row > MOST_ROWS or self._left < 0:
            raise ValueError(
                f"row {row} of a sheet follows too many rows or empty cells (limits: "
                f"{MOST_ROWS:,} rows, {MOST_CELLS:,} cells)"
            )


def read_text_bytes(stream: BinaryIO) -> bytes:
    """Return the bytes of a text file; raise `ValueError` if there are too many for a table."""
    data = stream.read(TEXT_BYTES + 1)
    if len(data) > TEXT_BYTES:
        raise ValueError(
            f"the file is larger than {TEXT_BYTES >> 20} MB, the limit of a text table"
        )
    return data


def short_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a text; raise `ValueError` for a line that is too long."""
    for number, line in enumerate(lines, start=1):
        if len(line) > LINE_CHARACTERS:
            raise ValueError(
                f"line {number} has {len(line):,} characters, above the limit of "
                f"{LINE_CHARACTERS:,}"
            )
        yield line
