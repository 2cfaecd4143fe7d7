"""Planes of a stream to arrays: images whole, masks as the block that is not zero."""

from collections.abc import Generator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import NotFiniteError
from napari_mamamia.io.files.headers import VolumeHeader
from napari_mamamia.io.volumes.streams import VoxelStream

_STEP_BYTES: Final = 1 << 20
"""Read at a time: 1 MiB keeps a step near 2 ms and the scratch in the cache (measured)."""
_MASK_STEP_BYTES: Final = 1 << 18
"""One plane or two: they are compared with zeros in the core's cache (1 ms a pair, measured)."""


def fill_planes(
    stream: VoxelStream, header: VolumeHeader, out: NDArray[Any]
) -> Generator[int, None, None]:
    """Read the next ``len(out)`` planes into `out`, yielding how many are there after each step.

    Parameters
    ----------
    stream
        Placed at the first of the planes.
    header
        Of the stream's file.
    out
        ``(planes, y, x)`` of ``header.dtype``. Read in place where it is contiguous and the file's
        values are not scaled, else plane by plane through a small scratch.
    """
    step = max(1, _STEP_BYTES // (out[0].size * header.stored.itemsize))
    in_place = out.flags.c_contiguous and not header.is_scaled
    scratch = None if in_place else np.empty((step, *out.shape[1:]), header.stored)
    for first in range(0, len(out), step):
        block = out[first : first + step]
        stored = block if scratch is None else scratch[: len(block)]
        stream.fill(_bytes_of(stored))
        if scratch is not None:
            block[...] = header.scaled(stored)
        elif not header.stored.isnative:
            block.byteswap(inplace=True)
        yield first + len(block)


def read_block(stream: VoxelStream, header: VolumeHeader) -> tuple[Box, NDArray[Any]]:
    """Read a mask and return the smallest box of its non-zero voxels and the values in it.

    A few planes are read at a time and compared with zeros; planes without a foreground voxel go
    no further, which is what makes this fast.

    Returns
    -------
    Box
        Empty for a mask without a non-zero value.
    NDArray
        ``(z, y, x)`` inside the box, in ``header.dtype``.

    Raises
    ------
    FormatError
        If a floating-point mask holds NaN or infinity.
    """
    nz, ny, nx = header.grid.shape
    plane_bytes = ny * nx * header.stored.itemsize
    step = max(1, _MASK_STEP_BYTES // plane_bytes)
    zeros = bytes(step * plane_bytes)
    # With an intercept a stored 0 is another value.
    zero_is_zero = header.intercept == 0.0
    planes = _FoundPlanes(header)
    for first in range(0, nz, step):
        data = stream.take(min(step, nz - first) * plane_bytes)
        if zero_is_zero and data == zeros:
            continue
        for z, plane in enumerate(np.frombuffer(data, header.stored).reshape(-1, ny, nx), first):
            planes.add(z, header.scaled(plane))
    return planes.block()


class _FoundPlanes:
    """Collects what is not zero, plane by plane, cut to each plane's own rows and columns."""

    def __init__(self, header: VolumeHeader) -> None:
        self._header = header
        self._is_float = np.issubdtype(header.dtype, np.floating)
        self._places: list[tuple[int, int, int, int, int, int]] = []
        self._pieces: list[NDArray[Any]] = []

    def add(self, z: int, plane: NDArray[Any]) -> None:
        """Keep a copy of the non-zero rectangle of one ``(y, x)`` plane, if there is any."""
        y0, y1 = _filled_rows(plane)
        if y0 == y1:
            return
        collapse = np.logical_or.reduce if self._is_float else np.bitwise_or.reduce
        columns = np.flatnonzero(collapse(plane[y0:y1], axis=0))
        x0, x1 = int(columns[0]), int(columns[-1]) + 1
        piece = plane[y0:y1, x0:x1].copy()
        if self._is_float and not np.isfinite(piece).all():
            raise NotFiniteError(
                f"{self._header.path}: expected a number in every voxel of a mask, but slice {z} "
                "holds NaN or infinity: write the mask again, with 0 where there is no tumour"
            )
        self._places.append((z, y0, x0, z + 1, y1, x1))
        self._pieces.append(piece)

    def block(self) -> tuple[Box, NDArray[Any]]:
        """Return the box of everything kept, and its values."""
        if not self._pieces:
            return Box.empty(), np.zeros((0, 0, 0), self._header.dtype)
        lows, highs = zip(*((place[:3], place[3:]) for place in self._places), strict=True)
        z0, y0, x0 = (min(along) for along in zip(*lows, strict=True))
        z1, y1, x1 = (max(along) for along in zip(*highs, strict=True))
        box = Box((z0, y0, x0), (z1, y1, x1))
        crop = np.zeros(box.shape, self._header.dtype)
        for (z, top, left, _, bottom, right), piece in zip(self._places, self._pieces, strict=True):
            crop[z - z0, top - y0 : bottom - y0, left - x0 : right - x0] = piece
        return box, crop


def _filled_rows(plane: NDArray[Any]) -> tuple[int, int]:
    """Return the first row of a ``(y, x)`` plane that is not all zero, and the last one plus one.

    Integers are looked at eight bytes at a time where rows are a multiple of that.
    """
    values = plane
    if plane.dtype.kind in "iu" and plane.flags.c_contiguous and plane[0].nbytes % 8 == 0:
        values = plane.view(np.uint64)
    filled = (values != 0).tobytes()
    first = filled.find(1)
    if first < 0:
        return 0, 0
    return first // values.shape[1], filled.rfind(1) // values.shape[1] + 1


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data
