"""What can be wrong with a review study, through the real commands, each a process of its own.

Beside it: a kill between mask and event (`tests/features/review/test_review_store.py`), a full disk
and a damaged read under each command (`test_faults.py`), a share that is away or hangs
(`test_silence.py`, `tests/features/review/test_review_desk.py`,
`tests/window/test_window_review.py`).
"""

import errno
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

pytest.importorskip("pydicom")
sys.path.insert(0, str(Path(__file__).parent))
from trials import Trials
from worlds import AFFINE, Way, environment, ran, review_init, reviewed

from napari_mamamia.features.review.io.study_file import Draft
from napari_mamamia.features.review.services.client import StudyClient
from napari_mamamia.io.files import append_file

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

LONG = "L" * 200
IDS = ("a_1", "A_1", "Größe 1", "Gro\u0308ße 1", LONG)
"""Letter case alone, an umlaut in both ways that Unicode has, 200 characters; a folder is an id."""


@pytest.fixture(scope="module")
def trials(tmp_path_factory):
    return Trials(tmp_path_factory.mktemp("reviews"))


class Read:
    """A study that two have read to the end, and the commands of somebody who leads it."""

    def __init__(self, trials: Trials) -> None:
        way = Way("review verify", lambda world: ["review", "verify", str(reviewed(world))])
        self.trials, self.world = trials, trials.world(way)
        self.study = self.world / "study"

    def run(self, name, *words, study=None):
        order = ["review", name, str(study or self.study), *words]
        answer = self.trials.run(self.world, order)
        assert "Traceback" not in self.trials.said, self.trials.said
        return answer["code"], self.trials.said + self.trials.printed

    def events(self, reader="ana"):
        (path,) = (self.study / "events" / reader).glob("*.jsonl")
        return path


@pytest.fixture
def read(trials):
    return Read(trials)


def test_a_study_without_fault_is_clean(read):
    code, text = read.run("verify")
    assert (code, "No problem found." in text) == (0, True), text


def test_a_torn_last_line_is_told_by_verify_and_stops_nobody(read):
    path = read.events()
    path.write_bytes(path.read_bytes() + b'{"hash":"abc')
    code, text = read.run("verify")
    assert code == 3
    assert "its last line is incomplete" in text
    assert read.run("status")[0] == 0


def test_a_copy_that_lacks_what_was_read_here_is_told(read):
    assert read.run("verify")[0] == 0
    copy = read.world / "copy"
    shutil.copytree(read.study, copy)
    path = copy / read.events().relative_to(read.study)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    code, text = read.run("verify", study=copy)
    assert code == 3
    assert "which this computer had read, is missing" in text


def test_a_session_that_went_on_in_two_places_is_a_fork(read):
    path = read.events()
    lines = path.read_bytes().splitlines(keepends=True)
    other = path.with_name("joined.jsonl")
    # The same session, whose last event the other computer wrote with another note.
    from napari_mamamia.io.files.append_file import canonical, parse_line

    last = parse_line(lines[-1], 0, 0)
    entry = json.loads(canonical(last.entry))
    entry["body"]["active_s"] = 61
    text = b'"prev":"%s","seq":%d,"entry":%s}' % (
        last.prev.encode(), last.seq, canonical(entry),
    )  # fmt: skip
    import hashlib

    digest = hashlib.sha256(text).hexdigest()
    other.write_bytes(b"".join(lines[:-1]) + b'{"hash":"%s",%s\n' % (digest.encode(), text))
    code, said = read.run("verify")
    assert code == 3
    assert "exists in two versions, and both are used" in said


def test_a_study_file_that_was_changed_fits_no_event(read):
    path = read.study / "study.json"
    path.write_bytes(path.read_bytes().replace(b'"seed": 42', b'"seed": 43'))
    code, text = read.run("verify")
    assert code == 3
    assert "failed: chain" in text


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("verify", ()),
        ("export", ("--out", "OUT", "--reader", "Lea")),
        ("agreement", ("--out", "OUT", "--reader", "Lea", "--bootstrap", "0")),
    ],
)
def test_a_mask_that_was_changed_is_named_and_exits_3(read, name, more):
    for path in (read.study / "masks").glob("*.nii.gz"):
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    words = [str(read.world / "result") if one == "OUT" else one for one in more]
    code, text = read.run(name, *words)
    assert code == 3, text
    assert "failed:" in text
    assert "changed" in text


def test_events_under_another_reader_s_name_are_told(read):
    (read.study / "events" / "ana").rename(read.study / "events" / "eve")
    code, text = read.run("verify")
    assert code == 3
    assert "its events are from 'ana', so somebody moved or renamed the file" in text


def test_a_forgotten_passphrase_is_said_plainly_and_a_new_key_goes_on(read):
    (read.world / "right").write_text("correct horse")
    (read.world / "wrong").write_text("battery staple")
    right, wrong = (("--passphrase-file", str(read.world / one)) for one in ("right", "wrong"))
    assert read.run("key", "--reader", "Lea", *right)[0] == 0
    case_id = json.loads((read.study / "study.json").read_text())["cases"][0]["case_id"]
    sign = ("--reader", "Lea", "--case", case_id, "--meaning", "approver")
    code, text = read.run("sign", *sign, *wrong)
    assert code == 1
    assert "cannot be recovered" in text
    code, text = read.run("key", "--reader", "Lea", "--new", *wrong)
    assert code == 0
    assert "Kept as" in text
    code, text = read.run("sign", *sign, *wrong)
    assert code == 0, text


CLOCK = """
import sys
from datetime import datetime, timedelta
from napari_mamamia.io.workspace import event_store
class Slow(datetime):
    @classmethod
    def now(cls, zone=None):
        return datetime.now(zone) - timedelta(days=1)
event_store.datetime = Slow
from napari_mamamia.cli import main
main()
"""


def test_a_clock_that_is_a_day_behind_is_noted_and_harms_nothing(read):
    (read.world / "secret").write_text("correct horse")
    words = ["review", "key", str(read.study), "--reader", "Lea"]
    words += ["--passphrase-file", str(read.world / "secret")]
    done = subprocess.run(
        [sys.executable, "-c", CLOCK, *words], capture_output=True, text=True, check=False,
        env=dict(os.environ, **environment(read.world)),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    code, text = read.run("verify")
    assert code == 0, text
    assert "its clock was 2" in text
    assert "h behind another clock, on which no state depends" in text


def test_ids_of_any_letters_are_cases_and_of_two_that_are_one_on_other_computers_one_is_left_out(
    trials,
):
    import nibabel as nib
    import numpy as np

    def make(world: Path) -> list[str]:
        for name in IDS:
            for phase in range(2):
                path = world / "data set" / "images" / name / f"{name}_{phase:04d}.nii.gz"
                path.parent.mkdir(parents=True, exist_ok=True)
                nib.save(nib.Nifti1Image(np.ones((4, 4, 4), np.int16), AFFINE), path)
        people = ["--lead", "Lea", "--reader", "Ana", "--reader", "Ben"]
        words = ["review", "init", str(world / "data set"), "--out", str(world / "study"), *people]
        return [*words, "--mode", "independent", "--freeze", "--not-blind"]

    way = Way("review init", make, title="odd ids")
    world = trials.world(way)
    words = trials._words[way.name]
    assert trials.run(world, words)["code"] == 1
    assert "a_1 is left out" in trials.said
    assert "A_1_0001.nii.gz" in trials.said
    assert not (world / "study").exists()
    answer = trials.run(world, [*words, "--without-broken"])
    assert answer["code"] == 0, trials.said
    cases = json.loads((world / "study" / "study.json").read_text())["cases"]
    left = sorted(set(IDS) - {one["case_id"] for one in cases})
    folded = {unicodedata.normalize("NFC", one).casefold() for one in left}
    assert folded == {"a_1", "Größe 1".casefold()}
    assert len(left) == 4  # of two that are one on other computers none is taken
    assert "a_1 is left out" in trials.printed
    assert [one["key"] for one in cases] == ["c0001"]
    study = str(world / "study")
    answer = trials.run(world, ["review", "status", study, "--out", str(world / "out")])
    assert answer["code"] == 0, trials.said
    assert json.loads((world / "out" / "status.json").read_text())["states"]["new"] == 1
    assert trials.run(world, ["review", "verify", study])["code"] == 0


def test_the_study_s_folder_is_not_made_where_there_is_one(trials):
    way = Way("review init", review_init, title="again")
    world = trials.world(way)
    ran(world, trials._words[way.name])
    before = (world / "study" / "study.json").read_bytes()
    answer = trials.run(world, trials._words[way.name])
    assert answer["code"] == 1
    assert "is not empty: choose another folder" in trials.said
    assert (world / "study" / "study.json").read_bytes() == before


@pytest.mark.parametrize("kind", ["full", "read-only"])
def test_a_share_that_takes_nothing_loses_nothing_and_the_next_command_sends_it(read, kind):
    (read.world / "secret").write_text("correct horse")
    more = ("--reader", "Ana", "--passphrase-file", str(read.world / "secret"))
    before = {path: path.read_bytes() for path in read.study.rglob("*") if path.is_file()}
    order = ["review", "key", str(read.study), *more]
    answer = read.trials.run(read.world, order, kind, 1, root=read.study)
    assert (answer["code"], read.trials.said) == (0, "")
    assert "2 events waiting on this computer" in read.trials.printed
    after = {path: path.read_bytes() for path in read.study.rglob("*") if path.is_file()}
    assert {path: after[path] for path in before} == before
    code, text = read.run("sign", *more, "--case", "A_1", "--meaning", "author")
    assert (code, "use the case numbers of the window, such as case-0001" in text) == (1, True), (
        text
    )
    code, text = read.run("sign", *more, "--case", "case-0001", "--meaning", "author")
    assert (code, "waiting on this computer" in text) == (0, False), text
    events = "".join(path.read_text() for path in (read.study / "events/ana").glob("*.jsonl"))
    assert (events.count('"act":"key"'), events.count('"act":"sign"')) == (1, 1)
    code, text = read.run("verify")
    # the key waits for countersigning, and nothing else is wrong
    failed = [line for line in text.splitlines() if line.startswith("failed")]
    assert (code, [line.split(":")[1] for line in failed]) == (3, [" signature"]), text


def test_a_full_disk_of_one_s_own_is_told_and_leaves_no_half_event(read):
    (read.world / "secret").write_text("correct horse")
    order = ["review", "key", str(read.study), "--reader", "Ana"]
    order += ["--passphrase-file", str(read.world / "secret")]
    answer = read.trials.run(read.world, order, "full", 1, root=read.world / "home")
    assert answer["code"] == 1
    assert read.trials.said.startswith("error: ")
    assert "No space left on device" in read.trials.said
    assert len(read.trials.said.splitlines()) < 4
    assert read.run("verify")[0] == 0
    assert read.run("key", *order[3:])[0] == 0
    assert read.run("verify")[0] == 0


def refuse_locks(*_):
    raise OSError(errno.ENOLCK, "no locks")


def read_at_once(study, home, who, host, start, taken):
    """Be one of several computers without file locks: take and hand in until nothing is left."""
    append_file.claim = refuse_locks
    client = StudyClient(study, who, home)
    client.store._host = host
    start.wait(60)
    while (task := client.take_next()) is not None and not task.held:
        taken.put((who, host, task.case_id))
        client.hand_in(task, None, Draft({"bpe": "mild"}, 1))()
    client.close()


@pytest.mark.night  # by day at the level of the store and the desk
def test_four_computers_without_locks_in_one_second_read_each_case_once_and_lose_nothing(trials):
    """Two of each reader: one claims in the very moment in which the other does."""
    way = Way("review init", review_init, title="at once")
    world = trials.world(way)
    assert trials.run(world, trials._words[way.name])["code"] == 0
    study = world / "study"
    fork = multiprocessing.get_context("fork")
    start, taken = fork.Barrier(4), fork.Queue()
    people = [(who, f"{who}-{n}") for who in ("Ana", "Ben") for n in (1, 2)]
    computers = [
        fork.Process(target=read_at_once, args=(study, world / host, who, host, start, taken))
        for who, host in people
    ]
    for one in computers:
        one.start()
    for one in computers:
        one.join(120)
        assert one.exitcode == 0
    claims = [taken.get(timeout=10)[::2] for _ in range(taken.qsize())]
    cases = json.loads((study / "study.json").read_text())["cases"]
    ids = [one["key"].replace("c", "case-") for one in cases]
    assert sorted(claims) == sorted((who, case_id) for who in ("Ana", "Ben") for case_id in ids)
    answer = trials.run(world, ["review", "verify", str(study)])
    assert answer["code"] == 0, trials.said
    answer = trials.run(world, ["review", "status", str(study), "--out", str(world / "out")])
    status = json.loads((world / "out" / "status.json").read_text())
    assert {one["n_read"] for one in status["readers"] if one["n_tasks"]} == {len(ids)}
