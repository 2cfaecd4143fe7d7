"""Save files so that either the complete new file or the old file remains."""

import errno
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import MamamiaError, SaveConflictError, SaveError
from napari_mamamia.core.program import system
from napari_mamamia.io.files.own_paths import new_path_in

_POLL_S: Final = 0.1
_NO_ROOM: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NOT_ALLOWED: Final = {errno.EACCES, errno.EPERM, errno.EROFS}
# Error numbers of file systems without hard links, such as FAT and many network shares.
_NO_HARD_LINKS: Final = {
    errno.EPERM,
    errno.ENOTSUP,
    errno.EOPNOTSUPP,
    errno.ENOSYS,
    errno.EMLINK,
    errno.EINVAL,
}


@contextmanager
def saving(target: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Yield a temporary path next to `target`, which is renamed to `target` after the block.

    Missing folders are created. After the block, the temporary file is forced to the disk and
    renamed. If the block or the renaming fails, the temporary file is removed and an existing
    `target` is unchanged. The temporary name (`own_paths`) starts with a dot and ends in ``.part``,
    so no listing of cases or masks includes it.

    Parameters
    ----------
    target
        The file to write.
    overwrite
        Whether an existing `target` is replaced.

    Raises
    ------
    SaveConflictError
        If `target` exists and `overwrite` is False. This is checked before the block and again
        while renaming, so that a file that appeared in the meantime is not lost.
    SaveError
        If the system cannot write, for example because the disk is full or the folder is read-only.
        The message names the target and the reason.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     target = Path(folder) / "note.txt"
    ...     with saving(target) as temporary:
    ...         _ = temporary.write_text("done")
    ...     [path.name for path in Path(folder).iterdir()]
    ['note.txt']
    """
    temporary = new_path_in(target.parent)
    if not overwrite and os.path.lexists(target):
        raise _make_conflict_error(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        _force_to_disk(temporary)
        if overwrite:
            system.put_in_place(temporary, target)
        else:
            _rename_to_free_name(temporary, target)
        system.force_folder_to_disk(target.parent)
    except MamamiaError:
        raise
    except OSError as error:
        raise _make_save_error(target, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_text_atomically(path: Path, text: str, *, overwrite: bool = False) -> None:
    """Write `text` to `path` as UTF-8 with Unix line ends, completely or not at all.

    Raises
    ------
    SaveConflictError
        If `path` exists and `overwrite` is False.
    SaveError
        If the system cannot write, or `text` contains a lone surrogate, which Python uses for bytes
        of a file name that are not UTF-8.
    """
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        half = ascii(text[max(0, error.start - 20) : error.end])
        raise SaveError(
            f"expected the text for {str(path)!a} to be valid UTF-8, but {half} ends with half a "
            "character: rename the file or folder of that name"
        ) from error
    with saving(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(data)


def flushed(path: Path) -> Iterator[None]:
    """Force a file to the disk in a thread, and yield every 100 ms until this is done.

    A slow disk takes seconds for a volume. If the generator is closed early, it waits for the disk.

    Raises
    ------
    OSError
        If the system cannot write the file, for example because the disk is full.
    """
    with ThreadPoolExecutor(1) as thread:
        forcing = thread.submit(_force_to_disk, path)
        while wait((forcing,), _POLL_S).not_done:
            yield
        forcing.result()


def _rename_to_free_name(temporary: Path, target: Path) -> None:
    try:
        if system.RENAMING_REPLACES:
            # Renaming would replace an existing file, but a hard link fails.
            target.hardlink_to(temporary)
        else:
            temporary.rename(target)
    except FileExistsError as error:
        raise _make_conflict_error(target) from error
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        _claim_and_replace(temporary, target)


def _claim_and_replace(temporary: Path, target: Path) -> None:
    try:
        target.touch(exist_ok=False)
    except FileExistsError as error:
        raise _make_conflict_error(target) from error
    try:
        system.put_in_place(temporary, target)
    except OSError:
        target.unlink(missing_ok=True)
        raise


def _force_to_disk(path: Path) -> None:
    # The file is opened for writing, because Windows cannot sync a read-only file.
    with path.open("r+b") as stream:
        system.force_to_disk(stream.fileno())


def _make_conflict_error(target: Path) -> SaveConflictError:
    return SaveConflictError(
        f"a file already exists at {target}, so nothing was written; choose a different name, or "
        "allow overwriting"
    )


def _make_save_error(target: Path, error: OSError) -> SaveError:
    if remedy := system.refusal_remedy(target, error):
        pass
    elif error.errno in _NO_ROOM:
        remedy = "free some space or choose another disk"
    elif error.errno in _NOT_ALLOWED:
        remedy = "choose a writable folder"
    else:
        remedy = "check the folder and the name"
    return SaveError(
        f"cannot save {target}: {error.strerror or error}; nothing was written, and an existing "
        f"file is unchanged; {remedy}"
    )
