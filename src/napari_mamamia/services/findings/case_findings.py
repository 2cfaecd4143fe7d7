"""A reader's findings for a case: load them, complete them from a mask, and save them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

from napari_mamamia.core.answers import (
    NOTHING_MARKED,
    Answers,
    CaseFacts,
    Landmarks,
    MarkedPoint,
    PointMm,
)
from napari_mamamia.core.form import FieldScope, Form
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.names import count_of
from napari_mamamia.findings.form_rules import fill_computed
from napari_mamamia.findings.form_values import parse_answers, record_answers
from napari_mamamia.findings.lesion_position import keep_names, place_lesions
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.forms.form_file import LEXICONS, parse_form
from napari_mamamia.io.workspace.findings import (
    FindingsChange,
    FindingsRecord,
    append_findings,
    read_findings,
)
from napari_mamamia.io.workspace.workspace import Workspace, file_name

_FORM: Final = "@form"
_COMPUTED: Final = "@computed"


@dataclass(frozen=True, slots=True)
class CaseFindings:
    """The answers and landmarks of one reader for one case.

    Parameters
    ----------
    centres
        The centre of each described lesion by lesion number.
    problem
        The description of an error in the stored findings, whose readable part is used.
    """

    answers: Answers = field(default_factory=Answers)
    landmarks: Landmarks = NOTHING_MARKED
    centres: Mapping[str, PointMm] = field(default_factory=dict)
    problem: str = ""


@cache
def load_findings_form() -> Form:
    """Return the form for use outside a review study, which has the newest included lexicon."""
    return parse_form(LEXICONS[-1], (), LEXICONS[-1])


def open_findings(workspace: Workspace, reader: str, case_id: str) -> CaseFindings:
    """Return a reader's findings for a case, which may be empty.

    Raises
    ------
    FormatError
        If a file exists but cannot be read.
    """
    records = read_findings(workspace.root)
    record = records.get((case_key(case_id), file_name(reader, "the name of a reader")))
    return CaseFindings() if record is None else findings_of(record)


def findings_of(record: FindingsRecord) -> CaseFindings:
    """Return the findings stored in a record."""
    answers = {_FORM: dict(record.form), _COMPUTED: list(record.computed), **record.answers}
    problem = "; ".join(record.problems[:3])
    if record.n_newer:
        newer = (
            f"{count_of(record.n_newer, 'line')} from a later version could not be read: update "
            "this software"
        )
        problem = f"{problem}; {newer}" if problem else newer
    return CaseFindings(parse_answers(answers), record.landmarks, dict(record.centres), problem)


def keep_findings(
    workspace: Workspace, reader: str, case_id: str, form: Form, before: Answers, now: CaseFindings
) -> None:
    """Save the changes since `before`; write nothing if nothing changed.

    Raises
    ------
    CaseError
        If `reader` or `case_id` is not a valid name.
    FormatError
        If an answer is invalid for its question.
    SaveError
        If the answers cannot be written; earlier answers are kept.
    """
    change = _find_change(form, before, now)
    if not change.is_empty:
        who = file_name(reader, "the name of a reader")
        append_findings(workspace.root, who, file_name(case_id, "a case id"), change)
        workspace.note_data_set()


def mark_landmark(workspace: Workspace, reader: str, case_id: str, point: MarkedPoint) -> None:
    """Save the position of a landmark, or its removal.

    Raises
    ------
    CaseError, SaveError
        As in `keep_findings`.
    """
    who = file_name(reader, "the name of a reader")
    change = FindingsChange(points=(point,))
    append_findings(workspace.root, who, file_name(case_id, "a case id"), change)
    workspace.note_data_set()


def _find_change(form: Form, before: Answers, now: CaseFindings) -> FindingsChange:
    old, new = record_answers(form, before), record_answers(form, now.answers)
    were_computed, computed = set(old.pop(_COMPUTED, ())), set(new.pop(_COMPUTED, ()))
    head: dict[str, str] = new.pop(_FORM)
    old.pop(_FORM)
    changed: dict[str, Any] = {
        key: value
        for key, value in new.items()
        if old.get(key) != value or (key in computed) is not (key in were_computed)
    }
    return FindingsChange(
        head,
        changed,
        tuple(computed & set(changed)),
        tuple(set(old) - set(new)),
        now.centres,
    )


def fill_in(form: Form, findings: CaseFindings, facts: CaseFacts) -> tuple[CaseFindings, CaseFacts]:
    """Return findings with computed answers, and the measured facts for checking the answers.

    Lesions keep the numbers in the answers, and their positions are relative to the landmarks.
    """
    described = {
        item.place.name
        for item in findings.answers.items
        if item.place.scope is FieldScope.LESION and not item.is_computed
    }
    anchors = {name: point for name, point in findings.centres.items() if name in described}
    placed = place_lesions(keep_names(facts, anchors), findings.landmarks)
    answers = fill_computed(form, findings.answers, placed)
    centres = {
        lesion.name: lesion.centre_mm
        for lesion in placed.lesions or ()
        if lesion.centre_mm is not None
    }
    return replace(findings, answers=answers, centres={**anchors, **centres}), placed


def find_point_mm(grid: Grid, voxel: tuple[int, int, int]) -> PointMm:
    """Return the patient position of a voxel (z, y, x) in RAS mm."""
    x, y, z = map(float, grid.to_world_mm(voxel))
    return x, y, z
