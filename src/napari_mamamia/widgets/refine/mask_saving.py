"""Saving the reader's mask for the open case, and loading newer predictions.

The mask is saved automatically, on request, before another case is opened and before the window
closes. Each step is recorded in the journal before the mask is saved, see
`services.refine.edit_case`. A prediction may have been written by "Predict all", a terminal command
or another window. Masks in a review, unsaved masks, and masks that the user removed are not
replaced.
"""

from collections.abc import Callable
from typing import Final

from qtpy.QtCore import QTimer, Signal

from napari_mamamia.core.case import Case
from napari_mamamia.core.texts import tr
from napari_mamamia.io.workspace.workspace import FileState
from napari_mamamia.services.case.context import CaseContext, CaseKey
from napari_mamamia.services.case.refine import SavedMask
from napari_mamamia.services.case.show_case import OpenMask
from napari_mamamia.services.refine.editing import OpenEditing
from napari_mamamia.widgets.base.jobs import RunningJob
from napari_mamamia.widgets.base.layers import Role, tag_for
from napari_mamamia.widgets.base.notify import (
    Failed,
    Finished,
    outcome_of,
    plain_text,
)
from napari_mamamia.widgets.base.session import SessionMask
from napari_mamamia.widgets.refine.live_mask import LiveMask
from napari_mamamia.widgets.refine.mask_watch import Mark, SaveState, SaveTrack
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_AUTOSAVE_AFTER_MS: Final = 5_000
_AFTER_STROKE_MS: Final = 300
_LONGEST_WAIT_S: Final = 10.0
_NO_WORKSPACE: Final = tr(
    "this case does not belong to a data set, so there is no folder for your mask: save its layer "
    "with File > Save Selected Layers, or delete the layer"
)


class MaskSaving(WindowPart):
    """A component that saves the open mask; `state_changed` reports a new `state`."""

    state_changed = Signal()

    def __init__(self, context: WindowContext, mask: LiveMask) -> None:
        super().__init__(context)
        self._mask = mask
        self._said = ""
        self._after_save: list[Callable[[bool], None]] = []
        self._is_accepting = False
        self._track = SaveTrack()
        self.open: OpenEditing | None = None
        self._case_context: CaseContext | None = None
        self.autosave = QTimer(self)
        self.autosave.setSingleShot(True)
        self.autosave.setInterval(_AUTOSAVE_AFTER_MS)
        self.autosave.timeout.connect(self._save_by_itself)

    # ------------------------------------------------------------------- state

    @property
    def state(self) -> SaveState:
        """The saved state of the edited mask."""
        return self._track.state

    @property
    def is_dirty(self) -> bool:
        """Whether there are unsaved changes."""
        return self._track.is_dirty or self._mask.strokes.is_settling

    @property
    def text(self) -> str:
        """Return a text about the saved state of the mask and its journal."""
        text = self._track.text(self._journal_text())
        return tr("accepted · {saved}", saved=text) if self.is_accepted else text

    @property
    def short_text(self) -> str:
        """Return the saved state of the mask in one or two words."""
        return tr("accepted") if self.is_accepted else self._track.short_text

    @property
    def is_accepted(self) -> bool:
        """Whether the saved mask is exactly the mask that the reader accepted."""
        saved = self.open.saved if self.open else None
        return saved is not None and saved.is_accepted and self.state is SaveState.SAVED

    @property
    def is_failing(self) -> bool:
        """Whether writing the mask or its journal currently fails."""
        problem = self.open.problem if self.open else ""
        return self.state is SaveState.FAILED or bool(problem)

    def _journal_text(self) -> str:
        if self.open is None:
            return ""
        if self.open.journal is None:
            return tr("strokes not kept")
        return tr("strokes NOT kept") if self.open.problem else tr("strokes kept")

    # ----------------------------------------------------------------- following

    def begin(self, opened: OpenEditing, context: CaseContext | None) -> None:
        """Start saving this mask; `context` determines the files of its case."""
        self.open, self._case_context, self._said = opened, context, ""
        live = opened.session
        is_saved = opened.is_as_saved and opened.recovered is None
        self._track.begin(live, is_saved=is_saved)
        if opened.problem:
            self._warn_of_journal()

    def end(self) -> None:
        """Stop saving."""
        self.autosave.stop()
        self.open = None
        self._track.leave()

    def take_reader(self, reader: str) -> None:
        """Start saving the mask under a different reader name; the previous file is kept."""
        if self.open is not None:
            self.open.reader, self.open.saved, self._said = reader, None, ""

    def after_step(self) -> None:
        """Update the state after a step, and save in a few seconds."""
        if self.open is None:
            return
        self._track.look(self.open.session)
        # The timer is not restarted at each step, or continuous painting would never be saved.
        if self.is_dirty and not self.autosave.isActive():
            self.autosave.start(_AUTOSAVE_AFTER_MS)
        self._warn_of_journal()
        self.state_changed.emit()

    def look(self) -> None:
        """Record a current stroke and napari's painting, then update the state."""
        self._mask.release()
        self._mask.notice()
        if self.open is not None:
            self._track.look(self.open.session)

    # -------------------------------------------------------------------- saving

    def save(self, then: Callable[[bool], None] | None = None) -> None:
        """Save the mask, then call `then` with whether all changes are saved."""
        if then is not None:
            self._after_save.append(then)
        if self._jobs.is_running("save"):
            return
        opened = self.open
        if opened is None or opened.workspace is None:
            if opened is not None:
                self._notifier.warn_loudly(_NO_WORKSPACE)
            self._answer_waiting(opened is None)
            return
        self.look()
        accepted = self._is_accepting
        prepared = outcome_of(lambda: self._services.prepare_saving(opened, accepted=accepted))
        if not isinstance(prepared, Finished):
            self._not_saved(opened, prepared.error if isinstance(prepared, Failed) else None)
            return
        mark, context = self._track.start_saving(opened.session), self._case_context
        self.state_changed.emit()

        self._jobs.start(
            "save",
            "Saving",
            prepared.result,
            lambda saved: self._finish_saving(opened, context, saved, mark),
            failed=lambda error: self._not_saved(opened, error),
            stopped=lambda: self._not_saved(opened, None),
            shown=False,
        )

    def save_if_needed(self, then: Callable[[bool], None]) -> None:
        """Save unsaved changes, then call `then` with whether all changes are on disk."""
        self.look()
        if self.is_dirty:
            self.save(then)
        else:
            then(True)

    def save_if_new(self, then: Callable[[bool], None]) -> None:
        """Save a mask that is not on disk, even if it is an unchanged copy, then call `then`."""
        self.look()
        if self.is_dirty or self.state is SaveState.NEW:
            self.save(then)
        else:
            then(True)

    def accept(self, then: Callable[[bool], None]) -> None:
        """Save the mask, even an unchanged copy, as accepted; then call `then` as `save` does."""
        self.look()
        if self.is_accepted:
            then(True)
        else:
            self._is_accepting = True
            self.save(then)

    def save_now(self) -> bool:
        """Save in this thread when the window closes; return whether everything is saved."""
        # The window closes in this very event: the queued result of the saving thread would come
        # too late.
        self._jobs.finish("save", _LONGEST_WAIT_S)
        self.look()
        opened = self.open
        if opened is None or not self.is_dirty or opened.workspace is None:
            return not self.is_dirty
        self.autosave.stop()
        mark = self._track.start_saving(opened.session)
        outcome = outcome_of(lambda: self._services.prepare_saving(opened)())
        if isinstance(outcome, Finished):
            self._finish_saving(opened, self._case_context, outcome.result, mark)
        else:
            self._not_saved(opened, outcome.error if isinstance(outcome, Failed) else None)
        return isinstance(outcome, Finished)

    # --------------------------------------------------------------------- inner

    def _finish_saving(
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
        # There were steps while the mask was written, or it was accepted meanwhile.
        is_late = self._is_accepting and not saved.is_accepted and self.open is opened
        if (self.is_dirty or is_late) and self._after_save:
            self.save()
            return
        if self.is_dirty:
            self.autosave.start(_AUTOSAVE_AFTER_MS)
        self._answer_waiting(not self.is_dirty)

    def _not_saved(self, opened: OpenEditing, error: Exception | None) -> None:
        if self.open is opened:
            self._track.failed()
            self.state_changed.emit()
        if error is not None:
            self._say_once(plain_text(error), error)
        self.autosave.start(_AUTOSAVE_AFTER_MS)
        self._answer_waiting(False)

    def _say_once(self, problem: str, error: Exception) -> None:
        if problem != self._said:
            self._said = problem
            self._notifier.fail(tr("Saving your mask"), error)

    def _warn_of_journal(self) -> None:
        problem = self.open.problem if self.open else ""
        reason = problem.partition(";")[0]
        if reason and reason != self._said:
            self._said = reason
            self._notifier.warn_loudly(problem)

    def _answer_waiting(self, all_saved: bool) -> None:
        waiting, self._after_save = self._after_save, []
        self._is_accepting = False
        for then in waiting:
            then(all_saved)

    def _save_by_itself(self) -> None:
        live = self._mask.live
        if live is not None and (live.is_painting or self._mask.strokes.is_settling):
            # Saving would end the current stroke, or wait for one that is being settled.
            self.autosave.start(_AFTER_STROKE_MS)
        elif self.is_dirty and not self._jobs.is_running("save"):
            self.save()


_LANE: Final = "refresh"
_WRITERS: Final = ("predict all", "import run")
"""Names of job lanes that may write a prediction for the open case."""
_NOT_SHOWN: Final = tr("A newer prediction is not shown: {}")


class MaskRefresh(WindowPart):
    """A component that checks for a newer prediction after such jobs, and in `look`."""

    def __init__(self, context: WindowContext) -> None:
        super().__init__(context)
        self._key: CaseKey = self._session.case_key
        self._seen: FileState | None = None
        self._session.case_changed.connect(self._follow_case)
        self._session.masks_changed.connect(self._remember_file)
        self._jobs.ended.connect(self._on_job_ended)

    def look(self) -> None:
        """Check for a newer prediction for the open case, and show the new prediction."""
        case, context = self._session.case, self._session.context
        if case is None or context is None or self._is_busy():
            return
        seen = self._seen

        def show(mask: OpenMask | None) -> None:
            if mask is not None:
                self._show_prediction(case, context, mask)

        newer, workspace = self._services.newer_prediction, context.workspace
        self._jobs.start(
            _LANE,
            tr("Checking for a newer prediction"),
            lambda: newer(case, workspace, seen),
            show,
            failed=lambda error: self._notifier.warn(_NOT_SHOWN.format(plain_text(error))),
            still=lambda: self._session.shows(case) and self._seen == seen,
            shown=False,
        )

    # -------------------------------------------------------------------- inner

    def _is_busy(self) -> bool:
        mask = self._session.mask(Role.PREDICTION)
        is_other = mask is not None and mask.file is None
        return is_other or any(map(self._jobs.is_running, ("predict", "open", "review")))

    def _follow_case(self) -> None:
        if self._session.case_key != self._key:
            self._key, self._seen = self._session.case_key, None

    def _remember_file(self) -> None:
        mask = self._session.mask(Role.PREDICTION)
        if mask is not None and mask.file is not None:
            self._seen = mask.file

    def _on_job_ended(self, ticket: RunningJob, _outcome: object) -> None:
        if ticket.lane in _WRITERS:
            self.look()

    def _show_prediction(self, case: Case, context: CaseContext, found: OpenMask) -> None:
        self._scene.overlays.hide_uncertainty()
        tag = tag_for(case, Role.PREDICTION, found.provenance)
        self._scene.show_mask(tag, found.buffer)
        self._session.set_mask(
            SessionMask(
                Role.PREDICTION,
                found.name,
                found.buffer,
                found.labels,
                found.values,
                found.provenance,
                file=found.file,
            )
        )
        row = self._services.case_row(context.opened, context.case_id)
        self._session.set_row(context.opened, row)
        self._notifier.hint(tr("{name}'s newer prediction of this case is shown.", name=found.name))
