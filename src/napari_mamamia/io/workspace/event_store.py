"""What several people note about one data set: a file for each writer, merged at reading.

::

    FOLDER/READER/HOST-SESSION.jsonl

Each reader, computer and session (one run of a program) has a file of its own, which nobody else
ever opens for writing. So nothing is lost where files cannot be locked, such as on many shares,
and nobody waits. The lines of a file form a chain, see `chained_lines`; its first line is bound to
`origin`, the SHA-256 of a header file where there is one. Events are canonical JSON: sorted keys,
no floats. Order is exact inside a file; across files an event comes after those that its writer
had `seen`, and otherwise by the clock.
"""

import heapq
import os
import platform
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from napari_mamamia.io.files.chained_lines import (
    NO_ORIGIN,
    ChainedLine,
    ChainedLines,
    canonical,
    scan_chained_lines,
)
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.workspace.workspace import file_name

SCHEMA: Final = 1
_SUFFIX: Final = ".jsonl"
_RUN: Final = secrets.token_hex(4)
"""Tells this run of a program from an earlier one with the same process number."""


@dataclass(frozen=True, slots=True)
class Event:
    """One note: who wrote it when and where, and what it says.

    Parameters
    ----------
    reader, host, session, seq
        Who, on which computer, in which run of a program, and the how manieth of it, from 0.
    at
        Clock of that computer, ISO 8601 in UTC.
    body
        What it says: JSON without floats.
    seen
        Hashes of the last event of each other file that its writer knew of.
    hash, prev
        Of its line, and of the line before it.
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


@dataclass(frozen=True, slots=True)
class EventProblem:
    """What is wrong with a file, in plain words; `path` is relative to the store's folder."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class _FileRead:
    events: tuple[Event, ...] = ()
    problems: tuple[EventProblem, ...] = ()
    size: int = 0
    head: str = NO_ORIGIN
    count: int = 0


@dataclass(frozen=True, slots=True)
class EventLog:
    """All events of a folder in one order, and what is wrong with its files.

    Every line that is as it was written counts, behind a gap too; each gap is a problem.
    """

    events: tuple[Event, ...] = ()
    problems: tuple[EventProblem, ...] = ()
    files: Mapping[str, _FileRead] = field(default_factory=dict, repr=False)

    @property
    def heads(self) -> tuple[str, ...]:
        """The hash of the last event of each file: what a writer has seen."""
        return tuple(sorted(file.head for file in self.files.values() if file.events))


class EventWriter:
    """The file of one reader in this run of the program; made with the first event.

    Parameters
    ----------
    folder
        Of the store.
    origin
        SHA-256 of the store's header file; the same for all its writers and readers.

    Raises
    ------
    CaseError
        If `reader` cannot name a folder.
    SaveConflictError, SaveError
        See `AppendFile`.

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

    def append(
        self, body: Mapping[str, Any], seen: Iterable[str] = (), *, is_forced: bool = True
    ) -> Event:
        """Add an event, and force it to the disk unless told otherwise.

        Raises
        ------
        TypeError, ValueError
            If `body` is not JSON, or holds a float, which does not read back the same everywhere.
        SaveConflictError, SaveError
            If it cannot be written; nothing of it stays.
        """
        _require_exact(body)
        at = datetime.now(UTC).isoformat(timespec="microseconds")
        others = tuple(sorted(set(seen)))
        prev, seq = self._lines.head, self._lines.count
        entry = {
            "schema": SCHEMA,
            "reader": self.reader,
            "host": self.host,
            "session": self.session,
            "at": at,
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
            at,
            body,
            others,
            self._lines.head,
            prev,
        )

    def close(self) -> None:
        """Force all to the disk and let go of the file."""
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


@reads("notes of readers", "ask for a whole copy of the folder")
def read_events(folder: Path, origin: str = NO_ORIGIN, known: EventLog | None = None) -> EventLog:
    """Return all events of a store, none where there is no folder.

    A last line without its end is being written, or was torn by a crash: its own writer cuts it
    off, so that it is no problem here.

    Parameters
    ----------
    known
        An earlier reading of the same folder: of files that only grew, the new lines are read.

    Raises
    ------
    FormatError
        If a file is there but cannot be read.
    """
    before = {} if known is None else known.files
    files = {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob(f"*{_SUFFIX}"))
        if path.is_file() and not path.is_symlink()
    }
    read = {name: _read_file(path, name, origin, before.get(name)) for name, path in files.items()}
    gone = [
        EventProblem(name, "the file was there before and is gone")
        for name in before
        if name not in read
    ]
    problems = [problem for file in read.values() for problem in file.problems]
    events = _merge_events([file.events for file in read.values()])
    return EventLog(events, (*gone, *problems, *_find_forks(events)), read)


def _read_file(path: Path, name: str, origin: str, known: _FileRead | None) -> _FileRead:
    if known is None:
        return _scan_file(path, name, _FileRead(head=origin))
    size = path.stat().st_size
    if size == known.size:
        return known
    grown = _scan_file(path, name, known) if size > known.size else known
    # What does not fit may mean that lines known before were changed: then all is read anew.
    if size > known.size and len(grown.problems) == len(known.problems):
        return grown
    anew = _scan_file(path, name, _FileRead(head=origin))
    lost = {event.hash for event in known.events} - {event.hash for event in anew.events}
    if not lost:
        return anew
    text = f"{len(lost)} event(s) that were read before are gone"
    return _FileRead(
        anew.events, (*anew.problems, EventProblem(name, text)), anew.size, anew.head, anew.count
    )


def _scan_file(path: Path, name: str, known: _FileRead) -> _FileRead:
    """Return what was known of a file and all that stands behind it."""
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
            why = line.problem or "it holds no event"
            problems.append(EventProblem(name, f"line {line.number}: {why}"))
        if event is not None:
            events.append(event)
            hashes.add(event.hash)
            head, count = event.hash, event.seq + 1
    return _FileRead(tuple(events), tuple(problems), size, head, count)


def _parse_event(line: ChainedLine) -> Event | None:
    """Return the event of a line, None where it holds none, such as one of a later schema."""
    entry = line.entry
    if not isinstance(entry, dict) or entry.get("schema") != SCHEMA or not line.is_chained:
        return None
    texts = [entry.get(key) for key in ("reader", "host", "session", "at")]
    body, seen = entry.get("body"), entry.get("seen")
    if not all(isinstance(text, str) for text in texts) or not isinstance(body, dict):
        return None
    if not isinstance(seen, list) or not all(isinstance(one, str) for one in seen):
        return None
    reader, host, session, at = map(str, texts)
    return Event(reader, host, session, line.seq, at, body, tuple(seen), line.hash, line.prev)


def _merge_events(files: Iterable[Sequence[Event]]) -> tuple[Event, ...]:
    """Return all events once, each after those before it in its file and those it had seen."""
    by_hash = {event.hash: event for events in files for event in events}
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
    # Down to the hash, so that every computer finds the same order.
    return (event.at, event.reader, event.host, event.session, event.seq, event.hash)


def _find_forks(events: Iterable[Event]) -> Iterator[EventProblem]:
    """Yield where one session goes on in two ways, such as in a copy of the folder."""
    first: dict[tuple[str, str, str, int], str] = {}
    for event in events:
        place = (event.reader, event.host, event.session, event.seq)
        if first.setdefault(place, event.hash) != event.hash:
            where = f"{event.reader}/{event.host}-{event.session}{_SUFFIX}"
            yield EventProblem(where, f"event {event.seq} is there in two forms: both count")


def _require_exact(value: object) -> None:
    if isinstance(value, float):
        raise TypeError(f"expected JSON without floats, got {value!r}: write it as text")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise TypeError(f"expected texts as keys, got {key!r}")
            _require_exact(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            _require_exact(inner)


def _name_host() -> str:
    """Return this computer's name as a part of a file name."""
    return re.sub(r"[^A-Za-z0-9]+", "-", platform.node()).strip("-")[:40] or "computer"
