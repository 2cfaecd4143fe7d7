"""Export a study for MONAI Label (data store) and grand-challenge (reader study).

Source: Project-MONAI/MONAILabel 058ddfc, `monailabel/datastore/local.py` (`LocalDatastoreModel`)
and the keys of its Reviewer (`MONAILabelReviewerLib/DataStoreKeys.py`); comic/grand-challenge.org
9957bfc, `reader_studies/serializers.py` and `Answer.validate` of `reader_studies/models.py`.
"""

import html
import math
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.answers import Answer
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.form import Field, FieldKind, Form
from napari_mamamia.features.review.io.store import EventStore
from napari_mamamia.features.review.rules.replay import ReviewState
from napari_mamamia.features.review.rules.views import CaseView
from napari_mamamia.features.review.services.accepted import name_files, write_study_mask
from napari_mamamia.features.review.services.agreement.mask_pairs import LeftOut
from napari_mamamia.features.review.services.export.answer_tables import GivenAnswers
from napari_mamamia.findings.form_values import name_question
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.io.workspace.workspace import MASK_SUFFIX

_FINAL: Final = "final"
"""MONAI Label's tag of a final label; its other tag is `original`."""
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
    """Write ``datastore_v2.json`` and ``labels/TAG/ID.nii.gz``; TAG is final or a reader's id.

    Images are not copied. A reading without a lesion becomes an empty mask. `records` holds the
    answers with common lesion numbers.
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
    """Return the folder of a label, avoiding reader ids that equal MONAI Label's own tags."""
    if answers.is_accepted:
        return _FINAL
    return f"reader {answers.who}" if answers.who.casefold() in _OWN_TAGS else answers.who


def _describe_label(answers: GivenAnswers, view: CaseView, name: str) -> dict[str, Any]:
    """Return the label information of MONAI Label and its Reviewer, and the answers."""
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
    """Write ``display_sets.json``, ``questions.json`` and ``answers.json``.

    Each case and each hidden repeat becomes a display set, in the study's order. A question about a
    breast or lesion becomes one question for each breast or lesion. Accepted answers are marked as
    `is_ground_truth`. `records` holds the answers with common lesion numbers.
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
    """A question about the case, a breast or a lesion, with its answer type and option numbers."""

    name: str
    text: str
    kind: FieldKind
    required: bool
    options: Mapping[str, tuple[int, str]]

    def value(self, values: tuple[str, ...]) -> Any:
        """Return an answer in its type: numbers of options, a number, or a text."""
        if self.kind is FieldKind.MULTIPLE:
            return [self.options[value][0] for value in values]
        if self.kind is FieldKind.TEXT:
            return "; ".join(values)
        if not values:
            return None
        is_number = self.kind is FieldKind.NUMBER
        return float(values[0]) if is_number else self.options[values[0]][0]


def _list_questions(records: Iterable[GivenAnswers], form: Form | None) -> dict[str, _Question]:
    """Return the questions of the form in order, then others, by their keys in events."""
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
    """Return the type that can represent all answers to a question."""
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
"""The API's names of the types CHOI, MCHO, NUMB and TEXT."""


@dataclass(frozen=True, slots=True)
class _Names:
    """A builder of records with every field of the API.

    The keys are UUIDs derived from names, so that all exports have the same keys.
    """

    study_id: str

    def display_set(self, place: str, title: str, number: int) -> dict[str, Any]:
        """Return a display set; `place` is for example ``c0001/0``."""
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
        """Return a question."""
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
        """Return an answer; accepted answers are the ground truth."""
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
