"""Read 3-D NRRD volumes (raw or gzip, in one or two files), and write them to one file."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any, Final

import nrrd
import numpy as np
from nrrd.errors import NRRDError
from numpy.typing import NDArray

from napari_mamamia.core.grid import Grid
from napari_mamamia.io.files.foreign import open_plain, reads
from napari_mamamia.io.files.headers import UNIT_WARNING, VolumeHeader
from napari_mamamia.io.volumes.inflate import Content
from napari_mamamia.io.volumes.streams import VoxelStream, find_voxel_file, open_stream, refusal
from napari_mamamia.io.volumes.voxel_writer import Planes, VolumeContent, save_volume, stored_type

_TO_RAS: Final[Mapping[str, tuple[int, int, int]]] = {
    "right-anterior-superior": (1, 1, 1),
    "ras": (1, 1, 1),
    "left-anterior-superior": (-1, 1, 1),
    "las": (-1, 1, 1),
    "left-posterior-superior": (-1, -1, 1),
    "lps": (-1, -1, 1),
}
"""Signs that convert coordinates in each patient space to RAS.

Source: NRRD format definition, "space" field, https://teem.sourceforge.net/nrrd/format.html.
"""
_SPACE_ASSUMED: Final = "left-posterior-superior"
_GZIP: Final = ("gzip", "gz")
_DATA_FILE: Final = ("data file", "datafile")
_ENCODINGS: Final = (*_GZIP, "raw")
_NAMES: Final[Mapping[str, str]] = {"float32": "float", "float64": "double"}
_MOST_LAYERS: Final = 1 << 32
"""Largest total size in bytes of all layers, which are in memory at once (our choice).

This allows 60 segments of 400 x 400 x 400 voxels.
"""
_CONVERT: Final = "convert the file with 3D Slicer or SimpleITK to a 3-D gzip NRRD or .nii.gz"


@contextmanager
def open_nrrd(
    path: Path, content: Content = Content.IMAGE
) -> Iterator[tuple[VolumeHeader, VoxelStream]]:
    """Yield the header of an NRRD file, and its bytes starting at the first voxel.

    `content` affects only the speed.

    Raises
    ------
    FormatError
        If the file cannot be read, is not a 3-D volume in a patient space, has an encoding other
        than raw or gzip, or is too small for the voxels in its header.
    """
    fields, start = _read_fields(path)
    header = _parse_header(path, fields)
    is_gzip = fields["encoding"].lower() in _GZIP
    source, start = (header.voxels, 0) if header.voxels is not None else (path, start)
    with open_stream(source, start, content=content, is_gzip=is_gzip) as stream:
        stream.require(prod(header.grid.shape) * header.stored.itemsize)
        yield header, stream


@reads("a readable NRRD file", "copy or download the file again")
def read_nrrd_header(path: Path) -> VolumeHeader:
    """Return the header of an NRRD file without reading its voxels."""
    with open_nrrd(path) as (header, _):
        return header


@reads("a readable NRRD file", "copy or download the file again")
def read_layers(path: Path) -> tuple[VolumeHeader, NDArray[Any]]:
    """Return the header and the layers ``(layer, z, y, x)`` of a label map.

    The file is 3-D, or has a list axis first; 3D Slicer stores overlapping segments in this way.
    """
    fields, start = _read_fields(path)
    sizes = [int(size) for size in fields.get("sizes", ())]
    n_layers = 1
    if len(sizes) == 4 and min(sizes) > 0:
        n_layers = sizes[0]
        fields = {
            **fields,
            "dimension": 3,
            "sizes": sizes[1:],
            "space directions": list(fields.get("space directions", ()))[1:],
        }
    header = _parse_header(path, fields)
    if header.voxels is not None:
        raise refusal(path, "voxels in the same file", f"they are in {header.voxels}", _CONVERT)
    is_gzip = fields["encoding"].lower() in _GZIP
    with open_stream(path, start, content=Content.MASK, is_gzip=is_gzip) as stream:
        n_bytes = n_layers * prod(header.grid.shape) * header.stored.itemsize
        stream.require(n_bytes)
        if n_bytes > _MOST_LAYERS:
            came = f"{n_layers} layers of {header.grid.shape} voxels (z, y, x) exceed this limit"
            remedy = "save fewer segments, or save each as a separate label map"
            raise refusal(path, f"layers of at most {_MOST_LAYERS >> 30} GiB", came, remedy)
        values = np.frombuffer(stream.take(n_bytes), header.stored)
        stream.finish()
    layers = np.moveaxis(values.reshape(*header.grid.shape, n_layers), -1, 0)
    return header, layers.astype(header.dtype, copy=False)


@reads("a readable NRRD file", "copy or download the file again")
def read_nrrd_pairs(path: Path, start: str) -> dict[str, str]:
    """Return the ``key:=value`` strings in a header whose keys begin with `start`."""
    fields, _ = _read_fields(path)
    return {key: str(value) for key, value in fields.items() if key.startswith(start)}


def write_nrrd(
    array: Planes,
    grid: Grid,
    path: Path,
    *,
    pairs: Sequence[tuple[str, str]] = (),
    overwrite: bool = False,
) -> None:
    """Write voxels as gzip-compressed NRRD in left-posterior-superior space; verify the file.

    The affine is written in full precision. The writer of pynrrd is not used, because it writes the
    time into the header; identical masks must give identical files.

    Parameters
    ----------
    array
        Voxels ``(z, y, x)`` on `grid`, of type bool (written as uint8), integer, float32 or
        float64.
    grid
        Shape and affine.
    path
        File to write.
    pairs
        Strings ``key:=value`` for the header: ASCII without line ends and backslashes.
    overwrite
        Whether to replace an existing file.

    Raises
    ------
    ValueError
        If array and grid differ in shape, or the data type or a string cannot be stored.
    SaveConflictError, SaveError
        As in `save_volume`.
    """
    if array.shape != grid.shape:
        raise ValueError(
            f"expected the array to have the grid's shape {grid.shape} (z, y, x), but it has "
            f"{array.shape}"
        )
    stored = stored_type(array)
    content = VolumeContent(
        _format_header(grid, stored, pairs).encode("ascii"), b"", array, stored, is_gzip=True
    )
    place = Grid(grid.shape, grid.affine)
    save_volume(content, path, place, read_nrrd_header, overwrite=overwrite)


def _read_fields(path: Path) -> tuple[Mapping[str, Any], int]:
    # The file is opened only for its errors, which explain why a file cannot be opened; pynrrd's
    # errors do not.
    with open_stream(path, is_gzip=False):
        pass
    try:
        with open_plain(path) as file:
            fields = nrrd.read_header(file)
            return fields, file.tell()
    except (NRRDError, ValueError, LookupError, StopIteration) as error:
        remedy = "check that this is the correct file; copy or download the file again"
        raise refusal(
            path, "an NRRD file", f"its header is not an NRRD header ({error})", remedy
        ) from error


def _parse_header(path: Path, fields: Mapping[str, Any]) -> VolumeHeader:
    sizes = tuple(int(size) for size in fields.get("sizes", ()))
    if len(sizes) != 3 or min(sizes) < 1:
        raise refusal(path, "a 3-D volume", f"its sizes are {sizes}", _CONVERT)
    voxels = _find_voxels(path, fields)
    affine, warnings = _read_affine(path, fields)
    x, y, z = sizes
    try:
        grid = Grid((z, y, x), affine)
    except ValueError as error:
        remedy = "export the file again from the scanner's data"
        raise refusal(
            path, "three independent directions", f"they define no grid ({error})", remedy
        ) from error
    if grid.is_sheared:
        text = (
            "its axes are not at right angles (sheared); the volume is measured and exported "
            "unchanged. Straighten the data set to get a copy with perpendicular axes"
        )
        warnings = (*warnings, f"{path.name}: {text}")
    stored = _find_stored_type(path, fields)
    return VolumeHeader(path, grid, stored, warnings=warnings, voxels=voxels)


def _find_voxels(path: Path, fields: Mapping[str, Any]) -> Path | None:
    encoding = str(fields.get("encoding", "none")).lower()
    if encoding not in _ENCODINGS:
        raise refusal(path, "raw or gzip encoding", f"it is {encoding}", _CONVERT)
    for name in ("line skip", "lineskip", "byte skip", "byteskip"):
        if fields.get(name):
            came = f"its header contains {name}: {fields[name]}"
            raise refusal(path, "voxels right after the header", came, _CONVERT)
    named = next((str(fields[name]) for name in _DATA_FILE if name in fields), "")
    return find_voxel_file(path, named, "data file") if named else None


def _read_affine(
    path: Path, fields: Mapping[str, Any]
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    warnings: tuple[str, ...] = ()
    space = str(fields.get("space", "")).lower()
    if not space:
        space = _SPACE_ASSUMED
        text = (
            f"its header names no space, so {space} is assumed. Check left and right on the images"
        )
        warnings = (f"{path.name}: {text}",)
    if space not in _TO_RAS:
        raise refusal(path, "a patient space such as left-posterior-superior", space, _CONVERT)
    units = {str(unit).strip('" ') for unit in fields.get("space units", ())}
    if others := sorted(units - {"", "mm", "millimeter", "millimeters"}):
        text = f"its header {UNIT_WARNING} {', '.join(others)}, which were read as mm, as in ITK"
        warnings = (*warnings, f"{path.name}: {text}")
    affine = np.eye(4)
    affine[:3, :3] = _read_directions(path, fields).T
    affine[:3, 3] = fields.get("space origin", np.zeros(3))
    affine[:3] *= np.array(_TO_RAS[space])[:, None]
    return affine, warnings


def _read_directions(path: Path, fields: Mapping[str, Any]) -> NDArray[np.float64]:
    if "space directions" in fields:
        directions = np.asarray(fields["space directions"], dtype=np.float64)
    else:
        directions = np.diag(np.asarray(fields.get("spacings", ()), dtype=np.float64))
    if directions.shape != (3, 3):
        raise refusal(
            path, "a direction in mm for each of 3 axes", "some directions are missing", _CONVERT
        )
    return directions


def _find_stored_type(path: Path, fields: Mapping[str, Any]) -> np.dtype[np.generic]:
    empty = {**fields, "sizes": np.zeros(3, int), "encoding": "raw"}
    empty = {key: value for key, value in empty.items() if key not in _DATA_FILE}
    try:
        stored: np.dtype[Any] = nrrd.read_data(empty, BytesIO(), index_order="C").dtype
    except (NRRDError, LookupError, ValueError) as error:
        raise refusal(path, "an NRRD file with numeric voxels", str(error), _CONVERT) from error
    if stored.kind not in "iuf":
        raise refusal(path, "an NRRD file with numeric voxels", f"its type is {stored}", _CONVERT)
    return stored


def _format_header(grid: Grid, stored: np.dtype[Any], pairs: Sequence[tuple[str, str]] = ()) -> str:
    signs = np.array(_TO_RAS[_SPACE_ASSUMED])
    lps = grid.affine[:3] * signs[:, None]
    vectors = [f"({','.join(repr(float(v)) for v in column)})" for column in lps.T]
    name = _NAMES.get(stored.name, stored.name)
    sizes = " ".join(str(n) for n in grid.shape[::-1])
    texts = "".join(f"{key}:={value}\n" for key, value in pairs)
    if "\\" in texts or texts.count("\n") != len(pairs):
        raise ValueError(f"expected one-line strings for an NRRD header, but found {texts!r}")
    return (
        f"NRRD0004\ntype: {name}\ndimension: 3\nspace: {_SPACE_ASSUMED}\nsizes: {sizes}\n"
        f"space directions: {' '.join(vectors[:3])}\nkinds: domain domain domain\n"
        f"endian: little\nencoding: gzip\nspace origin: {vectors[3]}\n{texts}\n"
    )
