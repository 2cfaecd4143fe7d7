"""`mamamia replay` as a user runs it."""

import hashlib

import numpy as np
from typer.testing import CliRunner

from napari_mamamia.cli.app import app
from napari_mamamia.core.edits import Brush
from napari_mamamia.core.progress import run_job
from napari_mamamia.io.layout import find_data_set
from napari_mamamia.io.volumes import read_labels
from napari_mamamia.io.workspace import Workspace
from napari_mamamia.services.edit_case import open_editing
from napari_mamamia.services.open_case import load_case
from napari_mamamia.smartpaint.features import measure_features


def painted(data_set, folder):
    case = run_job(load_case(find_data_set(data_set).case("A_2")))
    images = run_job(measure_features(case))
    editing = run_job(open_editing(case, Workspace(folder), "Ana", None, images))
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
    assert "tools smartpaint" in text
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
