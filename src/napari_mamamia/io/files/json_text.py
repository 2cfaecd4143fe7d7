"""Read JSON files of other software, with limits on size, depth and digits."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from napari_mamamia.io.files.foreign import open_plain

MOST_BYTES: Final = 64 << 20
"""Largest size of a JSON file (our choice); a manifest of 100,000 files has about 40 MB."""
_DEEPEST: Final = 64
_CONTAINERS: Final = frozenset({dict, list})
_MOST_DIGITS: Final = 20
"""Largest number of digits in an integer, as for 64 bits.

`float`, numpy and `math` raise various errors for longer integers, and no file in this field
contains such integers.
"""


def read_json(path: Path, most_bytes: int = MOST_BYTES) -> Any:
    """Return the JSON value in a UTF-8 file, with or without a byte order mark.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        As in `parsed_json`, and if the file is larger than `most_bytes`.
    """
    with open_plain(path) as stream:
        data = stream.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise ValueError(f"the text is larger than {most_bytes >> 20} MB")
    return parsed_json(data.decode("utf-8-sig"))


def parsed_json(text: str) -> Any:
    """Return the value of a JSON string.

    Raises
    ------
    ValueError
        If the string is not JSON, contains an integer of more than 20 digits or a lone surrogate,
        which cannot be written to a file, or is nested more than 64 levels deep.
    """
    try:
        value = _DECODER.decode(text)
    except RecursionError as error:
        raise ValueError("the text is nested too deeply") from error
    # Counting brackets is fast, and nearly every file needs no further check.
    if text.count("[") + text.count("{") > _DEEPEST and _is_deep(value):
        raise ValueError(f"the text is nested more than {_DEEPEST} levels deep")
    if ("\\ud" in text or "\\uD" in text) and _has_half_characters(value):
        raise ValueError("the text contains an unpaired surrogate (half a character)")
    return value


def _has_half_characters(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _is_deep(value: Any) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(_DEEPEST - 1):
        children = (one.values() if type(one) is dict else one for one in level)
        level = [item for some in children for item in some if type(item) in _CONTAINERS]
    return any(level)  # The container is not empty.


class _Integers(dict[str, int]):
    """Cache of parsed integers by their digits, which reduces parsing time to a third."""

    def __missing__(self, text: str) -> int:
        if len(text) > _MOST_DIGITS and len(text.lstrip("-")) > _MOST_DIGITS:
            raise ValueError(f"the text contains an integer of {len(text)} digits")
        return int(text)


_INTEGERS: Final = _Integers((str(number), number) for number in range(1000))
_DECODER: Final = json.JSONDecoder(parse_int=_INTEGERS.__getitem__)
scan_json: Final[Callable[[str, int], tuple[Any, int]]] = _DECODER.scan_once  # type: ignore[attr-defined]
"""Function that parses one JSON value at a position, and returns the value and its end.

The function raises StopIteration or ValueError if there is no value. The caller must check depth
and surrogates (see `parsed_json`).
"""
