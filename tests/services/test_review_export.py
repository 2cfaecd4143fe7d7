"""What leaves a study: the bytes that were accepted, and tables that say who said what."""

import csv
import hashlib
import json

import numpy as np
import pytest
from tests.review_study import made
from typer.testing import CliRunner

from napari_mamamia.cli.app import app
from napari_mamamia.core.blinding import ALL_HIDDEN
from napari_mamamia.core.errors import CaseError, SaveConflictError, SaveError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.review import ReadingMode, ReviewFormat
from napari_mamamia.io.data_set.volumes import read_labels, write_volume
from napari_mamamia.io.files import save
from napari_mamamia.io.review.store import FolderStore
from napari_mamamia.io.workspace.provenance import read_provenance
from napari_mamamia.reviewing.states import CaseState
from napari_mamamia.services.review.consensus import make_consensus
from napari_mamamia.services.review.export.study_export import ExportChoice, export_study
from napari_mamamia.services.review.session import ReviewSession

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


def test_nothing_is_overwritten_and_no_half_export_has_the_name(studied, tmp_path, monkeypatch):
    store = lead(studied)
    choice = ExportChoice((ReviewFormat.MASKS, ReviewFormat.ANSWERS))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(SaveConflictError):
        export_study(store, tmp_path / "full", choice)
    with pytest.raises(SaveConflictError, match="outside the study"):
        export_study(store, store.folder / "out", choice)
    assert not (store.folder / "out").exists()

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
        ("", None, "expected the question whose answers are the ratings"),
        ("assesment", None, "expected answers to 'assesment', got none"),
        ("note", None, "expected numbers as ratings, got '=1"),
        ("assessment", ("A_1",), "expected positive cases among those that were rated, got 'A_1'"),
    ],
)
def test_a_table_of_ratings_that_cannot_be_is_refused(
    studied, tmp_path, rating, positives, message
):
    choice = ExportChoice((ReviewFormat.MRMC,), rating, positives)
    with pytest.raises(CaseError, match=message):
        export_study(lead(studied), tmp_path / "out", choice)
    assert list(tmp_path.iterdir()) == []


def test_other_tools_get_what_they_know_and_events_their_bytes(studied, tmp_path):
    formats = (ReviewFormat.MONAI_LABEL, ReviewFormat.GRAND_CHALLENGE, ReviewFormat.EVENTS)
    out = tmp_path / "out"
    export_study(lead(studied), out, ExportChoice(formats))
    datastore = json.loads((out / "monai-label" / "datastore_v2.json").read_text("utf-8"))
    labels = datastore["objects"]["bad"]["labels"]
    assert sorted(labels) == ["ana", "ben", "final"]
    assert labels["final"]["info"]["meta"]["status"] == "approved"
    for tag in labels:
        assert (out / "monai-label" / "labels" / tag / "bad.nii.gz").exists()
    assert datastore["objects"]["open"]["labels"].keys() == {"ana"}
    folder = out / "grand-challenge"
    sets = json.loads((folder / "display_sets.json").read_text("utf-8"))
    assert [one["title"] for one in sets] == list(CASES)
    answers = json.loads((folder / "answers.json").read_text("utf-8"))
    assert len({one["pk"] for one in answers}) == len(answers)
    assert {one["display_set"] for one in answers} <= {one["pk"] for one in sets}
    questions = json.loads((folder / "questions.json").read_text("utf-8"))
    assert [one["pk"] for one in questions] == ["assessment", "features", "note"]
    study, _ = studied
    for path in [study / "study.json", *(study / "events").rglob("*.jsonl")]:
        assert (out / "events" / path.relative_to(study)).read_bytes() == path.read_bytes()


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
    assert "failed: twice: conflict: jo" in done.output
    assert "failed: bad: the accepted mask" in done.output
    assert f"failed: {'D' * 200}: the read by ana: its mask is not in the store" in done.output
    expert = tmp_path / "out" / "masks" / "segmentations" / "expert"
    assert {path.name[0] for path in expert.iterdir()} == {"c", "n"}
    rows = {row["case_id"]: row for row in rows_of(tmp_path / "out" / "cases.csv")}
    assert "the mask was changed" in rows["bad"]["left_out"]
    damaged.write_bytes(contents[0])
    lost.write_bytes(contents[1])
