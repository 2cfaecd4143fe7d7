"""Volume files made by hand: nibabel's header class for the fields, the bytes put behind it."""

import gzip
from collections.abc import Callable
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

LAS = np.array(
    [[-0.75, 0, 0, 90], [0, 0.5, 0, -120.25], [0, 0, 2.5, 10.5], [0, 0, 0, 1]], dtype=float
)


@pytest.fixture
def nifti_file(tmp_path) -> Callable[..., Path]:
    """Return a function that writes a (z, y, x) or (n, z, y, x) array as NIfTI and names the file.

    `edit` changes the header before it is written; `codes` are those of qform and sform.
    """

    def write(
        name,
        array,
        affine=LAS,
        *,
        version=1,
        byte_order="<",
        slope=None,
        inter=0.0,
        codes=(1, 1),
        edit=None,
    ):
        kind = {1: nib.Nifti1Header, 2: nib.Nifti2Header}[version]
        header = kind(endianness=byte_order)
        header.set_data_dtype(array.dtype)
        header.set_data_shape(array.shape[::-1])
        header.set_sform(affine, codes[1])
        header.set_qform(affine, codes[0])
        header.set_xyzt_units("mm", "sec")
        header["vox_offset"] = {1: 352, 2: 544}[version]
        if slope is not None:
            header["scl_slope"], header["scl_inter"] = slope, inter
        if edit is not None:
            edit(header)
        stored = array.astype(array.dtype.newbyteorder(byte_order))
        data = header.binaryblock + bytes(4) + stored.tobytes()
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(data, 6) if name.endswith(".gz") else data)
        return path

    return write


@pytest.fixture
def tumour() -> np.ndarray:
    """Return a (5, 7, 6) uint8 mask with labels 1 and 2 in the block (1..3, 2..4, 1..4)."""
    mask = np.zeros((5, 7, 6), np.uint8)
    mask[1:4, 2:5, 1:5] = 1
    mask[2, 3, 2] = 2
    return mask
