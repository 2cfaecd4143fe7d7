"""The study file, which is written once, and a reader's files on this computer.

::

    desk/STUDY_ID/work/READER/ROUND-KIND/    workspace: masks and journals of a round
    desk/STUDY_ID/drafts/READER/CASE.ROUND-KIND.json    answers not yet submitted
    desk/STUDY_ID/images.json                location of the images on this computer
    desk/STUDY_ID/known.json                 hashes last read from the study
    desk/STUDY_ID/copy/                      study.json, its frozen files, and all events

Each round, hidden repeat and adjudicator's mask has its own workspace, so that earlier drawings are
not visible. The copy is used only while the study's folder is unreachable.
"""

import hashlib
import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.blinding import Blinding
from napari_mamamia.core.errors import FormatError, MamamiaError, SaveError
from napari_mamamia.core.program.garbage import uncollected
from napari_mamamia.core.progress import paced
from napari_mamamia.features.review.core.review import Study, StudyPlan, Task
from napari_mamamia.features.review.io.share import Share
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.csv_text import from_csv_text
from napari_mamamia.io.files.foreign import open_plain, reads
from napari_mamamia.io.files.json_text import MOST_BYTES, parsed_json, read_json
from napari_mamamia.io.files.record_codec import Form, Layout, RecordCodec
from napari_mamamia.io.files.save import saving, write_text_atomically
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.io.workspace.event_store import Event, EventProblem
from napari_mamamia.io.workspace.workspace import file_name

STUDY_NAME: Final = "study.json"
_SCHEMA_KEY: Final = "mamamia_study"
_SCHEMA: Final = 1
_REMEDY: Final = "restore the original file from a backup or a colleague"

_BLINDING: Final = Form(lambda one: list(one.names), Blinding.of)
_CODEC: Final = RecordCodec(Study, _REMEDY, (Layout(StudyPlan, forms={"blinding": _BLINDING}),))


def write_study(folder: Path, study: Study) -> str:
    """Write the file of a new study, and return its SHA-256.

    Raises
    ------
    SaveConflictError
        If the folder already contains a study.
    SaveError
        If the system does not allow writing.
    """
    content = {_SCHEMA_KEY: _SCHEMA, **_CODEC.plain(study)}
    text = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
    write_text_atomically(folder / STUDY_NAME, text)
    return hashlib.sha256(text.encode()).hexdigest()


@reads("a review study", _REMEDY)
def read_study(folder: Path) -> tuple[Study, str]:
    """Read the study in a folder; also return the SHA-256 of the study file.

    Raises
    ------
    FormatError
        If there is no study, or its file does not have this software's format.
    """
    path = folder / STUDY_NAME
    try:
        with open_plain(path) as stream:
            data = stream.read(MOST_BYTES)
    except OSError as error:
        raise FormatError(
            f"expected a review study at {folder}, but {STUDY_NAME} cannot be read "
            f"({error.strerror or error}): choose the folder that `mamamia review init` created, "
            "and check that the network share is available"
        ) from error
    with uncollected():
        return _parse_study(data, path), hashlib.sha256(data).hexdigest()


def _parse_study(data: bytes, path: Path) -> Study:
    content = parsed_json(data.decode("utf-8"))
    if not isinstance(content, dict) or content.pop(_SCHEMA_KEY, None) != _SCHEMA:
        raise FormatError(
            f"expected a review study of version {_SCHEMA} at {path}, but found other content: "
            "update this software, or choose another folder"
        )
    return _CODEC.record(content, path)


@reads("a review study", _REMEDY)
def hash_study(folder: Path) -> str:
    """Return the SHA-256 of a study file without parsing it."""
    with open_plain(folder / STUDY_NAME) as stream:
        return hashlib.sha256(stream.read(MOST_BYTES)).hexdigest()


@reads("a list of case ids, one per line", "write one id on each line")
def read_case_list(path: Path) -> tuple[str, ...]:
    """Read distinct case ids from a text file, skipping empty lines and comments (#).

    A leading apostrophe, which protects a formula in this program's tables, is removed.
    """
    with open_plain(path) as stream:
        lines = stream.read(MOST_BYTES).decode("utf-8-sig").splitlines()
    stripped = (line.strip() for line in lines)
    ids = (from_csv_text(line) for line in stripped if line and not line.startswith("#"))
    return tuple(dict.fromkeys(ids))


EVENTS: Final = "events"
KNOWN: Final = "known.json"
COPY: Final = "copy"
_MOST_BYTES: Final = 4 << 20
_IMAGES: Final = "images.json"
JUDGE: Final = "judge"


@dataclass(frozen=True, slots=True)
class Draft:
    """The answers and working time of a reading that has not been submitted yet."""

    answers: dict[str, Any] = field(default_factory=dict)
    active_s: int = 0


NO_DRAFT: Final = Draft()


class ClientFiles:
    """The files that belong to one study on this computer.

    Parameters
    ----------
    home
        This computer's folder for all studies.
    study_id
        Id of the study.
    """

    def __init__(self, home: Path, study_id: str) -> None:
        self._root = home / file_name(study_id, "a study's id")
        self._draft_turn = threading.Lock()
        self._newest_drafts: dict[Path, int] = {}

    def work_folder(self, reader: str, round_: int, kind: str) -> Path:
        """Return the workspace for a reader's round; `kind` is an occasion or `JUDGE`."""
        return self._root / "work" / file_name(reader, "a reader") / file_name(f"{round_}-{kind}")

    def read_draft(self, task: Task, round_: int) -> Draft:
        """Return the saved draft for a task, or an empty draft if it is missing or unreadable."""
        try:
            content = read_json(self._draft_path(task, round_), _MOST_BYTES)
        except (OSError, ValueError, RecursionError):
            return Draft()
        if not isinstance(content, dict):
            return Draft()
        answers, seconds = content.get("answers"), content.get("active_s")
        return Draft(
            answers if isinstance(answers, dict) else {},
            seconds if type(seconds) is int and seconds >= 0 else 0,
        )

    def write_draft(self, task: Task, round_: int, draft: Draft, number: int | None = None) -> None:
        """Save the draft for a task.

        `number` increases with every answer, so that a late draft does not replace a newer draft.
        With None, the draft is always saved.

        Raises
        ------
        SaveError
            If this computer's disk cannot be written.
        """
        path = self._draft_path(task, round_)
        content = {"answers": draft.answers, "active_s": draft.active_s}
        with self._draft_turn:
            if number is not None and number < self._newest_drafts.get(path, number):
                return
            write_json(content, path, overwrite=True)
            if number is not None:
                self._newest_drafts[path] = number

    def read_images(self) -> Path | None:
        """Return the folder of the images on this computer, or None if it is not set."""
        try:
            content = read_json(self._root / _IMAGES, _MOST_BYTES)
        except (OSError, ValueError, RecursionError):
            return None
        place = content.get("data_set") if isinstance(content, dict) else None
        return Path(place) if isinstance(place, str) and place else None

    def write_images(self, place: Path) -> None:
        """Save the folder of the images on this computer; the errors are those of `write_draft`."""
        write_json({"data_set": str(place)}, self._root / _IMAGES, overwrite=True)

    def _draft_path(self, task: Task, round_: int) -> Path:
        name = f"{file_name(task.case)}.{round_}-{task.occasion}.json"
        return self._root / "drafts" / file_name(task.reader, "a reader") / name


# ---------------------------------------------------------- while a study is away


def find_copy(folder: Path, home: Path) -> tuple[Study, str, Path] | None:
    """Find the newest local copy of a folder's study; return study, hash and path, or None.

    A copy whose study file differs from the file that was read before is ignored.
    """
    here = str(folder.absolute())
    places = [path.parent for path in home.glob(f"*/{KNOWN}")]
    for place in sorted(places, key=lambda one: (one / KNOWN).stat().st_mtime, reverse=True):
        before = read_known(place)
        with suppress(FormatError):
            if before.get("folder") == here:
                study, origin = read_study(place / COPY)
                if origin == before.get("origin"):
                    return study, origin, place / COPY
    return None


def keep_copy(folder: Path, study: Study, place: Path) -> None:
    """Update the local copy of a study, skipping files that cannot be read or written now.

    Event files with the same size as in the copy are not read again.
    """
    for name in (STUDY_NAME, *(file.name for file in study.files)):
        with suppress(OSError, MamamiaError):
            _copy_file(folder / file_name(name), place / COPY / file_name(name))
    for path in paced((folder / EVENTS).rglob("*.jsonl"), "Copying the study"):
        copy = place / COPY / EVENTS / path.relative_to(folder / EVENTS)
        with suppress(OSError, MamamiaError):
            if not copy.exists() or copy.stat().st_size != path.stat().st_size:
                _copy_file(path, copy)


def _copy_file(source: Path, target: Path) -> None:
    with open_plain(source) as stream:
        content = stream.read()
    if target.exists() and sha256_of(target) == hashlib.sha256(content).hexdigest():
        return
    with saving(target, overwrite=True) as temporary:
        temporary.write_bytes(content)


def read_known(place: Path) -> dict[str, Any]:
    """Return what this computer has stored about a study, or an empty dict if it is unreadable."""
    try:
        content = read_json(place / KNOWN)
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def known_masks(place: Path) -> frozenset[str]:
    """Return the SHA-256 of the masks that existed when this computer last read the study."""
    names = read_known(place).get("masks")
    return frozenset(map(str, names)) if isinstance(names, list) else frozenset()


def note_known(
    place: Path,
    folder: Path,
    origin: str,
    masks: Iterable[str],
    chains: Mapping[str, Sequence[Event]],
) -> None:
    """Store the current masks and latest event hashes, so that later losses can be detected."""
    heads = {name: [events[-1].seq, events[-1].hash] for name, events in chains.items() if events}
    before = read_known(place).get("heads", {})
    missed = {name: before[name] for name, _ in _find_lost(before, chains)}
    about = {"folder": str(folder.absolute()), "origin": origin, "masks": sorted(masks)}
    content = {**about, "heads": {**heads, **missed}}
    with suppress(SaveError):
        write_text_atomically(place / KNOWN, json.dumps(content), overwrite=True)


def list_missing(
    place: Path, folder: Path, origin: str, chains: Mapping[str, Sequence[Event]]
) -> tuple[EventProblem, ...]:
    """Describe content that this computer has read before but that is now missing in a study."""
    before = read_known(place)
    problems = []
    if before.get("origin", origin) != origin:
        text = "this computer has recorded a different study file with the same study id"
        problems.append(EventProblem(STUDY_NAME, text))
    here = Path(str(before.get("folder", folder.absolute())))
    where = "" if here == folder.absolute() else f" (this computer last found the study at {here})"
    for name, seq in _find_lost(before.get("heads", {}), chains):
        text = f"event {seq}, which this computer had read, is missing{where}"
        problems.append(EventProblem(name, text))
    return tuple(problems)


def _find_lost(
    heads: Mapping[str, Any], chains: Mapping[str, Sequence[Event]]
) -> list[tuple[str, int]]:
    lost = []
    for name, head in heads.items():
        if not isinstance(head, list) or len(head) != 2:
            continue
        events = chains.get(name, ())
        seq, digest = head
        index = seq if isinstance(seq, int) and 0 <= seq < len(events) else -1
        is_there = index >= 0 and events[index].hash == digest
        if not is_there and not any(event.hash == digest for event in events):
            lost.append((name, seq))
    return lost


def is_study(folder: Path) -> bool:
    """Return whether a folder contains a review study; wait for at most one second.

    Raises
    ------
    SilentShareError
        If the share does not respond within this time.
    """
    return Share(folder, answer_s=1.0).look(lambda place: (place / STUDY_NAME).is_file())
