"""Readers' measurements, stored as an event for each one drawn or removed.

As for tags, each run of the program writes its own file in the workspace's folder ``measurements``,
so nothing is lost and two windows never wait for each other (see `event_store`). Coordinates are
decimal strings with a precision of a thousandth of a millimetre, so that every computer reads the
same value.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import ArgumentError
from napari_mamamia.core.measurement import MeasureKind, Measurement, PointMm
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.workspace.event_store import Event, EventProblem, EventWriter, read_events

MEASUREMENTS_FOLDER: Final = "measurements"
_SCHEMA: Final = 1

_one_at_a_time: Final = threading.Lock()
"""Lock for the threads of a program, which share one file."""


@dataclass(frozen=True, slots=True)
class MeasurementRecord:
    """The measurements in a workspace, in the order in which they were drawn.

    `problems` describe damaged lines, and `n_newer` counts events from a later version. Both are
    skipped.
    """

    items: tuple[Measurement, ...] = ()
    problems: tuple[EventProblem, ...] = ()
    n_newer: int = 0


def append_measurement(workspace: Path, measurement: Measurement) -> Measurement:
    """Save a measurement of `measurement.reader`; return it with its id and time.

    The event is on the disk when the function returns.

    Raises
    ------
    CaseError
        If the reader cannot name a folder.
    SaveError
        If the event cannot be written. Earlier events remain.
    """
    points = [[f"{mm:.3f}" for mm in point] for point in measurement.points_mm]
    body = {
        "case_id": measurement.case_id,
        "kind": measurement.kind.value,
        "lesion": measurement.lesion,
        "phase": measurement.phase,
        "plane": measurement.plane,
        "points_mm": points,
        "text": measurement.text,
    }
    event = _append_event(workspace, measurement.reader, {"add": body, "version": _SCHEMA})
    return replace(
        measurement,
        points_mm=tuple(
            map(_parse_point, points)
        ),  # The measurement has the form in which it will be read.
        measurement_id=event.hash,
        created=event.at,
    )


def take_back_measurement(workspace: Path, measurement: Measurement) -> None:
    """Record that a reader removed a measurement; the measurement stays in the file.

    Raises
    ------
    CaseError, SaveError
        As in `append_measurement`.
    """
    body = {"remove": measurement.measurement_id, "version": _SCHEMA}
    _append_event(workspace, measurement.reader, body, (measurement.measurement_id,))


@reads("readers' measurements", "check the folder measurements of the workspace")
def read_measurements(workspace: Path, case_id: str | None = None) -> MeasurementRecord:
    """Return the current measurements on one case or on all cases; empty if there are none.

    Readers can remove only their own measurements. Incomplete and damaged lines are skipped.

    Raises
    ------
    FormatError
        If an existing file cannot be read.
    """
    log = read_events(workspace / MEASUREMENTS_FOLDER)
    events = log.events
    current = [event for event in events if event.body.get("version") == _SCHEMA]
    gone = {(one.reader, str(one.body.get("remove"))) for one in current}
    items = (_parse_event(one) for one in current if (one.reader, one.hash) not in gone)
    key = None if case_id is None else case_key(case_id)
    return MeasurementRecord(
        tuple(item for item in items if item and (key is None or case_key(item.case_id) == key)),
        log.problems,
        len(events) - len(current),
    )


def _append_event(
    workspace: Path, reader: str, body: Mapping[str, Any], seen: tuple[str, ...] = ()
) -> Event:
    folder = workspace / MEASUREMENTS_FOLDER
    with _one_at_a_time, EventWriter(folder, reader) as writer:
        return writer.append(body, seen)


def _parse_event(event: Event) -> Measurement | None:
    body = event.body.get("add")
    if not isinstance(body, Mapping):
        return None
    words = [body.get(name) for name in ("case_id", "kind", "plane", "lesion", "text")]
    points, phase = body.get("points_mm"), body.get("phase")
    if not all(isinstance(word, str) for word in words) or not isinstance(points, list):
        return None
    if phase is not None and type(phase) is not int:
        return None
    case_id, kind, plane, lesion, text = map(str, words)
    try:
        return Measurement(
            case_id,
            MeasureKind(kind),
            tuple(_parse_point(point) for point in points),
            plane,
            phase,
            lesion,
            text,
            event.reader,
            event.hash,
            event.at,
        )
    except (ArgumentError, ValueError, TypeError, OverflowError):
        return None


def _parse_point(point: Any) -> PointMm:
    if not isinstance(point, list) or not all(isinstance(mm, str) and len(mm) < 40 for mm in point):
        raise ValueError(
            f"expected a point to be three decimal strings, but it is {str(point)[:60]}"
        )
    x, y, z = map(float, point)
    return x, y, z
