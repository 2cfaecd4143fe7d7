"""Exports for 3D Slicer, read by two programs that are not ours."""

import nibabel as nib
import nrrd
import numpy as np
import pytest
import SimpleITK

from napari_mamamia.core.choices import ExportFormat
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.label_rules import LabelRule
from napari_mamamia.io.volumes.nrrd import write_nrrd
from napari_mamamia.services.case.data_set import open_data_set
from napari_mamamia.services.export.export import export_bundle
from napari_mamamia.services.export.plan import ExportSettings, MaskFolder
from napari_mamamia.services.export.verify import verify_bundle

RULES = (LabelRule(1, 1, "tumour"), LabelRule(2, 2, "thing of ours"))
TO_LPS = np.diag([-1.0, -1.0, 1.0, 1.0])


@pytest.fixture
def two_labels(small_data_set, tmp_path):
    """Masks of one case with two labels, and the data set."""
    image = nib.load(small_data_set / "segmentations" / "expert" / "A_1.nii.gz")
    labels = np.asarray(image.dataobj).astype(np.uint8)
    labels[1:3, 1:4, 2] = 2
    folder = tmp_path / "masks"
    folder.mkdir()
    nib.save(nib.Nifti1Image(labels, image.affine), folder / "A_1.nii.gz")
    return open_data_set(small_data_set, tmp_path / "workspace"), folder, labels, image.affine


def exported(opened, masks, out, rules=RULES):
    formats = (ExportFormat.SLICER,)
    settings = ExportSettings(masks, formats=formats, rules=rules, with_quality=False)
    return export_bundle(opened, settings, out)


def test_two_other_programs_read_the_same_voxels_place_and_segments(two_labels, tmp_path):
    opened, folder, labels, affine = two_labels
    summary = exported(opened, (MaskFolder(folder),), tmp_path / "out")
    assert summary.problems == ()
    path = tmp_path / "out" / "slicer" / "A_1.seg.nrrd"
    voxels, head = nrrd.read(str(path))
    assert np.array_equal(voxels, labels)
    assert head["space"] == "left-posterior-superior"
    assert np.allclose(head["space directions"].T, (TO_LPS @ affine)[:3, :3], atol=1e-6)
    assert np.allclose(head["space origin"], (TO_LPS @ affine)[:3, 3], atol=1e-6)
    names = {head[f"Segment{n}_LabelValue"]: head[f"Segment{n}_Name"] for n in (0, 1)}
    assert names == {"1": "tumour", "2": "thing of ours"}
    x, y, z = labels.shape
    assert head["Segment0_Extent"] == f"0 {x - 1} 0 {y - 1} 0 {z - 1}"
    assert "SCT^108369006^Neoplasm" in head["Segment0_Tags"]
    assert "Segment1_Tags" not in head
    assert head["Segmentation_MasterRepresentation"] == "Binary labelmap"
    itk = SimpleITK.ReadImage(str(path))
    assert np.array_equal(SimpleITK.GetArrayFromImage(itk), labels.T)
    corner = (x - 1, y - 1, z - 1)
    place = (TO_LPS @ affine @ [*corner, 1])[:3]
    assert np.allclose(itk.TransformIndexToPhysicalPoint(corner), place, atol=1e-4)


def test_several_readers_lie_in_folders_and_equal_masks_are_equal_files(two_labels, tmp_path):
    opened, folder, _, _ = two_labels
    sets = (MaskFolder(folder, "Ana"), MaskFolder(folder, "Ben"))
    summary = exported(opened, sets, tmp_path / "out")
    assert summary.problems == ()
    ana, ben = (tmp_path / "out" / "slicer" / name / "A_1.seg.nrrd" for name in ("Ana", "Ben"))
    assert ana.read_bytes() == ben.read_bytes()
    assert (ana.parent / "A_1.seg.json").exists()


def test_a_segment_under_another_name_is_found_by_the_verification(two_labels, tmp_path):
    opened, folder, _, _ = two_labels
    exported(opened, (MaskFolder(folder),), tmp_path / "out")
    path = tmp_path / "out" / "slicer" / "A_1.seg.nrrd"
    path.write_bytes(path.read_bytes().replace(b"Segment1_Name:=thing", b"Segment1_Name:=think"))
    problems = " ".join(verify_bundle(tmp_path / "out").problems)
    assert "segment 2 'think of ours' is not in the manifest" in problems
    assert "segment 2 'thing of ours' is not in the file" in problems


@pytest.mark.parametrize("name", ["Ödem", "a\\b", "tumour\nSegment9_Name:=x"])
def test_a_name_that_a_header_cannot_hold_is_refused_before_anything_is_written(
    two_labels, tmp_path, name
):
    opened, folder, _, _ = two_labels
    rules = (LabelRule(1, 1, name), LabelRule(2, 2, "b"))
    with pytest.raises(CaseError, match="printable ASCII characters without a backslash"):
        exported(opened, (MaskFolder(folder),), tmp_path / "out", rules)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("text", ["a\nb", "a\\nb"])
def test_a_header_takes_texts_of_one_line_only(tmp_path, text):
    grid = Grid((2, 2, 2), np.eye(4))
    with pytest.raises(ValueError, match="one-line strings"):
        write_nrrd(np.zeros((2, 2, 2), np.uint8), grid, tmp_path / "x.nrrd", pairs=[("k", text)])
    assert [*tmp_path.iterdir()] == []
