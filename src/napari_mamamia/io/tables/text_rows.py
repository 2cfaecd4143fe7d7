"""Read the rows of a text table (.csv, .tsv, .txt) written by any program in any country.

Cells are separated by commas, semicolons, tabs or ``|``.
A first line ``sep=;``, as in Excel, names the separator.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from napari_mamamia.core.progress import paced, report_progress
from napari_mamamia.io.files.csv_text import from_csv_text
from napari_mamamia.io.files.foreign import open_plain
from napari_mamamia.io.files.table_text import decoded
from napari_mamamia.io.tables.budget import MOST_COLUMNS, Room, read_text_bytes, short_lines

_SEPARATORS: Final = ",;\t|"
_SEP_LINE: Final = re.compile(r'"?sep=(.)"?[,;\t|"]*\r?\n?', re.IGNORECASE)
_HEAD_BYTES: Final = 512
_OTHER_KINDS: Final = {
    re.compile(rb"version https://git-lfs"): (
        "it is a Git LFS pointer, not the table itself (git lfs pull downloads it)"
    ),
    re.compile(rb"(\xef\xbb\xbf)?\s*<(!doctype html|html|\?xml)", re.IGNORECASE): (
        "it is a web page or XML, such as a sign-in page, not a table"
    ),
    re.compile(rb"(\xef\xbb\xbf)?\s*(\{\s*[\"}]|\[\s*[\[{])"): (
        "it is JSON, not a table with a row for each case"
    ),
}
BLANKS_BETWEEN: Final = (
    "its cells are separated by blanks: use commas, for example with write.csv(..., "
    "row.names=FALSE) in R"
)
_LOOKED_AT: Final = 40
"""Number of lines that are read to choose the separator; a header may follow 30 titles."""


def read_text(path: Path) -> tuple[str, str]:
    """Return the text of a table, and a note if the encoding was guessed.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If the file is too large, is another kind of file, or has an unknown encoding.
    """
    with open_plain(path) as stream:
        data = read_text_bytes(stream)
    if data.startswith(b"PK\x03\x04"):
        raise ValueError(
            "the file is a zip archive, such as .xlsx or .ods: rename the file with that suffix"
        )
    for pattern, kind in _OTHER_KINDS.items():
        if pattern.match(data, 0, _HEAD_BYTES):
            raise ValueError(kind)
    return decoded(data)


def has_blanks_between(line: str, *, quoted: bool = False) -> bool:
    """Return whether several cells in a line are separated by blanks, as R writes tables."""
    is_parted = any(sign in line for sign in _SEPARATORS)
    return not is_parted and len(line.split()) > 1 and (not quoted or line.startswith('"'))


def read_own_rows(path: Path) -> list[Sequence[object]]:
    """Return all rows of a table that this software wrote, in UTF-8 with commas.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If the file is too large, or is not UTF-8.
    csv.Error
        If quotation marks are unpaired.
    """
    content, note = read_text(path)
    if note:
        raise ValueError(note)
    return _part_rows(content, ",", f"Reading {path.name}")


def part_text(content: str, text: str) -> Iterator[list[Sequence[object]]]:
    """Yield the rows of a text for each possible separator, the most likely separator first.

    A later separator may be correct if a title above the table contains another character more
    often. A line ``sep=;`` determines the separator; its row stays as an empty row, so that row
    numbers are unchanged.

    Raises
    ------
    ValueError
        If a line, a row or the whole text exceeds the limits.
    csv.Error
        If quotation marks are unpaired.
    """
    report_progress(0, 1, text)
    first_line = content[: content.find("\n") + 1] or content
    said = _SEP_LINE.fullmatch(first_line) if len(first_line) < _LOOKED_AT else None
    if said is not None:
        rows = _part_rows(content[len(first_line) :], said[1], text)
        yield [(), *rows]
        return
    head = content[: 1 << 16].splitlines()[:_LOOKED_AT]
    lines = [line for line in head if not line.startswith("#")] or head or [""]
    likely = sorted(_SEPARATORS, key=lambda sign: _score_separator(lines, sign), reverse=True)
    first_error: csv.Error | None = None
    n_parted = 0
    for separator in [likely[0], *(sign for sign in likely[1:] if sign in content)]:
        try:
            rows = _part_rows(content, separator, text)
        except csv.Error as error:
            first_error = first_error or error
        else:
            n_parted += 1
            yield rows
    if first_error is not None and not n_parted:
        if has_blanks_between(lines[0], quoted=True):
            raise ValueError(BLANKS_BETWEEN) from first_error
        raise first_error


def _score_separator(lines: Sequence[str], sign: str) -> tuple[bool, int]:
    counts = [line.count(sign) for line in lines if line.strip()] or [0]
    usual = max(set(counts), key=counts.count)
    return usual > 0 and counts[0] == usual, counts[0]


def _part_rows(content: str, separator: str, text: str) -> list[Sequence[object]]:
    rows = csv.reader(short_lines(_split_lines(content)), delimiter=separator, strict=True)
    room, parted = Room(), list[Sequence[object]]()
    for number, row in enumerate(paced(rows, text), start=1):
        if len(row) > MOST_COLUMNS:
            raise ValueError(
                f"row {number} has {len(row):,} cells, above the limit of {MOST_COLUMNS:,}"
            )
        room.take(len(row), number)
        parted.append([from_csv_text(cell) for cell in row])
    return parted


def _split_lines(content: str) -> Iterator[str]:
    if "\n" not in content:
        content = content.replace("\r", "\n")
    start = 0
    while start < len(content):
        end = content.find("\n", start) + 1 or len(content)
        yield content[start:end]
        start = end
