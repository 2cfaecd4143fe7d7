"""Read ITK MetaImage volumes: ``.mha`` in one file, or ``.mhd`` with ``.raw`` or ``.zraw``.

Source: https://itk.org/Wiki/ITK/MetaIO/Documentation; where the specification is ambiguous, this
module behaves like the reader of ITK (SimpleITK 2.5), with which the tests compare it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Final

import numpy as np

from napari_mamamia.core.grid import Grid
from napari_mamamia.io.files.headers import UNIT_WARNING, VolumeHeader
from napari_mamamia.io.volumes.inflate import Content
from napari_mamamia.io.volumes.streams import VoxelStream, find_voxel_file, open_stream, refusal

_MOST_HEADER: Final = 1 << 16
_LOCAL: Final = "local"
_DATA: Final = "elementdatafile"
_TYPES: Final[Mapping[str, str]] = {
    "MET_CHAR": "i1",
    "MET_UCHAR": "u1",
    "MET_SHORT": "i2",
    "MET_USHORT": "u2",
    "MET_INT": "i4",
    "MET_UINT": "u4",
    "MET_LONG": "i4",
    "MET_ULONG": "u4",
    "MET_LONG_LONG": "i8",
    "MET_ULONG_LONG": "u8",
    "MET_FLOAT": "f4",
    "MET_DOUBLE": "f8",
}
_DIRECTIONS: Final = ("TransformMatrix", "Rotation", "Orientation")
_ORIGINS: Final = ("Offset", "Position", "Origin")
_SPACINGS: Final = ("ElementSpacing", "ElementSize")
_FROM: Final = str.maketrans("RLAPSI", "LRPAIS")
_LPS_TO_RAS: Final = np.array([-1.0, -1.0, 1.0])
_CONVERT: Final = "convert the file with 3D Slicer or SimpleITK to .nii.gz, or to a binary 3-D .mha"


@contextmanager
def open_metaimage(
    path: Path, content: Content = Content.IMAGE
) -> Iterator[tuple[VolumeHeader, VoxelStream]]:
    """Yield the header of a MetaImage, and its bytes starting at the first voxel.

    Raises
    ------
    FormatError
        If the file cannot be read, is not a volume of numbers, or names a voxel file that is
        missing or in another folder.
    """
    fields, start = _read_fields(path)
    header = _parse_header(path, fields)
    is_zlib = _is_true(path, fields, "CompressedData")
    n_bytes = header.n_volumes * prod(header.grid.shape) * header.stored.itemsize
    if header.voxels is not None:
        start = _skipped(path, fields, header.voxels, n_bytes)
    with open_stream(
        header.voxels or path, start, content=content, is_gzip=False, is_zlib=is_zlib
    ) as stream:
        stream.require(n_bytes)
        yield header, stream


def _read_fields(path: Path) -> tuple[dict[str, str], int]:
    with open_stream(path, is_gzip=False) as stream:
        head = stream.head(_MOST_HEADER)
    fields: dict[str, str] = {}
    start = 0
    while _DATA not in fields:
        stop = head.find(b"\n", start)
        line = head[start : stop if stop >= 0 else None]
        name, equals, value = line.decode("latin-1").partition("=")
        if not equals or (stop < 0 and name.strip().lower() != _DATA):
            raise refusal(
                path,
                "a MetaImage header with lines NAME = VALUE up to ElementDataFile",
                f"it holds {line[:40]!r}",
                "check that this is the correct file; copy or download the file again",
            )
        fields[name.strip().lower()] = value.strip()
        start += len(line) + 1
    return fields, start


def _parse_header(path: Path, fields: Mapping[str, str]) -> VolumeHeader:
    sizes = [int(n) if n.is_integer() else 0 for n in _numbers(path, fields, ("DimSize",))]
    while len(sizes) > 3 and sizes[-1] == 1:
        sizes.pop()
    if len(sizes) not in (2, 3, 4) or min(sizes) < 1:
        raise refusal(path, "a 2-D to 4-D image", f"its DimSize is {sizes} (x, y, z)", _CONVERT)
    is_flat = len(sizes) == 2
    sizes += [1] * is_flat
    _require_plain(path, fields)
    kind = fields.get("elementtype", "").upper()
    if kind not in _TYPES:
        raise refusal(path, "voxels that are numbers", f"its ElementType is {kind!r}", _CONVERT)
    x, y, z, *more = sizes
    grid, warnings = _read_grid(path, fields, (z, y, x), is_flat=is_flat)
    order = ">" if _is_big_endian(path, fields) else "<"
    name = fields[_DATA]
    voxels = None if name.lower() == _LOCAL else find_voxel_file(path, name, "ElementDataFile")
    return VolumeHeader(
        path,
        grid,
        np.dtype(f"{order}{_TYPES[kind]}"),
        n_volumes=more[0] if more else 1,
        warnings=warnings,
        voxels=voxels,
    )


def _require_plain(path: Path, fields: Mapping[str, str]) -> None:
    """Raise `FormatError` for header elements that change how voxels are stored or interpreted."""
    expected = (
        ("BinaryData", ("true",), "binary voxels"),
        ("ElementNumberOfChannels", ("1",), "one value in each voxel"),
        ("ElementToIntensityFunctionSlope", ("1",), "unchanged values"),
        ("ElementToIntensityFunctionOffset", ("0",), "unchanged values"),
    )
    for element, values, what in expected:
        value = fields.get(element.lower(), values[0])
        is_number = value.replace(".", "", 1).isdigit()
        if (f"{float(value):g}" if is_number else value.lower()) not in values:
            raise refusal(path, what, f"its {element} is {value}", _CONVERT)


def _read_grid(
    path: Path, fields: Mapping[str, str], shape: tuple[int, int, int], *, is_flat: bool
) -> tuple[Grid, tuple[str, ...]]:
    """Return the grid, and warnings about it.

    The matrix in the file has a row for each axis, in LPS. AnatomicalOrientation is not used for
    the position: ITK writes this element but never reads it. A flat image is one slice of 1 mm.
    """
    spacing = np.array([*_numbers(path, fields, _SPACINGS), *[1.0] * is_flat][:3])
    directions = _numbers(path, fields, _DIRECTIONS, optional=True)
    n = round(len(directions) ** 0.5)
    rows = np.array(directions).reshape(n, n)[:3, :3] if n * n == len(directions) else None
    rows = np.eye(3) if not directions else rows
    if is_flat and rows is not None and rows.shape == (2, 2):
        rows = np.block([[rows, np.zeros((2, 1))], [np.zeros((1, 2)), np.ones((1, 1))]])
    numbers = _numbers(path, fields, _ORIGINS, optional=True) or [0.0] * 3
    origin = np.array([*numbers, *[0.0] * is_flat][:3])
    if rows is None or rows.shape != (3, 3) or not len(spacing) == len(origin) == 3:
        came = f"found {len(spacing)}, {len(directions)} and {len(origin)} numbers"
        raise refusal(path, "spacing, directions and position of three axes", came, _CONVERT)
    affine = np.eye(4)
    affine[:3, :3] = (rows * spacing[:, None]).T * _LPS_TO_RAS[:, None]
    affine[:3, 3] = origin * _LPS_TO_RAS
    try:
        grid = Grid(shape, affine)
    except ValueError as error:
        remedy = "export the file again from the scanner's data"
        raise refusal(path, "an affine of three independent axes", str(error), remedy) from error
    warnings = []
    if is_flat:
        warnings.append(
            f"{path.name} is a 2-D image and was read as one slice of 1 mm, so "
            "volumes in ml are not meaningful"
        )
    letters = fields.get("anatomicalorientation", "???").upper()
    if "?" not in letters and letters.translate(_FROM) != grid.orientation:
        warnings.append(
            f"the AnatomicalOrientation of {path.name} is {letters}, but its matrix gives "
            f"{grid.orientation.translate(_FROM)}; the matrix is used, as in ITK"
        )
    unit = fields.get("distanceunits", "mm")
    if unit.lower() != "mm":
        warnings.append(f"the header of {path.name} {UNIT_WARNING} {unit}, which were read as mm")
    return grid, tuple(warnings)


def _numbers(
    path: Path, fields: Mapping[str, str], elements: tuple[str, ...], *, optional: bool = False
) -> list[float]:
    text = next((fields[name.lower()] for name in elements if name.lower() in fields), "")
    try:
        numbers = [float(word) for word in text.split()]
    except ValueError:
        numbers = []
    if not np.isfinite(numbers).all() or not (numbers or (optional and not text)):
        came = f"it says {text!r}" if text else "there is none"
        raise refusal(path, f"numbers in {elements[0]}", came, _CONVERT)
    return numbers


def _is_big_endian(path: Path, fields: Mapping[str, str]) -> bool:
    names = ("BinaryDataByteOrderMSB", "ElementByteOrderMSB")
    orders = {name: _is_true(path, fields, name) for name in names if name.lower() in fields}
    if len(set(orders.values())) > 1:
        came = ", ".join(f"{name} is {fields[name.lower()]}" for name in orders)
        raise refusal(path, "one byte order", came, "remove the wrong element")
    return any(orders.values())


def _is_true(path: Path, fields: Mapping[str, str], element: str) -> bool:
    text = fields.get(element.lower(), "False").lower()
    if text not in ("true", "false", "1", "0"):
        raise refusal(path, f"the value True or False for {element}", f"it is {text!r}", _CONVERT)
    return text in ("true", "1")


def _skipped(path: Path, fields: Mapping[str, str], voxels: Path, n_bytes: int) -> int:
    text = fields.get("headersize", "0")
    size = int(text) if text.removeprefix("-").isdigit() else -2
    if size == -1:
        size = voxels.stat().st_size - n_bytes
    if size < 0:
        came = f"it is {text}, but {voxels.name} has {voxels.stat().st_size} bytes"
        raise refusal(path, "a HeaderSize that leaves room for the voxels", came, _CONVERT)
    return size
