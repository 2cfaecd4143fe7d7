"""Forms with questions about a case, its breasts and its lesions.

A `Lexicon` is a versioned set of questions that is shipped as data; a `Form` holds the questions of
a study. Answers are in `core.answers`; `findings.form_rules` decides which questions apply and
which answers are missing or contradictory.
"""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.names import count_of

MOST_FIELDS: Final = 500
LONGEST_ID: Final = 200
LONGEST_TEXT: Final = 4000
"""Maximum text length in characters. Our choice, because one line of an event file holds a whole
form.
"""

PRIVATE_SCHEME: Final = "99MAMAMIA"
"""Coding scheme for terms without a known code in a public scheme."""


class FieldKind(StrEnum):
    """How a question is answered."""

    SINGLE = "single"
    MULTIPLE = "multiple"
    NUMBER = "number"
    TEXT = "text"


class FieldScope(StrEnum):
    """The kind of subject that a question is about."""

    CASE = "case"
    BREAST = "breast"
    LESION = "lesion"


class Measure(StrEnum):
    """A value that the program measures and uses as the answer until a reader answers."""

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
    """The mask that a term requires: one of its lesion, or any mask in its breast or case."""

    NONE = ""
    NEEDED = "needed"
    FORBIDDEN = "forbidden"


@dataclass(frozen=True, slots=True)
class Code:
    """A code of a public coding scheme, such as SCT, DCM, RADLEX or NCIt."""

    scheme: str
    value: str

    @property
    def text(self) -> str:
        """The code in the form used in files.

        Examples
        --------
        >>> Code("SCT", "84360004").text
        'SCT:84360004'
        """
        return f"{self.scheme}:{self.value}"

    @classmethod
    def of(cls, text: str) -> "Code":
        """Return the code for ``SCHEME:VALUE``; raise ValueError for any other string."""
        scheme, colon, value = text.partition(":")
        if not (colon and scheme.strip() and value.strip()):
            raise ValueError(f"expected a code of the form SCHEME:VALUE, but got {text!r}")
        return cls(scheme.strip(), value.strip())


@dataclass(frozen=True, slots=True)
class Term:
    """A value that a reader can choose; files store its `id`, and the window shows its `text`."""

    id: str
    text: str
    codes: tuple[Code, ...] = ()
    mask: MaskRule = MaskRule.NONE

    def __post_init__(self) -> None:
        _require_id(self.id, "a term")
        _require_text(self.text, f"the text of the term {self.id!r}")


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition: the answer to the question `field` includes one of `values`.

    If that question also applies to the same lesion or breast, its answer there is used. Otherwise
    the answer for the case is used.
    """

    field: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """One question in a form.

    Parameters
    ----------
    unit, low, high
        Unit and inclusive limits of a number.
    asked_if
        Conditions that must all be true for the question to be asked.
    required, required_if
        Whether the question must always be answered, and conditions under which it must be
        answered.
    measure
        The value that the program fills in until a reader answers.
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
                "expected terms if the kind is single or multiple, and no terms otherwise, but "
                f"the question {self.id!r} has kind {self.kind} and "
                f"{count_of(len(self.terms), 'term')}: correct the kind or the terms"
            )
        _require_distinct((term.id for term in self.terms), f"term of {self.id!r}")
        if self.kind is not FieldKind.NUMBER and (
            self.unit or self.low is not None or self.high is not None
        ):
            raise FormatError(
                "expected only numeric questions to have a unit or limits, but the question "
                f"{self.id!r} has kind {self.kind}: remove its unit and limits"
            )
        if self.low is not None and self.high is not None and not self.low <= self.high:
            raise FormatError(
                f"expected the lower limit of {self.id!r} to be at most the upper limit, but the "
                f"limits are {self.low:g} and {self.high:g}: swap them"
            )
        if self.measure is not None and self.scope is not FieldScope.LESION:
            raise FormatError(
                f"a measured question must have the scope lesion, but {self.id!r} has the scope "
                f"{self.scope}: change the scope"
            )

    @property
    def is_choice(self) -> bool:
        """Whether the answer is one or more terms."""
        return self.kind in (FieldKind.SINGLE, FieldKind.MULTIPLE)

    def term(self, term_id: str) -> Term | None:
        """Return the term with the given id, or None if this edition does not have it."""
        return next((term for term in self.terms if term.id == term_id), None)


@dataclass(frozen=True, slots=True)
class Lexicon:
    """A versioned set of questions that is shipped with this software as data.

    Parameters
    ----------
    name, edition
        The lexicon's name as written in a protocol, and the edition of its terms.
    remark
        The source and the owner of the terms.
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
        """The form that contains all questions."""
        return Form(self.name, self.edition, self.fields)


@dataclass(frozen=True, slots=True)
class Form:
    """The questions of a study in their order.

    A question may depend only on earlier questions, so that dependencies are never circular.
    `sha256` is the digest of the fields as written in files; answers refer to it.

    Raises
    ------
    FormatError
        If two questions have the same id (ignoring letter case and the spelling of accents), or if
        a
        question depends on a later question or on a value that the other question does not have.
    """

    name: str
    edition: str = ""
    fields: tuple[Field, ...] = ()
    sha256: str = ""

    def __post_init__(self) -> None:
        _require_order(self.fields)

    def field(self, field_id: str) -> Field | None:
        """Return the question with the given id, or None if this form does not have it."""
        return next((field for field in self.fields if field.id == field_id), None)

    def of_scope(self, scope: FieldScope) -> tuple[Field, ...]:
        """Return the questions about this kind of subject."""
        return tuple(field for field in self.fields if field.scope is scope)


def fold_id(text: str) -> str:
    """Return an id in lower case and with normalised accents, for use in comparisons."""
    return unicodedata.normalize("NFC", text).casefold()


def _require_id(text: str, what: str) -> None:
    is_plain = text == text.strip() and text.isprintable() and "@" not in text
    if not (text and is_plain and len(text) <= LONGEST_ID):
        raise FormatError(
            f"expected the id of {what} to have 1 to {LONGEST_ID} printable characters, no @, and "
            f"no spaces at either end, but got {text[:60]!r}: choose a short id"
        )


def _require_text(text: str, what: str) -> None:
    if not text.strip() or len(text) > LONGEST_TEXT:
        raise FormatError(
            f"expected {what} to have 1 to {LONGEST_TEXT} characters, but it has {len(text)}: "
            "shorten it"
        )


def _require_distinct(ids: Iterable[str], what: str) -> None:
    visited: set[str] = set()
    for identifier in ids:
        if fold_id(identifier) in visited:
            raise FormatError(
                f"expected each {what} to occur only once, but found {identifier!r} "
                "twice: rename one of them"
            )
        visited.add(fold_id(identifier))


def _require_order(fields: tuple[Field, ...]) -> None:
    if not 0 < len(fields) <= MOST_FIELDS:
        raise FormatError(
            f"expected a form to have 1 to {MOST_FIELDS} questions, but it has {len(fields)}: "
            "split the form"
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
            f"expected the question {of.id!r} to depend on an earlier question, but it depends on "
            f"{condition.field!r}: move that question before it; two questions cannot depend on "
            "each other"
        )
    if other.scope not in (of.scope, FieldScope.CASE):
        raise FormatError(
            f"expected the question {of.id!r} to depend on a question about the same {of.scope} or "
            f"about the case, but {other.id!r} is about a {other.scope}: change its scope"
        )
    unknown = [value for value in condition.values if other.term(value) is None]
    if not condition.values or unknown:
        raise FormatError(
            f"expected the question {of.id!r} to depend on terms of {other.id!r}, but got "
            f"{unknown[0] if unknown else 'none'!r}: use terms that this question has"
        )
