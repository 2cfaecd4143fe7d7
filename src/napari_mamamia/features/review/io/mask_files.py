"""Files of masks by their content: written once, read back as they were or not at all."""

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
    """Write a file named after its content, unless it is there whole."""
    if path.exists() and path.stat().st_size == len(content):
        with suppress(FormatError):
            read_mask(path, path.name.removesuffix(MASK_SUFFIX))
            return
    # One that is there and is damaged keeps its place: `verify` tells of it.
    with suppress(SaveConflictError), saving(path) as temporary:
        temporary.write_bytes(content)


def send_masks(source: Path, target: Path) -> str:
    """Move the masks of one folder to another; return which one stays since it was damaged.

    Raises
    ------
    OSError
        If the target refuses.
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
    """Return the names of files in a folder whose bytes are not those of their name; reads all."""
    return tuple(
        path.name
        for path in paced(sorted(folder.glob("*")), "Reading the masks")
        if not path.name.startswith(".")
        and (not path.is_file() or sha256_of(path) != path.name.removesuffix(MASK_SUFFIX))
    )


@reads("a mask of the review room", "bring the file back from a backup, or read the case again")
def read_mask(path: Path, sha256: str) -> bytes:
    """Return the bytes of a mask's file.

    Raises
    ------
    FormatError
        If they are not those of the SHA-256.
    """
    with open_plain(path) as stream:
        content = stream.read()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise FormatError(
            f"expected the bytes that {path} was named after, got others: the mask was changed; "
            "bring it back from a backup, or read the case again"
        )
    return content
