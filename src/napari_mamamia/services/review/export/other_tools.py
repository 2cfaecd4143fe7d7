"""A study as other tools have theirs: MONAI Label's data store, a reader study of grand-challenge.

Both are written after their published forms, from memory of them and without running those tools:
`docs/methods/review.md` says field by field what stands there.
"""

from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.form import Field, FieldKind, Form
from napari_mamamia.io.files.save import saving
from napari_mamamia.io.review.store import EventStore
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.io.workspace.workspace import MASK_SUFFIX
from napari_mamamia.reviewing.fold import ReviewState
from napari_mamamia.services.review.accepted import name_files
from napari_mamamia.services.review.agreement.mask_pairs import LeftOut
from napari_mamamia.services.review.export.answer_tables import (
    ACCEPTED,
    list_answers,
    name_question,
)

_FINAL: Final = "final"
"""MONAI Label's tag of a label that stands."""
_ANSWER_TYPES: Final = {
    FieldKind.SINGLE: "CHOI",
    FieldKind.MULTIPLE: "MCHO",
    FieldKind.NUMBER: "NUMB",
    FieldKind.TEXT: "STXT",
}


def save_monai_label(
    store: EventStore, state: ReviewState, folder: Path, left_out: list[LeftOut]
) -> tuple[Path, ...]:
    """Write ``datastore_v2.json`` and ``labels/TAG/ID.nii.gz``; TAG is final or a reader's id.

    The images lie where the study says; they are not copied.
    """
    stems = name_files(state)
    objects: dict[str, Any] = {
        stems[case.key]: {"image": {"ext": MASK_SUFFIX, "info": {"id": case.case_id}}, "labels": {}}
        for case in state.study.cases
    }
    paths = []
    for one in list_answers(state):
        if one.occasion or not one.stands:
            continue
        tag = _FINAL if one.who == ACCEPTED else one.who
        info = {"ts": one.at, "client_id": one.who, "answers": _plain_answers(one.answers.items)}
        status = "approved" if one.who == ACCEPTED else "submitted"
        entry: dict[str, Any] = {"ext": MASK_SUFFIX, "info": {**info, "meta": {"status": status}}}
        path = folder / "labels" / tag / f"{stems[one.key]}{MASK_SUFFIX}"
        if one.mask:
            try:
                _copy_mask(store, one.mask, path)
            except FormatError as error:
                left_out.append(LeftOut(one.case_id, f"the label {tag}", str(error)))
                continue
            paths.append(path)
            objects[stems[one.key]]["labels"][tag] = entry
    content = {
        "name": state.study.plan.name,
        "description": f"review study {state.study.study_id}",
        "images_dir": ".",
        "labels_dir": "labels",
        "objects": objects,
    }
    write_json(content, folder / "datastore_v2.json")
    return (folder / "datastore_v2.json", *paths)


def _copy_mask(store: EventStore, digest: str, path: Path) -> None:
    content = store.get_mask(digest)
    with saving(path) as temporary:
        temporary.write_bytes(content)


def _plain_answers(items: Any) -> dict[str, list[str]]:
    return {name_question(one): list(one.values) for one in items}


def save_grand_challenge(state: ReviewState, form: Form | None, folder: Path) -> tuple[Path, ...]:
    """Write ``display_sets.json``, ``questions.json`` and ``answers.json``.

    A display set is a case, in the study's order; accepted answers are `is_ground_truth`.
    """
    sets = [
        {"pk": case.key, "order": number, "title": case.case_id}
        for number, case in enumerate(state.study.cases, start=1)
    ]
    answers = [
        {
            "pk": f"{one.hash[:16]}.{number}",
            "display_set": one.key,
            "question": item.field,
            "place": item.place.name,
            "answer": _answer_value(item.values, None if form is None else form.field(item.field)),
            "creator": one.who,
            "created": one.at,
            "occasion": one.occasion,
            "is_ground_truth": one.who == ACCEPTED,
        }
        for one in list_answers(state)
        if one.stands
        for number, item in enumerate(one.answers.items)
    ]
    asked = sorted({str(one["question"]) for one in answers})
    questions = [
        _describe_question(name, None if form is None else form.field(name))
        for name in (asked if form is None else [field.id for field in form.fields])
    ]
    contents = (("display_sets", sets), ("questions", questions), ("answers", answers))
    for name, content in contents:
        write_json(content, folder / f"{name}.json")
    return tuple(folder / f"{name}.json" for name, _ in contents)


def _answer_value(values: tuple[str, ...], field: Field | None) -> Any:
    """Return an answer as its type has it: a number, a list, or a text."""
    if field is not None and field.kind is FieldKind.MULTIPLE:
        return list(values)
    if not values:
        return None
    if field is not None and field.kind is FieldKind.NUMBER:
        return float(values[0])
    return values[0] if len(values) == 1 else list(values)


def _describe_question(name: str, field: Field | None) -> dict[str, Any]:
    if field is None:
        return {"pk": name, "question_text": name, "answer_type": "STXT", "options": []}
    options = [{"pk": term.id, "title": term.text} for term in field.terms]
    return {
        "pk": name,
        "question_text": field.text,
        "answer_type": _ANSWER_TYPES[field.kind],
        "required": field.required,
        "scope": str(field.scope),
        "unit": field.unit,
        "options": options,
    }
