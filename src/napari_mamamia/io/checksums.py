"""SHA-256 of files, as provenance and manifests carry it."""

import hashlib
from pathlib import Path

from napari_mamamia.core.errors import FormatError

__all__ = ["sha256_of"]


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes as 64 lower-case hexadecimal digits.

    Raises
    ------
    FormatError
        If the file is missing or cannot be read.
    """
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise FormatError(
            f"expected a readable file at {path}, but {error.strerror or error}: "
            "check that it exists and that you may read it"
        ) from error
