"""Files of segments: .seg.nrrd and DICOM SEG, put on the image's grid; segments by name or number.

Expected values are voxels drawn by hand; files are written by pynrrd and highdicom.
"""

import nrrd
import numpy as np
import pytest

from napari_mamamia.core.case import LabelMap, on_common_grid
from napari_mamamia.core.errors import FormatError, GridMismatchError
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.data_set.volumes import read_label_pair, read_labels, write_labels

SHAPE = (6, 8, 10)
GRID = Grid(SHAPE, np.array([[-0.5, 0, 0, 20], [0, -0.75, 0, 30], [0, 0, 2, -5], [0, 0, 0, 1.0]]))
"""Its axes run as LPS."""


def drawn(*boxes):
    masks = []
    for z, y, x in boxes:
        mask = np.zeros(SHAPE, bool)
        mask[z, y, x] = True
        masks.append(mask)
    return masks


FIRST, SECOND = drawn(
    (slice(1, 3), slice(2, 5), slice(3, 7)), (slice(2, 4), slice(3, 6), slice(5, 8))
)  # they overlap in z 2, y 3 to 4, x 5 to 6: four voxels


def write_seg_nrrd(path, layers, texts, start=(0, 0, 0)):
    """Write layers (z, y, x) that begin at voxel `start` (z, y, x) of GRID, as Slicer does."""
    origin = GRID.to_world_mm(start) * (-1, -1, 1)
    steps = [[0.5, 0, 0], [0, 0.75, 0], [0, 0, 2]]
    data = np.stack([layer.T for layer in layers]) if len(layers) > 1 else layers[0].T
    nothing = [[np.nan] * 3] if len(layers) > 1 else []
    head = {
        "space": "left-posterior-superior",
        "kinds": ["list"] * len(nothing) + ["domain"] * 3,
        "space directions": np.array([*nothing, *steps]),
        "space origin": origin,
        "encoding": "gzip",
        **texts,
    }
    nrrd.write(str(path), np.ascontiguousarray(data).astype(np.uint8), head)
    return path


NAMES = {
    **{"Segment0_Name": "Tumour", "Segment0_LabelValue": "1", "Segment0_Layer": "0"},
    **{"Segment1_Name": "Node", "Segment1_LabelValue": "1", "Segment1_Layer": "1"},
    "Segmentation_MasterRepresentation": "Binary labelmap",
}


def test_a_segmentation_cut_to_its_own_extent_lies_on_the_image(tmp_path):
    path = write_seg_nrrd(
        tmp_path / "a.seg.nrrd",
        [FIRST[1:4, 2:6, 3:9]],
        {"Segment0_Name": "x", "Segmentation_ReferenceImageExtentOffset": "3 2 1"},
        (1, 2, 3),
    )
    labels = read_labels(path)
    assert labels.grid.shape == (3, 4, 6)
    np.testing.assert_array_equal(labels.on_grid(GRID).dense() > 0, FIRST)


def test_layers_that_overlap_are_segments_by_number_and_name(tmp_path):
    path = write_seg_nrrd(tmp_path / "a.seg.nrrd", [FIRST, SECOND], NAMES)
    anything = read_labels(path).on_grid(GRID)
    np.testing.assert_array_equal(anything.dense() > 0, FIRST | SECOND)
    assert anything.values == (1, 2)
    for label, mask in ((1.0, FIRST), (2.0, SECOND)):
        chosen = read_labels(path, label).on_grid(GRID).mask(label).array
        np.testing.assert_array_equal(chosen, mask)
    for name, mask in (("tumour", FIRST), (" NODE ", SECOND)):
        np.testing.assert_array_equal(read_labels(path, name).on_grid(GRID).dense() == 1, mask)
    with pytest.raises(FormatError, match=r"'liver'.*'Tumour' \(1\), 'Node' \(2\)"):
        read_labels(path, "liver")


def test_layers_without_a_word_of_them_are_one_segment_each(tmp_path):
    texts = {"Segment0_Name": "Tumour", "Segment1_Name": "Node"}  # before Slicer 4.11
    path = write_seg_nrrd(tmp_path / "a.seg.nrrd", [FIRST, SECOND], texts)
    np.testing.assert_array_equal(read_labels(path, "node").on_grid(GRID).dense() > 0, SECOND)


def test_one_layer_keeps_its_values_and_has_names(tmp_path):
    values = np.where(FIRST, 3, np.where(SECOND, 7, 0))
    texts = {
        **{"Segment0_Name": "Tumour", "Segment0_LabelValue": "3", "Segment0_Layer": "0"},
        **{"Segment1_Name": "Node", "Segment1_LabelValue": "7", "Segment1_Layer": "0"},
    }
    path = write_seg_nrrd(tmp_path / "a.seg.nrrd", [values], texts)
    assert read_labels(path).values == (3, 7)
    named = read_labels(path, "Node").on_grid(GRID).dense() > 0
    np.testing.assert_array_equal(named, values == 7)


def test_a_fractional_segmentation_is_refused_by_its_word(tmp_path):
    texts = {"Segmentation_MasterRepresentation": "Fractional labelmap"}
    path = write_seg_nrrd(tmp_path / "a.seg.nrrd", [FIRST], texts)
    with pytest.raises(FormatError, match=r"a\.seg\.nrrd: expected a binary.*Fractional labelmap"):
        read_labels(path)


def test_a_part_of_another_image_or_off_its_voxels_is_refused(tmp_path):
    part = read_labels(write_seg_nrrd(tmp_path / "a.seg.nrrd", [FIRST], {}))
    for affine, shape in (
        (GRID.affine + np.outer([0.2, 0, 0, 0], [0, 0, 0, 1]), SHAPE),
        (GRID.affine, (2, 8, 10)),
        (np.diag([-0.6, -0.75, 2, 1.0]), SHAPE),
    ):
        with pytest.raises(
            GridMismatchError, match=r"a\.seg\.nrrd.*do not lie on the voxels of the image"
        ):
            part.on_grid(Grid(shape, affine))


def test_a_part_lands_on_an_image_whose_axes_run_otherwise(tmp_path):
    part = read_labels(write_seg_nrrd(tmp_path / "a.seg.nrrd", [FIRST], {}))
    affine = GRID.affine.copy()
    affine[:3, 0] *= -1
    affine[:3, 3] = GRID.to_world_mm((0, 0, SHAPE[2] - 1))
    turned = part.on_grid(Grid(SHAPE, affine)).dense()
    np.testing.assert_array_equal(turned[:, :, ::-1] > 0, FIRST)


def test_two_parts_of_one_image_are_compared_on_the_block_that_holds_both(tmp_path):
    a = write_seg_nrrd(tmp_path / "a.seg.nrrd", [FIRST[1:3, 2:5, 3:7]], {}, (1, 2, 3))
    b = write_seg_nrrd(tmp_path / "b.seg.nrrd", [SECOND[2:4, 3:6, 5:8]], {}, (2, 3, 5))
    one, other = read_label_pair(a, b)
    assert one.grid == other.grid
    assert one.grid.shape == (5, 6, 7)  # z 1 to 3, y 2 to 5, x 3 to 7, and one more on each side
    both = (one.dense() > 0) & (other.dense() > 0)
    assert (both.sum(), one.dense().sum(), other.dense().sum()) == (4, 24, 18)


def test_a_whole_file_on_another_grid_is_left_as_it_is(tmp_path):
    a = write_seg_nrrd(tmp_path / "a.seg.nrrd", [FIRST], {})
    shifted = Grid(SHAPE, GRID.affine + np.outer([0.2, 0, 0, 0], [0, 0, 0, 1]))
    write_labels(LabelMap.of(SECOND, shifted), tmp_path / "b.nii.gz")
    one, other = read_label_pair(a, tmp_path / "b.nii.gz")
    assert one.is_part
    assert not other.is_part
    assert on_common_grid(other, other) == (other, other)


def test_a_name_means_the_only_value_of_a_file_without_names(tmp_path):
    write_labels(LabelMap.of(FIRST * np.uint8(4), GRID), tmp_path / "a.nii.gz")
    assert read_labels(tmp_path / "a.nii.gz", "tumour").values == (4,)
    write_labels(LabelMap.of(FIRST + SECOND * np.uint8(2), GRID), tmp_path / "b.nii.gz")
    with pytest.raises(FormatError, match=r"b\.nii\.gz.*'tumour'.*1, 2, 3 without names"):
        read_labels(tmp_path / "b.nii.gz", "tumour")


# ---- DICOM SEG, by highdicom


def write_seg(path, kind, masks):
    """Write masks on GRID as a SEG of highdicom's, empty frames left out."""
    hd = pytest.importorskip("highdicom")
    pydicom = pytest.importorskip("pydicom")
    from pydicom.sr.codedict import codes

    def source(k):
        image = pydicom.Dataset()
        meta = pydicom.dataset.FileMetaDataset()
        meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
        image.file_meta = meta
        image.SOPClassUID = "1.2.840.10008.5.1.4.1.1.4"
        image.SOPInstanceUID = f"2.25.10{k}"
        image.StudyInstanceUID, image.SeriesInstanceUID = "2.25.1", "2.25.2"
        image.FrameOfReferenceUID = "2.25.3"
        for name in ("PatientName", "PatientBirthDate", "PatientSex", "AccessionNumber", "StudyID",
                     "StudyDate", "StudyTime", "ReferringPhysicianName"):  # fmt: skip
            setattr(image, name, "")
        image.PatientID, image.Modality = "X", "MR"
        image.Rows, image.Columns = SHAPE[1:]
        image.PixelSpacing, image.SliceThickness = [0.75, 0.5], 2
        image.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
        image.ImagePositionPatient = list(GRID.to_world_mm((k, 0, 0)) * (-1, -1, 1))
        return image

    kinds = hd.seg.SegmentationTypeValues
    descriptions = [
        hd.seg.SegmentDescription(
            number, name, codes.SCT.Tissue, codes.SCT.Neoplasm,
            hd.seg.SegmentAlgorithmTypeValues.MANUAL,
        )
        for number, name in enumerate(("Tumour", "Node")[: len(masks)], 1)
    ]  # fmt: skip
    if kind == "LABELMAP":
        array = np.zeros(SHAPE, np.uint8)
        for number, mask in enumerate(masks, 1):
            array[mask & (array == 0)] = number
    else:
        array = np.stack(masks, -1).astype(np.float32 if kind == "FRACTIONAL" else np.uint8)
    more = {"fractional_type": "PROBABILITY"} if kind == "FRACTIONAL" else {}
    seg = hd.seg.Segmentation(
        [source(k) for k in range(SHAPE[0])], array, kinds[kind], descriptions,
        "2.25.5", 1, "2.25.6", 1, "us", "test", "1", "1", omit_empty_frames=True, **more,
    )  # fmt: skip
    seg.save_as(path)
    return path


@pytest.mark.parametrize("kind", ["BINARY", "FRACTIONAL", "LABELMAP"])
def test_every_kind_of_seg_lies_on_the_image(tmp_path, kind):
    masks = [FIRST, SECOND & ~FIRST] if kind == "LABELMAP" else [FIRST, SECOND]
    path = write_seg(tmp_path / "a.dcm", kind, masks)
    labels = read_labels(path)
    assert labels.grid.shape[0] < SHAPE[0]  # frames without a voxel are not stored
    np.testing.assert_array_equal(labels.on_grid(GRID).dense() > 0, FIRST | SECOND)
    for number, (name, mask) in enumerate(zip(("tumour", "Node"), masks, strict=True), 1):
        chosen = read_labels(path, float(number)).on_grid(GRID).mask(number).array
        np.testing.assert_array_equal(chosen, mask)
        np.testing.assert_array_equal(read_labels(path, name).on_grid(GRID).dense() > 0, mask)


def test_probabilities_of_a_seg_count_from_one_half(tmp_path):
    soft = FIRST * 0.8 + SECOND * ~FIRST * 0.3
    path = write_seg(tmp_path / "a.dcm", "FRACTIONAL", [soft])
    np.testing.assert_array_equal(read_labels(path).on_grid(GRID).dense() > 0, FIRST)


def test_a_seg_without_a_suffix_is_known_by_its_first_bytes(tmp_path):
    path = write_seg(tmp_path / "IM0001", "BINARY", [FIRST])
    np.testing.assert_array_equal(read_labels(path).on_grid(GRID).dense() > 0, FIRST)
