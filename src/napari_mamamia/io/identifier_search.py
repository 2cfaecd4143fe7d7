"""Every byte of a file, searched for what tells a patient; packed files are unpacked."""

import base64
import binascii
import gzip
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.io.foreign import open_bounded, reads
from napari_mamamia.io.identifiers import Sign, folded

__all__ = ["search_file"]

_DEPTH: Final = 5
_CHUNK: Final = 1 << 23
_OVERLAP: Final = 512
_MOST_TEXT: Final = 1 << 27
_HEAD: Final = 352
_PIXELS: Final = b"\xe0\x7f\x10\x00"
_DATA_URI: Final = re.compile(rb"base64,([A-Za-z0-9+/=\s]{16,})")
_RUN: Final = re.compile(rb"[\x20-\x7e\x80-\xff]{4,}")
_NIFTI: Final = (b"n+1\0", b"ni1\0")
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_PNG_TEXT: Final = frozenset({b"tEXt", b"zTXt", b"iTXt", b"eXIf"})

Piece = tuple[bool, bytes]
"""Whether it is text (short words count), and the bytes."""


@reads("a file that can be searched for what tells the patient", "get the bundle again")
def search_file(path: Path, signs: Sequence[Sign]) -> Job[tuple[str, ...]]:
    """Return a job for the elements, by name, of which some byte of a file tells.

    Unpacked and searched: gzip, zip (with the names in it, so .xlsx too), parquet, pictures inside
    HTML, and the texts of PNG. Voxels and other binary data are searched for words of at least 6
    letters, everything else for all signs. The file's own name is not looked at.

    Raises
    ------
    FormatError
        If it cannot be unpacked, or a text in it is larger than 128 MiB.
    """
    found: dict[str, None] = {}
    with open_bounded(path) as stream:
        for number, (is_text, piece) in enumerate(_pieces(stream, _DEPTH)):
            for start in range(0, len(piece), _CHUNK):
                yield Progress(number, number + 1, "Searching for what tells the patient")
                part = piece[max(0, start - _OVERLAP) : start + _CHUNK]
                told = _in_text(part, signs) if is_text else _in_voxels(part, signs)
                found.update(dict.fromkeys(told))
    return tuple(found)


def _in_text(piece: bytes, signs: Sequence[Sign]) -> Iterator[str]:
    views = [piece.decode("utf-8", "replace"), piece.decode("latin-1")]
    if b"\0" in piece:
        views.append(piece.replace(b"\0", b"").decode("latin-1"))  # ASCII as UTF-16
        views += [piece.decode(name, "replace") for name in ("utf-16-le", "utf-16-be")]
    for text in map(folded, dict.fromkeys(views)):
        yield from (sign.element for sign in signs if sign.is_in(text))


def _in_voxels(piece: bytes, signs: Sequence[Sign]) -> Iterator[str]:
    lower = piece.lower()
    yield from (sign.element for sign in signs if sign.raw and sign.raw in lower)


def _pieces(stream: BinaryIO, depth: int) -> Iterator[Piece]:
    """Yield all bytes of a stream, unpacked, in pieces that overlap a little."""
    if depth == 0:
        raise FormatError("expected files packed in each other at most five times: unpack them")
    head = stream.read(_HEAD)
    rest = _Joined(head, stream)
    if head[:2] == b"\x1f\x8b":
        yield from _gzip_names(head)
        with gzip.GzipFile(fileobj=rest) as inner:
            yield from _pieces(inner, depth - 1)  # type: ignore[arg-type]
    elif head[:4] == b"PK\x03\x04":
        yield from _members(_seekable(rest, stream), depth)
    elif head[:4] == b"PAR1":
        yield from _columns(_whole(rest))
    elif head[344:348] in _NIFTI:
        yield from _volume(rest)
    elif head[128:132] == b"DICM":
        before, mark, after = _whole(rest).partition(_PIXELS)
        yield True, before
        yield False, mark + after
    elif head[:8] == _PNG:
        yield from _picture(_whole(rest))
    else:
        yield from _text(_whole(rest), depth)


class _Joined(io.RawIOBase):
    """A stream whose first bytes were read already."""

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


def _whole(stream: io.RawIOBase) -> bytes:
    parts, size = [], 0
    while piece := stream.read(_CHUNK):
        parts.append(piece)
        size += len(piece)
        if size > _MOST_TEXT:
            raise FormatError(
                f"expected a text of at most {_MOST_TEXT >> 20} MiB, got more: search it by hand"
            )
    return b"".join(parts)


def _seekable(rest: io.RawIOBase, stream: BinaryIO) -> BinaryIO:
    """Return a file as it is; what is packed in another one, as bytes."""
    return stream if isinstance(stream, io.BufferedReader) else io.BytesIO(_whole(rest))


def _gzip_names(head: bytes) -> Iterator[Piece]:
    """Yield what a gzip file's own header tells: the name of the packed file, a comment."""
    if len(head) > 10 and head[3] & 0b11100:
        yield True, head[10:]


def _members(data: BinaryIO, depth: int) -> Iterator[Piece]:
    with zipfile.ZipFile(data) as archive:
        yield True, archive.comment
        for member in archive.infolist():
            yield True, member.filename.encode() + b"\n" + member.comment + b"\n" + member.extra
            with archive.open(member) as inner:
                yield from _pieces(inner, depth - 1)  # type: ignore[arg-type]


def _columns(data: bytes) -> Iterator[Piece]:
    table = import_module("pyarrow.parquet").read_table(io.BytesIO(data))
    yield True, str(table.schema.to_string(show_schema_metadata=True)).encode()
    for key, value in (table.schema.metadata or {}).items():
        yield True, key + b"\n" + value
    for column in table.itercolumns():
        told = {str(value) for value in column.to_pylist() if value is not None}
        yield True, "\n".join(sorted(told)).encode("utf-8", "replace")


def _volume(stream: io.RawIOBase) -> Iterator[Piece]:
    """Yield a NIfTI header with its extensions as text, and the voxels."""
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


def _picture(data: bytes) -> Iterator[Piece]:
    at = len(_PNG)
    while at + 8 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        name, value = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        if name in _PNG_TEXT:
            yield True, value
            packed = value.find(b"x\x9c") if name != b"tEXt" else -1
            if packed >= 0:
                yield True, zlib.decompressobj().decompress(value[packed:], _MOST_TEXT)
        else:
            yield False, value
        at += 12 + length
    yield True, data[at:]


def _text(data: bytes, depth: int) -> Iterator[Piece]:
    """Yield a text, or of other bytes the printable runs; what is packed in it apart."""
    for found in _DATA_URI.finditer(data):
        try:
            inner = base64.b64decode(found[1])
        except binascii.Error:
            continue  # it is searched as text below
        yield from _pieces(io.BytesIO(inner), depth - 1)
    plain = _DATA_URI.sub(_undecodable, data)
    if b"\0" not in plain or plain[:2] in (b"\xff\xfe", b"\xfe\xff"):
        yield True, plain
    else:
        yield True, b"\n".join(_RUN.findall(plain))
        yield True, b"\n".join(_RUN.findall(plain.replace(b"\0", b"")))
        yield False, plain


def _undecodable(found: re.Match[bytes]) -> bytes:
    """Return what stays of a packed part: nothing if it was unpacked."""
    try:
        base64.b64decode(found[1])
    except binascii.Error:
        return found[0]
    return b"base64,"
