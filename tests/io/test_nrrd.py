"""NRRD: the values and the place that SimpleITK gives; what is rare is refused by name."""

import bz2
import gzip

import nrrd
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the name that its own documentation uses
from tests.stepped import Stepped

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Mask
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.data_set.volumes import (
    read_header,
    read_labels,
    read_labels_dense,
    read_phase_header,
    read_phase_into,
    read_volume,
    write_mask,
    write_volume,
)
from napari_mamamia.io.files.sources import PhaseSource

ARRAY = np.arange(60, dtype=np.int16).reshape(3, 4, 5)
VOXELS = ARRAY.tobytes()
FIELDS = {
    "type": "short",
    "dimension": "3",
    "space": "left-posterior-superior",
    "sizes": "5 4 3",
    "space directions": "(0.5,0,0) (0,0.75,0) (0,0,2)",
    "kinds": "domain domain domain",
    "endian": "little",
    "encoding": "raw",
    "space origin": "(1,2,3)",
}


@pytest.fixture
def nrrd_file(tmp_path):
    """Return a function that writes a header of `FIELDS`, changed as asked, and some bytes."""

    def write(data=VOXELS, **changes):
        fields = {**FIELDS, **{name.replace("_", " "): value for name, value in changes.items()}}
        lines = [f"{name}: {value}" for name, value in fields.items() if value is not None]
        path = tmp_path / "Bild 1.nrrd"
        path.write_bytes("\n".join(["NRRD0004", *lines, "", ""]).encode() + data)
        return path

    return write


def itk_affine(path):
    """Return SimpleITK's voxel (x, y, z) to RAS mm matrix."""
    image = sitk.ReadImage(str(path))
    affine = np.eye(4)
    affine[:3, :3] = np.reshape(image.GetDirection(), (3, 3)) * image.GetSpacing()
    affine[:3, 3] = image.GetOrigin()
    return np.diag([-1, -1, 1, 1]) @ affine


def test_steps_and_origin_become_an_affine_to_ras(nrrd_file):
    header, values = read_volume(nrrd_file())
    assert header.grid.orientation == "LPS"
    expected = [[-0.5, 0, 0, -1], [0, -0.75, 0, -2], [0, 0, 2, 3], [0, 0, 0, 1]]
    np.testing.assert_array_equal(header.grid.affine, expected)
    np.testing.assert_array_equal(values, ARRAY)
    assert values.dtype == np.int16
    assert header.warnings == ()


@pytest.mark.parity
@pytest.mark.parametrize("space", ["left-posterior-superior", "LPS", "right-anterior-superior",
                                   "left-anterior-superior", "RAS", "LAS"])  # fmt: skip
def test_every_patient_space_lands_where_simpleitk_puts_it(nrrd_file, space):
    directions = "(0.5,0.1,0) (-0.15,0.7,0.1) (0.2,0,2)"
    path = nrrd_file(space=space, space_directions=directions)
    np.testing.assert_allclose(read_header(path).grid.affine, itk_affine(path), atol=1e-12)


@pytest.mark.parity
@pytest.mark.parametrize("use_compression", [False, True])
@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
def test_files_of_simpleitk_open_with_its_values_and_affine(tmp_path, dtype, use_compression):
    image = sitk.GetImageFromArray((ARRAY - (30 if dtype[0] != "u" else 0)).astype(dtype))
    image.SetSpacing((0.7, 0.8, 2.1))
    image.SetOrigin((-12.5, 30, 8))
    image.SetDirection((0, 0, 1, 1, 0, 0, 0, -1, 0))
    path = tmp_path / "itk.nrrd"
    sitk.WriteImage(image, str(path), use_compression)
    header, values = read_volume(path)
    assert values.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(values, sitk.GetArrayFromImage(image))
    np.testing.assert_allclose(header.grid.affine, itk_affine(path), atol=1e-12)


@pytest.mark.parametrize("name", ["short", "signed short", "int16", "int16_t", "short int"])
def test_every_name_of_a_type_is_understood(nrrd_file, name):
    assert read_header(nrrd_file(type=name)).stored == np.dtype("<i2")


def test_big_endian_voxels_are_turned(nrrd_file):
    path = nrrd_file(ARRAY.astype(">i2").tobytes(), endian="big")
    header, values = read_volume(path)
    assert header.dtype == values.dtype == np.dtype("=i2")
    np.testing.assert_array_equal(values, ARRAY)


def test_gzip_voxels_are_read(nrrd_file):
    path = nrrd_file(gzip.compress(ARRAY.tobytes()), encoding="gz")
    np.testing.assert_array_equal(read_volume(path)[1], ARRAY)


def test_raw_voxels_that_look_like_gzip_are_read_as_they_are(nrrd_file):
    array = ARRAY.copy()
    array[0, 0, 0] = int.from_bytes(b"\x1f\x8b", "little", signed=True)
    np.testing.assert_array_equal(read_volume(nrrd_file(array.tobytes()))[1], array)


@pytest.mark.parity
def test_without_a_space_the_one_assumed_is_simpleitks_and_a_warning(nrrd_file):
    path = nrrd_file(
        space=None, space_directions=None, space_origin=None, spacings="0.5 0.75 2", kinds=None
    )
    header = read_header(path)
    assert "names no space, so left-posterior-superior is assumed" in header.warnings[0]
    np.testing.assert_array_equal(header.grid.affine, itk_affine(path))


def test_a_sheared_nrrd_opens_with_a_warning(nrrd_file):
    header = read_header(nrrd_file(space_directions="(0.5,0,0) (0.3,0.75,0) (0,0,2)"))
    assert "not at right angles" in header.warnings[0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"dimension": "2", "sizes": "5 12"}, r"3-D volume.*\(5, 12\)"),
        ({"dimension": "4", "sizes": "5 4 1 3"}, r"3-D volume.*\(5, 4, 1, 3\)"),
        ({"sizes": "5 0 3"}, "3-D volume"),
        ({"space": "scanner-xyz"}, "patient space.*scanner-xyz"),
        ({"space_directions": "none (0,1,0) (0,0,1)"}, "independent directions|direction in mm"),
        (
            {"space_directions": "(1,0,0) (1,0,0) (0,0,1)"},
            "independent directions.*no grid.*invertible",
        ),
        ({"space_directions": None}, "direction in mm for each of 3 axes"),
        ({"encoding": "ascii"}, "raw or gzip encoding.*ascii"),
        ({"encoding": None}, "raw or gzip encoding"),
        ({"data_file": "voxels.raw"}, "voxels in voxels.raw, which its data file names"),
        ({"byte_skip": "-1"}, "right after the header.*byte skip: -1"),
        ({"type": "block", "block_size": "2"}, "NRRD file with numeric voxels"),
        ({"type": "colour"}, "NRRD file with numeric voxels"),
        ({"sizes": "five four three"}, "NRRD file"),
    ],
)
def test_what_is_no_plain_3d_volume_is_refused(nrrd_file, changes, said):
    with pytest.raises(FormatError, match=rf"Bild 1\.nrrd: expected .*{said}.*: .+"):
        read_header(nrrd_file(**changes))


def test_bzip2_is_refused_with_a_way_out(nrrd_file):
    path = nrrd_file(bz2.compress(ARRAY.tobytes()), encoding="bzip2")
    with pytest.raises(FormatError, match=r"raw or gzip.*bzip2.*convert the file with 3D Slicer"):
        read_volume(path)


def test_missing_voxels_are_noticed(nrrd_file):
    with pytest.raises(FormatError, match=r"Bild 1\.nrrd.*as many voxels"):
        read_header(nrrd_file(ARRAY.tobytes()[:-2]))
    packed = gzip.compress(ARRAY.tobytes())
    with pytest.raises(FormatError, match=r"Bild 1\.nrrd.*truncated or damaged"):
        read_volume(nrrd_file(packed[:-9], encoding="gzip"))
    with pytest.raises(FormatError, match=r"Bild 1\.nrrd.*as many voxels"):
        read_volume(nrrd_file(gzip.compress(ARRAY.tobytes()[:-2]), encoding="gzip"))


def test_a_mask_is_read_sparse_and_dense(nrrd_file, tumour):
    path = nrrd_file(tumour.tobytes(), type="uchar", sizes="6 7 5", endian=None)
    labels = read_labels(path)
    assert labels.box == Box((1, 2, 1), (4, 5, 5))
    np.testing.assert_array_equal(labels.dense(), tumour)
    np.testing.assert_array_equal(read_labels_dense(path)[1], tumour)


def test_a_phase_in_nrrd_is_read_as_a_job(nrrd_file):
    source = PhaseSource((nrrd_file(),))
    header = read_phase_header(source)
    out = np.empty((3, 4, 5), np.int16)
    steps = list(Stepped(read_phase_into, source, header, out))
    np.testing.assert_array_equal(out, ARRAY)
    assert (steps[-1].done, steps[-1].total) == (3, 3)


@pytest.mark.parity
def test_a_written_mask_is_simpleitks_and_pynrrds_too(tmp_path):
    angle = np.deg2rad(33)
    affine = np.eye(4)
    affine[:3, :3] = [
        [np.cos(angle), 0, np.sin(angle)],
        [0, 1, 0],
        [-np.sin(angle), 0, np.cos(angle)],
    ]
    affine[:3, :3] *= (0.7, 0.81, 1.9)
    affine[:3, 3] = (10.1, -20.2, 30.3)
    grid = Grid((3, 4, 5), affine)
    mask = Mask(grid, np.random.default_rng(0).random(grid.shape) < 0.4)
    path = tmp_path / "Maske ü.nrrd"
    write_mask(mask, path)
    np.testing.assert_array_equal(read_header(path).grid.affine, affine)
    np.testing.assert_allclose(itk_affine(path), affine, atol=1e-9)
    np.testing.assert_array_equal(sitk.GetArrayFromImage(sitk.ReadImage(str(path))), mask.array)
    values, fields = nrrd.read(str(path), index_order="C")
    np.testing.assert_array_equal(values, mask.array)
    assert (fields["type"], fields["encoding"]) == ("uint8", "gzip")


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u8", "f4", "f8"])
def test_a_written_volume_of_any_type_is_simpleitks_too(tmp_path, dtype):
    array = ARRAY.astype(dtype)
    write_volume(array, Grid((3, 4, 5), np.diag([-0.5, 0.5, 2, 1])), tmp_path / "a.nrrd")
    by_itk = sitk.GetArrayFromImage(sitk.ReadImage(str(tmp_path / "a.nrrd")))
    assert by_itk.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(by_itk, array)


@pytest.mark.real
@pytest.mark.parity
def test_the_real_breast_opens_and_its_mask_lies_on_its_grid(real_data, tmp_path):
    folder = real_data("breast1")
    image, values = read_volume(folder / "breast1_image.nrrd")
    labels = read_labels(folder / "breast1_label.nrrd")
    for path, array in (
        (folder / "breast1_image.nrrd", values),
        (folder / "breast1_label.nrrd", labels.dense()),
    ):
        by_itk = sitk.ReadImage(str(path))
        np.testing.assert_array_equal(array, sitk.GetArrayFromImage(by_itk))
        np.testing.assert_allclose(read_header(path).grid.affine, itk_affine(path), atol=1e-9)
    assert labels.grid.is_same_place(image.grid)
    assert labels.values == (1.0,)
    mask = labels.mask()
    for name in ("copy.nrrd", "copy.nii.gz"):
        write_mask(mask, tmp_path / name)
        again = read_labels(tmp_path / name)
        assert again.box == labels.box
        np.testing.assert_array_equal(again.crop != 0, labels.crop != 0)
        assert again.grid.is_same_place(image.grid)
