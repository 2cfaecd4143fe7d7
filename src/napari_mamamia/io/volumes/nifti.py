"""Read and write NIfTI-1 and NIfTI-2 (``.nii``, ``.nii.gz``), and read ``.hdr`` with ``.img``."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.grid import Grid
from napari_mamamia.io.files.folders import list_names
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.headers import VolumeHeader
from napari_mamamia.io.volumes.inflate import Content
from napari_mamamia.io.volumes.nifti_header import (
    EXTENSION_FLAG,
    NIFTI1_BYTES,
    NIFTI2_BYTES,
    is_nifti2,
    known_fields,
    parse_nifti_header,
)
from napari_mamamia.io.volumes.own_nibabel import Nifti1Header, Nifti2Header, data_type_codes
from napari_mamamia.io.volumes.streams import VoxelStream, open_stream, refusal
from napari_mamamia.io.volumes.voxel_writer import Planes, VolumeContent, save_volume, stored_type

# The following code converts a `Grid` to header bytes, from the header of the source file if
# there is one.

_MOST_VOXELS_NIFTI1: Final = 32767
_NEW: Final[tuple[Any, Any]] = (Nifti1Header, Nifti2Header)
_GEOMETRY: Final = (
    "dim_info",
    "dim",
    "pixdim",
    "xyzt_units",
    "qform_code",
    "sform_code",
    "quatern_b",
    "quatern_c",
    "quatern_d",
    "qoffset_x",
    "qoffset_y",
    "qoffset_z",
    "srow_x",
    "srow_y",
    "srow_z",
)


def make_nifti_header(grid: Grid, n_volumes: int, stored: np.dtype[Any]) -> bytes:
    """Return the bytes before the voxels in a NIfTI file for `grid`.

    If the grid came from a NIfTI file, the geometry fields are copied byte for byte, in that file's
    byte order, but without free text, which may name the patient. Otherwise the affine, rounded to
    float32, becomes sform and qform (no qform if the affine is sheared, which a qform cannot
    express), in mm. The voxels must be written in the same byte order.
    """
    old = None if grid.nifti_header is None else known_fields(grid.nifti_header)
    fields = _make_header_fields(grid) if old is None else type(old)(endianness=old.endianness)
    if old is not None:
        for name in _GEOMETRY:
            fields[name] = old[name]
    n_dims = 3 if n_volumes == 1 else 4
    fields["dim"][1:4] = grid.shape[::-1]
    # If the source is also 3-D, its unused extents stay unchanged.
    if fields["dim"][0] != n_dims or n_dims == 4:
        fields["dim"][0] = n_dims
        fields["dim"][4:] = (n_volumes, 1, 1, 1)
    fields["datatype"] = data_type_codes[stored.newbyteorder("=")]
    fields["bitpix"] = stored.itemsize * 8
    fields["scl_slope"], fields["scl_inter"] = 1, 0
    fields["vox_offset"] = int(fields["sizeof_hdr"]) + len(EXTENSION_FLAG)
    raw: bytes = fields.binaryblock
    return raw + EXTENSION_FLAG


def _make_header_fields(grid: Grid) -> Any:
    big = max(grid.shape) > _MOST_VOXELS_NIFTI1
    fields = _NEW[big](endianness="<")
    affine: NDArray[np.float32] = grid.affine.astype(np.float32)
    fields.set_data_shape(grid.shape[::-1])
    fields.set_sform(affine, 1)
    if not grid.is_sheared:
        fields.set_qform(affine, 1)
    fields.set_zooms(grid.spacing_mm[::-1])
    fields.set_xyzt_units("mm")
    return fields


def stored_grid(grid: Grid) -> Grid:
    """Return `grid` as it would be read back from a NIfTI file: float32, no source header."""
    if grid.nifti_header is not None:
        return grid
    return Grid(grid.shape, grid.affine.astype(np.float32))


@contextmanager
def open_nifti(
    path: Path, content: Content = Content.IMAGE
) -> Iterator[tuple[VolumeHeader, VoxelStream]]:
    """Yield the header of a NIfTI file, and its bytes starting at the first voxel.

    The first bytes, not the name, determine whether the file is compressed; `content` affects only
    the speed.

    Raises
    ------
    FormatError
        If the file cannot be read, is not a volume, or is too small for the voxels in its header.
    """
    with open_stream(path, content=content) as stream:
        raw = _read_head(stream)
        header, offset = parse_nifti_header(path, raw)
        _skip_to_voxels(stream, header, offset, len(raw))
        yield header, stream


@contextmanager
def open_nifti_pair(
    path: Path, content: Content = Content.IMAGE
) -> Iterator[tuple[VolumeHeader, VoxelStream]]:
    """Yield the header of a NIfTI or Analyze 7.5 file pair, and the bytes of the voxel file.

    Either file may be compressed, and `path` may name either file. In other respects, the function
    behaves like `open_nifti`.
    """
    header_file, voxel_file = _find_pair(path)
    with open_stream(header_file) as stream:
        raw = _read_head(stream)
    header, offset = parse_nifti_header(header_file, raw, in_two_files=True)
    with open_stream(voxel_file, content=content) as stream:
        _skip_to_voxels(stream, header, offset, 0)
        yield replace(header, voxels=voxel_file), stream


def _find_pair(path: Path) -> tuple[Path, Path]:
    packed = ".gz" if path.name.lower().endswith(".gz") else ""
    stem, dot, suffix = path.name[: len(path.name) - len(packed)].rpartition(".")
    other = f"{dot}{'img' if suffix.lower() == 'hdr' else 'hdr'}"
    wanted = [f"{stem}{other}{end}".casefold() for end in dict.fromkeys((packed, "", ".gz"))]
    by_name = {name.casefold(): name for name in sorted(list_names(path.parent))}
    beside = next((by_name[name] for name in wanted if name in by_name), None)
    if beside is None:
        raise refusal(
            path,
            f"{'voxels' if other == '.img' else 'a header'} in {stem}{other} in the same folder",
            "there is no such file",
            "copy both files into one folder",
        )
    pair = (path, path.with_name(beside))
    return pair if other == ".img" else (pair[1], pair[0])


def _read_head(stream: VoxelStream) -> bytes:
    raw = stream.head(NIFTI1_BYTES)
    return raw + stream.head(NIFTI2_BYTES - NIFTI1_BYTES) if is_nifti2(raw) else raw


def _skip_to_voxels(stream: VoxelStream, header: VolumeHeader, offset: int, done: int) -> None:
    voxels = header.n_volumes * prod(header.grid.shape)
    stream.require(offset + voxels * header.stored.itemsize)
    for _ in stream.skip(offset - done):
        pass


@reads("a readable NIfTI file", "copy or download the file again")
def read_nifti_header(path: Path) -> VolumeHeader:
    """Return the header of a NIfTI file, reading only its first bytes."""
    with open_nifti(path) as (header, _):
        return header


def write_nifti(array: Planes, grid: Grid, path: Path, *, overwrite: bool = False) -> None:
    """Write voxels to a ``.nii`` or ``.nii.gz`` file, and verify the file.

    If `grid` came from a NIfTI file, the geometry in the header is copied from that file byte for
    byte; otherwise the affine is rounded to float32, as NIfTI-1 stores it.

    Parameters
    ----------
    array
        Voxels ``(z, y, x)`` or ``(n, z, y, x)`` on `grid`, of type bool (written as uint8),
        integer, float32 or float64.
    grid
        Shape and affine.
    path
        The file to write.
    overwrite
        Whether an existing file is replaced.

    Raises
    ------
    ValueError
        If array and grid differ in shape, or the type cannot be stored.
    SaveConflictError, SaveError
        As in `save_volume`.
    """
    if array.ndim not in (3, 4) or array.shape[-3:] != grid.shape:
        raise ValueError(
            f"expected the array to have the grid's shape {grid.shape} (z, y, x), but it has "
            f"{array.shape}"
        )
    fields = None if grid.nifti_header is None else known_fields(grid.nifti_header)
    stored = stored_type(array, "<" if fields is None else fields.endianness)
    n_volumes = array.shape[0] if array.ndim == 4 else 1
    header = make_nifti_header(grid, n_volumes, stored)
    is_gzip = path.name.lower().endswith(".gz")
    content = VolumeContent(b"", header, array, stored, is_gzip)
    place = stored_grid(grid)
    save_volume(content, path, place, read_nifti_header, overwrite=overwrite)
