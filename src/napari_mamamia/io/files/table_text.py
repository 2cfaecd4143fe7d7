"""The text of a .csv file in whichever encoding it was saved; one that is no UTF-8 is said."""

import re
from typing import Final

_MARKS_16: Final = (b"\xff\xfe", b"\xfe\xff")
_CONTROL: Final = re.compile("[\x00-\x08\x0e-\x1f]")
"""No text has these; what has is another kind of file, or UTF-16 without its mark."""


def decoded(data: bytes) -> tuple[str, str]:
    """Return a text and, where it is not UTF-8, a sentence that says what it was read as.

    UTF-8 with or without a mark, UTF-16 with a mark; else Windows-1252, of which Latin-1's letters
    are a part, where nothing speaks against it.

    Raises
    ------
    ValueError
        If it is none of these, or damaged UTF-8.
    """
    if data.startswith(_MARKS_16):
        return data.decode("utf-16"), "its text is UTF-16"
    try:
        return data.decode("utf-8-sig"), ""
    except UnicodeDecodeError as error:
        # Whole UTF-8 letters beside the bad bytes: a damaged file of UTF-8, and not Windows-1252.
        rest = data.decode("utf-8", errors="ignore")
        if _CONTROL.search(rest) or not rest.isascii():
            raise ValueError(f"its text is damaged or in an unknown encoding ({error})") from error
    text = data.decode("cp1252")
    return text, "its text is not UTF-8: read as Windows-1252 (Latin-1)"
