"""`mamamia kinetics` on ultrafast and on standard phases, as it is typed."""

import csv

import numpy as np
import pytest
from tests.cli.warm_program import mamamia
from tests.conftest import SHAPE, write_nifti
from tests.ultrafast_phantoms import RAS, write_ultrafast_data_set
from typer.testing import CliRunner

from napari_mamamia.cli.app import app

SMALL = {"shape": (10, 20, 28), "n_phases": 20}


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.door
def test_an_ultrafast_exam_gets_its_columns_and_counts_from_the_aorta(tmp_path):
    write_ultrafast_data_set(tmp_path / "data", spacing_s=5.0, arrival_s=22.0, **SMALL)
    words = ("--out", tmp_path / "out", "--vessels", tmp_path / "vessels", "--pe-at", "30")
    done = mamamia("kinetics", tmp_path / "data", *words)
    assert done.returncode == 0, done.stderr
    assert "%/s, arrival" in done.stdout
    assert "30 s after the vessel" in done.stdout
    (row,) = rows_of(tmp_path / "out" / "kinetics.csv")
    assert row["ultrafast_spacing_s"] == "5"
    # contrast comes at 22 s; tangents of frames 5 s apart cut within that frame
    assert float(row["vessel_arrival_s"]) == pytest.approx(22, abs=3)
    assert float(row["bolus_arrival_s"]) == pytest.approx(22, abs=4)
    assert float(row["time_to_enhancement_s"]) == pytest.approx(
        float(row["bolus_arrival_s"]) - float(row["vessel_arrival_s"]), abs=1e-4
    )
    assert float(row["time_to_enhancement_s"]) > 0  # tissue rises after its artery
    assert 10 < float(row["maximum_slope_percent_per_s"]) < 60
    assert (row["pe_at_s"], row["pe_at_from"]) == ("30", "vessel")
    assert float(row["pe_at_percent"]) > 50
    assert row["ultrafast_reason"] == ""
    assert row["phases_before"] == "5"  # of one series, not a scan that was taken again
    assert "a second scan" not in row["warning"]


@pytest.mark.parametrize(
    ("odd", "code", "said"),
    [(np.nan, 0, "not finite"), (1e30, 3, "beyond 100,000 times the median")],
)
def test_a_voxel_that_is_no_signal_is_named_by_its_place_and_phase(tmp_path, odd, code, said):
    phantom = write_ultrafast_data_set(tmp_path / "data", **SMALL)
    place = tuple(np.argwhere(phantom.lesion)[7])
    values = phantom.case.signal[3].astype(np.float32)
    values[place] = odd
    folder = tmp_path / "data" / "images" / "ULTRAFAST_1"
    write_nifti(folder / "ULTRAFAST_1_0003.nii.gz", values, RAS)
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["kinetics", str(tmp_path / "data"), "--out", str(out)])
    assert done.exit_code == code
    (row,) = rows_of(out / "kinetics.csv")
    voxel = ", ".join(map(str, place))
    told = f"1 voxel {said}, the first in phase 3 at (z, y, x) {voxel}"
    assert told in row["warning" if code == 0 else "reason"]
    assert (row["maximum_slope_percent_per_s"] != "") == (code == 0)


@pytest.mark.parametrize(
    ("factor", "said"),
    [(1 / 60, "are their times in minutes?"), (60, "are their times in milliseconds?")],
)
def test_times_of_another_unit_are_told(tmp_path, factor, said):
    write_ultrafast_data_set(tmp_path / "data", spacing_s=10.0, **SMALL)
    times = ",".join(f"{10 * k * factor:.4f}" for k in range(20))
    words = ["kinetics", str(tmp_path / "data"), "--times", times, "--out", str(tmp_path / "o")]
    done = CliRunner().invoke(app, words)
    assert said in " ".join(done.output.split())
    assert said in rows_of(tmp_path / "o" / "kinetics.csv")[0]["warning"]


def test_a_stated_time_on_standard_phases_is_said_to_be_for_ultrafast_ones(
    small_data_set, tmp_path
):
    words = ["--out", str(tmp_path / "out"), "--case", "A_1", "--pe-at", "20"]
    done = CliRunner().invoke(app, ["kinetics", str(small_data_set), *words])
    assert done.exit_code == 0
    assert "at most 10 s apart for ultrafast measures, but got 90 s" in " ".join(
        done.output.split()
    )


def test_standard_phases_leave_the_columns_blank_and_say_why(small_data_set, tmp_path):
    typed = ["kinetics", str(small_data_set), "--out", str(tmp_path / "out"), "--case", "A_1"]
    assert CliRunner().invoke(app, typed).exit_code == 0
    (row,) = rows_of(tmp_path / "out" / "kinetics.csv")
    for name in ("maximum_slope_percent_per_s", "bolus_arrival_s", "pe_at_percent", "pe_at_s"):
        assert row[name] == "", name
    assert "at most 10 s apart for ultrafast measures, but got 90 s" in row["ultrafast_reason"]
    assert row["status"] == "ok"
    assert row["ftv_cc"] != ""  # the other numbers are as they were


def test_a_vessel_that_changed_is_not_answered_from_an_earlier_run(tmp_path):
    phantom = write_ultrafast_data_set(tmp_path / "data", **SMALL)
    words = ["kinetics", str(tmp_path / "data"), "--out", str(tmp_path / "out")]
    words += ["--vessels", str(tmp_path / "vessels")]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert rows_of(tmp_path / "out" / "kinetics.csv")[0]["time_to_enhancement_s"] != ""
    nothing = np.zeros(phantom.lesion.shape, np.uint8)
    write_nifti(tmp_path / "vessels" / "ULTRAFAST_1.nii.gz", nothing, RAS)
    done = CliRunner().invoke(app, [*words, "--resume"])
    assert done.exit_code == 0
    assert "done in an earlier run" not in done.output
    (row,) = rows_of(tmp_path / "out" / "kinetics.csv")
    assert row["time_to_enhancement_s"] == ""
    assert "is empty" in row["ultrafast_reason"]


def test_an_empty_mask_or_vessel_leaves_the_rest(tmp_path):
    data = tmp_path / "data"
    phantom = write_ultrafast_data_set(data, **SMALL)
    nothing = np.zeros(phantom.lesion.shape, np.uint8)
    typed = ["kinetics", str(data), "--vessels", str(tmp_path / "vessels")]
    write_nifti(tmp_path / "vessels" / "ULTRAFAST_1.nii.gz", nothing, RAS)
    assert CliRunner().invoke(app, [*typed, "--out", str(tmp_path / "a")]).exit_code == 0
    (row,) = rows_of(tmp_path / "a" / "kinetics.csv")
    assert float(row["maximum_slope_percent_per_s"]) > 10
    assert row["time_to_enhancement_s"] == row["vessel_arrival_s"] == ""
    assert "the time to enhancement is undefined" in row["ultrafast_reason"]
    write_nifti(data / "segmentations" / "expert" / "ULTRAFAST_1.nii.gz", nothing, RAS)
    assert CliRunner().invoke(app, [*typed, "--out", str(tmp_path / "b")]).exit_code == 0
    (row,) = rows_of(tmp_path / "b" / "kinetics.csv")
    assert row["ultrafast_reason"] == "the mask is empty"


def test_a_vessel_on_another_grid_fails_the_case_and_a_missing_folder_is_wrong_usage(
    small_data_set, tmp_path
):
    vessels = tmp_path / "vessels"
    write_nifti(vessels / "A_1.nii.gz", np.ones(SHAPE, np.uint8), np.diag([1.0, 1, 1, 1]))
    typed = ["kinetics", str(small_data_set), "--case", "A_1", "--out", str(tmp_path / "o")]
    assert CliRunner().invoke(app, [*typed, "--vessels", str(vessels)]).exit_code == 3
    assert CliRunner().invoke(app, [*typed, "--vessels", str(tmp_path / "no")]).exit_code == 2
