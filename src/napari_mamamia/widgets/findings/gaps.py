"""Texts of missing and contradictory answers, each with the question to correct."""

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
"""Number of missing answers named in a sentence; further answers are only counted."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A missing answer, or an answer that `contradicts` another answer or the mask.

    `field` is "" if no single question corrects the gap; `place` is None if no single place in the
    form corrects the gap.
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
    """Return missing and `wrong` answers, removed lesions, and contradictions."""
    unanswered: dict[str, Gap] = {}
    for one in _list_unanswered(form, answers, facts):
        unanswered.setdefault(one.text, one)
    lost = (
        Gap(
            tr("lesion {name} (described, but not in your mask)", name=name),
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


def describe_gaps(gaps: Sequence[Gap]) -> str:
    """Return sentences about all gaps, missing before contradictory answers, or "" for no gaps."""
    missing = describe_missing([gap.text for gap in gaps if not gap.contradicts])
    return ". ".join(filter(None, (missing, *(gap.text for gap in gaps if gap.contradicts))))


def describe_missing(missing: Sequence[str], most: int = MOST_NAMED) -> str:
    """Return a sentence that names the first missing answers, or "" if none is missing.

    Examples
    --------
    >>> describe_missing(["Finding (lesion 1)", "Side (lesion 1)"])
    'Missing: Finding (lesion 1), Side (lesion 1)'
    >>> describe_missing(["Finding", "Side", "Volume"], most=1)
    'Missing: Finding and 2 more'
    """
    if not missing:
        return ""
    more = len(missing) - most
    end = tr(" and {more} more", more=more) if more > 0 else ""
    return tr("Missing: {names}{end}", names=", ".join(missing[:most]), end=end)


def _list_unanswered(form: Form, answers: Answers, facts: CaseFacts) -> Iterator[Gap]:
    either = facts.is_one_breast and len(facts.sides) > 1
    for one in list_missing(form, answers, facts):
        text = (
            tr("{question} (displayed breast)", question=tr(one.field.text))
            if either and one.place.scope is FieldScope.BREAST
            else describe_question(one.field, one.place)
        )
        yield Gap(text, one.field.id, one.place)
