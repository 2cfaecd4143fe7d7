"""Search every byte of a file for patient identifiers, including compressed content."""

import base64
import binascii
import bz2
import io
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

from napari_mamamia.core.errors import FormatError, MissingExtraError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.files.foreign import open_bounded, reads
from napari_mamamia.io.privacy.identifiers import Among, Sign, folded
from napari_mamamia.io.tables.budget import MOST_CELLS, TEXT_BYTES
from napari_mamamia.io.tables.flat_tables import import_parquet

_DEPTH: Final = 5
_CHUNK: Final = 1 << 23
_OVERLAP: Final = 512
_MOST_TEXT: Final = 1 << 27
_HEAD: Final = 352
_PIXELS: Final = b"\xe0\x7f\x10\x00"
_DATA_URI: Final = re.compile(rb"base64,([A-Za-z0-9+/=\s]{16,})")
_RUN: Final = re.compile(rb"[\x20-\x7e\x80-\xff]{4,}")
_NIFTI: Final = (b"n+1\0", b"ni1\0")
_SEALED: Final = (
    b"7z\xbc\xaf'\x1c", b"Rar!\x1a", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18", b"\x89HDF\r\n",
)  # fmt: skip
"""Magic bytes of formats that cannot be unpacked here: 7z, rar, zstandard, lz4 and HDF5."""
_DEFLATED: Final = re.compile(rb"(?:stream|LOCAL|\n)\r?\n(?=\x1f\x8b\x08|\x78[\x01\x5e\x9c\xda])")
"""Pattern for the text before a zlib or gzip header inside a PDF, MHA or NRRD file."""
_ZLIB: Final = re.compile(rb"\x78[\x01\x5e\x9c\xda]")
_GZIP: Final = b"\x1f\x8b"
_ANY_HEAD: Final = 32 + zlib.MAX_WBITS
_PACKERS: Final[Mapping[bytes, Callable[[], Any]]] = {
    _GZIP: lambda: zlib.decompressobj(_ANY_HEAD),
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\0": lzma.LZMADecompressor,
}
_PACKED_CHUNK: Final = 1 << 16
_LOCAL_HEAD: Final = 30
"""Length in bytes of a zip's local file header before the file name."""
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/_-]{11,}")
_HEX: Final = re.compile(rb"(?:[0-9a-f]{2}){5,}|(?:[0-9A-F]{2}){5,}")
_READABLE: Final = re.compile(rb"[\x09\x0a\x0d\x20-\x7e\x80-\xff]+")
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_URL_SAFE: Final = bytes.maketrans(b"-_", b"+/")
_PNG_TEXT: Final = frozenset({b"tEXt", b"zTXt", b"iTXt", b"eXIf"})

Piece = tuple[bool, bytes]
"""A piece of a file: whether it is text, in which short words count, and its bytes."""


@reads("a file that can be searched for patient identifiers", "get another copy of the bundle")
def search_file(path: Path, signs: Sequence[Sign | Among]) -> tuple[str, ...]:
    """Return the names of the elements whose values occur in a file's content.

    The following are unpacked and searched: gzip, bzip2, xz, zip (including .xlsx and file names),
    parquet, images inside HTML, PNG text chunks, streams of PDF, MHA and NRRD, and words in base64
    or hex. Voxels and other binary data are searched only for words of at least 6 letters, and all
    other content for every sign. The name of the file is not searched.

    Raises
    ------
    FormatError
        If the file cannot be unpacked (always for 7z, rar, zstandard, lz4 and HDF5), or contains a
        text larger than 128 MiB.
    """
    elements: dict[str, None] = {}
    with open_bounded(path) as stream:
        for number, (is_text, piece) in enumerate(_unpack_stream(stream, _DEPTH)):
            for start in range(0, len(piece), _CHUNK):
                report_progress(number, number + 1, "Searching for patient identifiers")
                part = piece[max(0, start - _OVERLAP) : start + _CHUNK]
                open_signs = [sign for sign in signs if sign.element not in elements]
                hits = _in_text(part, open_signs) if is_text else _in_voxels(part, open_signs)
                elements.update(dict.fromkeys(hits))
    return tuple(elements)


def _in_text(piece: bytes, signs: Sequence[Sign | Among]) -> Iterator[str]:
    views = [piece.decode("utf-8", "replace"), piece.decode("latin-1")]
    if b"\0" in piece:
        views.append(piece.replace(b"\0", b"").decode("latin-1"))  # ASCII characters in UTF-16.
    if not piece.isascii() or b"\0" in piece:
        views += [piece.decode(name, "replace") for name in ("utf-16-le", "utf-16-be")]
    for text in map(folded, dict.fromkeys(views)):
        yield from (sign.element for sign in signs if sign.is_in(text))


def _in_voxels(piece: bytes, signs: Sequence[Sign | Among]) -> Iterator[str]:
    lower = piece.lower()
    return (sign.element for sign in signs if sign.is_in_bytes(lower))


def _unpack_stream(stream: BinaryIO, depth: int) -> Iterator[Piece]:
    if depth == 0:
        raise FormatError(
            "expected at most five levels of nested archives, but found more: unpack the archives"
        )
    head = stream.read(_HEAD)
    rest = _Joined(head, stream)
    _require_open(head)
    if head.startswith(tuple(_PACKERS)):
        yield from _read_packed(rest, depth)
    elif head[:4] == b"PK\x03\x04":
        yield from _read_members(_make_seekable(rest, stream), depth)
    elif head[:4] == b"PAR1":
        yield from _read_columns(_read_whole(rest))
    elif head[344:348] in _NIFTI:
        yield from _read_volume(rest)
    elif head[128:132] == b"DICM":
        before, mark, after = _read_whole(rest).partition(_PIXELS)
        yield True, before
        yield False, mark + after
    elif head[:8] == _PNG:
        yield from _read_picture(_read_whole(rest))
    else:
        yield from _read_text(_read_whole(rest), depth)


def _require_open(head: bytes) -> None:
    if head.startswith(_SEALED):
        raise FormatError("7z, rar, zstd, lz4 and HDF5 files cannot be searched: unpack the file")


class _Joined(io.RawIOBase):
    """Stream whose first bytes have already been read."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        super().__init__()
        self._head, self._stream = head, stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._head[: len(buffer)] or self._stream.read(len(buffer))
        self._head = self._head[len(data) :] if self._head else b""
        buffer[: len(data)] = data
        return len(data)


def _read_whole(stream: io.RawIOBase) -> bytes:
    parts, size = [], 0
    while piece := stream.read(_CHUNK):
        parts.append(piece)
        size += len(piece)
        if size > _MOST_TEXT:
            raise FormatError(
                f"expected at most {_MOST_TEXT >> 20} MiB of text, but found more: search the "
                "file by hand"
            )
    return b"".join(parts)


def _make_seekable(rest: io.RawIOBase, stream: BinaryIO) -> BinaryIO:
    is_file = isinstance(stream, io.BufferedReader) and stream.seekable()
    return stream if is_file else io.BytesIO(_read_whole(rest))


class _Unpacked(io.RawIOBase):
    """The decompressed content of a stream with one or more compressed parts.

    `beside` collects the uncompressed bytes that decompression programs ignore: text in gzip
    headers, and bytes after the last part.
    """

    def __init__(self, packed: io.RawIOBase) -> None:
        super().__init__()
        self.beside: list[bytes] = []
        self._packed, self._waiting, self._part = packed, b"", None  # type: Any, bytes, Any

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            if self._part is None and not self._begin_part():
                return 0
            data: bytes = self._part.decompress(self._waiting, len(buffer))
            self._waiting = getattr(self._part, "unconsumed_tail", b"")
            if self._part.eof:
                self._waiting, self._part = self._part.unused_data, None
            elif not data and getattr(self._part, "needs_input", not self._waiting):
                self._waiting = self._packed.read(_PACKED_CHUNK) or b""
                if not self._waiting:
                    raise EOFError("the file ends within compressed data")
            if data:
                buffer[: len(data)] = data
                return len(data)

    def _begin_part(self) -> bool:
        while len(self._waiting) < _HEAD and (more := self._packed.read(_PACKED_CHUNK)):
            self._waiting += more
        opener = next(
            (new for magic, new in _PACKERS.items() if self._waiting[: len(magic)] == magic), None
        )
        if opener is None:
            rest, self._waiting = self._waiting + _read_whole(self._packed), b""
            if rest.strip(b"\0"):
                self.beside.append(rest)
            return False
        if self._waiting[:2] == _GZIP:
            self._keep_gzip_texts()
        self._part = opener()
        return True

    def _keep_gzip_texts(self) -> None:
        flags, index = self._waiting[3] if len(self._waiting) > 3 else 0, 10
        if flags & 4:
            index += 2 + int.from_bytes(self._waiting[index : index + 2], "little")
        for flag in (8, 16):
            while flags & flag and (end := self._waiting.find(b"\0", index)) < 0:
                more = self._packed.read(_PACKED_CHUNK)
                if not more or len(self._waiting) > _MOST_TEXT:
                    raise EOFError("the header is incomplete")
                self._waiting += more
            index = end + 1 if flags & flag else index
        if index > 10:
            self.beside.append(self._waiting[10:index])


def _read_packed(packed: io.RawIOBase, depth: int) -> Iterator[Piece]:
    inner = _Unpacked(packed)
    yield from _unpack_stream(io.BufferedReader(inner), depth - 1)
    for piece in inner.beside:
        yield True, piece


def _read_members(data: BinaryIO, depth: int) -> Iterator[Piece]:
    with zipfile.ZipFile(data) as archive:
        yield True, archive.comment
        members = archive.infolist()
        for member in members:
            raw_name = member.orig_filename.encode("cp437", "replace")  # The bytes as stored.
            texts = (member.filename.encode(), raw_name, member.comment, member.extra)
            yield True, b"\n".join(texts)
            with archive.open(member) as inner:
                yield from _unpack_stream(inner, depth - 1)  # type: ignore[arg-type]
        yield from _read_between(data, members)


def _read_between(data: BinaryIO, members: Sequence[zipfile.ZipInfo]) -> Iterator[Piece]:
    index = 0
    for member in sorted(members, key=lambda member: member.header_offset):
        data.seek(member.header_offset)
        head = data.read(_LOCAL_HEAD)
        n_names = int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
        start = member.header_offset + _LOCAL_HEAD + n_names
        yield True, _read_range(data, index, member.header_offset)
        yield True, _read_range(data, member.header_offset, start)
        index = max(index, start + member.compress_size)
    yield True, _read_range(data, index, data.seek(0, io.SEEK_END))


def _read_range(data: BinaryIO, start: int, stop: int) -> bytes:
    if stop - start > _MOST_TEXT:
        raise FormatError(
            f"expected at most {_MOST_TEXT >> 20} MiB outside the members of a zip, but found "
            f"{(stop - start) >> 20} MiB: create the zip again"
        )
    data.seek(start)
    return data.read(max(stop - start, 0))


def _read_columns(data: bytes) -> Iterator[Piece]:
    try:
        parquet = import_parquet("pyarrow.parquet")
    except MissingExtraError as error:
        raise FormatError(f"expected a readable .parquet table, but {error}") from error
    file = parquet.ParquetFile(io.BytesIO(data))
    about = file.metadata
    n_bytes = sum(about.row_group(number).total_byte_size for number in range(about.num_row_groups))
    if about.num_rows * about.num_columns > MOST_CELLS or n_bytes > TEXT_BYTES:
        raise FormatError(
            f"expected a .parquet table with at most {MOST_CELLS:,} cells and {TEXT_BYTES >> 20} "
            f"MB, but found {about.num_rows:,} rows and {about.num_columns:,} columns: search the "
            "file by hand"
        )
    # A string that is stored once may occur in a million rows.
    texts = [field.name for field in file.schema_arrow if str(field.type) == "string"]
    table = parquet.read_table(io.BytesIO(data), read_dictionary=texts)
    yield True, str(table.schema.to_string(show_schema_metadata=True)).encode()
    for key, value in (table.schema.metadata or {}).items():
        yield True, key + b"\n" + value
    for column in table.itercolumns():
        different = column.unique() if str(column.type).startswith("dictionary") else column
        values = {str(value) for value in different.to_pylist() if value is not None}
        yield True, "\n".join(sorted(values)).encode("utf-8", "replace")


def _read_volume(stream: io.RawIOBase) -> Iterator[Piece]:
    head = stream.read(_HEAD) or b""
    order = "<" if struct.unpack("<i", head[:4])[0] == _HEAD - 4 else ">"
    (offset,) = struct.unpack(f"{order}f", head[108:112])
    n_more = int(offset) - _HEAD if _HEAD <= offset <= _MOST_TEXT else 0
    more = b""
    while len(more) < n_more and (piece := stream.read(n_more - len(more))):
        more += piece
    yield True, head + more
    last = b""
    while piece := stream.read(_CHUNK):
        yield False, last + piece
        last = piece[-_OVERLAP:]


def _read_picture(data: bytes) -> Iterator[Piece]:
    index = len(_PNG)
    while index + 8 <= len(data):
        length = int.from_bytes(data[index : index + 4], "big")
        name, value = data[index + 4 : index + 8], data[index + 8 : index + 8 + length]
        if name in _PNG_TEXT:
            yield True, value
            for packed in _ZLIB.finditer(value) if name != b"tEXt" else ():
                yield True, _inflate_bytes(value[packed.start() :])
        else:
            yield False, value
        index += 12 + length
    # An image file may contain any bytes after its last chunk.
    yield True, data[index:]


def _read_text(data: bytes, depth: int) -> Iterator[Piece]:
    for match in _DATA_URI.finditer(data):
        try:
            inner = base64.b64decode(match[1])
        except binascii.Error:
            continue  # This content is searched as text below.
        yield from _unpack_stream(io.BytesIO(inner), depth - 1)
    for mark in _DEFLATED.finditer(data):
        yield True, _inflate_bytes(data[mark.end() :])
    plain = _DATA_URI.sub(_keep_undecodable, data)
    yield True, b"\n".join(_decode_words(plain))
    # UTF-16 contains zero bytes too, but is text throughout.
    if b"\0" not in plain or plain[:2] in (b"\xff\xfe", b"\xfe\xff"):
        yield True, plain
    else:
        yield True, b"\n".join(_RUN.findall(plain))
        yield True, b"\n".join(_RUN.findall(plain.replace(b"\0", b"")))
        yield False, plain


def _inflate_bytes(packed: bytes) -> bytes:
    try:
        return zlib.decompressobj(_ANY_HEAD).decompress(packed, _MOST_TEXT)
    except zlib.error:
        return b""  # The data only resemble compressed data.


def _decode_words(data: bytes) -> Iterator[bytes]:
    for match in _BASE64.finditer(data):
        text = match[0].translate(_URL_SAFE)
        # A single letter after full groups is not a byte, and padding cannot complete it.
        word = base64.b64decode(text[: len(text) // 4 * 4] if len(text) % 4 == 1 else text + b"==")
        if _READABLE.fullmatch(word):
            yield word
    for match in _HEX.finditer(data):
        word = bytes.fromhex(match[0].decode())
        if _READABLE.fullmatch(word):
            yield word


def _keep_undecodable(found: re.Match[bytes]) -> bytes:
    try:
        base64.b64decode(found[1])
    except binascii.Error:
        return found[0]
    return b"base64,"
