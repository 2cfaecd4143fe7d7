"""NRRD volumes, 3-D, raw or gzip: read one file or two, write one."""

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
from napari_mamamia.io.files.headers import VolumeHeader
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
"""Signs that convert each patient space to RAS. Source: NRRD format definition, "space" field,
https://teem.sourceforge.net/nrrd/format.html.
"""
_SPACE_ASSUMED: Final = "left-posterior-superior"
_GZIP: Final = ("gzip", "gz")
_DATA_FILE: Final = ("data file", "datafile")
_ENCODINGS: Final = (*_GZIP, "raw")
_NAMES: Final[Mapping[str, str]] = {"float32": "float", "float64": "double"}
_MOST_LAYERS: Final = 1 << 32
"""Largest number of bytes of all layers, which are in memory at once (our choice).

This is 400 voxels cubed for each of 60 segments.
"""
_CONVERT: Final = "convert it with 3D Slicer or SimpleITK to a 3-D gzip NRRD or .nii.gz"


@contextmanager
def open_nrrd(
    path: Path, content: Content = Content.IMAGE
) -> Iterator[tuple[VolumeHeader, VoxelStream]]:
    """Yield the header of an NRRD file and its bytes from the first voxel on.

    `content` affects the speed only.

    Raises
    ------
    FormatError
        If the file cannot be read, is no 3-D volume in a patient space, has another encoding
        than raw or gzip, or is too small for the voxels of its header.
    """
    fields, start = _read_fields(path)
    header = _parse_header(path, fields)
    is_gzip = fields["encoding"].lower() in _GZIP
    source, start = (header.voxels, 0) if header.voxels is not None else (path, start)
    with open_stream(source, start, content=content, is_gzip=is_gzip) as stream:
        stream.require(prod(header.grid.shape) * header.stored.itemsize)
        yield header, stream


@reads("a readable NRRD file", "copy or download it again")
def read_nrrd_header(path: Path) -> VolumeHeader:
    """Return the header of an NRRD file; only its header is read."""
    with open_nrrd(path) as (header, _):
        return header


@reads("a readable NRRD file", "copy or download it again")
def read_layers(path: Path) -> tuple[VolumeHeader, NDArray[Any]]:
    """Return header and layers ``(layer, z, y, x)`` of label maps, 3-D or with a list axis first.

    3D Slicer stores overlapping segments in this way.
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
            came = f"{n_layers} layers of {header.grid.shape} voxels (z, y, x) exceed that"
            remedy = "save fewer segments, or each as its own label map"
            raise refusal(path, f"layers of at most {_MOST_LAYERS >> 30} GiB", came, remedy)
        values = np.frombuffer(stream.take(n_bytes), header.stored)
        stream.finish()
    layers = np.moveaxis(values.reshape(*header.grid.shape, n_layers), -1, 0)
    return header, layers.astype(header.dtype, copy=False)


@reads("a readable NRRD file", "copy or download it again")
def read_nrrd_pairs(path: Path, start: str) -> dict[str, str]:
    """Return the texts ``key:=value`` of a header whose keys begin with `start`."""
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
    """Write voxels as a gzip-compressed NRRD in left-posterior-superior space, and verify the file.

    The affine is written in full precision. pynrrd's own writer is not used, because it writes the
    time into the header; identical masks must give identical files.

    Parameters
    ----------
    array
        ``(z, y, x)`` on `grid`; bool (written as uint8), integer, float32 or float64.
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
        See `save_volume`.
    """
    if array.shape != grid.shape:
        raise ValueError(
            f"expected an array of the grid's shape {grid.shape} (z, y, x), got {array.shape}"
        )
    stored = stored_type(array)
    content = VolumeContent(
        _format_header(grid, stored, pairs).encode("ascii"), b"", array, stored, is_gzip=True
    )
    place = Grid(grid.shape, grid.affine)
    save_volume(content, path, place, read_nrrd_header, overwrite=overwrite)


def _read_fields(path: Path) -> tuple[Mapping[str, Any], int]:
    """Return pynrrd's header fields and the position of the bytes after the header."""
    # Opened only for its errors, which say why a file cannot be opened; pynrrd's do not.
    with open_stream(path, is_gzip=False):
        pass
    try:
        with open_plain(path) as file:
            fields = nrrd.read_header(file)
            return fields, file.tell()
    except (NRRDError, ValueError, LookupError, StopIteration) as error:
        remedy = "check that it is the right file; copy or download it again"
        raise refusal(path, "an NRRD file", f"its header is not one ({error})", remedy) from error


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
        remedy = "export it again from the scanner's data"
        raise refusal(path, "three independent directions", str(error), remedy) from error
    if grid.is_sheared:
        text = (
            "its axes are not at right angles (sheared); it is measured and exported unchanged. "
            "Straighten the data set for a copy at right angles"
        )
        warnings = (*warnings, f"{path.name}: {text}")
    stored = _find_stored_type(path, fields)
    return VolumeHeader(path, grid, stored, warnings=warnings, voxels=voxels)


def _find_voxels(path: Path, fields: Mapping[str, Any]) -> Path | None:
    """Return the voxel file of a detached header, or raise for unsupported encodings."""
    encoding = str(fields.get("encoding", "none")).lower()
    if encoding not in _ENCODINGS:
        raise refusal(path, "raw or gzip encoding", f"it is {encoding}", _CONVERT)
    for name in ("line skip", "lineskip", "byte skip", "byteskip"):
        if fields.get(name):
            came = f"its header says {name}: {fields[name]}"
            raise refusal(path, "voxels right after the header", came, _CONVERT)
    named = next((str(fields[name]) for name in _DATA_FILE if name in fields), "")
    return find_voxel_file(path, named, "data file") if named else None


def _read_affine(
    path: Path, fields: Mapping[str, Any]
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return the affine, voxel (x, y, z) to RAS mm, and warnings about assumptions."""
    warnings: tuple[str, ...] = ()
    space = str(fields.get("space", "")).lower()
    if not space:
        space = _SPACE_ASSUMED
        text = f"it names no space; {space} is assumed. Check left and right on the images"
        warnings = (f"{path.name}: {text}",)
    if space not in _TO_RAS:
        raise refusal(path, "a patient space such as left-posterior-superior", space, _CONVERT)
    units = {str(unit).strip('" ') for unit in fields.get("space units", ())}
    if others := sorted(units - {"", "mm", "millimeter", "millimeters"}):
        text = f"its header says that lengths are in {', '.join(others)}; read as mm, as in ITK"
        warnings = (*warnings, f"{path.name}: {text}")
    affine = np.eye(4)
    affine[:3, :3] = _read_directions(path, fields).T
    affine[:3, 3] = fields.get("space origin", np.zeros(3))
    affine[:3] *= np.array(_TO_RAS[space])[:, None]
    return affine, warnings


def _read_directions(path: Path, fields: Mapping[str, Any]) -> NDArray[np.float64]:
    """Return one row for each axis (x, y, z): its step in mm in the file's space."""
    if "space directions" in fields:
        directions = np.asarray(fields["space directions"], dtype=np.float64)
    else:
        directions = np.diag(np.asarray(fields.get("spacings", ()), dtype=np.float64))
    if directions.shape != (3, 3):
        raise refusal(path, "a direction in mm for each of 3 axes", "some are missing", _CONVERT)
    return directions


def _find_stored_type(path: Path, fields: Mapping[str, Any]) -> np.dtype[np.generic]:
    """Return the number type, resolved by pynrrd, which knows many names."""
    empty = {**fields, "sizes": np.zeros(3, int), "encoding": "raw"}
    empty = {key: value for key, value in empty.items() if key not in _DATA_FILE}
    try:
        stored: np.dtype[Any] = nrrd.read_data(empty, BytesIO(), index_order="C").dtype
    except (NRRDError, LookupError, ValueError) as error:
        raise refusal(path, "an NRRD of numbers", str(error), _CONVERT) from error
    if stored.kind not in "iuf":
        raise refusal(path, "an NRRD of numbers", f"its type is {stored}", _CONVERT)
    return stored


def _format_header(grid: Grid, stored: np.dtype[Any], pairs: Sequence[tuple[str, str]] = ()) -> str:
    """Return the text of a header, including its final empty line."""
    signs = np.array(_TO_RAS[_SPACE_ASSUMED])
    lps = grid.affine[:3] * signs[:, None]
    vectors = [f"({','.join(repr(float(v)) for v in column)})" for column in lps.T]
    name = _NAMES.get(stored.name, stored.name)
    sizes = " ".join(str(n) for n in grid.shape[::-1])
    texts = "".join(f"{key}:={value}\n" for key, value in pairs)
    if "\\" in texts or texts.count("\n") != len(pairs):
        raise ValueError(f"expected strings of one line each for an NRRD header, got {texts!r}")
    return (
        f"NRRD0004\ntype: {name}\ndimension: 3\nspace: {_SPACE_ASSUMED}\nsizes: {sizes}\n"
        f"space directions: {' '.join(vectors[:3])}\nkinds: domain domain domain\n"
        f"endian: little\nencoding: gzip\nspace origin: {vectors[3]}\n{texts}\n"
    )
