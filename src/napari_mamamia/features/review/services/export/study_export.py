"""Export a study's accepted masks, answers, events, and tables for other tools.

All files are written to a temporary folder and verified; the folder is renamed at the end.
"""

import csv
import html
import math
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.answers import Answer, Answers, Place
from napari_mamamia.core.errors import (
    CaseError,
    FormatError,
    MamamiaError,
    Remedy,
    SaveConflictError,
    SaveError,
)
from napari_mamamia.core.form import Field, FieldKind, FieldScope, Form
from napari_mamamia.core.progress import paced, report_progress
from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.features.review.core.review import FilePrint, ReviewFormat
from napari_mamamia.features.review.io.store import EventStore, FolderStore
from napari_mamamia.features.review.io.study_file import EVENTS, STUDY_NAME
from napari_mamamia.features.review.rules.replay import ReviewState
from napari_mamamia.features.review.rules.states import CaseState, CaseView
from napari_mamamia.features.review.services.accepted import (
    AcceptedCases,
    list_accepted,
    name_files,
    write_accepted,
    write_study_mask,
)
from napari_mamamia.features.review.services.agreement.agree import LeftOut, list_waiting
from napari_mamamia.features.review.services.agreement.agreement_output import save_rows
from napari_mamamia.features.review.services.compare import (
    LesionMatch,
    group_lesions,
    join_lesions,
    load_stored_labels,
    match_masks,
)
from napari_mamamia.features.review.services.look import (
    load_study_form,
    read_whole,
    replay_reading,
    require_outside,
)
from napari_mamamia.findings.form_values import (
    AnswerRow,
    list_answer_rows,
    name_question,
    parse_answers_text,
)
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.foreign import open_plain
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.own_paths import own_folder, place_folder
from napari_mamamia.io.files.save import saving, write_text_atomically
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.io.workspace.provenance import read_provenance, sidecar_path
from napari_mamamia.io.workspace.workspace import MASK_SUFFIX

ACCEPTED: Final = "accepted"
"""Name that stands for the reader of answers that were accepted with a case."""
_WHO: Final = ("case_id", "patient", "visit", "side", "who", "round", "occasion", "at", "stands")
_ROW: Final = (
    *("form", "edition", "scope", "place", "field", "question", "question_codes"),
    *("value", "text", "codes", "unit", "computed", "known"),
)


@dataclass(frozen=True, slots=True)
class GivenAnswers:
    """The answers of a reading, or the answers accepted with a case if `is_accepted`.

    `who` is the reader, or ACCEPTED; `by` is the reader or the person who decided. `exam` is
    patient, visit and side.
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
    exam: tuple[str, str, str]
    is_accepted: bool = False

    @property
    def cells(self) -> tuple[Any, ...]:
        """Return the cells of the first columns, which are the same in every table."""
        is_standing = "yes" if self.stands else "no"
        return (self.case_id, *self.exam, self.who, self.round, self.occasion, self.at, is_standing)


def list_answers(state: ReviewState) -> Iterator[GivenAnswers]:
    """Yield the answers of every submitted reading of all rounds, then the accepted answers."""
    for view in state.cases:
        case = state.study.case(view.key)
        for one in (*view.earlier, *view.readings):
            if one.hash:
                stands = one in view.readings and one.state is CaseState.READ
                answers = parse_answers_text(one.answers)
                who = (case.case_id, view.key, one.reader, one.round, one.occasion, one.at)
                what = (stands, one.active_s, one.mask, one.hash, answers)
                yield GivenAnswers(*who, *what, one.reader, case.exam)
        if is_accepted(view) and view.decision is not None:
            last = view.decision
            answers = parse_answers_text(last.answers)
            who = (case.case_id, view.key, ACCEPTED, view.round, 0, last.at)
            what = (True, 0, last.mask, last.hash, answers)
            yield GivenAnswers(*who, *what, last.reader, case.exam, is_accepted=True)


def is_accepted(view: CaseView) -> bool:
    """Return whether a case is accepted without a conflict."""
    return not view.conflicts and view.state in (CaseState.ACCEPTED, CaseState.SIGNED)


def number_lesions(
    store: EventStore, state: ReviewState, left_out: list[LeftOut]
) -> dict[str, dict[str, str]]:
    """Return the common lesion numbers, by event hash and the reader's own lesion number.

    The numbers are common to all current readings of a case (`group_lesions`); lesions of earlier
    rounds, repeats and accepted masks are matched to them. If a mask cannot be read, its lesions
    get no numbers, and it is appended to `left_out`.
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
    """Replace readers' own lesion numbers in answers with the numbers of `number_lesions`.

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
    """Write ``answers_long.csv`` (one row per value) and ``answers_wide.csv`` (one per reading).

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
    cells = tuple(asdict(row)[name] for name in _ROW)
    number = numbers.get(row.place, "") if row.scope == FieldScope.LESION else ""
    return (*cells[:4], number, *cells[4:])


# -------------------------------------------------------------------------- MRMC


@dataclass(frozen=True, slots=True)
class MrmcRow:
    """One rating; `truth` is 1 or 0, or "" if it is unknown."""

    reader: str
    treatment: str
    case: str
    truth: str
    rating: float


def list_ratings(
    records: Iterable[GivenAnswers], treatment: str, question: str, positives: Sequence[str] | None
) -> tuple[MrmcRow, ...]:
    """Return the ratings of a question in the current round, without hidden repeats.

    Parameters
    ----------
    records
        Answers with common lesion numbers.
    treatment
        Name of the only treatment (MRMC term for modality), which is the study.
    question
        The question, with numbers or terms as answers. A rated breast is written as the case
        ``ID@right``, and a rated lesion as ``ID@2``.
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
            "choose a question whose answers are numbers, such as assessment"
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
            f"expected positive cases to be among the rated cases, but found {unknown[0]!r}: "
            "write the cases as in the column case of mrmc.csv, such as ID or ID@right"
        )


def save_mrmc(rows: Sequence[MrmcRow], folder: Path) -> tuple[Path, ...]:
    """Write ``mrmc.csv``, and with both truth values ``mrmc.imrmc`` and ``mrmc_ids.csv``.

    The first file has the format of R's MRMCaov, the second that of iMRMC (FDA) and RJafroc. In the
    second file readers and cases are numbers, which the third file explains.

    Source: DIDSR/iMRMC ad589e5, `InputFile.getExperimentSizeFromHeader`: its header may be any
    text, but "N0:" and similar strings anywhere in it introduce a number.
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


_FINAL: Final = "final"
"""MONAI Label's tag for a final label; its other tag is `original`."""
_OWN_TAGS: Final = frozenset({_FINAL, "original"})
_README: Final = """\
Before MONAI Label opens this folder, copy the image of each mask next to datastore_v2.json,
under the name that datastore_v2.json gives: the key of the case and .nii.gz.
When MONAI Label starts, it removes every case without an image from datastore_v2.json, with
its labels (unless it is started read_only).
"""


def save_monai_label(
    store: EventStore,
    state: ReviewState,
    records: Iterable[GivenAnswers],
    folder: Path,
    left_out: list[LeftOut],
) -> tuple[Path, ...]:
    """Write MONAI Label's ``datastore_v2.json`` and ``labels/TAG/ID.nii.gz``.

    TAG is `final` or a reader's id. Images are not copied. A reading without lesions is written as
    an empty mask. `records` contains the answers with common lesion numbers.
    """
    stems = name_files(state)
    views = {view.key: view for view in state.cases}
    objects: dict[str, Any] = {
        stems[case.key]: {
            "image": {
                "ext": MASK_SUFFIX,
                "info": {"name": f"{stems[case.key]}{MASK_SUFFIX}", "id": case.case_id},
            },
            "labels": {},
        }
        for case in state.study.cases
    }
    paths = [folder / "README.txt", folder / "datastore_v2.json"]
    for record in records:
        if record.occasion or not record.stands:
            continue
        tag, name = _name_tag(record), f"{stems[record.key]}{MASK_SUFFIX}"
        path = folder / "labels" / tag / name
        try:
            write_study_mask(store, views[record.key], record.mask, path)
        except FormatError as error:
            left_out.append(LeftOut(record.case_id, f"the label {tag}", str(error)))
            continue
        paths.append(path)
        info = _describe_label(record, views[record.key], name)
        objects[stems[record.key]]["labels"][tag] = {"ext": MASK_SUFFIX, "info": info}
    content = {
        "name": state.study.plan.name,
        "description": f"review study {state.study.study_id}",
        "images_dir": ".",
        "labels_dir": "labels",
        "objects": objects,
    }
    write_text_atomically(paths[0], _README)
    write_json(content, paths[1])
    return tuple(paths)


def _name_tag(answers: GivenAnswers) -> str:
    if answers.is_accepted:
        return _FINAL
    return f"reader {answers.who}" if answers.who.casefold() in _OWN_TAGS else answers.who


def _describe_label(answers: GivenAnswers, view: CaseView, name: str) -> dict[str, Any]:
    second = int(datetime.fromisoformat(answers.at).timestamp())
    decision = view.decision if answers.is_accepted else None
    review = {
        "status": "segmented" if decision is None else "approved",
        "approvedBy": "" if decision is None else decision.reader,
        "level": "",
        "comment": "" if decision is None else decision.reason,
        "editTime": second,
    }
    return {
        "ts": second,
        "name": name,
        "client_id": answers.who if decision is None else decision.reader,
        "label_info": [{"name": "tumour", "idx": 1}],
        "segmentationMeta": review,
        "answers": {name_question(item): list(item.values) for item in answers.answers.items},
    }


# ---------------------------------------------------------------- grand-challenge


def save_grand_challenge(
    state: ReviewState, records: Iterable[GivenAnswers], form: Form | None, folder: Path
) -> tuple[Path, ...]:
    """Write grand-challenge's ``display_sets.json``, ``questions.json`` and ``answers.json``.

    Each case and each hidden repeat becomes a display set, in the study's order. A question about
    breasts or lesions becomes one question for each breast or lesion. Accepted answers are marked
    as `is_ground_truth`. `records` holds the answers with common lesion numbers.
    """
    records = [record for record in records if record.stands]
    names = _Names(state.study.study_id)
    questions = _list_questions(records, form)
    answers = [
        names.answer(record, item, questions[name_question(item)])
        for record in records
        for item in record.answers.items
    ]
    repeats = {record.key for record in records if record.occasion}
    titles = [(f"{case.key}/0", case.case_id) for case in state.study.cases]
    titles += [
        (f"{case.key}/1", f"{case.case_id} (repeat)")
        for case in state.study.cases
        if case.key in repeats
    ]
    contents = {
        "display_sets": [
            names.display_set(place, title, number)
            for number, (place, title) in enumerate(titles, start=1)
        ],
        "questions": [names.question(question) for question in questions.values()],
        "answers": answers,
    }
    for name, content in contents.items():
        write_json(content, folder / f"{name}.json")
    return tuple(folder / f"{name}.json" for name in contents)


@dataclass(frozen=True, slots=True)
class _Question:
    """A question about a case, breast or lesion, with its answer type and numbered options."""

    name: str
    text: str
    kind: FieldKind
    required: bool
    options: Mapping[str, tuple[int, str]]

    def value(self, values: tuple[str, ...]) -> Any:
        """Return an answer in the question's data type: option numbers, a number, or a string."""
        if self.kind is FieldKind.MULTIPLE:
            return [self.options[value][0] for value in values]
        if self.kind is FieldKind.TEXT:
            return "; ".join(values)
        if not values:
            return None
        is_number = self.kind is FieldKind.NUMBER
        return float(values[0]) if is_number else self.options[values[0]][0]


def _list_questions(records: Iterable[GivenAnswers], form: Form | None) -> dict[str, _Question]:
    """Return the form's questions in order, then all other questions, by their keys in events."""
    answered: dict[str, list[Answer]] = {}
    for record in records:
        for item in record.answers.items:
            answered.setdefault(name_question(item), []).append(item)
    fields = () if form is None else form.fields
    asked = {items[0].field for items in answered.values()}
    answered |= {field.id: [] for field in fields if field.id not in asked}
    order = {field.id: number for number, field in enumerate(fields)}

    def rank(name: str) -> tuple[int, str]:
        return order.get(name.split("@")[0], len(order)), name

    questions: dict[str, _Question] = {}
    n_options = 0
    for name in sorted(answered, key=rank):
        items = answered[name]
        field_id = items[0].field if items else name
        field = None if form is None else form.field(field_id)
        values = [item.values for item in items]
        kind = _find_kind(field, values)
        texts = {} if field is None else {term.id: term.text for term in field.terms}
        if kind in (FieldKind.SINGLE, FieldKind.MULTIPLE):
            texts |= {value: value for some in values for value in some if value not in texts}
        options = {
            value: (n_options + number, text)
            for number, (value, text) in enumerate(texts.items(), start=1)
        }
        n_options += len(options)
        place = items[0].place.name if items else ""
        text = field_id if field is None else field.text
        text = f"{text} ({place})" if place else text
        required = field is not None and field.required
        questions[name] = _Question(name, text, kind, required, options)
    return questions


def _find_kind(field: Field | None, values: list[tuple[str, ...]]) -> FieldKind:
    if any(len(some) > 1 for some in values):
        return FieldKind.MULTIPLE
    if field is None:
        return FieldKind.TEXT
    is_number = all(_is_number(one) for some in values for one in some)
    return FieldKind.TEXT if field.kind is FieldKind.NUMBER and not is_number else field.kind


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


_API: Final = "/api/v1/reader-studies"
_TYPES: Final = {
    FieldKind.SINGLE: "Choice",
    FieldKind.MULTIPLE: "Multiple choice",
    FieldKind.NUMBER: "Number",
    FieldKind.TEXT: "Text",
}
"""The API's names for answer types: choice, multiple choice, number and text."""


@dataclass(frozen=True, slots=True)
class _Names:
    """Builds records with every field that grand-challenge's API has.

    The primary keys are UUIDs derived from names, so that repeated exports have the same keys.
    """

    study_id: str

    def display_set(self, place: str, title: str, number: int) -> dict[str, Any]:
        """Return a display set; `place` is a case key and an occasion, such as ``c0001/0``."""
        return {
            "pk": self._make_key(place),
            "title": title,
            "title_safe": html.escape(title),
            "reader_study": f"{_API}/{self._make_key('')}/",
            "values": [],
            "order": number,
            "api_url": self._make_url("display-sets", place),
            "hanging_protocol": None,
            "optional_hanging_protocols": [],
            "view_content": {},
            "description": "",
            "descriptions_map_safe": {},
            "index": number - 1,
        }

    def question(self, question: _Question) -> dict[str, Any]:
        """Return the API's record of a question."""
        options = [
            {"id": number, "title": text, "default": False}
            for number, text in question.options.values()
        ]
        blank = dict.fromkeys(
            (
                *("default_annotation_color", "interface", "overlay_segments", "look_up_table"),
                *("answer_min_value", "answer_max_value", "answer_step_size"),
                *("answer_min_length", "answer_max_length"),
            )
        )
        return {
            "answer_type": _TYPES[question.kind],
            "api_url": self._make_url("questions", question.name),
            "form_direction": "Horizontal",
            "help_text_safe": "",
            "image_port": "",
            "pk": self._make_key(f"question {question.name}"),
            "question_text": question.text,
            "question_text_safe": html.escape(question.text),
            "reader_study": f"{_API}/{self._make_key('')}/",
            "required": question.required,
            "options": options,
            "widget": "",
            "answer_match_pattern": "",
            "empty_answer_confirmation": False,
            "empty_answer_confirmation_label_safe": "",
            "interactive_algorithms": [],
            "algorithms": [],
            **blank,
        }

    def answer(self, answers: GivenAnswers, item: Answer, question: _Question) -> dict[str, Any]:
        """Return the API's record of an answer; accepted answers are the ground truth."""
        name = f"answer {answers.hash} {answers.is_accepted} {question.name}"
        return {
            "answer": question.value(item.values),
            "api_url": self._make_url("answers", name),
            "created": answers.at,
            "creator": answers.by,
            "display_set": self._make_url("display-sets", f"{answers.key}/{answers.occasion}"),
            "pk": self._make_key(name),
            "question": self._make_url("questions", question.name),
            "modified": answers.at,
            "answer_image": None,
            "last_edit_duration": None,
            "total_edit_duration": None,
            "is_ground_truth": answers.is_accepted,
            "score": None,
        }

    def _make_url(self, kind: str, name: str) -> str:
        key = self._make_key(f"question {name}" if kind == "questions" else name)
        return f"{_API}/{kind}/{key}/"

    def _make_key(self, name: str) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"napari-mamamia {self.study_id} {name}"))


EXPORT: Final = "export.json"
SCHEMA: Final = 1
EXPERT: Final = Path("segmentations", "expert")
"""Relative path of the reference masks in a MAMA-MIA data set."""
_ATTRIBUTES: Final = "* -text\n"
"""Content of .gitattributes that preserves line endings, because files are hashed."""


@dataclass(frozen=True, slots=True)
class ExportChoice:
    """Options of an export.

    Parameters
    ----------
    formats
        The formats; each is written to a folder of the same name.
    rating
        The question whose ratings are written to the MRMC tables.
    positives
        Cases with truth 1 in these tables; None if the truth is unknown.
    """

    formats: tuple[ReviewFormat, ...]
    rating: str = ""
    positives: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ReviewExport:
    """The result of an export; `files` lists the files with their SHA-256, as in `export.json`.

    `left_out` lists accepted content that could not be written; `others` lists the cases that are
    not accepted.
    """

    folder: Path
    n_accepted: int
    files: tuple[FilePrint, ...]
    left_out: tuple[LeftOut, ...]
    conflicts: tuple[LeftOut, ...]
    others: tuple[LeftOut, ...]

    @property
    def is_complete(self) -> bool:
        """Return whether all accepted content was written and there is no conflict."""
        return not (self.left_out or self.conflicts)


def export_study(store: FolderStore, folder: Path, choice: ExportChoice) -> ReviewExport:
    """Write the chosen content of a study into a new or empty folder.

    Raises
    ------
    CaseError
        If no format is chosen, or no question is chosen for MRMC tables.
    SaveConflictError
        If the folder is not empty, or is inside the study.
    FormatError
        If the study cannot be read to the end.
    SaveError
        If the system does not allow writing, or a file differs when it is read back.
    """
    _require_choice(choice)
    _require_free(store, folder)
    state = replay_reading(store, read_whole(store))
    form = store.read_frozen(load_study_form)
    accepted = list_accepted(state)
    left_out = list_waiting(state)
    with own_folder(folder.parent) as place:
        has_answers = not {*choice.formats} <= {ReviewFormat.MASKS, ReviewFormat.EVENTS}
        numbers = number_lesions(store, state, left_out) if has_answers else {}
        run = _Run(store, state, form, accepted, choice, left_out, numbers)
        for number, format_ in enumerate(choice.formats):
            report_progress(number, len(choice.formats), f"Exporting {format_}")
            (place / format_).mkdir()
            run.write(format_, place / format_)
        left_out = list(
            dict.fromkeys(left_out)
        )  # several formats may report the same missing content
        _save_cases(state, accepted, left_out, place)
        report_progress(len(choice.formats), len(choice.formats), "Verifying files")
        files = _check_files(place)
        content = {
            "mamamia_review_export": SCHEMA,
            "study": store.study.plan.name,
            "study_id": store.study.study_id,
            "origin": store.origin,
            "at": now_utc(),
            "software": software_version(),
            "formats": choice.formats,
            "n_accepted": len(accepted.cases),
            "files": files,
            "left_out": left_out,
            "conflicts": accepted.conflicts,
            "others": accepted.others,
        }
        write_json(content, place / EXPORT)
        place_folder(place, folder)
    return ReviewExport(
        folder,
        len(accepted.cases),
        files,
        tuple(left_out),
        accepted.conflicts,
        accepted.others,
    )


def _require_choice(choice: ExportChoice) -> None:
    if not choice.formats:
        formats = ", ".join(ReviewFormat)
        raise CaseError(f"expected at least one format, but found none: choose from {formats}")
    if ReviewFormat.MRMC in choice.formats and not choice.rating:
        raise CaseError(
            "the MRMC table needs a question whose answers are ratings, but there is none: choose "
            "a question whose answers are numbers, such as assessment",
            remedies=(Remedy("rating", ("QUESTION",)),),
        )


def _require_free(store: FolderStore, folder: Path) -> None:
    require_outside(store, folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SaveConflictError(
            f"expected a new or empty folder, but {folder} is not empty: choose a different "
            "folder, because nothing is overwritten"
        )


@dataclass(frozen=True, slots=True)
class _Run:
    store: FolderStore
    state: ReviewState
    form: Form | None
    accepted: AcceptedCases
    choice: ExportChoice
    left_out: list[LeftOut]
    numbers: Mapping[str, Mapping[str, str]]

    def write(self, format_: ReviewFormat, folder: Path) -> None:
        """Write one format into its folder."""
        writers: dict[ReviewFormat, Callable[[Path], object]] = {
            ReviewFormat.MASKS: self._write_masks,
            ReviewFormat.ANSWERS: lambda at: save_answers(self.state, self.form, at, self.numbers),
            ReviewFormat.MRMC: self._write_ratings,
            ReviewFormat.MONAI_LABEL: lambda at: save_monai_label(
                self.store, self.state, self._list_numbered(), at, self.left_out
            ),
            ReviewFormat.GRAND_CHALLENGE: lambda at: save_grand_challenge(
                self.state, self._list_numbered(), self.form, at
            ),
            ReviewFormat.EVENTS: lambda at: _copy_events(self.store, at),
        }
        writers[format_](folder)

    def _list_numbered(self) -> tuple[GivenAnswers, ...]:
        return use_study_numbers(list_answers(self.state), self.numbers, self.left_out)

    def _write_masks(self, folder: Path) -> None:
        for number, case in enumerate(self.accepted.cases):
            report_progress(number, len(self.accepted.cases), f"Exporting {case.case_id}")
            try:
                write_accepted(self.store, case, folder / EXPERT, self.state)
            except FormatError as error:
                _remove_half(folder / EXPERT, case.stem)
                self.left_out.append(LeftOut(case.case_id, "the accepted mask", str(error)))

    def _write_ratings(self, folder: Path) -> None:
        given, study = self._list_numbered(), self.state.study.plan.name
        rows = list_ratings(given, study, self.choice.rating, self.choice.positives)
        save_mrmc(rows, folder)


def _remove_half(folder: Path, stem: str) -> None:
    for path in folder.glob(f"{stem}.*"):
        path.unlink()


def _copy_events(store: FolderStore, folder: Path) -> None:
    names = [STUDY_NAME, *(file.name for file in store.study.files)]
    store.visit(partial(_copy_files, names, folder))
    write_text_atomically(folder / ".gitattributes", _ATTRIBUTES)


def _copy_files(names: Sequence[str], folder: Path, study: Path) -> None:
    paths = [study / name for name in names]
    paths += sorted((study / EVENTS).rglob("*.jsonl"))
    for path in paced(paths, "Copying events"):
        with open_plain(path) as stream:
            content = stream.read()
        with saving(folder / path.relative_to(study)) as temporary:
            temporary.write_bytes(content)


def _save_cases(
    state: ReviewState, accepted: AcceptedCases, left_out: Sequence[LeftOut], place: Path
) -> None:
    by_id = {case.case_id: case for case in accepted.cases}
    missing = {one.case_id: f"{one.what}: {one.why}" for one in left_out}
    why = {one.case_id: one.why for one in (*accepted.others, *accepted.conflicts)}
    rows = []
    for view in state.cases:
        case = state.study.case(view.key)
        case_id = case.case_id
        one = by_id.get(case_id)
        cells = ("", "", "", "", "")
        if one is not None:
            choice = (one.decision.choice, one.decision.mask, one.decision.at)
            cells = (one.stem, "yes" if one.is_signed else "no", *choice)
        text = missing.get(case_id, why.get(case_id, ""))
        rows.append((case_id, *case.exam, view.key, str(view.state), *cells, text))
    head = (
        *("case_id", "patient", "visit", "side", "key", "state", "file", "signed"),
        *("choice", "mask_sha256", "at", "left_out"),
    )
    save_rows(head, rows, place / "cases.csv")


def _check_files(place: Path) -> tuple[FilePrint, ...]:
    """Read back all written files, and return their names with their SHA-256.

    Raises
    ------
    SaveError
        If a file cannot be read back.
    """
    prints = []
    for path in sorted(one for one in place.rglob("*") if one.is_file()):
        try:
            _read_back(path)
        except (MamamiaError, OSError, ValueError) as error:
            name = path.relative_to(place)
            raise SaveError(
                f"expected {name} to contain what was written, but {error}: try a different disk; "
                "nothing was exported"
            ) from error
        prints.append(FilePrint(path.relative_to(place).as_posix(), sha256_of(path)))
    return tuple(prints)


def _read_back(path: Path) -> None:
    if path.suffix == ".json":
        read_json(path)
    if path.name.endswith(MASK_SUFFIX) and sidecar_path(path).exists():
        read_provenance(sidecar_path(path))
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as stream:
            widths = {len(row) for row in csv.reader(stream)}
        if len(widths) > 1:
            raise ValueError("the rows have different lengths")
