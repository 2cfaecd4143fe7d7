"""Which decompressor for what: isal is fastest on images, zlib-ng on the long runs of masks.

Measured on 44 MB of mask written by SimpleITK: zlib-ng 4 ms, isal 15 ms, zlib 113 ms; on 89 MB of
noisy int16 image: isal 180 ms, zlib-ng 290 ms, zlib 570 ms.
"""

import zlib
from enum import Enum
from typing import Any, BinaryIO, Final

from isal import igzip, isal_zlib
from zlib_ng import gzip_ng, zlib_ng

__all__ = ["BROKEN", "Content", "inflate_block", "open_gzip"]

_RAW: Final = -15

BROKEN: Final[Any] = (
    EOFError,
    OSError,
    zlib.error,
    isal_zlib.error,
    zlib_ng.error,
)
"""What reading a damaged or truncated file may raise."""


class Content(Enum):
    """What a file holds, as far as decompressing it goes."""

    IMAGE = "image"
    MASK = "mask"


def open_gzip(raw: BinaryIO, content: Content) -> Any:
    """Return a reader of the decompressed bytes of `raw`; closing it leaves `raw` open."""
    return (igzip if content is Content.IMAGE else gzip_ng).open(raw)


def inflate_block(packed: bytes, size: int) -> bytes:
    """Return what a block of raw deflate holds, cut at one byte more than the `size` expected."""
    data: bytes = zlib_ng.decompressobj(wbits=_RAW).decompress(packed, size + 1)
    return data
