"""Editing a mask with napari's own label tools: copy, watch, save, save again by itself.

A reader's mask is saved when asked, a few seconds after the last change, before another case is
opened and before the window closes. A change is seen by napari's paint events; undo and redo have
none, so that after each redraw a checksum of the mask tells whether it changed.
"""

import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QObject, QTimer, Signal

from napari_mamamia.core.progress import Job, run_job
from napari_mamamia.services.refine import SavedMask
from napari_mamamia.widgets.jobs import JobRunner
from napari_mamamia.widgets.layers import Role, tag_for
from napari_mamamia.widgets.notify import (
    Failed,
    Finished,
    Notifier,
    Outcome,
    outcome_of,
    plain_text,
)
from napari_mamamia.widgets.scene import Scene
from napari_mamamia.widgets.service_record import Services
from napari_mamamia.widgets.session import Session, SessionMask

__all__ = ["Editing", "SaveState"]

_AUTOSAVE_AFTER_MS: Final = 5_000
_CHECK_AFTER_MS: Final = 400
_NO_WORKSPACE: Final = (
    "this case is not from a data set, so that your mask has no place there: save its layer with "
    "File > Save Selected Layers, or delete the layer"
)
_LONGEST_PAUSE_S: Final = 30.0
"""A longer pause between two changes does not count as editing time."""


class SaveState(StrEnum):
    """What the header says of the edited mask."""

    NONE = "none"
    NEW = "new"
    UNSAVED = "unsaved"
    SAVING = "saving"
    SAVED = "saved"
    FAILED = "failed"


_WAITING: Final = (SaveState.UNSAVED, SaveState.FAILED)


@dataclass(slots=True)
class _Watch:
    """What is known of the mask being edited.

    `on_disk` and `seen` are checksums of its voxels; `seen` is None after a stroke, which is known
    to have changed them.
    """

    state: SaveState = SaveState.NONE
    saved_at: float | None = None
    on_disk: int | None = None
    seen: int | None = None
    seconds: float = 0.0
    last_change: float | None = None
    problem: str = ""


class Editing(QObject):
    """Makes, watches and saves the refined mask. `state_changed` says that `state` is new."""

    state_changed = Signal()

    def __init__(
        self,
        session: Session,
        scene: Scene,
        jobs: JobRunner,
        services: Services,
        notifier: Notifier,
    ) -> None:
        super().__init__()
        self._session = session
        self._scene = scene
        self._jobs = jobs
        self._services = services
        self._notifier = notifier
        self._watch = _Watch()
        self._watched: Any = None
        self._after_save: list[Callable[[bool], None]] = []
        self._autosave = self._timer(_AUTOSAVE_AFTER_MS, self._save_by_itself)
        self._check = self._timer(_CHECK_AFTER_MS, self._look_for_changes)
        session.masks_changed.connect(self._follow_mask)
        scene.viewer.layers.events.removed.connect(self._on_removed)

    # ---------------------------------------------------------------- state

    @property
    def state(self) -> SaveState:
        """How far the edited mask is saved."""
        return self._watch.state

    @property
    def is_dirty(self) -> bool:
        """Whether something is not on disk yet."""
        return self.state in (SaveState.UNSAVED, SaveState.SAVING, SaveState.FAILED)

    @property
    def text(self) -> str:
        """Return the saved state in plain words."""
        match self.state:
            case SaveState.NEW:
                return "not edited yet"
            case SaveState.UNSAVED:
                return "unsaved changes"
            case SaveState.SAVING:
                return "saving…"
            case SaveState.SAVED:
                return f"saved {_ago(self._watch.saved_at)}"
            case SaveState.FAILED:
                return "NOT saved: see the message"
        return ""

    # --------------------------------------------------------------- editing

    def start(self, source: Role | None) -> None:
        """Copy the mask of a role (None: an empty one) as this reader's own, and take the brush."""
        case = self._session.case
        if case is None or not self._session.reader:
            return
        before = self._session.mask(Role.REFINED)
        origin = None if source is None else self._session.mask(source)
        buffer = np.zeros(case.grid.shape, np.uint8) if origin is None else origin.buffer.copy()
        started_from = "" if origin is None else f"{origin.role} {origin.name}".strip()
        mask = SessionMask(
            Role.REFINED,
            self._session.reader,
            buffer,
            started_from=started_from,
            saved=before.saved if before else None,
        )
        self._scene.show_mask(tag_for(case, Role.REFINED), buffer)
        self._session.set_mask(mask)
        if before is not None:
            self._changed()
        self.take_brush()

    def take_brush(self) -> None:
        """Choose the refined mask's layer and napari's brush."""
        layer = self._scene.layer(Role.REFINED)
        if layer is not None:
            layer.visible = True
            self._scene.viewer.layers.selection.active = layer
            layer.mode = "paint"

    def put_down_brush(self) -> None:
        """Go back to moving the image."""
        layer = self._scene.layer(Role.REFINED)
        if layer is not None:
            layer.mode = "pan_zoom"

    # ---------------------------------------------------------------- saving

    def save(self, then: Callable[[bool], None] | None = None) -> None:
        """Save the refined mask; `then` gets whether nothing is left unsaved."""
        mask = self._session.mask(Role.REFINED)
        if then is not None:
            self._after_save.append(then)
        if self._jobs.is_running("save"):
            return
        if mask is None or self._session.workspace is None:
            if mask is not None:
                self._notifier.warn_loudly(_NO_WORKSPACE)
            self._answer(mask is None)
            return
        checksum = _checksum(mask.buffer)
        self._set_state(SaveState.SAVING)

        def saved(outcome: Outcome[SavedMask]) -> None:
            if isinstance(outcome, Finished):
                self._saved(mask, outcome.result, checksum)
            else:
                self._not_saved(outcome)

        make_job = self._save_job(mask)
        self._jobs.start("save", "Saving", make_job, saved, shown=False)

    def save_if_needed(self, then: Callable[[bool], None]) -> None:
        """Save first if something is unsaved, then call `then` with whether all is on disk."""
        self._look_for_changes()
        if self.is_dirty:
            self.save(then)
        else:
            then(True)

    def keep_under(self, reader: str) -> None:
        """Make the mask that could not be saved another reader's, and save it there."""
        mask = self._session.mask(Role.REFINED)
        if mask is not None:
            mask.name, mask.saved = reader, None
            self._watch.on_disk, self._watch.problem = None, ""
            self.save()

    def discard(self) -> None:
        """Forget the mask in this window; its file, if there is one, stays as it is."""
        self._autosave.stop()
        self._check.stop()
        self._scene.remove_mask(Role.REFINED)
        self._session.drop_mask(Role.REFINED)

    def save_now(self) -> bool:
        """Save in this thread, because the window closes; False if something stays unsaved."""
        self._look_for_changes()
        mask = self._session.mask(Role.REFINED)
        if mask is None or not self.is_dirty or self._session.workspace is None:
            return not self.is_dirty
        self._jobs.wait(timeout_s=10.0)
        self._autosave.stop()
        checksum = _checksum(mask.buffer)
        outcome = outcome_of(lambda: run_job(self._save_job(mask)()))
        if isinstance(outcome, Finished):
            self._saved(mask, outcome.result, checksum)
        else:
            self._not_saved(outcome)
        return isinstance(outcome, Finished)

    def _save_job(self, mask: SessionMask) -> Callable[[], Job[SavedMask]]:
        case, workspace = self._session.case, self._session.workspace
        return lambda: self._services.save_refined(
            workspace,
            mask.name,
            case,
            mask.buffer,
            started_from=mask.started_from,
            seconds=round(self._watch.seconds, 1),
            replaces=mask.saved,
        )

    def _saved(self, mask: SessionMask, saved: SavedMask, checksum: int) -> None:
        mask.saved = saved
        if self._session.mask(Role.REFINED) is mask:
            self._watch.saved_at = time.monotonic()
            self._watch.on_disk = checksum
            self._watch.problem = ""
            self._set_state(SaveState.SAVED)
            self._look_for_changes()
        if self._session.opened is not None and self._session.files is not None:
            case_id = self._session.files.case_id
            self._session.set_row(self._services.case_row(self._session.opened, case_id))
        self._answer(True)

    def _not_saved(self, outcome: Outcome[Any]) -> None:
        self._set_state(SaveState.FAILED)
        if isinstance(outcome, Failed):
            problem = plain_text(outcome.error)
            if problem != self._watch.problem:
                self._watch.problem = problem
                self._notifier.fail("Saving your mask", outcome.error)
        self._autosave.start()
        self._answer(False)

    def _answer(self, all_saved: bool) -> None:
        waiting, self._after_save = self._after_save, []
        for then in waiting:
            then(all_saved)

    def _save_by_itself(self) -> None:
        if self.is_dirty and not self._jobs.is_running("save"):
            self.save()

    # -------------------------------------------------------------- watching

    def _follow_mask(self) -> None:
        """Watch the layer of the refined mask that is there now."""
        layer = self._scene.layer(Role.REFINED)
        mask = self._session.mask(Role.REFINED)
        if mask is None or layer is None:
            self._watched = None
            self._watch = _Watch()
            self.state_changed.emit()
            return
        if layer is self._watched:
            return
        self._watched = layer
        layer.events.paint.connect(self._on_paint)
        layer.events.set_data.connect(self._on_redraw)
        seconds = mask.provenance.seconds if mask.provenance else None
        checksum = _checksum(mask.buffer)
        on_disk = checksum if mask.saved else None
        self._watch = _Watch(seen=checksum, on_disk=on_disk, seconds=seconds or 0.0)
        self._set_state(SaveState.SAVED if mask.saved else SaveState.NEW)

    def _on_paint(self, event: Any) -> None:
        if event.source is self._watched:
            self._changed()

    def _on_redraw(self, event: Any) -> None:
        if event.source is self._watched:
            self._check.start()

    def _look_for_changes(self) -> None:
        """Compare the voxels with those last seen and those on disk: an undo can restore them."""
        self._check.stop()
        mask = self._session.mask(Role.REFINED)
        if mask is None or self.state is SaveState.NONE:
            return
        checksum = _checksum(mask.buffer)
        if self._watch.seen is None:
            self._watch.seen = checksum
            self._session.mask_edited.emit()
        elif checksum != self._watch.seen:
            self._changed(checksum)
        if self.state is SaveState.SAVED and checksum != self._watch.on_disk:
            self._set_state(SaveState.UNSAVED)
        elif self.state in _WAITING and checksum == self._watch.on_disk:
            self._set_state(SaveState.SAVED)

    def _changed(self, checksum: int | None = None) -> None:
        self._watch.seen = checksum
        self._count_time()
        if self.state not in (SaveState.SAVING, SaveState.FAILED):
            self._set_state(SaveState.UNSAVED)
        self._autosave.start()
        self._session.mask_edited.emit()

    def _count_time(self) -> None:
        now = time.monotonic()
        if self._watch.last_change is not None:
            pause = now - self._watch.last_change
            self._watch.seconds += pause if pause < _LONGEST_PAUSE_S else 0.0
        self._watch.last_change = now

    def _on_removed(self, event: Any) -> None:
        """Save what was painted on a layer that a user deletes, then let the mask go."""
        mask, case = self._session.mask(Role.REFINED), self._session.case
        if self._scene.is_changing or event.value is not self._watched:
            return
        if mask is None or case is None:
            return

        def after(all_saved: bool) -> None:
            if all_saved or self._session.workspace is None:
                self._session.drop_mask(Role.REFINED)
            else:
                self._scene.show_mask(tag_for(case, Role.REFINED), mask.buffer)
                self._session.set_mask(mask)

        self.save_if_needed(after)

    def _set_state(self, state: SaveState) -> None:
        self._watch.state = state
        self.state_changed.emit()

    def _timer(self, after_ms: int, act: Callable[[], None]) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.setInterval(after_ms)
        timer.timeout.connect(act)
        return timer


def _checksum(buffer: NDArray[np.uint8]) -> int:
    """Return a number that changes with the mask (CRC-32, about 1 GB/s)."""
    return zlib.crc32(buffer.data)


def _ago(then: float | None) -> str:
    """Return how long ago something was, such as "0:12 ago"."""
    if then is None:
        return "earlier"
    minutes, seconds = divmod(int(time.monotonic() - then), 60)
    return f"{minutes}:{seconds:02d} ago"
