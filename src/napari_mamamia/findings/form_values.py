"""Storage of form answers: normalised values, JSON in events, and table rows with codes."""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from napari_mamamia.core.answers import WHOLE_CASE, Answer, Answers, LesionAnchors, Place, Voxel
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.form import (
    LONGEST_TEXT,
    PRIVATE_SCHEME,
    Code,
    Field,
    FieldKind,
    FieldScope,
    Form,
)
from napari_mamamia.io.files.append_file import canonical
from napari_mamamia.io.files.json_text import parsed_json

_FORM: Final = "@form"
_COMPUTED: Final = "@computed"
_LESIONS: Final = "@lesions"
_NUMBER: Final = "number"
_TEXT: Final = "text"
_MOST_DIGITS: Final = 20
_SIGNIFICANT: Final = 6
_MOST_ANCHORS: Final = 64
"""Largest number of anchor voxels read for a lesion, which limits the work an event can cause."""
_MOST_PLACES: Final = 1 << 20
_SIDES: Final = ("right", "left")


def normalise_values(field: Field, values: Sequence[str]) -> tuple[str, ...]:
    """Return values in normal form: unique terms in the field's order, numbers without extra zeros.

    Terms that the field does not contain are placed at the end, because a later version of the form
    may contain them.

    Raises
    ------
    ValueError
        If a single-choice field has several values, a number is invalid, or a string is too long.

    Examples
    --------
    >>> normalise_values(Field("d", "Distance", FieldKind.NUMBER, unit="mm"), ["012.50"])
    ('12.5',)
    """
    if field.is_choice:
        order = {term.id: index for index, term in enumerate(field.terms)}
        once = sorted(set(values), key=lambda value: (order.get(value, len(order)), value))
        if field.kind is FieldKind.SINGLE and len(once) > 1:
            raise ValueError(f"expected one answer, but found {', '.join(once)}")
        return tuple(once)
    if len(values) > 1:
        raise ValueError(f"expected one answer, but found {len(values)}")
    if field.kind is FieldKind.NUMBER:
        return tuple(_normalise_number(value) for value in values if value.strip())
    texts = [unicodedata.normalize("NFC", value).strip() for value in values]
    if any("\ud800" <= letter <= "\udfff" for text in texts for letter in text):
        raise ValueError(
            "the text contains an incomplete character (half a surrogate pair): type it again"
        )
    if any(len(text) > LONGEST_TEXT for text in texts):
        raise ValueError(
            f"expected the text to have at most {LONGEST_TEXT} characters, but it has more"
        )
    return tuple(text for text in texts if text)


def write_number(value: float | None) -> str:
    """Return a measured number as decimal text with 6 significant digits; "" for None and NaN.

    Examples
    --------
    >>> write_number(1234.5678), write_number(None)
    ('1234.57', '')
    """
    if value is None or value != value or abs(value) == float("inf"):
        return ""
    return _normalise_number(format(value, f".{_SIGNIFICANT}g"))


def _normalise_number(text: str) -> str:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite():
        raise ValueError(
            f"expected a number with a decimal point, such as 12.5, but found {text[:40]!r}"
        )
    if max(len(number.as_tuple().digits), abs(number.adjusted())) > _MOST_DIGITS:
        raise ValueError(
            f"expected a number of at most {_MOST_DIGITS} digits, but found {text[:40]!r}"
        )
    plain = format(number, "f")
    plain = plain.rstrip("0").rstrip(".") if "." in plain else plain
    return "0" if plain in ("-0", "") else plain


def normalise_answers(form: Form, answers: Answers) -> Answers:
    """Return the answers in the form's order, with normalised values and the name of the form.

    Answers to questions that the form does not contain are kept at the end. Empty answers are
    dropped, unless they mean that a reader deleted a value that the program would compute.

    Raises
    ------
    FormatError
        If a value is invalid for its question.
    """
    order = {field.id: index for index, field in enumerate(form.fields)}
    items = []
    for item in answers.items:
        field = form.field(item.field)
        values = item.values if field is None else _normalise_one(field, item)
        is_taken_away = field is not None and field.measure is not None and not item.is_computed
        if values or is_taken_away:
            items.append(Answer(item.field, values, item.place, item.is_computed))
    items.sort(key=lambda one: (order.get(one.field, len(order)), one.field, _rank_place(one)))
    return Answers(tuple(items), form.name, form.edition, form.sha256, answers.anchors)


def _normalise_one(field: Field, answer: Answer) -> tuple[str, ...]:
    try:
        return normalise_values(field, answer.values)
    except ValueError as error:
        raise FormatError(f"{field.text} ({name_question(answer)}): {error}") from error


def _rank_place(answer: Answer) -> tuple[int, str]:
    name = answer.place.name
    return (_SIDES.index(name) if name in _SIDES else len(name), name)


def record_answers(form: Form, answers: Answers) -> dict[str, Any]:
    """Return answers as a JSON record for the event of a reading, without floating-point numbers.

    Keys are the id of a question, ``ID@right`` for a breast, and ``ID@1`` for a lesion. A single
    chosen term is a string, several terms are a list, a number is ``{"number": "12.5", "unit":
    "mm"}``, and free text is ``{"text": ...}``. ``@form`` names the form, ``@computed`` lists the
    answers that the program filled in, and ``@lesions`` maps each lesion's number to some of its
    voxels (z, y, x).

    Raises
    ------
    FormatError
        As for `normalise_answers`.
    """
    answers = normalise_answers(form, answers)
    record: dict[str, Any] = {
        _FORM: {"name": form.name, "edition": form.edition, "sha256": form.sha256}
    }
    computed = sorted(name_question(item) for item in answers.items if item.is_computed)
    if computed:
        record[_COMPUTED] = computed
    if answers.anchors:
        record[_LESIONS] = {
            anchor.name: list(map(list, anchor.voxels)) for anchor in answers.anchors
        }
    for one in answers.items:
        record[name_question(one)] = _record_values(form.field(one.field), one.values)
    return record


def _record_values(field: Field | None, values: tuple[str, ...]) -> Any:
    kind = None if field is None else field.kind
    if kind is FieldKind.NUMBER and field is not None:
        return {_NUMBER: values[0], "unit": field.unit} if values else {_NUMBER: ""}
    if kind is FieldKind.TEXT:
        return {_TEXT: values[0] if values else ""}
    if kind is FieldKind.SINGLE and values:
        return values[0]
    return list(values)


def parse_answers(record: Mapping[str, Any]) -> Answers:
    """Return the answers in an event's JSON record, regardless of the form they were given on.

    Values of any other type are left out, because an event cannot be rejected for them.
    """
    head = record.get(_FORM)
    named = head if isinstance(head, dict) else {}
    computed = list_computed(record)
    items = []
    for key, value in record.items():
        values = None if key.startswith("@") else _parse_values(value)
        if values is not None:
            field, place = _parse_key(key)
            items.append(Answer(field, values, place, key in computed))
    name, edition, digits = (str(named.get(one, "")) for one in ("name", "edition", "sha256"))
    return Answers(tuple(items), name, edition, digits, parse_anchors(record))


def parse_anchors(record: Mapping[str, Any]) -> tuple[LesionAnchors, ...]:
    """Return the anchor voxels of each numbered lesion in an event's JSON record.

    Invalid entries are left out. Records of older versions have no anchors; for such records, the
    largest lesion of the mask is "1". In a record with anchors every described lesion has an entry,
    which is empty if the lesion's position is unknown.
    """
    if _LESIONS not in record:
        return ()
    listed = record[_LESIONS] if isinstance(record[_LESIONS], dict) else {}
    anchors = []
    for name, places in {**dict.fromkeys(_list_lesions(record)), **listed}.items():
        voxels = [_parse_voxel(one) for one in places] if isinstance(places, list) else []
        whole = tuple(voxel for voxel in voxels[:_MOST_ANCHORS] if voxel is not None)
        anchors.append(LesionAnchors(name, whole))
    return tuple(anchors)


def _parse_voxel(value: Any) -> Voxel | None:
    is_voxel = isinstance(value, list) and len(value) == 3
    if not is_voxel or not all(type(one) is int and 0 <= one < _MOST_PLACES for one in value):
        return None
    z, y, x = value
    return z, y, x


def list_computed(record: Mapping[str, Any]) -> frozenset[str]:
    """Return the keys of those answers in an event's JSON record that the program filled in."""
    listed = record.get(_COMPUTED)
    names = listed if isinstance(listed, list) else []
    return frozenset(name for name in names if isinstance(name, str))


def parse_answers_text(text: str) -> Answers:
    """Return the answers in a reading's JSON text, or no answers if it is not a JSON object."""
    return parse_answers(_parse_record(text))


def read_record(text: str, *, with_computed: bool = True) -> dict[str, Any]:
    """Return the JSON record of a reading, optionally without computed answers."""
    record = _parse_record(text)
    away = set() if with_computed else {_COMPUTED, *list_computed(record)}
    return {key: value for key, value in record.items() if key not in away}


def _parse_record(text: str) -> dict[str, Any]:
    try:
        record = parsed_json(text)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


@dataclass(frozen=True, slots=True)
class PairedTerms:
    """The terms that two readers chose for one question.

    `key` is the key in the first reader's record, `other_key` the key in the second reader's
    record. The keys differ if a lesion has different numbers in the two readings.
    """

    key: str
    other_key: str
    first: tuple[str, ...]
    second: tuple[str, ...]

    @property
    def is_same(self) -> bool:
        """Return whether the readers chose the same terms."""
        return self.first == self.second

    @property
    def name(self) -> str:
        """Name of the question and its subject, with both lesion numbers if they differ."""
        other = self.other_key.partition("@")[2]
        return self.key if self.key == self.other_key else f"{self.key} and @{other}"


def pair_categories(
    one: str, other: str, lesions: Mapping[str, str] | None = None
) -> tuple[PairedTerms, ...]:
    """Return two readings' terms for each multiple-choice question that both readers answered.

    Answers that the program filled in for both readings are left out.

    Parameters
    ----------
    one, other
        The answers of the two readings as JSON.
    lesions
        For each lesion that both readers marked, the lesion's number in the second reading by its
        number in the first. Answers about other lesions are not compared. None if no mask matches
        the
        lesions; answers about lesions are then compared only if each reader described a single
        lesion.
    """
    records = [_parse_record(text) for text in (one, other)]
    if lesions is None:
        names = [_list_lesions(record) for record in records]
        lesions = {names[0][0]: names[1][0]} if [*map(len, names)] == [1, 1] else {}
    computed = [list_computed(record) for record in records]
    pairs = []
    for key in sorted(records[0]):
        field, place = _parse_key(key)
        match = lesions.get(place.name) if place.scope is FieldScope.LESION else place.name
        same = key if match == place.name else f"{field}@{match}"
        if key.startswith("@") or match is None or same not in records[1]:
            continue
        first, second = _parse_terms(records[0][key]), _parse_terms(records[1][same])
        is_measured = key in computed[0] and same in computed[1]
        if first is not None and second is not None and not is_measured:
            pairs.append(PairedTerms(key, same, first, second))
    return tuple(pairs)


def carry_lesions(text: str, voxels: Mapping[str, Voxel]) -> str:
    """Return answers as JSON for a different mask in which some lesions keep their numbers.

    The JSON is canonical. `voxels` maps each lesion that keeps its number to one of its voxels.
    Answers about other lesions and all values measured on the previous mask are left out.
    """
    answers = parse_answers_text(text)
    lesions = [item for item in answers.items if item.place.scope is FieldScope.LESION]
    lost = {
        name_question(lesion)
        for lesion in lesions
        if lesion.place.name not in voxels or lesion.is_computed
    }
    record = {key: value for key, value in _parse_record(text).items() if key not in lost}
    computed = sorted(one for one in list_computed(record) if one not in lost)
    record.pop(_COMPUTED, None)
    if computed:
        record[_COMPUTED] = computed
    if lesions:
        record[_LESIONS] = {name: [list(voxel)] for name, voxel in voxels.items()}
    return canonical(record).decode()


def _parse_terms(value: Any) -> tuple[str, ...] | None:
    return None if isinstance(value, dict) else _parse_values(value)


def _list_lesions(record: Mapping[str, Any]) -> list[str]:
    places = {_parse_key(key)[1] for key in record if not key.startswith("@")}
    return sorted(place.name for place in places if place.scope is FieldScope.LESION)


def _parse_values(value: Any) -> tuple[str, ...] | None:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return tuple(value)
    if isinstance(value, dict):
        text = value.get(_NUMBER, value.get(_TEXT))
        if isinstance(text, str):
            return (text,) if text else ()
    return None


def name_question(answer: Answer) -> str:
    """Return the key that an event uses for an answer's question and subject.

    Examples
    --------
    >>> name_question(Answer("bpe", ("mild",)))
    'bpe'
    """
    return answer.field if answer.place == WHOLE_CASE else f"{answer.field}@{answer.place.name}"


def _parse_key(key: str) -> tuple[str, Place]:
    field, _, name = key.partition("@")
    if not name:
        return field, WHOLE_CASE
    scope = FieldScope.BREAST if name in _SIDES else FieldScope.LESION
    return field, Place(scope, name)


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """A value of an answer, in the form of a table row.

    `codes` are public codes separated by spaces, or a single code of the private scheme; "" for a
    number, free text or an unknown term. `known` is False if the form does not contain the term.
    """

    form: str
    edition: str
    scope: str
    place: str
    field: str
    question: str
    question_codes: str
    value: str
    text: str
    codes: str
    unit: str
    computed: bool
    known: bool


def list_rows(form: Form, answers: Answers) -> tuple[AnswerRow, ...]:
    """Return answers as table rows: one row for each chosen term, number or free text."""
    rows = []
    for item in normalise_answers(form, answers).items:
        field = form.field(item.field)
        for value in item.values:
            rows.append(_make_row(form, field, item, value))
    return tuple(rows)


def list_answer_rows(form: Form | None, answers: Answers) -> tuple[AnswerRow, ...]:
    """Return answers as table rows, with ids instead of names if the form is unknown."""
    if form is not None:
        try:
            return list_rows(form, answers)
        except FormatError:
            pass
    return tuple(
        AnswerRow(
            answers.form,
            answers.edition,
            str(item.place.scope),
            item.place.name,
            item.field,
            question="",
            question_codes="",
            value=value,
            text=value,
            codes="",
            unit="",
            computed=item.is_computed,
            known=False,
        )
        for item in answers.items
        for value in item.values
    )


def _make_row(form: Form, field: Field | None, answer: Answer, value: str) -> AnswerRow:
    term = None if field is None else field.term(value)
    codes = "" if term is None or field is None else join_codes(term.codes or _own(field, value))
    return AnswerRow(
        form.name,
        form.edition,
        str(answer.place.scope),
        answer.place.name,
        answer.field,
        "" if field is None else field.text,
        "" if field is None else join_codes(field.codes),
        value,
        value if term is None else term.text,
        codes,
        "" if field is None else field.unit,
        answer.is_computed,
        field is not None and (term is not None or not field.is_choice),
    )


def join_codes(codes: Sequence[Code]) -> str:
    """Return codes as one string, separated by spaces."""
    return " ".join(code.text for code in codes)


def _own(field: Field, value: str) -> tuple[Code, ...]:
    return (Code(PRIVATE_SCHEME, f"{field.id}.{value}"),)
