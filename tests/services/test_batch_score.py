"""`mamamia score` over a batch: broken files, workers, a time limit, going on where it stopped."""

import shutil

import nibabel as nib
import numpy as np
import pytest
from typer.testing import CliRunner

from napari_mamamia.cli import app
from napari_mamamia.io.files.append_file import read_checked_lines
from napari_mamamia.io.tables.tables import read_case_scores


@pytest.fixture
def folders(tmp_path):
    """Return a folder with `reference` and `model`: 100 pairs of 4x4x4 masks, three broken."""
    array = np.zeros((4, 4, 4), np.uint8)
    array[1:3, 1:3, 1:3] = 1
    image = tmp_path / "mask.nii.gz"
    nib.save(nib.Nifti1Image(array, np.eye(4)), image)
    content = image.read_bytes()
    for folder in ("reference", "model"):
        (tmp_path / folder).mkdir()
        for number in range(100):
            (tmp_path / folder / f"C_{number:03d}.nii.gz").write_bytes(content)
    for number in (10, 20, 30):
        (tmp_path / "model" / f"C_{number:03d}.nii.gz").write_bytes(content[: 40 + number])
    return tmp_path


def score(folders, *options):
    paths = ("--reference", folders / "reference", "--prediction", folders / "model")
    command = ["score", *map(str, paths), "--out", str(folders / "out"), "--bootstrap", "0"]
    return CliRunner().invoke(app, [*command, *options])


def rows(folders):
    return read_case_scores(folders / "out" / "case_scores.csv")


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--workers", "2"),
        pytest.param(("--time-limit", "30"), marks=pytest.mark.night),
    ],
)
def test_three_broken_files_of_a_hundred_give_97_scores_three_reasons_and_exit_code_3(
    folders, options
):
    result = score(folders, *options)
    assert result.exit_code == 3, result.output
    assert sum(row.dsc == 1.0 for row in rows(folders)) == 97
    reasons = {row.case_id: row.reason for row in rows(folders) if row.reason}
    assert sorted(reasons) == ["C_010", "C_020", "C_030"]
    assert all(f"{case_id}.nii.gz" in reason for case_id, reason in reasons.items())
    if "--workers" in options:
        there = (folders / "out" / "case_scores.csv").read_bytes()
        score(folders, "--overwrite")
        assert (folders / "out" / "case_scores.csv").read_bytes() == there


@pytest.mark.usefixtures("quick_figures")
def test_a_resumed_run_scores_only_what_changed_or_failed(folders):
    score(folders)
    before = rows(folders)
    good = (folders / "model" / "C_000.nii.gz").read_bytes()
    (folders / "model" / "C_010.nii.gz").write_bytes(good)
    store = folders / "out" / "case_results.jsonl"
    n_before = len(list(read_checked_lines(store)))
    result = score(folders, "--resume")
    assert result.exit_code == 3, result.output
    added = [entry["case_id"] for entry in read_checked_lines(store)][n_before:]
    assert added == ["C_010", "C_020", "C_030"]
    assert [repr(row) for row in rows(folders) if row.case_id != "C_010"] == [
        repr(row) for row in before if row.case_id != "C_010"
    ]
    assert rows(folders)[10].dsc == 1.0


@pytest.mark.usefixtures("quick_figures")
def test_a_resumed_run_with_other_parameters_is_refused(folders):
    score(folders)
    result = score(folders, "--resume", "--profile", "paper")
    assert result.exit_code == 1
    assert "results of a different run" in str(result.exception)


def test_workers_and_a_scheduler_at_once_are_a_usage_error(folders):
    assert score(folders, "--workers", "2", "--scheduler", "tcp://127.0.0.1:1").exit_code == 2


@pytest.mark.parametrize("n_models", [1, 2])
def test_a_refused_run_leaves_nothing(folders, n_models):
    text = '{"labels": {"background": 0, "breast": 1, "tumour": 2}, "file_ending": ".nii.gz"}'
    (folders / "reference" / "dataset.json").write_text(text)
    shutil.copytree(folders / "model", folders / "second")
    more = ("--prediction", str(folders / "second")) if n_models == 2 else ()
    result = score(folders, *more)
    assert result.exit_code == 1
    assert "names the labels" in str(result.exception)
    assert not (folders / "out").exists()
