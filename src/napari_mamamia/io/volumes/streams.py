"""The bytes of a volume file, decompressed as they are asked for; a bad file is a `FormatError`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath, PureWindowsPath
from typing import Any, Final, Protocol

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.files.foreign import open_plain
from napari_mamamia.io.volumes.inflate import BROKEN, Content, open_gzip, open_zlib

_GZIP_MAGIC: Final = b"\x1f\x8b"
_DEFLATE_MOST: Final = 1032
"""Deflate cannot shrink more than this. Source: zlib technical details, "maximum compression
factor" (258 bytes in 2 bits), https://zlib.net/zlib_tech.html."""
_SKIP_BYTES: Final = 1 << 20


class _Reader(Protocol):
    """What is needed of an open file."""

    def read(self, size: int, /) -> bytes: ...
    def readinto(self, out: Any, /) -> int | None: ...


class VoxelStream:
    """The decompressed bytes of one open file, in order, each read exactly once.

    `path` stands in messages; `at_most` is the number of bytes that the rest of the file can hold.
    """

    def __init__(self, path: Path, reader: _Reader, at_most: int, *, is_packed: bool) -> None:
        self.path = path
        self.at_most = at_most
        self.is_packed = is_packed
        self._reader = reader

    def head(self, size: int) -> bytes:
        """Return the next `size` bytes, fewer where the file ends."""
        try:
            return self._reader.read(size)
        except BROKEN as error:
            raise self._make_damage_error(error) from error

    def take(self, size: int) -> bytes:
        """Return exactly the next `size` bytes, or raise `FormatError` where the file ends."""
        data = self.head(size)
        if len(data) != size:
            raise _too_short(self.path)
        return data

    def fill(self, out: memoryview) -> None:
        """Fill `out`, whose format is bytes, or raise `FormatError` where the file ends before."""
        try:
            got = self._reader.readinto(out)
        except BROKEN as error:
            raise self._make_damage_error(error) from error
        if got != len(out):
            raise _too_short(self.path)

    def skip(self, size: int) -> Iterator[None]:
        """Pass over `size` bytes, in steps of at most 1 MiB."""
        while size > 0:
            size -= len(self.take(min(size, _SKIP_BYTES)))
            yield

    def finish(self) -> None:
        """Read a packed file to its end, which compares its checksum; more voxels are no error."""
        for _ in self.rest():
            pass

    def rest(self) -> Iterator[None]:
        """Do what `finish` does, in steps of at most 1 MiB."""
        while self.is_packed and self.head(_SKIP_BYTES):
            yield

    def require(self, size: int) -> None:
        """Raise `FormatError` at once where the file cannot hold `size` bytes more."""
        if size > self.at_most:
            raise _too_short(self.path)

    def _make_damage_error(self, error: Exception) -> FormatError:
        return refusal(
            self.path,
            "a whole, undamaged file",
            f"reading it fails ({error})",
            "it is cut off or damaged; copy or download it again",
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
    """Open a file for reading from byte `start` on, decompressing gzip (of any number of members).

    Parameters
    ----------
    path
        The file.
    start
        Where the bytes asked for, or the gzip stream that holds them, begin.
    content
        What the file holds; only the speed depends on it.
    is_gzip
        Whether they are compressed; by default their first two bytes say it, not the name.
    is_zlib
        Whether they are a zlib stream (RFC 1950), as MetaImage packs its voxels.

    Raises
    ------
    FormatError
        If there is no such file, it is a folder, empty, or cannot be read.
    """
    try:
        raw = open_plain(path)
    except OSError as error:
        raise _cannot_open(path, error) from error
    with raw:
        size = path.stat().st_size - start
        if size <= 0:
            raise refusal(path, "a volume", "the file is empty", "copy or download it again")
        raw.seek(start)
        if is_gzip is None:
            is_gzip = not is_zlib and raw.peek(2)[:2] == _GZIP_MAGIC
        if is_gzip or is_zlib:
            with open_zlib(raw) if is_zlib else open_gzip(raw, content) as unpacked:
                yield VoxelStream(path, unpacked, size * _DEFLATE_MOST, is_packed=True)
        else:
            yield VoxelStream(path, raw, size, is_packed=False)


def find_voxel_file(path: Path, name: str, element: str) -> Path:
    """Return the file of voxels that a header names, which must lie beside the header.

    Parameters
    ----------
    path
        The header.
    name
        What it says.
    element
        The element that says it, for messages.

    Raises
    ------
    FormatError
        If the name leads out of the header's folder, or there is no such file.
    """
    plain = name.removeprefix("./")
    if plain in ("", ".", "..") or not PurePath(plain).name == PureWindowsPath(plain).name == plain:
        raise refusal(
            path,
            "the name of a file beside it as its voxels",
            f"its {element} says {name!r}",
            "put both files into one folder and correct the name in the header",
        )
    if not (voxels := path.with_name(plain)).is_file():
        raise refusal(
            path,
            f"its voxels in {plain}, as its {element} says",
            "there is no such file beside it",
            "copy it too, or correct the name in the header if it was renamed",
        )
    return voxels


def refusal(path: Path, expected: str, came: str, remedy: str) -> FormatError:
    """Return the error that says of `path` what was expected, what came, and what to do."""
    return FormatError(f"{path}: expected {expected}, but {came}: {remedy}")


def _too_short(path: Path) -> FormatError:
    return refusal(
        path,
        "as many voxels as its header promises",
        "the file ends before",
        "it is cut off; copy or download it again",
    )


def _cannot_open(path: Path, error: OSError) -> FormatError:
    if isinstance(error, FileNotFoundError):
        return refusal(path, "a volume file", "there is none", "check folder and name")
    if path.is_dir():
        return refusal(path, "a volume file", "it is a folder", "open it as a data set")
    return refusal(
        path, "a readable file", f"{error.strerror or error}", "check that you may read it"
    )
