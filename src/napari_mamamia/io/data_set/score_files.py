"""Score and response tables that somebody else computed: read row by row, bad rows told."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final, Generic, TypeVar

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import paced
from napari_mamamia.core.records import CaseFailure, ScoreStatus
from napari_mamamia.io.clinical.rules import is_missing, parse_id, parse_pcr
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.tables.sheet_gaps import cell_name
from napari_mamamia.io.tables.spreadsheets import Sheet, read_sheets, wrong_length

_ID_NAMES: Final = ("case_id", "patient_id")
_DEFINITION: Final = "metric_definition"
_DECIMAL_COMMA: Final = re.compile(r"^(-?\d{1,2}),(\d+)$")
"""As "0,83" in a table of a country that writes so; a share has no thousands to part."""
_DEFINITIONS: Final = 3
"""How many different ones are told: more are no definition but notes."""

_NAMES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "dsc": ("dsc",),
        "norm_hd": ("norm_hd", "normhd"),
        "pcr": ("pcr",),
        "score": ("score",),
        "status": ("status",),
    }
)
"""Spellings of each column, in lower case with ``_`` for blanks."""


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """Dice (0 to 1) and normalised Hausdorff distance (0 upwards) of a case; nan: undefined.

    `status` is what our own tables say of a case; one that is no such word is ok.
    """

    case_id: str
    dsc: float
    norm_hd: float
    status: ScoreStatus = ScoreStatus.OK


@dataclass(frozen=True, slots=True)
class ResponseRow:
    """The predicted response of a case and its probability, nan where none is given."""

    case_id: str
    pcr: bool
    score: float


T = TypeVar("T", ScoreRow, ResponseRow)


@dataclass(frozen=True, slots=True)
class ReadRows(Generic[T]):
    """The rows of a table in its order, and a failure with the row number for each bad one.

    `unnamed` of the failures have no case id. `definition` is what the table says of how its
    numbers were made, "" if it does not. `twice` are the `case_key` of cases with further rows, of
    which the first is among `rows`.
    """

    rows: tuple[T, ...]
    failures: tuple[CaseFailure, ...]
    unnamed: frozenset[str] = frozenset()
    definition: str = ""
    twice: frozenset[str] = frozenset()


@reads("a readable score table", "save it again as .xlsx or CSV UTF-8")
def read_score_table(path: Path) -> ReadRows[ScoreRow]:
    """Return the columns case_id (or patient_id), dsc and norm_hd of a table.

    The table is .csv or .xlsx. It may have dsc alone.

    An empty cell is an undefined number; a row without either is a bad row unless its status says
    that the prediction is empty, which needs no number, and so is one with a
    number outside its range, without id, or of a case that is there twice. Row 1 is the header;
    letter case does not part case ids. A row ``metric_definition`` says in its next cell how the
    numbers were made, and so does a column of that name. Further columns are passed over.

    Raises
    ------
    FormatError
        If the file cannot be read, lacks a column or has no row.
    """

    def row(case_id: str, cells: Mapping[str, object]) -> ScoreRow:
        dsc = _parse_number("dsc", cells["dsc"], 1.0)
        norm_hd = _parse_number("norm_hd", cells["norm_hd"], math.inf)
        name = str(cells["status"] or "")
        status = ScoreStatus(name) if name in set(ScoreStatus) else ScoreStatus.OK
        has_number = not (math.isnan(dsc) and math.isnan(norm_hd))
        if not has_number and status is not ScoreStatus.PREDICTION_EMPTY:
            raise ValueError("dsc and norm_hd are both empty, so there is nothing to count")
        return ScoreRow(case_id, dsc, norm_hd, status)

    read = _read_rows(path, ("dsc",), ("norm_hd", "status"), row)
    # Nobody knows which of two rows counts.
    rows = tuple(one for one in read.rows if case_key(one.case_id) not in read.twice)
    return replace(read, rows=rows)


@reads("a readable table of responses", "save it again as .xlsx or CSV UTF-8")
def read_response_table(path: Path) -> ReadRows[ResponseRow]:
    """Return the columns case_id (or patient_id), pcr and score of a table.

    The table is .csv or .xlsx.

    `pcr` is the predicted class (0 or 1), `score` the probability of response; the column score
    may be missing and its cells empty. Bad rows and ids as in `read_score_table`.

    Raises
    ------
    FormatError
        If the file cannot be read, lacks a column or has no row.
    """

    def row(case_id: str, cells: Mapping[str, object]) -> ResponseRow:
        pcr = parse_pcr(cells["pcr"])
        if pcr is None:
            raise ValueError("pcr is empty: each case needs a predicted 0 or 1")
        return ResponseRow(case_id, pcr, _parse_number("score", cells["score"], 1.0))

    return _read_rows(path, ("pcr",), ("score",), row)


def _read_rows(
    path: Path,
    required: Sequence[str],
    optional: Sequence[str],
    parse: Callable[[str, Mapping[str, object]], T],
) -> ReadRows[T]:
    text = f"Reading {path.name}"
    sheet = _first_sheet(path, text)
    header = sheet.rows[0] if sheet.rows else ()
    places = _find_columns(header, required, optional, path)
    plain = [_plain_name(name) for name in header]
    definition_at = plain.index(_DEFINITION) if _DEFINITION in plain else None
    rows: dict[str, T] = {}
    failures: list[CaseFailure] = []
    unnamed: set[str] = set()
    twice: set[str] = set()
    definitions: list[str] = []
    first_row: dict[str, int] = {}
    number = 1
    for line in paced(sheet.rows[1:], text, len(sheet.rows)):
        number += 1
        if all(cell is None or cell == "" for cell in line) and number - 1 not in sheet.gaps:
            continue
        if definition := _read_definition(line):
            definitions.append(definition)
            continue
        cells = {name: line[at] if at < len(line) else None for name, at in places.items()}
        name = f"row {number}"
        unnamed.add(name)
        try:
            name = parse_id(cells["case_id"])
            unnamed.discard(f"row {number}")
            key = case_key(name)
            if key in first_row:
                twice.add(key)
                raise ValueError(f"the case is in row {first_row[key]} already")  # noqa: TRY301
            _check_whole(sheet, number - 1, line, places)
            if definition_at is not None and definition_at < len(line):
                definitions.append(str(line[definition_at] or ""))
            rows[key] = parse(name, {**dict.fromkeys(optional), **cells})
            first_row[key] = number
        except ValueError as reason:
            failures.append(CaseFailure(name, f"row {number} of {path.name}: {reason}"))
    if not rows and not failures:
        raise FormatError(
            f"expected a row for each case in {path}, but there is none below its header: look "
            "whether the program that wrote it came to its end"
        )
    words = [text.strip() for text in dict.fromkeys(definitions) if text.strip()]
    return ReadRows(
        tuple(rows.values()),
        tuple(failures),
        frozenset(unnamed),
        "; ".join(words[:_DEFINITIONS]),
        frozenset(twice),
    )


def _read_definition(line: Sequence[object]) -> str:
    """Return what a row says of how the numbers were made, "" where it is a case's."""
    texts = [str(cell).strip() for cell in line if not is_missing(cell)]
    is_one = bool(texts) and texts[0].lstrip("# ").casefold().rstrip(":") == _DEFINITION
    return texts[1] if is_one and len(texts) > 1 else ""


def _check_whole(
    sheet: Sheet, place: int, line: Sequence[object], places: Mapping[str, int]
) -> None:
    """Raise ValueError where a cell only looks empty, or cells of a text row moved or are lost."""
    gaps = sheet.gaps.get(place, {})
    for at in sorted(places.values()):
        if at in gaps:
            raise ValueError(f"{cell_name(place, at)} is {gaps[at]}")
    wrong = wrong_length(sheet, line, len(sheet.rows[0]))
    if wrong:
        raise ValueError(wrong)


def _first_sheet(path: Path, text: str) -> Sheet:
    sheet = next(read_sheets(path, text), None)
    if sheet is not None and sheet.note:
        raise FormatError(
            f"expected a score table in UTF-8 at {path}, but {sheet.note}: save it again as "
            "CSV UTF-8 or as .xlsx"
        )
    if sheet is not None:
        return sheet
    raise FormatError(f"expected a table in {path}, but it has no sheet: choose another file")


def _find_columns(
    header: Sequence[object], required: Sequence[str], optional: Sequence[str], path: Path
) -> dict[str, int]:
    """Return where the columns are; two with one name that is read are refused."""
    places: dict[str, list[int]] = {}
    for at, name in enumerate(header):
        places.setdefault(_plain_name(name), []).append(at)
    names = {"case_id": _ID_NAMES, **{name: _NAMES[name] for name in (*required, *optional)}}
    found_at = {
        column: places[next(name for name in spellings if name in places)]
        for column, spellings in names.items()
        if any(name in places for name in spellings)
    }
    missing = [name for name in ("case_id", *required) if name not in found_at]
    if missing:
        header_names = ", ".join(str(name) for name in header if name) or "no header"
        raise FormatError(
            f"expected the columns case_id (or patient_id), {', '.join((*required, *optional))} in "
            f"{path}, found {header_names}: {', '.join(missing)} is missing; name the columns so"
        )
    for column, ats in found_at.items():
        if len(ats) > 1:
            raise FormatError(
                f"expected one column {column} in {path}, found {len(ats)} (columns "
                f"{', '.join(str(at + 1) for at in ats)}): keep the one that counts"
            )
    return {column: ats[0] for column, ats in found_at.items()}


def _plain_name(name: object) -> str:
    return "_".join(str(name or "").casefold().replace("_", " ").split())


def _parse_number(name: str, cell: object, highest: float) -> float:
    """Return a number from 0 to `highest`, nan for a missing one."""
    if is_missing(cell):
        return math.nan
    try:
        number = float(_DECIMAL_COMMA.sub(r"\1.\2", str(cell).strip()))
    except ValueError:
        raise ValueError(f"{name} must be a number or empty, got {cell!r}") from None
    if math.isfinite(number) and 0 <= number <= highest:
        return number
    bounds = "from 0 to 1" if highest == 1 else "0 or above and finite"
    raise ValueError(f"{name} must be {bounds}, got {cell!r}")
