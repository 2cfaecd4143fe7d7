"""Compare case ids that are spelled differently."""

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

_LEADING_ZEROS: Final = re.compile(r"(?<!\d)0+(?=\d)")


def case_key(case_id: str) -> str:
    """Return a key that is equal for different spellings of the same case id.

    The MAMA-MIA files of case DUKE_001 are named ``duke_001`` in some releases, and systems differ
    in how they store accents, so letter case and the form of accents are ignored.
    """
    return unicodedata.normalize("NFC", case_id).casefold()


def alike_ids(ids: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Return groups of ids that differ only in letter case, blanks or leading zeros.

    Examples
    --------
    >>> alike_ids(["DUKE_001", "duke_1", "DUKE_1 ", "DUKE_010", "DUKE_100"])
    (('DUKE_001', 'duke_1', 'DUKE_1 '),)
    """
    by_key: dict[str, dict[str, None]] = {}
    for name in ids:
        key = _LEADING_ZEROS.sub("", "".join(case_key(name).split()))
        by_key.setdefault(key, {})[name] = None
    return tuple(tuple(same) for same in by_key.values() if len(same) > 1)


_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f/\\:*?\"<>|]+")


def safe_case_id(text: str) -> str:
    r"""Return a string as a case id for file names, without separators or control characters.

    Examples
    --------
    >>> safe_case_id("../../evil"), safe_case_id("CASE 17"), safe_case_id("a\nb")
    ('_.._evil', 'CASE 17', 'a_b')
    """
    return _UNSAFE.sub("_", text).lstrip(".") or "_"
