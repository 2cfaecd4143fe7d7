"""Read the bytes of a volume file, decompressing on demand."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath, PureWindowsPath
from typing import Any, Final, Protocol

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.files.foreign import open_plain
from napari_mamamia.io.volumes.inflate import BROKEN, Content, open_gzip, open_zlib

_GZIP_MAGIC: Final = b"\x1f\x8b"
_DEFLATE_MOST: Final = 1032
"""Largest compression ratio of deflate.

Source: zlib technical details, "maximum compression factor" (258 bytes in 2 bits),
https://zlib.net/zlib_tech.html.
"""
_SKIP_BYTES: Final = 1 << 20


class _Reader(Protocol):
    """Protocol for the methods of an open file that this module needs."""

    def read(self, size: int, /) -> bytes: ...
    def readinto(self, out: Any, /) -> int | None: ...


class VoxelStream:
    """The decompressed bytes of an open file, which are read once in order.

    `path` is named in messages; `at_most` is the largest possible number of remaining bytes.
    """

    def __init__(self, path: Path, reader: _Reader, at_most: int, *, is_packed: bool) -> None:
        self.path = path
        self.at_most = at_most
        self.is_packed = is_packed
        self._reader = reader

    def head(self, size: int) -> bytes:
        """Return the next `size` bytes, or fewer at the end of the file."""
        try:
            return self._reader.read(size)
        except BROKEN as error:
            raise self._make_damage_error(error) from error

    def take(self, size: int) -> bytes:
        """Return exactly the next `size` bytes; raise `FormatError` if the file ends before."""
        data = self.head(size)
        if len(data) != size:
            raise _too_short(self.path)
        return data

    def fill(self, out: memoryview) -> None:
        """Fill the byte buffer `out`; raise `FormatError` if the file ends before it is full."""
        try:
            got = self._reader.readinto(out)
        except BROKEN as error:
            raise self._make_damage_error(error) from error
        if got != len(out):
            raise _too_short(self.path)

    def skip(self, size: int) -> Iterator[None]:
        """Skip `size` bytes, in steps of at most 1 MiB."""
        while size > 0:
            size -= len(self.take(min(size, _SKIP_BYTES)))
            yield

    def finish(self) -> None:
        """Read a compressed file to its end to verify its checksum; extra voxels are accepted."""
        for _ in self.rest():
            pass

    def rest(self) -> Iterator[None]:
        """Read to the end of the file like `finish`, in steps of at most 1 MiB."""
        while self.is_packed and self.head(_SKIP_BYTES):
            yield

    def require(self, size: int) -> None:
        """Raise `FormatError` if the file cannot contain `size` more bytes."""
        if size > self.at_most:
            raise _too_short(self.path)

    def _make_damage_error(self, error: Exception) -> FormatError:
        return refusal(
            self.path,
            "a complete, undamaged file",
            f"it cannot be read ({error})",
            "the file is truncated or damaged; copy or download it again",
        )


@contextmanager
def open_stream(
    path: Path,
    start: int = 0,
    *,
    content: Content = Content.IMAGE,
    is_gzip: bool | None = None,
    is_zlib: bool = False,
) -> Iterator[VoxelStream]:
    """Open a file for reading from byte `start` on, decompressing gzip if necessary.

    Parameters
    ----------
    path
        The file, which may contain any number of gzip members.
    start
        Offset of the first byte to read, or of the gzip stream that contains this byte.
    content
        The kind of data (image or mask); it affects only the speed.
    is_gzip
        Whether the data are gzip-compressed; by default detected from the first two bytes, not from
        the file name.
    is_zlib
        Whether the data are a zlib stream (RFC 1950), as in compressed MetaImage files.

    Raises
    ------
    FormatError
        If the file does not exist, is a folder, is empty, or cannot be read.
    """
    try:
        raw = open_plain(path)
    except OSError as error:
        raise _cannot_open(path, error) from error
    with raw:
        size = path.stat().st_size - start
        if size <= 0:
            raise refusal(path, "a volume", "the file is empty", "copy or download the file again")
        raw.seek(start)
        if is_gzip is None:
            is_gzip = not is_zlib and raw.peek(2)[:2] == _GZIP_MAGIC
        if is_gzip or is_zlib:
            with open_zlib(raw) if is_zlib else open_gzip(raw, content) as unpacked:
                yield VoxelStream(path, unpacked, size * _DEFLATE_MOST, is_packed=True)
        else:
            yield VoxelStream(path, raw, size, is_packed=False)


def find_voxel_file(path: Path, name: str, element: str) -> Path:
    """Return the voxel file that a header names, which must be in the header's folder.

    Parameters
    ----------
    path
        The header.
    name
        The name in the header.
    element
        The header element with the name, for messages.

    Raises
    ------
    FormatError
        If the name points outside the header's folder, or the file does not exist.
    """
    plain = name.removeprefix("./")
    if plain in ("", ".", "..") or not PurePath(plain).name == PureWindowsPath(plain).name == plain:
        raise refusal(
            path,
            "the name of a voxel file in the same folder",
            f"its {element} says {name!r}",
            "put both files into one folder and correct the name in the header",
        )
    if not (voxels := path.with_name(plain)).is_file():
        raise refusal(
            path,
            f"voxels in {plain}, which its {element} names",
            "there is no such file in the same folder",
            "copy the voxel file too, or correct the name in the header if the file was renamed",
        )
    return voxels


def refusal(path: Path, expected: str, came: str, remedy: str) -> FormatError:
    """Return the error about `path`, with expected content, actual content and remedy."""
    return FormatError(f"{path}: expected {expected}, but {came}: {remedy}")


def _too_short(path: Path) -> FormatError:
    return refusal(
        path,
        "as many voxels as its header announces",
        "the file ends early",
        "the file is truncated; copy or download it again",
    )


def _cannot_open(path: Path, error: OSError) -> FormatError:
    if isinstance(error, FileNotFoundError):
        return refusal(path, "a volume file", "it does not exist", "check the folder and the name")
    if path.is_dir():
        return refusal(path, "a volume file", "it is a folder", "open the folder as a data set")
    return refusal(
        path, "a readable file", f"{error.strerror or error}", "check the read permission"
    )
