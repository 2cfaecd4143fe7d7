"""Summarise a clinical table: its columns, their fields, and proposals for missing fields."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from napari_mamamia.core.cohort import FIELDS, Cohort
from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.clinical.clinical import cohort_of_sheet, other_sheets
from napari_mamamia.io.clinical.columns import (
    BY_NAME,
    COLUMNS,
    ColumnChoice,
    Header,
    columns_for,
    find_header,
)
from napari_mamamia.io.clinical.rows import PARSERS
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.privacy.identifiers import folded
from napari_mamamia.io.tables.cells import is_missing
from napari_mamamia.io.tables.headers import MOST_TITLES
from napari_mamamia.io.tables.spreadsheets import Sheet, read_sheets

# The user confirms a proposal; no proposal is used automatically. A column is proposed because of
# its name, its unit, and the number of values that can be read as the field.


@dataclass(frozen=True, slots=True)
class ColumnProposal:
    """A field, the name of a column that may contain it, and the reason for the proposal."""

    field: str
    column: str
    reason: str


_NAMES: Final[Mapping[str, re.Pattern[str]]] = MappingProxyType(
    {
        "case_id": re.compile(
            r"(patient|case|subject|participant|study|record|pat|fall|caso)s?"
            r"( (id|identifier|number|no|nr|code|name))?|id|identifier|mrn|pseudonym"
            r"|(fall|patient(en)?) ?(nummer|nr|id|kennung)"
            r"|identifiant( patient)?|numero (de )?patient"
            r"|id (del )?(paciente|paziente|caso|du patient)|(paciente|paziente)( id)?"
        ),
        "dataset": re.compile(r".*\b(data ?set|collection|cohort|trial)\b.*"),
        "age": re.compile(r"(.* )?(age|alter|edad|eta)\b.*"),
        "menopausal_status": re.compile(r".*\bmeno.*"),
        "breast_density": re.compile(r".*\b(densi|(brust)?dichte|acr\b|fibrogland).*"),
        "tumour_subtype": re.compile(r".*\b(sub ?type|molecular)\b.*"),
        "pcr": re.compile(
            r".*(\b(path|yp)?pcr\b|complete response|path(ologic(al)?)? response"
            r"|\brcp\b|komplettremission|reponse complete|(respuesta|risposta) .*completa).*"
        ),
        "acquisition_times_s": re.compile(r".*\b(acquisition|phase|scan)s? times?\b.*"),
    }
)
"""Patterns for column names in English, German, French, Spanish and Italian.

Names are compared in lower case, without accents, and with spaces in place of punctuation.
"""
_OTHER_UNITS: Final[Mapping[str, re.Pattern[str]]] = MappingProxyType(
    {
        "age": re.compile(
            r"\b(months?|mo|weeks?|days?|d|group|bin|category|monate?n?|tage|mois|meses|mesi|gruppe)\b"
        ),
        "acquisition_times_s": re.compile(r"\b(ms|milliseconds?|min|minutes?|h|hours?)\b"),
    }
)
"""Units that the reader of a field does not expect; values in these units are not converted."""
_UNITS: Final = re.compile(r"\b(y|yr|yrs|years?|s|sec|secs|seconds?)\b")
_AGES: Final = (15, 110)
_SHARE_READ: Final = 0.9
"""Smallest fraction of a column's values that must be readable as the field (our choice)."""
_SHOWN: Final = 3


def propose_columns(
    names: Mapping[int, str], rows: Sequence[Sequence[object]], wanted: Iterable[str]
) -> tuple[ColumnProposal, ...]:
    """Return a matching column for each requested field; no column is proposed twice.

    Parameters
    ----------
    names
        The unused columns, by index from 0.
    rows
        The rows below the header.
    wanted
        The fields to find, from `io.clinical.columns.COLUMNS`.
    """
    free = dict(names)
    proposals = []
    fields = set(wanted)
    for field in (field for field in COLUMNS if field in fields):
        fitting = {
            index: why
            for index, name in free.items()
            if (why := _explain_match(field, name, _read_column(rows, index)))
        }
        if fitting:
            at = next(iter(fitting))
            others = ", ".join(free[other] for other in fitting if other != at)
            also = f" (other candidates: {others})" if others else ""
            proposals.append(ColumnProposal(field, free.pop(at), fitting[at] + also))
    return tuple(proposals)


def _read_column(rows: Sequence[Sequence[object]], at: int) -> list[object]:
    return [row[at] for row in rows if at < len(row) and not is_missing(row[at])]


def _explain_match(field: str, name: str, values: Sequence[object]) -> str:
    plain = " ".join(re.sub(r"[\W_]+", " ", folded(name)).split())
    other_unit = _OTHER_UNITS.get(field)
    if not _NAMES[field].fullmatch(plain) or (other_unit and other_unit.search(plain)):
        return ""
    read = [value for cell in values if (value := _parse_value(field, cell)) is not None]
    if not values or len(read) < _SHARE_READ * len(values) or not _is_likely_field(field, read):
        return ""
    unit = _UNITS.search(plain)
    return f"its name{f', its unit {unit[0]}' if unit else ''}, and {_describe_values(read)}"


def _parse_value(field: str, cell: object) -> object:
    try:
        parse: Callable[[object], object] = PARSERS[field]
        return parse(cell)
    except ValueError:
        return None


def _is_likely_field(field: str, values: Sequence[object]) -> bool:
    if field == "case_id":
        return len(set(values)) == len(values)
    if field == "age":
        low, high = _AGES
        return all(isinstance(value, float) and low <= value <= high for value in values)
    return True


def _describe_values(values: Sequence[object]) -> str:
    numbers = [value for value in values if isinstance(value, float)]
    if len(numbers) == len(values):
        return f"{len(values):,} values from {min(numbers):g} to {max(numbers):g}"
    shown = list(dict.fromkeys(str(value) for value in values))[:_SHOWN]
    return f"{len(values):,} values such as {', '.join(shown)}"


@dataclass(frozen=True, slots=True)
class TableOverview:
    """The columns of a table, their fields, and proposals for fields without a column.

    `fields` has the names of each field's columns. Without ``case_id`` nothing can be read, and
    `cohort` is None.
    """

    columns: tuple[str, ...]
    fields: Mapping[str, tuple[str, ...]]
    cohort: Cohort | None
    proposals: tuple[ColumnProposal, ...]

    def confirmed(self, choice: ColumnChoice) -> ColumnChoice:
        """Return a column choice with the recognised and the proposed columns."""
        read = {
            field: names[0]
            for field, names in self.fields.items()
            if len(names) == 1 and field not in dict(choice.names)
        }
        proposed = {proposal.field: proposal.column for proposal in self.proposals}
        return choice.with_names({**read, **proposed})


@reads("a readable clinical table", "save it again as .xlsx or CSV UTF-8")
def overview_job(path: Path, choice: ColumnChoice = BY_NAME) -> TableOverview:
    """Return the summary of a table, with or without an id column.

    Raises
    ------
    FormatError
        If the file cannot be read, is empty, or lacks a fixed column.
    """
    text = f"Reading {path.name}"
    choice = columns_for(path, choice)
    best: tuple[int, Sheet] | None = None
    sheets = read_sheets(path, text)
    for sheet in sheets:
        header = find_header(sheet.rows, choice)
        if header is not None:
            others = other_sheets(sheets, sheet, choice)
            sheet = replace(sheet, note=others) if others else sheet
            cohort = cohort_of_sheet(header, sheet, text, choice)
            return _build_overview(header, sheet, cohort, choice)
        row = _likely_header(sheet.rows)
        if best is None or _n_names(sheet, row) > _n_names(best[1], best[0]):
            best = (row, sheet)
    if best is None or not _n_names(best[1], best[0]):
        raise FormatError(f"expected a table in {path}, but it has no cells: choose another file")
    row, sheet = best
    names = {
        index: str(cell).strip() for index, cell in enumerate(sheet.rows[row]) if _is_name(cell)
    }
    return _build_overview(Header(row, names, {}, {}), sheet, None, choice)


def _build_overview(
    header: Header, sheet: Sheet, cohort: Cohort | None, choice: ColumnChoice
) -> TableOverview:
    filled_fields = {field for field, n in cohort.coverage().items() if n} if cohort else set()
    filled_fields |= {*dict(choice.names), *(["case_id"] if cohort else [])}
    missing_fields = [field for field in ("case_id", *FIELDS) if field not in filled_fields]
    used = {index for field in header.fields for index in header.fields[field]}
    free = {index: name for index, name in header.names.items() if index not in used}
    return TableOverview(
        tuple(header.names.values()),
        {
            field: tuple(header.names[index] for index in places)
            for field, places in header.fields.items()
        },
        cohort,
        propose_columns(free, sheet.rows[header.row + 1 :], missing_fields),
    )


def _likely_header(rows: Sequence[Sequence[object]]) -> int:
    counts = [len({str(cell) for cell in row if _is_name(cell)}) for row in rows[: MOST_TITLES + 1]]
    return counts.index(max(counts)) if counts else 0


def _n_names(sheet: Sheet, row: int) -> int:
    return sum(map(_is_name, sheet.rows[row])) if row < len(sheet.rows) else 0


def _is_name(cell: object) -> bool:
    if not isinstance(cell, str) or not cell.strip():
        return False
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return True
    return False
