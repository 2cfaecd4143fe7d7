"""A reader's findings for a case in a report: answers, open questions and contradictions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from napari_mamamia.core.answers import Answer, Answers, CaseFacts, LesionFacts, Place
from napari_mamamia.core.blinding import Hidden
from napari_mamamia.core.errors import CaseError, Remedy
from napari_mamamia.core.form import FieldScope, Form, Measure
from napari_mamamia.findings import form_rules
from napari_mamamia.findings.form_values import AnswerRow, list_answer_rows
from napari_mamamia.findings.shown_numbers import format_answer_row
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.workspace.findings import FindingsKey, FindingsRecord
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.findings.case_findings import (
    CaseFindings,
    fill_in,
    findings_of,
    load_findings_form,
)

NOT_ANSWERED: Final = "not answered"
_SIZES: Final = (Measure.VOLUME_MM3, Measure.LONGEST_IN_PLANE_MM)
"""Measures that the report already lists for each lesion."""


@dataclass(frozen=True, slots=True)
class Described:
    """The findings of one reader for a case; `reader` is "" if there are no findings.

    Parameters
    ----------
    answers
        The reader's answers, and the computed answers, which are marked `is_computed`.
    asked
        The questions that apply to this case, with their answers.
    missing
        The required questions without an answer; empty if no reader described the case.
    at
        The time of the last answer, ISO 8601 in UTC.
    remarks
        Sentences about unknown positions in the breast and about omitted findings.
    """

    form: Form
    answers: Answers = field(default_factory=Answers)
    reader: str = ""
    at: str = ""
    asked: tuple[form_rules.AskedQuestion, ...] = ()
    missing: tuple[form_rules.AskedQuestion, ...] = ()
    contradictions: tuple[form_rules.Contradiction, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def rows(self) -> tuple[AnswerRow, ...]:
        """The answers as coded rows, without computed sizes, which the report lists elsewhere."""
        sizes = {field.id for field in self.form.fields if field.measure in _SIZES}
        rows = list_answer_rows(self.form, self.answers)
        return tuple(row for row in rows if not (row.computed and row.field in sizes))

    def of_place(self, scope: FieldScope, name: str) -> tuple[AnswerRow, ...]:
        """Return the answers for one lesion, one breast or the case."""
        return tuple(row for row in self.rows if (row.scope, row.place) == (scope, name))

    def say(self, rows: Sequence[AnswerRow]) -> str:
        """Return the answers to a question in words, with their unit."""
        return ", ".join(format_answer_row(self.form, row) for row in rows) or NOT_ANSWERED

    @property
    def lesions(self) -> tuple[str, ...]:
        """The numbers of the lesions with answers."""
        rows = self.rows
        return tuple(dict.fromkeys(row.place for row in rows if row.scope == FieldScope.LESION))


def describe_case(
    workspace: Workspace,
    case_id: str,
    records: Mapping[FindingsKey, FindingsRecord],
    facts: CaseFacts,
    reader: str,
    *,
    has_mask: bool,
) -> tuple[Described, CaseFacts]:
    """Return the findings for a case, and the facts with lesion numbers and positions.

    Parameters
    ----------
    workspace, case_id
        The workspace and the case.
    records
        All records of the workspace, as returned by `read_findings`.
    facts
        The mask's lesions as measured by `measure_case`.
    reader
        The name of the reader; "" stands for the only reader who described the case.
    has_mask
        Whether there is a mask to compare the answers with.

    Returns
    -------
    tuple[Described, CaseFacts]
        The findings, and the completed facts.

    Raises
    ------
    CaseError
        If several readers described the case and none is named.
    """
    form = load_findings_form()
    record, remarks = _choose_record(workspace, case_id, records, reader)
    findings = CaseFindings() if record is None else findings_of(record)
    if has_mask:
        findings, facts = fill_in(form, findings, facts)
    else:
        facts = replace(facts, lesions=None)
    if record is None:
        return Described(form, _add_words(form, findings.answers, facts), remarks=remarks), facts
    answers = _add_words(form, findings.answers, facts)
    described = Described(
        form,
        answers,
        record.reader,
        record.at,
        form_rules.list_questions(form, answers, facts),
        form_rules.list_missing(form, answers, facts),
        form_rules.find_contradictions(form, answers, facts),
        tuple(filter(None, (*remarks, *facts.remarks, form_rules.why_other_form(form, answers)))),
    )
    return described, facts


def _choose_record(
    workspace: Workspace,
    case_id: str,
    records: Mapping[FindingsKey, FindingsRecord],
    reader: str,
) -> tuple[FindingsRecord | None, tuple[str, ...]]:
    """Return the record to report, and a note about readers who are not included."""
    of_case = [
        record
        for key, record in records.items()
        if key[0] == case_key(case_id) and (record.answers or record.landmarks.points)
    ]
    if workspace.blinding.hides(Hidden.OTHER_READERS):
        of_case = [record for record in of_case if record.reader == (workspace.reader or "")]
    chosen = [record for record in of_case if reader in ("", record.reader)]
    if len(chosen) > 1:
        names = ", ".join(sorted(record.reader for record in chosen))
        raise CaseError(
            f"expected one reader of {case_id} for the report, but {names} have findings: choose "
            "the reader of the report",
            remedies=(Remedy("reader", ("NAME",)),),
        )
    others = ", ".join(sorted(record.reader for record in of_case if record not in chosen))
    remarks = (f"the findings of {others} are not in this report",) if others else ()
    return (chosen[0] if chosen else None), remarks


def _add_words(form: Form, answers: Answers, facts: CaseFacts) -> Answers:
    """Return the answers with the side and curve type of each lesion."""
    words: dict[Measure | None, Callable[[LesionFacts], str]] = {
        Measure.SIDE: lambda one: "" if one.side is None else one.side.value,
        Measure.INITIAL_RISE: lambda one: one.rise,
        Measure.DELAYED_COURSE: lambda one: one.course,
    }
    for question in form.fields:
        if question.measure not in words:
            continue
        for lesion in facts.lesions or ():
            place = Place(FieldScope.LESION, lesion.name)
            word = words[question.measure](lesion)
            if question.term(word) is not None and answers.find(question.id, place) is None:
                answers = answers.put(Answer(question.id, (word,), place, is_computed=True))
    return answers
