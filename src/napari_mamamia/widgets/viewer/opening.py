"""Opening of cases: the first phase is displayed before the other phases are read."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from qtpy.QtCore import QElapsedTimer, QTimer, Signal

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.texts import tr
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.services.case.context import CaseContext
from napari_mamamia.services.case.read_ahead import CaseAhead
from napari_mamamia.services.case.show_case import CaseMasks, OpenMask
from napari_mamamia.widgets.adapter.adapter import main_view
from napari_mamamia.widgets.adapter.drawing import sliced_once
from napari_mamamia.widgets.base.event_loop import EventLoopSteps
from napari_mamamia.widgets.base.layers import (
    MASK_ROLES,
    Role,
    array_of,
    case_of,
    style_mask,
    tag_for,
    tag_of,
)
from napari_mamamia.widgets.base.session import SessionMask
from napari_mamamia.widgets.viewer.canvas import CanvasText
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.scene import load_napari_parts, use_units

_log = logging.getLogger(__name__)

_LANE: Final = "ahead"
_REST_MS: Final = 300
"""Idle time in ms before the next case is read (our choice).

The time starts after the last opening, listing or search.
"""


class Ahead(WindowPart):
    """A component that prefetches the next case after the open case is complete.

    At most one case is kept.
    """

    def __init__(self, context: WindowContext) -> None:
        super().__init__(context)
        self._kept: CaseAhead | None = None
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(_REST_MS)
        self._rest.timeout.connect(self._read_next)
        session = self._session
        session.data_set_changed.connect(self.begin_again)
        session.case_changed.connect(self.begin_again)
        session.queue_changed.connect(self.begin_again)

    def take(self) -> CaseAhead | None:
        """Return the prefetched case, and stop prefetching."""
        case_ahead = self._kept
        self.stop()
        return case_ahead

    def stop(self) -> None:
        """Drop the prefetched case; nothing is read until `begin_again` is called."""
        self._rest.stop()
        self._jobs.cancel(_LANE)
        self._kept = None

    def begin_again(self) -> None:
        """Read the next case after a short time without changes."""
        if self._kept is None or self._find_next() is None:
            self.stop()
        self._rest.start()

    def _find_next(self) -> CaseContext | None:
        session = self._session
        case_id, opened = session.neighbour(1), session.opened
        is_busy = self._jobs.is_running("open") or self._jobs.is_running("list")
        is_filling = session.case is not None and not session.case.is_loaded
        if case_id is None or opened is None or is_busy or is_filling:
            return None
        return CaseContext(opened, case_id) if case_id in opened.data_set.by_id() else None

    def _read_next(self) -> None:
        context = self._find_next()
        if context is None:
            return
        files, record = context.files, context.record
        if self._kept is not None and (self._kept.files, self._kept.record) == (files, record):
            return
        self.stop()
        self._jobs.start(
            _LANE,
            tr("Prefetching {case_id}", case_id=context.case_id),
            lambda: self._services.read_ahead(files, record),
            self._keep_first,
            failed=_leave_for_opening,
            shown=False,
        )

    def _keep_first(self, ahead: CaseAhead | None) -> None:
        self._kept = ahead
        if ahead is None:
            return
        self._jobs.start(
            _LANE,
            tr("Prefetching the phases of {case_id}", case_id=ahead.case.case_id),
            lambda: self._services.read_rest_ahead(ahead),
            self._keep_all,
            failed=_leave_for_opening,
            shown=False,
        )

    def _keep_all(self, ahead: CaseAhead) -> None:
        self._kept = ahead


def _leave_for_opening(error: Exception) -> None:
    """Ignore the error, because opening the case reads it again and then reports the error."""
    _log.debug("the next case could not be read ahead", exc_info=error)


_REDRAW_EVERY_MS: Final = 400


@dataclass(frozen=True, slots=True, eq=False)
class CaseRead:
    """The data needed to show a case: first phase, masks, window/level and initial position."""

    case: Case
    phase: int
    masks: CaseMasks
    limits: tuple[float, float]
    place: tuple[int, int, int] | None


class Opening(WindowPart):
    """A component that runs the opening jobs and passes the results to the session and the scene.

    The signal `case_shown` reports that a case is displayed, and `mask_shown` that a mask was added
    in a later event-loop iteration.
    """

    case_shown = Signal()
    mask_shown = Signal()

    def __init__(self, context: WindowContext, text: CanvasText) -> None:
        super().__init__(context)
        self._text = text
        self._since_redraw = QElapsedTimer()
        self._late = EventLoopSteps(self)
        self._warming = EventLoopSteps(self)
        self.ahead = Ahead(context)

    def warm_up(self) -> None:
        """Initialise napari while the reader selects a case, one step per iteration."""
        steps = self._scene.warm_up_steps()

        def go_on(units: Any) -> None:
            use_units(units)
            self._warming.start([*steps, *self._text.make_steps(), self._scene.set_aside])

        if steps:
            doing = tr("Loading modules of napari")
            self._jobs.start("warm up", doing, load_napari_parts, go_on, shown=False)

    def open_case(self, case_id: str) -> None:
        """Read a case in the open data set, and show it instead of the current case."""
        opened = self._session.opened
        if opened is None:
            return
        doing = tr("Opening {case_id}", case_id=case_id)
        try:
            context = CaseContext(opened, case_id, self._session.reader)
        except CaseError as error:  # it was in the previous list
            self._notifier.fail(doing, error)
            return

        def show_row() -> None:
            # the headers of its study may have been read after the row was made
            if context.files.source is not None and case_id in self._session.rows:
                self._session.set_row(opened, self._session.rows[case_id])

        def show(case: CaseRead) -> None:
            show_row()
            show_now = partial(self._show_case, case, context)
            if self._prepare_case(case):
                self._late.start([show_now])
            else:
                show_now()

        def refuse(error: Exception) -> None:
            self._notifier.fail(doing, error)
            show_row()
            self._keep_case()

        self._scene.expect_case(True)
        self._jobs.cancel("fill")
        self._jobs.cancel("open")
        self._session.set_coming(True)
        read = partial(self._read_case, context, self.ahead.take())
        self._jobs.start("open", doing, read, show, failed=refuse, stopped=self._keep_case)

    def _prepare_case(self, read: CaseRead) -> bool:
        """Run one preparation step before a case is shown; return whether there was such a step.

        The step takes 25 ms for the first case, and 15 ms if a mask was selected.
        """
        if self._scene.layer(Role.PHASE) is not None or main_view(self._scene.viewer) is None:
            return self._scene.choose_phases()
        self._text.is_held = True
        self._scene.prepare_case(read.case, read.limits)
        return True

    def _keep_case(self) -> None:
        self._session.set_coming(False)
        self._scene.expect_case(self._jobs.is_running("open"))
        self._go_on_filling()
        self.ahead.begin_again()

    def show_own_mask(self, then: Callable[[], None] | None = None) -> None:
        """Show the current reader's mask for the open case instead of another reader's mask."""
        case, context = self._session.case, self._session.context
        self._scene.remove_mask(Role.REFINED)
        self._session.drop_mask(Role.REFINED)
        go_on = then or _follow_nothing
        if case is None or context is None:
            go_on()
            return

        def go_on_without() -> None:
            if self._session.mask(Role.REFINED) is None:
                go_on()

        self._jobs.start(
            "masks",
            tr("Reading your mask"),
            lambda: self._open_masks(case, context),
            lambda masks: self._show_own(case, context, masks),
            ended=go_on_without,
        )

    def _open_masks(self, case: Case, context: CaseContext) -> CaseMasks:
        return self._services.open_masks(case, context.files, context.workspace, context.reader)

    def _show_own(self, case: Case, context: CaseContext, masks: CaseMasks) -> None:
        own_masks = [mask for mask in masks.masks if mask.role == Role.REFINED]
        is_wanted = self._session.shows(case) and self._session.reader == context.reader
        # A mask that is now open for editing has the unsaved strokes, too.
        if not own_masks or not is_wanted or self._session.mask(Role.REFINED) is not None:
            return
        own_mask = _session_mask(own_masks[0])
        if self._scene.layer(Role.REFINED) is None:
            self._scene.show_mask(
                tag_for(case, own_mask.role, own_mask.provenance), own_mask.buffer
            )
        self._session.set_mask(own_mask)

    def adopt(self) -> None:
        """Open a case whose layers were added by other means, such as sample data.

        The case does not belong to a data set, so its masks have no workspace.
        """
        layer = self._scene.layer(Role.PHASE)
        tag = None if layer is None else tag_of(layer)
        if layer is None or tag is None or tag.case_id == self._session.case_id:
            return
        case = case_of(layer)
        self._scene.drop_other_cases(case.case_id)
        masks = []
        for mask_layer in self._scene.mask_layers():
            mark = tag_of(mask_layer)
            if mark is not None and mark.case_id == case.case_id:
                masks.append(SessionMask(mark.role, "", array_of(mask_layer)))
                style_mask(mask_layer)
        self._text.set_loaded(None)
        self._session.set_case(case, None, masks)
        position = self._find_place({mask.role: mask.buffer for mask in masks}, case)
        # Phase 1 is the first after contrast; a case without it stays at the nearest phase.
        self._scene.go_to_phase(1)
        if position is not None:
            self._scene.view.go_to(position, centre=False)
        self.case_shown.emit()

    def _read_case(self, context: CaseContext, ahead: CaseAhead | None) -> CaseRead:
        files, record = context.files, context.record
        if ahead is not None and self._services.is_current(ahead, files, record):
            case, phase = ahead.case, ahead.phase
        else:
            case = self._services.open_case(files, record)
            phase = next((phase.index for phase in case.phases if phase.loaded), 0)
        masks = self._open_masks(case, context)
        report_progress(1, 1, tr("Showing {case_id}", case_id=context.case_id))
        limits = self._services.display_range(case.signal[phase])
        position = self._find_place({Role(mask.role): mask.buffer for mask in masks.masks}, case)
        return CaseRead(case, phase, masks, limits, position)

    def _find_place(self, buffers: dict[Role, Any], case: Case) -> tuple[int, int, int] | None:
        for role in reversed(MASK_ROLES):
            if role in buffers:
                position = self._services.centre_of_largest_part(buffers[role], case.grid)
                if position is not None:
                    return position
        return None

    def _show_case(self, read: CaseRead, context: CaseContext) -> None:
        if not self._session.hides_as(context.opened):
            self._scene.drop_other_cases(self._session.case_id)
            self._keep_case()
            return
        masks = [_session_mask(mask) for mask in read.masks.masks]
        # If the reader changed during reading, the refined mask is not theirs.
        is_same_reader = self._session.reader == context.reader
        if not is_same_reader:
            masks = [mask for mask in masks if mask.role is not Role.REFINED]
        self._put_on_screen(read, context, masks)
        if not is_same_reader:
            self.show_own_mask()
        for problem in (*read.masks.problems, *read.case.warnings):
            self._notifier.warn(problem)
        if not read.case.is_loaded:
            self._fill_phases(read.case, context.files)

    def _put_on_screen(
        self, read: CaseRead, context: CaseContext, masks: list[SessionMask]
    ) -> None:
        case = read.case
        is_first = self._session.case is None
        loaded = frozenset(p.index for p in case.phases if p.loaded)
        # Creating the texts takes napari some iterations: they come after those of the first
        # case.
        is_slow = is_first and main_view(self._scene.viewer) is not None
        # Otherwise they are written at each change of the axes.
        self._text.is_held = True
        with sliced_once(self._scene.viewer):
            with self._scene.stack.changing():
                self._scene.retire_case({mask.role for mask in masks})
                late = [mask for mask in masks if self._may_be_late(mask)]
                tags = [(tag_for(case, mask.role, mask.provenance), mask.buffer) for mask in masks]
                now = [pair for pair, mask in zip(tags, masks, strict=True) if mask not in late]
                self._scene.show_case(case, read.limits, now)
            self._session.set_case(case, context, masks)
            if not is_first:
                self._go_to_tumour(read)
            if not is_slow:
                self._text.set_loaded(loaded)
        # Layers of the first case are new, which takes an iteration; those of later cases only
        # get new data.
        steps: list[Callable[[], object]] = []
        if is_first:
            steps.append(partial(self._go_to_tumour, read))
        steps.append(partial(self._report_shown, case))
        steps += [partial(self._show_late, case, mask) for mask in late]
        steps += self._text.write_steps(loaded) if is_slow else []
        self._late.start([*steps, *self._scene.stack.removal_steps()])

    def _go_to_tumour(self, read: CaseRead) -> None:
        """Show the first phase that was read, at the slice of the tumour or the middle slice."""
        if not self._session.shows(read.case):
            return
        z, y, x = read.case.grid.shape
        voxel = read.place or (z // 2, y // 2, x // 2)
        self._scene.view.go_to(voxel, centre=False, phase=read.phase)

    def _report_shown(self, case: Case) -> None:
        """Report the displayed case in the next iteration, so that pages and views follow."""
        if self._session.shows(case):
            self.case_shown.emit()
        self._session.set_coming(self._jobs.is_running("open"))

    def _may_be_late(self, mask: SessionMask) -> bool:
        """Return whether the layer of a mask is added later, because a new layer takes 50 ms."""
        return self._scene.layer(mask.role) is None

    def _show_late(self, case: Case, mask: SessionMask) -> None:
        is_there = self._scene.layer(mask.role) is not None
        if self._session.case_id != case.case_id or self._session.mask(mask.role) is not mask:
            return
        if not is_there and self._scene.layer(Role.PHASE) is not None:
            layer = self._scene.show_mask(tag_for(case, mask.role, mask.provenance), mask.buffer)
            if mask.role is Role.REFINED:
                layer.editable = False  # until it is open for editing
            self.mask_shown.emit()

    # ------------------------------------------------------------ other phases

    def _go_on_filling(self) -> None:
        case, files = self._session.case, self._session.files
        if case is not None and files is not None and not case.is_loaded:
            self._fill_phases(case, files)

    def _fill_phases(self, case: Case, files: CaseFiles) -> None:
        self._since_redraw.start()

        self._jobs.start(
            "fill",
            tr("Reading the phases of {case_id}", case_id=case.case_id),
            lambda: self._services.load_remaining(case, files),
            lambda loaded: self._finish_filling(loaded, case),
            still=lambda: self._session.shows(case),
            on_progress=lambda _progress: self._redraw_now_and_then(),
        )

    def _finish_filling(self, full: Case, before: Case) -> None:
        self._text.set_loaded(None)
        self._session.set_loaded(full)
        self._scene.redraw_phases()
        # The warnings before these were shown with the case.
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


def _follow_nothing() -> None:
    """Do nothing; the default callback after a step."""
