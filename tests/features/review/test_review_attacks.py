"""A study attacked byte by byte and by who knows how it is made: `verify` says so, or docs say not.

The attacker can write in the study's folder and holds no key, unless said.
"""

import json
import random
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from tests.review_study import study

from napari_mamamia.core.errors import CaseError, FormatError
from napari_mamamia.core.grid import Grid
from napari_mamamia.features.review.core.review import LeadKey, Meaning, Role, StudyReader
from napari_mamamia.features.review.io import keys
from napari_mamamia.features.review.io.store import FolderStore
from napari_mamamia.features.review.io.study_file import write_study
from napari_mamamia.features.review.services import signing
from napari_mamamia.features.review.services.check_study import find_status, verify_study
from napari_mamamia.features.review.services.client import StudyClient
from napari_mamamia.features.review.services.look import load_state
from napari_mamamia.features.review.services.session import ReviewSession
from napari_mamamia.io.data_set.volumes import write_volume
from napari_mamamia.io.files.append_file import canonical
from napari_mamamia.io.workspace import event_store
from napari_mamamia.io.workspace.event_store import list_past, merge_events

GRID = Grid.of_spacing((2, 6, 6), (2.0, 1.0, 1.0))
WORDS = "three small words"
PEOPLE = (
    StudyReader("lea", "Lea Lead", (Role.LEAD, Role.ADJUDICATOR)),
    StudyReader("jo", "Jo Lead", (Role.LEAD,)),
    StudyReader("ana", "Ana"),
    StudyReader("ben", "Ben"),
)


@pytest.fixture(scope="module", autouse=True)
def cheap_keys():
    """What stretches a passphrase is slow on purpose; tests/io holds it to its strength."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys, "_COST", 1 << 4)
        yield


def at_work(folder, home, who, session="1"):
    store = FolderStore(folder, home / who, host=who, session=session)
    one = ReviewSession(store, who, home / who)
    if one.needs_proof and one.key_file.exists():
        one.prove(WORDS)
    return one


def make_study(folder, home, *, binds=True, name="s1"):
    """A study in which two have read and signed, a lead accepted, and both leads have keys."""
    bound = tuple(LeadKey(who, keys.make_lead_key(home / who, WORDS)) for who in ("lea", "jo"))
    about = {"readers": PEOPLE, "lead_keys": bound if binds else (), "study_id": name}
    write_study(folder, replace(study(cases=("A",)), **about))
    people = {one.reader_id: at_work(folder, home, one.reader_id) for one in PEOPLE}
    lea = people["lea"]
    if not binds:
        lea.make_key(WORDS)
    array = np.zeros(GRID.shape, np.uint8)
    array[:, 1:4, 1:4] = 1
    path = home / "mask.nii.gz"
    if not path.exists():
        write_volume(array, GRID, path)
    for who in ("ana", "ben"):
        one = people[who]
        task = one.next_task()
        one.claim(task)
        one.start(task)
        one.finish(task, path.read_bytes(), {"bpe": "mild"})
        signing.countersign(lea, who, one.make_key(WORDS), WORDS)
        one.sign("c0001", Meaning.AUTHOR, WORDS)
    lea.refresh()
    lea.accept("c0001")
    lea.sign("c0001", Meaning.APPROVER, WORDS)
    # after the last signature, and seen by nobody
    people["ben"].remark("c0001", "the coil was off")
    for one in people.values():
        one.close()
    return folder


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """The folder of such a study, and the folder of its people's computers."""
    home = tmp_path_factory.mktemp("people")
    return make_study(tmp_path_factory.mktemp("share") / "STUDY", home), home


@pytest.fixture
def share(clean, tmp_path):
    """A copy of its folder that a test may attack."""
    return Path(shutil.copytree(clean[0], tmp_path / "STUDY"))


class Asker:
    """Somebody who has never read the study, anew for each question."""

    def __init__(self, tmp_path):
        self._home, self._n = tmp_path / "askers", 0

    def check(self, folder):
        self._n += 1
        return verify_study(FolderStore(folder, self._home / str(self._n), host="x", session="1"))

    def problems(self, folder):
        try:
            return [f"{one.kind}: {one.text}" for one in self.check(folder).problems]
        except FormatError as error:
            return [f"cannot be opened: {error}"]


@pytest.fixture
def asker(tmp_path):
    return Asker(tmp_path)


def event_files(folder):
    return sorted((folder / "events").rglob("*.jsonl"))


def list_sealed(folder, home):
    """Return all events in order, and the hashes of those that a signature holds."""
    store = FolderStore(folder, home, host="x", session="1")
    events = merge_events(store.read().chains.values())
    signatures = [one for view in load_state(store).cases for one in view.signatures]
    by_hash = {one.hash: one for one in events}
    signing = [by_hash[one.hash] for one in signatures if one.counts]
    return events, list_past(
        by_hash, [one for event in signing for one in (event.prev, *event.seen)]
    )


def hash_anew(folder, change, origin=""):
    """Write all files anew as somebody would who knows how hashes are made and has no key.

    `change` gets the entry of each event, and returns another, or None to leave it out.
    """
    store = FolderStore(folder, folder.parent / "attacker", host="x", session="1")
    chains = store.read().chains
    origin = origin or store.origin
    place = {event.hash: name for name, chain in chains.items() for event in chain}
    entries = {}
    for name in chains:
        for line in (folder / "events" / name).read_bytes().splitlines():
            record = json.loads(line)
            entries[record["hash"]] = record["entry"]
    anew = {store.origin: origin}
    heads, lines = dict.fromkeys(chains, origin), {name: [] for name in chains}
    for event in merge_events(chains.values()):
        entry = change(json.loads(json.dumps(entries[event.hash])))
        name = place[event.hash]
        if entry is None:
            anew[event.hash] = heads[name]
            continue
        text = canonical(entry).decode()
        for old, new in anew.items():
            text = text.replace(old, new)
        body = f'"prev":"{heads[name]}","seq":{len(lines[name])},"entry":{text}}}'
        digest = sha256(body.encode()).hexdigest()
        lines[name].append(f'{{"hash":"{digest}",{body}\n')
        anew[event.hash] = heads[name] = digest
    for name, written in lines.items():
        (folder / "events" / name).write_text("".join(written), encoding="utf-8")


# ------------------------------------------------------------------- nothing is wrong


def test_what_nobody_attacked_is_clean_and_verify_says_what_no_signature_holds(share, asker):
    check = asker.check(share)
    assert check.problems == ()
    assert check.n_signatures == 3
    # the remark that was made after all signatures, and what else came after the last
    n_open = check.n_events - check.n_sealed
    assert n_open >= 1
    (note,) = [one.text for one in check.notes if one.kind == "seal"]
    assert note.startswith(f"{n_open} of {check.n_events} events not covered by a signature")
    assert not [one for one in check.notes if "lists no lead's key" in one.text]


# --------------------------------------------------------------- under another's name


def act_as(share, home, who, **entry):
    """Let somebody begin a session under a name with whatever entry."""
    store = FolderStore(share, home, host="thief", session="1")
    session = ReviewSession(store, who, home)
    with pytest.raises(CaseError, match="nobody else may use this name"):
        session.remark("c0001", "x")
    heads = [chain[-1].hash for chain in store.read().chains.values()]
    seen = entry.pop("seen", heads)
    store.append(who, {"act": "enter", **entry}, seen)
    store.append(who, {"act": "note", "case": "c0001", "round": 1, "text": "so"}, seen)
    store.close()


def test_who_has_a_key_enters_with_it_and_nobody_else_does(share, clean, asker, tmp_path):
    """Everybody can check it: the program that lets one in without it is found by `verify`."""
    people = Path(shutil.copytree(clean[1], tmp_path / "people"))
    before = asker.check(share)
    assert [one for one in before.notes if one.kind == "entry"] == []
    events = [one for chain in opened_chains(share, tmp_path) for one in chain]
    proven = [one for one in events if one.body["act"] == "enter" and "proof" in one.body]
    assert {one.reader for one in proven} == {"lea", "jo"}  # bound; the others made theirs later
    lea = next(one.body for one in proven if one.reader == "lea")
    foreign = keys.make_key(tmp_path / "foreign.key.json", WORDS)
    forged = {
        "nothing": {},
        "her entry from elsewhere": {"key": lea["key"], "proof": lea["proof"]},
        "a key of one's own": {"key": foreign, "proof": "00" * 64},
        "her key and no signature": {"key": lea["key"], "proof": ""},
        "no text": {"key": 7, "proof": ["x"]},
    }
    for what, entry in forged.items():
        folder = Path(shutil.copytree(share, tmp_path / what))
        act_as(folder, tmp_path / f"home {what}", "lea", **entry)
        found = [one for one in asker.problems(folder) if one.startswith("entry:")]
        assert found, what
    # A session that says not to know of any of hers looks like one of an earlier version.
    folder = Path(shutil.copytree(share, tmp_path / "unknowing"))
    act_as(folder, tmp_path / "home unknowing", "lea", seen=[])
    assert "has no key" in "".join(one.text for one in asker.check(folder).notes)
    # A step of such a session is late as long as Ana never entered with her key, and fails then.
    folder = Path(shutil.copytree(share, tmp_path / "pretending"))
    store = FolderStore(folder, tmp_path / "home pretending", host="thief", session="1")
    store.append("ana", {"act": "enter"})
    store.append("ana", {"act": "claim", "case": "c0001", "round": 1})
    store.close()
    assert asker.problems(folder) == []
    ana = at_work(folder, people, "ana", "2")
    ana.remark("c0001", "mine")
    ana.close()
    assert asker.problems(folder) == ["refused: the case already has the state signed"]
    # With the key she acts as before, and what she signs needs no further proof.
    lea = at_work(share, people, "lea", "2")
    lea.remark("c0001", "mine")
    lea.close()
    assert asker.check(share).problems == ()


def opened_chains(share, tmp_path):
    return FolderStore(share, tmp_path / "look", host="x", session="1").read().chains.values()


@pytest.mark.parametrize("who", ["lea", "ana"])
def test_a_key_is_asked_for_and_a_wrong_passphrase_opens_nothing(share, clean, tmp_path, who):
    before = {path: path.read_bytes() for path in event_files(share)}
    home, elsewhere = Path(shutil.copytree(clean[1], tmp_path / "people")), tmp_path / "elsewhere"
    for passphrase, computer, why in (
        ("", home / who, "nobody else may use this name"),
        ("another one", home / who, "the passphrase of the key"),
        (
            WORDS,
            elsewhere,
            "work on the computer where the key was created",
        ),
    ):
        with pytest.raises((CaseError, FormatError), match=why):
            StudyClient(share, who, computer, passphrase)
    assert {path: path.read_bytes() for path in event_files(share)} == before
    client = StudyClient(share, who, home / who, WORDS)
    assert client.look().person.startswith(who.title())
    client.close()


# --------------------------------------------------------------------- a byte


def flip(path, rng):
    whole = path.read_bytes()
    at = rng.randrange(len(whole))
    path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << rng.randrange(8))]) + whole[at + 1 :])
    return whole, at


def list_unnoticed(folder, asker, n_bytes, seed):
    """Flip one bit at a time in files of a study; return where nobody noticed."""
    rng = random.Random(seed)
    files = [folder / "study.json", *event_files(folder), *sorted((folder / "masks").iterdir())]
    unnoticed = []
    for number in range(n_bytes):
        path = files[number % len(files)]
        whole, at = flip(path, rng)
        if not asker.problems(folder):
            unnoticed.append((path.name, at))
        path.write_bytes(whole)
    return unnoticed


def test_a_flipped_bit_in_any_file_of_the_folder_is_found(share, asker):
    assert list_unnoticed(share, asker, 18, 1) == []


@pytest.mark.night
@pytest.mark.timeout(3000)
def test_thousands_of_flipped_bits_are_found(share, asker):
    assert list_unnoticed(share, asker, 4000, 2) == []


def test_a_flipped_bit_of_what_waits_on_this_computer_is_found(share, clean, tmp_path):
    home, rng = tmp_path / "ana", random.Random(3)
    (home / "s1").mkdir(parents=True)
    shutil.copy(clean[1] / "ana" / "s1" / "ana.key.json", home / "s1")
    ana = at_work(share, tmp_path, "ana", "7")
    ana.remark("c0001", "first")
    share.rename(tmp_path / "AWAY")
    ana.remark("c0001", "while the share was away")
    ana.store.put_mask(b"a mask that waits")
    (tmp_path / "AWAY").rename(share)
    outbox = home / "s1"
    files = [*sorted((outbox / "events").rglob("*.jsonl")), *(outbox / "masks").iterdir()]
    assert len(files) == 2
    for path in files:
        for _ in range(8):
            whole, at = flip(path, rng)
            store = FolderStore(share, home, host="ana", session="8")
            assert verify_study(store).problems, (path.name, at)
            path.write_bytes(whole)
    # a damaged mask is not sent, and holds nothing else up
    files[1].write_bytes(b"another mask that waits")
    store = FolderStore(share, home, host="ana", session="9")
    assert store.send() == 0
    assert "the mask was changed" in store.trouble
    assert files[1].exists()


def test_a_key_file_that_is_damaged_or_something_else_is_found_and_signs_nothing(
    share, clean, tmp_path
):
    home = tmp_path / "ana"
    shutil.copytree(clean[1] / "ana", home)
    path = home / "s1" / "ana.key.json"
    rng = random.Random(4)
    for _ in range(20):
        whole, at = flip(path, rng)
        store = FolderStore(share, home, host="ana", session="8")
        assert [one.kind for one in verify_study(store).problems] == ["key"], at
        path.write_bytes(whole)
    pem = b"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA\n"
    for content in (b"", pem, b"{}", b"[1]", b"\x00" * 100, b"9" * 100_000, b'{"a":' * 30_000):
        path.write_bytes(content)
        session = ReviewSession(
            FolderStore(share, home, host="ana", session=f"9{len(content)}"), "ana", home
        )
        assert [one.kind for one in verify_study(session.store).problems] == ["key"]
        with pytest.raises((FormatError, CaseError)):
            session.sign("c0001", Meaning.AUTHOR, WORDS)


# ------------------------------------------------------- events left out, moved, put in


def test_events_that_a_signature_holds_cannot_be_cut_off_or_removed(share, asker, tmp_path):
    _, sealed = list_sealed(share, tmp_path / "lister")
    n_found = n_open = 0
    for path in event_files(share):
        whole = path.read_bytes()
        lines = whole.splitlines(keepends=True)
        for n_left in range(len(lines)):
            path.write_bytes(b"".join(lines[:n_left]))
            if n_left == 0:
                path.unlink()
            lost = {json.loads(line)["hash"] for line in lines[n_left:]}
            problems = asker.problems(share)
            if lost & sealed:
                assert problems, (path.name, n_left)
                n_found += 1
            else:
                n_open += not problems
        path.write_bytes(whole)
    assert n_found > 10
    # what `docs/methods/review.md` says is not found: the tail that nobody signed or saw
    assert n_open >= 1


def test_who_had_read_it_misses_the_tail_that_nobody_signed(share, clean, tmp_path):
    home = tmp_path / "reader"
    store = FolderStore(share, home, host="x", session="1")
    assert verify_study(store).problems == ()
    store.close()
    (path,) = (share / "events" / "ben").iterdir()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    check = verify_study(FolderStore(share, home, host="x", session="2"))
    assert any("which this computer had read, is missing" in one.text for one in check.problems)


def test_files_that_two_readers_swapped_are_found(share, asker):
    (ana,), (ben,) = ((share / "events" / who).iterdir() for who in ("ana", "ben"))
    first, second = ana.read_bytes(), ben.read_bytes()
    ana.write_bytes(second)
    ben.write_bytes(first)
    assert sum(one.startswith("place") for one in asker.problems(share)) == 2
    # and with the names inside put right and all hashed anew: whose signature is it?
    ana.write_bytes(first)
    ben.write_bytes(second)
    other = {"ana": "ben", "ben": "ana"}
    hash_anew(share, lambda one: {**one, "reader": other.get(one["reader"], one["reader"])})
    assert asker.problems(share)


def test_a_copy_that_went_on_in_two_places_is_found_when_they_are_joined(share, asker, tmp_path):
    copy = Path(shutil.copytree(share, tmp_path / "COPY"))
    for folder, text in ((share, "here"), (copy, "there")):
        store = FolderStore(folder, tmp_path / text, host="ben", session="1")
        (path,) = (folder / "events" / "ben").iterdir()
        target = tmp_path / text / "s1" / "events" / "ben" / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
        store.append("ben", {"act": "note", "case": "c0001", "round": 1, "text": text})
        store.close()
    (path,) = (copy / "events" / "ben").iterdir()
    shutil.copy(path, share / "events" / "ben" / "other.jsonl")
    assert any(one.startswith("chain") for one in asker.problems(share))


def test_events_of_another_study_are_found_as_they_are_and_hashed_anew(
    share, asker, tmp_path, clean
):
    (tmp_path / "elsewhere").mkdir()
    other = make_study(tmp_path / "OTHER", tmp_path / "elsewhere", name="s2")
    shutil.copytree(other / "events", share / "events", dirs_exist_ok=True)
    for path in (other / "events" / "ana").iterdir():
        path.rename(share / "events" / "ana" / "replayed.jsonl")
    assert any("chain" in one for one in asker.problems(share))
    # the whole of another study under this one's file: its signatures are of the other
    shutil.rmtree(share / "events")
    again = make_study(tmp_path / "AGAIN", tmp_path / "elsewhere", name="s3")
    origin = sha256((share / "study.json").read_bytes()).hexdigest()
    hash_anew(again, lambda one: one, origin)
    shutil.copytree(again / "events", share / "events")
    assert any("the lead's own key is not valid" in one for one in asker.problems(share))
    assert asker.check(share).n_signatures == 0


def test_a_signature_that_is_put_in_again_elsewhere_does_not_count_twice(share, asker, tmp_path):
    events, _ = list_sealed(share, tmp_path / "lister")
    (event,) = [one for one in events if one.reader == "ana" and one.body["act"] == "sign"]
    store = FolderStore(share, tmp_path / "thief", host="thief", session="1")
    store.append("ana", event.body, event.seen)
    store.close()
    check = asker.check(share)
    assert check.n_signatures == 3
    assert [one.text for one in check.problems] == ["the signature is invalid"]


# --------------------------------------------------------------- hashed anew, whole


def strike_events(clean, asker, tmp_path, step):
    """Change an event, or leave it out, and hash all anew; of every `step`-th event in turn."""
    events, sealed = list_sealed(clean[0], tmp_path / "lister")
    unnoticed = []
    for number, event in enumerate(events[::step]):
        for way in ("changed", "left out")[number % 2 :: 2 if step > 1 else 1]:

            def change(entry, event=event, way=way):
                same = (entry["reader"], entry["session"], entry["at"], entry["body"])
                if same != (event.reader, event.session, event.at, event.body):
                    return entry
                return None if way == "left out" else {**entry, "body": {**event.body, "x": "y"}}

            folder = Path(shutil.copytree(clean[0], tmp_path / f"{event.hash[:8]}-{way}"))
            hash_anew(folder, change)
            if not asker.problems(folder):
                unnoticed.append(event)
            shutil.rmtree(folder)
    held = [(one.body["act"], one.reader) for one in unnoticed if one.hash in sealed]
    return held, unnoticed


def test_what_a_signature_holds_is_not_changed_unseen_though_all_is_hashed_anew(
    clean, asker, tmp_path
):
    held, _ = strike_events(clean, asker, tmp_path, 4)
    assert held == []


@pytest.mark.night
@pytest.mark.timeout(3000)
def test_no_event_that_a_signature_holds_is_changed_unseen(clean, asker, tmp_path):
    held, unnoticed = strike_events(clean, asker, tmp_path, 1)
    assert held == []
    # what no signature holds is not found, as the note of `verify` says
    assert {one.body["act"] for one in unnoticed} >= {"note"}


def test_a_change_in_one_file_alone_is_missed_by_those_who_had_seen_it(share, asker):
    def change(entry):
        if entry["reader"] == "ana" and entry["body"]["act"] == "start":
            entry["body"]["x"] = "y"
        return entry

    before = {path: path.read_bytes() for path in event_files(share)}
    hash_anew(share, change)
    for path, content in before.items():
        if path.parent.name != "ana":
            path.write_bytes(content)
    assert any("had seen missing" in one for one in asker.problems(share))


def test_where_nothing_is_signed_verify_says_that_all_could_be_written_anew(tmp_path, asker):
    folder = tmp_path / "STUDY"
    write_study(folder, study(cases=("A",)))
    ana = at_work(folder, tmp_path, "ana")
    ana.remark("c0001", "a note")
    ana.close()
    hash_anew(folder, lambda one: {**one, "body": {**one["body"], "text": "another note"}})
    check = asker.check(folder)
    assert check.problems == ()
    assert [one.kind for one in check.notes] == ["seal"]
    assert "2 of 2 events not covered by a signature" in check.notes[0].text


# ------------------------------------------------------------------ keys of leads


def put_in_thief(folder, home, monkeypatch, year):
    """Let somebody without a key write as lead lea, with a key of his own and a clock set back."""

    class Clock(event_store.datetime):
        @classmethod
        def now(cls, tz=None):
            return super().now(tz).replace(year=year)

    with monkeypatch.context() as patch:
        patch.setattr(event_store, "datetime", Clock)
        store = FolderStore(folder, home, host="thief", session="1")
        store.read = lambda: replace_chains(FolderStore.read(store))
        thief = ReviewSession(store, "lea", home)
        thief.make_key("thief thief thief")
        thief.close()


def replace_chains(reading):
    return replace(reading, chains={}, problems=())


def test_a_lead_s_key_that_looks_older_counts_for_nothing_where_keys_are_bound(
    share, asker, tmp_path, monkeypatch
):
    put_in_thief(share, tmp_path / "thief", monkeypatch, 2001)
    check = asker.check(share)
    assert check.problems == ()
    assert [one.text[-22:] for one in check.notes if one.kind == "key"] == [
        "waits for countersigning"[-22:]
    ]
    assert check.n_signatures == 3


def test_a_study_without_bound_keys_says_what_it_does_not_prove_and_a_rival_is_told(
    tmp_path, asker, monkeypatch
):
    folder = make_study(tmp_path / "STUDY", tmp_path, binds=False)
    check = asker.check(folder)
    assert check.problems == ()
    (note,) = [one.text for one in check.notes if one.kind == "key"]
    assert "study.json lists no lead's key" in note
    put_in_thief(folder, tmp_path / "thief", monkeypatch, 2001)
    problems = asker.problems(folder)
    assert any("one of them may have been inserted later" in one for one in problems)


# ---------------------------------------------------------------------- stolen keys


def steal(clean, tmp_path, who):
    """Copy a person's computer, its key and passphrase; return the thief's folder."""
    return Path(shutil.copytree(clean[1] / who, tmp_path / "thief" / who))


def test_what_a_thief_signs_after_the_key_was_ended_does_not_count_whatever_his_clock_says(
    share, clean, tmp_path, asker, monkeypatch
):
    steal(clean, tmp_path, "ana")
    shutil.copytree(clean[1] / "lea", tmp_path / "lea")
    lea = at_work(share, tmp_path, "lea", "5")
    (key,) = [one.key for one in lea.state.keys if one.reader == "ana"]
    ending = signing.revoke(lea, "ana", key, "laptop stolen", WORDS)
    assert (ending.is_ended, ending.n_standing, ending.n_lost) == (True, 1, 0)
    lea.close()
    assert asker.problems(share) == []
    assert (
        find_status(FolderStore(share, tmp_path / "s")).readers[2].keys_ended[0].endswith("stolen")
    )

    class Clock(event_store.datetime):
        @classmethod
        def now(cls, tz=None):
            return super().now(tz).replace(year=2001)

    monkeypatch.setattr(event_store, "datetime", Clock)
    store = FolderStore(share, tmp_path / "thief" / "ana", host="thief", session="1")
    thief = ReviewSession(store, "ana", tmp_path / "thief" / "ana")
    thief.sign("c0001", Meaning.AUTHOR, WORDS)
    thief.close()
    counts = [one.counts for one in thief.refresh().case("c0001").signatures]
    assert sorted(counts) == [False, True, True, True]
    assert asker.problems(share) == ["signature: the key was revoked"]


def test_from_a_time_on_stands_only_what_others_had_seen_by_then(share, clean, tmp_path):
    shutil.copytree(clean[1] / "lea", tmp_path / "lea")
    events, _ = list_sealed(share, tmp_path / "lister")
    (ana,) = [one for one in events if one.reader == "ana" and one.body["act"] == "sign"]
    lea = at_work(share, tmp_path, "lea", "5")
    (key,) = [one.key for one in lea.state.keys if one.reader == "ana"]
    by_hash = {one.hash: one for one in events}
    witnesses = [
        one for one in events if one.reader != "ana" and ana.hash in list_past(by_hash, [one.hash])
    ]
    # at the very time of the signature nobody had seen it
    assert signing._list_standing(lea.state, lea.state.keys[2], events, ana.at) == ()
    assert signing._list_standing(lea.state, lea.state.keys[2], events, witnesses[0].at) == (
        ana.hash,
    )
    for since, why in (("last week", "such as 2026"), ("2999-01-01", "a time in the past")):
        with pytest.raises(CaseError, match=why):
            signing.revoke(lea, "ana", key, "stolen", WORDS, since)
    with pytest.raises(CaseError, match="a reason"):
        signing.revoke(lea, "ana", key, " ", WORDS)
    ending = signing.revoke(lea, "ana", key, "stolen", WORDS, "2001-01-01")
    assert (ending.n_standing, ending.n_lost) == (0, 1)


def test_a_reader_without_the_key_cannot_end_it_and_is_sent_to_a_lead(share, clean, tmp_path):
    ana = at_work(share, tmp_path, "ana", "6")
    (old,) = [one.key for one in ana.state.keys if one.reader == "ana"]
    ana.make_key(WORDS)
    with pytest.raises(CaseError, match="ask a lead to revoke it"):
        signing.revoke(ana, "ana", old, "lost", WORDS)


def test_of_two_leads_the_one_who_is_struck_first_can_answer_and_the_site_is_told(
    share, clean, tmp_path, asker
):
    for who in ("lea", "jo"):
        shutil.copytree(clean[1] / who, tmp_path / who)
    thief, jo = at_work(share, tmp_path, "lea", "5"), at_work(share, tmp_path, "jo", "5")
    mine, theirs = (
        next(one.key for one in jo.state.keys if one.reader == who) for who in ("jo", "lea")
    )
    assert signing.revoke(thief, "jo", mine, "harm", WORDS).is_ended
    thief.close()
    jo.refresh()
    with pytest.raises(CaseError, match="your key is not valid"):
        signing.countersign(jo, "ana", jo.state.keys[2].key, WORDS)
    ending = signing.revoke(jo, "lea", theirs, "laptop stolen", WORDS)
    assert not ending.is_ended
    assert "neither revocation counts" in signing.describe_revocation(jo.refresh(), theirs, ending)
    jo.close()
    assert sum(one.startswith("conflict") for one in asker.problems(share)) == 2
    assert len(find_status(FolderStore(share, tmp_path / "s")).conflicts) == 2
    signing.countersign(jo, "ana", jo.state.keys[2].key, WORDS)


def test_a_revocation_that_is_removed_is_missed_by_who_had_read_it_and_by_later_signatures(
    share, clean, tmp_path, asker
):
    for who in ("lea", "jo"):
        shutil.copytree(clean[1] / who, tmp_path / who)
    lea = at_work(share, tmp_path, "lea", "5")
    (key,) = [one.key for one in lea.state.keys if one.reader == "ana"]
    signing.revoke(lea, "ana", key, "stolen", WORDS)
    lea.close()
    jo = at_work(share, tmp_path, "jo", "5")
    jo.sign("c0001", Meaning.APPROVER, WORDS)
    jo.close()
    assert asker.problems(share) == []
    (path,) = (share / "events" / "lea").glob("*-5.jsonl")
    path.unlink()
    assert any("had seen missing" in one for one in asker.problems(share))
