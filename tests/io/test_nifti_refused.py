"""Files that are not what they promise: refused with the file, the expectation and the remedy."""

import gzip

import numpy as np
import pytest

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.data_set.volumes import read_header, read_labels, read_volume

ARRAY = np.arange(5 * 40 * 30, dtype=np.int16).reshape(5, 40, 30)


def setting(**fields):
    """Return an edit that sets header fields."""

    def edit(header):
        for name, value in fields.items():
            header[name] = value

    return edit


def spacing(axis, value):
    """Return an edit that sets one spacing."""

    def edit(header):
        header["pixdim"][axis] = value

    return edit


@pytest.mark.parametrize(
    ("shape", "said"), [((40, 30), r"\(30, 40\)"), ((2, 3, 5, 4, 3), r"\(3, 4, 5, 3, 2\)")]
)
def test_neither_2d_nor_5d_files_open(nifti_file, shape, said):
    path = nifti_file("odd shape.nii.gz", np.zeros(shape, np.int16))
    with pytest.raises(FormatError, match=rf"odd shape\.nii\.gz.*3-D or 4-D.*{said}.*export"):
        read_header(path)


def test_a_file_without_dimensions_is_refused(nifti_file):
    path = nifti_file("none.nii", ARRAY, edit=setting(dim=[0, 1, 1, 1, 1, 1, 1, 1]))
    with pytest.raises(FormatError, match=r"none\.nii.*3-D or 4-D"):
        read_header(path)


def test_an_axis_without_voxels_is_refused(nifti_file):
    path = nifti_file("flat.nii", ARRAY, edit=setting(dim=[3, 30, 0, 5, 1, 1, 1, 1]))
    with pytest.raises(FormatError, match=r"its shape is \(30, 0, 5\)"):
        read_header(path)


@pytest.mark.parametrize("code", [1005, 1006, 1007, 1008])
def test_vectors_and_points_are_refused_by_their_intent(nifti_file, code):
    path = nifti_file("field.nii.gz", ARRAY, edit=setting(intent_code=code))
    with pytest.raises(FormatError, match=rf"field\.nii\.gz.*intent code {code}"):
        read_header(path)


@pytest.mark.parametrize(
    ("code", "name"),
    [(32, "complex64"), (128, "RGB"), (1536, "float128"), (1, "binary"), (9999, "")],
)
def test_types_that_are_no_plain_numbers_are_refused_by_name(nifti_file, code, name):
    path = nifti_file("type.nii.gz", ARRAY, edit=setting(datatype=code))
    with pytest.raises(FormatError, match=rf"type\.nii\.gz.*{name}.*code {code}.*convert"):
        read_header(path)


@pytest.mark.parametrize("axis", [1, 2, 3])
@pytest.mark.parametrize("value", [0.0, -0.7, np.nan, np.inf])
def test_spacing_must_be_positive(nifti_file, axis, value):
    path = nifti_file("spacing.nii.gz", ARRAY, edit=spacing(axis, value))
    with pytest.raises(
        FormatError, match=r"spacing\.nii\.gz.*positive voxel spacing.*pixdim.*expo"
    ):
        read_header(path)


@pytest.mark.parametrize("row", [[0, 0, 0, 0], [np.nan, 0, 0, 0], [np.inf, 0, 0, 1]])
def test_an_affine_that_spans_no_space_is_refused(nifti_file, row):
    path = nifti_file("affine.nii.gz", ARRAY, edit=setting(srow_x=row))
    with pytest.raises(
        FormatError, match=r"affine\.nii\.gz.*affine of three independent axes.*export"
    ):
        read_header(path)


def test_an_impossible_quaternion_is_refused_where_it_alone_says_the_place(nifti_file):
    edit = setting(quatern_b=0.9, quatern_c=0.9)
    path = nifti_file("q.nii.gz", ARRAY, codes=(1, 0), edit=edit)
    with pytest.raises(FormatError, match=r"q\.nii\.gz.*affine"):
        read_header(path)


def test_a_slope_with_an_intercept_that_is_no_number_is_refused(nifti_file):
    path = nifti_file("scale.nii.gz", ARRAY, slope=2.0, inter=np.nan)
    with pytest.raises(FormatError, match=r"scale\.nii\.gz.*intercept"):
        read_header(path)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_an_offset_that_is_no_number_is_refused(nifti_file, value):
    path = nifti_file("offset.nii", ARRAY, edit=setting(vox_offset=value))
    with pytest.raises(FormatError, match=r"offset\.nii.*vox_offset"):
        read_header(path)


def test_a_header_of_two_files_is_refused(nifti_file):
    path = nifti_file("pair.nii", ARRAY, edit=setting(magic=b"ni1"))
    with pytest.raises(FormatError, match=r"pair\.nii.*two files.*rename the file to \.hdr"):
        read_header(path)


def test_analyze_is_refused(nifti_file):
    path = nifti_file("old.nii", ARRAY, edit=setting(magic=b""))
    with pytest.raises(FormatError, match=r"old\.nii.*Analyze 7\.5"):
        read_header(path)


@pytest.mark.parametrize("name", ["text.nii.gz", "text.nii", "text.nrrd"])
def test_text_under_a_volumes_name_is_refused(tmp_path, name):
    (tmp_path / name).write_text("case_id,age\nDUKE_001,45\n" * 100)
    with pytest.raises(FormatError, match=rf"{name}.*expected an? \w+ file.*correct file"):
        read_header(tmp_path / name)


@pytest.mark.parametrize("name", ["empty.nii.gz", "empty.nii", "empty.nrrd"])
def test_a_file_of_zero_bytes_is_refused(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(FormatError, match=rf"{name}.*empty.*again"):
        read_header(tmp_path / name)


@pytest.mark.parametrize("name", ["folder.nii.gz", "folder.nrrd"])
def test_a_folder_under_a_volumes_name_is_refused(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(FormatError, match=rf"{name}.*it is a folder.*data set"):
        read_header(tmp_path / name)


@pytest.mark.parametrize("name", ["gone.nii.gz", "gone.nii", "gone.nrrd"])
def test_a_file_that_is_not_there_is_refused(tmp_path, name):
    with pytest.raises(
        FormatError,
        match=(
            rf"{name}.*does not exist.*check the folder and the "
            r"name"
        ),
    ):
        read_header(tmp_path / name)


def test_a_name_of_another_format_is_refused(tmp_path):
    (tmp_path / "photo.png").write_bytes(b"\x89PNG")
    with pytest.raises(FormatError, match=r"photo\.png.*\.nii\.gz, \.nii, .*\.nrrd, .*convert"):
        read_header(tmp_path / "photo.png")


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9])
def test_a_truncated_gzip_is_refused(nifti_file, keep):
    path = nifti_file("cut.nii.gz", ARRAY)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    for read in (read_volume, read_labels):
        with pytest.raises(FormatError, match=r"cut\.nii\.gz.*truncated.*copy or download"):
            read(path)


def test_a_gzip_that_lacks_only_its_last_byte_is_refused(nifti_file):
    path = nifti_file("cut.nii.gz", ARRAY)
    path.write_bytes(path.read_bytes()[:-1])
    for read in (read_volume, read_labels):
        with pytest.raises(FormatError, match=r"cut\.nii\.gz.*truncated or damaged"):
            read(path)


def test_a_gzip_whose_checksum_does_not_fit_is_refused(nifti_file):
    path = nifti_file("bit.nii.gz", ARRAY)
    data = bytearray(path.read_bytes())
    data[-6] ^= 1
    path.write_bytes(data)
    for read in (read_volume, read_labels):
        with pytest.raises(FormatError, match=r"bit\.nii\.gz.*CRC.*damaged"):
            read(path)


def test_a_gzip_with_a_flipped_bit_in_its_voxels_is_refused(nifti_file):
    path = nifti_file("bit.nii.gz", ARRAY)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 16
    path.write_bytes(data)
    for read in (read_volume, read_labels):
        with pytest.raises(FormatError, match=r"bit\.nii\.gz"):
            read(path)


def test_a_gzip_followed_by_something_else_is_refused(nifti_file):
    path = nifti_file("joined.nii.gz", ARRAY)
    path.write_bytes(path.read_bytes() + b"not gzip")
    with pytest.raises(FormatError, match=r"joined\.nii\.gz"):
        read_volume(path)


def test_a_plain_file_shorter_than_its_header_promises_is_refused_at_once(nifti_file):
    path = nifti_file("short.nii", ARRAY)
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(FormatError, match=r"short\.nii.*as many voxels.*copy or download"):
        read_header(path)


def test_a_whole_gzip_of_too_few_voxels_is_refused(nifti_file):
    path = nifti_file("short.nii", ARRAY)
    packed = path.with_name("short.nii.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()[:-2]))
    for read in (read_volume, read_labels):
        with pytest.raises(FormatError, match=r"short\.nii\.gz.*as many voxels.*ends early"):
            read(packed)


def test_a_header_that_promises_the_impossible_is_refused_before_memory_is_taken(nifti_file):
    huge = [3, 32767, 32767, 32767, 1, 1, 1, 1]
    path = nifti_file("huge.nii.gz", ARRAY, edit=setting(dim=huge))
    with pytest.raises(FormatError, match=r"huge\.nii\.gz.*as many voxels"):
        read_header(path)


def test_extents_beyond_64_bits_together_are_refused_too(nifti_file):
    def edit(fields):
        fields["dim"][1:4] = 2**40

    path = nifti_file("huge.nii", ARRAY, version=2, edit=edit)
    with pytest.raises(FormatError, match=r"huge\.nii.*as many voxels"):
        read_header(path)


def test_a_file_cut_inside_its_header_is_refused(nifti_file):
    path = nifti_file("head.nii", ARRAY)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(FormatError, match=r"head\.nii.*no NIfTI header"):
        read_header(path)
