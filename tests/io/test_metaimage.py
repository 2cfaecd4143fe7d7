"""MetaImage: the values and the place that SimpleITK gives; what is rare is refused by name."""

import zlib

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the name that its own documentation uses

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.data_set.volumes import (
    files_of_volume,
    read_header,
    read_labels,
    read_volume,
)

ARRAY = np.arange(24, dtype="<i2").reshape(4, 3, 2)
VOXELS = ARRAY.tobytes()
FIELDS = {
    "ObjectType": "Image",
    "NDims": "3",
    "BinaryData": "True",
    "DimSize": "2 3 4",
    "ElementSpacing": "0.5 0.75 2",
    "ElementType": "MET_SHORT",
}


@pytest.fixture
def meta_file(tmp_path):
    """Return a function that writes a header of `FIELDS`, changed as asked, and some bytes."""

    def write(data=VOXELS, name="Bild 1.mha", source="LOCAL", **changes):
        fields = {**FIELDS, **changes}
        lines = [f"{key} = {value}" for key, value in fields.items() if value is not None]
        head = "\n".join([*lines, f"ElementDataFile = {source}", ""]).encode()
        path = tmp_path / name
        path.write_bytes(head + (data if source == "LOCAL" else b""))
        if source != "LOCAL":
            (tmp_path / source).write_bytes(data)
        return path

    return write


def require_same_as_itk(path):
    """Compare voxels, type and place with SimpleITK's."""
    image = sitk.ReadImage(str(path))
    header, voxels = read_volume(path)
    np.testing.assert_array_equal(voxels, sitk.GetArrayFromImage(image))
    size = np.array(image.GetSize()) - 1
    for corner in np.ndindex(2, 2, 2):
        index = tuple(int(n) for n in np.array(corner) * size)
        lps = np.array(image.TransformIndexToPhysicalPoint(index))
        np.testing.assert_allclose(
            header.grid.to_world_mm(index[::-1]), lps * (-1, -1, 1), atol=1e-9
        )
    return header


TURNED = "0 0 1 -1 0 0 0 -1 0"
OBLIQUE = "0.8 0.6 0 -0.6 0.8 0 0 0 1"


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"TransformMatrix": TURNED, "Offset": "1 -2 3.5"},
        {"Rotation": OBLIQUE, "Position": "1 -2 3.5"},
        {"Orientation": "-1 0 0 0 1 0 0 0 -1", "Origin": "-10 20 30", "CenterOfRotation": "5 5 5"},
        {"ElementSpacing": None, "ElementSize": "1 2 3"},
        {"ElementSpacing": "1 2 3", "ElementSize": "4 5 6"},
        {"AnatomicalOrientation": "LPI"},
        {"Comment": "of somebody", "Name": "x"},
        {"BinaryDataByteOrderMSB": "False", "ElementNumberOfChannels": "1"},
    ],
)
def test_values_and_place_are_those_of_simpleitk(meta_file, changes):
    require_same_as_itk(meta_file(**changes))


@pytest.mark.parametrize("element", ["BinaryDataByteOrderMSB", "ElementByteOrderMSB"])
def test_both_elements_of_byte_order_are_read(meta_file, element):
    path = meta_file(ARRAY.astype(">i2").tobytes(), **{element: "True"})
    require_same_as_itk(path)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        *(("MET_CHAR", "i1"), ("MET_UCHAR", "u1"), ("MET_USHORT", "u2"), ("MET_INT", "i4")),
        *(("MET_UINT", "u4"), ("MET_LONG", "i4"), ("MET_ULONG", "u4"), ("MET_LONG_LONG", "i8")),
        *(("MET_ULONG_LONG", "u8"), ("MET_FLOAT", "f4"), ("MET_DOUBLE", "f8")),
    ],
)
def test_every_type_of_number_is_read(meta_file, kind, dtype):
    path = meta_file(ARRAY.astype(f"<{dtype}").tobytes(), ElementType=kind)
    header = require_same_as_itk(path)
    assert header.dtype == np.dtype(dtype)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("suffix", [".mha", ".mhd"])
def test_what_simpleitk_writes_is_read(tmp_path, suffix, compressed):
    image = sitk.GetImageFromArray((np.arange(60 * 70 * 80) % 251 == 0).astype(np.uint8)
                                   .reshape(60, 70, 80))  # fmt: skip
    image.SetSpacing((0.7, 0.8, 2.0))
    image.SetOrigin((-40.0, 50.5, 3.0))
    image.SetDirection((0, 0, -1, 1, 0, 0, 0, -1, 0))
    path = tmp_path / f"mask{suffix}"
    sitk.WriteImage(image, str(path), useCompression=compressed)
    require_same_as_itk(path)
    assert read_labels(path).mask().array.sum() == sitk.GetArrayFromImage(image).sum()
    assert len(files_of_volume(path)) == (2 if suffix == ".mhd" else 1)


def test_four_axes_are_several_volumes(meta_file):
    both = np.stack([ARRAY, ARRAY + 100])
    path = meta_file(both.tobytes(), NDims="4", DimSize="2 3 4 2", ElementSpacing="0.5 0.75 2 1")
    header, voxels = read_volume(path)
    assert header.n_volumes == 2
    np.testing.assert_array_equal(voxels, both)


def test_a_2d_image_is_one_slice_with_the_place_of_simpleitk(tmp_path):
    image = sitk.GetImageFromArray(np.arange(12, dtype=np.int16).reshape(3, 4))
    image.SetSpacing((0.7, 0.9))
    image.SetOrigin((5.0, -3.0))
    image.SetDirection((0, -1, 1, 0))
    sitk.WriteImage(image, str(tmp_path / "flat.mha"))
    header, voxels = read_volume(tmp_path / "flat.mha")
    np.testing.assert_array_equal(voxels[0], sitk.GetArrayFromImage(image))
    x, y = image.TransformIndexToPhysicalPoint((3, 1))
    np.testing.assert_allclose((header.grid.affine @ (3, 1, 0, 1))[:2], (-x, -y))
    assert "volumes in ml are not meaningful" in header.warnings[0]


def test_a_header_size_is_skipped_and_minus_one_counts_from_the_end(meta_file):
    for size in ("6", "-1"):
        path = meta_file(b"abcdef" + ARRAY.tobytes(), name="a.mhd", source="a.raw", HeaderSize=size)
        np.testing.assert_array_equal(read_volume(path)[1], ARRAY)


def test_an_orientation_that_contradicts_the_matrix_is_told(meta_file):
    assert read_header(meta_file(AnatomicalOrientation="RAI")).warnings == ()
    (warning,) = read_header(meta_file(AnatomicalOrientation="LPI")).warnings
    assert "is LPI, but its matrix" in warning
    assert "the matrix is used" in warning
    (warning,) = read_header(meta_file(DistanceUnits="cm")).warnings
    assert "in cm" in warning


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"NDims": "1", "DimSize": "24"}, r"2-D to 4-D image.*\[24\]"),
        ({"DimSize": "2 3 4.5"}, "2-D to 4-D image"),
        ({"DimSize": "2 0 12"}, "2-D to 4-D image"),
        ({"DimSize": "two"}, "numbers in DimSize.*'two'"),
        ({"BinaryData": "False"}, "binary voxels.*BinaryData is False"),
        ({"ElementNumberOfChannels": "3"}, "one value.*ElementNumberOfChannels is 3"),
        ({"ElementToIntensityFunctionSlope": "2"}, "unchanged values.*Slope is 2"),
        ({"ElementType": "MET_STRING"}, "numbers.*MET_STRING"),
        ({"ElementType": None}, "numbers.*ElementType is ''"),
        ({"ElementSpacing": None}, "numbers in ElementSpacing.*there is none"),
        ({"ElementSpacing": "1 0 1"}, "affine of three independent axes"),
        ({"ElementSpacing": "1 nan 1"}, "numbers in ElementSpacing"),
        ({"TransformMatrix": "1 0 0 0 1 0"}, "three axes.*6"),
        ({"TransformMatrix": "1 0 0 1 0 0 0 0 1"}, "affine of three independent axes"),
        (
            {"BinaryDataByteOrderMSB": "True", "ElementByteOrderMSB": "False"},
            "one byte order.*BinaryDataByteOrderMSB is True, ElementByteOrderMSB is False",
        ),
        ({"CompressedData": "maybe"}, "True or False for CompressedData.*maybe"),
    ],
)
def test_what_is_rare_or_wrong_is_refused_by_its_element(meta_file, changes, said):
    with pytest.raises(FormatError, match=rf"Bild 1\.mha: expected .*{said}.*: .+"):
        read_volume(meta_file(**changes))


@pytest.mark.parametrize(
    "name", ["../a.raw", "/etc/passwd", "sub/a.raw", "..", "C:\\a.raw", "sub\\a.raw", ""]
)
def test_voxels_outside_of_the_folder_are_refused_by_name(tmp_path, meta_file, name):
    (tmp_path.parent / "a.raw").write_bytes(ARRAY.tobytes())
    path = meta_file(name="a.mhd")
    path.write_bytes(path.read_bytes().partition(b"LOCAL")[0] + name.encode() + b"\n")
    with pytest.raises(FormatError, match=r"a\.mhd: expected the name of a voxel file"):
        read_volume(path)


def test_missing_and_cut_voxels_are_refused_by_name(meta_file, tmp_path):
    path = meta_file(name="a.mhd", source="a.raw")
    (tmp_path / "a.raw").unlink()
    with pytest.raises(FormatError, match=r"a\.mhd: expected voxels in a\.raw"):
        read_volume(path)
    path = meta_file(ARRAY.tobytes()[:-1], name="a.mhd", source="a.raw")
    with pytest.raises(FormatError, match=r"a\.raw: expected as many voxels"):
        read_volume(path)
    packed = zlib.compress(ARRAY.tobytes())
    with pytest.raises(FormatError, match=r"undamaged|as many voxels"):
        read_volume(meta_file(packed[:-6], CompressedData="True"))
    with pytest.raises(FormatError, match="undamaged"):
        read_volume(meta_file(packed[:-1] + b"\0", CompressedData="True"))
    with pytest.raises(FormatError, match="MetaImage header with lines"):
        read_volume(tmp_path / _text(tmp_path))


def _text(folder):
    (folder / "x.mha").write_text("case_id,age\nDUKE_001,45\n")
    return "x.mha"
