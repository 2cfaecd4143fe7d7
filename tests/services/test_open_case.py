"""Opening data sets and cases: the first phase first, faults named."""

import errno
import json
import os
import shutil

import nibabel as nib
import numpy as np
import pytest
from tests.stepped import Stepped

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import CaseError, FormatError, GridMismatchError
from napari_mamamia.io.data_set.volumes import read_header, read_series_into
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.io.volumes import streams
from napari_mamamia.services.case.data_set import case_rows, open_data_set
from napari_mamamia.services.case.open_case import load_case, load_mask, load_remaining, open_case


def phase_path(root, case_id, k):
    return root / "images" / case_id / f"{case_id}_{k:04d}.nii.gz"


def files_of(root, case_id="A_1"):
    return find_data_set(root).case(case_id)


def values_of(path):
    """Return the voxels as nibabel reads them, (z, y, x)."""
    return np.asanyarray(nib.load(path).dataobj).transpose()


def rewrite(path, change, affine=None):
    """Write the file anew with changed values, through nibabel."""
    old = nib.load(path)
    data = change(np.asanyarray(old.dataobj))
    nib.save(nib.Nifti1Image(data, old.affine if affine is None else affine), path)


def test_a_data_set_opens_with_its_clinical_table_and_workspace(small_data_set):
    opened = open_data_set(small_data_set)
    assert [case.case_id for case in opened.data_set.cases] == ["A_1", "A_2", "B_1"]
    assert opened.record("A_2").age == 51
    assert opened.record("nobody") is None
    assert opened.workspace.root == small_data_set.parent / "my data set-workspace"
    assert not opened.workspace.root.exists()  # looking writes nothing


def test_the_case_table_knows_what_each_case_has(small_data_set, tmp_path):
    opened = open_data_set(small_data_set)
    target = opened.workspace.prediction("kinetic", "A_2")
    target.parent.mkdir(parents=True)
    shutil.copy(small_data_set / "segmentations" / "expert" / "A_2.nii.gz", target)
    rows = {row.case_id: row for row in case_rows(opened)}
    assert (rows["A_1"].status, rows["A_1"].n_phases, rows["A_1"].has_reference) == ("new", 4, True)
    assert (rows["A_2"].status, rows["A_2"].predictions) == ("predicted", ("kinetic",))


def test_the_first_phase_shown_is_read_first_and_the_rest_fill_the_same_array(small_data_set):
    files = files_of(small_data_set)
    record = open_data_set(small_data_set).record("A_1")
    case = open_case(files, record)
    assert [phase.loaded for phase in case.phases] == [False, True, False, False]
    assert case.times_s == (0, 90, 180, 420)
    assert not case.signal[0].any()
    whole = load_remaining(case, files)
    assert whole.signal is case.signal
    assert whole.is_loaded
    for k in range(4):
        np.testing.assert_array_equal(
            whole.signal[k], values_of(phase_path(small_data_set, "A_1", k))
        )


def test_a_4d_file_opens_as_phases(small_data_set, tmp_path):
    parts = [nib.load(phase_path(small_data_set, "A_1", k)) for k in range(4)]
    stack = np.stack([np.asanyarray(part.dataobj) for part in parts], axis=-1)
    path = tmp_path / "series.nii.gz"
    nib.save(nib.Nifti1Image(stack, parts[0].affine), path)
    data_set = find_data_set(path)
    case = open_case(data_set.cases[0])
    assert [phase.loaded for phase in case.phases] == [True, False, False, False]
    case = load_remaining(case, data_set.cases[0])
    np.testing.assert_array_equal(case.signal, stack.transpose(3, 2, 1, 0))


def test_a_file_of_several_volumes_is_not_one_phase(small_data_set):
    rewrite(phase_path(small_data_set, "A_1", 1), lambda data: np.stack([data, data], axis=-1))
    with pytest.raises(CaseError, match="phase 1 of case A_1 to have one volume, but it has 2"):
        open_case(files_of(small_data_set))


def test_a_missing_phase_is_named(small_data_set):
    phase_path(small_data_set, "A_1", 2).unlink()
    with pytest.raises(CaseError, match="phase 2 of A_1 is missing"):
        open_case(files_of(small_data_set))


def test_a_phase_of_another_shape_is_named_with_both_shapes(small_data_set):
    rewrite(phase_path(small_data_set, "A_1", 3), lambda data: data[:-1])
    with pytest.raises(
        CaseError, match=r"phase 3 of case A_1 has shape \(8, 32, 47\).*remove phase"
    ):
        open_case(files_of(small_data_set))


def test_a_phase_in_another_place_is_named_with_the_distance(small_data_set):
    affine = np.diag([-0.8, 0.8, 2.0, 1.0])
    affine[2, 3] = 4
    rewrite(phase_path(small_data_set, "A_1", 2), lambda data: data, affine)
    with pytest.raises(CaseError, match=r"phase 2 of case A_1 is up to 4\.00 mm"):
        open_case(files_of(small_data_set))


def test_an_extra_phase_makes_the_times_unknown_with_a_warning(small_data_set):
    shutil.copy(phase_path(small_data_set, "A_1", 3), phase_path(small_data_set, "A_1", 4))
    record = open_data_set(small_data_set).record("A_1")
    case = open_case(files_of(small_data_set), record)
    assert case.times_s == (None,) * 5
    assert "5 phases but 4 acquisition times" in case.warnings[0]


def test_an_all_zero_phase_is_a_warning(small_data_set):
    rewrite(phase_path(small_data_set, "A_1", 2), lambda data: np.zeros_like(data))
    case = load_case(files_of(small_data_set))
    assert any("phase 2 contains only zeros" in text for text in case.warnings)


def test_voxels_that_are_not_numbers_are_counted(small_data_set):
    def spoil(data):
        data = data.astype(np.float32)
        data[0, 0, 0], data[1, 0, 0] = np.nan, np.inf
        return data

    for k in range(4):
        rewrite(phase_path(small_data_set, "A_1", k), spoil if k == 1 else lambda data: data)
    case = load_case(files_of(small_data_set))
    assert case.signal.dtype == np.float32
    assert any("phase 1 has 2 voxels with NaN or infinity" in text for text in case.warnings)


def test_a_sheared_case_opens_with_a_warning(small_data_set):
    affine = np.diag([-0.8, 0.8, 2.0, 1.0])
    affine[0, 1] = 0.3
    for k in range(4):
        rewrite(phase_path(small_data_set, "A_1", k), lambda data: data, affine)
    case = open_case(files_of(small_data_set))
    assert any("shear" in text or "right angle" in text for text in case.warnings)
    np.testing.assert_allclose(case.grid.affine, affine, atol=1e-6)


def test_a_case_on_an_identity_grid_opens_with_a_warning(small_data_set):
    for k in range(4):
        rewrite(phase_path(small_data_set, "A_1", k), lambda data: data, np.eye(4))
    case = open_case(files_of(small_data_set))
    assert any("A_1: the grid is an identity" in text for text in case.warnings)


def test_a_truncated_phase_is_named(small_data_set):
    path = phase_path(small_data_set, "A_1", 1)
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(FormatError, match="A_1_0001"):
        load_case(files_of(small_data_set))


def test_a_mask_on_another_grid_is_refused(small_data_set):
    case = load_case(files_of(small_data_set))
    path = small_data_set / "segmentations" / "expert" / "A_1.nii.gz"
    assert load_mask(path, case).mask().array.sum() == 3 * 6 * 6
    rewrite(path, lambda data: data[:, 1:])
    with pytest.raises(GridMismatchError, match="case A_1"):
        load_mask(path, case)


def test_cancelling_an_opening_leaves_no_file_open(small_data_set):
    job = Stepped(open_case, files_of(small_data_set))
    next(job)
    next(job)
    job.close()
    phase_path(small_data_set, "A_1", 1).rename(phase_path(small_data_set, "A_1", 9))


def test_an_unreadable_clinical_table_is_a_warning(small_data_set):
    (small_data_set / "clinical_and_imaging_info.xlsx").write_text("not a workbook")
    opened = open_data_set(small_data_set)
    assert opened.cohort is None
    assert "clinical table could not be read" in opened.warnings[0]


@pytest.mark.parametrize(
    ("z_max", "x_min", "box"),
    [
        (5, 0, Box((1, 2, 0), (5, 30, 40))),
        (99, 0, Box((1, 2, 0), (8, 30, 40))),
        (5, 60, None),
    ],
)
def test_the_breast_of_the_patient_file_comes_with_the_case(small_data_set, z_max, x_min, box):
    """`x_min` to `z_max` count along (z, y, x); the case has 8 x 32 x 48 voxels."""
    sides = {"x": (1, z_max), "y": (2, 30), "z": (x_min, max(40, x_min + 1))}
    coordinates = {
        f"{axis}_{end}": side[k]
        for axis, side in sides.items()
        for k, end in enumerate(("min", "max"))
    }
    info = small_data_set / "patient_info_files" / "a_1.json"
    info.parent.mkdir()
    info.write_text(json.dumps({"primary_lesion": {"breast_coordinates": coordinates}}))
    opened = open_data_set(small_data_set)
    case = load_case(opened.data_set.case("A_1"), opened.record("A_1"))
    assert case.breast_box == box
    assert any("are outside the volume" in text for text in case.warnings) == (box is None)


def test_a_damaged_patient_file_is_a_warning_and_the_case_opens(small_data_set):
    info = small_data_set / "patient_info_files" / "a_1.json"
    info.parent.mkdir()
    info.write_text("{")
    opened = open_data_set(small_data_set)
    case = load_case(opened.data_set.case("A_1"), opened.record("A_1"))
    assert case.breast_box is None
    assert any("the timing are unknown" in text for text in case.warnings)


def damaged_series(tmp_path):
    """Return a 4-D file whose checksum, behind all of its phases, does not fit."""
    values = np.random.default_rng(2).integers(0, 2000, (48, 48, 40, 3), np.int16)
    path = tmp_path / "B.nii.gz"
    nib.save(nib.Nifti1Image(values, np.eye(4)), path)
    data = bytearray(path.read_bytes())
    data[-8] ^= 1
    path.write_bytes(data)
    return path, values


def test_the_first_phase_of_a_damaged_file_is_not_verified_and_the_rest_is_refused(tmp_path):
    path, values = damaged_series(tmp_path)
    (files,) = find_data_set(path).cases
    case = open_case(files)
    np.testing.assert_array_equal(case.signal[0], values[..., 0].transpose())
    assert not case.is_verified
    with pytest.raises(FormatError, match=r"B\.nii\.gz.*damaged"):
        load_remaining(case, files)


def test_the_first_two_volumes_are_not_given_of_a_file_with_a_wrong_checksum(tmp_path):
    path, values = damaged_series(tmp_path)
    header = read_header(path)
    out = np.empty((2, *header.grid.shape), header.dtype)
    with pytest.raises(FormatError, match=r"B\.nii\.gz.*damaged"):
        read_series_into(path, header, out)
    nib.save(nib.Nifti1Image(values, np.eye(4)), path)
    read_series_into(path, header, out)
    np.testing.assert_array_equal(out, values[..., :2].transpose(3, 2, 1, 0))


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE])
def test_a_disk_that_fails_while_it_is_read_is_told_with_the_file(tmp_path, monkeypatch, number):
    path, _ = damaged_series(tmp_path)
    header = read_header(path)

    class Failing:
        def __init__(self, raw, content):
            self.whole = whole(raw, content)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.whole.close()

        def read(self, size):
            return self.whole.read(size)  # the header can be read

        def readinto(self, out):
            raise OSError(number, os.strerror(number))

    whole = streams.open_gzip
    monkeypatch.setattr(streams, "open_gzip", Failing)
    out = np.empty((1, *header.grid.shape), header.dtype)
    with pytest.raises(FormatError, match=rf"B\.nii\.gz.*{os.strerror(number)}"):
        read_series_into(path, header, out)
