"""Find private elements of DICOM headers by the creator of their block, and decode them.

Source: DICOM PS3.5, 7.8: (gggg,00xx) names the creator of the elements (gggg,xx00) to (gggg,xxFF),
and xx may be any block from 10 to FF. Archives change the case and the spaces of a creator's name.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

_FIRST_VALUE: Final = 0x1000


class PrivateElement(NamedTuple):
    """A private element: group, creator as `fold_creator` returns it, number in its block, and VR.

    The creator "" stands for elements whose block has no creator.
    """

    group: int
    creator: str
    number: int
    form: str


def decode_text(raw: bytes) -> str | None:
    """Return a text without padding, or None if it is empty."""
    return raw.decode("latin-1").strip(" \0") or None


def decode_texts(raw: bytes) -> Any:
    """Return one text, a list if backslashes separate several, or None if it is empty."""
    text = raw.decode("latin-1").rstrip(" \0")
    if "\\" in text:
        return [part.strip() for part in text.split("\\")]
    return text.strip() or None


def make_unpacker(form: str) -> Callable[[bytes], Any]:
    """Return a function that reads little-endian numbers as one number, a list or None."""
    size = struct.calcsize(form)

    def unpack(raw: bytes) -> Any:
        if not raw:
            return None
        numbers = [value for (value,) in struct.iter_unpack(form, raw)]
        return numbers[0] if len(raw) == size else numbers

    return unpack


READERS: Final[Mapping[str, Callable[[bytes], Any]]] = {
    "CS": decode_texts, "IS": decode_texts, "DS": decode_texts, "LO": decode_text,
    "US": make_unpacker("<H"), "SS": make_unpacker("<h"), "SL": make_unpacker("<i"),
    "FL": make_unpacker("<f"), "FD": make_unpacker("<d"),
}  # fmt: skip
"""Functions that decode the value of a VR from its bytes."""


def fold_creator(value: Any) -> str:
    """Return a creator's name without padding, in lower case."""
    text = value.decode("latin-1") if isinstance(value, bytes) else str(value or "")
    return " ".join(text.replace("\0", " ").split()).casefold()


def read_value(header: Any, name: Any) -> Any:
    """Return the value of an element by keyword or tag, or of a private one by its creator."""
    if not isinstance(name, PrivateElement) or not hasattr(header, "private_block"):
        value = header.get(name)
        return getattr(value, "value", value)
    tag = _find_tag(header, name)
    value = None if tag is None else header[tag].value
    # pydicom leaves bytes where its own list lacks the spelling of the creator.
    return READERS[name.form](value) if isinstance(value, bytes) and name.form in READERS else value


def find_block(header: Any, group: int, creator: str) -> int | None:
    """Return the number of a creator's block in pydicom's data set, or None."""
    tags = header.keys()
    return next(
        (
            tag & 0xFF
            for tag in tags
            if tag >> 16 == group
            and 0x10 <= tag & 0xFFFF <= 0xFF
            and fold_creator(header[tag].value) == fold_creator(creator)
        ),
        None,
    )


def _find_tag(header: Any, name: PrivateElement) -> int | None:
    tags = header.keys()
    for tag in tags:
        if tag >> 16 != name.group or tag & 0xFFFF < _FIRST_VALUE or tag & 0xFF != name.number:
            continue
        creator = (name.group, tag >> 8 & 0xFF)
        if fold_creator(header[creator].value if creator in header else "") == name.creator:
            return int(tag)
    return None
