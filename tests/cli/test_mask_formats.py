"""Masks as other tools write and name them, scored by the real command; each format of an export.

The expected Dice is counted by hand: prediction and reference are boxes.
"""

import csv
import gzip
from shutil import copytree

import nibabel as nib
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the name that its own documentation uses
from tests.cli.warm_program import mamamia
from tests.io.test_segment_files import GRID, SHAPE, write_seg, write_seg_nrrd

from napari_mamamia.core.choices import ExportFormat

REFERENCE = np.zeros(SHAPE, bool)
REFERENCE[1:3, 2:6, 2:6] = True  # 32 voxels
PREDICTION = np.zeros(SHAPE, bool)
PREDICTION[1:3, 2:6, 4:8] = True  # 32 voxels, 16 shared
DICE = 0.5
NODE = np.zeros(SHAPE, bool)
NODE[4, 0:2, 0:2] = True


def write_nifti(path, mask=PREDICTION, kind=nib.Nifti1Image, affine=GRID.affine):
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.save(kind(mask.T.astype(np.uint8), affine), path)


def write_itk(path, compress=False):
    path.parent.mkdir(parents=True, exist_ok=True)
    image = sitk.GetImageFromArray(PREDICTION.astype(np.uint8))
    image.SetSpacing((0.5, 0.75, 2.0))
    image.SetOrigin(tuple(float(n) for n in GRID.affine[:3, 3] * (-1, -1, 1)))
    sitk.WriteImage(image, str(path), useCompression=compress)


def write_nhdr(path):
    """Write the voxels beside the header, as Slicer does where it is told to."""
    (x, y, z) = GRID.affine[:3, 3] * (-1, -1, 1)
    (path.parent / "elsewhere named.raw").write_bytes(gzip.compress(PREDICTION.tobytes()))
    path.write_text(
        "NRRD0004\ntype: uchar\ndimension: 3\nspace: LPS\nsizes: 10 8 6\n"
        "space directions: (0.5,0,0) (0,0.75,0) (0,0,2)\nkinds: domain domain domain\n"
        f"encoding: gzip\nspace origin: ({x},{y},{z})\ndata file: elsewhere named.raw\n\n"
    )


def write_ras_nrrd(path):
    nib_affine = GRID.affine
    directions = " ".join(f"({','.join(map(str, nib_affine[:3, k]))})" for k in range(3))
    origin = ",".join(map(str, nib_affine[:3, 3]))
    path.write_bytes(
        b"NRRD0004\ntype: uchar\ndimension: 3\nspace: RAS\nsizes: 10 8 6\n"
        + f"space directions: {directions}\nencoding: raw\nspace origin: ({origin})\n\n".encode()
        + PREDICTION.tobytes()
    )


def turned_nifti(path):
    """Write the same voxels with the axes in another order."""
    image = nib.Nifti1Image(PREDICTION.T.astype(np.uint8), GRID.affine)
    nib.save(nib.as_closest_canonical(image), path)


def cut_seg_nrrd(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    write_seg_nrrd(path, [PREDICTION[1:4, 2:6, 3:9]], {"Segment0_Name": "Tumour"}, (1, 2, 3))


def layered_seg_nrrd(path):
    """Write two segments that overlap, both of them tumour."""
    left, right = PREDICTION.copy(), PREDICTION.copy()
    left[:, :, 7:] = right[:, :, :5] = False
    write_seg_nrrd(path, [left, right], {"Segment0_Name": "a", "Segment1_Name": "b"})


def seg(kind):
    def write(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_seg(path, kind, [PREDICTION])

    return write


WAYS = {
    "{}.nii.gz": write_nifti,
    "{}.NII.GZ": write_nifti,
    "{}.nii": write_nifti,
    "{}.nrrd": write_itk,
    "{}.Nrrd": write_ras_nrrd,
    "{}.nhdr": write_nhdr,
    "{}.mha": write_itk,
    "{}.MHA": lambda path: write_itk_as(path, ".mha"),
    "{}.mhd": lambda path: write_itk(path, compress=True),
    "{}_mask.mha": write_itk,
    "{}.hdr": lambda path: write_nifti(path, kind=nib.Nifti1Pair),
    "{}.seg.nrrd": cut_seg_nrrd,
    "{}.Seg.nrrd": layered_seg_nrrd,
    "{}.dcm": seg("BINARY"),
    "{}_seg.dcm": seg("FRACTIONAL"),
    "{}_seg.nii.gz": write_nifti,
    "{}-label.nrrd": write_itk,
    "pred_{}.nii": write_nifti,
    "{}/mask.nii.gz": write_nifti,
    "{}/segmentation.seg.nrrd": cut_seg_nrrd,
    "{}/Segmentation/mask.mhd": write_itk,
    "{}/1-1.dcm": seg("LABELMAP"),
    "sub-{}/anat/sub-{}_space-orig_desc-ours_dseg.nii.gz": write_nifti,
}


def write_itk_as(path, suffix):
    plain = path.with_name(f"plain{suffix}")
    write_itk(plain)
    plain.rename(path)


def rows_of(out):
    with (out / "case_scores.csv").open() as stream:
        return {row["case_id"]: row for row in csv.DictReader(stream)}


def score(reference, prediction, out, *more):
    done = mamamia(
        "score", "--reference", reference, "--prediction", prediction, "--out", out,
        "--bootstrap", "0", *more, has_figures=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done, rows_of(out)


@pytest.fixture
def folders(tmp_path):
    for name in ("reference", "prediction"):
        (tmp_path / name).mkdir()
    return tmp_path / "reference", tmp_path / "prediction"


def test_masks_of_every_tool_have_their_dice(folders, tmp_path):
    reference, prediction = folders
    names = {f"C{number:02d}X": name for number, name in enumerate(WAYS)}
    for case_id, name in names.items():
        write_nifti(reference / f"{case_id}.nii.gz", REFERENCE)
        path = prediction / name.format(case_id, case_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        WAYS[name](path)
    write_nifti(reference / "C98X.nii.gz", REFERENCE)
    turned_nifti(prediction / "C98X_mask.nii.gz")
    done, rows = score(reference, prediction, tmp_path / "out")
    assert done.returncode == 0, done.stdout + done.stderr
    wrong = {
        names.get(case_id): (row["status"], row["dsc"], row["reason"])
        for case_id, row in rows.items()
        if row["status"] != "ok" or float(row["dsc"]) != DICE
    }
    assert wrong == {}
    assert set(rows) == {*names, "C98X"}


def test_what_is_no_mask_by_its_name_is_named_and_never_missing(folders, tmp_path):
    reference, prediction = folders
    strange = (
        *("{}.npy", "{}.png", "{}.json", "{}.nii.bz2", "{}_0000.nii.gz", "{}_prob.nii.gz"),
        *("{}/image.nii.gz", "{}.img", "{}.raw", "{}_breast_mask.nii.gz", "model-{}-v2.nii"),
    )
    names = {f"C{number:02d}X": name.format(f"C{number:02d}X") for number, name in
             enumerate(strange)}  # fmt: skip
    for case_id, name in names.items():
        write_nifti(reference / f"{case_id}.nii.gz", REFERENCE)
        write_nifti(prediction / "plain.nii.gz")
        (prediction / name).parent.mkdir(exist_ok=True)
        (prediction / "plain.nii.gz").rename(prediction / name)
    write_nifti(reference / "TWO_1.nii.gz", REFERENCE)
    cut_seg_nrrd(prediction / "TWO_1.seg.nrrd")
    write_itk(prediction / "TWO_1.nrrd")
    write_nifti(reference / "GONE_1.nii.gz", REFERENCE)
    _, rows = score(reference, prediction, tmp_path / "out")
    for case_id, name in names.items():
        assert rows[case_id]["status"] == "unreadable", rows[case_id]
        assert name in rows[case_id]["reason"]
    assert rows["TWO_1"]["status"] == "several_files"
    assert "TWO_1.nrrd and TWO_1.seg.nrrd" in rows["TWO_1"]["reason"]
    assert rows["GONE_1"]["status"] == "prediction_missing"
    assert set(rows) == {*names, "TWO_1", "GONE_1"}


def test_headers_that_lead_elsewhere_cost_their_case_by_name(folders, tmp_path):
    reference, prediction = folders
    for case_id in ("A_1", "B_1", "C_1"):
        write_nifti(reference / f"{case_id}.nii.gz", REFERENCE)
        write_itk(prediction / f"{case_id}.mhd")
    secret = tmp_path / "A_1.raw"
    (prediction / "A_1.raw").rename(secret)
    header = prediction / "A_1.mhd"
    header.write_text(header.read_text().replace("A_1.raw", "../A_1.raw"))
    (prediction / "B_1.raw").unlink()
    _, rows = score(reference, prediction, tmp_path / "out")
    assert "its ElementDataFile says '../A_1.raw'" in rows["A_1"]["reason"]
    assert "expected voxels in B_1.raw" in rows["B_1"]["reason"]
    assert {rows[case_id]["status"] for case_id in ("A_1", "B_1")} == {"unreadable"}
    assert float(rows["C_1"]["dsc"]) == DICE


def test_a_changed_file_of_voxels_is_scored_again(folders, tmp_path):
    reference, prediction = folders
    write_nifti(reference / "A_1.nii.gz", REFERENCE)
    write_itk(prediction / "A_1.mhd")
    _, before = score(reference, prediction, tmp_path / "out")
    (prediction / "A_1.raw").write_bytes(REFERENCE.tobytes())
    _, after = score(reference, prediction, tmp_path / "out", "--resume")
    assert (float(before["A_1"]["dsc"]), float(after["A_1"]["dsc"])) == (DICE, 1.0)


def test_segments_are_chosen_by_name_or_number_on_both_sides(folders, tmp_path):
    reference, prediction = folders
    write_seg(reference / "A_1.dcm", "BINARY", [REFERENCE, NODE])
    texts = {"Segment0_Name": "Node", "Segment1_Name": "tumour"}
    write_seg_nrrd(prediction / "A_1.seg.nrrd", [NODE, PREDICTION], texts)
    _, rows = score(reference, prediction, tmp_path / "named", "--label", "Tumour")
    assert float(rows["A_1"]["dsc"]) == DICE
    _, rows = score(reference, prediction, tmp_path / "one", "--label", "1")
    assert float(rows["A_1"]["dsc"]) == 0  # the tumour against the node
    _, rows = score(reference, prediction, tmp_path / "all")
    assert float(rows["A_1"]["dsc"]) == 2 * (16 + 4) / (2 * (32 + 4))
    _, rows = score(reference, prediction, tmp_path / "none", "--label", "cyst")
    assert "'Tumour' (1), 'Node' (2)" in rows["A_1"]["reason"]


@pytest.mark.parametrize("words", [("CASE_1_gt.nii.gz", "CASE_1_pred.nii.gz"),
                                   ("CASE_1_seg.nii.gz", "CASE_1.nii.gz"),
                                   ("CASE_1.nii.gz", "CASE_1_seg.nii.gz")])  # fmt: skip
def test_words_for_a_mask_on_either_side_are_no_part_of_the_id(folders, tmp_path, words):
    reference, prediction = folders
    write_nifti(reference / words[0], REFERENCE)
    write_nifti(prediction / words[1])
    _, rows = score(reference, prediction, tmp_path / "out")
    assert {case_id: float(row["dsc"]) for case_id, row in rows.items()} == {"CASE_1": DICE}


def test_an_export_reads_the_same_files_and_names_the_others(small_data_set, tmp_path):
    expert, masks = small_data_set / "segmentations" / "expert", tmp_path / "masks"
    (masks / "B_1").mkdir(parents=True)
    image = sitk.ReadImage(str(expert / "A_1.nii.gz"))
    sitk.WriteImage(image, str(masks / "A_1.mhd"))
    (masks / "A_2.npz").touch()
    (expert / "B_1.nii.gz").rename(masks / "B_1" / "mask.nii.gz")
    done = mamamia(
        "export", small_data_set, "--masks", masks, "--out", tmp_path / "out", "--no-quality",
        has_figures=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert (
        "failed: A_2: expected a mask of A_2, but found only A_2.npz" in done.stdout + done.stderr
    )
    for case_id, source in (("A_1", expert / "A_1.nii.gz"), ("B_1", masks / "B_1/mask.nii.gz")):
        written = np.asarray(nib.load(tmp_path / "out" / f"{case_id}.nii.gz").dataobj)
        np.testing.assert_array_equal(written, np.asarray(nib.load(source).dataobj))


def test_kinetics_measures_the_same_files_and_names_the_others(small_data_set, tmp_path):
    expert, masks = small_data_set / "segmentations" / "expert", tmp_path / "masks"
    masks.mkdir()
    image = sitk.ReadImage(str(expert / "A_1.nii.gz"))
    sitk.WriteImage(image, str(masks / "A_1_mask.mha"))
    (masks / "B_1.npy").touch()
    tables = []
    for folder in (expert, masks):
        out = tmp_path / f"of {folder.name}"
        done = mamamia(
            "kinetics", small_data_set, "--masks", folder, "--out", out, has_figures=False
        )
        with (out / "kinetics.csv").open() as stream:
            tables.append({row["case_id"]: {**row, "mask": ""} for row in csv.DictReader(stream)})
    assert tables[0]["A_1"] == tables[1]["A_1"]
    said = done.stdout + done.stderr
    assert "B_1: expected a mask of B_1, but found only B_1.npy" in said
    assert " to have a mask of A_2, but found none" in " ".join(said.split())


# ---- each format of an export is read back, by `score` and in a data set

BACK = {
    ExportFormat.NIFTI: ".",
    ExportFormat.DICOM_SEG: "dicom_seg",
    ExportFormat.CHALLENGE: "challenge/pred_segmentations",
    ExportFormat.NNUNET: "nnunet/Dataset501_mydataset/labelsTr",
    ExportFormat.BIDS: "bids",
    ExportFormat.SLICER: "slicer",
}


def dicom_world(folder):
    """Return a study, a mask of it, and the same case as a data set of NIfTI."""
    from tests.services.test_export_seg import SHAPE as STACK
    from tests.services.test_export_seg import write_study

    from napari_mamamia.io.data_set.volumes import read_phase_header, write_volume
    from napari_mamamia.io.layouts.find import find_data_set

    study = write_study(folder / "CASE_1")
    grid = read_phase_header(find_data_set(study).cases[0].phases[0]).grid
    labels = np.zeros(STACK, np.uint8)
    labels[1:3, 2:6, 1:4] = 1
    write_volume(labels, grid, folder / "drawn" / "CASE_1.nii.gz")
    for k in range(2):
        write_volume(
            labels + np.uint8(k), grid, folder / f"nifti/images/CASE_1/CASE_1_000{k}.nii.gz"
        )
    return study, folder / "drawn", folder / "nifti"


@pytest.mark.parametrize("kind", list(ExportFormat))
def test_each_format_of_an_export_is_read_back(kind, tmp_path, small_data_set):
    import napari_mamamia as mm

    source = new = small_data_set
    drawn, made_by = tmp_path / "drawn", ()
    if kind is ExportFormat.DICOM_SEG:
        source, drawn, new = dicom_world(tmp_path)
        made_by = ("--made-by", "manual")
    else:
        (small_data_set / "segmentations" / "expert").rename(drawn)
    out = tmp_path / "out"
    done = mamamia(
        "export", source, "--masks", drawn, "--out", out, "--format", kind.value, "--no-quality",
        *made_by, has_figures=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    _, rows = score(drawn, out / BACK[kind], tmp_path / "scores")
    assert rows
    assert {(row["status"], float(row["dsc"])) for row in rows.values()} == {("ok", 1.0)}
    copytree(out / BACK[kind], new / "segmentations" / "expert")
    opened = mm.open_data_set(new)
    for case_id in rows:
        voxels = np.asarray(nib.load(drawn / f"{case_id}.nii.gz").dataobj).T > 0
        np.testing.assert_array_equal(opened[case_id].reference.array, voxels)
    if kind is ExportFormat.NNUNET:
        (case_id, *_) = rows
        assert mm.open_data_set(out / "nnunet/Dataset501_mydataset")[case_id].reference is not None


@pytest.mark.real
@pytest.mark.parametrize("name", ["08_mask_seg_nrrd", "09_mask_mha"])
def test_masks_that_others_made_have_the_dice_that_is_theirs(real_data, tmp_path, name):
    folder = real_data("foreign") / name
    _, rows = score(folder / "reference", folder / "prediction", tmp_path / "out")
    assert float(rows["CASE_1"]["dsc"]) == pytest.approx(0.7924812030075188)


@pytest.mark.real
def test_a_seg_that_others_made_has_its_voxels(real_data):
    import napari_mamamia as mm

    assert int(mm.read_mask(real_data("foreign") / "15_mask_seg.dcm").array.sum()) == 90
