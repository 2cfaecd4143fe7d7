"""Replaying a journal gives the mask bit for bit, and its strokes can be painted anew."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from napari_mamamia.core.case import Case
from napari_mamamia.core.edits import Brush, Tool, Turn
from napari_mamamia.core.errors import CaseError, FormatError, SaveConflictError
from napari_mamamia.io.data_set.volumes import read_labels
from napari_mamamia.io.workspace.journal import Journal, Opened, read_journal
from napari_mamamia.io.workspace.provenance import read_provenance
from napari_mamamia.services.refine.edit_case import save_editing
from napari_mamamia.services.refine.journal_play import JournalPlay, play_journal
from napari_mamamia.services.refine.replay import case_of_journal, replay_journal
from napari_mamamia.smartpaint.evidence import stroke
from napari_mamamia.smartpaint.grow import compiled


@pytest.fixture(scope="module")
def painting():
    sys.path.insert(0, str(Path(__file__).parent))
    import painting

    yield painting
    sys.path.remove(str(Path(__file__).parent))


@pytest.fixture(scope="module")
def case(painting):
    return painting.make_case()


@pytest.fixture(scope="module")
def images(painting, case):
    return painting.make_images(case)


@pytest.fixture
def painted(painting, case, images, tmp_path):
    """A folder with a session of 12 strokes, and the labels that it ended with."""
    editing = painting.open_for(tmp_path, case, images)
    rng = np.random.default_rng(8)
    for _ in range(12):
        painting.random_stroke(editing.session, rng)
    labels = editing.session.labels.copy()
    editing.close()
    return painting.journal_of(tmp_path), labels


@pytest.mark.parametrize(
    ("first", "stop"),
    [
        (0, 20),
        pytest.param(20, 100, marks=pytest.mark.night),
        *(pytest.param(k, k + 100, marks=pytest.mark.night) for k in range(100, 500, 100)),
    ],
)
def test_500_random_sessions_replay_to_the_same_labels_and_membership(
    painting, case, images, tmp_path, first, stop
):
    for seed in range(first, stop):
        folder = tmp_path / str(seed)
        editing = painting.open_for(folder, case, images, limit_bytes=20_000)
        rng = np.random.default_rng(seed)
        for _ in range(8):
            painting.random_act(editing.session, rng)
        session = editing.session
        editing.close()
        if not session.steps:
            continue
        play = play_journal(JournalPlay(painting.journal_of(folder)))
        again = play.session
        assert (again.labels == session.labels).all(), seed
        for label in (1, 2):
            now, then = (s.state.membership(label) for s in (again, session))
            assert now.tobytes() == then.tobytes(), seed
        assert painting.crc_of_state(again) == painting.crc_of_state(session), seed
        assert (again.steps, again.position) == (session.steps, session.position), seed


def test_the_mask_of_a_replay_is_the_mask_that_was_painted(painted, tmp_path):
    journal, labels = painted
    done = replay_journal(journal, tmp_path / "again.nii.gz")
    assert (read_labels(done.path).dense() == labels).all()
    assert done.n_voxels == np.count_nonzero(labels)
    assert done.n_strokes is None
    made = read_provenance(tmp_path / "again.json")
    assert (made.name, made.case_id) == ("Ana", "A")
    assert made.note.startswith("replayed from the journal of ")


def test_a_replay_gives_the_file_that_was_saved_byte_for_byte(painting, case, images, tmp_path):
    editing = painting.open_for(tmp_path / "w", case, images)
    for seed in range(3):
        painting.random_stroke(editing.session, np.random.default_rng(seed))
    saved = save_editing(editing)
    editing.close()
    done = replay_journal(painting.journal_of(tmp_path / "w"), tmp_path / "x.nii.gz")
    assert done.sha256 == saved.sha256


def test_with_the_images_every_stroke_is_painted_anew_and_agrees(painted, case, tmp_path):
    journal, labels = painted
    done = replay_journal(journal, tmp_path / "again.nii.gz", case)
    assert done.n_repeated == done.n_strokes > 5
    assert done.notes == ()
    assert (read_labels(done.path).dense() == labels).all()


def test_strokes_that_are_painted_anew_ask_for_the_compiled_cut(
    painted, case, tmp_path, monkeypatch
):
    compiled._begin_once.cache_clear()
    monkeypatch.setattr(compiled, "find_spec", lambda _: None)
    journal, _ = painted
    try:
        replay_journal(journal, tmp_path / "recorded.nii.gz")
        assert not compiled._begin_once.cache_info().currsize
        replay_journal(journal, tmp_path / "anew.nii.gz", case)
        assert compiled._begin_once.cache_info().currsize
    finally:
        compiled._begin_once.cache_clear()


def test_on_other_images_the_mask_stays_and_the_strokes_that_differ_are_named(
    painted, case, tmp_path
):
    journal, labels = painted
    signal = case.signal.copy()
    signal[:, :, :, 8:] = signal[:, :, :, :8]
    other = Case("A", case.grid, signal, case.phases)
    done = replay_journal(journal, tmp_path / "again.nii.gz", other)
    assert (read_labels(done.path).dense() == labels).all()
    assert done.n_repeated < done.n_strokes
    assert "the images differ" in done.notes[0]
    assert "these strokes differ from the record if they are painted again: step " in done.notes[1]


def test_locked_labels_are_locked_in_the_repetition_too(painting, case, images, tmp_path):
    editing = painting.open_for(tmp_path / "w", case, images)
    session = editing.session
    session.labels[2:4, 4:12, 4:12] = 3
    session.notice_external()
    session.locked = frozenset({3})
    session.press((3.0, 8.0, 8.0), Brush(tool=Tool.SPHERE, radius_mm=6.0))
    assert session.release().edit.parameters == (("locked", "3"),)
    editing.close()
    journal = painting.journal_of(tmp_path / "w")
    done = replay_journal(journal, tmp_path / "x.nii.gz", case)
    assert (done.n_repeated, done.n_strokes) == (1, 1)


def test_a_run_that_goes_on_from_another_mask_than_was_left_ends_the_replay(painted):
    journal, labels = painted
    first = read_journal(journal).records[0].record
    other = replace(first, continues=True, labels_crc=first.labels_crc ^ 1)
    again = Journal(journal)
    again.begin(other)
    again.write(Turn.UNDO)
    again.close()
    play = play_journal(JournalPlay(journal))
    assert "differs from the previous mask" in play.damages[0].reason
    assert (play.session.labels == labels).all()


def test_the_journal_of_another_case_is_refused(painted, painting, tmp_path):
    journal, _ = painted
    assert case_of_journal(journal) == "A"
    with pytest.raises(
        CaseError, match="expected the journal of case B, but got the journal of case A"
    ):
        replay_journal(journal, tmp_path / "x.nii.gz", painting.make_case("B"))
    assert not (tmp_path / "x.nii.gz").exists()


def test_a_replay_never_overwrites(painted, tmp_path):
    journal, _ = painted
    (tmp_path / "x.nii.gz").write_text("mine")
    with pytest.raises(SaveConflictError):
        replay_journal(journal, tmp_path / "x.nii.gz")
    (tmp_path / "y.json").write_text("mine")
    with pytest.raises(SaveConflictError):
        replay_journal(journal, tmp_path / "y.nii.gz")
    assert not (tmp_path / "y.nii.gz").exists()


def test_a_damaged_journal_replays_up_to_the_damage_and_says_so(painted, tmp_path):
    journal, _ = painted
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[4] = lines[4].replace(b'"n":', b'"m":', 1)
    journal.write_bytes(b"".join(lines))
    done = replay_journal(journal, tmp_path / "x.nii.gz")
    assert done.summary.strokes == 3
    assert not done.is_whole
    assert done.notes[0].startswith("the journal is damaged at record 5 (byte ")
    assert f"{len(lines) - 4} later records are not included" in done.notes[0]


@pytest.mark.parametrize("content", [b"", b"no journal\n"])
def test_what_is_no_journal_is_refused(tmp_path, content):
    path = tmp_path / "A.journal"
    path.write_bytes(content)
    with pytest.raises(FormatError, match="no complete record"):
        replay_journal(path, tmp_path / "x.nii.gz")
    with pytest.raises(FormatError):
        case_of_journal(path)
    with pytest.raises(FormatError):
        replay_journal(tmp_path / "absent.journal", tmp_path / "x.nii.gz")


def test_each_sitting_goes_on_with_the_one_before_and_holds_the_mask_that_it_began_with(
    painted, painting, case, images, tmp_path
):
    journal, labels = painted
    editing = painting.open_for(tmp_path, case, images)
    save_editing(editing)
    editing.close()
    editing = painting.open_for(tmp_path, case, images)
    painting.random_stroke(editing.session, np.random.default_rng(1))
    editing.close()
    play = play_journal(JournalPlay(journal))
    goes_on = [sitting.opened.continues for sitting in play.sittings]
    assert goes_on == [False, True, True]
    assert isinstance(play.sittings[2].opened, Opened)
    assert (play.sittings[2].opened.base.dense() == labels).all()


def test_a_stroke_settled_by_other_rules_is_told_and_not_counted_as_different(
    painting, case, images, tmp_path, monkeypatch
):
    editing = painting.open_for(tmp_path, case, images)
    for place in ((3.0, 8.0, 8.0), (3.0, 9.0, 9.0)):
        editing.session.press(place, Brush(tool=Tool.EVIDENCE, radius_mm=3.0))
        editing.session.release()
    editing.close()
    journal = painting.journal_of(tmp_path)
    done = replay_journal(journal, tmp_path / "a.nii.gz", case)
    assert (done.n_repeated, done.n_strokes, done.notes) == (2, 2, ())
    monkeypatch.setattr("napari_mamamia.services.refine.replay.VERSION", 99)
    done = replay_journal(journal, tmp_path / "b.nii.gz", case)
    assert (done.n_repeated, done.n_strokes) == (0, 0)
    assert "2 strokes were made by a version of this program with different rules" in done.notes[0]


def run_with_threads(n, *words):
    """Run replaying.py in a process of its own with n threads; return its lines."""
    program = Path(__file__).with_name("replaying.py")
    names = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA")
    threads = {f"{name}_NUM_THREADS": str(n) for name in names}
    done = subprocess.run(
        [sys.executable, program, *map(str, words)],
        env={**os.environ, **threads},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("size", "first", "stop"),
    [
        ("small", 0, 3),
        pytest.param("large", 0, 4, marks=pytest.mark.night),
        *(pytest.param("small", k, k + 100, marks=pytest.mark.night) for k in range(0, 400, 100)),
        pytest.param("large", 400, 500, marks=pytest.mark.night),
    ],
)
def test_500_random_sessions_repeat_to_the_bit_with_one_and_with_four_threads(
    tmp_path, size, first, stop
):
    painted = run_with_threads(1, tmp_path, "paint", size, first, stop)
    assert len(painted) >= 0.9 * (stop - first)
    assert all(line.endswith(" same") for line in painted)
    for n in (1, 4):
        assert run_with_threads(n, tmp_path, "play", size, first, stop) == painted


def test_a_stroke_of_the_learned_brush_is_replayed_from_the_record_without_its_weights(
    painting, case, images, tmp_path, monkeypatch
):
    editing = painting.open_for(tmp_path / "w", case, images)
    middle = tuple((n - 1) / 2 for n in painting.SHAPE)
    for tool in (Tool.LEARNED, Tool.EVIDENCE):
        editing.session.press(middle, Brush(tool=tool, radius_mm=4.0))
        assert editing.session.release() is not None
        middle = tuple(n + 1 for n in middle)
    labels = editing.session.labels.copy()
    editing.close()

    def refuse():
        raise AssertionError("the network was asked for")

    monkeypatch.setattr(stroke, "load_network", refuse)
    journal = painting.journal_of(tmp_path / "w")
    replay_journal(journal, tmp_path / "recorded.nii.gz")
    done = replay_journal(journal, tmp_path / "again.nii.gz", case)
    assert (read_labels(done.path).dense() == labels).all()
    assert (done.n_strokes, done.n_repeated, len(done.notes)) == (1, 1, 1)
