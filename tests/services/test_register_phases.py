"""`mamamia register`: a new data set with registered phases; the old one is only read."""

import csv
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import ndimage
from tests.conftest import contents
from tests.stepped import Stepped
from typer.testing import CliRunner

from napari_mamamia.cli.app import app
from napari_mamamia.core.case import Mask
from napari_mamamia.core.choices import TransformKind
from napari_mamamia.core.cohort import CaseRecord, Cohort
from napari_mamamia.core.errors import SaveConflictError
from napari_mamamia.io.clinical.clinical import read_clinical, write_clinical
from napari_mamamia.io.data_set.volumes import read_labels, read_volume, write_mask, write_volume
from napari_mamamia.kinetics.registration.settings import RegistrationSettings
from napari_mamamia.kinetics.timing import choose_phases
from napari_mamamia.kinetics.tumour_volume import (
    box_around_mask,
    functional_tumour_volume,
    prepare_ftv,
)
from napari_mamamia.phantom import PhantomSpec, TumourSpec, make_phantom
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.case.data_set import open_data_set
from napari_mamamia.services.register.case import VolumeChange, register_case
from napari_mamamia.services.register.phases import register_data_set

SHIFT_MM = (0.0, 4.0, -3.0)
TIMES = (0.0, 120.0, 480.0)


@pytest.fixture(scope="module")
def phantom():
    """A phantom of three phases."""
    spec = PhantomSpec(
        case_id="A_1",
        shape=(24, 64, 64),
        spacing_mm=(4.0, 4.0, 4.0),
        times_s=TIMES,
        tumours=(TumourSpec(34.0),),
        contrast_to_noise=20.0,
    )
    return make_phantom(spec)


@pytest.fixture(scope="module")
def shifted(phantom):
    """Its case with phase 0 shifted by 4 mm back and 3 mm aside."""
    case = phantom.case
    signal = case.signal.copy()
    steps = [mm / s for mm, s in zip(SHIFT_MM, case.grid.spacing_mm, strict=True)]
    moved = ndimage.shift(signal[0].astype(float), steps, order=3, mode="nearest")
    signal[0] = np.maximum(np.rint(moved), 0)
    return replace(case, signal=signal)


@pytest.fixture(scope="module")
def data_set(tmp_path_factory, phantom, shifted):
    """Two cases: the shifted one, and one whose phase 0 holds one value."""
    root = tmp_path_factory.mktemp("registration") / "data"
    for name in ("A_1", "B_1"):
        for index, volume in enumerate(shifted.signal):
            constant = np.full_like(volume, 5)
            one = constant if (name, index) == ("B_1", 0) else volume
            write_volume(one, shifted.grid, root / "images" / name / f"{name}_{index:04d}.nii.gz")
        mask = Mask(shifted.grid, phantom.reference.array)
        write_mask(mask, root / "segmentations" / "expert" / f"{name}.nii.gz")
    (root / "patient_info_files").mkdir()
    (root / "patient_info_files" / "A_1.json").write_text('{"patient_id": "A_1"}')
    rows = [CaseRecord(name, age=50.0, acquisition_times_s=TIMES) for name in ("A_1", "B_1")]
    write_clinical(Cohort(tuple(rows)), root / "clinical_and_imaging_info.xlsx")
    return root


def register(data_set, out, **options):
    opened = open_data_set(data_set, out.parent / "workspace")
    return register_data_set(opened, out, **options)


@pytest.fixture(scope="module")
def written(data_set, tmp_path_factory):
    """What the command prints and leaves, with its exit code."""
    out = tmp_path_factory.mktemp("out") / "registered"
    done = CliRunner().invoke(
        app, ["register", str(data_set), "--out", str(out), "--transform", "rigid"]
    )
    return out, done


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def numbers_in(path):
    """All numbers of a table but the seconds, row by row; nan for words and empty cells."""
    found = []
    for row in rows_of(path):
        row.pop("seconds")
        cells = (text.replace(".", "").replace("-", "").replace("e", "") for text in row.values())
        pairs = zip(row.values(), cells, strict=True)
        found.append([float(text) if digits.isdigit() else math.nan for text, digits in pairs])
    return np.array(found)


def test_a_failed_case_is_one_row_and_the_exit_code_3(written):
    out, done = written
    assert done.exit_code == 3, done.output
    rows = rows_of(out / "registration.csv")
    assert [
        (row["case_id"], row["status"], row["phase"], row["phases_before"]) for row in rows
    ] == [
        ("A_1", "ok", "0", "1"),
        ("A_1", "ok", "1", "1"),
        ("A_1", "ok", "2", "1"),
        ("B_1", "failed", "", ""),
    ]
    for name in (" pre ", " post 1 ", " post 2 "):
        assert any("A_1 " in line and name in line for line in done.output.splitlines()), name
    assert "phase 0 of B_1 to show an image, but every voxel has the value 5" in rows[3]["reason"]
    assert not (out / "images" / "B_1").exists()


def test_the_table_says_how_far_each_phase_was_moved(written):
    out, _ = written
    first, reference, last = rows_of(out / "registration.csv")[:3]
    assert (first["verdict"], first["applied"]) == ("better", "rigid")
    found = [float(first[f"translation_{axis}_mm"]) for axis in "zyx"]
    assert found == pytest.approx(SHIFT_MM, abs=0.3)
    assert reference["verdict"] == "reference"
    assert (last["verdict"], last["applied"]) == ("unchanged", "none")
    assert float(first["residual_after_percent"]) < 0.5 * float(first["residual_before_percent"])


def test_geometry_type_and_untouched_phases_are_those_of_the_case(written, data_set):
    out, _ = written
    for index in range(3):
        name = f"images/A_1/A_1_{index:04d}.nii.gz"
        (old, before), (new, after) = read_volume(data_set / name), read_volume(out / name)
        assert new.grid.nifti_header[40:108] == old.grid.nifti_header[40:108]  # dim to pixdim
        assert new.grid.nifti_header[252:328] == old.grid.nifti_header[252:328]  # qform and sform
        assert after.dtype == before.dtype == np.int16
        assert np.array_equal(before, after) == (index != 0)


def test_masks_patient_info_and_clinical_row_come_along(written, data_set):
    out, _ = written
    mask = "segmentations/expert/A_1.nii.gz"
    assert contents(out / mask) == contents(data_set / mask)
    info = "patient_info_files/A_1.json"
    assert (out / info).read_bytes() == (data_set / info).read_bytes()
    (record,) = read_clinical(out / "clinical_and_imaging_info.xlsx").records
    assert (record.case_id, record.age) == ("A_1", 50.0)
    assert record.acquisition_times_s == TIMES
    again = open_data_set(out, out.parent / "workspace")
    assert [case.case_id for case in again.data_set.cases] == ["A_1"]
    assert read_labels(out / mask).grid == read_labels(data_set / mask).grid


def test_provenance_names_method_version_and_input_files(written):
    out, _ = written
    note = json.loads((out / "registration" / "A_1.json").read_text())
    assert note["phases_changed"] == [0]
    assert note["method"].startswith("rigid, to phase 1, Mattes mutual information (32 bins")
    assert note["software"].startswith("napari-mamamia")
    names = [one["name"] for one in note["inputs"]]
    assert names[:3] == [f"A_1_{index:04d}.nii.gz" for index in range(3)]
    assert all(len(one["sha256"]) == 64 for one in note["inputs"])


def test_a_folder_that_holds_results_is_refused_and_resumed_only_for_the_same_run(
    written, data_set
):
    out, _ = written
    with pytest.raises(SaveConflictError, match="to be empty, but it contains files"):
        register(data_set, out)
    with pytest.raises(SaveConflictError, match="results of a different run"):
        register(data_set, out, existing=Existing.RESUME)
    before = (out / "images" / "A_1" / "A_1_0000.nii.gz").stat().st_mtime_ns
    again = CliRunner().invoke(
        app, ["register", str(data_set), "--out", str(out), "--transform", "rigid", "--resume"]
    )
    assert "1 case done in an earlier run" in again.output
    assert (out / "images" / "A_1" / "A_1_0000.nii.gz").stat().st_mtime_ns == before


@pytest.mark.night  # by day: test_batch_cluster for any work
def test_two_workers_write_the_files_of_this_process(written, data_set, tmp_path):
    out, _ = written
    words = ["register", str(data_set), "--out", str(tmp_path / "two"), "--transform", "rigid"]
    done = CliRunner().invoke(app, [*words, "--workers", "2"])
    assert done.exit_code == 3, done.output
    for index in range(3):
        name = f"images/A_1/A_1_{index:04d}.nii.gz"
        assert contents(tmp_path / "two" / name) == contents(out / name)
    ours, theirs = (numbers_in(folder / "registration.csv") for folder in (out, tmp_path / "two"))
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)  # NumPy's sums depend on its threads


def test_a_case_beyond_the_time_limit_is_named_and_leaves_nothing(data_set, tmp_path):
    words = ["register", str(data_set), "--out", str(tmp_path / "out"), "--case", "A_1"]
    done = CliRunner().invoke(app, [*words, "--time-limit", "0.01"])
    assert done.exit_code == 3, done.output
    (row,) = rows_of(tmp_path / "out" / "registration.csv")
    assert (row["case_id"], row["status"]) == ("A_1", "failed")
    assert "time limit of 0.01 s" in row["reason"]
    assert not (tmp_path / "out" / "images").exists()


def test_the_interpolation_that_was_asked_for_stands_in_the_provenance(written, data_set, tmp_path):
    out, _ = written
    note = json.loads((out / "registration" / "A_1.json").read_text())
    assert note["settings"]["interpolation"] == "bspline"
    assert note["method"].endswith("cubic B-spline interpolation")
    words = ["register", str(data_set), "--out", str(tmp_path / "out"), "--case", "A_1"]
    words += ["--transform", "rigid", "--interpolation", "linear"]
    assert CliRunner().invoke(app, words).exit_code == 0
    note = json.loads((tmp_path / "out" / "registration" / "A_1.json").read_text())
    assert note["settings"]["interpolation"] == "linear"
    assert note["method"].endswith("linear interpolation")


def test_the_data_set_itself_is_never_written_into(data_set):
    for out in (data_set, data_set / "registered"):
        with pytest.raises(SaveConflictError, match="outside the data set"):
            register(data_set, out, existing=Existing.OVERWRITE)


def test_a_cancelled_case_leaves_no_folder(data_set, tmp_path):
    opened = open_data_set(data_set, tmp_path / "workspace")
    job = Stepped(register_data_set, opened, tmp_path / "out", case_ids=("A_1",))
    while "rigid" not in next(job).text:
        pass
    job.close()
    assert not (tmp_path / "out" / "images").exists()


def test_a_change_of_volume_is_in_percent_of_the_volume_before():
    assert VolumeChange(2.0, 2.5).percent == 25
    assert VolumeChange(0.0, 0.0).percent == 0
    assert math.isnan(VolumeChange(0.0, 1.0).percent)


def test_only_a_change_of_more_than_10_percent_is_warned_of():
    assert VolumeChange(10.0, 11.0).warning == ""
    assert VolumeChange().warning == ""
    text = VolumeChange(10.0, 8.0).warning
    assert "10.00 cc before, 8.00 cc after" in text
    assert "-20 %" in text
    assert "from nothing" in VolumeChange(0.0, 3.0).warning


def test_the_volume_is_that_of_the_unmoved_case_again(phantom, shifted):
    """FTV of the shifted case is wrong; after registration it is near the unmoved one's."""
    case, mask = phantom.case, phantom.reference.array
    images = prepare_ftv(case.signal, choose_phases(TIMES), (box_around_mask(mask, case.grid),))
    truth = functional_tumour_volume(images, case.grid.voxel_volume_mm3).volume_cc
    rigid = RegistrationSettings(transform=TransformKind.RIGID)
    found = register_case(shifted, mask, rigid).volume
    assert truth > 0
    assert abs(found.after_cc - truth) < abs(found.before_cc - truth)
    assert found.after_cc == pytest.approx(truth, rel=0.1)
