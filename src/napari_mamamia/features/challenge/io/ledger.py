"""The append-only, hash-chained ledger of a challenge's attempts, one file per writer.

Lines are events of `io.workspace.event_store`, bound to the SHA-256 of ``challenge.json``. Each
line contains the hashes of the last lines that its writer had read in the other files. This reveals
changed, removed or moved lines, removed files, and a changed challenge. A leaderboard stores the
hashes of the last lines when it is made, which reveals lines removed later.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from napari_mamamia.io.files.append_file import scan_chained_lines
from napari_mamamia.io.workspace.event_store import Event, EventLog, EventWriter, read_events

_WRITER: Final = "organiser"
_BEGUN: Final = "begun"
_ENDED: Final = "ended"
_BOARD: Final = "board"


class AttemptOutcome(StrEnum):
    """The outcome of an attempt."""

    SCORED = "scored"
    REFUSED = "refused"
    """The submission violates the rules, so nothing was scored."""
    STOPPED = "stopped in the express lane"
    PASSED = "passed the express lane"
    """The submission passed the express test, which scores nothing and is not recorded."""
    FAILED = "failed"
    """The evaluation failed for a reason that is not the team's fault, such as a full disk."""
    OPEN = "not finished"


_COUNTED: Final = (AttemptOutcome.SCORED, AttemptOutcome.OPEN)
"""Outcomes that use up an attempt, because the team saw or may have seen a score."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A team's attempt, which is one evaluation of a submission.

    Parameters
    ----------
    team, digest, kind
        The team, the SHA-256 of its submission, and the kind of submission.
    number
        Number of the attempt, from 1 for each team; 0 if the attempt does not count.
    begun, ended
        Times, ISO 8601 in UTC; `ended` is "" if no end is recorded.
    outcome, reason
        The outcome, and the reason if the attempt or its responses were not scored.
    files
        SHA-256 of the result files, by name.
    event
        Hash of the attempt's first line.
    """

    team: str
    digest: str
    kind: str
    number: int
    begun: str
    event: str
    ended: str = ""
    outcome: AttemptOutcome = AttemptOutcome.OPEN
    reason: str = ""
    files: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Ledger:
    """All attempts in order, the problems of the ledger, and the hashes of its last lines.

    `boards` holds, for each leaderboard, the SHA-256 of its list of files.
    """

    attempts: tuple[Attempt, ...] = ()
    problems: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    hashes: frozenset[str] = frozenset()
    boards: frozenset[str] = frozenset()

    def of_team(self, team: str) -> tuple[Attempt, ...]:
        """Return a team's attempts in order."""
        return tuple(attempt for attempt in self.attempts if attempt.team == team)

    def count(self, team: str) -> int:
        """Return how many attempts of a team count."""
        return max((attempt.number for attempt in self.of_team(team)), default=0)


class LedgerWriter:
    """Context manager that writes this program's own ledger file.

    Parameters
    ----------
    folder
        Folder of the ledger.
    origin
        SHA-256 of ``challenge.json``.
    """

    def __init__(self, folder: Path, origin: str) -> None:
        self._folder, self._origin = folder, origin
        self._writer: EventWriter | None = None

    def begin(self, team: str, digest: str, kind: str) -> str:
        """Record the start of an attempt, and return the line's hash; errors as in `EventWriter`.

        Parameters
        ----------
        team
            The team.
        digest
            SHA-256 of the submission.
        kind
            The kind of submission.
        """
        return self._append_line(
            {"kind": _BEGUN, "team": team, "digest": digest, "submission": kind}
        )

    def end(
        self,
        event: str,
        outcome: AttemptOutcome,
        reason: str,
        files: Iterable[tuple[str, str]] = (),
    ) -> None:
        """Record the outcome of the attempt whose first line has the hash `event`.

        Parameters
        ----------
        event
            Hash of the attempt's first line.
        outcome, reason
            The outcome and its reason.
        files
            Name and SHA-256 of each result.
        """
        body = {"kind": _ENDED, "begun": event, "outcome": outcome.value, "reason": reason}
        self._append_line({**body, "files": dict(files)})

    def record_board(self, digest: str) -> None:
        """Record the SHA-256 of a leaderboard's list of files."""
        self._append_line({"kind": _BOARD, "files": digest})

    def close(self) -> None:
        """Close the ledger file."""
        if self._writer is not None:
            self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _append_line(self, body: Mapping[str, Any]) -> str:
        seen = read_events(self._folder, self._origin).heads
        if self._writer is None:
            self._writer = EventWriter(self._folder, _WRITER, origin=self._origin)
        return self._writer.append(body, seen).hash


def read_ledger(folder: Path, origin: str, until: Collection[str] = ()) -> Ledger:
    """Read the attempts of the challenge whose file has the SHA-256 `origin`.

    Parameters
    ----------
    folder
        The folder of the ledger.
    origin
        SHA-256 of ``challenge.json``.
    until
        Hashes of the last lines from which attempts are read, as a leaderboard stores them; () for
        all lines.

    Raises
    ------
    FormatError
        If a file of the ledger cannot be read.
    """
    log = read_events(folder, origin)
    hashes = frozenset(event.hash for event in log.events)
    problems = [f"{problem.path}: {problem.text}" for problem in log.problems]
    problems += [*_find_gaps(log, hashes), *_find_repeats(folder)]
    boards = frozenset(
        str(event.body.get("files")) for event in log.events if event.body.get("kind") == _BOARD
    )
    events: Sequence[Event] = log.events
    if until:
        earlier = {event.hash for chain in log.chains.values() for event in _cut(chain, until)}
        events = [event for event in events if event.hash in earlier]
    return Ledger(_list_attempts(events), tuple(problems), log.heads, hashes, boards)


def _cut(chain: Sequence[Event], until: Collection[str]) -> Sequence[Event]:
    """Return the events of a file up to its last line in `until`, or none without such a line."""
    last = max((index for index, event in enumerate(chain, start=1) if event.hash in until),
               default=0)  # fmt: skip
    return chain[:last]


def _find_gaps(log: EventLog, hashes: frozenset[str]) -> list[str]:
    gone = {other for event in log.events for other in event.seen if other not in hashes}
    return [
        f"the line {digest[:16]}, to which other lines refer, is missing" for digest in sorted(gone)
    ]


def _find_repeats(folder: Path) -> Iterator[str]:
    """Yield each line that occurs twice, which the event store would treat as one event."""
    for path in sorted(folder.rglob("*.jsonl")):
        counts = Counter(line.hash for line in scan_chained_lines(path) if line.hash)
        for digest, count in counts.items():
            if count > 1:
                yield f"{path}: the line {digest[:16]} occurs {count} times"


def _list_attempts(events: Iterable[Event]) -> tuple[Attempt, ...]:
    attempts: dict[str, Attempt] = {}
    for event in events:
        body = event.body
        if body.get("kind") == _BEGUN:
            attempts[event.hash] = _begin_attempt(event)
        elif body.get("kind") == _ENDED and str(body.get("begun")) in attempts:
            key = str(body["begun"])
            attempts[key] = _end_attempt(attempts[key], event)
    numbers: dict[str, int] = {}
    numbered = []
    for attempt in attempts.values():
        if attempt.outcome in _COUNTED:
            numbers[attempt.team] = numbers.get(attempt.team, 0) + 1
            numbered.append(replace(attempt, number=numbers[attempt.team]))
        else:
            numbered.append(attempt)
    return tuple(numbered)


def _begin_attempt(event: Event) -> Attempt:
    team, digest, kind = (str(event.body.get(key, "")) for key in ("team", "digest", "submission"))
    return Attempt(team, digest, kind, 0, event.at, event.hash)


def _end_attempt(attempt: Attempt, event: Event) -> Attempt:
    body = event.body
    outcomes = {outcome.value: outcome for outcome in AttemptOutcome}
    files = body.get("files")
    pairs = files.items() if isinstance(files, dict) else ()
    return replace(
        attempt,
        ended=event.at,
        outcome=outcomes.get(str(body.get("outcome")), AttemptOutcome.OPEN),
        reason=str(body.get("reason", "")),
        files=tuple((str(name), str(digest)) for name, digest in pairs),
    )
