"""NIfTI reading: the values and the place that nibabel gives, and warnings where they are due."""

import gzip
from itertools import permutations, product

import nibabel as nib
import numpy as np
import pytest

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.data_set.volumes import (
    read_header,
    read_labels,
    read_labels_dense,
    read_volume,
)

TYPES = ("u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")


def by_nibabel(path):
    """Return nibabel's values as (z, y, x), unscaled in the file's type."""
    return np.asanyarray(nib.load(path).dataobj).T


def ramp(shape, dtype):
    """Return values that run through the type's range, its least and greatest included."""
    info = np.iinfo(dtype) if np.dtype(dtype).kind in "iu" else np.finfo(dtype)
    values = np.linspace(float(info.min) / 2, float(info.max) / 2, int(np.prod(shape)))
    array = values.astype(dtype).reshape(shape)
    array.flat[0], array.flat[-1] = info.min, info.max
    return array


@pytest.mark.parity
@pytest.mark.parametrize("name", ["plain.nii", "packed.nii.gz"])
@pytest.mark.parametrize("byte_order", ["<", ">"])
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("dtype", TYPES)
def test_values_type_and_affine_are_nibabels(nifti_file, dtype, version, byte_order, name):
    path = nifti_file(name, ramp((3, 4, 5), dtype), version=version, byte_order=byte_order)
    header, values = read_volume(path)
    assert values.dtype == np.dtype(dtype).newbyteorder("=")
    np.testing.assert_array_equal(values, by_nibabel(path))
    np.testing.assert_array_equal(header.grid.affine, nib.load(path).affine)
    assert header.warnings == ()


@pytest.mark.parity
@pytest.mark.parametrize("byte_order", ["<", ">"])
@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "f4", "f8"])
def test_scaled_values_are_nibabels_in_float32(nifti_file, dtype, byte_order):
    array = (np.arange(60).reshape(3, 4, 5) - 20).clip(0 if dtype == "u1" else -20).astype(dtype)
    path = nifti_file("scaled.nii.gz", array, byte_order=byte_order, slope=0.25, inter=-3.5)
    header, values = read_volume(path)
    assert values.dtype == np.float32
    assert (header.slope, header.intercept) == (0.25, -3.5)
    np.testing.assert_array_equal(values, by_nibabel(path).astype(np.float32))
    assert values[0, 0, 0] == float(array[0, 0, 0]) * 0.25 - 3.5


@pytest.mark.parametrize(("slope", "inter"), [(0.0, 7.0), (np.nan, 7.0), (np.inf, 0.0), (1.0, 0.0)])
def test_a_slope_of_zero_or_not_a_number_means_unscaled(nifti_file, slope, inter):
    path = nifti_file("mask.nii", np.full((2, 2, 2), 9, np.int16), slope=slope, inter=inter)
    header, values = read_volume(path)
    assert not header.is_scaled
    assert values.dtype == np.int16
    assert np.all(values == 9)


def all_codes():
    return [(q, s) for q in (0, 1, 3) for s in (0, 2, 4)]


@pytest.mark.parity
@pytest.mark.parametrize("codes", all_codes())
def test_the_affine_is_sform_then_qform_then_spacing_as_in_nibabel(nifti_file, codes):
    """The quaternion is set by nibabel, so that qform and sform differ by rounding alone."""
    angle = np.deg2rad(20)
    turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0]])
    affine = np.eye(4)
    affine[:2, :3] = turn
    affine[:3, :3] *= (0.7, 0.9, 2.0)
    affine[:3, 3] = (5, -6, 7)
    path = nifti_file("turned.nii.gz", np.zeros((3, 4, 5), np.uint8), affine, codes=codes)
    header = read_header(path)
    np.testing.assert_array_equal(header.grid.affine, nib.load(path).affine)
    np.testing.assert_allclose(header.grid.spacing_mm, (2.0, 0.9, 0.7), rtol=1e-6)
    assert len(header.warnings) == (1 if codes == (0, 0) else 0)


@pytest.mark.parity
@pytest.mark.parametrize("qfac", [0.0, 1.0, -1.0, 5.0])
def test_odd_qfac_is_read_as_nibabel_repairs_it(nifti_file, qfac):
    def edit(fields):
        fields["pixdim"][0] = qfac

    path = nifti_file("q.nii", np.zeros((3, 4, 5), np.uint8), codes=(1, 0), edit=edit)
    np.testing.assert_array_equal(read_header(path).grid.affine, nib.load(path).affine)


@pytest.mark.parity
@pytest.mark.parametrize("codes", [(7, 1), (1, 9), (-2, 0), (4, 4)])
def test_an_unknown_form_code_is_read_as_nibabel_repairs_it(nifti_file, codes):
    def edit(fields):
        fields["qform_code"], fields["sform_code"] = codes

    path = nifti_file("code.nii", np.zeros((3, 4, 5), np.uint8), codes=(1, 1), edit=edit)
    np.testing.assert_array_equal(read_header(path).grid.affine, nib.load(path).affine)


def test_without_qform_and_sform_the_assumed_side_is_a_warning(nifti_file):
    path = nifti_file("mask.nii", np.zeros((2, 3, 4), np.uint8), codes=(0, 0))
    header = read_header(path)
    assert header.grid.orientation == "LAS"
    assert "neither qform nor sform" in header.warnings[0]
    assert "Check left and right" in header.warnings[0]


def test_qform_and_sform_that_disagree_open_with_the_distance_in_mm(nifti_file):
    def edit(fields):
        fields["qoffset_x"] += 3.0
        fields["qoffset_y"] += 4.0

    path = nifti_file("moved.nii.gz", np.zeros((2, 3, 4), np.uint8), edit=edit)
    header = read_header(path)
    assert len(header.warnings) == 1
    assert "origin 5.00 mm apart; corners 5 mm. The sform is used" in header.warnings[0]
    assert header.warnings[0].startswith("moved.nii.gz: ")
    np.testing.assert_array_equal(header.grid.affine, nib.load(path).affine)


def test_qform_and_sform_that_differ_by_rounding_open_without_a_warning(nifti_file):
    def edit(fields):
        fields["qoffset_x"] += 0.02

    path = nifti_file("rounded.nii.gz", np.zeros((2, 3, 4), np.uint8), edit=edit)
    assert read_header(path).warnings == ()


@pytest.mark.parametrize(("moved_mm", "n_warnings"), [(0.03, 0), (0.06, 1)])
def test_qform_and_sform_are_one_place_within_a_twentieth_of_the_smallest_spacing(
    nifti_file, moved_mm, n_warnings
):
    """Voxels of 0.8 x 0.8 x 4 mm: the limit is 0.04 mm in each direction, not 0.2."""

    def edit(fields):
        fields["qoffset_z"] += moved_mm

    affine = np.diag([-0.8, 0.8, 4.0, 1.0])
    path = nifti_file("thick.nii.gz", np.zeros((2, 3, 4), np.uint8), affine=affine, edit=edit)
    assert len(read_header(path).warnings) == n_warnings


def test_a_qform_that_cannot_be_used_is_a_warning_where_there_is_an_sform(nifti_file):
    def edit(fields):
        fields["quatern_b"] = fields["quatern_c"] = 0.9

    path = nifti_file("q.nii.gz", np.zeros((2, 3, 4), np.uint8), edit=edit)
    assert "qform is invalid" in read_header(path).warnings[0]


def test_a_sheared_affine_opens_with_a_warning(nifti_file):
    affine = np.diag([0.7, 0.7, 2.0, 1.0])
    affine[0, 1] = 0.2
    path = nifti_file("sheared.nii.gz", np.zeros((2, 3, 4), np.uint8), affine, codes=(0, 1))
    header = read_header(path)
    assert len(header.warnings) == 1
    assert "not at right angles" in header.warnings[0]
    np.testing.assert_array_equal(header.grid.affine, nib.load(path).affine)


def test_an_oblique_affine_opens_without_a_warning(nifti_file):
    a, b = np.deg2rad(15), np.deg2rad(-8)
    about_x = [[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]]
    about_z = [[np.cos(b), -np.sin(b), 0], [np.sin(b), np.cos(b), 0], [0, 0, 1]]
    affine = np.eye(4)
    affine[:3, :3] = np.array(about_x) @ np.array(about_z) * (0.7, 0.7, 2.0)
    header = read_header(nifti_file("oblique.nii.gz", np.zeros((9, 8, 7), np.uint8), affine))
    assert header.grid.is_oblique
    assert header.warnings == ()


def test_a_length_unit_other_than_mm_is_a_warning(nifti_file):
    def edit(fields):
        fields["xyzt_units"] = 3

    path = nifti_file("small.nii", np.zeros((2, 3, 4), np.uint8), edit=edit)
    assert "micrometres, which are converted to mm" in read_header(path).warnings[0]


@pytest.mark.parametrize("order", permutations(range(3)))
def test_all_48_orientations_open_with_their_own_letters_and_no_warning(nifti_file, order):
    for signs in product((1, -1), repeat=3):
        affine = np.eye(4)
        affine[:3, :3] = np.eye(3)[:, order] * signs * (0.5, 0.75, 2.0)
        path = nifti_file(f"{signs}.nii", np.zeros((2, 3, 4), np.uint8), affine)
        header = read_header(path)
        assert header.grid.orientation == "".join(nib.aff2axcodes(nib.load(path).affine))
        assert header.grid.spacing_mm == (2.0, 0.75, 0.5)
        assert header.warnings == ()


def test_the_grid_keeps_the_header_bytes(nifti_file):
    for version, size in ((1, 348), (2, 540)):
        path = nifti_file(f"v{version}.nii", np.zeros((2, 3, 4), np.uint8), version=version)
        assert read_header(path).grid.nifti_header == path.read_bytes()[:size]


def test_voxels_behind_an_extension_are_found(nifti_file):
    array = np.arange(24, dtype=np.int16).reshape(2, 3, 4)

    def edit(fields):
        fields["vox_offset"] = 400

    path = nifti_file("extended.nii", array, edit=edit)
    data = path.read_bytes()
    path.write_bytes(data[:348] + b"\1\0\0\0" + b"e" * 48 + data[352:])
    np.testing.assert_array_equal(read_volume(path)[1], array)


def test_trailing_axes_of_one_are_dropped(nifti_file):
    array = np.arange(24, dtype=np.int16).reshape(1, 1, 2, 3, 4)
    header, values = read_volume(nifti_file("five.nii.gz", array))
    assert header.grid.shape == (2, 3, 4)
    assert header.n_volumes == 1
    np.testing.assert_array_equal(values, array[0, 0])


def test_a_single_slice_is_a_volume(nifti_file):
    header, values = read_volume(nifti_file("slice.nii.gz", np.ones((1, 3, 4), np.int16)))
    assert header.grid.shape == values.shape == (1, 3, 4)


def test_a_4d_file_gives_all_its_volumes(nifti_file):
    array = np.arange(48, dtype=np.int16).reshape(2, 2, 3, 4)
    header, values = read_volume(nifti_file("four.nii.gz", array))
    assert header.n_volumes == 2
    np.testing.assert_array_equal(values, array)


def test_gzip_of_many_members_is_one_file(nifti_file):
    array = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    path = nifti_file("plain.nii", array)
    data = path.read_bytes()
    parts = [data[i : i + 57] for i in range(0, len(data), 57)]
    packed = path.with_name("members.nii.gz")
    packed.write_bytes(b"".join(gzip.compress(part) for part in parts))
    np.testing.assert_array_equal(read_volume(packed)[1], array)


def test_more_voxels_than_promised_are_no_error(nifti_file):
    array = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    path = nifti_file("long.nii", array)
    path.write_bytes(path.read_bytes() + b"more")
    np.testing.assert_array_equal(read_volume(path)[1], array)
    packed = path.with_name("long.nii.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    np.testing.assert_array_equal(read_volume(packed)[1], array)


def test_the_file_asked_for_is_read_where_a_namesake_lies_beside_it(nifti_file):
    """SimpleITK, asked for x.nii.gz, returns x.nii; a mask must not be taken from elsewhere."""
    plain = nifti_file("x.nii", np.full((2, 2, 2), 1, np.uint8))
    packed = nifti_file("x.nii.gz", np.full((2, 2, 2), 2, np.uint8))
    assert np.all(read_volume(plain)[1] == 1)
    assert np.all(read_volume(packed)[1] == 2)
    assert read_labels(packed).values == (2.0,)


def test_compression_is_seen_in_the_bytes_not_in_the_name(nifti_file):
    array = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    plain = nifti_file("plain.nii", array)
    plain.rename(plain.with_name("renamed.nii.gz"))
    np.testing.assert_array_equal(read_volume(plain.with_name("renamed.nii.gz"))[1], array)


def test_paths_with_spaces_and_other_letters_open(nifti_file):
    path = nifti_file("Fälle 2024/患者 1/Maske ñ.nii.gz", np.ones((2, 2, 2), np.uint8))
    assert read_labels(path).box == Box.whole((2, 2, 2))


def test_nan_and_infinity_in_an_image_are_kept(nifti_file):
    array = np.zeros((2, 3, 4), np.float32)
    array[0, 0, 0], array[1, 2, 3] = np.nan, -np.inf
    np.testing.assert_array_equal(read_volume(nifti_file("image.nii.gz", array))[1], array)


def test_a_mask_is_kept_as_the_block_that_is_not_zero(nifti_file, tumour):
    labels = read_labels(nifti_file("mask.nii.gz", tumour))
    assert labels.box == Box((1, 2, 1), (4, 5, 5))
    np.testing.assert_array_equal(labels.crop, tumour[1:4, 2:5, 1:5])
    assert labels.crop.dtype == np.uint8
    assert labels.values == (1.0, 2.0)


@pytest.mark.parametrize("byte_order", ["<", ">"])
@pytest.mark.parametrize("dtype", TYPES)
def test_a_mask_of_any_type_reads_back_whole(nifti_file, tumour, dtype, byte_order):
    path = nifti_file("mask.nii.gz", tumour.astype(dtype), byte_order=byte_order)
    header, values = read_labels_dense(path)
    assert values.dtype == header.dtype == np.dtype(dtype).newbyteorder("=")
    np.testing.assert_array_equal(values, tumour)
    assert read_labels(path).box == Box((1, 2, 1), (4, 5, 5))


def test_an_empty_mask_has_an_empty_box(nifti_file):
    labels = read_labels(nifti_file("empty.nii.gz", np.zeros((3, 4, 5), np.uint8)))
    assert labels.box.is_empty
    assert labels.crop.shape == (0, 0, 0)
    assert labels.dense().shape == (3, 4, 5)


def test_one_voxel_in_any_corner_is_found(nifti_file):
    for corner in product((0, 3), (0, 4), (0, 5)):
        mask = np.zeros((4, 5, 6), np.uint8)
        mask[corner] = 255
        labels = read_labels(nifti_file(f"{corner}.nii.gz", mask))
        assert labels.box == Box(corner, tuple(c + 1 for c in corner))
        assert labels.crop.item() == 255


def test_two_distant_tumours_share_one_box(nifti_file):
    mask = np.zeros((40, 300, 100), np.uint8)
    mask[2, 10, 90] = 1
    mask[37, 250, 5] = 3
    labels = read_labels(nifti_file("two.nii.gz", mask))
    assert labels.box == Box((2, 10, 5), (38, 251, 91))
    np.testing.assert_array_equal(labels.dense(), mask)


def test_minus_zero_in_a_soft_mask_is_background(nifti_file):
    mask = np.full((3, 4, 5), -0.0, np.float32)
    mask[1, 2, 3] = 0.75
    labels = read_labels(nifti_file("soft.nii.gz", mask))
    assert labels.box == Box((1, 2, 3), (2, 3, 4))
    assert labels.crop.item() == 0.75


def test_a_scaled_mask_is_scaled_before_its_box_is_found(nifti_file):
    """Stored 3 is 0 under slope 1 and intercept -3; stored 0 is -3."""
    mask = np.full((3, 4, 5), 3, np.int16)
    mask[1, 2, 3], mask[2, 0, 0] = 4, 0
    labels = read_labels(nifti_file("scaled.nii.gz", mask, slope=1.0, inter=-3.0))
    assert labels.box == Box((1, 0, 0), (3, 3, 4))
    assert labels.values == (-3.0, 1.0)
    assert labels.crop.dtype == np.float32


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_mask_with_nan_or_infinity_is_refused_by_slice(nifti_file, bad):
    mask = np.zeros((3, 4, 5), np.float32)
    mask[2, 1, 1] = bad
    with pytest.raises(
        FormatError, match=r"soft\.nii\.gz.*slice 2 contains NaN.*0 outside the tumour"
    ):
        read_labels(nifti_file("soft.nii.gz", mask))


def test_a_mask_of_several_volumes_is_refused(nifti_file):
    path = nifti_file("four.nii.gz", np.zeros((2, 3, 4, 5), np.uint8))
    with pytest.raises(FormatError, match=r"four\.nii\.gz.*2 volumes.*its own file"):
        read_labels(path)


@pytest.mark.real
@pytest.mark.parity
def test_the_real_dce_slice_opens_as_nibabel_gives_it(real_data):
    for path in sorted(real_data("dce_slice").glob("images/*/*.nii.gz")):
        header, values = read_volume(path)
        assert header.grid.orientation == "PSR"
        np.testing.assert_array_equal(values, by_nibabel(path))
        np.testing.assert_array_equal(header.grid.affine, nib.load(path).affine)


@pytest.mark.real
def test_the_real_ispy2_mask_has_the_voxels_its_source_counts(real_data):
    labels = read_labels(real_data("masks") / "ACRIN-6698-102212_spy2_vis1_mask.nii.gz")
    assert np.count_nonzero(labels.crop) == 42423
