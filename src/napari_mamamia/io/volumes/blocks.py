"""A gzip file written in blocks, each checked as it is written."""

import struct
import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from isal import isal_zlib

from napari_mamamia.io.volumes.inflate import crc32_of, inflate_block

__all__ = ["BlockGzip"]

BLOCK_BYTES: Final = 1 << 16
"""Compressed, and checked, at a time. Measured: smaller costs Python time, larger leaves more zeros
in blocks that are not all zero."""

_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
"""No file name, no time. Source: RFC 1952, section 2.3. Equal voxels are seldom other bytes all the
same: isal misses a repetition now and then (3 of 240 files)."""
_END: Final = b"\x03\x00"
"""An empty last block. Source: RFC 1951, section 3.2.6."""
_RAW: Final = -15
_LEVEL: Final = 1
_ZERO_LEVEL: Final = 3
"""zlib's levels up to 3 write zeros as copies from far enough back that isal and zlib read them 3
to 7 times faster than those of higher levels (isal 4.5 against 15 ms for 44 MB, measured)."""


class BlockGzip:
    """One gzip member made of blocks that do not refer to each other.

    Blocks of zeros, most of a tumour mask, are compressed once and repeated. Every other block is
    inflated again and compared with what went in.

    Parameters
    ----------
    write
        Takes the compressed bytes.
    """

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._deflate = isal_zlib.compressobj(_LEVEL, wbits=_RAW)
        self._crc = 0
        self._size = 0
        write(_HEADER)

    def add(self, data: bytes) -> None:
        """Add the bytes of one block; raise `ValueError` if they do not come back."""
        packed = self._deflate.compress(data) + self._deflate.flush(isal_zlib.Z_FULL_FLUSH)
        if inflate_block(packed, len(data)) != data:
            raise ValueError("a compressed block does not give back what went in")
        self._write(packed)
        self._crc = crc32_of(data, self._crc)
        self._size += len(data)

    def add_zeros(self, size: int) -> None:
        """Add a block of `size` zero bytes."""
        packed, crc = _packed_zeros(size)
        self._write(packed)
        self._crc = isal_zlib.crc32_combine(self._crc, crc, size)
        self._size += size

    def close(self) -> None:
        """Write the end of the file."""
        self._write(_END + struct.pack("<II", self._crc, self._size & 0xFFFFFFFF))


class PlainBlocks:
    """The same for a file that is not compressed: blocks are written as they are."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write

    def add(self, data: bytes) -> None:
        """Add the bytes of one block."""
        self._write(data)

    def add_zeros(self, size: int) -> None:
        """Add a block of `size` zero bytes."""
        self._write(bytes(size))

    def close(self) -> None:
        """Do nothing: a plain file has no end mark."""


@lru_cache(maxsize=8)
def _packed_zeros(size: int) -> tuple[bytes, int]:
    """Return `size` zero bytes as a block of its own, and their CRC-32."""
    zeros = bytes(size)
    deflate = zlib.compressobj(_ZERO_LEVEL, zlib.DEFLATED, _RAW)
    return deflate.compress(zeros) + deflate.flush(zlib.Z_FULL_FLUSH), zlib.crc32(zeros)
