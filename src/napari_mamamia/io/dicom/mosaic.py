"""Split Siemens mosaics, in which one image contains all slices of a time point as tiles.

Siemens' private CSA header holds the number of tiles and the direction of the slices; nibabel reads
it. A mosaic without this header, for example after anonymisation, raises an error, because both
slice directions look alike.
"""

import struct
import warnings
from collections.abc import Sequence
from dataclasses import replace
from math import isqrt
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.program.hidden_package import without_package
from napari_mamamia.io.dicom.elements import (
    DAMAGED,
    PrivateElement,
    open_dicom,
    optional_number,
    read_value,
)
from napari_mamamia.io.dicom.slices import Slice, Tile

with warnings.catch_warnings(), without_package("requests"):
    warnings.simplefilter(
        "ignore"
    )  # nibabel calls its CSA readers experimental; the tests check them.
    from nibabel.nicom import csareader


_READER: Final[Any] = csareader
_MR_NUMBER: Final = PrivateElement(0x0019, "siemens mr header", 0x0A, "US")
"""Siemens' private element NumberOfImagesInMosaic, (0019,xx0A).

It has the same value as in the CSA header. Source: Siemens DICOM conformance statement, MAGNETOM,
private attributes.
"""
_CSA: Final = PrivateElement(0x0029, "siemens csa header", 0x10, "OB")
_BROKEN_CSA: Final = (*DAMAGED, AssertionError, csareader.CSAError, struct.error)
_PARALLEL: Final = 1e-3
"""Largest deviation from 1 of the cosine between the CSA normal and the header's normal.

Our choice corresponds to 2.6 degrees, which is far above rounding errors and far below a change of
orientation.
"""
_CONVERT: Final = "export the series again with Siemens' private elements, or as single slices"


def is_mosaic(content: Any) -> bool:
    """Return whether ImageType marks an image as a mosaic."""
    return "MOSAIC" in str(content.get("ImageType"))


def tiles_of(picture: Slice) -> tuple[Slice, ...]:
    """Return one plane for each tile of a mosaic, in the order of the file.

    The tiles fill a square of ``ceil(sqrt(n))`` by ``ceil(sqrt(n))`` tiles row by row, and tiles
    after the n-th are blank. ImagePositionPatient describes a slice as large as the whole mosaic,
    centred on the first slice, so half of the excess is added along rows and columns. The next tile
    is one SpacingBetweenSlices further along the CSA header's SliceNormalVector. Source: nibabel,
    doc/source/dicom/dicom_mosaic.rst at 12ea1360 (position) and siemens_csa.rst at 42cbe5d0
    (normal).

    Parameters
    ----------
    picture
        The whole mosaic as one plane, with its header.

    Raises
    ------
    FormatError
        If the number of tiles, the distance of the slices or their direction is missing, or
        contradicts the mosaic.
    """
    path = picture.file
    content = open_dicom(path, path, stop_before_pixels=True)
    csa = _csa_of(path, content)
    n_tiles = _n_tiles(path, content, csa)
    side = isqrt(n_tiles - 1) + 1
    n_rows, n_columns = _tile_shape(picture, side)
    first, step = _first_position(picture, (n_rows, n_columns)), _find_step(picture, content, csa)
    return tuple(
        replace(
            picture,
            shape=(n_rows, n_columns),
            position_mm=tuple(float(mm) for mm in first + k * step),
            frame=k,
            tile=Tile(k // side * n_rows, k % side * n_columns, picture.shape),
        )
        for k in range(n_tiles)
    )


def _csa_of(path: Path, content: Any) -> Any:
    try:
        csa = read_value(content, _CSA)
        return {"tags": {}} if csa is None else _READER.read(csa)
    except _BROKEN_CSA as error:
        raise FormatError(
            f"expected the CSA header (0029,1010) of the mosaic {path} to be readable, but "
            f"{error}: {_CONVERT}"
        ) from error


def _n_tiles(path: Path, content: Any, csa: Any) -> int:
    counts = [
        int(n)
        for n in (optional_number(content, _MR_NUMBER), _read_scalar(csa, "NumberOfImagesInMosaic"))
        if n
    ]
    if not counts or min(counts) < 1 or len(set(counts)) > 1:
        came = (
            f"its two values are {counts[0]} and {counts[1]}"
            if len(counts) > 1
            else "it is missing"
        )
        raise FormatError(
            f"expected NumberOfImagesInMosaic to be given once in the mosaic {path}, but {came}: "
            f"{_CONVERT}"
        )
    return counts[0]


def _read_scalar(csa: Any, name: str) -> float | None:
    return optional_number({name: _READER.get_scalar(csa, name)}, name)


def _tile_shape(picture: Slice, side: int) -> tuple[int, int]:
    rows, columns = picture.shape
    if rows % side or columns % side:
        raise FormatError(
            f"expected the mosaic {picture.file} to have {side} x {side} equal tiles, but it has "
            f"{rows} rows and {columns} columns: the image was cropped or resized; export it again"
        )
    return rows // side, columns // side


def _first_position(picture: Slice, shape: Sequence[int]) -> NDArray[np.float64]:
    """Return the centre (LPS, mm) of the first voxel in the first tile."""
    too_much = np.subtract(picture.shape, shape) / 2 * picture.spacing_mm
    directions = np.array(picture.orientation).reshape(2, 3)
    position: NDArray[np.float64] = (
        np.array(picture.position_mm) + too_much[1] * directions[0] + too_much[0] * directions[1]
    )
    return position


def _find_step(picture: Slice, content: Any, csa: Any) -> NDArray[np.float64]:
    """Return the vector (LPS, mm) from one slice to the next."""
    path = picture.file
    gap = optional_number(content, "SpacingBetweenSlices") or _read_scalar(
        csa, "SpacingBetweenSlices"
    )
    if not gap or gap <= 0:
        raise FormatError(
            f"expected SpacingBetweenSlices of the mosaic {path} to be above 0 mm, but it is "
            f"{gap}: {_CONVERT}"
        )
    normal = np.cross(picture.orientation[:3], picture.orientation[3:])
    cosine = float(normal @ _slice_normal(path, csa))
    if abs(abs(cosine) - 1) > _PARALLEL:
        raise FormatError(
            f"expected the SliceNormalVector of the mosaic {path} to be at right angles to its "
            f"rows and columns, but the cosine to their normal is {cosine:.4f}: {_CONVERT}"
        )
    step: NDArray[np.float64] = normal * (gap if cosine > 0 else -gap)
    return step


def _slice_normal(path: Path, csa: Any) -> NDArray[np.float64]:
    try:
        normal = _READER.get_vector(csa, "SliceNormalVector", 3)
    except ValueError:
        normal = None
    if normal is None:
        raise FormatError(
            f"expected SliceNormalVector in the CSA header of the mosaic {path} to be three "
            f"numbers, but it is missing, so the direction of the slices is unknown: {_CONVERT}"
        )
    return np.asarray(normal, dtype=np.float64)
