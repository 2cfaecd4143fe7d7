"""An append-only file of JSON lines with checksums that survives a crash of the program."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.files.append_file import AppendFile
from napari_mamamia.io.files.foreign import open_plain
from napari_mamamia.io.files.json_text import parsed_json

_HEAD: Final = b'{"check":"'
_MIDDLE: Final = b'","entry":'
_END: Final = b"}\n"
_DIGITS: Final = 16
_ENTRY_AT: Final = len(_HEAD) + _DIGITS + len(_MIDDLE)


class CheckedLines(AppendFile):
    """An append-only file whose lines have checksums, see `AppendFile`.

    Each line is ``{"check":"...","entry":...}``: valid JSON, with the BLAKE2b-64 of the entry's
    text.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "results.jsonl"
    ...     with CheckedLines(path, keep=False) as lines:
    ...         lines.add({"case_id": "A", "dsc": 0.5})
    ...     list(read_checked_lines(path))
    [{'case_id': 'A', 'dsc': 0.5}]
    """

    def add(self, entry: object) -> None:
        """Append one line, completely or not at all.

        Raises
        ------
        TypeError, ValueError
            If `entry` is not JSON; nan and infinite numbers are not.
        SaveError
            If the system refuses to write, such as on a full disk; earlier lines stay.
        """
        text = _encode_entry(entry)
        self.append(_HEAD + _compute_checksum(text) + _MIDDLE + text + _END)


def read_checked_lines(path: Path) -> Iterator[Any]:
    """Yield the entry of each valid line in order; skip incomplete and damaged lines.

    Raises
    ------
    FormatError
        If the file cannot be read.
    """
    for _, entry in scan_checked_lines(path):
        if entry is not None:
            yield entry


def scan_checked_lines(path: Path, start: int = 0) -> Iterator[tuple[int, Any]]:
    """Yield start and entry of each line from byte `start` on; damaged lines give None.

    Raises
    ------
    FormatError
        If the file cannot be read.
    """
    try:
        with open_plain(path) as stream:
            stream.seek(start)
            for line in stream:
                text = checked_text(line)
                yield start, None if text is None else parsed_entry(text)
                start += len(line)
    except OSError as error:
        raise FormatError(
            f"cannot read the results {path}: {error.strerror or error}; check that you may read "
            "the file"
        ) from error


def parsed_entry(text: bytes) -> Any:
    """Return the JSON value of an entry, or None if Python cannot represent it."""
    try:
        return parsed_json(text.decode("utf-8"))
    except ValueError:
        return None


def _encode_entry(entry: object) -> bytes:
    options = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
    return json.dumps(entry, **options).encode("utf-8")  # type: ignore[arg-type]


def checked_text(line: bytes) -> bytes | None:
    """Return the entry's text if the line is complete and its checksum matches."""
    text = line[_ENTRY_AT : -len(_END)]
    return text if line == _HEAD + _compute_checksum(text) + _MIDDLE + text + _END else None


def _compute_checksum(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=_DIGITS // 2).hexdigest().encode("ascii")
