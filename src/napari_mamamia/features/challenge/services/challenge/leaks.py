"""Search a folder for case ids in texts, file names, archives, data URLs and PNG texts."""

import gzip
import io
import re
import tarfile
import zipfile
import zlib
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Final
from urllib.parse import unquote

_DATA: Final = re.compile(rb"data:[\w/+.\-]*;base64,([A-Za-z0-9+/=]+)")
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_COMPRESSED_TEXT: Final = (b"zTXt", b"iTXt")
_DEFLATED: Final = re.compile(rb"\x78[\x01\x5e\x9c\xda]")
_DEEPEST: Final = 8
_NUMBER: Final = re.compile(r"\d{1,4}")
_MARKS: Final = re.compile(r"<[^>]*>")


@dataclass(frozen=True, slots=True)
class Leak:
    """A case id that occurs in a file; `path` gives the file and, if nested, archive members."""

    path: str
    case_id: str


def split_ids(case_ids: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split ids into those that can be searched, and short numbers, which are ambiguous.

    Examples
    --------
    >>> split_ids(["DUKE_001", "17"])
    (('DUKE_001',), ('17',))
    """
    numbers = tuple(case_id for case_id in case_ids if _NUMBER.fullmatch(case_id))
    return tuple(case_id for case_id in case_ids if case_id not in numbers), numbers


def find_leaks(folder: Path, case_ids: Sequence[str]) -> tuple[Leak, ...]:
    """Return each file in a folder that contains an id as a word, ignoring letter case.

    Archives (zip, tar, gzip) are unpacked, and base64 data URLs and compressed texts in PNG files
    are decoded. File names are searched too.

    Parameters
    ----------
    folder
        The folder.
    case_ids
        The ids.
    """
    words, _ = split_ids(case_ids)
    if not words:
        return ()
    longest = sorted(words, key=len, reverse=True)
    pattern = re.compile(
        rf"(?<![^\W_])(?:{'|'.join(map(re.escape, longest))})(?![^\W_])", re.IGNORECASE
    )
    leaks = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        for place, content in _unpack(name, path.read_bytes()):
            matches = {match.group().casefold() for match in pattern.finditer(content)}
            leaks += [Leak(place, match) for match in sorted(matches)]
    return tuple(dict.fromkeys(leaks))


def _unpack(name: str, content: bytes, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the texts in a file and, if it is an archive, in its members."""
    text = unescape(unquote(content.decode("utf-8", errors="replace")))
    yield name, name
    yield name, text
    # With marks removed, an id that is split over elements of a page or drawing is found too.
    yield name, _MARKS.sub("", text)
    if depth >= _DEEPEST:
        return
    for place, inner in _list_packed(name, content):
        yield from _unpack(place, inner, depth + 1)


def _list_packed(name: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    if zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for item in archive.infolist():
                yield f"{name}: {item.filename}", archive.read(item)
    elif content[:2] == b"\x1f\x8b":
        with suppress(OSError, EOFError, zlib.error):
            yield f"{name}: unpacked", gzip.decompress(content)
    elif content[257:262] == b"ustar":
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            for member in tar:
                file = tar.extractfile(member)
                yield f"{name}: {member.name}", b"" if file is None else file.read()
    elif content.startswith(_PNG):
        yield from _list_png_texts(name, content)
    for number, match in enumerate(_DATA.finditer(content), start=1):
        with suppress(Base64Error, ValueError):
            yield f"{name}: data {number}", b64decode(match.group(1))


def _list_png_texts(name: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the compressed texts in a PNG file; uncompressed texts are found in its bytes."""
    at = len(_PNG)
    while at + 8 <= len(content):
        size, kind = int.from_bytes(content[at : at + 4]), content[at + 4 : at + 8]
        chunk = content[at + 8 : at + 8 + size]
        if kind in _COMPRESSED_TEXT:
            for match in _DEFLATED.finditer(chunk):
                with suppress(zlib.error):
                    yield f"{name}: {kind.decode()}", zlib.decompress(chunk[match.start() :])
        at += size + 12
