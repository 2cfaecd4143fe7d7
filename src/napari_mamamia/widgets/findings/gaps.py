"""What a form lacks or contradicts, in words, each with the question where it is put right."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from napari_mamamia.core.answers import Answers, CaseFacts, Place
from napari_mamamia.core.form import FieldScope, Form
from napari_mamamia.core.texts import tr
from napari_mamamia.findings.form_rules import find_contradictions, list_missing
from napari_mamamia.widgets.findings.form_texts import (
    describe_question,
    list_lost_texts,
    name_place,
)

MOST_NAMED: Final = 4
"""Of what is missing, in a sentence; of the others their number is told."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that is missing, or that `contradicts` another answer or the mask.

    `field` is "" where no single question puts it right, `place` None where no place of the form
    does.
    """

    text: str
    field: str = ""
    place: Place | None = None
    contradicts: bool = False


def list_gaps(
    form: Form,
    answers: Answers,
    facts: CaseFacts,
    wrong: Mapping[tuple[str, Place], str],
) -> tuple[Gap, ...]:
    """Return what must be answered and is not, what is `wrong`, lost lesions, contradictions."""
    unanswered: dict[str, Gap] = {}
    for one in _list_unanswered(form, answers, facts):
        unanswered.setdefault(one.text, one)
    lost = (
        Gap(
            tr("lesion {name}, which is described, in your mask", name=name),
            place=Place(FieldScope.LESION, name),
        )
        for name, _ in list_lost_texts(answers, facts)
    )
    contradictions = (
        Gap(
            ": ".join(filter(None, (name_place(contradiction.place), contradiction.text))),
            *(contradiction.field, contradiction.place),
            contradicts=True,
        )
        for contradiction in find_contradictions(form, answers, facts)
    )
    not_kept = (Gap(text, field, place) for (field, place), text in wrong.items())
    return (*unanswered.values(), *not_kept, *lost, *contradictions)


def say_gaps(gaps: Sequence[Gap]) -> str:
    """Return all as sentences: what is missing, then what contradicts; "" for nothing."""
    missing = say_missing([gap.text for gap in gaps if not gap.contradicts])
    return ". ".join(filter(None, (missing, *(gap.text for gap in gaps if gap.contradicts))))


def say_missing(missing: Sequence[str], most: int = MOST_NAMED) -> str:
    """Return what is missing as one sentence that names the first ones, "" for nothing.

    Examples
    --------
    >>> say_missing(["Finding (lesion 1)", "Side (lesion 1)"])
    'Missing: Finding (lesion 1), Side (lesion 1)'
    >>> say_missing(["Finding", "Side", "Volume"], most=1)
    'Missing: Finding and 2 more'
    """
    if not missing:
        return ""
    more = len(missing) - most
    end = tr(" and {more} more", more=more) if more > 0 else ""
    return tr("Missing: {names}{end}", names=", ".join(missing[:most]), end=end)


def _list_unanswered(form: Form, answers: Answers, facts: CaseFacts) -> Iterator[Gap]:
    """Yield the questions without an answer; of either breast's, the first leads on."""
    either = facts.is_one_breast and len(facts.sides) > 1
    for one in list_missing(form, answers, facts):
        text = (
            tr("{question} (the breast in view)", question=tr(one.field.text))
            if either and one.place.scope is FieldScope.BREAST
            else describe_question(one.field, one.place)
        )
        yield Gap(text, one.field.id, one.place)
