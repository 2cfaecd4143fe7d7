"""Read table columns that a user names, with ids, numbers, yes/no values or text."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.names import name_some
from napari_mamamia.core.progress import paced
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.io.files.file_names import alike_ids
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.tables.cells import UNSEEN, is_missing, parse_id, parse_label
from napari_mamamia.io.tables.headers import Column, is_id_name
from napari_mamamia.io.tables.table import BadCell, Table, read_table
from napari_mamamia.io.tables.text_rows import read_text

_MOST_DRAWS: Final = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class NamedTable:
    """The usable rows of a table, stored by column; `failures` lists rows without a unique id."""

    table: Table
    failures: tuple[CaseFailure, ...]

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.table.path.name

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the requested columns."""
        return tuple(self.table.header.places)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.table.rows)

    @property
    def row_numbers(self) -> tuple[int, ...]:
        """File row number of each row, counted from 1."""
        return tuple(row.number for row in self.table.rows)

    @property
    def first_row(self) -> int:
        """File row number of the first row below the header."""
        return self.table.header.last + 2

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user about rows that are not cases and about a guessed encoding."""
        return tuple(f"{self.name}: {note}" for note in self.table.notes)

    def texts(self, column: str) -> tuple[str, ...]:
        """Return a column as strings; a missing cell becomes "", and 7.0 becomes "7"."""
        return tuple(map(_as_text, self.table.column(column)))

    def ids(self, column: str) -> tuple[tuple[str, ...], tuple[BadCell, ...]]:
        """Return a column of ids; missing and repeated ids become "" and are reported."""
        ids, bad, first = list[str](), list[BadCell](), dict[str, int]()
        for row, cell in zip(self.table.rows, self.table.column(column), strict=True):
            try:
                name = parse_id(None if is_missing(cell) else cell)
            except ValueError as error:
                name, reason = "", str(error)
            else:
                reason = f"{column} {name} is already in row {first[name]}" if name in first else ""
                first.setdefault(name, row.number)
            bad += [BadCell(len(ids), reason)] if reason else []
            ids.append("" if reason else name)
        return tuple(ids), tuple(bad)

    def note_alike(self, column: str) -> tuple[str, ...]:
        """Return a note about ids that may refer to the same case, or () if there are none."""
        groups = alike_ids(filter(None, self.texts(column)))
        if not groups:
            return ()
        pairs = [" and ".join(map(repr, group)) for group in groups]
        return (
            (
                f"{self.name}: {column} {name_some(pairs)} are treated as different, although "
                "they differ only in letter case, blanks or leading zeros; if they denote the "
                "same case, spell them the same way"
            ),
        )

    def yes_no(self, column: str) -> tuple[NDArray[np.float64], tuple[BadCell, ...]]:
        """Return a yes/no column as 1 and 0, with NaN for missing and invalid cells."""
        labels, bad = self.table.cells(column, parse_label)
        return np.array(labels, dtype=np.float64), tuple(bad)

    def numbers(self, column: str) -> tuple[NDArray[np.float64], tuple[BadCell, ...]]:
        """Return a column of finite numbers, with NaN for missing and invalid cells.

        Raises
        ------
        FormatError
            If the decimal separator of the column is ambiguous (see `Table.numbers`).
        """
        values, bad = self.table.numbers(column)
        return np.array(values, dtype=np.float64), tuple(bad)


@reads("a readable table", "save it again as .xlsx or CSV UTF-8")
def read_named_columns(path: Path, columns: Sequence[str] | None = None) -> NamedTable:
    """Return the named columns of a table, or all columns; the first contains the ids.

    Names are first compared exactly, then ignoring letter case, blanks and ``_``.

    Raises
    ------
    FormatError
        If the file cannot be read or has no row, or if a column is missing or occurs twice.
    """
    wanted = [
        Column(
            name.strip(),
            (name.strip(),),
            is_needed=True,
            is_id=index == 0 and is_id_name(name),
            is_exact=True,
        )
        for index, name in enumerate(columns or ())
    ]
    table = read_table(path, wanted)
    twice = [name for name, n in Counter(filter(None, table.header.names)).items() if n > 1]
    if columns is None and twice:
        raise FormatError(f"{path} has several columns named {twice[0]}; keep the correct column")
    if columns is not None:
        places = {name: table.header.places[name.strip()] for name in columns}
        table = replace(table, header=replace(table.header, places=places))
    usable = tuple(row for row in table.rows if not row.problem)
    if not usable:
        raise FormatError(
            f"expected rows below the header of {path}, but no row can be read: check whether the "
            "program that wrote the file finished"
        )
    failures = tuple(
        CaseFailure(f"row {row.number}", f"row {row.number} of {path.name}: {row.problem}")
        for row in table.rows
        if row.problem
    )
    return NamedTable(replace(table, rows=usable), failures)


@reads("a resamples file", "write one line for each resample, with row numbers separated by commas")
def read_draws(path: Path) -> tuple[tuple[str, ...], ...]:
    """Return the resamples in a .csv file without a header, as the cell strings of each line.

    Raises
    ------
    FormatError
        If the file cannot be read, is empty, or has more than 100,000 lines.
    """
    try:
        content, _ = read_text(path)
    except (OSError, ValueError) as error:
        raise FormatError(
            f"expected a resamples file at {path}, but {error}: write the file again as text"
        ) from error
    lines = [line for line in content.splitlines() if line.strip(" ,;\t")]
    if not 1 <= len(lines) <= _MOST_DRAWS:
        raise FormatError(
            f"expected 1 to {_MOST_DRAWS:,} resamples in {path}, one per line, but found "
            f"{len(lines):,}: choose another file"
        )
    return tuple(
        tuple(cell.strip().strip('"') for cell in re.split("[,;\t]", line) if cell.strip())
        for line in paced(lines, f"Reading {path.name}")
    )


def _as_text(cell: object) -> str:
    if is_missing(cell):
        return ""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return UNSEEN.sub("", str(cell)).strip()
