"""The frozen list of cases that count: ids and, where the list has them, what their masks are."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.clinical.rules import is_missing, parse_id
from napari_mamamia.io.files.csv_text import from_csv_text
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.foreign import open_plain, reads
from napari_mamamia.io.files.table_text import decoded
from napari_mamamia.io.tables.spreadsheets import read_sheets

_IDS: Final = ("case_id", "patient_id", "case", "id")
_DIGESTS: Final = ("sha256", "hash")
_DIGITS: Final = 64
_TABLES: Final = (".csv", ".xlsx", ".ods")


@dataclass(frozen=True)
class CaseList:
    """The cases that count, in their order, each once.

    `digests` are the SHA-256 of each reference file in hexadecimal, "" where the list has none.

    Raises
    ------
    ValueError
        If there is no case, or one comes twice (letter case does not part them).
    """

    name: str
    case_ids: tuple[str, ...]
    digests: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.case_ids:
            raise ValueError(f"expected one case or more in {self.name}, got none: list them")
        seen: set[str] = set()
        for case_id in self.case_ids:
            if case_key(case_id) in seen:
                raise ValueError(
                    f"expected each case once in {self.name}, got {case_id} twice (letter case "
                    "does not count): keep one of them"
                )
            seen.add(case_key(case_id))
        if not self.digests:
            object.__setattr__(self, "digests", ("",) * len(self.case_ids))
        if len(self.digests) != len(self.case_ids):
            raise ValueError(f"{self.name}: each case has a digest or none does")

    @cached_property
    def keys(self) -> frozenset[str]:
        """The `case_key` of every case."""
        return frozenset(case_key(case_id) for case_id in self.case_ids)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of ids and digests, whatever their order."""
        lines = (
            f"{case_key(case_id)}\t{digest}\n"
            for case_id, digest in zip(self.case_ids, self.digests, strict=True)
        )
        return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()

    def __contains__(self, case_id: object) -> bool:
        return isinstance(case_id, str) and case_key(case_id) in self.keys


@reads("a list of cases", "write one case id on each line, or a table with the column case_id")
def read_case_list(path: Path) -> CaseList:
    """Return the cases that a file lists.

    A ``.csv``, ``.xlsx`` or ``.ods`` table has the column case_id (or patient_id) and may have
    sha256, of each reference file. Any other file has an id on each line, as it is or as a cell of
    our own tables has it; lines that begin with # and empty ones are passed over.

    Raises
    ------
    FormatError
        If the file cannot be read, lists no case or one case twice, or a digest is none.
    """
    try:
        if path.suffix.lower() in _TABLES:
            ids, digests = _read_table(path)
        else:
            ids, digests = _read_lines(path), []
        return CaseList(path.name, tuple(ids), tuple(digests))
    except FormatError:
        raise
    except ValueError as error:
        raise FormatError(f"expected a list of cases at {path}, but {error}") from error


def _read_lines(path: Path) -> list[str]:
    try:
        with open_plain(path) as stream:
            text, note = decoded(stream.read())
    except OSError as error:
        raise FormatError(
            f"expected a list of cases at {path}, but {error.strerror or error}: correct its name"
        ) from error
    if note:
        raise FormatError(f"expected a list of cases in UTF-8 at {path}, but {note}: save it again")
    lines = (line.strip() for line in text.splitlines())
    ids = [parse_id(from_csv_text(line)) for line in lines if line and not line.startswith("#")]
    return ids[1:] if ids and ids[0].casefold() in _IDS else ids


def _read_table(path: Path) -> tuple[list[str], list[str]]:
    sheet = next(read_sheets(path, f"Reading {path.name}"), None)
    if sheet is None or not sheet.rows:
        raise ValueError("it is empty: list the cases")
    header = [str(cell or "").strip().casefold() for cell in sheet.rows[0]]
    at = next((header.index(name) for name in _IDS if name in header), None)
    if at is None:
        raise ValueError(
            f"its first row is {', '.join(filter(None, header)) or 'empty'}: name a column case_id"
        )
    digest_at = next((header.index(name) for name in _DIGESTS if name in header), None)
    ids: list[str] = []
    digests: list[str] = []
    for number, row in enumerate(sheet.rows[1:], 2):
        if all(is_missing(cell) for cell in row):
            continue
        try:
            ids.append(parse_id(row[at] if at < len(row) else None))
        except ValueError as error:
            raise ValueError(f"row {number}: {error}") from None
        if digest_at is not None:
            digests.append(_parse_digest(row[digest_at] if digest_at < len(row) else None, number))
    return ids, digests


def _parse_digest(cell: object, row: int) -> str:
    if is_missing(cell):
        return ""
    text = str(cell).strip().lower()
    if len(text) == _DIGITS and not set(text) - set("0123456789abcdef"):
        return text
    raise ValueError(f"row {row}: {cell} is no SHA-256 of {_DIGITS} hexadecimal digits")
