"""Readers' tags of cases: implant, clip, non-mass enhancement, artefact or free text."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from napari_mamamia.core.blinding import Hidden
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.records import CaseTag
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.workspace.case_tags import append_tag, read_tag_notes
from napari_mamamia.io.workspace.workspace import Workspace, file_name

KNOWN_TAGS: Final = ("implant", "clip", "non-mass enhancement", "artefact")
"""Frequent causes of failure in the challenge. Source: arXiv 2603.01250v2, qualitative failures."""

MOST_LETTERS: Final = 80
"""Largest length of a tag, which fits a table and a group name. Our choice."""

SEPARATOR: Final = "; "


def tag_case(workspace: Workspace, reader: str, case_id: str, tag: str, on: bool = True) -> CaseTag:
    """Add or remove a reader's tag of a case, and return it as recorded.

    Each reader has separate tags, so removing a tag does not affect other readers. Adding an
    existing tag or removing a missing tag changes nothing. The tag is on disk when the function
    returns, which takes a few ms.

    Parameters
    ----------
    workspace
        The workspace with the tags.
    reader, case_id
        The name of the reader and the id of the case.
    tag
        One of `KNOWN_TAGS`, or a few words of free text. Letter case is ignored, and blanks are
        collapsed.
    on
        True to add the tag, False to remove it.

    Raises
    ------
    CaseError
        If `tag` is empty, too long, or contains a semicolon or control character; or `reader` or
        `case_id` is not a valid name.
    SaveError
        If the tag cannot be saved.
    """
    who = file_name(reader, "the name of a reader")
    case = file_name(case_id, "a case id")
    case_tag = append_tag(workspace.root, who, case, _clean_tag(tag), on=on)
    workspace.note_data_set()
    return case_tag


def read_tags(workspace: Workspace) -> tuple[CaseTag, ...]:
    """Return the tags of all readers in the order in which they were added.

    If other readers are hidden, only the tags of the workspace's reader are returned.

    Raises
    ------
    FormatError
        If the file exists but cannot be read.
    """
    tags = read_tag_notes(workspace.root)
    if workspace.blinding.hides(Hidden.OTHER_READERS):
        return tuple(tag for tag in tags if tag.reader == workspace.reader)
    return tags


def tags_of(workspace: Workspace, case_ids: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the tags of all readers by case id, for the cases with tags.

    Case ids are compared ignoring letter case. Predefined tags come first in their order,
    followed by free text in alphabetical order.
    """
    by_key: dict[str, list[str]] = {}
    for tag in read_tags(workspace):
        by_key.setdefault(case_key(tag.case_id), []).append(tag.tag)
    return {
        case_id: _in_order(by_key[case_key(case_id)])
        for case_id in case_ids
        if case_key(case_id) in by_key
    }


def joined_tags(tags: Iterable[str]) -> str:
    """Return tags as one cell of a table.

    Examples
    --------
    >>> joined_tags(["implant", "clip"])
    'implant; clip'
    """
    return SEPARATOR.join(tags)


def split_tags(cell: str) -> tuple[str, ...]:
    """Return the tags in a table cell made by `joined_tags`."""
    return tuple(cell.split(SEPARATOR)) if cell else ()


def _in_order(tags: Iterable[str]) -> tuple[str, ...]:
    by_key = {tag.casefold(): tag for tag in tags}
    standard_tags = [tag for tag in KNOWN_TAGS if tag in by_key]
    return (*standard_tags, *sorted(tag for key, tag in by_key.items() if key not in KNOWN_TAGS))


def _clean_tag(tag: str) -> str:
    """Return a tag in its normal spelling, with single blanks; raise `CaseError` if invalid."""
    text = " ".join(unicodedata.normalize("NFC", tag).split())
    reason = ""
    if not text:
        reason = "is empty"
    elif len(text) > MOST_LETTERS:
        reason = f"has {len(text)} letters, more than {MOST_LETTERS}"
    elif ";" in text:
        reason = "contains a semicolon, which separates tags in tables"
    elif any(unicodedata.category(letter) in {"Cc", "Cs", "Co"} for letter in text):
        reason = "contains a control character"
    if reason:
        raise CaseError(
            f"expected a tag of a few words, but got {tag[:MOST_LETTERS]!r}, which {reason}: "
            "shorten or correct the tag"
        )
    return text.casefold() if text.casefold() in KNOWN_TAGS else text
