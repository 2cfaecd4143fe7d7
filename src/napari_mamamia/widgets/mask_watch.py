"""Watching the mask that a reader edits: has it changed, is it on disk, how long was it edited.

A stroke is seen by napari's paint event. Undo and redo have none, so that after each redraw a
checksum of the voxels tells whether they changed, and whether they are those on disk.
"""

import time
import zlib
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QObject, QTimer, Signal

__all__ = ["MaskWatch", "SaveState"]

_CHECK_AFTER_MS: Final = 400
_LONGEST_PAUSE_S: Final = 30.0
"""A longer pause between two changes does not count as editing time."""


class SaveState(StrEnum):
    """How far the edited mask is saved."""

    NONE = "none"
    NEW = "new"
    UNSAVED = "unsaved"
    SAVING = "saving"
    SAVED = "saved"
    FAILED = "failed"


_WAITING: Final = (SaveState.UNSAVED, SaveState.FAILED)


class MaskWatch(QObject):
    """Follows one layer at a time.

    `edited` says that voxels changed, `state_changed` that `state` is new. `seconds` is the editing
    time. Of the checksums, `_on_disk` is None where nothing was saved, and `_seen` after a stroke,
    which is known to have changed the voxels.
    """

    edited = Signal()
    state_changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._check = QTimer(self)
        self._check.setSingleShot(True)
        self._check.setInterval(_CHECK_AFTER_MS)
        self._check.timeout.connect(self.look)
        self.layer: Any = None
        self.seconds = 0.0
        self._buffer: NDArray[np.uint8] | None = None
        self._state = SaveState.NONE
        self._on_disk: int | None = None
        self._seen: int | None = None
        self._saved_at: float | None = None
        self._last_change: float | None = None

    def follow(
        self, layer: Any, buffer: NDArray[np.uint8], *, is_saved: bool, seconds: float
    ) -> None:
        """Watch `layer`, which shows `buffer`, from now on."""
        self._forget()
        self.layer, self._buffer = layer, buffer
        layer.events.paint.connect(self._on_paint)
        layer.events.set_data.connect(self._on_redraw)
        self.seconds = seconds
        self._seen = _checksum(buffer)
        self._on_disk = self._seen if is_saved else None
        self._set(SaveState.SAVED if is_saved else SaveState.NEW)

    def replace(self, buffer: NDArray[np.uint8]) -> None:
        """Watch another buffer in the same layer; it is a change."""
        self._buffer = buffer
        self._changed(None)

    def leave(self) -> None:
        """Watch nothing."""
        self._check.stop()
        self._forget()
        self.state_changed.emit()

    @property
    def state(self) -> SaveState:
        """How far the mask is saved."""
        return self._state

    @property
    def is_dirty(self) -> bool:
        """Whether something is not on disk yet."""
        return self._state in (SaveState.UNSAVED, SaveState.SAVING, SaveState.FAILED)

    @property
    def text(self) -> str:
        """Return the state in plain words."""
        return {
            SaveState.NONE: "",
            SaveState.NEW: "not edited yet",
            SaveState.UNSAVED: "unsaved changes",
            SaveState.SAVING: "saving…",
            SaveState.SAVED: f"saved {_ago(self._saved_at)}",
            SaveState.FAILED: "NOT saved: see the message",
        }[self._state]

    def look(self) -> None:
        """Compare the voxels with those last seen and those on disk: an undo can restore them."""
        self._check.stop()
        if self._buffer is None:
            return
        checksum = _checksum(self._buffer)
        if self._seen is None:
            self._seen = checksum
            self.edited.emit()
        elif checksum != self._seen:
            self._changed(checksum)
        if self._state is SaveState.SAVED and checksum != self._on_disk:
            self._set(SaveState.UNSAVED)
        elif self._state in _WAITING and checksum == self._on_disk:
            self._set(SaveState.SAVED)

    def start_saving(self) -> int:
        """Say that the mask is being saved; return the checksum of what goes to disk."""
        self._set(SaveState.SAVING)
        return _checksum(self._buffer) if self._buffer is not None else 0

    def saved(self, checksum: int) -> None:
        """Say that the voxels of `checksum` are on disk now."""
        self._saved_at = time.monotonic()
        self._on_disk = checksum
        self._set(SaveState.SAVED)
        self.look()

    def failed(self) -> None:
        """Say that saving failed."""
        self._set(SaveState.FAILED)

    def _forget(self) -> None:
        self.layer = self._buffer = None
        self.seconds = 0.0
        self._state = SaveState.NONE
        self._on_disk = self._seen = None
        self._saved_at = self._last_change = None

    def _on_paint(self, event: Any) -> None:
        if event.source is self.layer:
            self._changed(None)

    def _on_redraw(self, event: Any) -> None:
        if event.source is self.layer:
            self._check.start()

    def _changed(self, checksum: int | None) -> None:
        self._seen = checksum
        now = time.monotonic()
        if self._last_change is not None:
            pause = now - self._last_change
            self.seconds += pause if pause < _LONGEST_PAUSE_S else 0.0
        self._last_change = now
        if self._state not in (SaveState.SAVING, SaveState.FAILED):
            self._set(SaveState.UNSAVED)
        self.edited.emit()

    def _set(self, state: SaveState) -> None:
        self._state = state
        self.state_changed.emit()


def _checksum(buffer: NDArray[np.uint8]) -> int:
    """Return a number that changes with the mask (CRC-32, 12 ms for 32 million voxels)."""
    return zlib.crc32(buffer.data)


def _ago(then: float | None) -> str:
    """Return how long ago something was, such as "0:12 ago"."""
    if then is None:
        return "earlier"
    minutes, seconds = divmod(int(time.monotonic() - then), 60)
    return f"{minutes}:{seconds:02d} ago"
