"""Write voxels block by block, so that a file is complete or absent, and verify them."""

import struct
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeVar

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.errors import FormatError, SaveError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.files.headers import VolumeHeader
from napari_mamamia.io.files.save import flushed, saving
from napari_mamamia.io.volumes.inflate import crc32_of, inflate_block

# The following code writes a gzip file in blocks and verifies each block while writing.

BLOCK_BYTES: Final = 1 << 16
"""Number of bytes compressed and verified at a time.

Smaller blocks need more time in Python; larger blocks contain more zeros without being all zero
(measured).
"""

_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
"""Gzip header without file name and time. Source: RFC 1952, section 2.3.

Equal voxels can give different bytes, because isal rarely misses a repetition (in 3 of 240 files).
"""
_END: Final = b"\x03\x00"
"""An empty last deflate block. Source: RFC 1951, section 3.2.6."""
_RAW: Final = -15
_INVERTED: Final = 0xFFFFFFFF
_LEVEL: Final = 1
_ZERO_LEVEL: Final = 3
"""Compression level for blocks of zeros.

Up to level 3, zlib writes zeros as copies over a larger distance than at higher levels, so isal and
zlib read them 3 to 7 times faster (4.5 ms instead of 15 ms for 44 MB with isal, measured).
"""


class BlockGzip:
    """Writer of one gzip member that consists of independent blocks.

    Blocks of zeros, which form most of a tumour mask, are compressed once and repeated. Every other
    block is decompressed again and compared with its input.

    Parameters
    ----------
    write
        Function that receives the compressed bytes.
    """

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._deflate = isal_zlib.compressobj(_LEVEL, wbits=_RAW)
        self._crc = 0
        self._size = 0
        self._zeros: list[bytes] = []
        self._n_zeros = 0
        write(_HEADER)

    def add(self, data: bytes) -> None:
        """Add the bytes of a block; raise `ValueError` if they change when decompressed again."""
        packed = self._deflate.compress(data) + self._deflate.flush(isal_zlib.Z_FULL_FLUSH)
        if inflate_block(packed, len(data)) != data:
            raise ValueError("a compressed block does not decompress to its input")
        self._write_zeros()
        self._write(packed)
        self._crc = crc32_of(data, self._crc)
        self._size += len(data)

    def add_zeros(self, size: int) -> None:
        """Add a block of `size` zero bytes."""
        # Hundreds of zero blocks may follow one another, so they are written at once.
        self._zeros.append(_packed_zeros(size))
        self._n_zeros += size

    def close(self) -> None:
        """Write the end of the gzip member."""
        self._write_zeros()
        # gzip stores the size modulo 2^32.
        self._write(_END + struct.pack("<II", self._crc, self._size & 0xFFFFFFFF))

    def _write_zeros(self) -> None:
        if not self._zeros:
            return
        self._write(b"".join(self._zeros))
        # Zeros only shift the remainder, which a CRC-32 stores inverted, so any number of zeros
        # takes one step.
        shifted = isal_zlib.crc32_combine(self._crc ^ _INVERTED, 0, self._n_zeros)
        self._crc = shifted ^ _INVERTED
        self._size += self._n_zeros
        self._zeros, self._n_zeros = [], 0


class PlainBlocks:
    """Writer of the blocks of an uncompressed file."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write

    def add(self, data: bytes) -> None:
        """Add the bytes of a block."""
        self._write(data)

    def add_zeros(self, size: int) -> None:
        """Add a block of `size` zero bytes."""
        self._write(bytes(size))

    def close(self) -> None:
        """Do nothing, because a plain file has no end marker."""


@lru_cache(maxsize=8)
def _packed_zeros(size: int) -> bytes:
    deflate = zlib.compressobj(_ZERO_LEVEL, zlib.DEFLATED, _RAW)
    return deflate.compress(bytes(size)) + deflate.flush(zlib.Z_FULL_FLUSH)


T = TypeVar("T")

_Steps: TypeAlias = Generator[int, None, int]
"""Generator that yields the number of planes written and returns the CRC-32 of the file."""


_BUFFER_BYTES: Final = 1 << 20
_YIELD_SECONDS: Final = 0.05
_SLOW_BYTES: Final = 1 << 23
"""File size in bytes above which the file is forced to the disk in a thread, with progress."""


class Planes(Protocol):
    """Voxels to write: an array, or an iterable of planes that is read only once.

    A plane is valid until the next plane is requested; None represents a plane of zeros. Iterating
    may raise `FormatError`.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape ``(z, y, x)``, or ``(n, z, y, x)`` for an array with several volumes."""

    @property
    def ndim(self) -> int:
        """Number of axes, 3 or 4."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of every plane."""

    def __iter__(self) -> Iterator[Any]:
        """Yield the planes, or the volumes of an array with 4 axes."""


class LabelPlanes:
    """The planes of a label map, created from its non-zero block.

    A label map is used because a separate box for a whole array could be wrong and omit voxels.
    """

    ndim = 3

    def __init__(self, labels: LabelMap) -> None:
        self._box = labels.box
        is_bool = labels.crop.dtype == np.bool_
        self._crop = labels.crop.astype(np.uint8) if is_bool else labels.crop
        self.shape = labels.grid.shape
        self.dtype: np.dtype[Any] = self._crop.dtype
        width = self.shape[2]
        self.filled = range(self._box.start[1] * width, self._box.stop[1] * width)
        """Range of indices in a flattened plane that may have non-zero values."""

    def __iter__(self) -> Iterator[NDArray[Any] | None]:
        """Yield the planes; each overwrites the memory of the previous one."""
        (first, top, left), (stop, bottom, right) = self._box.start, self._box.stop
        plane: NDArray[Any] = np.zeros(self.shape[1:], self.dtype)
        for z in range(self.shape[0]):
            if first <= z < stop:
                plane[top:bottom, left:right] = self._crop[z - first]
                yield plane
            else:
                yield None


@dataclass(frozen=True, slots=True, eq=False)
class VolumeContent:
    """The content of a volume file to write.

    `array` is ``(z, y, x)`` or ``(n, z, y, x)``; its values are written in the type `stored`, which
    differs from the array's type only in byte order (bool becomes uint8). `plain` comes first and
    is never compressed. `header` comes next and is compressed together with the voxels if
    `is_gzip`.
    """

    plain: bytes
    header: bytes
    array: Planes
    stored: np.dtype[Any]
    is_gzip: bool

    @property
    def n_planes(self) -> int:
        """Total number of planes in all volumes."""
        return int(np.prod(self.array.shape[:-2]))


def stored_type(array: Planes, byte_order: Literal["<", ">"] = "<") -> np.dtype[Any]:
    """Return the data type in the file: the array's type in `byte_order`, or uint8 for bool.

    Raises
    ------
    ValueError
        If the array is not bool, integer, float32 or float64.
    """
    if array.dtype.kind == "b":
        return np.dtype(np.uint8)
    if array.dtype.kind not in "iuf" or not array.dtype.itemsize <= 8 or array.dtype == np.float16:
        raise ValueError(
            f"expected a volume of type bool, integer, float32 or float64, but found {array.dtype}"
        )
    return array.dtype.newbyteorder(byte_order)


def save_volume(
    content: VolumeContent,
    target: Path,
    grid: Grid,
    read_header: Callable[[Path], VolumeHeader],
    *,
    overwrite: bool,
) -> None:
    """Write `content` to a temporary file, compare it with the voxels, and rename the file.

    Progress is reported in planes. If cancelled, an older file is unchanged and no new file
    remains.

    Compressed blocks are decompressed and compared with the voxels while they are written. Then the
    checksum of the file is compared with that of the written bytes, and the header with the
    expected header.

    Parameters
    ----------
    content
        The content to write.
    target
        The file to write. An existing file survives every failure.
    grid
        Shape and affine that the file must have exactly when it is read back.
    read_header
        Function that reads the header of the finished file.
    overwrite
        Whether an existing file is replaced.

    Raises
    ------
    SaveConflictError
        If `target` exists and `overwrite` is False.
    SaveError
        If writing fails, or the file differs when it is read back. The message names the
        difference.
    """
    total = content.n_planes
    with saving(target, overwrite=overwrite) as temporary:
        try:
            written = report_steps(
                _write_content(content, temporary), total, f"Writing {target.name}"
            )
        except FormatError:  # The source of the planes is at fault, not the written file.
            raise
        except ValueError as error:
            raise _make_difference_error(target, str(error)) from error
        try:
            read = read_header(temporary)
        except ValueError as error:
            raise _make_difference_error(target, str(error)) from error
        report_progress(total, total, f"Checking {target.name}")
        checking = _checksum_of(temporary, total)
        checksum = report_steps(checking, total, f"Checking {target.name}")
        if checksum != written:
            raise _make_difference_error(
                target, "the bytes on the disk differ from the written bytes"
            )
        for what, expected, got in _list_facts(content, grid, read):
            if expected != got:
                raise _make_difference_error(target, f"{what} is {got}, expected {expected}")


def _write_content(content: VolumeContent, path: Path) -> _Steps:
    checksum = 0
    with path.open("wb", buffering=_BUFFER_BYTES) as file:

        def write(data: bytes) -> None:
            nonlocal checksum
            file.write(data)
            checksum = crc32_of(data, checksum)

        write(content.plain)
        blocks = BlockGzip(write) if content.is_gzip else PlainBlocks(write)
        if content.header:
            blocks.add(content.header)
        yield from _add_planes(blocks, content)
        blocks.close()
    if path.stat().st_size >= _SLOW_BYTES:
        for _ in flushed(path):
            yield content.n_planes
    return checksum


def _checksum_of(path: Path, done: int) -> _Steps:
    checksum = 0
    with path.open("rb", buffering=0) as file:
        while data := file.read(_BUFFER_BYTES):
            checksum = crc32_of(data, checksum)
            yield done
    return checksum


def report_steps(steps: Generator[int, None, T], total: int, text: str) -> T:
    """Run the generator `steps` to its end; report the number it yields every 50 ms."""
    last = perf_counter()
    with closing(steps):
        while True:
            try:
                n_steps = next(steps)
            except StopIteration as stop:
                result: T = stop.value
                return result
            if perf_counter() - last >= _YIELD_SECONDS:
                report_progress(n_steps, total, text)
                last = perf_counter()


def _add_planes(blocks: BlockGzip | PlainBlocks, content: VolumeContent) -> Iterator[int]:
    step = BLOCK_BYTES // content.stored.itemsize
    n_voxels = int(np.prod(content.array.shape[-2:]))
    filled = content.array.filled if isinstance(content.array, LabelPlanes) else range(n_voxels)
    n_planes = 0
    for index, plane in enumerate(_iterate_planes(content.array)):
        n_planes += 1
        if plane is None:
            blocks.add_zeros(n_voxels * content.stored.itemsize)
            continue
        yield index
        if plane.size != n_voxels:
            raise ValueError(
                f"expected {n_voxels} voxels in plane {n_planes}, but found {plane.size}"
            )
        if _is_zero(plane[filled.start : filled.stop]):
            blocks.add_zeros(plane.nbytes)
            continue
        for start in range(0, plane.size, step):
            part = plane[start : start + step]
            is_outside = start >= filled.stop or start + step <= filled.start
            if is_outside or _is_zero(part):
                blocks.add_zeros(part.nbytes)
            else:
                blocks.add(part.astype(content.stored, copy=False).tobytes())
                yield index
    if n_planes != content.n_planes:
        raise ValueError(f"expected {content.n_planes} planes, but found {n_planes}")


def _is_zero(values: NDArray[Any]) -> bool:
    return not values.view(np.bool_).any()


def _iterate_planes(array: Planes) -> Iterator[NDArray[Any] | None]:
    for volume in array if array.ndim == 4 else (array,):
        for plane in volume:
            yield None if plane is None else np.ascontiguousarray(plane).reshape(-1)


def _list_facts(
    content: VolumeContent, grid: Grid, read: VolumeHeader
) -> Iterator[tuple[str, object, object]]:
    n_volumes = content.array.shape[0] if content.array.ndim == 4 else 1
    yield "the shape (z, y, x)", grid.shape, read.grid.shape
    yield "the number of volumes", n_volumes, read.n_volumes
    yield "the affine", grid.affine.tolist(), read.grid.affine.tolist()
    yield "the voxel type", content.stored, read.stored
    yield "scaling", False, read.is_scaled


def _make_difference_error(target: Path, what: str) -> SaveError:
    return SaveError(
        f"expected {target} to contain what was written, but {what}: save again, on a different "
        "disk if this recurs; an existing file is unchanged"
    )
