"""Opening a zip that somebody else made: its directory is looked at before anything is read."""

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def open_zip(file: Path | BinaryIO) -> Iterator[zipfile.ZipFile]:
    """Open a zip for reading, after a look at its directory; a stream stays open.

    Python's reader asks for as much memory as a member is said to take in the file, and fails in
    odd ways on a member without a name.

    Raises
    ------
    zipfile.BadZipFile
        If it is no zip, or a member is said to be longer than the whole file or has no name.
    """
    with zipfile.ZipFile(file) as archive:
        size = _measure_size(file)
        for member in archive.infolist():
            if not member.filename or member.compress_size > size:
                raise zipfile.BadZipFile(
                    f"a member {member.filename!r} of {member.compress_size:,} bytes cannot be in "
                    f"{size:,} bytes"
                )
        yield archive


def _measure_size(file: Path | BinaryIO) -> int:
    if isinstance(file, Path):
        return file.stat().st_size
    return os.fstat(file.fileno()).st_size
