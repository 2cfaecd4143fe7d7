"""A lock file that admits one writer at a time and is released even if the writer is killed.

The lock protects files that several programs rewrite, such as the clinical table of a data set
during two imports.
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
    """The exclusive right to change a file until the end of the block.

    The lock file is then removed. `is_alone` is False on a file system without locks, where other
    writers are not blocked.
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
        if not CAN_REPLACE_OPEN_FILES:
            os.close(self._handle)
        with suppress(OSError):
            self._lock.unlink()
        if CAN_REPLACE_OPEN_FILES:
            os.close(self._handle)


def wait_for_turn(path: Path) -> Turn:
    """Wait until no other program can change `path`, and return the right to change it.

    The result must be used in a ``with`` block immediately. The lock is the file ``.NAME.lock``
    next to the file. It is a system lock (flock, or a locked byte on Windows), so a killed program
    does not block other programs. The lock also separates threads of one program.

    Raises
    ------
    SaveError
        If the lock file cannot be created.
    """
    lock = path.with_name(f".{path.name}.lock")
    waiting = Progress(0, 1, f"Waiting for another program that is changing {path.name}")
    while True:
        handle = _open_lock(lock, path)
        try:
            claimed = claim(handle)
        except OSError:  # This file system has no locks.
            return Turn(handle, lock, is_alone=False)
        if claimed and _is_same(handle, lock):
            return Turn(handle, lock, is_alone=True)
        os.close(handle)
        if not claimed:
            forward_progress(waiting)
            time.sleep(_POLL_S)


def _open_lock(lock: Path, path: Path) -> int:
    try:
        # Following a link here would create a file at its target.
        return open_own(lock, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise SaveError(
            f"cannot lock {path} with {lock.name}: {error.strerror or error}; nothing was "
            "written; choose a writable folder"
        ) from error


def _is_same(handle: int, lock: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), lock.stat())
    except (FileNotFoundError, PermissionError):  # On Windows, the file is being removed.
        return False
