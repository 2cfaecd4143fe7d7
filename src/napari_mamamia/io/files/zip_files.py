"""Open zip files of other software after checking their directory."""

import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from napari_mamamia.io.files.foreign import open_plain

_MOST_DIRECTORY_BYTES: Final = 64 << 20
"""Largest size of a zip's directory (our choice): 500,000 names of 80 letters.

Python needs about 15 times this size in memory.
"""
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Allowed compression methods.

bzip2 and LZMA are excluded, because Python unpacks a whole block at once, so 1 MB can become 10 GB.
"""
_HEADER_BYTES: Final = 30
"""Smallest number of bytes before a member's content.

Source: PKWARE, APPNOTE.TXT, 4.3.7.
"""


@contextmanager
def open_zip(file: Path | BinaryIO) -> Iterator[zipfile.ZipFile]:
    """Open a zip file for reading after checking its directory; never close a passed stream.

    Raises
    ------
    OSError
        If the file cannot be opened, or is a pipe, socket or device.
    zipfile.BadZipFile
        If the file is not a zip file, its directory is too large, or a member has no name, uses a
        compression other than deflate, ends after the file, or overlaps another member.
    """
    with (
        open_plain(file) if isinstance(file, Path) else nullcontext(file) as stream,
        zipfile.ZipFile(cast("BinaryIO", _BoundedStream(stream))) as archive,
    ):
        _require_sound(archive.infolist(), stream.seek(0, 2))
        yield archive


def is_zip(path: Path) -> bool:
    """Return whether the content of a path is that of a zip archive."""
    try:
        with open_plain(path) as stream:
            return zipfile.is_zipfile(stream)
    except (OSError, ValueError):
        return False


def find_surplus(members: Iterable[zipfile.ZipInfo], ratio: int) -> int:
    """Return the number of bytes by which members exceed `ratio` times their compressed size."""
    return sum(max(0, member.file_size - ratio * member.compress_size) for member in members)


class _BoundedStream:
    """Stream that raises an error instead of reading an oversized directory into memory."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        if size > _MOST_DIRECTORY_BYTES:
            raise zipfile.BadZipFile(f"the list of members is {size >> 20} MB long")
        return self._stream.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _require_sound(members: list[zipfile.ZipInfo], size: int) -> None:
    in_order = sorted(members, key=lambda member: member.header_offset)
    starts = [member.header_offset for member in in_order[1:]]
    for member, following in zip(in_order, [*starts, size], strict=False):
        end = member.header_offset + _HEADER_BYTES + member.compress_size
        if not member.filename:
            reason = "has no name"
        elif end > size:
            reason = (
                f"of {member.compress_size:,} bytes does not fit into the file of {size:,} bytes"
            )
        elif end > following:
            reason = "overlaps another member"
        elif member.compress_type not in _METHODS:
            reason = "uses a compression other than deflate; create the zip with deflate"
        else:
            continue
        raise zipfile.BadZipFile(f"a member {member.filename!r} {reason}")
