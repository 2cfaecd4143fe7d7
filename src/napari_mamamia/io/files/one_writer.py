"""One writer at a time: a lock file that the system releases even if its holder is killed.

For files that several programs read and rewrite, such as the clinical table of a data set that two
imports add to.
"""

import os
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final

from napari_mamamia.core.errors import SaveError
from napari_mamamia.core.program.system import CAN_REPLACE_OPEN_FILES, claim, open_own
from napari_mamamia.core.progress import Progress, forward_progress

_POLL_S: Final = 0.05


class Turn:
    """The right to change a file until the block ends, when the lock file is removed.

    `is_alone` is False on a file system without locks, where others are not kept away.
    """

    def __init__(self, handle: int, lock: Path, *, is_alone: bool) -> None:
        self._handle, self._lock = handle, lock
        self.is_alone = is_alone

    def __enter__(self) -> "Turn":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the lock file while it is locked, so that nobody waits for a removed file."""
        if not CAN_REPLACE_OPEN_FILES:
            os.close(self._handle)
        with suppress(OSError):
            self._lock.unlink()
        if CAN_REPLACE_OPEN_FILES:
            os.close(self._handle)


def wait_for_turn(path: Path) -> Turn:
    """Wait until no other program may change `path`, and return the right to change it.

    Use the result in a ``with`` block at once. The lock is ``.NAME.lock`` beside the file. It is
    the system's own (flock, on Windows a locked byte), so that a killed program blocks nobody; it
    also separates threads of one program.

    Raises
    ------
    SaveError
        If the lock file cannot be made.
    """
    lock = path.with_name(f".{path.name}.lock")
    waiting = Progress(0, 1, f"Waiting for another program that is changing {path.name}")
    while True:
        handle = _open_lock(lock, path)
        try:
            claimed = claim(handle)
        except OSError:  # no locks on this file system
            return Turn(handle, lock, is_alone=False)
        if claimed and _is_same(handle, lock):
            return Turn(handle, lock, is_alone=True)
        os.close(handle)
        if not claimed:
            forward_progress(waiting)
            time.sleep(_POLL_S)


def _open_lock(lock: Path, path: Path) -> int:
    try:
        # following a link here would create a file at its target
        return open_own(lock, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise SaveError(
            f"cannot lock {path} by {lock.name}: {error.strerror or error}; choose a folder that "
            "you may write to; nothing was written"
        ) from error


def _is_same(handle: int, lock: Path) -> bool:
    """Return whether the locked file still has its name; its last holder may have removed it."""
    try:
        return os.path.samestat(os.fstat(handle), lock.stat())
    except (FileNotFoundError, PermissionError):  # Windows: it is being removed
        return False
