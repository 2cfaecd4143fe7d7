"""Decode the text of a .csv file; report an encoding other than UTF-8."""

import re
from typing import Final

_MARKS: Final = {
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
_CONTROL: Final = re.compile("[\x00-\x08\x0e-\x1f]")
"""Control characters, which indicate another kind of file, or UTF-16 without a BOM."""
_LOOKED_AT: Final = 4096
_MOSTLY: Final = 0.4


def decoded(data: bytes) -> tuple[str, str]:
    """Return a text, and a sentence about its encoding if that is not UTF-8.

    UTF-8 with or without a byte order mark; UTF-16 with one, or without if every other byte of its
    first letters is 0; else Windows-1252, which includes Latin-1's letters, unless the text
    contradicts it.

    Raises
    ------
    ValueError
        If it is none of these, or damaged UTF-8.
    """
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            return data.decode(encoding), f"its text is {encoding.upper()}"
    if encoding := _guess_utf16(data[:_LOOKED_AT]):
        return data.decode(encoding), "its text is UTF-16"
    try:
        return data.decode("utf-8-sig"), ""
    except UnicodeDecodeError as error:
        # Valid UTF-8 letters beside the bad bytes: a damaged UTF-8 file, not Windows-1252.
        rest = data.decode("utf-8", errors="ignore")
        if _CONTROL.search(rest) or not rest.isascii():
            raise ValueError(f"its text is damaged or in an unknown encoding ({error})") from error
    text = data.decode("cp1252")
    return text, "its text is not UTF-8: read as Windows-1252 (Latin-1)"


def _guess_utf16(head: bytes) -> str:
    """Return the UTF-16 variant of a text without a BOM, or ""."""
    half = len(head) // 2
    low, high = head[0 : 2 * half : 2].count(0), head[1 : 2 * half : 2].count(0)
    if high > _MOSTLY * half and low == 0:
        return "utf-16-le"
    return "utf-16-be" if low > _MOSTLY * half and high == 0 else ""
