"""Whatever happens to a journal's bytes, the newest mask that is proven is what is opened."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.stepped import Stepped

from napari_mamamia.core.edits import Brush, Tool
from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.files.append_file import CheckedLines
from napari_mamamia.io.workspace.journal import read_journal
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.refine.edit_case import open_editing, save_editing

PLACES = [(3.0, 5.0, 5.0), (3.0, 10.0, 10.0), (1.0, 5.0, 12.0), (4.0, 12.0, 4.0)]
N_SAVED = 2


@pytest.fixture(scope="module")
def painting():
    sys.path.insert(0, str(Path(__file__).parent))
    import painting

    yield painting
    sys.path.remove(str(Path(__file__).parent))


@pytest.fixture(scope="module")
def case(painting):
    return painting.make_case()


def paint(editing, place):
    editing.session.press(place, Brush(tool=Tool.SPHERE, radius_mm=2.0))
    editing.session.release()
    return editing.session.labels.copy()


@pytest.fixture(scope="module")
def work(tmp_path_factory, case):
    """Two strokes, saved, two more: its folder, the journal's lines, the mask of each record.

    Records: 1 opened, 2 and 3 strokes, 4 saved, 5 and 6 strokes.
    """
    workspace = Workspace(tmp_path_factory.mktemp("work"))
    editing = open_editing(case, workspace, "Ana")
    masks = [editing.session.labels.copy()]
    for place in PLACES[:N_SAVED]:
        masks.append(paint(editing, place))
    save_editing(editing)
    masks.append(masks[-1])
    for place in PLACES[N_SAVED:]:
        masks.append(paint(editing, place))
    journal = editing.journal.path
    editing.close()
    return workspace, journal, journal.read_bytes().splitlines(keepends=True), masks


class Reopened:
    """The case opened again with other bytes in the journal."""

    def __init__(self, work, case, content):
        workspace, journal, _, _ = work
        for old in journal.parent.glob("*.journal"):
            old.unlink()
        journal.write_bytes(content)
        self.editing = open_editing(case, workspace, "Ana")
        self.labels = self.editing.session.labels.copy()
        self.notes = " ".join(self.editing.notes)
        self.kept = [old.read_bytes() for old in journal.parent.glob("*.set-aside-*.journal")]
        self.editing.close()


def newest(masks, damaged):
    """The newest mask that is proven where record `damaged` (from 1) cannot be read.

    Before the saving the mask on the disk takes over with all that follows; where its own record
    is hit, nothing tells what the strokes behind it were painted on.
    """
    if damaged < 4:
        return masks[5]
    return masks[3] if damaged < 6 else masks[4]


def test_any_byte_damaged_the_newest_proven_mask_is_opened_and_nothing_is_lost(work, case):
    _, _, lines, masks = work
    whole = b"".join(lines)
    ends = np.cumsum([len(line) for line in lines])
    rng = np.random.default_rng(4)
    # all bytes around the structure of each line, and some of those between
    places = {int(end) + by for end in (0, *ends) for by in (*range(-3, 12),)}
    places |= {int(place) for place in rng.integers(0, len(whole), 60)}
    for place in sorted(place for place in places if 0 <= place < len(whole) - 1):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << (place % 7)
        record = int(np.searchsorted(ends, place, side="right")) + 1
        again = Reopened(work, case, bytes(damaged))
        assert (again.labels == newest(masks, record)).all(), (place, record)
        assert "the journal is damaged at record" in again.notes, place
        assert again.kept == [bytes(damaged)], place


@pytest.mark.night
def test_every_single_byte_damaged_the_newest_proven_mask_is_opened(work, case):
    _, _, lines, masks = work
    whole = b"".join(lines)
    ends = np.cumsum([len(line) for line in lines])
    for place in range(len(whole) - 1):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << (place % 7)
        record = int(np.searchsorted(ends, place, side="right")) + 1
        again = Reopened(work, case, bytes(damaged))
        assert (again.labels == newest(masks, record)).all(), (place, record)


@pytest.mark.parametrize("record", range(1, 7))
def test_a_record_that_was_removed_is_noticed(work, case, record):
    _, _, lines, masks = work
    again = Reopened(work, case, b"".join(lines[: record - 1] + lines[record:]))
    expected = masks[4] if record == 6 else newest(masks, record)
    assert (again.labels == expected).all()
    if record < 6:  # that the last one is missing cannot be seen
        assert "1 record before it is missing" in again.notes


@pytest.mark.parametrize("record", range(1, 7))
def test_a_record_that_stands_there_twice_is_noticed_and_done_once(work, case, record):
    _, _, lines, masks = work
    again = Reopened(work, case, b"".join(lines[:record] + lines[record - 1 :]))
    assert (again.labels == masks[5]).all()
    assert "it is a duplicate" in again.notes
    assert "no record is lost" in again.notes


@pytest.mark.parametrize("record", range(2, 6))
def test_records_that_changed_places_are_noticed_and_done_in_their_order(work, case, record):
    _, _, lines, masks = work
    swapped = list(lines)
    swapped[record - 1], swapped[record] = swapped[record], swapped[record - 1]
    again = Reopened(work, case, b"".join(swapped))
    assert (again.labels == masks[5]).all()
    assert "the journal is damaged at record" in again.notes


def test_a_record_of_another_journal_is_not_done(work, case, tmp_path):
    _, _, lines, masks = work
    editing = open_editing(case, Workspace(tmp_path), "Ana")
    for place in PLACES[::-1]:
        paint(editing, place)
    other = editing.journal.path.read_bytes().splitlines(keepends=True)
    editing.close()
    again = Reopened(work, case, b"".join((*lines[:4], other[4], *lines[5:])))
    assert (again.labels == masks[3]).all()
    assert "it does not follow the previous record" in again.notes


@pytest.mark.parametrize("other", ["case", "reader"])
def test_a_whole_journal_of_another_mask_behind_this_one_is_noticed_and_not_done(
    work, case, tmp_path, other
):
    _, _, lines, masks = work
    theirs = replace(case, case_id="Z") if other == "case" else case
    reader = "Bo" if other == "reader" else "Ana"
    for _ in range(4):  # its last opening has a higher number than any record here
        editing = open_editing(theirs, Workspace(tmp_path), reader)
        paint(editing, PLACES[2])
        paint(editing, PLACES[3])
        save_editing(editing)
        editing.close()
    again = Reopened(work, case, b"".join(lines) + editing.journal.path.read_bytes())
    assert (again.labels == masks[5]).all()
    assert "the record belongs to case" in again.notes


def test_lines_cut_off_the_end_never_bring_back_an_older_mask_than_the_saved_one(work, case):
    _, _, lines, masks = work
    for left in range(1, 6):
        again = Reopened(work, case, b"".join(lines[:left]))
        assert (again.labels == (masks[4] if left == 5 else masks[3])).all(), left
        assert (again.editing.recovered is not None) == (left == 5), left


def test_a_saved_mask_that_no_record_tells_of_wins_over_older_records(work, case):
    _, _, lines, masks = work
    again = Reopened(work, case, b"".join(lines[:2]))
    assert (again.labels == masks[3]).all()
    assert again.editing.recovered is None
    assert "is newer than the last record" in again.notes
    assert again.kept == [b"".join(lines[:2])]


def test_what_was_painted_while_a_damaged_journal_was_saved_is_not_lost(case, tmp_path):
    workspace = Workspace(tmp_path)
    editing = open_editing(case, workspace, "Ana")
    paint(editing, PLACES[0])
    job = Stepped(save_editing, editing)
    next(job)
    now = paint(editing, PLACES[1])
    list(job)
    now = paint(editing, PLACES[2])
    path = editing.journal.path
    editing.close()
    path.write_bytes(path.read_bytes().replace(b'"kind":"opened"', b'"kind":"openex"', 1))
    again = open_editing(case, workspace, "Ana")
    assert (again.session.labels == now).all()
    assert again.recovered is not None
    again.close()


# ------------------------------------------------- journals of earlier versions


def test_a_journal_of_an_earlier_version_is_refused_by_name_and_set_aside(work, case):
    workspace, journal, *_ = work
    with CheckedLines(journal, keep=False) as old:
        old.add({"kind": "opened", "at": "", "version": 1, "software": "0.0.1"})
    with pytest.raises(FormatError, match=r"format 3.*an earlier version wrote it"):
        read_journal(journal)
    again = open_editing(case, workspace, "Ana")
    assert "an earlier version wrote it" in again.notes[0]
    assert "cannot be used" in again.notes[0]
    again.close()
