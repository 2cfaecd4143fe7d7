"""JSON that somebody else may have written: sizes, depth and digits have limits."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from napari_mamamia.io.files.foreign import open_plain

MOST_BYTES: Final = 64 << 20
"""Our own limit: the largest of these files, a manifest of 100,000 files, has some 40 MB."""
_DEEPEST: Final = 64
_CONTAINERS: Final = frozenset({dict, list})
_MOST_DIGITS: Final = 20
"""Of an integer: 64 bits have at most 20. Longer ones are refused by `float`, by numpy and by
`math` with errors of many kinds, and no file of this field holds one."""


def read_json(path: Path, most_bytes: int = MOST_BYTES) -> Any:
    """Return the JSON in a file, UTF-8 with or without a mark.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        As `parsed_json`; also if the file is larger than `most_bytes`.
    """
    with open_plain(path) as stream:
        data = stream.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise ValueError(f"it is larger than {most_bytes >> 20} MB")
    return parsed_json(data.decode("utf-8-sig"))


def parsed_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises
    ------
    ValueError
        If it is no JSON, has an integer of more than 20 digits or half a character (one surrogate
        alone, which no file can hold), or is nested over 64 levels deep.
    """
    try:
        value = _DECODER.decode(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    # Counting is quick, and spares nearly every file the walk.
    if text.count("[") + text.count("{") > _DEEPEST and _is_deep(value):
        raise ValueError(f"it is nested over {_DEEPEST} levels deep")
    if ("\\ud" in text or "\\uD" in text) and _has_half_characters(value):
        raise ValueError("it has half a character, a surrogate without the other")
    return value


def _has_half_characters(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _is_deep(value: Any) -> bool:
    """Whether a value has more than `_DEEPEST` levels; goes level by level, without recursion."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(_DEEPEST - 1):
        children = (one.values() if type(one) is dict else one for one in level)
        level = [item for some in children for item in some if type(item) in _CONTAINERS]
    return any(level)  # with anything in it


class _Integers(dict[str, int]):
    """Whole numbers by their text; a small one is found without a call, at a third of the time."""

    def __missing__(self, text: str) -> int:
        if len(text) > _MOST_DIGITS and len(text.lstrip("-")) > _MOST_DIGITS:
            raise ValueError(f"it has an integer of {len(text)} digits")
        return int(text)


_INTEGERS: Final = _Integers((str(number), number) for number in range(1000))
_DECODER: Final = json.JSONDecoder(parse_int=_INTEGERS.__getitem__)
scan_json: Final[Callable[[str, int], tuple[Any, int]]] = _DECODER.scan_once  # type: ignore[attr-defined]
"""Reads one value from a place on, and tells where it ends; StopIteration or ValueError where there
is none. Depth and half characters are for the caller to look at, see `parsed_json`."""
