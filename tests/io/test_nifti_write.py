"""Writing: geometry byte for byte, verified, and in the same place for other software."""

import gzip
import subprocess
import sys
from itertools import permutations, product

import nibabel as nib
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the name that its own documentation uses
from tests.conftest import contents

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap, Mask
from napari_mamamia.core.errors import FormatError, GridMismatchError, SaveConflictError, SaveError
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.data_set.volumes import (
    read_header,
    read_labels,
    read_labels_dense,
    read_volume,
    write_labels,
    write_mask,
    write_volume,
    write_volume_job,
)
from napari_mamamia.io.volumes import voxel_writer

GEOMETRY = (
    *("sizeof_hdr", "magic", "dim_info", "dim", "pixdim", "xyzt_units", "qform_code", "sform_code"),
    *("quatern_b", "quatern_c", "quatern_d", "qoffset_x", "qoffset_y", "qoffset_z"),
    *("srow_x", "srow_y", "srow_z"),
)
LAS = np.array([[-0.7, 0, 0, 80], [0, 0.7, 0, -90], [0, 0, 2, -30], [0, 0, 0, 1]])


def fields_of(path):
    """Return nibabel's header of a file, unrepaired."""
    data = path.read_bytes()
    raw = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    is_nifti2 = 540 in (int.from_bytes(raw[:4], order) for order in ("little", "big"))
    return nib.Nifti2Header(raw[:540]) if is_nifti2 else nib.Nifti1Header(raw[:348])


def same_geometry(source, written):
    """Return the geometry fields whose bytes differ between two files."""
    a, b = fields_of(source), fields_of(written)
    assert a.endianness == b.endianness
    return [name for name in GEOMETRY if a[name].tobytes() != b[name].tobytes()]


def mask_on(path, seed=0):
    """Return a random mask on the grid of an image file."""
    grid = read_header(path).grid
    return Mask(grid, np.random.default_rng(seed).random(grid.shape) < 0.2)


@pytest.mark.parity
@pytest.mark.parametrize("order", permutations(range(3)))
def test_a_mask_of_each_of_48_orientations_keeps_voxels_geometry_and_place(
    nifti_file, tmp_path, order
):
    for number, signs in enumerate(product((1, -1), repeat=3)):
        affine = np.eye(4)
        affine[:3, :3] = np.eye(3)[:, order] * signs * (0.7, 0.9, 2.1)
        affine[:3, 3] = (31.5, -42.25, 7.125)
        image = nifti_file(f"image {number}.nii.gz", np.zeros((3, 4, 5), np.int16), affine)
        mask = mask_on(image, number)
        target = tmp_path / f"mask {number}.nii.gz"
        write_mask(mask, target)
        assert same_geometry(image, target) == []
        np.testing.assert_array_equal(read_labels_dense(target)[1], mask.array)
        by_itk = sitk.ReadImage(str(target))
        np.testing.assert_array_equal(sitk.GetArrayFromImage(by_itk), mask.array)
        for index in product((0, 2), (0, 3), (0, 4)):
            lps = by_itk.TransformIndexToPhysicalPoint(index[::-1])
            ras = mask.grid.to_world_mm(index)
            np.testing.assert_allclose(ras, (-lps[0], -lps[1], lps[2]), atol=1e-4)


@pytest.mark.parity
@pytest.mark.parametrize("byte_order", ["<", ">"])
@pytest.mark.parametrize("version", [1, 2])
def test_an_oblique_mask_keeps_codes_units_and_byte_order(
    nifti_file, tmp_path, version, byte_order
):
    a = np.deg2rad(17)
    affine = np.eye(4)
    affine[:3, :3] = [[np.cos(a), 0, np.sin(a)], [0, 1, 0], [-np.sin(a), 0, np.cos(a)]]
    affine[:3, :3] *= (0.7, 0.8, 1.9)
    image = nifti_file(
        "oblique.nii.gz",
        np.zeros((3, 4, 5), np.int16),
        affine,
        version=version,
        byte_order=byte_order,
        codes=(3, 4),
    )
    mask, target = mask_on(image), tmp_path / "mask.nii.gz"
    write_mask(mask, target)
    assert same_geometry(image, target) == []
    by_nibabel = nib.load(target)
    assert by_nibabel.get_data_dtype() == np.uint8
    np.testing.assert_array_equal(np.asanyarray(by_nibabel.dataobj).T, mask.array)
    np.testing.assert_array_equal(by_nibabel.affine, nib.load(image).affine)
    assert by_nibabel.header.get_xyzt_units() == ("mm", "sec")


def test_only_geometry_is_taken_from_the_image(nifti_file, tmp_path):
    def edit(fields):
        fields["descrip"] = b"DOE JANE 1970"
        fields["db_name"] = b"hospital"
        fields["intent_name"] = b"secret"
        fields["cal_max"] = 900

    image = nifti_file(
        "image.nii.gz", np.ones((2, 3, 4), np.int16), slope=2.0, inter=5.0, edit=edit
    )
    write_mask(mask_on(image), tmp_path / "mask.nii.gz")
    fields = fields_of(tmp_path / "mask.nii.gz")
    for name in ("descrip", "db_name", "intent_name", "aux_file"):
        assert fields[name].tobytes().strip(b"\0") == b""
    assert (fields["cal_max"], fields["scl_slope"], fields["scl_inter"]) == (0, 1, 0)
    assert (fields["datatype"], fields["bitpix"], fields["vox_offset"]) == (2, 8, 352)


def test_a_mask_of_a_4d_image_is_3d(nifti_file, tmp_path):
    image = nifti_file("four.nii.gz", np.zeros((5, 2, 3, 4), np.int16))
    write_mask(mask_on(image), tmp_path / "mask.nii.gz")
    assert fields_of(tmp_path / "mask.nii.gz")["dim"].tolist() == [3, 4, 3, 2, 1, 1, 1, 1]
    assert [name for name in same_geometry(image, tmp_path / "mask.nii.gz") if name != "dim"] == []


@pytest.mark.parity
def test_a_grid_without_a_header_gets_qform_and_sform_in_float32(tmp_path):
    a = np.deg2rad(10)
    affine = LAS.copy()
    affine[:3, :3] = [[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]]
    affine[:3, :3] *= (0.7, 0.7, 2)
    grid = Grid((3, 4, 5), affine)
    write_mask(Mask(grid, np.ones(grid.shape, bool)), tmp_path / "mask.nii.gz")
    header = nib.load(tmp_path / "mask.nii.gz").header
    assert (int(header["qform_code"]), int(header["sform_code"])) == (1, 1)
    np.testing.assert_array_equal(header.get_sform(), affine.astype(np.float32))
    np.testing.assert_allclose(header.get_qform(), affine, atol=1e-5)
    assert header.get_xyzt_units()[0] == "mm"
    np.testing.assert_allclose(header.get_zooms(), (0.7, 0.7, 2), rtol=1e-6)
    assert read_header(tmp_path / "mask.nii.gz").grid.is_same_place(grid)


def test_a_sheared_grid_without_a_header_gets_no_qform(tmp_path):
    affine = LAS.copy()
    affine[0, 1] = 0.3
    grid = Grid((3, 4, 5), affine)
    write_mask(Mask(grid, np.ones(grid.shape, bool)), tmp_path / "mask.nii.gz")
    fields = fields_of(tmp_path / "mask.nii.gz")
    assert (int(fields["qform_code"]), int(fields["sform_code"])) == (0, 1)
    read = read_header(tmp_path / "mask.nii.gz")
    np.testing.assert_array_equal(read.grid.affine, affine.astype(np.float32))
    assert len(read.warnings) == 1


def test_a_sheared_image_keeps_its_geometry_bytes(nifti_file, tmp_path):
    affine = LAS.copy()
    affine[0, 1] = 0.3
    image = nifti_file("sheared.nii.gz", np.zeros((3, 4, 5), np.int16), affine, codes=(1, 1))
    assert len(read_header(image).warnings) == 2
    write_mask(mask_on(image), tmp_path / "mask.nii.gz")
    assert same_geometry(image, tmp_path / "mask.nii.gz") == []


def test_more_voxels_along_an_axis_than_nifti1_can_count_make_a_nifti2(tmp_path):
    grid = Grid((1, 2, 40_000), LAS)
    write_mask(Mask(grid, np.ones(grid.shape, bool)), tmp_path / "long.nii.gz")
    assert read_header(tmp_path / "long.nii.gz").grid.shape == (1, 2, 40_000)
    assert fields_of(tmp_path / "long.nii.gz")["sizeof_hdr"] == 540


def test_equal_masks_give_equal_files(nifti_file, tmp_path):
    mask = mask_on(nifti_file("image.nii.gz", np.zeros((3, 4, 5), np.int16)))
    for name in ("a.nii.gz", "b.nii.gz"):
        write_mask(mask, tmp_path / name)
    assert contents(tmp_path / "a.nii.gz") == contents(tmp_path / "b.nii.gz")


def test_a_mask_is_0_and_1_whatever_bytes_stand_for_true(tmp_path):
    array = np.array([[[0, 255, 2]]], np.uint8).view(bool)
    write_mask(Mask(Grid((1, 1, 3), LAS), array), tmp_path / "mask.nii")
    assert read_volume(tmp_path / "mask.nii")[1].tolist() == [[[0, 1, 1]]]


def test_the_gzip_is_one_member_that_any_reader_checks(tmp_path):
    """Zero planes, zero blocks in other planes, noise, and a last block of odd size."""
    grid = Grid((6, 300, 301), LAS)
    array = np.zeros(grid.shape, bool)
    array[2, 250:260] = True
    array[4] = np.random.default_rng(1).random(grid.shape[1:]) < 0.5
    write_mask(Mask(grid, array), tmp_path / "mask.nii.gz")
    data = (tmp_path / "mask.nii.gz").read_bytes()
    assert data[:10] == b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
    assert gzip.decompress(data)[352:] == array.tobytes()
    assert data.count(b"\x1f\x8b\x08\0\0\0\0\0\0\xff") == 1
    np.testing.assert_array_equal(read_labels_dense(tmp_path / "mask.nii.gz")[1], array)


def test_a_flipped_view_is_written_as_it_looks(tmp_path):
    grid = Grid((4, 5, 6), LAS)
    array = (np.random.default_rng(2).random((6, 5, 4)) < 0.3).transpose()[::-1, :, ::-1]
    write_mask(Mask(grid, array), tmp_path / "mask.nii.gz")
    np.testing.assert_array_equal(read_labels_dense(tmp_path / "mask.nii.gz")[1], array)


def test_an_empty_mask_is_written_and_read(tmp_path):
    grid = Grid((4, 5, 6), LAS)
    write_mask(Mask(grid, np.zeros(grid.shape, bool)), tmp_path / "mask.nii.gz")
    assert read_labels(tmp_path / "mask.nii.gz").box.is_empty


def test_a_4d_volume_is_written_with_its_phases(tmp_path):
    array = np.arange(120, dtype=np.int16).reshape(2, 3, 4, 5)
    write_volume(array, Grid((3, 4, 5), LAS), tmp_path / "four.nii.gz")
    header, values = read_volume(tmp_path / "four.nii.gz")
    assert header.n_volumes == 2
    np.testing.assert_array_equal(values, array)


@pytest.mark.parity
def test_an_image_on_a_big_endian_grid_is_big_endian(nifti_file, tmp_path):
    image = nifti_file("big.nii.gz", np.zeros((3, 4, 5), np.int16), byte_order=">")
    array = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    write_volume(array, read_header(image).grid, tmp_path / "out.nii")
    assert fields_of(tmp_path / "out.nii").endianness == ">"
    np.testing.assert_array_equal(np.asanyarray(nib.load(tmp_path / "out.nii").dataobj).T, array)


@pytest.mark.parametrize("dtype", [np.float16, np.complex64])
def test_a_type_that_nifti_lacks_is_a_mistake_of_the_caller(tmp_path, dtype):
    with pytest.raises(ValueError, match="bool, integer, float32 or float64"):
        write_volume(np.zeros((2, 3, 4), dtype), Grid((2, 3, 4), LAS), tmp_path / "a.nii")


def test_an_array_that_does_not_fit_its_grid_is_a_mistake_of_the_caller(tmp_path):
    for name in ("a.nii", "a.nrrd"):
        with pytest.raises(ValueError, match=r"it has \(2, 3, 5\)"):
            write_volume(np.zeros((2, 3, 5), np.uint8), Grid((2, 3, 4), LAS), tmp_path / name)


def test_another_suffix_is_refused_before_anything_is_written(tmp_path):
    grid = Grid((2, 3, 4), LAS)
    with pytest.raises(FormatError, match=r"mask\.mha.*\.nii\.gz, \.nii, \.nrrd"):
        write_mask(Mask(grid, np.ones(grid.shape, bool)), tmp_path / "mask.mha")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["Maske ü 1.nii.gz", "mask.nii", "mask.nrrd"])
def test_a_target_that_exists_stays_as_it_was(tmp_path, name):
    grid = Grid((2, 3, 4), LAS)
    (tmp_path / name).write_bytes(b"the expert's")
    mask = Mask(grid, np.ones(grid.shape, bool))
    with pytest.raises(SaveConflictError, match=name):
        write_mask(mask, tmp_path / name)
    assert (tmp_path / name).read_bytes() == b"the expert's"
    write_mask(mask, tmp_path / name, overwrite=True)
    np.testing.assert_array_equal(read_labels_dense(tmp_path / name)[1], mask.array)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.skipif(sys.platform == "win32", reason="RLIMIT_FSIZE is POSIX")
@pytest.mark.parametrize("name", ["mask.nii.gz", "mask.nii", "mask.nrrd"])
def test_a_disk_that_fills_while_a_mask_is_saved_leaves_the_old_one(tmp_path, name):
    script = """
import resource, sys
from pathlib import Path
import numpy as np
from napari_mamamia.core.case import Mask
from napari_mamamia.core.errors import SaveError
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.data_set.volumes import write_mask
grid = Grid((20, 100, 100), np.diag([-1.0, 1.0, 2.0, 1.0]))
mask = Mask(grid, np.random.default_rng(0).random(grid.shape) < 0.5)
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
try:
    write_mask(mask, Path(sys.argv[1]), overwrite=True)
except SaveError as error:
    print(error)
"""
    target = tmp_path / name
    target.write_bytes(b"old")
    done = subprocess.run(
        [sys.executable, "-c", script, str(target)], capture_output=True, text=True, check=True
    )
    assert "free some space" in done.stdout
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def refused_write(tmp_path, grid, match):
    """Write a mask that cannot be verified, and see that the old file is still there."""
    target = tmp_path / "mask.nii.gz"
    target.write_bytes(b"old")
    with pytest.raises(SaveError, match=match):
        write_mask(Mask(grid, np.ones(grid.shape, bool)), target, overwrite=True)
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["mask.nii.gz"]


def test_a_file_that_reads_back_elsewhere_is_not_kept(nifti_file, tmp_path):
    """A grid whose affine is not that of the header it carries."""
    image = nifti_file("images/image.nii.gz", np.zeros((2, 3, 4), np.int16))
    grid = read_header(image).grid
    moved = grid.affine.copy()
    moved[0, 3] += 1
    target = tmp_path / "masks"
    target.mkdir()
    refused_write(
        target, Grid(grid.shape, moved, grid.nifti_header), r"mask\.nii\.gz.*the affine is .*save"
    )


def test_a_disk_that_changes_a_byte_is_noticed(tmp_path, monkeypatch):
    true_checksum = voxel_writer._checksum_of

    def damaged(path, done):
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
        return true_checksum(path, done)

    monkeypatch.setattr(voxel_writer, "_checksum_of", damaged)
    refused_write(tmp_path, Grid((2, 3, 4), LAS), "bytes on the disk differ")


def test_a_compressor_that_errs_is_noticed(tmp_path, monkeypatch):
    class Wrong:
        def compress(self, data):
            self._size = len(data)
            return b""

        def flush(self, mode):
            return voxel_writer._packed_zeros(self._size)

    monkeypatch.setattr(voxel_writer.isal_zlib, "compressobj", lambda *args, **kwargs: Wrong())
    refused_write(tmp_path, Grid((2, 3, 4), LAS), "does not decompress to its input")


def test_a_compressor_that_writes_no_deflate_is_noticed(tmp_path, monkeypatch):
    class Wrong:
        def compress(self, data):
            return bytes([0xFF]) * len(data)

        def flush(self, mode):
            return b""

    monkeypatch.setattr(voxel_writer.isal_zlib, "compressobj", lambda *args, **kwargs: Wrong())
    refused_write(tmp_path, Grid((2, 3, 4), LAS), "does not decompress to its input")


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
def test_a_block_of_any_kind_is_read_back_whichever_decompressor_takes_it(share):
    written = []
    block = np.zeros(1 << 15, np.int16)
    n = int(share * len(block))
    block[:n] = np.random.default_rng(8).normal(300, 40, n)
    gzipped = voxel_writer.BlockGzip(written.append)
    gzipped.add(block.tobytes())
    gzipped.close()
    assert gzip.decompress(b"".join(written)) == block.tobytes()


class Giving:
    """Planes of a volume of 3 x 4 x 5, as many and as large as a test wants."""

    ndim, shape, dtype = 3, (3, 4, 5), np.dtype(np.int16)

    def __init__(self, *planes):
        self.planes = planes

    def __iter__(self):
        for plane in self.planes:
            if isinstance(plane, Exception):
                raise plane
            yield plane


PLANE = np.arange(20, dtype=np.int16).reshape(4, 5)


@pytest.mark.parametrize("name", ["image.nii.gz", "image.nii", "image.nrrd"])
def test_planes_that_are_given_one_by_one_are_written_as_the_array_of_them(tmp_path, name):
    grid = Grid((3, 4, 5), LAS)
    write_volume_job(Giving(PLANE, PLANE + 1, PLANE[::-1]), grid, tmp_path / name)
    write_volume_job(np.stack([PLANE, PLANE + 1, PLANE[::-1]]), grid, tmp_path / f"array_{name}")
    assert contents(tmp_path / name) == contents(tmp_path / f"array_{name}")


@pytest.mark.parametrize("planes", [(PLANE,) * 2, (PLANE,) * 4, (PLANE, PLANE[:3], PLANE), ()])
def test_planes_that_are_not_those_promised_leave_no_file(tmp_path, planes):
    with pytest.raises(SaveError, match="plane"):
        write_volume_job(Giving(*planes), Grid((3, 4, 5), LAS), tmp_path / "a.nii.gz")
    assert not list(tmp_path.iterdir())


def test_a_source_that_breaks_off_is_the_fault_that_is_told(tmp_path):
    broken = FormatError("expected a readable file at IM7, but it was cut: copy it again")
    with pytest.raises(FormatError, match="IM7, but it was cut"):
        write_volume_job(Giving(PLANE, broken), Grid((3, 4, 5), LAS), tmp_path / "a.nii.gz")
    assert not list(tmp_path.iterdir())


def values_of(kind, shape, seed):
    """Labels with a block that is not zero, of any size and place; "edges" touches every border."""
    rng = np.random.default_rng(seed)
    values = np.zeros(shape, np.int64)
    if kind == "one voxel":
        values[tuple(rng.integers(0, shape))] = 1
    elif kind == "block":
        start = [rng.integers(0, n) for n in shape]
        stop = [rng.integers(a, n) + 1 for a, n in zip(start, shape, strict=True)]
        inside = tuple(slice(a, b) for a, b in zip(start, stop, strict=True))
        values[inside] = rng.integers(0, 4, values[inside].shape)
    elif kind == "edges":
        values[0, 0, 0] = values[-1, -1, -1] = 3
    elif kind == "full":
        values[...] = 2
    return values


@pytest.mark.parametrize("kind", ["empty", "one voxel", "block", "edges", "full"])
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int16, np.float32])
@pytest.mark.parametrize("name", ["mask.nii.gz", "mask.nii", "mask.nrrd"])
@pytest.mark.parity
def test_labels_are_written_as_the_whole_array_byte_by_byte(tmp_path, kind, dtype, name):
    # planes of 192 kB: blocks of 64 kB before, with and behind what is not zero
    for seed, shape in enumerate([(4, 400, 480), (1, 3, 5)]):
        values, grid = values_of(kind, shape, seed).astype(dtype), Grid(shape, LAS)
        write_volume(values, grid, tmp_path / f"whole_{seed}_{name}")
        write_labels(LabelMap.of(values, grid), tmp_path / f"{seed}_{name}")
        whole, own = tmp_path / f"whole_{seed}_{name}", tmp_path / f"{seed}_{name}"
        assert own.read_bytes() == whole.read_bytes()


def test_a_label_map_of_another_shape_is_refused_before_a_file_is_made():
    with pytest.raises(GridMismatchError, match=r"shape \(3, 4, 5\).*has \(3, 4, 4\)"):
        LabelMap.of(np.ones((3, 4, 4), np.uint8), Grid((3, 4, 5), LAS))


def test_what_is_painted_after_a_label_map_was_taken_is_not_written(tmp_path):
    values, grid = np.zeros((3, 4, 5), np.uint8), Grid((3, 4, 5), LAS)
    values[1, 2, 3] = 1
    labels = LabelMap.of(values, grid)
    values[...] = 7
    write_labels(labels, tmp_path / "a.nii.gz")
    assert read_labels(tmp_path / "a.nii.gz").values == (1.0,)


@pytest.mark.parametrize("stop", [(4, 4, 5), (3, 5, 5), (3, 4, 6)])
def test_there_are_no_labels_that_leave_their_grid_and_would_be_lost(stop):
    box = Box((2, 3, 4), stop)
    with pytest.raises(ValueError, match="inside the grid"):
        LabelMap(Grid((3, 4, 5), LAS), box, np.ones(box.shape, np.uint8))
