"""Decode the text of a .csv file, and report an encoding other than UTF-8."""

import re
from typing import Final

_MARKS: Final = {
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
_CONTROL: Final = re.compile("[\x00-\x08\x0e-\x1f]")
"""Control characters, which indicate a different kind of file, or UTF-16 without a BOM."""
_LOOKED_AT: Final = 4096
_MOSTLY: Final = 0.4


def decoded(data: bytes) -> tuple[str, str]:
    """Return the decoded text, and a sentence about the encoding if it is not UTF-8.

    The encoding is UTF-8, with or without a byte order mark; or UTF-16 with a byte order mark, or
    without it if every other byte of the first letters is 0; or otherwise Windows-1252, which
    includes the letters of Latin-1, unless the text contradicts it.

    Raises
    ------
    ValueError
        If the encoding is none of these, or the text is damaged UTF-8.
    """
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            return data.decode(encoding), f"its text is {encoding.upper()}"
    if encoding := _guess_utf16(data[:_LOOKED_AT]):
        return data.decode(encoding), "its text is UTF-16"
    try:
        return data.decode("utf-8-sig"), ""
    except UnicodeDecodeError as error:
        # Valid UTF-8 letters beside the invalid bytes indicate a damaged UTF-8 file rather than
        # Windows-1252.
        rest = data.decode("utf-8", errors="ignore")
        if _CONTROL.search(rest) or not rest.isascii():
            raise ValueError(f"the text is damaged or in an unknown encoding ({error})") from error
    text = data.decode("cp1252")
    return text, "its text is not UTF-8 and was read as Windows-1252 (Latin-1)"


def _guess_utf16(head: bytes) -> str:
    half = len(head) // 2
    low, high = head[0 : 2 * half : 2].count(0), head[1 : 2 * half : 2].count(0)
    if high > _MOSTLY * half and low == 0:
        return "utf-16-le"
    return "utf-16-be" if low > _MOSTLY * half and high == 0 else ""
