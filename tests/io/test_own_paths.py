"""Temporary paths name their process: what ended ones left is removed, what lives never."""

import ast
import os
import stat
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.source import SOURCE, modules_with

from napari_mamamia.core.errors import SaveError
from napari_mamamia.core.program.owner import this_process
from napari_mamamia.io.files import own_paths
from napari_mamamia.io.files.own_paths import (
    can_write_in,
    new_path_in,
    own_folder,
    place_folder,
    sweep,
    sweep_below,
    sweep_temporary,
)

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def ended():
    return replace(this_process(), start="0badc0de")


def left_by(owner, folder, end=".part", *, is_folder=False):
    path = folder / f".mamamia-{owner}-0a1b2c3d{end}"
    if is_folder:
        path.mkdir(parents=True)
        (path / "inner.dcm").write_bytes(b"patient")
    else:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"half")
    return path


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_files_and_folders_of_ended_processes_go_and_nothing_else(tmp_path):
    gone = [left_by(ended(), tmp_path), left_by(ended(), tmp_path, ".parts", is_folder=True)]
    kept = [
        left_by(this_process(), tmp_path),
        left_by(replace(ended(), host="00000000"), tmp_path, is_folder=True),
        tmp_path / "mask.nii.gz",
        tmp_path / ".mamamia-notes",
        tmp_path / ".mamamia-0a1b2c3d4e5f.part",
    ]
    for path in kept[2:]:
        path.write_bytes(b"a person's")
    sweep(tmp_path)
    assert not any(path.exists() for path in gone)
    assert all(path.exists() for path in kept)


def test_a_link_with_such_a_name_goes_but_not_what_it_leads_to(tmp_path):
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/mask").write_bytes(b"1")
    link = left_by(ended(), tmp_path)
    link.unlink()
    link.symlink_to(tmp_path / "theirs")
    sweep(tmp_path)
    assert not link.is_symlink()
    assert (tmp_path / "theirs/mask").exists()


def test_a_path_of_another_account_stays(tmp_path, monkeypatch):
    path = left_by(ended(), tmp_path)
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    sweep(tmp_path)
    assert path.exists()


def test_a_path_of_another_computer_goes_when_nothing_in_it_changed_for_a_week(tmp_path):
    elsewhere = replace(this_process(), host="00000000")
    old = left_by(elsewhere, tmp_path, is_folder=True)
    busy = left_by(elsewhere, tmp_path, ".parts", is_folder=True)
    week = time.time() - 7 * 24 * 3600 - 60
    for path in (old / "inner.dcm", old, busy):
        os.utime(path, (week, week))
    sweep(tmp_path)
    assert not old.exists()
    assert busy.exists()


def test_a_folder_that_was_set_aside_gets_its_name_back_unless_there_is_a_new_one(tmp_path):
    left_by(ended(), tmp_path, ".was-DUKE_001.v2", is_folder=True)
    replaced = left_by(ended(), tmp_path, ".was-DUKE_002", is_folder=True)
    (tmp_path / "DUKE_002").mkdir()
    sweep(tmp_path)
    assert (tmp_path / "DUKE_001.v2/inner.dcm").read_bytes() == b"patient"
    assert list((tmp_path / "DUKE_002").iterdir()) == []
    assert not replaced.exists()


def test_folders_below_are_swept_but_links_are_not_followed(tmp_path):
    deep = left_by(ended(), tmp_path / "out/nnunet/Dataset501_X/imagesTr")
    other = left_by(ended(), tmp_path / "other")
    (tmp_path / "out/link").symlink_to(tmp_path / "other")
    sweep_below(tmp_path / "out")
    assert not deep.exists()
    assert other.exists()


def test_sweeping_a_folder_that_is_not_there_or_a_file_is_no_error(tmp_path):
    (tmp_path / "file").touch()
    sweep_below(tmp_path / "file")
    assert sweep(tmp_path / "none") == []


def test_the_first_temporary_path_of_a_process_sweeps_its_folder(tmp_path):
    path = left_by(ended(), tmp_path)
    new = new_path_in(tmp_path)
    assert not path.exists()
    assert new.name.startswith(f".mamamia-{this_process()}-")
    assert not new.exists()


def test_an_own_folder_is_for_this_account_only_and_goes_with_the_block(tmp_path):
    with own_folder(tmp_path / "made") as folder:
        assert mode(folder) == 0o700
        closed = folder / "closed"
        closed.mkdir()
        (closed / "file").touch()
        closed.chmod(0)
    assert list((tmp_path / "made").iterdir()) == []


def test_an_own_folder_that_cannot_be_made_is_one_error_with_a_remedy(tmp_path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(SaveError, match=r"cannot write in .* choose another"),
        own_folder(tmp_path / "file"),
    ):
        pass


def test_a_folder_that_gets_its_name_has_the_mode_of_new_folders(tmp_path):
    before = os.umask(0o027)
    try:
        with own_folder(tmp_path) as folder:
            (folder / "a").touch()
            place_folder(folder, tmp_path / "case")
    finally:
        os.umask(before)
    assert mode(tmp_path / "case") == 0o750
    assert [path.name for path in tmp_path.iterdir()] == ["case"]


def test_a_folder_is_replaced_whole_or_comes_back(tmp_path, monkeypatch):
    case = tmp_path / "case"
    case.mkdir()
    (case / "old").touch()
    with own_folder(tmp_path) as folder:
        (folder / "new").touch()
        place_folder(folder, case, case)
    assert [path.name for path in case.iterdir()] == ["new"]
    rename = Path.rename

    def full(path, target):
        if path.name.endswith(".part") and target == case:
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", full)
    with own_folder(tmp_path) as folder, pytest.raises(OSError, match="No space"):
        place_folder(folder, case, case)
    assert [path.name for path in case.iterdir()] == ["new"]
    assert [path.name for path in tmp_path.iterdir()] == ["case"]


def test_a_program_that_is_killed_leaves_what_the_next_one_removes(tmp_path, monkeypatch):
    code = """
import os, sys
from napari_mamamia.io.files.own_paths import own_folder
with own_folder() as folder:
    (folder / "patient.dcm").write_bytes(b"DICM")
    print(folder, flush=True)
    os.kill(os.getpid(), 9)
"""
    environment = dict(os.environ, TMPDIR=str(tmp_path))
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    folder = Path(said.stdout.strip())
    assert folder.parent == tmp_path
    assert (folder / "patient.dcm").exists()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    sweep_temporary()
    assert list(tmp_path.iterdir()) == []


def test_whether_a_folder_can_be_written_to_leaves_nothing_in_it(tmp_path):
    assert can_write_in(tmp_path)
    assert not can_write_in(tmp_path / "none")
    assert list(tmp_path.iterdir()) == []


IN_THE_ROOM = {"in_sandbox.py", "codabench_score.py"}
"""Programs that run inside a closed room or a container, whose /tmp goes with it."""


def test_only_one_module_makes_temporary_paths():
    """No other module imports tempfile or makes up a name for something unfinished."""
    found = []
    for path, tree in modules_with(r"\btempfile\b|\.(part|tmp|old)\b"):
        if path == Path(own_paths.__file__) or path.name in IN_THE_ROOM:
            continue
        for node in ast.walk(tree):
            names = [a.name for a in getattr(node, "names", ()) if isinstance(a, ast.alias)]
            names += [getattr(node, "module", None)]
            text = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
            is_name = isinstance(text, str) and text.endswith((".part", ".tmp", ".old"))
            if "tempfile" in names or is_name:
                found.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert found == []
