"""Saving the reader's mask: by itself, when asked, before another case, before the window closes.

Each step is in the journal before that, see `services.refine.edit_case`.
"""

from collections.abc import Callable
from typing import Any, Final

from qtpy.QtCore import QObject, QTimer, Signal

from napari_mamamia.services.case.context import CaseContext
from napari_mamamia.services.case.refine import SavedMask
from napari_mamamia.services.refine.editing import OpenEditing
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.base.notify import (
    Failed,
    Finished,
    Notifier,
    Outcome,
    outcome_of,
    plain_text,
)
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.base.session import Session
from napari_mamamia.widgets.refine.live_mask import LiveMask
from napari_mamamia.widgets.refine.mask_watch import Mark, SaveState, SaveTrack

_AUTOSAVE_AFTER_MS: Final = 5_000
_LONGEST_WAIT_S: Final = 10.0
_NO_WORKSPACE: Final = (
    "this case is not from a data set, so that your mask has no place there: save its layer with "
    "File > Save Selected Layers, or delete the layer"
)


class MaskSaving(QObject):
    """Saves the mask that is open. `state_changed` says that `state` is new."""

    state_changed = Signal()

    def __init__(
        self,
        session: Session,
        mask: LiveMask,
        jobs: JobRunner,
        services: Services,
        notifier: Notifier,
    ) -> None:
        super().__init__()
        self._session = session
        self._mask = mask
        self._jobs = jobs
        self._services = services
        self._notifier = notifier
        self._said = ""
        self._after_save: list[Callable[[bool], None]] = []
        self._track = SaveTrack()
        self.open: OpenEditing | None = None
        self._context: CaseContext | None = None
        self.autosave = QTimer(self)
        self.autosave.setSingleShot(True)
        self.autosave.setInterval(_AUTOSAVE_AFTER_MS)
        self.autosave.timeout.connect(self._save_by_itself)

    # ------------------------------------------------------------------- state

    @property
    def state(self) -> SaveState:
        """How far the edited mask is saved."""
        return self._track.state

    @property
    def is_dirty(self) -> bool:
        """Whether something is not on disk yet."""
        return self._track.is_dirty

    @property
    def text(self) -> str:
        """Return the saved state in plain words, with that of the journal."""
        return self._track.text(self._journal_text())

    @property
    def is_failing(self) -> bool:
        """Whether the mask or its journal cannot be written at the moment."""
        problem = self.open.problem if self.open else ""
        return self.state is SaveState.FAILED or bool(problem)

    def _journal_text(self) -> str:
        if self.open is None:
            return ""
        if self.open.journal is None:
            return "strokes not kept"
        return "strokes NOT kept" if self.open.problem else "strokes kept"

    # ----------------------------------------------------------------- following

    def begin(self, opened: OpenEditing, context: CaseContext | None) -> None:
        """Save this mask from now on; `context` says where its case belongs."""
        self.open, self._context, self._said = opened, context, ""
        live = opened.session
        is_saved = opened.saved is not None and live.position == 0 and opened.recovered is None
        self._track.begin(live, is_saved=is_saved)
        if opened.problem:
            self._warn_of_journal()

    def end(self) -> None:
        """Save nothing any more."""
        self.autosave.stop()
        self.open = None
        self._track.leave()

    def take_reader(self, reader: str) -> None:
        """Save the mask under another name from now on; the file of the old one stays."""
        if self.open is not None:
            self.open.reader, self.open.saved, self._said = reader, None, ""

    def after_step(self) -> None:
        """See how far all is saved after a step, and save in a few seconds."""
        if self.open is None:
            return
        self._track.look(self.open.session)
        if self.is_dirty and not self.autosave.isActive():
            self.autosave.start()
        self._warn_of_journal()
        self.state_changed.emit()

    def look(self) -> None:
        """Take in a stroke in hand and what napari's tools painted; see how far all is saved."""
        self._mask.release()
        self._mask.notice()
        if self.open is not None:
            self._track.look(self.open.session)

    # -------------------------------------------------------------------- saving

    def save(self, then: Callable[[bool], None] | None = None) -> None:
        """Save the mask; `then` gets whether nothing is left unsaved."""
        if then is not None:
            self._after_save.append(then)
        if self._jobs.is_running("save"):
            return
        opened = self.open
        if opened is None or opened.workspace is None:
            if opened is not None:
                self._notifier.warn_loudly(_NO_WORKSPACE)
            self._answer(opened is None)
            return
        self.look()
        prepared = outcome_of(lambda: self._services.prepare_saving(opened))
        if not isinstance(prepared, Finished):
            self._not_saved(opened, prepared)
            return
        mark, context = self._track.start_saving(opened.session), self._context
        self.state_changed.emit()

        def saved(outcome: Outcome[SavedMask]) -> None:
            if isinstance(outcome, Finished):
                self._saved(opened, context, outcome.result, mark)
            else:
                self._not_saved(opened, outcome)

        self._jobs.start("save", "Saving", prepared.result, saved, shown=False)

    def save_if_needed(self, then: Callable[[bool], None]) -> None:
        """Save first if something is unsaved, then call `then` with whether all is on disk."""
        self.look()
        if self.is_dirty:
            self.save(then)
        else:
            then(True)

    def save_if_new(self, then: Callable[[bool], None]) -> None:
        """Save what is not on disk, an untouched copy included, then call `then` as `save` does."""
        self.look()
        if self.is_dirty or self.state is SaveState.NEW:
            self.save(then)
        else:
            then(True)

    def save_now(self) -> bool:
        """Save in this thread, because the window closes; False if something stays unsaved."""
        self._jobs.finish("save", _LONGEST_WAIT_S)
        self.look()
        opened = self.open
        if opened is None or not self.is_dirty or opened.workspace is None:
            return not self.is_dirty
        self.autosave.stop()
        mark = self._track.start_saving(opened.session)
        outcome = outcome_of(lambda: self._services.prepare_saving(opened)())
        if isinstance(outcome, Finished):
            self._saved(opened, self._context, outcome.result, mark)
        else:
            self._not_saved(opened, outcome)
        return isinstance(outcome, Finished)

    # --------------------------------------------------------------------- inner

    def _saved(
        self, opened: OpenEditing, context: CaseContext | None, saved: SavedMask, mark: Mark
    ) -> None:
        mask = self._session.mask(Role.REFINED)
        if self.open is opened and mask is not None:
            mask.saved, self._said = saved, ""
            self._track.saved(mark, opened.session)
            self.state_changed.emit()
        if context is not None:
            row = self._services.case_row(context.opened, context.case_id)
            self._session.set_row(context.opened, row)
        if self.is_dirty and self._after_save:
            self.save()
            return
        if self.is_dirty:
            self.autosave.start()
        self._answer(not self.is_dirty)

    def _not_saved(self, opened: OpenEditing, outcome: Outcome[Any]) -> None:
        if self.open is opened:
            self._track.failed()
            self.state_changed.emit()
        if isinstance(outcome, Failed):
            self._say_once(plain_text(outcome.error), outcome.error)
        self.autosave.start()
        self._answer(False)

    def _say_once(self, problem: str, error: Exception) -> None:
        if problem != self._said:
            self._said = problem
            self._notifier.fail("Saving your mask", error)

    def _warn_of_journal(self) -> None:
        """Say once, aloud, that strokes are not recorded."""
        problem = self.open.problem if self.open else ""
        reason = problem.partition(";")[0]
        if reason and reason != self._said:
            self._said = reason
            self._notifier.warn_loudly(problem)

    def _answer(self, all_saved: bool) -> None:
        waiting, self._after_save = self._after_save, []
        for then in waiting:
            then(all_saved)

    def _save_by_itself(self) -> None:
        if self.is_dirty and not self._jobs.is_running("save"):
            self.save()
