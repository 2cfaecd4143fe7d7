"""Text cells in .csv files, protected against being run as formulas by an apostrophe.

A case id, a reader's tag or a column name may come from other people, and a spreadsheet program
runs ``=HYPERLINK(...)`` in a table. An apostrophe turns a formula into plain text, and our reader
removes this apostrophe again. Numbers stay numbers. Source: OWASP, "CSV Injection". Full-width
characters are included, because East Asian editions treat them like the plain characters.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from typing import Final, TextIO

_MARK: Final = "'"
_FORMULA: Final = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")


def as_csv_text(text: str) -> str:
    """Return a string in the form in which it is written to a .csv file.

    Examples
    --------
    >>> as_csv_text("=1+1"), as_csv_text("-1.5"), as_csv_text("DUKE_001"), as_csv_text("'=x")
    ("'=1+1", '-1.5', 'DUKE_001', "''=x")
    """
    return _MARK + text if _is_formula(text) else text


def from_csv_text(cell: str) -> str:
    """Return the original string for a cell written by `as_csv_text`; others are unchanged.

    Examples
    --------
    >>> from_csv_text("'=1+1"), from_csv_text("'quoted'"), from_csv_text("-1.5")
    ('=1+1', "'quoted'", '-1.5')
    """
    return cell[1:] if cell[:1] == _MARK and _is_formula(cell[1:]) else cell


def write_csv(rows: Iterable[Sequence[object]], out: TextIO, line_end: str = "\n") -> None:
    """Write rows as .csv; strings are converted by `as_csv_text`, and None is an empty cell."""
    table = csv.writer(out, lineterminator=line_end)
    for row in rows:
        table.writerow([as_csv_text(cell) if isinstance(cell, str) else cell for cell in row])


def _is_formula(text: str) -> bool:
    core = text.lstrip(_MARK)
    return _FORMULA.match(core) is not None and not is_number(core)


def is_number(text: str) -> bool:
    """Return whether a string can be parsed as a number, including ``nan``."""
    try:
        float(text)
    except ValueError:
        return False
    return True
