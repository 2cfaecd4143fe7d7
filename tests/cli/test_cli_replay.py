"""`mamamia replay` as a user runs it."""

import hashlib

import numpy as np
import pytest
from tests.cli.warm_program import mamamia
from tests.conftest import contents
from typer.testing import CliRunner

from napari_mamamia.cli.app import app
from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.difference import BitChange, Difference
from napari_mamamia.core.edits import Brush, Edit, Step, Tool
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.data_set.volumes import read_labels
from napari_mamamia.io.files.append_file import ChainedLines
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.io.workspace.journal import Opened, Saved, encoded
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.case.open_case import load_case
from napari_mamamia.services.refine.edit_case import open_editing, save_editing
from napari_mamamia.services.refine.mask_prints import crc_of
from napari_mamamia.smartpaint.brush.features import measure_features


def painted(data_set, folder):
    case = load_case(find_data_set(data_set).case("A_2"))
    images = measure_features(case)
    editing = open_editing(case, Workspace(folder), "Ana", None, images)
    for place in ((4, 17, 23), (4, 16, 22)):
        editing.session.press(place, Brush(radius_mm=5.0))
        editing.session.drag((4, 18, 24))
        editing.session.release()
    editing.close()
    return editing.journal.path, editing.session.labels


def test_replay_prints_who_did_what_and_writes_the_mask(small_data_set, tmp_path):
    journal, labels = painted(small_data_set, tmp_path / "w")
    out = tmp_path / "mask.nii.gz"
    command = ["replay", str(journal), "--case", str(small_data_set), "--out", str(out)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert labels.any()
    assert (read_labels(out).dense() == labels).all()
    text = " ".join(result.output.split())
    assert "case A_2 reader Ana sitting " in text
    assert "strokes 2 (" in text
    assert "tools evidence" in text
    assert "repeated 2 of 2 strokes bit for bit" in text
    assert f"{np.count_nonzero(labels)} voxels" in text
    assert f"sha256 {hashlib.sha256(out.read_bytes()).hexdigest()}" in text


def test_replay_without_images_makes_the_same_file_geometry_included(small_data_set, tmp_path):
    journal, _ = painted(small_data_set, tmp_path / "w")
    outs = [tmp_path / "a.nii", tmp_path / "b.nii"]
    for out, extra in zip(outs, ([], ["--case", str(small_data_set)]), strict=True):
        result = CliRunner().invoke(app, ["replay", str(journal), "--out", str(out), *extra])
        assert result.exit_code == 0, result.output
    assert outs[0].read_bytes() == outs[1].read_bytes()


@pytest.fixture
def saved_journal(small_data_set, tmp_path):
    """Three strokes, saved: the journal's lines and the mask after the first stroke."""
    case = load_case(find_data_set(small_data_set).case("A_2"))
    editing = open_editing(case, Workspace(tmp_path / "w"), "Ana")
    masks = []
    for place in ((4, 17, 23), (4, 10, 12), (3, 16, 10)):
        editing.session.press(place, Brush(tool=Tool.SPHERE, radius_mm=4.0))
        editing.session.release()
        masks.append(editing.session.labels.copy())
    save_editing(editing)
    editing.close()
    return editing.journal.path.read_bytes().splitlines(keepends=True), masks


@pytest.mark.door
@pytest.mark.parametrize(
    ("change", "n_strokes", "said"),
    [
        ("removed", 1, "1 record before it is missing"),
        ("doubled", 3, "it is a duplicate"),
        ("damaged", 1, "its checksum does not match"),
    ],
)
def test_replay_of_a_changed_journal_says_so_and_ends_with_3(
    saved_journal, tmp_path, change, n_strokes, said
):
    lines, masks = saved_journal
    second = {
        "removed": [],
        "doubled": [lines[2], lines[2]],
        "damaged": [lines[2].replace(b'"n":2', b'"n":3', 1)],
    }[change]
    journal, out = tmp_path / "A_2.journal", tmp_path / "mask.nii.gz"
    journal.write_bytes(b"".join((*lines[:2], *second, *lines[3:])))
    done = mamamia("replay", journal, "--out", out)
    assert done.returncode == 3, done.stderr
    assert said in " ".join(done.stdout.split())
    assert (read_labels(out).dense() == masks[n_strokes - 1]).all()


@pytest.mark.door
def test_replay_of_a_journal_with_another_case_behind_it_gives_its_own_mask(
    saved_journal, small_data_set, tmp_path
):
    lines, masks = saved_journal
    case = load_case(find_data_set(small_data_set).case("B_1"))
    for _ in range(3):
        editing = open_editing(case, Workspace(tmp_path / "w"), "Ana")
        for place in ((4, 20, 20), (3, 8, 30)):
            editing.session.press(place, Brush(tool=Tool.SPHERE, radius_mm=4.0))
            editing.session.release()
        save_editing(editing)
        editing.close()
    journal, out = tmp_path / "A_2.journal", tmp_path / "mask.nii.gz"
    journal.write_bytes(b"".join(lines) + editing.journal.path.read_bytes())
    done = mamamia("replay", journal, "--out", out)
    assert done.returncode == 3, done.stderr
    assert "the record belongs to case B_1, reader Ana, " in " ".join(done.stdout.split())
    assert (read_labels(out).dense() == masks[-1]).all()


def test_a_journal_that_contradicts_its_checksum_is_not_replayed_to_the_end(tmp_path):
    case_mask = np.zeros((6, 8, 10), np.uint8)
    grid = Grid(case_mask.shape, np.eye(4))
    labels = case_mask.copy()
    labels[2, 3, 4] = 1
    change = BitChange.of(labels, Box.whole(labels.shape))
    step = Step(1, Edit("one voxel"), Difference(1, (change,)))
    base = LabelMap(grid, Box.empty(), np.zeros((0, 0, 0), np.uint8))
    opened = Opened("A", "Ana", base, "", "", crc_of(case_mask))
    journal, out = tmp_path / "A.journal", tmp_path / "mask.nii"
    with ChainedLines(journal) as lines:
        for record in (opened, step, Saved("ab", crc_of(case_mask) ^ 1)):
            lines.add(encoded(record))
    result = CliRunner().invoke(app, ["replay", str(journal), "--out", str(out)])
    assert result.exit_code == 3, result.output
    assert "differs from the mask that the earlier records produce" in " ".join(
        result.output.split()
    )
    assert not read_labels(out).dense().any()


def test_a_replay_that_was_killed_before_its_mask_can_be_run_again(small_data_set, tmp_path):
    journal, _ = painted(small_data_set, tmp_path / "w")
    out = tmp_path / "mask.nii.gz"
    command = ["replay", str(journal), "--out", str(out)]
    assert CliRunner().invoke(app, command).exit_code == 0
    mask = contents(out)
    out.unlink()  # its provenance lies there alone then
    assert CliRunner().invoke(app, command).exit_code == 0
    assert contents(out) == mask
