"""A desk in a study: what the window does there, each step whole."""

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.review_study import made, study
from typer.testing import CliRunner

from napari_mamamia.cli.app import app
from napari_mamamia.core.blinding import ALL_HIDDEN
from napari_mamamia.core.case import Mask
from napari_mamamia.core.errors import CaseError, FormatError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.provenance import Maker, Provenance
from napari_mamamia.features.review.core.review import FilePrint, Meaning, ReadingMode, StudyCase
from napari_mamamia.features.review.io import share, store, study_file
from napari_mamamia.features.review.io.keys import WrongPassphraseError
from napari_mamamia.features.review.io.store import FolderStore, stat_study
from napari_mamamia.features.review.io.study_file import ClientFiles, Draft, write_study
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.services.check_study import verify_study
from napari_mamamia.features.review.services.client import StudyClient, describe_age
from napari_mamamia.features.review.services.judging import load_first_snapshot
from napari_mamamia.features.review.services.session import ReviewSession
from napari_mamamia.io.data_set.volumes import write_mask

GRID = Grid((2, 4, 5), np.diag([-1.0, 1.0, 2.0, 1.0]))
A, B = (slice(0, 1), slice(1, 3), slice(1, 3)), (slice(1, 2), slice(1, 3), slice(1, 3))


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def folder(tmp_path):
    return made(tmp_path, blinding=ALL_HIDDEN)


def saved(tmp_path, place=A, name="mask"):
    """Write a mask as the window saves it; return its file and SHA-256."""
    mask = np.zeros(GRID.shape, bool)
    mask[place] = True
    path = tmp_path / f"{name}.nii.gz"
    path.unlink(missing_ok=True)
    write_mask(Mask(GRID, mask, Provenance("A", Maker.READER, "ana")), path)
    return path, hashlib.sha256(path.read_bytes()).hexdigest()


def list_acts(client, act):
    """Return the events of an act, each once: one's own are here and on the share."""
    chains = client.store.read().chains.values()
    return list(
        {one.hash: one for chain in chains for one in chain if one.body["act"] == act}.values()
    )


def test_the_next_case_is_claimed_begun_and_goes_to_a_workspace_of_its_round(folder, home):
    client = StudyClient(folder, "Ana", home)
    taken = client.take_next()
    assert (taken.case_id, taken.round, taken.state, taken.held) == ("A", 1, CaseState.IN_WORK, "")
    assert taken.blinding == ALL_HIDDEN
    assert taken.workspace == home / "s1" / "work" / "ana" / "1-0"
    look = client.look()
    assert (look.n_tasks, look.n_read, look.n_left) == (2, 0, 2)
    assert [one.case_id for one in look.rows] == ["A"]  # what was not begun is not named


@pytest.fixture
def events_away(monkeypatch):
    """Let no events of a study be read until this is called."""

    def fail(_store):
        raise OSError(errno.ESTALE, "Stale file handle")

    with monkeypatch.context() as share:
        share.setattr(FolderStore, "_require_share", fail)
        yield share.undo


def test_of_a_study_that_was_never_seen_nothing_is_said_of_cases_and_none_is_taken(
    folder, home, events_away
):
    """Each case stood as unread, whoever had read or decided it."""
    client = StudyClient(folder, "Lea Lead", home)
    look = client.look()
    assert not look.is_seen
    assert (look.n_ready, look.n_read, look.states) == (0, 0, None)
    assert (look.rows, look.disputes, look.readers) == ((), (), ())
    acts = {
        "open the next": lambda: StudyClient(folder, "Ana", home).take_next(),
        "judge": lambda: client.session.claim_case("c0001"),
        "reject": lambda: client.session.reject("c0001", "blurred"),
    }
    for act in acts.values():
        with pytest.raises(FormatError, match="a readable study, but some of it cannot"):
            act()
    events_away()
    look = client.look()
    assert look.is_seen
    assert look.states == {"new": 2}
    assert StudyClient(folder, "Ana", home).take_next().case_id == "A"


def test_a_repeat_and_another_round_have_other_workspaces():
    files = ClientFiles(Path("home"), "s1")
    folders = {files.work_folder("ana", *one) for one in ((1, "0"), (1, "1"), (2, "0"))}
    assert len({*folders, files.work_folder("ana", 1, "judge")}) == 4


def test_what_is_handed_in_is_in_the_store_with_answers_seconds_and_what_was_hidden(
    folder, home, tmp_path
):
    client = StudyClient(folder, "Ana", home)
    taken = client.take_next()
    path, sha256 = saved(tmp_path)
    client.hand_in(taken, (path, sha256), Draft({"assessment": "4"}, 75))
    (reading, _other) = client.session.refresh().case("c0001").readings
    assert (reading.state, reading.mask, reading.active_s) == (CaseState.READ, sha256, 75)
    assert json.loads(reading.answers) == {"assessment": "4"}
    (event,) = list_acts(client, "read")
    assert event.body["hidden"] == "reference, model, other readers, numbers, clinical data"
    assert client.take_next().case_id == "B"
    assert not verify_study(client.store).problems


def test_a_mask_that_is_not_what_was_saved_is_not_handed_in(folder, home, tmp_path):
    client = StudyClient(folder, "Ana", home)
    taken = client.take_next()
    path, sha256 = saved(tmp_path)
    path.write_bytes(b"another")
    with pytest.raises(FormatError, match="changed"):
        client.hand_in(taken, (path, sha256), Draft())
    assert client.look().n_read == 0


def test_the_last_reading_is_compared_behind_and_a_disagreement_is_the_judges(
    folder, home, tmp_path
):
    for who, place in (("Ana", A), ("Ben", B)):
        client = StudyClient(folder, who, home / who)
        taken = client.take_next()
        client.hand_in(taken, saved(tmp_path, place, who), Draft())()
        client.close()
    judge = StudyClient(folder, "Jo Judge", home / "jo")
    (row,) = judge.look().disputes
    assert row.case_id == "A"
    assert "Dice 0.000 below 0.7" in row.because
    assert StudyClient(folder, "Ana", home / "Ana").look().disputes == ()


def test_two_computers_of_one_reader_get_two_cases_and_then_are_told_who_has_them(folder, home):
    first, second = StudyClient(folder, "Ana", home), StudyClient(folder, "Ana", home)
    second.store._host = "H2"
    assert first.take_next().case_id == "A"
    assert second.take_next().case_id == "B"
    third = StudyClient(folder, "Ana", home)
    third.store._host = "H3"
    held = third.take_next()
    assert held.held.startswith("you, on another computer (")
    assert third.take(held.task).held


KILLED = """
import os, sys
from pathlib import Path
from napari_mamamia.features.review.services.client import StudyClient
desk = StudyClient(Path(sys.argv[1]), "Ana", Path(sys.argv[2]))
taken = desk.take_next()
if sys.argv[3:]:
    # a kill between the mask and its event
    desk.store.put_mask(b"a mask that without an event")
print(taken.case_id, flush=True)
os.kill(os.getpid(), 9)
"""


def test_what_a_killed_window_held_is_free_at_once_on_its_computer(folder, home):
    before = subprocess.run(
        [sys.executable, "-c", KILLED, folder, home, "mask"], capture_output=True, text=True
    )
    assert before.stdout == "A\n", before.stderr
    client = StudyClient(folder, "Ana", home)
    assert client.take_next().case_id == "A"
    check = verify_study(client.store)
    assert not check.problems
    assert any("without an event" in one.text for one in check.notes)


def test_answers_that_are_not_handed_in_are_there_again(folder, home):
    client = StudyClient(folder, "Ana", home)
    taken = client.take_next()
    draft = Draft({"margin": ["spiculated"]}, 41)
    client.keep_draft(taken, draft)
    client.close()
    assert StudyClient(folder, "Ana", home).take_next().draft == draft


def test_a_draft_that_comes_late_is_not_laid_over_a_newer_one(folder, home, monkeypatch):
    """Two are on their way to the disk where it is slow: the older one went on and came last."""
    client = StudyClient(folder, "Ana", home)
    taken = client.take_next()
    older, newer, newest = (Draft({"note": text}, 3) for text in ("", "small", "small, round"))
    write, begun, late = study_file.write_json, threading.Event(), threading.Event()

    def write_slowly(content, *words, **more):
        if not begun.is_set():
            begun.set()
            late.wait(0.2)
        write(content, *words, **more)

    monkeypatch.setattr(study_file, "write_json", write_slowly)
    thread = threading.Thread(target=client.keep_draft, args=(taken, older, 4))
    thread.start()
    assert begun.wait(20)
    client.keep_draft(taken, newer, 5)
    late.set()
    thread.join()
    client.keep_draft(taken, older, 4)
    assert client.take(taken.task).draft == newer
    client.keep_draft(taken, newest, 6)
    assert client.take(taken.task).draft == newest


@pytest.mark.parametrize("content", ["", "[]", '{"answers": 3, "active_s": -1}', '{"a":' * 9])
def test_a_damaged_draft_is_none(folder, home, content):
    client = StudyClient(folder, "Ana", home)
    taken = client.take_next()
    client.keep_draft(taken, Draft({"a": "b"}, 3))
    (path,) = (home / "s1" / "drafts").rglob("*.json")
    path.write_text(content)
    assert client.take(taken.task).draft == Draft()


def test_a_case_is_put_back_and_comes_again(folder, home):
    client = StudyClient(folder, "Ana", home)
    taken = client.take_next()
    client.put_back(taken)
    assert client.look().rows == ()
    assert StudyClient(folder, "Ana", home).take_next().case_id == "A"


def test_reopening_asks_a_reason_and_is_an_event(folder, home, tmp_path):
    client = StudyClient(folder, "Ana", home)
    taken = client.take_next()
    client.hand_in(taken, saved(tmp_path), Draft())
    assert client.take(taken.task).state is CaseState.READ
    with pytest.raises(CaseError, match="reason"):
        client.read_again(taken.task, "  ")
    again = client.read_again(taken.task, "missed the satellite")
    assert again.state is CaseState.IN_WORK
    assert len(list_acts(client, "read-again")) == 1


def test_what_was_handed_in_on_another_computer_is_there_to_look_at(folder, home, tmp_path):
    client = StudyClient(folder, "Ana", home)
    taken = client.take_next()
    path, sha256 = saved(tmp_path)
    client.hand_in(taken, (path, sha256), Draft({"assessment": "4"}, 33))
    other = StudyClient(folder, "Ana", tmp_path / "other")
    elsewhere = other.take(taken.task)
    assert elsewhere.draft == Draft({"assessment": "4"}, 33)
    assert other.read_again(taken.task, "one more look").draft == elsewhere.draft
    brought = elsewhere.workspace / "refined" / "ana" / "A.nii.gz"
    assert brought.read_bytes() == path.read_bytes()
    told = json.loads(brought.with_name("A.json").read_text())
    assert "reference" in str(told["parameters"])


def test_a_second_look_shows_the_first_and_its_agreement_is_the_acceptance(tmp_path, home):
    folder = made(tmp_path, mode=ReadingMode.SECOND_LOOK, blinding=ALL_HIDDEN)
    first = StudyClient(folder, "Ana", home / "ana")
    taken = first.take_next()
    assert load_first_snapshot(first, taken.task) is None
    waits = StudyClient(folder, "Ben", home / "ben")
    assert waits.take_next() is None  # not before the first look
    assert (waits.look().n_left, waits.look().n_ready) == (2, 0)
    path, sha256 = saved(tmp_path)
    first.hand_in(taken, (path, sha256), Draft())()
    second = StudyClient(folder, "Ben", home / "ben")
    again = second.take_next()
    shown = load_first_snapshot(second, again.task)
    assert (shown.name, shown.reading.mask) == ("Ana", sha256)
    assert int((shown.labels.crop > 0).sum()) == 4  # 1 x 2 x 2 voxels
    second.hand_in(again, saved(tmp_path, name="second"), Draft())()
    view = second.session.refresh().case("c0001")
    assert (view.state, view.decision.reader) == (CaseState.ACCEPTED, "ben")


def test_a_second_look_that_differs_is_a_judges(tmp_path, home):
    folder = made(tmp_path, mode=ReadingMode.SECOND_LOOK)
    for who, place in (("Ana", A), ("Ben", B)):
        client = StudyClient(folder, who, home / who)
        client.hand_in(client.take_next(), saved(tmp_path, place, who), Draft())()
    assert client.session.refresh().case("c0001").state is CaseState.DISAGREES


def test_nothing_is_handed_in_twice(folder, home, tmp_path):
    client = StudyClient(folder, "Ana", home)
    taken = client.take_next()
    client.hand_in(taken, saved(tmp_path), Draft())
    with pytest.raises(CaseError, match="already"):
        client.hand_in(taken, None, Draft())


def test_while_the_share_is_away_work_goes_on_and_is_sent_later(folder, home, tmp_path):
    client = StudyClient(folder, "Ana", home)
    taken = client.take_next()
    away = folder.with_name("away")
    folder.rename(away)
    client.hand_in(taken, saved(tmp_path), Draft())
    look = client.look()
    assert look.n_unsent == 1
    assert look.trouble
    assert (look.n_read, look.n_left) == (1, 1)
    away.rename(folder)
    assert client.look().n_unsent == 0
    assert not verify_study(client.store).problems


def test_a_share_that_takes_nothing_is_no_loss(folder, home, tmp_path, monkeypatch):
    client = StudyClient(folder, "Ana", home)

    def refuse(*_given, **_more):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(store, "take_claim", refuse)
    monkeypatch.setattr(store, "_send_lines", refuse)
    taken = client.take_next()
    client.hand_in(taken, saved(tmp_path), Draft())
    look = client.look()
    assert look.n_unsent == 4  # enter, claim, start, read
    assert look.n_read == 1


def test_a_copy_of_the_study_that_lacks_what_was_read_is_told(folder, home, tmp_path):
    copy = tmp_path / "COPY"
    shutil.copytree(folder, copy)
    client = StudyClient(folder, "Ana", home)
    client.hand_in(client.take_next(), saved(tmp_path), Draft())
    client.close()
    (problem,) = StudyClient(copy, "Ana", home).look().problems
    assert "which this computer had read, is missing" in problem


def test_a_study_file_that_was_changed_meanwhile_takes_nothing_more(folder, home, tmp_path):
    client = StudyClient(folder, "Ana", home)
    taken = client.take_next()
    path = folder / "study.json"
    path.write_text(path.read_text().replace('"Ben"', '"Bob"'))
    assert any("study.json" in one for one in client.look().problems)
    with pytest.raises(CaseError, match=r"study\.json was changed"):
        client.hand_in(taken, saved(tmp_path), Draft())
    with pytest.raises(CaseError, match=r"study\.json was changed"):
        client.take_next()


# ------------------------------------------------------- a share that is away at the start


@pytest.fixture
def away(folder, home, tmp_path):
    """A study that Ana began to read on this computer, and whose share is away now."""
    client = StudyClient(folder, "Ana", home)
    client.hand_in(client.take_next(), saved(tmp_path), Draft())
    client.look()
    client.close()
    folder.rename(tmp_path / "AWAY")
    return tmp_path / "AWAY"


def test_work_begins_while_the_share_is_away_and_is_sent_when_it_is_back(
    folder, home, tmp_path, away
):
    client = StudyClient(folder, "Ana", home)
    look = client.look()
    assert (look.n_read, look.n_left) == (1, 1), "what was read before counts as read"
    assert "the local copy of the study" in look.trouble
    assert not look.problems
    taken = client.take_next()
    assert taken.case_id == "B"
    client.hand_in(taken, saved(tmp_path, B), Draft())
    assert not folder.exists(), "nothing is made where the share was"
    client.close()
    with pytest.raises(FormatError, match="some events of the study cannot be read"):
        verify_study(FolderStore(folder, home))
    # Nobody is at it while it comes back; the next start sends.
    away.rename(folder)
    after = StudyClient(folder, "Ana", home).look()
    assert (after.n_read, after.n_unsent, after.trouble, after.problems) == (2, 0, "", ())
    check = verify_study(FolderStore(folder, tmp_path / "other"))
    assert (check.problems, check.n_masks) == ((), 2)


def test_a_share_that_comes_back_under_the_hands_is_read_anew(folder, home, tmp_path, away):
    client = StudyClient(folder, "Ana", home)
    client.hand_in(client.take_next(), saved(tmp_path, B), Draft())
    away.rename(folder)
    look = client.look()
    assert (look.n_read, look.n_unsent, look.trouble, look.problems) == (2, 0, "", ())
    assert client.store.read_frozen(lambda place, _study: place) == folder


def test_a_byte_that_was_changed_while_it_was_away_is_found_though_the_copy_had_it_right(
    folder, home, tmp_path, away
):
    client = StudyClient(folder, "Ana", home)
    (path,) = away.rglob("*.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"claim"', b'"cloim"'))
    away.rename(folder)
    assert any("checksum" in one for one in client.look().problems)
    assert any("checksum" in one.text for one in verify_study(client.store).problems)


def test_what_others_did_meanwhile_is_merged_and_said(folder, home, tmp_path, away):
    client = StudyClient(folder, "Ana", home)
    # The others' way to the share works.
    lead = ReviewSession(FolderStore(away, tmp_path / "lea"), "lea", tmp_path / "lea")
    lead.reject("c0002", "it is the wrong breast")
    lead.close()
    client.hand_in(client.take_next(), saved(tmp_path, B), Draft())
    away.rename(folder)
    look = client.look()
    assert (
        "your reading of B is not included: the case already has the state rejected"
        in look.problems[0]
    )
    assert look.n_unsent == 0
    cases = {one.body["case"] for one in list_acts(client, "read")}
    assert "c0002" in cases, "it is kept"


def test_two_computers_of_a_reader_of_which_one_was_away_are_a_conflict_and_both_kept(
    folder, home, tmp_path, away
):
    client = StudyClient(folder, "Ana", home)
    client.hand_in(client.take_next(), saved(tmp_path, B), Draft())
    shutil.copytree(away, folder)
    other = StudyClient(folder, "Ana", tmp_path / "other")
    other.store._host = "H2"
    other.hand_in(other.take_next(), saved(tmp_path, A), Draft())
    other.close()
    client.look()
    (conflict,) = client.session.state.conflicts
    assert "were not synchronised" in conflict[1]
    assert len(list_acts(client, "read")) == 3
    assert client.store.unsent == 0


def test_another_study_that_comes_back_is_sent_nothing(folder, home, tmp_path, away):
    client = StudyClient(folder, "Ana", home)
    taken = client.take_next()
    shutil.copytree(away, folder)
    path = folder / "study.json"
    path.write_text(path.read_text().replace('"Ben"', '"Bob"'))
    before = {one: one.read_bytes() for one in folder.rglob("*") if one.is_file()}
    look = client.look()
    assert "was changed after this program opened it" in look.trouble
    assert any("study.json" in one for one in look.problems)
    with pytest.raises(CaseError, match=r"study\.json was changed"):
        client.hand_in(taken, saved(tmp_path, B), Draft())
    client.close()
    assert {one: one.read_bytes() for one in folder.rglob("*") if one.is_file()} == before
    assert client.store.unsent > 0, "it waits for the right one"


def test_without_a_copy_and_with_another_study_s_copy_nothing_is_opened(folder, home, away):
    with pytest.raises(FormatError, match="cannot be read"):
        StudyClient(folder, "Ana", home / "nobody")
    with pytest.raises(FormatError, match="cannot be read"):
        StudyClient(folder.with_name("ELSE"), "Ana", home)
    copy = home / "s1" / "copy" / "study.json"
    copy.write_text(copy.read_text().replace('"Ben"', '"Bob"'))
    with pytest.raises(FormatError, match="cannot be read"):
        StudyClient(folder, "Ana", home)


def test_an_empty_folder_in_the_place_of_the_share_is_a_share_that_is_away(
    folder, home, tmp_path, away
):
    folder.mkdir()
    client = StudyClient(folder, "Ana", home)
    client.hand_in(client.take_next(), saved(tmp_path, B), Draft())
    client.close()
    assert list(folder.iterdir()) == []


def test_a_share_that_hangs_counts_as_away_and_is_not_asked_twice(
    folder, home, tmp_path, monkeypatch
):
    client = StudyClient(folder, "Ana", home)
    client.look()
    client.close()
    ends, n_asked = threading.Event(), []

    def hang(place):
        n_asked.append(place)
        ends.wait(30)
        return stat_study(place)

    monkeypatch.setattr(store, "stat_study", hang)
    monkeypatch.setattr(share, "ANSWER_S", 0.02)
    try:
        client = StudyClient(folder, "Ana", home)
        assert "the network share does not respond" in client.look().trouble
        client.hand_in(client.take_next(), saved(tmp_path), Draft())
        assert len(n_asked) == 1
    finally:
        ends.set()
    monkeypatch.undo()
    for one in threading.enumerate():
        if one.name.startswith("share"):
            one.join()
    assert client.look().n_unsent == 0
    assert not verify_study(client.store).problems


def test_a_folder_for_results_that_hangs_is_said_to_and_the_study_goes_on(
    folder, home, tmp_path, monkeypatch
):
    ends, place, resolve = threading.Event(), tmp_path / "gone" / "out", Path.resolve

    def hang(path, strict=False):
        if path == place:
            ends.wait(30)
        return resolve(path, strict)

    monkeypatch.setattr(Path, "resolve", hang)
    monkeypatch.setattr(share, "ANSWER_S", 0.02)
    try:
        about = ["review", "status", str(folder), "--out", str(place)]
        result = CliRunner().invoke(app, about, env={"MAMAMIA_CONFIG_DIR": str(home)})
        assert result.exit_code == 1, result.output
        said = f"expected access to {place}, but the network share does not respond"
        assert said in str(result.exception)
        assert StudyClient(folder, "Ana", home).look().trouble == ""
    finally:
        ends.set()


def test_a_share_that_takes_nothing_at_the_start_is_read_and_work_is_kept(
    folder, home, tmp_path, away, monkeypatch
):
    away.rename(folder)

    def refuse(*_given, **_more):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    write = store.write_mask_once

    def refuse_in_share(path, content):
        return refuse() if folder in path.parents else write(path, content)

    with monkeypatch.context() as there:
        for name in ("take_claim", "renew_claim"):
            there.setattr(store, name, refuse)
        there.setattr(store, "_send_lines", refuse)
        there.setattr(store, "write_mask_once", refuse_in_share)
        there.setattr(store, "send_masks", refuse)
        client = StudyClient(folder, "Ana", home)
        client.hand_in(client.take_next(), saved(tmp_path, B), Draft())
        look = client.look()
        assert (look.n_read, look.n_unsent) == (2, 4)
        assert "Read-only" in look.trouble
        client.close()
    assert StudyClient(folder, "Ana", home).look().n_unsent == 0


# ----------------------------------------------------------- two windows of one reader

WINDOW = """
import sys
from pathlib import Path
from napari_mamamia.core.errors import CaseError
from napari_mamamia.features.review.io.study_file import Draft
from napari_mamamia.features.review.services.client import StudyClient
desk = StudyClient(Path(sys.argv[1]), "Ana", Path(sys.argv[2]))
taken = None
for line in sys.stdin:
    word = line.strip()
    try:
        if word == "take":
            taken = desk.take_next()
            print("has", taken.case_id, taken.held, flush=True)
        elif word == "keep":
            desk._kept_at = -1e9
            print("lost", *desk.look(is_active=True).lost, flush=True)
        elif word == "hand in":
            desk.hand_in(taken, None, Draft({"note": sys.argv[3]}))
            print("kept", flush=True)
        elif word == "put back":
            desk.put_back(taken)
            print("back", flush=True)
    except CaseError as error:
        print("refused", error, flush=True)
desk.close()
"""


class Window:
    """A window of Ana in a process of its own, told what to do."""

    def __init__(self, folder, home, name):
        command = [sys.executable, "-c", WINDOW, folder, home, name]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def tell(self, word):
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(30) == 0


def test_of_two_windows_of_one_reader_the_newer_has_the_case_and_the_older_loses_nothing(
    folder, home
):
    first, second = Window(folder, home, "first"), Window(folder, home, "second")
    assert first.tell("take") == "has A"
    assert second.tell("take") == "has A"
    assert first.tell("keep") == "lost A"
    assert first.tell("hand in").startswith("refused expected A to be open in this window")
    assert first.tell("put back") == "back"
    assert second.tell("hand in") == "kept", "what the older put back is still the newer's"
    assert first.tell("take") == "has B"
    assert first.tell("hand in") == "kept"
    first.end()
    second.end()
    client = StudyClient(folder, "Ana", home)
    answers = {one.body["case"]: one.body["answers"] for one in list_acts(client, "read")}
    assert answers == {"c0001": '{"note":"second"}', "c0002": '{"note":"first"}'}
    assert client.look().n_read == 2
    assert not verify_study(client.store).problems
    assert list_acts(client, "release") == []


def test_two_desks_of_one_person_in_one_program_are_two_windows_with_a_file_each(
    folder, home, tmp_path
):
    first, second = StudyClient(folder, "Ana", home), StudyClient(folder, "Ana", home)
    before = first.take_next()
    taken = second.take_next()
    assert (before.case_id, taken.case_id, taken.held) == ("A", "A", "")
    with pytest.raises(CaseError, match="you have opened it in another window"):
        first.hand_in(before, saved(tmp_path), Draft())
    second.hand_in(taken, saved(tmp_path), Draft({"note": "second"}))
    assert first.take_next().case_id == "B"
    first.close()
    second.close()
    files = sorted((folder / "events" / "ana").iterdir())
    assert len(files) == 2
    assert {json.loads(path.read_text().splitlines()[0])["seq"] for path in files} == {0}
    client = StudyClient(folder, "Ana", home)
    assert [one.body["answers"] for one in list_acts(client, "read")] == ['{"note":"second"}']
    assert not verify_study(client.store).problems


@pytest.fixture
def with_images(tmp_path):
    """A study whose case has an image."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "A.nii.gz").write_bytes(b"voxels")
    sha256 = hashlib.sha256(b"voxels").hexdigest()
    case = StudyCase("c0001", "A", (FilePrint("A.nii.gz", sha256),))
    about = replace(study(cases=("A",)), cases=(case,), data_set=str(data))
    write_study(tmp_path / "STUDY", about)
    return tmp_path / "STUDY", data


def test_images_that_were_changed_or_are_gone_are_not_opened(with_images, home):
    folder, data = with_images
    client = StudyClient(folder, "Ana", home)
    assert client.take_next().data_set == data
    (data / "A.nii.gz").write_bytes(b"voxelz")
    with pytest.raises(CaseError, match="was changed, so nothing was opened"):
        client.take_next()
    (data / "A.nii.gz").unlink()
    with pytest.raises(CaseError, match="choose their folder"):
        client.take_next()


def test_images_that_lie_elsewhere_here_are_found_once_it_was_said(with_images, home):
    folder, data = with_images
    moved = data.rename(data.with_name("moved"))
    client = StudyClient(folder, "Ana", home)
    with pytest.raises(CaseError, match="Images"):
        client.take_next()
    assert client.look().rows == ()  # nothing was claimed
    client.choose_images(moved)
    assert client.take_next().data_set == moved
    client.close()
    assert StudyClient(folder, "Ana", home).take_next().data_set == moved


def test_a_name_that_the_study_has_not_is_refused_with_those_it_has(folder, home):
    with pytest.raises(CaseError, match="in the study are Lea Lead, Jo Judge, Ana, Ben"):
        StudyClient(folder, "Anna", home)


def test_signing_makes_a_key_first_and_says_what_is_still_needed(folder, home, tmp_path):
    client = StudyClient(folder, "Ana", home)
    taken = client.take_next()
    client.hand_in(taken, saved(tmp_path), Draft())
    assert not client.has_key
    text = client.sign("c0001", Meaning.AUTHOR, "three small words")
    assert "countersigned" in text
    with pytest.raises(WrongPassphraseError, match="cannot be recovered"):
        client.sign("c0001", Meaning.AUTHOR, "three small worlds")


@pytest.mark.parametrize(
    ("seconds", "text"), [(-5, "0 s"), (59, "59 s"), (60, "1 min"), (3599, "59 min"), (7200, "2 h")]
)
def test_ages_are_told_in_the_unit_that_fits(seconds, text):
    assert describe_age(seconds) == text
