"""Collect the readers' answers by question.

A reading holds its answers as JSON. A string is one category, and a list of strings several
categories. An object with ``number`` is a number, and an object with ``text`` free text. Keys
``ID@right`` and ``ID@left`` are about a breast, ``ID@1`` about a lesion; keys ``@...`` are no
answers.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import isfinite
from typing import Any, Final

from napari_mamamia.findings.form_values import list_computed

_BREASTS: Final = ("right", "left")
_YES, _NO = "yes", "no"
_LESION: Final = "lesion"
Unit = tuple[int, str]
"""The rated unit: the index of the case, and "", a breast, or a lesion such as "lesion 1"."""


class QuestionKind(StrEnum):
    """The type of a question's answers; the value is written to files."""

    CATEGORY = "category"
    SEVERAL = "several"
    NUMBER = "number"
    TEXT = "text"


@dataclass(slots=True)
class Question:
    """A question and its answers; `ratings` are by rated unit, then by reader.

    `readers` holds the readers of each case by its index. `n_computed` is the number of answers
    filled in by the program and not changed by a reader.
    """

    name: str
    kind: QuestionKind
    ratings: dict[Unit, dict[str, Any]] = field(default_factory=dict)
    readers: Mapping[int, set[str]] = field(default_factory=dict)
    n_computed: int = 0

    def count_alone(self, *pair: str) -> int:
        """Count the lesions with an answer from one reader only, although others read the case.

        For a pair, the count is of lesions with an answer from only one of the two, if both read
        the case. Either the other reader did not mark the lesion, or did not answer.
        """
        n_alone = 0
        for (at, place), row in self.ratings.items():
            readers = self.readers.get(at, set())
            among = readers & set(pair) if pair else readers
            is_read = len(among) > 1
            n_alone += place.startswith(_LESION) and is_read and len(among & set(row)) == 1
        return n_alone


@dataclass(frozen=True, slots=True)
class ReaderAnswers:
    """The answers of a reading as canonical JSON, with the index of the case in the study.

    `lesions` maps the reader's lesion numbers to numbers common to all readers; None without masks.
    """

    at: int
    reader: str
    answers: str
    lesions: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class QuestionTable:
    """Questions sorted by name; `notes` lists questions that cannot be compared, with reasons.

    `n_unmatched` is the number of readings that describe a lesion missing in their mask, or several
    lesions without a mask. Their answers about these lesions are not compared.
    """

    questions: tuple[Question, ...]
    notes: tuple[tuple[str, str], ...] = ()
    n_unmatched: int = 0


def collect_questions(readings: Iterable[ReaderAnswers]) -> QuestionTable:
    """Collect all answered questions; `readings` holds at most one reading per reader and case."""
    kinds: dict[str, set[QuestionKind]] = {}
    given: dict[str, dict[Unit, dict[str, Any]]] = {}
    n_unmatched = 0
    n_computed: Counter[str] = Counter()
    readers: dict[int, set[str]] = {}
    for reading in readings:
        readers.setdefault(reading.at, set()).add(reading.reader)
        answers, is_unmatched = _parse_answers(reading.answers, reading.lesions)
        n_unmatched += is_unmatched
        for name, place, kind, value, is_computed in answers:
            n_computed[name] += is_computed
            kinds.setdefault(name, set())
            if value != []:
                kinds[name].add(kind)
            given.setdefault(name, {}).setdefault((reading.at, place), {})[reading.reader] = value
    questions: list[Question] = []
    notes = []
    for name in sorted(given):
        if len(kinds[name]) > 1:
            text = f"it has answers of different types ({', '.join(sorted(kinds[name]))})"
            notes.append((name, text))
        elif kinds[name] == {QuestionKind.SEVERAL}:
            questions += _split_choices(name, given[name], readers)
        elif kinds[name]:
            kind = kinds[name].pop()
            rows = _drop_empty(given[name])
            questions.append(Question(name, kind, rows, readers, n_computed[name]))
    return QuestionTable(tuple(questions), tuple(notes), n_unmatched)


def _parse_answers(
    text: str, names: Mapping[str, str] | None
) -> tuple[list[tuple[str, str, QuestionKind, Any, bool]], bool]:
    """Return (question, place, kind, value, computed) rows, and whether lesions were left out."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        record = {}
    answers = []
    computed = list_computed(record) if isinstance(record, dict) else frozenset()
    lesions = set()
    is_unmatched = False
    for key, value in record.items() if isinstance(record, dict) else ():
        name, _, place = key.partition("@")
        kind, plain = _read_value(value)
        if not name or kind is None:
            continue
        if place and place not in _BREASTS:
            lesions.add(place)
            number = "1" if names is None else names.get(place)
            if number is None:
                is_unmatched = True
                continue
            place = f"{_LESION} {number}"
        answers.append((name, place, kind, plain, key in computed))
    if names is None and len(lesions) > 1:
        return [answer for answer in answers if not answer[1].startswith(_LESION)], True
    return answers, is_unmatched


def _read_value(value: Any) -> tuple[QuestionKind | None, Any]:
    if isinstance(value, str):
        return QuestionKind.CATEGORY, value
    if isinstance(value, bool):
        return QuestionKind.CATEGORY, _YES if value else _NO
    if isinstance(value, int):
        return QuestionKind.NUMBER, float(value)
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return QuestionKind.SEVERAL, value
    if isinstance(value, dict) and isinstance(value.get("number"), str):
        try:
            number = float(value["number"])
        except ValueError:
            return None, None
        return (QuestionKind.NUMBER, number) if isfinite(number) else (None, None)
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        return QuestionKind.TEXT, value["text"]
    return None, None


def _split_choices(
    name: str,
    given: Mapping[Unit, Mapping[str, list[str]]],
    readers: Mapping[int, set[str]],
) -> list[Question]:
    """Split a multiple-choice question into one yes/no question per chosen term."""
    terms = sorted({term for row in given.values() for chosen in row.values() for term in chosen})
    return [
        Question(
            f"{name}: {term}",
            QuestionKind.SEVERAL,
            {
                unit: {reader: _YES if term in chosen else _NO for reader, chosen in row.items()}
                for unit, row in given.items()
            },
            readers,
        )
        for term in terms
    ]


def _drop_empty(given: Mapping[Unit, Mapping[str, Any]]) -> dict[Unit, dict[str, Any]]:
    """Return the answers without deleted ones."""
    rows = {
        unit: {reader: value for reader, value in row.items() if value != []}
        for unit, row in given.items()
    }
    return {unit: row for unit, row in rows.items() if row}


def order_categories(question: Question, order: Sequence[str] = ()) -> tuple[tuple[str, ...], bool]:
    """Return the sorted categories of a question, and whether their order is meaningful.

    `order` is that of the form; categories that it does not contain come last and make the order
    meaningless. Without it, whole numbers are sorted as numbers and other categories
    alphabetically.
    """
    used = {value for row in question.ratings.values() for value in row.values()}
    if order:
        rest = sorted(used - set(order))
        return (*order, *rest), not rest and question.kind is QuestionKind.CATEGORY
    if used and all(value.isdecimal() and value.isascii() for value in used):
        return tuple(sorted(used, key=lambda value: (int(value), value))), True
    return tuple(sorted(used)), False
