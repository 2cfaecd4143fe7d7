"""Storage of a study's events, masks and claims: the interface, and a shared folder.

The folder may be on a network share that is temporarily unreachable. An event is therefore first
written on this computer, and sent immediately or later. `FolderStore.unsent` counts waiting events.
Events that a program left unsent, even after a crash, are sent by the next program on the same
computer. A file that was sent completely moves to this computer's copy of the study.

All access to the shared folder is a background task of `share`, so that a hanging share is treated
as unreachable.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from napari_mamamia.core.errors import FormatError, SaveError
from napari_mamamia.core.progress import listening
from napari_mamamia.features.review.core.review import Study
from napari_mamamia.features.review.io.background_tasks import (
    MASKS,
    find_mask,
    list_masks_in,
    list_masks_of_study,
    read_study_events,
    read_waiting,
    require_same_study,
    send_all,
    stat_study,
)
from napari_mamamia.features.review.io.claims import (
    CLAIMS,
    Claim,
    newest_claims,
    renew_claim,
    take_claim,
)
from napari_mamamia.features.review.io.client_files import (
    COPY,
    EVENTS,
    find_copy,
    keep_copy,
    known_masks,
    list_missing,
    note_known,
)
from napari_mamamia.features.review.io.mask_files import write_mask_once
from napari_mamamia.features.review.io.share import Share, SilentShareError
from napari_mamamia.features.review.io.study_file import read_study
from napari_mamamia.io.files.append_file import AppendFile
from napari_mamamia.io.workspace.event_order import Event
from napari_mamamia.io.workspace.event_store import (
    EventLog,
    EventProblem,
    EventWriter,
    name_session,
    read_events,
)
from napari_mamamia.io.workspace.workspace import MASK_SUFFIX, file_name

T = TypeVar("T")
_WAITS: Final = "on this computer"
_KNOWN_EVERY_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class StoreReading:
    """Visible content of a study at one time: events by chain, problems, masks by SHA-256.

    `away` explains why some content is not visible now, "" if all is visible. The masks then
    include those that this computer has read before.
    """

    chains: Mapping[str, Sequence[Event]]
    problems: tuple[EventProblem, ...] = ()
    away: str = ""
    masks: frozenset[str] = frozenset()


class EventStore(Protocol):
    """Storage of a study: a folder, or a database (`schema.sql`)."""

    study: Study
    origin: str
    is_known: bool
    trouble: str

    @property
    def unsent(self) -> int:
        """Return the number of events that others cannot see yet."""

    def close(self) -> None:
        """Send what can be sent and close local files."""

    def append(self, reader: str, body: Mapping[str, Any], seen: Iterable[str] = ()) -> Event:
        """Append an event durably, with the heads of the chains that its writer has seen."""

    def head_of(self, reader: str) -> str:
        """Return the hash of the event that precedes this program's next event by a reader."""

    def read(self) -> StoreReading:
        """Return all visible events, including unsent events of this computer."""

    def put_mask(self, content: bytes) -> str:
        """Store a mask file if it does not exist; return its SHA-256."""

    def get_mask(self, sha256: str) -> bytes:
        """Return a mask file; raise `FormatError` if it is missing or changed."""

    def claim(self, place: str, reader: str) -> Claim:
        """Claim a case, or return its holder's claim; compare `reader`, `host` and `session`."""

    def renew(self, claim: Claim) -> bool:
        """Renew a claim; return False if somebody else has taken it meanwhile."""

    def release(self, claim: Claim) -> None:
        """Release a claim."""

    def list_claims(self) -> tuple[Claim, ...]:
        """Return the newest claim of each place."""

    def claim_holder(self, reader: str) -> tuple[str, str, str]:
        """Return reader, host and session, which identify this program's claims for a reader."""


class FolderStore:
    """A study's folder, opened by one program; the package docstring lists its files.

    Parameters
    ----------
    folder
        Folder of the study.
    home
        The local folder for events that wait to be sent.
    host, session
        Identification of this program, set by tests; None for the default.

    Raises
    ------
    FormatError
        If the folder holds no study.
    """

    def __init__(
        self, folder: Path, home: Path, *, host: str | None = None, session: str | None = None
    ) -> None:
        self.share = Share(folder)
        self.study, self.origin, self._copy = self._open_study(home)
        self._home = home / file_name(self.study.study_id, "a study's id")
        self._host, self._session = host, session or name_session()
        self._writers: dict[str, EventWriter] = {}
        self._sent: dict[str, int] = {}
        self._turn = threading.RLock()
        self._log, self._local = EventLog(), EventLog()
        if self._copy is not None:
            self._log = read_events(self._copy / EVENTS, self.origin)
        self._noted_at = self._copied_at = -_KNOWN_EVERY_S
        self._same: tuple[int, int, int] | None = None
        self._masks: frozenset[str] = frozenset()
        self.trouble, self.is_known = (
            "",
            self._copy is not None,
        )  # or after everything was read once

    @property
    def outbox(self) -> Path:
        """Return the local folder of events that wait to be sent."""
        return self._home

    def read_frozen(self, read: Callable[[Path, Study], T]) -> T:
        """Return the result of `read` for the files that are frozen with the study.

        The files are read from the study's folder, or from the local copy while the folder is
        unreachable. Errors as in `visit` and `read`.
        """
        if self._copy is not None:
            return read(self._copy, self.study)
        return self.visit(lambda folder: read(folder, self.study))

    def visit(self, work: Callable[[Path], T]) -> T:
        """Return the result of `work` in the study's folder; `work` must be stateless.

        Raises
        ------
        SilentShareError
            If the share does not answer; `work` may still finish later.
        """
        with listening(None):  # a half-finished step must not be cancelled
            return self.share.run(work)

    def keep_copy(self, *, is_due: bool = False) -> None:
        """Copy new content of the study to this computer, once a minute or if `is_due`.

        The copy is used to begin work while the share is unreachable.
        """
        with self._turn:
            is_early = time.monotonic() - self._copied_at < _KNOWN_EVERY_S
            with suppress(OSError):
                if is_due or not is_early:
                    self._work_there(lambda folder: keep_copy(folder, self.study, self._home))
                    self._copied_at = time.monotonic()

    # ------------------------------------------------------------------ events

    def append(self, reader: str, body: Mapping[str, Any], seen: Iterable[str] = ()) -> Event:
        """Append an event on this computer's disk, and in the study's folder if it is reachable.

        Raises
        ------
        SaveError
            If this computer's disk refuses to write; nothing is recorded then.
        TypeError, ValueError
            If `body` is not JSON without floats.
        """
        with self._turn:
            writer = self._writer_of(reader)
            event = writer.append(body, seen)
            self.send()
            return event

    def head_of(self, reader: str) -> str:
        """Return the hash of the event that precedes this program's next event by a reader."""
        with self._turn:
            return self._writer_of(reader).head

    def read(self) -> StoreReading:
        """Return all visible events; while the share is unreachable, the events read before."""
        with self._turn:
            away = ""
            # Read local files first, because another window may send a file meanwhile and move it
            # to the copy.
            with listening(None):
                self._local = read_events(self._home / EVENTS, self.origin, self._local)
            try:
                self._require_share()
                self._log = self._read_share()
                # Read masks after events, because a mask is stored before the event that names it.
                self._masks = self.visit(list_masks_of_study)
                self.is_known = True
            except (FormatError, OSError) as error:
                away = self.trouble = str(error)
                if self._copy is not None:
                    self._log = read_events(self._copy / EVENTS, self.origin, self._log)
            # An unsent file that continues a sent file is not a fork of its chain.
            chains = {f"{_WAITS}/{name}": chain for name, chain in self._local.chains.items()}
            problems = self._log.problems
            problems += tuple(
                replace(problem, path=f"{_WAITS}/{problem.path}")
                for file in self._local.files.values()
                for problem in file.problems
            )
            if self._copy is None:
                missing = list_missing(self._home, self._folder_name, self.origin, self._log.chains)
                problems = (*problems, *missing)
            masks = self._masks | list_masks_in(self._home / MASKS)
            if self._copy is not None:
                masks |= known_masks(self._home)
            is_early = time.monotonic() - self._noted_at < _KNOWN_EVERY_S
            if not (away or is_early or self._copy):
                about = (self._folder_name, self.origin, masks)
                note_known(self._home, *about, self._log.chains)
                self._noted_at = time.monotonic()
            return StoreReading({**self._log.chains, **chains}, problems, away, masks)

    def send(self) -> int:
        """Send waiting masks and events; return the number of events that still wait.

        No error is raised if the share is unreachable, full or read-only. Sending is tried again
        next time, and `trouble` holds the error message, "" if everything was sent.
        """
        with self._turn:
            self.trouble = ""
            outbox = read_waiting(self._home / EVENTS)
            send = partial(send_all, self._home, outbox, dict(self._sent))
            try:
                lengths, self.trouble = self._work_there(send)
                self._sent |= lengths
            except OSError as error:
                self.trouble = str(error)
            return self.unsent

    @property
    def unsent(self) -> int:
        """Return the number of events that wait on this computer."""
        outbox = read_waiting(self._home / EVENTS)
        return sum(whole.count(b"\n", self._sent.get(name, 0)) for name, whole in outbox.items())

    def close(self) -> None:
        """Send what can be sent, and close local files."""
        with self._turn:
            for writer in self._writers.values():
                writer.close()
            self._writers.clear()
            self.send()
            self._noted_at = -_KNOWN_EVERY_S
            self.read()
            self.send_left()

    def send_left(self) -> None:
        """Send the unsent files of ended programs on this computer, and move them to the copy."""
        with self._turn:
            self.send()
            in_use = {writer.path for writer in self._writers.values()}
            for path in sorted((self._home / EVENTS).rglob("*.jsonl")):
                name = path.relative_to(self._home / EVENTS).as_posix()
                if path in in_use or self._sent.get(name) != path.stat().st_size:
                    continue
                with suppress(OSError):
                    AppendFile(path, keep=True).close()  # no other program uses the file
                    if not path.stat().st_size:
                        path.unlink()
                        continue
                    copy = self._home / COPY / EVENTS / name
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    path.replace(copy)
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

    @property
    def _folder_name(self) -> Path:
        """Return the study's folder for comparison and messages; do not access it."""
        return Path(self.share.place)

    def _require_share(self) -> None:
        """Raise OSError if the study's folder cannot be reached.

        An unmounted share may leave an empty folder as its mount point, in which nothing may be
        created.
        """
        try:
            self.share.look(stat_study)
        except OSError as error:
            if self._copy is None:
                raise
            why = error.strerror or error
            if isinstance(error, SilentShareError):
                why = "the share does not answer"
            raise SaveError(
                f"{self.share.place} cannot be reached ({why}): this is the local copy of the "
                "study; your work is sent when the folder is reachable again"
            ) from error

    def _work_there(self, work: Callable[[Path], T]) -> T:
        """Return the result of `work` in the folder if it still holds the same study.

        Raises
        ------
        OSError
            If the folder cannot be reached, or holds a different study than before.
        """
        self._require_share()
        origin, before = self.origin, self._same

        def do(folder: Path) -> tuple[tuple[int, int, int], T]:
            return require_same_study(folder, origin, before), work(folder)

        self._same, result = self.visit(do)
        return result

    def _open_study(self, home: Path) -> tuple[Study, str, Path | None]:
        """Return the study, its hash, and the local copy if the study's folder is unreachable."""
        try:
            self.share.look(stat_study)
            return (*self.visit(read_study), None)
        except OSError as error:
            copy = find_copy(self._folder_name, home)
            if copy is not None:
                return copy
            if isinstance(error, SilentShareError):
                raise
        return (*self.visit(read_study), None)

    def _read_share(self) -> EventLog:
        # Nothing is taken from the copy: the study's own files are read completely.
        before = self._log if self._copy is None else EventLog()
        origin = self.origin
        is_same, log = self.visit(lambda folder: read_study_events(folder, origin, before))
        if not is_same and self._copy is not None:
            problems = dict.fromkeys((*log.problems[:1], *self._log.problems))
            return replace(self._log, problems=tuple(problems))
        if is_same:
            self._copy = None
        return log

    # ------------------------------------------------------------------- masks

    def put_mask(self, content: bytes) -> str:
        """Store a mask file in the study, or on this computer while the share is unreachable.

        Raises
        ------
        SaveError
            If neither the study nor this computer can store the mask.
        """
        name = f"{hashlib.sha256(content).hexdigest()}{MASK_SUFFIX}"
        try:
            self._work_there(lambda folder: write_mask_once(folder / MASKS / name, content))
        except OSError as error:
            self.trouble = str(error)
            write_mask_once(self._home / MASKS / name, content)
        return name.removesuffix(MASK_SUFFIX)

    def get_mask(self, sha256: str) -> bytes:
        """Return a stored mask file; `FormatError` if it is missing, changed or unreachable."""
        name = f"{file_name(sha256)}{MASK_SUFFIX}"
        silent: SilentShareError | None = None
        try:
            content = self.visit(lambda folder: find_mask(folder / MASKS / name, sha256))
        except SilentShareError as error:
            content, silent = None, error
        content = content or find_mask(self._home / MASKS / name, sha256)
        if content is None:
            why = "the share does not answer" if silent else "it is missing"
            raise FormatError(
                f"expected the mask {sha256[:12]} in {self._folder_name / MASKS}, but {why}: it "
                "may still be on the computer of its reader, or was deleted"
            ) from silent
        return content

    # ------------------------------------------------------------------ claims

    def claim(self, place: str, reader: str) -> Claim:
        """Claim a case, or return the claim of another holder.

        An expired claim is taken over. While the share is unreachable, the claim is granted without
        a check, because a claim only avoids duplicate work.
        """
        asked = Claim(place, 1, *self.claim_holder(reader))
        try:
            lease_s = self.study.plan.lease_s
            return self._work_there(lambda folder: take_claim(folder / CLAIMS, asked, lease_s))
        except (FormatError, OSError) as error:
            self.trouble = str(error)
        return asked

    def claim_holder(self, reader: str) -> tuple[str, str, str]:
        """Return reader, host and session, which identify this program's claims for a reader."""
        with self._turn:
            writer = self._writer_of(reader)
        return reader, writer.host, writer.session

    def renew(self, claim: Claim) -> bool:
        """Renew a claim; return False if somebody else has taken it meanwhile."""
        try:
            return self._work_there(lambda folder: renew_claim(folder / CLAIMS, claim))
        except (FormatError, OSError) as error:
            self.trouble = str(error)
        return True

    def release(self, claim: Claim) -> None:
        """Release a claim; while the share is unreachable it expires by itself."""
        with suppress(FormatError, OSError):
            free = replace(claim, is_released=True)
            self._work_there(lambda folder: renew_claim(folder / CLAIMS, free))

    def list_claims(self) -> tuple[Claim, ...]:
        """Return the newest claim of each place, without released ones."""
        return self.visit(lambda folder: newest_claims(folder / CLAIMS))
