"""Opening a mask for editing, saving it, and what a crash, damage or another program leaves."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.stepped import Stepped

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, LabelMap
from napari_mamamia.core.edits import Brush, Tool
from napari_mamamia.core.errors import FormatError, SaveConflictError
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.data_set.volumes import read_labels
from napari_mamamia.io.files.append_file import is_open_here
from napari_mamamia.io.workspace.journal import Opened, Saved, read_journal
from napari_mamamia.io.workspace.provenance import read_provenance
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.case.refine import find_refined
from napari_mamamia.services.refine import edit_case
from napari_mamamia.services.refine.edit_case import (
    is_begun,
    open_editing,
    prepare_saving,
    save_editing,
)

BALL = Brush(tool=Tool.SPHERE, radius_mm=3.0)
PLACES = [(3.0, 5.0, 5.0), (3.0, 10.0, 10.0), (1.0, 5.0, 12.0)]


@pytest.fixture(scope="module")
def painting():
    sys.path.insert(0, str(Path(__file__).parent))
    import painting

    yield painting
    sys.path.remove(str(Path(__file__).parent))


@pytest.fixture(scope="module")
def case(painting):
    return painting.make_case()


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "workspace")


@pytest.fixture
def opened(workspace, case):
    """A function that opens the case for editing; what is left open is closed at the end."""
    left = []

    def make(start=None, reader="Ana", of=case, **settings):
        editing = open_editing(of, workspace, reader, start, **settings)
        left.append(editing)
        return editing

    yield make
    for editing in left:
        editing.close()


def paint(editing, *places, label=1):
    for place in places:
        editing.session.press(place, Brush(tool=Tool.SPHERE, radius_mm=3.0, label=label))
        editing.session.release()
    return editing.session.labels.copy()


def crash(editing):
    """Let go of the journal as the system does for a process that is killed."""
    editing.journal._lines._release_handle()
    editing.journal._lines = None
    editing.journal._queue.clear()
    editing.session.on_record = None


def journal_file(workspace):
    return workspace.refined("Ana", "A").with_name("A.journal")


def blob(case, value=1):
    crop = np.full((2, 3, 3), value, np.uint8)
    return LabelMap(case.grid, Box((1, 2, 2), (3, 5, 5)), crop)


def test_a_new_mask_begins_empty_and_looking_leaves_no_file(opened, workspace):
    editing = opened()
    assert not editing.session.labels.any()
    assert (editing.recovered, editing.saved, editing.problem) == (None, None, "")
    editing.close()
    assert not is_begun(workspace, "Ana", "A")


def test_what_was_saved_is_opened_again_with_all_that_went_into_it(opened, workspace):
    editing = opened()
    labels = paint(editing, *PLACES)
    editing.session.undo()
    editing.session.redo()
    saved = save_editing(editing)
    editing.close()
    again = opened()
    assert again.recovered is None
    assert (again.session.labels == labels).all()
    assert again.saved == saved
    assert (again.session.summary.strokes, again.session.summary.undos) == (3, 1)
    assert len(again.session.steps) == 3


def test_the_provenance_says_reader_strokes_path_tools_and_start(opened, workspace, case):
    editing = opened(blob(case), started_from="prediction kinetic")
    editing.session.press((3.0, 5.0, 5.0), BALL)
    editing.session.drag((3.0, 5.0, 10.0))
    editing.session.release()
    editing.session.apply("fill holes", Box.whole(case.grid.shape), editing.session.labels == 0)
    editing.session.undo()
    editing.protocol = "reader study 1"
    saved = save_editing(editing)
    made = read_provenance(saved.path.with_name("A.json"))
    assert (made.name, made.started_from) == ("Ana", "prediction kinetic")
    assert dict(made.parameters) == {
        "strokes": 1,
        "other steps": 1,
        "undos": 1,
        "path_mm": 5.0,
        "tools": "sphere, fill holes",
        "protocol": "reader study 1",
    }
    assert made.seconds is not None


def test_the_file_of_the_start_mask_is_named_with_its_checksum(opened, workspace, case, tmp_path):
    import hashlib

    from napari_mamamia.io.data_set.volumes import write_volume

    path = tmp_path / "start.nii.gz"
    write_volume(blob(case).dense(), case.grid, path)
    editing = opened(read_labels(path), started_from="reference expert")
    paint(editing, PLACES[1])
    saved = save_editing(editing)
    made = read_provenance(saved.path.with_name("A.json"))
    expected = hashlib.sha256(path.read_bytes()).hexdigest()
    assert [(i.name, i.sha256) for i in made.inputs] == [("start.nii.gz", expected)]
    editing.close()
    again = opened()
    paint(again, PLACES[2])
    saved = save_editing(again)
    assert read_provenance(saved.path.with_name("A.json")).inputs == made.inputs


def test_structures_keep_their_values_on_the_disk_and_back(opened):
    editing = opened()
    paint(editing, PLACES[0], label=1)
    labels = paint(editing, PLACES[1], label=4)
    saved = save_editing(editing)
    assert read_labels(saved.path).values == (1.0, 4.0)
    editing.close()
    assert (opened().session.labels == labels).all()


# ---------------------------------------------------------------------- recovery


def test_after_a_crash_every_step_is_back_and_can_be_undone(opened):
    editing = opened()
    one = paint(editing, PLACES[0])
    paint(editing, PLACES[1])
    three = paint(editing, PLACES[2])
    crash(editing)
    again = opened()
    assert again.recovered.n_steps == 3
    assert again.recovered.text.startswith("3 steps from 20")
    assert (again.session.labels == three).all()
    assert (again.recovered.labels.dense() == three).all()
    again.session.undo()
    again.session.undo()
    assert (again.session.labels == one).all()


def test_a_second_crash_after_a_recovery_loses_nothing_either(opened):
    editing = opened()
    one = paint(editing, PLACES[0])
    paint(editing, PLACES[1])
    crash(editing)
    editing = opened()
    editing.session.undo()
    three = paint(editing, PLACES[2])
    crash(editing)
    editing = opened()
    assert (editing.session.labels == three).all()
    editing.session.undo()
    assert (editing.session.labels == one).all()
    editing.session.undo()
    assert not editing.session.labels.any()


def test_only_what_came_after_the_last_saving_is_offered(opened):
    editing = opened()
    saved = paint(editing, PLACES[0])
    save_editing(editing)
    later = paint(editing, PLACES[1])
    crash(editing)
    again = opened()
    assert again.recovered.n_steps == 1
    assert (again.session.labels == later).all()
    assert not again.back_to_saved().is_empty
    assert (again.session.labels == saved).all()
    assert again.recovered is None
    again.session.undo()  # leaving it is a step too
    assert (again.session.labels == later).all()


def test_strokes_painted_while_a_save_runs_are_not_taken_for_saved(opened):
    editing = opened()
    early = paint(editing, PLACES[0])
    save = prepare_saving(editing)
    late = paint(editing, PLACES[1])
    saved = save()
    assert (read_labels(saved.path).dense() == early).all()
    crash(editing)
    again = opened()
    assert again.recovered is not None
    assert (again.session.labels == late).all()


def test_a_torn_last_record_is_dropped_and_said(opened, workspace):
    editing = opened()
    one = paint(editing, PLACES[0])
    paint(editing, PLACES[1])
    crash(editing)
    path = journal_file(workspace)
    path.write_bytes(path.read_bytes()[:-40])
    again = opened()
    assert (again.session.labels == one).all()
    assert "the last record of the journal was incomplete" in again.notes[0]
    assert "only the stroke that was being drawn" in again.notes[0]
    two = paint(again, PLACES[2])
    crash(again)
    assert (opened().session.labels == two).all()


def test_damage_in_the_middle_recovers_what_came_before_and_keeps_the_file(opened, workspace):
    editing = opened()
    one = paint(editing, PLACES[0])
    paint(editing, PLACES[1], PLACES[2])
    crash(editing)
    path = journal_file(workspace)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"n":2', b'"n":7', 1)
    damaged = b"".join(lines)
    path.write_bytes(damaged)
    again = opened()
    assert (again.session.labels == one).all()
    assert again.recovered is not None
    assert "2 later records are not included" in again.notes[0]
    assert again.recovered.warnings == ("2 later records in the edit journal were lost",)
    assert path.with_name("A.set-aside-1.journal").read_bytes() == damaged
    two = paint(again, PLACES[2])
    crash(again)
    assert (opened().session.labels == two).all()


@pytest.mark.parametrize("change", ["case", "grid", "reader", "version", "nonsense"])
def test_a_journal_of_something_else_is_set_aside_and_never_deleted(
    opened, workspace, case, change
):
    editing = opened()
    paint(editing, PLACES[0])
    editing.close()
    path = journal_file(workspace)
    kept = path
    of, reader = case, "Ana"
    if change == "case":
        of = Case("B", case.grid, case.signal, case.phases)
        kept = path.rename(path.with_name("B.journal"))
    elif change == "grid":
        of = Case(
            "A", Grid(case.grid.shape, np.diag([-2.0, 2.0, 2.0, 1.0])), case.signal, case.phases
        )
    elif change == "reader":
        reader = "Bea"
        kept = workspace.refined("Bea", "A").with_name("A.journal")
        kept.parent.mkdir()
        path.rename(kept)
    elif change == "version":
        content = path.read_bytes()
        from napari_mamamia.io.files.append_file import CheckedLines

        with CheckedLines(path, keep=False) as lines:
            lines.add({"kind": "opened", "at": "", "version": 2, "software": "later"})
        assert content
    else:
        path.write_bytes(b"no journal at all\n")
    content = kept.read_bytes()
    again = opened(reader=reader, of=of)
    assert not again.session.labels.any()
    assert again.recovered is None
    assert "cannot be used" in again.notes[0]
    aside = kept.with_name(f"{of.case_id}.set-aside-1.journal")
    assert aside.read_bytes() == content
    assert aside.name in again.notes[0]


def test_a_mask_that_something_else_saved_meanwhile_is_what_is_opened(opened, workspace, case):
    from napari_mamamia.io.data_set.volumes import write_volume

    editing = opened()
    paint(editing, PLACES[0])
    saved = save_editing(editing)
    editing.close()
    write_volume(blob(case, 3).dense(), case.grid, saved.path, overwrite=True)
    again = opened()
    assert again.recovered is None
    assert (again.session.labels == blob(case, 3).dense()).all()
    assert "another program changed" in again.notes[0]


def test_a_mask_file_that_was_removed_is_recovered_from_the_journal(opened):
    editing = opened()
    labels = paint(editing, PLACES[0])
    save_editing(editing).path.unlink()
    editing.close()
    again = opened()
    assert again.recovered.mask_changed_since
    assert (again.session.labels == labels).all()
    saved = save_editing(again)
    assert (read_labels(saved.path).dense() == labels).all()


# -------------------------------------------------------------------- the start


def test_a_start_is_the_base_of_a_new_mask_and_a_step_over_an_old_one(opened, case):
    editing = opened(blob(case), started_from="prediction kinetic")
    assert (editing.session.labels == blob(case).dense()).all()
    assert editing.session.steps == ()
    labels = paint(editing, PLACES[1])
    save_editing(editing)
    editing.close()
    again = opened(blob(case, 2), started_from="reference expert")
    assert (again.session.labels == blob(case, 2).dense()).all()
    assert [edit.name for edit in again.session.steps] == [
        "paint 3 mm (sphere)",
        "reference expert",
    ]
    again.session.undo()
    assert (again.session.labels == labels).all()


def test_values_that_are_no_labels_are_refused(opened, case):
    crop = np.full((1, 1, 1), 300, np.int16)
    with pytest.raises(FormatError, match="to be from 0 to 255"):
        opened(LabelMap(case.grid, Box((0, 0, 0), (1, 1, 1)), crop))
    opened()  # the journal was let go of


# --------------------------------------------------------------------- conflicts


@pytest.mark.skipif(os.name == "nt", reason="no file locks there")
def test_a_second_window_on_the_same_mask_is_refused_but_not_on_another_readers(
    opened, monkeypatch
):
    monkeypatch.setattr(edit_case, "_OWN_LOCK_S", 0.0)
    opened()
    with pytest.raises(SaveConflictError, match="open in another window"):
        opened()
    opened(reader="Bea")


def test_an_opening_waits_for_one_of_the_same_program_that_was_cancelled(case, workspace):
    first = open_editing(case, workspace, "Ana")
    while not is_open_here(journal_file(workspace)):
        next(first)
    second = Stepped(open_editing, case, workspace, "Ana")
    said = [next(second).text for _ in range(3)]
    assert said[1:] == ["Waiting for an earlier request to open the mask to end"] * 2
    first.close()
    editing = second()
    assert editing.problem == ""
    editing.close()


@pytest.mark.skipif(os.name == "nt", reason="no file locks there")
def test_another_program_that_has_the_mask_open_is_named_as_such_at_once(case, workspace):
    path = journal_file(workspace)
    path.parent.mkdir(parents=True)
    hold = (
        "import sys; from pathlib import Path;"
        "from napari_mamamia.io.workspace.journal import Journal;"
        "journal = Journal(Path(sys.argv[1])); print('held', flush=True); sys.stdin.readline()"
    )
    with subprocess.Popen(
        [sys.executable, "-P", "-c", hold, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(SaveConflictError, match="open in another program"):
            open_editing(case, workspace, "Ana")
        other.communicate("end\n", timeout=60)
    open_editing(case, workspace, "Ana").close()


def test_a_save_over_a_mask_that_changed_meanwhile_is_refused_and_steps_go_on(opened, case):
    from napari_mamamia.io.data_set.volumes import write_volume

    editing = opened()
    paint(editing, PLACES[0])
    saved = save_editing(editing)
    write_volume(blob(case, 3).dense(), case.grid, saved.path, overwrite=True)
    labels = paint(editing, PLACES[1])
    with pytest.raises(SaveConflictError):
        save_editing(editing)
    assert (editing.session.labels == labels).all()
    crash(editing)
    again = opened()
    assert (again.session.labels == labels).all()
    assert again.recovered.mask_changed_since


def test_without_a_workspace_the_notes_say_that_nothing_is_recorded(case):
    editing = open_editing(case, None, "Ana")
    paint(editing, *PLACES)
    editing.session.undo()
    assert "not saved to a journal" in editing.notes[0]
    with pytest.raises(ValueError, match="workspace"):
        save_editing(editing)
    editing.close()


def test_closing_records_a_stroke_in_hand(opened, workspace):
    editing = opened()
    editing.session.press(PLACES[0], BALL)
    editing.close()
    assert (opened().session.labels == editing.session.labels).all()


def test_openings_and_savings_stand_in_the_journal(opened, workspace):
    editing = opened()
    paint(editing, PLACES[0])
    saved = save_editing(editing)
    editing.close()
    editing = opened()
    paint(editing, PLACES[1])
    editing.close()
    records = [placed.record for placed in read_journal(journal_file(workspace)).records]
    assert [type(record).__name__ for record in records] == [
        "Opened",
        "Step",
        "Saved",
        "Opened",
        "Step",
    ]
    assert isinstance(records[2], Saved)
    assert records[2].sha256 == saved.sha256
    assert isinstance(records[3], Opened)
    assert records[3].base_sha256 == saved.sha256
    assert [records[1].number, records[4].number] == [1, 2]


def test_beyond_the_memory_limit_undo_reads_the_journal_of_this_and_of_a_crashed_run(opened):
    editing = opened(limit_bytes=3000)
    one = paint(editing, PLACES[0])
    for label in (2, 1, 2):
        paint(editing, *PLACES, label=label)
    crash(editing)
    again = opened(limit_bytes=3000)
    paint(again, *PLACES, label=1)
    n_steps = len(again.session.steps)
    assert n_steps == 13
    assert again.session.history.nbytes < 1200 * n_steps  # names and paths alone: 1140 a step
    while again.session.position > 1:
        again.session.undo()
    assert (again.session.labels == one).all()


def test_a_saved_version_is_accepted_and_a_later_one_is_not(opened, case, workspace):
    editing = opened()
    paint(editing, (2.0, 9.0, 9.0))
    assert save_editing(editing, accepted=True).is_accepted
    assert find_refined(workspace, "Ana", case.case_id).is_accepted
    paint(editing, (3.0, 9.0, 9.0))
    assert not save_editing(editing).is_accepted
    assert not find_refined(workspace, "Ana", case.case_id).is_accepted
