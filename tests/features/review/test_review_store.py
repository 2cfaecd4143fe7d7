"""A study's store: the folder and a double of the data base pass the same tests; then faults."""

import errno
import hashlib
import json
import multiprocessing
import os
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.review_study import MASK, SHA, TableStore, made, new_tables, opened, study

from napari_mamamia.core.errors import CaseError, FormatError, SaveConflictError, SaveError
from napari_mamamia.features.review.io import keys
from napari_mamamia.features.review.io import store as store_module
from napari_mamamia.features.review.io.store import list_changed_masks
from napari_mamamia.features.review.io.study_file import read_study, write_study
from napari_mamamia.features.review.rules.replay import replay_events
from napari_mamamia.features.review.rules.signatures import countersign_message, short_key
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.services.look import read_whole
from napari_mamamia.features.review.services.plan_study import StudyPeople, name_people
from napari_mamamia.io.files import append_file


@pytest.fixture(params=["folder", "tables"])
def place(request, tmp_path):
    """Give what opens a store in another session of another computer."""
    if request.param == "folder":
        folder = made(tmp_path)
        return lambda session="1", host="H": opened(folder, tmp_path / host, session, host)
    tables = new_tables()
    return lambda session="1", host="H": TableStore(tables, study(), session, host)


def bodies(store):
    """What is there, once each, in the order of each chain."""
    found = {}
    for chain in store.read().chains.values():
        for event in chain:
            found.setdefault(event.hash, event)
    return [(event.reader, event.seq, event.body["n"]) for event in found.values()]


def state_of(store):
    return replay_events(
        store.study,
        store.origin,
        store.read().chains.values(),
        store.read().masks.__contains__,
        keys.signature_fits,
    )


# --------------------------------------------------------------------------- both


def test_events_of_all_are_seen_by_all(place):
    one, other = place("1", "H"), place("2", "G")
    first = one.append("ana", {"n": 0})
    second = other.append("ben", {"n": 1}, [first.hash])
    assert (first.seq, first.prev) == (0, one.origin)
    assert second.seen == (first.hash,)
    assert sorted(bodies(one)) == sorted(bodies(other)) == [("ana", 0, 0), ("ben", 0, 1)]
    again = one.append("ana", {"n": 2})
    assert (again.seq, again.prev) == (1, first.hash)
    assert one.read().problems == ()


def test_a_mask_is_kept_once_under_its_hash(place):
    one = place()
    assert one.put_mask(MASK) == one.put_mask(MASK) == SHA
    assert one.read().masks == {SHA}
    assert place("2", "G").get_mask(SHA) == MASK
    with pytest.raises(FormatError):
        one.get_mask("f" * 64)


@pytest.mark.parametrize("code", [errno.ESTALE, errno.EIO, errno.EACCES])
def test_masks_that_cannot_be_listed_are_told_and_no_study_without_masks(
    tmp_path, monkeypatch, code
):
    """`mamamia review status` said that nobody had read, and ended with 0."""
    store = opened(made(tmp_path), tmp_path / "home")
    store.put_mask(MASK)
    assert read_whole(store).masks == {SHA}
    list_folder = os.listdir

    def refuse(folder):
        if Path(folder).name == "masks" and tmp_path / "home" not in Path(folder).parents:
            raise OSError(code, os.strerror(code))
        return list_folder(folder)

    monkeypatch.setattr(os, "listdir", refuse)
    assert os.strerror(code) in store.read().away
    assert store.read().masks == {SHA}, "who is at work goes on with what was known"
    with pytest.raises(FormatError, match="cannot be read"):
        read_whole(store)


def test_a_claim_is_one_s_until_it_is_let_go_of(place):
    one, other = place("1", "H"), place("2", "G")
    mine = one.claim("c0001.1.x", "ana")
    assert other.claim("c0001.1.x", "ben").reader == "ana"
    assert one.claim("c0001.1.x", "ana").number == mine.number == 1
    assert [claim.place for claim in other.list_claims()] == ["c0001.1.x"]
    one.release(mine)
    assert one.list_claims() == ()
    theirs = other.claim("c0001.1.x", "ben")
    assert (theirs.reader, theirs.number) == ("ben", 2)
    assert not one.renew(mine)
    assert other.renew(theirs)


def test_one_s_own_claim_of_before_a_crash_is_taken_over_on_the_same_computer_alone(place):
    before, after, laptop = place("1", "H"), place("2", "H"), place("1", "G")
    before.claim("c0001.1.ana", "ana")
    assert laptop.claim("c0001.1.ana", "ana").host == "H"
    again = after.claim("c0001.1.ana", "ana")
    assert (again.session, again.number) == ("2", 2)
    assert not before.renew(replace(again, session="1", number=1))


def test_a_full_disk_of_one_s_own_notes_nothing_and_the_next_event_follows(tmp_path, monkeypatch):
    store = opened(made(tmp_path), tmp_path / "home")
    store.append("ana", {"n": 1})

    write, n_bytes = os.write, []

    def full(handle, data):
        if n_bytes:
            raise OSError(errno.ENOSPC, "No space left on device")
        n_bytes.append(write(handle, data[:10]))
        return n_bytes[0]

    with monkeypatch.context() as there:
        there.setattr(append_file.os, "write", full)
        with pytest.raises(SaveError):
            store.append("ana", {"n": 2})
    assert [event[2] for event in bodies(store)] == [1]
    store.append("ana", {"n": 3})
    assert sorted(event[2] for event in bodies(store)) == [1, 3]
    assert store.read().problems == ()
    store.close()
    folder = Path(store.share.place)
    assert sorted(event[2] for event in bodies(opened(folder, tmp_path / "b"))) == [1, 3]


def test_no_path_below_a_study_is_long_whatever_people_and_computers_are_called(tmp_path):
    # Windows refuses paths of 260 characters and more: half of that is left to the folder's place
    (person,) = name_people(StudyPeople((200 * "Bartholomäus ",), ()))
    folder = made(tmp_path, cases=(200 * "x",), readers=(person.reader_id, "ben"))
    store = opened(folder, tmp_path / "home", "4194304-0123abcd", 40 * "h")
    mask = store.put_mask(MASK)
    store.claim(f"c0001.1.{person.reader_id}.0", person.reader_id)
    store.append(person.reader_id, {"act": "read", "case": "c0001", "mask": mask})
    paths = [path.relative_to(folder).as_posix() for path in folder.rglob("*")]
    assert len(paths) == 8
    assert max(map(len, paths)) < 130


def test_a_claim_without_a_sign_of_its_holder_is_taken_after_the_lease(place, tmp_path):
    one, other = place("1", "H"), place("2", "G")
    one.claim("c0001.1.x", "ana")
    if isinstance(one, TableStore):
        one.age("c0001.1.x", 1700)
    else:
        path = tmp_path / "STUDY" / "claims" / "c0001.1.x.1"
        os.utime(path, (time.time() - 1700,) * 2)
    assert other.claim("c0001.1.x", "ben").reader == "ana"
    if isinstance(one, TableStore):
        one.age("c0001.1.x", 1900)
    else:
        os.utime(path, (time.time() - 1900,) * 2)
    assert other.claim("c0001.1.x", "ben").reader == "ben"


def claim_many(folder, home, reader, go, answers):
    store = opened(folder, Path(home), session=reader, host=reader)
    go.wait()
    answers.put([store.claim(f"c{n:04d}.1.x", reader).reader for n in range(20)])


def test_two_computers_that_claim_in_the_same_second_never_both_get_a_case(tmp_path):
    folder = made(tmp_path)
    context = multiprocessing.get_context("fork")
    go, answers = context.Event(), context.Queue()
    people = [
        context.Process(target=claim_many, args=(folder, tmp_path / reader, reader, go, answers))
        for reader in ("ana", "ben", "cem")
    ]
    for one in people:
        one.start()
    go.set()
    told = [answers.get(timeout=60) for _ in people]
    for one in people:
        one.join()
    assert told[0] == told[1] == told[2]
    assert all(reader in ("ana", "ben", "cem") for reader in told[0])


# ------------------------------------------------------------------- faults: folder


def write_many(folder, home, reader, session, n, monkey):
    if monkey:
        append_file.claim = refuse_locks
    store = opened(folder, Path(home), session=session, host=f"host{session}")
    for number in range(n):
        store.append(reader, {"n": number})
    store.close()


def refuse_locks(*_):
    raise OSError(errno.ENOLCK, "no locks")


def test_two_writers_lose_nothing_where_files_cannot_be_locked(tmp_path):
    folder = made(tmp_path)
    context = multiprocessing.get_context("fork")
    people = [
        context.Process(target=write_many, args=(folder, tmp_path / s, "ana", s, 25, True))
        for s in ("1", "2")
    ]
    for one in people:
        one.start()
    for one in people:
        one.join()
    store = opened(folder, tmp_path / "me", "3")
    expected = sorted([("ana", n, n) for n in range(25)] * 2)
    assert sorted(bodies(store)) == expected
    assert store.read().problems == ()


def read_then_die(folder, home, at):
    store = opened(folder, Path(home))
    for act in ("claim", "start"):
        store.append("ana", {"act": act, "case": "c0001", "round": 1})
    if at == "before mask":
        os.kill(os.getpid(), signal.SIGKILL)
    sha = store.put_mask(MASK)
    if at == "before event":
        os.kill(os.getpid(), signal.SIGKILL)
    if at == "before sending":
        store.send = lambda: os.kill(os.getpid(), signal.SIGKILL)
    store.append("ana", {"act": "read", "case": "c0001", "round": 1, "mask": sha})


@pytest.mark.parametrize(
    ("at", "before", "after"),
    [
        ("before mask", CaseState.IN_WORK, CaseState.IN_WORK),
        ("before event", CaseState.IN_WORK, CaseState.IN_WORK),
        ("before sending", CaseState.IN_WORK, CaseState.SECOND_READING),
    ],
)
def test_a_kill_between_mask_and_event_harms_nothing(tmp_path, at, before, after):
    folder = made(tmp_path)
    reader = multiprocessing.get_context("fork").Process(
        target=read_then_die, args=(folder, tmp_path / "home", at)
    )
    reader.start()
    reader.join()
    assert reader.exitcode == -signal.SIGKILL
    other = opened(folder, tmp_path / "other", "2", "G")
    assert state_of(other).case("c0001").state is before
    again = opened(folder, tmp_path / "home", "2")
    again.send_left()
    state = state_of(other)
    assert state.case("c0001").state is after
    assert (state.refused, state.waiting, other.read().problems) == ((), (), ())
    assert again.unsent == 0
    assert list((tmp_path / "home" / "s1" / "events").rglob("*.jsonl")) == []
    # What was done here stays known here, in the copy.
    (copied,) = (tmp_path / "home" / "s1" / "copy" / "events").rglob("*.jsonl")
    assert copied.read_bytes() == (folder / "events" / "ana" / copied.name).read_bytes()


def test_an_event_whose_mask_was_lost_waits_and_is_told(tmp_path):
    folder = made(tmp_path)
    store = opened(folder, tmp_path / "home")
    for act, more in (("claim", {}), ("start", {}), ("read", {"mask": SHA})):
        store.append("ana", {"act": act, "case": "c0001", "round": 1, **more})
    (waiting,) = state_of(store).waiting
    assert (waiting.event.reader, waiting.why) == ("ana", "the mask is not in the store yet")


def test_a_torn_last_line_is_no_event_and_is_cut_by_its_own_writer(tmp_path):
    folder = made(tmp_path)
    store = opened(folder, tmp_path / "home")
    store.append("ana", {"n": 0})
    path = folder / "events" / "ana" / "H-1.jsonl"
    with path.open("ab") as stream:
        stream.write(b'{"hash":"12')
    other = opened(folder, tmp_path / "other", "2", "G")
    assert bodies(other) == [("ana", 0, 0)]
    store.append("ana", {"n": 1})
    assert (bodies(other), other.read().problems) == ([("ana", 0, 0), ("ana", 1, 1)], ())


def test_while_the_share_is_away_work_goes_on_and_is_sent_later(tmp_path):
    folder = made(tmp_path)
    store = opened(folder, tmp_path / "home")
    store.append("ana", {"act": "claim", "case": "c0001", "round": 1})
    folder.rename(tmp_path / "AWAY")
    store.append("ana", {"act": "start", "case": "c0001", "round": 1})
    sha = store.put_mask(MASK)
    store.append("ana", {"act": "read", "case": "c0001", "round": 1, "mask": sha})
    assert store.claim("c0002.1.ana", "ana").reader == "ana"
    assert store.unsent == 2
    assert "No such file" in store.trouble
    assert not folder.exists(), "nothing is made where the share was"
    state = state_of(store)
    assert state.case("c0001").state is CaseState.SECOND_READING
    (tmp_path / "AWAY").rename(folder)
    assert store.send() == 0
    other = opened(folder, tmp_path / "other", "2", "G")
    assert state_of(other).case("c0001").state is CaseState.SECOND_READING
    assert other.get_mask(sha) == MASK
    assert (other.read().problems, store.read().problems, store.trouble) == ((), (), "")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_full_or_read_only_share_keeps_all_on_this_computer(tmp_path, monkeypatch, code):
    folder = made(tmp_path)
    store = opened(folder, tmp_path / "home")
    write, link = os.write, Path.hardlink_to

    def refuse_write(handle, data):
        if str(Path(f"/proc/self/fd/{handle}").resolve()).startswith(str(folder)):
            raise OSError(code, os.strerror(code))
        return write(handle, data)

    def refuse_link(path, target):
        if str(path).startswith(str(folder)):
            raise OSError(code, os.strerror(code))
        return link(path, target)

    with monkeypatch.context() as there:
        there.setattr(os, "write", refuse_write)
        there.setattr(Path, "hardlink_to", refuse_link)
        sha = store.put_mask(MASK)
        store.append("ana", {"n": 0})
        assert store.claim("c0001.1.ana", "ana").reader == "ana"
        assert store.unsent == 1
        assert os.strerror(code) in store.trouble
        assert store.get_mask(sha) == MASK
    assert store.send() == 0
    assert bodies(opened(folder, tmp_path / "other", "2", "G")) == [("ana", 0, 0)]
    assert list(folder.rglob(".mamamia-*")) == []


def test_a_folder_that_only_lets_read_is_read(tmp_path):
    folder = made(tmp_path)
    opened(folder, tmp_path / "home").append("ana", {"n": 0})
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        store = opened(folder, tmp_path / "other", "2", "G")
        assert bodies(store) == [("ana", 0, 0)]
        assert store.list_claims() == ()
    finally:
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o755)


def test_a_study_that_was_copied_and_went_on_in_two_places_is_found(tmp_path):
    folder, home = made(tmp_path), tmp_path / "home"
    store = opened(folder, home)
    store.append("ana", {"n": 0})
    shutil.copytree(folder, tmp_path / "COPY")
    shutil.copytree(home, tmp_path / "home2")
    store.append("ana", {"n": 1})
    # the computer's image was copied too: the very same session goes on
    store.close()
    copy = opened(tmp_path / "COPY", tmp_path / "home2")
    copy.append("ana", {"n": 2})
    both = tmp_path / "COPY" / "events" / "ana" / "H-1 (copy).jsonl"
    shutil.copy(folder / "events" / "ana" / "H-1.jsonl", both)
    reading = opened(tmp_path / "COPY", tmp_path / "third", "3").read()
    assert [one.text for one in reading.problems] == [
        "event 1 exists in two versions, and both are used"
    ]
    # whoever knew the first one misses in the copy what was there
    both.unlink()
    knows = opened(tmp_path / "COPY", home, "9")
    (problem,) = knows.read().problems
    assert problem.text.startswith("event 1, which this computer had read, is missing (this")


def test_events_that_were_cut_off_are_missed_by_whoever_had_read_them(tmp_path):
    folder = made(tmp_path)
    store = opened(folder, tmp_path / "home")
    for n in range(3):
        store.append("ana", {"n": n})
    reader = opened(folder, tmp_path / "other", "2", "G")
    reader.close()
    path = folder / "events" / "ana" / "H-1.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    assert opened(folder, tmp_path / "new", "3").read().problems == ()
    (problem,) = opened(folder, tmp_path / "other", "4", "G").read().problems
    assert problem.text == "event 2, which this computer had read, is missing"


def test_a_wrong_clock_changes_no_state(tmp_path, monkeypatch):
    folder = made(tmp_path)
    store = opened(folder, tmp_path / "home")
    store.put_mask(MASK)
    for act, more in (("claim", {}), ("start", {}), ("read", {"mask": SHA})):
        store.append("ana", {"act": act, "case": "c0001", "round": 1, **more})
    path = folder / "events" / "ana" / "H-1.jsonl"
    day_off = path.read_bytes().replace(b"2026-", b"2025-")
    lines, prev = [], store.origin
    for line in day_off.splitlines():
        body = b'"prev":"%s"%s' % (prev.encode(), line[line.index(b',"seq"') :])
        prev = hashlib.sha256(body).hexdigest()
        lines.append(b'{"hash":"%s",%s\n' % (prev.encode(), body))
    path.write_bytes(b"".join(lines))
    other = opened(folder, tmp_path / "other", "2", "G")
    assert state_of(other).case("c0001").state is CaseState.SECOND_READING


def test_a_study_file_that_was_changed_fits_no_event(tmp_path):
    folder = made(tmp_path)
    store = opened(folder, tmp_path / "home")
    store.append("ana", {"n": 0})
    path = folder / "study.json"
    path.write_text(path.read_text().replace("Lea Lead", "Eve Lead"))
    store.read()
    problems = [one.text for one in opened(folder, tmp_path / "other", "2", "G").read().problems]
    assert problems == ["line 1: it does not follow the previous record"]
    assert "was changed after this program opened it" in store.read().problems[0].text
    assert store.append("ana", {"n": 1}).seq == 1


def test_a_mask_that_was_changed_is_refused_and_found(tmp_path):
    folder = made(tmp_path)
    store = opened(folder, tmp_path / "home")
    store.put_mask(MASK)
    path = folder / "masks" / f"{SHA}.nii.gz"
    path.write_bytes(MASK[:-1] + b"!")
    with pytest.raises(FormatError, match="the mask was changed"):
        store.get_mask(SHA)
    assert list_changed_masks(folder / "masks") == (f"{SHA}.nii.gz",)


def test_every_byte_of_an_event_file_that_is_changed_is_found(tmp_path):
    folder = made(tmp_path)
    store = opened(folder, tmp_path / "home")
    for n in range(2):
        store.append("ana", {"n": n, "text": "Größe"})
    path = folder / "events" / "ana" / "H-1.jsonl"
    whole = path.read_bytes()
    # the very last line's end is a line that is being written: known only to who read it
    for at in range(len(whole) - 1):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        reading = store_module.read_events(folder / "events", store.origin)
        assert reading.problems, at


IDS = ["Case", "case", "a/b\\c:d", "Müller", "Mu\u0308ller", "x" * 200, "..", "con", " "]


def test_whatever_letters_a_case_id_has_its_files_are_its_key_s(tmp_path):
    folder = made(tmp_path, cases=IDS)
    assert [case.case_id for case in read_study(folder)[0].cases] == IDS
    store = opened(folder, tmp_path / "home")
    for case in store.study.cases:
        store.claim(f"{case.key}.1.ana", "ana")
        store.append("ana", {"act": "claim", "case": case.key, "round": 1})
    assert {view.state for view in state_of(store).cases} == {CaseState.CLAIMED}
    assert len(store.list_claims()) == len(IDS)
    names = [path.name for path in folder.rglob("*") if path.is_file()]
    assert max(map(len, names)) < 100


def test_ids_and_readers_that_stand_twice_are_refused(tmp_path):
    with pytest.raises(CaseError, match="case id to be unique, but found 'A' 2 times"):
        study(cases=("A", "A"))
    with pytest.raises(CaseError, match="reader to be unique, but found 'ana' 2 times"):
        study(readers=("ana", "Ana"))


# ------------------------------------------------------------------------ study file


def test_a_study_is_written_once_and_read_back_the_same(tmp_path):
    of = study(repeat_share=0.05, seed=3)
    origin = write_study(tmp_path, of)
    assert read_study(tmp_path) == (of, origin)
    assert origin == hashlib.sha256((tmp_path / "study.json").read_bytes()).hexdigest()
    with pytest.raises(SaveConflictError):
        write_study(tmp_path, of)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"mamamia_study": 2}', '{"mamamia_study": 1}', "\ufeff{}"]
)
def test_what_is_no_study_is_said_so(tmp_path, text):
    (tmp_path / "study.json").write_text(text, "utf-8")
    with pytest.raises(FormatError):
        read_study(tmp_path)


def test_a_folder_without_a_study_is_said_so(tmp_path):
    with pytest.raises(FormatError, match="mamamia review init"):
        read_study(tmp_path / "none")


# ------------------------------------------------------------------------------ keys


def test_a_key_signs_with_its_passphrase_only(strong_keys, tmp_path):
    path = tmp_path / "key.json"
    public = keys.make_key(path, "correct horse")
    message = countersign_message("o", "ana", public, "l", "")
    signature = keys.sign_with(path, "correct horse", message)
    assert keys.signature_fits(public, signature, message)
    assert not keys.signature_fits(public, signature, message + b".")
    assert not keys.signature_fits("0" * 64, signature, message)
    assert not keys.signature_fits("nonsense", "x", message)
    assert keys.read_public_key(path) == public
    assert json.loads(path.read_text())["kdf"]["n"] == 32768  # OWASP, Password Storage Cheat Sheet
    assert len(short_key(public)) == 19
    assert path.stat().st_mode & 0o077 == 0
    assert "correct" not in path.read_text()
    # OWASP, Password Storage Cheat Sheet: n = 2^15, r = 8, p = 3; tests of services take 16
    cost = json.loads(path.read_text())["kdf"]
    assert (cost["n"], cost["r"], cost["p"]) == (2**15, 8, 3)
    with pytest.raises(keys.WrongPassphraseError, match="earlier signatures remain valid"):
        keys.sign_with(path, "Correct horse", message)
    with pytest.raises(SaveConflictError):
        keys.make_key(path, "another one")
    with pytest.raises(CaseError, match="cannot be recovered"):
        keys.make_key(tmp_path / "other", "short")


def test_a_key_file_that_was_changed_signs_nothing(tmp_path):
    path = tmp_path / "key.json"
    keys.make_key(path, "correct horse")
    content = json.loads(path.read_text())
    for change in (
        {"public": "00" * 32},
        {"cipher": {**content["cipher"], "secret": "00" * 48}},
        {"kdf": {**content["kdf"], "n": 2}},
        {"kdf": {}},
        {"mamamia_review_key": 9},
    ):
        path.write_text(json.dumps({**content, **change}))
        with pytest.raises((FormatError, CaseError)):
            keys.sign_with(path, "correct horse", b"x")


def test_the_example_of_rfc_8032_fits():
    """Section 7.1, test 1: the empty message."""
    key = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    signature = (
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e3970"
        "1cf9b46bd25bf5f0595bbe24655141438e7a100b"
    )
    assert keys.signature_fits(key, signature, b"")
