"""Rules of a form: which questions apply, are computed, are missing or contradict each other.

Questions are processed once, in their order. A question depends only on earlier questions, and an
answer to a question that does not apply has no effect.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from napari_mamamia.core.answers import (
    NOTHING_KNOWN,
    WHOLE_CASE,
    Answer,
    Answers,
    CaseFacts,
    LesionFacts,
    Place,
    Side,
)
from napari_mamamia.core.form import Condition, Field, FieldScope, Form, MaskRule, Measure
from napari_mamamia.findings.form_values import (
    normalise_values,
    write_number,
)
from napari_mamamia.findings.lesion_position import list_hours
from napari_mamamia.findings.shown_numbers import name_unit, show_number


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question that applies to a subject (case, breast or lesion), with its answer, if any."""

    field: Field
    place: Place
    is_required: bool
    answer: Answer | None = None

    @property
    def values(self) -> tuple[str, ...]:
        """Return the values of the answer."""
        return () if self.answer is None else self.answer.values

    @property
    def is_missing(self) -> bool:
        """Return whether the question is required and has no answer."""
        return self.is_required and not any(value.strip() for value in self.values)


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A contradiction between answers or with the mask, with its question and subject."""

    field: str
    place: Place
    text: str


def list_places(answers: Answers, facts: CaseFacts) -> tuple[Place, ...]:
    """Return the subjects of a form's questions: the case, the imaged breasts and the lesions."""
    breasts = [Place(FieldScope.BREAST, side.value) for side in facts.sides]
    measured = [Place(FieldScope.LESION, lesion.name) for lesion in facts.lesions or ()]
    places = {item.place for item in answers.items if item.place.scope is not FieldScope.CASE}
    lesions = {one for one in places if one.scope is FieldScope.LESION} - set(measured)
    more_breasts = sorted({one for one in places if one.scope is FieldScope.BREAST} - set(breasts))
    return (
        WHOLE_CASE,
        *breasts,
        *more_breasts,
        *measured,
        *sorted(lesions, key=lambda lesion: (len(lesion.name), lesion.name)),
    )


def list_questions(
    form: Form, answers: Answers, facts: CaseFacts = NOTHING_KNOWN
) -> tuple[AskedQuestion, ...]:
    """Return the questions that apply to the case, then to each breast and to each lesion.

    If the program can answer an unanswered question, the computed answer is used, with
    `is_computed` set.
    """
    asked: dict[tuple[str, Place], AskedQuestion] = {}
    places = list_places(answers, facts)
    given = {(item.field, item.place): item for item in answers.items}
    for field in form.fields:
        for place in places:
            if place.scope is not field.scope or not _all_hold(field.asked_if, place, asked):
                continue
            answer = given.get((field.id, place))
            if field.measure is not None and (answer is None or answer.is_computed):
                answer = _compute_answer(field, place, facts)
            is_required = field.required or (
                bool(field.required_if) and _all_hold(field.required_if, place, asked)
            )
            asked[(field.id, place)] = AskedQuestion(field, place, is_required, answer)
    order = {place: index for index, place in enumerate(places)}
    return tuple(sorted(asked.values(), key=lambda one: order[one.place]))


def fill_computed(form: Form, answers: Answers, facts: CaseFacts) -> Answers:
    """Return the answers with measured values added; answers from a reader are not changed.

    Measured values of questions that no longer apply and of removed lesions are dropped.
    """
    questions = list_questions(form, answers, facts)
    computed = [
        question.answer
        for question in questions
        if question.answer is not None and question.answer.is_computed
    ]
    typed = [item for item in answers.items if not item.is_computed]
    return replace(answers, items=(*typed, *computed))


def list_missing(
    form: Form, answers: Answers, facts: CaseFacts = NOTHING_KNOWN
) -> tuple[AskedQuestion, ...]:
    """Return the questions that apply, are required and have no answer.

    If the images may show only one breast, the questions about the other breast are not required.
    """
    questions = list_questions(form, answers, facts)
    answered = {
        question.field.id
        for question in questions
        if question.values and question.place.scope is FieldScope.BREAST
    }
    enough = answered if facts.is_one_breast else set()
    return tuple(
        question
        for question in questions
        if question.is_missing and question.field.id not in enough
    )


def find_contradictions(
    form: Form, answers: Answers, facts: CaseFacts = NOTHING_KNOWN
) -> tuple[Contradiction, ...]:
    """Return contradictions among the answers, and between the answers and the mask.

    A term that this version of the form does not contain is not a contradiction.
    """
    questions = list_questions(form, answers, facts)
    return (
        *_find_unasked(form, answers, questions),
        *(problem for question in questions for problem in _find_wrong_values(question)),
        *(problem for question in questions for problem in _find_other_side(question, facts)),
        *(problem for question in questions for problem in _find_mask_rules(question, facts)),
        *_find_other_hours(questions),
    )


def why_other_form(form: Form, answers: Answers) -> str:
    """Return a message if the answers were given on a different form, otherwise ""."""
    if not answers.sha256 or answers.sha256 == form.sha256:
        return ""
    if (answers.form, answers.edition) == (form.name, form.edition):
        return f"answered on a different version of the form {form.name}"
    return f"answered on the form {answers.form} {answers.edition}".rstrip()


def _all_hold(
    conditions: Iterable[Condition], place: Place, asked: Mapping[tuple[str, Place], AskedQuestion]
) -> bool:
    for condition in conditions:
        key = (condition.field, place)
        question = asked.get(key) or asked.get((condition.field, WHOLE_CASE))
        if question is None or not set(question.values) & set(condition.values):
            return False
    return True


def _compute_answer(field: Field, place: Place, facts: CaseFacts) -> Answer | None:
    lesion = facts.lesion(place.name)
    value = "" if lesion is None or field.measure is None else _MEASURES[field.measure](lesion)
    if not value or (field.is_choice and field.term(value) is None):
        return None
    return Answer(field.id, (value,), place, is_computed=True)


def _write_tenths(distance_mm: float | None) -> str:
    return write_number(None if distance_mm is None else round(distance_mm, 1))


_MEASURES: Final[Mapping[Measure, Callable[[LesionFacts], str]]] = {
    Measure.INITIAL_RISE: lambda lesion: lesion.rise,
    Measure.DELAYED_COURSE: lambda lesion: lesion.course,
    Measure.SIDE: lambda lesion: "" if lesion.side is None else lesion.side.value,
    Measure.VOLUME_MM3: lambda lesion: write_number(lesion.volume_mm3),
    Measure.LONGEST_IN_PLANE_MM: lambda lesion: write_number(lesion.longest_in_plane_mm),
    Measure.QUADRANT: lambda lesion: lesion.quadrant,
    Measure.CLOCK: lambda lesion: lesion.clock,
    Measure.DEPTH: lambda lesion: lesion.depth,
    Measure.TO_NIPPLE_MM: lambda lesion: _write_tenths(lesion.to_nipple_mm),
}


def _find_unasked(
    form: Form, answers: Answers, question: Iterable[AskedQuestion]
) -> Iterator[Contradiction]:
    places = {(one.field.id, one.place) for one in question}
    for item in answers.items:
        field = form.field(item.field)
        if field is None or not item.values or item.is_computed or (field.id, item.place) in places:
            continue
        if item.place.scope is not field.scope:
            text = (
                f"this question is about a {field.scope}, but the answer is about a "
                f"{item.place.scope}"
            )
        else:
            needs = " and ".join(_say_condition(form, condition) for condition in field.asked_if)
            text = f"this question has an answer, but applies only if {needs}"
        yield Contradiction(field.id, item.place, f"{field.text}: {text}")


def _say_condition(form: Form, condition: Condition) -> str:
    other = form.field(condition.field)
    if other is None:
        return condition.field
    terms = [other.term(value) for value in condition.values]
    return f"{other.text} is {' or '.join(term.text for term in terms if term is not None)}"


def _find_wrong_values(question: AskedQuestion) -> Iterator[Contradiction]:
    try:
        values = normalise_values(question.field, question.values)
    except ValueError as error:
        yield Contradiction(question.field.id, question.place, f"{question.field.text}: {error}")
        return
    low, high = question.field.low, question.field.high
    for value in values if low is not None or high is not None else ():
        number = Decimal(value)
        if (low is not None and number < Decimal(low)) or (
            high is not None and number > Decimal(high)
        ):
            ends = (low, "no lower limit"), (high, "no upper limit")
            limits = " to ".join(_say_limit(question.field, *end) for end in ends)
            shown = f"{show_number(question.field, value)} lies outside {limits}"
            text = f"{question.field.text}: {shown} {name_unit(question.field)}".rstrip()
            yield Contradiction(question.field.id, question.place, text)


def _say_limit(field: Field, value: float | None, words: str) -> str:
    return words if value is None else show_number(field, f"{value:g}")


def _find_other_side(question: AskedQuestion, facts: CaseFacts) -> Iterator[Contradiction]:
    if (
        question.field.measure is not Measure.SIDE
        or question.answer is None
        or question.answer.is_computed
    ):
        return
    lesion = facts.lesion(question.place.name)
    sides = {Side.RIGHT.value, Side.LEFT.value, Side.BOTH.value}
    if lesion is None or lesion.side is None or not set(question.values) & sides:
        return
    if lesion.side.value not in question.values:
        chosen = " and ".join(question.values)
        text = f"{question.field.text}: {chosen}, but the mask of lesion {lesion.name} lies "
        place = "on both sides" if lesion.side is Side.BOTH else f"on the {lesion.side} side"
        yield Contradiction(question.field.id, question.place, text + place)


def _find_other_hours(question: Iterable[AskedQuestion]) -> Iterator[Contradiction]:
    by_place: dict[Place, dict[Measure, AskedQuestion]] = {}
    for one in question:
        if one.field.measure in (Measure.SIDE, Measure.QUADRANT, Measure.CLOCK) and one.values:
            by_place.setdefault(one.place, {})[one.field.measure] = one
    for place, answered in by_place.items():
        if len(answered) < 3:
            continue
        side, quadrant = answered[Measure.SIDE], answered[Measure.QUADRANT]
        clock = answered[Measure.CLOCK]
        hours = list_hours(side.values[0], quadrant.values[0])
        if hours and clock.values[0] not in hours:
            names = [(one.field.term(one.values[0]) or one.field).text for one in (clock, quadrant)]
            text = f"{clock.field.text}: {names[0]}, but {names[1]} of the {side.values[0]} breast"
            yield Contradiction(clock.field.id, place, f"{text} is {hours[0]} to {hours[-1]}")


def _find_mask_rules(question: AskedQuestion, facts: CaseFacts) -> Iterator[Contradiction]:
    if facts.lesions is None:
        return
    terms = [question.field.term(value) for value in question.values]
    drawn = _list_drawn(question.place, facts.lesions)
    lesion = _name_lesion(question.place)
    for term in terms:
        if term is None:
            continue
        words = f"{question.field.text}: {term.text}, but the mask has"
        if term.mask is MaskRule.FORBIDDEN and drawn:
            yield Contradiction(question.field.id, question.place, f"{words} {lesion}")
        if term.mask is MaskRule.NEEDED and not drawn:
            yield Contradiction(
                question.field.id, question.place, f"{words} no {lesion.removeprefix('a ')}"
            )


def _list_drawn(place: Place, lesions: Iterable[LesionFacts]) -> list[str]:
    if place.scope is FieldScope.CASE:
        return [lesion.name for lesion in lesions]
    if place.scope is FieldScope.LESION:
        return [lesion.name for lesion in lesions if lesion.name == place.name]
    sides = (place.name, Side.BOTH.value)
    return [
        lesion.name for lesion in lesions if lesion.side is not None and lesion.side.value in sides
    ]


def _name_lesion(place: Place) -> str:
    if place.scope is FieldScope.LESION:
        return f"lesion {place.name}"
    return (
        f"a lesion in the {place.name} breast" if place.scope is FieldScope.BREAST else "a lesion"
    )
