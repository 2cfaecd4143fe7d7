"""Tabulate the lesions of two readings of a case with the answers about each lesion."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from napari_mamamia.core.answers import Voxel
from napari_mamamia.core.form import Form
from napari_mamamia.features.review.rules.form_words import word_question, word_term
from napari_mamamia.features.review.services.judging import ShownReading
from napari_mamamia.features.review.services.lesion_match import Lesion, LesionMatch, match_masks
from napari_mamamia.findings.form_values import PairedTerms, pair_categories, parse_answers_text
from napari_mamamia.findings.lesion_numbers import rank_name


@dataclass(frozen=True, slots=True)
class PairedAnswer:
    """The answers of two readers to a question about a lesion, in the form's wording."""

    question: str
    first: str
    second: str

    @property
    def is_same(self) -> bool:
        """Return whether the answers are the same."""
        return self.first == self.second


@dataclass(frozen=True, slots=True)
class LesionRow:
    """A lesion in the adjudicator's table.

    Parameters
    ----------
    first, second
        The lesion's number in each reading; "" if not marked.
    part_of
        Number of the other reading's lesion of which this lesion is an additional part.
    volume_first_mm3, volume_second_mm3
        The lesion's volume in each reading, NaN if not marked.
    dsc
        Dice of the two outlines, NaN if only one reader marked the lesion.
    voxel
        A voxel (z, y, x) of the lesion near its centre.
    answers
        Category questions about the lesion that both readers answered.
    """

    first: str
    second: str
    part_of: str
    volume_first_mm3: float
    volume_second_mm3: float
    dsc: float
    voxel: Voxel
    answers: tuple[PairedAnswer, ...] = ()


@dataclass(frozen=True, slots=True)
class LesionTable:
    """All lesions of two readings: those marked by one reader, then parts, then those of both.

    Parameters
    ----------
    n_both, n_first, n_second, n_parts
        Lesions marked by both, by one only, and additional parts of a lesion that the other reader
        drew as one.
    lost_first, lost_second
        Numbers of lesions that a reader described but did not draw in the mask.
    n_left_out
        Number of components beyond the 1,000 largest of a mask.
    """

    rows: tuple[LesionRow, ...] = ()
    n_both: int = 0
    n_first: int = 0
    n_second: int = 0
    n_parts: int = 0
    lost_first: tuple[str, ...] = ()
    lost_second: tuple[str, ...] = ()
    n_left_out: int = 0

    @property
    def answers(self) -> tuple[PairedAnswer, ...]:
        """Return both readers' answers about the lesions marked by both."""
        return tuple(answer for row in self.rows for answer in row.answers)


def list_lesions(
    first: ShownReading, second: ShownReading, form: Form | None = None
) -> LesionTable:
    """Return the lesions of two readings, with questions and terms in the wording of `form`.

    Raises
    ------
    GridMismatchError
        If the masks are on different grids.
    """
    anchors = tuple(parse_answers_text(one.reading.answers).anchors for one in (first, second))
    match = match_masks(first.labels, second.labels, (anchors[0], anchors[1]))
    return LesionTable(
        tuple(_list_rows(match, first, second, form)),
        len(match.both),
        len(match.first_alone),
        len(match.second_alone),
        match.n_parts,
        _list_lost(first, match.first),
        _list_lost(second, match.second),
        match.n_left_out,
    )


def _list_lost(reading: ShownReading, lesions: tuple[Lesion, ...]) -> tuple[str, ...]:
    described = parse_answers_text(reading.reading.answers).described
    return tuple(sorted(described - {lesion.name for lesion in lesions}, key=rank_name))


def _list_rows(
    match: LesionMatch, first: ShownReading, second: ShownReading, form: Form | None
) -> Iterator[LesionRow]:
    ones = {one.name: one for one in match.first}
    others = {one.name: one for one in match.second}
    for name in match.first_alone:
        yield _make_row(ones[name], None)
    for name in match.second_alone:
        yield _make_row(None, others[name])
    for name, whole in match.first_parts:
        yield _make_row(ones[name], None, part_of=whole)
    for name, whole in match.second_parts:
        yield _make_row(None, others[name], part_of=whole)
    for pair in match.both:
        answers = pair_categories(
            first.reading.answers, second.reading.answers, {pair.first: pair.second}
        )
        about = (answer for answer in answers if answer.key.partition("@")[2] == pair.first)
        yield _make_row(
            ones[pair.first],
            others[pair.second],
            pair.dsc,
            tuple(_word_answer(form, one) for one in about),
        )


def _make_row(
    lesion: Lesion | None,
    other: Lesion | None,
    dsc: float = math.nan,
    answers: tuple[PairedAnswer, ...] = (),
    part_of: str = "",
) -> LesionRow:
    shown = lesion if lesion is not None else other
    return LesionRow(
        "" if lesion is None else lesion.name,
        "" if other is None else other.name,
        part_of,
        math.nan if lesion is None else lesion.volume_mm3,
        math.nan if other is None else other.volume_mm3,
        dsc,
        (0, 0, 0) if shown is None else shown.voxel,
        answers,
    )


def _word_answer(form: Form | None, pair: PairedTerms) -> PairedAnswer:
    name = pair.key.partition("@")[0]
    first, second = (
        ", ".join(word_term(form, name, value) for value in chosen)
        for chosen in (pair.first, pair.second)
    )
    return PairedAnswer(word_question(form, name), first, second)
