"""Opening data sets and cases: the first phase is on screen before the others are read."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from qtpy.QtCore import QElapsedTimer, QObject, Signal

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import SaveError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.io.workspace.preferences import remember_recent, remember_workspace
from napari_mamamia.services.case.context import CaseContext
from napari_mamamia.services.case.data_set import CaseRow, OpenDataSet
from napari_mamamia.services.case.show_case import CaseMasks, OpenMask
from napari_mamamia.widgets.adapter.adapter import main_view
from napari_mamamia.widgets.adapter.drawing import sliced_once
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.layers import (
    MASK_ROLES,
    Role,
    array_of,
    case_of,
    style_mask,
    tag_for,
    tag_of,
)
from napari_mamamia.widgets.base.notify import Failed, Finished, Notifier, Outcome
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.base.session import Session, SessionMask
from napari_mamamia.widgets.base.turns import Turns
from napari_mamamia.widgets.viewer.canvas import CanvasText
from napari_mamamia.widgets.viewer.scene import Scene, load_napari_parts, use_units

_log = logging.getLogger(__name__)

_REDRAW_EVERY_MS: Final = 400


@dataclass(frozen=True, slots=True, eq=False)
class CaseRead:
    """What the window needs to show a case: its first phase, masks, contrast, where to look."""

    case: Case
    masks: CaseMasks
    limits: tuple[float, float]
    place: tuple[int, int, int] | None


class Opening(QObject):
    """Runs the jobs and puts their results into the session and the scene.

    `listed` carries the rows of a data set that was opened, `case_shown` says that a case is on
    screen, `mask_shown` that one of its masks came a turn later.
    """

    listed = Signal(object)
    case_shown = Signal()
    mask_shown = Signal()

    def __init__(
        self,
        session: Session,
        scene: Scene,
        text: CanvasText,
        jobs: JobRunner,
        services: Services,
        notifier: Notifier,
    ) -> None:
        super().__init__()
        self._session = session
        self._scene = scene
        self._text = text
        self._jobs = jobs
        self._services = services
        self._notifier = notifier
        self._since_redraw = QElapsedTimer()
        self._late = Turns(self)
        self._ahead = Turns(self)

    # --------------------------------------------------------------- data set

    def open_data_set(
        self, path: Path, then_case: str | None = None, workspace: Path | None = None
    ) -> None:
        """List a data set; then open `then_case`, or its case where it holds only one."""

        def listed(outcome: Outcome[tuple[OpenDataSet, tuple[CaseRow, ...]]]) -> None:
            if isinstance(outcome, Finished):
                self._show_list(*outcome.result, then_case)
            elif isinstance(outcome, Failed):
                self._notifier.fail(f"Opening {path.name or path}", outcome.error)

        self._jobs.start("list", "Listing cases", lambda: self._list(path, workspace), listed)
        self._warm_up()

    def _warm_up(self) -> None:
        """Let napari do what it does once while the reader chooses a case, a turn for each step."""
        steps = self._scene.warm_up_steps()

        def loaded(outcome: Outcome[Any]) -> None:
            if isinstance(outcome, Finished):
                use_units(outcome.result)
                self._ahead.start([*steps, *self._text.make_steps(), self._scene.set_aside])

        if steps:
            title = "Loading parts of napari"
            self._jobs.start("warm up", title, load_napari_parts, loaded, shown=False)

    def change_workspace(self, folder: Path) -> None:
        """Keep this data set's masks in another folder from now on."""
        opened = self._session.opened
        if opened is not None:
            self.open_data_set(opened.data_set.root, self._session.listed_id or None, folder)

    def _list(self, path: Path, workspace: Path | None) -> tuple[OpenDataSet, tuple[CaseRow, ...]]:
        opened = self._services.open_data_set(path, workspace)
        rows = self._services.case_rows(opened)
        preferences = remember_recent(self._services.load_preferences(), opened.data_set.root)
        if workspace is not None:
            preferences = remember_workspace(preferences, opened.data_set.root, workspace)
        try:
            self._services.save_preferences(preferences)
        except SaveError as error:
            _log.warning("the recent data sets were not remembered: %s", error)
        return opened, rows

    def _show_list(
        self, opened: OpenDataSet, rows: tuple[CaseRow, ...], then_case: str | None
    ) -> None:
        self._jobs.cancel("open")  # of the data set that was listed before
        self._session.set_data_set(opened)
        self.listed.emit(rows)
        if opened.warnings:
            more = f" (and {len(opened.warnings) - 1} more)" if len(opened.warnings) > 1 else ""
            self._notifier.warn(f"{opened.warnings[0]}{more}")
        if then_case is None and len(rows) == 1 and not rows[0].files.problems:
            then_case = rows[0].case_id
        if then_case is not None:
            self.open_case(then_case)

    # ------------------------------------------------------------------- case

    def open_case(self, case_id: str) -> None:
        """Read a case of the open data set and show it in place of the one on screen."""
        opened = self._session.opened
        if opened is None:
            return
        context = CaseContext(opened, case_id, self._session.reader)

        def read(outcome: Outcome[CaseRead]) -> None:
            if isinstance(outcome, Finished):
                show = partial(self._show, outcome.result, context)
                if self._scene.choose_phases():  # 15 ms where a mask was chosen: a turn of its own
                    self._late.start([show])
                else:
                    show()
                return
            if isinstance(outcome, Failed):
                self._notifier.fail(f"Opening {case_id}", outcome.error)
            self._scene.expect_case(self._jobs.is_running("open"))
            self._go_on_filling()

        self._scene.expect_case(True)
        self._jobs.cancel("fill")
        self._jobs.start(
            "open",
            f"Opening {case_id}",
            lambda: self._read(context),
            read,
        )

    def show_own_mask(self, then: Callable[[], None] | None = None) -> None:
        """Show the present reader's mask of the open case in place of another reader's."""
        case, context = self._session.case, self._session.context
        self._scene.remove_mask(Role.REFINED)
        self._session.drop_mask(Role.REFINED)
        done = then or _nothing
        if case is None or context is None:
            done()
            return

        def read(outcome: Outcome[CaseMasks]) -> None:
            if isinstance(outcome, Finished):
                self._show_own(case, context, outcome.result)
            elif isinstance(outcome, Failed):
                self._notifier.fail("Reading your mask", outcome.error)
            if self._session.mask(Role.REFINED) is None:
                done()

        self._jobs.start(
            "masks",
            "Reading your mask",
            lambda: self._open_masks(case, context),
            read,
        )

    def _open_masks(self, case: Case, context: CaseContext) -> CaseMasks:
        return self._services.open_masks(case, context.files, context.workspace, context.reader)

    def _show_own(self, case: Case, context: CaseContext, masks: CaseMasks) -> None:
        own = [mask for mask in masks.masks if mask.role == Role.REFINED]
        if own and self._session.shows(case) and self._session.reader == context.reader:
            shown = _session_mask(own[0])
            self._scene.show_mask(tag_for(case, shown.role, shown.provenance), shown.buffer)
            self._session.set_mask(shown)

    def adopt(self) -> None:
        """Take a case whose layers came another way, such as sample data, as the open one.

        It belongs to no data set, so that its masks have no place in a workspace.
        """
        layer = self._scene.layer(Role.PHASE)
        tag = None if layer is None else tag_of(layer)
        if layer is None or tag is None or tag.case_id == self._session.case_id:
            return
        case = case_of(layer)
        self._scene.drop_other_cases(case.case_id)
        masks = []
        for found in self._scene.mask_layers():
            mark = tag_of(found)
            if mark is not None and mark.case_id == case.case_id:
                masks.append(SessionMask(mark.role, "", array_of(found)))
                style_mask(found)
        self._text.set_loaded(None)
        self._session.set_case(case, None, masks)
        place = self._place({mask.role: mask.buffer for mask in masks}, case)
        self._scene.go_to_phase(1)
        if place is not None:
            self._scene.view.go_to(place, centre=False)
        self.case_shown.emit()

    def _read(self, context: CaseContext) -> CaseRead:
        case = self._services.open_case(context.files, context.record)
        masks = self._open_masks(case, context)
        report_progress(1, 1, f"Showing {context.case_id}")
        shown = next((phase.index for phase in case.phases if phase.loaded), 0)
        limits = self._services.display_range(case.signal[shown])
        place = self._place({Role(mask.role): mask.buffer for mask in masks.masks}, case)
        return CaseRead(case, masks, limits, place)

    def _place(self, buffers: dict[Role, Any], case: Case) -> tuple[int, int, int] | None:
        for role in reversed(MASK_ROLES):
            if role in buffers:
                place = self._services.centre_of_largest_part(buffers[role], case.grid)
                if place is not None:
                    return place
        return None

    def _show(self, read: CaseRead, context: CaseContext) -> None:
        masks = [_session_mask(mask) for mask in read.masks.masks]
        is_same_reader = self._session.reader == context.reader
        if not is_same_reader:
            masks = [mask for mask in masks if mask.role is not Role.REFINED]
        self._put_on_screen(read.case, context, masks, read.limits, read.place)
        if not is_same_reader:
            self.show_own_mask()
        for problem in (*read.masks.problems, *read.case.warnings):
            self._notifier.warn(problem)
        if not read.case.is_loaded:
            self._fill(read.case, context.files)

    def _put_on_screen(
        self,
        case: Case,
        context: CaseContext,
        masks: list[SessionMask],
        limits: tuple[float, float],
        place: tuple[int, int, int] | None,
    ) -> None:
        is_first = self._scene.layer(Role.PHASE) is None
        loaded = frozenset(p.index for p in case.phases if p.loaded)
        self._text.is_held = is_first and main_view(self._scene.viewer) is not None
        with sliced_once(self._scene.viewer):
            with self._scene.stack.changing():
                self._scene.retire_case({mask.role for mask in masks})
                self._scene.show_case(case, limits)
                late = [mask for mask in masks if self._may_be_late(mask)]
                for mask in masks:
                    if mask not in late:
                        tag = tag_for(case, mask.role, mask.provenance)
                        self._scene.show_mask(tag, mask.buffer)
            self._session.set_case(case, context, masks)
            if not self._text.is_held:
                self._text.set_loaded(loaded)
            if not is_first:
                self._go_to_tumour(case, place)
        steps = [partial(self._go_to_tumour, case, place)] if is_first else []
        steps += [partial(self._show_late, case, mask) for mask in late]
        self._late.start([*steps, partial(self._write, loaded), self._scene.stack.remove_retired])

    def _write(self, loaded: frozenset[int]) -> None:
        if self._text.is_held:
            self._text.set_loaded(loaded)

    def _go_to_tumour(self, case: Case, place: tuple[int, int, int] | None) -> None:
        """Show the first phase read and the slice of the tumour, else the middle one."""
        if self._session.case is None or self._session.case.signal is not case.signal:
            return
        phase = next((p.index for p in case.phases if p.loaded), 0)
        z, y, x = case.grid.shape
        self._scene.view.go_to(place or (z // 2, y // 2, x // 2), centre=False, phase=phase)
        self.case_shown.emit()

    def _may_be_late(self, mask: SessionMask) -> bool:
        """Whether a mask gets its layer in a turn of its own: a new layer takes napari 50 ms."""
        return mask.role is not Role.REFINED and self._scene.layer(mask.role) is None

    def _show_late(self, case: Case, mask: SessionMask) -> None:
        is_there = self._scene.layer(mask.role) is not None
        if self._session.case_id != case.case_id or self._session.mask(mask.role) is not mask:
            return
        if not is_there and self._scene.layer(Role.PHASE) is not None:
            self._scene.show_mask(tag_for(case, mask.role, mask.provenance), mask.buffer)
            self.mask_shown.emit()

    # ------------------------------------------------------------ other phases

    def _go_on_filling(self) -> None:
        """Read the rest of the case that stayed on screen, after another one was not opened."""
        case, files = self._session.case, self._session.files
        if case is not None and files is not None and not case.is_loaded:
            self._fill(case, files)

    def _fill(self, case: Case, files: CaseFiles) -> None:
        self._since_redraw.start()

        def filled(outcome: Outcome[Case]) -> None:
            if not self._session.shows(case):
                return
            if isinstance(outcome, Finished):
                self._finish_filling(outcome.result, case)
            elif isinstance(outcome, Failed):
                self._notifier.fail(f"Reading the other phases of {case.case_id}", outcome.error)

        self._jobs.start(
            "fill",
            f"Reading {case.case_id}",
            lambda: self._services.load_remaining(case, files),
            filled,
            on_progress=lambda _progress: self._redraw_now_and_then(),
        )

    def _finish_filling(self, full: Case, before: Case) -> None:
        self._text.set_loaded(None)
        self._session.set_loaded(full)
        self._scene.redraw_phases()
        for text in full.warnings[len(before.warnings) :]:
            self._notifier.warn(text)

    def _redraw_now_and_then(self) -> None:
        case = self._session.case
        phase = self._scene.phase
        if case is None or phase is None or case.phases[phase].loaded:
            return
        if self._since_redraw.elapsed() > _REDRAW_EVERY_MS:
            self._since_redraw.restart()
            self._scene.redraw_phases()


def _session_mask(mask: OpenMask) -> SessionMask:
    return SessionMask(
        Role(mask.role),
        mask.name,
        mask.buffer,
        mask.labels,
        mask.values,
        mask.provenance,
        mask.provenance.started_from if mask.provenance else "",
        mask.file,
        mask.saved,
    )


def _nothing() -> None:
    """Follow a step that nothing follows."""
