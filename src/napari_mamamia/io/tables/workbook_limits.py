"""How much an .xlsx or .ods file may unpack to, looked at before and while it is read.

A workbook is a zip of XML: 330 kB can hold 300 MB of text, and one cell in the last column stands
for 16,384. Without limits such a file takes gigabytes (3.7 GB measured).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO, Final

from napari_mamamia.io.files.zip_files import open_zip

_FREE_BYTES: Final = 16 << 20
_MOST_RATIO: Final = 100
_MOST_SMALL_BYTES: Final = 8 << 20
_MOST_BYTES: Final = 4 << 30
"""Our own limits: real tables shrink 5 to 30 times; styles and names have some kB."""
_LARGE: Final = ("xl/worksheets/", "xl/sharedStrings", "content.xml")
_MOST_ROWS: Final = 1 << 20
"""Source: Excel specifications and limits, 1,048,576 rows by 16,384 columns."""
_FREE_CELLS: Final = 1 << 20
_CELL_BYTES: Final = 8
"""A cell with a value takes more than this of XML; empty ones before it in its row count too."""


def most_cells(stream: BinaryIO) -> int:
    """Return how many cells a workbook of this size may have; the stream is at its start again.

    Raises
    ------
    ValueError
        If the file would unpack to far more than it is.
    zipfile.BadZipFile
        If it is no whole zip.
    """
    with open_zip(stream) as archive:
        total = 0
        for part in archive.infolist():
            total += part.file_size
            packed = max(part.compress_size, 1)
            if part.file_size > _FREE_BYTES and part.file_size > _MOST_RATIO * packed:
                times = part.file_size // packed
                raise ValueError(f"{part.filename} unpacks to {times} times its size")
            if part.file_size > _MOST_SMALL_BYTES and not part.filename.startswith(_LARGE):
                raise ValueError(f"{part.filename} has {part.file_size >> 20} MB")
    if total > _MOST_BYTES:
        raise ValueError(f"it unpacks to {total >> 20} MB")
    stream.seek(0)
    return _FREE_CELLS + total // _CELL_BYTES


class Room:
    """Counts down the cells that are left to a workbook."""

    def __init__(self, cells: int) -> None:
        self._left = cells

    def taken(self, rows: Iterable[Sequence[object]]) -> Iterator[Sequence[object]]:
        """Pass on the rows of a sheet; ValueError where there are too many, or too many cells."""
        for number, row in enumerate(rows, start=1):
            self.take(len(row), number)
            yield row

    def take(self, cells: int, row: int) -> None:
        """Count cells of a row; ValueError where they, or the rows, are too many."""
        self._left -= cells
        if row > _MOST_ROWS or self._left < 0:
            raise ValueError(
                f"row {row} of a sheet has more rows or empty cells before it than a file "
                "of this size can mean"
            )
