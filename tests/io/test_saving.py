"""The old file or the whole new one, whatever happens."""

import errno
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.stepped import Stepped

from napari_mamamia.core.errors import FormatError, SaveConflictError, SaveError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.save import saving, write_text_atomically

NOBODY = 65534


def save_while_another_file_appears(target):
    with saving(target) as temporary:
        temporary.write_text("mine")
        target.write_text("somebody else's")


def fail_while_saving(target):
    with saving(target, overwrite=True) as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError


@pytest.fixture
def read_only_folder():
    """A folder that may not be written to, also where the tests run as root."""
    folder = Path(tempfile.mkdtemp(prefix="mamamia-test-"))
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    folder.chmod(0o755 if is_root else 0o555)
    if is_root:
        os.seteuid(NOBODY)
    try:
        yield folder
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(0o755)
        folder.rmdir()


def test_a_saved_file_has_the_text_and_nothing_else_is_left(tmp_path):
    write_text_atomically(tmp_path / "note.txt", "Größe 3 mm\n")
    assert (tmp_path / "note.txt").read_bytes() == "Größe 3 mm\n".encode()
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]


def test_missing_folders_are_made(tmp_path):
    target = tmp_path / "predictions" / "my model ü" / "CASE_1.json"
    write_text_atomically(target, "{}")
    assert target.read_text() == "{}"


def test_a_saved_file_has_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "plain").write_text("x")
    write_text_atomically(tmp_path / "saved", "x")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "saved")}
    assert len(modes) == 1


def test_an_existing_target_is_a_conflict_and_stays_as_it_was(tmp_path):
    target = tmp_path / "mask.txt"
    target.write_text("expert")
    with pytest.raises(SaveConflictError, match=r"already exists at .*mask\.txt.*different name"):
        write_text_atomically(target, "new")
    assert target.read_text() == "expert"


def test_a_dangling_link_counts_as_existing(tmp_path):
    target = tmp_path / "link.txt"
    target.symlink_to(tmp_path / "nowhere")
    with pytest.raises(SaveConflictError):
        write_text_atomically(target, "new")


def test_overwriting_replaces_the_old_file_when_asked(tmp_path):
    target = tmp_path / "mask.txt"
    target.write_text("old")
    write_text_atomically(target, "new", overwrite=True)
    assert target.read_text() == "new"


def test_a_file_that_appears_while_writing_is_not_replaced(tmp_path):
    target = tmp_path / "mask.txt"
    with pytest.raises(SaveConflictError):
        save_while_another_file_appears(target)
    assert target.read_text() == "somebody else's"
    assert [path.name for path in tmp_path.iterdir()] == ["mask.txt"]


@pytest.mark.parametrize("appears", [False, True])
def test_file_systems_without_hard_links_work_the_same(tmp_path, monkeypatch, appears):
    def refuse(self, target):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    target = tmp_path / "mask.txt"
    if appears:
        with pytest.raises(SaveConflictError):
            save_while_another_file_appears(target)
        assert target.read_text() == "somebody else's"
    else:
        write_text_atomically(target, "mine")
        assert target.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["mask.txt"]


def test_without_hard_links_a_failed_renaming_takes_its_claim_back(tmp_path, monkeypatch):
    def refuse(self, target):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(SaveError):
        write_text_atomically(tmp_path / "mask.txt", "mine")
    assert list(tmp_path.iterdir()) == []


def test_an_error_in_the_block_passes_on_and_leaves_the_old_file(tmp_path):
    target = tmp_path / "mask.txt"
    target.write_text("old")
    with pytest.raises(ZeroDivisionError):
        fail_while_saving(target)
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["mask.txt"]


def test_closing_a_job_in_the_middle_of_saving_leaves_the_old_file(tmp_path):
    target = tmp_path / "mask.txt"
    target.write_text("old")

    def job():
        with saving(target, overwrite=True) as temporary:
            temporary.write_text("half")
            report_progress(0, 1)

    running = Stepped(job)
    next(running)
    running.close()
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["mask.txt"]


def test_an_error_of_ours_in_the_block_keeps_its_own_words(tmp_path):
    with pytest.raises(FormatError, match="not a mask"), saving(tmp_path / "a.txt"):
        raise FormatError("not a mask")


def test_a_disk_that_is_full_at_the_last_moment_is_a_save_error(tmp_path, monkeypatch):
    target = tmp_path / "mask.txt"
    target.write_text("old")

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SaveError, match=r"mask\.txt.*No space left.*free some space"):
        write_text_atomically(target, "new", overwrite=True)
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["mask.txt"]


@pytest.mark.skipif(sys.platform == "win32", reason="RLIMIT_FSIZE is POSIX")
def test_a_disk_that_fills_while_writing_is_a_save_error(tmp_path):
    """The system itself refuses the 4097th byte, as a full disk does."""
    target = tmp_path / "mask.txt"
    target.write_text("old")
    script = """
import resource, sys
from pathlib import Path
from napari_mamamia.core.errors import SaveError
from napari_mamamia.io.files.save import write_text_atomically
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    write_text_atomically(Path(sys.argv[1]), "x" * 100_000, overwrite=True)
except SaveError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(target)], capture_output=True, text=True, check=True
    )
    assert "free some space" in done.stdout
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["mask.txt"]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_a_read_only_folder_is_a_save_error_that_says_what_to_do(read_only_folder):
    with pytest.raises(SaveError, match=r"a\.txt.*choose a writable folder"):
        write_text_atomically(read_only_folder / "a.txt", "x")
    with pytest.raises(SaveError, match="writable folder"):
        write_text_atomically(read_only_folder / "new folder" / "a.txt", "x")


def test_a_file_where_a_folder_should_be_is_a_save_error(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(SaveError, match="check the folder and the name"):
        write_text_atomically(tmp_path / "file" / "a.txt", "x")


def test_a_folder_of_the_targets_name_is_never_replaced(tmp_path):
    target = tmp_path / "mask.txt"
    target.mkdir()
    with pytest.raises(SaveConflictError):
        write_text_atomically(target, "x")
    with pytest.raises(SaveError):
        write_text_atomically(target, "x", overwrite=True)
    assert target.is_dir()
    assert [path.name for path in tmp_path.iterdir()] == ["mask.txt"]


def test_the_checksum_of_abc_is_the_published_one(tmp_path):
    """FIPS 180-2, appendix B.1."""
    (tmp_path / "abc").write_bytes(b"abc")
    assert (
        sha256_of(tmp_path / "abc")
        == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )


def test_the_checksum_of_no_file_is_a_format_error(tmp_path):
    with pytest.raises(FormatError, match=r"gone.*No such file.*check"):
        sha256_of(tmp_path / "gone")
