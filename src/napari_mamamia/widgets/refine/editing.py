"""The reader's own mask: opened with its journal, edited and saved.

The reader's existing mask is opened for editing as soon as the case is read; a new mask is copied
from another mask on request. The mask is saved a few seconds after a change, before another case is
opened, and before the window closes. Each step is recorded in the journal before the mask is saved.
"""

from collections.abc import Callable
from typing import Any, Final

from qtpy.QtCore import QTimer, Signal

from napari_mamamia.core.case import Case, LabelMap
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.texts import tr
from napari_mamamia.services.refine.editing import OpenEditing
from napari_mamamia.services.refine.numbers import empty_map
from napari_mamamia.smartpaint.session.session import EditingSession
from napari_mamamia.widgets.base.layers import Role, tag_for
from napari_mamamia.widgets.base.session import SessionMask
from napari_mamamia.widgets.controls.call_later import call_later
from napari_mamamia.widgets.refine.live_mask import LiveMask
from napari_mamamia.widgets.refine.mask_saving import MaskSaving
from napari_mamamia.widgets.refine.mask_watch import SaveState
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_LANE: Final = "edit"


class Editing(WindowPart):
    """A component that opens, tracks and saves the refined mask.

    The signal `state_changed` reports a new `state`, and `opened` that a different mask, or none,
    is open for editing. `stepped` reports that a step was made, undone or redone.
    """

    state_changed = Signal()
    opened = Signal()
    stepped = Signal()

    def __init__(self, context: WindowContext) -> None:
        super().__init__(context)
        self._asked_for: tuple[object, str] | None = None
        self._pending: OpenEditing | None = None
        self._left: OpenEditing | None = None
        self._wanted_start: tuple[LabelMap | None, str] | None = None
        self._begin = QTimer(self)
        self._begin.setSingleShot(True)
        self._begin.timeout.connect(self._begin_pending)
        self.mask = LiveMask(context)
        self.mask.stepped.connect(self._on_stepped)
        self.saving = MaskSaving(context, self.mask)
        self.saving.state_changed.connect(self.state_changed)
        self._session.case_changed.connect(self._follow_case)
        self._session.masks_changed.connect(self._follow_case)
        self._session.reader_changed.connect(self._follow_case)
        self._scene.viewer.layers.events.removed.connect(self._on_removed)

    # ------------------------------------------------------------------- state

    @property
    def live(self) -> EditingSession | None:
        """The editing session, or None while no mask is open for editing."""
        return self.mask.live

    @property
    def layer(self) -> Any | None:
        """The layer of the refined mask."""
        return self.mask.layer

    @property
    def open(self) -> OpenEditing | None:
        """The mask that is open for editing, with its journal, or None if there is none."""
        return self.saving.open

    @property
    def open_is_new(self) -> bool:
        """Whether the open mask has no earlier work, which may be saved, recovered or edited."""
        opened = self.open
        if opened is None:
            return False
        is_stored = opened.saved is not None or opened.recovered is not None
        return not is_stored and opened.session.position == 0

    @property
    def state(self) -> SaveState:
        """The saved state of the edited mask."""
        return self.saving.state

    @property
    def is_dirty(self) -> bool:
        """Whether there are unsaved changes."""
        return self.saving.is_dirty

    # ----------------------------------------------------------------- opening

    def start(self, source: Role | None) -> None:
        """Copy the mask of a role (None: an empty mask) as this reader's own mask.

        If the reader already has a mask for the case, that mask is opened first, and the copy
        becomes a step in its history.
        """
        case = self._session.case
        if case is None:
            return
        origin = None if source is None else self._session.mask(source)
        name = "" if origin is None else f"{origin.role} {origin.name}".strip()
        self.start_with(None if origin is None else LabelMap.of(origin.buffer, case.grid), name)

    def start_with(self, labels: LabelMap | None, name: str) -> None:
        """Use a mask (None: an empty mask) as this reader's own mask, as `start` does."""
        case, reader = self._session.case, self._session.reader
        if case is None or not reader:
            return
        if self.live is not None:
            self._lay_over(labels, name)
        elif self._jobs.is_running(_LANE) or self._pending is not None:
            self._wanted_start = (labels, name)
        else:
            self._open_mask(case, reader, labels, name)

    def _lay_over(self, labels: LabelMap | None, name: str) -> None:
        live = self.live
        if live is None:
            return
        self.mask.release()
        step = live.apply_labels(name or tr("empty mask"), labels or empty_map(live.grid))
        if step is not None:
            self._scene.redraw_box(Role.REFINED, step.difference.box)
            self.mask.stepped.emit()

    def _follow_case(self) -> None:
        case, reader = self._session.case, self._session.reader
        request = None if case is None or not reader else (id(case.signal), reader)
        if self._asked_for is not None and (case is None or self._asked_for[0] != id(case.signal)):
            self._asked_for = None  # another case may get the same address in memory
        if self.open is not None and not self._is_of(self.open, case, reader):
            self._close_left()
            self._left = self.open
            self._let_go()
            # 5 ms of the iteration in which the next case is shown
            call_later(self, self._close_left)
        if self._session.mask(Role.REFINED) is None and self.open is not None:
            self._let_go()
            self._asked_for = request  # a mask that the user removed is not restored
        self._lock_layer()
        if request is None or case is None or not reader or not case.is_loaded:
            return
        if self.open is None and request != self._asked_for and self._session.workspace:
            self._asked_for = request
            self._open_mask(case, reader, None, "", only_if_begun=True)

    def _is_of(self, opened: OpenEditing, case: Case | None, reader: str | None) -> bool:
        same = case is not None and opened.case.signal is case.signal
        return same and (opened.reader == reader or self.is_dirty)

    def _open_mask(
        self,
        case: Case,
        reader: str,
        start: LabelMap | None,
        name: str,
        *,
        only_if_begun: bool = False,
    ) -> None:
        self._close_left()  # the same mask may be opened again
        workspace = self._session.workspace
        begun = self._services.is_begun

        def work() -> OpenEditing | None:
            report_progress(0, 1, tr("Opening your mask"))
            if only_if_begun and workspace and not begun(workspace, reader, case.case_id):
                return None
            return self._services.open_editing(case, workspace, reader, start, started_from=name)

        doing = tr("Opening your mask for editing")

        def take(mask: OpenEditing | None) -> None:
            if mask is not None:
                self._show_opened(mask, case)
                return
            start_now, self._wanted_start = self._wanted_start, None
            if start_now is not None:
                self._open_mask(case, reader, *start_now)

        def forget() -> None:
            self._wanted_start = None

        def refuse(error: Exception) -> None:
            forget()
            self._notifier.fail(doing, error)

        self._jobs.start(
            _LANE,
            doing,
            work,
            take,
            failed=refuse,
            stopped=forget,
            discard=_close_opened,
            shown=False,
        )

    def _show_opened(self, opened: OpenEditing, case: Case) -> None:
        """Show the mask now and start editing in the next iteration, because both are slow."""
        _close_opened(self._pending)
        self._pending = None
        if not self._is_of(opened, self._session.case, self._session.reader):
            opened.close()
            self._wanted_start = None
            return
        self._pending = opened
        self._scene.show_mask(tag_for(case, Role.REFINED), opened.session.labels)
        self._begin.start()

    def _begin_pending(self) -> None:
        opened, self._pending = self._pending, None
        pending_start, self._wanted_start = self._wanted_start, None
        case = self._session.case
        if opened is None or case is None or not self._is_of(opened, case, self._session.reader):
            _close_opened(opened)
            return
        live = opened.session
        before = self._session.mask(Role.REFINED)
        mask = SessionMask(
            Role.REFINED,
            opened.reader,
            live.labels,
            provenance=before.provenance if before else None,
            started_from=live.summary.started_from,
            saved=opened.saved,
        )
        self.mask.begin(live, tag_for(case, Role.REFINED))
        self.saving.begin(opened, self._session.context)
        self._session.set_mask(mask)
        if opened.notes:  # at once: the window shows only the last warning
            self._notifier.warn("; ".join(opened.notes))
        self.opened.emit()
        self.state_changed.emit()
        if pending_start is not None:
            self._lay_over(*pending_start)

    def _lock_layer(self) -> None:
        """Lock a mask that is not open for editing, because strokes on it would be lost."""
        layer = self._scene.layer(Role.REFINED)
        if layer is not None:
            layer.editable = self.open is not None

    def _let_go(self) -> None:
        opened = self.open
        self.saving.end()
        self.mask.end()
        self._asked_for = None
        if opened is not None and opened is not self._left:
            opened.close()
        self.opened.emit()
        self.state_changed.emit()

    def _close_left(self) -> None:
        opened, self._left = self._left, None
        _close_opened(opened)

    # ---------------------------------------------------------------- recovery

    def take_over(self, wanted: bool) -> None:
        """Keep the steps recovered after a crash, or return to the saved mask as a new step."""
        if self.open is None:
            return
        if wanted:
            self.open.recovered = None
        else:
            self.mask.release()
            self._scene.redraw_box(Role.REFINED, self.open.back_to_saved())
        self.mask.stepped.emit()

    # ------------------------------------------------------------------ layers

    def choose_layer(self) -> None:
        """Select the layer of the refined mask, and make it visible."""
        layer = self.layer
        if layer is not None:
            layer.visible = True
            layer.mode = "pan_zoom"
            self._scene.viewer.layers.selection.active = layer

    # ---------------------------------------------------------------- saving

    def save(self, then: Callable[[bool], None] | None = None) -> None:
        """Save the mask; see `MaskSaving.save`."""
        self.saving.save(then)

    def save_if_needed(self, then: Callable[[bool], None]) -> None:
        """Save unsaved changes, then call `then` with whether all changes are on disk."""
        self.saving.save_if_needed(then)

    def save_now(self) -> bool:
        """Save in this thread when the window closes; return whether everything is saved."""
        return self.saving.save_now()

    def keep_under(self, reader: str) -> None:
        """Assign the unsaved mask to another reader, and save it under this reader's name."""
        mask = self._session.mask(Role.REFINED)
        if mask is not None and self.open is not None:
            self.saving.take_reader(reader)
            mask.name, mask.saved = reader, None
            self._session.masks_changed.emit()
            self.save()

    def discard(self) -> None:
        """Discard the mask in this window without changing its file or its journal."""
        self._scene.remove_mask(Role.REFINED)
        self._session.drop_mask(Role.REFINED)

    def close(self) -> None:
        """Release the journal when the window closes."""
        self.mask.end()
        self._close_left()
        for opened in (self.open, self._pending):
            _close_opened(opened)

    # -------------------------------------------------------------- watching

    def _on_stepped(self) -> None:
        if self.live is not None:
            self.saving.after_step()
            self.stepped.emit()
            self._session.mask_edited.emit()

    def _on_removed(self, event: Any) -> None:
        mask, case, opened = self._session.mask(Role.REFINED), self._session.case, self.open
        if self._scene.is_changing or opened is None or event.value is not self.mask.followed:
            return
        if mask is None or case is None:
            return

        def after(all_saved: bool) -> None:
            if self.open is not opened:
                return
            if all_saved or opened.workspace is None:
                self._session.drop_mask(Role.REFINED)
            else:
                self.mask.repair_layer()
                self._session.set_mask(mask)

        self.save_if_needed(after)


def _close_opened(opened: OpenEditing | None) -> None:
    if opened is not None:
        opened.close()
