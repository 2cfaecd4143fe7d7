"""A share that stops answering: from its n-th step on whoever asks it waits in the system for ever.

Each step is noted, too, that a thread takes which somebody waits for without a limit: a stray.
"""

import os
import threading

from faults import Faults, as_path, counted, install

STRAY = "stray: "
BY_PATH = ("stat", "lstat", "access", "utime", "readlink")


class Silence(Faults):
    """Counts the steps on a study's folder; from step `at` on, 0 for none, each opens `pipe`.

    Nobody ever writes to that pipe: the thread waits in the kernel, as it does for a dead server.
    """

    def __init__(self, root: str, at: int, pipe: str) -> None:
        super().__init__(root, at=at)
        self._pipe, self._open = pipe, os.open

    def concerns(self, path: object) -> bool:
        return super().concerns(path) or (
            isinstance(path, str | os.PathLike) and f"{os.path.abspath(path)}/" == self.root  # noqa: PTH100 - links stay links
        )

    def step(self, what: str, path: object) -> bool:
        with self._lock:
            self.n_seen += 1
            self.counts[what] += 1
            is_silent = self.at and self.n_seen >= self.at
            if not threading.current_thread().name.startswith("share "):
                self.counts[f"{STRAY}{what} {path}"] += 1
        if is_silent:
            self._open(self._pipe, os.O_RDONLY)
        return False


def silence(root: str, at: int, pipe: str) -> Silence:
    """Put a share that falls silent in the place of Python's own calls, in this process."""
    from napari_mamamia.features.review.io import share

    faults = Silence(root, at, pipe)
    if at:
        share.ANSWER_S = share.FILE_S = 0.5
    install(faults)
    for name in BY_PATH:
        setattr(os, name, counted(faults, "look", name, getattr(os, name), as_path))
    return faults
