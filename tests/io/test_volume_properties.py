"""What must hold for every volume: write then read gives the same; sparse and dense agree."""

from pathlib import Path
from tempfile import TemporaryDirectory

import nibabel as nib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tests.conftest import contents

from napari_mamamia.core.box import Box
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.data_set.volumes import (
    read_header,
    read_labels,
    read_labels_dense,
    read_volume,
    write_volume,
)

SHAPES = st.tuples(*(st.integers(1, 5),) * 3)
TYPES = st.sampled_from(["u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "?"])
NAMES = st.sampled_from(["a.nii", "a.nii.gz", "a.nrrd"])


@st.composite
def grids(draw, shape):
    """Grids of any turn (a random rotation or reflection), spacing and origin."""
    numbers = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    turn, _ = np.linalg.qr(numbers.normal(size=(3, 3)))
    affine = np.eye(4)
    affine[:3, :3] = turn * draw(st.tuples(*(st.floats(0.1, 10),) * 3))
    affine[:3, 3] = numbers.uniform(-500, 500, 3)
    return Grid(shape, affine)


@st.composite
def volumes(draw):
    """A small array of any storable type, on a grid."""
    shape = draw(SHAPES)
    dtype = np.dtype(draw(TYPES))
    elements = {"f": {"allow_nan": False}}.get(dtype.kind, {})
    values = arrays.from_dtype(dtype, **elements)
    return draw(arrays.arrays(dtype, shape, elements=values)), draw(grids(shape))


@settings(deadline=None, max_examples=60)
@given(volume=volumes(), name=NAMES)
def test_what_is_written_is_read_with_its_affine_and_codes(volume, name):
    array, grid = volume
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        write_volume(array, grid, path)
        header, values = read_volume(path)
        np.testing.assert_array_equal(values, array)
        assert values.dtype == (np.uint8 if array.dtype == bool else array.dtype)
        exact = name.endswith(".nrrd")
        wanted = grid.affine if exact else grid.affine.astype(np.float32)
        np.testing.assert_array_equal(header.grid.affine, wanted)
        if not exact:
            fields = nib.load(path).header
            assert (int(fields["qform_code"]), int(fields["sform_code"])) == (1, 1)
        again = Path(folder) / f"again {name}"
        write_volume(array, header.grid, again)
        assert contents(again) == contents(path)


@settings(deadline=None, max_examples=60)
@given(volume=volumes(), name=NAMES)
def test_the_sparse_reading_of_a_mask_is_the_dense_one(volume, name):
    array, grid = volume
    if array.dtype.kind == "f":
        array = np.nan_to_num(array, posinf=1.0, neginf=-1.0)
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        write_volume(array, grid, path)
        labels = read_labels(path)
        np.testing.assert_array_equal(labels.dense(), array)
        np.testing.assert_array_equal(read_labels_dense(path)[1], array)
        assert labels.box == Box.around(array)


@pytest.mark.parity
@settings(deadline=None, max_examples=40)
@given(
    volume=volumes(), byte_order=st.sampled_from("<>"), codes=st.tuples(*(st.integers(0, 5),) * 2)
)
def test_nibabel_files_of_any_kind_read_as_nibabel_reads_them(volume, byte_order, codes):
    array, grid = volume
    if array.dtype == bool:
        array = array.astype(np.uint8)
    image = nib.Nifti1Image(array.T, None, nib.Nifti1Header(endianness=byte_order))
    image.header.set_qform(grid.affine, codes[0])
    image.header.set_sform(grid.affine, codes[1])
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.nii.gz"
        nib.save(image, path)
        by_nibabel = nib.load(path)
        header, values = read_volume(path)
        np.testing.assert_array_equal(values, np.asanyarray(by_nibabel.dataobj).T)
        np.testing.assert_array_equal(header.grid.affine, by_nibabel.affine)
        assert read_header(path).stored == by_nibabel.get_data_dtype()
