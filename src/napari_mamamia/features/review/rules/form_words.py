"""Replace ids of questions and terms with the form's wording, for display.

Events and machine-readable files hold ids, because the wording of a form may be corrected or
translated. Ids that are not in the form are not changed.
"""

from collections.abc import Iterator

from napari_mamamia.core.form import Field, FieldKind, FieldScope, Form
from napari_mamamia.features.review.rules.states import CaseView
from napari_mamamia.findings.form_values import (
    name_question,
    parse_answers_text,
)
from napari_mamamia.findings.shown_numbers import name_unit, show_number

_NOTHING = "–"


def word_reason(form: Form | None, reason: str) -> str:
    """Return a reason for disagreement in which the question's id is replaced with its wording."""
    head, _, answers = reason.partition(": ")
    key, _, other = head.partition(" and @")
    field_id, _, place = key.partition("@")
    field = None if form is None else form.field(field_id)
    sides = [side.split(", ") if side else [] for side in answers.split(" and ")]
    if field is None or len(sides) != 2:
        return reason
    terms = [[field.term(one) for one in side] for side in sides]
    texts = [
        ", ".join(term.text for term in side if term is not None) or _NOTHING for side in terms
    ]
    if any(term is None for side in terms for term in side):
        return reason
    numbers = f" and {other}" if other else ""
    return f"{_word_place(field, place)}{numbers}: {' / '.join(texts)}"


def describe_reasons(form: Form | None, view: CaseView) -> tuple[str, ...]:
    """Return a case's reasons for disagreement, and its conflicts, in the form's wording."""
    because = view.comparison.because if view.comparison else ()
    return (*(word_reason(form, one) for one in because), *view.conflicts)


def word_question(form: Form | None, name: str) -> str:
    """Return the wording of a question; a multiple-choice question is shown as ``ID: TERM``."""
    field_id, _, term = name.partition(": ")
    field = None if form is None else form.field(field_id)
    if field is None:
        return name
    return f"{field.text}: {word_term(form, field_id, term)}" if term else field.text


def word_unit(form: Form | None, field_id: str) -> str:
    """Return a question's unit with a leading space, or "" if it has no unit."""
    field = None if form is None else form.field(field_id)
    return f" {field.unit}" if field is not None and field.unit else ""


def word_term(form: Form | None, field_id: str, value: str) -> str:
    """Return the wording of an answer to a question."""
    field = None if form is None else form.field(field_id)
    term = None if field is None else field.term(value)
    return value if term is None else term.text


def word_answers(form: Form | None, text: str) -> str:
    """Return the answers of a reading in the form's wording, as one line of text."""
    return "; ".join(_list_answers(form, text)) or _NOTHING


def _list_answers(form: Form | None, text: str) -> Iterator[str]:
    for item in parse_answers_text(text).items:
        field = None if form is None else form.field(item.field)
        values = ", ".join(word_term(form, item.field, value) for value in item.values) or _NOTHING
        head = name_question(item)
        if field is not None:
            head = _word_place(field, item.place.name)
            if field.kind is FieldKind.NUMBER and item.values:
                shown = show_number(field, item.values[0], is_measured=item.is_computed)
                values = f"{shown} {name_unit(field)}".rstrip()
        yield f"{head}: {values}{' (computed)' if item.is_computed else ''}"


def _word_place(field: Field, place: str) -> str:
    where = {FieldScope.LESION: f", lesion {place}", FieldScope.BREAST: f", {place} breast"}
    return f"{field.text}{where.get(field.scope, '')}"
