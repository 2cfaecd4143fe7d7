"""Storage of a study's events, masks and claims: the interface, and its shared-folder version.

The folder may be on a network share that is temporarily unreachable. An event is therefore first
written on this computer, and then sent to the folder immediately or later. `FolderStore.unsent`
counts waiting events. Events that a program left unsent, even after a crash, are sent by the next
program on the same computer. A file that was sent completely is moved to this computer's copy of
the study.

All access to the shared folder is a background task of `share`, so that a hanging share is treated
as unreachable.

A task that was abandoned because the share did not respond may still finish later. Therefore,
running a task twice has the same result as running it once.
"""

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from napari_mamamia.core.errors import FormatError, SaveConflictError, SaveError
from napari_mamamia.core.progress import listening, paced, report_progress
from napari_mamamia.features.review.core.review import Study
from napari_mamamia.features.review.io.share import Share, SilentShareError
from napari_mamamia.features.review.io.study_file import (
    COPY,
    EVENTS,
    STUDY_NAME,
    find_copy,
    hash_study,
    keep_copy,
    known_masks,
    list_missing,
    note_known,
    read_study,
)
from napari_mamamia.io.files.append_file import AppendFile
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.foreign import open_plain, reads
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.own_paths import new_path_in
from napari_mamamia.io.files.save import saving, write_text_atomically
from napari_mamamia.io.workspace.event_store import (
    Event,
    EventLog,
    EventProblem,
    EventWriter,
    name_session,
    read_events,
)
from napari_mamamia.io.workspace.workspace import MASK_SUFFIX, file_name

CLAIMS: Final = "claims"
_MOST_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim on a case, visible to others, with its holder; it does not guarantee exclusivity.

    `age_s` is the time since the last renewal, by the clock of the share.
    """

    place: str
    number: int
    reader: str
    host: str
    session: str
    age_s: float = 0.0
    is_released: bool = False


def take_claim(folder: Path, claim: Claim, lease_s: float) -> Claim:
    """Create a claim, or return another holder's claim whose lease has not expired.

    Raises
    ------
    SaveError, FormatError
        If the folder cannot be read or written.
    """
    latest = _find_newest(folder, claim.place)
    if latest is not None:
        if _is_same_holder(latest, claim):
            mine = replace(claim, number=latest.number)
            _write_claim(folder, mine, overwrite=True)
            return mine
        # A claim left by a crash of the same session on this computer is taken over.
        is_earlier_self = (latest.reader, latest.host) == (claim.reader, claim.host)
        if not (latest.is_released or is_earlier_self) and latest.age_s <= lease_s:
            return latest
        claim = replace(claim, number=latest.number + 1)
    try:
        _write_claim(folder, claim, overwrite=False)
    except SaveConflictError:
        return _find_newest(folder, claim.place) or claim
    return claim


def renew_claim(folder: Path, claim: Claim) -> bool:
    """Renew a claim held by this session; return False if somebody else has taken it over.

    Raises
    ------
    SaveError, FormatError
        If the folder cannot be read or written.
    """
    latest = _find_newest(folder, claim.place)
    if latest is not None and not _is_same_holder(latest, claim):
        return False
    _write_claim(folder, claim, overwrite=True)
    return True


def newest_claims(folder: Path) -> tuple[Claim, ...]:
    """Return the newest unreleased claim on each case or reading."""
    newest: dict[str, Path] = {}
    for path in sorted(folder.glob("*"), key=_number_of):
        if _number_of(path):
            newest[path.name.rpartition(".")[0]] = path
    now = _read_clock_of(folder) if newest else 0.0
    claims = (_read_claim(path, now) for _, path in sorted(newest.items()))
    return tuple(claim for claim in claims if not claim.is_released)


def _number_of(path: Path) -> int:
    number = path.name.rpartition(".")[2]
    return int(number) if number.isdecimal() and len(number) < 10 else 0


def _find_newest(folder: Path, place: str) -> Claim | None:
    paths = folder.glob(f"{file_name(place)}.*")
    path = max(paths, key=_number_of, default=None)
    if path is None or not _number_of(path):
        return None
    return _read_claim(path, _read_clock_of(folder))


def _write_claim(folder: Path, claim: Claim, *, overwrite: bool) -> None:
    content = {
        "reader": claim.reader,
        "host": claim.host,
        "session": claim.session,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "is_released": claim.is_released,
    }
    path = folder / f"{file_name(claim.place)}.{claim.number}"
    write_text_atomically(path, json.dumps(content), overwrite=overwrite)


def _read_clock_of(folder: Path) -> float:
    """Return the current time by the share's clock, which also determines the age of claims.

    This computer's clock is used if the share accepts no file.
    """
    probe = new_path_in(folder)
    try:
        with probe.open("xb"):
            return probe.stat().st_mtime
    except OSError:
        return time.time()
    finally:
        with suppress(OSError):
            probe.unlink(missing_ok=True)


@reads("a claim of a review study", "delete the file: it only shows who is working on the case")
def _read_claim(path: Path, now: float) -> Claim:
    place, _, number = path.name.rpartition(".")
    age_s = now - path.stat().st_mtime
    try:
        content = read_json(path, _MOST_BYTES)
    except ValueError:
        content = {}  # left empty by a crash; such a claim counts until its lease expires
    if not isinstance(content, dict):
        content = {}
    reader, host, session = (str(content.get(one, "")) for one in ("reader", "host", "session"))
    is_released = content.get("is_released") is True
    return Claim(place, int(number), reader, host, session, age_s, is_released)


def _is_same_holder(a: Claim, b: Claim) -> bool:
    return (a.reader, a.host, a.session) == (b.reader, b.host, b.session)


def write_mask_once(path: Path, content: bytes) -> None:
    """Write a file named by its hash, unless it already exists."""
    if path.exists() and path.stat().st_size == len(content):
        with suppress(FormatError):
            read_mask(path, path.name.removesuffix(MASK_SUFFIX))
            return
    # A damaged file is not replaced: `verify` reports it.
    with suppress(SaveConflictError), saving(path) as temporary:
        temporary.write_bytes(content)


def send_masks(source: Path, target: Path) -> str:
    """Move the masks in one folder to another, and return the name of a damaged mask, or "".

    A damaged mask is not moved.

    Raises
    ------
    OSError
        If the target folder cannot be written.
    """
    damage = ""
    for path in paced(sorted(source.glob(f"*{MASK_SUFFIX}")), "Sending masks"):
        try:
            content = read_mask(path, path.name.removesuffix(MASK_SUFFIX))
        except FormatError as error:
            damage = str(error)
            continue
        write_mask_once(target / path.name, content)
        path.unlink()
    return damage


def list_changed_masks(folder: Path) -> tuple[str, ...]:
    """Return the names of the files in a folder whose content does not match their SHA-256."""
    return tuple(
        path.name
        for path in paced(sorted(folder.glob("*")), "Reading masks")
        if not path.name.startswith(".")
        and (not path.is_file() or sha256_of(path) != path.name.removesuffix(MASK_SUFFIX))
    )


@reads("a mask of a review study", "restore the file from a backup, or read the case again")
def read_mask(path: Path, sha256: str) -> bytes:
    """Read a mask file and return its bytes.

    Raises
    ------
    FormatError
        If the SHA-256 of the bytes differs from the file name.
    """
    with open_plain(path) as stream:
        content = stream.read()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise FormatError(
            f"expected the SHA-256 of {path} to match its name, but the mask was changed: restore "
            "it from a backup, or read the case again"
        )
    return content


MASKS: Final = "masks"


def stat_study(folder: Path) -> os.stat_result:
    """Return the file status of the study file; raise OSError if the share is unreachable."""
    return (folder / STUDY_NAME).stat()


def read_study_events(folder: Path, origin: str, before: EventLog) -> tuple[bool, EventLog]:
    """Return whether the study file's hash is `origin`, and all events with their problems."""
    is_same = hash_study(folder) == origin
    log = read_events(folder / EVENTS, origin, before)
    if is_same:
        return True, log
    text = "the study file was changed after this program opened it"
    return False, replace(log, problems=(EventProblem(STUDY_NAME, text), *log.problems))


def require_same_study(
    folder: Path, origin: str, before: tuple[int, int, int] | None
) -> tuple[int, int, int]:
    """Check that a folder contains the same study; return size, time and inode of the study file.

    The modification time is in nanoseconds. With these values, a change is detected without reading
    the file.

    Raises
    ------
    OSError
        If the folder contains a different study than before.
    """
    status = stat_study(folder)
    stamp = (status.st_size, status.st_mtime_ns, status.st_ino)
    if stamp != before and hash_study(folder) != origin:
        raise SaveError(
            f"{folder / STUDY_NAME} was changed after this program opened it: nothing is sent "
            "there; your work stays on this computer"
        )
    return stamp


def read_waiting(folder: Path) -> dict[str, bytes]:
    """Return the complete lines of each unsent event file on this computer, by file name."""
    lines = {}
    for path in sorted(folder.rglob("*.jsonl")):
        with suppress(FileNotFoundError):  # another window has sent and removed the file
            whole = path.read_bytes()
            lines[path.relative_to(folder).as_posix()] = whole[: whole.rfind(b"\n") + 1]
    return lines


def send_all(
    home: Path, outbox: Mapping[str, bytes], sent: Mapping[str, int], folder: Path
) -> tuple[dict[str, int], str]:
    """Send the waiting masks, and then the waiting events, to the study's folder.

    Returns
    -------
    tuple
        Number of bytes of each file that the study has, and the error message, or "" for none.
    """
    trouble = send_masks(home / MASKS, folder / MASKS)
    lengths: dict[str, int] = {}
    for name, whole in outbox.items():
        report_progress(len(lengths), len(outbox), "Sending")
        try:
            is_known = sent.get(name) == len(whole) and (folder / EVENTS / name).exists()
            if whole and not is_known:
                _send_lines(folder / EVENTS / name, whole)
            lengths[name] = len(whole)
        except OSError as error:
            trouble = str(error)
    return lengths, trouble


def _send_lines(path: Path, whole: bytes) -> None:
    """Append the lines that are missing in the study's copy of this computer's event file.

    Raises
    ------
    OSError
        If the share rejects the write, or the study's copy differs from the local file; nothing is
        written in the latter case.
    """
    with AppendFile(path, keep=True) as there:
        with open_plain(there.path) as stream:
            before = stream.read()
        if not whole.startswith(before):
            raise SaveError(
                f"expected {there.path} to contain the data that this computer sent, but it "
                "differs: somebody copied the study or changed the file; keep both files"
            )
        if len(whole) > len(before):
            there.append(whole[len(before) :])
            there.sync(every_s=0.0)


def find_mask(path: Path, sha256: str) -> bytes | None:
    """Return the bytes of a mask file, or None if missing; raise `FormatError` if changed."""
    return read_mask(path, sha256) if path.exists() else None


def list_masks_in(folder: Path) -> frozenset[str]:
    """Return the SHA-256 in the name of each mask in a folder; empty if there is no such folder.

    `glob` is not used because it returns nothing for an unreadable folder (Python 3.13), so that
    all readings would seem to have no mask.
    """
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except FileNotFoundError:
        return frozenset()
    return frozenset(name.removesuffix(MASK_SUFFIX) for name in names if name.endswith(MASK_SUFFIX))


def list_masks_of_study(folder: Path) -> frozenset[str]:
    """Return the SHA-256 of each of a study's masks; raise OSError if the folder is unreadable."""
    stat_study(folder)
    return list_masks_in(folder / MASKS)


T = TypeVar("T")
_WAITS: Final = "on this computer"
_KNOWN_EVERY_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class StoreReading:
    """The visible content of a study at one time: events by chain, problems, and masks by SHA-256.

    `away` explains why some content is not visible now, or is "" if everything is visible. If it is
    not "", `masks` includes the masks that this computer has read before.
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
        """Return the number of events that other people cannot see yet."""

    def close(self) -> None:
        """Send the waiting events and masks if possible, and close local files."""

    def append(self, reader: str, body: Mapping[str, Any], seen: Iterable[str] = ()) -> Event:
        """Append an event durably, with the latest hash of each chain that its writer has seen."""

    def head_of(self, reader: str) -> str:
        """Return the hash of the event that will precede this program's next event by a reader."""

    def read(self) -> StoreReading:
        """Return all visible events, including unsent events of this computer."""

    def put_mask(self, content: bytes) -> str:
        """Store the bytes of a mask unless they are already stored, and return their SHA-256."""

    def get_mask(self, sha256: str) -> bytes:
        """Return the bytes of a mask; raise `FormatError` if it is missing or was changed."""

    def claim(self, place: str, reader: str) -> Claim:
        """Claim a case; if somebody else holds it, return the holder's claim.

        Compare `reader`, `host` and `session` to find out who holds the returned claim.
        """

    def renew(self, claim: Claim) -> bool:
        """Renew a claim; return False if somebody else has taken it over."""

    def release(self, claim: Claim) -> None:
        """Release a claim."""

    def list_claims(self) -> tuple[Claim, ...]:
        """Return the newest claim on each case or reading."""

    def claim_holder(self, reader: str) -> tuple[str, str, str]:
        """Return reader, host and session, which identify the claims that this program makes."""


class FolderStore:
    """A store in a study's shared folder, opened by one program; the package lists the files.

    Parameters
    ----------
    folder
        Folder of the study.
    home
        The local folder for events that have not been sent yet.
    host, session
        Identification of this program, set by tests; None for the default.

    Raises
    ------
    FormatError
        If the folder does not contain a study.
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
        """Return the local folder of events that have not been sent yet."""
        return self._home

    def read_frozen(self, read: Callable[[Path, Study], T]) -> T:
        """Return the result of `read(folder, study)` for the files that are frozen with the study.

        While the study's folder is unreachable, `read` gets this computer's copy of it. The errors
        are those of `visit` and `read`.
        """
        if self._copy is not None:
            return read(self._copy, self.study)
        return self.visit(lambda folder: read(folder, self.study))

    def visit(self, work: Callable[[Path], T]) -> T:
        """Run `work` on the study's folder and return the result; `work` must be stateless.

        Raises
        ------
        SilentShareError
            If the share does not respond; `work` may still finish later.
        """
        with listening(None):  # a half-finished step must not be cancelled
            return self.share.run(work)

    def keep_copy(self, *, is_due: bool = False) -> None:
        """Copy new content of the study to this computer, at most once a minute unless `is_due`.

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
        """Append an event on this computer's disk, and in the study's folder if that is reachable.

        Raises
        ------
        SaveError
            If this computer's disk cannot be written; the event is not recorded in that case.
        TypeError, ValueError
            If `body` is not JSON without floats.
        """
        with self._turn:
            writer = self._writer_of(reader)
            event = writer.append(body, seen)
            self.send()
            return event

    def head_of(self, reader: str) -> str:
        """Return the hash of the event that will precede this program's next event by a reader."""
        with self._turn:
            return self._writer_of(reader).head

    def read(self) -> StoreReading:
        """Return all visible events; if the share is unreachable, return the events read before."""
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
        """Send the waiting masks and events, and return the number of events that are still unsent.

        No error is raised if the share is unreachable, full or read-only. Sending is tried again
        next time, and `trouble` contains the error message, or "" if everything was sent.
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
        """Return the number of unsent events on this computer."""
        outbox = read_waiting(self._home / EVENTS)
        return sum(whole.count(b"\n", self._sent.get(name, 0)) for name, whole in outbox.items())

    def close(self) -> None:
        """Send the waiting events and masks if possible, and close local files."""
        with self._turn:
            for writer in self._writers.values():
                writer.close()
            self._writers.clear()
            self.send()
            self._noted_at = -_KNOWN_EVERY_S
            self.read()
            self.send_left()

    def send_left(self) -> None:
        """Send files that earlier programs left unsent, and move them to the local copy."""
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
                why = "the network share does not respond"
            raise SaveError(
                f"{self.share.place} cannot be reached ({why}): this is the local copy of the "
                "study; your work is sent when the folder is reachable again"
            ) from error

    def _work_there(self, work: Callable[[Path], T]) -> T:
        """Run `work` on the folder if it still contains the same study, and return the result.

        Raises
        ------
        OSError
            If the folder cannot be reached, or contains a different study than before.
        """
        self._require_share()
        origin, before = self.origin, self._same

        def do(folder: Path) -> tuple[tuple[int, int, int], T]:
            return require_same_study(folder, origin, before), work(folder)

        self._same, result = self.visit(do)
        return result

    def _open_study(self, home: Path) -> tuple[Study, str, Path | None]:
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
        """Store a mask in the study's folder, or on this computer if the share is unreachable.

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
        """Return the bytes of a mask; raise `FormatError` if missing, changed or unreachable."""
        name = f"{file_name(sha256)}{MASK_SUFFIX}"
        silent: SilentShareError | None = None
        try:
            content = self.visit(lambda folder: find_mask(folder / MASKS / name, sha256))
        except SilentShareError as error:
            content, silent = None, error
        content = content or find_mask(self._home / MASKS / name, sha256)
        if content is None:
            why = "the network share does not respond" if silent else "it is missing"
            raise FormatError(
                f"expected the mask {sha256[:12]} in {self._folder_name / MASKS}, but {why}: it "
                "may still be on its reader's computer, or it was deleted"
            ) from silent
        return content

    # ------------------------------------------------------------------ claims

    def claim(self, place: str, reader: str) -> Claim:
        """Claim a case; if somebody else holds it, return the holder's claim.

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
        """Return reader, host and session, which identify the claims that this program makes."""
        with self._turn:
            writer = self._writer_of(reader)
        return reader, writer.host, writer.session

    def renew(self, claim: Claim) -> bool:
        """Renew a claim; return False if somebody else has taken it over."""
        try:
            return self._work_there(lambda folder: renew_claim(folder / CLAIMS, claim))
        except (FormatError, OSError) as error:
            self.trouble = str(error)
        return True

    def release(self, claim: Claim) -> None:
        """Release a claim; if the share is unreachable, the claim expires by itself."""
        with suppress(FormatError, OSError):
            free = replace(claim, is_released=True)
            self._work_there(lambda folder: renew_claim(folder / CLAIMS, free))

    def list_claims(self) -> tuple[Claim, ...]:
        """Return the newest claim on each case or reading, excluding released claims."""
        return self.visit(lambda folder: newest_claims(folder / CLAIMS))
