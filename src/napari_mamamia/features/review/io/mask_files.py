"""Mask files named by their SHA-256, written once and verified when read."""

import hashlib
from contextlib import suppress
from pathlib import Path

from napari_mamamia.core.errors import FormatError, SaveConflictError
from napari_mamamia.core.progress import paced
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.foreign import open_plain, reads
from napari_mamamia.io.files.save import saving
from napari_mamamia.io.workspace.workspace import MASK_SUFFIX


def write_mask_once(path: Path, content: bytes) -> None:
    """Write a file named by its hash, unless it already exists."""
    if path.exists() and path.stat().st_size == len(content):
        with suppress(FormatError):
            read_mask(path, path.name.removesuffix(MASK_SUFFIX))
            return
    # A damaged file is not replaced: `verify` reports it.
    with suppress(SaveConflictError), saving(path) as temporary:
        temporary.write_bytes(content)


def send_masks(source: Path, target: Path) -> str:
    """Move the masks of a folder to another; return the name of a damaged mask, which stays.

    Raises
    ------
    OSError
        If the target folder refuses to write.
    """
    damage = ""
    for path in paced(sorted(source.glob(f"*{MASK_SUFFIX}")), "Sending masks"):
        try:
            content = read_mask(path, path.name.removesuffix(MASK_SUFFIX))
        except FormatError as error:
            damage = str(error)
            continue
        write_mask_once(target / path.name, content)
        path.unlink()
    return damage


def list_changed_masks(folder: Path) -> tuple[str, ...]:
    """Read all files of a folder; return the names that do not match the SHA-256 of the bytes."""
    return tuple(
        path.name
        for path in paced(sorted(folder.glob("*")), "Reading masks")
        if not path.name.startswith(".")
        and (not path.is_file() or sha256_of(path) != path.name.removesuffix(MASK_SUFFIX))
    )


@reads("a mask of a review study", "restore the file from a backup, or read the case again")
def read_mask(path: Path, sha256: str) -> bytes:
    """Return the bytes of a mask file.

    Raises
    ------
    FormatError
        If the SHA-256 differs from the name.
    """
    with open_plain(path) as stream:
        content = stream.read()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise FormatError(
            f"expected the SHA-256 of {path} to match its name, but the mask was changed: restore "
            "it from a backup, or read the case again"
        )
    return content
