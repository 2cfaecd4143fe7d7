"""Quality control as files: the queue of a score table, what was read, the study that asks."""

import csv
import json

import numpy as np
import pytest

from napari_mamamia.core.errors import CaseError, FormatError, SaveConflictError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.records import CaseScore, ScoreStatus
from napari_mamamia.features.review.core.review import ReadingMode, StudyPlan
from napari_mamamia.features.review.io.quality_files import read_marks, read_queue, read_signs
from napari_mamamia.features.review.services.look import load_study_queue
from napari_mamamia.features.review.services.plan_study import (
    StudyPeople,
    draft_study,
    freeze_study,
)
from napari_mamamia.features.review.services.quality_queue import make_capture, make_queue
from napari_mamamia.io.data_set.volumes import write_volume
from napari_mamamia.io.tables.tables import write_case_scores
from napari_mamamia.services.case.data_set import open_data_set

DICE = {"A_1": 0.9, "A_2": 0.3, "B_1": 0.31, "B_2": 0.7}


@pytest.fixture
def scores(tmp_path):
    rows = [CaseScore(name, ScoreStatus.OK, dice) for name, dice in DICE.items()]
    rows.append(CaseScore("gone", ScoreStatus.PREDICTION_MISSING))
    rows.append(CaseScore("=cmd()|'x'", ScoreStatus.BOTH_EMPTY))
    folder = tmp_path / "scores"
    folder.mkdir()
    write_case_scores(rows, folder / "case_scores.csv")
    return folder


def table(tmp_path, text, name="t.csv"):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path / name


def test_a_queue_is_made_from_the_folder_of_scores(tmp_path, scores):
    signs = table(tmp_path, "case_id;missed_lesions;Site\nB_1;2;S\nstranger;1;S\n")
    result = make_queue(scores, tmp_path / "q", signs, random_share=0)
    ids = [place.case_id for place in result.queue.places]
    # without a prediction first, then the step 0.30 to 0.35 with its missed lesions first
    assert ids == ["gone", "B_1", "A_2", "B_2", "A_1", "=cmd()|'x'"]
    assert result.queue.places[1].why == "Dice 0.310; 2 lesions missed"
    assert result.notes == (f"stranger is in {signs} but has no score, and was left out",)
    assert read_queue(tmp_path / "q" / "queue.json") == result.queue
    with (tmp_path / "q" / "queue.csv").open(newline="") as stream:
        rows = list(csv.reader(stream))
    assert rows[0] == ["place", "case_id", "part", "rank", "draw", "why"]
    assert rows[-1][1].startswith("'=")  # no spreadsheet program runs it
    assert (tmp_path / "q" / "queue.txt").read_text().splitlines()[1] == "gone"


def test_a_queue_that_is_there_stays_unless_asked(tmp_path, scores):
    make_queue(scores, tmp_path / "q")
    with pytest.raises(SaveConflictError):
        make_queue(scores, tmp_path / "q", seed=5)
    assert read_queue(tmp_path / "q" / "queue.json").seed == 42
    make_queue(scores, tmp_path / "q", seed=5, overwrite=True)
    assert read_queue(tmp_path / "q" / "queue.json").seed == 5


def test_what_was_read_is_followed_to_files(tmp_path, scores):
    make_queue(scores, tmp_path / "q", random_share=0.5)
    marks = table(tmp_path, "case_id,error\ngone,yes\nA_1,no\nB_1,\n")
    result = make_capture(tmp_path / "q" / "queue.json", marks, tmp_path / "c")
    assert (result.capture.n_read, result.capture.n_errors) == (2, 1)
    content = json.loads((tmp_path / "c" / "capture.json").read_text())
    assert content["points"][-1] == {"n_read": 2, "n_errors": 1}
    lines = (tmp_path / "c" / "capture.txt").read_text().splitlines()
    assert lines[0] == "1 error in 2 of 6 cases"
    assert lines[2].startswith("go on: ")
    assert set(lines[3:]) == set(result.capture.to_read) != set()
    with (tmp_path / "c" / "capture.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["case_id"], row["n_errors"], row["share_found"]) for row in rows] == [
        ("gone", "1", "1"),
        ("A_1", "1", "1"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("case_id,doubt\nA,1\nA,2\n", "'A' in lines 2 and 3"),
        ("case_id,doubt\nA,much\n", "doubt of .*line 2, but found 'much'"),
        ("case_id,doubt\nA,inf\n", "a number in column doubt"),
        ("case_id,other_side\nA,perhaps\n", "yes or no in column other_side"),
        ("case_id,nothing\nA,1\n", "one of missed_lesions"),
        ("doubt\n1\n", "column case_id"),
        ("case_id,doubt\n,1\n", "line 2: the case id is empty"),
        ("", "it is empty"),
    ],
)
def test_signs_that_cannot_be_meant_are_refused_with_their_line(tmp_path, text, message):
    with pytest.raises(FormatError, match=message):
        read_signs(table(tmp_path, text))


def test_marks_keep_the_order_of_reading_and_empty_ones_are_unread(tmp_path):
    marks = read_marks(table(tmp_path, "Case_ID\tERROR\nB\tYes\n\t\nA\t0\nC\t\n"))
    assert list(marks.items()) == [("B", True), ("A", False)]


def test_a_queue_with_a_case_of_another_scores_is_refused_at_the_capture(tmp_path, scores):
    make_queue(scores, tmp_path / "q")
    marks = table(tmp_path, "case_id,error\nX_9,no\n")
    with pytest.raises(CaseError, match="X_9"):
        make_capture(tmp_path / "q" / "queue.json", marks, tmp_path / "c")


def test_a_study_deals_the_cases_in_the_order_of_the_queue_and_freezes_it(tmp_path, scores):
    grid = Grid.of_spacing((2, 3, 4), (1, 1, 1))
    for name in DICE:
        for phase in range(2):
            path = tmp_path / "data" / "images" / name / f"{name}_{phase:04d}.nii.gz"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_volume(np.full((2, 3, 4), phase, np.int16), grid, path)
    lines = (scores / "case_scores.csv").read_text().splitlines()
    kept = [line for line in lines if "gone" not in line and "cmd" not in line]
    path = table(tmp_path, "\n".join(kept) + "\n", "scores.csv")
    queue = make_queue(path, tmp_path / "q", random_share=0.25).queue
    order = tmp_path / "q" / "queue.json"
    opened = open_data_set(tmp_path / "data", tmp_path / "w")
    plan, people = StudyPlan("t", ReadingMode.INDEPENDENT), StudyPeople(("L",), ("Ana", "Ben"))
    draft = draft_study(opened, plan, people, order=order)
    assert [one.case_id for one in draft.study.cases] == [one.case_id for one in queue.places]
    for reader in ("ana", "ben"):
        keys = [task.case for task in draft.study.tasks_of(reader)]
        assert keys == sorted(keys)
    freeze_study(draft, tmp_path / "STUDY")
    assert load_study_queue(tmp_path / "STUDY", draft.study) == queue
    part = draft_study(opened, plan, people, ["B_1", "A_1"], order=order)
    assert {one.case_id for one in part.study.cases} == {"A_1", "B_1"}
    with pytest.raises(CaseError, match="'Z'"):
        draft_study(opened, plan, people, ["Z"], order=order)
