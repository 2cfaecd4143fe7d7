"""What a reader found is kept: torn lines, other windows, later versions, damage, other masks."""

import json
from dataclasses import replace

import pytest

from napari_mamamia.core.answers import (
    Answer,
    Answers,
    CaseFacts,
    Landmark,
    LesionFacts,
    MarkedPoint,
    Place,
    Side,
)
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.form import FieldScope
from napari_mamamia.io.workspace import event_store
from napari_mamamia.io.workspace.event_store import EventWriter
from napari_mamamia.io.workspace.findings import FINDINGS_FOLDER, FindingsChange, append_findings
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.findings.case_findings import (
    CaseFindings,
    fill_in,
    keep_findings,
    load_findings_form,
    mark_landmark,
    open_findings,
)

FORM = load_findings_form()
LESION = Place(FieldScope.LESION, "1")
RIGHT = Place(FieldScope.BREAST, "right")
NIPPLE = MarkedPoint(Landmark.NIPPLE, Side.RIGHT, (90.1234, 60.0, -0.0001))
FACTS = CaseFacts(
    (LesionFacts("1", Side.RIGHT, 523.6, 10.0, "fast", centre_mm=(120.0, 40.0, 30.0)),),
    midline_x_mm=0.0,
)


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "workspace")


def keep(workspace, *answers, reader="Ana", case_id="A", landmarks=None):
    """Answer as a window does: open, answer, keep."""
    before = open_findings(workspace, reader, case_id)
    now = before
    for one in answers:
        now = replace(now, answers=now.answers.put(one))
    keep_findings(workspace, reader, case_id, FORM, before.answers, now)
    return now


def values(workspace, field, place=LESION, reader="Ana", case_id="A"):
    one = open_findings(workspace, reader, case_id).answers.find(field, place)
    return None if one is None else one.values


def files(workspace):
    return list((workspace.root / FINDINGS_FOLDER).rglob("*.jsonl"))


MASS = Answer("finding", ("mass",), LESION)
SHAPE = Answer("mass.shape", ("irregular",), LESION)
CATEGORY = Answer("assessment", ("4",), RIGHT)


def test_nothing_is_there_where_nobody_said_anything(workspace):
    assert open_findings(workspace, "Ana", "A") == CaseFindings()
    keep(workspace)
    assert not workspace.root.exists()


def test_what_was_said_is_there_again_and_of_one_reader_and_case_alone(workspace):
    keep(workspace, MASS, CATEGORY)
    keep(workspace, replace(MASS, values=("nme",)), reader="Ben")
    keep(workspace, replace(MASS, values=("focus",)), case_id="B")
    assert values(workspace, "finding") == ("mass",)
    assert values(workspace, "assessment", RIGHT) == ("4",)
    assert values(workspace, "finding", reader="Ben") == ("nme",)
    assert values(workspace, "finding", case_id="B") == ("focus",)


def test_a_change_writes_what_changed_alone_with_reader_and_time(workspace):
    keep(workspace, MASS, CATEGORY)
    keep(workspace, SHAPE)
    (path,) = files(workspace)
    last = json.loads(path.read_text("utf-8").splitlines()[-1])["entry"]
    assert last["body"]["answers"] == {"mass.shape@1": "irregular"}
    assert last["reader"] == "Ana"
    assert last["at"].endswith("+00:00")
    assert last["body"]["form"]["name"] == "breast-mri-2013"
    size = path.stat().st_size
    keep(workspace, SHAPE)
    assert path.stat().st_size == size  # nothing new: nothing written


def test_an_answer_that_was_taken_away_is_gone_and_the_file_still_holds_it(workspace):
    keep(workspace, MASS, CATEGORY)
    keep(workspace, replace(CATEGORY, values=()))
    assert values(workspace, "assessment", RIGHT) is None
    assert values(workspace, "finding") == ("mass",)
    assert '"assessment@right":"4"' in files(workspace)[0].read_text("utf-8")


def test_two_windows_of_one_reader_lose_nothing_to_each_other(workspace, monkeypatch):
    one = other = open_findings(workspace, "Ana", "A")
    now = replace(one, answers=one.answers.put(MASS))
    keep_findings(workspace, "Ana", "A", FORM, one.answers, now)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(event_store, "_RUN", "another run")
        now = replace(other, answers=other.answers.put(CATEGORY))
        keep_findings(workspace, "Ana", "A", FORM, other.answers, now)
    assert len(files(workspace)) == 2
    assert values(workspace, "finding") == ("mass",)
    assert values(workspace, "assessment", RIGHT) == ("4",)


def test_the_later_word_counts_where_two_windows_answer_one_question(workspace, monkeypatch):
    keep(workspace, MASS)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(event_store, "_RUN", "another run")
        keep(workspace, replace(MASS, values=("nme",)))
    keep(workspace, replace(MASS, values=("focus",)))
    assert values(workspace, "finding") == ("focus",)


def test_a_line_that_a_crash_tore_costs_only_itself(workspace):
    keep(workspace, MASS)
    (path,) = files(workspace)
    with path.open("ab") as stream:
        stream.write(b'{"hash":"0000')
    again = open_findings(workspace, "Ana", "A")
    assert (again.problem, values(workspace, "finding")) == ("", ("mass",))
    keep(workspace, SHAPE)
    assert values(workspace, "finding") == ("mass",)
    assert values(workspace, "mass.shape") == ("irregular",)


def test_a_damaged_line_is_told_and_costs_only_itself(workspace):
    for one in (MASS, SHAPE, CATEGORY):
        keep(workspace, one)
    (path,) = files(workspace)
    lines = path.read_bytes().split(b"\n")
    lines[1] = lines[1].replace(b"irregular", b"round....")
    path.write_bytes(b"\n".join(lines))
    again = open_findings(workspace, "Ana", "A")
    assert "line 2" in again.problem
    assert values(workspace, "mass.shape") is None
    assert values(workspace, "assessment", RIGHT) == ("4",)


def test_lines_of_a_later_version_are_told_and_passed_over(workspace):
    keep(workspace, MASS)
    with EventWriter(workspace.root / FINDINGS_FOLDER, "Ana") as writer:
        writer.append({"version": 2, "case_id": "A", "answers": {"finding@1": "halo"}})
    again = open_findings(workspace, "Ana", "A")
    assert values(workspace, "finding") == ("mass",)
    assert again.problem.startswith("1 line from a later version")


def test_ids_of_a_later_lexicon_are_kept(workspace):
    later = {"name": "breast-mri-2025", "edition": "2025", "sha256": "0" * 64}
    answers = {"implant@right": "rupture", "mass.shape@1": "lobulated", "note": {"text": "x"}}
    append_findings(workspace.root, "Ana", "A", FindingsChange(later, answers))
    keep(workspace, MASS)
    again = open_findings(workspace, "Ana", "A").answers
    assert again.find("implant", RIGHT).values == ("rupture",)
    assert again.find("mass.shape", LESION).values == ("lobulated",)
    filled, _ = fill_in(FORM, open_findings(workspace, "Ana", "A"), FACTS)
    assert filled.answers.find("implant", RIGHT).values == ("rupture",)


@pytest.mark.parametrize(
    "body",
    [
        {"answers": 7, "removed": "x", "computed": [1], "points": 3, "centres_mm": []},
        {"answers": {"finding@1": 4}, "form": []},
        {"points": [7, {"landmark": "nipple", "side": "both", "point_mm": ["1", "2", "3"]}]},
        {"points": [{"landmark": "navel", "side": "left", "point_mm": ["1", "2", "3"]}]},
        {"points": [{"landmark": "nipple", "side": "left", "point_mm": ["1", "2", "nan"]}]},
        {"points": [{"landmark": "nipple", "side": "left", "point_mm": ["1", "2", "9e99"]}]},
        {"points": [{"landmark": "nipple", "side": "left", "point_mm": ["1", "2"]}]},
        {"points": [{"landmark": "nipple", "side": "left"}]},
        {"centres_mm": {"1": ["x", "1", "2"]}},
        {"case_id": 5},
    ],
)
def test_what_has_another_form_is_passed_over(workspace, body):
    keep(workspace, MASS)
    with EventWriter(workspace.root / FINDINGS_FOLDER, "Ana") as writer:
        writer.append({"version": 1, "case_id": "A", **body})
    again = open_findings(workspace, "Ana", "A")
    assert again.landmarks.points == ()
    assert again.answers.find("finding", LESION) in (MASS, None)
    keep(workspace, CATEGORY)
    assert values(workspace, "assessment", RIGHT) == ("4",)


def test_a_landmark_is_kept_moved_and_taken_away(workspace):
    mark_landmark(workspace, "Ana", "A", NIPPLE)
    again = open_findings(workspace, "Ana", "A").landmarks
    assert again.find(Landmark.NIPPLE, Side.RIGHT) == (90.123, 60.0, 0.0)
    mark_landmark(workspace, "Ana", "A", replace(NIPPLE, point_mm=(80.0, 1.0, 2.0)))
    again = open_findings(workspace, "Ana", "A").landmarks
    assert [one.point_mm for one in again.points] == [(80.0, 1.0, 2.0)]
    mark_landmark(workspace, "Ana", "A", replace(NIPPLE, point_mm=None))
    assert open_findings(workspace, "Ana", "A").landmarks.points == ()


def test_what_the_program_filled_in_stays_so_and_what_was_touched_stays_that(workspace):
    before = open_findings(workspace, "Ana", "A")
    now, _ = fill_in(FORM, replace(before, answers=Answers((MASS,))), FACTS)
    touched = Answer("kin.initial", ("slow",), LESION)
    now = replace(now, answers=now.answers.put(touched))
    keep_findings(workspace, "Ana", "A", FORM, before.answers, now)
    again = open_findings(workspace, "Ana", "A").answers
    assert again.find("volume", LESION) == Answer("volume", ("523.6",), LESION, is_computed=True)
    assert again.find("kin.initial", LESION) == touched
    # what was filled in goes with its lesion, and comes anew with the next mask
    gone, _ = fill_in(FORM, open_findings(workspace, "Ana", "A"), CaseFacts(()))
    assert gone.answers.find("volume", LESION) is None
    assert gone.answers.find("finding", LESION) == MASS


def test_what_was_said_of_a_lesion_is_found_with_it_in_another_order_of_sizes(workspace):
    before = open_findings(workspace, "Ana", "A")
    now, _ = fill_in(FORM, replace(before, answers=Answers((MASS,))), FACTS)
    keep_findings(workspace, "Ana", "A", FORM, before.answers, now)
    larger = LesionFacts("1", Side.LEFT, 900.0, 12.0, centre_mm=(-50.0, 0.0, 0.0))
    facts = replace(FACTS, lesions=(larger, replace(FACTS.lesions[0], name="2")))
    again, shown = fill_in(FORM, open_findings(workspace, "Ana", "A"), facts)
    assert [(one.name, one.side) for one in shown.lesions] == [
        ("2", Side.LEFT),
        ("1", Side.RIGHT),
    ]
    assert again.answers.find("volume", LESION).values == ("523.6",)


def test_names_that_cannot_be_files_are_refused(workspace):
    for reader, case_id in (("a/b", "A"), ("Ana", "../A")):
        with pytest.raises(CaseError):
            keep_findings(
                workspace, reader, case_id, FORM, Answers(), CaseFindings(Answers((MASS,)))
            )
        with pytest.raises(CaseError):
            mark_landmark(workspace, reader, case_id, NIPPLE)
    assert not workspace.root.exists()
