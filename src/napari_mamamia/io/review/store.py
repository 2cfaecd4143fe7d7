"""Where a study's events, masks and claims are kept: the interface, and a folder that several use.

The folder lies on a share, and the share goes away now and then. So an event is written on this
computer first and sent at once or later: `FolderStore.unsent` counts what waits. What a program
left unsent, killed or not, the next one on the computer sends.
"""

import hashlib
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

from napari_mamamia.core.errors import FormatError, SaveError
from napari_mamamia.core.review import Study
from napari_mamamia.io.files.append_file import AppendFile
from napari_mamamia.io.files.foreign import open_plain
from napari_mamamia.io.review.claims import (
    CLAIMS,
    Claim,
    newest_claims,
    renew_claim,
    take_claim,
)
from napari_mamamia.io.review.desk_files import (
    EVENTS,
    ShareReach,
    find_copy,
    keep_copy,
    known_masks,
    list_missing,
    note_known,
)
from napari_mamamia.io.review.mask_files import read_mask, send_masks, write_mask_once
from napari_mamamia.io.review.study_file import STUDY_NAME, hash_study, read_study
from napari_mamamia.io.workspace.event_order import Event
from napari_mamamia.io.workspace.event_store import (
    EventLog,
    EventProblem,
    EventWriter,
    read_events,
)
from napari_mamamia.io.workspace.workspace import MASK_SUFFIX, file_name

MASKS: Final = "masks"
_WAITS: Final = "on this computer"
_KNOWN_EVERY_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class StoreReading:
    """All events by chain in their order, what is wrong, and why some cannot be seen now ("")."""

    chains: Mapping[str, Sequence[Event]]
    problems: tuple[EventProblem, ...] = ()
    away: str = ""


class EventStore(Protocol):
    """What a study is kept in; a folder, or a data base (`schema.sql`)."""

    study: Study
    origin: str

    @property
    def unsent(self) -> int:
        """How many events others cannot see yet."""

    def close(self) -> None:
        """Send what can be sent and let go."""

    def append(self, reader: str, body: Mapping[str, Any], seen: Iterable[str] = ()) -> Event:
        """Add an event that lasts, with the heads that its writer had seen."""

    def head_of(self, reader: str) -> str:
        """Return the hash of the line that this program's next event by a reader follows."""

    def read(self) -> StoreReading:
        """Return all events that can be seen, one's own unsent ones too."""

    def put_mask(self, content: bytes) -> str:
        """Keep a mask's file; return its SHA-256. Kept already is no error."""

    def get_mask(self, sha256: str) -> bytes:
        """Return a mask's file; FormatError where it is missing or changed."""

    def list_masks(self) -> frozenset[str]:
        """Return the SHA-256 of every mask."""

    def claim(self, place: str, reader: str) -> Claim:
        """Take a piece of work, or return who has it: compare `reader`, `host`, `session`."""

    def renew(self, claim: Claim) -> bool:
        """Say that one is still at it; False where somebody else has taken it meanwhile."""

    def release(self, claim: Claim) -> None:
        """Let go of a claim."""

    def list_claims(self) -> tuple[Claim, ...]:
        """Return the newest claim of each place that has one."""

    def claim_holder(self, reader: str) -> tuple[str, str, str]:
        """Return what a claim of this program by a reader says: reader, host, session."""


class FolderStore:
    """A study's folder, opened by one program; see the package for what lies where.

    Parameters
    ----------
    folder
        Of the study.
    home
        This computer's own folder for what waits to be sent.
    host, session
        Of this program, for tests; None for its own.

    Raises
    ------
    FormatError
        If the folder holds no study.
    """

    def __init__(
        self, folder: Path, home: Path, *, host: str | None = None, session: str | None = None
    ) -> None:
        self.folder = folder
        self._reach = ShareReach(folder / STUDY_NAME)
        self.study, self.origin, self._copy = self._open_study(home)
        self._home = home / file_name(self.study.study_id, "a study's id")
        self._host, self._session = host, session
        self._writers: dict[str, EventWriter] = {}
        self._sent: dict[str, int] = {}
        self._turn = threading.RLock()
        self._log, self._local = EventLog(), EventLog()
        if self._copy is not None:
            self._log = read_events(self._copy / EVENTS, self.origin)
        self._noted_at = self._copied_at = -_KNOWN_EVERY_S
        self._same: tuple[int, int, int] | None = None
        self.trouble = ""

    @property
    def outbox(self) -> Path:
        """Where on this computer lies what waits to be sent."""
        return self._home

    @property
    def frozen_folder(self) -> Path:
        """Where the files lie that are frozen with the study: this computer's copy while away."""
        return self._copy or self.folder

    def keep_copy(self, *, is_due: bool = False) -> None:
        """Copy what is new in the study to this computer, once a minute or when it `is_due`.

        Work can begin from it while the share is away.
        """
        with self._turn:
            is_early = time.monotonic() - self._copied_at < _KNOWN_EVERY_S
            with suppress(OSError):
                if is_due or not is_early:
                    self._require_same_study()
                    keep_copy(self.folder, self.study, self._home)
                    self._copied_at = time.monotonic()

    # ------------------------------------------------------------------ events

    def append(self, reader: str, body: Mapping[str, Any], seen: Iterable[str] = ()) -> Event:
        """Add an event: on this computer's disk at once, in the study's folder if it is there.

        Raises
        ------
        SaveError
            If this computer's own disk refuses; nothing is noted then.
        TypeError, ValueError
            If `body` is not JSON without floats.
        """
        with self._turn:
            writer = self._writer_of(reader)
            event = writer.append(body, seen)
            self.send()
            return event

    def head_of(self, reader: str) -> str:
        """Return the hash of the line that this program's next event by a reader follows."""
        with self._turn:
            return self._writer_of(reader).head

    def read(self) -> StoreReading:
        """Return all events that can be seen; while the share is away, those of before."""
        with self._turn:
            away = ""
            try:
                self._require_share()
                self._log = self._read_share()
            except (FormatError, OSError) as error:
                away = self.trouble = str(error)
            self._local = read_events(self._home / EVENTS, self.origin, self._local)
            # What waits here is no other history of what is there.
            chains = {f"{_WAITS}/{name}": one for name, one in self._local.chains.items()}
            problems = self._log.problems
            problems += tuple(
                replace(one, path=f"{_WAITS}/{one.path}")
                for file in self._local.files.values()
                for one in file.problems
            )
            if self._copy is None:
                missing = list_missing(self._home, self.folder, self.origin, self._log.chains)
                problems = (*problems, *missing)
            is_early = time.monotonic() - self._noted_at < _KNOWN_EVERY_S
            if not (away or is_early or self._copy):
                about = (self.folder, self.origin, self.list_masks())
                note_known(self._home, *about, self._log.chains)
                self._noted_at = time.monotonic()
            return StoreReading({**self._log.chains, **chains}, problems, away)

    def send(self) -> int:
        """Send what waits on this computer, masks first; return how many events still wait.

        Nothing fails by it: a share that is away, full or read-only is tried again next time, and
        `trouble` says what it was, "" where all was sent.
        """
        with self._turn:
            self.trouble = ""
            try:
                self._require_same_study()
                damage = send_masks(self._home / MASKS, self.folder / MASKS)
            except OSError as error:
                self.trouble = str(error)
                return self.unsent
            for path in sorted((self._home / EVENTS).rglob("*.jsonl")):
                try:
                    self._send_file(path)
                except OSError as error:
                    self.trouble = str(error)
            self.trouble = self.trouble or damage
            return self.unsent

    @property
    def unsent(self) -> int:
        """How many events wait on this computer."""
        waiting = 0
        for path in (self._home / EVENTS).rglob("*.jsonl"):
            name = path.relative_to(self._home / EVENTS).as_posix()
            with suppress(OSError), path.open("rb") as stream:
                stream.seek(self._sent.get(name, 0))
                waiting += stream.read().count(b"\n")
        return waiting

    def close(self) -> None:
        """Send what can be sent, and let go of this computer's files; those sent are removed."""
        with self._turn:
            for writer in self._writers.values():
                writer.close()
            self._writers.clear()
            self.send()
            self._noted_at = -_KNOWN_EVERY_S
            self.read()
            self.send_left()

    def send_left(self) -> None:
        """Send and remove what programs that have ended left on this computer."""
        with self._turn:
            self.send()
            in_use = {writer.path for writer in self._writers.values()}
            for path in sorted((self._home / EVENTS).rglob("*.jsonl")):
                name = path.relative_to(self._home / EVENTS).as_posix()
                if path in in_use or self._sent.get(name) != path.stat().st_size:
                    continue
                with suppress(OSError):
                    AppendFile(path, keep=True).close()  # nobody else is at it
                    path.unlink()
                    self._sent.pop(name, None)

    def _writer_of(self, reader: str) -> EventWriter:
        if reader not in self._writers:
            self._writers[reader] = EventWriter(
                self._home / EVENTS,
                reader,
                origin=self.origin,
                host=self._host,
                session=self._session,
            )
        return self._writers[reader]

    def _send_file(self, path: Path) -> None:
        """Bring the study's copy of one file of this computer up to it.

        Raises
        ------
        OSError
            If the share refuses, or its copy is not the beginning of ours: then it is left alone.
        """
        name = path.relative_to(self._home / EVENTS).as_posix()
        whole = path.read_bytes()
        whole = whole[: whole.rfind(b"\n") + 1]
        if self._sent.get(name) == len(whole) and (self.folder / EVENTS / name).exists():
            return
        with AppendFile(self.folder / EVENTS / name, keep=True) as there:
            with open_plain(there.path) as stream:
                before = stream.read()
            if not whole.startswith(before):
                raise SaveError(
                    f"expected {there.path} to be what this computer sent, but it goes on "
                    "otherwise: somebody copied the study or changed the file; keep both"
                )
            if len(whole) > len(before):
                there.append(whole[len(before) :])
                there.sync(every_s=0.0)
        self._sent[name] = len(whole)

    def _require_share(self) -> None:
        """Raise OSError where the study's folder cannot be reached.

        A share that is away may leave an empty folder in its place, in which nothing may be made.
        """
        try:
            self._reach.ask()
        except OSError as error:
            if self._copy is None:
                raise
            raise SaveError(
                f"{self.folder} cannot be reached ({error.strerror or error}): this is the study "
                "as this computer knew it; what you do is sent once the folder is there again"
            ) from error

    def _require_same_study(self) -> None:
        """Raise OSError where the folder cannot be reached, or holds another study than before."""
        self._require_share()
        status = (self.folder / STUDY_NAME).stat()
        stamp = (status.st_size, status.st_mtime_ns, status.st_ino)
        if stamp == self._same:
            return
        if hash_study(self.folder) != self.origin:
            raise SaveError(
                f"{self.folder / STUDY_NAME} is not the file that this program opened: nothing is "
                "sent there; what you do is kept on this computer"
            )
        self._same = stamp

    def _open_study(self, home: Path) -> tuple[Study, str, Path | None]:
        """Return the study, its hash, and where it was copied to if its folder is away."""
        try:
            self._reach.ask()
        except OSError as error:
            copy = find_copy(self.folder, home)
            if copy is not None:
                return copy
            if isinstance(error, SaveError):
                raise FormatError(f"expected a review study, but {error}") from error
        return (*read_study(self.folder), None)

    def _read_share(self) -> EventLog:
        if hash_study(self.folder) == self.origin:
            # Of a copy nothing is taken over: the study's own files are read whole.
            before = self._log if self._copy is None else EventLog()
            log = read_events(self.folder / EVENTS, self.origin, before)
            self._copy = None
            return log
        log = self._log
        if self._copy is None:
            log = read_events(self.folder / EVENTS, self.origin, self._log)
        text = "it is not the file that this program opened: somebody changed it"
        return replace(log, problems=(EventProblem(STUDY_NAME, text), *log.problems))

    # ------------------------------------------------------------------- masks

    def put_mask(self, content: bytes) -> str:
        """Keep a mask's file in the study, on this computer while the share is away.

        Raises
        ------
        SaveError
            If neither takes it.
        """
        name = hashlib.sha256(content).hexdigest()
        try:
            self._require_same_study()
            write_mask_once(self.folder / MASKS / f"{name}{MASK_SUFFIX}", content)
        except OSError as error:
            self.trouble = str(error)
            write_mask_once(self._home / MASKS / f"{name}{MASK_SUFFIX}", content)
        return name

    def get_mask(self, sha256: str) -> bytes:
        """Return a mask's file as it was put.

        Raises
        ------
        FormatError
            If it is missing, or its bytes were changed.
        """
        for folder in (self.folder / MASKS, self._home / MASKS):
            path = folder / f"{file_name(sha256)}{MASK_SUFFIX}"
            if path.exists():
                return read_mask(path, sha256)
        raise FormatError(
            f"expected the mask {sha256[:12]} in {self.folder / MASKS}, but it is not there: it "
            "may still be on the computer of its reader, or was removed"
        )

    def list_masks(self) -> frozenset[str]:
        """Return the SHA-256 of every mask that is there, going by the names.

        Work that began while the share is away goes by those that this computer had read of.
        """
        before: frozenset[str] = frozenset() if self._copy is None else known_masks(self._home)
        return before.union(
            path.name.removesuffix(MASK_SUFFIX)
            for folder in (self.folder / MASKS, self._home / MASKS)
            for path in folder.glob(f"*{MASK_SUFFIX}")
        )

    # ------------------------------------------------------------------ claims

    def claim(self, place: str, reader: str) -> Claim:
        """Take a piece of work; what is returned is another's where somebody has it.

        A claim whose holder gave no sign for the study's lease is taken. While the share is away
        it is taken without anybody knowing: a claim saves work, and nothing depends on it.
        """
        asked = Claim(place, 1, *self.claim_holder(reader))
        try:
            self._require_same_study()
            return take_claim(self.folder / CLAIMS, asked, self.study.plan.lease_s)
        except (FormatError, OSError) as error:
            self.trouble = str(error)
        return asked

    def claim_holder(self, reader: str) -> tuple[str, str, str]:
        """Return what a claim of this program by a reader says: reader, host, session."""
        with self._turn:
            writer = self._writer_of(reader)
        return reader, writer.host, writer.session

    def renew(self, claim: Claim) -> bool:
        """Say that one is still at it; False where somebody else has taken it meanwhile."""
        try:
            self._require_same_study()
            return renew_claim(self.folder / CLAIMS, claim)
        except (FormatError, OSError) as error:
            self.trouble = str(error)
        return True

    def release(self, claim: Claim) -> None:
        """Let go of a claim; while the share is away it runs out by itself."""
        with suppress(FormatError, OSError):
            self._require_same_study()
            renew_claim(self.folder / CLAIMS, replace(claim, is_released=True))

    def list_claims(self) -> tuple[Claim, ...]:
        """Return the newest claim of each place, those that were let go of left out."""
        return newest_claims(self.folder / CLAIMS)
