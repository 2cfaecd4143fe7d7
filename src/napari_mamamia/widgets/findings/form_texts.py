"""Texts of a form: sites, missing answers, removed lesions."""

from collections.abc import Iterator, Mapping
from typing import Final

from napari_mamamia.core.answers import Answers, CaseFacts, Place
from napari_mamamia.core.form import Field, FieldKind, FieldScope
from napari_mamamia.core.texts import tr
from napari_mamamia.findings.form_rules import AskedQuestion
from napari_mamamia.findings.form_values import normalise_values
from napari_mamamia.findings.lesion_numbers import list_lost
from napari_mamamia.findings.shown_numbers import name_unit, show_number

COMPUTED: Final = tr("measured from the mask; choose a different answer if it is wrong")


def why_wrong(field: Field, values: tuple[str, ...]) -> str:
    """Return why values are not a valid answer, or "" if they are valid."""
    try:
        numbers = normalise_values(field, values)
    except ValueError as error:
        return str(error)
    if field.kind is not FieldKind.NUMBER or not numbers:
        return ""
    number = float(numbers[0])
    low = field.low is not None and number < field.low
    high = field.high is not None and number > field.high
    limits = tr(
        "{limit} to {limit_2} {unit}",
        limit=_write_limit(field, field.low),
        limit_2=_write_limit(field, field.high),
        unit=name_unit(field),
    ).strip()
    shown = show_number(field, numbers[0])
    return (
        tr(
            "expected a value in the range {limits}, but found {numbers}",
            limits=limits,
            numbers=shown,
        )
        if low or high
        else ""
    )


def format_answer(question: AskedQuestion) -> str:
    """Return a short text for an answer."""
    terms = [
        term.text for value in question.values if (term := question.field.term(value)) is not None
    ]
    if terms:
        return ", ".join(terms)
    return (
        f"{question.field.text.lower()} {write_value(question)} {name_unit(question.field)}".strip()
    )


def write_value(question: AskedQuestion) -> str:
    """Return a number or text for display; measured values are rounded to a few decimals.

    The record and the tables store six digits.
    """
    is_measured = question.answer is not None and question.answer.is_computed
    return show_number(question.field, next(iter(question.values), ""), is_measured=is_measured)


def _write_limit(field: Field, limit: float | None) -> str:
    return tr("any") if limit is None else show_number(field, f"{limit:g}")


def describe_question(field: Field, place: Place) -> str:
    """Return a question with the breast, lesion or case that the question is about."""
    where = name_place(place)
    return f"{tr(field.text)} ({where.lower()})" if where else tr(field.text)


def name_question(question: AskedQuestion) -> str:
    """Return a question with its unit, and with a star if an answer is required."""
    unit = f" ({name_unit(question.field)})" if question.field.unit else ""
    return f"{tr(question.field.text)}{unit}{' *' if question.is_required else ''}"


def explain_question(question: AskedQuestion) -> str:
    """Return a question with its place, and say whether an answer is required or was filled in."""
    needed = tr(" (required)") if question.is_required else ""
    text = f"{describe_question(question.field, question.place)}{needed}"
    return (
        f"{text}: {COMPUTED}"
        if question.answer is not None and question.answer.is_computed
        else text
    )


def name_place(place: Place) -> str:
    """Return the name of a place, or "" for the whole case."""
    if place.scope is FieldScope.CASE:
        return ""
    return (
        tr("Lesion {name}", name=place.name)
        if place.scope is FieldScope.LESION
        else tr("{title} breast", title=place.name.title())
    )


def list_lost_texts(answers: Answers, facts: CaseFacts) -> Iterator[tuple[str, str]]:
    """Yield the number of each described lesion that is no longer in the mask, with advice."""
    joined = dict(facts.joined)
    for name in list_lost(answers, facts):
        if name in joined:
            text = tr(
                "This lesion is merged with lesion {other} in your mask. Separate them, or remove "
                "its answers.",
                other=joined[name],
            )
        else:
            text = tr(
                "This lesion is no longer in your mask. Draw it again, or remove its answers."
            )
        yield name, text


def list_lesion_notes(
    answers: Answers, facts: CaseFacts, parted: Mapping[str, str]
) -> dict[str, str]:
    """Return a note for each lesion number; the note is "" for a lesion in the mask."""
    notes = {lesion.name: "" for lesion in facts.lesions or () if lesion.anchors}
    described = answers.described
    for name, whole in parted.items():
        # Until the new lesion has answers: then the reader knows which is which.
        if name in notes and name not in described and whole in described:
            notes[name] = describe_split(whole)
    return notes | dict(list_lost_texts(answers, facts))


def describe_split(whole: str) -> str:
    """Return a note that a lesion was split from lesion `whole`, which keeps its answers."""
    return tr("Split from lesion {whole}, which keeps its answers.", whole=whole)
