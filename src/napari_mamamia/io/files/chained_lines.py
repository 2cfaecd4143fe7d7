"""An append-only file of JSON lines in a hash chain: each line holds the previous hash.

A line is ``{"hash":H,"prev":P,"seq":N,"entry":...}``: H is the SHA-256 of the rest of the line
after it, P the H of the previous line, N counts from 0. The P of the first line is the origin of
the file, see `ChainedLines`. So a line that was changed, removed, duplicated, moved or inserted
from another file is detected; missing *last* lines cannot be detected from the file itself.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.names import count_of
from napari_mamamia.io.files.append_file import SYNC_EVERY_S, AppendFile
from napari_mamamia.io.files.checked_lines import checked_text, parsed_entry
from napari_mamamia.io.files.foreign import open_plain

NO_ORIGIN: Final = "0" * 64
"""Previous hash of the first line in a file without an origin."""

_LINE: Final = re.compile(
    rb'\{"hash":"([0-9a-f]{64})",("prev":"([0-9a-f]{64})","seq":(0|[1-9][0-9]{0,17}),"entry":(.*)\})\n',
    re.DOTALL,
)
_BEGIN: Final = b'{"hash":"'
_TORN: Final = "it is incomplete"
_CHANGED: Final = "its checksum does not match"
NO_CHAIN: Final = "it has no chain hash: an earlier version wrote it"


@dataclass(frozen=True, slots=True)
class ChainedLine:
    """A line of the file.

    Parameters
    ----------
    number
        Line number, from 1.
    start, stop
        First byte, and the byte after its end.
    hash, prev
        Its own hash and that of the previous line when it was written; both "" if the line
        cannot be read.
    seq
        Its sequence number; -1 if it has none.
    entry
        Its JSON value; None if the line cannot be read.
    problem
        Why it cannot be read, or does not follow the previous line; "" if it is valid.
    """

    number: int
    start: int
    stop: int
    hash: str = ""
    prev: str = ""
    seq: int = -1
    entry: Any = None
    problem: str = ""

    @property
    def is_torn(self) -> bool:
        """Whether its end is missing, because of a crash or an ongoing write."""
        return self.problem == _TORN


class ChainedLines(AppendFile):
    """A chained file, open for its single writer, see `AppendFile`.

    Parameters
    ----------
    origin
        Previous hash of the first line: the SHA-256 (64 digits) of a header file.

    Attributes
    ----------
    head
        Hash of the last line: the next line stores it, and it proves that all lines up to
        here existed. `origin` for an empty file.
    count
        Number of lines.
    """

    def __init__(
        self,
        path: Path,
        *,
        keep: bool = True,
        sync_every_s: float = SYNC_EVERY_S,
        origin: str = NO_ORIGIN,
    ) -> None:
        super().__init__(path, keep=keep, sync_every_s=sync_every_s)
        self.head, self.count = origin, 0
        last = self.last_line()
        if last:
            parts = _parse_parts(last)
            self.head = hashlib.sha256(last).hexdigest() if parts is None else parts[0]
            self.count = self.count_lines() if parts is None else parts[2] + 1

    def add(self, text: bytes) -> None:
        """Append one line whose entry is the JSON value `text`, UTF-8 without a line end.

        It is not parsed, so that megabytes of base64 cost little; see `canonical`. Raises as
        `AppendFile.append`.
        """
        body = b'"prev":"%s","seq":%d,"entry":%s}' % (self.head.encode(), self.count, text)
        digest = hashlib.sha256(body).hexdigest()
        self.append(b'{"hash":"%s",%s\n' % (digest.encode(), body))
        self.head, self.count = digest, self.count + 1

    def put_back(self) -> "ChainedLines":
        """Write a copy under the file's name and return it, see `AppendFile.put_back`."""
        copy = super().put_back()
        copy.head, copy.count = self.head, self.count
        return copy


def scan_chained_lines(
    path: Path, head: str = NO_ORIGIN, *, start: int = 0, seq: int = 0
) -> Iterator[ChainedLine]:
    """Yield all lines in order, including damaged ones.

    Parameters
    ----------
    head, start, seq
        Where reading begins: the hash of the previous line (of the header file, for the first
        line), the first byte, and the number of earlier lines.

    Raises
    ------
    FormatError
        If the file cannot be read.
    """
    try:
        with open_plain(path) as stream:
            stream.seek(start)
            for number, (line, is_joined) in enumerate(_split_lines(stream), start=seq + 1):
                record = parse_line(line, number, start)
                if is_joined:
                    record = replace(record, problem=_CHANGED)
                if record.entry is None:
                    seq += 1
                else:
                    record, seq = _check_order(record, head, seq), record.seq + 1
                head = record.hash  # "" after a line that cannot be read: its hash is unknown
                yield record
                start += len(line)
    except OSError as error:
        raise FormatError(
            f"cannot read the records {path}: {error.strerror or error}; check that you may read "
            "the file"
        ) from error


def line_at(path: Path, start: int) -> ChainedLine:
    """Return the line that begins at byte `start`, without checking its place in the chain.

    Raises
    ------
    FormatError
        If the file cannot be read.
    """
    try:
        with open_plain(path) as stream:
            stream.seek(start)
            return parse_line(stream.readline(), 0, start)
    except OSError as error:
        raise FormatError(
            f"cannot read a record of {path}: {error.strerror or error}; check that you may read "
            "the file"
        ) from error


def canonical(value: object) -> bytes:
    """Return a value as canonical JSON: sorted keys, no blanks, UTF-8.

    Raises
    ------
    TypeError, ValueError
        If it cannot be JSON; nan and infinite numbers cannot.
    """
    text = json.dumps(
        value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
    )
    return text.encode("utf-8")


def _split_lines(stream: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield the lines and whether each was joined to the next by a damaged line end."""
    for line in stream:
        index = line.find(_BEGIN, 1)
        if index > 0:
            yield line[:index], True
            yield line[index:], False
        else:
            yield line, False


def parse_line(line: bytes, number: int, start: int) -> ChainedLine:
    """Return the `number`-th line, which begins at byte `start`, without checking its place."""
    stop = start + len(line)
    if not line.endswith(b"\n"):
        return ChainedLine(number, start, stop, problem=_TORN)
    parts = _parse_parts(line)
    if parts is None:
        problem = _CHANGED if checked_text(line) is None else NO_CHAIN
        return ChainedLine(number, start, stop, problem=problem)
    entry = parsed_entry(parts[3])
    if entry is None:
        return ChainedLine(number, start, stop, problem=_CHANGED)
    return ChainedLine(number, start, stop, *parts[:3], entry)


def _parse_parts(line: bytes) -> tuple[str, str, int, bytes] | None:
    """Return hash, previous hash, sequence number and entry of a valid line, or None."""
    match = _LINE.fullmatch(line)
    if match is None or hashlib.sha256(match[2]).hexdigest().encode() != match[1]:
        return None
    return match[1].decode(), match[3].decode(), int(match[4]), match[5]


def _check_order(found: ChainedLine, head: str, expected: int) -> ChainedLine:
    """Return the line with its problem if it does not follow the previous line."""
    # After a line that cannot be read there is no hash to compare with, only the sequence number.
    if head in ("", found.prev) and (head or found.seq == expected):
        return found
    missing = max(0, found.seq - expected)
    if missing:
        problem = (
            f"{count_of(missing, 'record')} before it {'is' if missing == 1 else 'are'} missing"
        )
    elif found.seq < expected:
        problem = "it is a duplicate, or not in its place"
    else:
        problem = "it does not follow the record before it"
    return replace(found, problem=problem)
