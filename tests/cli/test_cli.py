"""The command line as its user runs it: outputs, exit codes, error texts."""

import csv
import json
import os
import shutil

import nibabel as nib
import numpy as np
import pytest
import typer
from tests.cli.warm_program import mamamia

from napari_mamamia.cli.printing import run
from napari_mamamia.core.progress import report_progress
from napari_mamamia.services.case.data_set import open_data_set


def test_help_names_every_command():
    done = mamamia("--help")
    assert done.returncode == 0
    for command in ("demo", "cases", "predict", "score", "export", "view"):
        assert command in done.stdout


def test_usage_errors_exit_with_2():
    assert mamamia("predict").returncode == 2
    assert mamamia("no-such-command").returncode == 2


def test_the_main_job_from_end_to_end(small_data_set, tmp_path):
    predictions, scores, bundle = (tmp_path / name for name in ("pred", "scores", "bundle"))
    done = mamamia("predict", small_data_set, "--model", "kinetic", "--out", predictions)
    assert done.returncode == 0, done.stderr
    assert "not a trained model" in done.stdout
    expert = small_data_set / "segmentations" / "expert"
    done = mamamia("score", "--reference", expert, "--prediction", predictions, "--out", scores)
    assert done.returncode == 0, done.stderr
    with (scores / "case_scores.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["case_id"] for row in rows] == ["A_1", "A_2", "B_1"]
    columns = "case_id status dsc iou hausdorff95_mm hausdorff95_voxels hausdorff_mm assd_mm "
    columns += "nsd_1mm volume_reference_mm3 volume_prediction_mm3"
    assert set(columns.split()) <= set(rows[0])
    assert all(float(row["dsc"]) > 0.7 for row in rows)
    done = mamamia("export", small_data_set, "--masks", predictions, "--out", bundle)
    assert done.returncode == 0, done.stderr
    assert len(json.loads((bundle / "manifest.json").read_text())["cases"]) == 3


def test_one_case_can_be_chosen_and_the_folder_resumed(small_data_set, tmp_path):
    out = tmp_path / "out"
    assert mamamia("predict", small_data_set, "--case", "A_2", "--out", out).returncode == 0
    refused = mamamia("predict", small_data_set, "--case", "A_1", "--out", out)
    assert refused.returncode == 1
    assert "--resume" in refused.stderr
    assert "Traceback" not in refused.stderr
    done = mamamia("predict", small_data_set, "--out", out, "--resume")
    assert done.returncode == 0
    assert sorted(path.name for path in out.glob("*.nii.gz")) == [
        f"{case}.nii.gz" for case in ("A_1", "A_2", "B_1")
    ]


def test_a_case_that_fails_is_named_and_the_exit_code_is_3(small_data_set, tmp_path):
    (small_data_set / "images/A_2/A_2_0001.nii.gz").write_text("this is text")
    done = mamamia("predict", small_data_set, "--out", tmp_path / "out")
    assert done.returncode == 3
    assert "failed: A_2:" in done.stderr
    assert (tmp_path / "out" / "B_1.nii.gz").exists()


def test_scoring_with_a_missing_prediction_exits_with_3(small_data_set, tmp_path):
    expert = small_data_set / "segmentations" / "expert"
    half = tmp_path / "half"
    half.mkdir()
    nib.save(nib.load(expert / "A_1.nii.gz"), half / "A_1.nii.gz")
    out = tmp_path / "out"
    done = mamamia("score", "--reference", expert, "--prediction", half, "--out", out)
    assert done.returncode == 3
    text = (out / "case_scores.csv").read_text()
    assert text.count("prediction_missing") == 2


def test_cases_lists_problems_and_can_print_csv(small_data_set):
    assert mamamia("cases", small_data_set).returncode == 0
    (small_data_set / "images/A_1/A_1_0002.nii.gz").unlink()
    done = mamamia("cases", small_data_set, "--csv")
    assert done.returncode == 3
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert rows[0]["case_id"] == "A_1"
    assert "phase 2 of" in rows[0]["problems"]


def test_a_copied_data_set_does_not_list_the_masks_of_the_first(small_data_set):
    opened = open_data_set(small_data_set)
    mask = opened.workspace.refined("Ana", "A_1")
    mask.parent.mkdir(parents=True)
    shutil.copy(small_data_set / "segmentations" / "expert" / "A_1.nii.gz", mask)
    assert "Ana" in mamamia("cases", small_data_set, "--csv").stdout
    copy = small_data_set.with_name("copy")
    shutil.copytree(small_data_set, copy)
    done = mamamia("cases", copy, "--csv")
    assert "Ana" not in done.stdout
    assert str(opened.workspace.root) in done.stderr
    assert "Ana" in mamamia("cases", small_data_set, "--csv").stdout


def test_a_foreign_folder_is_one_line_not_a_traceback(tmp_path):
    done = mamamia("cases", tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_resume_and_overwrite_exclude_each_other(small_data_set, tmp_path):
    out = tmp_path / "out"
    done = mamamia("predict", small_data_set, "--out", out, "--resume", "--overwrite")
    assert done.returncode == 2


def test_no_display_is_needed(small_data_set, tmp_path, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert mamamia("predict", small_data_set, "--out", tmp_path / "out").returncode == 0


@pytest.mark.real
def test_the_mask_of_a_real_slice_lies_on_its_tumour(real_data, tmp_path):
    out = tmp_path / "out"
    done = mamamia("predict", real_data("dce_slice"), "--model", "kinetic", "--out", out)
    assert done.returncode == 0, done.stderr
    image = nib.load(out / "REAL_001.nii.gz")
    mask = np.asanyarray(image.dataobj)
    assert "".join(nib.aff2axcodes(image.affine)) == "PSR"
    places = np.argwhere(mask)  # file axes: x runs to posterior, y to superior
    towards_posterior = places[:, 0].mean()
    row_from_the_top = (mask.shape[1] - 1 - places[:, 1]).mean()
    assert 85 <= towards_posterior <= 115
    assert 95 <= row_from_the_top <= 125


def test_ctrl_c_says_what_is_kept_closes_the_job_and_exits_with_130(capsys):
    closed = []

    def job():
        try:
            report_progress(0, 1)
            raise KeyboardInterrupt
        finally:
            closed.append(True)

    with pytest.raises(typer.Exit) as stop:
        run(job)
    assert stop.value.exit_code == 130
    assert closed == [True]
    assert "finished results are kept" in capsys.readouterr().err


def test_a_patient_file_of_no_use_is_said_and_one_that_reaches_out_is_cut_as_predict_cuts_it(
    small_data_set, tmp_path
):
    sides = ("x_min", "x_max", "y_min", "y_max", "z_min", "z_max")
    infos = small_data_set / "patient_info_files"
    infos.mkdir()
    for name, box, times in (
        ("a_1", (0, 99, 0, 99, 0, 99), [0, 90, 180]),  # beyond the 8 x 32 x 48 voxels
        ("a_2", (-3, 8, 0, 32, 0, 48), [0, 90, 180]),
        ("b_1", ("0", 8, 0, 32, 0, 48), [0, 180, 90]),
    ):
        coordinates = dict(zip(sides, box, strict=True))
        content = {
            "primary_lesion": {"breast_coordinates": coordinates},
            "imaging_data": {"acquisition_times": times},
        }
        (infos / f"{name}.json").write_text(json.dumps(content))
    (small_data_set / "clinical_and_imaging_info.xlsx").unlink()  # its times would come first
    out = tmp_path / "curves"
    done = mamamia("kinetics", small_data_set, "--ftv-box", "breast", "--out", out)
    assert done.returncode == 0, done.stderr
    with (out / "kinetics.csv").open(newline="") as file:
        cut, negative, text = csv.DictReader(file)
    assert cut["ftv_box"] == "breast box of the patient info [0:8, 0:32, 0:48]"
    assert float(cut["ftv_cc"]) > 0
    for row, culprit in ((negative, "'x_min': -3"), (text, "'x_min': '0'")):
        assert row["ftv_reason"] == "the patient info gives no usable breast box"
        assert "breast_coordinates" in row["warning"]
        assert culprit in row["warning"]
    assert "acquisition_times in the patient file of" in text["warning"]
    assert "acquisition_times" not in negative["warning"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_pipes_that_lie_where_files_should_are_refused_and_not_waited_for(small_data_set, tmp_path):
    infos = small_data_set / "patient_info_files"
    infos.mkdir()
    phase = small_data_set / "images" / "A_1" / "A_1_0001.nii.gz"
    phase.unlink()
    table = tmp_path / "t.csv"
    for pipe in (phase, infos / "a_2.json", table):
        os.mkfifo(pipe)
    out = tmp_path / "out"
    done = mamamia("predict", small_data_set, "--out", out)
    assert done.returncode == 3
    assert "failed: A_1" in done.stderr
    assert str(phase) in done.stderr
    assert (out / "B_1.nii.gz").exists()
    assert "a_2.json" in done.stdout + done.stderr
    assert "pipe, socket or device" in done.stdout + done.stderr
    done = mamamia("score-table", table, "--out", tmp_path / "scores")
    assert done.returncode == 1
    assert "pipe, socket or device" in done.stderr
