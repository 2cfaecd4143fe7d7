"""Read and summarise the clinical table of a list of cases, with ids spelled as in the list."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import wrap
from types import MappingProxyType
from typing import Final

from napari_mamamia.core.cohort import CaseRecord, Cohort, coverage_text
from napari_mamamia.core.errors import MissingColumnsError, Remedy
from napari_mamamia.core.names import count_of
from napari_mamamia.core.progress import gc_frozen, paced, report_progress
from napari_mamamia.io.clinical.clinical import read_clinical
from napari_mamamia.io.clinical.columns import BY_NAME, COLUMNS_FILE, ColumnChoice, columns_for
from napari_mamamia.io.clinical.overview import TableOverview, overview_job
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.tables.cells import parse_id
from napari_mamamia.scoring.cohort.groups import FAIRNESS_VARIABLES
from napari_mamamia.scoring.cohort.results import ClinicalTable

_WIDTH: Final = 96
_MATCHING: Final = "Matching cases with the clinical table"


_KEYS: Final[tuple[Callable[[CaseRecord], str | None], ...]] = (
    lambda record: record.case_id,
    lambda record: case_key(record.case_id),
    lambda record: _read_patient_id(record),
)


FAIRNESS: Final = "fairness"
RESPONSE: Final = "the score of responses"
_NEEDED: Final = MappingProxyType({FAIRNESS: FAIRNESS_VARIABLES, RESPONSE: ("pcr",)})


@gc_frozen()
def read_table(
    path: Path | None, choice: ColumnChoice = BY_NAME, purpose: str = FAIRNESS
) -> Cohort | None:
    """Return the clinical table at `path`, or None if `path` is None.

    Raises
    ------
    FormatError
        If the table cannot be read, or no case has a value for a field that `purpose` needs and
        that the user has not declared as absent.
    """
    report_progress(0, 1, "Reading the clinical table")
    return None if path is None else (needed_table(path, choice, purpose))


@gc_frozen()
def needed_table(path: Path, choice: ColumnChoice, purpose: str) -> Cohort:
    """Return a table with all fields that `purpose` needs; errors as in `read_table`."""
    choice = columns_for(path, choice)
    cohort = read_clinical(path, choice)
    empty = lacking(cohort, choice, purpose)
    if not empty:
        return cohort
    seen = overview_job(path, choice)
    proposals = [f'"{p.column}" as {p.field} for {p.reason}' for p in seen.proposals]
    lines = [
        (
            f"expected {path} to have values of {', '.join(empty)} for {purpose}, but found none "
            f"in {len(cohort.records):,} cases ({len(cohort.refused):,} rows could not be read)"
        ),
        *_wrap_lines("columns", ", ".join(seen.columns)),
    ]
    for text in proposals or ["no other column"]:
        lines += _wrap_lines("proposed", text)
    lines += _wrap_lines(
        "to do",
        "write the proposal to a file, check it, and pass it as the columns of the table (or "
        f"keep it as {COLUMNS_FILE} next to the table)",
    )
    lines += _wrap_lines(
        "or", f"if the table has no such field, declare {json.dumps(dict.fromkeys(empty))}"
    )
    pairs = [(proposal.field, proposal.column) for proposal in seen.proposals]
    raise MissingColumnsError(
        "\n".join(lines),
        str(path),
        empty,
        seen.columns,
        pairs,
        remedies=(Remedy(command="clinical", values=(str(path),)), Remedy("columns", ("FILE",))),
    )


def _wrap_lines(title: str, text: str) -> list[str]:
    """Wrap text to the width of the terminal, with the title before the first line."""
    return wrap(
        text,
        _WIDTH,
        initial_indent=f"  {title}: ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def needed_fields(purpose: str) -> tuple[str, ...]:
    """Return the fields that a purpose needs."""
    return _NEEDED[purpose]


def lacking(cohort: Cohort, choice: ColumnChoice, purpose: str = FAIRNESS) -> tuple[str, ...]:
    """Return the needed fields that no case has, except fields declared as absent."""
    coverage = cohort.coverage()
    return tuple(
        field for field in _NEEDED[purpose] if not coverage[field] and field not in choice.absent
    )


@gc_frozen()
def matched(case_ids: Sequence[str], cohort: Cohort) -> Cohort:
    """Return the rows of the given cases, with the ids spelled as in `case_ids`.

    A row is matched to a case by its case id or, in a table that has both, by its patient id. Exact
    spelling is tried first, then spelling that ignores letter case. A case that matches no row or
    several rows has no row in the result.
    """
    lookups = []
    for key in _KEYS:
        lookups.append(_find_unique_rows(cohort, key))
    records: list[CaseRecord] = []
    for case_id in paced(case_ids, _MATCHING, len(case_ids)):
        keys = (case_id, case_key(case_id), case_key(case_id))
        fits = (rows.get(key) for rows, key in zip(lookups, keys, strict=True))
        record = next((row for row in fits if row is not None), None)
        if record is not None:
            records.append(replace(record, case_id=case_id))
    return Cohort(tuple(records), cohort.refused, cohort.notes)


def described(path: Path | None, cohort: Cohort | None, own: Cohort | None) -> ClinicalTable | None:
    """Return the summary of a clinical table; `own` holds the rows of the scored cases."""
    if path is None or cohort is None or own is None:
        return None
    n, coverage = len(cohort.records), dict(cohort.coverage())
    return ClinicalTable(path.name, n, len(own.records), cohort.refused, coverage, cohort.notes)


def _find_unique_rows(
    cohort: Cohort, key: Callable[[CaseRecord], str | None]
) -> dict[str, CaseRecord]:
    rows: dict[str, list[CaseRecord]] = {}
    for record in paced(cohort.records, _MATCHING):
        name = key(record)
        if name is not None:
            rows.setdefault(name, []).append(record)
    report_progress(0, 1, _MATCHING)
    return {name: records[0] for name, records in rows.items() if len(records) == 1}


def _read_patient_id(record: CaseRecord) -> str | None:
    try:
        return case_key(parse_id(record.other.get("patient_id")))
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class ClinicalSummary:
    """The contents of a clinical table as lines, and a question if a needed field is missing.

    `answer` is the column choice that confirms the proposal in the question, and `action` its
    label. `answer` is None if there is no proposal, or no column of case ids is known.
    """

    text: str
    question: str = ""
    answer: ColumnChoice | None = None
    action: str = "Use these columns"


@gc_frozen()
def look_at_clinical(path: Path, choice: ColumnChoice = BY_NAME) -> ClinicalSummary:
    """Summarise the fields that fairness needs in a table, for a choice of columns.

    Raises
    ------
    FormatError
        If the table cannot be read.
    """
    choice = columns_for(path, choice)
    seen = overview_job(path, choice)
    text = _describe_table(path, seen)
    needed = needed_fields(FAIRNESS)
    empty = needed if seen.cohort is None else lacking(seen.cohort, choice)
    absent = [field for field in empty if field not in choice.absent]
    if not absent and seen.cohort is not None:
        return ClinicalSummary(text)
    proposed = {proposal.field: proposal for proposal in seen.proposals}
    if seen.cohort is None and "case_id" not in proposed:
        return ClinicalSummary(text, "Rename the column of case ids to case_id or patient_id.")
    if not seen.proposals:
        fields = ", ".join(map(_spell_field, absent))
        message = f"The table has no {fields}, so fairness over it is undefined."
        return ClinicalSummary(
            text, message, choice.with_names(dict.fromkeys(absent)), "Score without this field"
        )
    lines = [
        f"{_spell_field(proposal.field)}: “{proposal.column}” for {proposal.reason}"
        for proposal in seen.proposals
    ]
    none = [field for field in absent if field not in proposed]
    lines += [
        f"{_spell_field(field)}: there is no column, so fairness over it is undefined"
        for field in none
    ]
    answer = seen.confirmed(choice).with_names(dict.fromkeys(none))
    return ClinicalSummary(text, "\n".join(["Use these columns?", *lines]), answer)


def _describe_table(path: Path, seen: TableOverview) -> str:
    if seen.cohort is None:
        return f"expected {path.name} to have a column of case ids, but found none."
    coverage = coverage_text(len(seen.cohort.records), seen.cohort.coverage())
    lines = [coverage, *seen.cohort.notes]
    refused = seen.cohort.refused
    if refused:
        first = f"row {refused[0].row}, {refused[0].reason}"
        lines.append(
            f"{count_of(len(refused), 'row')} could not be read; the first problem is: {first}"
        )
    return "\n".join(lines)


def _spell_field(field: str) -> str:
    return field.replace("_", " ")
