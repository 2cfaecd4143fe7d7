"""`mamamia straighten`, and what is said of sheared axes elsewhere, as they are typed."""

import json

import nibabel as nib
import numpy as np
import pytest
from typer.testing import CliRunner

from napari_mamamia.cli.app import app


@pytest.fixture
def sheared(small_data_set):
    """Return the data set with case A_1 on sheared axes."""
    for path in small_data_set.rglob("A_1*.nii.gz"):
        image = nib.load(path)
        affine = image.affine.copy()
        affine[1, 2] += 0.5
        leaning = nib.Nifti1Image(np.asarray(image.dataobj), affine)
        leaning.set_qform(None, 0)
        nib.save(leaning, path)
    return small_data_set


def mamamia(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    said = done.output + ("" if done.exception is None else str(done.exception))
    return done.exit_code, said


def test_a_sheared_case_is_copied_onto_right_angles_that_itk_reads(sheared, tmp_path):
    sitk = pytest.importorskip("SimpleITK")
    old = sheared / "images/A_1/A_1_0001.nii.gz"
    with pytest.raises(RuntimeError, match="orthonormal"):
        sitk.ReadImage(str(old))
    before = {path: path.read_bytes() for path in sheared.rglob("*") if path.is_file()}
    code, said = mamamia("straighten", sheared, "--out", tmp_path / "new")
    assert code == 0, said
    assert "A_1: 14.04 degrees off" in said  # 0.5 mm in slices of 2 mm: atan(0.25)
    assert "2 cases already have orthogonal axes and were not copied" in said
    assert {path: path.read_bytes() for path in sheared.rglob("*") if path.is_file()} == before

    image = sitk.ReadImage(str(tmp_path / "new/images/A_1/A_1_0001.nii.gz"))
    mask = sitk.ReadImage(str(tmp_path / "new/segmentations/expert/A_1.nii.gz"))
    assert image.GetSize() == mask.GetSize()
    bright = sitk.GetArrayFromImage(image) > 350  # the blob that enhances
    marked = sitk.GetArrayFromImage(mask) > 0
    assert 2 * (bright & marked).sum() / (bright.sum() + marked.sum()) > 0.8
    told = json.loads((tmp_path / "new/straightened/A_1.json").read_text())
    assert told["lean_degrees"] == pytest.approx(14.036, abs=1e-3)
    assert {item["name"] for item in told["inputs"]} >= {"A_1_0000.nii.gz", "A_1.nii.gz"}
    assert "resampled" in told["note"]
    # it opens, with its times and its clinical row, and has nothing left to do
    code, said = mamamia("kinetics", tmp_path / "new", "--out", tmp_path / "curves")
    assert code == 0, said
    assert "A_1: early post 2 (135" in said, said
    code, said = mamamia("straighten", tmp_path / "new", "--out", tmp_path / "again")
    assert (code, "perpendicular: use the data set as it is" in said) == (1, True)


def test_an_export_for_programs_of_itk_is_refused_and_others_say_it(sheared, tmp_path):
    words = ("export", sheared, "--masks", sheared / "segmentations/expert", "--case", "A_1")
    for layout in ("nnunet", "challenge"):
        code, said = mamamia(*words, "--format", layout, "--out", tmp_path / layout)
        assert code == 3, said
        assert "mamamia straighten DATASET --out DIR" in said
    code, said = mamamia(*words, "--out", tmp_path / "plain")
    assert code == 0, said
    assert "note: the axes of A_1 are sheared" in said
    assert "0 green, 1 amber, 0 red" in said


def test_a_copy_into_the_data_set_itself_is_refused(sheared):
    code, said = mamamia("straighten", sheared, "--out", sheared / "new")
    assert (code, "choose a different folder" in said) == (1, True)
    assert not (sheared / "new").exists()


def test_a_case_that_cannot_be_read_or_whose_mask_lies_elsewhere_does_not_end_the_others(
    sheared, tmp_path
):
    (sheared / "images/A_2/A_2_0000.nii.gz").write_bytes(b"cut")
    other = nib.Nifti1Image(np.ones((4, 5, 6), np.uint8), np.eye(4))
    nib.save(other, sheared / "segmentations/expert/B_1.nii.gz")
    for path in (sheared / "images/B_1").iterdir():
        image = nib.load(path)
        affine = image.affine.copy()
        affine[1, 2] += 0.5
        leaning = nib.Nifti1Image(np.asarray(image.dataobj), affine)
        leaning.set_qform(None, 0)
        nib.save(leaning, path)
    code, said = mamamia("straighten", sheared, "--out", tmp_path / "new")
    assert code == 3, said
    assert "A_1: 14.04 degrees off" in said
    assert "A_2" in said
    assert "B_1" in said
    assert sorted(path.name for path in (tmp_path / "new/images").iterdir()) == ["A_1"]
    masks = (tmp_path / "new/segmentations/expert").iterdir()
    assert [path.name for path in masks] == ["A_1.nii.gz"]
