import time

import nibabel as nib
import numpy as np
import pytest
from napari.components import ViewerModel
from napari.layers import Labels, Layer
from npe2 import PluginManager

from napari_mamamia import commands
from napari_mamamia.core.errors import FormatError, GridMismatchError
from napari_mamamia.widgets.base.layers import Role, array_of, find_layer, tag_of


@pytest.fixture
def viewer():
    PluginManager.instance().discover()
    return ViewerModel()


def nifti(path, array_zyx, affine):
    image = nib.Nifti1Image(array_zyx.transpose(), affine)
    image.set_qform(affine, 1)
    image.set_sform(affine, 1)
    nib.save(image, path)
    return path


AFFINE = np.diag([-0.8, 0.7, 2.0, 1.0])


@pytest.mark.parametrize("name", ["a.seg.nrrd", "a.dcm", "a.mha", "a.hdr"])
def test_a_mask_of_another_tool_becomes_labels_in_its_place(viewer, tmp_path, name):
    from tests.cli.test_mask_formats import PREDICTION, seg, write_itk
    from tests.io.test_segment_files import GRID, write_seg_nrrd

    path = tmp_path / name
    if name == "a.seg.nrrd":
        write_seg_nrrd(path, [PREDICTION[1:4, 2:6, 3:9]], {"Segment0_Name": "x"}, (1, 2, 3))
    elif name == "a.dcm":
        seg("BINARY")(path)
    else:
        write_itk(path)
    (layer,) = viewer.open(str(path), plugin="napari-mamamia")
    assert isinstance(layer, Labels)
    assert np.count_nonzero(layer.data) == 32  # drawn by hand
    world_mm = tag_of(layer).grid.to_world_mm(np.argwhere(array_of(layer)))
    drawn_mm = GRID.to_world_mm(np.argwhere(PREDICTION))
    np.testing.assert_allclose(sorted(world_mm.tolist()), sorted(drawn_mm.tolist()), atol=1e-5)


def test_a_part_of_an_image_lies_on_the_open_case(viewer, tmp_path, monkeypatch):
    from tests.cli.test_mask_formats import PREDICTION, write_nifti
    from tests.io.test_segment_files import GRID, write_seg_nrrd

    from napari_mamamia.widgets.adapter import adapter

    image = tmp_path / "images" / "A" / "A_0000.nii.gz"
    write_nifti(image, np.arange(480).reshape(GRID.shape) > 200)
    viewer.open(str(image.parent), plugin="napari-mamamia")
    monkeypatch.setattr(adapter, "current_viewer", lambda: viewer)
    path = write_seg_nrrd(tmp_path / "a.seg.nrrd", [PREDICTION[1:4, 2:6, 3:9]], {}, (1, 2, 3))
    (layer,) = viewer.open(str(path), plugin="napari-mamamia")
    np.testing.assert_array_equal(array_of(layer) > 0, PREDICTION)
    path = write_seg_nrrd(tmp_path / "b.seg.nrrd", [PREDICTION[1:4, 2:6, 3:9]], {}, (1.5, 2, 3))
    with pytest.raises(
        GridMismatchError, match=r"b\.seg\.nrrd.*do not lie on the voxels of the image"
    ):
        commands.get_reader(str(path))(str(path))


def test_a_foreign_folder_is_declined_at_once(tmp_path):
    for k in range(3000):
        (tmp_path / f"file_{k}.txt").touch()
    best = []
    for _ in range(3):
        started = time.thread_time()
        assert commands.get_reader(str(tmp_path)) is None
        best.append(time.thread_time() - started)
    assert min(best) < 0.5


@pytest.mark.parametrize("name", ["picture.png", "missing.nii.gz", "text.txt"])
def test_a_foreign_or_missing_file_is_declined(tmp_path, name):
    if "missing" not in name:
        (tmp_path / name).write_text("x")
    assert commands.get_reader(str(tmp_path / name)) is None


def test_a_stack_of_paths_is_declined(small_data_set):
    assert commands.get_reader([str(small_data_set), str(small_data_set)]) is None


def test_without_a_window_a_data_set_opens_its_first_case(viewer, small_data_set):
    viewer.open(str(small_data_set), plugin="napari-mamamia")
    image = find_layer(viewer.layers, Role.PHASE)
    assert image.data.shape == (4, 8, 32, 48)
    assert tag_of(image).case_id == "A_1"
    assert find_layer(viewer.layers, Role.REFERENCE) is not None


def test_a_volume_opens_as_an_image_in_the_display_frame(viewer, tmp_path):
    array = np.arange(3 * 4 * 5, dtype=np.int16).reshape(3, 4, 5)
    path = nifti(tmp_path / "ein Bild.nii.gz", array, AFFINE)
    viewer.open(str(path), plugin="napari-mamamia")
    (image,) = viewer.layers
    np.testing.assert_array_equal(array_of(image), array)
    assert (image.name, image.ndim) == ("ein Bild.nii.gz", 3)
    assert "phase" not in image.axis_labels
    assert find_layer(viewer.layers, Role.PHASE) is None


@pytest.mark.parametrize("shape", [(3, 4, 5), (3, 4, 5, 6)])
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.filterwarnings("error")
def test_files_next_to_layers_of_other_plugins_make_napari_warn_of_nothing(
    viewer, tmp_path, shape, is_first
):
    path = nifti(tmp_path / "a.nii.gz", np.ones(shape, np.float32), AFFINE)
    if is_first:
        viewer.add_image(np.zeros((5, 4, 3)))
    viewer.open(str(path), plugin="napari-mamamia")
    if not is_first:
        viewer.add_image(np.zeros((5, 4, 3)))
    assert len(viewer.layers) == 2
    assert viewer.layers.extent.world.shape[0] == 2


def test_a_four_dimensional_file_opens_as_the_phases_of_a_case(viewer, tmp_path):
    array = np.arange(3 * 4 * 5 * 6, dtype=np.int16).reshape(3, 4, 5, 6)
    path = nifti(tmp_path / "dce.nii.gz", array, AFFINE)
    viewer.open(str(path), plugin="napari-mamamia")
    np.testing.assert_array_equal(array_of(viewer.layers[0]), array)


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz", ".nrrd"])
def test_a_mask_opens_as_labels_and_is_saved_voxel_by_voxel(viewer, tmp_path, suffix):
    mask = np.zeros((3, 4, 5), np.uint8)
    mask[1, 2, 3] = 1
    source = nifti(tmp_path / "mask.nii.gz", mask, AFFINE)
    viewer.open(str(source), plugin="napari-mamamia")
    layer = viewer.layers[0]
    assert isinstance(layer, Labels)
    target = tmp_path / f"saved{suffix}"
    assert layer.save(str(target), plugin="napari-mamamia") == [str(target)]
    viewer.open(str(target), plugin="napari-mamamia")
    np.testing.assert_array_equal(array_of(viewer.layers[1]), mask)
    assert tag_of(viewer.layers[1]).grid.is_same_place(tag_of(layer).grid)


def test_the_mask_of_a_case_is_saved_with_the_geometry_of_its_image(
    viewer, small_data_set, tmp_path
):
    viewer.open(str(small_data_set), plugin="napari-mamamia")
    layer = find_layer(viewer.layers, Role.REFERENCE)
    commands.write_labels(str(tmp_path / "m.nii.gz"), *layer.as_layer_data_tuple()[:2])
    image = nib.load(small_data_set / "images" / "A_1" / "A_1_0000.nii.gz")
    saved = nib.load(tmp_path / "m.nii.gz")
    np.testing.assert_array_equal(saved.affine, image.affine)
    assert saved.get_data_dtype() == np.uint8
    reference = nib.load(small_data_set / "segmentations" / "expert" / "A_1.nii.gz")
    np.testing.assert_array_equal(saved.dataobj, reference.dataobj)


def test_a_layer_that_is_not_ours_is_saved_on_the_grid_of_its_transform(tmp_path):
    data = np.zeros((3, 4, 5), np.int32)
    data[2, 1, 0] = 7
    layer = Labels(data, scale=(2.0, 0.7, 0.8), translate=(10.0, 20.0, 30.0))
    commands.write_labels(str(tmp_path / "m.nii.gz"), *layer.as_layer_data_tuple()[:2])
    saved = nib.load(tmp_path / "m.nii.gz")
    expected = np.array([[0.8, 0, 0, 30.0], [0, 0.7, 0, 20.0], [0, 0, 2.0, 10.0], [0, 0, 0, 1.0]])
    np.testing.assert_allclose(saved.affine, expected, atol=1e-6)
    assert np.argwhere(np.asarray(saved.dataobj)).tolist() == [[0, 1, 2]]
    assert np.asarray(saved.dataobj).max() == 1


def test_a_flat_layer_is_refused(tmp_path):
    layer = Labels(np.zeros((4, 5), np.uint8))
    with pytest.raises(FormatError, match="expected a labels layer with 3 dimensions"):
        commands.write_labels(str(tmp_path / "m.nii.gz"), *layer.as_layer_data_tuple()[:2])


def test_another_suffix_is_refused(tmp_path):
    layer = Labels(np.zeros((3, 4, 5), np.uint8))
    with pytest.raises(FormatError, match="choose a different name"):
        commands.write_labels(str(tmp_path / "m.tif"), *layer.as_layer_data_tuple()[:2])


@pytest.mark.parametrize("sample", ["axial", "sagittal"])
def test_sample_data_are_a_case_with_its_reference(viewer, sample):
    viewer.open_sample("napari-mamamia", sample)
    image = find_layer(viewer.layers, Role.PHASE)
    reference = find_layer(viewer.layers, Role.REFERENCE)
    assert tag_of(image).grid.acquisition_plane == sample
    assert array_of(reference).any()
    assert len(tag_of(image).times_s) == image.data.shape[0]


def test_sample_layers_can_be_made_without_a_viewer():
    data = commands.sample_axial()
    layers = [Layer.create(*one) for one in data]
    assert [type(layer).__name__ for layer in layers] == ["Image", "Labels"]
