"""Summarise a clinical table for the window: coverage, missing fields, columns to confirm."""

from dataclasses import dataclass
from pathlib import Path

from napari_mamamia.core.cohort import coverage_text
from napari_mamamia.core.names import count_of
from napari_mamamia.core.progress import gc_frozen
from napari_mamamia.io.clinical.columns import BY_NAME, ColumnChoice, columns_for
from napari_mamamia.io.clinical.overview import TableOverview, overview_job
from napari_mamamia.services.score.clinical_table import FAIRNESS, lacking, needed_fields


@dataclass(frozen=True, slots=True)
class ClinicalSummary:
    """The contents of a clinical table as lines, with a question if a needed field is missing.

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
        message = f"The table has no {fields}: fairness over it is undefined."
        return ClinicalSummary(
            text, message, choice.with_names(dict.fromkeys(absent)), "Score without it"
        )
    lines = [
        f"{_spell_field(proposal.field)}: “{proposal.column}” for {proposal.reason}"
        for proposal in seen.proposals
    ]
    none = [field for field in absent if field not in proposed]
    lines += [f"{_spell_field(field)}: no column, so no fairness over it" for field in none]
    answer = seen.confirmed(choice).with_names(dict.fromkeys(none))
    return ClinicalSummary(text, "\n".join(["Use these columns?", *lines]), answer)


def _describe_table(path: Path, seen: TableOverview) -> str:
    if seen.cohort is None:
        return f"expected a column of case ids in {path.name}, found none."
    coverage = coverage_text(len(seen.cohort.records), seen.cohort.coverage())
    lines = [coverage, *seen.cohort.notes]
    refused = seen.cohort.refused
    if refused:
        first = f"row {refused[0].row}, {refused[0].reason}"
        lines.append(f"{count_of(len(refused), 'row')} not read, the first: {first}")
    return "\n".join(lines)


def _spell_field(field: str) -> str:
    return field.replace("_", " ")
