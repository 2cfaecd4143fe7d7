"""Two programs that change one clinical table: each waits for its turn, and no row is lost."""

import errno
import signal
import subprocess
import sys

import pytest
from tests.stepped import Stepped

from napari_mamamia.core.cohort import CaseRecord
from napari_mamamia.core.errors import SaveError
from napari_mamamia.io.clinical.clinical import read_clinical
from napari_mamamia.io.data_set.imported_case import add_clinical_row
from napari_mamamia.io.files import one_writer
from napari_mamamia.io.files.one_writer import wait_for_turn

OTHER_IMPORT = """
import sys
from pathlib import Path
from napari_mamamia.core.cohort import CaseRecord
from napari_mamamia.io.data_set import imported_case

write = imported_case.write_clinical

def write_when_told(*args, **options):
    print("has read the table", flush=True)
    sys.stdin.readline()
    write(*args, **options)

imported_case.write_clinical = write_when_told
imported_case.add_clinical_row(Path(sys.argv[1]), CaseRecord("THEIRS"))
"""


@pytest.fixture
def other_import(tmp_path):
    """A second program that has read the clinical table, and writes it when told."""
    program = subprocess.Popen(
        [sys.executable, "-c", OTHER_IMPORT, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdout.readline() == "has read the table\n"
    yield program
    program.stdin.close()
    program.stdout.close()
    program.wait(timeout=60)


def ids_in(folder):
    return [row.case_id for row in read_clinical(folder / "clinical_and_imaging_info.csv").records]


@pytest.mark.parametrize("earlier", [(), ("OLD",)])
def test_two_imports_at_one_time_lose_no_row(tmp_path, earlier, request):
    for case_id in earlier:
        add_clinical_row(tmp_path, CaseRecord(case_id))
    other = request.getfixturevalue("other_import")
    ours = Stepped(add_clinical_row, tmp_path, CaseRecord("OURS"))
    step = next(ours)  # without a lock this row would be written now, and lost a moment later
    assert "Waiting for another program" in step.text
    assert next(ours).text == step.text  # as long as it takes
    other.stdin.write("write\n")
    other.stdin.flush()
    ours()
    assert other.wait(timeout=60) == 0
    assert ids_in(tmp_path) == [*earlier, "THEIRS", "OURS"]
    assert [path.name for path in tmp_path.iterdir()] == ["clinical_and_imaging_info.csv"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs kill -9")
def test_a_program_that_was_killed_holds_nobody_up(tmp_path, other_import):
    ours = Stepped(add_clinical_row, tmp_path, CaseRecord("OURS"))
    next(ours)
    other_import.send_signal(signal.SIGKILL)
    other_import.wait(timeout=60)
    ours()
    assert ids_in(tmp_path) == ["OURS"]


def test_a_lock_file_that_a_crash_left_is_no_lock(tmp_path):
    (tmp_path / ".clinical_table.lock").write_text("")
    add_clinical_row(tmp_path, CaseRecord("OURS"))
    assert ids_in(tmp_path) == ["OURS"]
    assert len(list(tmp_path.iterdir())) == 1


def test_threads_of_one_program_wait_for_each_other_too(tmp_path):
    with wait_for_turn(tmp_path / "clinical_table") as turn:
        assert turn.is_alone
        ours = Stepped(add_clinical_row, tmp_path, CaseRecord("OURS"))
        next(ours)
    ours()
    assert ids_in(tmp_path) == ["OURS"]


def test_a_cancelled_wait_writes_nothing_and_keeps_no_lock(tmp_path):
    with wait_for_turn(tmp_path / "clinical_table"):
        ours = Stepped(add_clinical_row, tmp_path, CaseRecord("OURS"))
        next(ours)
        ours.close()
    assert list(tmp_path.iterdir()) == []


def test_who_locks_a_file_that_its_holder_just_removed_asks_again(tmp_path, monkeypatch):
    """Opened, then removed by the one who was done, then locked: that lock would guard nothing."""
    target = tmp_path / "table"
    lock = tmp_path / ".table.lock"
    claim, claimed = one_writer.claim, []

    def removed_before(handle):
        if not claimed:
            lock.unlink()
        claimed.append(handle)
        return claim(handle)

    monkeypatch.setattr(one_writer, "claim", removed_before)
    with wait_for_turn(target):
        assert len(claimed) == 2
        other = Stepped(wait_for_turn, target)
        next(other)  # the second lock is the one that counts
        other.close()


def test_a_file_system_without_locks_is_told(tmp_path, monkeypatch):
    def refuse(handle):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(one_writer, "claim", refuse)
    told = add_clinical_row(tmp_path, CaseRecord("OURS"))
    assert "has no locks, so two simultaneous imports into one data set may lose a row" in told
    assert ids_in(tmp_path) == ["OURS"]


def test_a_folder_that_cannot_hold_a_lock_is_a_save_error(tmp_path):
    with pytest.raises(SaveError, match=r"cannot lock .*clinical_table"):
        add_clinical_row(tmp_path / "absent", CaseRecord("OURS"))
