"""Which file of a folder is the mask of a case, and what is named instead of missing."""

from pathlib import Path

import pytest

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.data_set.mask_files import (
    bare_id,
    find_masks,
    holds_masks,
    list_masks,
    no_mask_error,
)
from napari_mamamia.io.volumes.formats import (
    FORMATS,
    MASK_SUFFIXES,
    WRITTEN_SUFFIXES,
    file_stem,
    function_of,
    mask_stem,
)

ROOT = Path(__file__).parents[2]


def touch(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_every_function_of_the_table_is_there():
    for one in FORMATS:
        for reference in (one.open_with, one.labels_with, one.write_with):
            assert not reference or callable(function_of(reference))
        assert one.open_with or one.labels_with


def test_the_manifest_of_napari_names_the_suffixes_of_the_table():
    text = (ROOT / "src/napari_mamamia/napari.yaml").read_text()
    (patterns,) = [line for line in text.splitlines() if "filename_patterns" in line]
    for one in FORMATS:
        for suffix in one.suffixes:
            if suffix not in one.voxel_suffixes and suffix != ".seg.nrrd":
                assert f'"*{suffix}"' in patterns
    (written,) = [line for line in text.splitlines() if "filename_extensions" in line]
    assert all(f'"{suffix}"' in written for suffix in WRITTEN_SUFFIXES)


def test_no_other_module_has_a_list_of_suffixes_of_its_own():
    known = {"io/volumes/formats.py", "io/dicom/persons.py", "services/export/privacy.py"}
    lists = [
        path.relative_to(ROOT / "src/napari_mamamia").as_posix()
        for path in (ROOT / "src").rglob("*.py")
        if '".nii.gz", ' in (code := path.read_text("utf-8")) or 'endswith((".nrrd"' in code
    ]
    assert set(lists) <= known


@pytest.mark.parametrize(
    "name",
    [
        *(f"CASE_1{suffix}" for suffix in MASK_SUFFIXES if not suffix.startswith(".img")),
        *("case_1.NII.GZ", "CASE_1.Nrrd", "Case_1.SEG.NRRD", "CASE_1.MHA"),
        *("CASE_1_seg.nii.gz", "CASE_1-label.nrrd", "CASE_1_mask.mha", "CASE_1 Segmentation.nii"),
        *("CASE_1_tumor_mask.nii.gz", "pred_CASE_1.nii.gz", "CASE_1_pred.seg.nrrd"),
        *("sub-CASE1_dseg.nii.gz", "sub-CASE1_space-orig_desc-Ana_mask.nii.gz"),
        *("CASE_1/mask.nii.gz", "CASE_1/segmentation.seg.nrrd", "CASE_1/CASE_1.nii.gz"),
        *("CASE_1/CASE_1_seg.nii.gz", "CASE_1/Segmentation/mask.mha", "case_1/Segmentation.nrrd"),
        "sub-CASE1/anat/sub-CASE1_space-orig_desc-expert_dseg.nii.gz",
        "sub-CASE1/ses-01/anat/sub-CASE1_ses-01_dseg.nii.gz",
        *("CASE_1/CASE_1_trans.nii.gz", "CASE_1_ensemble.nii.gz"),  # MONAI: SaveImage, Auto3DSeg
        "CASE_1_0000/CASE_1_0000_seg.nii.gz",
    ],
)
def test_a_mask_is_found_by_the_names_that_tools_give(tmp_path, name):
    touch(tmp_path, name, "CASE_10.nii.gz", "CASE_1.json", "dataset_description.json")
    listing = list_masks(tmp_path, ["CASE_1", "CASE_10"])
    assert listing.masks["CASE_1"] == tmp_path / name
    assert listing.masks["CASE_10"] == tmp_path / "CASE_10.nii.gz"
    assert not listing.problems
    assert not listing.others


@pytest.mark.parametrize(
    "names",
    [
        ("CASE_1.npy",),
        ("CASE_1.png", "CASE_1.json"),
        ("CASE_1.npz",),
        ("CASE_1.nii.bz2",),
        ("CASE_1.img",),  # its header is not there
        ("CASE_1.raw",),
        ("CASE_1_0000.nii.gz",),
        ("CASE_1_breast_mask.nii.gz",),
        ("CASE_1_prob.nii.gz",),
        ("model-a_CASE_1_v2.nii.gz",),
        ("CASE_1/image.nii.gz", "CASE_1/notes.txt"),
        ("CASE_1",),
        ("sub-CASE1_T1w.nii.gz",),
    ],
)
def test_what_carries_a_case_name_is_named(tmp_path, names):
    touch(tmp_path, *names, "CASE_10.nii.gz")
    listing = list_masks(tmp_path, ["CASE_1", "CASE_10"])
    assert set(listing.masks) == {"CASE_10"}
    assert set(listing.others) == {"CASE_1"}
    for name in names:
        assert name in listing.others["CASE_1"]


@pytest.mark.parametrize(
    "names",
    [
        ("CASE_1.seg.nrrd", "CASE_1.nrrd"),
        ("CASE_1.nii", "case_1.nii.gz"),
        ("CASE_1_seg.nii.gz", "CASE_1_mask.nii.gz"),
        ("CASE_1/mask.nii.gz", "CASE_1/seg.nrrd"),
        ("CASE_1_seg.nii.gz", "CASE_1/mask.nii.gz"),
        ("sub-CASE1_desc-A_dseg.nii.gz", "sub-CASE1_desc-B_dseg.nii.gz"),
    ],
)
def test_two_files_of_one_case_are_named_and_none_is_taken(tmp_path, names):
    touch(tmp_path, *names)
    listing = list_masks(tmp_path, ["CASE_1"])
    assert not listing.masks
    for name in names:
        assert name in listing.problems["CASE_1"]
    with pytest.raises(FormatError, match=str(tmp_path)):
        find_masks(tmp_path, ["CASE_1"])


def test_a_file_of_the_plain_name_counts_before_others(tmp_path):
    touch(tmp_path, "CASE_1.nii.gz", "CASE_1_mask.nii.gz", "CASE_1/mask.nii.gz")
    assert list_masks(tmp_path, ["CASE_1"]).masks["CASE_1"] == tmp_path / "CASE_1.nii.gz"


def test_a_file_belongs_to_the_longest_id_that_it_carries(tmp_path):
    touch(tmp_path, "CASE_1_2_seg.nii.gz")
    listing = list_masks(tmp_path, ["CASE_1", "CASE_1_2"])
    assert dict(listing.masks) == {"CASE_1_2": tmp_path / "CASE_1_2_seg.nii.gz"}
    assert not listing.others


def test_short_ids_are_not_found_within_other_words(tmp_path):
    touch(tmp_path, "run_1.json", "A 7.txt", "mask_7.nii.gz")
    listing = list_masks(tmp_path, ["1", "7"])
    assert dict(listing.masks) == {"7": tmp_path / "mask_7.nii.gz"}
    assert not listing.others


def test_nothing_but_nothing_is_missing(tmp_path):
    touch(tmp_path, "OTHER.nii.gz", "summary.json")
    listing = list_masks(tmp_path, ["CASE_1"])
    assert dict(listing.masks) == {"OTHER": tmp_path / "OTHER.nii.gz"}
    assert not listing.problems
    assert not listing.others


def test_without_ids_names_are_ids_and_folders_are_cases(tmp_path):
    touch(
        tmp_path, "A_seg.nii.gz", "B/mask.nii.gz", "sub-C1/anat/sub-C1_dseg.nii.gz", "plots/x.png"
    )
    assert set(list_masks(tmp_path).masks) == {"A_seg", "B", "C1"}


def test_a_folder_without_masks_tells_where_there_are_some(tmp_path):
    touch(tmp_path, "labelsTr/A.nii.gz", "readme.txt")
    assert holds_masks(tmp_path)
    assert "masks are in labelsTr: use that folder" in str(no_mask_error(tmp_path))


def test_stems_and_words_of_masks():
    assert mask_stem("A.seg.nrrd") == mask_stem("A.mhd") == mask_stem("A.hdr.gz") == "A"
    assert mask_stem("A.img") is None  # its header stands for it
    assert file_stem("A.dcm") is None  # an image is a series
    assert bare_id("CASE_1_gt") == bare_id("CASE_1") == "CASE_1"
    assert bare_id("tumor_1") == "tumor_1"
    assert bare_id("mask") == "mask"
