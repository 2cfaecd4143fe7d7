"""What came late is a note, what was tampered with is a failure.

A reader worked on two computers, on one while the share was away; then somebody who can write in
the study's folder and knows how lines are hashed, but holds no key, changes it.
"""

import errno
import itertools
import json
import shutil
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from tests.review_study import made, opened

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.grid import Grid
from napari_mamamia.features.review.core.review import ReadingMode
from napari_mamamia.features.review.io.store import FolderStore
from napari_mamamia.features.review.services.check_study import verify_study
from napari_mamamia.features.review.services.client import StudyClient
from napari_mamamia.features.review.services.session import ReviewSession
from napari_mamamia.io.data_set.volumes import write_volume
from napari_mamamia.io.files.append_file import canonical

GRID = Grid.of_spacing((2, 6, 6), (2.0, 1.0, 1.0))
CASES = tuple("ABCDEF")


def make_masks(folder):
    """Return the bytes of two masks that are alike enough to agree."""
    contents = []
    for stop in (5, 4):
        array = np.zeros(GRID.shape, np.uint8)
        array[:, 1:5, 1:stop] = 1
        write_volume(array, GRID, folder / f"{stop}.nii.gz")
        contents.append((folder / f"{stop}.nii.gz").read_bytes())
    return contents


def be_away(store):
    def fail():
        raise OSError(errno.ESTALE, "Stale file handle")

    reach, store._require_share = store._require_share, fail
    return reach


def read_case(session, task, mask):
    session.claim(task)
    session.start(task)
    session.finish(task, mask, {"bpe": "mild"}, compares=False)


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """A study in which Ana's laptop took two cases that her other computer had read meanwhile."""
    home = tmp_path_factory.mktemp("people")
    folder = made(home, mode=ReadingMode.INDEPENDENT, cases=CASES)
    ana_mask, ben_mask = make_masks(home)
    laptop = opened(folder, home / "laptop", host="laptop")
    laptop.keep_copy(is_due=True)
    ana = ReviewSession(laptop, "ana", home / "laptop")
    reach = be_away(laptop)
    first, second = (task for task, _ in ana.queue()[:2])
    for who, mask in (("ana", ana_mask), ("ben", ben_mask)):
        one = ReviewSession(opened(folder, home / who, host=who), who, home / who)
        while (task := one.next_task()) is not None:
            read_case(one, task, mask)
        one.close()
    for task in (first, second):
        ana.claim(task)
        ana.start(task)
    laptop._require_share = reach
    # The laptop hands one of them in, alike: that it was read twice is no conflict.
    ana.finish(first, ana_mask, {"bpe": "mild"}, compares=False)
    ana.close()
    jo = ReviewSession(opened(folder, home / "jo", host="jo"), "jo", home / "jo")
    jo.accept("c0001")
    jo.close()
    return folder


@pytest.fixture
def share(clean, tmp_path):
    return Path(shutil.copytree(clean, tmp_path / "STUDY"))


def check(folder, home):
    return verify_study(FolderStore(folder, home, host="x", session="1"))


def test_what_came_late_is_a_note(clean, tmp_path):
    result = check(clean, tmp_path)
    assert result.problems == ()
    late = [one for one in result.notes if one.kind == "late"]
    assert [one.where.partition("(")[2] for one in late] == [
        "claim A)",
        "start A)",
        "claim B)",
        "start B)",
    ]
    assert all("the event arrived late and is ignored" in one.text for one in late)


def test_a_window_that_starts_while_the_share_is_away_knows_its_own_last_minute(tmp_path):
    """The copy is a minute old at most; what was sent and taken off the outbox was forgotten."""
    folder, home = made(tmp_path, cases=CASES), tmp_path / "home"
    mask, _ = make_masks(tmp_path)
    before = StudyClient(folder, "Ana", home)
    before.look()  # brings the copy up to date
    task = before.session.next_task()
    read_case(before.session, task, mask)
    before.session.close()  # killed before the desk could bring it up again
    folder.rename(tmp_path / "away")
    after = StudyClient(folder, "Ana", home)
    look = after.look()
    assert (look.n_read, look.n_left, look.n_unsent) == (1, len(CASES) - 1, 0)
    assert after.take_next().task != task
    # what another window does here is known, too, from the moment on when it is on this computer
    other = StudyClient(folder, "Ana", home)
    read_case(other.session, after.session.queue()[3][0], mask)
    assert after.look().n_read == 2
    (tmp_path / "away").rename(folder)
    for client in (other, after):
        client.close()
    assert after.look().n_read == 2
    assert check(folder, tmp_path / "lead").problems == ()


# ------------------------------------------------------------------------- tampering


def read_lines(path):
    return path.read_bytes().splitlines(keepends=True)


def make_line(entry, prev, seq):
    body = b'"prev":"%s","seq":%d,"entry":%s}' % (prev.encode(), seq, canonical(entry))
    return b'{"hash":"%s",%s\n' % (sha256(body).hexdigest().encode(), body)


def append(path, reader, body, seen=(), **about):
    """Add a line with right hashes; a new file where there is none."""
    lines = read_lines(path) if path.exists() else []
    last = json.loads(lines[-1]) if lines else {}
    study = path.parents[2] / "study.json"
    host, _, session = path.stem.partition("-")
    entry = {
        "schema": 1,
        "reader": reader,
        "host": host,
        "session": session,
        "at": datetime.now(UTC).isoformat(timespec="microseconds"),
        "seen": sorted(seen),
        "body": body,
        **about,
    }
    prev = last.get("hash", sha256(study.read_bytes()).hexdigest())
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(lines) + make_line(entry, prev, len(lines)))


def files_of(folder):
    return sorted((folder / "events").rglob("*.jsonl"))


def every_line(folder):
    return [(path, at) for path in files_of(folder) for at in range(len(read_lines(path)))]


def change_value(path, at):
    lines = read_lines(path)
    lines[at] = lines[at].replace(b'"act":"', b'"act":"x', 1)
    path.write_bytes(b"".join(lines))


def change_and_hash(path, at):
    """Another clock, and the line's own hash anew."""
    lines = read_lines(path)
    record = json.loads(lines[at])
    record["entry"]["at"] = "2026-11-23T09:00:00.000000+00:00"
    lines[at] = make_line(record["entry"], record["prev"], record["seq"])
    path.write_bytes(b"".join(lines))


def remove(path, at):
    lines = read_lines(path)
    path.write_bytes(b"".join([*lines[:at], *lines[at + 1 :]]))


def reorder(path, at):
    lines = read_lines(path)
    lines[at - 1], lines[at] = lines[at], lines[at - 1]
    path.write_bytes(b"".join(lines))


def tampered_lines(folder):
    """Yield (what, path, change) for lines; a change of the last alone may be seen by nobody."""
    for path, at in every_line(folder):
        is_last = at == len(read_lines(path)) - 1
        yield f"changed {path.name} {at}", lambda path=path, at=at: change_value(path, at)
        if not is_last:
            yield f"hashed {path.name} {at}", lambda path=path, at=at: change_and_hash(path, at)
            yield f"removed {path.name} {at}", lambda path=path, at=at: remove(path, at)
        if at:
            yield f"reordered {path.name} {at}", lambda path=path, at=at: reorder(path, at)


def tampered_names(folder):
    """Yield steps that are forged in the name of a reader, all of them hashed as they should be."""
    ana = next(path for path in files_of(folder) if path.name.startswith("ana-"))
    heads = [json.loads(read_lines(path)[-1])["hash"] for path in files_of(folder)]
    tips = [json.loads(line)["hash"] for path in files_of(folder) for line in read_lines(path)]
    new = folder / "events" / "ana" / "new-1.jsonl"

    def step(act, case="c0003", **more):
        return {"act": act, "case": case, "round": 1, **more}

    for act in ("claim", "start", "release", "read"):
        yield f"ben in Ana's file: {act}", lambda act=act: append(ana, "ben", step(act))
        if act != "read":  # of a reading that is the same nothing follows
            yield f"Ana's file goes on: {act}", lambda act=act: append(ana, "ana", step(act))
            yield f"no session: {act}", lambda act=act: append(new, "ana", step(act))
    for act in ("accept", "decide", "reject", "adjudicate", "reopen"):
        more = {"reason": "so", "mask": "", "choice": "ana"}
        yield f"Ana judges: {act}", lambda act=act, more=more: append(ana, "ana", step(act, **more))

    def enter_and(*steps, seen=()):
        append(new, "ana", {"act": "enter"}, seen)
        for body in steps:
            append(new, "ana", body, seen)

    other = step("read", answers='{"bpe":"marked"}')
    yield "a session that knew all: claim", lambda: enter_and(step("claim"), seen=heads)
    yield "a session that knew all: start", lambda: enter_and(step("start"), seen=tips)
    yield "knew all: another reading", lambda: enter_and(step("claim"), other, seen=tips)
    yield "knew nothing: another reading", lambda: enter_and(step("claim"), step("start"), other)
    yield (
        "a reader whom nobody knows",
        lambda: append(folder / "events" / "eve" / "new-1.jsonl", "eve", step("claim")),
    )
    yield "a case that there is not", lambda: enter_and(step("claim", "c0099"))
    yield "a step that there is not", lambda: enter_and(step("bless"))
    yield "a case of nobody", lambda: enter_and(step("claim", "c0001", occasion=1))


def tampered_masks(folder):
    """Yield masks that are swapped, changed, gone or added."""
    masks = sorted((folder / "masks").iterdir())
    contents = [path.read_bytes() for path in masks]

    def swap():
        for path, content in zip(masks, reversed(contents), strict=True):
            path.write_bytes(content)

    yield "masks swapped", swap
    for number, path in enumerate(masks):
        other = contents[1 - number]
        yield f"mask {number} is the other", lambda path=path, other=other: path.write_bytes(other)
        yield f"mask {number} gone", path.unlink
        yield f"mask {number} empty", lambda path=path: path.write_bytes(b"")
        for at in (0, 9, 40, 80, len(other) - 20):
            whole = contents[number]
            flipped = whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :]
            yield f"mask {number} byte {at}", lambda p=path, b=flipped: p.write_bytes(b)
    for name in ("note.txt", "x.nii.gz", f"{'0' * 64}.nii.gz"):
        added = folder / "masks" / name
        yield f"added masks/{name}", lambda added=added: added.write_bytes(b"x")


def tampered_files(folder):
    """Yield event files that are added: another's, a copy, one that goes on in another place."""
    for path, reader in itertools.product(files_of(folder), ("ana", "ben", "jo")):
        target = folder / "events" / reader / path.name
        if target != path:
            yield f"{path.name} added for {reader}", lambda p=path, t=target: shutil.copy(p, t)
    for path in files_of(folder):
        target = path.with_name("copy-1.jsonl")
        yield f"{path.name} added as a copy", lambda p=path, t=target: shutil.copy(p, t)
        yield f"{path.name} gone on elsewhere", lambda p=path: fork(p)


def fork(path):
    lines = read_lines(path)
    target = path.parents[1] / "copied" / path.name
    target.parent.mkdir()
    target.write_bytes(b"".join(lines[:-1]))
    append(target, path.parent.name, {"act": "note", "text": "elsewhere"})


@pytest.mark.parametrize("tamper", [tampered_lines, tampered_names, tampered_masks, tampered_files])
def test_what_was_tampered_with_is_a_failure(share, tmp_path, tamper):
    whole = {path: path.read_bytes() for path in share.rglob("*") if path.is_file()}
    unnoticed, number = [], 0
    for number, (what, change) in enumerate(tamper(share)):
        change()
        try:
            problems = check(share, tmp_path / str(number)).problems
        except FormatError:
            problems = ("cannot be read",)
        if not problems:
            unnoticed.append(what)
        for path in [path for path in share.rglob("*") if path.is_file() and path not in whole]:
            path.unlink()
        for path, content in whole.items():
            path.write_bytes(content)
        shutil.rmtree(share / "events" / "copied", ignore_errors=True)
        shutil.rmtree(share / "events" / "eve", ignore_errors=True)
    assert unnoticed == []
    assert number >= 15
