"""Volumes in two files: NIfTI and Analyze as nibabel reads them, NRRD as SimpleITK does."""

import gzip

import nibabel as nib
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the name that its own documentation uses

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.data_set.volumes import files_of_volume, read_header, read_volume

ARRAY = np.arange(24, dtype=np.int16).reshape(2, 3, 4)  # (x, y, z)
AFFINE = np.array([[0, 0, 2.0, -10], [-0.7, 0, 0, 20], [0, 0.8, 0, 5], [0, 0, 0, 1]])


def require_same_as_nibabel(path):
    image = nib.load(path)
    header, voxels = read_volume(path)
    np.testing.assert_allclose(voxels, np.asarray(image.dataobj).T)
    corners = [np.array(corner) * (np.array(image.shape) - 1) for corner in np.ndindex(2, 2, 2)]
    for corner in corners:
        np.testing.assert_allclose(
            header.grid.to_world_mm(corner[::-1]), nib.affines.apply_affine(image.affine, corner),
            atol=1e-5,
        )  # fmt: skip
    return header


@pytest.mark.parametrize("kind", [nib.Nifti1Pair, nib.Nifti2Pair])
@pytest.mark.parametrize("name", ["a.hdr", "B 1.HDR", "a.hdr.gz"])
def test_a_nifti_pair_is_what_nibabel_reads(tmp_path, kind, name):
    image = kind(ARRAY, AFFINE)
    plain = tmp_path / "plain.hdr"
    nib.save(image, plain)
    stem, end = name.split(".", 1)
    packed = name.endswith("gz")
    for source, suffix in ((plain, end), (tmp_path / "plain.img", end.replace("hdr", "img")
                            .replace("HDR", "IMG"))):  # fmt: skip
        data = source.read_bytes()
        (tmp_path / f"{stem}.{suffix}").write_bytes(gzip.compress(data) if packed else data)
    expected = require_same_as_nibabel(plain)
    header, voxels = read_volume(tmp_path / name)
    assert header.grid == expected.grid
    np.testing.assert_array_equal(voxels, ARRAY.T)
    assert header.warnings == ()


def test_either_file_names_the_pair(tmp_path):
    nib.save(nib.Nifti1Pair(ARRAY, AFFINE), tmp_path / "a.hdr")
    both = {tmp_path / "a.hdr", tmp_path / "a.img"}
    for name in ("a.hdr", "a.img"):
        np.testing.assert_array_equal(read_volume(tmp_path / name)[1], ARRAY.T)
        assert set(files_of_volume(tmp_path / name)) == both


def test_scaled_pairs_are_scaled(tmp_path):
    image = nib.Nifti1Pair(ARRAY.astype(np.float32) / 7, AFFINE)
    image.set_data_dtype(np.int16)
    nib.save(image, tmp_path / "a.hdr")
    require_same_as_nibabel(tmp_path / "a.hdr")


@pytest.mark.parametrize("origin", [None, (2, 1, 3)])
@pytest.mark.parametrize("kind", [nib.AnalyzeImage, nib.Spm99AnalyzeImage])
def test_analyze_is_placed_as_nibabel_places_it_and_says_that_sides_are_assumed(
    tmp_path, kind, origin
):
    image = kind(ARRAY, np.diag([-0.7, 0.8, 2.0, 1.0]))
    if origin and kind is nib.Spm99AnalyzeImage:
        image.header["origin"][:3] = origin
        image = kind(ARRAY, None, image.header)
        image.header.set_zooms((0.7, 0.8, 2.0))
    nib.save(image, tmp_path / "a.hdr")
    (tmp_path / "a.mat").unlink(missing_ok=True)
    header = require_same_as_nibabel(tmp_path / "a.hdr")
    (warning,) = header.warnings
    assert "Analyze 7.5" in warning
    assert "patient's left" in warning


def test_an_orientation_that_spm_keeps_in_a_third_file_is_named(tmp_path):
    nib.save(nib.Spm99AnalyzeImage(ARRAY, AFFINE), tmp_path / "a.hdr")
    with pytest.raises(FormatError, match=r"a\.hdr: .*SPM's a\.mat: convert the file"):
        read_header(tmp_path / "a.hdr")


def test_one_file_of_a_pair_is_refused_by_the_name_of_the_other(tmp_path):
    nib.save(nib.Nifti1Pair(ARRAY, AFFINE), tmp_path / "a.hdr")
    (tmp_path / "a.img").rename(tmp_path / "b.img")
    with pytest.raises(FormatError, match=r"a\.hdr: expected voxels in a\.img in the same folder"):
        read_header(tmp_path / "a.hdr")
    with pytest.raises(
        FormatError, match=r"b\.img: expected a header in b\.hdr in the same folder"
    ):
        read_header(tmp_path / "b.img")


@pytest.mark.parametrize("encoding", ["raw", "gzip"])
def test_a_detached_nrrd_is_what_simpleitk_reads(tmp_path, encoding):
    voxels = ARRAY.T.astype("<i2").tobytes()
    path = tmp_path / "a.nhdr"
    path.write_text(
        "NRRD0004\ntype: short\ndimension: 3\nspace: left-posterior-superior\nsizes: 2 3 4\n"
        "space directions: (0,0.7,0) (0,0,0.8) (-2,0,0)\nkinds: domain domain domain\n"
        f"endian: little\nencoding: {encoding}\nspace origin: (1,-2,3)\ndata file: a.raw\n\n"
    )
    (tmp_path / "a.raw").write_bytes(gzip.compress(voxels) if encoding == "gzip" else voxels)
    image = sitk.ReadImage(str(path))
    header, seen = read_volume(path)
    np.testing.assert_array_equal(seen, sitk.GetArrayFromImage(image))
    for x, y, z in ((0, 0, 0), (1, 0, 0), (0, 2, 0), (0, 0, 3)):
        lps = np.array(image.TransformIndexToPhysicalPoint((x, y, z)))
        np.testing.assert_allclose(header.grid.to_world_mm((z, y, x)), lps * (-1, -1, 1))
    assert files_of_volume(path) == (path, tmp_path / "a.raw")


@pytest.mark.parametrize("name", ["../b.raw", "sub/b.raw", "/b.raw"])
def test_a_detached_nrrd_that_leads_out_of_its_folder_is_refused(tmp_path, name):
    path = tmp_path / "a.nhdr"
    path.write_text(
        "NRRD0004\ntype: uchar\ndimension: 3\nspace: RAS\nsizes: 2 2 2\nencoding: raw\n"
        f"space directions: (1,0,0) (0,1,0) (0,0,1)\ndata file: {name}\n\n"
    )
    with pytest.raises(FormatError, match=r"a\.nhdr: expected the name of a voxel file"):
        read_header(path)
