"""What leaves a study: the bytes that were accepted, and tables that say who said what."""

import csv
import hashlib
import json
import uuid
from pathlib import Path

import numpy as np
import pytest
from tests.review_study import made
from typer.testing import CliRunner

from napari_mamamia.cli.app import app
from napari_mamamia.core.blinding import ALL_HIDDEN
from napari_mamamia.core.errors import CaseError, SaveConflictError, SaveError
from napari_mamamia.core.form import Field, FieldKind, FieldScope, Form, Term
from napari_mamamia.core.grid import Grid
from napari_mamamia.features.review.core.review import ReadingMode, ReviewFormat
from napari_mamamia.features.review.io.store import FolderStore
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.services.compare import make_consensus
from napari_mamamia.features.review.services.export.study_export import (
    ExportChoice,
    MrmcRow,
    export_study,
    list_answers,
    save_grand_challenge,
    save_mrmc,
)
from napari_mamamia.features.review.services.look import load_state
from napari_mamamia.features.review.services.session import ReviewSession
from napari_mamamia.io.data_set.volumes import read_labels, write_volume
from napari_mamamia.io.files import save
from napari_mamamia.io.workspace.provenance import read_provenance

GRID = Grid.of_spacing((2, 3, 4), (2.0, 1.0, 1.0))
CASES = ("A_1", "a_1", "ü/b", "D" * 200, "open", "bad", "none", "twice")


def mask_file(folder, n_voxels):
    array = np.zeros(GRID.shape, np.uint8)
    array.ravel()[:n_voxels] = 1
    path = folder / f"{n_voxels}.nii.gz"
    if not path.exists():
        write_volume(array, GRID, path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def studied(tmp_path_factory):
    """A study of hostile names: two read all but one case, a judge decides."""
    folder = tmp_path_factory.mktemp("export")
    study = made(folder, cases=CASES, mode=ReadingMode.INDEPENDENT, blinding=ALL_HIDDEN)
    read_all(study, folder, "ana", 0)
    read_all(study, folder, "ben", 1)
    store = FolderStore(study, folder / "jo", host="jo", session="1")
    jo = ReviewSession(store, "jo", folder / "jo")
    for view in jo.state.cases:
        if jo.state.study.case(view.key).case_id != "open":
            judge(jo, view.key)
    jo.close()
    return study, folder


def read_all(study, folder, who, number):
    store = FolderStore(study, folder / who, host=who, session="1")
    session = ReviewSession(store, who, folder / who)
    for at, (task, _) in enumerate(session.queue()):
        if (CASES[at], who) == ("open", "ben"):
            continue
        session.claim(task)
        session.start(task)
        mask = None if (CASES[at], who) == ("none", "ben") else mask_file(folder, 4 + at + number)
        answers = {"assessment@right": str(3 + number), "note": {"text": "=1+1"}, "features": ["x"]}
        session.finish(task, mask, answers, active_s=61)
    session.close()


def judge(jo, key):
    if jo.refresh().case(key).state is not CaseState.DISAGREES:
        jo.accept(key, jo.state.case(key).readings[0])
        return
    jo.adjudicate(key)
    readings = jo.refresh().case(key).readings
    if key == "c0001":
        joint = make_consensus(jo.store, readings, jo.store.study.plan.consensus)
        answers = '{"assessment@right":"4"}'
        jo.decide(key, joint.content, joint.rule, "both", answers, joint.parents, joint.how)
    elif key == "c0007":
        jo.decide(key, None, "edited", "no lesion")
    else:
        jo.decide(key, readings[0].mask, "ana", "she saw it")


def lead(studied, name="lead"):
    study, folder = studied
    return FolderStore(study, folder / name, host="L", session="1")


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_accepted_masks_are_reference_masks_with_their_parents(studied, tmp_path):
    store = lead(studied)
    found = export_study(store, tmp_path / "out", ExportChoice((ReviewFormat.MASKS,)))
    expert = tmp_path / "out" / "masks" / "segmentations" / "expert"
    # ids that differ in letter case alone, and one with a slash, go by their key
    stems = {"c0001", "c0002", "c0003", "D" * 200, "bad", "none", "twice"}
    assert {path.name.split(".")[0] for path in expert.glob("*.nii.gz")} == stems
    assert (found.n_accepted, found.left_out, found.conflicts) == (7, (), ())
    assert [(one.case_id, one.why) for one in found.others] == [
        ("open", "it is second reading needed")
    ]
    made_of = read_provenance(expert / "c0001.json")
    assert made_of.case_id == "A_1"
    decision = ReviewSession(store, "lea", tmp_path).state.case("c0001").decision
    assert tuple(one.sha256 for one in made_of.inputs) == decision.parents
    assert len(decision.parents) == 2
    assert dict(made_of.parameters)["choice"] == "majority-background"
    whole = (expert / "bad.nii.gz").read_bytes()
    assert (
        hashlib.sha256(whole).hexdigest() == read_provenance(expert / "bad.json").inputs[0].sha256
    )
    assert read_labels(expert / "none.nii.gz").box.is_empty
    assert read_labels(expert / "none.nii.gz").grid == GRID
    by_id = {row["case_id"]: row for row in rows_of(tmp_path / "out" / "cases.csv")}
    assert set(by_id) == set(CASES)
    assert by_id["ü/b"]["file"] == "c0003"
    assert by_id["open"]["left_out"] == "it is second reading needed"
    listed = json.loads((tmp_path / "out" / "export.json").read_text("utf-8"))
    for one in listed["files"]:
        data = (tmp_path / "out" / one["name"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == one["sha256"]
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(listed["files"]) == len(files) - 1


def test_beside_each_reader_s_number_of_a_lesion_stands_the_study_s(tmp_path):
    """Ana's lesion 1 is Ben's 2; Ben has one more. The case is accepted as Ben has it."""
    study = made(tmp_path, cases=("A",), mode=ReadingMode.INDEPENDENT)
    bars = {"ana": ((0, 3), (6, 8)), "ben": ((0, 2), (5, 8))}  # columns of lesions; 8 of them
    stores = {}
    for who, columns in bars.items():
        array = np.zeros((2, 3, 8), np.uint8)
        for start, stop in columns:
            array[0, :, start:stop] = 1
        path = tmp_path / f"{who}.nii.gz"
        write_volume(array, Grid.of_spacing(array.shape, (2.0, 1.0, 1.0)), path)
        store = stores[who] = FolderStore(study, tmp_path / who, host=who, session="1")
        session = ReviewSession(store, who, tmp_path / who)
        session.claim(session.next_task())
        said = {"shape@1": who, "shape@2": "x", "sure@1": "1", "sure@2": "2"}
        session.finish(session.next_task(), path.read_bytes(), said)
        session.close()
    jo = ReviewSession(FolderStore(study, tmp_path / "jo", session="1"), "jo", tmp_path)
    jo.adjudicate("c0001")
    ben = next(one for one in jo.refresh().case("c0001").readings if one.reader == "ben")
    jo.decide("c0001", ben.mask, "ben", "she saw it", ben.answers)
    jo.close()
    choice = ExportChoice(tuple(ReviewFormat), "sure")
    assert export_study(jo.store, tmp_path / "out", choice).left_out == ()
    long = rows_of(tmp_path / "out" / "answers" / "answers_long.csv")
    # By size: of Ana the left is 1, of Ben the right; both have 9 voxels, the left comes first.
    numbers = {(one["who"], one["place"]): one["lesion"] for one in long}
    assert numbers == {
        ("ana", "1"): "1", ("ana", "2"): "2",
        ("ben", "1"): "2", ("ben", "2"): "1",
        ("accepted", "1"): "2", ("accepted", "2"): "1",
    }  # fmt: skip
    wide = rows_of(tmp_path / "out" / "answers" / "answers_wide.csv")
    assert [one["lesions"] for one in wide] == ["1=1 2=2", "1=2 2=1", "1=2 2=1"]
    # in what other programs read a lesion has one number: Ben's 1 is the study's 2
    ratings = rows_of(tmp_path / "out" / "mrmc" / "mrmc.csv")
    assert {(one["reader"], one["case"]): one["rating"] for one in ratings} == {
        ("ana", "A@1"): "1.0", ("ana", "A@2"): "2.0",
        ("ben", "A@1"): "2.0", ("ben", "A@2"): "1.0",
    }  # fmt: skip
    labels = json.loads((tmp_path / "out" / "monai-label" / "datastore_v2.json").read_text())
    for tag in ("ben", "final"):
        answers = labels["objects"]["A"]["labels"][tag]["info"]["answers"]
        assert (answers["shape@1"], answers["shape@2"]) == (["x"], ["ben"])
    records = require_grand_challenge(tmp_path / "out" / "grand-challenge")
    by_url = {one["api_url"]: one["question_text"] for one in records["questions"]}
    said = {(one["creator"], by_url[one["question"]]): one["answer"] for one in records["answers"]}
    assert (said["ana", "shape (1)"], said["ben", "shape (1)"]) == ("ana", "x")
    mask = next((study / "masks").glob(f"{ben.mask}*"))
    mask.chmod(0o600)
    mask.write_bytes(b"changed")
    found = export_study(jo.store, tmp_path / "again", ExportChoice((ReviewFormat.ANSWERS,)))
    assert [one.what for one in found.left_out] == ["numbers of its lesions"]
    long = rows_of(tmp_path / "again" / "answers" / "answers_long.csv")
    assert {one["lesion"] for one in long} == {""}
    # without its number an answer is not given to other programs, and that is told once
    both = (ReviewFormat.GRAND_CHALLENGE, ReviewFormat.MONAI_LABEL)
    found = export_study(jo.store, tmp_path / "third", ExportChoice(both))
    told = [one.what for one in found.left_out]
    assert told.count("shape by ana") == 2  # of two lesions, in two formats
    assert require_grand_challenge(tmp_path / "third" / "grand-challenge")["answers"] == []


def test_nothing_is_overwritten_and_no_half_export_has_the_name(studied, tmp_path, monkeypatch):
    store = lead(studied)
    choice = ExportChoice((ReviewFormat.MASKS, ReviewFormat.ANSWERS))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(SaveConflictError):
        export_study(store, tmp_path / "full", choice)
    with pytest.raises(SaveConflictError, match="outside the study"):
        export_study(store, Path(store.share.place) / "out", choice)
    assert not (Path(store.share.place) / "out").exists()

    synced = []

    def full(path):
        synced.append(path)
        if len(synced) == 9:
            raise OSError(28, "No space left on device")
        return force(path)

    force = save._force_to_disk
    monkeypatch.setattr(save, "_force_to_disk", full)
    with pytest.raises(SaveError):
        export_study(store, tmp_path / "out", choice)
    assert not (tmp_path / "out").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full"]


def test_answers_long_wide_and_for_mrmc_programs(studied, tmp_path):
    formats = (ReviewFormat.ANSWERS, ReviewFormat.MRMC)
    positives = tuple(f"{name}@right" for name in ("A_1", "bad"))
    export_study(lead(studied), tmp_path / "out", ExportChoice(formats, "assessment", positives))
    long = rows_of(tmp_path / "out" / "answers" / "answers_long.csv")
    mine = [row for row in long if row["case_id"] == "A_1" and row["who"] == "ana"]
    assert [(row["field"], row["place"], row["value"]) for row in mine] == [
        ("assessment", "right", "3"),
        ("features", "", "x"),
        ("note", "", "'=1+1"),
    ]
    accepted = [row for row in long if row["who"] == "accepted" and row["case_id"] == "A_1"]
    assert [(row["field"], row["value"]) for row in accepted] == [("assessment", "4")]
    wide = rows_of(tmp_path / "out" / "answers" / "answers_wide.csv")
    assert len(wide) == 8 + 7 + 7
    assert wide[0]["assessment@right"] == "3"
    assert wide[0]["active_s"] == "61"
    table = rows_of(tmp_path / "out" / "mrmc" / "mrmc.csv")
    assert list(table[0]) == ["reader", "treatment", "case", "truth", "rating"]
    assert len(table) == 15
    assert {row["case"] for row in table if row["truth"] == "1"} == set(positives)
    lines = (tmp_path / "out" / "mrmc" / "mrmc.imrmc").read_text().splitlines()
    assert lines[1:6] == ["N0: 6", "N1: 2", "NR: 2", "NM: 1", "BEGIN DATA:"]
    data = [line.split(",") for line in lines[6:]]
    # a truth for each case, then 8 ratings of ana's (3) and 7 of ben's (4)
    assert sorted(row[3] for row in data if row[0] == "-1") == ["0"] * 6 + ["1"] * 2
    assert sorted(row[3] for row in data if row[0] != "-1") == ["3"] * 8 + ["4"] * 7
    assert {row[1] for row in data} == {str(number) for number in range(1, 9)}


@pytest.mark.parametrize(
    ("rating", "positives", "message"),
    [
        ("", None, "needs a question whose answers are ratings"),
        ("assesment", None, "expected answers to 'assesment', but found none"),
        ("note", None, "expected numbers as ratings, but found '=1"),
        (
            "assessment",
            ("A_1",),
            "expected positive cases to be among the rated cases, but found 'A_1'",
        ),
    ],
)
def test_a_table_of_ratings_that_cannot_be_is_refused(
    studied, tmp_path, rating, positives, message
):
    choice = ExportChoice((ReviewFormat.MRMC,), rating, positives)
    with pytest.raises(CaseError, match=message):
        export_study(lead(studied), tmp_path / "out", choice)
    assert list(tmp_path.iterdir()) == []


def test_events_keep_their_bytes(studied, tmp_path):
    export_study(lead(studied), tmp_path / "out", ExportChoice((ReviewFormat.EVENTS,)))
    study, _ = studied
    for path in [study / "study.json", *(study / "events").rglob("*.jsonl")]:
        copy = tmp_path / "out" / "events" / path.relative_to(study)
        assert copy.read_bytes() == path.read_bytes()


def test_monai_label_finds_every_label_by_its_own_rule(studied, tmp_path):
    export_study(lead(studied), tmp_path / "out", ExportChoice((ReviewFormat.MONAI_LABEL,)))
    folder = tmp_path / "out" / "monai-label"
    store = json.loads((folder / "datastore_v2.json").read_text("utf-8"))
    # `LocalDatastoreModel`: pydantic refuses other types, and fields that are not there
    assert [type(store[name]) for name in MONAI_STORE] == [str, str, str, str, dict]
    for name, one in store["objects"].items():
        assert (set(one), set(one["image"])) == ({"image", "labels"}, {"ext", "info"})
        for tag, label in one["labels"].items():
            # `label_path(tag)` and `_filename(id, ext)`
            path = folder / store["labels_dir"] / tag / (name + label["ext"])
            assert read_labels(path).grid == GRID
            assert label["info"]["name"] == path.name
            assert type(label["info"]["ts"]) is int
            assert set(label["info"]["segmentationMeta"]) == MONAI_REVIEW
    labels = store["objects"]["bad"]["labels"]
    assert sorted(labels) == ["ana", "ben", "final"]
    assert labels["final"]["info"]["segmentationMeta"]["status"] == "approved"
    assert labels["final"]["info"]["segmentationMeta"]["approvedBy"] == "jo"
    assert labels["ana"]["info"]["client_id"] == "ana"
    assert store["objects"]["open"]["labels"].keys() == {"ana"}
    # that there is nothing was accepted: to MONAI Label a case without a label is an open one
    assert read_labels(folder / "labels" / "final" / "none.nii.gz").box.is_empty
    assert "removes every case without an image" in (folder / "README.txt").read_text()


MONAI_STORE = ("name", "description", "images_dir", "labels_dir", "objects")
MONAI_REVIEW = {"status", "approvedBy", "level", "comment", "editTime"}
"""Source: Project-MONAI/MONAILabel 058ddfc, `LocalDatastoreModel`; its Reviewer's
`DataStoreKeys`."""

GCAPI = {
    "answers": "answer api_url created creator display_set pk question modified answer_image "
    "last_edit_duration total_edit_duration is_ground_truth score",
    "questions": "answer_type api_url form_direction help_text_safe image_port "
    "default_annotation_color pk question_text_safe reader_study required options interface "
    "overlay_segments look_up_table widget answer_min_value answer_max_value answer_step_size "
    "answer_min_length answer_max_length answer_match_pattern empty_answer_confirmation "
    "empty_answer_confirmation_label_safe interactive_algorithms algorithms",
    "display_sets": "pk title_safe reader_study values order api_url hanging_protocol "
    "optional_hanging_protocols view_content description descriptions_map_safe index",
}
"""Fields that gcapi needs of each record. Source: gcapi of 2026-07-23, `gcapi/models.py`."""

ANSWER_TYPES = {
    "Text": lambda one: type(one) is str,
    "Number": lambda one: one is None or type(one) is float,
    "Choice": lambda one: one is None or type(one) is int,
    "Multiple choice": lambda one: type(one) is list and all(type(n) is int for n in one),
}
"""Source: comic/grand-challenge.org 9957bfc, `ANSWER_TYPE_SCHEMA` of `components/schemas.py`."""


def read_grand_challenge(folder):
    return {name: json.loads((folder / f"{name}.json").read_text("utf-8")) for name in GCAPI}


def require_grand_challenge(folder):
    """Hold an export to the rules of `Answer.validate` there; return it."""
    records = read_grand_challenge(folder)
    for name, fields in GCAPI.items():
        keys = [one["pk"] for one in records[name]]
        assert [str(uuid.UUID(key)) for key in keys] == keys
        assert len(set(keys)) == len(keys)
        assert all(set(fields.split()) <= set(one) for one in records[name])
    questions = {one["api_url"]: one for one in records["questions"]}
    sets = {one["api_url"] for one in records["display_sets"]}
    options = [option["id"] for one in questions.values() for option in one["options"]]
    assert len(set(options)) == len(options)
    texts = [one["question_text"] for one in questions.values()]
    assert len(set(texts)) == len(texts)
    given = set()
    for one in records["answers"]:
        question = questions[one["question"]]
        assert ANSWER_TYPES[question["answer_type"]](one["answer"])
        if "hoice" in question["answer_type"]:
            chosen = one["answer"] if isinstance(one["answer"], list) else [one["answer"]]
            assert set(chosen) <= {option["id"] for option in question["options"]} | {None}
        assert one["display_set"] in sets
        # once by each for each question of a display set
        given.add((one["creator"], one["display_set"], one["question"], one["is_ground_truth"]))
    assert len(given) == len(records["answers"])
    return records


def test_grand_challenge_could_take_every_answer_without_a_form(studied, tmp_path):
    export_study(lead(studied), tmp_path / "out", ExportChoice((ReviewFormat.GRAND_CHALLENGE,)))
    records = require_grand_challenge(tmp_path / "out" / "grand-challenge")
    assert [one["title"] for one in records["display_sets"]] == list(CASES)
    assert [one["question_text"] for one in records["questions"]] == [
        "assessment (right)",
        "features",
        "note",
    ]
    truths = [one for one in records["answers"] if one["is_ground_truth"]]
    assert {one["creator"] for one in truths} == {"jo"}


def test_grand_challenge_has_options_by_number_and_hostile_words_as_text(studied, tmp_path):
    terms = tuple(Term(name, text) for name, text in (("3", "<b>three</b>"), ("9", "nine")))
    fields = (
        Field("assessment", "<i>Assessment</i>", FieldKind.SINGLE, FieldScope.BREAST, terms),
        Field("features", "Features", FieldKind.MULTIPLE, terms=(Term("y", "why"),)),
        Field("note", "Note", FieldKind.NUMBER),
        Field("other", "Never asked", FieldKind.TEXT),
    )
    store = lead(studied)
    state = load_state(store)
    save_grand_challenge(state, list_answers(state), Form("f", fields=fields), tmp_path)
    records = require_grand_challenge(tmp_path)
    by_text = {one["question_text"]: one for one in records["questions"]}
    first = by_text["<i>Assessment</i> (right)"]
    assert list(by_text) == [first["question_text"], "Features", "Note", "Never asked"]
    assert first["question_text_safe"] == "&lt;i&gt;Assessment&lt;/i&gt; (right)"
    # what was answered and is no term of the form is an option too
    assert [one["title"] for one in first["options"]] == ["<b>three</b>", "nine", "4"]
    assert by_text["Note"]["answer_type"] == "Text"  # "=1+1" is no number
    mine = [
        one
        for one in records["answers"]
        if one["creator"] == "ana" and one["question"] == first["api_url"]
    ]
    assert {one["answer"] for one in mine} == {first["options"][0]["id"]}
    assert json.dumps(records).count("<script") == 0


def test_a_reader_may_be_called_as_what_was_accepted_is(tmp_path):
    names = ("Final", "accepted")
    study = made(tmp_path, cases=("A",), mode=ReadingMode.INDEPENDENT, readers=names)
    for name in names:
        store = FolderStore(study, tmp_path / name, host=name, session="1")
        session = ReviewSession(store, name, tmp_path / name)
        (task, _) = session.queue()[0]
        session.claim(task)
        session.start(task)
        session.finish(task, mask_file(tmp_path, 4), {"assessment": "3"}, active_s=1)
        session.close()
    jo = ReviewSession(FolderStore(study, tmp_path / "jo", host="jo", session="1"), "jo", tmp_path)
    jo.accept("c0001", jo.state.case("c0001").readings[0])
    jo.close()
    store = FolderStore(study, tmp_path / "lead", host="L", session="1")
    formats = (ReviewFormat.MONAI_LABEL, ReviewFormat.MRMC, ReviewFormat.GRAND_CHALLENGE)
    export_study(store, tmp_path / "out", ExportChoice(formats, "assessment"))
    out = tmp_path / "out"
    labels = json.loads((out / "monai-label" / "datastore_v2.json").read_text())["objects"]["A"]
    assert sorted(labels["labels"]) == ["accepted", "final", "reader Final"]
    assert {row["reader"] for row in rows_of(out / "mrmc" / "mrmc.csv")} == set(names)
    records = require_grand_challenge(out / "grand-challenge")
    assert sum(one["is_ground_truth"] for one in records["answers"]) == 1


def test_no_name_of_a_study_reads_as_a_number_of_imrmc_s_header(tmp_path):
    rows = [MrmcRow("ana", "N1: both\nNR:x", case, case, 1234567.25) for case in "01"]
    save_mrmc(rows, tmp_path)
    lines = (tmp_path / "mrmc.imrmc").read_text().splitlines()
    assert lines[:6] == [
        "Review study N1 both NR x",
        "N0: 1",
        "N1: 1",
        "NR: 1",
        "NM: 1",
        "BEGIN DATA:",
    ]
    assert lines[-1] == "1,2,1,1234567.25"  # 1.23457e+06 would tie with others


def test_a_conflict_and_a_lost_mask_exit_with_3_and_readers_do_not_unblind_in_silence(
    studied, tmp_path, monkeypatch
):
    study, folder = studied
    monkeypatch.setenv("MAMAMIA_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("MAMAMIA_CACHE_DIR", str(tmp_path / "cache"))
    run = CliRunner().invoke
    words = ["review", "export", str(study), "--out", str(tmp_path / "out")]
    assert run(app, words).exit_code == 1
    assert run(app, [*words, "--reader", "ana"]).exit_code == 1
    assert not (tmp_path / "out").exists()
    store = lead(studied, "lead2")
    digests = [
        ReviewSession(store, "lea", tmp_path).state.case(key).decision.mask
        for key in ("c0006", "c0004")
    ]
    damaged, lost = (study / "masks" / f"{one}.nii.gz" for one in digests)
    contents = damaged.read_bytes(), lost.read_bytes()
    damaged.write_bytes(contents[0] + b" ")
    lost.unlink()
    # two judges decide without knowing of each other
    late = FolderStore(study, folder / "late", host="late", session="1")
    body = {"act": "reject", "case": "c0008", "round": 1, "reason": "motion"}
    late.append("lea", body)
    late.close()
    done = run(app, [*words, "--reader", "lea"])
    assert done.exit_code == 3, done.output
    assert "failed: twice: conflict: " in done.output
    assert " and reject were decided independently of each other" in done.output
    assert "failed: bad: the accepted mask" in done.output
    assert f"failed: {'D' * 200}: the read by ana: the mask is not in the store" in done.output
    expert = tmp_path / "out" / "masks" / "segmentations" / "expert"
    assert {path.name[0] for path in expert.iterdir()} == {"c", "n"}
    rows = {row["case_id"]: row for row in rows_of(tmp_path / "out" / "cases.csv")}
    assert "the mask was changed" in rows["bad"]["left_out"]
    damaged.write_bytes(contents[0])
    lost.write_bytes(contents[1])
