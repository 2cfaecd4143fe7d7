"""What a clinical table holds: its columns, what is read of them, and what else they may be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from napari_mamamia.core.cohort import FIELDS, Cohort
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.io.clinical.clinical import cohort_of_sheet, other_sheets
from napari_mamamia.io.clinical.columns import (
    BY_NAME,
    MOST_TITLES,
    ColumnChoice,
    Header,
    columns_for,
    find_header,
)
from napari_mamamia.io.clinical.proposal import ColumnProposal, propose_columns
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.tables.spreadsheets import Sheet, paced_sheets

__all__ = ["TableOverview", "overview_job"]


@dataclass(frozen=True, slots=True)
class TableOverview:
    """The columns of a table, the fields they are read as, and proposals for fields without value.

    `fields` has the names of a field's columns; without ``case_id`` nothing could be read, and
    `cohort` is None.
    """

    columns: tuple[str, ...]
    fields: Mapping[str, tuple[str, ...]]
    cohort: Cohort | None
    proposals: tuple[ColumnProposal, ...]

    def confirmed(self, choice: ColumnChoice) -> ColumnChoice:
        """Return a choice that fixes the columns that are read and those that are proposed."""
        read = {
            field: names[0]
            for field, names in self.fields.items()
            if len(names) == 1 and field not in dict(choice.names)
        }
        proposed = {proposal.field: proposal.column for proposal in self.proposals}
        return choice.with_names({**read, **proposed})


@reads("a readable clinical table", "save it again as .xlsx or CSV UTF-8")
def overview_job(path: Path, choice: ColumnChoice = BY_NAME) -> Job[TableOverview]:
    """Return a job for the overview of a table, whether or not it has a column of ids.

    Raises
    ------
    FormatError
        If the file cannot be read, holds nothing, or lacks a column that was fixed.
    """
    text = f"Reading {path.name}"
    choice = columns_for(path, choice)
    best: tuple[int, Sheet] | None = None
    sheets = paced_sheets(path)
    for sheet in sheets:
        if sheet is None:
            yield Progress(0, 1, text)
            continue
        header = find_header(sheet.rows, choice)
        if header is not None:
            others = yield from other_sheets(sheets, sheet, choice, text)
            sheet = replace(sheet, note=others) if others else sheet
            cohort = yield from cohort_of_sheet(header, sheet, text, choice)
            return _overview(header, sheet, cohort, choice)
        row = _likely_header(sheet.rows)
        if best is None or _n_names(sheet, row) > _n_names(best[1], best[0]):
            best = (row, sheet)
    if best is None or not _n_names(best[1], best[0]):
        raise FormatError(f"expected a table in {path}, but it has no cell: choose another file")
    row, sheet = best
    names = {at: str(cell).strip() for at, cell in enumerate(sheet.rows[row]) if _is_name(cell)}
    return _overview(Header(row, names, {}, {}), sheet, None, choice)


def _overview(
    header: Header, sheet: Sheet, cohort: Cohort | None, choice: ColumnChoice
) -> TableOverview:
    known = {field for field, n in cohort.coverage().items() if n} if cohort else set()
    known |= {*dict(choice.names), *(["case_id"] if cohort else [])}
    wanted = [field for field in ("case_id", *FIELDS) if field not in known]
    used = {at for field in header.fields for at in header.fields[field]}
    free = {at: name for at, name in header.names.items() if at not in used}
    return TableOverview(
        tuple(header.names.values()),
        {
            field: tuple(header.names[at] for at in places)
            for field, places in header.fields.items()
        },
        cohort,
        propose_columns(free, sheet.rows[header.row + 1 :], wanted),
    )


def _likely_header(rows: Sequence[Sequence[object]]) -> int:
    """Return the first of the rows with the most different texts, of the uppermost ones."""
    counts = [len({str(cell) for cell in row if _is_name(cell)}) for row in rows[: MOST_TITLES + 1]]
    return counts.index(max(counts)) if counts else 0


def _n_names(sheet: Sheet, row: int) -> int:
    return sum(map(_is_name, sheet.rows[row])) if row < len(sheet.rows) else 0


def _is_name(cell: object) -> bool:
    """Whether a cell may name a column: a text that is no number."""
    if not isinstance(cell, str) or not cell.strip():
        return False
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return True
    return False
