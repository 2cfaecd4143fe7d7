"""What names tell: the ends of volume files, and that two spellings mean one case."""

import unicodedata
from typing import Final

VOLUME_SUFFIXES: Final = (".nii.gz", ".nii", ".nrrd")
"""Ends of names of volume files, in lower case; the longest that fits comes first."""


def file_stem(name: str) -> str | None:
    """Return a volume file's name without its suffix, None where it is no volume file.

    Examples
    --------
    >>> file_stem("DUKE_001.nii.gz"), file_stem("DUKE_001.json")
    ('DUKE_001', None)
    """
    lower = name.lower()
    if not lower.endswith(VOLUME_SUFFIXES):
        return None
    length = max(len(suffix) for suffix in VOLUME_SUFFIXES if lower.endswith(suffix))
    return name[:-length] or None


def case_key(case_id: str) -> str:
    """Return what two spellings of one case id have in common.

    The MAMA-MIA files of case DUKE_001 are named ``duke_001`` in some releases, and systems differ
    in how they store accents: letter case and the form of accents do not matter.
    """
    return unicodedata.normalize("NFC", case_id).casefold()
