"""An append-only file of JSON lines that form a chain: each carries the hash of the one before.

A line is ``{"hash":H,"prev":P,"seq":N,"entry":...}``: H is the SHA-256 of all that stands behind
it in the line, P the H of the line before, N counts from 0. The P of the first line is what the
file is bound to, see `ChainedLines`. So a line that was changed, removed, doubled, moved or put in
from another file is found; that the *last* lines are missing cannot be seen from the file itself.
A file that was begun without a chain (checked lines) goes on with one: the first chained line
carries the SHA-256 of the line before it.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.files.append_file import SYNC_EVERY_S, AppendFile
from napari_mamamia.io.files.checked_lines import checked_text, parsed_entry
from napari_mamamia.io.files.foreign import open_plain

NO_ORIGIN: Final = "0" * 64
"""What the first line of a file that is bound to nothing else names as the line before it."""

_LINE: Final = re.compile(
    rb'\{"hash":"([0-9a-f]{64})",("prev":"([0-9a-f]{64})","seq":(0|[1-9][0-9]{0,17}),"entry":(.*)\})\n',
    re.DOTALL,
)
_BEGIN: Final = b'{"hash":"'
_TORN: Final = "it is not whole"
_CHANGED: Final = "its checksum does not fit"
_NO_CHAIN: Final = "it carries no chain, though those before it do"


@dataclass(frozen=True, slots=True)
class ChainedLine:
    """A line as it stands in the file.

    Parameters
    ----------
    number
        Place among the lines, from 1.
    start, stop
        First byte, and the one behind its end.
    hash, prev
        Its own hash and that of the line before it as it was written; both "" where the line
        cannot be read, `prev` "" for a line of the time before chains.
    seq
        The count that it carries; -1 where it carries none.
    entry
        Its JSON value; None where the line cannot be read.
    problem
        Why it cannot be read, or does not follow the line before it; "" where all is well.
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
        """Whether its end is missing: a crash or a write under way left it so."""
        return self.problem == _TORN

    @property
    def is_chained(self) -> bool:
        """Whether it carries the hash of the line before it."""
        return bool(self.prev)


class ChainedLines(AppendFile):
    """A chained file, open for its one writer, see `AppendFile`.

    Parameters
    ----------
    origin
        What the first line is bound to: the SHA-256 (64 digits) of a header file.

    Attributes
    ----------
    head
        Hash of the last line: what the next one carries, and what proves that all lines up to
        here were there. `origin` while there is none.
    count
        How many lines there are.
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
            self.head = _hash_of(last) if parts is None else parts[0]
            self.count = self.count_lines() if parts is None else parts[2] + 1

    def add(self, text: bytes) -> None:
        """Add one line whose entry is the JSON value `text`, UTF-8 without a line end.

        It is not looked at, so that megabytes of base64 cost little; see `canonical`. Raises as
        `AppendFile.append`.
        """
        body = b'"prev":"%s","seq":%d,"entry":%s}' % (self.head.encode(), self.count, text)
        digest = hashlib.sha256(body).hexdigest()
        self.append(b'{"hash":"%s",%s\n' % (digest.encode(), body))
        self.head, self.count = digest, self.count + 1

    def put_back(self) -> "ChainedLines":
        """Return a copy under the file's name, see `AppendFile.put_back`."""
        copy = super().put_back()
        copy.head, copy.count = self.head, self.count
        return copy


def scan_chained_lines(
    path: Path, head: str = NO_ORIGIN, *, start: int = 0, seq: int = 0
) -> Iterator[ChainedLine]:
    """Yield all lines in order, damaged ones too; reading goes on behind a damaged line.

    Parameters
    ----------
    head, start, seq
        Where reading begins: the hash of the line before it (of the header file, for the first
        line), its first byte, and how many lines come before it.

    Raises
    ------
    FormatError
        If the file cannot be read.
    """
    has_chain = False
    try:
        with open_plain(path) as stream:
            stream.seek(start)
            for number, (line, is_joined) in enumerate(_split_lines(stream), start=seq + 1):
                record = parse_line(line, number, start)
                if is_joined:
                    record = replace(record, problem=_CHANGED)
                if record.entry is not None and record.is_chained:
                    record, seq = _check_order(record, head, seq), record.seq + 1
                    has_chain = True
                elif record.entry is not None and has_chain:
                    record = ChainedLine(number, start, record.stop, problem=_NO_CHAIN)
                else:
                    seq += 1
                head = record.hash  # "" behind a line that cannot be read: nobody knows what it was
                yield record
                start += len(line)
    except OSError as error:
        raise FormatError(
            f"expected readable records at {path}, but {error.strerror or error}: "
            "check that you may read the file"
        ) from error


def line_at(path: Path, start: int) -> ChainedLine:
    """Return the line that begins at byte `start`; its place in the chain is not checked.

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
            f"expected a readable record at {path}, but {error.strerror or error}: "
            "check that you may read the file"
        ) from error


def canonical(value: object) -> bytes:
    """Return a value as JSON in its one form: sorted keys, no blanks, UTF-8.

    Raises
    ------
    TypeError, ValueError
        If it is not JSON; nan and infinite numbers are not.
    """
    text = json.dumps(
        value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
    )
    return text.encode("utf-8")


def _split_lines(stream: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield the lines; two that a damaged line end joined are parted again, the first is marked."""
    for line in stream:
        index = line.find(_BEGIN, 1)
        if index > 0:
            yield line[:index], True
            yield line[index:], False
        else:
            yield line, False


def parse_line(line: bytes, number: int, start: int) -> ChainedLine:
    """Return a line that is the `number`-th and begins at byte `start`, alone: no place checked."""
    stop = start + len(line)
    if not line.endswith(b"\n"):
        return ChainedLine(number, start, stop, problem=_TORN)
    parts = _parse_parts(line)
    text = checked_text(line) if parts is None else parts[3]
    entry = None if text is None else parsed_entry(text)
    if entry is None:
        return ChainedLine(number, start, stop, problem=_CHANGED)
    if parts is None:
        return ChainedLine(number, start, stop, _hash_of(line), entry=entry)
    return ChainedLine(number, start, stop, *parts[:3], entry)


def _parse_parts(line: bytes) -> tuple[str, str, int, bytes] | None:
    """Return hash, previous hash, count and entry of a chained line that is as it was written."""
    match = _LINE.fullmatch(line)
    if match is None or hashlib.sha256(match[2]).hexdigest().encode() != match[1]:
        return None
    return match[1].decode(), match[3].decode(), int(match[4]), match[5]


def _check_order(found: ChainedLine, head: str, expected: int) -> ChainedLine:
    """Return the line with what is wrong about its place."""
    # Behind a line that cannot be read there is no hash to compare with: the count alone tells.
    if head in ("", found.prev) and (head or found.seq == expected):
        return found
    missing = max(0, found.seq - expected)
    if missing:
        problem = f"{missing} record(s) before it are missing"
    elif found.seq < expected:
        problem = "it stands there twice, or not in its place"
    else:
        problem = "it does not follow the record before it"
    return replace(found, problem=problem)


def _hash_of(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()
