"""The fixed list of cases to score: case ids, and optional digests of their masks."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.files.csv_text import from_csv_text
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.tables.cells import is_missing, parse_id
from napari_mamamia.io.tables.headers import IDS, Column
from napari_mamamia.io.tables.spreadsheets import TABLES
from napari_mamamia.io.tables.table import read_table
from napari_mamamia.io.tables.text_rows import read_text

_COLUMNS: Final = (IDS, Column("sha256", ("sha256", "hash")))
_DIGITS: Final = 64


@dataclass(frozen=True)
class CaseList:
    """The listed cases in order, without duplicates.

    `digests` are the SHA-256 digests of the reference files in hexadecimal, or "" if the list has
    no digests.

    Raises
    ------
    ValueError
        If there is no case, or a case occurs twice (ignoring letter case).
    """

    name: str
    case_ids: tuple[str, ...]
    digests: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.case_ids:
            raise ValueError(f"{self.name} lists no cases; add the cases")
        seen: set[str] = set()
        for case_id in self.case_ids:
            if case_key(case_id) in seen:
                raise ValueError(
                    f"{self.name} lists {case_id} twice (ignoring letter case); keep one of the "
                    "entries"
                )
            seen.add(case_key(case_id))
        if not self.digests:
            object.__setattr__(self, "digests", ("",) * len(self.case_ids))
        if len(self.digests) != len(self.case_ids):
            raise ValueError(
                f"expected {self.name} to have digests for all cases or for none, but some are "
                "missing: add the missing digests, or remove all digests"
            )

    @cached_property
    def keys(self) -> frozenset[str]:
        """The `case_key` of every listed case."""
        return frozenset(case_key(case_id) for case_id in self.case_ids)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the ids and digests, independent of their order."""
        lines = (
            f"{case_key(case_id)}\t{digest}\n"
            for case_id, digest in zip(self.case_ids, self.digests, strict=True)
        )
        return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()

    def __contains__(self, case_id: object) -> bool:
        return isinstance(case_id, str) and case_key(case_id) in self.keys


@reads("a list of cases", "write one case id on each line, or a table with the column case_id")
def read_case_list(path: Path) -> CaseList:
    """Return the case list in a file.

    A ``.csv``, ``.xlsx`` or ``.ods`` table has the column case_id (or patient_id) and may have the
    column sha256 with the digest of each reference file. Any other file, and a ``.csv`` file with
    one column, has one id per line, plain or as in the tables of this software; empty lines and
    lines that begin with # are skipped.

    Raises
    ------
    FormatError
        If the file cannot be read, lists no case, lists a case twice, or has an invalid digest.
    """
    try:
        is_table = path.suffix.lower() in TABLES and path.suffix.lower() != ".txt"
        if is_table and not (path.suffix.lower() == ".csv" and _is_bare_list(path)):
            ids, digests = _read_table(path)
        else:
            ids, digests = _read_lines(path), []
        return CaseList(path.name, tuple(ids), tuple(digests))
    except FormatError:
        raise
    except ValueError as error:
        raise FormatError(f"cannot read a list of cases from {path}: {error}") from error


def _is_bare_list(path: Path) -> bool:
    """Return whether a CSV file has one column and no header."""
    try:
        text, _ = read_text(path)
    except OSError:
        return False
    header = from_csv_text(text.strip().partition("\n")[0].strip())
    has_one_column = not any(separator in text for separator in ",;\t")
    return has_one_column and header.casefold() not in IDS.spellings


def _read_lines(path: Path) -> list[str]:
    try:
        text, note = read_text(path)
    except OSError as error:
        raise FormatError(
            f"cannot read the list of cases {path}: {error.strerror or error}; correct the file "
            "name"
        ) from error
    if note:
        raise FormatError(
            f"expected a list of cases in UTF-8 at {path}, but {note}: save it as UTF-8"
        )
    lines = (line.strip() for line in text.splitlines())
    ids = [parse_id(from_csv_text(line)) for line in lines if line and not line.startswith("#")]
    return ids[1:] if ids and ids[0].casefold() in IDS.spellings else ids


def _read_table(path: Path) -> tuple[list[str], list[str]]:
    table = read_table(path, _COLUMNS)
    table.require_cases()
    ids: list[str] = []
    digests: list[str] = []
    for index, (row, cell) in enumerate(zip(table.rows, table.column("case_id"), strict=True)):
        try:
            ids.append(parse_id(cell))
        except ValueError as error:
            raise ValueError(f"row {row.number}: {error}") from None
        if table.has("sha256"):
            digests.append(_parse_digest(table.column("sha256")[index], row.number))
    return ids, digests


def _parse_digest(cell: object, row: int) -> str:
    if is_missing(cell):
        return ""
    text = str(cell).strip().lower()
    if len(text) == _DIGITS and not set(text) - set("0123456789abcdef"):
        return text
    raise ValueError(f"row {row}: {cell} is not a SHA-256 of {_DIGITS} hexadecimal digits")
