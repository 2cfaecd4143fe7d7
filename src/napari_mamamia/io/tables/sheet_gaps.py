"""Find workbook cells that only look empty: uncomputed formulas and merged cells.

A formula that no spreadsheet program has computed yet has no value in the file, and of merged cells
only the first has one. Read as empty, both values would be lost silently.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Final, TypeAlias
from xml.etree.ElementTree import Element, iterparse

Gaps: TypeAlias = Mapping[int, Mapping[int, str]]
"""Reasons why cells have no value, by row and by column (both from 0)."""

_SUSPICIOUS: Final = re.compile(rb"<(\w+:)?(f[\s/>]|mergeCell\b)")
_HIDDEN_ROW: Final = re.compile(rb"<(?:\w+:)?row\b[^<>]*\bhidden=[\"'](?:1|true)[\"']")
_CHUNK: Final = 1 << 20
_OVERLAP: Final = 64
_MOST: Final = 1 << 20
"""Largest number of such cells (our choice); one merged range can have 17 billion."""
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
    letters = ""
    place = column + 1
    while place:
        place, rest = divmod(place - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return f"{letters}{row + 1}"


def gaps_of_sheet(part: Callable[[], IO[bytes]], rows: Sequence[Sequence[object]]) -> Gaps:
    """Return the gaps in the rows of a sheet; `part` opens its XML.

    Raises
    ------
    ValueError
        If there are more than the limit.
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
    """Return the number of hidden rows of a sheet, such as rows that a filter hides."""
    count, before = 0, b""
    with part() as stream:
        while data := stream.read(_CHUNK):
            text = before + data
            # The last tag may be incomplete: it waits for the next read, and is counted once.
            whole, _, before = text.rpartition(b"<")
            count += len(_HIDDEN_ROW.findall(whole))
    return count + len(_HIDDEN_ROW.findall(b"<" + before))


def merged_gaps(
    ranges: Sequence[MergedRange], rows: Sequence[Sequence[object]]
) -> dict[int, dict[int, str]]:
    """Return the cells that lost their value to a merged range.

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
            raise ValueError("its merged cells cover more than a table can hold")
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
        # A tag may lie across two reads.
        before = data[-_OVERLAP:]
    return False


def _scan_sheet(stream: IO[bytes]) -> tuple[list[tuple[int, int]], list[MergedRange]]:
    """Return the positions of formulas without result, and the merged ranges."""
    formulas: list[tuple[int, int]] = []
    merged: list[MergedRange] = []
    for name, row, column, element in _iterate_cells(stream):
        if name == "mergeCell":
            merged.append(_parse_range(element.get("ref", "")))
        elif _is_uncomputed(element):
            formulas.append((row, column))
        if len(formulas) + len(merged) > _MOST:
            raise ValueError("it has more formulas without result than a table can hold")
    return formulas, merged


def _iterate_cells(stream: IO[bytes]) -> Iterator[tuple[str, int, int, Element]]:
    """Yield the cells and merged ranges of a sheet's XML: name, row, column, element."""
    row = column = -1
    for event, element in iterparse(stream, ("start", "end")):  # noqa: S314 - expat has limits
        name = element.tag.rpartition("}")[2]
        if name == "row" and event == "start":
            row, column = int(element.get("r", row + 2)) - 1, -1
        elif name == "row":
            # Otherwise all rows of the sheet stay in memory.
            element.clear()
        elif name in {"c", "mergeCell"} and event == "end":
            if name == "c":
                row, column = _parse_reference(element.get("r"), row, column + 1)
            yield name, row, column, element


def _is_uncomputed(cell: Element) -> bool:
    """Return whether a cell has a formula without result; an empty text is a result."""
    parts = {part.tag.rpartition("}")[2]: part for part in cell}
    if "f" not in parts or cell.get("t") == "str":
        return "f" in parts and "v" not in parts
    return "v" not in parts or not parts["v"].text


def _parse_reference(reference: str | None, row: int, column: int) -> tuple[int, int]:
    """Return the position in a reference like ``B7``; without one, the counted position."""
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
