"""Store events of several people about one data set, with one file for each writer.

::

    FOLDER/READER/HOST-SESSION.jsonl

Each reader, computer and session (one run of a program) has its own file, which nobody else opens
for writing. Therefore nothing is lost if files cannot be locked, as on many network shares, and
nobody waits. The lines of a file form a chain (see `files.append_file`), whose first line refers to
`origin`, the SHA-256 of any header file. Events are canonical JSON: sorted keys, no floats. The
order is exact within a file. Across files, an event follows the events that its writer had `seen`;
otherwise the clock determines the order.
"""

import heapq
import os
import platform
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, TypeAlias

from napari_mamamia.core.program.garbage import uncollected
from napari_mamamia.core.progress import paced
from napari_mamamia.io.files.append_file import (
    NO_ORIGIN,
    ChainedLine,
    ChainedLines,
    canonical,
    parse_line,
    scan_chained_lines,
)
from napari_mamamia.io.files.foreign import open_plain, reads
from napari_mamamia.io.files.json_text import scan_json
from napari_mamamia.io.workspace.workspace import file_name

SCHEMA: Final = 1
_SUFFIX: Final = ".jsonl"
_REST: Final = len(b'{"hash":"",') + 64
"""Offset of the first byte in a line that the line's hash covers."""
_CLOCK: Final = len("2026-11-22T12:00:00.000000+00:00")
_BODY: Final = b'","body":'


class Event(NamedTuple):
    """An event with its writer, computer, time and content.

    The type is a tuple because there are hundreds of thousands of events, and creating a tuple
    takes a third of the time of a dataclass.

    Parameters
    ----------
    reader, host, session, seq
        The reader, the computer, the run of the program, and the number of the event in this run,
        counted from 0.
    at
        Time of that computer's clock, ISO 8601 in UTC.
    body
        The content as JSON without floats.
    seen
        Hashes of the last event of each other file that its writer knew.
    hash, prev
        Hashes of the event's line and of the previous line.
    """

    reader: str
    host: str
    session: str
    seq: int
    at: str
    body: Mapping[str, Any]
    seen: tuple[str, ...] = ()
    hash: str = ""
    prev: str = ""


def merge_events(chains: Iterable[Sequence[Event]]) -> tuple[Event, ...]:
    """Return each event once, after all events on which it depends.

    Remaining ties are resolved by clock, then reader, computer, session, sequence number and hash,
    so every computer determines the same order.
    """
    by_hash = {event.hash: event for events in chains for event in events}
    order = sorted(by_hash.values(), key=_rank_event)
    return tuple(order) if _keeps_order(order, by_hash) else _order_by_needs(by_hash)


def list_past(by_hash: Mapping[str, Event], hashes: Iterable[str]) -> set[str]:
    """Return the hashes of some events and of all earlier events that they have seen or follow."""
    past: set[str] = set()
    left = list(hashes)
    while left:
        digest = left.pop()
        event = by_hash.get(digest)
        if event is not None and digest not in past:
            past.add(digest)
            left += (event.prev, *event.seen)
    return past


def _keeps_order(order: Iterable[Event], by_hash: Mapping[str, Event]) -> bool:
    gone: set[str] = set()
    for event in order:
        if event.prev not in gone and event.prev in by_hash:
            return False
        if any(other not in gone and other in by_hash for other in event.seen):
            return False
        gone.add(event.hash)
    return True


def _order_by_needs(by_hash: Mapping[str, Event]) -> tuple[Event, ...]:
    needs = {digest: _list_needs(event, by_hash) for digest, event in by_hash.items()}
    then: dict[str, list[str]] = {}
    for digest, others in needs.items():
        for other in others:
            then.setdefault(other, []).append(digest)
    ready = [_rank_event(by_hash[digest]) for digest, others in needs.items() if not others]
    heapq.heapify(ready)
    order: list[Event] = []
    while ready:
        digest = heapq.heappop(ready)[-1]
        order.append(by_hash[digest])
        for other in then.get(digest, ()):
            needs[other].discard(digest)
            if not needs[other]:
                heapq.heappush(ready, _rank_event(by_hash[other]))
    return tuple(order)


def _list_needs(event: Event, by_hash: Mapping[str, Event]) -> set[str]:
    return {other for other in (event.prev, *event.seen) if other in by_hash}


def _rank_event(event: Event) -> tuple[str, str, str, str, int, str]:
    # The hash is included, so that every computer determines the same order.
    return (event.at, event.reader, event.host, event.session, event.seq, event.hash)


_SEEN: Final = re.compile(rb'"[0-9a-f]{64}"(?:,"[0-9a-f]{64}")*')
_HALVES: Final = (b"\\ud", b"\\uD")
"""JSON escapes that may be lone surrogates, for which `json_text` raises an error."""
_DEEP: Final = 64
_SHORT: Final = 80
"""Size in bytes below which event bodies are parsed once and shared.

Short bodies are often equal, for example when a case is claimed. Bodies are never changed.
"""
_Bodies: TypeAlias = dict[bytes, dict[str, Any]]
_RUN: Final = secrets.token_hex(4)
"""Random text that distinguishes this process from earlier ones with the same process id."""


@dataclass(frozen=True, slots=True)
class EventProblem:
    """A problem in a file; `path` is relative to the store's folder."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class _FileRead:
    events: tuple[Event, ...] = ()
    problems: tuple[EventProblem, ...] = ()
    size: int = 0
    head: str = NO_ORIGIN
    count: int = 0
    sessions: frozenset[tuple[str, str, str]] = frozenset()
    """Readers, computers and sessions that wrote the file; only one unless files were joined."""


@dataclass(frozen=True, slots=True)
class EventLog:
    """All events in a folder, and the problems in its files.

    Every undamaged line counts, even after a gap; each gap is a problem.
    """

    problems: tuple[EventProblem, ...] = ()
    files: Mapping[str, _FileRead] = field(default_factory=dict, repr=False)

    @property
    def chains(self) -> Mapping[str, tuple[Event, ...]]:
        """The events in each file in order, by the file's path within the folder."""
        return {name: file.events for name, file in self.files.items()}

    @property
    def events(self) -> tuple[Event, ...]:
        """All events in the order of `merge_events`, computed at each call."""
        return merge_events(file.events for file in self.files.values())

    @property
    def heads(self) -> tuple[str, ...]:
        """Hash of the last event in each file; a new event has seen all these events."""
        return tuple(sorted(file.head for file in self.files.values() if file.events))


class EventWriter:
    """Writer of the file of one reader in this process; the first event creates the file.

    Parameters
    ----------
    folder
        The folder of the store.
    origin
        SHA-256 of the store's header file, which is the same for all writers and readers.

    Raises
    ------
    CaseError
        If `reader` cannot name a folder.
    SaveConflictError, SaveError
        As in `AppendFile`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with EventWriter(Path(folder), "Ana") as writer:
    ...         made = writer.append({"kind": "read", "case": "A"})
    ...     read_events(Path(folder)).events == (made,)
    True
    """

    def __init__(
        self,
        folder: Path,
        reader: str,
        *,
        origin: str = NO_ORIGIN,
        host: str | None = None,
        session: str | None = None,
    ) -> None:
        self.reader = reader
        self.host = host or _name_host()
        self.session = session or f"{os.getpid()}-{_RUN}"
        name = f"{self.host}-{self.session}{_SUFFIX}"
        self.path = folder / file_name(reader, "the name of a reader") / name
        self._lines = ChainedLines(self.path, origin=origin, sync_every_s=float("inf"))

    @property
    def head(self) -> str:
        """Hash of the last line in the file, which the next line stores."""
        return self._lines.head

    def append(
        self, body: Mapping[str, Any], seen: Iterable[str] = (), *, is_forced: bool = True
    ) -> Event:
        """Append an event; if `is_forced`, force it to the disk.

        Raises
        ------
        TypeError, ValueError
            If `body` is not JSON, or contains a float, which other systems may read differently.
        SaveConflictError, SaveError
            If the event cannot be written. Then no part of it remains.
        """
        _require_exact(body)
        index = datetime.now(UTC).isoformat(timespec="microseconds")
        others = tuple(sorted(set(seen)))
        prev, seq = self._lines.head, self._lines.count
        entry = {
            "schema": SCHEMA,
            "reader": self.reader,
            "host": self.host,
            "session": self.session,
            "at": index,
            "seen": others,
            "body": body,
        }
        self._lines.add(canonical(entry))
        if is_forced:
            self._lines.sync(every_s=0.0)
        return Event(
            self.reader,
            self.host,
            self.session,
            seq,
            index,
            body,
            others,
            self._lines.head,
            prev,
        )

    def close(self) -> None:
        """Force all events to the disk and close the file."""
        self._lines.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


@reads("readers' notes", "ask for a complete copy of the folder")
def read_events(folder: Path, origin: str = NO_ORIGIN, known: EventLog | None = None) -> EventLog:
    """Return all events in a store, or none if the folder does not exist.

    An incomplete last line is still being written or was truncated by a crash. It is not reported
    as a problem, because its writer removes it.

    Parameters
    ----------
    known
        The result of an earlier call for the same folder. In files that only grew, only the new
        lines are read.

    Raises
    ------
    FormatError
        If an existing file cannot be read.
    """
    before = {} if known is None else known.files
    files = dict(sorted(_list_files(folder)))
    bodies: _Bodies = {}
    with uncollected():
        read = {
            name: _read_file(Path(path), name, origin, before.get(name), bodies)
            for name, path in paced(files.items(), "Reading the events", len(files))
        }
    gone = [
        EventProblem(name, "the file existed before but is missing now")
        for name in before
        if name not in read
    ]
    problems = [problem for file in read.values() for problem in file.problems]
    return EventLog((*gone, *problems, *_find_forks(read.values())), read)


def _list_files(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each event file below a folder with its relative path, without following links.

    `os.scandir` is used because several hundred files may be listed at every step. A folder without
    read permission is skipped, because readers may have private folders.
    """
    left = [("", str(folder))]
    while left:
        above, at = left.pop()
        gone = suppress(FileNotFoundError, NotADirectoryError, PermissionError)
        with gone, os.scandir(at) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    left.append((f"{above}{entry.name}/", entry.path))
                elif entry.name.endswith(_SUFFIX) and entry.is_file(follow_symlinks=False):
                    yield above + entry.name, entry.path


def _read_file(
    path: Path, name: str, origin: str, known: _FileRead | None, bodies: _Bodies
) -> _FileRead:
    if known is None:
        return _scan_file(path, name, _FileRead(head=origin), bodies)
    size = path.stat().st_size
    if size == known.size:
        return known
    grown = _scan_file(path, name, known, bodies) if size > known.size else known
    # A mismatch may mean that earlier lines were changed, so the whole file is read again.
    if size > known.size and len(grown.problems) == len(known.problems):
        return grown
    anew = _scan_file(path, name, _FileRead(head=origin), bodies)
    lost = {event.hash for event in known.events} - {event.hash for event in anew.events}
    if not lost:
        return anew
    text = f"events that were read before but are missing now: {len(lost)}"
    return replace(anew, problems=(*anew.problems, EventProblem(name, text)))


def _scan_file(path: Path, name: str, known: _FileRead, bodies: _Bodies) -> _FileRead:
    at_once = _scan_whole_lines(path, known, bodies)
    if at_once is not None:
        return at_once
    events, problems = list(known.events), list(known.problems)
    hashes = {event.hash for event in events}
    size, head, count = known.size, known.head, known.count
    for line in scan_chained_lines(path, known.head, start=known.size, seq=known.count):
        if line.is_torn:
            break
        size = line.stop
        event = _parse_event(line)
        if line.hash and line.hash in hashes:
            continue
        if line.problem or event is None:
            why = line.problem or "it contains no event"
            problems.append(EventProblem(name, f"line {line.number}: {why}"))
        if event is not None:
            events.append(event)
            hashes.add(event.hash)
            head, count = event.hash, event.seq + 1
    sessions = frozenset(event[:3] for event in events)
    return _FileRead(tuple(events), tuple(problems), size, head, count, sessions)


def _scan_whole_lines(path: Path, known: _FileRead, bodies: _Bodies) -> _FileRead | None:
    """Return the content of an undamaged file with a single writer, or None.

    The function takes a fifth of the usual time. It returns None if any line is unexpected, and
    `scan_chained_lines` then examines the file.
    """
    with open_plain(path) as stream:
        stream.seek(known.size)
        data = stream.read()
    stop = data.rfind(b"\n") + 1
    if stop == 0:
        return known
    first = _parse_event(parse_line(data[: data.index(b"\n") + 1], 0, 0))
    if first is None or (b"\\" in data and any(half in data for half in _HALVES)):
        return None
    try:
        fresh = _parse_lines(data[:stop], first, known, bodies)
    except (ValueError, StopIteration):
        return None
    clocks = "".join([event.at for event in fresh])
    if '"' in clocks or "\\" in clocks:
        return None
    last = fresh[-1]
    events, sessions = (*known.events, *fresh), known.sessions | {first[:3]}
    after = (known.size + stop, last.hash, last.seq + 1)
    return _FileRead(events, known.problems, *after, sessions)


def _parse_lines(data: bytes, first: Event, known: _FileRead, bodies: _Bodies) -> list[Event]:
    """Return the events in complete lines, starting with `first`, all by the same writer.

    Raises
    ------
    ValueError, StopIteration
        If there is any other content. The function is one loop without calls, because each call
        takes 0.1 s in a large study.
    """
    host, reader, session = (canonical(text) for text in (first.host, first.reader, first.session))
    before = b',"host":%s,"reader":%s,"schema":%d,"seen":[' % (host, reader, SCHEMA)
    end = b'],"session":%s}}' % session
    plain = before + end
    n_plain = len(plain)
    make = tuple.__new__  # `Event._make` would be an additional call.
    name, computer, run = first[:3]
    fresh: list[Event] = []
    head = known.head
    for count, line in enumerate(data.split(b"\n")[:-1], start=known.count):
        digest = sha256(line[_REST:]).hexdigest()
        # The lines are joined as text, because joining bytes takes twice as long.
        begin = f'{{"hash":"{digest}","prev":"{head}","seq":{count},"entry":{{"at":"'.encode()
        clock_stop = len(begin) + _CLOCK
        start = clock_stop + len(_BODY)
        if not line.startswith(begin) or line[clock_stop:start] != _BODY:
            raise ValueError
        seen: tuple[str, ...] = ()
        if line.endswith(plain):
            text = line[start:-n_plain]
        else:
            stop = line.rfind(before, start)
            seen = _parse_seen(line[stop + len(before) : -len(end)], line.endswith(end))
            text = line[start:stop]
        body = bodies.get(text)
        if body is None:
            body = _parse_body(text)
            if len(text) < _SHORT:
                bodies[text] = body
        clock = line[clock_stop - _CLOCK : clock_stop].decode()
        event = (name, computer, run, count, clock, body, seen, digest, head)
        fresh.append(make(Event, event))
        head = digest
    return fresh


def _parse_seen(text: bytes, is_whole: bool) -> tuple[str, ...]:
    if not is_whole or not _SEEN.fullmatch(text):
        raise ValueError
    return tuple(text.decode()[1:-1].split('","'))


def _parse_body(data: bytes) -> dict[str, Any]:
    text = data.decode()
    body, at = scan_json(text, 0)
    if at != len(text) or type(body) is not dict:
        raise ValueError
    # The check that each level is closed takes as long as a small body.
    if at > 2 * _DEEP and text.count("{") + text.count("[") > _DEEP:
        raise ValueError
    return body


def _parse_event(line: ChainedLine) -> Event | None:
    entry = line.entry
    if not isinstance(entry, dict) or entry.get("schema") != SCHEMA:
        return None
    texts = [entry.get(key) for key in ("reader", "host", "session", "at")]
    body, seen = entry.get("body"), entry.get("seen")
    if not all(isinstance(text, str) for text in texts) or not isinstance(body, dict):
        return None
    if not isinstance(seen, list) or not all(isinstance(one, str) for one in seen):
        return None
    reader, host, session, at = map(str, texts)
    return Event(reader, host, session, line.seq, at, body, tuple(seen), line.hash, line.prev)


def _find_forks(files: Iterable[_FileRead]) -> Iterator[EventProblem]:
    sessions: dict[tuple[str, str, str], list[Sequence[Event]]] = {}
    for file in files:
        for session in file.sessions:
            sessions.setdefault(session, []).append(file.events)
    for (reader, host, name), chains in sessions.items():
        first: dict[int, str] = {}
        for event in (event for chain in chains for event in chain if len(chains) > 1):
            if first.setdefault(event.seq, event.hash) != event.hash:
                where = f"{reader}/{host}-{name}{_SUFFIX}"
                yield EventProblem(
                    where, f"event {event.seq} exists in two versions, and both are used"
                )


def _require_exact(value: object) -> None:
    if isinstance(value, float):
        raise TypeError(
            f"expected JSON without floats, but found {value!r}: write the number as a string"
        )
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise TypeError(f"expected keys to be strings, but found {key!r}")
            _require_exact(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            _require_exact(inner)


def name_session() -> str:
    """Return a unique name for a session, which is used as a file name."""
    return f"{os.getpid()}-{secrets.token_hex(4)}"


def _name_host() -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", platform.node()).strip("-")[:40] or "computer"
