"""SHA-256 digests of files and strings, for provenance and manifests."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import paced, report_progress
from napari_mamamia.io.files.foreign import open_plain

_BLOCK_BYTES: Final = 1 << 20


def hash_text(text: str) -> str:
    """Return the SHA-256 of a string, encoded as UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes as 64 lower-case hexadecimal digits.

    Raises
    ------
    FormatError
        If the file is missing or cannot be read.
    """
    try:
        with open_plain(path) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise _make_read_error(path, error) from error


def sha256_of_large(path: Path) -> str:
    """Return the SHA-256 of a large file, as `sha256_of` does, and report progress.

    The errors are those of `sha256_of`.
    """
    text = f"Checksum of {path.name}"
    report_progress(0, 1, text)
    digest = hashlib.sha256()
    try:
        for block in paced(_read_blocks(path), text):
            digest.update(block)
    except OSError as error:
        raise _make_read_error(path, error) from error
    return digest.hexdigest()


def _read_blocks(path: Path) -> Iterator[bytes]:
    with open_plain(path) as stream:
        while block := stream.read(_BLOCK_BYTES):
            yield block


def _make_read_error(path: Path, error: OSError) -> FormatError:
    return FormatError(
        f"expected a readable file at {path}, but {error.strerror or error}: check that the file "
        "exists and is readable"
    )
