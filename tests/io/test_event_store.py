"""Events of several writers: each has a file of its own, and reading joins them."""

import hashlib
import json
import random
import shutil

import pytest

from napari_mamamia.io.files.append_file import NO_ORIGIN, ChainedLines, canonical
from napari_mamamia.io.workspace import event_store
from napari_mamamia.io.workspace.event_store import EventWriter, read_events


def write(folder, reader, *bodies, session="1", seen=(), at="2026-11-22T12:00:00+00:00"):
    """Write events with a clock of the test's own; return the hash of the last."""
    path = folder / reader / f"H-{session}.jsonl"
    with ChainedLines(path) as lines:
        for body in bodies:
            entry = {"schema": 1, "reader": reader, "host": "H", "session": session}
            lines.add(canonical({**entry, "at": at, "seen": list(seen), "body": body}))
        return lines.head


def told(log):
    return [(event.reader, event.body["n"]) for event in log.events]


def file_of(folder, reader):
    (path,) = (folder / reader).iterdir()
    return path


def test_a_folder_that_is_not_there_holds_no_events(tmp_path):
    assert read_events(tmp_path / "none").events == ()


def test_what_is_appended_is_read_again(tmp_path):
    with EventWriter(tmp_path, "Ana López", host="H", session="7") as writer:
        made = [writer.append({"n": n, "text": "Größe"}) for n in range(3)]
    log = read_events(tmp_path)
    assert log.events == tuple(made)
    assert [event.seq for event in made] == [0, 1, 2]
    assert log.problems == ()
    assert writer.path == tmp_path / "Ana López" / "H-7.jsonl"


def test_a_line_is_canonical_json_that_another_program_can_check(tmp_path):
    with EventWriter(tmp_path, "Ana", host="H", session="7") as writer:
        for n in range(2):
            writer.append({"b": "é", "a": n})
    prev = "0" * 64
    for seq, line in enumerate(writer.path.read_text("utf-8").splitlines()):
        own, rest = line[len('{"hash":"') :][:64], line[len('{"hash":"",') + 64 :]
        assert own == hashlib.sha256(rest.encode()).hexdigest()
        content = json.loads(line)
        assert (content["prev"], content["seq"]) == (prev, seq)
        entry = content["entry"]
        assert rest.endswith(
            '"entry":'
            + json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            + "}"
        )
        prev = own


def test_another_header_file_is_noticed(tmp_path):
    one, other = "a" * 64, "b" * 64
    with EventWriter(tmp_path, "Ana", origin=one) as writer:
        writer.append({"n": 0})
    assert read_events(tmp_path, one).problems == ()
    (problem,) = read_events(tmp_path, other).problems
    assert problem.text == "line 1: it does not follow the previous record"


@pytest.mark.parametrize("body", [{"x": 0.5}, {"x": [{"y": 1.0}]}, {"x": float("nan")}, {1: "x"}])
def test_what_does_not_read_back_the_same_everywhere_is_refused(tmp_path, body):
    with EventWriter(tmp_path, "Ana") as writer:
        with pytest.raises(TypeError):
            writer.append(body)
        writer.append({"n": 0})
    assert told(read_events(tmp_path)) == [("Ana", 0)]


def test_events_come_after_those_that_their_writer_had_seen_whatever_the_clocks_say(tmp_path):
    head = write(tmp_path, "Ana", {"n": 0}, {"n": 1}, at="2026-11-23T12:00:00+00:00")
    head = write(tmp_path, "Ben", {"n": 2}, seen=[head], at="2026-11-21T12:00:00+00:00")
    write(tmp_path, "Cem", {"n": 3}, seen=[head], at="2026-11-20T12:00:00+00:00")
    write(tmp_path, "Dora", {"n": 4}, at="2026-11-22T12:00:00+00:00")
    order = [("Dora", 4), ("Ana", 0), ("Ana", 1), ("Ben", 2), ("Cem", 3)]
    assert told(read_events(tmp_path)) == order


def test_heads_are_the_last_event_of_each_file(tmp_path):
    heads = [write(tmp_path, reader, {"n": 0}, {"n": 1}) for reader in ("Ana", "Ben")]
    assert read_events(tmp_path).heads == tuple(sorted(heads))


def test_a_line_that_is_being_written_is_no_problem_and_is_cut_by_its_own_writer_only(tmp_path):
    with EventWriter(tmp_path, "Ana", session="1") as writer:
        writer.append({"n": 0})
    whole = writer.path.read_bytes()
    writer.path.write_bytes(whole + b'{"hash":"00')
    log = read_events(tmp_path)
    assert (told(log), log.problems) == ([("Ana", 0)], ())
    with EventWriter(tmp_path, "Ana", session="2") as other:
        other.append({"n": 1})
    assert writer.path.read_bytes() == whole + b'{"hash":"00'
    with EventWriter(tmp_path, "Ana", session="1") as again:
        again.append({"n": 2})
    log = read_events(tmp_path)
    assert (sorted(told(log)), log.problems) == ([("Ana", 0), ("Ana", 1), ("Ana", 2)], ())


@pytest.mark.parametrize(
    ("change", "left", "why"),
    [
        (lambda a, b, c: a + c, [0, 2], "line 2: 1 record before it is missing"),
        (lambda a, b, c: a + b.replace(b'"n":1', b'"n":7') + c, [0, 2], "its checksum does not"),
        (lambda a, b, c: a + b"nonsense\n" + b + c, [0, 1, 2], "line 2: its checksum does not"),
        (lambda a, b, c: a + b[:-1] + b"#" + c, [0, 2], "line 2: its checksum does not"),
    ],
)
def test_damage_is_told_and_every_line_that_is_as_it_was_still_counts(tmp_path, change, left, why):
    write(tmp_path, "Ana", *({"n": n} for n in range(3)))
    path = file_of(tmp_path, "Ana")
    path.write_bytes(change(*path.read_bytes().splitlines(keepends=True)))
    log = read_events(tmp_path)
    assert sorted(n for _, n in told(log)) == left
    assert why in log.problems[0].text


def test_a_file_that_was_copied_counts_once_and_two_histories_of_it_are_a_fork(tmp_path):
    write(tmp_path, "Ana", {"n": 0}, {"n": 1})
    path = file_of(tmp_path, "Ana")
    shutil.copy(path, path.with_name("H-1 (conflict).jsonl"))
    log = read_events(tmp_path)
    assert (told(log), log.problems) == ([("Ana", 0), ("Ana", 1)], ())
    write(tmp_path, "Ana", {"n": 2})
    with ChainedLines(path.with_name("H-1 (conflict).jsonl")) as lines:
        entry = {"schema": 1, "reader": "Ana", "host": "H", "session": "1", "seen": []}
        lines.add(canonical({**entry, "at": "2026-11-22T12:00:00+00:00", "body": {"n": 3}}))
    log = read_events(tmp_path)
    assert sorted(told(log)) == [("Ana", n) for n in range(4)]
    assert [problem.text for problem in log.problems] == [
        "event 2 exists in two versions, and both are used"
    ]


def test_only_what_is_new_is_read_again(tmp_path):
    write(tmp_path, "Ana", {"n": 0})
    write(tmp_path, "Ben", {"n": 1})
    log = read_events(tmp_path)
    # bytes that were read before are not looked at again: the file's size and last hash are kept
    path = file_of(tmp_path, "Ana")
    content = path.read_bytes()
    write(tmp_path, "Ana", {"n": 2})
    path.write_bytes(path.read_bytes().replace(b'"n":0', b'"n":9'))
    grown = read_events(tmp_path, known=log)
    assert sorted(told(grown)) == [("Ana", 0), ("Ana", 2), ("Ben", 1)]
    assert grown.problems == ()
    path.write_bytes(content[:-10])
    (problem,) = read_events(tmp_path, known=grown).problems
    assert problem.text == "events that were read before but are missing now: 2"
    shutil.rmtree(tmp_path / "Ben")
    assert "is missing now" in read_events(tmp_path, known=log).problems[0].text


def test_a_link_is_neither_read_nor_written_through(tmp_path):
    outside = tmp_path / "outside.jsonl"
    with ChainedLines(outside) as lines:
        lines.add(b"{}")
    (tmp_path / "store" / "Ana").mkdir(parents=True)
    link = tmp_path / "store" / "Ana" / "H-1.jsonl"
    link.symlink_to(outside)
    assert read_events(tmp_path / "store").events == ()
    before = outside.read_bytes()
    with pytest.raises(OSError, match="it is a link to another path"):
        EventWriter(tmp_path / "store", "Ana", host="H", session="1")
    assert outside.read_bytes() == before


def test_nothing_is_bound_to_the_first_line_but_zeros_without_a_header_file():
    assert NO_ORIGIN == "0" * 64


FOREIGN = (
    b'{"n":1,"n":2}',
    b'{"n":NaN}',
    b'{"n":-12345678901234567890}',
    b'{"n":%s}' % (b"9" * 21),
    b'{"n":1e400}',
    b'{"n":"\\ud800"}',
    b'{"n":"\\u00fc \xc3\xbc"}',
    b'{"n":"\xff"}',
    b'{"n":%s1%s}' % (b"[" * 70, b"]" * 70),
    b'{"n":%s1%s}' % (b"[" * 60, b"]" * 60),
    b'{ "n" : 1 }',
    b'{"n":1},"host":"H","reader":"Ana","schema":1,"seen":[],"session":"1"}',
    b'["n"]',
    b'{"n":"a\tb"}',
    b'{"host":"H","reader":"Ana","schema":1,"seen":[],"session":"1"}',
)


def write_foreign(path, bodies):
    """A chain whose hashes fit, whatever the bodies are: somebody else's program wrote it."""
    path.parent.mkdir(parents=True)
    prev, lines = NO_ORIGIN, []
    for seq, body in enumerate(bodies):
        at = b"2026-11-22T12:00:%02d.000000+00:00" % seq
        entry = b'{"at":"%s","body":%s,"host":"H","reader":"Ana","schema":1' % (at, body)
        entry += b',"seen":[],"session":"1"}'
        text = b'"prev":"%s","seq":%d,"entry":%s}' % (prev.encode(), seq, entry)
        prev = hashlib.sha256(text).hexdigest()
        lines.append(b'{"hash":"%s",%s\n' % (prev.encode(), text))
    path.write_bytes(b"".join(lines))


@pytest.mark.parametrize("foreign", range(len(FOREIGN)))
def test_the_quick_way_reads_foreign_json_as_line_by_line(tmp_path, monkeypatch, foreign):
    bodies = [b'{"n":0}', FOREIGN[foreign], b'{"n":%d}' % (1 << 60)]
    write_foreign(tmp_path / "Ana" / "H-1.jsonl", bodies)
    quick = read_events(tmp_path)
    monkeypatch.setattr(event_store, "_scan_whole_lines", lambda *_: None)
    slow = read_events(tmp_path)
    assert repr(quick) == repr(slow)  # nan is not itself
    is_refused = foreign in (3, 5, 7, 8, 11, 12, 13)
    assert len(quick.chains["Ana/H-1.jsonl"]) == 3 - is_refused
    assert bool(quick.problems) == is_refused


@pytest.mark.parametrize("seed", range(20))
def test_the_quick_way_finds_damage_as_line_by_line(tmp_path, monkeypatch, seed):
    rng = random.Random(seed)
    path = tmp_path / "Ana" / "H-1.jsonl"
    write_foreign(path, [b'{"n":%d,"text":"\xc3\xbc"}' % n for n in range(5)])
    data = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(data))
        data[at : at + rng.choice((0, 1, 1, 40))] = rng.choice((b"", b"\n", b'"', b"7", data[:90]))
    path.write_bytes(data)
    quick = read_events(tmp_path)
    monkeypatch.setattr(event_store, "_scan_whole_lines", lambda *_: None)
    assert read_events(tmp_path) == quick
