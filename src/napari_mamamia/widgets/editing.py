"""Editing a mask with napari's own label tools: copy, paint, save, save again by itself.

A reader's mask is saved when asked, a few seconds after a change, before another case is opened and
before the window closes.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from qtpy.QtCore import QObject, QTimer, Signal

from napari_mamamia.core.progress import Job, run_job
from napari_mamamia.services.refine import SavedMask
from napari_mamamia.widgets.jobs import JobRunner
from napari_mamamia.widgets.layers import Role, tag_for
from napari_mamamia.widgets.mask_watch import MaskWatch, SaveState
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

__all__ = ["Editing"]

_AUTOSAVE_AFTER_MS: Final = 5_000
_LONGEST_WAIT_S: Final = 10.0
_NO_WORKSPACE: Final = (
    "this case is not from a data set, so that your mask has no place there: save its layer with "
    "File > Save Selected Layers, or delete the layer"
)


class Editing(QObject):
    """Makes and saves the refined mask. `state_changed` says that `state` is new."""

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
        self._problem = ""
        self._after_save: list[Callable[[bool], None]] = []
        self._autosave = QTimer(self)
        self._autosave.setSingleShot(True)
        self._autosave.setInterval(_AUTOSAVE_AFTER_MS)
        self._autosave.timeout.connect(self._save_by_itself)
        self._watch = MaskWatch()
        self._watch.setParent(self)
        self._watch.state_changed.connect(self.state_changed)
        self._watch.edited.connect(self._on_edited)
        session.masks_changed.connect(self._follow_mask)
        scene.viewer.layers.events.removed.connect(self._on_removed)

    @property
    def state(self) -> SaveState:
        """How far the edited mask is saved."""
        return self._watch.state

    @property
    def is_dirty(self) -> bool:
        """Whether something is not on disk yet."""
        return self._watch.is_dirty

    @property
    def text(self) -> str:
        """Return the saved state in plain words."""
        return self._watch.text

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
            self._watch.replace(buffer)
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
        checksum = self._watch.start_saving()

        def saved(outcome: Outcome[SavedMask]) -> None:
            if isinstance(outcome, Finished):
                self._saved(mask, outcome.result, checksum)
            else:
                self._not_saved(outcome)

        make_job = self._save_job(mask)
        self._jobs.start("save", "Saving", make_job, saved, shown=False)

    def save_if_needed(self, then: Callable[[bool], None]) -> None:
        """Save first if something is unsaved, then call `then` with whether all is on disk."""
        self._watch.look()
        if self.is_dirty:
            self.save(then)
        else:
            then(True)

    def keep_under(self, reader: str) -> None:
        """Make the mask that could not be saved another reader's, and save it there."""
        mask = self._session.mask(Role.REFINED)
        if mask is not None:
            mask.name, mask.saved, self._problem = reader, None, ""
            self.save()

    def discard(self) -> None:
        """Forget the mask in this window; its file, if there is one, stays as it is."""
        self._autosave.stop()
        self._scene.remove_mask(Role.REFINED)
        self._session.drop_mask(Role.REFINED)

    def save_now(self) -> bool:
        """Save in this thread, because the window closes; False if something stays unsaved."""
        self._jobs.finish("save", _LONGEST_WAIT_S)
        self._watch.look()
        mask = self._session.mask(Role.REFINED)
        if mask is None or not self.is_dirty or self._session.workspace is None:
            return not self.is_dirty
        self._autosave.stop()
        checksum = self._watch.start_saving()
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
            self._problem = ""
            self._watch.saved(checksum)
        if self._session.opened is not None and self._session.files is not None:
            case_id = self._session.files.case_id
            self._session.set_row(self._services.case_row(self._session.opened, case_id))
        if self.is_dirty and self._after_save:
            self.save()
        else:
            self._answer(not self.is_dirty)

    def _not_saved(self, outcome: Outcome[Any]) -> None:
        self._watch.failed()
        if isinstance(outcome, Failed):
            problem = plain_text(outcome.error)
            if problem != self._problem:
                self._problem = problem
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

    def _on_edited(self) -> None:
        if self.is_dirty and not self._autosave.isActive():
            self._autosave.start()
        self._session.mask_edited.emit()

    def _follow_mask(self) -> None:
        """Watch the layer of the refined mask that is there now."""
        layer, mask = self._scene.layer(Role.REFINED), self._session.mask(Role.REFINED)
        if mask is None or layer is None:
            self._problem = ""
            self._watch.leave()
        elif layer is not self._watch.layer:
            seconds = mask.provenance.seconds if mask.provenance else None
            self._watch.follow(
                layer, mask.buffer, is_saved=mask.saved is not None, seconds=seconds or 0.0
            )

    def _on_removed(self, event: Any) -> None:
        """Save what was painted on a layer that a user deletes, then let the mask go."""
        mask, case = self._session.mask(Role.REFINED), self._session.case
        if self._scene.is_changing or event.value is not self._watch.layer:
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
