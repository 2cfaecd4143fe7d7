"""What names tell: that two spellings mean one case."""

import unicodedata


def case_key(case_id: str) -> str:
    """Return what two spellings of one case id have in common.

    The MAMA-MIA files of case DUKE_001 are named ``duke_001`` in some releases, and systems differ
    in how they store accents: letter case and the form of accents do not matter.
    """
    return unicodedata.normalize("NFC", case_id).casefold()
