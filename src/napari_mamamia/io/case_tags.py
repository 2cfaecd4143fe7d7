"""What readers noted of whole cases: one file in the workspace that is only ever added to.

Each line says that a reader set or took back one tag of one case, and when. So nothing that
anybody noted is lost by a crash, and two windows on one workspace do not undo each other.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import SaveConflictError
from napari_mamamia.core.records import CaseTag
from napari_mamamia.io.checked_lines import CheckedLines, read_checked_lines
from napari_mamamia.io.phase_files import case_key

__all__ = ["TAGS_NAME", "append_tag", "read_tag_file"]

TAGS_NAME: Final = "case_tags.jsonl"

_TRIES: Final = 20
_PAUSE_S: Final = 0.02
"""Another window holds the file for the few milliseconds of its own line."""


def append_tag(path: Path, tag: CaseTag, *, on: bool) -> None:
    """Add one line to the file at `path`, made if missing: the tag is set, or taken back.

    The line is on the disk when this returns.

    Raises
    ------
    SaveConflictError
        If another process keeps the file to itself for longer than 0.4 s.
    SaveError
        If the system refuses to write; earlier lines stay.
    """
    entry = {
        "case_id": tag.case_id,
        "tag": tag.tag,
        "reader": tag.reader,
        "created": tag.created,
        "on": on,
    }
    for left in range(_TRIES - 1, -1, -1):
        try:
            with CheckedLines(path, keep=True) as lines:
                lines.append(entry)
        except SaveConflictError:
            if not left:
                raise
            time.sleep(_PAUSE_S)
        else:
            return


def read_tag_file(path: Path) -> tuple[CaseTag, ...]:
    """Return the tags that are set, in the order of their setting; none where there is no file.

    Of the lines of one case, tag and reader the last counts; letter case does not part them. Torn
    and damaged lines are passed over, and lines of another form, such as those of a later version.

    Raises
    ------
    FormatError
        If the file is there but cannot be read.
    """
    if not path.exists():
        return ()
    found: dict[tuple[str, str, str], CaseTag] = {}
    for entry in read_checked_lines(path):
        tag = _tag(entry)
        if tag is None:
            continue
        key = (case_key(tag.case_id), tag.tag.casefold(), tag.reader)
        if entry["on"] is True:
            found.setdefault(key, tag)
        else:
            found.pop(key, None)
    return tuple(found.values())


def _tag(entry: Any) -> CaseTag | None:
    """Return what a line says, None for a line of another form."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("on"), bool):
        return None
    values = [entry.get(name) for name in ("case_id", "tag", "reader", "created")]
    texts = [value for value in values if isinstance(value, str)]
    return CaseTag(*texts) if len(texts) == len(values) else None
