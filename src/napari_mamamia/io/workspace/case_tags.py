"""Readers' tags on cases, stored as one event for each change.

Each run of the program writes its own file in the workspace's folder ``case_tags``, so no tag is
lost, and two windows never wait for each other (see `event_store`).
"""

import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.records import CaseTag
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.workspace.event_store import Event, EventWriter, read_events

TAGS_FOLDER: Final = "case_tags"

_one_at_a_time: Final = threading.Lock()
"""Lock for the threads of a program, which share one file."""


def append_tag(workspace: Path, reader: str, case_id: str, tag: str, *, on: bool) -> CaseTag:
    """Record that a reader set or removed a tag; return the tag with its time.

    The event is on the disk when the function returns.

    Raises
    ------
    CaseError
        If `reader` cannot name a folder.
    SaveError
        If the event cannot be written. Earlier tags remain.
    """
    folder = workspace / TAGS_FOLDER
    with _one_at_a_time, EventWriter(folder, reader) as writer:
        seen = _last_about(folder, case_id, tag)
        event = writer.append({"case_id": case_id, "tag": tag, "on": on}, seen)
    return CaseTag(case_id, tag, reader, event.at)


@reads("case tags", "check the folder case_tags of the workspace")
def read_tag_notes(workspace: Path) -> tuple[CaseTag, ...]:
    """Return the current tags in the order in which they were set; empty if there are none.

    For each case, tag and reader, ignoring letter case, the last event counts. Incomplete and
    damaged lines, and lines from later versions, are skipped.

    Raises
    ------
    FormatError
        If an existing file cannot be read.
    """
    events = read_events(workspace / TAGS_FOLDER).events
    entries = [{**event.body, "reader": event.reader, "created": event.at} for event in events]
    tags: dict[tuple[str, str, str], CaseTag] = {}
    for entry in entries:
        tag = _parse_tag(entry)
        if tag is None:
            continue
        key = (case_key(tag.case_id), tag.tag.casefold(), tag.reader)
        if entry["on"] is True:
            tags.setdefault(key, tag)
        else:
            tags.pop(key, None)
    return tuple(tags.values())


def _last_about(folder: Path, case_id: str, tag: str) -> tuple[str, ...]:
    """Return the hash of the last event about a case and tag, which a new event must follow.

    If a file cannot be read, the clocks determine the order, and the tag is still recorded.
    """
    with suppress(FormatError):
        key = (case_key(case_id), tag.casefold())
        about = [event.hash for event in read_events(folder).events if _read_key(event) == key]
        return tuple(about[-1:])
    return ()


def _read_key(event: Event) -> tuple[str, str]:
    return case_key(str(event.body.get("case_id"))), str(event.body.get("tag")).casefold()


def _parse_tag(entry: Any) -> CaseTag | None:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("on"), bool):
        return None
    values = [entry.get(name) for name in ("case_id", "tag", "reader", "created")]
    texts = [value for value in values if isinstance(value, str)]
    return CaseTag(*texts) if len(texts) == len(values) else None
