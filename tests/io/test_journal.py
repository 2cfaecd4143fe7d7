"""The journal: what was recorded is there after any crash, and damage never passes for work."""

import errno
import os
import zlib
from itertools import count

import numpy as np
import pytest

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.difference import BitChange, Difference
from napari_mamamia.core.edits import Action, Brush, Edit, Step, Stroke, Tool, Turn
from napari_mamamia.core.errors import FormatError, SaveConflictError
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.files.append_file import ChainedLines, canonical
from napari_mamamia.io.workspace.journal import Damage, Journal, Opened, Saved, read_journal

SHAPE = (3, 4, 5)
GRID = Grid(SHAPE, np.diag([-0.7, 0.7, 2.0, 1.0]))


def opened(**changes):
    crop = np.array([[[1, 2]]], np.uint8)
    base = LabelMap(GRID, Box((1, 1, 1), (2, 2, 3)), crop)
    values = {"base_name": "prediction kinetic", "base_sha256": "ab"}
    values["labels_crc"] = zlib.crc32(base.dense())
    return Opened("DUKE_001", "Ana López", base, **{**values, **changes})


def step(number, size=1):
    labels = np.zeros(SHAPE, np.uint8)
    labels[number % 3, :size, : 1 + number % 5] = 1
    soft = np.random.default_rng(number).integers(0, 2**32, SHAPE, dtype=np.uint32)
    whole = Box.whole(SHAPE)
    brush = Brush(Tool.EVIDENCE, Action.ERASE, 0.1 + 0.2, label=3, whole=number % 2 == 1)
    edit = Edit(
        f"erase {number} mm",
        Stroke(brush, ((0.1, 1 / 3, 2e-17), (1.0, 2.0, 3.0))),
        (("locked", "2"), ("odd", float("inf"))),
        1.5,
        4,
        0.25,
        label=3,
    )
    words = (soft >> 16).astype(np.uint16)
    parts = [(BitChange.of(flipped, whole),) for flipped in (labels, soft, words)]
    return Step(number, edit, Difference(3, *parts))


def written(path, *records):
    journal = Journal(path)
    journal.begin(opened())
    for record in records:
        journal.write(record)
    journal.close()
    return path


def comparable(records):
    """Records as values that can be compared; arrays by their bytes."""
    return [
        (r.case_id, r.reader, r.base.box, r.base.crop.tobytes(), r.base_name, r.labels_crc)
        if isinstance(r, Opened)
        else r
        for r in (placed.record for placed in records)
    ]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "refined" / "Ana López" / "DUKE_001.journal"


def test_what_is_read_is_what_was_written_to_the_last_bit(path):
    records = (step(1), Turn.UNDO, Turn.REDO, step(2), Saved("cd", 9))
    contents = read_journal(written(path, *records))
    assert contents.damage is None
    first, *others = (placed.record for placed in contents.records)
    assert tuple(others) == records
    assert first.base.grid == GRID
    assert first.base.dense()[1, 1].tolist() == [0, 1, 2, 0, 0]
    assert (first.case_id, first.reader, first.base_name) == (
        "DUKE_001",
        "Ana López",
        "prediction kinetic",
    )


def test_a_look_without_a_step_leaves_no_file(path):
    written(path)
    assert not path.exists()


def test_a_second_opening_goes_on_in_the_same_file(path):
    written(path, step(1))
    written(path, step(2))
    kinds = [type(placed.record).__name__ for placed in read_journal(path).records]
    assert kinds == ["Opened", "Step", "Opened", "Step"]


def test_a_step_is_on_the_disk_as_soon_as_it_is_written(path):
    journal = Journal(path)
    journal.begin(opened())
    journal.write(step(1))
    assert len(read_journal(path).records) == 2  # while the journal is still open
    journal.close()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The bytes of a journal of three records, and where each ends."""
    path = written(tmp_path_factory.mktemp("journal") / "A.journal", step(1), Turn.UNDO)
    content = path.read_bytes()
    ends = [at + 1 for at in range(len(content)) if content[at : at + 1] == b"\n"]
    return content, ends, comparable(read_journal(path).records)


def test_cut_anywhere_all_whole_records_before_the_cut_are_read(small, tmp_path):
    content, ends, whole = small
    path = tmp_path / "cut.journal"
    for length in range(len(content)):
        path.write_bytes(content[:length])
        contents = read_journal(path)
        n_whole = sum(end <= length for end in ends)
        assert comparable(contents.records) == whole[:n_whole], length
        is_torn = length > 0 and length not in ends
        assert (contents.damage is not None) == is_torn, length
        assert contents.damage is None or contents.damage.reason == "it is incomplete"


def test_a_flipped_bit_in_any_byte_loses_that_record_and_those_after_it_only(small, tmp_path):
    content, ends, whole = small
    path = tmp_path / "flipped.journal"
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 1 << (at % 8)
        path.write_bytes(damaged)
        hit = sum(end <= at for end in ends)
        contents = read_journal(path)
        assert comparable(contents.records) == whole[:hit], at
        assert isinstance(contents.damage, Damage), at
        assert contents.damage.record == hit + 1, at


def test_damage_in_the_middle_is_told_with_numbers(path):
    written(path, step(1), step(2), step(3))
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"erase 2", b"erase 9")
    path.write_bytes(b"".join(lines))
    damage = read_journal(path).damage
    assert (damage.record, damage.start) == (3, len(lines[0] + lines[1]))
    assert damage.text == f"record 3 (byte {damage.start}): its checksum does not match"


def test_a_torn_last_record_is_cut_off_before_the_next_is_written(path):
    written(path, step(1))
    with path.open("ab") as stream:
        stream.write(b'{"check":"0123')
    written(path, step(2))
    contents = read_journal(path)
    assert contents.damage is None
    assert [p.record.number for p in contents.records if isinstance(p.record, Step)] == [1, 2]


def test_another_format_version_is_refused_with_the_version_that_wrote_it(path):
    with ChainedLines(path, keep=False) as lines:
        entry = {"at": "", "kind": "opened", "version": 9, "software": "napari-mamamia 7.0"}
        lines.add(canonical(entry))
    with pytest.raises(FormatError, match=r"found format 9, written by napari-mamamia 7\.0"):
        read_journal(path)


def test_a_file_that_is_no_journal_is_refused(path):
    with ChainedLines(path, keep=False) as lines:
        lines.add(canonical({"at": "", "kind": "undo"}))
    with pytest.raises(FormatError, match="its first record is 'undo'"):
        read_journal(path)


@pytest.mark.skipif(os.name == "nt", reason="no file locks there")
def test_a_second_window_is_told_that_the_journal_is_taken(path):
    journal = Journal(path)
    with pytest.raises(SaveConflictError):
        Journal(path)
    journal.close()
    Journal(path).close()


# ------------------------------------------------------------------------ faults


def full_disk(monkeypatch, is_full):
    """Let the system refuse to write, after half of each record, while `is_full` says so."""
    write = os.write

    def refuse(handle, content):
        if is_full():
            write(handle, content[: len(content) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(handle, content)

    monkeypatch.setattr(os, "write", refuse)


def test_on_a_full_disk_steps_wait_and_are_written_when_there_is_room(path, monkeypatch):
    is_full = False
    full_disk(monkeypatch, lambda: is_full)
    journal = Journal(path)
    journal.begin(opened())
    journal.write(step(1))
    assert journal.problem == ""
    is_full = True
    journal.write(step(2))
    journal.write(Turn.UNDO)
    assert journal.waiting == 2
    assert "NOT recorded: No space left on device; 2 records would be lost" in journal.problem
    assert len(read_journal(path).records) == 2  # no half record
    assert journal.read_back(2).same_bits(step(2).difference)
    is_full = False
    journal.write(Turn.REDO)
    assert (journal.problem, journal.waiting) == ("", 0)
    journal.close()
    contents = read_journal(path)
    assert [p.record for p in contents.records[1:]] == [step(1), step(2), Turn.UNDO, Turn.REDO]


def test_a_folder_that_cannot_be_written_is_said_and_tried_again(path, monkeypatch):
    real_open = os.open
    is_read_only = True

    def refuse(name, flags, *mode):
        if is_read_only and str(name).endswith(".journal"):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return real_open(name, flags, *mode)

    monkeypatch.setattr(os, "open", refuse)
    journal = Journal(path)
    journal.begin(opened())
    journal.write(step(1))
    assert "Read-only file system; 2 records would be lost" in journal.problem
    is_read_only = False
    journal.retry()
    assert journal.problem == ""
    journal.close()
    assert len(read_journal(path).records) == 2


def test_a_disk_that_does_not_take_lines_for_good_is_said(path, monkeypatch):
    journal = Journal(path)
    journal.begin(opened())
    journal.write(step(1))

    def refuse(handle):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", refuse)
    journal.close()
    assert "Input/output error" in journal.problem


def test_old_steps_are_read_back_from_the_file(path):
    journal = Journal(path)
    journal.begin(opened())
    for number in range(1, 6):
        journal.write(step(number))
    for number in (5, 1, 3):
        assert journal.read_back(number).same_bits(step(number).difference)
    with pytest.raises(FormatError, match="step 77"):
        journal.read_back(77)
    journal.close()


def test_a_step_whose_record_was_damaged_meanwhile_is_not_read_back(path):
    journal = Journal(path)
    journal.begin(opened())
    journal.write(step(1))
    content = path.read_bytes()
    path.write_bytes(content.replace(b"erase 1", b"erase 7"))
    with pytest.raises(FormatError, match="cannot be undone; your mask is unchanged"):
        journal.read_back(1)
    journal.close()


def test_a_journal_set_aside_keeps_its_content_under_a_free_name(path):
    contents = []
    for number in count(1):
        written(path, step(number))
        contents.append(path.read_bytes())
        journal = Journal(path)
        target = journal.set_aside()
        journal.close()
        assert target.name == f"DUKE_001.set-aside-{number}.journal"
        assert target.read_bytes() == contents[-1]
        if number == 2:
            break
    assert path.with_name("DUKE_001.set-aside-1.journal").read_bytes() == contents[0]


def test_a_journal_that_somebody_removed_is_put_back_with_all_its_steps(path):
    journal = Journal(path)
    journal.begin(opened())
    journal.write(step(1))
    path.unlink()
    journal.write(step(2))
    assert journal.problem == ""
    assert journal.read_back(1).same_bits(step(1).difference)
    journal.close()
    assert [p.record for p in read_journal(path).records[1:]] == [step(1), step(2)]


def test_a_file_put_in_the_place_of_the_journal_is_kept_beside_it(path):
    journal = Journal(path)
    journal.begin(opened())
    journal.write(step(1))
    path.rename(path.with_name("mine"))
    path.write_text("another program's")
    journal.write(step(2))
    journal.close()
    assert [p.record for p in read_journal(path).records[1:]] == [step(1), step(2)]
    assert path.with_name("DUKE_001.set-aside-1.journal").read_text() == "another program's"


def test_a_record_that_comes_after_closing_is_written_and_the_file_let_go_of(path):
    journal = Journal(path)
    journal.begin(opened())
    journal.write(step(1))
    journal.close()
    journal.write(Saved("ab", 1))
    Journal(path).close()  # not taken
    assert read_journal(path).records[-1].record == Saved("ab", 1)


def test_numbers_of_numpy_are_recorded_as_plain_ones(path):
    edit = Edit("grow", parameters=(("weight", np.float32(0.5)), ("n", np.int64(3))))
    journal = Journal(path)
    journal.begin(opened())
    journal.write(Step(1, edit, step(1).difference))
    journal.close()
    assert read_journal(path).records[1].record.edit.parameters == (("weight", 0.5), ("n", 3))
