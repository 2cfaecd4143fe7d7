"""Find the header of a table and the columns that a reader requests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import FormatError, MissingColumnsError
from napari_mamamia.io.tables.cells import (
    UNSEEN,
    is_blank,
)
from napari_mamamia.io.tables.spreadsheets import Sheet
from napari_mamamia.io.tables.summary_rows import (
    split_unit,
)
from napari_mamamia.io.tables.text_rows import BLANKS_BETWEEN, has_blanks_between

MOST_TITLES: Final = 30
"""Largest number of rows above the header (our choice)."""


METRIC_DEFINITION: Final = "metric_definition"
"""First cell of a comment row that describes how a table's numbers were computed."""


_INDEX_NAMES: Final = frozenset({"", "unnamed:_0", "index"})


@dataclass(frozen=True, slots=True)
class Column:
    """A requested column; the first of its `spellings` that occurs is used.

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
"""The column of case ids.

In a table with case_id and patient_id, case_id is used: a patient may have several cases.
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
    """Position of a header (first and last row from 0), and its column names."""

    first: int
    last: int
    names: tuple[str, ...]
    places: Mapping[str, int]


def spelled(name: object) -> str:
    """Return a column's name for comparison: lower case, with ``_`` for blanks and hyphens.

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


def find_header(sheet: Sheet, columns: Sequence[Column], any_of: bool) -> Header | None:
    """Return the first row, or pair of rows, that names the requested columns."""
    rows = sheet.rows[: MOST_TITLES + 2]
    if not columns:
        return find_full_header(rows)
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


def with_other_columns(header: Header) -> Header:
    """Return a header that also has the other columns, except an index."""
    places = dict(header.places)
    for index, name in enumerate(header.names):
        if name and index not in places.values() and not (index == 0 and is_index_name(name)):
            places.setdefault(name, index)
    return replace(header, places=places)


def find_full_header(rows: Sequence[Sequence[object]]) -> Header | None:
    """Return the first row that names nearly as many columns as any other row."""
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
    """Return the position of each column, or None if a required column is missing."""
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
    """Return all positions of a requested column, preferring exact spelling."""
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
    """Return whether a first column without a name holds ids and not row numbers."""
    return any(not str(row[0]).strip().isdecimal() for row in rows if row and not is_blank(row[0]))


def require_once(path: Path, names: Sequence[str], columns: Sequence[Column]) -> None:
    """Raise FormatError if two columns of a header match one requested column."""
    for column in columns:
        found = find_columns(names, column)
        if len(found) > 1:
            listed = ", ".join(str(index + 1) for index in found)
            raise FormatError(
                f"expected one column {column.name} in {path}, found {len(found)} (columns "
                f"{listed}): keep the right one"
            )


def explain_missing(
    path: Path, sheets: Sequence[Sheet], columns: Sequence[Column], any_of: bool
) -> FormatError:
    """Return the error for a file that lacks requested columns, naming them."""
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
