"""Write the answers of a study as tables: long, wide, and for MRMC programs."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.answers import Answer, Answers, Place
from napari_mamamia.core.errors import CaseError, MamamiaError
from napari_mamamia.core.form import FieldScope, Form
from napari_mamamia.core.progress import report_progress
from napari_mamamia.features.review.io.store import EventStore
from napari_mamamia.features.review.rules.replay import ReviewState
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.rules.views import CaseView
from napari_mamamia.features.review.services.agreement.agreement_output import save_rows
from napari_mamamia.features.review.services.agreement.mask_pairs import LeftOut
from napari_mamamia.features.review.services.compare import load_stored_labels
from napari_mamamia.features.review.services.lesion_match import (
    LesionMatch,
    group_lesions,
    join_lesions,
    match_masks,
)
from napari_mamamia.findings.form_values import (
    AnswerRow,
    list_answer_rows,
    name_question,
    parse_answers_text,
)
from napari_mamamia.io.files.save import write_text_atomically

ACCEPTED: Final = "accepted"
"""Name used instead of a reader for answers accepted with a case."""
_WHO: Final = ("case_id", "who", "round", "occasion", "at", "stands")
_ROW: Final = (
    *("form", "edition", "scope", "place", "field", "question", "question_codes"),
    *("value", "text", "codes", "unit", "computed", "known"),
)


@dataclass(frozen=True, slots=True)
class GivenAnswers:
    """The answers of a reading, or the answers accepted with a case (`is_accepted`).

    `who` is the reader, or ACCEPTED; `by` is the reader or the person who decided.
    """

    case_id: str
    key: str
    who: str
    round: int
    occasion: int
    at: str
    stands: bool
    active_s: int
    mask: str
    hash: str
    answers: Answers
    by: str
    is_accepted: bool = False

    @property
    def cells(self) -> tuple[Any, ...]:
        """Return the first columns of every table."""
        is_standing = "yes" if self.stands else "no"
        return (self.case_id, self.who, self.round, self.occasion, self.at, is_standing)


def list_answers(state: ReviewState) -> Iterator[GivenAnswers]:
    """Yield the answers of every submitted reading in all rounds, then the accepted answers."""
    for view in state.cases:
        case_id = state.study.case(view.key).case_id
        for one in (*view.earlier, *view.readings):
            if one.hash:
                stands = one in view.readings and one.state is CaseState.READ
                answers = parse_answers_text(one.answers)
                who = (case_id, view.key, one.reader, one.round, one.occasion, one.at)
                what = (stands, one.active_s, one.mask, one.hash, answers)
                yield GivenAnswers(*who, *what, one.reader)
        if is_accepted(view) and view.decision is not None:
            last = view.decision
            answers = parse_answers_text(last.answers)
            who = (case_id, view.key, ACCEPTED, view.round, 0, last.at)
            what = (True, 0, last.mask, last.hash, answers)
            yield GivenAnswers(*who, *what, last.reader, is_accepted=True)


def is_accepted(view: CaseView) -> bool:
    """Return whether a case is accepted without a conflict."""
    return not view.conflicts and view.state in (CaseState.ACCEPTED, CaseState.SIGNED)


def number_lesions(
    store: EventStore, state: ReviewState, left_out: list[LeftOut]
) -> dict[str, dict[str, str]]:
    """Return the common number of each described lesion, by event and the reader's own number.

    The numbers are common to all current readings of a case (`group_lesions`); lesions of earlier
    rounds, repeats and accepted masks are matched to them. A mask that cannot be read gets no
    numbers and is appended to `left_out`.
    """
    by_case: dict[str, list[GivenAnswers]] = {}
    for answer in list_answers(state):
        by_case.setdefault(answer.key, []).append(answer)
    numbers: dict[str, dict[str, str]] = {}
    for index, given in enumerate(by_case.values()):
        report_progress(index, len(by_case), "Matching lesions")
        if any(one.answers.lesions for one in given):
            try:
                numbers |= _number_case(store, given)
            except MamamiaError as error:
                left_out.append(LeftOut(given[0].case_id, "numbers of its lesions", str(error)))
    return numbers


def _number_case(store: EventStore, records: Sequence[GivenAnswers]) -> dict[str, dict[str, str]]:
    masks = {record.mask: load_stored_labels(store, record.mask) for record in records}

    def match(answers: GivenAnswers, other: GivenAnswers | None) -> LesionMatch:
        there = (None, ()) if other is None else (masks[other.mask], other.answers.anchors)
        return match_masks(masks[answers.mask], there[0], (answers.answers.anchors, there[1]))

    first = [
        record
        for record in records
        if record.stands and not (record.is_accepted or record.occasion)
    ]
    matches = [(one.hash, "", match(one, None)) for one in first]
    matches += [(one.hash, other.hash, match(one, other)) for one, other in combinations(first, 2)]
    numbers = group_lesions(matches)
    for one in records:
        if one not in first:
            alone = {"": match(one, None)}
            others = {other.hash: match(one, other) for other in first}
            numbers[one.hash] = join_lesions(numbers, alone | others)
    return numbers


def use_study_numbers(
    records: Iterable[GivenAnswers],
    numbers: Mapping[str, Mapping[str, str]],
    left_out: list[LeftOut],
) -> tuple[GivenAnswers, ...]:
    """Renumber answers about lesions by the common numbers of `number_lesions`.

    Other programs need the same lesion number for every reader. Answers about a lesion that is
    missing in its mask have no number and are appended to `left_out`.
    """
    return tuple(_rename_lesions(one, numbers.get(one.hash, {}), left_out) for one in records)


def _rename_lesions(
    answers: GivenAnswers, by_name: Mapping[str, str], left_out: list[LeftOut]
) -> GivenAnswers:
    items = []
    for item in answers.answers.items:
        place = item.place
        if place.scope is FieldScope.LESION:
            if place.name not in by_name:
                text = (
                    f"lesion {place.name} has no number common to all readers: see answers_long.csv"
                )
                left_out.append(LeftOut(answers.case_id, f"{item.field} by {answers.who}", text))
                continue
            place = Place(place.scope, by_name[place.name])
        items.append(replace(item, place=place))
    return replace(answers, answers=replace(answers.answers, items=tuple(items)))


def save_answers(
    state: ReviewState,
    form: Form | None,
    folder: Path,
    numbers: Mapping[str, Mapping[str, str]],
) -> tuple[Path, ...]:
    """Write ``answers_long.csv`` (one row per value) and ``answers_wide.csv`` (per reading).

    The common lesion numbers of `number_lesions` are written in addition to the reader's own
    numbers.
    """
    given = tuple(list_answers(state))
    long = [
        (*answers.cells, *_list_cells(row, numbers.get(answers.hash, {})))
        for answers in given
        for row in list_answer_rows(form, answers.answers)
    ]
    columns = sorted({name_question(item) for one in given for item in one.answers.items})
    wide = []
    for answers in given:
        values = {name_question(item): "; ".join(item.values) for item in answers.answers.items}
        cells = (values.get(name, "") for name in columns)
        by_name = numbers.get(answers.hash, {})
        same = " ".join(f"{name}={number}" for name, number in sorted(by_name.items()))
        wide.append((*answers.cells, answers.active_s, answers.mask, same, *cells))
    paths = (folder / "answers_long.csv", folder / "answers_wide.csv")
    save_rows((*_WHO, *_ROW[:4], "lesion", *_ROW[4:]), long, paths[0])
    save_rows((*_WHO, "active_s", "mask_sha256", "lesions", *columns), wide, paths[1])
    return paths


def _list_cells(row: AnswerRow, numbers: Mapping[str, str]) -> tuple[Any, ...]:
    """Return a row with the lesion's common number after the reader's own number."""
    cells = tuple(asdict(row)[name] for name in _ROW)
    number = numbers.get(row.place, "") if row.scope == FieldScope.LESION else ""
    return (*cells[:4], number, *cells[4:])


# -------------------------------------------------------------------------- MRMC


@dataclass(frozen=True, slots=True)
class MrmcRow:
    """One rating; `truth` is 1 or 0, "" if unknown."""

    reader: str
    treatment: str
    case: str
    truth: str
    rating: float


def list_ratings(
    records: Iterable[GivenAnswers], treatment: str, question: str, positives: Sequence[str] | None
) -> tuple[MrmcRow, ...]:
    """Return the ratings of the current round without hidden repeats.

    Parameters
    ----------
    records
        Answers with common lesion numbers.
    treatment
        Name of the single treatment: the study.
    question
        Question with numeric answers or terms; for a breast the case is ``ID@right``, for a lesion
        ``ID@2``.
    positives
        Cases with truth 1, as named in the column `case`; all other cases have truth 0. None if the
        truth is unknown.

    Raises
    ------
    CaseError
        If nobody answered the question, an answer is not a number, or a positive is not among the
        cases.
    """
    rows = []
    for record in records:
        if record.is_accepted or record.occasion or not record.stands:
            continue
        for item in record.answers.items:
            if item.field == question and item.values:
                case = name_question(Answer(record.case_id, item.values, item.place))
                truth = "" if positives is None else str(int(case in positives))
                rating = _read_rating(item.values[0], question, record.case_id)
                rows.append(MrmcRow(record.who, treatment, case, truth, rating))
    _require_ratings(rows, question, positives)
    return tuple(rows)


def _read_rating(text: str, question: str, case_id: str) -> float:
    try:
        rating = float(text)
    except ValueError:
        rating = math.nan
    if not math.isfinite(rating):
        raise CaseError(
            f"expected numbers as ratings, but found {text!r} for {question!r} of {case_id}: "
            "choose a question that is answered by numbers, such as assessment"
        )
    return rating


def _require_ratings(
    rows: Sequence[MrmcRow], question: str, positives: Iterable[str] | None
) -> None:
    if not rows:
        raise CaseError(
            f"expected answers to {question!r}, but found none: check the spelling in the form"
        )
    unknown = sorted(set(positives or ()) - {row.case for row in rows})
    if unknown:
        raise CaseError(
            f"expected positive cases among the rated ones, but found {unknown[0]!r}: write them "
            "as in the column case of mrmc.csv, such as ID or ID@right"
        )


def save_mrmc(rows: Sequence[MrmcRow], folder: Path) -> tuple[Path, ...]:
    """Write ``mrmc.csv``; with cases of both truths also ``mrmc.imrmc`` and ``mrmc_ids.csv``.

    The first file has the format of R's MRMCaov, the second that of iMRMC (FDA) and RJafroc. In the
    second file readers and cases are numbers, which the third file explains.

    Source: DIDSR/iMRMC ad589e5, `InputFile.getExperimentSizeFromHeader`: its header is any text, in
    which "N0:" and the like anywhere begin a number.
    """
    table = folder / "mrmc.csv"
    save_rows(
        ("reader", "treatment", "case", "truth", "rating"),
        [(row.reader, row.treatment, row.case, row.truth, row.rating) for row in rows],
        table,
    )
    truths = {row.case: row.truth for row in rows}
    if set(truths.values()) != {"0", "1"}:
        return (table,)
    # cases without the signal first, as in iMRMC's own files
    cases = sorted(truths, key=lambda case: (truths[case], case))
    readers = sorted({row.reader for row in rows})
    numbers = {case: number for number, case in enumerate(cases, start=1)}
    of_reader = {reader: number for number, reader in enumerate(readers, start=1)}
    lines = [
        f"Review study {' '.join(rows[0].treatment.replace(':', ' ').split())}",
        f"N0: {sum(truth == '0' for truth in truths.values())}",
        f"N1: {sum(truth == '1' for truth in truths.values())}",
        f"NR: {len(readers)}",
        "NM: 1",
        "BEGIN DATA:",
        *(f"-1,{numbers[case]},0,{truths[case]}" for case in cases),
        *(
            f"{of_reader[row.reader]},{numbers[row.case]},1,{f'{row.rating!r}'.removesuffix('.0')}"
            for row in rows
        ),
    ]
    write_text_atomically(folder / "mrmc.imrmc", "\n".join(lines) + "\n")
    ids = [("reader", number, name) for name, number in of_reader.items()]
    ids += [("case", number, name) for name, number in numbers.items()]
    save_rows(("what", "number", "name"), ids, folder / "mrmc_ids.csv")
    return (table, folder / "mrmc.imrmc", folder / "mrmc_ids.csv")
