"""A form: the questions that a case, a breast and a lesion are described by.

A `Lexicon` is such a set of fields as shipped, versioned data; a study's `Form` is what it asks.
What somebody answers is in `core.answers`; which questions are asked now, what is missing and what
contradicts: `reviewing.form_rules`.
"""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from napari_mamamia.core.errors import FormatError

MOST_FIELDS: Final = 500
LONGEST_ID: Final = 200
LONGEST_TEXT: Final = 4000
"""Limits of ours, in characters: an event's line holds one answered form."""

PRIVATE_SCHEME: Final = "99MAMAMIA"
"""Of terms for which no code of a public scheme is known to mean the same."""


class FieldKind(StrEnum):
    """How a question is answered."""

    SINGLE = "single"
    MULTIPLE = "multiple"
    NUMBER = "number"
    TEXT = "text"


class FieldScope(StrEnum):
    """What a question is asked of."""

    CASE = "case"
    BREAST = "breast"
    LESION = "lesion"


class Measure(StrEnum):
    """What the program can answer from image and mask, until somebody says otherwise."""

    INITIAL_RISE = "initial-rise"
    DELAYED_COURSE = "delayed-course"
    SIDE = "side"
    VOLUME_MM3 = "volume-mm3"
    LONGEST_IN_PLANE_MM = "longest-in-plane-mm"
    QUADRANT = "quadrant"
    CLOCK = "clock"
    DEPTH = "depth"
    TO_NIPPLE_MM = "to-nipple-mm"


class MaskRule(StrEnum):
    """What a term says of the mask: of its lesion, or of anything in its breast or case."""

    NONE = ""
    NEEDED = "needed"
    FORBIDDEN = "forbidden"


@dataclass(frozen=True, slots=True)
class Code:
    """A code of a public scheme, such as SCT, DCM, RADLEX or NCIt."""

    scheme: str
    value: str

    @property
    def text(self) -> str:
        """As files hold it.

        Examples
        --------
        >>> Code("SCT", "84360004").text
        'SCT:84360004'
        """
        return f"{self.scheme}:{self.value}"

    @classmethod
    def of(cls, text: str) -> "Code":
        """Return the code of ``SCHEME:VALUE``; ValueError for anything else."""
        scheme, colon, value = text.partition(":")
        if not (colon and scheme.strip() and value.strip()):
            raise ValueError(f"expected SCHEME:VALUE, got {text!r}")
        return cls(scheme.strip(), value.strip())


@dataclass(frozen=True, slots=True)
class Term:
    """One value that may be chosen: `id` stands in files, `text` is read by people."""

    id: str
    text: str
    codes: tuple[Code, ...] = ()
    mask: MaskRule = MaskRule.NONE

    def __post_init__(self) -> None:
        _require_id(self.id, "a term")
        _require_text(self.text, f"the text of the term {self.id!r}")


@dataclass(frozen=True, slots=True)
class Condition:
    """Holds where the answer to `field` is, or has among others, one of `values`.

    The answer of the same lesion or breast where that field is asked there, else the case's.
    """

    field: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """A question.

    Parameters
    ----------
    unit, low, high
        Of a number; both ends are allowed.
    asked_if
        Asked only where all of these hold.
    required, required_if
        Must be answered where it is asked: always, or where all of these hold.
    measure
        What the program fills in until somebody answers.
    """

    id: str
    text: str
    kind: FieldKind
    scope: FieldScope = FieldScope.CASE
    terms: tuple[Term, ...] = ()
    codes: tuple[Code, ...] = ()
    unit: str = ""
    low: float | None = None
    high: float | None = None
    asked_if: tuple[Condition, ...] = ()
    required: bool = False
    required_if: tuple[Condition, ...] = ()
    measure: Measure | None = None

    def __post_init__(self) -> None:
        _require_id(self.id, "a question")
        _require_text(self.text, f"the text of the question {self.id!r}")
        if self.is_choice != bool(self.terms):
            raise FormatError(
                f"expected terms for a single or multiple question and none otherwise, got "
                f"{len(self.terms)} for {self.id!r}, which is {self.kind}: correct its kind"
            )
        _require_distinct((term.id for term in self.terms), f"term of {self.id!r}")
        if self.kind is not FieldKind.NUMBER and (
            self.unit or self.low is not None or self.high is not None
        ):
            raise FormatError(
                f"expected unit and limits for a number alone, got them for {self.id!r}, which is "
                f"{self.kind}: leave them out"
            )
        if self.low is not None and self.high is not None and not self.low <= self.high:
            raise FormatError(
                f"expected the lower limit of {self.id!r} at or below the upper one, got "
                f"{self.low:g} and {self.high:g}: swap them"
            )
        if self.measure is not None and self.scope is not FieldScope.LESION:
            raise FormatError(
                f"expected what is measured to be asked of a lesion, got {self.id!r} of a "
                f"{self.scope}: give it the scope lesion"
            )

    @property
    def is_choice(self) -> bool:
        """Whether it is answered by terms."""
        return self.kind in (FieldKind.SINGLE, FieldKind.MULTIPLE)

    def term(self, term_id: str) -> Term | None:
        """Return the term of an id; None for one that this edition has not."""
        return next((term for term in self.terms if term.id == term_id), None)


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Fields as shipped data.

    Parameters
    ----------
    name, edition
        What a protocol calls it, and which edition of the terms it is.
    remark
        Whose the terms are.
    """

    name: str
    edition: str
    title: str
    remark: str
    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        _require_id(self.name, "a lexicon")
        _require_order(self.fields)

    @property
    def form(self) -> "Form":
        """The form that asks all of it."""
        return Form(self.name, self.edition, self.fields)


@dataclass(frozen=True, slots=True)
class Form:
    """What a study asks, in the order in which it is asked.

    A question may depend on those before it alone, so that none waits for itself. `sha256` is of
    the fields as files hold them: answers name it.

    Raises
    ------
    FormatError
        If two questions have one id (letter case and spelling of accents do not tell them apart),
        or one depends on what does not come before it, or on a value that this has not.
    """

    name: str
    edition: str = ""
    fields: tuple[Field, ...] = ()
    sha256: str = ""

    def __post_init__(self) -> None:
        _require_order(self.fields)

    def field(self, field_id: str) -> Field | None:
        """Return the question of an id; None for one that this form has not."""
        return next((field for field in self.fields if field.id == field_id), None)

    def of_scope(self, scope: FieldScope) -> tuple[Field, ...]:
        """Return the questions that are asked of a case, a breast or a lesion."""
        return tuple(field for field in self.fields if field.scope is scope)


def fold_id(text: str) -> str:
    """Return what ids are compared by: letter case and how accents are stored do not matter."""
    return unicodedata.normalize("NFC", text).casefold()


def _require_id(text: str, what: str) -> None:
    is_plain = text == text.strip() and text.isprintable() and "@" not in text
    if not (text and is_plain and len(text) <= LONGEST_ID):
        raise FormatError(
            f"expected the id of {what} to have 1 to {LONGEST_ID} printable characters, none of "
            f"them @ and no blank at its ends, got {text[:60]!r}: give it a short one"
        )


def _require_text(text: str, what: str) -> None:
    if not text.strip() or len(text) > LONGEST_TEXT:
        raise FormatError(
            f"expected {what} to have 1 to {LONGEST_TEXT} characters, got {len(text)}: write it "
            "in a few words"
        )


def _require_distinct(ids: Iterable[str], what: str) -> None:
    visited: set[str] = set()
    for identifier in ids:
        if fold_id(identifier) in visited:
            raise FormatError(f"expected each {what} once, got {identifier!r} twice: rename one")
        visited.add(fold_id(identifier))


def _require_order(fields: tuple[Field, ...]) -> None:
    if not 0 < len(fields) <= MOST_FIELDS:
        raise FormatError(
            f"expected 1 to {MOST_FIELDS} questions, got {len(fields)}: split the form"
        )
    _require_distinct((field.id for field in fields), "question")
    before: dict[str, Field] = {}
    for one in fields:
        for condition in (*one.asked_if, *one.required_if):
            _require_condition(condition, one, before)
        before[one.id] = one


def _require_condition(condition: Condition, of: Field, before: dict[str, Field]) -> None:
    other = before.get(condition.field)
    if other is None:
        raise FormatError(
            f"expected the question {of.id!r} to depend on one that comes before it, got "
            f"{condition.field!r}: put that one first; two that depend on each other could "
            "neither be asked"
        )
    if other.scope not in (of.scope, FieldScope.CASE):
        raise FormatError(
            f"expected the question {of.id!r} to depend on one of the same {of.scope} or of the "
            f"case, got {other.id!r} of a {other.scope}: ask it there"
        )
    unknown = [value for value in condition.values if other.term(value) is None]
    if not condition.values or unknown:
        raise FormatError(
            f"expected the question {of.id!r} to depend on terms of {other.id!r}, got "
            f"{unknown[0] if unknown else 'none'!r}: name terms that it has"
        )
