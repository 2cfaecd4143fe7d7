"""Readers' findings, stored as an event for each answer or landmark that changes.

As for tags, each run of the program writes its own file in the workspace's folder ``findings`` (see
`event_store`). An event contains only changes, so two windows of one reader do not overwrite each
other. Answers have the same form as in a study reading, so ids from a later lexicon are kept.
Coordinates are decimal strings in mm.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from napari_mamamia.core.answers import (
    NOTHING_MARKED,
    Landmark,
    Landmarks,
    MarkedPoint,
    PointMm,
    Side,
)
from napari_mamamia.core.errors import ArgumentError
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.workspace.event_store import Event, EventWriter, read_events

FINDINGS_FOLDER: Final = "findings"
_VERSION: Final = 1
_LONGEST_PLACE: Final = 40
FindingsKey: TypeAlias = tuple[str, str]
"""Key of the findings of one reader on one case: the `case_key` and the reader."""

_one_at_a_time: Final = threading.Lock()
"""Lock for the threads of a program, which share one file."""


@dataclass(frozen=True, slots=True)
class FindingsChange:
    """Changes to the findings on a case.

    Parameters
    ----------
    form
        Name, edition and SHA-256 of the form that was answered.
    answers
        New answers by question and location, in the form used in reading events.
    computed
        Those `answers` that the program filled in.
    removed
        Questions and locations whose answers were removed.
    centres
        Centres of the lesions with answers, by lesion number, in RAS mm.
    points
        Landmarks that were marked or removed.
    """

    form: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[str, Any] = field(default_factory=dict)
    computed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    centres: Mapping[str, PointMm] = field(default_factory=dict)
    points: tuple[MarkedPoint, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to save."""
        return not (self.answers or self.removed or self.points)


@dataclass(frozen=True, slots=True)
class FindingsRecord:
    """The current findings of a reader on a case.

    `at` is the time of the last event. `problems` describe damaged lines in the whole folder, and
    `n_newer` counts events from a later version. Both are skipped and reported.
    """

    case_id: str = ""
    reader: str = ""
    form: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[str, Any] = field(default_factory=dict)
    computed: tuple[str, ...] = ()
    centres: Mapping[str, PointMm] = field(default_factory=dict)
    landmarks: Landmarks = NOTHING_MARKED
    at: str = ""
    problems: tuple[str, ...] = ()
    n_newer: int = 0


def append_findings(workspace: Path, reader: str, case_id: str, change: FindingsChange) -> None:
    """Save changes to a reader's findings on a case, and force them to the disk.

    Raises
    ------
    CaseError
        If `reader` cannot name a folder.
    SaveError
        If the event cannot be written. Earlier events remain.
    """
    body = {
        "version": _VERSION,
        "case_id": case_id,
        "form": dict(change.form),
        "answers": dict(change.answers),
        "computed": sorted(change.computed),
        "removed": sorted(change.removed),
        "centres_mm": {name: _write_point(point) for name, point in change.centres.items()},
        "points": [_write_mark(point) for point in change.points],
    }
    with _one_at_a_time, EventWriter(workspace / FINDINGS_FOLDER, reader) as writer:
        # The event follows all events that this computer can see, regardless of its clock.
        heads = read_events(workspace / FINDINGS_FOLDER).heads
        writer.append(body, heads)


def _write_point(point: PointMm) -> list[str]:
    return [f"{mm:.3f}" for mm in point]


def _write_mark(one: MarkedPoint) -> dict[str, Any]:
    point = None if one.point_mm is None else _write_point(one.point_mm)
    return {"landmark": one.landmark.value, "side": one.side.value, "point_mm": point}


@reads("readers' findings", "check the folder findings of the workspace")
def read_findings(workspace: Path) -> Mapping[FindingsKey, FindingsRecord]:
    """Return the current findings of every reader on every case; empty if there are none.

    The last answer of a reader to a question about a location counts. Incomplete and damaged lines,
    and lines from a later version, are skipped.

    Raises
    ------
    FormatError
        If an existing file cannot be read.
    """
    log = read_events(workspace / FINDINGS_FOLDER)
    events = log.events
    problems = tuple(f"{problem.path}: {problem.text}" for problem in log.problems)
    current = [event for event in events if event.body.get("version") == _VERSION]
    records: dict[FindingsKey, FindingsRecord] = {}
    for event in current:
        case_id = event.body.get("case_id")
        if isinstance(case_id, str):
            key = (case_key(case_id), event.reader)
            before = records.get(key) or FindingsRecord(case_id, event.reader)
            records[key] = _add_event(before, event)
    n_newer = len(events) - len(current)
    return {
        key: replace(record, problems=problems, n_newer=n_newer) for key, record in records.items()
    }


def count_findings_problems(workspace: Path) -> tuple[int, int]:
    """Return the number of damaged lines and of events from later versions in all findings."""
    log = read_events(workspace / FINDINGS_FOLDER)
    newer = [event for event in log.events if event.body.get("version") != _VERSION]
    return len(log.problems), len(newer)


def _add_event(record: FindingsRecord, event: Event) -> FindingsRecord:
    body = event.body
    answers, computed = dict(record.answers), set(record.computed)
    mapping = _read_mapping(body.get("answers"))
    for key in (*mapping, *_list_texts(body.get("removed"))):
        answers.pop(key, None)
        computed.discard(key)
    answers |= mapping
    computed |= set(_list_texts(body.get("computed"))) & set(mapping)
    centres = {
        name: point
        for name, value in _read_mapping(body.get("centres_mm")).items()
        if (point := _parse_point(value)) is not None
    }
    landmarks = record.landmarks
    points = body.get("points")
    for value in points if isinstance(points, list) else ():
        mark = _parse_mark(value)
        landmarks = landmarks if mark is None else landmarks.put(mark)
    form = {name: str(text) for name, text in _read_mapping(body.get("form")).items()}
    return replace(
        record,
        form=form or record.form,
        answers=answers,
        computed=tuple(sorted(computed)),
        centres={**record.centres, **centres},
        landmarks=landmarks,
        at=event.at,
    )


def _read_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list_texts(value: object) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def _parse_point(value: object) -> PointMm | None:
    if not isinstance(value, list) or len(value) != 3:
        return None
    if not all(isinstance(mm, str) and len(mm) < _LONGEST_PLACE for mm in value):
        return None
    try:
        x, y, z = map(float, value)
        MarkedPoint(
            Landmark.NIPPLE, Side.RIGHT, (x, y, z)
        )  # NaN and points that are kilometres away are rejected.
    except (ValueError, ArgumentError):
        return None
    return x, y, z


def _parse_mark(value: object) -> MarkedPoint | None:
    entry = _read_mapping(value)
    point = entry.get("point_mm")
    where = None if point is None else _parse_point(point)
    if "point_mm" not in entry or (where is None) is not (point is None):
        return None
    try:
        return MarkedPoint(
            Landmark(str(entry.get("landmark"))), Side(str(entry.get("side"))), where
        )
    except (ValueError, ArgumentError):
        return None
