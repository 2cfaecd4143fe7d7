"""Real exams from their DICOM to mask, kinetics, SEG and report, by the commands as they are typed.

ISPY1_1002 lies in the shared data; Breast_MRI_153 is fetched, and found through MAMAMIA_REAL_EXAM.
What is expected of them stands in `shared/facts/ucsf_ftv.md` and in the Duke collection's boxes.
"""

import contextlib
import csv
import os
import zipfile
from pathlib import Path

import nibabel as nib
import numpy as np
import pydicom
import pytest
from tests.cli import warm_program

from napari_mamamia.core.grid import Grid
from napari_mamamia.io.seg.ucsf import read_ucsf_seg
from napari_mamamia.services.kinetics.ftv_from import place_seg

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

EXPERT_RAS_MM = ((104.6, 136.6), (-5.3, 18.7), (-10.7, 16.3))  # the expert's structural volume
DUKE_BOX = np.s_[60:78, 366:402, 89:124]  # the collection's box of the tumour, as (z, y, x)


def mamamia(folder, *words):
    with contextlib.chdir(folder):
        done = warm_program.mamamia(*words, has_figures=words[0] != "score")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def walk(folder, dicom, study, case_id):
    """Go the whole way; return what the steps printed."""
    said = {
        "import": mamamia(folder, "import", dicom, "--out", "cases", "--case", case_id),
        "predict": mamamia(folder, "predict", "cases", "--out", "masks"),
        "kinetics": mamamia(folder, "kinetics", "cases", "--masks", "masks", "--out", "kinetics"),
        "export": mamamia(
            folder, "export", "cases", "--masks", "masks", "--out", "bundle",
            "--format", "nifti", "--format", "dicom-seg", "--study", study,
        ),
        "verify": mamamia(folder, "verify", "bundle", "--study", study),
    }  # fmt: skip
    return said


def table(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def mask_of(folder, case_id):
    image = nib.load(folder / "masks" / f"{case_id}.nii.gz")
    return np.asarray(image.dataobj).transpose() > 0, image.affine


def seg_voxels(folder, case_id):
    seg = pydicom.dcmread(folder / "bundle" / "dicom_seg" / f"{case_id}.dcm")
    return int(np.count_nonzero(seg.pixel_array))


@pytest.fixture(scope="module")
def ispy(real_data, tmp_path_factory):
    """Return the folder in which ISPY1_1002 went the whole way, its DICOM, and what was said."""
    folder = tmp_path_factory.mktemp("ispy")
    archive = real_data("ispy1_1002.zip")
    with zipfile.ZipFile(archive) as files:
        files.extractall(folder / "dicom")
    return folder, folder / "dicom", walk(folder, archive, folder / "dicom", "ISPY1_1002")


def test_the_first_candidate_of_a_sagittal_exam_lies_in_the_experts_volume(ispy):
    folder, _, said = ispy
    mask, affine = mask_of(folder, "ISPY1_1002")
    x, y, z = (affine @ np.c_[np.argwhere(mask)[:, ::-1], np.ones(mask.sum())].T)[:3]
    inside = np.ones(mask.sum(), dtype=bool)
    for values, (low, high) in zip((x, y, z), EXPERT_RAS_MM, strict=True):
        inside &= (values >= low) & (values <= high)
    assert inside.mean() > 0.95
    assert "was searched" not in said["predict"]  # the breast was found
    assert "unsure" not in said["predict"]


def test_its_report_says_how_far_it_agrees_with_ucsf(ispy):
    folder, dicom, _ = ispy
    (seg,) = (path for path in dicom.rglob("*.dcm") if "32100." in str(path))
    image = nib.load(folder / "masks" / "ISPY1_1002.nii.gz")
    placed = place_seg(read_ucsf_seg(seg), Grid(image.shape[::-1], image.affine))
    voxels = placed.turn.array_back(placed.mask).astype(np.uint8)
    assert voxels.sum() == 4350
    (folder / "ucsf").mkdir()
    truth = nib.Nifti1Image(voxels.transpose(), image.affine)
    nib.save(truth, folder / "ucsf" / "ISPY1_1002.nii.gz")
    mamamia(folder, "score", "--reference", "ucsf", "--prediction", "masks", "--out", "scores")
    (row,) = table(folder / "scores" / "case_scores.csv")
    assert float(row["dsc"]) > 0.85
    assert "ISPY1_1002" in (folder / "scores" / "report.html").read_text(encoding="utf-8")


def test_its_kinetics_are_those_of_a_tumour_that_washes_out(ispy):
    folder, _, _ = ispy
    (row,) = table(folder / "kinetics" / "kinetics.csv")
    assert (row["early_phase"], row["late_phase"]) == ("1", "2")
    assert row["worst_curve"] == "washout"
    assert 5.0 < float(row["ftv_cc"]) < 6.0  # 5.31 cc by UCSF's own program in its VOI
    assert (folder / "kinetics" / "figures" / "ISPY1_1002.png").stat().st_size > 10_000


def test_its_seg_holds_the_mask_and_the_bundle_names_nobody(ispy):
    folder, _, said = ispy
    mask, _ = mask_of(folder, "ISPY1_1002")
    assert seg_voxels(folder, "ISPY1_1002") == mask.sum()
    assert "all match the manifest" in said["verify"]


@pytest.fixture(scope="module")
def duke(tmp_path_factory):
    """Return the folder in which Breast_MRI_153 went the whole way, and what was said."""
    named = os.environ.get("MAMAMIA_REAL_EXAM", "")
    if not named or not Path(named).is_dir():
        pytest.skip("the fetched exam is absent: set MAMAMIA_REAL_EXAM to its DICOM folder")
    folder = tmp_path_factory.mktemp("duke")
    return folder, walk(folder, named, named, "Breast_MRI_153")


def test_the_first_candidate_of_an_axial_exam_lies_in_the_radiologists_box(duke):
    folder, said = duke
    mask, _ = mask_of(folder, "Breast_MRI_153")
    assert mask[DUKE_BOX].sum() == mask.sum() > 0
    assert "unsure" not in said["predict"]
    (row,) = table(folder / "kinetics" / "kinetics.csv")
    assert row["worst_curve"] == "washout"
    assert seg_voxels(folder, "Breast_MRI_153") == mask.sum()
